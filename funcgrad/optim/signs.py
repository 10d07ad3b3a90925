"""Optimizers that go by the sign of each gradient, or of a mean, and not by its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from funcgrad.errors import ArgumentError, user_line
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
    init_empty_state,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.decay import add_decayed_weights
from funcgrad.optim.leaves import (
    as_hyperparameter,
    each_leaf,
    full_for,
    is_complex,
    map_updates,
    zeros_for,
)
from funcgrad.optim.moments import mean
from funcgrad.optim.momentum import ema
from funcgrad.optim.scaling import descend, scale_by_learning_rate

__all__ = [
    "ScaleByLionState",
    "ScaleByRpropState",
    "lion",
    "rprop",
    "scale_by_lion",
    "scale_by_rprop",
    "scale_by_sign",
    "sign_sgd",
    "signum",
]


def scale_by_sign() -> GradientTransformation:
    """Replace each element by its sign; a complex one by its direction.

    Returns
    -------
    GradientTransformation
        Without state.

    References
    ----------
    .. [1] J. Bernstein et al., "signSGD: compressed optimisation for non-convex problems",
       ICML 2018.

    Examples
    --------
    >>> optimizer = scale_by_sign()
    >>> optimizer.update({"w": -4.0, "z": 3.0 + 4.0j}, optimizer.init({}))
    ({'w': -1.0, 'z': (0.6+0.8j)}, EmptyState())
    """

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        return map_updates(np.sign, updates), state

    return GradientTransformation(init_empty_state, update)


def sign_sgd(learning_rate: ScalarOrSchedule) -> GradientTransformationExtraArgs:
    """Make an optimizer whose steps all have the size of the learning rate [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] J. Bernstein et al., "signSGD: compressed optimisation for non-convex problems",
       ICML 2018.

    Examples
    --------
    >>> optimizer = sign_sgd(0.1)
    >>> optimizer.update({"w": -4.0, "b": 0.01}, optimizer.init({"w": 1.0, "b": 1.0}))[0]
    {'w': 0.1, 'b': -0.1}
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def signum(
    learning_rate: ScalarOrSchedule, beta: Any = 0.9, accumulator_dtype: Any = None
) -> GradientTransformationExtraArgs:
    """Make an optimizer that goes by the sign of the running mean of gradients [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    beta : float
        What remains of the mean at the next step.
    accumulator_dtype : dtype, optional
        To keep the mean in.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] J. Bernstein et al., "signSGD: compressed optimisation for non-convex problems",
       ICML 2018.

    Examples
    --------
    >>> optimizer = signum(0.1)
    >>> optimizer.update({"w": -4.0}, optimizer.init({"w": 1.0}))[0]
    {'w': 0.1}
    """
    return chain(
        ema(beta, debias=False, accumulator_dtype=accumulator_dtype),
        scale_by_sign(),
        scale_by_learning_rate(learning_rate),
    )


