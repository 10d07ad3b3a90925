"""Copies the source of functions into a module that stands alone.

What an operation computes is plain NumPy code, spread over the modules of this package. So a
program can take along what it calls: the definition of each name that the code mentions, and of
the names that these mention, once each. Names of NumPy, SciPy and the standard library are
imported. What the package asks of traced values has a plain answer where nothing is traced: see
`PLAIN`. Where there is no source, as of a function of the user's, `NoSource` is raised.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core import level, tracer, zero
from funcgrad.core.primitive import Composed, Primitive
from funcgrad.core.watching import STRICT
from funcgrad.errors import user_line
from funcgrad.staging.backends.constants import array_text, number_text
from funcgrad.staging.backends.expressions import in_numpy
from funcgrad.staging.backends.sources import (
    NoSource,
    inner_definition,
    is_own,
    name_of,
    names_used,
    renamed,
    statements,
    stripped,
)

__all__ = ["Copier", "NoSource"]

_PACKAGE = __name__.partition(".")[0]
# Modules whose names a copy may import. What else there is belongs to the user.
_IMPORTED = {*sys.stdlib_module_names, "numpy", "scipy"}
_LITERALS = (int, float, complex, str, bytes)


# What is asked of traced values, where nothing is traced. The names stay.


def _where_it_is_called() -> str:
    return "in a module that funcgrad wrote"


def _itself(x: Any) -> Any:
    return x


def _nothing(args: Any) -> None:
    return None


def _never(x: Any) -> bool:
    return False


def _all_finite(values: Any) -> bool:
    return all(map(zero.is_finite, values))


PLAIN: dict[Any, Any] = {
    user_line: _where_it_is_called,
    tracer.unwrap: _itself,
    level.concrete: _itself,
    level.top_trace: _nothing,
    level.holds_tracer: _never,
    level.is_recorded: _never,
    zero.are_finite: _all_finite,
}
_TRACERS = (level.TracerBase, tracer.Tracer)


class _NotStrict:
    """The switch that lets zero times infinity be NaN: it is off."""

    @staticmethod
    def get() -> bool:
        return False


PLAIN[STRICT] = _NotStrict
# Parts of this package whose functions need no more than arrays. The others know transforms.
_PLAIN_PARTS = (
    "core",
    "errors",
    "random",
    "rules",
    "scipy",
    "staging.backends",
    "staging.machine",
    "staging.passes",
    "staging.recycling",
    "transforms.named_values",
    "transforms.stop",
)


class Copier:
    """Collects definitions.

    Parameters
    ----------
    taken : set of str
        Names that mean something else already.
    store : callable, optional
        ``store(name, array)`` returns the expression for an array that is kept elsewhere; None for
        one that is to be written.

    Attributes
    ----------
    imports : dict
        The lines that import, in order.
    parts : list of str
        The definitions, each behind those that it needs when it is carried out.
    modules : set of str
        The packages that are imported, besides NumPy and the standard library.
    """

    def __init__(self, taken: set[str], store: Callable[[str, Any], str | None] | None = None):
        self.taken = taken
        self._store = store or _nowhere
        self.imports: dict[str, None] = {}
        self.parts: list[str] = []
        self.modules: set[str] = set()
        self._names: dict[Any, str] = {}
        self._wanted: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is used again

    def define(self, name: str, value: Any) -> None:
        """Write that a name, which is taken, means a value."""
        self._wanted[id(value)] = name
        text = self.written(value)
        if text != name:
            self.parts.append(f"{name} = {text}")

    def written(self, value: Any) -> str:
        """Return an expression for a value, and collect what it mentions.

        Raises
        ------
        NoSource
            There is none. Nothing is collected then.
        """
        before = dict(self._names), set(self.taken), dict(self.imports), list(self.parts)
        try:
            return self._text(value)
        except NoSource:
            self._names, self.taken, self.imports, self.parts = before
            raise

    def _text(self, value: Any) -> str:
        kind = type(value)
        if value is None or kind is bool or value is Ellipsis or value is NotImplemented:
            return repr(value)
        if kind in _LITERALS:
            return number_text(value) if kind in (float, complex) else repr(value)
        if kind in (tuple, list, set, frozenset):
            return self._sequence(value, kind)
        if kind is dict:
            rows = [f"{self._text(k)}: {self._text(v)}" for k, v in value.items()]
            return f"{{{', '.join(rows)}}}"
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return f"slice({', '.join(map(self._text, parts))})"
        if isinstance(value, np.dtype) and value.isbuiltin == 1:
            return f"np.dtype({value.str!r})"
        if isinstance(value, np.generic) and value.dtype.kind in "fciub":
            return f"np.{kind.__name__}({number_text(value.item())})"
        if kind is np.ndarray:
            return self._array(value)
        if kind is functools.partial:
            inner = [self._text(value.func), *map(self._text, value.args)]
            inner += [f"{key}={self._text(item)}" for key, item in value.keywords.items()]
            return (
                f"{self._imported('functools', 'partial', functools.partial)}({', '.join(inner)})"
            )
        return self._named(value)

    def _array(self, value: Any) -> str:
        known = self._names.get(_key(value))
        if known is not None:
            return known
        name = self._wanted.get(id(value)) or self.unused("array")
        text = self._store(name, value) or array_text(value)
        if text is None:
            raise NoSource(f"an array of {value.dtype}")
        if "base64." in text:
            self.imports["import base64"] = None
        self.parts.append(f"{self._free(name, value)} = {text}")
        return name

    def _sequence(self, value: Any, kind: type) -> str:
        inner = ", ".join(map(self._text, value))
        if kind is tuple:
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if kind is list:
            return f"[{inner}]"
        if not value:
            return f"{kind.__name__}()"
        # Of a set the order is another in each process.
        inner = ", ".join(sorted(map(self._text, value)))
        return f"{{{inner}}}" if kind is set else f"frozenset({{{inner}}})"

    def _named(self, value: Any) -> str:
        """Return the name, or path, of a function, class, module, or other object."""
        replaced = _plain_of(value)
        if replaced is not None:
            self._wanted.setdefault(id(replaced), self.unused(getattr(value, "__name__", "STRICT")))
            value = replaced
        known = self._names.get(_key(value))
        if known is not None:
            return known
        if value is type(np._NoValue):
            return "type(np._NoValue)"
        if value is np._NoValue:
            return "np._NoValue"
        if value in (type(None), type(Ellipsis)):
            return f"type({None if value is type(None) else '...'})"
        if value in _TRACERS:
            return "()"  # of which nothing is an instance
        if isinstance(value, types.ModuleType):
            return self._module(value)
        name = getattr(value, "__name__", "")
        if getattr(builtins, name, None) is value and name:
            return str(name)
        found = in_numpy(value)
        if found is not None:
            return found
        place = _place_of(value)
        if place is not None:
            return self._imported(*place, value)
        if isinstance(value, Primitive):
            return self._text(value.forward)
        if isinstance(value, Composed):
            return self._text(value.fun)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType) and name:
            return f"{self._text(owner)}.{name}"  # a method, such as np.add.reduce
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        if home is None or not is_own(home.__name__):
            raise NoSource(_called(value))
        if name and home.__dict__.get(name) is value:
            return self._definition(home, name)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        fields = getattr(value, "_fields", None) or getattr(type(value), "__slots__", None)
        if isinstance(value, tuple) and fields:  # a named tuple
            return f"{self._text(type(value))}({', '.join(map(self._text, value))})"
        raise NoSource(_called(value))

    # What is imported

    def _module(self, module: types.ModuleType) -> str:
        name = module.__name__
        if name == "numpy":
            return "np"
        if name.partition(".")[0] not in _IMPORTED:
            raise NoSource(f"the module {name}")
        if name.startswith("numpy."):
            return f"np.{name.partition('.')[2]}"
        self._note(name)
        new = self._free(name.rpartition(".")[2], module)
        self.imports[f"import {name}" if new == name else f"import {name} as {new}"] = None
        return new

    def _imported(self, module: str, name: str, value: Any) -> str:
        known = self._names.get(_key(value))
        if known is not None:
            return known
        self._note(module)
        new = self._free(name, value)
        suffix = "" if new == name else f" as {new}"
        self.imports[f"from {module} import {name}{suffix}"] = None
        return new

    def _note(self, module: str) -> None:
        package = module.partition(".")[0]
        if package not in sys.stdlib_module_names and package != "numpy":
            self.modules.add(package)

    def _free(self, name: str, value: Any) -> str:
        """Take a name for a value."""
        found = self._wanted.pop(id(value), None) or self.unused(name)
        self.taken.add(found)
        self._kept.append(value)
        self._names[_key(value)] = found
        return found

    def unused(self, name: str) -> str:
        """Return a name like this one that means nothing yet."""
        found, count = name, 1
        while found in self.taken:
            count += 1
            found = f"{name}_{count}"
        return found

    # What is copied

    def _definition(self, module: types.ModuleType, name: str) -> str:
        """Copy the statement of a module that defines a name."""
        if not _is_plain_part(module):
            raise NoSource(f"{module.__name__}.{name}")
        value = module.__dict__[name]
        statement = statements(module).get(name)
        if statement is None or isinstance(statement, ast.ImportFrom | ast.Import):
            raise NoSource(f"{module.__name__}.{name}")
        place = _Place(module, name) if isinstance(statement, ast.Assign) else value
        known = self._names.get(_key(place))
        if known is not None:
            return known
        new = self._free(name, place)
        self._copy(copy.deepcopy(statement), new, module, {}, value)
        return new

    def _function(self, function: types.FunctionType) -> str:
        """Copy a function that was made in another, with what it closes over."""
        module = sys.modules[function.__module__]
        if not _is_plain_part(module):
            raise NoSource(_called(function))
        code = function.__code__
        node = inner_definition(module, code)
        closed = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        new = self._free(getattr(node, "name", "made"), function)

        if isinstance(node, ast.Lambda):
            node = ast.copy_location(ast.Assign([ast.Name("made", ast.Store())], node), node)
        else:
            node.decorator_list = []
        self._copy(node, new, module, closed, function)
        return new

    def _global(self, module: types.ModuleType, name: str) -> str:
        """Return what to write for a global name of a module."""
        if name == "__file__" or name not in module.__dict__:
            if hasattr(builtins, name):
                return name
            raise NoSource(f"{module.__name__}.{name}")
        place = _Place(module, name)
        known = self._names.get(_key(place))
        if known is not None:
            return known
        value = module.__dict__[name]
        if _plain_of(value) is not None:
            return self._text(value)
        statement = statements(module).get(name)
        if isinstance(statement, ast.ImportFrom) and not isinstance(value, types.ModuleType):
            source = str(statement.module)
            original = next(a.name for a in statement.names if (a.asname or a.name) == name)
            if is_own(source):
                return self._global(sys.modules[source], original)
            if in_numpy(value) is None and source.partition(".")[0] in _IMPORTED:
                return self._imported(source, original, value)
        if isinstance(statement, ast.Assign) and in_numpy(value) is None:
            try:
                return self._definition(module, name)
            except NoSource:
                pass
        return self._text(value)

    def _copy(
        self, node: Any, new: str, module: types.ModuleType, closed: dict[str, Any], value: Any
    ) -> None:
        """Append a definition, with its names as they are called in the copy."""
        if isinstance(value, Primitive | Composed) or _is_undecorated(node, value):
            node.decorator_list = []
        node, imported = stripped(node)
        names = {name_of(node): new}
        primitives: dict[str, Primitive] = {}
        modules: dict[str, types.ModuleType] = {}
        for used in sorted(names_used(node) - names.keys()):
            if used in closed:
                meant = closed[used].cell_contents
                names[used] = self._text(meant)
                continue
            home, original = imported.get(used, (module, used))
            meant = home.__dict__.get(original)
            if isinstance(meant, types.ModuleType) and is_own(meant.__name__):
                modules[used] = meant
                continue
            names[used] = self._global(home, original)
            if isinstance(meant, Primitive):
                primitives[used] = meant
        changed = renamed(node, self._global, names, primitives, modules)
        self.parts.append(ast.unparse(changed))


def _nowhere(name: str, value: Any) -> None:
    """Keep no array elsewhere."""


def _plain_of(value: Any) -> Any:
    try:
        return PLAIN.get(value)
    except TypeError:  # it has no hash
        return None


def _is_plain_part(module: types.ModuleType) -> bool:
    """Tell whether what a module has needs no transforms: they would bring along half of us."""
    parts = tuple([f"{_PACKAGE}.{part}." for part in _PLAIN_PARTS])
    return f"{module.__name__}.".startswith(parts)


class _Place:
    """Stands for a name of a module, for values that many names have, such as numbers."""

    def __init__(self, module: types.ModuleType, name: str):
        self.key = (module.__name__, name)


def _key(value: Any) -> Any:
    return value.key if isinstance(value, _Place) else id(value)


def _is_undecorated(node: Any, value: Any) -> bool:
    """Tell whether decorators only declare a function as something, and leave it as it is."""
    if not isinstance(value, types.FunctionType) or not isinstance(node, ast.FunctionDef):
        return False
    code = value.__code__
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return code.co_name == node.name and code.co_firstlineno == first


def _called(value: Any) -> str:
    """Return what to call a value that has no source: by the function that it calls in the end."""
    owners = [value]
    if isinstance(value, types.FunctionType) and is_own(value.__module__ or ""):
        owners = [cell.cell_contents for cell in value.__closure__ or ()]
    for owner in owners:
        for attribute in ("function", "fun", "func"):
            inner = getattr(owner, attribute, None)
            if callable(inner):
                return _called(inner)
    name = getattr(value, "__qualname__", None)
    if name is None:
        return f"a value of type {type(value).__qualname__}"
    return f"{getattr(value, '__module__', None) or '?'}.{name}"


def _place_of(value: Any) -> tuple[str, str] | None:
    """Return the module and the name by which a value of another package can be imported."""
    name = getattr(value, "__name__", "")
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, np.ufunc):
        home = "scipy.special"
        if getattr(sys.modules.get(home), name, None) is not value:
            home = "scipy.special._ufuncs"  # of those behind a function of Python
    elif isinstance(value, types.BuiltinFunctionType) and home == "_operator":
        home = "operator"
    if not name or home.partition(".")[0] not in _IMPORTED:
        return None
    parts = home.split(".")
    # From the outermost that has it, which is the public one; `from scipy import linalg` loads it.
    for count in range(1, len(parts) + 1):
        module = ".".join(parts[:count])
        if any(part.startswith("_") for part in parts[:count]) and count < len(parts):
            continue
        if getattr(sys.modules.get(module), name, None) is value:
            return module, name
    return None
