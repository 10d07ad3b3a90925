"""Convolution and correlation of two sequences.

Both are parts of the full convolution ``c[k] = sum over i of a[i] * w[k - i]``: the cotangent is
padded with zeros to the full length, and correlated with the other sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import multilinear
from funcgrad.rules.matmul import as_arrays

__all__: list[str] = []


def _length(x: Any) -> int:
    """Return the length of a sequence; a number counts as one of length one."""
    shape = shape_of(x)
    return shape[0] if shape else 1


def _padded(out_bar: Any, before: int, full: int) -> Any:
    """Return `out_bar` with zeros around it, `before` of them in front, `full` elements in all."""
    length, dtype = _length(out_bar), dtype_of(out_bar)
    if length == full:
        return out_bar
    behind = full - before - length
    return np.concatenate([np.zeros(before, dtype), out_bar, np.zeros(behind, dtype)])


def _pull(out_bar: Any, other: Any, shape: tuple[int, ...]) -> Any:
    """Pull the cotangent of a full convolution back to one sequence."""
    # `correlate` conjugates its second argument.
    return np.reshape(np.correlate(out_bar, np.conj(np.ravel(other)), "valid"), shape)


def _mode(mode: Any) -> str:
    return "vsf"[mode] if isinstance(mode, int) else mode[0].lower()


@primitive(multilinear, overrides=(np.convolve,), canonical=as_arrays)
def convolve(a, v, *, mode="full"):
    """Convolution of two sequences."""
    return np.convolve(a, v, mode)


@convolve.def_vjp
def convolve_vjp(primals, out, *, mode):
    a, v = primals
    shape_a, shape_v = shape_of(a), shape_of(v)
    full, short = _length(a) + _length(v) - 1, min(_length(a), _length(v))
    before = {"f": 0, "s": (short - 1) // 2, "v": short - 1}[_mode(mode)]

    def convolve_pullback_a(out_bar):
        return _pull(_padded(out_bar, before, full), v, shape_a)

    def convolve_pullback_v(out_bar):
        return _pull(_padded(out_bar, before, full), a, shape_v)

    return convolve_pullback_a, convolve_pullback_v


@primitive(multilinear, overrides=(np.correlate,), canonical=as_arrays)
def correlate(a, v, *, mode="valid"):
    """Correlation of two sequences: the convolution of `a` with `v` conjugated and reversed."""
    return np.correlate(a, v, mode)


@correlate.def_vjp
def correlate_vjp(primals, out, *, mode):
    a, v = primals
    n_a, n_v = _length(a), _length(v)
    full, short = n_a + n_v - 1, min(n_a, n_v)
    # NumPy swaps a shorter `a` with `v` and reverses the result: the middle is rounded otherwise.
    middle = (short - 1) // 2 if n_a >= n_v else short // 2
    before = {"f": 0, "s": middle, "v": short - 1}[_mode(mode)]

    def correlate_pullback_a(out_bar):
        return np.correlate(_padded(out_bar, before, full), np.conj(np.conj(v)[::-1]), "valid")

    def correlate_pullback_v(out_bar):
        w_bar = np.correlate(_padded(out_bar, before, full), np.conj(a), "valid")
        return np.conj(w_bar)[::-1]

    return correlate_pullback_a, correlate_pullback_v


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
