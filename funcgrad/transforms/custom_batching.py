"""`custom_vmap`: a function that says itself what it does to many examples at once.

The batching rule is ordinary code on whole arrays of examples. A derivative taken outside of `vmap`
differentiates that code. One taken inside, for each example, sees the function first: its
derivative is then a function with a batching rule too, namely the derivative of the rule. So
there are three functions of flat leaves here, of which two are made from another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from funcgrad import tree
from funcgrad.core.batch import count_examples, full_batch
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import Trace, is_batched, top_trace
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import shape_of
from funcgrad.errors import (
    ArgumentError,
    MissingRuleError,
    ShapeError,
    TreeMismatchError,
    describe,
    user_line,
)
from funcgrad.transforms.axis_names import without
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.calls import (
    Leaves,
    Linear,
    Rules,
    aval_of,
    call,
    is_floating,
    pushed,
    taped,
)
from funcgrad.transforms.custom import positional
from funcgrad.transforms.flat import Transformed
from funcgrad.transforms.stripping import StripTrace

__all__ = ["custom_vmap"]


def custom_vmap(fun: Callable[..., Any]) -> Any:
    """Make a function that does under `vmap` what you say.

    Parameters
    ----------
    fun : callable
        Function of pytrees, for one example. It is what runs without `vmap`.

    Returns
    -------
    callable
        Its decorator ``def_vmap`` takes ``rule(axis_size, in_batched, *args) -> out, out_batched``.
        `in_batched` has a pytree of bool for each argument: true where a leaf has the examples
        along its first axis. `out_batched` says the same of `out`.

    Raises
    ------
    MissingRuleError
        `vmap` reaches it, and it has no rule.
    ShapeError, TreeMismatchError
        The rule returns something else than it should.

    Notes
    -----
    Derivatives are those of `fun` and of the rule, which must be differentiable code. For rules of
    derivatives put `custom_vjp` or `custom_jvp` inside.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.custom_vmap
    ... def apply(a, x):
    ...     return a @ x
    >>> @apply.def_vmap
    ... def apply_rule(axis_size, in_batched, a, x):
    ...     a_batched, x_batched = in_batched
    ...     print("one product for", axis_size, "examples")
    ...     return (x @ a.T if not a_batched else np.einsum("bij,bj->bi", a, x)), True
    >>> fg.vmap(apply, in_axes=(None, 0))(2.0 * np.eye(2), np.ones((3, 2)))
    one product for 3 examples
    array([[2., 2.],
           [2., 2.],
           [2., 2.]])
    """
    return _CustomVmap(fun)


class _CustomVmap(Transformed):
    transform = "custom_vmap"

    def __init__(self, fun: Callable[..., Any], rule: Any = None):
        self._given: dict[str, Any] = {"rule": rule}
        super().__init__(_CustomVmap, fun, self._given)
        self.name: str = getattr(fun, "__name__", type(fun).__name__)

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule for many examples at once; a decorator."""
        if not callable(rule):
            raise ArgumentError(
                f"the batching rule of {self.name} must be a function, got {describe(rule)}",
                where=user_line(),
                fix="write @f.def_vmap above the rule",
            )
        self._given["rule"] = rule
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        args = positional(self.fun, self.name, args, kwargs)
        leaves, treedef = tree.flatten(args)
        boxes = [leaf if isinstance(leaf, Boxed) else None for leaf in leaves]
        leaves = [leaf._unbox() if isinstance(leaf, Boxed) else leaf for leaf in leaves]
        trace = top_trace(leaves)
        recorded = trace is not None and trace.records
        if not recorded and not any(map(is_batched, leaves)):
            return self.fun(*args)
        outs, out_treedef = _bind(_Given(self, treedef, boxes), leaves)
        return tree.unflatten(out_treedef, outs)


