"""What is said when a traced value is about to become a plain one, which has no derivative.

Python and NumPy ask for the value in few ways (``__array__``, ``__float__``, ...) and for many
reasons. The reason can be told from where they were called: the instruction at which the caller
is, the words of its source line, and whose code it is. Each has a way out of its own.
"""

from __future__ import annotations

import importlib.util
import linecache
import re
from itertools import islice
from opcode import opname
from typing import Any

import numpy as np

from funcgrad.core.foreign import refuse
from funcgrad.core.level import (
    FIX_ASSIGNMENT,
    TracerBase,
    is_batched,
    is_differentiated,
    traced_here,
)
from funcgrad.errors import (
    DtypeError,
    FuncgradError,
    TracerAttributeError,
    TracerConversionError,
    is_ours,
    numpy_function,
    package_of,
    user_line,
)

__all__ = [
    "array_error",
    "assignment_error",
    "batched_error",
    "called_by",
    "conversion_error",
    "float_error",
    "index_error",
    "int_error",
    "use_of",
]

_LOSES = "would lose its derivative"
_OF_LIBRARY = (
    "write this step with NumPy functions, which can be traced; or give it "
    "funcgrad.stop_gradient(x) if no derivative is wanted"
)


def conversion_error(
    tracer: TracerBase, what: str, fix: str, cls: type[FuncgradError] = TracerConversionError
) -> FuncgradError:
    """Make an error that says where; of a value that has escaped there is something else to say."""
    if tracer._trace.ended:
        tracer._trace.escaped()
    return cls(what, where=f"{user_line()}; {traced_here(tracer)}", fix=fix)


def assignment_error(tracer: TracerBase, name: str, fix: str) -> FuncgradError:
    """Make the error for an attribute that cannot be assigned to."""
    return conversion_error(
        tracer, f".{name} of a traced array cannot be assigned to", fix, TracerAttributeError
    )


_DIFFERS = "gives one number, but the value differs from example to example"
_KEEP = "keep the array, and use NumPy's functions on it"


def batched_error(tracer: TracerBase) -> FuncgradError:
    """Make the error for ``if x > 0`` where `x` stands for many examples, each with an answer."""
    return conversion_error(
        tracer,
        "a batched value has no truth value: it differs from example to example",
        "use np.where(condition, a, b), or np.any(...) of an array of conditions outside of vmap",
    )


def _overlooked(tracer: TracerBase) -> FuncgradError | None:
    """Make the error for a function of NumPy that overlooks traced arguments, if it is one."""
    name = numpy_function()
    # By name, for a message: nothing of this module rests on that one.
    if name is None or name not in importlib.import_module("funcgrad.numpy.aside").__all__:
        return None
    return conversion_error(
        tracer,
        f"numpy.{name} does not see traced values in a list, nor in arguments other than its array",
        f"use funcgrad.numpy.{name}, which does; or join a list first, for instance "
        f"np.{name}(np.stack([a, b]))",
    )


