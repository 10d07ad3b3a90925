"""The source of a program as a module: what stands before the function that runs.

The functions that operations are made of are plain NumPy code, so that their own source can be
copied where there is no shorter way to write an operation. Where one needs more than NumPy, the
module imports it from this package, and says so.
"""

from __future__ import annotations

import ast
import base64
import builtins
import functools
import inspect
import textwrap
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.primitive import DECLARED, Primitive
from funcgrad.staging.backends.expressions import in_numpy

if TYPE_CHECKING:
    from funcgrad.staging.compiled import Executable

__all__ = ["module_text"]

# Arrays with more elements are written in base64.
_FEW = 32
_WIDTH = 88

_HELPERS = {
    "NotFinite": '''class NotFinite(ArithmeticError):
    """A derivative is not finite, and was when the program was recorded."""
''',
    "Otherwise": '''class Otherwise(ValueError):
    """The function takes another way for these values than for those it was recorded with."""
''',
    "is_finite": '''def is_finite(x):
    """Tell whether all elements are finite."""
    return bool(np.all(np.isfinite(x)))
''',
    "is_same": '''def is_same(value, noted):
    """Tell whether a value is what it was when the program was recorded."""
    return bool(np.all((value == noted) | ((value != value) & (noted != noted))))
''',
}


def module_text(executable: Executable) -> str:
    """Write the module of a compiled program."""
    source = executable.source()
    body = source.text(module=True)
    names = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    writer = _Preamble()
    for name, value in source.bound.items():
        if name in names:
            writer.define(name, value)
    helpers = [text for name, text in _HELPERS.items() if name in names]
    work = []
    if source.buffers:
        rows = "".join(f"        {row},\n" for row in _allocations(source.plan))
        work = [f"def workspace():\n    return (\n{rows}    )\n"]
    parameters = "".join(
        f"    {name}: {path}\n"
        for name, path in zip(source.parameters, source.paths, strict=True)
        if name != path
    )
    head = f'"""{source.name}, as NumPy code.\n'
    if parameters:
        head += f"\nThe parameters are the leaves of the arguments:\n\n{parameters}"
    head += "\nThe result is the list of the leaves of what the function returns.\n"
    if writer.imported:
        head += f"\nIt needs funcgrad for: {', '.join(sorted(writer.imported))}.\n"
    imports = ["import numpy as np", *writer.imports]
    return "\n\n".join(
        part.rstrip("\n") + "\n"
        for part in [
            head + '"""',
            "\n".join(imports),
            *(["\n".join(writer.constants)] if writer.constants else []),
            *helpers,
            *writer.functions.values(),
            *work,
            body,
        ]
    )


def _allocations(plan: Any) -> list[str]:
    """Write how to make the arrays of a plan; here each has memory of its own slot."""
    rows = []
    views = [(shape, plan.slots[slot][0], order) for slot, shape, order in plan.views]
    for shape, dtype, order in (*views, *plan.results):
        if order in ("C", "F"):
            layout = "" if order == "C" else f", {order!r}"
            rows.append(f"np.empty({shape}, {dtype.name!r}{layout})")
        else:
            axes = [int(axis) for axis in order]
            there = tuple([shape[axis] for axis in axes])
            back = tuple(np.argsort(axes).tolist())
            rows.append(f"np.empty({there}, {dtype.name!r}).transpose({back})")
    return rows


