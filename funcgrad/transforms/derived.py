"""Jacobians, Hessians and their products: thin, over `vjp`, `linearize` and `vmap`.

How a Jacobian is put together is in `funcgrad.transforms.jacobians`. A product with a Hessian needs
none: it is one derivative of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core.level import Origin, TracerBase
from funcgrad.transforms.axis_names import axes_in_scope
from funcgrad.transforms.flat import Transformed, call_origin, check_callable, select
from funcgrad.transforms.forward import Untransposed, UntransposedTrace, check_pair, jvp, push
from funcgrad.transforms.jacobians import (
    Hessian,
    Jacobian,
    ValueAndJacobian,
    as_function_of,
    one,
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
    return Jacobian(jacrev, fun, argnums, has_aux, holomorphic, argnames, chunk_size)


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
    return Jacobian(jacfwd, fun, argnums, has_aux, holomorphic, argnames, chunk_size)


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

    Raises
    ------
    DtypeError
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
    return Jacobian(jacobian, fun, argnums, has_aux, holomorphic, argnames, chunk_size)


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

    Raises
    ------
    DtypeError
        As for `jacrev`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.value_and_jacrev(lambda x: x**2)(np.array([1.0, 3.0]))
    (array([1., 9.]), array([[2., 0.],
           [0., 6.]]))
    """
    return ValueAndJacobian(
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

    Raises
    ------
    DtypeError
        As for `jacfwd`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.value_and_jacfwd(lambda x: np.array([1.0, 2.0]) * x)(3.0)
    (array([3., 6.]), array([1., 2.]))
    """
    return ValueAndJacobian(
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

    Raises
    ------
    DtypeError
        As for `jacrev`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.value_and_jacobian(np.sum)(np.ones(2))
    (np.float64(2.0), array([1., 1.]))
    """
    return ValueAndJacobian(
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

    Raises
    ------
    DtypeError
        An argument has no floating leaf; or argument or output are not real, unless `holomorphic`.

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
    rows = Jacobian(jacrev, fun, argnums, has_aux, holomorphic, argnames, None)
    return Hessian(hessian, fun, argnums, has_aux, holomorphic, argnames, chunk_size, rows=rows)


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

    Raises
    ------
    ShapeError, DtypeError
        `fun` does not return a real scalar; or `tangents` are not shaped like `primals`.
    ArgumentError, TreeMismatchError
        `primals` or `tangents` is no tuple or list, or they differ in structure.

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

    Raises
    ------
    DtypeError
        An argument has no floating leaf.

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
            as_function_of(self.fun, chosen), chosen.values, chosen.names, origin, outlives=False
        )
        ones = tree.map(one, out)
        bars = pullback(ones)
        return bars[0] if self.alone else bars
