"""Jacobians, written out: what the functions in `funcgrad.transforms.derived` return.

A Jacobian is a linear map written out. Its columns are what forward mode makes of the unit
tangents, its rows what reverse mode makes of the unit cotangents; `vmap` does all of them, or a
chunk at a time, in one pass over what was recorded of the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.level import Origin
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, DtypeError, describe, user_line
from funcgrad.transforms.axis_names import axes_in_scope
from funcgrad.transforms.batching import vmap
from funcgrad.transforms.flat import (
    Selection,
    Transformed,
    call_origin,
    is_differentiable,
    select,
)
from funcgrad.transforms.forward import note
from funcgrad.transforms.reverse import argument_numbers, record

__all__ = ["Hessian", "Jacobian", "ValueAndJacobian", "as_function_of", "one"]


def one(leaf: Any) -> Any:
    """Return ones like a leaf, None for one that has no derivative."""
    if not is_differentiable(leaf):
        return None
    return np.ones_like(leaf) if hasattr(leaf, "dtype") else type(leaf)(1)


class ValueAndJacobian(Transformed):
    """What ``value_and_jacrev(fun)`` and its kin return; by the name of `make` they differ."""

    def __init__(
        self,
        make: Callable[..., Any],
        fun: Callable[..., Any],
        argnums: Any,
        has_aux: bool,
        holomorphic: bool,
        argnames: Any,
        chunk_size: int | None,
    ):
        self.transform = make.__name__
        options = {
            "argnums": argnums,
            "has_aux": has_aux,
            "holomorphic": holomorphic,
            "argnames": argnames,
            "chunk_size": chunk_size,
        }
        super().__init__(make, fun, options)
        self.argnums, self.argnames, self.alone = argument_numbers(
            argnums, argnames, self.transform
        )
        self.mode = make.__name__.removeprefix("value_and_")
        self.differentiated = fun
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self.chunk_size = _checked_chunk(chunk_size, self.transform)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the value and the Jacobian."""
        value, jacobian, aux = self.run(args, kwargs, call_origin(self.transform, self.fun))
        return ((value, aux) if self.has_aux else value), jacobian

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], origin: Origin
    ) -> tuple[Any, Any, Any]:
        """Return value, Jacobian and auxiliary output."""
        chosen = select(self.fun, args, kwargs, self.argnums, self.argnames, self.transform)
        fun = as_function_of(self.differentiated, chosen)
        record_by = note if self.mode == "jacfwd" else record
        out, apply, aux = record_by(
            fun, chosen.values, chosen.names, origin, self.has_aux, self.holomorphic, False
        )
        forward = self.mode == "jacfwd"
        if self.mode == "jacobian" and self.prefers_forward(_size(out), _size(chosen.values)):
            forward = True
            out, apply, aux = note(
                fun, chosen.values, chosen.names, origin, self.has_aux, self.holomorphic, False
            )
        _check_differentiable(out, origin)
        _check_real(out, chosen, forward, self.holomorphic, origin)
        made = (_columns if forward else _rows)(apply, chosen.values, out, self.chunk_size)
        part = _first if self.alone else tuple
        whole = part(made) if _is_row(made) else tree.map(part, made, is_leaf=_is_row)
        return out, whole, aux

    def prefers_forward(self, outputs: int, inputs: int) -> bool:
        """Choose the mode, where that is free."""
        return outputs > inputs and not axes_in_scope()


class Jacobian(ValueAndJacobian):
    """What ``jacrev(fun)`` and its kin return."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the Jacobian."""
        _, jacobian, aux = self.run(args, kwargs, call_origin(self.transform, self.fun))
        return (jacobian, aux) if self.has_aux else jacobian


class Hessian(Jacobian):
    """What ``hessian(fun)`` returns: the Jacobian of `rows`, the Jacobian of `fun`."""

    def __init__(
        self, make: Callable[..., Any], fun: Callable[..., Any], *options: Any, rows: Jacobian
    ):
        super().__init__(make, fun, *options)
        self.mode = "jacobian"
        self.differentiated = rows
        rows.transform = self.transform  # as the user calls it, in messages

    def prefers_forward(self, outputs: int, inputs: int) -> bool:
        """Choose the mode: the one of JAX where they differ."""
        return outputs > inputs or bool(axes_in_scope())


class _Row(tuple[Any, ...]):
    """What stands in the place of an output leaf: a part of the Jacobian for each argument."""

    __slots__ = ()


def _is_row(value: Any) -> bool:
    return type(value) is _Row


def _first(row: Any) -> Any:
    return row[0]


def _checked_chunk(chunk_size: Any, transform: str) -> int | None:
    if chunk_size is None:
        return None
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise ArgumentError(
            f"chunk_size of {transform} must be a positive int, got {describe(chunk_size)}",
            where=user_line(),
            fix="write chunk_size=100, or leave it away to compute all at once",
        )
    return chunk_size


def as_function_of(fun: Callable[..., Any], chosen: Selection) -> Callable[..., Any]:
    """Return `fun` as a function of the chosen arguments."""

    def of_chosen(*values: Any) -> Any:
        args, kwargs = chosen.replace(values)
        return fun(*args, **kwargs)

    return of_chosen


def _size(values: Any) -> int:
    """Return the number of elements that have a derivative."""
    return sum(math.prod(shape_of(leaf)) for leaf in tree.leaves(values) if is_differentiable(leaf))


