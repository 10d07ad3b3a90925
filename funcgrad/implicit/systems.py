"""The linear systems of the implicit function theorem, and the ways to solve them.

By default the Jacobian is written out and the system solved exactly, which takes n products with
it for n unknowns. `BySolver` never writes it out: it hands products with it, and with its
transpose, to a method that the user chose. Both work on one vector of real numbers, so that a real
function of complex unknowns is as good as one of real ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import Origin
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ShapeError, SingularJacobianError, user_line
from funcgrad.implicit.attaching import System
from funcgrad.implicit.linear import custom_linear_solve
from funcgrad.transforms.across import Apart
from funcgrad.transforms.batching import vmap
from funcgrad.transforms.calls import Leaves, Linear

__all__ = ["BySolver", "Dense", "system_by"]


class Layout:
    """Where the elements of leaves are in one vector of real numbers.

    Of complex leaves the real parts come first, then the imaginary parts; those of cotangents with
    `sign` -1, as the convention for them is ``df/dx - i df/dy``.
    """

    def __init__(self, leaves: Leaves):
        self.shapes = [shape_of(leaf) for leaf in leaves]
        self.dtypes = [dtype_of(leaf) for leaf in leaves]
        self.sizes = [
            int(np.prod(shape, dtype=int)) * (1 + (dtype.kind == "c"))
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]
        self.size = sum(self.sizes)
        # What there are factorizations for; the others are computed in double precision.
        kinds = {np.empty(0, dtype).real.dtype for dtype in self.dtypes}
        single = kinds == {np.dtype(np.float32)}
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def flat(self, leaves: Leaves, sign: int = 1) -> Any:
        """Join leaves to a vector."""
        parts = []
        for leaf in leaves:
            if dtype_of(leaf).kind == "c":
                parts += [np.ravel(np.real(leaf)), sign * np.ravel(np.imag(leaf))]
            else:
                parts.append(np.ravel(leaf))
        joined = np.concatenate(parts) if parts else np.zeros(0)
        return joined if dtype_of(joined) == self.dtype else joined.astype(self.dtype)

    def unflat(self, vector: Any, sign: int = 1) -> Leaves:
        """Take a vector apart."""
        leaves, start = [], 0
        for shape, dtype, size in zip(self.shapes, self.dtypes, self.sizes, strict=True):
            part = vector[start : start + size]
            start += size
            if dtype.kind == "c":
                part = part[: size // 2] + (sign * 1j) * part[size // 2 :]
            part = np.reshape(part, shape)
            leaves.append(part if dtype_of(part) == dtype else part.astype(dtype))
        return leaves


class _Flat(System):
    """A system of real vectors."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.unknowns, self.equations = Layout(self.values), Layout(self.outs)
        if self.unknowns.size != self.equations.size:
            raise ShapeError(
                f"{self.origin.transform} needs as many equations as unknowns, got "
                f"{self.equations.size} equations and {self.unknowns.size} unknowns",
                where=str(self.origin),
                fix="return a residual of the shapes of the solution",
            )

    def product(self) -> Callable[[Any], Any]:
        """Return the product of the Jacobian with a vector."""
        push = self.jacobian()

        def jacobian_product(v: Any) -> Any:
            return self.equations.flat(push(self.unknowns.unflat(v)))

        return jacobian_product

    def _pushing(self, solve: Callable[[Any], Any]) -> Linear:
        return lambda dots: self.unknowns.unflat(solve(self.equations.flat(dots)))

    def _pulling(self, solve: Callable[[Any], Any]) -> Linear:
        return lambda bars: self.equations.unflat(solve(self.unknowns.flat(bars, -1)), -1)


class Dense(_Flat):
    """Solves by the matrix, written out and factored."""

    def matrix(self) -> Any:
        """Return the Jacobian transposed."""
        product = self.product()
        with Apart(self.origin):  # by sums over other examples, it would have their columns too
            return vmap(product)(np.eye(self.unknowns.size, dtype=self.unknowns.dtype))

    def pushing(self) -> Linear:
        """Solve with the Jacobian."""
        matrix = np.swapaxes(self.matrix(), -1, -2)
        return self._pushing(lambda y: _solved(matrix, y, self.origin))

    def pulling(self) -> Linear:
        """Solve with its transpose."""
        matrix = self.matrix()
        return self._pulling(lambda y: _solved(matrix, y, self.origin))


# By which argument the user can choose another method, of those who have one.
_METHODS = {
    "custom_root": "tangent_solve=",
    "fixed_point": "solve=",
    "implicit_diff": "solve=",
}


def _solved(matrix: Any, y: Any, origin: Origin) -> Any:
    try:
        return np.linalg.solve(matrix, y)
    except np.linalg.LinAlgError:
        pass
    method = _METHODS.get(origin.transform)
    raise SingularJacobianError(
        f"the solution of {origin.name} has no derivative: the Jacobian of the equation there is "
        "singular",
        where=f"{user_line()}; {origin}",
        fix="see whether the solution is unique, and moves smoothly"
        + (f"; or choose a {method} that takes the least-squares solution" if method else ""),
    )


class BySolver(_Flat):
    """Solves by a method of the user's, ``solve(matvec, b)``."""

    def __init__(self, solve: Callable[..., Any], *args: Any):
        super().__init__(*args)
        self.solve = solve

    def pushing(self) -> Linear:
        """Solve with the Jacobian."""
        product = self.product()
        return self._pushing(
            lambda y: custom_linear_solve(product, y, self.solve, transpose_solve=self.solve)
        )

    def pulling(self) -> Linear:
        """Solve with its transpose."""
        pull = self.transposed()

        def product(v: Any) -> Any:
            return self.unknowns.flat(pull(self.equations.unflat(v, -1)), -1)

        return self._pulling(
            lambda y: custom_linear_solve(product, y, self.solve, transpose_solve=self.solve)
        )


def system_by(solve: Callable[..., Any] | None) -> Callable[..., System]:
    """Return what makes the system to be solved by `solve`, or by the matrix if that is None."""
    return Dense if solve is None else functools.partial(BySolver, solve)
