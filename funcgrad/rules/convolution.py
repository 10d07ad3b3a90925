"""Convolution and correlation of two sequences.

The one idea: whatever the mode, the result is a *window* of the full convolution
``c[k] = sum over i of a[i] * w[k - i]``, and so are both cotangents, of `out_bar` with the other
sequence reversed. `window` computes that and no more of it, for one pair of sequences or for many.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting, loop, ndim_of
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.families import multilinear
from funcgrad.rules.matmul import conj
from funcgrad.rules.spelling import as_arrays

__all__ = ["window"]

# So many products in a row are as much work as calling NumPy for it.
_CALL = 4096


@primitive(multilinear)
def window(x, y, *, start, length):
    """Elements of the full convolution along the last axis, from `start` on.

    Leading axes are broadcast against each other. Beyond either end the elements are 0.
    """
    if x.shape[-1] < y.shape[-1]:
        x, y = y, x
    n, m = x.shape[-1], y.shape[-1]
    if x.ndim == y.ndim == 1 and start == 0 and length == n + m - 1:
        return np.convolve(x, y)
    x = _range(x, start - (m - 1), start + length)
    if x.ndim == y.ndim == 1:
        return np.convolve(x, y, "valid")
    return _rows(x, y, length)


def _range(x: Any, low: int, high: int) -> Any:
    """Return ``x[..., low:high]`` with zeros for what is beyond the ends."""
    n = x.shape[-1]
    if low >= 0 and high <= n:
        return x[..., low:high]
    out = np.zeros((*x.shape[:-1], high - low), x.dtype)
    first, last = max(low, 0), min(high, n)
    if first < last:
        out[..., first - low : last - low] = x[..., first:last]
    return out


def _rows(x: Any, y: Any, length: int) -> Any:
    """Convolve many rows, as far as they overlap in full."""
    m = y.shape[-1]
    leading = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    if not prod(leading):
        return np.zeros((*leading, length), np.result_type(x, y))
    if prod(y.shape[:-1]) == 1:
        # All rows of `x` in one, without what lies across their ends.
        size = x.shape[-1]
        full = np.convolve(x.reshape(-1), y.reshape(-1))[m - 1 :]
        rows = full[: x.size - (m - 1)]
        made = np.empty((x.size // size, size), rows.dtype)
        made.reshape(-1)[: rows.size] = rows
        return np.broadcast_to(made[:, :length].reshape(*x.shape[:-1], length), (*leading, length))
    if length * m < _CALL:
        out = x[..., m - 1 :] * y[..., :1]
        for k in range(1, m):
            out += x[..., m - 1 - k : m - 1 - k + length] * y[..., k : k + 1]
        return out
    x = np.broadcast_to(x, (*leading, x.shape[-1])).reshape(-1, x.shape[-1])
    y = np.broadcast_to(y, (*leading, m)).reshape(-1, m)
    made = np.stack([np.convolve(a, w, "valid") for a, w in zip(x, y, strict=True)])
    return made.reshape(*leading, length)


@window.def_vjp
def window_vjp(primals, out, *, start, length):
    x, y = primals
    n, m = shape_of(x)[-1], shape_of(y)[-1]

    def window_pullback_x(out_bar):
        return window.bind(out_bar, y[..., ::-1], start=m - 1 - start, length=n)

    def window_pullback_y(out_bar):
        return window.bind(out_bar, x[..., ::-1], start=n - 1 - start, length=m)

    return window_pullback_x, window_pullback_y


broadcasting(window, 1, 1)


def _length(x: Any) -> int:
    """Return the length of a sequence; a number counts as one of length one."""
    shape = shape_of(x)
    return shape[-1] if shape else 1


def _mode(mode: Any) -> str:
    return "vsf"[mode] if isinstance(mode, int) else mode[0].lower()


def _middle(n_a: int, n_v: int) -> int:
    """Return where "same" starts, in a convolution."""
    return (min(n_a, n_v) - 1) // 2


def _middle_of_correlation(n_a: int, n_v: int) -> int:
    # NumPy swaps a shorter `a` with `v` and reverses the result: the middle is rounded otherwise.
    return (n_v - 1) // 2 if n_a >= n_v else n_a // 2


def _window_of(mode: Any, n_a: int, n_v: int, middle: Any) -> dict[str, int]:
    """Return the start and the length of what `mode` keeps."""
    short, long = sorted((n_a, n_v))
    kind = _mode(mode)
    if kind == "f":
        return {"start": 0, "length": n_a + n_v - 1}
    if kind == "s":
        return {"start": middle(n_a, n_v), "length": long}
    return {"start": short - 1, "length": long - short + 1}


_MODES = frozenset({"full", "same", "valid", 0, 1, 2})


def _is_possible(args, batched, mode, ranks):
    """Tell whether NumPy takes such examples: each is one sequence, and none is empty."""
    return mode in _MODES and all(
        ndim_of(x, one) in ranks and 0 not in shape_of(x)[one:]
        for x, one in zip(args, batched, strict=True)
    )


def _sequence(x: Any, is_batched: bool) -> Any:
    """Return the sequences, where a number stands for one of length one."""
    return x if len(shape_of(x)) > is_batched else np.expand_dims(x, -1)


@primitive(multilinear, overrides=(np.convolve,), canonical=as_arrays)
def convolve(a, v, *, mode="full"):
    """Convolution of two sequences."""
    return np.convolve(a, v, mode)


@convolve.def_vjp
def convolve_vjp(primals, out, *, mode):
    a, v = (_sequence(x, False) for x in primals)
    shape_a, shape_v = (shape_of(x) for x in primals)
    part = _window_of(mode, _length(a), _length(v), _middle)
    pullbacks = window_vjp((a, v), out, **part)

    def convolve_pullback_a(out_bar):
        return np.reshape(pullbacks[0](out_bar), shape_a)

    def convolve_pullback_v(out_bar):
        return np.reshape(pullbacks[1](out_bar), shape_v)

    return convolve_pullback_a, convolve_pullback_v


@convolve.def_batch
def convolve_batch(args, batched, *, mode):
    if not _is_possible(args, batched, mode, (0, 1)):
        return loop(convolve.bind, args, batched, {"mode": mode})
    a, v = (_sequence(x, one) for x, one in zip(args, batched, strict=True))
    return window.bind(a, v, **_window_of(mode, _length(a), _length(v), _middle))


@primitive(multilinear, overrides=(np.correlate,), canonical=as_arrays)
def correlate(a, v, *, mode="valid"):
    """Correlation of two sequences: the convolution of `a` with `v` conjugated and reversed."""
    return np.correlate(a, v, mode)


@correlate.def_vjp
def correlate_vjp(primals, out, *, mode):
    a, v = primals
    n_a, n_v = _length(a), _length(v)
    part = _window_of(mode, n_a, n_v, _middle_of_correlation)
    start = part["start"]

    def correlate_pullback_a(out_bar):
        return window.bind(out_bar, conj(v), start=n_v - 1 - start, length=n_a)

    def correlate_pullback_v(out_bar):
        w_bar = window.bind(out_bar, a[::-1], start=n_a - 1 - start, length=n_v)
        return conj(w_bar)[::-1]

    return correlate_pullback_a, correlate_pullback_v


@correlate.def_batch
def correlate_batch(args, batched, *, mode):
    if not _is_possible(args, batched, mode, (1,)):
        return loop(correlate.bind, args, batched, {"mode": mode})
    a, v = args
    part = _window_of(mode, _length(a), _length(v), _middle_of_correlation)
    return window.bind(a, conj(v)[..., ::-1], **part)


_PAIRS = ((4, 3), (3, 4), (5, 2), (2, 5), (3, 3), (1, 3), (1, 1), (6, 4), (4, 6))


@convolve.def_samples
def convolve_samples(rng):
    for n_a, n_v in _PAIRS:
        for mode in ("full", "same", "valid"):
            yield Sample(rng.normal(size=n_a), rng.normal(size=n_v), mode)
    yield Sample(rng.normal(size=3), 2.0)
    yield Sample([1.0, 2.0], rng.normal(size=3))


@correlate.def_samples
def correlate_samples(rng):
    for n_a, n_v in _PAIRS:
        for mode in ("full", "same", "valid"):
            yield Sample(rng.normal(size=n_a), rng.normal(size=n_v), mode)
    yield Sample(rng.normal(size=3), [1.0, 2.0])


@window.def_samples
def window_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    for start, length in ((0, 6), (1, 3), (-2, 4), (3, 5), (7, 2)):
        yield Sample(draw(4), draw(3), start=start, length=length)
    yield Sample(draw(2, 3), draw(4), start=1, length=4)
    yield Sample(draw(2, 4), draw(1, 3), start=2, length=3)
    yield Sample(draw(4), draw(2, 3), start=-1, length=5)
    yield Sample(draw(2, 1, 3), draw(2, 4), start=0, length=6)
    yield Sample(draw(0, 3), draw(4), start=0, length=6)
