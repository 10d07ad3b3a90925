"""`History`: what was measured, epoch by epoch, as a table that can be kept and drawn."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from funcgrad.errors import ArgumentError, MissingExtraError, user_line

__all__ = ["History"]


class History:
    """A table with a row for each epoch.

    Parameters
    ----------
    rows : iterable of mapping, optional
        What was measured, by name.

    Examples
    --------
    >>> history = History([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}])
    >>> history["loss"], len(history), history[-1]
    ([0.5, 0.25], 2, {'epoch': 2, 'loss': 0.25})
    """

    def __init__(self, rows: Any = ()) -> None:
        self.rows: list[dict[str, Any]] = [dict(row) for row in rows]

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row.

        Parameters
        ----------
        row : mapping
            What was measured, by name.
        """
        self.rows.append(dict(row))

    @property
    def names(self) -> list[str]:
        """What was measured in any epoch, in the order in which it first was."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __getitem__(self, index: str | int) -> Any:
        """Return a column by name, or a row by number."""
        if isinstance(index, int):
            return self.rows[index]
        if index not in self.names:
            raise ArgumentError(
                f"{index!r} was not measured",
                where=user_line(),
                fix=f"one of {', '.join(self.names) or 'nothing: there are no epochs yet'}",
            )
        return [row.get(index) for row in self.rows]

    def __len__(self) -> int:
        """Return the number of epochs."""
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return the rows, one after another."""
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Write the table."""
        if not self.rows:
            return "History of no epochs"
        cells = [self.names, *[[_shown(row.get(name)) for name in self.names] for row in self.rows]]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in cells
        )

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV.

        Parameters
        ----------
        path : path
            The file, which is replaced as a whole or not at all.
        """
        text = io.StringIO()
        writer = csv.DictWriter(text, self.names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        with _replacing(path) as partial:
            partial.write_bytes(text.getvalue().encode())

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the table as JSON, a list of objects.

        Parameters
        ----------
        path : path, optional
            The file, which is replaced as a whole or not at all.

        Returns
        -------
        str
            The text.
        """
        text = json.dumps(self.rows, indent=1)
        if path is not None:
            with _replacing(path) as partial:
                partial.write_bytes(text.encode())
        return text

    @classmethod
    def from_json(cls, text: str) -> History:
        """Read what `to_json` wrote.

        Parameters
        ----------
        text : str
            The text, not a path.

        Returns
        -------
        History
            The same table.
        """
        return cls(json.loads(text))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the learning curves: a picture for each quantity, validation beside training.

        Parameters
        ----------
        path : path, optional
            Where to save the picture; the suffix says in which format.

        Returns
        -------
        matplotlib.figure.Figure
            The picture.

        Raises
        ------
        MissingExtraError
            Matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415 - only for pictures
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "learning curves are drawn by Matplotlib, which is not installed",
                where=user_line(),
                fix='pip install "funcgrad[plot]"',
            ) from error
        measured = [name for name in self.names if name not in ("epoch", "step", "seconds")]
        kinds = list(dict.fromkeys(name.removeprefix("validation_") for name in measured))
        figure = Figure(figsize=(5 * max(len(kinds), 1), 3.6), layout="constrained")
        epochs = [row.get("epoch", i + 1) for i, row in enumerate(self.rows)]
        for kind, axes in zip(kinds, figure.subplots(1, max(len(kinds), 1), squeeze=False)[0]):  # noqa: B905 - one empty picture of nothing
            for name, label in ((kind, "training"), (f"validation_{kind}", "validation")):
                if name in measured:
                    axes.plot(epochs, self[name], ".-", label=label)
            axes.set(title=kind.replace("_", " "), xlabel="epoch")
            axes.grid(alpha=0.3)
            axes.legend(frameon=False)
        if path is not None:
            with _replacing(path) as partial:
                figure.savefig(partial, dpi=120)
        return figure


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e-3 or abs(value) >= 1e5 else f"{value:.4f}"
    return "" if value is None else str(value)


@contextlib.contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give another name to write to, which becomes `path` at the end, or is removed by an error."""
    target = Path(path)
    partial = target.with_name(f".{target.stem}.partial{target.suffix}")
    try:
        yield partial
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
