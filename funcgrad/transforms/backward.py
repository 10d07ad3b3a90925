"""Reverse mode, backward: walk a tape (`funcgrad.transforms.tape`) from its end.

No sort, no recursion, each node once; nodes, with the residuals in them, are let go when they have
been used, a segment of the tape at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from funcgrad.core.elementwise import passes
from funcgrad.core.level import TracerBase, is_careful
from funcgrad.core.primitive import Primitive
from funcgrad.core.watching import watcher
from funcgrad.core.zero import (
    are_finite,
    as_numpy,
    fit,
    is_finite,
    is_settled,
    repaired,
    zero_wins_among,
)
from funcgrad.errors import ArgumentError, ShapeError, describe, location, user_line
from funcgrad.transforms.tape import Product

__all__ = ["backward", "pulled_with_care"]

_ndarray = np.ndarray
# Types of cotangents that can be added to a part of an array in place.
_ADDABLE = frozenset({np.ndarray, np.float64, np.float32, np.complex128, np.complex64, np.float16})
# The fewest nodes that are pulled through before anybody looks whether all is finite.
_SEGMENT = 64


# A rule may divide by zero where its result is then not used; the user did not write that. As a
# decorator the context costs half as much.
@np.errstate(all="ignore")
def backward(tape: list[Any], bars: list[Any], wanted: int, *, consume: bool) -> list[Any]:
    """Pull the cotangents `bars` back through `tape`.

    Parameters
    ----------
    tape : list
        The nodes, in creation order.
    bars : list
        The cotangent of each variable, None where there is none; used up.
    wanted : int
        Return the cotangents of variables 0 to `wanted` - 1.
    consume : bool
        Let go of nodes when they have been used, so that residuals are freed on the way.

    Returns
    -------
    list
        The cotangents, None where one is structurally zero.

    Notes
    -----
    A zero may have to win over an infinite derivative (`funcgrad.core.zero`), but nearly always all
    is finite. To look at every product costs as much as an elementwise operation. So the tape is
    pulled through a segment at a time, looking at what comes out of it only: what is not finite
    stays so in sums and products, until it is selected away, and then it does not matter. Where
    something is not finite, the segment is done again with care. Rules that a user wrote may do
    anything with what is not finite, and must not be called twice: with them on it a tape is pulled
    through with care from the start.
    """
    stop = len(tape)
    step = stop >> 3 if stop > 8 * _SEGMENT else _SEGMENT
    whole = tape
    careful = getattr(tape, "careful", False) or is_careful()
    while stop:
        start = stop - step if stop > step else 0
        nodes = tape[start:stop] if start else tape
        if careful or not _is_pulled(nodes, bars, wanted if start == 0 else len(bars)):
            watch = watcher()
            if watch is None:
                _pull_with_care(nodes, bars)
            else:
                watch.pull(nodes, bars, getattr(whole, "made", None) or {})
        del nodes
        stop = start
        if consume:
            del tape[start:]
        elif stop:
            tape = tape[:start]
    return bars[:wanted]


def _is_pulled(nodes: list[Any], bars: list[Any], count: int) -> bool:
    """Try to pull cotangents through nodes; leave them as they were if one comes out not finite.

    Of the variables that are left then, the first `count` may have a cotangent.
    """
    before = bars.copy()
    try:
        _pull(nodes, bars)
        traced = []
        for index in range(count):
            bar = bars[index]
            if bar is None or bar is before[index]:
                continue
            if isinstance(bar, TracerBase):
                traced.append(bar)  # a recorded one is asked about once for the whole segment
            elif not is_finite(bar):
                break
        else:
            if not traced or are_finite(traced):
                return True
    except Exception:
        # 1.0 / 0.0 of Python numbers, or a function that refuses what is not finite. What is wrong
        # for another reason is raised again, with care.
        pass
    bars[:] = before
    return False


def _pull(nodes: list[Any], bars: list[Any]) -> None:
    """Pull cotangents through nodes, the last first, without a look at what comes out."""
    # Variables of which the cotangent is an array made here. It stays one when others are added.
    own: set[int] = set()
    for node in reversed(nodes):
        size = len(node)
        if size == 4:  # one edge: nearly half of all nodes
            k, pull, i, kept = node
            out_bar = bars[k]
            if out_bar is None:
                continue
            bars[k] = None
            bar = out_bar if pull is passes else pull(out_bar, kept)
            before = bars[i]
            bars[i] = bar if before is None else before + bar
        elif size == 7:
            k, pull, i, kept, pull2, j, kept2 = node
            out_bar = bars[k]
            if out_bar is None:
                continue
            bars[k] = None
            bar = pull(out_bar, kept)
            before = bars[i]
            bars[i] = bar if before is None else before + bar
            bar = pull2(out_bar, kept2)
            before = bars[j]
            bars[j] = bar if before is None else before + bar
        elif size == 6:
            k, scatter, i, index, shape, dtype = node
            out_bar = bars[k]
            if out_bar is None:
                continue
            bars[k] = None
            before = bars[i]
            # Add to the whole in place, if it is ours alone: a loop over the elements of an array
            # takes linear time.
            plain = type(out_bar) in _ADDABLE and out_bar.dtype is dtype
            if plain and before is None:
                bars[i] = before = np.zeros(shape, dtype)
                before[index] = out_bar
                own.add(i)
            elif plain and i in own:
                before[index] += out_bar
            else:
                bar = fit(scatter(out_bar, shape, index), shape, dtype)
                bars[i] = bar if before is None else before + bar
        else:
            k, edges = node[0], node[1]
            if type(k) is tuple:
                out_bar = tuple([bars[index] for index in k])
                if all(bar is None for bar in out_bar):
                    continue
                for index in k:
                    bars[index] = None
            else:
                out_bar = bars[k]
                if out_bar is None:
                    continue
                bars[k] = None
            for pull, i, shape, dtype in edges:
                bar = pull(out_bar)
                if bar is not None:
                    if type(bar) is not _ndarray or bar.shape != shape or bar.dtype is not dtype:
                        bar = fit(bar, shape, dtype)
                    before = bars[i]
                    bars[i] = bar if before is None else before + bar


def _pull_with_care(nodes: list[Any], bars: list[Any]) -> None:
    """Do what `_pull` does, with zero winning at each node."""
    for node in reversed(nodes):
        k = node[0]
        several = type(k) is tuple
        out_bar = tuple([bars[index] for index in k]) if several else bars[k]
        if out_bar is None or (several and all(bar is None for bar in out_bar)):
            continue
        for index in k if several else (k,):
            bars[index] = None
        for i, bar in pulled_with_care(node, out_bar):
            if bar is not None:
                before = bars[i]
                bars[i] = bar if before is None else before + bar


def pulled_with_care(node: Any, out_bar: Any) -> Iterator[tuple[int, Any]]:
    """Yield the variables that are arguments of a node, and a cotangent for each."""
    size = len(node)
    if size == 6:
        _, scatter, i, index, shape, dtype = node
        yield i, fit(scatter(out_bar, shape, index), shape, dtype)
    elif size in (4, 7):
        for place in range(1, size, 3):
            pull, i, kept = node[place : place + 3]
            yield i, _product_with_care(pull, out_bar, kept)
    else:
        for pull, i, shape, dtype in node[1]:
            if type(pull) is Product:
                bar = _product_with_care(pull.product, out_bar, pull.kept)
            elif callable(pull):
                bar = pull(out_bar)
            else:
                raise ArgumentError(
                    f"the vjp of a primitive returned {describe(pull)}, expected a pullback",
                    where=user_line(),
                    fix="return a function of the cotangent out_bar for each array argument, or "
                    "None",
                )
            if bar is not None and size == 3:
                bar = _pulled_among(bar, out_bar, i, shape, dtype, *node[2])
            yield i, None if bar is None else _fitted(bar, shape, dtype, pull)


def _fitted(bar: Any, shape: tuple[int, ...], dtype: Any, pull: Any) -> Any:
    """Bring a cotangent to the shape and dtype of its primal; say whose it is if that fails."""
    try:
        return fit(bar, shape, dtype)
    except ShapeError as error:
        code = getattr(pull, "__code__", None)
        if code is None:
            raise
        raise ShapeError(
            error.what.replace("a pullback", f"the pullback {pull.__qualname__}", 1),
            where=location(code, code.co_firstlineno),
            fix=error.fix,
        ) from None


def _product_with_care(product: Callable[..., Any], out_bar: Any, kept: Any) -> Any:
    """Return the product of a cotangent with a residual, in which zero wins."""
    try:
        bar = product(out_bar, kept)
    except ArithmeticError:
        bar = as_numpy(product, out_bar, kept)
    return repaired(bar, product, out_bar, kept)


def _pulled_among(
    bar: Any,
    out_bar: Any,
    i: int,
    shape: tuple[int, ...],
    dtype: Any,
    primitive: Primitive,
    params: dict[str, Any],
    values: list[Any],
    parents: list[int],
) -> Any:
    """Return `bar`, pulled back to argument `i` of a sum of products, with zero winning in each."""
    index = parents.index(i)
    others = [*values[:index], *values[index + 1 :], out_bar]
    if is_settled(bar, others) or parents.count(i) > 1:  # of x @ x: which of the two is not known
        return bar
    own = np.broadcast_to(np.zeros((), dtype), shape)  # only its shape and dtype count

    def product(*args: Any) -> Any:
        primals = [*args[:index], own, *args[index:-1]]
        pullbacks: Any = primitive.vjp(primals, None, **params)  # type: ignore[misc]
        return pullbacks[index](args[-1])

    return zero_wins_among(bar, product, others)
