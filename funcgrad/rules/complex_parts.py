"""Parts of numbers: real and imaginary, angle, the finite ones, fraction and exponent.

A real number has itself as its real part; so `real` of a real tracer is that tracer, and its
imaginary part is a constant. Functions of several results whose one part is piecewise constant
return that part plain, so that code can branch on it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting, together
from funcgrad.core.level import any_of, concrete, is_array, looked_at
from funcgrad.core.primitive import FUNCTIONS, Sample, overrides, primitive, store
from funcgrad.core.zero import dtype_of
from funcgrad.rules.families import linear
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of, prototype

__all__: list[str] = []


# Complex numbers


@primitive(linear, name="real", may_alias=True)
def real_part(val):
    """Real part of complex numbers; the mechanism casts the cotangent, the transpose of this."""
    return np.real(val)


@real_part.def_vjp
def real_part_vjp(primals, out):
    def real_pullback(out_bar):
        return out_bar

    return real_pullback


broadcasting(real_part)


@real_part.def_call(np.real)
def real(val):
    """Real part."""
    if type(concrete(val)) is bool:
        return val + 0  # Python's truth values have integers as parts
    return real_part.bind(val) if dtype_of(val).kind == "c" else val


@primitive(linear, name="imag", may_alias=True)
def imaginary_part(val):
    """Imaginary part of complex numbers; Im(z) is the real part of -i z, hence the transpose."""
    return np.imag(val)


@imaginary_part.def_vjp
def imaginary_part_vjp(primals, out):
    def imag_pullback(out_bar):
        return -1j * out_bar

    return imag_pullback


broadcasting(imaginary_part)


@imaginary_part.def_call(np.imag)
def imag(val):
    """Imaginary part: a constant, zero, of real numbers."""
    return imaginary_part.bind(val) if dtype_of(val).kind == "c" else np.imag(prototype(val))


def _complex(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@real_part.def_samples
@imaginary_part.def_samples
def part_samples(rng):
    yield Sample(_complex(rng, 2, 3))
    yield Sample(_complex(rng, 0))
    yield Sample(_complex(rng)[()])
    yield Sample(rng.normal(size=3))


# Assignment to a part


@primitive()
def assembled(real, imag):
    """Complex numbers of their parts; not the sum with 1j * imag, as 0 times infinity is NaN."""
    out = np.empty(np.shape(real), np.result_type(real, np.complex64))
    out.real = real
    out.imag = imag
    return out


@assembled.def_jvp
def assembled_jvp(primals, tangents, out):
    real_dot, imag_dot = tangents
    if real_dot is None:
        real_dot = np.zeros_like(imag_dot)
    elif imag_dot is None:
        imag_dot = np.zeros_like(real_dot)
    return assembled.bind(real_dot, imag_dot)


@assembled.def_vjp
def assembled_vjp(primals, out):
    def assembled_pullback_real(out_bar):
        return np.real(out_bar)

    def assembled_pullback_imag(out_bar):
        return -np.imag(out_bar)

    return assembled_pullback_real, assembled_pullback_imag


@assembled.def_batch
def assembled_batch(args, batched):
    return assembled.bind(*together(args, batched))


@assembled.def_samples
def assembled_samples(rng):
    yield Sample(rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), fun=assembled, complex=False)
    yield Sample(
        np.array([np.inf, 1.0]), np.array([1.0, -np.inf]), fun=assembled, complex=False, kinks=True
    )


@overrides(setattr)
def with_part(x, value, name):
    """Complex `x` with its real or imaginary part, of that `name`, replaced."""
    parts = {"real": np.real(x), "imag": np.imag(x)}
    parts[name] = FUNCTIONS[operator.setitem](parts[name], value, index=...)
    return assembled.bind(parts["real"], parts["imag"])


def _copied_and_assigned(x, value, name):
    y = x.copy()
    setattr(y, name, value)
    return y


@with_part.def_samples
def with_part_samples(rng):
    for name in ("real", "imag"):
        yield Sample(
            _complex(rng, 2, 3), rng.normal(size=3), name, fun=_copied_and_assigned, complex=False
        )
        yield Sample(_complex(rng, 2), rng.normal(), name, fun=_copied_and_assigned, complex=False)


@overrides(np.real_if_close)
def real_if_close(a, tol=100):
    """Real part if the imaginary one is close to zero everywhere."""
    plain = looked_at(a, "whether the imaginary part is close to zero")
    return np.real(a) if np.isrealobj(np.real_if_close(plain, tol)) else a


@real_if_close.def_samples
def real_if_close_samples(rng):
    yield Sample(_complex(rng, 3))
    yield Sample(rng.normal(size=3) + 1e-15j, kinks=True)
    yield Sample(rng.normal(size=3))


@overrides(np.angle)
def angle(z, deg=False):
    """Angle of complex numbers, 0 or pi for real ones."""
    y = np.imag(z) if dtype_of(z).kind == "c" else 0
    a = np.arctan2(y, np.real(z))
    return a * (180 / np.pi) if deg else a


@angle.def_samples
def angle_samples(rng):
    yield Sample(_complex(rng, 2, 3))
    yield Sample(_complex(rng, 3), deg=True)
    yield Sample(rng.normal(size=3))


# Finite numbers


@primitive(name="nan_to_num")
def finite(x, *, nan, posinf, neginf):
    """Replace NaN and infinities, in the real and the imaginary part; the derivative is 0 there."""
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _where_finite(x: Any) -> Any:
    """Return a function that lets a (co)tangent through where `x` is finite."""
    if dtype_of(x).kind == "c":
        keep, keep_imag = np.isfinite(np.real(x)), np.isfinite(np.imag(x))
        if not any_of(~(keep & keep_imag)):
            return _all

        def select_parts(t):
            return np.where(keep, np.real(t), 0) + 1j * np.where(keep_imag, np.imag(t), 0)

        return select_parts
    keep = np.isfinite(x)
    if not any_of(np.logical_not(keep)):
        return _all

    def select(t):
        return np.where(keep, t, 0)

    return select


def _all(t):
    return t


@finite.def_jvp
def finite_jvp(primals, tangents, out, **params):
    return _where_finite(primals[0])(tangents[0])


@finite.def_vjp
def finite_vjp(primals, out, **params):
    return _where_finite(primals[0])


@finite.def_call(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """Replace NaN and infinities by numbers, in a copy or in place."""
    made = finite.bind(x, nan=nan, posinf=posinf, neginf=neginf)
    return made if copy or not is_array(x) else store(made, x)


broadcasting(finite)


@finite.def_samples
def finite_samples(rng):
    x = rng.normal(size=(2, 3))
    yield Sample(x)
    yield Sample(np.float64(1.5))
    x = np.array([np.nan, 1.0, np.inf, -np.inf])
    yield Sample(x, kinks=True)
    yield Sample(x, nan=1.0, posinf=2.0, neginf=-3.0, kinks=True)


# Integer and fraction, mantissa and exponent, quotient and remainder


@primitive(linear, name="modf_fraction")
def fraction(x):
    """Fractional part, with the sign of `x`."""
    return np.modf(x)[0]


@fraction.def_vjp
def fraction_vjp(primals, out):
    def fraction_pullback(out_bar):
        return out_bar

    return fraction_pullback


@fraction.def_jvp
def fraction_jvp(primals, tangents, out):
    return tangents[0]


broadcasting(fraction)


@fraction.def_samples
def fraction_samples(rng):
    yield Sample(rng.uniform(0.1, 0.9, size=3) + np.array([0, 2, -3]), fun=fraction)


@overrides(np.modf)
def modf(x, out=None):
    """Fractional part, and the integral part as plain numbers."""
    part = fraction.bind(x)
    return _stored((part, cast(np.trunc(x), dtype_of(part))), out)  # floats, also of integers


@modf.def_samples
def modf_samples(rng):
    yield Sample(rng.uniform(0.1, 0.9, size=3) + np.array([0, 2, -3]))
    yield Sample(np.float64(-1.5))


@primitive(name="frexp_mantissa")
def mantissa(x):
    """Mantissa m of x = m * 2**e, with 1/2 <= abs(m) < 1."""
    return np.frexp(x)[0]


@mantissa.def_jvp
def mantissa_jvp(primals, tangents, out):
    return np.ldexp(tangents[0], -exponent.bind(primals[0]))


@mantissa.def_vjp
def mantissa_vjp(primals, out):
    down = -exponent.bind(primals[0])

    def mantissa_pullback(out_bar):
        return np.ldexp(out_bar, down)

    return mantissa_pullback


@primitive(name="frexp_exponent")
def exponent(x):
    """Exponent e of x = m * 2**e."""
    return np.frexp(x)[1]


exponent.not_differentiable("piecewise constant")
broadcasting(mantissa)
broadcasting(exponent)


@mantissa.def_samples
def mantissa_samples(rng):
    yield Sample(rng.uniform(1.1, 1.9, size=3) * [0.1, -4.0, 16.0], fun=mantissa, complex=False)


@exponent.def_samples
def exponent_samples(rng):
    yield Sample(rng.uniform(1.1, 1.9, size=3) * [0.1, -4.0, 16.0], fun=exponent, complex=False)


@overrides(np.frexp)
def frexp(x, out=None):
    """Mantissa, and the exponent as plain integers."""
    return _stored((mantissa.bind(x), exponent.bind(x)), out)


@frexp.def_samples
def frexp_samples(rng):
    yield Sample(rng.uniform(1.1, 1.9, size=3) * [0.25, -4.0, 16.0])


@primitive(name="ldexp")
def scale(x1, x2):
    """x1 * 2**x2."""
    return np.ldexp(x1, x2)


@scale.def_jvp
def scale_jvp(primals, tangents, out):
    return np.ldexp(tangents[0], primals[1])


@scale.def_vjp
def scale_vjp(primals, out):
    _, x2 = primals

    def ldexp_pullback(out_bar):
        return np.ldexp(out_bar, x2)

    return ldexp_pullback, None


broadcasting(scale)


@scale.def_call(np.ldexp)
def ldexp(x1, x2, out=None):
    """Multiply by a power of two."""
    made = scale.bind(array_of(x1), array_of(x2))
    return made if out is None else store(made, out)


@scale.def_samples
def scale_samples(rng):
    yield Sample(rng.normal(size=(2, 1)), np.array([1, -2, 0]))
    yield Sample(np.float64(1.5), 3)


@overrides(np.divmod)
def divmod_(x1, x2, out=None):
    """Floor of the quotient as plain numbers, and the remainder."""
    return _stored((np.floor_divide(x1, x2), np.remainder(x1, x2)), out)


@divmod_.def_samples
def divmod_samples(rng):
    yield Sample(rng.uniform(3.1, 3.9, size=(2, 1)), rng.uniform(1.1, 1.5, size=3))
    yield Sample(rng.uniform(-3.9, -3.1, size=3), np.float64(2.0))


def _stored(made: tuple[Any, Any], out: Any) -> tuple[Any, ...]:
    if out is None:
        return made
    return tuple(m if o is None else store(m, o) for m, o in zip(made, out, strict=True))
