"""`scipy.ndimage.map_coordinates`: an image looked up between its pixels.

The one idea: interpolated linearly, the value is a sum over the *corners* of a cell, of pixels
times weights. In a coordinate a weight is linear, so that the derivative is such a sum as well, of
weights -1 and 1 along that axis. `sample` is this sum for any list of axes to differentiate along,
and `spread` its transpose, which adds numbers to the pixels that they were looked up from. So both
have derivatives of every order.

On the grid itself the slopes of two cells meet. There the one nearest to 0 counts, which is the
subgradient of least norm, as in `numpy.interp`. Where the value jumps (at the border, with a
constant around it) the slope inside counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import ndimage

from funcgrad.core.batch import loop
from funcgrad.core.level import any_of
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of, zero_wins
from funcgrad.rules.spelling import as_arrays

__all__ = ["sample"]

# An axis to differentiate along, and on which side of the grid: 1 ahead, -1 behind.
Slope = tuple[int, int]


# Corners


def _axis_corners(c: np.ndarray, n: int, linear: bool, mode: str, side: int) -> Any:
    """Return pairs of index and weight along one axis, for `side` 0 the value, else the slope."""
    inside = (c >= 0) & (c <= n - 1)
    if mode == "wrap":
        # The last pixel is the first: the period is n - 1.
        c = np.where(inside, c, np.mod(c, max(n - 1, 1)))
    j = np.floor(c if linear else c + 0.5)
    f = c - j
    j = j.astype(np.intp)
    if not linear:
        corners = [(j, np.ones_like(c))] if side == 0 else []
    elif side == 0:
        corners = [(j, 1 - f), (j + 1, f)]
    else:
        low = np.where(f == 0, j - 1, j) if side < 0 else j
        if mode in ("constant", "wrap"):
            low = np.clip(low, 0, max(n - 2, 0))
        one = np.ones_like(c)
        corners = [(low, -one), (low + 1, one)]
    if mode == "constant":
        corners = [(j, np.where(inside, weight, 0)) for j, weight in corners]
    return [_mapped(j, weight, n, mode) for j, weight in corners]


def _mapped(j: np.ndarray, weight: np.ndarray, n: int, mode: str) -> Any:
    """Return the pixel that stands for place `j`, which may lie outside of the image."""
    if mode in ("reflect", "grid-mirror"):
        j = np.mod(j, 2 * n)
        return np.minimum(j, 2 * n - 1 - j), weight
    if mode == "mirror":
        period = max(2 * n - 2, 1)
        j = np.mod(j, period)
        return np.minimum(j, period - j) if n > 1 else 0 * j, weight
    if mode == "grid-wrap":
        return np.mod(j, n), weight
    if mode == "grid-constant":
        weight = np.where((j >= 0) & (j < n), weight, 0)
    return np.clip(j, 0, n - 1), weight


# So many points at a time: their arrays fit into the cache, and the system need not be asked for
# memory for each.
_BLOCK = 8192


def _blocks(shape: Any, coordinates: Any, linear: bool, mode: str, along: Any) -> Iterator[Any]:
    """Yield a slice of the points, and flat indices and weights of the corners around them."""
    sides = dict(along)
    points = coordinates.reshape(len(shape), -1).astype(np.float64, copy=False)
    for start in range(0, points.shape[1], _BLOCK):
        part = slice(start, start + _BLOCK)
        corners: list[Any] = [(0, 1.0)]
        for axis, n in enumerate(shape):
            with np.errstate(invalid="ignore"):
                c = points[axis, part]
                pairs = _axis_corners(c, n, linear, mode, sides.get(axis, 0))
            corners = [(i * n + j, w * share) for i, w in corners for j, share in pairs]
        yield part, corners


@primitive(canonical=as_arrays, name="scipy.ndimage.sample")
def sample(image, coordinates, *, linear, mode, cval, along=()):
    """Values of an image at `coordinates`, or their derivatives along some of its axes."""
    if not along:
        return ndimage.map_coordinates(image, coordinates, order=int(linear), mode=mode, cval=cval)
    pixels = image.reshape(-1)
    out = np.zeros(coordinates[0].size, image.dtype)
    for part, corners in _blocks(image.shape, coordinates, linear, mode, along):
        for index, weight in corners:
            out[part] += (weight * pixels[index]).astype(out.dtype, copy=False)
    return out.reshape(coordinates.shape[1:])


@primitive(name="scipy.ndimage.spread")
def spread(t, coordinates, *, shape, linear, mode, along=()):
    """Add numbers to the pixels that `sample` looks up, in its shares."""
    numbers = t.reshape(-1)
    indices, terms = [np.zeros(0, np.intp)], [np.zeros(0, t.dtype)]
    for part, corners in _blocks(shape, coordinates, linear, mode, along):
        for index, weight in corners:
            indices.append(index)
            terms.append(weight * numbers[part])
    index, term = np.concatenate(indices), np.concatenate(terms)
    size = int(np.prod(shape))
    total = np.bincount(index, term.real, size)
    if term.dtype.kind == "c":
        total = total + 1j * np.bincount(index, term.imag, size)
    return total.reshape(shape).astype(t.dtype, copy=False)


def _free_axes(coordinates: Any, linear: bool, along: Any) -> list[int]:
    """Return the axes along which there still is a slope."""
    count = shape_of(coordinates)[0] if linear else 0
    return [axis for axis in range(count) if axis not in dict(along)]


def _near_zero(a: Any, b: Any) -> Any:
    """Return the number between `a` and `b` that is nearest to 0, of complex ones part by part."""
    if dtype_of(a).kind == "c":
        parts = _near_zero(np.real(a), np.real(b)), _near_zero(np.imag(a), np.imag(b))
        return parts[0] + 1j * parts[1]
    smaller = np.where(np.less(np.abs(a), np.abs(b)), a, b)
    return np.where(np.greater(np.sign(a) * np.sign(b), 0), smaller, 0)


def _slope(image: Any, coordinates: Any, axis: int, linear: bool, mode: str, along: Any) -> Any:
    """Return the slope of the value along an axis of the image."""

    def on_side(side):
        sides = (*along, (axis, side))
        return sample.bind(image, coordinates, linear=linear, mode=mode, cval=0.0, along=sides)

    ahead = on_side(1)
    if not any_of(np.equal(coordinates, np.floor(coordinates))):
        return ahead
    on_grid = np.equal(coordinates[axis], np.floor(coordinates[axis]))
    return np.where(on_grid, _near_zero(on_side(-1), ahead), ahead)


def _above(image: Any, mode: str, cval: Any, along: Any) -> Any:
    """Return the image so that it has the same slopes with zeros around it."""
    return image - cval if mode == "grid-constant" and np.any(cval) and not along else image


@sample.def_jvp
def sample_jvp(primals, tangents, out, *, linear, mode, cval, along):
    image, coordinates = primals
    image_dot, coordinates_dot = tangents
    out_dot = np.zeros(shape_of(out), dtype_of(out))
    if image_dot is not None:
        out_dot = sample.bind(
            image_dot, coordinates, linear=linear, mode=mode, cval=0.0, along=along
        )
    if coordinates_dot is not None:
        image = _above(image, mode, cval, along)
        for axis in _free_axes(coordinates, linear, along):
            slope = _slope(image, coordinates, axis, linear, mode, along)
            out_dot = out_dot + zero_wins(slope * coordinates_dot[axis], coordinates_dot[axis])
    return out_dot


@sample.def_vjp
def sample_vjp(primals, out, *, linear, mode, cval, along):
    image, coordinates = primals
    shape = shape_of(image)

    def sample_pullback_image(out_bar):
        return spread.bind(out_bar, coordinates, shape=shape, linear=linear, mode=mode, along=along)

    def sample_pullback_coordinates(out_bar):
        free = _free_axes(coordinates, linear, along)
        above = _above(image, mode, cval, along)
        bars = [np.zeros(shape_of(out_bar))] * len(shape)
        for axis in free:
            slope = _slope(above, coordinates, axis, linear, mode, along)
            bars[axis] = np.real(zero_wins(slope * out_bar, out_bar))
        return np.stack(bars)

    return sample_pullback_image, sample_pullback_coordinates


@sample.def_batch
def sample_batch(args, batched, **params):
    if batched[0]:
        return loop(sample.bind, args, batched, params)
    image, coordinates = args
    return sample.bind(image, np.moveaxis(coordinates, 0, 1), **params)


@spread.def_jvp
def spread_jvp(primals, tangents, out, *, shape, linear, mode, along):
    t, coordinates = primals
    t_dot, coordinates_dot = tangents
    params = {"shape": shape, "linear": linear, "mode": mode}
    out_dot = np.zeros(shape_of(out), dtype_of(out))
    if t_dot is not None:
        out_dot = spread.bind(t_dot, coordinates, along=along, **params)
    if coordinates_dot is not None:
        for axis in _free_axes(coordinates, linear, along):
            sides = (*along, (axis, 1))
            part = spread.bind(t * coordinates_dot[axis], coordinates, along=sides, **params)
            out_dot = out_dot + part
    return out_dot


@spread.def_vjp
def spread_vjp(primals, out, *, shape, linear, mode, along):
    t, coordinates = primals
    params = {"linear": linear, "mode": mode, "cval": 0.0}

    def spread_pullback_t(out_bar):
        return sample.bind(out_bar, coordinates, along=along, **params)

    def spread_pullback_coordinates(out_bar):
        bars = [np.zeros(shape_of(t))] * len(shape)
        for axis in _free_axes(coordinates, linear, along):
            sides = (*along, (axis, 1))
            bars[axis] = np.real(t * sample.bind(out_bar, coordinates, along=sides, **params))
        return np.stack(bars)

    return spread_pullback_t, spread_pullback_coordinates


@spread.def_batch
def spread_batch(args, batched, **params):
    return loop(spread.bind, args, batched, params)


# Samples

_MODES = (
    "constant",
    "nearest",
    "reflect",
    "mirror",
    "wrap",
    "grid-wrap",
    "grid-constant",
    "grid-mirror",
)


def _looked_up(image: Any, points: Any, mode: str, linear: bool = True, **kwargs: Any) -> Sample:
    kwargs = {"linear": linear, "mode": mode, "cval": 0.7, "complex": False, **kwargs}
    return Sample(image, points, fun=sample, **kwargs)


@sample.def_samples
def sample_samples(rng):
    image = rng.normal(size=(3, 4))
    points = rng.uniform(-5, 8, size=(2, 6))
    on_grid = np.stack(np.meshgrid(np.arange(3.0), np.arange(4.0), indexing="ij"))
    for mode in _MODES:
        for linear in (False, True):
            yield _looked_up(image, points, mode, linear)
            yield _looked_up(image[0], points[:1], mode, linear)
        yield _looked_up(image, on_grid, mode, kinks=True)
        yield _looked_up(image, points, mode, along=((1, 1),))
    inside = rng.uniform(0, 1, size=(3, 2, 2))
    yield _looked_up(rng.normal(size=(2, 2, 2)), inside, "nearest")
    yield _looked_up(rng.normal(size=(1, 2)), inside[:2], "nearest")
    yield _looked_up(image, np.zeros((2, 0)), "nearest")
    yield _looked_up(image + 1j * image[::-1], points, "nearest")


@spread.def_samples
def spread_samples(rng):
    t, points = rng.normal(size=5), rng.uniform(-1, 4, size=(2, 5))
    kwargs: dict[str, Any] = {"fun": spread, "complex": False, "shape": (3, 4)}
    for mode in _MODES:
        for linear, along in ((False, ()), (True, ()), (True, ((0, 1),))):
            yield Sample(t, points, mode=mode, linear=linear, along=along, **kwargs)
