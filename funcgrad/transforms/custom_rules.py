"""The rules that a user gave to a function: run with pytrees, checked, and one made of the other.

Forward and backward rule describe one linear map. Where the one that a transform asks for is
missing, the other is run with variables in the place of tangents (or cotangents), which a tape
records; the pullback of that tape is the transposed map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from funcgrad import tree
from funcgrad.core.level import Trace, TracerBase, traces_integers
from funcgrad.core.tracer import unwrap
from funcgrad.core.zero import dtype_of, fit, shape_of
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MissingRuleError,
    ShapeError,
    TracerConversionError,
    TracerLeakError,
    TreeMismatchError,
    describe,
    location,
    user_line,
)
from funcgrad.transforms.batching import shared
from funcgrad.transforms.calls import (
    Aval,
    Leaves,
    Linear,
    Rules,
    aval_of,
    closure_error,
    is_closed_over,
    is_floating,
    taped,
)
from funcgrad.transforms.flat import parameter_name

if TYPE_CHECKING:
    from funcgrad.transforms.custom import CustomFunction

__all__ = ["GivenRules", "filled"]


def filled(dots: Leaves, avals: Sequence[Aval | None]) -> Leaves:
    """Return tangents, or cotangents, with zeros for those that are None."""
    return [
        aval.zero() if dot is None and aval is not None else dot
        for dot, aval in zip(dots, avals, strict=True)
    ]


class GivenRules(Rules):
    """The rules that the user gave, for one call: with its structure, and what is static in it."""

    def __init__(self, custom: CustomFunction, args: tuple[Any, ...], treedef: Any, boxes: Leaves):
        self.custom = self.owner = custom
        self.name = custom.name
        self.treedef = treedef
        self.boxes = boxes
        self.count = len(args)
        self.nondiff = self._numbers()
        # Which argument each leaf belongs to, and how many leaves each has.
        self.sizes = [tree.structure(arg).num_leaves for arg in args]
        owner = [number for number, size in enumerate(self.sizes) for _ in range(size)]
        self.fixed = [number in self.nondiff for number in owner]

    def _numbers(self) -> list[int]:
        numbers = []
        for number in self.custom.nondiff_argnums:
            if not -self.count <= number < self.count:
                raise ArgumentError(
                    f"nondiff_argnums={number} of {self.name} is out of range: "
                    f"the call has {self.count} arguments",
                    where=user_line(),
                    fix="count from 0",
                )
            numbers.append(number % self.count)
        return sorted(numbers)

    def args(self, leaves: Leaves) -> tuple[Any, ...]:
        """Return the arguments of the function, made of `leaves`."""
        made: tuple[Any, ...] = tree.unflatten(
            self.treedef,
            [
                _assignable(leaf) if box is None else box._rebox(leaf)
                for leaf, box in zip(leaves, self.boxes, strict=True)
            ],
        )
        return made

    def _split(self, args: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the arguments that a rule gets first, and those that it differentiates."""
        return (
            tuple(args[number] for number in self.nondiff),
            tuple(arg for number, arg in enumerate(args) if number not in self.nondiff),
        )

    def argument(self, number: int) -> str:
        """Return how messages call an argument: by its name, if the signature gives one."""
        name = parameter_name(self.custom.fun, number)
        return f"argument {number}" if name is None else f"argument {name!r}"

    def run(self, leaves: Leaves) -> tuple[Leaves, Any]:
        """Call the function."""
        return tree.flatten(self.custom.fun(*self.args(leaves)))

    def vjp(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Linear]:
        """Run `fwd`, and return what calls `bwd`; or transpose the forward rule."""
        if "fwd" not in self.custom._rules:
            return self._transposed_jvp(trace, leaves, wanted)
        outs, treedef, residuals, avals = self._forward(leaves)
        for residual in tree.leaves(residuals):
            if is_closed_over(residual, trace):
                raise closure_error(residual, self.name, trace.origin)
        nondiff, _ = self._split(self.args(leaves))
        expected = _Expected(self, leaves)

        def pull(bars: Leaves) -> Leaves:
            return self._backward(nondiff, residuals, treedef, filled(bars, avals), expected)

        return outs, treedef, pull

    def _forward(self, leaves: Leaves) -> tuple[Leaves, Any, Any, list[Aval | None]]:
        fwd = self.custom._rules["fwd"]
        made = fwd(*self.args(leaves))
        if not isinstance(made, tuple) or len(made) != 2:
            raise TreeMismatchError(
                f"the forward rule of {self.name} must return a pair (out, residuals), "
                f"got {_shown(made)}",
                where=_place(fwd),
                fix="return out, residuals (None if there are none)",
            )
        outs, treedef = tree.flatten(made[0])
        return outs, treedef, made[1], [aval_of(out) for out in outs]

    def _backward(
        self,
        nondiff: tuple[Any, ...],
        residuals: Any,
        treedef: Any,
        bars: Leaves,
        expected: _Expected,
    ) -> Leaves:
        bwd = self.custom._rules["bwd"]
        try:
            made = bwd(*nondiff, residuals, tree.unflatten(treedef, bars))
        except TracerConversionError as error:
            raise TracerConversionError(
                f"the backward rule of {self.name} is traced, for forward mode or for a second "
                f"derivative, and cannot be: {error.what}",
                where=error.where,
                fix="write it with NumPy functions; or give a rule for forward mode too, above "
                f"which is @{self.name}.defjvp",
            ) from error
        except TracerLeakError as error:
            raise TracerLeakError(
                f"the backward rule of {self.name} uses a traced value that is neither an "
                f"argument nor a residual: {error.what}",
                where=error.where,
                fix=f"return it from the forward rule among the residuals, or pass it to "
                f"{self.name} as an argument",
            ) from error
        return expected.cotangents(made, bwd)

    def _transposed_jvp(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Linear]:
        avals = [aval_of(leaf) for leaf in leaves]
        kept: list[Any] = []

        def tangents_of(dots: Leaves) -> Leaves:
            outs, treedef, out_dots = self.jvp(trace, leaves, dots)
            kept[:] = outs, treedef
            return out_dots

        start = [
            aval.zero() if want and aval is not None else None
            for want, aval in zip(wanted, avals, strict=True)
        ]
        out_dots, pull = taped(tangents_of, start, trace, owner=self.custom)
        outs, treedef = kept
        for dot in out_dots:
            if is_closed_over(dot, trace):
                raise closure_error(dot, self.name, trace.origin)
        return outs, treedef, pull

    def jvp(self, trace: Trace, leaves: Leaves, dots: Leaves) -> tuple[Leaves, Any, Leaves]:
        """Run the forward rule; or transpose the backward rule."""
        rule = self.custom._rules.get("jvp")
        if rule is None:
            outs, treedef, push = self._transposed_vjp(trace, leaves)
            return outs, treedef, push(dots)
        if not self.custom._rules["symbolic_zeros"]:
            dots = filled(dots, [aval_of(leaf) for leaf in leaves])
        nondiff, primals = self._split(self.args(leaves))
        _, tangents = self._split(tree.unflatten(self.treedef, dots))
        made = rule(*nondiff, primals, tangents)
        if not isinstance(made, tuple) or len(made) != 2:
            raise TreeMismatchError(
                f"the forward rule of {self.name} must return a pair (out, out_dot), "
                f"got {_shown(made)}",
                where=_place(rule),
                fix="return out, out_dot",
            )
        outs, treedef = tree.flatten(made[0])
        return outs, treedef, _tangents(self, rule, made, outs, treedef)

    def linear(
        self, trace: Trace, leaves: Leaves, wanted: Sequence[bool]
    ) -> tuple[Leaves, Any, Linear]:
        """Return a pushforward: the forward rule, run again each time, or the other's tape."""
        if "jvp" not in self.custom._rules:
            return self._transposed_vjp(trace, leaves)
        avals = [aval_of(leaf) for leaf in leaves]
        start = [
            aval.zero() if want and aval is not None else None
            for want, aval in zip(wanted, avals, strict=True)
        ]
        outs, treedef, _ = self.jvp(trace, leaves, start)

        def push(dots: Leaves) -> Leaves:
            return self.jvp(trace, leaves, dots)[2]

        return outs, treedef, push

    def _transposed_vjp(self, trace: Trace, leaves: Leaves) -> tuple[Leaves, Any, Linear]:
        if "fwd" not in self.custom._rules:
            raise MissingRuleError(
                f"{self.custom.transform} function {self.name!r} has no derivative rule",
                where=f"{user_line()}, in {trace.origin}",
                fix=f"give it one: {self.name}.defvjp(fwd, bwd), or @{self.name}.defjvp above a "
                "rule for forward mode",
            )
        trace.transposing()
        outs, treedef, residuals, avals = self._forward(leaves)
        nondiff, _ = self._split(self.args(leaves))
        expected = _Expected(self, leaves)

        def pull(bars: Leaves) -> Leaves:
            pulled = self._backward(nondiff, residuals, treedef, bars, expected)
            return [
                None if bar is None or aval is None else fit(bar, aval.shape, aval.dtype)
                for bar, aval in zip(pulled, expected.avals, strict=True)
            ]

        # The cotangents are linear in `out_bar`, so their pullback is the pushforward, wherever.
        _, push = taped(pull, filled([None] * len(outs), avals), trace, owner=self.custom)
        return outs, treedef, push