def array_error(tracer: TracerBase, frame: Any, dtype: Any) -> FuncgradError:
    """Make the error for `frame`, which wants the value as an array, of `dtype` if known."""
    _refuse_method_of_foreign(frame)
    overlooked = _overlooked(tracer)
    if overlooked is not None:
        return overlooked
    by_scipy = _by_scipy(tracer, frame)
    if by_scipy is not None:
        return by_scipy
    use = use_of(frame)
    if use == "index" and tracer.dtype.kind in "iub":  # type: ignore[attr-defined]
        return conversion_error(
            tracer,
            f"a plain NumPy array cannot be indexed by {_kind(tracer)} that "
            "differs from example to example",
            "write funcgrad.numpy.asarray(a)[i] or funcgrad.numpy.take(a, i, axis=0), or make the "
            "array an argument of the function, with None in in_axes",
        )
    if use == "index":
        return conversion_error(
            tracer,
            "a traced value cannot be the index of a plain NumPy array",
            "use integers: np.floor(x).astype(int) gives plain ones. A mask is made by a "
            "comparison, which gives plain booleans",
        )
    if use == "assignment":
        if dtype is not None and np.dtype(dtype).kind in "iub":
            return _integer(tracer, f"an array of {np.dtype(dtype)}")
        return conversion_error(
            tracer,
            "a plain NumPy array cannot be assigned, or be indexed by, a traced value",
            FIX_ASSIGNMENT,
        )
    what = "a plain NumPy array cannot hold a traced value"
    caller = frame
    while caller is not None and is_ours(caller.f_code.co_filename):
        caller = caller.f_back
    package = None if caller is None else package_of(caller.f_code.co_filename)
    if package is not None:
        what += f", and {package} would make one of it"
        return conversion_error(tracer, what, _instead(caller) or _OF_LIBRARY)
    name = numpy_function()
    if name == "full":
        return conversion_error(tracer, what, "use funcgrad.numpy.full(shape, x)")
    if name is not None and name in np.__all__ and callable(getattr(np, name)):
        return conversion_error(
            tracer,
            f"{what}: numpy.{name} would make one of its argument, a list perhaps",
            f"join the parts first: np.{name}(np.stack([a, b])), or funcgrad.numpy.array([a, b])",
        )
    called = _called(frame)
    last = called.rpartition(".")[2]
    made = getattr(np, last, None) if called else None
    if isinstance(made, type) and issubclass(made, np.generic):
        return conversion_error(
            tracer,
            f"{what}, nor can a NumPy scalar: {called}() {_LOSES}",
            f"keep the array: x.astype(np.{last}) casts it, and is traced",
        )
    if callable(made):
        what += f": {called}() {_LOSES}"
    use_instead = "array or funcgrad.numpy.asarray"
    if last in ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray"):
        use_instead = last
    return conversion_error(
        tracer,
        what,
        f"use funcgrad.numpy.{use_instead}, or join the parts with np.stack; "
        "to assign it into an array, make that one with np.zeros_like(x) or "
        "funcgrad.numpy.zeros",
    )


