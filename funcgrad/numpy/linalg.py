"""NumPy's linear algebra under our name, so that code changes one import."""

from __future__ import annotations

import numpy as np

from funcgrad.core.namespace import standing_in

__getattr__, __dir__ = standing_in(__name__, np.linalg)
