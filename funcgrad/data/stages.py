"""What a pipeline is made of inside: a `Stage` describes a step, a `DataIterator` walks along it.

The one idea: a stage is an immutable value, which knows its length (`UNKNOWN` if nobody does,
``math.inf`` if it has no end) and can start a walk in any epoch and at any place. The place of a
walk is a small dict of numbers, which is all that it takes to go on from there later, and of a few
words about the data, by which a place in other data is recognised.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

from typing_extensions import override

from funcgrad import random
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = [
    "UNKNOWN",
    "DataIterator",
    "Length",
    "Place",
    "Recorded",
    "Stage",
    "check_count",
    "check_key",
    "fields_of",
    "int_of",
    "stopped",
    "wrong_place",
]

Length: TypeAlias = int | float | None
Place: TypeAlias = Mapping[str, Any]

UNKNOWN: Length = None


class DataIterator(abc.ABC):
    """One pass over a data set: an iterator that knows where it is.

    Made by `Dataset.iterate`. In a ``with`` block, or by `close`, it ends the thread that a
    prefetching pipeline has started; so does forgetting it.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad.data import Dataset
    >>> data = Dataset.from_arrays(np.arange(6)).batch(2)
    >>> batches = data.iterate()
    >>> next(batches)
    array([0, 1])
    >>> state = batches.state
    >>> list(data.iterate(state))
    [array([2, 3]), array([4, 5])]
    """

    _epoch = 0

    def __iter__(self) -> Self:
        return self

    @abc.abstractmethod
    def __next__(self) -> Any:
        """Return the next item."""

    @abc.abstractmethod
    def place(self) -> dict[str, Any]:
        """Return where this stage and those before it are, after the last item that it gave."""

    @property
    def state(self) -> dict[str, Any]:
        """Where the pass is: a small dict of ints, strings and dicts, which `fg.save` can store.

        ``data.iterate(state)`` goes on with the item after the last one that was returned.
        """
        return {"epoch": self._epoch, **self.place()}

    def close(self) -> None:
        """End the pass, and the threads that it uses. Nothing comes after that."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Stage(abc.ABC):
    """A step of a pipeline, together with all steps before it.

    Attributes
    ----------
    length : int, float or None
        How many items an epoch has; see the module.
    is_random : bool
        Whether epochs differ.
    """

    length: Length
    is_random: bool

    @abc.abstractmethod
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        """Begin to walk: at the start of an epoch, or at a place in it."""


class Recorded(DataIterator):
    """A walk whose place moves when an item is complete, and not while it is being made.

    An exception, Ctrl-C also, leaves other walks somewhere within an item. This one begins again
    after the last item that it gave.
    """

    def __init__(self, stage: Stage, epoch: int, place: Place | None) -> None:
        self._stage = stage
        self._epoch = epoch
        self._walk: DataIterator | None = stage.start(epoch, place)
        self._place = self._walk.place()
        self._closed = False

    def __next__(self) -> Any:
        if self._closed:
            raise StopIteration
        walk = self._walk
        if walk is None:
            walk = self._walk = self._stage.start(self._epoch, self._place)
        try:
            item = next(walk)
            self._place = walk.place()
        except StopIteration:
            self._place = walk.place()
            raise
        except BaseException:
            self._walk = None
            walk.close()
            raise
        return item

    @override
    def place(self) -> dict[str, Any]:
        return self._place

    @override
    def close(self) -> None:
        self._closed = True
        if self._walk is not None:
            self._walk.close()
            self._walk = None


def fields_of(place: Place, names: Iterable[str]) -> list[Any]:
    """Return the entries of a place by name, if it has these and no others."""
    wanted = set(names)
    if not isinstance(place, Mapping) or set(place) != wanted:
        found = sorted(map(str, place)) if isinstance(place, Mapping) else describe(place)
        raise wrong_place(f"it has {found} where this pipeline has {sorted(wanted)}")
    return [_field(place[name], name) for name in names]


def _field(value: Any, name: str) -> Any:
    if name == "source":
        return value
    return str(value) if name == "data" else int_of(value, name)  # arrays, if saved as such


def int_of(value: Any, name: str) -> int:
    """Return a number of a place as an int, also if it was saved as an array."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise wrong_place(f"its {name!r} is {describe(value)}") from None


def wrong_place(reason: str) -> ArgumentError:
    """Word the error about a state that does not fit the pipeline."""
    return ArgumentError(
        f"the state belongs to another pipeline: {reason}",
        where=f"argument 'state' of iterate() at {user_line()}",
        fix="build the data set as it was when the state was taken",
    )


def check_count(value: Any, name: str, use: str, least: int = 1) -> int:
    """Return `value` as an int that is not below `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ArgumentError(
            f"{use}() got {name}={value!r}",
            where=f"argument {name!r} of {use}() at {user_line()}",
            fix=f"give an int of at least {least}",
        )
    return number


def check_key(key: Any, use: str) -> random.Key:
    """Return `key` if it is a single key."""
    if isinstance(key, random.Key) and key.shape == ():
        return key
    number = type(key) is int
    raise ArgumentError(
        f"{use}() needs a key, got {describe(key)}",
        where=f"argument 'key' of {use}() at {user_line()}",
        fix=f"write fg.random.key({key if number else 'seed'})",
    )


def stopped(use: str, error: StopIteration) -> RuntimeError:
    """Make an error of a StopIteration in the user's function: it would end the pass silently."""
    made = RuntimeError(f"the function given to {use}() raised StopIteration")
    made.__cause__ = error
    return made
