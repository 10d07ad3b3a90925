"""What a drawing of a program shows: a box for each equation, argument, constant and result.

Edges go from the box that makes a value to those that use it. Numbers are no boxes: they stand in
the text of the box that uses them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import attrs

from funcgrad.staging.equations import Equation, Line, Literal, Var
from funcgrad.staging.printing import (
    Names,
    array_text,
    call_text,
    literal_text,
    name_of,
    params_text,
    static_text,
)
from funcgrad.staging.program import Program

__all__ = ["Edge", "Node", "nodes_of"]

# The longest text in a box, in characters.
_LONGEST = 30


@attrs.frozen
class Node:
    """A box.

    Attributes
    ----------
    kind : str
        ``"input"``, ``"constant"``, ``"operation"`` or ``"output"``.
    title : str
        Its first line.
    details : str
        Its second line, if any.
    tip : str
        All that there is to say.
    values : tuple of str
        What stands beside the edges of each value that it makes: its shape and dtype.
    """

    kind: str
    title: str
    details: str = ""
    tip: str = ""
    values: tuple[str, ...] = ()


@attrs.frozen
class Edge:
    """A value on its way: number `value` of the box `source`, to the box `target`."""

    source: int
    value: int
    target: int


def nodes_of(program: Program, labels: Mapping[str, str]) -> tuple[list[Node], list[Edge]]:
    """Return the boxes of a program, and the edges, by the numbers of the boxes.

    `labels` are what stands beside the edges instead, by the names of the printed program.
    """
    names = Names(program)
    nodes: list[Node] = []
    edges: list[Edge] = []
    makers: dict[int, tuple[int, int]] = {}  # the box, and which of its values, by variable

    def use(atom: Any, target: int) -> None:
        if isinstance(atom, Var):
            source, value = makers[atom.number]
            edge = Edge(source, value, target)
            if edge not in edges[-8:]:  # ``x * x`` needs one edge
                edges.append(edge)

    def label(var: Var) -> str:
        return labels.get(names.of(var), var.kind)

    for leaf in program.arguments:
        if isinstance(leaf.atom, Var):
            makers[leaf.atom.number] = len(nodes), 0
            tip = f"{leaf.path}: {leaf.atom.kind}"
            nodes.append(Node("input", leaf.path, "", tip, (label(leaf.atom),)))
    for constant in program.constants:
        makers[constant.var.number] = len(nodes), 0
        name, kind = names.of(constant.var), constant.var.kind
        text = array_text(constant.value)
        title = name if text.startswith(kind) else f"{name} = {text}"
        tip = f"constant {name}: {kind}"
        nodes.append(Node("constant", _short(title), "", tip, (label(constant.var),)))
    for equation in program.equations:
        target = len(nodes)
        for atom in equation.inputs:
            use(atom, target)
        for index, var in enumerate(equation.outputs):
            if var is not None:
                makers[var.number] = target, index
        values = tuple("" if var is None else label(var) for var in equation.outputs)
        nodes.append(_operation(equation, names, values))
    for leaf in program.results:
        target = len(nodes)
        title = f"result{leaf.path}"
        if isinstance(leaf.atom, Var):
            use(leaf.atom, target)
            nodes.append(Node("output", title, "", f"{title}: {leaf.atom.kind}"))
        else:
            value = leaf.value if leaf.atom is None else leaf.atom.value
            nodes.append(Node("output", title, _short(static_text(value)), title))
    return nodes, edges


def _operation(equation: Equation, names: Names, values: tuple[str, ...]) -> Node:
    details = []
    if any(isinstance(atom, Literal) for atom in equation.inputs):
        inputs = [
            literal_text(atom.value) if isinstance(atom, Literal) else "·"
            for atom in equation.inputs
        ]
        details.append(f"({', '.join(inputs)})")
    params = params_text(equation)
    if params:
        details.append(params)
    left = ", ".join(map(names.typed, equation.outputs))
    tip = f"{left} = {call_text(equation, names)}"
    if equation.line is not None:
        tip += f"\n{_place(equation.line)}"
    return Node("operation", _short(name_of(equation)), _short(", ".join(details)), tip, values)


def _place(line: Line) -> str:
    """Write where a line is, without the folders of whoever draws: others will see the picture."""
    text = str(line)
    return os.path.basename(text) if os.path.isabs(text) else text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
