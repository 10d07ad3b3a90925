"""Derivatives of what is defined by an equation: roots, fixed points, minima, linear systems.

Nothing that a solver does is differentiated: the derivative of a solution follows from the equation
that it solves. The files: ``attaching`` (how), ``systems`` and ``linear`` (the linear systems that
come of it), ``plain`` (running the solver), ``roots`` and ``solvers`` (the functions for users).
"""

from funcgrad.implicit.linear import custom_linear_solve
from funcgrad.implicit.roots import custom_root, fixed_point
from funcgrad.implicit.solvers import implicit_diff

__all__ = ["custom_linear_solve", "custom_root", "fixed_point", "implicit_diff"]
