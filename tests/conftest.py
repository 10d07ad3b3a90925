"""Many tests are made of what is declared, when they are collected: so all rules are loaded now."""

from funcgrad.rules import (  # noqa: F401 - which load the others too
    banded,
    entropy,
    filters,
    lu_factors,
    matrix_equations,
    matrix_functions,
    ndimage,
    neural,
    pooling,
    signal,
    special,
    structured,
    systems,
    triangular,
)
from funcgrad.scipy import integrate  # noqa: F401 - as above
