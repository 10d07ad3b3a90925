"""Optimizers that divide each element's gradient by its usual size: Adam and its relatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad import tree
from funcgrad.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    ScalarOrSchedule,
    Updates,
    check_state,
)
from funcgrad.optim.combining import chain
from funcgrad.optim.decay import add_decayed_weights
from funcgrad.optim.leaves import as_hyperparameter, like_leaf, matched, wrong_shape, zeros_for
from funcgrad.optim.scaling import scale_by_learning_rate

__all__ = ["ScaleByAdamState", "adam", "adamw", "nadam", "nadamw", "scale_by_adam"]


class ScaleByAdamState(NamedTuple):
    """The number of steps done, and running means of the gradients and of their squares.

    Attributes
    ----------
    count : int
        The number of steps done.
    mu, nu : pytree
        The means of the gradients, and of their squares, like the parameters.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.optim.scale_by_adam().init({"w": 1.0})
    ScaleByAdamState(count=0, mu={'w': 0.0}, nu={'w': 0.0})
    """

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    mu: Updates
    nu: Updates


def scale_by_adam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Divide the running mean of the gradients by the root of that of their squares.

    Parameters
    ----------
    b1, b2 : float
        Decay of the two means.
    eps : float
        Added to the root.
    eps_root : float
        Added under the root; a positive one keeps derivatives of the update small.
    mu_dtype : dtype, optional
        To keep the mean of the gradients in; that of the parameters by default.
    nesterov : bool
        Look one step ahead, as NAdam does [2]_.

    Returns
    -------
    GradientTransformation
        Its state is a `ScaleByAdamState`.

    Raises
    ------
    TreeMismatchError, ShapeError
        From `update`: the gradients do not fit the state.

    Notes
    -----
    Both means start at zero and are divided by ``1 - b ** count`` to make up for it [1]_. Squares
    of complex gradients are those of their magnitudes, and real.

    References
    ----------
    .. [1] D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    .. [2] T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.

    Examples
    --------
    >>> optimizer = scale_by_adam()
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(float(updates["w"]), 6), state.count
    (1.0, 1)
    """
    b1, b2 = as_hyperparameter(b1, "b1"), as_hyperparameter(b2, "b2")
    eps, eps_root = as_hyperparameter(eps, "eps"), as_hyperparameter(eps_root, "eps_root")
    numbers = all(type(x) in (int, float) for x in (b1, b2, eps, eps_root))

    def init(params: Params) -> ScaleByAdamState:
        return ScaleByAdamState(0, zeros_for(params, mu_dtype), zeros_for(params, real=True))

    def update(
        updates: Updates, state: OptState, params: Params | None = None
    ) -> tuple[Updates, OptState]:
        state = check_state(state, ScaleByAdamState, "adam")
        count = state.count + 1
        leaves, mus, treedef = matched(updates, state.mu)
        _, nus, _ = matched(updates, state.nu)
        correct1, correct2 = 1 - b1**count, 1 - b2**count
        ahead = 1 - b1 ** (count + 1)
        # m / correct1 / (sqrt(v / correct2 + eps_root) + eps), with one division of an array.
        root = correct2**0.5
        small_root, small, times = eps_root * correct2, eps * root, root / correct1
        steps, new_mus, new_nus = [], [], []
        for g, m, v in zip(leaves, mus, nus, strict=True):
            if g is None:
                step, new_m, new_v = None, m, v
            elif getattr(g, "shape", ()) != getattr(m, "shape", ()):
                wrong_shape(updates, state.mu)
            elif numbers and not nesterov and _are_plain(g, m, v):
                step, new_m, new_v = _plain_step(g, m, v, b1, b2, small, small_root, times)
            else:
                new_m = (1 - b1) * g + b1 * m
                new_v = (1 - b2) * _square(g) + b2 * v
                under = new_v + small_root if _is_added(eps_root) else new_v
                divisor = np.sqrt(under) + small
                if nesterov:
                    m_hat = b1 * (new_m / ahead) + (1 - b1) * (g / correct1)
                    step = m_hat / divisor * root
                else:
                    step = new_m / divisor * times
                step, new_m, new_v = like_leaf(step, g), like_leaf(new_m, m), like_leaf(new_v, v)
            steps.append(step)
            new_mus.append(new_m)
            new_nus.append(new_v)
        unflatten = tree.unflatten
        return unflatten(treedef, steps), ScaleByAdamState(
            count, unflatten(treedef, new_mus), unflatten(treedef, new_nus)
        )

    return GradientTransformation(init, update)


