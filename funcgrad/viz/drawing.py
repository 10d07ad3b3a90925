"""`graph`: draws what a function computes.

The boxes and edges come from the program of one run (`funcgrad.viz.nodes`). Where graphviz is
installed it places them; otherwise `funcgrad.viz.layout` does.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from funcgrad.errors import ArgumentError, MissingExtraError, describe, user_line
from funcgrad.staging.equations import Var
from funcgrad.staging.printing import Names
from funcgrad.staging.program import Program
from funcgrad.staging.record import make_program
from funcgrad.viz.nodes import Edge, Node, nodes_of
from funcgrad.viz.svg import COLOURS, EDGE, svg_of

__all__ = ["Drawing", "graph"]

_ENGINES = ("auto", "dot", "plain")


@attrs.frozen(eq=False)
class Drawing:
    """A drawing of a program. Notebooks show it.

    Attributes
    ----------
    program : Program
        What is drawn.
    labels : mapping of str to str
        What stands beside the edges instead of shapes and dtypes, by the names of the program.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> drawing = fg.viz.graph(lambda x: np.sin(x) * x, 2.0)
    >>> len(drawing.program.equations)
    2
    >>> drawing.draw("plain")[:4]
    '<svg'
    """

    program: Program
    labels: Mapping[str, str] = attrs.field(factory=dict)

    def labelled(self, labels: Mapping[str, str]) -> Drawing:
        """Draw the same program with other words beside the edges, such as values.

        Parameters
        ----------
        labels : mapping of str to str
            By the names that the printed program gives to arguments and results of operations.
            Where there is none, shape and dtype stay.

        Returns
        -------
        Drawing

        Raises
        ------
        ArgumentError
            The program has no such name.

        Examples
        --------
        >>> import funcgrad as fg
        >>> drawing = fg.viz.graph(lambda x: 2 * x + 1, 3.0)
        >>> print(drawing.program)
        program <lambda>(x: float)
          a: float = multiply(2, x)  # ...
          b: float = add(a, 1)       # ...
          return b: float
        >>> "6.0" in drawing.labelled({"x": "3.0", "a": "6.0"}).svg
        True
        """
        names = Names(self.program)
        variables = [leaf.atom for leaf in self.program.arguments]
        variables += [constant.var for constant in self.program.constants]
        variables += [var for equation in self.program.equations for var in equation.outputs]
        known = {names.of(var) for var in variables if isinstance(var, Var)}
        for name in labels:
            if name not in known:
                raise ArgumentError(
                    f"the program has no {name!r}",
                    where=user_line(),
                    fix=f"print(drawing.program) shows its names: {', '.join(sorted(known))}",
                )
        return Drawing(self.program, {**self.labels, **labels})

    @property
    def svg(self) -> str:
        """The drawing as SVG, laid out by graphviz where that is installed."""
        return self.draw()

    @property
    def dot(self) -> str:
        """The drawing in graphviz's language."""
        return _dot_of(*nodes_of(self.program, self.labels), self.program.name)

    def draw(self, engine: str = "auto") -> str:
        """Draw it.

        Parameters
        ----------
        engine : {"auto", "dot", "plain"}
            Who places the boxes: graphviz, our own layout, or whichever there is.

        Returns
        -------
        str
            SVG.

        Raises
        ------
        ArgumentError
            There is no such engine.
        MissingExtraError
            Graphviz was asked for, and is not installed.
        """
        if engine not in _ENGINES:
            raise ArgumentError(
                f"engine must be one of {_ENGINES}, got {engine!r}",
                where=user_line(),
                fix='write engine="plain"',
            )
        if engine != "plain":
            made = _by_graphviz(self.dot, "svg")
            if made is not None:
                return made.decode()
            if engine == "dot":
                raise _missing("graphviz", "the program dot of graphviz (https://graphviz.org)")
        return svg_of(*nodes_of(self.program, self.labels), self.program.name)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file; one that is there is replaced as a whole.

        Parameters
        ----------
        path : str or path
            The suffix says what is written: ``.svg``, ``.dot``, or ``.png`` (which takes graphviz,
            or the package cairosvg).

        Raises
        ------
        ArgumentError
            Another suffix.
        MissingExtraError
            Nothing is installed that makes PNG.
        """
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        if suffix == ".svg":
            content = self.svg.encode()
        elif suffix in (".dot", ".gv"):
            content = self.dot.encode()
        elif suffix == ".png":
            content = self._png()
        else:
            raise ArgumentError(
                f"a drawing is saved as .svg, .dot or .png, got {os.fspath(path)!r}",
                where=user_line(),
                fix='write drawing.save("graph.svg")',
            )
        _write(os.fspath(path), content)

    def _png(self) -> bytes:
        made = _by_graphviz(self.dot, "png")
        if made is not None:
            return made
        try:
            cairosvg = importlib.import_module("cairosvg")
        except (ImportError, OSError):  # OSError: without the library that it needs
            raise _missing(
                "PNG", "graphviz (https://graphviz.org), or pip install cairosvg"
            ) from None
        content: bytes = cairosvg.svg2png(bytestring=self.draw("plain").encode(), scale=2.0)
        return content

    def _repr_svg_(self) -> str:
        return self.svg


def graph(fun: Callable[..., Any] | Program, *args: Any, **kwargs: Any) -> Drawing:
    """Draw what a function computes.

    Parameters
    ----------
    fun : callable or Program
        Function of pytrees, transformed or not; or a program, without arguments.
    *args, **kwargs
        Its arguments. It is run once.

    Returns
    -------
    Drawing
        With `svg` and `dot` (both text) and ``save(path)``; notebooks show it as it is.

    Raises
    ------
    ArgumentError
        `fun` is neither a function nor a program, or a program was given arguments.

    See Also
    --------
    funcgrad.make_program : the same as text.

    Notes
    -----
    Arguments are blue, results green, constants small and grey. Beside the edges stand shape and
    dtype of the value. A box shows static parameters and numbers; pointed at, its whole equation
    and its line in the source. Operations of which no result is used are left out, unless `fun` is
    a program.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> drawing = fg.viz.graph(lambda x: np.sum(np.sin(x) * 2), np.ones(3))
    >>> "float64[3]" in drawing.svg
    True
    """
    if isinstance(fun, Program):
        if args or kwargs:
            raise ArgumentError(
                "a program is drawn without arguments",
                where=user_line(),
                fix="write funcgrad.viz.graph(program)",
            )
        return Drawing(fun)
    if not callable(fun):
        raise ArgumentError(
            f"viz.graph takes a function or a program, got {describe(fun)}",
            where=user_line(),
            fix="write viz.graph(f, x), not viz.graph(f(x))",
        )
    return Drawing(make_program(fun)(*args, **kwargs).pruned())


def _missing(what: str, install: str) -> MissingExtraError:
    return MissingExtraError(
        f"{what} is not installed",
        where=user_line(),
        fix=f"install {install}; the SVG of drawing.draw('plain') takes neither",
    )


def _by_graphviz(source: str, kind: str) -> bytes | None:
    """Return what graphviz makes of `source`, or None where it is not installed."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, f"-T{kind}"], input=source.encode(), capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):  # an installation that does not work
        return None
    return done.stdout