class _Flat:
    """A function of flat leaves that knows what to do with many examples."""

    name: str

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Return the leaves and the structure of the output."""
        raise NotImplementedError

    def many(self, leaves: Leaves, batched: Sequence[bool]) -> tuple[Leaves, Any, list[bool]]:
        """Do it for all examples; return also which of the outputs have them."""
        raise NotImplementedError


def _bind(flat: _Flat, leaves: Leaves) -> tuple[Leaves, Any]:
    """Call a function at the highest level among `leaves`."""
    trace = top_trace(leaves)
    if trace is not None and trace.records:
        made: tuple[Leaves, Any]
        made = trace.called(flat.name, flat.run, partial(_bind, flat), leaves)
        return made
    if isinstance(trace, BatchTrace):
        values, batched = trace.split(leaves)
        with without(trace):  # to the rule, the examples lie along an axis of its arrays
            outs, treedef, out_batched = flat.many(values, batched)
        return [
            Tracer(trace, out, None) if own else out
            for out, own in zip(outs, out_batched, strict=True)
        ], treedef
    if isinstance(trace, StripTrace):
        outs, treedef = _bind(flat, trace.values(leaves))
        return list(map(trace.wrap, outs)), treedef
    if any(map(is_batched, leaves)):
        return call(_Derivatives(flat, len(leaves)), leaves)
    return flat.run(leaves)


class _Given(_Flat):
    """The user's function and rule, for one call: with its structure."""

    def __init__(self, custom: _CustomVmap, treedef: Any, boxes: Leaves):
        self.custom = custom
        self.name = custom.name
        self.treedef = treedef
        self.boxes = boxes

    def _args(self, leaves: Leaves) -> Any:
        args: Any = tree.unflatten(
            self.treedef,
            [
                leaf if box is None else box._rebox(leaf)
                for leaf, box in zip(leaves, self.boxes, strict=True)
            ],
        )
        return args

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Call the function."""
        return tree.flatten(self.custom.fun(*self._args(leaves)))

    def many(self, leaves: Leaves, batched: Sequence[bool]) -> tuple[Leaves, Any, list[bool]]:
        """Call the rule."""
        rule = self.custom._given["rule"]
        if rule is None:
            raise MissingRuleError(
                f"custom_vmap function {self.name!r} has no batching rule",
                where=user_line(),
                fix=f"give it one: @{self.name}.def_vmap above "
                "rule(axis_size, in_batched, *args) -> out, out_batched",
            )
        size = count_examples(leaves, batched)
        made = rule(size, tree.unflatten(self.treedef, list(batched)), *self._args(leaves))
        if not isinstance(made, tuple) or len(made) != 2:
            raise TreeMismatchError(
                f"the batching rule of {self.name} must return a pair (out, out_batched), "
                f"got {describe(made)}",
                where=user_line(),
                fix="return out, True if the examples are along the first axis of the output",
            )
        out, flags = made
        outs, treedef = tree.flatten(out)
        if isinstance(flags, bool):
            own = [flags] * len(outs)
        else:
            try:
                own = [bool(flag) for flag in treedef.flatten_up_to(flags)]
            except TreeMismatchError as error:
                raise TreeMismatchError(
                    f"out_batched, which the batching rule of {self.name} returned, does not have "
                    "the structure of the output",
                    where=f"{error.where.replace('the tree', 'out_batched', 1)}; {user_line()}",
                    fix="give a bool for each leaf of the output, or one for all",
                ) from None
        for index, (leaf, flag) in enumerate(zip(outs, own, strict=True)):
            if flag and shape_of(leaf)[:1] != (size,):
                path = tree.keystr(tree.flatten_with_path(out)[0][index][0])
                raise ShapeError(
                    f"the output{' at ' + path if path else ''} of the batching rule of "
                    f"{self.name} has shape {shape_of(leaf)}, expected {size} examples along its "
                    "first axis",
                    where=user_line(),
                    fix="return it with the examples first, or False for it in out_batched",
                )
        return outs, treedef, own


class _Pushed(_Flat):
    """The derivative of a function in forward mode: of primals, and of the tangents that exist."""

    def __init__(self, inner: _Flat, present: Sequence[bool], trace: Trace):
        self.name = inner.name
        self.inner = inner
        self.present = present
        self.origin = trace.origin

    def _dots(self, leaves: Leaves) -> tuple[Leaves, Leaves]:
        count = len(self.present)
        dots = iter(leaves[count:])
        return leaves[:count], [next(dots) if there else None for there in self.present]

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Return the outputs, followed by their tangents."""
        return self._push(self.inner.run, *self._dots(leaves))

    def many(self, leaves: Leaves, batched: Sequence[bool]) -> tuple[Leaves, Any, list[bool]]:
        """Push the tangents of all examples through the rule."""
        size = count_examples(leaves, batched)
        flags, dot_flags = self._dots(list(batched))
        primals, dots = self._dots(leaves)
        own = [bool(flag or there) for flag, there in zip(flags, self.present, strict=True)]
        primals = _all_full(primals, flags, own, size)
        dots = [
            None if dot is None else full_batch(dot, flag, size)
            for dot, flag in zip(dots, dot_flags, strict=True)
        ]
        outs, treedef = self._push(_Full(self.inner, own, size), primals, dots)
        return outs, treedef, [is_floating(out) for out in outs]

    def _push(self, fun: Any, primals: Leaves, dots: Leaves) -> tuple[Leaves, Any]:
        kept: list[Any] = []

        def outputs(inputs: Leaves) -> Leaves:
            outs: Leaves
            outs, treedef = fun(inputs)
            kept.append(treedef)
            return outs

        outs, out_dots = pushed(outputs, primals, dots, self.origin)
        for place, (out, dot) in enumerate(zip(outs, out_dots, strict=True)):
            aval = aval_of(out)
            if dot is None and aval is not None:
                out_dots[place] = aval.zero()
        return [*outs, *out_dots], kept[0]


