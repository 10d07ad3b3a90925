"""L-BFGS: steps by a model of the curvature, made of the last few steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import at, cond, tree
from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    identity,
    missing_params,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.leaves import abs_square, aligned, is_complex, like_leaf, wrong_shape, zeros_for
from funcgrad.optim.scaling import descend, scale_by_learning_rate
from funcgrad.optim.zoom import scale_by_zoom_linesearch

__all__ = ["ScaleByLBFGSState", "lbfgs", "scale_by_lbfgs"]


class ScaleByLBFGSState(NamedTuple):
    """The number of steps done, the last parameters and gradients, and the last few changes."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    params: Params
    updates: Updates
    diff_params_memory: Params
    diff_updates_memory: Params
    weights_memory: Any


def scale_by_lbfgs(
    memory_size: int = 10, scale_init_precond: bool = True
) -> GradientTransformation:
    """Multiply gradients by an estimate of the inverse Hessian, from the last steps [1]_.

    Parameters
    ----------
    memory_size : int
        How many steps are remembered.
    scale_init_precond : bool
        Begin the estimate with a multiple of the identity that fits the last step; at the first
        step with one that makes it no longer than 1. False begins with the identity.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByLBFGSState`. Needs the parameters in `update`.

    Raises
    ------
    ArgumentError
        `memory_size` is less than 1; from `update`: there are no parameters.

    References
    ----------
    .. [1] J. Nocedal and S. J. Wright, *Numerical Optimization*, 2nd ed., Springer, 2006,
       algorithm 7.4.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = scale_by_lbfgs()
    >>> curvature, params = np.array([1.0, 10.0]), np.array([4.0, 1.0])
    >>> state = optimizer.init(params)
    >>> for _ in range(8):
    ...     updates, state = optimizer.update(curvature * params, state, params)
    ...     params = params - updates
    >>> bool(np.sum(curvature * params**2) < 1.0)
    True
    """
    if memory_size < 1:
        raise ArgumentError(
            f"memory_size must be at least 1, got {memory_size}",
            where=user_line(),
            fix="write memory_size=10, say",
        )

    def stacked(zero: Any) -> Any:
        return np.zeros((memory_size, *np.shape(zero)), getattr(zero, "dtype", type(zero)))

    def init(params: Params) -> ScaleByLBFGSState:
        zeros = zeros_for(params)
        memory = tree.map(stacked, zeros)
        return ScaleByLBFGSState(0, zeros, zeros, memory, memory, np.zeros(memory_size))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByLBFGSState, "lbfgs")
        if params is None:
            raise missing_params("lbfgs")
        columns = [
            state.updates,
            params,
            state.params,
            state.diff_params_memory,
            state.diff_updates_memory,
        ]
        leaves, (old_leaves, *sides), treedef = aligned(updates, columns, params_at=1)
        used = [i for i, leaf in enumerate(leaves) if leaf is not None]
        for i in used:
            if getattr(leaves[i], "shape", ()) != getattr(old_leaves[i], "shape", ()):
                wrong_shape(updates, state.updates)

        def vector(column: list[Any]) -> list[Any]:
            return [column[i] for i in used]

        # From here on lists of arrays are vectors, and gradients point where the value grows.
        gradient = [_conjugate(leaf) for leaf in vector(leaves)]
        olds = [_conjugate(leaf) for leaf in vector(old_leaves)]
        points, last_points, moves, turns = [vector(side) for side in sides]
        first = state.count == 0
        move, turn, weight = cond(
            first,
            lambda: ([p * 0 for p in points], [g * 0 for g in gradient], 0.0),
            lambda: _changes(points, last_points, gradient, olds),
        )
        newest = (state.count - 1) % memory_size
        moves = [at(memory)[newest].set(one) for memory, one in zip(moves, move, strict=True)]
        turns = [at(memory)[newest].set(one) for memory, one in zip(turns, turn, strict=True)]
        weights = at(state.weights_memory)[newest].set(weight)
        factor: Any = 1.0
        if scale_init_precond:
            factor = cond(first, lambda: _first_factor(gradient), lambda: _factor(move, turn))
        order = [(state.count + i) % memory_size for i in range(memory_size)]
        way = _two_loops(gradient, moves, turns, weights, order, factor)

        def tree_of(column: list[Any], values: list[Any]) -> Any:
            """Put values into the places of the leaves that are used."""
            filled = list(column)
            for i, value in zip(used, values, strict=True):
                filled[i] = value
            return tree.unflatten(treedef, filled)

        # Copies: who changes parameters in place afterwards must not change what they were.
        kept = [np.copy(p) if type(p) is np.ndarray else p for p in points]
        new = ScaleByLBFGSState(
            state.count + 1,
            tree_of(sides[1], kept),
            tree_of(old_leaves, vector(leaves)),
            tree_of(sides[2], moves),
            tree_of(sides[3], turns),
            weights,
        )
        steps = [
            like_leaf(_conjugate(one), leaf) for one, leaf in zip(way, vector(leaves), strict=True)
        ]
        return tree_of(leaves, steps), new

    return GradientTransformation(init, update)


