"""Loops that end when a condition says so: `while_loop`, and `fori_loop` over a range.

The one idea: as long as the condition is the same for all examples, it is a Python loop. From the
step on at which it differs from row to row under `vmap`, the loop is run on the rows that are not
done: what the others carry is put aside, and all are put together when the last is done.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.control.branches import truth
from funcgrad.control.carry import Carry, explained
from funcgrad.control.closures import rebound
from funcgrad.control.rows import Piece, Rows, RowsTrace, adopt, merge, split
from funcgrad.control.segments import Segments
from funcgrad.control.structured import FEW, Leaves, looped, recorder, scanned
from funcgrad.core.level import (
    Origin,
    TracerBase,
    batches_of,
    is_batched,
    is_differentiated,
    looked_at,
)
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, describe
from funcgrad.staging.bodies import Unstructured, is_example
from funcgrad.transforms.flat import call_origin, check_callable

__all__ = ["fori_loop", "while_loop"]

_range = range

# On what a program that records a loop is specialised.
_GO_ON = "which examples go on in a loop"


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    checkpoint_every: int | None = None,
) -> Any:
    """Repeat a step while a condition holds.

    The same as this::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    Parameters
    ----------
    cond_fun : callable
        Takes the carry, and returns a truth value, of shape ``()``.
    body_fun : callable
        Takes the carry, and returns the next one, of the same structure, shapes and dtypes.
    init_val : pytree
        The carry to start from.
    checkpoint_every : int, optional
        Keep the carry of every so many steps only, and compute what the steps in between need
        again in the backward pass. It bounds the memory that reverse mode takes; see `scan`.

    Returns
    -------
    pytree
        The first carry for which the condition does not hold.

    Raises
    ------
    TreeMismatchError, ShapeError, DtypeError
        A step returned a carry unlike the one that it was given.
    ArgumentError
        `cond_fun` did not return a truth value.
    MutationError
        `body_fun` wrote into the carry that it was given.

    Notes
    -----
    Reverse mode works: how often the loop runs is known when its derivative is asked for. Memory is
    in proportion to the number of steps.

    Under `vmap` each example runs as long as its own condition holds, and then keeps its carry. The
    steps are computed for the remaining examples only, so that one that would never end, or
    would divide by zero, after it is done does neither.

    A Python number or an integer array in `init_val` takes the dtype that the first step returns.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.control import while_loop
    >>> def root(a):  # by Newton's iteration
    ...     return while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)
    >>> round(float(root(9.0)), 6)
    3.0
    >>> round(float(fg.grad(root)(9.0)), 6)  # 1 / (2 * 3)
    0.166667
    >>> fg.vmap(root)(np.array([1.0, 4.0, 9.0])).round(6)
    array([1., 2., 3.])
    """
    check_callable("while_loop", cond_fun)
    check_callable("while_loop", body_fun)
    origin = call_origin("while_loop", body_fun)
    return _run(_While(origin, cond_fun, body_fun, init_val, Segments(checkpoint_every, origin)))


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    checkpoint_every: int | None = None,
) -> Any:
    """Repeat a step for each integer of a range.

    The same as this::

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Parameters
    ----------
    lower, upper : int
        The first integer, and the one after the last.
    body_fun : callable
        Takes the integer and the carry, and returns the next carry, of the same structure, shapes
        and dtypes.
    init_val : pytree
        The carry to start from.
    unroll : int or bool, optional
        Ignored; for programs that were written for JAX.
    checkpoint_every : int, optional
        Keep the carry of every so many steps only, and compute what the steps in between need
        again in the backward pass. It bounds the memory that reverse mode takes; see `scan`.

    Returns
    -------
    pytree
        The carry after the last step.

    Raises
    ------
    TreeMismatchError, ShapeError, DtypeError
        A step returned a carry unlike the one that it was given.
    ArgumentError
        `lower` or `upper` is not an integer.
    MutationError
        `body_fun` wrote into the carry that it was given.

    Notes
    -----
    Under `vmap` the bounds may differ from example to example. A Python number or an integer array
    in `init_val` takes the dtype that the first step returns.

    Examples
    --------
    >>> import funcgrad as fg
    >>> from funcgrad.control import fori_loop
    >>> fori_loop(1, 5, lambda i, product: product * i, 1)
    24
    >>> float(fg.grad(lambda x: fori_loop(0, 3, lambda i, y: y * x, 1.0))(2.0))  # of x**3
    12.0
    """
    check_callable("fori_loop", body_fun)
    origin = call_origin("fori_loop", body_fun)
    lower, upper = adopt([lower, upper])
    start = _bound(lower, "lower", origin)
    stop = _bound(upper, "upper", origin)
    segments = Segments(checkpoint_every, origin)
    return _run(_For(origin, body_fun, init_val, segments, start, stop))


def _bound(value: Any, name: str, origin: Origin) -> Any:
    """Return a bound as a Python integer, unless it differs from example to example."""
    if shape_of(value) == ():
        if is_batched(value):
            if dtype_of(value).kind in "iub":
                return value
        elif not isinstance(value, bool):
            try:
                return operator.index(looked_at(value, f"the bound {name!r} of a loop"))
            except TypeError:
                pass
    raise ArgumentError(
        f"{name} of fori_loop must be an integer, got {describe(value)}",
        where=str(origin),
        fix="write int(funcgrad.stop_gradient(n)): the number of steps has no derivative"
        if is_differentiated(value) and not is_batched(value)
        else "write int(n), or n.astype(int) under vmap",
    )


class _While:
    """A loop with a condition; its state is the leaves of the carry."""

    def __init__(self, origin: Origin, cond_fun: Any, body_fun: Any, init: Any, segments: Segments):
        self.carry = Carry(origin, body_fun, init)
        # What is called: on some of the rows, copies that refer to those rows only.
        self.functions = (cond_fun, body_fun)
        self.cond_fun = cond_fun
        self.segments = segments
        self.steps = 0
        self.state = adopt(self.carry.leaves)

    def test(self, state: list[Any]) -> Any:
        """Tell whether to go on: a bool, or a batched value."""
        try:
            said = self.functions[0](tree.unflatten(self.carry.treedef, state))
        except Exception as error:
            raise self._explained(error, self.cond_fun, ("val",))  # noqa: B904 - it is the same
        return truth(said, "cond_fun of while_loop must return", self.carry.origin, self.cond_fun)

    def advance(self, state: list[Any]) -> list[Any]:
        """Make a step."""
        self.segments.step(state)
        try:
            made = self.functions[1](self.carry.present(state))
        except Exception as error:
            raise self._explained(error, self.carry.fun, ("val",))  # noqa: B904 - it is the same
        return self._accept(made)

    def rest(self, state: list[Any]) -> list[Any] | None:
        """Return what the steps from here on give as one equation; None if this one is another."""
        cond_fun, body_fun = self.functions

        def goes_on(value: Any) -> Any:
            said = cond_fun(value)
            if said is True or said is False:
                raise Unstructured
            return said

        return looped(goes_on, body_fun, Leaves(state, self.carry.treedef))

    def _accept(self, made: Any) -> list[Any]:
        leaves = self.carry.accept(made, self.steps)
        self.steps += 1
        return leaves

    def _explained(self, error: Exception, fun: Any, parameters: tuple[str, ...]) -> Exception:
        return explained(error, self.carry.origin, fun, parameters, self.steps)

    def finish(self, state: list[Any]) -> Any:
        """Return the carry to the caller."""
        return self.carry.finish(state)

    def place(self, position: int) -> str:
        """Say where a leaf is."""
        return f"the carry of {self.carry.origin}"


class _For(_While):
    """A loop over a range; its state is the integer and the leaves of the carry."""

    def __init__(
        self, origin: Origin, body_fun: Any, init: Any, segments: Segments, start: Any, stop: Any
    ):
        super().__init__(origin, None, body_fun, init, segments)
        self.stop = stop
        self.state = [start, *self.state]

    def test(self, state: list[Any]) -> Any:
        (said,) = adopt([state[0] < self.stop])
        return said if is_batched(said) else bool(said)

    def advance(self, state: list[Any]) -> list[Any]:
        self.segments.step(state)
        i, *leaves = state
        try:
            made = self.functions[1](i, self.carry.present(leaves))
        except Exception as error:
            raise self._explained(error, self.carry.fun, ("i", "val"))  # noqa: B904 - as above
        return [i + 1, *self._accept(made)]

    def rest(self, state: list[Any]) -> list[Any] | None:
        i, *leaves = state
        if not (isinstance(i, int) and isinstance(self.stop, int) and self.stop - i >= FEW):
            raise Unstructured
        body_fun = self.functions[1]
        places = range(i, self.stop)
        nothing = Leaves([], tree.structure(None))
        made = scanned(
            "fori_loop",
            lambda value, i, x: (body_fun(i, value), None),
            Leaves(leaves, self.carry.treedef),
            nothing,
            places,
            start=0,
        )
        return None if made is None else [self.stop, *made[0]]

    def finish(self, state: list[Any]) -> Any:
        return self.carry.finish(state[1:])


def _run(loop: _While) -> Any:
    with loop.segments:
        state = _repeat(loop, loop.state)
    return loop.finish(state)


# How many steps are made by themselves at most before the others become one equation.
_FIRST = 3
# How many are unrolled at most for an example.
_MANY = 1000


def _repeat(loop: _While, state: list[Any]) -> list[Any]:
    """Run a loop to its end, as long as possible for all examples together."""
    tries = _FIRST if loop.segments.every is None and recorder() is not None else 0
    while True:
        if tries:
            # A program has one equation for all the steps, or for all but the first ones.
            tries -= 1
            try:
                rest = loop.rest(state)
            except Unstructured:
                tries = 0
            else:
                if rest is not None:
                    return rest
        if loop.steps > _MANY and is_example():
            raise Unstructured  # it need not end: it may be in a branch that is not taken
        go_on = loop.test(state)
        if go_on is False:
            return state
        # As long as all examples go on, they can have sums over all of them (`psum`).
        if go_on is not True and not _all_go_on(go_on):
            return _repeat_by_rows(loop, state, go_on)
        state = loop.advance(state)


def _all_go_on(said: Any) -> bool:
    _, plain = split(said, _GO_ON)
    return plain.size > 0 and bool(plain.all())


def _repeat_by_rows(loop: _While, state: list[Any], go_on: Any) -> list[Any]:
    """Run a loop to its end, on those rows for which it has not ended.

    `go_on` is what the condition said of `state`, and batched.
    """
    rows, going = split(go_on, _GO_ON)
    functions = loop.functions
    pieces: list[Piece] = []
    active = np.arange(rows.size)
    current: list[tuple[bool, Any]] = []
    for leaf in state:
        taken = rows.take(leaf)
        current.append((False, leaf) if taken is None else (True, taken))
    while True:
        if not active.size or not going.all():
            pieces.append((active[~going], _select(current, ~going)))
            active, current = active[going], _select(current, going)
            if not active.size:
                return merge(rows, pieces, loop.place)
        with RowsTrace(Rows(rows.bases, active)) as trace:
            state = [trace.put(leaf) if has_rows else leaf for has_rows, leaf in current]
            loop.functions = tuple(rebound(fun, trace.adopt) for fun in functions)
            going = True
            while going is True:
                state = adopt(loop.advance(state))
                going = _going(loop.test(state), trace)
                if isinstance(going, TracerBase):  # it differs in another vmap too
                    state, going = _repeat_by_rows(loop, state, going), False
            current = [trace.draw(leaf) for leaf in state]
        loop.functions = functions
        if going is False:
            going = np.zeros(active.size, bool)


def _going(said: Any, trace: RowsTrace) -> Any:
    """Return a bool for all rows of `trace`, or an array of one for each, or `said` if neither."""
    if not isinstance(said, TracerBase):
        return said
    if batches_of(said) != (trace,):
        return said
    _, plain = split(said, _GO_ON)
    return True if plain.all() else plain


def _select(current: list[tuple[bool, Any]], which: Any) -> list[tuple[bool, Any]]:
    return [(has_rows, leaf[which] if has_rows else leaf) for has_rows, leaf in current]