class _Expected:
    """What the cotangents that a backward rule returns must look like."""

    def __init__(self, given: GivenRules, leaves: Leaves):
        self.given = given
        self.avals = [
            None if fixed else aval_of(leaf)
            for leaf, fixed in zip(leaves, given.fixed, strict=True)
        ]

    def cotangents(self, made: Any, bwd: Any) -> Leaves:
        """Return a cotangent for each leaf, checked; None where it is zero."""
        given = self.given
        numbers = [n for n in range(given.count) if n not in given.nondiff]
        if not isinstance(made, tuple | list):
            raise TreeMismatchError(
                f"the backward rule of {given.name} must return a tuple with one cotangent for "
                f"each argument, got {_shown(made)}",
                where=_place(bwd),
                fix="return (x_bar,)" if len(numbers) == 1 else "return (x_bar, y_bar, ...)",
            )
        if len(made) != len(numbers):
            names = ", ".join(given.argument(number) for number in numbers)
            raise TreeMismatchError(
                f"the backward rule of {given.name} returned {len(made)} cotangents, expected "
                f"{len(numbers)}: one for each argument ({names})",
                where=_place(bwd),
                fix="return one for each, None where it is zero",
            )
        bars: Leaves = [None] * len(self.avals)
        start = 0
        # The structures of the arguments, from that of the tuple of all of them.
        structures = tree.unflatten(given.treedef, list(range(len(self.avals))))
        for number, size in enumerate(given.sizes):
            if number not in given.nondiff:
                bar = made[numbers.index(number)]
                if bar is not None:
                    bars[start : start + size] = self._argument(
                        number, bar, structures[number], start, bwd
                    )
            start += size
        return bars

    def _argument(self, number: int, bar: Any, template: Any, start: int, bwd: Any) -> Leaves:
        given = self.given
        try:
            parts = tree.structure(template).flatten_up_to(bar)
        except TreeMismatchError as error:
            raise TreeMismatchError(
                f"the cotangent for {given.argument(number)} that the backward rule of "
                f"{given.name} returned does not have the structure of the argument",
                where=f"{error.where.replace('the tree', 'the cotangent', 1)}; {_place(bwd)}",
                fix=error.fix,
            ) from None
        checked: Leaves = []
        for index, part in enumerate(parts):
            aval = self.avals[start + index]
            if part is None or aval is None:  # of what is not floating nobody asks
                checked.append(None)
                continue
            if not _is_number(part):
                raise DtypeError(
                    f"the cotangent for {self._leaf(number, template, index)} that the backward "
                    f"rule of {given.name} returned must be an array or a number, "
                    f"got {_shown(part)}",
                    where=_place(bwd),
                    fix=f"return one of shape {aval.shape}, or None for zero",
                )
            if shape_of(part) != aval.shape:
                raise ShapeError(
                    f"the cotangent for {self._leaf(number, template, index)} that the backward "
                    f"rule of {given.name} returned has shape {shape_of(part)}, expected shape "
                    f"{aval.shape}, that of the argument",
                    where=_place(bwd),
                    fix="sum over the axes along which the argument was broadcast, or return None "
                    "for zero",
                )
            checked.append(unwrap(part))
        return checked

    def _leaf(self, number: int, template: Any, index: int) -> str:
        path = tree.keystr(tree.flatten_with_path(template)[0][index][0])
        return f"{self.given.argument(number)}{' at ' + path if path else ''}"


