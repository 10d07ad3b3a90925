"""The source of a program as a module: what stands before the function that runs.

The functions that operations are made of are plain NumPy code, so that their own source is copied
(`funcgrad.staging.backends.copying`) where there is no shorter way to write an operation. Where
something has no source, such as a function of the user's that a program calls back, the module
imports it, and says so.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from funcgrad import tree
from funcgrad.staging.backends.constants import arranged_text
from funcgrad.staging.backends.copying import Copier, NoSource
from funcgrad.staging.backends.expressions import Written
from funcgrad.staging.equations import HOLE, FunctionCall

if TYPE_CHECKING:
    from funcgrad.staging.backends.numpy import Source
    from funcgrad.staging.compiled import Executable

__all__ = [
    "Preamble",
    "helpers_of",
    "joined",
    "module_text",
    "views_of",
]

_BLOCKS = ("def ", "class ", "@")
_TAKEN = {"np", "base64", "workspace"}
_HELPERS = {
    "NotFinite": '''class NotFinite(ArithmeticError):
    """A derivative is not finite, and was when the program was recorded."""
''',
    "Otherwise": '''class Otherwise(ValueError):
    """The function takes another way for these values than for those it was recorded with."""
''',
    "in_blocks": '''def in_blocks(piece, ends, *work):
    """Go through the blocks of arrays."""
    for k, (start, stop) in enumerate(ends):
        piece(k, start, stop, *work)
''',
    "is_finite": '''def is_finite(x):
    """Tell whether all elements are finite: they are if the sum of their squares is."""
    return bool(np.isfinite(np.vdot(x, x)) or np.all(np.isfinite(x)))
''',
    "is_same": '''def is_same(value, noted):
    """Tell whether a value is what it was when the program was recorded."""
    return bool(np.all((value == noted) | ((value != value) & (noted != noted))))
''',
}


def module_text(executable: Executable, *, lines: bool = True) -> str:
    """Write the module of a compiled program; with `lines`, the user's lines as comments."""
    source = executable.source(comments=lines)
    body = source.text(module=True)
    preamble = Preamble(body, source.bound)
    parameters = "".join(
        f"    {name}: {path}\n"
        for name, path in zip(source.parameters, source.paths, strict=True)
        if name != path
    )
    head = f'"""{source.name}, as NumPy code.\n'
    if parameters:
        head += f"\nThe parameters are the leaves of the arguments:\n\n{parameters}"
    head += "\nThe result is the list of the leaves of what the function returns.\n"
    if preamble.needed:
        head += f"\nIt needs what it cannot have in itself: {', '.join(preamble.needed)}.\n"
    if preamble.modules:
        head += f"\nIt needs {', '.join(sorted(preamble.modules))}.\n"
    return f'{head}"""\n\n' + joined(
        [preamble.text(), helpers_of(body), workspace_of(source), body]
    )


def joined(parts: list[str]) -> str:
    """Put the parts of a module together."""
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def names_in(body: str) -> set[str]:
    """Return the names that source mentions."""
    return {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}


def helpers_of(body: str) -> str:
    """Write the exceptions and functions that every program may use."""
    names = names_in(body)
    return "\n\n".join(text for name, text in _HELPERS.items() if name in names)


def workspace_of(source: Source) -> str:
    """Write the function that makes the memory in which a program works."""
    if not source.buffers:
        return ""
    lines, rows = _views(source)
    for shape, dtype, order in source.plan.results:
        rows.append(arranged_text(f"np.empty({math.prod(shape)}, {dtype.name!r})", shape, order))
    return _memory_text("workspace", lines, rows)


def views_of(source: Source, name: str) -> str:
    """Write the function that makes the memory that a program can use again and again."""
    return _memory_text(name, *_views(source))


def _memory_text(name: str, lines: list[str], rows: list[str]) -> str:
    """Write a function that returns arrays."""
    if not rows:
        return f"def {name}():\n    return ()\n"
    text = "".join(f"        {row},\n" for row in rows)
    return f"def {name}():\n{''.join(lines)}    return (\n{text}    )\n"


