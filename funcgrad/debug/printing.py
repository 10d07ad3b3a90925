"""`print`, `callback` and `breakpoint`: plain values out of a function that is being transformed.

The one idea: transforms run the function as it stands, once, so what it does besides computing is
done when Python comes to it. Only the values must be made plain: the primal under `grad` and `jvp`,
and under `vmap` one example after the other.
"""

from __future__ import annotations

import os
import pdb
import string
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.control.rows import adopt
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import TracerBase, batches_of, concrete
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = ["breakpoint", "callback", "print", "value"]


def value(x: Any) -> Any:
    """Return the plain values of a pytree that may be traced.

    Also of values whose transform has ended, with which nothing can be computed any more.

    Parameters
    ----------
    x : pytree
        Arrays and numbers, traced or not; leaves of any other kind pass through untouched.

    Returns
    -------
    pytree
        Of the same structure: copies of the arrays. Under `vmap` those of all examples, along the
        first axis.

    See Also
    --------
    funcgrad.stop_gradient : what to compute with, in the place of this.

    Examples
    --------
    >>> import funcgrad as fg
    >>> seen = []
    >>> def f(x):
    ...     seen.append(x)
    ...     return x**2
    >>> fg.grad(f)(3.0)
    6.0
    >>> fg.debug.value(seen)
    [3.0]
    """
    return tree.map(_plain, x)


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, Boxed):
        return leaf._rebox(_plain(leaf._unbox()))
    if not isinstance(leaf, TracerBase):
        return leaf
    found = concrete(leaf)
    return found.copy() if isinstance(found, np.ndarray) else found


def print(
    fmt: str, *args: Any, ordered: bool = False, batched: bool = False, **kwargs: Any
) -> None:
    """Print a line with plain values, whatever is traced.

    Parameters
    ----------
    fmt : str
        A format string, as for `str.format`. A format such as ``{:.3f}`` of an array is that of
        each element.
    *args, **kwargs : pytree
        What to put into it, traced or not.
    ordered : bool
        For JAX's signature: lines always come in the order of the calls.
    batched : bool
        Under `vmap`, print one line with the values of all examples, along the first axis, in place
        of one line for each example.

    Raises
    ------
    ArgumentError
        `fmt` does not fit the arguments, or leaves some out.

    Notes
    -----
    The line is printed when Python comes to the call: once under `grad` and `jvp`, with the primal;
    in a loop at each step; in a branch for the examples that take it; in a rule for the backward
    pass when that is run. What no example changes is printed once under `vmap`. A function under
    `checkpoint` prints once too: it is the operations that are repeated, not the Python code.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def f(x):
    ...     fg.debug.print("x = {x:.2f}, squared {}", x**2, x=x)
    ...     return x**2
    >>> fg.grad(f)(3.0)
    x = 3.00, squared 9.0
    6.0
    >>> _ = fg.vmap(f)(np.array([1.0, 2.0]))
    x = 1.00, squared 1.0
    x = 2.00, squared 4.0
    """
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print takes a format string first, got {describe(fmt)}",
            where=user_line(),
            fix='write debug.print("x = {}", x)',
        )
    for own_args, own_kwargs in _calls(args, kwargs, batched):
        try:
            line = _FORMATTER.vformat(fmt, own_args, own_kwargs)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            reason = f"no argument {error}" if isinstance(error, KeyError) else str(error)
            raise ArgumentError(
                f"debug.print cannot put its arguments into {fmt!r}: {reason}",
                where=user_line(),
                fix="give one {} for each positional argument and one {name} for each by keyword; "
                "braces themselves are written {{ and }}",
            ) from None
        sys.stdout.write(line + "\n")


class _Formatter(string.Formatter):
    """As `str.format`, but all arguments must be used, and arrays are formatted by element."""

    def check_unused_args(self, used: Any, args: Any, kwargs: Any) -> None:
        left = [str(i) for i in range(len(args)) if i not in used]
        left += [repr(name) for name in kwargs if name not in used]
        if left:
            raise ValueError(f"it leaves out argument {', '.join(left)}")

    def format_field(self, value: Any, format_spec: str) -> Any:
        if not format_spec or not isinstance(value, np.ndarray) or not value.ndim:
            return format(value, format_spec)

        def formatted(number: Any) -> str:
            return format(number, format_spec)

        return np.array2string(value, formatter={"all": formatted})


