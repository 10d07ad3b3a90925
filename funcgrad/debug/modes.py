"""The modes: each a context manager, a decorator, and some a switch for the whole process.

The one idea: while no mode is on, nothing is different. A mode that watches operations has each
trace observed as it is opened (`funcgrad.debug.operations`); what is on is a context variable, so
that threads and tasks do not disturb each other.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from funcgrad.control.alike import CHECKING
from funcgrad.core.level import at_opening
from funcgrad.core.watching import STRICT, WATCHER, switch, watcher
from funcgrad.debug.operations import observe, observe_open, release
from funcgrad.debug.watch import Watch
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = ["check_branches", "check_leaks", "debug_infs", "debug_nans", "strict"]

_lock = threading.Lock()
_users = 0


def _install(change: int) -> None:
    """Have traces observed as long as anybody watches."""
    global _users
    with _lock:
        _users += change
        if _users and observe not in at_opening:
            at_opening.append(observe)
        elif not _users and observe in at_opening:
            at_opening.remove(observe)


class Mode:
    """Something that is on in a ``with`` block, or while a decorated function runs."""

    def __init__(self) -> None:
        self._open: list[Any] = []

    def begin(self) -> Any:
        """Switch it on, and return what `end` needs."""
        raise NotImplementedError

    def end(self, token: Any) -> None:
        """Switch it back."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self._open.append(self.begin())

    def __exit__(self, *error: Any) -> None:
        self.end(self._open.pop())

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Have it on while `fun` runs."""
        if not callable(fun):
            raise ArgumentError(
                f"a debug mode decorates a function, got {describe(fun)}",
                where=user_line(),
                fix="write `with funcgrad.debug.debug_nans():`, or @funcgrad.debug.debug_nans()",
            )

        @functools.wraps(fun)
        def with_mode(*args: Any, **kwargs: Any) -> Any:
            token = self.begin()
            try:
                return fun(*args, **kwargs)
            finally:
                self.end(token)

        return with_mode


class _Watching(Mode):
    """A mode of the watcher."""

    def __init__(self, which: str, on: bool | None):
        super().__init__()
        self.which = which
        self.on = on is not False
        self._before: Any = None
        self._switched = on is not None
        if on is not None:  # called as a switch: in effect at once
            self._before = switch(None)
            new = (self._before or Watch()).changed(which, on)
            switch(new)
            _install(bool(new) - bool(self._before))

    def _take_back(self) -> None:
        """Undo what was switched: it turned out to be meant for a block, or a function."""
        if self._switched:
            self._switched = False
            now = switch(self._before)
            _install(bool(self._before) - bool(now))

    def begin(self) -> Any:
        """Switch it on."""
        self._take_back()
        new = (watcher() or Watch()).changed(self.which, self.on)
        token = WATCHER.set(new)
        _install(1)
        return token, observe_open()

    def end(self, token: Any) -> None:
        """Switch it back."""
        token, opened = token
        release(opened)
        _install(-1)
        WATCHER.reset(token)

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Have it on while `fun` runs."""
        self._take_back()
        return super().__call__(fun)


class _Variable(Mode):
    """A mode that is a context variable."""

    def __init__(self, variable: ContextVar[bool]):
        super().__init__()
        self.variable = variable

    def begin(self) -> Any:
        """Switch it on."""
        return self.variable.set(True)

    def end(self, token: Any) -> None:
        """Switch it back."""
        self.variable.reset(token)


def debug_nans(on: bool | None = None) -> Any:
    """Stop at the operation that first makes a NaN, in the forward or the backward pass.

    Parameters
    ----------
    on : bool, optional
        Given as a statement of its own, ``debug_nans(True)`` switches the mode on for the whole
        process, and ``debug_nans(False)`` off. In a ``with`` statement, or as a decorator, either
        is for that block or function alone, and on is the default.

    Returns
    -------
    context manager
        Also a decorator.

    Raises
    ------
    NonFiniteError
        A FloatingPointError, raised by the transform that runs when there is a NaN: with the
        operation, its line, what its operands are at that place and where they come from, which
        example it is under `vmap`, and what to write instead. In the backward pass the operation
        is the one of the forward pass whose pullback made it.

    See Also
    --------
    debug_infs : the same for infinities, from which most NaN are made.
    strict : find also those that zero hides.

    Notes
    -----
    It is operations on traced values that are looked at, so the function must be run by a
    transform. A cotangent that is exactly zero times an infinite slope is zero in funcgrad, and no
    NaN, unless `strict` is on. A pullback of `vjp` is looked at with its lines if `vjp` was called
    while the mode was on.

    Meanwhile each operation takes some tens of microseconds more, and reverse mode keeps the
    operands of all, also in a `checkpoint`. Nothing costs anything when the mode is off.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def f(x):
    ...     return np.sum(np.sqrt(x) * np.array([0.0, np.inf]))
    >>> with fg.debug.debug_nans(), np.errstate(invalid="ignore"):
    ...     fg.grad(f)(np.array([1.0, 0.0]))
    Traceback (most recent call last):
    ...
    funcgrad.errors.NonFiniteError: multiply made a NaN
    ...
    """
    return _Watching("nans", on)


