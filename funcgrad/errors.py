"""Every exception that funcgrad raises on purpose, and the one place that words a message.

A message has three lines: what happened, where (the user's own line, the argument, the path
into their pytree), and what to write instead. Each class also derives from the built-in
exception that a caller would catch, so ``except TypeError`` works without knowing us.
"""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

import numpy as np

__all__ = [
    "ArgumentError",
    "AxisNameError",
    "ConvergenceError",
    "DeepTreeError",
    "DtypeError",
    "FuncgradError",
    "GradientCheckError",
    "MissingExtraError",
    "MissingRuleError",
    "MutationError",
    "NonFiniteError",
    "RepeatedValueWarning",
    "ShapeError",
    "SingularJacobianError",
    "SpecialisedError",
    "TracerAttributeError",
    "TracerConversionError",
    "TracerLeakError",
    "TracerLeakWarning",
    "TracerValueError",
    "TreeMismatchError",
    "UnhashableTracerError",
]


class FuncgradError(Exception):
    """Base of every error raised on purpose.

    Parameters
    ----------
    what : str
        What happened, in the words of the user's code.
    where : str
        The argument, pytree path or source line that it concerns.
    fix : str
        What to write instead.
    """

    def __init__(self, what: str, *, where: str, fix: str) -> None:
        super().__init__(f"{what}\n  where: {where}\n  fix:   {fix}")
        self.what = what
        self.where = where
        self.fix = fix

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.fix)


def _rebuild(cls: type[FuncgradError], what: str, where: str, fix: str) -> FuncgradError:
    return cls(what, where=where, fix=fix)


class ArgumentError(FuncgradError, ValueError, TypeError):
    """An argument of a transform does not make sense: `argnums` out of range, no scalar..."""


class AxisNameError(FuncgradError, NameError):
    """A collective, such as `psum`, names an axis that no `vmap` around it has."""


class DtypeError(FuncgradError, TypeError):
    """A value has a dtype (or is of a kind) that cannot be differentiated."""


class ShapeError(FuncgradError, ValueError, TypeError):
    """An array has another shape than it needs to have."""


class TreeMismatchError(FuncgradError, ValueError):
    """Two pytrees that should have the same structure do not."""


class DeepTreeError(FuncgradError, RecursionError):
    """A pytree contains itself, or is nested more deeply than Python can recurse."""


class TracerLeakError(FuncgradError, RuntimeError):
    """A traced value was used after its transform ended, or was about to leave it."""


class TracerConversionError(TracerLeakError, TypeError):
    """A traced value was to become a plain number or array, which would lose its derivative."""


class TracerValueError(TracerLeakError):
    """A function asked for a value that a compiled program does not know: ``if x > 0``."""


class TracerAttributeError(ArgumentError, AttributeError):
    """An attribute of arrays that a traced value does not have: `hasattr` says so."""


class UnhashableTracerError(FuncgradError, TypeError):
    """A traced value was hashed: used as a dict key, a set element or a static argument."""


class MutationError(FuncgradError, TypeError, ValueError):
    """An array was assigned to in place where funcgrad cannot record that."""


class MissingRuleError(FuncgradError, NotImplementedError, TypeError):
    """A NumPy function has no rule for the transform that reached it."""


class GradientCheckError(FuncgradError, AssertionError):
    """A derivative is not what finite differences of the function say."""


class SpecialisedError(FuncgradError, ValueError):
    """A program was recorded with other values, for which the function took another way."""


class MissingExtraError(FuncgradError, ImportError):
    """A function needs a package that is not installed."""


class NonFiniteError(FuncgradError, FloatingPointError):
    """An operation made a NaN or an infinity, which `funcgrad.debug` was told to stop at."""


class TracerLeakWarning(UserWarning):
    """A traced value was stored where it outlives its transform: from `debug.check_leaks`."""


class ConvergenceError(FuncgradError, RuntimeError):
    """An iteration did not come to an end."""


class SingularJacobianError(FuncgradError, np.linalg.LinAlgError):
    """A solution has no derivative, as the Jacobian of its equation is singular."""


class RepeatedValueWarning(UserWarning):
    """A gradient depends on single eigenvectors, or singular vectors, of a value that is repeated.

    Such vectors are any basis of the space that belongs to the value, so that they have no
    derivative; nor have functions of the matrix that depend on which basis it is. What does exist
    of the gradient is in it.
    """


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NUMPY = os.path.dirname(np.__file__) + os.sep
_PYTHON = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
# What the directories are called that packages are installed into; Debian has its own.
_INSTALLED = ("site-packages" + os.sep, "dist-packages" + os.sep)


def location(code: CodeType, line: int) -> str:
    """Write a source line as ``file.py:12``, relative to the working directory if below it."""
    name = code.co_filename
    for directory in _INSTALLED:
        _, found, inner = name.rpartition(directory)
        if found:
            return f"{inner}:{line}"
    try:
        relative = os.path.relpath(name)
    except (ValueError, OSError):  # another drive, or no working directory
        relative = name
    return f"{name if relative.startswith('..') else relative}:{line}"


def is_ours(filename: str) -> bool:
    """Tell whether a source file belongs to funcgrad or to NumPy."""
    return filename.startswith((_PACKAGE, _NUMPY))


def is_library(filename: str) -> bool:
    """Tell whether a source file belongs to Python or to an installed package."""
    return filename.startswith((_PYTHON, "<frozen ")) or any(
        directory in filename for directory in _INSTALLED
    )


def package_of(filename: str) -> str | None:
    """Return the name of the installed package that a source file belongs to."""
    for directory in _INSTALLED:
        _, found, inner = filename.rpartition(directory)
        if found:
            return inner.partition(os.sep)[0].removesuffix(".py")
    return None


def user_line() -> str:
    """Return the innermost line on the stack that is neither funcgrad's nor NumPy's.

    If that is in another library, the innermost line outside of libraries comes first.
    """
    frame: Any = sys._getframe(1)
    through = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_ours(name):
            place = location(frame.f_code, frame.f_lineno)
            if not is_library(name):
                return f"{place}, through {through}" if through else place
            through = through or place
        frame = frame.f_back
    return through or "an unknown line"


def numpy_function() -> str | None:
    """Return the name of the function of NumPy's, written in Python, that the user called."""
    frame: Any = sys._getframe(1)
    name = None
    while frame is not None and is_ours(frame.f_code.co_filename):
        name = frame.f_code.co_name if frame.f_code.co_filename.startswith(_NUMPY) else None
        frame = frame.f_back
    return name


def describe(value: object) -> str:
    """Write a value as messages show it: arrays as ``float64[3,4]``, others by type and repr."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and (dtype is not None or isinstance(shape, tuple)):
        kind = type(value).__name__ if dtype is None else dtype  # keys have no dtype
        return f"{kind}[{','.join(map(str, shape))}]"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
