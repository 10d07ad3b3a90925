"""Reverse mode as users call it: `grad`, `value_and_grad` and `vjp`.

Each runs the function once with tracers in the place of the floating leaves, which leaves a tape
(`funcgrad.transforms.tape`), and walks it back.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.convert import like
from funcgrad.core.level import Origin, TracerBase
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe, user_line
from funcgrad.transforms.backward import backward
from funcgrad.transforms.flat import (
    Transformed,
    call_origin,
    check_callable,
    check_like,
    differentiable_leaves,
    flatten_output,
    lower,
    select,
    snapshot,
    split_aux,
)
from funcgrad.transforms.tape import OutlivingTrace, ReverseTrace

__all__ = ["argument_numbers", "grad", "record", "value_and_grad", "vjp"]

_ONE = np.float64(1.0)
_first = operator.itemgetter(0)


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        Pure function of pytrees, in plain NumPy, that returns a real scalar, of shape ``()``.
    argnums : int or sequence of int, optional
        Which positional arguments to differentiate with respect to; 0 unless `argnames` is given.
        Negative numbers count from the last positional argument of the call.
    has_aux : bool
        `fun` returns a pair: the scalar, and a pytree of whatever else is wanted from the run.
    holomorphic : bool
        `fun` is a holomorphic function of complex arguments; its complex derivative is computed.
    allow_int : bool
        Leave integer and boolean arrays among the differentiated arguments alone (None stands in
        their place in the gradient), where they are an error otherwise.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns the gradient: a pytree like the differentiated
        argument, each leaf with the shape and dtype of its primal, and None for leaves that are not
        floating. A tuple of them, those of `argnums` first, if a sequence was given (or
        both). With `has_aux`, the pair of gradient and auxiliary output.

    Raises
    ------
    DtypeError
        A leaf is an integer or boolean array, an argument has no floating leaf, or the output is
        not real.
    ShapeError
        The output is not a scalar.
    ArgumentError
        `argnums` or `argnames` do not fit the call.

    See Also
    --------
    value_and_grad : the value too, at no extra cost.

    Notes
    -----
    For a real function of a complex argument the gradient is ``df/dx - i df/dy``: its conjugate is
    the direction of steepest ascent.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> fg.grad(fg.grad(np.sin))(0.0)
    -0.0
    """
    return _Grad(grad, fun, argnums, has_aux, holomorphic, allow_int, argnames)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Make a function that computes both the value of `fun` and its gradient.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, allow_int, argnames
        As for `grad`.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns ``(value, gradient)``, or with `has_aux`
        ``((value, aux), gradient)``. The value is the very one that `fun` returns.

    Raises
    ------
    DtypeError, ShapeError, ArgumentError
        As for `grad`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def loss(params, x):
    ...     return np.mean((x * params["w"] + params["b"]) ** 2)
    >>> value, gradient = fg.value_and_grad(loss)({"w": 2.0, "b": 1.0}, np.array([0.0, 1.0]))
    >>> float(value), gradient
    (5.0, {'w': 3.0, 'b': 4.0})
    """
    return _ValueAndGrad(value_and_grad, fun, argnums, has_aux, holomorphic, allow_int, argnames)


def _as_tuple(value: Any, kind: type[Any], what: str, transform: str) -> tuple[Any, ...]:
    parts: Any
    if isinstance(value, np.integer):
        value = int(value)
    parts = (value,) if isinstance(value, kind) else value
    try:
        found: tuple[Any, ...] = tuple(parts)
    except TypeError:
        found = (None,)
    for part in found:
        if not isinstance(part, kind) or isinstance(part, bool):
            raise ArgumentError(
                f"{what} of {transform} must be {kind.__name__} or a sequence of them, "
                f"got {value!r}",
                where=user_line(),
                fix=f"write {what}=0" if kind is int else f'write {what}="name"',
            )
    if len(set(found)) != len(found):
        raise ArgumentError(
            f"{what} of {transform} names an argument twice: {value!r}",
            where=user_line(),
            fix="name each argument once",
        )
    return found


def argument_numbers(
    argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None, transform: str
) -> tuple[tuple[int, ...], tuple[str, ...], bool]:
    """Return `argnums` and `argnames` as tuples, and whether they mean one argument by itself."""
    if argnums is None:
        argnums = 0 if argnames is None else ()
    elif isinstance(argnums, np.integer):
        argnums = int(argnums)
    numbers = _as_tuple(argnums, int, "argnums", transform)
    names = _as_tuple(() if argnames is None else argnames, str, "argnames", transform)
    if not numbers and not names:
        raise ArgumentError(
            f"{transform} was told to differentiate with respect to no argument",
            where=user_line(),
            fix="give argnums= or argnames= at least one, or leave both away for the first",
        )
    alone = (isinstance(argnums, int) and argnames is None) or (
        isinstance(argnames, str) and argnums == ()
    )
    return numbers, names, alone


def _is_array(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind == "f"


class _ValueAndGrad(Transformed):
    transform = "value_and_grad"

    def __init__(
        self,
        make: Callable[..., Any],
        fun: Callable[..., Any],
        argnums: int | Sequence[int] | None,
        has_aux: bool,
        holomorphic: bool,
        allow_int: bool,
        argnames: str | Sequence[str] | None,
    ):
        options = {
            "argnums": argnums,
            "has_aux": has_aux,
            "holomorphic": holomorphic,
            "allow_int": allow_int,
            "argnames": argnames,
        }
        super().__init__(make, fun, options)
        self.argnums, self.argnames, self.alone = argument_numbers(
            argnums, argnames, self.transform
        )
        # The position of the one argument to differentiate, if there is just that.
        self.number = self.argnums[0] if self.alone and self.argnums and not holomorphic else None
        if self.number is not None and self.number < 0:
            self.number = None
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self.allow_int = allow_int

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, aux, gradient = self.run(args, kwargs, call_origin(self.transform, self.fun))
        return ((value, aux) if self.has_aux else value), gradient

    def run(self, args: Any, kwargs: Any, origin: Origin) -> tuple[Any, Any, Any]:
        """Return value, auxiliary output and gradient."""
        leaves, positions, insert, gather = self.arrange(args, kwargs, origin)
        with ReverseTrace(origin) as trace:
            traced = list(leaves)
            for position in positions:
                traced[position] = trace.variable(leaves[position])
            args, kwargs = insert(traced)
            del traced
            out = self.fun(*args, **kwargs)
            del args, kwargs
            aux = None
            if self.has_aux:
                out, aux = split_aux(out, trace)
            value = lower(out, trace)
            value, seed = self.check_output(value, origin)
            tape = trace.take_tape()
        bars: list[Any] = [None] * len(positions)
        if type(out) is Tracer and out._trace is trace:
            start = trace.blank()
            start[out._extra] = seed
            del out
            bars = backward(tape, start, len(positions), consume=True)
        gradients: list[Any] = [None] * len(leaves)
        seen = {id(seed)}
        for position, bar in zip(positions, bars, strict=True):
            gradients[position] = like(bar, leaves[position], seen)
        return value, aux, gather(gradients)

    def arrange(
        self, args: Any, kwargs: Any, origin: Origin
    ) -> tuple[list[Any], list[int], Callable[..., Any], Callable[..., Any]]:
        """Find what to differentiate.

        Returns
        -------
        leaves : list
            The leaves of the chosen arguments.
        positions : list of int
            Those of them to differentiate.
        insert, gather : callable
            Make the arguments of the call from new leaves; and the gradient from those of leaves.
        """
        number = self.number
        if number is not None and len(args) > number:
            # One positional argument, the usual case: no search for it.
            before, value, after = args[:number], args[number], args[number + 1 :]
            if _is_array(value):  # an optimizer's objective: no tree either
                return [value], [0], lambda traced: ((*before, *traced, *after), kwargs), _first
            leaves, treedef = tree.flatten(value)
            return (
                leaves,
                self.positions(leaves, (value,), (f"argument {number}",), origin),
                lambda traced: ((*before, tree.unflatten(treedef, traced), *after), kwargs),
                functools.partial(tree.unflatten, treedef),
            )
        chosen = select(self.fun, args, kwargs, self.argnums, self.argnames, self.transform)
        leaves, treedef = tree.flatten(chosen.values)
        positions = self.positions(leaves, chosen.values, chosen.names, origin)

        def insert(traced: list[Any]) -> tuple[Any, Any]:
            return chosen.replace(tree.unflatten(treedef, traced))

        def gather(gradients: list[Any]) -> Any:
            gradient = tree.unflatten(treedef, gradients)
            return gradient[0] if self.alone else gradient

        return leaves, positions, insert, gather

    def positions(self, leaves: list[Any], values: Any, names: Any, origin: Origin) -> list[int]:
        """Return the positions of the leaves to differentiate."""
        return differentiable_leaves(
            leaves,
            values,
            names,
            transform=origin.transform,
            allow_int=self.allow_int,
            holomorphic=self.holomorphic,
        )

    def check_output(self, value: Any, origin: Origin) -> tuple[Any, Any]:
        """Return the value and the cotangent to start from; raise unless it is a real scalar."""
        if not self.holomorphic:
            if type(value) is np.float64:  # the usual case
                return value, _ONE
            if type(value) is float:
                return value, 1.0
        if not isinstance(value, float | complex) and not hasattr(value, "dtype"):
            raise _not_a_scalar(value, origin)
        shape, dtype = shape_of(value), dtype_of(value)
        if shape == (1,):
            warnings.warn(
                f"{origin.transform} takes the one element of an output of shape (1,) for a "
                f"scalar; return y[0] or np.sum(y) from {origin.name}, which is one",
                stacklevel=4,
            )
        elif shape != ():
            raise ShapeError(
                f"{origin.transform} needs a function that returns a scalar, got {describe(value)}",
                where=str(origin),
                fix="reduce the output with np.sum or np.mean; or, for the derivatives of all "
                "its elements, use funcgrad.jacobian",
            )
        if self.holomorphic:
            if dtype.kind != "c":
                raise DtypeError(
                    f"{origin.transform} with holomorphic=True needs a complex output, "
                    f"got {describe(value)}",
                    where=str(origin),
                    fix="leave holomorphic=True away for a real function",
                )
        elif dtype.kind != "f":
            fix = "return a float"
            if dtype.kind == "c":
                fix = "return np.real(y) or np.abs(y), or pass holomorphic=True if the function is"
            raise DtypeError(
                f"{origin.transform} needs a real floating-point output, got {describe(value)}",
                where=str(origin),
                fix=fix,
            )
        if hasattr(value, "__array_function__") and not isinstance(
            value, np.ndarray | np.generic | TracerBase
        ):
            return value, np.ones_like(value)  # another kind of array; so will the gradient be
        return value, np.ones(shape, dtype)[()]


def _not_a_scalar(value: Any, origin: Origin) -> ArgumentError | DtypeError:
    if value is None:
        return ArgumentError(
            f"{origin.name} returned None, and {origin.transform} needs a scalar",
            where=str(origin),
            fix="end the function with return",
        )
    if isinstance(value, tuple) and len(value) == 2 and shape_of(value[0]) == ():
        return ArgumentError(
            f"{origin.transform} needs a function that returns a scalar; the output is a pair "
            "whose first item is one",
            where=str(origin),
            fix="pass has_aux=True if the second item is an auxiliary output",
        )
    if isinstance(value, tuple | list | dict):
        parts = list(value.values() if isinstance(value, dict) else value)
        place = next((i for i, part in enumerate(parts) if shape_of(part) == ()), None)
        key = place if place is None or not isinstance(value, dict) else list(value)[place]
        return DtypeError(
            f"{origin.transform} needs a function that returns a floating-point scalar, "
            f"got a {type(value).__name__} of {len(value)}",
            where=str(origin),
            fix="return a single float, such as np.sum(y)"
            if place is None
            else f"return out[{key!r}] alone; or, for the rest as well, return out[{key!r}], out, "
            "and pass has_aux=True",
        )
    return DtypeError(
        f"{origin.transform} needs a function that returns a floating-point scalar, "
        f"got {describe(value)}",
        where=str(origin),
        fix="return a single float, such as np.sum(y)",
    )


class _Grad(_ValueAndGrad):
    transform = "grad"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _, aux, gradient = self.run(args, kwargs, call_origin(self.transform, self.fun))
        return (gradient, aux) if self.has_aux else gradient


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Evaluate `fun` and return its pullback.

    Parameters
    ----------
    fun : callable
        Pure function of ``len(primals)`` pytrees of arrays, returning a pytree of arrays.
    *primals : pytree of array_like
        Where to linearize. Leaves are float or complex, of any shape; others pass through.
    has_aux : bool
        `fun` returns a pair: the output, and a pytree of whatever else is wanted from the run.

    Returns
    -------
    out : pytree of array_like
        ``fun(*primals)``.
    pullback : callable
        Takes a cotangent with the structure, shapes and dtypes of `out` (None for a part that
        is zero, Python numbers where `out` is a scalar); returns a tuple of ``len(primals)``
        cotangents, each like its primal. May be called any number of times.
    aux : pytree
        Only with `has_aux`.

    Raises
    ------
    DtypeError
        A leaf of `primals` is an integer or boolean array, and so has no tangent space; from
        `pullback`: a cotangent has another dtype.
    TreeMismatchError, ShapeError
        From `pullback`: the cotangent is not shaped like `out`.

    Notes
    -----
    A pullback costs a small constant times one run of `fun`, whatever the number of inputs [1]_.
    The price is memory for the residuals, which live as long as `pullback` does.

    References
    ----------
    .. [1] A. Griewank and A. Walther, *Evaluating Derivatives*, 2nd ed., SIAM, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> out, pullback = fg.vjp(np.sin, 0.0)
    >>> pullback(2.0)
    (2.0,)
    """
    check_callable("vjp", fun)
    names = [f"argument {number}" for number in range(len(primals))]
    out, pullback, aux = record(fun, primals, names, call_origin("vjp", fun), has_aux)
    return (out, pullback, aux) if has_aux else (out, pullback)


