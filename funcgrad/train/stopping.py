"""When to stop: after epochs without progress, or when the user says so."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any, Self

import funcgrad as fg
from funcgrad.errors import ArgumentError, user_line

__all__ = ["EarlyStopping", "Interruption"]


class EarlyStopping(fg.nn.Module):
    """Ends a training when a measurement has not become better for some epochs.

    Parameters
    ----------
    monitor : str
        The name of the measurement in the history.
    patience : int
        After how many epochs without progress to stop.
    min_delta : float
        By how much it must become better.
    mode : {"min", "max"}
        Whether smaller or larger is better.
    restore_best : bool
        Whether `fit` returns the model of the best epoch rather than of the last.

    Raises
    ------
    ArgumentError
        There is no such mode, or `patience` is not positive.

    Examples
    --------
    >>> import funcgrad as fg
    >>> fg.train.EarlyStopping("validation_accuracy", patience=3, mode="max").patience
    3
    """

    monitor: str = fg.static(default="validation_loss")
    patience: int = fg.static(default=5)
    min_delta: float = fg.static(default=0.0)
    mode: str = fg.static(default="min")
    restore_best: bool = fg.static(default=True)

    def __init__(
        self,
        monitor: str = "validation_loss",
        patience: int = 5,
        min_delta: float = 0.0,
        mode: str = "min",
        restore_best: bool = True,
    ) -> None:
        if mode not in ("min", "max") or patience < 1:
            raise ArgumentError(
                f"EarlyStopping cannot have mode={mode!r} and patience={patience}",
                where=user_line(),
                fix='mode "min" or "max", patience 1 or more',
            )
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self.mode, self.restore_best = mode, restore_best

    def measured(self, row: Mapping[str, Any]) -> float:
        """Return what is monitored, such that smaller is better.

        Parameters
        ----------
        row : mapping
            What was measured in an epoch.

        Returns
        -------
        float
            The number, negative for mode "max".

        Raises
        ------
        ArgumentError
            It was not measured.
        """
        if self.monitor not in row:
            raise ArgumentError(
                f"EarlyStopping monitors {self.monitor!r}, which is not measured",
                where=user_line(),
                fix=f"one of {', '.join(row)}; validation needs validation=",
            )
        value = float(row[self.monitor])
        return value if self.mode == "min" else -value


class Interruption:
    """Lets Ctrl-C end a training between two steps; a second one ends it at once.

    Used as a context manager. Only the main thread is told of signals: in others Ctrl-C is what it
    always is.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
