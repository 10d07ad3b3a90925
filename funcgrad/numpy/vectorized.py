"""Python functions applied element by element, with traced values among the elements.

`numpy.vectorize` turns its arguments into arrays of Python objects, which no library can see, so
it is replaced here. Of plain arguments NumPy's own class computes the result; of traced ones the
function is called with each element in turn, and the results are stacked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import DtypeError, describe, user_line
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, holds_tracer

__all__ = ["frompyfunc", "kaiser", "vectorize"]


class vectorize(np.vectorize):
    """Make a function of arrays from one of numbers, which may be traced.

    Parameters
    ----------
    pyfunc : callable, optional
        Function of numbers, or with `signature` of arrays.
    otypes : str or list of dtype, optional
        The dtypes of the outputs. By default those of the first call.
    doc, excluded, cache, signature
        As for `numpy.vectorize`.

    See Also
    --------
    funcgrad.vmap : calls the function once, with all elements together: faster by far, if the
        function is made of NumPy's.

    Notes
    -----
    `numpy.vectorize` gives all outputs the dtype of the first. If that is an integer and a later
    output is traced, its derivative would be lost, which is an error here.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> @fnp.vectorize
    ... def ramp(x, low):
    ...     return x - low if x > low else 0.0 * x
    >>> ramp(np.array([1.0, 2.0, 3.0]), 1.5)
    array([0. , 0.5, 1.5])
    >>> fg.grad(lambda x: np.sum(ramp(x, 1.5) ** 2))(np.array([1.0, 2.0, 3.0]))
    array([0., 1., 3.])
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for each element, after broadcasting."""
        fun: Any = self.pyfunc
        if fun is np._NoValue or not holds_tracer([*args, *kwargs.values()]):
            return super().__call__(*args, **kwargs)
        names = [name for name in kwargs if name not in self.excluded]
        places = [i for i in range(len(args)) if i not in self.excluded]
        varied = [array_of(args[i]) for i in places] + [array_of(kwargs[name]) for name in names]

        def call(*elements: Any) -> Any:
            now, more = list(args), dict(kwargs)
            for i, element in zip(places, elements, strict=False):
                now[i] = element
            more.update(zip(names, elements[len(places) :], strict=True))
            return fun(*now, **more)

        if self.signature is not None:
            return _generalized(call, self.signature, varied, self.otypes)
        return _each(call, varied, self.otypes)


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None
) -> Callable[..., Any]:
    """Make a ufunc-like function from one of numbers, which may be traced.

    Parameters
    ----------
    func : callable
        Function of `nin` numbers, returning one or a tuple of `nout`.
    nin, nout : int
        The numbers of arguments and results.
    identity : object, optional
        As for `numpy.frompyfunc`.

    Returns
    -------
    callable
        Of plain arguments it returns what the ufunc of `numpy.frompyfunc` does, arrays of objects;
        of traced ones, traced arrays of floats. It has the attributes of that ufunc.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> times = fnp.frompyfunc(lambda x, y: x * y, 2, 1)
    >>> fg.grad(lambda x: np.sum(times(x, x)))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return _PyFunction(np.frompyfunc(func, nin, nout, identity=identity), func)


