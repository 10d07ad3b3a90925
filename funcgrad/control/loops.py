"""Loops over the first axis of arrays: `scan`, which carries something along, and `map`.

Both are a Python loop that slices its inputs and stacks its outputs once, at the end. What is
traced is traced through, step by step.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.control.carry import Carry, as_pair, aval_of, explained, place_of, read_only, shown
from funcgrad.control.rows import adopt, is_stackable, of_one_dtype
from funcgrad.control.segments import Segments
from funcgrad.control.structured import FEW, Leaves, is_recorded_here, recorder, scanned
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import Origin, TracerBase
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.staging.bodies import Unstructured
from funcgrad.transforms.batching import vmap
from funcgrad.transforms.flat import call_origin, check_callable
from funcgrad.transforms.remat import checkpoint

__all__ = ["map", "scan"]

_range = range


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """Go through arrays row by row, carrying something along.

    The same as this, for pytrees::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    Parameters
    ----------
    f : callable
        Takes the carry and a slice of `xs`, and returns a pair: the carry, with the structure,
        shapes and dtypes that it was given, and an output, a pytree of arrays and numbers or None.
    init : pytree
        The carry to start from.
    xs : pytree of arrays, optional
        What to go over, along axis 0. None, and None in the place of `x`, if there is nothing.
    length : int, optional
        The number of steps; needed if there are no `xs`.
    reverse : bool
        Start from the last row. The outputs are in the order of `xs` nevertheless.
    unroll : int or bool
        Ignored; for programs that were written for JAX.
    checkpoint_every : int, optional
        Keep the carry of every so many steps only, and compute what the steps in between need
        again in the backward pass. It bounds the memory that reverse mode takes.

    Returns
    -------
    carry : pytree
        The carry after the last step.
    ys : pytree
        The outputs of all steps, stacked along axis 0.

    Raises
    ------
    TreeMismatchError
        A step returned a carry, or an output, of another structure than before.
    ShapeError, DtypeError
        A leaf of them has another shape, or one of the carry another dtype; or `xs` are not all of
        one length.
    ArgumentError
        `f` did not return a pair, or nothing says how many steps there are.
    MutationError
        `f` wrote into the carry or the slice that it was given.

    Notes
    -----
    A Python number or an integer array in `init` takes the dtype of the carry that the first step
    returns, as ``0`` does in a sum of floats; afterwards the dtype must stay.

    With no step to make, `f` is called once all the same, on zeros in the place of a slice, to
    learn the shapes of the outputs, which then have shape ``(0, ...)``. The carry is `init`.

    Reverse mode keeps what each step needs, and so takes memory in proportion to their number. With
    ``checkpoint_every=k`` it keeps n / k carries and what k steps need, least for k = sqrt(n), and
    takes about a third more time. Only the order in which the cotangents of what `f` closes over
    are added up is another then.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.control import scan
    >>> def step(total, x):
    ...     total = total + x
    ...     return total, total
    >>> scan(step, 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([1., 3., 6.]))

    The gradient of a sum of powers, by Horner's rule:

    >>> def polynomial(x):
    ...     return scan(lambda y, c: (y * x + c, None), 0.0, np.array([1.0, 2.0, 3.0]))[0]
    >>> float(fg.grad(polynomial)(2.0))  # of x**2 + 2*x + 3
    6.0
    """
    check_callable("scan", f)
    origin = call_origin("scan", f)
    leaves, treedef = tree.flatten(xs)
    count = _length(leaves, xs, length, origin)
    _check_unroll(unroll)
    segments = Segments(checkpoint_every, origin)
    every = segments.every
    if every is not None and count > every >= FEW and recorder() is not None:
        return _in_segments(f, init, (leaves, treedef), count, every, reverse)
    rows = [read_only(leaf) for leaf in adopt(leaves)]
    carry = Carry(origin, f, init)
    current = adopt(carry.leaves)
    outputs = _Outputs(origin, f)
    single = treedef.is_leaf
    places = _range(count)[::-1] if reverse else _range(count)
    rest = None
    # A program has one equation for all the steps, or for all but the first, or the first two.
    tries = _FIRST if every is None and is_recorded_here(count) else 0
    with segments:
        for step, i in enumerate(places):
            if step < tries:
                rest, tries = _rest(f, carry, current, (rows, treedef), places[step:], tries)
                if rest is not None:
                    current = rest[0]
                    break
            if every is not None:
                segments.step((current, rows))
            x = rows[0][i] if single else tree.unflatten(treedef, [row[i] for row in rows])
            try:
                out = f(carry.present(current), x)
            except Exception as error:
                raise explained(error, origin, f, ("carry", "x"), i)  # noqa: B904 - it is the same
            made, y = out if type(out) is tuple and len(out) == 2 else as_pair(out, origin, f, i)
            current = carry.accept(made, i, y)
            outputs.add(y, i)
    if not count:
        _, y = as_pair(f(carry.present(current), _any_row(rows, treedef)), origin, f, 0)
        return tree.unflatten(carry.treedef, current), tree.map(_none_of, y)
    return carry.finish(current), outputs.stack(reverse, None if rest is None else rest[1])


# How many steps are made by themselves at most before the others become one equation.
_FIRST = 3


def _rest(
    f: Any, carry: Carry, current: list[Any], xs: tuple[Any, Any], places: range, tries: int
) -> tuple[Any, int]:
    """Return what the steps at some places give as one equation, and up to where to try again."""

    def step(value: Any, number: Any, x: Any) -> tuple[Any, Any]:
        return as_pair(f(value, x), carry.origin, f, 0)

    try:
        made = scanned("scan", step, Leaves(current, carry.treedef), Leaves(*xs), places)
    except Unstructured:
        return None, 0
    return made, tries


def _in_segments(
    f: Any, init: Any, xs: tuple[Any, Any], count: int, every: int, reverse: bool
) -> tuple[Any, Any]:
    """Do what `scan` does, as a loop over segments, each of which is a loop and computed again."""
    leaves, treedef = xs
    whole = count // every * every
    first = count - whole if reverse else 0

    def segment(carry: Any, xs: Any) -> Any:
        return scan(f, carry, xs, every, reverse)

    parts = [_inside(leaf, lambda x: _folded(x[first : first + whole], every)) for leaf in leaves]
    blocks = tree.unflatten(treedef, parts)
    carry, ys = scan(checkpoint(segment), init, blocks, whole // every, reverse)
    ys = tree.map(partial(_inside, change=lambda y: y.reshape(whole, *shape_of(y)[2:])), ys)
    if whole < count:
        rest = [leaf[:first] if reverse else leaf[whole:] for leaf in leaves]
        carry, more = scan(f, carry, tree.unflatten(treedef, rest), count - whole, reverse)
        ys = _joined(more, ys) if reverse else _joined(ys, more)
    return carry, ys


def _folded(x: Any, every: int) -> Any:
    shape = shape_of(x)
    return x.reshape(shape[0] // every, every, *shape[1:])


def _inside(leaf: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a function to a leaf, or to what it is made of."""
    return leaf._rebox(change(leaf._unbox())) if isinstance(leaf, Boxed) else change(leaf)


