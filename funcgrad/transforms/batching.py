"""Batching: `vmap` makes a function of one example into a function of many at once.

A tracer of a `BatchTrace` stands for one example; its value holds all of them, along the first
axis. Every operation is carried out by the batching rule of its primitive, on all examples
together, in NumPy. What does not depend on an example is not traced at all, and computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.batch import align, loop
from funcgrad.core.boxed import Boxed
from funcgrad.core.constant import CONSTANT
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import Origin, Trace
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import shape_of
from funcgrad.errors import ArgumentError, FuncgradError, ShapeError, describe, user_line
from funcgrad.transforms.axis_names import check_name, named, without
from funcgrad.transforms.batch_axes import (
    check_axes,
    is_mappable,
    number_of_examples,
    spread_axes,
    with_axes,
)
from funcgrad.transforms.flat import Transformed, call_origin, lower
from funcgrad.transforms.tape import no_rule

__all__ = ["BatchTrace", "shared", "vmap"]


class BatchTrace(Trace):
    """Carries operations out on all examples at once."""

    __slots__ = ("axis_name", "size")
    lead = 1
    traces_all = True

    def __init__(self, origin: Origin, size: int, axis_name: Hashable = None):
        super().__init__(origin)
        self.size = size
        self.axis_name = axis_name

    def variable(self, value: Any) -> Tracer:
        """Make the tracer for one example of `value`, which has them along its first axis."""
        made = Tracer(self, unwrap(value), None)
        made._alias = assign.ARGUMENT
        return made

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Return the values of arguments, and which of them have examples."""
        if self.ended:
            self.escaped()
        values, batched = [], []
        for arg in args:
            own = type(arg) is Tracer and arg._trace is self
            values.append(arg._value if own else unwrap(arg))
            batched.append(own)
        return values, batched

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Compute an elementwise function of one argument."""
        if self.ended:
            self.escaped()
        return Tracer(self, fun(x._value), None)

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Compute an elementwise function of two arguments."""
        values, batched = self.split((x, y))

        def of_all(values: Any, batched: Any) -> Any:
            return fun(*align(values, batched))

        return Tracer(self, _carried_out(of_all, fun, values, batched, {}), None)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Carry out any other operation."""
        values, batched = self.split(args)
        if primitive.batch is None:
            raise no_rule(primitive, "batching rule", values, params)
        if self.axis_name is None:
            out = _carried_out(primitive.batch, primitive.bind, values, batched, params)
        else:
            with without(self):
                out = _carried_out(primitive.batch, primitive.bind, values, batched, params)
        made: Any
        if type(out) is tuple:
            made = tuple([self._wrap(part, primitive) for part in out])
        else:
            made = self._wrap(out, primitive)
        if primitive.may_alias:
            assign.link(made, args[0], params)
        return made

    def _wrap(self, out: Any, primitive: Primitive) -> Tracer:
        if shape_of(out)[:1] != (self.size,):
            raise ShapeError(
                f"the batching rule of {primitive.name} returned {describe(out)}, expected "
                f"{self.size} examples along its first axis",
                where=f"{user_line()}, in {self.origin}",
                fix="return the results of all examples, stacked along a new first axis",
            )
        return Tracer(self, out, None)


def _carried_out(
    of_all: Callable[..., Any],
    of_one: Callable[..., Any],
    values: list[Any],
    batched: list[bool],
    params: dict[str, Any],
) -> Any:
    """Carry an operation out on all examples at once, or one by one where that is refused.

    What NumPy refuses of one example it then refuses in its own words, about that example.
    """
    try:
        return of_all(values, batched, **params)
    except FuncgradError:
        raise
    except Exception:
        pass  # and not from here, so that what is raised next has no other error behind it
    return loop(of_one, values, batched, params)


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
) -> Callable[..., Any]:
    """Make a function of one example into a function of many at once.

    Parameters
    ----------
    fun : callable
        Function of pytrees of arrays, returning a pytree of arrays, written for one example.
    in_axes : int, None, or tuple or list of pytrees of them
        Along which axis of each positional argument the examples are: one for all arguments, or one
        entry for each. An entry may be a pytree that begins like the argument does, down to
        where one axis counts for all that is below. Negative axes count from the last. None means
        that the argument is the same for all examples. Arguments given by keyword have the
        examples along axis 0.
    out_axes : int, None, or pytree of them
        Along which axis of each output the examples shall be. None is for an output that is the
        same for all of them, and returns it once.
    axis_name : hashable, optional
        A name for the axis of the examples, by which `psum` and the like, called in `fun`, refer to
        all of them. In a vmap within another, a name that both have means the inner one.
    axis_size : int, optional
        The number of examples, for functions of which no argument has an axis of them.

    Returns
    -------
    callable
        Takes the arguments of `fun`, each with one more axis where `in_axes` says so, and returns
        what `fun` returns for each example, stacked. Arrays of random keys count as arrays. Leaves
        that are neither arrays nor numbers (strings, functions, None) pass through untouched.

    Raises
    ------
    ShapeError
        The arguments disagree about the number of examples, one has no such axis, or `fun` asks
        for something whose shape depends on the example.
    TreeMismatchError
        `in_axes` or `out_axes` does not fit the arguments or the outputs.
    ArgumentError
        Nothing says how many examples there are.

    Notes
    -----
    The result is that of a loop over the examples, up to rounding in the last places where NumPy's
    batched routine rounds otherwise. Inside, ``if x > 0`` is an error, since each example may say
    something else: use `numpy.where`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.vmap(np.dot)(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 1.0]]))
    array([3., 4.])

    The gradient for each example:

    >>> def loss(w, x, y):
    ...     return (w @ x - y) ** 2
    >>> w, xs, ys = np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2)
    >>> fg.vmap(fg.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    array([[2., 0.],
           [0., 4.]])
    """
    return _Vmap(vmap, fun, in_axes, out_axes, axis_name, axis_size)


class _Vmap(Transformed):
    transform = "vmap"

    def __init__(
        self,
        make: Callable[..., Any],
        fun: Callable[..., Any],
        in_axes: Any,
        out_axes: Any,
        axis_name: Hashable,
        axis_size: int | None,
    ):
        options = {
            "in_axes": in_axes,
            "out_axes": out_axes,
            "axis_name": axis_name,
            "axis_size": axis_size,
        }
        super().__init__(make, fun, options)
        check_name(axis_name)
        if axis_size is not None and (
            isinstance(axis_size, bool)
            or not isinstance(axis_size, int | np.integer)
            or axis_size < 0
        ):
            raise ArgumentError(
                f"axis_size of vmap must be a number of examples, got {describe(axis_size)}",
                where=user_line(),
                fix="write axis_size=3",
            )
        check_axes(in_axes, "in_axes")
        check_axes(out_axes, "out_axes")
        if not (in_axes is None or isinstance(in_axes, int | np.integer | tuple | list)):
            raise ArgumentError(
                f"in_axes of vmap must be an int, None, or a tuple with an entry for each "
                f"positional argument, got {describe(in_axes)}",
                where=user_line(),
                fix="write in_axes=(axes,) if the function has one argument"
                if isinstance(in_axes, dict)
                else "write in_axes=0, or in_axes=(0, None) for two arguments",
            )
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.axis_name = axis_name
        self.axis_size = axis_size

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on all examples."""
        origin = call_origin("vmap", self.fun)
        leaves, treedef, axes = with_axes(args, kwargs, self.in_axes, origin)
        size = number_of_examples(leaves, axes, self.axis_size, (args, kwargs), origin)
        with BatchTrace(origin, size, self.axis_name) as trace, named(trace):
            traced = [
                shared(leaf) if axis is None else _example(leaf, axis, trace)
                for leaf, axis in zip(leaves, axes, strict=True)
            ]
            call_args, call_kwargs = tree.unflatten(treedef, traced)
            out = self.fun(*call_args, **call_kwargs)
            return _collect(out, self.out_axes, trace, set(map(id, leaves)))


def shared(leaf: Any) -> Any:
    """Return an argument that is the same for all examples.

    A plain array as a constant that is traced, so that it can be indexed by what is not the same.
    """
    if type(leaf) is not np.ndarray:
        return leaf
    made = Tracer(CONSTANT, leaf, None)
    made._alias = assign.ARGUMENT
    return made


def _example(leaf: Any, axis: int, trace: BatchTrace) -> Any:
    """Return what stands for one example of an argument."""
    if isinstance(leaf, Boxed):
        return leaf._rebox(_example(leaf._unbox(), axis, trace))
    return trace.variable(_to_front(leaf, axis))


def _to_front(x: Any, axis: int) -> Any:
    if not axis:
        return x
    # A copy: one example must lie in memory as it would by itself, so that the same operations give
    # views of it (which assignment asks about), and is sooner read.
    return np.copy(np.moveaxis(x, axis, 0), order="C")


def _collect(out: Any, out_axes: Any, trace: BatchTrace, seen: set[int]) -> Any:
    """Return the outputs with their examples along `out_axes`.

    `seen` has the ids of arrays that are the caller's, or in the result already.
    """
    leaves, treedef = tree.flatten(out)
    axes = spread_axes(out_axes, out, "out_axes", "the output", trace.origin)

    def place(position: int) -> str:
        path = tree.keystr(tree.flatten_with_path(out)[0][position][0])
        return f"the output{' at ' + path if path else ''} of {trace.origin}"

    made = [
        _owned(_collect_leaf(leaf, axis, trace, partial(place, position)), seen)
        for position, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
    ]
    return tree.unflatten(treedef, made)


def _collect_leaf(
    leaf: Any, axis: int | None, trace: BatchTrace, place: Callable[[], str], behind: int = 0
) -> Any:
    """Return one output with its examples along `axis`, not counting the `behind` last axes."""
    if isinstance(leaf, Boxed):
        content = leaf._unbox()
        behind = len(shape_of(content)) - len(leaf.shape)
        made = _collect_leaf(content, axis, trace, place, behind)
        return leaf if made is content else leaf._rebox(made)
    batched = type(leaf) is Tracer and leaf._trace.level == trace.level
    value = lower(leaf, trace)
    if axis is None:
        if batched:
            raise ShapeError(
                "out_axes of vmap is None for an output that differs from example to example: "
                f"{describe(leaf)}",
                where=place(),
                fix="give an axis, as out_axes=0 does; or return what is the same for all, such as "
                'the mean over the examples: pmean(y, "i") under vmap(f, axis_name="i")',
            )
        return value
    if not batched:
        if not is_mappable(value):
            return value
        value = np.copy(np.broadcast_to(value, (trace.size, *shape_of(value))))
    ndim = len(shape_of(value)) - behind
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"out_axes of vmap asks for axis {axis} of an output with {ndim} axes",
            where=place(),
            fix=f"give an axis from {-ndim} to {ndim - 1}",
        )
    axis = normalize_axis_index(axis, ndim)
    if axis:
        value = np.moveaxis(value, 0, axis)
    return value


def _owned(value: Any, seen: set[int]) -> Any:
    """Return an array that shares memory with no argument and no other output."""
    if isinstance(value, np.ndarray):
        if value.base is not None or not value.flags.writeable or id(value) in seen:
            value = value.copy()
        seen.add(id(value))
    return value
