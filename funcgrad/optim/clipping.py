"""Clipping: of each element, of each parameter or example, or of all gradients together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad import cond, tree
from funcgrad.errors import ShapeError, describe, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    OptState,
    Params,
    Updates,
    init_empty_state,
    missing_params,
)
from funcgrad.optim.leaves import (
    abs_square,
    as_hyperparameter,
    like_leaf,
    map_updates,
    map_with_params,
)

__all__ = [
    "adaptive_grad_clip",
    "clip",
    "clip_by_block_rms",
    "clip_by_global_norm",
    "global_norm",
    "per_example_global_norm_clip",
    "per_example_layer_norm_clip",
]


def clip(max_delta: Any) -> GradientTransformation:
    """Limit each element of the updates to ``-max_delta ... max_delta``.

    Parameters
    ----------
    max_delta : float
        The limit; of the real and of the imaginary part of complex numbers.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = clip(1.0)
    >>> optimizer.update({"w": np.array([-3.0, 0.5])}, optimizer.init({"w": np.zeros(2)}))
    ({'w': array([-1. ,  0.5])}, EmptyState())
    """
    limit = as_hyperparameter(max_delta, "max_delta")

    def clipped(leaf: Any) -> Any:
        if np.iscomplexobj(leaf):
            imag = np.clip(np.imag(leaf), -limit, limit)
            return np.clip(np.real(leaf), -limit, limit) + 1j * imag
        return np.clip(leaf, -limit, limit)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return map_updates(clipped, updates), state

    return GradientTransformation(init_empty_state, update)


def global_norm(updates: Updates) -> Any:
    """Return the Euclidean norm of all leaves together.

    Parameters
    ----------
    updates : pytree
        Of arrays and numbers.

    Returns
    -------
    float
        A float64, whatever the dtypes. It does not overflow unless it is too large itself. Its
        gradient at zeros is zero.

    Examples
    --------
    >>> import numpy as np
    >>> global_norm({"w": np.array([3.0, 0.0]), "b": 4.0})
    np.float64(5.0)
    """
    leaves = tree.leaves(updates)
    plain = all(isinstance(leaf, np.ndarray | np.generic | float | complex) for leaf in leaves)
    if plain:
        total = sum([_square(leaf) for leaf in leaves])
        if _SMALL < total < math.inf:
            return np.float64(math.sqrt(total))
        return np.float64(_scaled_norm(leaves))
    # The same sums, in the same order, of what is traced.
    total = sum([np.real(np.vdot(leaf, leaf)).astype(np.float64) for leaf in leaves])
    # The square root has no derivative at 0, where the norm has a subgradient: zeros.
    return np.where(np.equal(total, 0), 0, np.sqrt(np.where(np.equal(total, 0), 1, total)))[()]


# Squares below this may have lost digits, or all of them.
_SMALL = 1e-30


def _square(leaf: Any) -> float:
    """Return the sum of squares; infinite or 0 if it leaves the range of the dtype."""
    # vdot flattens, conjugates and adds in one pass, without a temporary array.
    return float(np.vdot(leaf, leaf).real)


def _scaled_norm(leaves: list[Any]) -> float:
    """Return the norm in a way that neither overflows nor underflows."""
    sizes = [np.abs(leaf).astype(np.float64).ravel() for leaf in leaves]
    largest = max([float(np.max(size, initial=0.0)) for size in sizes], default=0.0)
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * math.sqrt(sum([float(np.sum(np.square(size / largest))) for size in sizes]))


def _like_number(factor: Any, leaf: Any) -> Any:
    """Return a traced factor in the precision of a leaf, which a number of Python has anyway."""
    dtype = getattr(leaf, "dtype", None)
    if dtype is None or isinstance(factor, int | float):
        return factor
    return factor.astype(np.zeros(0, dtype).real.dtype)


def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """Scale all updates down together if their norm is larger than a limit.

    Parameters
    ----------
    max_norm : float
        The largest `global_norm` that passes unchanged.

    Returns
    -------
    GradientTransformation
        Without state.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = clip_by_global_norm(1.0)
    >>> optimizer.update({"w": np.array([3.0, 4.0])}, optimizer.init({"w": np.zeros(2)}))
    ({'w': array([0.6, 0.8])}, EmptyState())
    """
    limit = as_hyperparameter(max_norm, "max_norm")

    def scaled(updates: Updates, norm: Any) -> Updates:
        factor = limit / norm  # NaN if the norm is: what is broken should show
        return map_updates(lambda leaf: leaf * _like_number(factor, leaf), updates)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        norm = as_hyperparameter(global_norm(updates), "the norm")
        return cond(norm <= limit, lambda same: same, lambda u: scaled(u, norm), updates), state

    return GradientTransformation(init_empty_state, update)


def clip_by_block_rms(threshold: Any) -> GradientTransformation:
    """Scale the update of a parameter down if the root of its mean square is larger than a limit.

    Parameters
    ----------
    threshold : float
        The limit, for each parameter by itself.

    Returns
    -------
    GradientTransformation
        Without state.

    References
    ----------
    .. [1] N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
       ICML 2018, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = clip_by_block_rms(1.0)
    >>> optimizer.update({"w": np.array([7.0, 1.0]), "b": 0.5}, optimizer.init({}))
    ({'w': array([1.4, 0.2]), 'b': 0.5}, EmptyState())
    """
    limit = as_hyperparameter(threshold, "threshold")

    def clipped(leaf: Any) -> Any:
        return leaf / np.maximum(1.0, _root(np.mean(abs_square(leaf))) / limit)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return map_updates(clipped, updates), state

    return GradientTransformation(init_empty_state, update)


def adaptive_grad_clip(
    clipping: Any, eps: Any = 1e-3, axis: int | tuple[int, ...] | None = None
) -> GradientTransformation:
    """Limit the norm of what reaches a unit to a part of the norm of its parameters [1]_.

    Parameters
    ----------
    clipping : float
        The part.
    eps : float
        The least that the norm of parameters counts for.
    axis : int or tuple of int, optional
        The axes of a unit. By default all of a vector, all but the last of an array of 4 or 5 axes,
        and the first of others.

    Returns
    -------
    GradientTransformation
        Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        From `update`: there are no parameters.
    ShapeError
        From `update`: a parameter has more than five axes, and `axis` is not given.

    References
    ----------
    .. [1] A. Brock et al., "High-performance large-scale image recognition without normalization",
       ICML 2021.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = adaptive_grad_clip(0.1)
    >>> params = {"w": np.array([3.0, 4.0])}
    >>> optimizer.update({"w": np.array([0.0, 2.0])}, optimizer.init(params), params)
    ({'w': array([0. , 0.5])}, EmptyState())
    """
    part, eps = as_hyperparameter(clipping, "clipping"), as_hyperparameter(eps, "eps")

    def clipped(leaf: Any, param: Any) -> Any:
        limit = part * np.maximum(_unit_norm(param, axis), eps)
        norm = _unit_norm(leaf, axis)
        return np.where(norm < limit, leaf, leaf * (limit / np.maximum(norm, 1e-6)))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        if params is None:
            raise missing_params("adaptive_grad_clip")
        return map_with_params(clipped, updates, params), state

    return GradientTransformation(init_empty_state, update)


def _unit_norm(leaf: Any, axis: int | tuple[int, ...] | None) -> Any:
    """Return the norms of units, with axes of length one in their place."""
    shape = getattr(leaf, "shape", ())
    if axis is None and len([size for size in shape if size != 1]) > 1:
        if len(shape) > 5:
            raise ShapeError(
                "adaptive_grad_clip knows the units of arrays of up to five axes",
                where=f"{user_line()}: a parameter is {describe(leaf)}",
                fix="give the axes of a unit: axis=(0, 1, 2), say",
            )
        axis = tuple(range(len(shape) - 1)) if len(shape) > 3 else 0
    return _root(np.sum(abs_square(leaf), axis=axis, keepdims=True))


def _root(square: Any) -> Any:
    """Return the square root, with derivative zero at zero."""
    return np.where(square == 0, 0, np.sqrt(np.where(square == 0, 1, square)))


def per_example_global_norm_clip(grads: Updates, l2_norm_clip: Any) -> tuple[Updates, Any]:
    """Scale the gradients of each example down to a limit, and sum over the examples [1]_.

    Parameters
    ----------
    grads : pytree
        Arrays whose first axis counts the examples, as ``vmap(grad(loss))`` gives them.
    l2_norm_clip : float
        The limit for the norm of all gradients of an example.

    Returns
    -------
    sums : pytree
        Of the clipped gradients.
    num_clipped : int
        How many examples were over the limit.

    Raises
    ------
    ShapeError
        The arrays do not count the same examples.

    References
    ----------
    .. [1] M. Abadi et al., "Deep learning with differential privacy", CCS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> grads = {"w": np.array([[3.0, 4.0], [0.3, 0.4]])}
    >>> sums, num_clipped = per_example_global_norm_clip(grads, 1.0)
    >>> sums["w"], int(num_clipped)
    (array([0.9, 1.2]), 1)
    """
    leaves = tree.leaves(grads)
    counts = {getattr(leaf, "shape", ())[:1] for leaf in leaves}
    if len(counts) > 1 or () in counts:
        shown = [describe(leaf) for leaf in leaves]
        raise ShapeError(
            "the first axes of gradients must count the same examples",
            where=f"{user_line()} passes {', '.join(shown)}",
            fix="take the gradients with vmap(grad(loss), in_axes=(None, 0))(params, examples)",
        )
    square: Any = 0
    for leaf in leaves:
        square = square + np.sum(abs_square(leaf), axis=tuple(range(1, leaf.ndim)))
    norm = _root(square)
    # NaN is left as it is: it does not count as clipped, and it shows in the sums.
    factors = np.where(norm > l2_norm_clip, l2_norm_clip / np.where(norm == 0, 1, norm), 1.0)

    def total(leaf: Any) -> Any:
        return like_leaf(np.tensordot(factors, leaf, axes=1), leaf)

    return tree.map(total, grads), np.sum(factors < 1.0)


def per_example_layer_norm_clip(
    grads: Updates, global_l2_norm_clip: Any, uniform: bool = True
) -> tuple[Updates, Updates]:
    """Do the same for each parameter by itself, so that the limit of all together is given [1]_.

    Parameters
    ----------
    grads : pytree
        Arrays whose first axis counts the examples, as ``vmap(grad(loss))`` gives them.
    global_l2_norm_clip : float
        The limit for all.
    uniform : bool
        Give all parameters the same limit; False gives larger ones to parameters of more elements.

    Returns
    -------
    sums : pytree
        Of the clipped gradients.
    num_clipped : pytree of int
        How many examples were over the limit, for each parameter.

    Raises
    ------
    ShapeError
        An array has no first axis to count examples.

    References
    ----------
    .. [1] H. B. McMahan et al., "Learning differentially private recurrent language models",
       ICLR 2018.

    Examples
    --------
    >>> import numpy as np
    >>> grads = {"w": np.array([[3.0, 4.0]]), "b": np.array([[0.1]])}
    >>> sums, num_clipped = per_example_layer_norm_clip(grads, np.sqrt(2.0))
    >>> sums["w"], {name: int(count) for name, count in num_clipped.items()}
    (array([0.6, 0.8]), {'w': 1, 'b': 0})
    """
    leaves, treedef = tree.flatten(grads)
    sizes = [np.size(leaf) for leaf in leaves]
    done = []
    for leaf, size in zip(leaves, sizes, strict=True):
        part = 1.0 / len(leaves) if uniform else size / sum(sizes)
        done.append(per_example_global_norm_clip(leaf, global_l2_norm_clip * part**0.5))
    sums, counts = [one for one, _ in done], [count for _, count in done]
    return tree.unflatten(treedef, sums), tree.unflatten(treedef, counts)
