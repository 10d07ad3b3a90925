"""Tracer: stands in for an array while a transform watches, and behaves like one.

Attributes that need no buffer, the operators and the methods of `numpy.ndarray` work; each goes
to the NumPy function of the same meaning and from there to a primitive. The ways in which
Python or NumPy would quietly turn a tracer into a plain number or array (``float(x)``,
``np.array([x])``, ``math.sin(x)``) end in an error instead: what came out would have no
derivative.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from numbers import Rational
from typing import Any, NoReturn

import numpy as np

from funcgrad.core import assign, exits
from funcgrad.core.dispatch import call_function, call_ufunc
from funcgrad.core.foreign import PLAIN, argument, number
from funcgrad.core.level import TracerBase, concrete, is_array, is_batched, looked_at, traced_here
from funcgrad.core.primitive import FUNCTIONS, UFUNCS
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import (
    ArgumentError,
    TracerAttributeError,
    UnhashableTracerError,
    user_line,
)

__all__ = ["Tracer", "unwrap"]

_MATMUL = np.matmul
_OF_PYTHON = {bool: np.dtype(bool), int: np.dtype(int)}


def _operand(self: Tracer, other: Any) -> Any:
    """Return what an operator computes with, or NotImplemented to let `other` answer.

    Called where the type of `other` is not one of `PLAIN`: it may have its own idea of ``x * y``.
    """
    if isinstance(other, list | tuple):
        return np.asanyarray(other)
    if isinstance(other, float | int | complex | np.generic | TracerBase):
        return other
    if getattr(other, "__array_priority__", 0.0) > 0.0 and not hasattr(other, "__array_ufunc__"):
        return NotImplemented  # as an ndarray does
    made = number(argument(other), not is_array(self))
    if isinstance(made, float) or getattr(type(made), "__array_ufunc__", None) is not None:
        return made
    return NotImplemented


def _binary(ufunc: Any, op: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Make an operator and its reflection, with the values computed by `op` as Python would."""

    def forward(self: Tracer, other: Any) -> Any:
        trace = self._trace
        kind = type(other)
        if kind is Tracer:
            if other._trace.level > trace.level:
                trace = other._trace
        elif kind not in PLAIN:
            other = _operand(self, other)
            if other is NotImplemented:
                return other
        return trace.binary(UFUNCS[ufunc], op, self, other)

    def reflected(self: Tracer, other: Any) -> Any:
        if type(other) not in PLAIN:
            other = _operand(self, other)
            if other is NotImplemented:
                return other
        return self._trace.binary(UFUNCS[ufunc], op, other, self)

    return forward, reflected


def _comparison(ufunc: Any, op: Callable[[Any, Any], Any]) -> Any:
    compare, _ = _binary(ufunc, op)

    def forward(self: Tracer, other: Any) -> Any:
        kind = type(other)
        if kind not in PLAIN and (kind.__module__ == "builtins" or isinstance(other, Rational)):
            return op(concrete(self), other)  # None, a string, ...: no operands, but comparable
        return compare(self, other)

    return forward


def _square(x: Any) -> Any:
    return x**2


def _power() -> tuple[Any, Any]:
    power, reflected = _binary(np.power, operator.pow)

    def forward(self: Tracer, other: Any, modulus: Any = None) -> Any:
        if type(other) is int and other == 2 and modulus is None:  # with a simpler derivative
            return self._trace.unary(UFUNCS[np.square], _square, self)
        if modulus is not None:
            return pow(concrete(self), concrete(other), concrete(modulus))  # raises, of floats
        return power(self, other)

    return forward, reflected


def _in_place(op: Callable[[Any, Any], Any]) -> Any:
    def update(self: Tracer, other: Any) -> Any:
        # A scalar is a value, and x += y makes a new one; an array changes, for all who hold it.
        if not is_array(self):
            return NotImplemented
        return assign.update(self, op(self, other), other)

    return update


