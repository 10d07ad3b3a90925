"""`CheckpointManager`: the last few checkpoints of a training run, and the best one.

Each is one file of `save` with its step in the name, ``step-100.npz``, and its metrics inside. The
one idea: the folder is all there is. Nothing is kept in memory between calls and there is no
further file that could contradict the others, so that a run that was killed, one that resumes and
one that only reads see the same, at any moment.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from funcgrad.errors import ArgumentError, FuncgradError, describe, user_line
from funcgrad.serialize.archive import Archive, FileFormatError
from funcgrad.serialize.files import file_name, tree_in, write_tree
from funcgrad.serialize.replacing import given_back, remove_leftovers
from funcgrad.serialize.statics import plain
from funcgrad.serialize.structure import leaf_value

__all__ = ["CheckpointManager", "CheckpointNotFoundError"]

_PREFIX, _SUFFIX = "step-", ".npz"
_TRIES = 1000  # each in vain takes a writer that saves meanwhile


class CheckpointNotFoundError(FuncgradError, FileNotFoundError):
    """There is no checkpoint, or none of that step.

    Examples
    --------
    >>> import tempfile
    >>> import funcgrad as fg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fg.CheckpointManager(folder).restore()
    Traceback (most recent call last):
        ...
    funcgrad.serialize.manager.CheckpointNotFoundError: there is no checkpoint
      where: ...
      fix:   look at manager.latest_step() before: it is None as long as there is none
    """


class CheckpointManager:
    """Checkpoints in a folder, by step: the last ones, the best one, or all of them.

    Parameters
    ----------
    directory : str or path-like
        The folder. It is made by the first `save`. Files of other names in it are left alone.
    max_to_keep : int, optional
        How many of the latest to keep; all if not given. Older ones are removed after a new one is
        complete.
    best_metric : str, optional
        The metric that decides which is the best. That one is kept besides the latest.
    mode : {"min", "max"}
        Whether the smallest or the largest value is the best. Of equal ones, the earlier is.
    keep_period : int, optional
        Keep those besides whose step is a multiple of it.
    fsync : bool, default True
        As in `save`.

    Raises
    ------
    ArgumentError
        `directory` is no path, `max_to_keep` or `keep_period` no positive integer, `best_metric` no
        name, or `mode` another word.

    See Also
    --------
    save, load : one file.

    Notes
    -----
    A process that is killed while it saves leaves the checkpoints that were there, and a temporary
    file, which the next `save` removes. Any number of processes may read while one writes.

    Names and meanings are those of Orbax's manager where both have them. Here `best_metric` and
    `mode` are its ``best_fn`` and ``best_mode``, and the latest are kept as well as the best.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> manager = CheckpointManager(folder.name, max_to_keep=2, best_metric="loss")
    >>> for step, loss in [(10, 0.5), (20, 0.1), (30, 0.3), (40, 0.2)]:
    ...     _ = manager.save(step, {"w": np.full(2, step)}, {"loss": loss})
    >>> manager.all_steps(), manager.latest_step(), manager.best_step()
    ([20, 30, 40], 40, 20)
    >>> manager.restore()
    {'w': array([40, 40])}
    >>> folder.cleanup()
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_to_keep: int | None = None,
        best_metric: str | None = None,
        mode: Literal["min", "max"] = "min",
        keep_period: int | None = None,
        fsync: bool = True,
    ) -> None:
        self.directory = os.path.abspath(file_name(directory, "CheckpointManager(directory)"))
        for name, value in [("max_to_keep", max_to_keep), ("keep_period", keep_period)]:
            if value is not None and (not _is_whole(value) or value < 1):
                raise _no_option(name, value, "a whole number from 1 up, or None")
        if best_metric is not None and not isinstance(best_metric, str):
            raise _no_option("best_metric", best_metric, 'the name of one of the metrics: "loss"')
        if mode not in ("min", "max"):
            words = '"min" if small values of best_metric are good, "max" if large ones are'
            raise _no_option("mode", mode, words)
        self._max_to_keep = max_to_keep
        self._best_metric = best_metric
        self._mode = mode
        self._keep_period = keep_period
        self._fsync = fsync
        # The value of the best metric by step, for files that have not changed since: a cache.
        self._values: dict[tuple[int, int, int], float | None] = {}

    def save(
        self,
        step: int,
        tree: Any,
        metrics: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
    ) -> str:
        """Write a checkpoint, and remove those that are not to be kept.

        Parameters
        ----------
        step : int
            Its number, from 0 up.
        tree : pytree
            What `fg.save` takes: all that the run needs to go on.
        metrics : dict, optional
            Numbers by name. One without metrics is never the best.
        force : bool, default False
            Whether to replace the checkpoint of the same step, if there is one.

        Returns
        -------
        str
            The path of the file.

        Raises
        ------
        ArgumentError
            There is a checkpoint of this step; `metrics` is no dict, is without `best_metric`, or
            has what is no number.
        OSError
            The file cannot be written. Nothing is removed then.
        """
        step = _checked_step(step)
        numbers = self._numbers(metrics)
        os.makedirs(self.directory, exist_ok=True)
        remove_leftovers(self.directory)
        path = self._path(step)
        if not force and os.path.exists(path):
            raise ArgumentError(
                f"there is a checkpoint of step {step} already",
                where=f"{path}, saved at {user_line()}",
                fix="save another step, or with force=True to replace it",
            )
        about = {"metrics": [[name, plain(value)] for name, value in numbers.items()]}
        write_tree(path, tree, about, self._fsync)
        self._remove_old(step)
        return path

    def restore(
        self,
        step: int | None = None,
        template: Any = None,
        *,
        strict: bool = True,
        fallback: bool = False,
    ) -> Any:
        """Read a checkpoint.

        Parameters
        ----------
        step : int, optional
            Its number; that of the latest if not given.
        template : pytree, optional
            As in `fg.load`.
        strict : bool, default True
            As in `fg.load`.
        fallback : bool, default False
            Whether to take the one before, with a warning, if the file is damaged.

        Returns
        -------
        pytree
            The tree.

        Raises
        ------
        CheckpointNotFoundError
            There is none, or none of that step.
        FileFormatError
            The file is damaged. The error names the step before it.
        TreeMismatchError
            It does not fit `template`.
        """
        for _ in range(_TRIES):
            steps = self.all_steps()
            wanted = _checked_step(step) if step is not None else max(steps, default=None)
            if wanted is None or wanted not in steps:
                raise self._not_found(wanted, steps)
            try:
                return self._restore(wanted, steps, template, strict, fallback)
            except FileNotFoundError:
                continue  # removed by its writer in the meantime: there is a later one
        raise self._not_found(wanted, steps)

    def _restore(
        self, step: int, steps: list[int], template: Any, strict: bool, fallback: bool
    ) -> Any:
        try:
            with Archive(self._path(step)) as archive:
                return tree_in(archive, template, strict)
        except FileFormatError as error:
            earlier = max((other for other in steps if other < step), default=None)
            if earlier is None:
                raise
            if not fallback:
                raise FileFormatError(
                    error.what,
                    where=error.where,
                    fix=f"restore(step={earlier}) gives the one before it; "
                    f"restore(fallback=True) does so by itself",
                ) from error
            warnings.warn(
                f"{error.what}: step {earlier} is restored in its place\n  where: {error.where}",
                stacklevel=3,
            )
        return self._restore(earlier, steps, template, strict, fallback)

    def all_steps(self) -> list[int]:
        """Return the steps that have a checkpoint, the earliest first.

        Returns
        -------
        list of int
            Those of complete files.
        """
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        return sorted(step for name in names if (step := _step_of(name)) is not None)

    def latest_step(self) -> int | None:
        """Return the largest step that has a checkpoint, or None.

        Returns
        -------
        int or None
            What `restore` takes.
        """
        return max(self.all_steps(), default=None)

    def best_step(self) -> int | None:
        """Return the step whose `best_metric` is the best, or None if none has one.

        Returns
        -------
        int or None
            To be given to `restore`. NaN is never the best.

        Raises
        ------
        ArgumentError
            The manager has no `best_metric`.
        """
        if self._best_metric is None:
            raise ArgumentError(
                "this manager does not know which metric is to be the best",
                where=user_line(),
                fix='CheckpointManager(directory, best_metric="loss", mode="min")',
            )
        sign = 1 if self._mode == "min" else -1
        values = [(self._value(step), step) for step in self.all_steps()]
        found = [(sign * value, step) for value, step in values if value is not None]
        return min(found)[1] if found else None

    def metrics(self, step: int) -> dict[str, float]:
        """Return what `save` was given as metrics.

        Parameters
        ----------
        step : int
            The number of a checkpoint.

        Returns
        -------
        dict
            By name; empty if there were none.

        Raises
        ------
        CheckpointNotFoundError
            There is none of that step.
        FileFormatError
            The file is damaged.
        """
        try:
            with Archive(self._path(_checked_step(step))) as archive, archive.damage_named():
                pairs = archive.about.get("metrics", [])
                return {name: float(leaf_value(value, _no_array)) for name, value in pairs}
        except FileNotFoundError:
            raise self._not_found(step, self.all_steps()) from None

    def _path(self, step: int) -> str:
        return os.path.join(self.directory, f"{_PREFIX}{step}{_SUFFIX}")

    def _value(self, step: int) -> float | None:
        """Return the best metric of a checkpoint, if it can be compared."""
        try:
            about = os.stat(self._path(step))
            key = (step, about.st_mtime_ns, about.st_ino)
            if key not in self._values:
                # A damaged file is not the best, and looking for the best is not reading it.
                self._values[key] = self.metrics(step).get(self._best_metric or "")
            value = self._values[key]
        except (FileNotFoundError, FileFormatError):
            return None
        return None if value is None or math.isnan(value) else value

    def _remove_old(self, saved: int) -> None:
        if self._max_to_keep is None:
            return
        steps = self.all_steps()
        kept = {saved, *steps[-self._max_to_keep :]}
        best = None if self._best_metric is None else self.best_step()
        if best is not None:
            kept.add(best)
        for step in steps:
            periodic = self._keep_period is not None and step % self._keep_period == 0
            if step not in kept and not periodic:
                # Somebody was faster, or reads it under Windows: then the next `save` removes it.
                old = self._path(step)
                with contextlib.suppress(FileNotFoundError, PermissionError), given_back(old):
                    os.unlink(old)

    def _numbers(self, metrics: Mapping[str, Any] | None) -> dict[str, float]:
        if metrics is not None and not isinstance(metrics, Mapping):
            raise ArgumentError(
                f"metrics are numbers by name, not {describe(metrics)}",
                where=f"argument 'metrics' of save() at {user_line()}",
                fix='write {"loss": loss}',
            )
        numbers = {}
        for name, value in (metrics or {}).items():
            if np.ndim(value) or np.asarray(value).dtype.kind not in "buif":
                raise ArgumentError(
                    f"the metric {name!r} is no number",
                    where=f"it is {describe(value)}, at {user_line()}",
                    fix="give one number a metric, such as float(np.mean(values))",
                )
            numbers[str(name)] = float(value)
        if metrics is not None and self._best_metric not in (None, *numbers):
            raise ArgumentError(
                f"metrics has no {self._best_metric!r}, by which the best is chosen",
                where=f"save() at {user_line()} was given {', '.join(numbers) or 'an empty dict'}",
                fix="add it, or leave out metrics if there are none at this step",
            )
        return numbers

    def _not_found(self, step: int | None, steps: list[int]) -> CheckpointNotFoundError:
        there = f"there are {', '.join(map(str, steps))}" if steps else "there is none"
        return CheckpointNotFoundError(
            "there is no checkpoint" if step is None else f"there is no checkpoint of step {step}",
            where=f"in {self.directory} {there}; restored at {user_line()}",
            fix="look at manager.latest_step() before: it is None as long as there is none",
        )


def _step_of(name: str) -> int | None:
    """Return the step that is in the name of a file, or None if it is none of ours."""
    number = name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    ours = name == f"{_PREFIX}{number}{_SUFFIX}" and number.isascii() and number.isdigit()
    return int(number) if ours and str(int(number)) == number else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _no_option(name: str, value: Any, fix: str) -> ArgumentError:
    return ArgumentError(
        f"CheckpointManager cannot have {name}={value!r}", where=user_line(), fix=fix
    )


def _checked_step(step: Any) -> int:
    if not _is_whole(step) or step < 0:
        raise ArgumentError(
            f"a step is a whole number from 0 up, not {describe(step)}",
            where=user_line(),
            fix="count the steps of the run",
        )
    return int(step)


def _no_array(name: str) -> Any:
    raise ValueError(f"a metric is the array {name!r}")
