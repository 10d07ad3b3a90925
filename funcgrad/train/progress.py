"""What is shown while a training runs: a bar by tqdm if it is installed, else a line an epoch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["Progress"]


class Progress:
    """Shows steps and measurements of one training; silent if not `shown`."""

    def __init__(self, *, shown: bool, epochs: int, first_epoch: int) -> None:
        self._shown = shown
        self._epochs = epochs
        self._bar: Any = None
        if not shown:
            return
        try:
            from tqdm import tqdm  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            return
        self._bar = tqdm(total=epochs, initial=first_epoch, unit="epoch", dynamic_ncols=True)

    def step(self, number: int, loss: float) -> None:
        """Show that a step was taken; not every one, which would cost more than small steps."""
        if self._bar is not None and number % 16 == 0:
            self._bar.set_postfix_str(f"step {number}, loss {loss:.4g}", refresh=False)
            self._bar.update(0)

    def epoch(self, row: Mapping[str, Any]) -> None:
        """Show what was measured in an epoch."""
        if not self._shown:
            return
        shown = ", ".join(
            f"{name.replace('validation_', 'val ')} {value:.4g}"
            for name, value in row.items()
            if isinstance(value, float) and name != "seconds"
        )
        if self._bar is not None:
            self._bar.set_postfix_str(shown)
            self._bar.update(1)
        else:
            sys.stderr.write(f"epoch {row['epoch']}/{self._epochs}: {shown}\n")

    def close(self) -> None:
        """Leave the last line as it is."""
        if self._bar is not None:
            self._bar.close()