def _matmul(self: Tracer, other: Any) -> Any:
    if type(other) not in PLAIN:
        other = _operand(self, other)
    return other if other is NotImplemented else FUNCTIONS[_MATMUL].bind(self, other)


def _reflected_matmul(self: Tracer, other: Any) -> Any:
    if type(other) not in PLAIN:
        other = _operand(self, other)
    return other if other is NotImplemented else FUNCTIONS[_MATMUL].bind(other, self)


def _unary(ufunc: Any, op: Callable[[Any], Any]) -> Any:
    def forward(self: Tracer) -> Any:
        return self._trace.unary(UFUNCS[ufunc], op, self)

    return forward


def _method(name: str) -> Any:
    function = getattr(np, name)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        # Without NumPy's dispatch where it would come back to us at once.
        return FUNCTIONS.get(function, function)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Return ``np.{name}`` of this array."
    return method


class Tracer(TracerBase):
    """An array, or a number, in a function that a transform is running.

    You meet one when you print or inspect the arguments inside of a function given to `grad` or
    `jvp`. It prints with its value, and works wherever an array works but where its value would
    be copied into a plain one.
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    # What it looks like

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array; ``()`` for a number."""
        shape = shape_of(self._value)
        return shape[1:] if self._trace.lead else shape

    @shape.setter
    def shape(self, value: Any) -> None:
        raise exits.assignment_error(self, "shape", "write y = y.reshape(shape)")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array; of a Python number the one that NumPy gives it."""
        value = self._value
        return _OF_PYTHON[type(value)] if type(value) in _OF_PYTHON else dtype_of(value)

    @dtype.setter
    def dtype(self, value: Any) -> None:
        raise exits.assignment_error(self, "dtype", "write y = y.astype(dtype)")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """Where the array lives: ``"cpu"``, as NumPy says."""
        return getattr(concrete(self), "device", "cpu")

    @property
    def T(self) -> Any:
        """The transposed array."""
        return np.transpose(self)

    @T.setter
    def T(self, value: Any) -> None:
        raise exits.assignment_error(
            self, "T", "write y = y.T, or y[...] = v to assign the elements"
        )

    @property
    def mT(self) -> Any:
        """The array with its last two axes swapped."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return np.swapaxes(self, -1, -2)

    @mT.setter
    def mT(self, value: Any) -> None:
        raise exits.assignment_error(
            self, "mT", "write y = y.mT, or y[...] = v to assign the elements"
        )

    @property
    def real(self) -> Any:
        """The real part, which may be assigned to where the array may."""
        part = np.real(self)
        assign.name_part(part, self, "real")
        return part

    @real.setter
    def real(self, value: Any) -> None:
        assign.assign(self, "real" if self.dtype.kind == "c" else ..., value)

    @property
    def imag(self) -> Any:
        """The imaginary part, which may be assigned to where a complex array may."""
        part = np.imag(self)
        assign.name_part(part, self, "imag")
        return part

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise exits.assignment_error(
                self, "imag", "make the array complex: y = y.astype(complex)"
            )
        assign.assign(self, "imag", value)

    @property
    def flat(self) -> Any:
        """The elements in order, to iterate over or to index."""
        return np.ravel(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        np.put(self, np.arange(self.size), value)  # type: ignore[arg-type]

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        if not self.shape and not is_array(self):
            raise TypeError("a number is not iterable")
        return bool(np.any(self == value))

    def __repr__(self) -> str:
        if self._trace.level == 0:
            return f"Traced({self._value!r}, a constant)"
        return f"Traced({concrete(self)!r}, by {self._trace.origin})"

    def __str__(self) -> str:
        return str(concrete(self))

    def __format__(self, spec: str) -> str:
        below: Any = self
        while isinstance(below, TracerBase):
            trace: Any = below._trace
            if spec and trace.records and not trace.ended:
                trace.show(below)
            below = below._value
        value = below
        if spec and isinstance(value, np.ndarray) and not is_array(self):  # of many examples

            def formatted(number: Any) -> str:
                return format(number, spec)

            return np.array2string(value, formatter={"all": formatted})
        return format(value, spec)

    # Rounding a number gives a plain one: like np.floor, it carries no derivative.

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self._number("round", "np.round"), *(() if ndigits is None else (ndigits,)))

    def __floor__(self) -> Any:
        return math.floor(self._number("math.floor", "np.floor"))

    def __ceil__(self) -> Any:
        return math.ceil(self._number("math.ceil", "np.ceil"))

    def __trunc__(self) -> Any:
        return math.trunc(self._number("math.trunc", "np.trunc"))

    def is_integer(self) -> bool:
        """Tell whether a number is integral."""
        value: bool = self._number("is_integer", "x == np.floor").is_integer()
        return value

    def _number(self, function: str, instead: str) -> Any:
        """Return the plain number; raise if it is one of many examples."""
        if isinstance(concrete(self), np.ndarray) and not is_array(self):
            raise exits.conversion_error(
                self,
                f"{function}() gives one number, but the value differs from example to example",
                f"use {instead}(x), which takes all examples",
            )
        return looked_at(self, f"{function}()")

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            primitive = UFUNCS.get(ufunc)
            if primitive is None:
                return call_ufunc(ufunc, method, inputs, kwargs)
            count = len(inputs)
            if count == 1:
                return self._trace.unary(primitive, ufunc, self)
            if count == 2:
                x, y = inputs
                trace = self._trace
                if type(x) is Tracer:
                    if x._trace.level > trace.level:
                        trace = x._trace
                elif type(x) not in PLAIN:
                    x = np.asanyarray(x) if isinstance(x, list | tuple) else argument(x)
                if type(y) is Tracer:
                    if y._trace.level > trace.level:
                        trace = y._trace
                elif type(y) not in PLAIN:
                    y = np.asanyarray(y) if isinstance(y, list | tuple) else argument(y)
                return trace.binary(primitive, ufunc, x, y)
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, fun: Any, types: Any, args: Any, kwargs: Any) -> Any:
        handler = FUNCTIONS.get(fun)
        return call_function(fun, args, kwargs) if handler is None else handler(*args, **kwargs)

    # Operators

    __add__, __radd__ = _binary(np.add, operator.add)
    __sub__, __rsub__ = _binary(np.subtract, operator.sub)
    __mul__, __rmul__ = _binary(np.multiply, operator.mul)
    __truediv__, __rtruediv__ = _binary(np.true_divide, operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(np.floor_divide, operator.floordiv)
    __mod__, __rmod__ = _binary(np.remainder, operator.mod)
    __pow__, __rpow__ = _power()
    __matmul__, __rmatmul__ = _matmul, _reflected_matmul
    __eq__ = _comparison(np.equal, operator.eq)
    __ne__ = _comparison(np.not_equal, operator.ne)
    __lt__ = _comparison(np.less, operator.lt)
    __le__ = _comparison(np.less_equal, operator.le)
    __gt__ = _comparison(np.greater, operator.gt)
    __ge__ = _comparison(np.greater_equal, operator.ge)
    __and__, __rand__ = _binary(np.bitwise_and, operator.and_)
    __or__, __ror__ = _binary(np.bitwise_or, operator.or_)
    __xor__, __rxor__ = _binary(np.bitwise_xor, operator.xor)
    __lshift__, __rlshift__ = _binary(np.left_shift, operator.lshift)
    __rshift__, __rrshift__ = _binary(np.right_shift, operator.rshift)
    __invert__ = _unary(np.invert, operator.invert)
    __neg__ = _unary(np.negative, operator.neg)
    __pos__ = _unary(np.positive, operator.pos)
    __abs__ = _unary(np.absolute, operator.abs)

    __iadd__ = _in_place(operator.add)
    __isub__ = _in_place(operator.sub)
    __imul__ = _in_place(operator.mul)
    __itruediv__ = _in_place(operator.truediv)
    __ifloordiv__ = _in_place(operator.floordiv)
    __imod__ = _in_place(operator.mod)
    __ipow__ = _in_place(operator.pow)
    __iand__ = _in_place(operator.and_)
    __ior__ = _in_place(operator.or_)
    __ixor__ = _in_place(operator.xor)
    __ilshift__ = _in_place(operator.lshift)
    __irshift__ = _in_place(operator.rshift)
    __imatmul__ = _in_place(operator.matmul)

    def __divmod__(self, other: Any) -> Any:
        other = _operand(self, other)
        return other if other is NotImplemented else (self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        other = _operand(self, other)
        return other if other is NotImplemented else (other // self, other % self)

    def __getitem__(self, index: Any) -> Any:
        return FUNCTIONS[operator.getitem](self, index=index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):  # which would name a part, see `assign`
            np.empty(0)[index] = 0  # type: ignore[call-overload]  # raises
        assign.assign(self, index, value)

    def __delitem__(self, index: Any) -> None:
        raise ArgumentError(
            "the elements of an array cannot be deleted",
            where=f"{user_line()}; {traced_here(self)}",
            fix="write y = np.delete(y, i), or y = y[1:]",
        )

    # Methods of numpy.ndarray. Those that NumPy spells as a function go there.

    all = _method("all")
    any = _method("any")
    argmax = _method("argmax")
    argmin = _method("argmin")
    argpartition = _method("argpartition")
    argsort = _method("argsort")
    choose = _method("choose")
    clip = _method("clip")
    cumprod = _method("cumprod")
    cumsum = _method("cumsum")
    diagonal = _method("diagonal")
    dot = _method("dot")
    max = _method("max")
    mean = _method("mean")
    min = _method("min")
    nonzero = _method("nonzero")
    prod = _method("prod")
    ravel = _method("ravel")
    repeat = _method("repeat")
    round = _method("round")
    searchsorted = _method("searchsorted")
    squeeze = _method("squeeze")
    std = _method("std")
    sum = _method("sum")
    swapaxes = _method("swapaxes")
    take = _method("take")
    trace = _method("trace")
    var = _method("var")

    def conj(self) -> Any:
        """Return the complex conjugate; of a real array that is the array itself, no copy."""
        return np.conjugate(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """Return the array with another shape, given as a tuple or as several integers."""
        new = shape[0] if len(shape) == 1 else shape
        return np.reshape(self, new, order=order)

    def transpose(self, *axes: Any) -> Any:
        """Return the array with its axes permuted."""
        if not axes or axes == (None,):
            return np.transpose(self)
        return np.transpose(self, axes[0] if len(axes) == 1 else axes)

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy with one axis."""
        return np.copy(np.ravel(self, order))

    def copy(self, order: Any = "C") -> Any:
        """Return a copy, which may be assigned to; a scalar is a value, and its own copy."""
        return np.copy(self, order=order) if is_array(self) else self

    def astype(
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """Return a copy cast to `dtype`; a cast to integers or booleans ends the derivative."""
        if casting != "unsafe" and not np.can_cast(self.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {np.dtype(dtype)!r} "
                f"according to the rule {casting!r}"
            )
        return FUNCTIONS[np.astype](self, dtype, copy=copy)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Any:
        """Return the slices along `axis` where `condition` is true."""
        return np.compress(condition, self, axis=axis, out=out)

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        """Assign to elements of the flattened array, as a functional update."""
        np.put(self, indices, values, mode=mode)  # type: ignore[arg-type]

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Sort in place, as a functional update."""
        self[...] = np.sort(self, axis=axis, kind=kind, order=order)

    def partition(
        self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None
    ) -> None:
        """Sort in part, in place, as a functional update."""
        self[...] = np.partition(self, kth, axis=axis, kind=kind, order=order)

    def fill(self, value: Any) -> None:
        """Assign one value to all elements."""
        self[...] = value

    # The guarded exits

    def __bool__(self) -> bool:
        trace = self._trace
        if trace.ended:
            trace.escaped()
        if trace.lead:
            raise exits.batched_error(self)
        return bool(trace.look(self, "the truth value"))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        if self._trace.level == 0:
            return self._as_plain(*args, **kwargs)
        if self._trace.records:
            return np.array(self._trace.look(self, "an array of its values"), *args, **kwargs)
        raise exits.array_error(self, sys._getframe(1), args[0] if args else kwargs.get("dtype"))

    def _as_plain(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a constant as an array; without a copy it is read-only, as others may hold it."""
        value = np.array(self._value, dtype=dtype, copy=copy)
        if not copy and value is self._value and isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    def _plain(self, what: str, fix: str) -> Any:
        """Return the value if it is a constant; raise for one that has a derivative to lose."""
        if self._trace.level == 0:
            return self._value
        if self._trace.records:
            return self._trace.look(self, what.partition(" of a traced")[0])
        if is_batched(self):
            called, _, _ = what.partition(" of a traced")
            what = f"{called} asks for plain values, but these differ from example to example"
            fix = "keep the array, and return what is wanted from the function"
        raise exits.conversion_error(self, what, fix)

    def __float__(self) -> float:
        if self._trace.level == 0:
            return float(self._value)
        if self._trace.records:
            return float(self._trace.look(self, "float()"))
        raise exits.float_error(self, sys._getframe(1))

    def __int__(self) -> int:
        if self._trace.level == 0:
            return int(self._value)
        if self._trace.records:
            return int(self._trace.look(self, "int()"))
        raise exits.int_error(self, sys._getframe(1))

    def __complex__(self) -> complex:
        return complex(
            self._plain(
                "complex() of a traced value would lose its derivative",
                "write x + 0j, or complex(funcgrad.stop_gradient(x))",
            )
        )

    def __index__(self) -> int:
        if self._trace.level == 0:
            return operator.index(self._value)
        if self._trace.records:
            return operator.index(self._trace.look(self, "an index, a length or an axis"))
        raise exits.index_error(self, sys._getframe(1))

    def item(self, *args: Any) -> Any:
        """Return a constant as a Python number; a traced value is refused."""
        return self._plain(
            ".item() of a traced value would lose its derivative",
            "keep the array, or write funcgrad.stop_gradient(x).item()",
        ).item(*args)

    def tolist(self) -> Any:
        """Return a constant as nested lists; a traced value is refused."""
        return self._plain(
            ".tolist() of a traced value would lose its derivative",
            "iterate over the array, or write funcgrad.stop_gradient(x).tolist()",
        ).tolist()

    def tobytes(self, order: Any = "C") -> Any:
        """Return a constant as bytes; a traced value is refused."""
        return self._plain(
            ".tobytes() of a traced value would lose its derivative",
            "write funcgrad.stop_gradient(x).tobytes()",
        ).tobytes(order)

    def __hash__(self) -> int:
        raise UnhashableTracerError(
            "a traced value cannot be hashed: as a dict key, a set element or a cached argument",
            where=f"{user_line()}; {traced_here(self)}",
            fix="use a plain value as the key, or a list in place of the set",
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise exits.conversion_error(
            self,
            "a traced value cannot be pickled",
            "pickle the result of the transform, or funcgrad.stop_gradient(x)",
        )

    def __getattr__(self, name: str) -> Any:
        # Only reached when the attribute does not exist here.
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a traced value has no attribute {name!r}")
        raise TracerAttributeError(
            f"ndarray.{name} does not work on a traced value: it needs the memory of the array, "
            "or works in place",
            where=f"{user_line()}; {traced_here(self)}",
            fix="use a NumPy function that returns a new array, "
            f"or funcgrad.stop_gradient(x).{name}",
        )


PLAIN.add(Tracer)


def unwrap(value: Any) -> Any:
    """Return what a trace may keep of `value`, which is none of its own tracers.

    A constant in disguise (`ConstantTrace`) gives the array that it holds. A tracer of another
    level may be a handle that the user will assign to; its value of now is kept in a new one.
    """
    if type(value) is Tracer:
        if value._trace.level == 0:
            return value._value
        return Tracer(value._trace, value._value, value._extra)
    return value