def _conjugate(leaf: Any) -> Any:
    return np.conjugate(leaf) if is_complex(leaf) else leaf


def _dot(a: list[Any], b: list[Any]) -> Any:
    """Return the real inner product of two vectors."""
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + np.real(np.vdot(x, y))
    return total


def _square(a: list[Any]) -> Any:
    total: Any = 0.0
    for x in a:
        total = total + np.sum(abs_square(x))
    return total


def _changes(
    points: list[Any], last_points: list[Any], gradient: list[Any], last_gradient: list[Any]
) -> tuple[list[Any], list[Any], Any]:
    move = [new - old for new, old in zip(points, last_points, strict=True)]
    turn = [new - old for new, old in zip(gradient, last_gradient, strict=True)]
    product = _dot(turn, move)
    return move, turn, np.where(product == 0, 0.0, 1.0 / np.where(product == 0, 1.0, product))[()]


def _first_factor(gradient: list[Any]) -> Any:
    square = _square(gradient)
    return np.where(square > 1.0, 1.0 / np.sqrt(np.where(square > 1.0, square, 1.0)), 1.0)[()]


def _factor(move: list[Any], turn: list[Any]) -> Any:
    square = _square(turn)
    return np.where(square > 0, _dot(turn, move) / np.where(square > 0, square, 1.0), 1.0)[()]


def _two_loops(
    vector: list[Any],
    moves: list[Any],
    turns: list[Any],
    weights: Any,
    order: list[Any],
    factor: Any,
) -> list[Any]:
    """Multiply a vector by the estimate; `order` goes from the oldest step to the newest."""
    if type(weights) is np.ndarray:
        order = [i for i in order if weights[i] != 0]  # no step, or one without curvature
    rows = [([memory[i] for memory in moves], [memory[i] for memory in turns]) for i in order]
    alphas: list[Any] = []
    for i, (move, turn) in zip(reversed(order), reversed(rows), strict=True):
        alpha = weights[i] * _dot(move, vector)
        vector = _sum(vector, -alpha, turn)
        alphas.append(alpha)
    vector = [like_leaf(factor * x, x) for x in vector]
    for i, (move, turn), alpha in zip(order, rows, reversed(alphas), strict=True):
        beta = weights[i] * _dot(turn, vector)
        vector = _sum(vector, alpha - beta, move)
    return vector


def _sum(a: list[Any], factor: Any, b: list[Any]) -> list[Any]:
    return [like_leaf(x + factor * y, x) for x, y in zip(a, b, strict=True)]


_ZOOM = scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")


def lbfgs(
    learning_rate: ScalarOrSchedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = _ZOOM,
) -> GradientTransformationExtraArgs:
    """Make an L-BFGS optimizer, for functions that are the same at every step [1]_.

    Parameters
    ----------
    learning_rate : float or callable, optional
        A number, or a schedule, before the line search; 1 by default.
    memory_size, scale_init_precond
        As for `scale_by_lbfgs`.
    linesearch : GradientTransformation, optional
        A line search, by default `scale_by_zoom_linesearch` from step size 1. None does without,
        and the steps have the size that the learning rate gives them.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters, and what the line search needs.

    See Also
    --------
    value_and_grad_from_state : saves evaluations.

    References
    ----------
    .. [1] D. C. Liu and J. Nocedal, "On the limited memory BFGS method for large scale
       optimization", Mathematical Programming 1989.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def rosenbrock(x):
    ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> optimizer, params = lbfgs(), np.zeros(3)
    >>> state = optimizer.init(params)
    >>> value_and_grad = fg.optim.value_and_grad_from_state(rosenbrock)
    >>> for _ in range(30):
    ...     value, grad = value_and_grad(params, state=state)
    ...     updates, state = optimizer.update(
    ...         grad, state, params, value=value, grad=grad, value_fn=rosenbrock
    ...     )
    ...     params = fg.optim.apply_updates(params, updates)
    >>> np.round(params, 6)
    array([1., 1., 1.])
    """
    return chain(
        scale_by_lbfgs(memory_size, scale_init_precond),
        descend() if learning_rate is None else scale_by_learning_rate(learning_rate),
        identity() if linesearch is None else linesearch,
    )
