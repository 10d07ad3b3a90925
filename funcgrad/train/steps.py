"""One step of training as a pure function, and the state that it takes and returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, NonFiniteError, describe, user_line

__all__ = ["TrainState", "make_step", "predict"]


class TrainState(fg.nn.Module):
    """All that a step of training changes.

    Parameters
    ----------
    model : pytree
        The parameters: a module, or any other tree.
    opt_state : pytree
        The state of the optimizer.
    model_state : pytree, optional
        What layers remember: a `fg.nn.State`, or None.
    key : Key, optional
        From which each step gets its own.
    step : int
        The number of steps so far.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> state = fg.train.TrainState.create(np.ones(2), fg.optim.sgd(0.1))
    >>> state.step
    0
    """

    model: Any
    opt_state: Any
    model_state: Any = None
    key: Any = None
    step: int = 0

    @classmethod
    def create(
        cls,
        model: Any,
        optimizer: Any,
        *,
        model_state: Any = None,
        key: fg.random.Key | None = None,
    ) -> TrainState:
        """Make the state before the first step.

        Parameters
        ----------
        model : pytree
            The parameters.
        optimizer : GradientTransformation
            Its ``init`` is called with the model.
        model_state : pytree, optional
            What layers remember.
        key : Key, optional
            For dropout and the like.

        Returns
        -------
        TrainState
            At step 0.

        Raises
        ------
        ArgumentError
            It is no optimizer, or no leaf of the model is a floating-point number or array.
        """
        _expect_optimizer(optimizer)
        if not any(map(_is_float, fg.tree.leaves(model))):
            raise ArgumentError(
                "there is nothing to train: no leaf of the model is a floating-point array",
                where=f"{user_line()}: the model is {describe(model)}",
                fix="x.astype(float) for parameters that are whole numbers",
            )
        return cls(model, optimizer.init(model), model_state, key, 0)


def make_step(
    loss_fn: Callable[..., Any], optimizer: Any
) -> Callable[[TrainState, Any], tuple[TrainState, Any]]:
    """Make a function that takes one step of training.

    Parameters
    ----------
    loss_fn : callable
        Called as ``loss_fn(model, *batch)``; returns the loss. If it has a parameter `key`, it is
        given one by keyword, another for each step. If it has a parameter `state`, it is given the
        `model_state`, and returns ``(loss, new state)``.
    optimizer : GradientTransformation
        Makes updates of gradients. It is given the loss and the gradient too, for those that
        search along a line.

    Returns
    -------
    callable
        ``step(state, batch)`` returns ``(new state, loss)``. A batch that is a tuple or list is
        several arguments of `loss_fn`, everything else is one.

    Raises
    ------
    ArgumentError
        It is no optimizer; or, when called: `loss_fn` needs a key, and the state has none.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def loss_fn(w, x, y):
    ...     return np.mean((x @ w - y) ** 2)
    >>> optimizer = fg.optim.sgd(0.1)
    >>> step = fg.train.make_step(loss_fn, optimizer)
    >>> state = fg.train.TrainState.create(np.zeros(2), optimizer)
    >>> state, loss = step(state, (np.eye(2), np.ones(2)))
    >>> print(loss, state.model)
    1.0 [0.1 0.1]
    """
    takes_key, takes_state = has_parameter(loss_fn, "key"), has_parameter(loss_fn, "state")
    # Whole numbers in a model, such as tables of indices, stay as they are.
    value_and_grad = fg.value_and_grad(loss_fn, has_aux=takes_state, allow_int=True)
    _expect_optimizer(optimizer)
    update = fg.optim.with_extra_args_support(optimizer).update

    def step(state: TrainState, batch: Any) -> tuple[TrainState, Any]:
        args = batch_arguments(batch)
        options: dict[str, Any] = {}
        if takes_state:
            options["state"] = state.model_state
        if takes_key:
            if state.key is None:
                raise ArgumentError(
                    "the loss function has a parameter 'key', and the state has no key",
                    where=user_line(),
                    fix="fit(..., key=fg.random.key(0)), or TrainState.create(..., key=...)",
                )
            options["key"] = fg.random.fold_in(state.key, state.step)
        loss, grads = value_and_grad(state.model, *args, **options)
        model_state = state.model_state
        if takes_state:
            loss, model_state = loss

        def value_fn(model: Any) -> Any:
            value = loss_fn(model, *args, **options)
            return value[0] if takes_state else value

        updates, opt_state = update(
            grads, state.opt_state, state.model, value=loss, grad=grads, value_fn=value_fn
        )
        model = fg.optim.apply_updates(state.model, updates)
        return TrainState(model, opt_state, model_state, state.key, state.step + 1), loss

    return step


def predict(model: Any, x: Any, state: Any = None) -> Any:
    """Use a model on inputs: nothing is dropped, and what layers remember is used, not changed.

    Parameters
    ----------
    model : callable
        A module, or another function.
    x : array_like or pytree
        Its argument.
    state : pytree, optional
        What layers remember.

    Returns
    -------
    ndarray or pytree
        What the model returns, without the state.

    Raises
    ------
    ArgumentError
        The model cannot be called: it is a tree of parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> model = fg.nn.Sequential([fg.nn.Dropout(0.5), np.square])
    >>> fg.train.predict(model, np.array([1.0, 3.0]))
    array([1., 9.])
    """
    if not callable(model):
        raise ArgumentError(
            "the model is a tree of parameters, which cannot be called",
            where=user_line(),
            fix="give predict=function, called with the parameters and the inputs",
        )
    model = fg.nn.inference_mode(model)
    return model(x) if state is None else model(x, state)[0]


def batch_arguments(batch: Any) -> tuple[Any, ...]:
    """Return what a batch is as arguments of the loss function."""
    return tuple(batch) if type(batch) in (tuple, list) else (batch,)


def has_parameter(fun: Callable[..., Any], name: str, *, required: bool = False) -> bool:
    """Tell whether a function has a parameter of this name, or one without a default."""
    try:
        parameter = inspect.signature(fun).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and (not required or parameter.default is parameter.empty)


def refuse_non_finite(loss: Any, before: TrainState, after: TrainState, batch: Any) -> None:
    """Raise and name the first leaf that is not finite, if the loss is not."""
    if np.isfinite(loss):
        return
    named = {"the batch": batch, "the model": before.model, "the new model": after.model}
    leaf = _first_non_finite(named)
    raise NonFiniteError(
        f"the loss is {loss} at step {before.step}"
        + ("" if leaf else ", of a finite model and batch"),
        where=f"{leaf} is the first that is not finite" if leaf else user_line(),
        fix="a smaller learning rate, fg.optim.clip_by_global_norm, or fg.debug.debug_nans() to "
        "find the operation",
    )


def refuse_broken(state: TrainState) -> None:
    """Raise and name the first leaf of the model that is not finite."""
    leaf = _first_non_finite({"the model": state.model})
    if leaf:
        raise NonFiniteError(
            f"the model is not finite after step {state.step}, though its losses were",
            where=f"{leaf} is the first that is not finite",
            fix="fg.debug.debug_nans() finds the operation whose gradient is not",
        )


def _first_non_finite(named: dict[str, Any]) -> str | None:
    for name, tree in named.items():
        for path, leaf in fg.tree.leaves_with_path(tree):
            if _is_float(leaf) and not np.all(np.isfinite(leaf)):
                return f"{name}{fg.tree.keystr(path)}"
    return None


def _is_float(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return isinstance(leaf, float | complex) if dtype is None else dtype.kind in "fc"


def _expect_optimizer(optimizer: Any) -> None:
    if not callable(getattr(optimizer, "init", None)) or not callable(
        getattr(optimizer, "update", None)
    ):
        raise ArgumentError(
            f"an optimizer has init and update, and {describe(optimizer)} has not",
            where=user_line(),
            fix="call the function that makes it: fg.optim.adam(1e-3)",
        )
