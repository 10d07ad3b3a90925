"""Layers made of other things: `Sequential`, `MLP`, `Lambda`, `Flatten`, and `Dropout`.

A layer that needs random numbers is given a key when it is called, and one key for each comes from
the key that its container was given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.checking import whole
from funcgrad.nn.linear import Linear, Size
from funcgrad.nn.module import Module

__all__ = ["MLP", "Dropout", "Flatten", "Lambda", "Sequential", "inference_mode"]


class Sequential(Module):
    """Layers one after another.

    Parameters
    ----------
    layers : sequence of callable
        Modules are called with ``key=`` if the whole is; other functions (activation functions)
        with one argument.

    Raises
    ------
    ArgumentError
        A layer cannot be called; or, when called with a state, none takes one.

    Notes
    -----
    Layers with state, such as `BatchNorm`, are given it and give it back: called with
    ``(x, state)``, the whole returns ``(out, state)``.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> k1, k2 = fg.random.split(fg.random.key(0))
    >>> model = fg.nn.Sequential([fg.nn.Linear(4, 8, key=k1), np.tanh, fg.nn.Linear(8, 1, key=k2)])
    >>> model(np.ones((10, 4))).shape
    (10, 1)
    >>> model[0].weight.shape, len(model)
    ((8, 4), 3)
    """

    layers: tuple[Any, ...]

    def __init__(self, layers: Sequence[Callable[..., Any]]) -> None:
        if not isinstance(layers, Iterable):
            raise ArgumentError(
                f"Sequential takes a list of layers, not {describe(layers)}",
                where=user_line(),
                fix="fg.nn.Sequential([first, second])",
            )
        self.layers = tuple(layers)
        for i, layer in enumerate(self.layers):
            if not callable(layer):
                raise ArgumentError(
                    f"layer {i} of Sequential cannot be called: {describe(layer)}",
                    where=user_line(),
                    fix="give modules and functions, in one list",
                )

    def __call__(self, x: Any, state: Any = None, *, key: fg.random.Key | None = None) -> Any:
        """Call each layer with what the one before it returned."""
        keys = _keys(key, len(self.layers))
        for index, (layer, layer_key) in enumerate(zip(self.layers, keys, strict=False)):
            options = {"key": layer_key} if isinstance(layer, Module) else {}
            try:
                if state is not None and is_stateful(layer):
                    x, state = layer(x, state, **options)
                else:
                    x = layer(x, **options)
            except Exception as error:
                error.add_note(f"  layer: layers[{index}] of Sequential, {_kind(layer)}")
                raise
        return x if state is None else (x, state)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return a layer, or some of them as another `Sequential`."""
        if isinstance(index, slice):
            return Sequential(self.layers[index])
        return self.layers[index]

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        """Return the layers, one after another."""
        return iter(self.layers)

    @property
    def stateful(self) -> bool:
        """Whether a layer takes a state."""
        return any(is_stateful(layer) for layer in self.layers)


