"""Covariance and correlation, composed of products in NumPy's order of operations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from funcgrad.core.level import holds_anywhere, looked_at
from funcgrad.core.primitive import Sample, overrides
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.complex_parts import assembled
from funcgrad.rules.reducing import cast
from funcgrad.rules.spelling import array_of

__all__: list[str] = []


def _rows(x, dtype):
    x = cast(x, dtype)
    missing = 2 - len(shape_of(x))
    return np.reshape(x, (1,) * missing + shape_of(x)) if missing > 0 else x


def _weights(given, count, name):
    """Return weights of observations as floats, or raise what NumPy would."""
    weights = cast(array_of(given), np.float64)
    if name == "fweights" and holds_anywhere(
        np.not_equal(weights, np.rint(weights)), "whether fweights are integers"
    ):
        raise TypeError("fweights must be integer")
    if len(shape_of(weights)) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if shape_of(weights)[0] != count:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if holds_anywhere(np.less(weights, 0), "whether weights are negative"):
        raise ValueError(f"{name} cannot be negative")
    return weights


@overrides(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """Covariance matrix of variables, of which each row holds the observations."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    m = array_of(m)
    if len(shape_of(m)) > 2:
        raise ValueError("m has more than 2 dimensions")
    kinds: list[Any] = [dtype_of(m), np.float64]
    if y is not None:
        y = array_of(y)
        if len(shape_of(y)) > 2:
            raise ValueError("y has more than 2 dimensions")
        kinds.append(dtype_of(y))
    dtype = np.result_type(*kinds) if dtype is None else np.dtype(dtype)
    x = _rows(m, dtype)
    if not rowvar and len(shape_of(m)) != 1:
        x = x.T
    if shape_of(x)[0] == 0:
        return np.array([]).reshape(0, 0)
    if y is not None:
        y = _rows(y, dtype)
        if not rowvar and shape_of(y)[0] != 1:
            y = y.T
        x = np.concatenate((x, y), axis=0)
    if ddof is None:
        ddof = 1 if bias == 0 else 0
    count = shape_of(x)[1]
    w = None
    if fweights is not None:
        w = _weights(fweights, count, "fweights")
    if aweights is not None:
        aweights = _weights(aweights, count, "aweights")
        w = aweights if w is None else w * aweights
    mean, total = np.average(x, axis=1, weights=w, returned=True)
    scale = _degrees(count, ddof, w, aweights, total[0])
    if np.any(looked_at(np.less_equal(scale, 0), "whether there are degrees of freedom")):
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        scale = np.where(np.less_equal(scale, 0), 0.0, scale)[()]
    x = x - mean[:, np.newaxis]
    # Not a copy of a real x, of whose product with itself BLAS computes one half.
    other = x.T if w is None else (x * w).T
    c = np.dot(x, np.conj(other) if dtype_of(other).kind == "c" else other)
    return np.squeeze(c * np.true_divide(1, scale))


def _degrees(count, ddof, w, aweights, total):
    """Return the number to divide by."""
    if w is None:
        return count - ddof
    if ddof == 0:
        return total
    if aweights is None:
        return total - ddof
    return total - ddof * np.sum(w * aweights) / total


@cov.def_samples
def cov_samples(rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    w = rng.uniform(0.5, 1.5, size=4)
    yield Sample(x)
    yield Sample(x[0])
    yield Sample(x, y)
    yield Sample(x[0], y[0])
    yield Sample(x, rowvar=False)
    yield Sample(x.T, y.T, rowvar=False)
    yield Sample(x, bias=True)
    yield Sample(x, ddof=2)
    yield Sample(x, fweights=[1, 2, 0, 1])
    yield Sample(x, aweights=w, argnames="aweights", complex=False)
    yield Sample(x, aweights=w, ddof=0, argnames="aweights", complex=False)
    yield Sample(x, fweights=[1, 2, 3, 1], aweights=w, argnames="aweights", complex=False)
    yield Sample([[1, 2, 4], [3, 1, 2]], rng.normal(size=3))


@overrides(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *options, dtype=None, **more):
    """Correlation matrix of variables, of which each row holds the observations."""
    if options or more:
        np.corrcoef(np.eye(2), None, True, *options, **more)  # a warning, or an error
    c = cov(x, y, rowvar, dtype=dtype)
    if not shape_of(c):
        return c / c
    deviation = np.sqrt(np.real(np.diag(c)))
    c = c / deviation[:, np.newaxis] / deviation[np.newaxis, :]
    if dtype_of(c).kind != "c":
        return np.clip(c, -1, 1)
    return assembled.bind(np.clip(np.real(c), -1, 1), np.clip(np.imag(c), -1, 1))


@corrcoef.def_samples
def corrcoef_samples(rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    yield Sample(x)
    yield Sample(x[0])
    yield Sample(x, y)
    yield Sample(x.T, rowvar=False)
    yield Sample(x[0], y[0])
