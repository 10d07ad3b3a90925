"""funcgrad: derivatives of plain NumPy functions."""

from funcgrad import errors, rules, tree
from funcgrad.transforms.forward import jvp, linearize
from funcgrad.transforms.reverse import grad, value_and_grad, vjp

__version__ = "0.1.0"

__all__ = ["errors", "grad", "jvp", "linearize", "tree", "value_and_grad", "vjp"]
