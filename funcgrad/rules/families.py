"""Rules that many primitives share.

A family is a function given to `funcgrad.core.primitive.primitive`; it fills in the forward-mode
rule that all members have in common. Elementwise functions are a family of their own, in the
core, because the transforms have a short path for them.
"""

from __future__ import annotations

from typing import Any

from funcgrad.core.convert import zeros_like
from funcgrad.core.primitive import Primitive
from funcgrad.core.zero import zero_wins_among

__all__ = ["linear", "multilinear"]


def linear(primitive: Primitive) -> None:
    """Linear in all array arguments together: the tangents go through the function itself."""

    def linear_jvp(primals: Any, tangents: Any, out: Any, **params: Any) -> Any:
        dots = [
            zeros_like(x) if x_dot is None else x_dot
            for x, x_dot in zip(primals, tangents, strict=True)
        ]
        return primitive.bind(*dots, **params)

    primitive.def_jvp(linear_jvp)
    primitive.linear = True


def multilinear(primitive: Primitive) -> None:
    """Linear in each array argument by itself: the product rule."""

    def multilinear_jvp(primals: Any, tangents: Any, out: Any, **params: Any) -> Any:
        def product(*args: Any) -> Any:
            return primitive.bind(*args, **params)

        out_dot = None
        for index, x_dot in enumerate(tangents):
            if x_dot is not None:
                args = [*primals[:index], x_dot, *primals[index + 1 :]]
                part = zero_wins_among(product(*args), product, args)
                out_dot = part if out_dot is None else out_dot + part
        return out_dot

    primitive.def_jvp(multilinear_jvp)
    primitive.multilinear = True
