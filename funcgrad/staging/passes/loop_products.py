"""Products in loops: one of all steps, in the place of one at each step.

A product of each row with a constant matrix becomes one product of all rows, before the loop, or
behind it if no step needs the result. A sum over the steps of products, such as the gradient of a
weight, becomes one product of all that was multiplied. A few large products take less time than
many small ones; their elements are sums that BLAS may take in another order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from funcgrad.core.primitive import DECLARED, UFUNCS
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.passes.loop_rewriting import LoopRewriting, body_of
from funcgrad.staging.passes.rewriting import counted_uses, is_sum, makers

if TYPE_CHECKING:
    pass

__all__ = ["LoopProducts"]

# Bytes of the largest array that is made of all steps for the sake of one product.
_MOST = 1 << 27
# With so many steps it pays to copy a matrix for all of them.
_OFTEN = 8


class LoopProducts(LoopRewriting):
    """A loop of which products are moved before it and behind."""

    def products_before(self) -> None:
        """Multiply all rows at once by what all steps multiply their row by."""
        loop = self.loop
        program = loop.body.program
        inputs = program.inputs
        first = loop.constants
        third = first + loop.carries + loop.has_number
        constants = {var.number: k for k, var in enumerate(inputs[:first])}
        rows = {var.number: k for k, var in enumerate(inputs[third:])}
        new_rows: list[Var] = []
        kept = []
        for equation in program.equations:
            if (
                equation.name == "matmul"
                and DECLARED["matmul"] is equation.operation
                and all(isinstance(atom, Var) for atom in equation.inputs)
            ):
                x, w = equation.inputs
                (out,) = equation.outputs
                assert isinstance(x, Var)
                assert isinstance(w, Var)
                if (
                    out is not None
                    and x.number in rows
                    and w.number in constants
                    and len(x.shape) == len(w.shape) == 2
                    and self._is_small(out)
                ):
                    whole = self.rows[rows[x.number]]
                    made = self._product(self.before, whole, self.constants[constants[w.number]])
                    self.rows.append(made)
                    new_rows.append(out)
                    continue
            kept.append(equation)
        if new_rows:
            body = body_of(loop.body, [*inputs, *new_rows], program.outputs, kept)
            self.loop = loop.with_body(body, rows=len(self.rows))

    def turn_matrices(self) -> None:
        """Copy transposed matrices that all steps multiply by: BLAS would do so at each step."""
        loop = self.loop
        assert loop.length is not None
        if loop.length < _OFTEN:
            return
        program, layouts = loop.body.program, loop.body.layouts
        others = {
            var.number
            for equation in program.equations
            for place, var in enumerate(equation.inputs)
            if isinstance(var, Var)
            and not (
                equation.operation is DECLARED["matmul"]
                and place
                and len(getattr(equation.inputs[0], "shape", ())) == 2
            )
        }
        others.update(var.number for var in vars_of(program.outputs))
        used = {var.number for equation in program.equations for var in vars_of(equation.inputs)}
        for place, var in enumerate(program.inputs[: loop.constants]):
            if (
                len(var.shape) != 2
                or layouts.get(var.number) != "F"
                or var.number in others
                or var.number not in used
            ):
                continue
            made = self.new(var.shape, var.dtype)
            self.add(self.before, "copy", (self.constants[place],), made, order="C", subok=False)
            self.constants[place] = made
            layouts[var.number] = "C"

    def _is_small(self, var: Var) -> bool:
        assert self.loop.length is not None
        size = self.loop.length * math.prod(var.shape) * var.dtype.itemsize
        return 0 < size <= _MOST and bool(var.shape[0])

    def _product(
        self, where: list[Equation], whole: Var, matrix: Var, out: Var | None = None
    ) -> Var:
        """Write the product of each row with a matrix."""
        length, n, k = whole.shape
        m = matrix.shape[1]
        flat = self._reshaped(where, whole, (length * n, k))
        dtype = np.result_type(whole.dtype, matrix.dtype)
        product = self.new((length * n, m), dtype)
        self.add(where, "matmul", (flat, matrix), product)
        return self._reshaped(where, product, (length, n, m), out)

    def _reshaped(
        self, where: list[Equation], x: Var, shape: tuple[int, ...], out: Var | None = None
    ) -> Var:
        made = out or self.new(shape, x.dtype)
        return self.add(where, "reshape", (x,), made, order="C", copy=None, shape=shape)

    def _stacked(self, var: Any) -> Var | None:
        """Return what a step uses in the place of `var`, of all steps; None if there is no such."""
        loop = self.loop
        program = loop.body.program
        third = loop.constants + loop.carries + loop.has_number
        for k, row in enumerate(program.inputs[third:]):
            if row is var:
                found: Var = self.rows[k]
                return found
        if any(constant is var for constant in program.inputs[: loop.constants]):
            return None
        for k, atom in enumerate(program.outputs[loop.carries :]):
            if atom is var:
                return self.outs[k]
        if not self._is_small(var):
            return None
        assert loop.length is not None
        made = self.new((loop.length, *var.shape), var.dtype)
        self.outs.append(made)
        body = body_of(loop.body, program.inputs, [*program.outputs, var])
        self.loop = loop.with_body(body)
        return made

    def sums_behind(self) -> None:
        """Compute sums over the steps of products at once."""
        for place in reversed(range(self.loop.carries)):
            self._sum_behind(place)

    def _sum_behind(self, place: int) -> None:
        loop = self.loop
        program = loop.body.program
        total = program.inputs[loop.constants + place]
        out = program.outputs[place]
        made_by = makers(program)
        if not isinstance(out, Var) or out.number not in made_by or total.dtype.kind not in "fc":
            return
        adding = made_by[out.number]
        if not is_sum(adding) or adding.inputs[0] is not total or adding.inputs[1] is total:
            return
        uses = counted_uses(program)
        if uses[total.number] != 1 or uses[out.number] != 1 or total.shape != out.shape:
            return
        terms: list[tuple[str, Any, Any]] = []
        if not _products(adding.inputs[1], total, made_by, uses, terms):
            return
        if not all(self._is_small(var) for _, a, b in terms for var in vars_of((a, b))):
            return
        if any(
            constant is var
            for constant in program.inputs[: loop.constants]
            for _, a, b in terms
            for var in (a, b)
        ):
            return
        start, last = self.carry[place], self.last[place]
        parts = []
        for kind, a, b in terms:
            x = self._stacked(a)
            assert x is not None
            if kind == "sum":
                axes = (0, *[axis + 1 for axis in b])
                part = self.new(total.shape, total.dtype)
                self.add(
                    self.behind, "reduce_sum", (x,), part, axis=axes, dtype=None, keepdims=False
                )
                parts.append(part)
                continue
            y = self._stacked(b)
            assert y is not None
            x = self._rows_of(x)
            y = self._rows_of(y)
            turned = self.new(x.shape[::-1], x.dtype, "F")
            self.add(self.behind, "transpose", (x,), turned, axes=None)
            part = self.new(total.shape, np.result_type(x.dtype, y.dtype))
            self.add(self.behind, "matmul", (turned, y), part)
            parts.append(part)
        if not (isinstance(start, Var) and start.number in self.zeros):
            parts.append(start)
        self._summed(parts, last)
        # The loop does without it.
        loop = self.loop
        program = loop.body.program
        del self.carry[place], self.last[place]
        at = loop.constants + place
        arguments = [*program.inputs[:at], *program.inputs[at + 1 :]]
        results = [*program.outputs[:place], *program.outputs[place + 1 :]]
        self.loop = loop.with_body(body_of(loop.body, arguments, results), carries=loop.carries - 1)

    def _rows_of(self, x: Var) -> Var:
        """Return a stack of matrices, or of vectors, as one matrix."""
        if len(x.shape) == 2:
            return x
        return self._reshaped(self.behind, x, (x.shape[0] * x.shape[1], x.shape[2]))

    def _summed(self, parts: list[Any], out: Var) -> None:
        if len(parts) == 1:
            before = self.behind[-1]
            self.behind[-1] = attrs.evolve(before, outputs=(out,))
            if out.number not in self.layouts and out.shape:
                self.layouts[out.number] = "C"
            return
        total = parts[0]
        for k, part in enumerate(parts[1:], 2):
            made = out if k == len(parts) else self.new(out.shape, out.dtype)
            self.behind.append(
                Equation(
                    UFUNCS[np.add], (total, part), {}, (made,), False, np.add, self.equation.line
                )
            )
            total = made

    def products_behind(self) -> None:
        """Multiply outputs by what all steps multiply them by behind the loop."""
        for place in range(len(self.outs)):
            loop = self.loop
            program = loop.body.program
            results = program.outputs
            atom = results[loop.carries + place]
            if not isinstance(atom, Var) or counted_uses(program).get(atom.number) != 1:
                continue
            found = [e for e in program.equations if any(var is atom for var in e.outputs)]
            if not found or found[0].operation is not DECLARED["matmul"]:
                continue
            x, w = found[0].inputs
            constants = {var.number: k for k, var in enumerate(program.inputs[: loop.constants])}
            if (
                not isinstance(x, Var)
                or not isinstance(w, Var)
                or w.number not in constants
                or x.number in constants
                or len(x.shape) != 2
                or len(w.shape) != 2
                or not self._is_small(x)
            ):
                continue
            matrix = self.constants[constants[w.number]]
            whole = self._stacked(x)
            assert whole is not None
            out = self.outs[place]
            self._product(self.behind, whole, matrix, out)
            self.layouts.setdefault(out.number, "C")
            self.outs[place] = self.new(out.shape, out.dtype)  # nobody uses it


def _products(
    term: Any,
    like: Var,
    made_by: dict[int, Equation],
    uses: dict[int, int],
    terms: list[tuple[str, Any, Any]],
    turned: bool = False,
) -> bool:
    """Take a term of a sum over steps apart into products; tell whether it is made of such."""
    if not isinstance(term, Var) or uses.get(term.number) != 1 or term.number not in made_by:
        return False
    equation = made_by[term.number]
    inputs, params = equation.inputs, equation.params
    if is_sum(equation):
        return all(
            isinstance(part, Var)
            and part.shape == term.shape
            and _products(part, like, made_by, uses, terms, turned)
            for part in inputs
        )
    if equation.operation is DECLARED["transpose"] and len(term.shape) == 2:
        return params["axes"] in (None, (1, 0)) and _products(
            inputs[0], like, made_by, uses, terms, not turned
        )
    if term.dtype != like.dtype:
        return False
    if equation.operation is DECLARED["reduce_sum"] and not turned and len(inputs) == 1:
        (x,) = inputs
        axis = params["axis"]
        if not isinstance(x, Var) or params["keepdims"] is not False or params["dtype"] is not None:
            return False
        axes = range(len(x.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        terms.append(("sum", x, tuple([a % len(x.shape) for a in axes])))
        return True
    if equation.operation is DECLARED["outer"] and all(
        isinstance(x, Var) and len(x.shape) == 1 for x in inputs
    ):
        a, b = inputs
        terms.append(("product", *((b, a) if turned else (a, b))))
        return True
    if equation.operation is DECLARED["matmul"]:
        a, b = inputs
        before = made_by.get(a.number) if isinstance(a, Var) else None
        if (
            before is None
            or before.operation is not DECLARED["transpose"]
            or not isinstance(b, Var)
            or len(b.shape) != 2
        ):
            return False
        (x,) = before.inputs
        if not isinstance(x, Var) or len(x.shape) != 2:
            return False
        terms.append(("product", *((b, x) if turned else (x, b))))
        return True
    return False