def _assignable(leaf: Any) -> Any:
    """Return a leaf as the function would get it without rules.

    Under `vmap` a plain array is a constant that is traced, so that what differs from example to
    example can index it.
    """
    return shared(leaf) if traces_integers() else leaf


def _is_number(value: Any) -> bool:
    return isinstance(value, float | complex | int | TracerBase) or (
        hasattr(value, "dtype") and hasattr(value, "shape") and dtype_of(value).kind in "fciub"
    )


def _tangents(given: GivenRules, rule: Any, made: Any, outs: Leaves, treedef: Any) -> Leaves:
    """Return the output tangents of a forward rule, checked; None where one is zero."""
    out, out_dot = made
    if out_dot is None:
        return [None] * len(outs)
    try:
        parts = treedef.flatten_up_to(out_dot)
    except TreeMismatchError as error:
        raise TreeMismatchError(
            f"the tangent that the forward rule of {given.name} returned does not have the "
            "structure of the output",
            where=f"{error.where.replace('the tree', 'the tangent', 1)}; {_place(rule)}",
            fix=error.fix,
        ) from None
    dots: Leaves = []
    for index, (part, value) in enumerate(zip(parts, outs, strict=True)):
        if part is None or not is_floating(value):
            dots.append(None)
            continue
        if not _is_number(part) or shape_of(part) != shape_of(value):
            path = tree.keystr(tree.flatten_with_path(out)[0][index][0])
            raise ShapeError(
                f"the tangent{' at ' + path if path else ''} that the forward rule of "
                f"{given.name} returned is {_shown(part)}, expected shape {shape_of(value)}, "
                "that of the output",
                where=_place(rule),
                fix="return a tangent of the shape of the output, or None for zero",
            )
        dots.append(part)
    return dots


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return describe(value)


def _place(rule: Any) -> str:
    code = getattr(rule, "__code__", None)
    if code is None:
        return user_line()
    return f"{rule.__name__}, defined at {location(code, code.co_firstlineno)}; {user_line()}"
