"""The functions of `scipy.linalg`. Importing this package declares them all.

It needs SciPy, and is loaded with `funcgrad.scipy.linalg`.
"""

import importlib

__all__ = [
    "banded",
    "decompositions",
    "lu_factors",
    "matrix_equations",
    "matrix_functions",
    "namesakes",
    "structured",
    "triangular",
]

for _name in __all__:
    importlib.import_module(f"{__name__}.{_name}")
