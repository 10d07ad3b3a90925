"""The primitives and their rules, by theme. Importing this package declares them all."""

from funcgrad.rules import elementwise, reductions, shaping

__all__ = ["elementwise", "reductions", "shaping"]