class _Pulled(_Flat):
    """The derivative of a function in reverse mode: of primals, and of cotangents that exist."""

    def __init__(self, inner: _Flat, wanted: Sequence[bool], present: Sequence[bool], trace: Trace):
        self.name = inner.name
        self.inner = inner
        self.wanted = wanted
        self.present = present
        self.trace = trace

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Return a cotangent for each leaf of the function; None where none is wanted."""
        count = len(self.wanted)
        return self._pull(self.inner.run, leaves[:count], leaves[count:])

    def many(self, leaves: Leaves, batched: Sequence[bool]) -> tuple[Leaves, Any, list[bool]]:
        """Pull the cotangents of all examples back through the rule."""
        count, size = len(self.wanted), count_examples(leaves, batched)
        # A leaf that all examples share has another cotangent for each of them.
        own = [flag or want for flag, want in zip(batched, self.wanted, strict=False)]
        primals = _all_full(leaves[:count], batched[:count], own, size)
        bars = [
            full_batch(bar, flag, size)
            for bar, flag in zip(leaves[count:], batched[count:], strict=True)
        ]
        outs, treedef = self._pull(_Full(self.inner, own, size), primals, bars)
        return outs, treedef, [out is not None for out in outs]

    def _pull(self, fun: Any, primals: Leaves, bars: Leaves) -> tuple[Leaves, Any]:
        def outputs(inputs: Leaves) -> Leaves:
            filled = [primal if x is None else x for primal, x in zip(primals, inputs, strict=True)]
            outs: Leaves = fun(filled)[0]
            return outs

        inputs = [x if want else None for x, want in zip(primals, self.wanted, strict=True)]
        _, pull = taped(outputs, inputs, self.trace, at_once=True)
        given = iter(bars)
        pulled = pull([next(given) if there else None for there in self.present])
        for place, (x, want) in enumerate(zip(primals, self.wanted, strict=True)):
            aval = aval_of(x)
            if pulled[place] is None and want and aval is not None:
                pulled[place] = aval.zero()
        return pulled, None


def _all_full(leaves: Leaves, batched: Sequence[bool], wanted: Sequence[bool], size: int) -> Leaves:
    """Return `leaves` with the examples along the first axis wherever that is wanted."""
    return [
        full_batch(leaf, flag, size) if want else leaf
        for leaf, flag, want in zip(leaves, batched, wanted, strict=True)
    ]


class _Full:
    """A function on many examples, all of whose outputs have them."""

    def __init__(self, flat: _Flat, batched: Sequence[bool], size: int):
        self.flat = flat
        self.batched = batched
        self.size = size

    def __call__(self, leaves: Leaves) -> tuple[Leaves, Any]:
        outs, treedef, own = self.flat.many(leaves, self.batched)
        return [
            full_batch(out, flag, self.size) if is_floating(out) else out
            for out, flag in zip(outs, own, strict=True)
        ], treedef


class _Derivatives(Rules):
    """What a transform of derivatives inside of `vmap` needs: functions with rules, again."""

    def __init__(self, flat: _Flat, count: int):
        self.name = flat.name
        self.flat = flat
        self.fixed = [False] * count

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Call the function at a lower level."""
        return _bind(self.flat, leaves)

    def jvp(self, trace: Trace, leaves: Leaves, dots: Leaves) -> tuple[Leaves, Any, Leaves]:
        """Call the function and its derivative at a lower level."""
        present = [dot is not None for dot in dots]
        made, treedef = _bind(
            _Pushed(self.flat, present, trace), [*leaves, *(dot for dot in dots if dot is not None)]
        )
        count = len(made) // 2
        return made[:count], treedef, made[count:]

    def linear(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Linear]:
        """Call the derivative whenever tangents come."""
        outs, treedef = self.run(leaves)

        def push(dots: Leaves) -> Leaves:
            return self.jvp(trace, leaves, dots)[2]

        return outs, treedef, push

    def vjp(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Linear]:
        """Call the derivative when the cotangents come."""
        outs, treedef = self.run(leaves)

        def pull(bars: Leaves) -> Leaves:
            present = [bar is not None for bar in bars]
            made, _ = _bind(
                _Pulled(self.flat, wanted, present, trace),
                [*leaves, *(bar for bar in bars if bar is not None)],
            )
            return made

        return outs, treedef, pull