def _check_differentiable(out: Any, origin: Origin) -> None:
    if not (is_differentiable(out) or any(map(is_differentiable, tree.leaves(out)))):
        raise DtypeError(
            f"{origin.transform} needs a function that returns floating-point numbers, "
            f"got {describe(out)}",
            where=str(origin),
            fix="return floats: integers, truth values and strings have no derivative",
        )


def _check_real(
    out: Any, chosen: Selection, forward: bool, holomorphic: bool, origin: Origin
) -> None:
    """Raise unless the elements that are perturbed one by one are real, or all are complex."""
    if holomorphic or (not forward and isinstance(out, float)):
        return
    for leaf in tree.leaves(chosen.values if forward else out):
        if is_differentiable(leaf) and dtype_of(leaf).kind == "c":
            what = "arguments" if forward else "outputs"
            raise DtypeError(
                f"{origin.transform} needs real {what}, got {describe(leaf)}",
                where=str(origin),
                fix="pass holomorphic=True if the function is holomorphic, or split the real and "
                "the imaginary part",
            )


def _units(leaves: Sequence[Any], chunk_size: int | None) -> Iterator[list[Any]]:
    """Yield the unit vectors of the space of `leaves`, as stacks for each leaf, in chunks."""
    sizes = [math.prod(shape_of(leaf)) for leaf in leaves]
    total = sum(sizes)
    step = chunk_size or max(total, 1)
    for start in range(0, max(total, 1), step):
        count = min(step, total - start)
        parts, before = [], 0
        for leaf, size in zip(leaves, sizes, strict=True):
            part = np.eye(count, size, start - before, dtype_of(leaf))  # row i: unit start + i
            parts.append(part.reshape(count, *shape_of(leaf)))
            before += size
        yield parts


def _mapped(
    apply: Callable[[list[Any]], list[Any]], leaves: Sequence[Any], chunk_size: int | None
) -> list[Any]:
    """Apply a linear map to all unit vectors; return what came out, stacked, leaf by leaf."""
    made: list[list[Any]] = [vmap(apply)(parts) for parts in _units(leaves, chunk_size)]
    if len(made) == 1:
        return made[0]
    return [np.concatenate(parts) for parts in zip(*made, strict=True)]


def _differentiable(values: Any) -> tuple[list[Any], list[int], Any]:
    leaves, treedef = tree.flatten(values)
    return leaves, [i for i, leaf in enumerate(leaves) if is_differentiable(leaf)], treedef


def _filled(parts: Sequence[Any], positions: list[int], count: int) -> list[Any]:
    filled: list[Any] = [None] * count
    for position, part in zip(positions, parts, strict=True):
        filled[position] = part
    return filled


def _shaped(part: Any, shape: tuple[int, ...]) -> Any:
    """Return a part of a Jacobian in its shape, as a scalar if it is one number."""
    part = np.reshape(part, shape)
    return part if shape else part[()]


def _rows(pullback: Any, values: tuple[Any, ...], out: Any, chunk_size: int | None) -> Any:
    """Return the Jacobian by pulling back the unit cotangents."""
    if is_differentiable(out) and shape_of(out) == ():  # the gradient of a scalar
        return _Row(pullback(one(out)))
    ins, ins_at, in_tree = _differentiable(values)
    outs, outs_at, out_tree = _differentiable(out)

    def pull(bars: list[Any]) -> list[Any]:
        pulled = pullback.of_leaves(_filled(bars, outs_at, len(outs)))
        return [pulled[i] for i in ins_at]

    stacks = _mapped(pull, [outs[i] for i in outs_at], chunk_size)
    rows: list[Any] = []
    start = 0
    for i in outs_at:
        shape = shape_of(outs[i])
        stop = start + math.prod(shape)
        parts = [
            _shaped(stack[start:stop], (*shape, *shape_of(ins[k])))
            for stack, k in zip(stacks, ins_at, strict=True)
        ]
        rows.append(_Row(tree.unflatten(in_tree, _filled(parts, ins_at, len(ins)))))
        start = stop
    return tree.unflatten(out_tree, _filled(rows, outs_at, len(outs)))


def _columns(pushforward: Any, values: tuple[Any, ...], out: Any, chunk_size: int | None) -> Any:
    """Return the Jacobian by pushing the unit tangents forward."""
    ins, ins_at, in_tree = _differentiable(values)
    outs, outs_at, out_tree = _differentiable(out)

    def push(dots: list[Any]) -> list[Any]:
        tangents = tree.unflatten(in_tree, _filled(dots, ins_at, len(ins)))
        pushed = out_tree.flatten_up_to(pushforward(*tangents))
        return [pushed[i] for i in outs_at]

    stacks = _mapped(push, [ins[i] for i in ins_at], chunk_size)
    rows: list[Any] = []
    for stack, i in zip(stacks, outs_at, strict=True):
        columns = np.moveaxis(stack, 0, -1)
        parts = []
        start = 0
        for k in ins_at:
            shape = shape_of(ins[k])
            stop = start + math.prod(shape)
            parts.append(_shaped(columns[..., start:stop], (*shape_of(outs[i]), *shape)))
            start = stop
        rows.append(_Row(tree.unflatten(in_tree, _filled(parts, ins_at, len(ins)))))
    return tree.unflatten(out_tree, _filled(rows, outs_at, len(outs)))