def _views(source: Source) -> tuple[list[str], list[str]]:
    plan = source.plan
    lines, rows = [], []
    pieces = {slot: f"m{slot}" for slot, *_ in plan.views}
    for slot, name in pieces.items():
        dtype, size = plan.slots[slot]
        lines.append(f"    {name} = np.empty({size}, {dtype.name!r})\n")
    for slot, shape, order, start in plan.views:
        count = math.prod(shape)
        whole = count == plan.slots[slot][1]
        memory = pieces[slot] if whole else f"{pieces[slot]}[{start}:{start + count}]"
        rows.append(arranged_text(memory, shape, order))
    return lines, rows


class Preamble:
    """The definitions of what a body mentions by name.

    Parameters
    ----------
    body : str
    bound : dict
        The values by their names.
    store : callable, optional
        ``store(name, array)`` returns the expression for an array that is kept elsewhere; None for
        one that is to be written.
    taken : collection of str
        Names that mean something else.

    Attributes
    ----------
    copier : Copier
        What has collected the definitions.
    needed : list of str
        What has no source, and is imported.
    modules : set of str
        The packages that are needed besides NumPy.
    """

    def __init__(
        self,
        body: str,
        bound: dict[str, Any],
        store: Callable[[str, Any], str | None] | None = None,
        taken: Collection[str] = (),
    ) -> None:
        self.needed: list[str] = []
        self._imports: list[str] = []
        mentioned = names_in(body)
        names = {node.name for node in ast.walk(ast.parse(body)) if hasattr(node, "name")}
        arguments = {node.arg for node in ast.walk(ast.parse(body)) if isinstance(node, ast.arg)}
        self.copier = Copier({*mentioned, *names, *arguments, *bound, *taken, *_TAKEN}, store)
        for name, value in bound.items():
            if name in mentioned:
                self._define(name, value)
        self.modules = self.copier.modules

    def text(self, first: str = "") -> str:
        """Write the imports, constants and functions; behind the imports, what comes first."""
        lines = sorted({*self.copier.imports, *self._imports})
        others = [line for line in lines if _is_of_others(line)]
        own = [line for line in lines if not _is_of_others(line)]
        imports = "\n".join([*own, "", "import numpy as np", *others]).lstrip("\n")
        groups: list[list[str]] = [[]]
        for part in self.copier.parts:  # numbers in a row, functions apart
            if not (part.startswith(_BLOCKS) or "\n" in part):
                groups[-1].append(part)
            else:
                groups += [[part], []]
        parts = ["\n".join(group) for group in groups]
        return joined([imports, first, *parts]).rstrip("\n")

    def _define(self, name: str, value: Any) -> None:
        call = getattr(value, "__self__", None)
        try:
            if isinstance(call, FunctionCall):
                self.copier.parts.append(self._call_text(name, call))
            else:
                self.copier.define(name, value)
        except NoSource as missing:
            self._import(name, value, missing)

    def _call_text(self, name: str, call: FunctionCall) -> str:
        """Write a function that returns the leaves of the result of another."""
        function = self.copier.written(call.function)
        count = sum(leaf is HOLE for leaf in call.leaves)
        given = iter([f"x{i}" for i in range(count)])
        leaves = [
            Written(next(given) if leaf is HOLE else self.copier.written(leaf))
            for leaf in call.leaves
        ]
        args, kwargs = tree.unflatten(call.treedef, leaves)
        parts = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        parameters = ", ".join(f"x{i}" for i in range(count))
        result = f"{function}({', '.join(parts)})"
        return (
            f"def {name}({parameters}):\n"
            f"    made = {result}\n"
            "    return tuple(made) if isinstance(made, (tuple, list)) else (made,)"
        )

    def _import(self, name: str, value: Any, missing: NoSource) -> None:
        if str(missing) not in self.needed:
            self.needed.append(str(missing))
        module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if module and own.isidentifier():
            self._imports.append(f"from {module} import {own} as {name}")
        else:
            self.copier.parts.append(
                f"{name} = NotImplemented  # {type(value).__name__}: it has no source"
            )


def _is_of_others(line: str) -> bool:
    """Tell whether an import is of a package that does not come with Python."""
    return line.split()[1].partition(".")[0] not in sys.stdlib_module_names
