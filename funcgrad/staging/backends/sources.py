"""The source of functions: where they are defined, which names they look up, and other names in it.

Source is handled as syntax trees (`ast`), and read once for a module. What is returned to be
changed is a copy.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from funcgrad.core.primitive import Primitive

__all__ = [
    "NoSource",
    "inner_definition",
    "is_own",
    "name_of",
    "names_used",
    "renamed",
    "statements",
    "stripped",
]

_PACKAGE = __name__.partition(".")[0]


class NoSource(Exception):
    """A value has no source that could be copied."""


def is_own(module: str) -> bool:
    """Tell whether a module is one of this package."""
    return module.partition(".")[0] == _PACKAGE


@functools.cache
def parsed(module: types.ModuleType) -> ast.Module:
    try:
        return ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        raise NoSource(f"the module {module.__name__}") from None


@functools.cache
def statements(module: types.ModuleType) -> dict[str, Any]:
    """Return the statements of a module by the names that they define."""
    found: dict[str, Any] = {}
    for statement in parsed(module).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.ImportFrom | ast.Import):
            for alias in statement.names:
                found[alias.asname or alias.name.partition(".")[0]] = statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            made = ast.Assign([statement.target], statement.value or ast.Constant(None))
            found[statement.target.id] = ast.copy_location(made, statement)
    return found


def inner_definition(module: types.ModuleType, code: types.CodeType) -> Any:
    """Return the definition of a function anywhere in a module, to be changed at will."""
    found = _definitions(module).get((code.co_name, code.co_firstlineno), [])
    if len(found) != 1:
        raise NoSource(f"{module.__name__}.{code.co_qualname}")
    return copy.deepcopy(found[0])


@functools.cache
def _definitions(module: types.ModuleType) -> dict[tuple[str, int], list[Any]]:
    """Return the functions in a module by name and first line, as code objects have them."""
    found: dict[tuple[str, int], list[Any]] = {}
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            found.setdefault((getattr(node, "name", "<lambda>"), first), []).append(node)
    return found


def stripped(node: Any) -> tuple[Any, dict[str, tuple[types.ModuleType, str]]]:
    """Drop annotations and all but the first line of docstrings.

    Return also the names that functions import of this package by themselves, with their modules.
    """
    inner: dict[str, tuple[types.ModuleType, str]] = {}

    class Stripping(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
            node.returns = None
            _shorten_docstring(node)
            return self.generic_visit(node)

        def visit_ClassDef(self, node: ast.ClassDef) -> Any:
            _shorten_docstring(node)
            return self.generic_visit(node)

        def visit_arg(self, node: ast.arg) -> Any:
            node.annotation = None
            return node

        def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
            self.generic_visit(node)
            if node.value is None:
                return ast.Pass()
            return ast.copy_location(ast.Assign([node.target], node.value), node)

        def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
            if not is_own(node.module or ""):
                return node
            for alias in node.names:
                home = sys.modules.get(str(node.module))
                if home is None or alias.name not in home.__dict__:
                    raise NoSource(f"{node.module}.{alias.name}")
                inner[alias.asname or alias.name] = home, alias.name
            return ast.Pass()

    return ast.fix_missing_locations(Stripping().visit(node)), inner


def _shorten_docstring(node: Any) -> None:
    text = ast.get_docstring(node)
    if text is not None:
        node.body[0] = ast.Expr(ast.Constant(text.partition("\n")[0]))


def name_of(node: Any) -> str:
    """Return the name that a statement defines."""
    if isinstance(node, ast.Assign):
        (target,) = node.targets
        if not isinstance(target, ast.Name):
            raise NoSource("an assignment to several names")
        return target.id
    return str(node.name)


_LOOKS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL"}


def names_used(node: Any) -> set[str]:
    """Return the names that a statement looks up outside of it."""
    table = compile(ast.Module([node], []), "<copy>", "exec")
    stored: set[str] = set()
    used: set[str] = set()

    def walk(code: types.CodeType, top: bool) -> None:
        for instruction in dis.get_instructions(code):
            name, operation = str(instruction.argval), instruction.opname
            if operation in ("STORE_NAME", "STORE_GLOBAL") and top:
                stored.add(name)
            elif operation in _LOOKS:
                used.add(name)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                walk(constant, False)

    walk(table, True)
    return used - stored - {"__name__", "__module__", "__qualname__"}


def renamed(
    node: Any,
    look: Callable[[types.ModuleType, str], str],
    names: dict[str, str],
    primitives: dict[str, Primitive],
    modules: dict[str, types.ModuleType],
) -> Any:
    """Return a statement with other names.

    Parameters
    ----------
    node : ast.AST
    look : callable
        ``look(module, name)`` returns what to write for a name of a module of this package.
    names : dict
        What to write for names.
    primitives : dict
        Those that are primitives: their forward function is called.
    modules : dict
        Those that are modules of this package: ``module.name`` becomes one name.
    """
    changed = _Renaming(look, names, primitives, modules).visit(node)
    return ast.fix_missing_locations(changed)


class _Renaming(ast.NodeTransformer):
    """Writes names as they are called in the copy."""

    def __init__(
        self,
        look: Callable[[types.ModuleType, str], str],
        names: dict[str, str],
        primitives: dict[str, Primitive],
        modules: dict[str, types.ModuleType],
    ):
        self.look = look
        self.names = names
        self.primitives = primitives
        self.modules = modules

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.modules:
            raise NoSource(f"the module {self.modules[node.id].__name__}")
        new = self.names.get(node.id)
        if new is None or new == node.id:
            return node
        made = ast.parse(new, mode="eval").body
        if isinstance(made, ast.Name):
            return ast.Name(made.id, node.ctx)
        if not isinstance(node.ctx, ast.Load):
            raise NoSource(f"a function that assigns to {node.id}")
        return made

    def visit_Global(self, node: ast.Global) -> Any:
        node.names = [self.names.get(name, name) for name in node.names]
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        if self.names.get(node.arg, node.arg) != node.arg:
            raise NoSource(f"a function with the parameter {node.arg}")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        new = self.names.get(node.name)
        if new is not None:
            node.name = new
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        new = self.names.get(node.name)
        if new is not None:
            node.name = new
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id in self.modules:
            return ast.parse(self.look(self.modules[node.value.id], node.attr), mode="eval").body
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        called = node.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            if called.value.id in self.primitives and called.attr in ("bind", "forward"):
                node.func = called.value  # of plain arrays, its forward function
        elif isinstance(called, ast.Name):
            primitive = self.primitives.get(called.id)
            if primitive is not None and primitive.canonical is not None:
                raise NoSource(f"a call of {called.id} with NumPy's signature")
        return self.generic_visit(node)
