"""Prefix sums of any associative operation: `associative_scan`.

The one idea, which is Blelloch's: combine neighbours, scan the half as many results, and fill in
what lies between. So the user's function is called some 2 log2(n) times, on whole arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad import tree
from funcgrad.control.carry import place_of
from funcgrad.control.rows import adopt
from funcgrad.core.level import Origin
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe
from funcgrad.transforms.flat import call_origin, check_callable

__all__ = ["associative_scan"]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine the elements up to each one, by an associative operation.

    Parameters
    ----------
    fn : callable
        Takes two pytrees like `elems`, of arrays with some of the elements along `axis`, and
        combines the elements of the one with those of the other. It must be associative:
        ``fn(a, fn(b, c))`` equals ``fn(fn(a, b), c)``, but for rounding.
    elems : pytree of arrays
        The elements, along `axis`, of which all arrays must have the same number.
    reverse : bool
        Combine the elements from each one to the last, the last one first.
    axis : int
        The axis of the elements.

    Returns
    -------
    pytree of arrays
        Like `elems`. Element k is elements 0 to k combined.

    Raises
    ------
    ShapeError
        The arrays have different lengths, no such axis, or `fn` changed their shape.
    TreeMismatchError
        `fn` returned another structure than that of `elems`.
    DtypeError
        `fn` changed a dtype, other than from integers to floats.
    ArgumentError
        There are no arrays, or `axis` is not an integer.

    Notes
    -----
    `fn` is called about ``2 * log2(n)`` times. For a sum or product, `numpy.cumsum` and
    `numpy.cumprod` are faster.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.control import associative_scan
    >>> associative_scan(np.maximum, np.array([1.0, 3.0, 2.0, 5.0, 4.0]))
    array([1., 3., 3., 5., 5.])

    A recurrence ``y[k] = a[k] * y[k-1] + b[k]``, as a product of affine maps:

    >>> def compose(f, g):
    ...     return f[0] * g[0], g[0] * f[1] + g[1]
    >>> a, b = np.array([2.0, 3.0, 0.5]), np.array([1.0, 1.0, 1.0])
    >>> associative_scan(compose, (a, b))[1]
    array([1., 4., 3.])
    """
    check_callable("associative_scan", fn)
    origin = call_origin("associative_scan", fn)
    leaves, treedef = tree.flatten(elems)
    leaves = adopt(leaves)
    axes, size = _axes(leaves, elems, axis, origin)
    fronted = [
        np.moveaxis(leaf, number, 0) if number else leaf
        for leaf, number in zip(leaves, axes, strict=True)
    ]
    if reverse:
        fronted = [leaf[::-1] for leaf in fronted]
    made = _Combine(fn, treedef, axes, origin).scan(fronted, size)
    if reverse:
        made = [leaf[::-1] for leaf in made]
    return tree.unflatten(
        treedef,
        [
            np.moveaxis(leaf, 0, number) if number else leaf
            for leaf, number in zip(made, axes, strict=True)
        ],
    )


