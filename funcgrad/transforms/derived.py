"""Jacobians, Hessians and their products: thin, over `vjp`, `linearize` and `vmap`.

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
from funcgrad.core.level import Origin, TracerBase
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, DtypeError, describe, user_line
from funcgrad.transforms.batching import vmap
from funcgrad.transforms.flat import (
    Selection,
    Transformed,
    call_origin,
    check_callable,
    is_differentiable,
    select,
)
from funcgrad.transforms.axis_names import axes_in_scope
from funcgrad.transforms.forward import (
    Untransposed,
    UntransposedTrace,
    check_pair,
    jvp,
    note,
    push,
)
from funcgrad.transforms.reverse import argument_numbers, grad, record

__all__ = [
    "elementwise_grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "value_and_jacfwd",
    "value_and_jacobian",
    "value_and_jacrev",
]


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of `fun` row by row, in reverse mode.

    Parameters
    ----------
    fun : callable
        Pure function of pytrees, in plain NumPy, that returns a pytree of arrays.
    argnums : int or sequence of int, optional
        Which positional arguments to differentiate with respect to; 0 unless `argnames` is given.
    has_aux : bool
        `fun` returns a pair: the output, and a pytree of whatever else is wanted from the run.
    holomorphic : bool
        `fun` is a holomorphic function of complex arguments.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.
    chunk_size : int, optional
        How many rows to compute at once, to bound the memory; all by default.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns a pytree like the output, in which each leaf is a
        pytree like the differentiated argument (a tuple of them if a sequence was given), whose
        leaves have the shape of the output leaf followed by that of the argument leaf. With
        `has_aux`, the pair of it and the auxiliary output.

    Raises
    ------
    DtypeError
        An argument has no floating leaf; or the output is not real, unless `holomorphic`.

    See Also
    --------
    jacfwd : column by column, for functions with fewer inputs than outputs.
    jacobian : whichever is cheaper.

    Notes
    -----
    Costs about as much as one gradient for each element of the output, done together.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.jacrev(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    return _Jacobian(jacrev, fun, argnums, has_aux, holomorphic, argnames, chunk_size)


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of `fun` column by column, in forward mode.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, argnames
        As for `jacrev`.
    chunk_size : int, optional
        How many columns to compute at once, to bound the memory; all by default.

    Returns
    -------
    callable
        As for `jacrev`.

    Raises
    ------
    DtypeError
        An argument has no floating leaf, or is complex, unless `holomorphic`.

    See Also
    --------
    jacrev : row by row, for functions with fewer outputs than inputs.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.jacfwd(np.cumsum)(np.ones(3))
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    return _Jacobian(jacfwd, fun, argnums, has_aux, holomorphic, argnames, chunk_size)


def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of `fun` in the mode that is cheaper.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, argnames, chunk_size
        As for `jacrev`.

    Returns
    -------
    callable
        As for `jacrev`.

    Notes
    -----
    Forward mode if the output has more elements than the argument, reverse mode otherwise. To know
    that `fun` is run once more if it is forward mode.

    In a function under `vmap` with a named axis it is always reverse mode, as in JAX: of a function
    that sums over the examples by `psum`, forward mode computes something else.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.jacobian(lambda p: p["a"] * np.arange(3.0))({"a": 2.0})
    {'a': array([0., 1., 2.])}
    """
    return _Jacobian(jacobian, fun, argnums, has_aux, holomorphic, argnames, chunk_size)


def value_and_jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes both the value of `fun` and its Jacobian, in reverse mode.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, argnames, chunk_size
        As for `jacrev`.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns ``(value, jacobian)``, or with `has_aux`
        ``((value, aux), jacobian)``.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.value_and_jacrev(lambda x: x**2)(np.array([1.0, 3.0]))
    (array([1., 9.]), array([[2., 0.],
           [0., 6.]]))
    """
    return _ValueAndJacobian(
        value_and_jacrev, fun, argnums, has_aux, holomorphic, argnames, chunk_size
    )


def value_and_jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes both the value of `fun` and its Jacobian, in forward mode.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, argnames, chunk_size
        As for `jacfwd`.

    Returns
    -------
    callable
        As for `value_and_jacrev`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.value_and_jacfwd(lambda x: np.array([1.0, 2.0]) * x)(3.0)
    (array([3., 6.]), array([1., 2.]))
    """
    return _ValueAndJacobian(
        value_and_jacfwd, fun, argnums, has_aux, holomorphic, argnames, chunk_size
    )