def _are_plain(g: Any, m: Any, v: Any) -> bool:
    """Tell whether all three are real arrays of one dtype, with axes."""
    return (
        type(g) is type(m) is type(v) is np.ndarray
        and g.dtype == m.dtype == v.dtype
        and g.dtype.kind == "f"
        and g.ndim > 0
    )


def _plain_step(
    g: Any,
    m: Any,
    v: Any,
    b1: float,
    b2: float,
    small: float,
    small_root: float,
    times: float,
) -> tuple[Any, Any, Any]:
    """Do the same in the three arrays that are returned, without others."""
    step = g * (1 - b1)
    m = m * b1
    m += step
    np.multiply(g, g, out=step)
    step *= 1 - b2
    v = v * b2
    v += step
    np.sqrt(np.add(v, small_root, out=step) if small_root else v, out=step)
    step += small
    np.divide(m, step, out=step)
    step *= times
    return step, m, v


def _is_added(eps: Any) -> bool:
    """Tell whether adding a number changes anything; what is traced might."""
    return not isinstance(eps, int | float) or eps != 0


def _square(g: Any) -> Any:
    if np.iscomplexobj(g):
        return np.square(np.real(g)) + np.square(np.imag(g))
    return g * g


def adam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Make an Adam optimizer: steps of about the learning rate, whatever the size of gradients.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule: it takes the number of steps done and returns a number.
    b1, b2, eps, eps_root, mu_dtype, nesterov
        As for `scale_by_adam`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    See Also
    --------
    adamw : with weight decay.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = adam(0.01)
    >>> updates, state = optimizer.update(np.array([-1.0, 4.0]), optimizer.init(np.ones(2)))
    >>> updates
    array([ 0.01, -0.01])
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Make an Adam optimizer with weight decay that the adaptive scale does not touch [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule: it takes the number of steps done and returns a number.
    b1, b2, eps, eps_root, mu_dtype, nesterov
        As for `scale_by_adam`.
    weight_decay, mask
        As for `add_decayed_weights`. The learning rate multiplies the decay too.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = adamw(0.1, weight_decay=0.5)
    >>> params = np.array([2.0])
    >>> updates, state = optimizer.update(np.array([0.0]), optimizer.init(params), params)
    >>> updates
    array([-0.1])
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Make an Adam optimizer with Nesterov's momentum [1]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root, mu_dtype, nesterov
        As for `scale_by_adam`.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer.

    References
    ----------
    .. [1] T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.

    Examples
    --------
    >>> optimizer = nadam(0.1)
    >>> updates, state = optimizer.update({"w": 4.0}, optimizer.init({"w": 1.0}))
    >>> round(updates["w"], 4)
    -0.1474
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """Make an Adam optimizer with Nesterov's momentum [1]_ and decoupled weight decay [2]_.

    Parameters
    ----------
    learning_rate : float or callable
        A number, or a schedule.
    b1, b2, eps, eps_root, mu_dtype, nesterov
        As for `scale_by_adam`.
    weight_decay, mask
        As for `add_decayed_weights`. The learning rate multiplies the decay too.

    Returns
    -------
    GradientTransformationExtraArgs
        The optimizer. Its `update` needs the parameters.

    References
    ----------
    .. [1] T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.
    .. [2] I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Examples
    --------
    >>> optimizer = nadamw(0.1, weight_decay=0.5)
    >>> params = {"w": 2.0}
    >>> optimizer.update({"w": 0.0}, optimizer.init(params), params)[0]
    {'w': -0.1}
    """
    return adamw(
        learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask, nesterov=nesterov
    )