class _PyFunction:
    """What `frompyfunc` returns."""

    def __init__(self, ufunc: np.ufunc, func: Callable[..., Any]):
        self._ufunc = ufunc
        self._func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for each element, after broadcasting."""
        if not holds_tracer(args) or kwargs:
            return self._ufunc(*args, **kwargs)
        made = _each(self._func, [array_of(arg) for arg in args], None)
        parts = made if isinstance(made, tuple) else (made,)
        parts = tuple(part if shape_of(part) else part[()] for part in parts)
        return parts if isinstance(made, tuple) else parts[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __repr__(self) -> str:
        return repr(self._ufunc)


# How both call their function


def _each(call: Callable[..., Any], args: list[Any], otypes: Any) -> Any:
    """Call for each element, and return an array, or a tuple of them."""
    shape = np.broadcast_shapes(*map(shape_of, args))
    columns = [_elements(arg, shape) for arg in args]
    outs = [call(*elements) for elements in zip(*columns, strict=True)]
    return _collected(outs, shape, None, otypes)


def _elements(arg: Any, shape: tuple[int, ...]) -> Iterable[Any]:
    if holds_tracer(arg):
        flat = np.reshape(np.broadcast_to(arg, shape), -1)
        return (flat[i] for i in range(flat.shape[0]))
    return iter(np.broadcast_to(np.asarray(arg, dtype=object), shape).reshape(-1).tolist())


def _collected(
    outs: list[Any], shape: tuple[int, ...], cores: list[tuple[str, ...]] | None, otypes: Any
) -> Any:
    """Return the outputs of all calls, stacked, for each of the results of one call."""
    if not outs:
        if otypes is None:
            raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
        if cores is not None and any(cores):
            raise ValueError(
                "cannot call `vectorize` with a signature including new output dimensions "
                "on size 0 inputs"
            )
        made = [np.zeros(shape, dtype) for dtype in otypes]
        return tuple(made) if len(made) > 1 else made[0]
    several = isinstance(outs[0], tuple)
    rows = list(zip(*outs, strict=True)) if several else [outs]
    if cores is not None and len(rows) != len(cores):
        raise ValueError(
            f"wrong number of outputs from pyfunc: expected {len(cores)}, got {len(rows)}"
        )
    made = [
        _stacked(list(row), shape, None if otypes is None else otypes[i])
        for i, row in enumerate(rows)
    ]
    return tuple(made) if several else made[0]


def _stacked(row: list[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    parts = [array_of(part) for part in row]
    want = np.dtype(dtype) if dtype is not None else dtype_of(parts[0])
    if want.kind not in "fc" and any(isinstance(part, TracerBase) for part in parts):
        lost = next(part for part in parts if isinstance(part, TracerBase))
        if dtype_of(lost).kind in "fc":
            raise DtypeError(
                f"vectorize gives all outputs the dtype of the first, {want}, in which the "
                "derivatives of others would be lost",
                where=f"{user_line()}; an output is {describe(lost)}",
                fix="give otypes=[float], or return 0.0 instead of 0",
            )
    made = np.stack([cast(part, want) for part in parts])
    return np.reshape(made, (*shape, *shape_of(made)[1:]))


# With a signature such as "(n),(n)->()"


def _core_dims(half: str) -> list[tuple[str, ...]]:
    found = re.findall(r"\(([^()]*)\)", half)
    return [tuple(name.strip() for name in dims.split(",") if name.strip()) for dims in found]


def _generalized(call: Callable[..., Any], signature: str, args: list[Any], otypes: Any) -> Any:
    inputs, outputs = map(_core_dims, signature.split("->"))
    if len(args) != len(inputs):
        raise TypeError(
            f"wrong number of positional arguments: expected {len(inputs)}, got {len(args)}"
        )
    sizes: dict[str, int] = {}
    for arg, core in zip(args, inputs, strict=True):
        shape = shape_of(arg)
        if len(shape) < len(core):
            raise ValueError(
                f"{len(shape)}-dimensional argument does not have enough dimensions for all "
                f"core dimensions {core!r}"
            )
        for name, size in zip(core, shape[len(shape) - len(core) :], strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(
                    f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]}"
                )
    outer = [
        shape_of(arg)[: len(shape_of(arg)) - len(c)] for arg, c in zip(args, inputs, strict=True)
    ]
    shape = np.broadcast_shapes(*outer)
    args = [
        np.broadcast_to(arg, shape + tuple(sizes[name] for name in core))
        for arg, core in zip(args, inputs, strict=True)
    ]
    outs = [call(*(arg[place] for arg in args)) for place in np.ndindex(*shape)]
    return _collected(outs, shape, outputs, otypes)


def kaiser(M: int, beta: Any) -> Any:
    """Return the Kaiser window, differentiable in its parameter.

    Parameters
    ----------
    M : int
        The number of points.
    beta : float
        The shape of the window; may be traced.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import funcgrad as fg
    >>> import funcgrad.numpy as fnp
    >>> fg.jvp(lambda beta: fnp.kaiser(3, beta), (0.0,), (1.0,))[1]
    array([0., 0., 0.])
    """
    if not isinstance(beta, TracerBase):
        return np.kaiser(M, beta)
    if M == 1:
        return np.ones(1)
    alpha = (M - 1) / 2.0
    n = np.arange(0, float(M))
    bessel: Any = np.i0  # which NumPy's annotations refuse for anything but its own arrays
    return bessel(beta * np.sqrt(1 - ((n - alpha) / alpha) ** 2.0)) / bessel(beta)