def map(f: Callable[[Any], Any], xs: Any, batch_size: int | None = None) -> Any:
    """Apply a function to each row of arrays, in a loop, and stack the results.

    Parameters
    ----------
    f : callable
        Takes a slice of `xs`, and returns a pytree of arrays and numbers.
    xs : pytree of arrays
        What to go over, along axis 0.
    batch_size : int, optional
        Take that many rows at a time, by `vmap`: faster than one by one, and with less memory than
        all of them together.

    Returns
    -------
    pytree
        What `f` returned for all rows, stacked along axis 0.

    Raises
    ------
    ShapeError
        `xs` are not all of one length, or the results not all of one shape.
    TreeMismatchError
        `f` returned different structures.
    ArgumentError
        There is nothing to go over, or `batch_size` is not a positive number.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.control import map
    >>> map(np.sum, np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])
    >>> map(np.sum, np.arange(6.0).reshape(3, 2), batch_size=2)
    array([1., 5., 9.])
    """
    check_callable("map", f)
    origin = call_origin("map", f)
    leaves, treedef = tree.flatten(xs)
    count = _length(leaves, xs, None, origin)
    leaves = adopt(leaves)
    if batch_size is not None:
        size = _positive(batch_size, "batch_size of map", 32)
        if count:
            return _map_in_batches(f, leaves, treedef, count, size, origin)
    rows = [read_only(leaf) for leaf in leaves]
    if not count:
        return tree.map(_none_of, f(_any_row(rows, treedef)))
    if is_recorded_here(count):
        try:
            made = scanned(
                "map",
                lambda carry, number, x: (carry, f(x)),
                Leaves([], tree.structure(None)),
                Leaves(rows, treedef),
                _range(count),
            )
            if made is not None:
                return made[1]
        except Unstructured:
            pass
    outputs = _Outputs(origin, f)
    for i in _range(count):
        try:
            out = f(tree.unflatten(treedef, [row[i] for row in rows]))
        except Exception as error:
            raise explained(error, origin, f, ("x",), i)  # noqa: B904 - it is the same
        outputs.add(out, i)
    return outputs.stack(False)