_FORMATTER = _Formatter()


def callback(
    fun: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    batched: bool = False,
    **kwargs: Any,
) -> None:
    """Call a function with plain values, whatever is traced, for what it does and not returns.

    Parameters
    ----------
    fun : callable
        What to call. It gets copies, to keep or to change; what it returns is dropped.
    *args, **kwargs : pytree
        Its arguments, traced or not.
    ordered : bool
        For JAX's signature: calls always come in order.
    batched : bool
        Under `vmap`, call it once with the values of all examples, along the first axis, in place
        of once for each example.

    See Also
    --------
    funcgrad.pure_callback : for the result of a function that cannot be traced.

    Examples
    --------
    >>> import funcgrad as fg
    >>> steps = []
    >>> def f(x):
    ...     for _ in range(3):
    ...         x = x / 2
    ...         fg.debug.callback(steps.append, x)
    ...     return x
    >>> fg.grad(f)(8.0), steps
    (0.125, [4.0, 2.0, 1.0])
    """
    if not callable(fun):
        raise ArgumentError(
            f"debug.callback takes a function, got {describe(fun)}",
            where=user_line(),
            fix="write debug.callback(f, x)",
        )
    for own_args, own_kwargs in _calls(args, kwargs, batched):
        fun(*own_args, **own_kwargs)


def _calls(args: Any, kwargs: Any, batched: bool) -> Iterator[tuple[Any, Any]]:
    """Yield the plain arguments of each call: one, or one for each example."""
    leaves, treedef = tree.flatten((args, kwargs))
    leaves = adopt(leaves)  # in a branch, the examples that take it
    found = {trace.level: trace for leaf in leaves for trace in _batches(leaf)}
    levels = sorted(found)
    if batched or not levels:
        yield tree.unflatten(treedef, list(map(_plain, leaves)))
        return
    owns = [[levels.index(trace.level) for trace in _batches(leaf)] for leaf in leaves]
    plain = list(map(_plain, leaves))
    for example in np.ndindex(*(found[level].size for level in levels)):
        yield tree.unflatten(
            treedef,
            [
                _picked(leaf, tuple(example[axis] for axis in own)) if own else leaf
                for leaf, own in zip(plain, owns, strict=True)
            ],
        )


def _batches(leaf: Any) -> tuple[Any, ...]:
    return batches_of(leaf._unbox() if isinstance(leaf, Boxed) else leaf)


def _picked(leaf: Any, index: tuple[int, ...]) -> Any:
    if isinstance(leaf, Boxed):
        return leaf._rebox(_picked(leaf._unbox(), index))
    part = leaf[index]
    return part.copy() if isinstance(part, np.ndarray) else part


def breakpoint(*args: Any, **kwargs: Any) -> None:
    """Stop in the debugger, in the function that calls this, under any transform.

    It is Python's own: a traced value prints with what it holds, and `debug.value(x)` is that by
    itself. Python's `breakpoint` does the same where funcgrad runs the function.

    Parameters
    ----------
    *args, **kwargs
        For `sys.breakpointhook`, if that or ``PYTHONBREAKPOINT`` has been set.

    Examples
    --------
    >>> import sys
    >>> import funcgrad as fg
    >>> def hook():
    ...     print("stopped")
    >>> def f(x):
    ...     fg.debug.breakpoint()
    ...     return x**2
    >>> default, sys.breakpointhook = sys.breakpointhook, hook  # in the place of a debugger
    >>> fg.grad(f)(3.0)
    stopped
    6.0
    >>> sys.breakpointhook = default
    """
    if sys.breakpointhook is sys.__breakpointhook__ and not os.environ.get("PYTHONBREAKPOINT"):
        pdb.Pdb().set_trace(sys._getframe(1))
    else:
        sys.breakpointhook(*args, **kwargs)
