"""`pure_callback`: foreign code, called with plain arrays from inside of any transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.batch import count_examples, full_batch
from funcgrad.core.level import TracerBase, concrete, top_trace
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import shape_of
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MissingRuleError,
    ShapeError,
    TreeMismatchError,
    describe,
    user_line,
)
from funcgrad.transforms.axis_names import Scope
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.stripping import StripTrace

__all__ = ["ShapeDtypeStruct", "pure_callback"]

_METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


class ShapeDtypeStruct:
    """The shape and dtype of an array that is not there.

    Parameters
    ----------
    shape : tuple of int
        The shape.
    dtype : dtype_like
        The dtype.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.ShapeDtypeStruct((2, 3), float)
    ShapeDtypeStruct(shape=(2, 3), dtype=float64)
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Any, dtype: Any):
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a function that is not NumPy code with plain arrays, whatever is traced.

    Parameters
    ----------
    callback : callable
        Pure function; it gets `args` and `kwargs` with plain arrays and numbers for traced ones.
    result_shape_dtypes : pytree
        What it returns: leaves with a `shape` and a `dtype`, such as `ShapeDtypeStruct`, an array,
        or a number.
    *args, **kwargs : pytree
        Its arguments.
    vmap_method : {None, "sequential", "expand_dims", "broadcast_all"}
        What to do under `vmap`: call it for each example (by default), or once, with one more first
        axis in all arguments and results. That axis has length 1 in an argument that all examples
        share ("expand_dims"), or is the number of examples ("broadcast_all").

    Returns
    -------
    pytree
        What `callback` returned.

    Raises
    ------
    MissingRuleError
        An argument is differentiated. Give the function a rule by `custom_vjp` or `custom_jvp`.
    TreeMismatchError, ShapeError, DtypeError
        The result is not what `result_shape_dtypes` says.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.custom_jvp
    ... def gamma(x):
    ...     return fg.pure_callback(math.gamma, x, x)
    >>> @gamma.defjvp
    ... def gamma_jvp(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     psi = (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5
    ...     return gamma(x), gamma(x) * psi * x_dot
    >>> round(fg.grad(gamma)(4.0), 3)
    7.537
    >>> fg.vmap(gamma)(np.array([1.0, 5.0]))
    array([ 1., 24.])
    """
    if not callable(callback):
        raise ArgumentError(
            f"pure_callback takes a function, got {describe(callback)}",
            where=user_line(),
            fix="write pure_callback(f, fg.ShapeDtypeStruct(shape, dtype), x)",
        )
    if vmap_method not in _METHODS:
        raise ArgumentError(
            f"vmap_method of pure_callback must be one of {_METHODS}, got {vmap_method!r}",
            where=user_line(),
            fix='write vmap_method="sequential"',
        )
    specs, out_treedef = tree.flatten(result_shape_dtypes)
    leaves, treedef = tree.flatten((args, kwargs))
    shapes = [_Spec(shape_of(spec), _dtype(spec)) for spec in specs]
    made = _Callback(callback, treedef, out_treedef, vmap_method).call(leaves, shapes)
    return tree.unflatten(out_treedef, made)


class _Spec(ShapeDtypeStruct):
    """What one result must be."""

    __slots__ = ()


def _dtype(spec: Any) -> Any:
    value = concrete(spec)
    if hasattr(value, "dtype"):
        return value.dtype
    if isinstance(value, bool | int | float | complex):
        return np.dtype(type(value))
    raise ArgumentError(
        f"a leaf of result_shape_dtypes must have a shape and a dtype, got {describe(value)}",
        where=user_line(),
        fix="write fg.ShapeDtypeStruct(shape, dtype)",
    )


class _Callback:
    def __init__(self, fun: Callable[..., Any], treedef: Any, out_treedef: Any, method: Any):
        self.fun = fun
        self.name: str = getattr(fun, "__name__", type(fun).__name__)
        self.treedef = treedef
        self.out_treedef = out_treedef
        self.method = method

    def call(self, leaves: list[Any], specs: list[_Spec]) -> list[Any]:
        """Call it at the highest level among `leaves`."""
        trace = top_trace(leaves)
        if trace is None or trace.level == 0:
            return self._plain([concrete(leaf) for leaf in leaves], specs)
        if isinstance(trace, BatchTrace):
            values, batched = trace.split(leaves)
            return [Tracer(trace, out, None) for out in self._many(values, batched, specs)]
        if trace.records:

            def callback(leaves: list[Any]) -> list[Any]:
                return self.call(leaves, specs)

            callback.__name__ = self.name
            made: list[Any] = trace.function(callback, (leaves,), {})
            return made
        if isinstance(trace, StripTrace):
            return list(map(trace.wrap, self.call(trace.values(leaves), specs)))
        raise MissingRuleError(
            f"pure_callback({self.name}) has no derivative: what it computes is not traced",
            where=f"{user_line()}, in {trace.origin}",
            fix="call it in a function with a rule, by funcgrad.custom_vjp or custom_jvp; or give "
            "it funcgrad.stop_gradient(x)",
        )

    def _plain(self, leaves: list[Any], specs: list[_Spec]) -> list[Any]:
        args, kwargs = tree.unflatten(self.treedef, leaves)
        with Scope(()):  # it gets plain arrays, of one example or of many
            made = self.fun(*args, **kwargs)
        try:
            parts = self.out_treedef.flatten_up_to(made)
        except TreeMismatchError as error:
            raise TreeMismatchError(
                f"what {self.name} returned does not have the structure of result_shape_dtypes",
                where=f"{error.where.replace('the tree', 'the result', 1)}; {user_line()}",
                fix=error.fix,
            ) from None
        return [
            self._checked(index, part, spec)
            for index, (part, spec) in enumerate(zip(parts, specs, strict=True))
        ]

    def _checked(self, index: int, part: Any, spec: _Spec) -> Any:
        if isinstance(part, TracerBase):
            return part  # of a function that is traced after all
        value = np.asarray(part)
        if value.shape != spec.shape or value.dtype.kind == "O":
            raise ShapeError(
                f"pure_callback({self.name}) returned {describe(value)}{self._at(index)}, expected "
                f"{describe(spec)}, as result_shape_dtypes says",
                where=user_line(),
                fix="correct the one or the other",
            )
        if value.dtype != spec.dtype:
            if hasattr(part, "dtype") and not np.can_cast(part.dtype, spec.dtype, "safe"):
                raise DtypeError(
                    f"pure_callback({self.name}) returned {describe(value)}{self._at(index)}, "
                    f"expected {describe(spec)}, as result_shape_dtypes says",
                    where=user_line(),
                    fix=f"convert it with .astype({str(spec.dtype)!r}), or correct "
                    "result_shape_dtypes",
                )
            value = value.astype(spec.dtype)
        return value if value is part else value[()]

    def _at(self, index: int) -> str:
        numbers = tree.unflatten(self.out_treedef, list(range(self.out_treedef.num_leaves)))
        path = tree.keystr(tree.flatten_with_path(numbers)[0][index][0])
        return f" at {path}" if path else ""

    def _many(self, leaves: list[Any], batched: list[bool], specs: list[_Spec]) -> list[Any]:
        size = count_examples(leaves, batched)
        full = [_Spec((size, *spec.shape), spec.dtype) for spec in specs]
        if self.method in ("expand_dims", "broadcast_all"):
            count = size if self.method == "broadcast_all" else 1
            moved = [
                full_batch(leaf, own, count) if own or _is_array(leaf) else leaf
                for leaf, own in zip(leaves, batched, strict=True)
            ]
            return self.call(moved, full)
        rows = [
            self.call(
                [leaf[i] if own else leaf for leaf, own in zip(leaves, batched, strict=True)], specs
            )
            for i in range(size)
        ]
        if not rows:
            return [np.zeros(spec.shape, spec.dtype) for spec in full]
        return [np.stack(column) for column in zip(*rows, strict=True)]


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, bool | int | float | complex) or hasattr(leaf, "dtype")