def _write(path: str, content: bytes) -> None:
    """Write a file as a whole, or not at all."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".fg-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Graphviz


def _quoted(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\n", "\\n") + '"'


def _dot_of(nodes: Sequence[Node], edges: Sequence[Edge], title: str) -> str:
    rows = [
        f"digraph {_quoted(title)} {{",
        '  node [shape=box, style="filled,rounded", fontname="DejaVu Sans Mono", fontsize=12];',
        f'  edge [color="{EDGE}", fontname="DejaVu Sans Mono", fontsize=9, fontcolor="#64748b", '
        "arrowsize=0.6];",
    ]
    for number, node in enumerate(nodes):
        fill, line, ink = COLOURS[node.kind]
        label = node.title + (f"\n{node.details}" if node.details else "")
        small = ", fontsize=9, height=0.2, margin=0.06" if node.kind == "constant" else ""
        rows.append(
            f"  n{number} [label={_quoted(label)}, tooltip={_quoted(node.tip or node.title)}, "
            f'fillcolor="{fill}", color="{line}", fontcolor="{ink}"{small}];'
        )
    for edge in edges:
        label = nodes[edge.source].values[edge.value]
        rows.append(f"  n{edge.source} -> n{edge.target} [label={_quoted(' ' + label)}];")
    return "\n".join([*rows, "}", ""])
