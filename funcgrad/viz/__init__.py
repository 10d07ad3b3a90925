"""Drawings of computations: `graph`, as SVG."""

from funcgrad.viz.drawing import Drawing, graph

__all__ = ["Drawing", "graph"]
