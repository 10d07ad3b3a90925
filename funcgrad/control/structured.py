"""Loops in programs of `jit`: one equation for all the steps, where that can be.

While `jit` records, a loop need not be unrolled: a step is recorded by itself, and what is written
down is that it is repeated. Where that cannot be (a step that does something else if its number is
0, a carry whose structure changes) there is nothing here, and the loop runs as it does without
`jit`, with its own errors.

A first step may differ from the others in that it is given a number of Python, or an integer, where
they are given what it returned. Then it is made by itself, and the rest is the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from funcgrad import tree
from funcgrad.control.closures import rebound
from funcgrad.control.rows import RowsTrace
from funcgrad.core.boxed import Boxed
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import is_batched, is_differentiated, traces_in_progress
from funcgrad.core.watching import watcher
from funcgrad.core.zero import shape_of
from funcgrad.staging.bodies import (
    Body,
    BodyTrace,
    Recorded,
    Unstructured,
    example_of,
    kind_of,
    record_body,
)
from funcgrad.staging.branches import Branches, BranchRules
from funcgrad.staging.loop_rules import LoopRules, laid_out
from funcgrad.staging.loops import Loop
from funcgrad.staging.splits import of_body, with_arguments
from funcgrad.staging.strict import StrictTrace, layout_in_memory
from funcgrad.staging.trace import is_array_like
from funcgrad.transforms.axis_names import axes_in_scope
from funcgrad.transforms.batching import BatchTrace
from funcgrad.transforms.calls import call
from funcgrad.transforms.forward import ForwardTrace
from funcgrad.transforms.stripping import StripTrace
from funcgrad.transforms.tape import ReverseTrace

__all__ = [
    "FEW",
    "Leaves",
    "branched",
    "is_recorded_here",
    "looped",
    "recorder",
    "repeated",
    "scanned",
]

# Loops of fewer steps are unrolled.
FEW = 4
_KNOWN = (StrictTrace, ReverseTrace, ForwardTrace, BatchTrace, StripTrace)


def recorder() -> StrictTrace | None:
    """Return the trace that records for `jit`, if loops have rules for all transforms in it."""
    found = None
    for trace in traces_in_progress():
        if isinstance(trace, StrictTrace):
            found = trace
        elif found is not None and (not isinstance(trace, _KNOWN) or isinstance(trace, RowsTrace)):
            return None
    # What is not finite is repaired where each step is seen by itself.
    if found is None or found.careful or axes_in_scope() or watcher() is not None:
        return None
    return found


def is_recorded_here(length: int) -> bool:
    """Tell whether a loop of so many steps can be one equation of a program here."""
    return length >= FEW and recorder() is not None


class Leaves:
    """The leaves of a pytree, as the arrays that they are made of, beside what is static."""

    def __init__(self, leaves: Sequence[Any], treedef: Any):
        self.treedef = treedef
        self.leaves = list(leaves)
        self.contents = []
        self.places = []
        for place, leaf in enumerate(leaves):
            content = leaf._unbox() if isinstance(leaf, Boxed) else leaf
            if is_array_like(content):
                self.places.append(place)
                self.contents.append(content)

    def filled(self, contents: Sequence[Any]) -> list[Any]:
        """Return leaves like these, of other contents."""
        leaves = list(self.leaves)
        for place, content in zip(self.places, contents, strict=True):
            before = leaves[place]
            leaves[place] = before._rebox(content) if isinstance(before, Boxed) else content
        return leaves

    def tree(self, contents: Sequence[Any]) -> Any:
        """Return a pytree like this, of other contents."""
        return tree.unflatten(self.treedef, self.filled(contents))

    def contents_of(self, made: Any) -> list[Any]:
        """Return the contents of a pytree, which has to be like this."""
        leaves, treedef = tree.flatten(made)
        if treedef != self.treedef:
            raise Unstructured
        other = Leaves(leaves, treedef)
        if other.places != self.places:
            raise Unstructured
        for place, (mine, leaf) in enumerate(zip(self.leaves, leaves, strict=True)):
            if type(mine) is not type(leaf) and (
                isinstance(mine, Boxed) or isinstance(leaf, Boxed)
            ):
                raise Unstructured
            if place not in set(self.places) and not (mine is leaf or tree.same(mine, leaf)):
                raise Unstructured
        return other.contents


# A step: of the carry, the number, and the row; returns the carry and the output.
Step = Callable[[Any, Any, Any], tuple[Any, Any]]


def repeated(
    name: str,
    step: Step,
    carry: Leaves,
    rows: Leaves,
    *,
    length: int,
    start: int | None = None,
    reverse: bool = False,
) -> tuple[list[Any], Any] | None:
    """Make a loop one equation.

    Parameters
    ----------
    name : str
    step : callable
    carry : Leaves
        What it starts from.
    rows : Leaves
        The arrays to go over.
    length : int
        How many rows they have.
    start : int, optional
        The number of row 0, if a step is given that.
    reverse : bool
        Start from the last.

    Returns
    -------
    carry : list
        Its leaves.
    ys : pytree
        The outputs of all steps, stacked.

    None in the place of both if the first step has to be made by itself.

    Raises
    ------
    Unstructured
        The loop cannot be one equation.
    """
    trace = recorder()
    if trace is None:
        raise Unstructured
    outs: list[Leaves] = []
    count = len(carry.contents)

    def flat(variables: list[Any], own: BodyTrace) -> list[Any]:
        number = [] if start is None else [variables[count]]
        given = variables[count + len(number) :]
        made, y = step(
            carry.tree(variables[:count]), number[0] if number else None, rows.tree(given)
        )
        found = Leaves(*tree.flatten(y))
        if len(found.places) != len(found.leaves):
            raise Unstructured
        outs[:] = [found]
        return [*carry.contents_of(made), *found.contents]

    first = length - 1 if reverse else 0
    examples = [example_of(content) for content in carry.contents]
    others = [] if start is None else [start + first]
    others += [example_of(content)[first] for content in rows.contents]
    made = record_body(flat, [*examples, *others], trace, name)
    results = made.body.outputs[:count]
    before = made.body.inputs[len(made.captured) :][:count]
    if any(kind_of(out)[0] != var.shape for out, var in zip(results, before, strict=True)):
        raise Unstructured
    if any(kind_of(out) != kind_of(var) for out, var in zip(results, before, strict=True)):
        return None
    again = [_in_the_order_of(x, out) for x, out in zip(examples, made.values, strict=False)]
    if any(x is not y for x, y in zip(again, examples, strict=True)):
        made = record_body(flat, [*again, *others], trace, name)
        if [kind_of(out) for out in made.body.outputs[:count]] != list(map(kind_of, before)):
            raise Unstructured
    loop = Loop(
        name,
        made.body,
        constants=len(made.captured),
        carries=count,
        rows=len(rows.contents),
        length=length,
        start=start,
        reverse=reverse,
    )
    leaves = laid_out(loop, [*made.captured, *carry.contents, *rows.contents])
    found, _ = call(LoopRules(loop), leaves)
    return carry.filled(found[:count]), outs[0].tree(found[count:])


def _in_the_order_of(example: Any, out: Any) -> Any:
    """Return a value as it is, or in the order in memory that another has."""
    if type(example) is not np.ndarray or type(out) is not np.ndarray or not example.shape:
        return example
    want: Any = layout_in_memory(out)
    if want is None:  # a view with gaps, which is made one without when it is carried on
        want = "F" if out.strides[0] < out.strides[-1] else "C"
    if want == layout_in_memory(example) or want not in ("C", "F"):
        return example
    return np.copy(example, order=want)


def looped(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Leaves
) -> list[Any] | None:
    """Make a loop that ends when a condition says so one equation.

    Parameters
    ----------
    cond_fun, body_fun : callable
        Functions of the carry, a pytree.
    carry : Leaves
        What it starts from.

    Returns
    -------
    list or None
        The leaves of the last carry; None if the first step has to be made by itself.

    Raises
    ------
    Unstructured
        The loop cannot be one equation.
    """
    try:
        return _looped(cond_fun, body_fun, carry)
    except Exception:
        raise Unstructured from None


def _looped(cond_fun: Any, body_fun: Any, carry: Leaves) -> list[Any] | None:
    trace = recorder()
    if trace is None:
        raise Unstructured
    examples = [example_of(content) for content in carry.contents]

    def step(variables: list[Any], own: BodyTrace) -> list[Any]:
        return carry.contents_of(body_fun(carry.tree(variables)))

    def test(variables: list[Any], own: BodyTrace) -> list[Any]:
        said = cond_fun(carry.tree(variables))
        if shape_of(said) != () or not is_array_like(said):
            raise Unstructured
        return [said]

    made = record_body(step, examples, trace, "while_loop")
    before = made.body.inputs[len(made.captured) :]
    if any(
        kind_of(out)[0] != var.shape for out, var in zip(made.body.outputs, before, strict=True)
    ):
        raise Unstructured
    if any(
        kind_of(out) != kind_of(var) for out, var in zip(made.body.outputs, before, strict=True)
    ):
        return None
    again = [_in_the_order_of(x, out) for x, out in zip(examples, made.values, strict=True)]
    if any(x is not y for x, y in zip(again, examples, strict=True)):
        made = record_body(step, again, trace, "while_loop")
        if list(map(kind_of, made.body.outputs)) != list(map(kind_of, before)):
            raise Unstructured
    tested = record_body(test, again, trace, "while_loop")
    first, second = len(made.captured), len(tested.captured)
    of_test = tested.body.inputs[:second]
    of_body = made.body.inputs[:first]
    loop = Loop(
        "while_loop",
        with_arguments(made.body, first, of_test),
        constants=first + second,
        carries=len(examples),
        test=with_arguments(tested.body, 0, of_body),
    )
    leaves = laid_out(loop, [*made.captured, *tested.captured, *carry.contents])
    found, _ = call(LoopRules(loop), leaves)
    return carry.filled(found)


def branched(
    name: str,
    chosen: Any,
    branches: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    *,
    is_truth: bool,
) -> Any:
    """Make branches one equation.

    Parameters
    ----------
    name : str
    chosen : Tracer
        A truth value, or a number.
    branches : sequence of callable
    operands : tuple
        Their arguments.
    is_truth : bool

    Returns
    -------
    pytree

    Raises
    ------
    Unstructured
        The branches cannot be one equation: one raises, or they return other dtypes.
    """
    try:
        return _branched(name, chosen, branches, operands, is_truth)
    except Exception:
        raise Unstructured from None


def _branched(
    name: str, chosen: Any, branches: Sequence[Any], operands: tuple[Any, ...], is_truth: bool
) -> Any:
    trace = recorder()
    if trace is None or is_differentiated(chosen) or is_batched(chosen):
        raise Unstructured
    given = Leaves(*tree.flatten(operands))
    outs: list[Leaves] = []
    made: list[Recorded] = []
    for branch in branches:

        def run(variables: list[Any], own: BodyTrace, branch: Any = branch) -> list[Any]:
            inner = rebound(branch, own.adopted)
            found = inner(*given.tree([own.adopted(content) for content in given.contents]))
            if outs:
                return outs[0].contents_of(found)
            outs.append(Leaves(*tree.flatten(found)))
            return outs[0].contents

        before = len(trace.rows)
        made.append(record_body(run, [], trace, getattr(branch, "__name__", name)))
        if any(not isinstance(row[0], Elementwise) for row in trace.rows[before:]):
            raise Unstructured  # what is done with values from elsewhere would be done in any case
    kinds = [list(map(kind_of, branch.body.outputs)) for branch in made]
    if any(other != kinds[0] for other in kinds):
        raise Unstructured
    tracers: dict[Any, Any] = {}
    for branch in made:
        tracers.update(zip(branch.keys, branch.captured, strict=True))
    bodies = [with_inputs_of(branch, list(tracers), made) for branch in made]
    operation = Branches(name, bodies, is_truth=is_truth)
    leaves = [chosen, *tracers.values()]
    found, _ = call(BranchRules(operation), leaves)
    return outs[0].tree(found)


def with_inputs_of(branch: Recorded, keys: Sequence[Any], all_of_them: Sequence[Recorded]) -> Body:
    """Return the body of a branch with the inputs of all branches, known by their keys."""
    program = branch.body.program
    mine = dict(zip(branch.keys, branch.body.inputs, strict=True))
    layouts = dict(branch.body.layouts)
    number = program.count
    arguments = []
    for key in keys:
        var = mine.get(key)
        if var is None:
            like, body = next(
                (dict(zip(other.keys, other.body.inputs, strict=True))[key], other.body)
                for other in all_of_them
                if key in other.keys
            )
            var = attrs.evolve(like, number=number)
            if like.number in body.layouts:
                layouts[number] = body.layouts[like.number]
            number += 1
        arguments.append(var)
    body = Body(program, layouts, branch.body.aliases)
    return of_body(
        body,
        arguments,
        program.equations,
        program.outputs,
        count=number,
        notes=program.notes,
        regions=[region for region in program.regions if region.redo is not None],
    )


def scanned(
    name: str,
    step: Step,
    carry: Leaves,
    rows: Leaves,
    places: range,
    *,
    start: int | None = None,
) -> tuple[list[Any], Any] | None:
    """Make the steps of a loop at some places one equation, as `repeated` does."""
    reverse = places.step < 0
    low, high = (places[-1], places[0] + 1) if reverse else (places[0], places[-1] + 1)
    contents = rows.contents
    if any(shape_of(content)[0] != len(places) for content in contents):
        contents = [content[low:high] for content in contents]
    part = Leaves(rows.filled(contents), rows.treedef)
    try:
        return repeated(
            name,
            step,
            carry,
            part,
            length=len(places),
            start=None if start is None else start + low,
            reverse=reverse,
        )
    except Exception:
        # Should it be the user's mistake, it is met again when the steps are made one by one.
        raise Unstructured from None
