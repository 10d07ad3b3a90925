"""`evaluate`: a model measured on data, once for the loss and once for each metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.train.steps import batch_arguments, has_parameter
from funcgrad.train.steps import predict as predict_with

__all__ = ["evaluate", "is_arrays", "size_of"]


def evaluate(
    model: Any,
    data: Any,
    loss_fn: Callable[..., Any] | None = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    *,
    model_state: Any = None,
    predict: Callable[..., Any] | None = None,
    batch_size: int = 256,
) -> dict[str, float]:
    """Measure a model on data.

    Parameters
    ----------
    model : pytree
        A model; modules are put into inference mode.
    data : Dataset, iterable of batches, or tuple of arrays
        Arrays are taken in batches of `batch_size`.
    loss_fn : callable, optional
        As in `fit`; the `key` is None. Its mean is over examples.
    metrics : dict of callables, optional
        Each is called once, with predictions of all inputs (the first of a batch) and all targets
        (the second).
    model_state : pytree, optional
        What layers remember.
    predict : callable, optional
        Called as ``predict(model, x)``, or ``predict(model, x, state)`` if there is a state;
        `fg.train.predict` by default.
    batch_size : int
        For arrays.

    Returns
    -------
    dict of float
        "loss", if there is a loss function, and one for each metric.

    Raises
    ------
    ArgumentError
        There are no batches; or metrics, and batches without targets.
    ShapeError
        The loss, or a metric, is not one number.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> x, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 0])
    >>> fg.train.evaluate(lambda x: x, (x, y), metrics={"accuracy": fg.train.accuracy})
    {'accuracy': 0.5}
    """
    used = fg.nn.inference_mode(model)
    call = predict_with if predict is None else predict
    losses: list[Any] = []
    sizes, outputs, targets = [], [], []
    takes_state = loss_fn is not None and has_parameter(loss_fn, "state")
    needs_key = loss_fn is not None and has_parameter(loss_fn, "key", required=True)
    for batch in _batches(data, batch_size):
        args = batch_arguments(batch)
        sizes.append(size_of(args))
        if loss_fn is not None:
            options: dict[str, Any] = {"key": None} if needs_key else {}
            if takes_state:
                options["state"] = model_state
            loss = loss_fn(used, *args, **options)
            losses.append(_one_number(loss[0] if takes_state else loss))
        if metrics:
            if len(args) < 2:
                raise ArgumentError(
                    "metrics compare predictions with targets, and a batch has no targets",
                    where=f"{user_line()}: a batch is {describe(batch)}",
                    fix="give batches (inputs, targets), or a loss function alone",
                )
            found = call(used, args[0]) if model_state is None else call(used, args[0], model_state)
            outputs.append(np.asarray(found))
            targets.append(np.asarray(args[1]))
    if not sizes:
        raise ArgumentError(
            "there are no batches to measure the model on",
            where=user_line(),
            fix="look at what read or selected the data; an iterator is used up after one epoch",
        )
    measured: dict[str, float] = {}
    if losses:
        measured["loss"] = float(np.average(losses, weights=sizes))
    if metrics:
        found, true = np.concatenate(outputs), np.concatenate(targets)
        measured |= {
            name: float(_one_number(metric(found, true), name)) for name, metric in metrics.items()
        }
    return measured


def _batches(data: Any, batch_size: int) -> Any:
    if is_arrays(data):
        return iter(fg.data.Dataset.from_arrays(data).batch(batch_size))
    return iter(data() if callable(data) and not isinstance(data, fg.data.Dataset) else data)


def is_arrays(data: Any) -> bool:
    """Tell whether data are arrays, not batches of them."""
    return isinstance(data, np.ndarray) or (
        type(data) in (tuple, dict)
        and bool(data)
        and all(isinstance(leaf, np.ndarray) for leaf in fg.tree.leaves(data))
    )


def _one_number(value: Any, metric: str | None = None) -> Any:
    if np.shape(value) == ():
        return value
    name = "the loss" if metric is None else f"metric {metric!r}"
    raise ShapeError(
        f"{name} is not one number: {describe(value)}",
        where=user_line(),
        fix='reduction="mean"' if metric is None else "call it on fg.train.predict(model, x)",
    )


def size_of(args: tuple[Any, ...]) -> int:
    """Return how many examples a batch has: the length of its first array."""
    for leaf in fg.tree.leaves(args):
        shape = np.shape(leaf)
        if shape:
            return int(shape[0])
    return 1