def _by_scipy(tracer: TracerBase, frame: Any) -> FuncgradError | None:
    """Make the error for a function of SciPy that has a replacement here, if one wants it."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or package_of(frame.f_code.co_filename) != "scipy":
        return None
    fix = _instead(frame)
    if fix is None:
        return None
    what = "a plain NumPy array cannot hold a traced value, and scipy would make one of it"
    return conversion_error(tracer, what, fix)


def _instead(frame: Any) -> str | None:
    """Return what to use for the function of SciPy that the user called, if `frame` is in one."""
    found = None
    while frame is not None and package_of(frame.f_code.co_filename) == "scipy":
        # A function, a helper of one, or what a decorator made of the function `f`.
        wrapped = frame.f_locals.get("f")
        module = str(getattr(wrapped, "__module__", ""))
        if not module.startswith("scipy."):  # a function of the user's
            module = frame.f_globals.get("__name__", "")
        names = (getattr(wrapped, "__name__", ""), frame.f_code.co_name)
        part = "".join(module.split(".")[1:2])
        if part == "stats":  # a method of a distribution, maybe of a frozen one
            owner = frame.f_locals.get("self")
            owner = getattr(owner, "dist", owner)
            distribution = getattr(owner, "name", None) or type(owner).__name__
            distribution = distribution.removesuffix("_gen").removesuffix("_frozen")
            if owner is not None and distribution in _replaced(part):
                return f"use funcgrad.scipy.stats.{distribution}, which takes traced values"
        for name in names:
            if name in _replaced(part):
                found = f"use funcgrad.scipy.{part}.{name}, which takes traced values"
        frame = frame.f_back
    # Called by the function of that name here it is no advice.
    return None if frame is not None and is_ours(frame.f_code.co_filename) else found


def _replaced(part: str) -> set[str]:
    """Return the names that a part of `funcgrad.scipy` has of its own."""
    if not part or importlib.util.find_spec(f"funcgrad.scipy.{part}") is None:
        return set()
    # By name, for a message: nothing of this module rests on that one.
    return set(importlib.import_module(f"funcgrad.scipy.{part}").__all__)


def _kind(tracer: TracerBase) -> str:
    return "a boolean mask" if tracer.dtype.kind == "b" else "an integer"  # type: ignore[attr-defined]


def index_error(tracer: TracerBase, frame: Any) -> FuncgradError:
    """Make the error for `frame`, which wants the value as an index, a length or an axis."""
    whole = tracer.dtype.kind in "iub"  # type: ignore[attr-defined]
    if whole and use_of(frame) == "index":
        return array_error(tracer, frame, None)
    if whole and _called(frame) == "range":
        return conversion_error(
            tracer,
            "the length of a loop differs from example to example",
            "write funcgrad.fori_loop(0, n, lambda i, carry: ..., start), where each example "
            "counts its own; or range(n) of an integer that is the same for all",
        )
    return conversion_error(
        tracer,
        "a traced value cannot be an index, a length or an axis",
        "use an integer: np.floor(x).astype(int) gives plain integers"
        if not whole
        else "use an integer that is the same for all examples; for a slice x[i:i+n] write "
        "np.take(x, i + np.arange(n), axis=0)",
    )


def float_error(tracer: TracerBase, frame: Any) -> FuncgradError:
    """Make the error for `frame`, which wants the value as a Python float."""
    _refuse_method_of_foreign(frame)
    overlooked = _overlooked(tracer)
    if overlooked is not None:
        return overlooked
    by_scipy = _by_scipy(tracer, frame)
    if by_scipy is not None:
        return by_scipy
    if is_batched(tracer):
        called = _called(frame).rpartition(".")[2] or "float"
        numpy = f"use np.{called}(x)" if callable(getattr(np, called, None)) else _KEEP
        return conversion_error(tracer, f"{called}() {_DIFFERS}", numpy)
    if use_of(frame) == "formatting":
        return conversion_error(
            tracer,
            "the % operator of strings calls float(), and float() of a traced value " + _LOSES,
            'write f"{x:.2f}", which prints the value, or "%.2f" % funcgrad.stop_gradient(x)',
        )
    fix = "use the NumPy function (np.sin for math.sin)"
    called = _called(frame)
    last = called.rpartition(".")[2]
    if called and last != "float" and callable(getattr(np, last, None)):
        fix = f"use np.{last} for {called}"
    return conversion_error(
        tracer,
        f"float() of a traced value, also by a function of the math module, {_LOSES}",
        f"{fix}, keep the array, or write float(funcgrad.stop_gradient(x)) "
        "if no derivative is wanted",
    )


def int_error(tracer: TracerBase, frame: Any) -> FuncgradError:
    """Make the error for `frame`, which wants the value as an integer."""
    overlooked = _overlooked(tracer)
    if overlooked is not None:
        return overlooked
    if use_of(frame) == "assignment":
        return _integer(tracer, "an array of integers or booleans")
    if is_batched(tracer):
        what, fix = f"int() {_DIFFERS}", "keep the array: x.astype(int) converts all examples"
        return conversion_error(tracer, what, fix)
    return conversion_error(
        tracer,
        f"int() of a traced value {_LOSES}",
        "use np.floor(x).astype(int), which gives plain integers, or "
        "int(funcgrad.stop_gradient(x))",
    )


def _integer(tracer: TracerBase, array: str) -> FuncgradError:
    if not is_differentiated(tracer):
        return conversion_error(
            tracer,
            "a plain NumPy array cannot be assigned a value that differs from example to example",
            FIX_ASSIGNMENT,
        )
    return conversion_error(
        tracer,
        f"{array} cannot be assigned a traced value: its dtype has no derivative",
        "leave dtype=int away: " + FIX_ASSIGNMENT,
        DtypeError,
    )


def _refuse_method_of_foreign(frame: Any) -> None:
    """Raise if a method of another kind of array is running: ``series * x`` ends up here."""
    for _ in range(20):
        if frame is None:
            return
        code = frame.f_code
        if code.co_argcount:
            owner = frame.f_locals.get(code.co_varnames[0])
            if hasattr(type(owner), code.co_name) and not isinstance(owner, TracerBase):
                refuse(owner)
        frame = frame.f_back


def called_by(frame: Any) -> str:
    """Return the name of the function that wants a value: NumPy's, or as the caller writes it."""
    return numpy_function() or _called(frame).rpartition(".")[2]


def use_of(frame: Any) -> str:
    """Tell by the instruction at which `frame` is what it wants a value for."""
    code = frame.f_code.co_code
    name, operand = opname[code[frame.f_lasti]], code[frame.f_lasti + 1]
    if name == "STORE_SUBSCR":
        return "assignment"
    # Python 3.14 has a binary operation number 26 in place of the instruction.
    if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and operand == 26):
        return "index"
    if name == "BINARY_OP" and operand in (6, 19):  # % and %=
        return "formatting"
    return "conversion"


def _called(frame: Any) -> str:
    """Return what the caller calls the function that it is calling, such as ``np.asarray``."""
    code = frame.f_code
    place = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
    if place is None or place[0] is None or place[2] is None:
        return ""
    line = linecache.getline(code.co_filename, place[0]).encode()[place[2] :]
    match = re.match(r"([A-Za-z_][\w.]*)\(", line.decode(errors="ignore"))
    return match[1] if match else ""