def debug_infs(on: bool | None = None) -> Any:
    """Stop at the operation that first makes an infinity, in the forward or the backward pass.

    Parameters
    ----------
    on : bool, optional
        As for `debug_nans`.

    Returns
    -------
    context manager
        Also a decorator.

    Raises
    ------
    NonFiniteError
        As for `debug_nans`. The two can be on together.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.debug.debug_infs()
    ... def slope(x):
    ...     return fg.grad(np.sqrt)(x)
    >>> slope(0.0)
    Traceback (most recent call last):
    ...
    funcgrad.errors.NonFiniteError: the pullback of sqrt made an infinity
    ...
    """
    return _Watching("infs", on)


def check_leaks() -> Any:
    """Warn of traced values that are stored where they outlive their transform.

    With such a value nothing can be computed any more. The warning comes when the transform ends,
    and says what holds the value, and which line made it. `debug.value` reads it.

    Returns
    -------
    context manager
        Also a decorator.

    Warns
    -----
    TracerLeakWarning
        For each value; make it an error with ``warnings.simplefilter("error",
        fg.errors.TracerLeakWarning)``.

    Notes
    -----
    At the end of each transform Python's garbage collector is asked what refers to the values that
    are still there, which takes some hundredths of a second if there are any.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> history = []
    >>> def loss(x):
    ...     y = np.sin(x)
    ...     history.append(y)
    ...     return y**2
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     with fg.debug.check_leaks():
    ...         _ = fg.grad(loss)(1.0)
    >>> "stored in list in global `history`" in str(caught[0].message)
    True
    """
    return _Watching("leaks", None)


def strict() -> Any:
    """Let zero times infinity be NaN in derivatives, as in IEEE arithmetic.

    funcgrad decides that a tangent or cotangent of exactly zero stays zero where a derivative is
    infinite or undefined, so that a branch that `numpy.where` did not take does not spoil the
    gradient. In this mode it does not: rules multiply, and what is not a number stays so, as in
    JAX. Together with `debug_nans` it finds where a function relies on the convention.

    Returns
    -------
    context manager
        Also a decorator. It counts where derivatives are computed: for `vjp` and `linearize` also
        where the function that they return is called.

    Notes
    -----
    Only products are concerned. What a derivative is at a kink, or where it exists though its
    formula does not (the norm of zeros, ``x**0``, the product of numbers of which one is zero), is
    the same in both modes, and so is a cotangent that is structurally zero: that of what the result
    does not depend on at all.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def f(x):
    ...     return np.where(x > 0, np.log(np.abs(x)), 0.0)
    >>> with np.errstate(divide="ignore"):
    ...     fg.grad(f)(0.0)
    0.0
    >>> with np.errstate(divide="ignore"), fg.debug.strict():
    ...     fg.grad(f)(0.0)
    nan
    """
    return _Variable(STRICT)


def check_branches() -> Any:
    """Run also the branches of `cond` and `switch` that are not chosen, and compare them.

    All branches must return the same structure and shapes. Without a batched predicate only one of
    them is run, so a difference shows no sooner than another is chosen.

    Returns
    -------
    context manager
        Also a decorator.

    Raises
    ------
    TreeMismatchError, ShapeError
        From `cond` and `switch`: two branches return different structures or shapes.

    Notes
    -----
    What a branch that is not chosen does besides computing, it does; what it raises is ignored. In
    it, other branches are not compared.

    Examples
    --------
    >>> import funcgrad as fg
    >>> with fg.debug.check_branches():
    ...     fg.cond(True, lambda x: x, lambda x: (x, x), 1.0)
    Traceback (most recent call last):
    ...
    funcgrad.errors.TreeMismatchError: the branches of cond must return the same structure
    ...
    """
    return _Variable(CHECKING)
