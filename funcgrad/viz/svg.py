"""Boxes and edges as SVG, where this package lays them out by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape

from funcgrad.viz.layout import Item, Placed, place
from funcgrad.viz.nodes import Edge, Node

__all__ = ["COLOURS", "FONT", "box_of", "svg_of"]

# Of each kind of box: what it is filled with, its line, its text.
COLOURS = {
    "input": ("#dbeafe", "#2563eb", "#1e3a8a"),
    "constant": ("#f1f5f9", "#94a3b8", "#475569"),
    "operation": ("#ffffff", "#475569", "#0f172a"),
    "output": ("#dcfce7", "#16a34a", "#14532d"),
}
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
EDGE = "#64748b"
_MARGIN = 16.0
# The width of a character of this font, as a part of its size.
_WIDE = 0.603
_SIZES = {"constant": (10.0, 9.0)}  # of the first line and the second; others are larger
_LABEL = 9.5


def _fonts(node: Node) -> tuple[float, float]:
    return _SIZES.get(node.kind, (12.5, 10.0))


def _wide(text: str, size: float) -> float:
    return len(text) * size * _WIDE


def box_of(node: Node) -> tuple[float, float]:
    """Return width and height of a box."""
    large, small = _fonts(node)
    padding = 8.0 if node.kind == "constant" else 13.0
    width = max(_wide(node.title, large), _wide(node.details, small)) + 2 * padding
    if len(node.values) > 1:  # labels side by side
        width = max(width, len(node.values) * _slot(node))
    height = large * 1.5 + (small * 1.4 if node.details else 0.0) + (5.0 if large < 12 else 9.0)
    return max(width, 34.0), height


def _slot(node: Node) -> float:
    return max(_wide(value, _LABEL) for value in node.values) + 12.0


def _item(node: Node) -> Item:
    width, height = box_of(node)
    right = 0.0
    if len(node.values) == 1:
        right = _wide(node.values[0], _LABEL) + 8.0
    elif node.values:
        right = width / 2 + _wide(node.values[-1], _LABEL) / 2
    return Item(width, height, right, node.kind in ("input", "constant"))


def svg_of(nodes: Sequence[Node], edges: Sequence[Edge], title: str) -> str:
    """Draw boxes and edges."""
    placed = place([_item(node) for node in nodes], [(e.source, e.target) for e in edges])
    width, height = placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" role="img">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="fg-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0,0.8 L8,4 L0,7.2 Z" fill="{EDGE}"/>'
        "</marker></defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">',
    ]
    rows += _edges(nodes, edges, placed)
    rows += [_box(node, centre) for node, centre in zip(nodes, placed.centres, strict=True)]
    return "\n".join([*rows, "</g>", "</svg>", ""])


def _edges(nodes: Sequence[Node], edges: Sequence[Edge], placed: Placed) -> list[str]:
    """Draw the edges, and beside the first of each value its shape and dtype."""
    ends: dict[int, list[int]] = {}
    for number, edge in enumerate(edges):
        ends.setdefault(edge.target, []).append(number)
    rows: list[str] = []
    labels: list[str] = []
    labelled = set()
    for number, (edge, route) in enumerate(zip(edges, placed.routes, strict=True)):
        x, y = placed.centres[edge.source]
        _, height = box_of(nodes[edge.source])
        start = (x + _port(nodes[edge.source], edge.value), y + height / 2)
        x, y = placed.centres[edge.target]
        width, height = box_of(nodes[edge.target])
        # The edges arrive side by side, in the order in which they come.
        arriving = sorted(ends[edge.target], key=lambda n: _from(placed, edges, n))
        share = (arriving.index(number) + 1) / (len(arriving) + 1) - 0.5
        end = (x + share * min(width * 0.7, 26.0 * len(arriving)), y - height / 2)
        colour = "#cbd5e1" if nodes[edge.source].kind == "constant" else EDGE
        rows.append(
            f'<path d="{_curve([start, *route, end])}" fill="none" stroke="{colour}" '
            'stroke-width="1.2" marker-end="url(#fg-arrow)"/>'
        )
        if (edge.source, edge.value) not in labelled:
            labelled.add((edge.source, edge.value))
            label = escape(nodes[edge.source].values[edge.value])
            labels.append(
                f'<rect x="{start[0] + 3:.1f}" y="{start[1] + 3:.1f}" '
                f'width="{_wide(label, _LABEL) + 4:.1f}" height="11" fill="#ffffff" '
                'fill-opacity="0.7"/>'
                f'<text x="{start[0] + 5:.1f}" y="{start[1] + 11:.1f}" font-size="{_LABEL}" '
                f'fill="#64748b">{label}</text>'
            )
    return rows + labels


def _from(placed: Placed, edges: Sequence[Edge], number: int) -> float:
    route = placed.routes[number]
    return route[-1][0] if route else placed.centres[edges[number].source][0]


def _port(node: Node, value: int) -> float:
    """Return where a value leaves its box, from the middle on."""
    count = len(node.values)
    return 0.0 if count < 2 else (value - (count - 1) / 2) * _slot(node)


def _curve(points: list[tuple[float, float]]) -> str:
    """Return a curve through points that goes straight down at each."""
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        bend = (to_y - y) * 0.5
        text += f" C{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}"
    return text


def _box(node: Node, centre: tuple[float, float]) -> str:
    fill, line, ink = COLOURS[node.kind]
    width, height = box_of(node)
    large, small = _fonts(node)
    x, y = centre
    radius = height / 2 if node.kind in ("input", "output") else 5.0
    middle = y - small * 0.7 if node.details else y
    weight = "600" if node.kind != "constant" else "400"
    rows = [
        f'<g class="{node.kind}"><title>{escape(node.tip or node.title)}</title>',
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="{radius:.1f}" fill="{fill}" stroke="{line}" '
        f'stroke-width="{1.0 if node.kind == "constant" else 1.4}"/>',
        f'<text x="{x:.1f}" y="{middle + large * 0.35:.1f}" font-size="{large}" '
        f'font-weight="{weight}" text-anchor="middle" fill="{ink}">{escape(node.title)}</text>',
    ]
    if node.details:
        rows.append(
            f'<text x="{x:.1f}" y="{middle + large * 0.35 + small * 1.35:.1f}" '
            f'font-size="{small}" text-anchor="middle" fill="#64748b">{escape(node.details)}</text>'
        )
    return "\n".join([*rows, "</g>"])