def value_and_jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the value of `fun` and its Jacobian, in the cheaper mode.

    Parameters
    ----------
    fun, argnums, has_aux, holomorphic, argnames, chunk_size
        As for `jacobian`.

    Returns
    -------
    callable
        As for `value_and_jacrev`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.value_and_jacobian(np.sum)(np.ones(2))
    (np.float64(2.0), array([1., 1.]))
    """
    return _ValueAndJacobian(
        value_and_jacobian, fun, argnums, has_aux, holomorphic, argnames, chunk_size
    )


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    argnames: str | Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Hessian of `fun`, its second derivatives.

    Parameters
    ----------
    fun : callable
        Pure function of pytrees. Usually it returns a scalar; of any other output it is the second
        derivative of each element.
    argnums, has_aux, holomorphic, argnames, chunk_size
        As for `jacrev`.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns a pytree like the output, of pytrees like the
        argument, of pytrees like the argument; leaves have the three shapes one after the other.

    See Also
    --------
    hvp : its product with a vector, at the price of a few gradients.

    Notes
    -----
    The Jacobian of the gradient, both in reverse mode, which goes back through what the result
    depends on and no more. Of a function with many outputs, and in a function under `vmap` with a
    named axis (see `jacobian`), it is forward mode over reverse mode, as it always is in JAX.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    rows = jacrev(fun, argnums, has_aux, holomorphic, argnames)
    return _Hessian(jacobian, rows, argnums, has_aux, holomorphic, argnames, chunk_size)


def hvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
) -> Any:
    """Compute the product of the Hessian of `fun` with a vector, without the Hessian.

    Parameters
    ----------
    fun : callable
        Pure function of ``len(primals)`` pytrees, that returns a real scalar.
    primals : tuple or list of pytree
        Where.
    tangents : tuple or list of pytree
        The vector, with the structure, shapes and dtypes of `primals`; None stands for zero.
    has_aux : bool
        `fun` returns a pair: the scalar, and a pytree of whatever else is wanted from the run.

    Returns
    -------
    product : pytree
        Like the argument, or a tuple of them if there are several.
    aux : pytree
        Only with `has_aux`.

    Notes
    -----
    Reverse mode over forward mode, which costs two to four gradients, whatever the size. Where the
    function has derivatives that are given for reverse mode alone (`custom_vjp`), it is forward
    mode over reverse mode, so that those are used as they are; and under `vmap` with a named axis,
    where `hessian` is so too.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    check_callable("hvp", fun)
    origin = call_origin("hvp", fun)
    check_pair(primals, tangents, origin)
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    gradient: Any = grad(fun, argnums, has_aux)
    of_slope: Any = grad(_Slope(gradient, tangents, origin, has_aux), argnums, has_aux=True)
    try:
        if axes_in_scope():
            raise Untransposed
        _, aux, product = of_slope.run(tuple(primals), {}, origin)
    except Untransposed:
        out = jvp(gradient, primals, tangents, has_aux)
        product, aux = out[1], out[-1]
    return (product, aux) if has_aux else product


class _Slope:
    """The derivative of a scalar function in a direction, and its auxiliary output."""

    def __init__(self, gradient: Any, tangents: Any, origin: Origin, has_aux: bool):
        self.gradient = gradient
        self.tangents = tangents
        self.origin = origin
        self.has_aux = has_aux

    def __call__(self, *args: Any) -> Any:
        """Push the direction forward."""
        made = push(
            self.gradient.fun, args, self.tangents, UntransposedTrace(self.origin), self.has_aux
        )
        slope = made[1]
        if not isinstance(slope, TracerBase):  # zero, or the function returned no scalar
            self.gradient.check_output(made[0], self.origin)
        return slope, (made[2] if self.has_aux else None)


