"""Check derivatives against finite differences.

For whoever writes a rule, a custom derivative, or a function whose gradient matters: `check_grads`
tries all modes of funcgrad on a function; `check_jvp` and `check_vjp` try a rule of your own;
`numerical_jvp` is what they compare with.

Examples
--------
>>> import numpy as np
>>> from funcgrad.testing import check_grads
>>> check_grads(lambda x, y: np.sum(np.sin(x) * y), (np.array([0.5, 2.0]), 3.0))
"""

from funcgrad.testing.checks import check_grads, check_jvp, check_vjp
from funcgrad.testing.differences import numerical_jvp

__all__ = ["check_grads", "check_jvp", "check_vjp", "numerical_jvp"]
