"""Every exception that funcgrad raises on purpose, and the one place that words a message.

A message has three lines: what happened, where (the user's own line, the argument, the path
into their pytree), and what to write instead. Each class also derives from the built-in
exception that a caller would catch, so ``except TypeError`` works without knowing us.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, ModuleType
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

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> try:
    ...     fg.grad(np.sum)(np.array([1, 2]))
    ... except fg.errors.FuncgradError as error:
    ...     print(error.what)
    grad needs floating-point (real or complex) arrays, got int64[2]
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
    """An argument of a transform does not make sense: `argnums` out of range, no scalar...

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: x, argnums=1)(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.ArgumentError: argnums=1 of grad is out of range: ...
      where: ...
      fix:   count from 0, or name a keyword argument with argnames=
    """


class AxisNameError(FuncgradError, NameError):
    """A collective, such as `psum`, names an axis that no `vmap` around it has.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.psum(1.0, "batch")
    Traceback (most recent call last):
        ...
    funcgrad.errors.AxisNameError: psum refers to the axis name 'batch', which no vmap ... has; ...
      where: ...
      fix:   call it in a function under vmap(f, axis_name='batch')
    """


class DtypeError(FuncgradError, TypeError):
    """A value has a dtype (or is of a kind) that cannot be differentiated.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.grad(np.sum)(np.array([1, 2]))
    Traceback (most recent call last):
        ...
    funcgrad.errors.DtypeError: grad needs floating-point (real or complex) arrays, got int64[2]
      where: argument 0, ...
      fix:   convert it with x.astype(float), ...
    """


class ShapeError(FuncgradError, ValueError, TypeError):
    """An array has another shape than it needs to have.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.grad(np.sin)(np.ones(3))
    Traceback (most recent call last):
        ...
    funcgrad.errors.ShapeError: grad needs a function that returns a scalar, got float64[3]
      where: grad(sin) at ...
      fix:   reduce the output with np.sum or np.mean; or, ..., use funcgrad.jacobian
    """


class TreeMismatchError(FuncgradError, ValueError):
    """Two pytrees that should have the same structure do not.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.tree.map(np.add, {"a": 1.0}, {"b": 1.0})
    Traceback (most recent call last):
        ...
    funcgrad.errors.TreeMismatchError: the trees given to tree.map do not match
      where: the second tree at the root: missing key 'a', unexpected key 'b' ...
      fix:   give it the structure of the first tree
    """


class DeepTreeError(FuncgradError, RecursionError):
    """A pytree contains itself, or is nested more deeply than Python can recurse.

    Examples
    --------
    >>> import funcgrad as fg
    >>> tree = []
    >>> tree.append(tree)
    >>> fg.tree.leaves(tree)
    Traceback (most recent call last):
        ...
    funcgrad.errors.DeepTreeError: the tree contains itself
      where: [0] is the object at the root
      fix:   put a copy there, or leave it out
    """


class TracerLeakError(FuncgradError, RuntimeError):
    """A traced value was used after its transform ended, or was about to leave it.

    Examples
    --------
    >>> import funcgrad as fg
    >>> kept = []
    >>> fg.grad(lambda x: (kept.append(x), x * x)[1])(3.0)
    6.0
    >>> kept[0] + 1.0
    Traceback (most recent call last):
        ...
    funcgrad.errors.TracerLeakError: a value traced by grad(<lambda>) was used after ...
      where: ...
      fix:   return it from the function (with has_aux=True beside the result) ...
    >>> fg.debug.value(kept[0])
    3.0
    """


class TracerConversionError(TracerLeakError, TypeError):
    """A traced value was to become a plain number or array, which would lose its derivative.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: float(x) ** 2)(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.TracerConversionError: float() of a traced value, ..., would lose its derivative
      where: ...
      fix:   use the NumPy function (np.sin for math.sin), keep the array, or write ...
    """


class TracerValueError(TracerLeakError):
    """A function asked for a value that a compiled program does not know: ``if x > 0``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> __name__ = "train"  # a module of yours
    >>> fg.jit(lambda x: x if x > 0 else -x)(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.TracerValueError: jit(<lambda>) compiles for all values of its arguments, ...
      where: ...
      fix:   use funcgrad.cond(pred, f, g, x) or np.where(pred, a, b); or, ...
    """


class TracerAttributeError(ArgumentError, AttributeError):
    """An attribute of arrays that a traced value does not have: `hasattr` says so.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: x.data)(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.TracerAttributeError: ndarray.data does not work on a traced value: ...
      where: ...
      fix:   use a NumPy function that returns a new array, or funcgrad.stop_gradient(x).data
    """


class UnhashableTracerError(FuncgradError, TypeError):
    """A traced value was hashed: used as a dict key, a set element or a static argument.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: {x: 1.0}[x] * x)(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.UnhashableTracerError: a traced value cannot be hashed: ...
      where: ...
      fix:   use a plain value as the key, or a list in place of the set
    """


class MutationError(FuncgradError, TypeError, ValueError):
    """An array was assigned to in place where funcgrad cannot record that.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def f(x):
    ...     x[0] = 0.0
    ...     return np.sum(x)
    >>> fg.grad(f)(np.ones(2))
    Traceback (most recent call last):
        ...
    funcgrad.errors.MutationError: an argument of a transformed function ... in place
      where: ...
      fix:   copy it first: y = x.copy(); y[i] = v. ...
    """


class MissingRuleError(FuncgradError, NotImplementedError, TypeError):
    """A NumPy function has no rule for the transform that reached it.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.grad(lambda x: np.save("x.npy", x))(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.MissingRuleError: numpy.save has no rule for traced values: it writes ...
      where: ...
      fix:   save what the transform returns, or the aux value of has_aux=True
    """


class GradientCheckError(FuncgradError, AssertionError):
    """A derivative is not what finite differences of the function say.

    Examples
    --------
    >>> import funcgrad as fg
    >>> @fg.custom_vjp
    ... def double(x):
    ...     return 2 * x
    >>> double.defvjp(lambda x: (2 * x, None), lambda _, x_bar: (3 * x_bar,))  # wrong
    >>> fg.testing.check_grads(double, (1.0,), order=1)
    Traceback (most recent call last):
        ...
    funcgrad.errors.GradientCheckError: the JVP of double is wrong: ..., where ...
      where: argument 0; output 0; mode fwd, order 1
      fix:   see which of the functions it calls fails check_grads alone ...
    """


class SpecialisedError(FuncgradError, ValueError):
    """A program was recorded with other values, for which the function took another way.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> program = fg.make_program(lambda x: fg.cond(x > 0, np.sin, np.cos, x))(1.0)
    >>> program(-1.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.SpecialisedError: the program of <lambda> is specialised on ...
      where: ...
      fix:   record another program for these arguments
    """


class MissingExtraError(FuncgradError, ImportError):
    """A function needs a package that is not installed.

    Examples
    --------
    >>> import funcgrad as fg
    >>> raise fg.errors.MissingExtraError(
    ...     "matplotlib is not installed", where="train.py:12", fix="pip install 'funcgrad[plot]'"
    ... )
    Traceback (most recent call last):
        ...
    funcgrad.errors.MissingExtraError: matplotlib is not installed
      where: train.py:12
      fix:   pip install 'funcgrad[plot]'
    """


class NonFiniteError(FuncgradError, FloatingPointError):
    """An operation made a NaN or an infinity, which `funcgrad.debug` was told to stop at.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> with fg.debug.debug_nans(), np.errstate(invalid="ignore"):
    ...     fg.grad(lambda x: np.log(x - 3.0))(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.NonFiniteError: ...
      where: ...
      fix:   ...
    """


class TracerLeakWarning(UserWarning):
    """A traced value was stored where it outlives its transform: from `debug.check_leaks`.

    Examples
    --------
    >>> import funcgrad as fg
    >>> import warnings
    >>> kept = []
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     with fg.debug.check_leaks():
    ...         slope = fg.grad(lambda x: (kept.append(x), x * x)[1])(3.0)
    >>> "outlives it: float64[], stored in list" in str(caught[0].message)
    True
    """


class ConvergenceError(FuncgradError, RuntimeError):
    """An iteration did not come to an end.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.fixed_point(lambda x: 2 * x + 1, 1.0, maxiter=10)
    Traceback (most recent call last):
        ...
    funcgrad.errors.ConvergenceError: fixed_point(<lambda>) did not converge in 10 iterations
      where: fixed_point(<lambda>) at ...
      fix:   give it a larger maxiter= or tol=, or see whether f is a contraction
    """


class SingularJacobianError(FuncgradError, np.linalg.LinAlgError):
    """A solution has no derivative, as the Jacobian of its equation is singular.

    Examples
    --------
    >>> import funcgrad as fg
    >>> def double_root(a):
    ...     return fg.custom_root(lambda x: (x - a) ** 2, 1.0, lambda f, x: a)
    >>> fg.grad(double_root)(2.0)
    Traceback (most recent call last):
        ...
    funcgrad.errors.SingularJacobianError: the solution of <lambda> has no derivative: ...
      where: ...
      fix:   see whether the solution is unique, and moves smoothly; or ...
    """


class RepeatedValueWarning(UserWarning):
    """A gradient depends on single eigenvectors, or singular vectors, of a value that is repeated.

    Such vectors are any basis of the space that belongs to the value, so that they have no
    derivative; nor have functions of the matrix that depend on which basis it is. What does exist
    of the gradient is in it.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> import warnings
    >>> def f(a):
    ...     values, vectors = np.linalg.eigh(a)
    ...     return np.sum(vectors)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     slope = fg.grad(f)(np.diag([2.0, 2.0]))
    >>> print(caught[0].message)
    the gradient depends on single eigenvectors of a repeated eigenvalue: ...
      where: ...
      fix:   write the function without single vectors: ...
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
    if isinstance(value, type | ModuleType):
        return f"the {'class' if isinstance(value, type) else 'module'} {value.__name__}"
    if shape is not None and (dtype is not None or isinstance(shape, tuple)):
        kind = type(value).__name__ if dtype is None else dtype  # keys have no dtype
        return f"{kind}[{','.join(map(str, shape))}]"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
