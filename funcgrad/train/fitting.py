"""`fit`: a training loop for people who do not want to write it.

It calls public functions only: `make_step` for each batch, the metrics on what `predict` returns,
`CheckpointManager` for what is kept. What it saves is all that the rest of the training depends on,
so that a run which is killed and started again ends as one that was never stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.train.evaluating import evaluate, is_arrays, size_of
from funcgrad.train.history import History
from funcgrad.train.progress import Progress
from funcgrad.train.steps import (
    TrainState,
    batch_arguments,
    make_step,
    refuse_broken,
    refuse_non_finite,
)
from funcgrad.train.stopping import EarlyStopping, Interruption

__all__ = ["FitResult", "fit"]


class FitResult:
    """What a training ended with.

    Parameters
    ----------
    state : TrainState
        After the last step; with the best model if `EarlyStopping` restores it.
    history : History
        What was measured.
    stopped : {"epochs", "early", "callback", "interrupted"}
        Why it ended.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> state = fg.train.TrainState.create(np.ones(2), fg.optim.sgd(0.1))
    >>> FitResult(state, fg.train.History(), "epochs").model
    array([1., 1.])
    """

    def __init__(self, state: TrainState, history: History, stopped: str) -> None:
        self.state = state
        self.history = history
        self.stopped = stopped

    @property
    def model(self) -> Any:
        """The model."""
        return self.state.model

    @property
    def model_state(self) -> Any:
        """What its layers remember."""
        return self.state.model_state

    def __repr__(self) -> str:
        """Write how it ended, and the table."""
        return f"FitResult after {self.state.step} steps, stopped: {self.stopped}\n{self.history!r}"


def fit(
    model: Any,
    loss_fn: Callable[..., Any],
    optimizer: Any,
    data: Any,
    *,
    epochs: int,
    key: fg.random.Key | None = None,
    model_state: Any = None,
    batch_size: int = 32,
    validation: Any = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    predict: Callable[..., Any] | None = None,
    early_stopping: EarlyStopping | None = None,
    checkpoints: fg.CheckpointManager | None = None,
    save_every: int | None = None,
    callbacks: Sequence[Callable[[TrainState, dict[str, Any]], Any]] = (),
    progress: bool = True,
    jit: bool = False,
) -> FitResult:
    """Train a model.

    Parameters
    ----------
    model : pytree
        The parameters: a module, or any other tree.
    loss_fn : callable
        Called as ``loss_fn(model, *batch)``; returns the loss. If it has a parameter `key`, it is
        given one in training, and None in validation. If it has a parameter `state`, it is given
        the `model_state`, and returns ``(loss, new state)``.
    optimizer : GradientTransformation
        Of `fg.optim`.
    data : Dataset, callable, iterable of batches, or tuple of arrays
        A `fg.data.Dataset` of batches goes on where it was when a training is resumed. A function
        is called with the number of the epoch and returns batches. Arrays are shuffled by `key`
        and taken in batches of `batch_size`.
    epochs : int
        How often to go through the data, those before a resume included.
    key : Key, optional
        For shuffling arrays, and for `loss_fn`.
    model_state : pytree, optional
        What layers remember.
    batch_size : int
        For arrays.
    validation : Dataset, iterable of batches, or tuple of arrays, optional
        What to measure the model on after each epoch.
    metrics : dict of callables, optional
        Measured on `validation`: see `evaluate`.
    predict : callable, optional
        See `evaluate`.
    early_stopping : EarlyStopping, optional
        When to stop before `epochs`.
    checkpoints : CheckpointManager, optional
        Where to keep the training. If it has a checkpoint already, the training goes on from
        there.
    save_every : int, optional
        How many steps lie between checkpoints; by default one is saved after each epoch.
    callbacks : sequence of callable
        Called after each epoch with the state and what was measured; a true result ends the
        training.
    progress : bool
        Whether to show how it goes: a bar if tqdm is installed.
    jit : bool
        Whether to compile a whole step, and what is done for validation, by `fg.jit`: the same
        numbers but for rounding, sooner. `loss_fn` and `predict` have to be pure, and cannot ask
        for values of arrays (``if loss > 1``).

    Returns
    -------
    FitResult
        The model, the state, and the history. Ctrl-C ends a training after the step that is being
        taken, saves, and returns as well: `stopped` is "interrupted".

    Raises
    ------
    NonFiniteError
        The loss is not finite; the step and the first leaf are named. The last checkpoint stays.
    ArgumentError
        There are no batches, what is monitored is not measured, or an argument is not what it
        should be: found before the first step wherever it can be.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def loss_fn(w, x, y):
    ...     return np.mean((x @ w - y) ** 2)
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = x @ np.array([1.0, 2.0, 3.0])
    >>> result = fg.train.fit(
    ...     np.zeros(3), loss_fn, fg.optim.adam(0.1), (x, y),
    ...     epochs=20, key=fg.random.key(0), progress=False,
    ... )
    >>> result.model.round(2)
    array([1., 2., 3.])
    """
    _check(data, epochs, validation, metrics, early_stopping, checkpoints, save_every, callbacks)
    data_key = None
    if key is not None:
        key, data_key = fg.random.split(key)
    step: Any = make_step(loss_fn, optimizer)
    if jit:
        step, loss_fn = fg.jit(step), fg.jit(loss_fn)
        predict = fg.jit(fg.train.predict if predict is None else predict)
    run = _Run(
        TrainState.create(model, optimizer, model_state=model_state, key=key),
        step,
        _source(data, data_key, batch_size),
        checkpoints,
    )
    run.resume()
    shown = Progress(shown=progress, epochs=epochs, first_epoch=run.epoch)
    stopped = "epochs"
    try:
        with Interruption() as interruption:
            while run.epoch < epochs:
                began = time.perf_counter()
                if not run.through_epoch(interruption, save_every, shown):
                    stopped = "interrupted"
                    break
                row: dict[str, Any] = {
                    "epoch": run.epoch,
                    "step": run.state.step,
                    "loss": run.mean_loss(),
                }
                if validation is not None:
                    measured = evaluate(
                        run.state.model,
                        validation,
                        loss_fn,
                        metrics,
                        model_state=run.state.model_state,
                        predict=predict,
                        batch_size=max(batch_size, 256),
                    )
                    row |= {f"validation_{name}": value for name, value in measured.items()}
                row["seconds"] = time.perf_counter() - began
                run.history.append(row)
                ended = early_stopping is not None and run.without_progress(early_stopping, row)
                if save_every is None:
                    run.save()
                shown.epoch(row)
                if ended:
                    stopped = "early"
                    break
                answers = [callback(run.state, row) for callback in callbacks]
                if any(answers):
                    stopped = "callback"
                    break
                if interruption.asked:
                    stopped = "interrupted"
                    break
            run.save()
    finally:
        shown.close()
    state = run.state
    if early_stopping is not None and early_stopping.restore_best and run.best is not None:
        best_model, best_state = run.best
        state = state.replace(model=best_model, model_state=best_state)
    return FitResult(state, run.history, stopped)


class _Run:
    """A training in progress: the state, where in the data it is, and what was measured."""

    def __init__(self, state: TrainState, step: Any, source: Any, checkpoints: Any) -> None:
        self.state = state
        self.history = History()
        self.epoch = 0  # how many are complete
        self.best: tuple[Any, Any] | None = None
        self._best_value = float("inf")
        self._since_best = 0
        self._step = step
        self._source = source
        self._checkpoints = checkpoints
        self._place: Any = None  # in the data, within an epoch
        self._sum = 0.0
        self._count = 0
        self._saved_at = -1

    def through_epoch(self, interruption: Any, save_every: int | None, shown: Progress) -> bool:
        """Take all steps of an epoch; False if the user wants to stop in its middle."""
        if self._place is None:
            self._sum, self._count = 0.0, 0
        batches = self._source(self.epoch, self._place)
        for batch in batches:
            before = self.state
            after, loss = self._step(before, batch)
            refuse_non_finite(loss, before, after, batch)
            size = size_of(batch_arguments(batch))
            self.state = after
            self._sum += float(loss) * size
            self._count += size
            self._place = getattr(batches, "state", None)
            shown.step(after.step, float(loss))
            if save_every is not None and after.step % save_every == 0:
                self.save()
            if interruption.asked:
                return False
        if not self._count:
            raise ArgumentError(
                "there are no batches to train on",
                where=user_line(),
                fix="look at what read or selected the data; an iterator is used up after one "
                "epoch: give a Dataset, or a function of the epoch",
            )
        self.epoch += 1
        self._place = None
        return True

    def mean_loss(self) -> float:
        """Return the mean of the losses of the epoch, over examples."""
        return self._sum / self._count

    def without_progress(self, rule: EarlyStopping, row: dict[str, Any]) -> bool:
        """Note whether this epoch is the best; tell whether to stop."""
        value = rule.measured(row)
        if value < self._best_value - rule.min_delta:
            self._best_value, self._since_best = value, 0
            self.best = self.state.model, self.state.model_state
        else:
            self._since_best += 1
        return self._since_best >= rule.patience

    def save(self) -> None:
        """Keep all that the rest depends on, once for each step; nothing that is broken."""
        refuse_broken(self.state)
        if self._checkpoints is None or self._saved_at == self.state.step:
            return
        measured = self.history[-1] if len(self.history) and self._place is None else None
        self._checkpoints.save(self.state.step, self._kept(), metrics=measured)
        self._saved_at = self.state.step

    def resume(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        if self._checkpoints is None or self._checkpoints.latest_step() is None:
            return
        kept = self._checkpoints.restore(template=self._kept())
        self.state = kept["state"]
        if kept["has_best"]:
            self.best = tuple(kept["best"])
        rest = json.loads(kept["rest"])
        self.history = History(rest["history"])
        self.epoch, self._place = rest["epoch"], rest["place"]
        self._sum, self._count = rest["sum"], rest["count"]
        self._best_value = float("inf") if rest["best"] is None else rest["best"]
        self._since_best = rest["since_best"]
        self._saved_at = self.state.step

    def _kept(self) -> dict[str, Any]:
        rest = {
            "history": self.history.rows,
            "epoch": self.epoch,
            "place": self._place,
            "sum": self._sum,
            "count": self._count,
            "best": None if self.best is None else self._best_value,
            "since_best": self._since_best,
        }
        best = self.best or (self.state.model, self.state.model_state)
        return {
            "state": self.state,
            "best": best,
            "has_best": self.best is not None,
            "rest": json.dumps(rest),
        }


def _source(data: Any, key: fg.random.Key | None, batch_size: int) -> Any:
    """Return a function of the epoch, and of a place in it, that gives batches."""
    if is_arrays(data):
        samples = fg.data.Dataset.from_arrays(data)
        data = (samples if key is None else samples.shuffle(key)).batch(batch_size)
    if isinstance(data, fg.data.Dataset):
        dataset: Any = data
        return lambda epoch, place: (
            dataset.iterate(epoch=epoch) if place is None else dataset.iterate(place)
        )

    def batches(epoch: int, place: Any) -> Iterable[Any]:
        made: Any = data(epoch) if callable(data) else data
        if not isinstance(made, Iterable):
            raise ArgumentError(
                f"data is nothing to go through: {describe(made)}",
                where=user_line(),
                fix="a fg.data.Dataset, a tuple of arrays, or a function of the epoch that "
                "returns batches",
            )
        return made

    return batches


def _check(
    data: Any,
    epochs: Any,
    validation: Any,
    metrics: Any,
    early_stopping: Any,
    checkpoints: Any,
    save_every: Any,
    callbacks: Any,
) -> None:
    """Raise for arguments of `fit` that would fail, or be passed over, in its middle."""

    def refuse(name: str, value: Any, fix: str) -> None:
        raise ArgumentError(
            f"fit() cannot have {name}={describe(value)}",
            where=f"argument {name!r} at {user_line()}",
            fix=fix,
        )

    if not isinstance(epochs, int | np.integer) or epochs < 0:
        refuse("epochs", epochs, "an integer, 0 or more")
    if isinstance(data, Iterator) and epochs > 1:
        refuse(
            "data",
            data,
            "an iterator is used up after one epoch: give a list, a Dataset, or "
            "a function of the epoch",
        )
    if save_every is not None and (not isinstance(save_every, int) or save_every < 1):
        refuse("save_every", save_every, "a number of steps, 1 or more")
    if metrics is not None and not isinstance(metrics, Mapping):
        refuse("metrics", metrics, 'a dict by name: {"accuracy": fg.train.accuracy}')
    if metrics and validation is None:
        refuse("metrics", metrics, "they are measured on validation=, which is not given")
    if checkpoints is not None and not hasattr(checkpoints, "latest_step"):
        refuse("checkpoints", checkpoints, "fg.CheckpointManager(folder)")
    if not isinstance(callbacks, Iterable) or not all(map(callable, callbacks)):
        refuse("callbacks", callbacks, "a list of functions: [function]")
    if early_stopping is None:
        return
    if not isinstance(early_stopping, EarlyStopping):
        refuse("early_stopping", early_stopping, "fg.train.EarlyStopping(patience=5)")
    measured = dict.fromkeys(("epoch", "step", "loss", "seconds"), 0.0)
    if validation is not None:
        measured |= {f"validation_{name}": 0.0 for name in ("loss", *(metrics or ()))}
    early_stopping.measured(measured)
