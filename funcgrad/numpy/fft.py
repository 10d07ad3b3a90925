"""NumPy's Fourier transforms under our name, so that code changes one import."""

from __future__ import annotations

from typing import Any

import numpy as np


def __getattr__(name: str) -> Any:
    return getattr(np.fft, name)


def __dir__() -> list[str]:
    return dir(np.fft)