class MLP(Module):
    """A multilayer perceptron: linear layers with an activation function after each but the last.

    Parameters
    ----------
    in_size, out_size : int or "scalar"
        The sizes of the last axes of arguments and results.
    width_size : int
        The size of every layer between.
    depth : int
        How many layers are between: 0 for a single `Linear`.
    activation, final_activation : callable
        After each layer but the last, and after the last. By default `relu`, and nothing.
    use_bias, use_final_bias : bool
        Whether the layers add constants.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.

    Attributes
    ----------
    layers : tuple of Linear
        There are depth + 1.

    Raises
    ------
    ArgumentError
        A size is negative, or an activation is no function.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> model = fg.nn.MLP(2, 1, width_size=8, depth=2, key=fg.random.key(0))
    >>> model(np.ones((10, 2))).shape
    (10, 1)
    """

    layers: tuple[Linear, ...]
    activation: Callable[[Any], Any] = fg.static()
    final_activation: Callable[[Any], Any] | None = fg.static()
    in_size: Size = fg.static()
    out_size: Size = fg.static()
    width_size: int = fg.static()
    depth: int = fg.static()

    def __init__(
        self,
        in_size: Size,
        out_size: Size,
        width_size: int,
        depth: int,
        activation: Callable[[Any], Any] = fg.nn.functional.relu,
        final_activation: Callable[[Any], Any] | None = None,
        use_bias: bool = True,
        use_final_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        depth = whole("MLP", "depth", depth)
        width_size = whole("MLP", "width_size", width_size)
        if not callable(activation) or not (final_activation is None or callable(final_activation)):
            raise ArgumentError(
                f"MLP calls its activations, and was given {activation!r} and {final_activation!r}",
                where=user_line(),
                fix="a function, such as fg.nn.functional.relu",
            )
        sizes = [in_size, *[width_size] * depth, out_size]
        keys = fg.random.split(key, depth + 1)
        self.layers = tuple(
            Linear(n, m, use_bias if i < depth else use_final_bias, dtype, key=layer_key)
            for i, ((n, m), layer_key) in enumerate(
                zip(itertools.pairwise(sizes), keys, strict=True)
            )
        )
        self.activation = activation
        self.final_activation = final_activation
        self.in_size, self.out_size = in_size, out_size
        self.width_size, self.depth = width_size, depth

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Apply the layers to the last axis of `x`, of shape (..., in_size)."""
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        x = last(x)
        return x if self.final_activation is None else self.final_activation(x)


class Lambda(Module):
    """A function as a layer.

    Parameters
    ----------
    fn : callable
        Takes and returns an array.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.Lambda(np.square)(3.0)
    np.float64(9.0)
    """

    fn: Callable[[Any], Any] = fg.static()

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return ``fn(x)``."""
        return self.fn(x)


class Flatten(Module):
    """Makes one axis of several.

    Parameters
    ----------
    start_axis, end_axis : int
        The first and the last of them. By default all but the first axis of a batch; for one
        example without a batch axis write ``start_axis=0``.

    Raises
    ------
    ShapeError
        When called: the argument has no such axes, or the first comes after the last.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> fg.nn.Flatten()(np.ones((10, 3, 4))).shape
    (10, 12)
    >>> fg.nn.Flatten(-2)(np.ones((10, 5, 3, 4))).shape
    (10, 5, 12)
    """

    start_axis: int = fg.static(default=1)
    end_axis: int = fg.static(default=-1)

    def __call__(self, x: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return `x` with these axes as one."""
        shape = np.shape(x)
        ndim = len(shape)
        start = self.start_axis + ndim * (self.start_axis < 0)
        end = self.end_axis + ndim * (self.end_axis < 0)
        if not (0 <= start < ndim and 0 <= end < ndim and start <= end):
            raise ShapeError(
                f"Flatten({self.start_axis}, {self.end_axis}) does not fit {describe(x)}",
                where=user_line(),
                fix="name axes that there are, the first before the last",
            )
        size = int(np.prod(shape[start : end + 1], dtype=np.intp))
        return np.reshape(x, (*shape[:start], size, *shape[end + 1 :]))


class Dropout(Module):
    """Sets elements to zero at random, and multiplies the others to make up for it.

    Parameters
    ----------
    p : float
        The probability that an element is dropped.
    inference : bool
        Whether to do nothing, as when a trained model is used; see `inference_mode`.

    Raises
    ------
    ArgumentError
        `p` is not from 0 to 1; or, when called, there is no key.

    Notes
    -----
    Srivastava et al. (2014), with the factor 1/(1 - p) in training, so that nothing has to be
    scaled afterwards. Under `vmap` give each example a key of its own: with one key for all,
    the same elements are dropped in every example.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> drop = fg.nn.Dropout(0.5)
    >>> sorted(set(drop(np.ones(1000), key=fg.random.key(0)).tolist()))
    [0.0, 2.0]
    >>> fg.nn.inference_mode(drop)(np.ones(3))
    array([1., 1., 1.])
    """

    p: float = fg.static(default=0.5)
    inference: bool = fg.static(default=False)

    def __init__(self, p: float = 0.5, inference: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ArgumentError(
                f"a probability is from 0 to 1, not {p}",
                where=f"{user_line()}, argument p of Dropout",
                fix="Dropout(0.5) drops half of the elements",
            )
        self.p = p
        self.inference = inference

    def __call__(
        self, x: Any, *, key: fg.random.Key | None = None, inference: bool | None = None
    ) -> Any:
        """Return `x` with elements dropped; as it is if `inference` (by default, the field)."""
        if (self.inference if inference is None else inference) or self.p == 0:
            return x
        if key is None:
            raise ArgumentError(
                "Dropout needs a key to drop elements at random",
                where=user_line(),
                fix="model(x, key=key) in training, fg.nn.inference_mode(model)(x) else",
            )
        if self.p == 1:
            return x * 0
        kept = fg.random.bernoulli(key, 1 - self.p, np.shape(x))
        return np.where(kept, x / (1 - self.p), 0)


def inference_mode(tree: Any, value: bool = True) -> Any:
    """Return a model with the `inference` field of every layer set.

    Parameters
    ----------
    tree : pytree
        A model, or anything with modules in it.
    value : bool
        True to use a model, False to train it further.

    Returns
    -------
    pytree
        A copy, which shares all arrays.

    Examples
    --------
    >>> import funcgrad as fg
    >>> model = fg.nn.Sequential([fg.nn.Dropout(0.1), fg.nn.Dropout(0.2)])
    >>> [layer.inference for layer in fg.nn.inference_mode(model)]
    [True, True]
    """

    def switched(module: Any) -> Any:
        has = any(field.name == "inference" for field in type(module).__attrs_attrs__)
        return module.replace(inference=value) if has else module

    return map_modules(switched, tree)


def map_modules(f: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `f` to every module of a tree, outer ones first."""
    if isinstance(tree, Module):
        tree = f(tree)
    return fg.tree.map(
        lambda node: map_modules(f, node) if isinstance(node, Module) else node,
        tree,
        is_leaf=lambda node: node is not tree and isinstance(node, Module),
    )


def is_stateful(layer: Any) -> bool:
    """Tell whether a layer takes a state and returns it."""
    return bool(getattr(layer, "stateful", False))


def _kind(layer: Any) -> str:
    return type(layer).__name__ if isinstance(layer, Module) else describe(layer)


def _keys(key: fg.random.Key | None, count: int) -> Any:
    if key is None:
        return [None] * count
    return fg.random.split(key, count)