def _map_in_batches(
    f: Any, leaves: list[Any], treedef: Any, count: int, size: int, origin: Origin
) -> Any:
    batched = vmap(f)
    parts = [
        batched(tree.unflatten(treedef, [leaf[start : start + size] for leaf in leaves]))
        for start in _range(0, count, size)
    ]

    def join(path: Any, *parts: Any) -> Any:
        if isinstance(parts[0], Boxed):
            return parts[0]._rebox(join(path, *[part._unbox() for part in parts]))
        if not is_stackable(parts[0]):
            raise _not_stackable(parts[0], tree.keystr(path), f, origin)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    return tree.map_with_path(join, *parts)


def _not_stackable(leaf: Any, path: str, fun: Any, origin: Origin) -> ArgumentError:
    return ArgumentError(
        f"the outputs of {origin.transform} are stacked, and must be arrays or numbers, "
        f"got {describe(leaf)}",
        where=f"the output{' at ' + path if path else ''} of {place_of(fun)}; {origin}",
        fix="return an array, or None",
    )


class _Outputs:
    """What the steps of a loop returned, leaf by leaf."""

    __slots__ = ("columns", "fun", "nothing", "numbers", "origin", "treedef")

    def __init__(self, origin: Origin, fun: Callable[..., Any]):
        self.origin = origin
        self.fun = fun
        self.treedef: Any = None
        self.nothing = False  # as there are no outputs
        self.columns: list[list[Any]] = []
        self.numbers: list[int] = []

    def add(self, y: Any, step: int) -> None:
        """Take the output of a step."""
        if y is None and self.nothing:
            return
        if type(y) is np.ndarray and self.treedef is not None and self.treedef.is_leaf:
            self.numbers.append(step)
            self.columns[0].append(y)
            return
        leaves, treedef = tree.flatten(y)
        if self.treedef is None:
            self.treedef = treedef
            self.nothing = y is None
            self.columns = [[] for _ in leaves]
        elif treedef is not self.treedef and treedef != self.treedef:
            tree.check_match(
                self.treedef,
                y,
                what=f"the output of every step of {self.origin.transform} must have one "
                f"structure, but changed at step {step}",
                where=f"{self.origin}: the output that {place_of(self.fun)} returned,",
                against=f"that of step {self.numbers[0]}",
            )
        self.numbers.append(step)
        for column, leaf in zip(self.columns, leaves, strict=True):
            column.append(leaf)

    def stack(self, reverse: bool, rest: Any = None) -> Any:
        """Return the outputs, stacked in the order of the inputs; `rest` are others behind them."""
        if self.treedef is None:
            return rest
        made = [
            self._stack(column[::-1] if reverse else column, position)
            for position, column in enumerate(self.columns)
        ]
        mine = tree.unflatten(self.treedef, made)
        return mine if rest is None else _joined(*((rest, mine) if reverse else (mine, rest)))

    def _stack(self, column: list[Any], position: int) -> Any:
        first = column[0]
        if isinstance(first, Boxed):
            return first._rebox(np.stack([leaf._unbox() for leaf in column]))
        if is_stackable(first):
            try:
                return np.stack(of_one_dtype(column))
            except ValueError:
                pass
        self._complain(position)
        raise AssertionError

    def _complain(self, position: int) -> None:
        """Say which leaf of which step could not be stacked."""
        column = self.columns[position]
        want = aval_of(column[0])
        pairs, _ = tree.flatten_with_path(
            tree.unflatten(self.treedef, [column[0] for column in self.columns])
        )
        path = tree.keystr(pairs[position][0])
        if want[0] is None:
            raise _not_stackable(column[0], path, self.fun, self.origin)
        for step, leaf in zip(self.numbers, column, strict=True):
            got = aval_of(leaf)
            if got[0] != want[0]:
                raise ShapeError(
                    f"the outputs of {self.origin.transform} are stacked, and must be of one "
                    f"shape, but changed at step {step}: expected {shown(want)}, "
                    f"found {shown(got)}",
                    where=f"the output{' at ' + path if path else ''} of {place_of(self.fun)}; "
                    f"{self.origin}",
                    fix="return arrays of one shape, padded if need be",
                )
        np.stack(column)  # what NumPy itself says


