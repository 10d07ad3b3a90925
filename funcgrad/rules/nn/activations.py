"""Activations: relu, the logistic function, softplus, and the usual approximation of gelu.

No NumPy function is answered for here: `funcgrad.nn.functional` offers them. Each has a rule of its
own for one of three reasons: it keeps one array for the backward pass where its parts would keep
several, it does not overflow where its parts do, or its derivative is right where theirs is 0
times infinity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import selected
from funcgrad.errors import DtypeError, describe, user_line

__all__ = [
    "as_real",
    "by_slope",
    "gelu_tanh",
    "one_number",
    "one_real",
    "relu",
    "sigmoid",
    "softplus",
]


# Arguments


def as_real(x: Any, *, floating: bool = True) -> Any:
    """Make an array of a list, and floats of integers; refuse complex numbers."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        if type(x) is float:
            return x
        given, x = x, np.asarray(x)
        dtype = x.dtype
    else:
        given = x
    kind = dtype.kind
    if kind == "f":
        return x
    if kind in "iu" and not floating:
        return x
    if kind in "biu":
        return x.astype(np.float64)
    fix = "convert it to an array of floats"
    if kind == "c":
        fix = "pass real and imaginary parts, or the magnitude, by themselves"
    raise DtypeError(
        "this function takes real numbers",
        where=f"{user_line()} passes {describe(given)}",
        fix=fix,
    )


def one_real(args, params):
    """Bring the one argument to a real floating-point dtype."""
    (x,) = args
    return (as_real(x),), params


def one_number(args, params):
    """Refuse complex numbers, but leave integers what they are."""
    (x,) = args
    return (as_real(x, floating=False),), params


def by_slope(made):
    """Make a decorator of the derivative of `made`, a function of each element, by `x` alone."""

    def enter(slope):
        @made.def_jvp
        def slope_jvp(primals, tangents, out):
            return tangents[0] * slope(primals[0])

        @made.def_vjp
        def slope_vjp(primals, out):
            (x,) = primals

            def slope_pullback(out_bar):
                return out_bar * slope(x)

            return slope_pullback

        broadcasting(made)
        return slope

    return enter


# Rectified and logistic functions


@primitive(canonical=one_number)
def relu(x):
    """The positive part; at 0 its slope is 0."""
    return np.maximum(x, 0)


def _select(t: Any, out: Any) -> Any:
    """Return `t` where `out` is positive, else 0."""
    return selected(np.greater(out, 0), t)


@relu.def_jvp
def relu_jvp(primals, tangents, out):
    (x_dot,) = tangents
    return _select(x_dot, out)


@relu.def_vjp
def relu_vjp(primals, out):
    def relu_pullback(out_bar):
        return _select(out_bar, out)  # by `out`, which the next layer keeps too

    return relu_pullback


broadcasting(relu)


@relu.def_samples
def relu_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), fun=relu, complex=False)
    yield Sample(np.float64(0.7), fun=relu, complex=False)
    yield Sample(np.zeros((0, 3)), fun=relu, complex=False)
    yield Sample(np.array([0.0, -0.0, 1.0]), fun=relu, kinks=True, complex=False)


@primitive(canonical=one_real)
def sigmoid(x):
    """The logistic function ``1 / (1 + exp(-x))``, with a slope that keeps both tails."""
    # Both exponents are at most 0, so nothing overflows.
    e = np.exp(np.minimum(x, 0))
    return e / (e + np.exp(-np.maximum(x, 0)))


@sigmoid.def_jvp
def sigmoid_jvp(primals, tangents, out):
    (x,) = primals
    (x_dot,) = tangents
    return x_dot * (out * sigmoid.bind(-x))  # 1 - out would be 0 from x = 37 on


@sigmoid.def_vjp
def sigmoid_vjp(primals, out):
    (x,) = primals

    def sigmoid_pullback(out_bar):
        return out_bar * (out * sigmoid.bind(-x))

    return sigmoid_pullback


broadcasting(sigmoid)


@sigmoid.def_samples
def sigmoid_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), fun=sigmoid, complex=False)
    yield Sample(np.float64(0.0), fun=sigmoid, complex=False)
    yield Sample(np.zeros((0, 3)), fun=sigmoid, complex=False)


@primitive(canonical=one_real)
def softplus(x):
    """``log(1 + exp(x))``, without overflow; its slope is the logistic function."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@by_slope(softplus)
def _softplus_slope(x):
    return sigmoid.bind(x)


@softplus.def_samples
def softplus_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), fun=softplus, complex=False)
    yield Sample(np.float64(0.0), fun=softplus, complex=False)
    yield Sample(np.zeros((0, 3)), fun=softplus, complex=False)


# Gelu

_GELU_SLOPE, _GELU_CUBE = math.sqrt(8 / math.pi), math.sqrt(8 / math.pi) * 0.044715
# From where on the logistic function is 0 or 1 in any precision, and no square overflows.
_GELU_FAR = 50


@primitive(canonical=one_real)
def gelu_tanh(x):
    """``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x**3)))``.

    Half of 1 plus a tanh is the logistic function of twice its argument, exact in both tails.
    """
    y = np.clip(x, -_GELU_FAR, _GELU_FAR)
    return x * sigmoid.forward(y * (_GELU_SLOPE + _GELU_CUBE * np.square(y)))


@by_slope(gelu_tanh)
def _gelu_slope(x):
    y = np.clip(x, -_GELU_FAR, _GELU_FAR)
    square = np.square(y)
    inner = y * (_GELU_SLOPE + _GELU_CUBE * square)
    inner_slope = _GELU_SLOPE + 3 * _GELU_CUBE * square
    share = sigmoid.bind(inner)
    return share + x * share * sigmoid.bind(-inner) * inner_slope


@gelu_tanh.def_samples
def gelu_tanh_samples(rng):
    yield Sample(rng.normal(size=(3, 4)), fun=gelu_tanh, complex=False)
    yield Sample(np.float64(0.0), fun=gelu_tanh, complex=False)
    yield Sample(np.zeros((0, 3)), fun=gelu_tanh, complex=False)
