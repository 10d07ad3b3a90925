"""`numpy.linalg`: systems, factors, eigenvalues, norms, and products of many matrices."""

import importlib

__all__ = [
    "condition_numbers",
    "determinants",
    "eigen",
    "factorizations",
    "leastsquares",
    "norms",
    "products",
    "singular",
    "solving",
    "spectra",
    "stacks",
]

for _name in __all__:
    importlib.import_module(f"{__name__}.{_name}")
