"""`numpy.fft`: the discrete Fourier transforms, complex and real, in one and more dimensions.

All are linear, and the matrix of a complex transform is symmetric, so its transpose is the same
transform again, with the array cut where the input was padded and padded where it was cut. The
real transforms keep half of a spectrum, as the other half mirrors it. Then the two transposes are
real transforms too, with *Hermitian weights* of 1/2 or 2 for what has a mirror image, which is all
but frequency 0 and, for an even length, the highest one. The imaginary parts of these two do not
count in `irfft`; and as `ihfft` makes them 0, they get no derivative.

Each pullback is one FFT along each axis, as long as that of the function itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import shift
from funcgrad.core.primitive import Primitive, Sample, overrides, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import linear
from funcgrad.rules.spelling import as_array, as_arrays

__all__ = ["fitted"]


# Along one axis


def fitted(x: Any, axis: int, length: int) -> Any:
    """Cut `x` along an axis, or put zeros behind it."""
    shape = shape_of(x)
    have = shape[axis]
    if have == length:
        return x
    axis %= len(shape)
    if have > length:
        return x[(slice(None),) * axis + (slice(length),)]
    more = np.zeros((*shape[:axis], length - have, *shape[axis + 1 :]), dtype_of(x))
    return np.concatenate([x, more], axis=axis)


def _weighted(half: Any, n: int, axis: int, weight: float) -> Any:
    """Multiply what has a mirror image in a spectrum of length `n`, of which `half` is kept."""
    shape = shape_of(half)
    weights = np.full(n // 2 + 1, weight, np.zeros(0, dtype_of(half)).real.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return half * np.reshape(weights, (-1,) + (1,) * (len(shape) - 1 - axis % len(shape)))


def _pull_fft(out_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.fft.fft(out_bar, n, axis, norm)


def _pull_ifft(out_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.fft.ifft(out_bar, n, axis, norm)


def _pull_rfft(out_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return np.fft.hfft(_weighted(out_bar, n, axis, 0.5), n, axis, norm)


def _pull_irfft(out_bar: Any, n: int, axis: int, norm: Any) -> Any:
    return _weighted(np.fft.ihfft(out_bar, n, axis, norm), n, axis, 2.0)


def _declare_along(made: Primitive, pull: Any) -> None:
    """Give a transform along one axis its rules."""

    @made.def_vjp
    def transform_vjp(primals, out, *, n, axis, norm):
        length = shape_of(primals[0])[axis]
        if n is None:
            n = 2 * (length - 1) if pull is _pull_irfft else length

        def transform_pullback(out_bar):
            return fitted(pull(out_bar, n, axis, norm), axis, length)

        return transform_pullback

    @made.def_batch
    def transform_batch(args, batched, *, n, axis, norm):
        (a,) = args
        return made.bind(a, n=n, axis=shift(axis, len(shape_of(a)) - 1), norm=norm)


@primitive(linear, overrides=np.fft.fft, canonical=as_arrays)
def fft(a, *, n=None, axis=-1, norm=None, out=None):
    """Discrete Fourier transform along one axis."""
    return np.fft.fft(a, n, axis, norm)


@primitive(linear, overrides=np.fft.ifft, canonical=as_arrays)
def ifft(a, *, n=None, axis=-1, norm=None, out=None):
    """Inverse of `fft`."""
    return np.fft.ifft(a, n, axis, norm)


@primitive(linear, overrides=np.fft.rfft, canonical=as_arrays)
def rfft(a, *, n=None, axis=-1, norm=None, out=None):
    """Half of the spectrum of a real array."""
    return np.fft.rfft(a, n, axis, norm)


@primitive(linear, overrides=np.fft.irfft, canonical=as_arrays)
def irfft(a, *, n=None, axis=-1, norm=None, out=None):
    """Inverse of `rfft`: the real array of which `a` is half of the spectrum."""
    return np.fft.irfft(a, n, axis, norm)


_declare_along(fft, _pull_fft)
_declare_along(ifft, _pull_ifft)
_declare_along(rfft, _pull_rfft)
_declare_along(irfft, _pull_irfft)

_OTHER_WAY: dict[Any, Any] = {
    None: "forward",
    "backward": "forward",
    "ortho": "ortho",
    "forward": "backward",
}


@overrides(np.fft.hfft)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    """Transform of an array that would be real after it: `irfft` in the other direction."""
    if norm not in _OTHER_WAY:
        return np.fft.hfft(np.ones(1), norm=norm)  # an error
    return np.fft.irfft(np.conjugate(as_array(a)), n, axis, _OTHER_WAY[norm])


@overrides(np.fft.ihfft)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """Inverse of `hfft`: `rfft` in the other direction."""
    if norm not in _OTHER_WAY:
        return np.fft.ihfft(np.ones(1), norm=norm)  # an error
    half = np.fft.rfft(a, n, axis, _OTHER_WAY[norm], out)
    return np.conjugate(half) if out is None else np.conjugate(half, out=out)


# Along several axes


def _steps(shape: tuple[int, ...], s: Any, axes: Any, inverse: bool) -> list[tuple[int, int]]:
    """Return the pairs of length and axis that NumPy reads from `s` and `axes`.

    `inverse` if the last length is not that of the input but that of a real array.
    """
    if axes is None:
        axes = range(-len(shape if s is None else s), 0)
    axes = tuple(axes)
    given = (-1,) * len(axes) if s is None else tuple(s)
    lengths = [
        shape[a] if n is None or n == -1 else int(n) for n, a in zip(given, axes, strict=True)
    ]
    # For None in the place of a length each step takes its own default.
    if inverse and axes and (s is None or given[-1] is None):
        lengths[-1] = 2 * (shape[axes[-1]] - 1)
    return list(zip(lengths, axes, strict=True))


def _declare_over(made: Primitive, step: Any, last: Any = None, *, inverse: bool = False) -> None:
    """Give a transform over several axes its rules.

    `step` pulls back along one axis, and `last` along the last one that `axes` names, which NumPy
    transforms first, or after all others if `inverse`.
    """

    def in_order(shape: Any, s: Any, axes: Any) -> list[tuple[Any, int, int]]:
        pairs = _steps(shape, s, axes, inverse)
        calls = [(step, n, axis) for n, axis in pairs]
        if last is not None and calls:
            calls[-1] = (last, *pairs[-1])
        return calls if inverse else calls[::-1]

    @made.def_vjp
    def transform_vjp(primals, out, *, s, axes, norm):
        shape = list(shape_of(primals[0]))
        back = []
        for pull, n, axis in in_order(shape, s, axes):
            back.append((pull, n, axis, shape[axis]))
            shape[axis] = n // 2 + 1 if pull is _pull_rfft else n
        back.reverse()

        def transform_pullback(out_bar):
            for pull, n, axis, length in back:
                out_bar = fitted(pull(out_bar, n, axis, norm), axis, length)
            return out_bar

        return transform_pullback

    @made.def_jvp
    def transform_jvp(primals, tangents, out, *, s, axes, norm):
        (a_dot,) = tangents
        pairs = _steps(shape_of(a_dot), s, axes, inverse)
        # Written out, so that what is deprecated is not warned of twice.
        s, axes = tuple(n for n, _ in pairs), tuple(axis for _, axis in pairs)
        return made.bind(a_dot, s=s, axes=axes, norm=norm)

    @made.def_batch
    def transform_batch(args, batched, *, s, axes, norm):
        (a,) = args
        one = shape_of(a)[1:]
        pairs = _steps(one, s, axes, inverse)
        s = tuple(n for n, _ in pairs)
        axes = tuple(shift(axis, len(one)) for _, axis in pairs)
        return made.bind(a, s=s, axes=axes, norm=norm)


@primitive(linear, overrides=np.fft.fftn, canonical=as_arrays)
def fftn(a, *, s=None, axes=None, norm=None, out=None):
    """Discrete Fourier transform over several axes."""
    return np.fft.fftn(a, s, axes, norm)


@primitive(linear, overrides=np.fft.ifftn, canonical=as_arrays)
def ifftn(a, *, s=None, axes=None, norm=None, out=None):
    """Inverse of `fftn`."""
    return np.fft.ifftn(a, s, axes, norm)


@primitive(linear, overrides=np.fft.rfftn, canonical=as_arrays)
def rfftn(a, *, s=None, axes=None, norm=None, out=None):
    """Half of the spectrum of a real array over several axes: `rfft` along the last of them."""
    return np.fft.rfftn(a, s, axes, norm)


@primitive(linear, overrides=np.fft.irfftn, canonical=as_arrays)
def irfftn(a, *, s=None, axes=None, norm=None, out=None):
    """Inverse of `rfftn`."""
    return np.fft.irfftn(a, s, axes, norm)


_declare_over(fftn, _pull_fft)
_declare_over(ifftn, _pull_ifft)
_declare_over(rfftn, _pull_fft, _pull_rfft)
_declare_over(irfftn, _pull_ifft, _pull_irfft, inverse=True)


@overrides(np.fft.fft2)
def fft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """`fftn` over two axes."""
    return fftn(a, s, axes, norm, out)


@overrides(np.fft.rfft2)
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """`rfftn` over two axes."""
    return rfftn(a, s, axes, norm, out)


# NumPy makes no use of `out` in these two, as in `hfft`.


@overrides(np.fft.ifft2)
def ifft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """`ifftn` over two axes."""
    return ifftn(a, s, axes, norm)


@overrides(np.fft.irfft2)
def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """`irfftn` over two axes."""
    return irfftn(a, s, axes, norm)


# The order of frequencies


@overrides(np.fft.fftshift)
def fftshift(x, axes=None):
    """Move frequency 0 to the middle."""
    return _rolled(as_array(x), axes, 1)


@overrides(np.fft.ifftshift)
def ifftshift(x, axes=None):
    """Move frequency 0 from the middle to the front."""
    return _rolled(as_array(x), axes, -1)


def _rolled(x: Any, axes: Any, sign: int) -> Any:
    shape = shape_of(x)
    if axes is None:
        axes = tuple(range(len(shape)))
    elif isinstance(axes, int | np.integer):
        axes = (int(axes),)
    return np.roll(x, tuple(sign * (shape[axis] // 2) for axis in axes), tuple(axes))


# Samples


def _numbers(rng: Any, *shape: int) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


@fft.def_samples
@ifft.def_samples
def fft_samples(rng):
    for length in (1, 2, 5, 6):
        yield Sample(_numbers(rng, length))
    x = _numbers(rng, 3, 4)
    for n in (None, 1, 3, 4, 6, 7):
        yield Sample(x, n)
    for norm in ("backward", "ortho", "forward"):
        yield Sample(x, 5, axis=0, norm=norm)
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(rng.normal(size=(2, 3, 2)), n=4, axis=-2)
    yield Sample(rng.normal(size=(0, 3)))


@rfft.def_samples
@ihfft.def_samples
def rfft_samples(rng):
    for length in (1, 2, 5, 6):
        yield Sample(rng.normal(size=length))
    x = rng.normal(size=(3, 4))
    for n in (None, 1, 2, 3, 4, 6, 7):
        yield Sample(x, n)
    for norm in ("backward", "ortho", "forward"):
        yield Sample(x, 5, axis=0, norm=norm)
    yield Sample(rng.normal(size=(2, 3, 2)), n=4, axis=-2)
    yield Sample(rng.normal(size=(0, 3)))


@irfft.def_samples
@hfft.def_samples
def irfft_samples(rng):
    for length in (2, 5, 6):
        yield Sample(_numbers(rng, length))
    x = _numbers(rng, 3, 4)
    for n in (None, 1, 2, 4, 5, 6, 7, 8, 9):
        yield Sample(x, n)
    for norm in ("backward", "ortho", "forward"):
        yield Sample(x, 6, axis=0, norm=norm)
    yield Sample(rng.normal(size=(2, 3)))
    yield Sample(_numbers(rng, 2, 3, 2), n=4, axis=-2)
    yield Sample(_numbers(rng, 0, 3))


def _plane_samples(rng, draw):
    x = draw(rng, 2, 3, 4)
    yield Sample(x)
    yield Sample(x, s=(3, 5), axes=(-2, -1))
    yield Sample(x, (2, -1), axes=(0, 2), norm="ortho")
    yield Sample(x, axes=(-1, 0), norm="forward")
    yield Sample(x, s=(4, 3, 6), axes=(2, 1, 2))
    yield Sample(x, axes=(0,))
    yield Sample(draw(rng, 0, 3, 4), axes=(1, 2))


def _space_samples(rng, draw):
    yield from _plane_samples(rng, draw)
    x = draw(rng, 2, 3, 4)
    yield Sample(x, axes=(0, 0))
    yield Sample(x, s=[4, 2], axes=[0, -1])
    yield Sample(draw(rng, 5))


def _real(rng: Any, *shape: int) -> Any:
    return rng.normal(size=shape)


@fft2.def_samples
@ifft2.def_samples
@irfft2.def_samples
def fft2_samples(rng):
    return _plane_samples(rng, _numbers)


@fftn.def_samples
@ifftn.def_samples
@irfftn.def_samples
def fftn_samples(rng):
    return _space_samples(rng, _numbers)


@rfft2.def_samples
def rfft2_samples(rng):
    return _plane_samples(rng, _real)


@rfftn.def_samples
def rfftn_samples(rng):
    return _space_samples(rng, _real)


@fftshift.def_samples
@ifftshift.def_samples
def fftshift_samples(rng):
    x = rng.normal(size=(3, 4))
    yield Sample(x)
    yield Sample(x, axes=1)
    yield Sample(x, axes=(0, -1))
    yield Sample(x, axes=[0])
    yield Sample(rng.normal(size=(0, 2)))
