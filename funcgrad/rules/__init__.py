"""The primitives and their rules, by theme. Importing this package declares them all.

Those of networks (`nn`) and of SciPy's functions (`scipy`) are declared when they are first used.
"""

import importlib

__all__ = [
    "accumulate",
    "arranging",
    "bits",
    "casting",
    "comparing",
    "complex_parts",
    "contractions",
    "convolution",
    "covariance",
    "creation",
    "cumulative",
    "diagonals",
    "differences",
    "discrete",
    "einsum",
    "elementwise",
    "emath",
    "fft",
    "filling",
    "folds",
    "gathering",
    "histograms",
    "indexing",
    "inserting",
    "interpolation",
    "joining",
    "linalg",
    "mapping",
    "matmul",
    "moments",
    "nanreductions",
    "padding",
    "polynomials",
    "quantiles",
    "reductions",
    "selection",
    "sets",
    "shaping",
    "sinc_and_i0",
    "sliding",
    "sorting",
    "taking",
    "trimming",
]

for _name in __all__:
    importlib.import_module(f"{__name__}.{_name}")