def elementwise_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the derivative of each element of the output by its own input.

    Parameters
    ----------
    fun : callable
        Function of which each output element depends on the input element at the same place only,
        such as one made of ufuncs. That is not checked: otherwise the derivatives are those of
        the sum of the output.
    argnums : int or sequence of int, optional
        Which positional arguments to differentiate with respect to; 0 unless `argnames` is given.
    argnames : str or sequence of str, optional
        Arguments to differentiate with respect to, by name.

    Returns
    -------
    callable
        Takes the arguments of `fun`; returns derivatives like the chosen arguments.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.elementwise_grad(np.square)(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> fg.elementwise_grad(fg.elementwise_grad(np.sin))(np.array([0.0, np.pi / 2]))
    array([-0., -1.])
    """
    return _ElementwiseGrad(elementwise_grad, fun, argnums, argnames)


class _ElementwiseGrad(Transformed):
    transform = "elementwise_grad"

    def __init__(self, make: Any, fun: Callable[..., Any], argnums: Any, argnames: Any):
        super().__init__(make, fun, {"argnums": argnums, "argnames": argnames})
        self.argnums, self.argnames, self.alone = argument_numbers(
            argnums, argnames, self.transform
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the derivatives."""
        chosen = select(self.fun, args, kwargs, self.argnums, self.argnames, self.transform)
        origin = call_origin(self.transform, self.fun)
        out, pullback, _ = record(
            _as_function_of(self.fun, chosen), chosen.values, chosen.names, origin, outlives=False
        )
        ones = tree.map(_one, out)
        bars = pullback(ones)
        return bars[0] if self.alone else bars


def _one(leaf: Any) -> Any:
    if not is_differentiable(leaf):
        return None
    return np.ones_like(leaf) if hasattr(leaf, "dtype") else type(leaf)(1)


class _ValueAndJacobian(Transformed):
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
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self.chunk_size = _checked_chunk(chunk_size, self.transform)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value, jacobian, aux = self.run(args, kwargs, call_origin(self.transform, self.fun))
        return ((value, aux) if self.has_aux else value), jacobian

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], origin: Origin
    ) -> tuple[Any, Any, Any]:
        """Return value, Jacobian and auxiliary output."""
        chosen = select(self.fun, args, kwargs, self.argnums, self.argnames, self.transform)
        fun = _as_function_of(self.fun, chosen)
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
        _check_real(out, chosen, forward, self.holomorphic, origin)
        made = (_columns if forward else _rows)(apply, chosen.values, out, self.chunk_size)
        part = _first if self.alone else tuple
        whole = part(made) if _is_row(made) else tree.map(part, made, is_leaf=_is_row)
        return out, whole, aux


    def prefers_forward(self, outputs: int, inputs: int) -> bool:
        """Choose the mode, where that is free."""
        return outputs > inputs and not axes_in_scope()


class _Jacobian(_ValueAndJacobian):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the Jacobian."""
        _, jacobian, aux = self.run(args, kwargs, call_origin(self.transform, self.fun))
        return (jacobian, aux) if self.has_aux else jacobian


class _Hessian(_Jacobian):
    """The Jacobian of a Jacobian."""

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


def _as_function_of(fun: Callable[..., Any], chosen: Selection) -> Callable[..., Any]:
    """Return `fun` as a function of the chosen arguments."""

    def of_chosen(*values: Any) -> Any:
        args, kwargs = chosen.replace(values)
        return fun(*args, **kwargs)

    return of_chosen


def _size(values: Any) -> int:
    """Return the number of elements that have a derivative."""
    return sum(math.prod(shape_of(leaf)) for leaf in tree.leaves(values) if is_differentiable(leaf))


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
        return _Row(pullback(_one(out)))
    ins, ins_at, in_tree = _differentiable(values)
    outs, outs_at, out_tree = _differentiable(out)

    def pull(bars: list[Any]) -> list[Any]:
        bar = tree.unflatten(out_tree, _filled(bars, outs_at, len(outs)))
        pulled = in_tree.flatten_up_to(pullback(bar))
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
