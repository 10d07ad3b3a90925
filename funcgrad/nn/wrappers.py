"""Layers around weights: `PReLU`, weight and spectral normalisation, and shared weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.module import Module
from funcgrad.nn.state import State, StateIndex

__all__ = ["PReLU", "Shared", "SpectralNorm", "WeightNorm"]


class PReLU(Module):
    """`leaky_relu` with a slope that is learnt (He et al., 2015).

    Parameters
    ----------
    init_alpha : float or array_like
        The slope at the start: one, or one for each channel, broadcast against arguments.
    dtype : dtype, optional
        Of the slope; that of `init_alpha` by default, float64 for numbers.

    Attributes
    ----------
    negative_slope : ndarray
        The slope.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.PReLU()(np.array([-2.0, 3.0]))
    array([-0.5,  3. ])
    """

    negative_slope: Any

    def __init__(self, init_alpha: Any = 0.25, dtype: npt.DTypeLike | None = None) -> None:
        alpha = np.asarray(init_alpha, dtype)
        self.negative_slope = alpha if alpha.dtype.kind == "f" else alpha.astype(np.float64)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return positive elements, and negative ones times the slope."""
        return fg.nn.functional.leaky_relu(x, self.negative_slope)


class WeightNorm(Module):
    """Gives the weight of a layer as a direction and a length (Salimans and Kingma, 2016).

    Parameters
    ----------
    layer : Module
        A layer with a weight.
    weight_name : str
        The field that has it.
    axis : int or None
        The axis that counts weights with a length each; None for one length of all.

    Attributes
    ----------
    layer : Module
        The layer, whose weight is the direction.
    g : ndarray
        The lengths, of the shape of the weight with 1 along the other axes.

    Raises
    ------
    ArgumentError
        The layer has no such weight, or the weight no such axis.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.Linear(3, 2, key=fg.random.key(0))
    >>> normed = fg.nn.WeightNorm(layer)
    >>> bool(np.allclose(normed(np.ones(3)), layer(np.ones(3))))
    True
    """

    layer: Any
    g: Any
    weight_name: str = fg.static()
    axis: int | None = fg.static()

    def __init__(self, layer: Any, weight_name: str = "weight", axis: int | None = 0) -> None:
        weight = _weight(layer, weight_name, "WeightNorm")
        if axis is not None:
            if not -weight.ndim <= axis < weight.ndim:
                raise ArgumentError(
                    f"axis {axis} is none of the {weight.ndim} axes of the weight",
                    where=f"{user_line()}, argument axis of WeightNorm",
                    fix="the axis that counts outputs, 0 in most layers, or None",
                )
            axis %= weight.ndim
        self.layer, self.weight_name, self.axis = layer, weight_name, axis
        self.g = self._length(weight)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Call the layer with its weight brought to the lengths `g`."""
        weight = getattr(self.layer, self.weight_name)
        weight = weight * (self.g / self._length(weight))
        return self.layer.replace(**{self.weight_name: weight})(x, key=key)

    def _length(self, weight: Any) -> Any:
        axes = tuple(i for i in range(weight.ndim) if self.axis is None or i != self.axis)
        return np.sqrt(np.sum(np.square(weight), axis=axes, keepdims=True))


class SpectralNorm(Module):
    """Divides the weight of a layer by its largest singular value (Miyato et al., 2018).

    Parameters
    ----------
    layer : Module
        A layer with a weight, of which the first axis counts outputs.
    weight_name : str
        The field that has it.
    num_power_iterations : int
        How many steps each call takes towards the singular vectors.
    eps : float
        The least length that is divided by.
    inference : bool
        Whether no step is taken; see `inference_mode`.
    key : Key
        For the vectors at the start.

    Attributes
    ----------
    vectors : StateIndex
        Of the pair of singular vectors in the state.

    Raises
    ------
    ArgumentError
        The layer has no such weight; or, when called, there is no state.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def make(key):
    ...     k1, k2 = fg.random.split(key)
    ...     return fg.nn.SpectralNorm(fg.nn.Linear(3, 2, key=k1), "weight", 50, key=k2)
    >>> layer, state = fg.nn.make_with_state(make)(fg.random.key(0))
    >>> out, state = layer(np.ones(3), state)
    >>> out.shape
    (2,)
    """

    layer: Any
    vectors: StateIndex
    weight_name: str = fg.static()
    num_power_iterations: int = fg.static()
    eps: float = fg.static()
    inference: bool = fg.static()

    stateful = True

    def __init__(
        self,
        layer: Any,
        weight_name: str = "weight",
        num_power_iterations: int = 1,
        eps: float = 1e-12,
        inference: bool = False,
        *,
        key: fg.random.Key,
    ) -> None:
        weight = _weight(layer, weight_name, "SpectralNorm")
        rows = weight.shape[0]
        matrix = np.reshape(weight, (rows, -1))
        u_key, v_key = fg.random.split(key)
        u = fg.random.normal(u_key, (rows,), weight.dtype)
        v = fg.random.normal(v_key, (matrix.shape[1],), weight.dtype)
        self.layer, self.weight_name = layer, weight_name
        self.num_power_iterations, self.eps, self.inference = num_power_iterations, eps, inference
        # Some steps now, so that the first calls divide by about the right number.
        self.vectors = StateIndex(self._steps(matrix, (u, v), 15))

    def __call__(
        self,
        x: Any,
        state: State | None = None,
        *,
        key: fg.random.Key | None = None,
        inference: bool | None = None,
    ) -> tuple[Any, State]:
        """Call the layer with the weight divided; return its result and the state."""
        if state is None:
            raise ArgumentError(
                "SpectralNorm needs its state",
                where=user_line(),
                fix="model, state = fg.nn.make_with_state(make)(...), "
                "then out, state = model(x, state)",
            )
        weight = getattr(self.layer, self.weight_name)
        matrix = np.reshape(weight, (weight.shape[0], -1))
        vectors = state.get(self.vectors)
        if not (self.inference if inference is None else inference):
            steps = self._steps(fg.stop_gradient(matrix), vectors, self.num_power_iterations)
            vectors = fg.stop_gradient(steps)
            state = state.set(self.vectors, vectors)
        u, v = vectors
        sigma = u @ (matrix @ v)
        layer = self.layer.replace(**{self.weight_name: weight / sigma})
        return layer(x, key=key), state

    def _steps(self, matrix: Any, vectors: Any, count: int) -> tuple[Any, Any]:
        u, v = vectors
        for _ in range(count):
            v = self._unit(matrix.T @ u)
            u = self._unit(matrix @ v)
        return u, v

    def _unit(self, vector: Any) -> Any:
        return vector / np.maximum(np.linalg.norm(vector), self.eps)


class Shared(Module):
    """A tree in which some parts are another part, and are kept once.

    Parameters
    ----------
    pytree : pytree
        A model.
    where : callable
        Points at the parts to replace, as in `fg.tree.at`: one, or a tuple or list of them.
    get : callable
        Takes the model, and returns what to put there: one, or as many. It may change a part on
        the way, as by a transpose.

    Raises
    ------
    ShapeError
        An array is to stand for one of another shape.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> model = {"embed": np.ones((5, 2)), "head": np.ones((5, 2))}
    >>> tied = fg.nn.Shared(model, lambda m: m["head"], lambda m: m["embed"])
    >>> len(fg.tree.leaves(tied)), sorted(tied())
    (1, ['embed', 'head'])
    >>> grads = fg.grad(lambda tied: np.sum(tied()["embed"]) + np.sum(tied()["head"]))(tied)
    >>> float(grads.pytree["embed"][0, 0])
    2.0
    """

    pytree: Any
    where: Callable[[Any], Any] = fg.static()
    get: Callable[[Any], Any] = fg.static()

    def __init__(self, pytree: Any, where: Callable[[Any], Any], get: Callable[[Any], Any]) -> None:
        old, new = where(pytree), get(pytree)
        for a, b in zip(fg.tree.leaves(old), fg.tree.leaves(new), strict=False):
            if np.shape(a) != np.shape(b):
                raise ShapeError(
                    f"{describe(b)} cannot stand for {describe(a)}",
                    where=user_line(),
                    fix="let get return it in the right shape, for example transposed",
                )
        several = type(old) in (tuple, list) and type(new) in (tuple, list)
        nothing: Any = [None] * len(old) if several else None
        self.pytree = fg.tree.at(where, pytree, nothing)
        self.where, self.get = where, get

    def __call__(self) -> Any:
        """Return the whole tree."""
        new = self.get(self.pytree)
        return fg.tree.at(self.where, self.pytree, new, is_leaf=lambda node: node is None)


def _weight(layer: Any, name: str, wrapper: str) -> Any:
    weight = getattr(layer, name, None)
    if not isinstance(layer, Module) or not hasattr(weight, "shape"):
        raise ArgumentError(
            f"{describe(layer)} has no weight {name!r} for {wrapper}",
            where=user_line(),
            fix="give a layer, and the name of the field of its weight",
        )
    return weight