def _joined(first: Any, second: Any) -> Any:
    """Join outputs along axis 0."""

    def join(a: Any, b: Any) -> Any:
        if isinstance(a, Boxed):
            return a._rebox(join(a._unbox(), b._unbox()))
        return np.concatenate([a, b])

    return tree.map(join, first, second)


def _length(leaves: list[Any], xs: Any, length: Any, origin: Origin) -> int:
    """Return the number of steps; raise unless all of `xs` agree on it."""
    if length is not None:
        try:
            want = operator.index(length)
        except TypeError:
            want = -1
        if want < 0 or isinstance(length, bool):
            raise ArgumentError(
                f"length of {origin.transform} must be a number of steps, got {describe(length)}",
                where=str(origin),
                fix="write length=3; for a number of steps that is computed there is fori_loop"
                if isinstance(length, TracerBase)
                else "write length=3",
            ) from None
    elif not leaves:
        raise ArgumentError(
            f"{origin.transform} was given nothing to go over: xs "
            f"{'is None' if xs is None else 'has no arrays'}",
            where=str(origin),
            fix="give arrays, or the number of steps with length="
            if origin.transform == "scan"
            else "give arrays",
        )
    sizes = []
    for position, leaf in enumerate(leaves):
        shape = shape_of(leaf)
        if not shape:
            raise ShapeError(
                f"{origin.transform} goes over axis 0, but got {describe(leaf)}, which has no axes",
                where=f"xs{_path(xs, position)}; {origin}",
                fix=f"write length={leaf} if that is the number of steps"
                if isinstance(leaf, int) and xs is leaf and origin.transform == "scan"
                else "make it an array, as np.array([...]) does of a list, or close over it: "
                "what is the same at all steps need not be in xs",
            )
        sizes.append(shape[0])
    if length is None:
        want = max(sizes, key=sizes.count)  # the first of the most frequent
    if any(size != want for size in sizes):
        lines = "\n".join(
            f"    xs{_path(xs, position)}: {describe(leaf)} has length {size}"
            + (" <- differs" if size != want else "")
            for position, (leaf, size) in enumerate(zip(leaves, sizes, strict=True))
        )
        expected = f"with length={want}" if length is not None else "about the number of steps"
        raise ShapeError(
            f"the xs of {origin.transform} disagree {expected}\n{lines}",
            where=str(origin),
            fix="give arrays of one length, counted along axis 0",
        )
    return want


def _path(xs: Any, position: int) -> str:
    return tree.keystr(tree.flatten_with_path(xs)[0][position][0])


def _positive(value: Any, what: str, usual: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ArgumentError(
            f"{what} must be a positive number, got {describe(value)}",
            where=user_line(),
            fix=f"write {what.split()[0]}={usual}",
        )
    return number


def _check_unroll(unroll: Any) -> None:
    if not isinstance(unroll, bool):
        _positive(unroll, "unroll of scan", 1)


def _any_row(rows: list[Any], treedef: Any) -> Any:
    """Return what stands for a row where there is none."""
    return tree.unflatten(treedef, [_zeros_of(row) for row in rows])


def _zeros_of(row: Any) -> Any:
    if isinstance(row, Boxed):
        content = row._unbox()
        return row._rebox(np.zeros(shape_of(content)[1:], dtype_of(content)))
    made = np.zeros(shape_of(row)[1:], dtype_of(row))
    return made if made.ndim else made[()]


def _none_of(y: Any) -> Any:
    """Return no rows of an output."""
    if isinstance(y, Boxed):
        content = y._unbox()
        return y._rebox(np.zeros((0, *shape_of(content)), dtype_of(content)))
    shape, dtype = aval_of(y)
    return y if shape is None else np.zeros((0, *shape), dtype)