def record(
    fun: Callable[..., Any],
    primals: tuple[Any, ...],
    names: Sequence[str],
    origin: Origin,
    has_aux: bool = False,
    holomorphic: bool = False,
    outlives: bool = True,
) -> tuple[Any, Pullback, Any]:
    """Do the work of `vjp` for the transform that `origin` names; `names` are its arguments'.

    If the pullback does not outlive that transform, nothing is copied that a caller might change.
    """
    leaves, treedef = tree.flatten(primals)
    positions = differentiable_leaves(
        leaves, primals, names, transform=origin.transform, holomorphic=holomorphic
    )
    outliving = OutlivingTrace(origin) if outlives else None
    with outliving or ReverseTrace(origin) as trace:
        if outliving is not None:
            outliving.guard(leaves)
        traced = list(leaves)
        for position in positions:
            traced[position] = trace.variable(leaves[position])
        out = fun(*tree.unflatten(treedef, traced))
        del traced
        aux = None
        if has_aux:
            out, aux = split_aux(out, trace)
            aux = tree.map(snapshot, aux)
        out_leaves, out_treedef = flatten_output(out, origin)
        tape, count = trace.take_tape(), len(trace.blank())
    numbers = [
        leaf._extra if type(leaf) is Tracer and leaf._trace is trace else -1 for leaf in out_leaves
    ]
    # The caller may write to the results, which may be residuals, arguments, or each other.
    values: list[Any] = []
    for leaf, number in zip(out_leaves, numbers, strict=True):
        value = lower(leaf, trace)
        if isinstance(value, np.ndarray):
            if outliving is None or number < 0 or not outliving.is_free(value):
                value = snapshot(value)
            if outliving is not None:
                outliving.guard((value,))
        values.append(value)
    out = tree.unflatten(out_treedef, values)

    pullback = Pullback(
        tape, count, numbers, positions, leaves, treedef, (out, out_treedef, values)
    )
    return out, pullback, aux