class _Combine:
    """The user's function, on lists of arrays that have the elements along their first axis."""

    def __init__(self, fn: Any, treedef: Any, axes: list[int], origin: Origin):
        self.fn = fn
        self.treedef = treedef
        self.axes = axes
        self.origin = origin

    def __call__(self, a: list[Any], b: list[Any]) -> list[Any]:
        out = self.fn(self._outside(a), self._outside(b))
        leaves = tree.check_match(
            self.treedef,
            out,
            what="the function of associative_scan must return the structure it is given",
            where=f"{self.origin}: what {place_of(self.fn)} returned,",
            against="its arguments",
        )
        made = []
        for position, (leaf, number, old) in enumerate(zip(leaves, self.axes, a, strict=True)):
            new = np.moveaxis(leaf, number, 0) if number and len(shape_of(leaf)) > number else leaf
            if shape_of(new) != shape_of(old):
                raise ShapeError(
                    "the function of associative_scan must return the shapes it is given: "
                    f"expected {describe(_inside(old, number))}, found {describe(leaf)}",
                    where=self._place(out, position),
                    fix="the arrays hold many elements along the axis: write it for all at once, "
                    "with vmap if need be",
                )
            had, has = dtype_of(old), dtype_of(new)
            if has != had and (had.kind not in "biu" or np.result_type(had, has) != has):
                raise DtypeError(
                    "the function of associative_scan must return the dtypes it is given: "
                    f"expected {describe(_inside(old, number))}, found {describe(leaf)}",
                    where=self._place(out, position),
                    fix=f"return it with .astype({str(had)!r}), or give elements of {has}",
                )
            made.append(new)
        return made

    def _place(self, out: Any, position: int) -> str:
        path = _path(out, position)
        return f"what {place_of(self.fn)} returned{' at ' + path if path else ''}; {self.origin}"

    def _outside(self, leaves: list[Any]) -> Any:
        moved = [_inside(leaf, number) for leaf, number in zip(leaves, self.axes, strict=True)]
        return tree.unflatten(self.treedef, moved)

    def scan(self, elems: list[Any], size: int) -> list[Any]:
        """Return all prefixes."""
        if size < 2:
            return elems
        pairs = self([leaf[0 : size - 1 : 2] for leaf in elems], [leaf[1::2] for leaf in elems])
        odd = self.scan(pairs, size // 2)  # those of 2, 4, ... elements
        even = [leaf[:1] for leaf in elems]
        between = (size - 1) // 2
        if between:
            more = self([leaf[:between] for leaf in odd], [leaf[2::2] for leaf in elems])
            even = [np.concatenate(parts) for parts in zip(even, more, strict=True)]
        # Of rows 0, 2, 4, ..., 1, 3, ... take them in order.
        order = np.empty(size, int)
        order[0::2] = np.arange(between + 1)
        order[1::2] = np.arange(between + 1, size)
        return [np.concatenate(parts)[order] for parts in zip(even, odd, strict=True)]


def _inside(leaf: Any, axis: int) -> Any:
    """Return an array as the user has it, with the elements along `axis`."""
    return np.moveaxis(leaf, 0, axis) if axis else leaf


def _axes(leaves: list[Any], elems: Any, axis: int, origin: Origin) -> tuple[list[int], int]:
    """Return the axis of the elements in each array, and their number."""
    if not leaves:
        raise ArgumentError(
            "associative_scan was given no arrays",
            where=str(origin),
            fix="give an array of the elements",
        )
    try:
        axis = operator.index(axis)
    except TypeError:
        raise ArgumentError(
            f"axis of associative_scan must be an integer, got {describe(axis)}",
            where=str(origin),
            fix="write axis=0",
        ) from None
    axes, sizes = [], []
    for position, leaf in enumerate(leaves):
        ndim = len(shape_of(leaf))
        if not -ndim <= axis < ndim:
            raise ShapeError(
                f"associative_scan was asked for axis {axis} of {describe(leaf)}, which has no "
                "such axis",
                where=f"elems{_path(elems, position)}; {origin}",
                fix="give arrays with the elements along that axis",
            )
        axes.append(normalize_axis_index(axis, ndim))
        sizes.append(shape_of(leaf)[axes[-1]])
    if len(set(sizes)) > 1:
        rows = "\n".join(
            f"    elems{_path(elems, position)}: {describe(leaf)} has {size}"
            for position, (leaf, size) in enumerate(zip(leaves, sizes, strict=True))
        )
        raise ShapeError(
            f"the arrays of associative_scan have different numbers of elements\n{rows}",
            where=str(origin),
            fix="give arrays of one length along the axis",
        )
    return axes, sizes[0]


def _path(elems: Any, position: int) -> str:
    return tree.keystr(tree.flatten_with_path(elems)[0][position][0])