class ScaleByLionState(NamedTuple):
    """The number of steps done, and the running mean of the gradients."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    mu: Updates


def scale_by_lion(
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    *,
    mode: Literal["hard", "smooth", "refined"] = "hard",
    smooth_beta: float = 1.0,
) -> GradientTransformation:
    """Go by the sign of a mean of the gradient and of its running mean [1]_.

    Parameters
    ----------
    b1 : float
        The part of the running mean in the mean whose sign is taken.
    b2 : float
        What remains of the running mean at the next step.
    mu_dtype : dtype, optional
        To keep the running mean in; that of the parameters by default.
    mode : {"hard", "smooth", "refined"}
        Take the sign, the hyperbolic tangent, or what is between -1 and 1 as it is.
    smooth_beta : float
        Multiplies what the tangent is taken of.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByLionState`.

    Raises
    ------
    ArgumentError
        There is no such mode.

    References
    ----------
    .. [1] X. Chen et al., "Symbolic discovery of optimization algorithms", 2023.

    Examples
    --------
    >>> optimizer = scale_by_lion(b2=0.75)
    >>> optimizer.update({"w": -4.0}, optimizer.init({"w": 1.0}))
    ({'w': -1.0}, ScaleByLionState(count=1, mu={'w': -1.0}))
    """
    if mode not in ("hard", "smooth", "refined"):
        raise ArgumentError(
            f"mode must be 'hard', 'smooth' or 'refined', got {mode!r}",
            where=user_line(),
            fix="write mode='hard'",
        )
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    beta = as_hyperparameter(smooth_beta, "smooth_beta")

    def init(params: Params) -> ScaleByLionState:
        return ScaleByLionState(0, zeros_for(params, mu_dtype))

    def step(g: Any, m: Any) -> tuple[Any, Any]:
        x = (1.0 - b1) * g + b1 * m
        if mode == "hard":
            way = np.sign(x)
        elif mode == "smooth":
            way = np.tanh(beta * x)
        else:
            way = np.where(np.abs(x) < 1.0, x, np.sign(x))
        return way, mean(g, m, b2)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByLionState, "lion")
        updates, mu = each_leaf(step, updates, state.mu)
        return updates, ScaleByLionState(state.count + 1, mu)

    return GradientTransformation(init, update)


def lion(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: Any = None,
) -> GradientTransformationExtraArgs:
    """Make a Lion optimizer: signs of means, in half the memory of Adam [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule; a third to a tenth of what Adam takes.
    b1, b2, mu_dtype
        As for `scale_by_lion`.
    weight_decay, mask
        As for `add_decayed_weights`. The learning rate multiplies the decay too.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] X. Chen et al., "Symbolic discovery of optimization algorithms", 2023.

    Examples
    --------
    >>> optimizer = lion(0.1, weight_decay=0.0)
    >>> params = {"w": 1.0}
    >>> optimizer.update({"w": -4.0}, optimizer.init(params), params)[0]
    {'w': 0.1}
    """
    return chain(
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


class ScaleByRpropState(NamedTuple):
    """Step sizes, and the steps that come next."""

    step_sizes: Updates
    prev_updates: Updates


def scale_by_rprop(
    learning_rate: Any,
    eta_minus: Any = 0.5,
    eta_plus: Any = 1.2,
    min_step_size: Any = 1e-6,
    max_step_size: Any = 50.0,
) -> GradientTransformation:
    """Let steps grow while the sign of the gradient stays, and shrink where it turns [1]_.

    Parameters
    ----------
    learning_rate : float
        The first step size.
    eta_minus, eta_plus : float
        What sizes are multiplied by.
    min_step_size, max_step_size : float
        Limits for sizes.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByRpropState`.

    Notes
    -----
    As in Optax 0.2.8, a step is taken one update after it is chosen, unless the sign has turned: so
    the first update is zero. Real and imaginary parts of complex gradients are numbers of their
    own.

    References
    ----------
    .. [1] M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation
       learning: the RPROP algorithm", 1993.

    Examples
    --------
    >>> optimizer = scale_by_rprop(0.1)
    >>> updates, state = optimizer.update({"w": -4.0}, optimizer.init({"w": 1.0}))
    >>> optimizer.update({"w": -4.0}, state)[0]
    {'w': -0.1}
    """
    start = as_hyperparameter(learning_rate, "learning_rate")
    shrink, grow = (
        as_hyperparameter(eta_minus, "eta_minus"),
        as_hyperparameter(eta_plus, "eta_plus"),
    )
    least = as_hyperparameter(min_step_size, "min_step_size")
    most = as_hyperparameter(max_step_size, "max_step_size")

    def init(params: Params) -> ScaleByRpropState:
        sizes = full_for(params, start)
        # The sizes of real and imaginary parts are a complex number, too.
        sizes = map_updates(lambda size: size + 1j * start if is_complex(size) else size, sizes)
        return ScaleByRpropState(sizes, zeros_for(params))

    def step(g: Any, size: Any, last: Any) -> tuple[Any, Any, Any]:
        turned = g * last
        size = np.where(
            turned == 0, size, np.clip(size * np.where(turned > 0, grow, shrink), least, most)
        )
        return np.where(turned < 0, 0, last), size, np.where(turned < 0, 0, size * np.sign(g))

    stepped = _by_parts(step)

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByRpropState, "rprop")
        updates, sizes, last = each_leaf(stepped, updates, state.step_sizes, state.prev_updates)
        return updates, ScaleByRpropState(sizes, last)

    return GradientTransformation(init, update)


def _by_parts(fun: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """Apply a function to real and imaginary parts by themselves, where there are any."""

    def by_parts(*leaves: Any) -> tuple[Any, ...]:
        if not is_complex(leaves[0]):
            return fun(*leaves)
        reals = fun(*[np.real(leaf) for leaf in leaves])
        imags = fun(*[np.imag(leaf) for leaf in leaves])
        return tuple([x + 1j * y for x, y in zip(reals, imags, strict=True)])

    return by_parts


def rprop(
    learning_rate: Any,
    eta_minus: Any = 0.5,
    eta_plus: Any = 1.2,
    min_step_size: Any = 1e-6,
    max_step_size: Any = 50.0,
) -> GradientTransformationExtraArgs:
    """Make an Rprop optimizer, for gradients of all data [1]_.

    Parameters
    ----------
    learning_rate : float
        The first step size.
    eta_minus, eta_plus, min_step_size, max_step_size
        As for `scale_by_rprop`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation
       learning: the RPROP algorithm", 1993.

    Examples
    --------
    >>> optimizer = rprop(0.1)
    >>> updates, state = optimizer.update({"w": -4.0}, optimizer.init({"w": 1.0}))
    >>> optimizer.update({"w": -4.0}, state)[0]
    {'w': 0.1}
    """
    return chain(
        scale_by_rprop(learning_rate, eta_minus, eta_plus, min_step_size, max_step_size), descend()
    )