class Pullback:
    """The transpose of the derivative at a point: what `vjp` returns beside the value."""

    __slots__ = ("_count", "_leaves", "_numbers", "_out", "_positions", "_tape", "_treedef")

    def __init__(
        self,
        tape: list[Any],
        count: int,
        numbers: list[int],
        positions: Sequence[int],
        leaves: list[Any],
        treedef: Any,
        out: tuple[Any, Any, list[Any]],
    ):
        self._tape, self._count, self._numbers = tape, count, numbers
        self._positions, self._leaves, self._treedef = positions, leaves, treedef
        self._out = out  # with its structure and its leaves

    def __call__(self, out_bar: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the output back to the primals."""
        pulled = self.of_leaves(check_like(out_bar, *self._out, "cotangent"))
        cotangents: tuple[Any, ...] = tree.unflatten(self._treedef, pulled)
        return cotangents

    def of_leaves(self, out_bars: Sequence[Any]) -> list[Any]:
        """Pull back cotangents that are known to fit, leaf by leaf; return them like that."""
        bars: list[Any] = [None] * self._count
        seen = set()
        for number, bar in zip(self._numbers, out_bars, strict=True):
            if bar is not None and number >= 0:
                seen.add(id(bar))
                bars[number] = bar if bars[number] is None else bars[number] + bar
        pulled = backward(self._tape, bars, len(self._positions), consume=False)
        result: list[Any] = [None] * len(self._leaves)
        for position, bar in zip(self._positions, pulled, strict=True):
            result[position] = like(bar, self._leaves[position], seen)
        return result