class _Preamble:
    """What the body mentions by name."""

    def __init__(self) -> None:
        self.constants: list[str] = []
        self.functions: dict[str, str] = {}
        self.imports: list[str] = []
        self.imported: list[str] = []

    def define(self, name: str, value: Any) -> None:
        """Write the definition of a name."""
        text = _value_text(value)
        if text is not None:
            self.constants.append(f"{name} = {text}")
            return
        copied = _copied(value) if isinstance(value, types.FunctionType) else None
        if copied is not None:
            own, others, values = copied
            for other, source in others.items():
                self.functions.setdefault(other, source)
            for constant, written in values.items():
                line = f"{constant} = {written}"
                if line not in self.constants:
                    self.constants.append(line)
            if own.name != name:
                own = ast.FunctionDef(**{**dict(ast.iter_fields(own)), "name": name})
            self.functions[name] = ast.unparse(ast.fix_missing_locations(own))
            return
        self.imported.append(name)
        self._import(name, value)

    def _import(self, name: str, value: Any) -> None:
        for primitive in DECLARED.values():
            if isinstance(primitive, Primitive) and primitive.forward is value:
                for line in (
                    "import funcgrad.rules  # noqa: F401",
                    "from funcgrad.core.primitive import DECLARED",
                ):
                    if line not in self.imports:
                        self.imports.append(line)
                self.constants.append(f"{name} = DECLARED[{primitive.name!r}].forward")
                return
        if isinstance(value, np.ufunc):
            self.imports.append(f"from scipy.special import {value.__name__} as {name}")
            self.imported.remove(name)
            return
        module, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if module and own.isidentifier():
            self.imports.append(f"from {module} import {own} as {name}")
        else:
            self.constants.append(
                f"{name} = NotImplemented  # {type(value).__name__}: it has no source"
            )


def _value_text(value: Any) -> str | None:
    """Write an array or a number so that it is the same again."""
    if isinstance(value, np.generic) and value.dtype.kind in "fciub":
        return f"np.array({value.item()!r}, {value.dtype.name!r})[()]".replace("inf", "np.inf")
    if type(value) is not np.ndarray or value.dtype.kind not in "fciub":
        return None
    if value.size <= _FEW and np.all(np.isfinite(value)):
        return f"np.array({value.tolist()!r}, {value.dtype.name!r})"
    first = value.flat[0] if value.size else None
    if first is not None and np.isfinite(first) and first != 0 and np.all(value == first):
        return f"np.full({value.shape}, {first.item()!r}, {value.dtype.name!r})"
    order: Any = "C" if value.flags.c_contiguous else "F"
    data = base64.b85encode(value.tobytes(order)).decode()
    rows = "\n".join(f"    {row!r}" for row in textwrap.wrap(data, _WIDTH))
    return (
        f"np.frombuffer(__import__('base64').b85decode(\n{rows}\n), {value.dtype.str!r})"
        f".reshape({value.shape}, order={order!r})"
    )


@functools.cache
def _copied(function: Any) -> Any:
    """Return a function's source, that of the functions it calls, and the values it mentions.

    None if it needs more than NumPy.
    """
    others: dict[str, str] = {}
    values: dict[str, str] = {}
    own = _collect(function, others, values, frozenset())
    return None if own is None else (own, others, values)


def _collect(
    function: Any, others: dict[str, str], values: dict[str, str], above: frozenset[Any]
) -> ast.FunctionDef | None:
    if function.__code__.co_freevars or function in above or len(above) > 4:
        return None
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    if not isinstance(parsed, ast.FunctionDef):
        return None
    parsed.decorator_list = []
    parsed.returns = None
    for argument in (*parsed.args.posonlyargs, *parsed.args.args, *parsed.args.kwonlyargs):
        argument.annotation = None
    for name in _globals_of(function.__code__):
        if name in ("np", "math") and name in function.__globals__:
            if function.__globals__[name] is np:
                continue
            return None
        if name in function.__globals__:
            value = function.__globals__[name]
        elif hasattr(builtins, name):
            continue
        else:
            continue  # an attribute
        if value is np.ndarray:
            values[name] = "np.ndarray"
        elif isinstance(value, types.FunctionType):
            inner = _collect(value, others, values, above | {function})
            if inner is None:
                return None
            if inner.name != name:
                return None
            others[name] = ast.unparse(inner)
        elif in_numpy(value) is not None and not isinstance(value, type):
            values[name] = str(in_numpy(value))
        elif type(value) in (int, float, str, bool, type(None), tuple):
            values[name] = repr(value)
        else:
            return None
    return parsed


def _globals_of(code: types.CodeType) -> list[str]:
    """Return the names that a function, and those within, may look up outside."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _globals_of(constant)
    return names
