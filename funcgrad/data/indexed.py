"""Stages that can give any item by its number: arrays and sequences, in any order and in batches.

The one idea: up to the first `filter` or generator, a pipeline is a function from the number of an
item to the item. So the place of a walk is one number, an order is a permutation of numbers (drawn
once an epoch), and a batch is one look-up of many rows, whatever stands between it and the arrays.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from funcgrad import random, tree
from funcgrad.data.collating import collate, rows_of
from funcgrad.data.stages import DataIterator, Place, Stage, fields_of, stopped, wrong_place
from funcgrad.errors import ArgumentError, user_line

__all__ = [
    "Arrays",
    "Batched",
    "Indexed",
    "Mapped",
    "Part",
    "Picked",
    "Repeated",
    "Samples",
    "Shuffled",
]

Rows = slice | NDArray[np.int64]


class Reader(abc.ABC):
    """The items of one epoch by their numbers."""

    __slots__ = ()

    @abc.abstractmethod
    def one(self, i: int) -> Any:
        """Return item `i`."""

    def many(self, rows: Rows, length: int) -> Any:
        """Return the batch of items that a slice or an array of numbers selects."""
        numbers = range(*rows.indices(length)) if isinstance(rows, slice) else rows.tolist()
        return collate([self.one(i) for i in numbers])


class Indexed(Stage):
    """A stage with a reader for each epoch."""

    length: int | float

    @property
    def outline(self) -> str:
        """What decides which items there are: a place belongs to data of the same outline."""
        inner: Indexed = self._inner  # type: ignore[attr-defined]
        return inner.outline

    @property
    def names_samples(self) -> bool:
        """Whether a number stands for one sample, the same in all epochs, which no other has."""
        inner = getattr(self, "_inner", None)
        return inner is None or inner.names_samples

    @abc.abstractmethod
    def reader(self, epoch: int) -> Reader:
        """Return the reader of an epoch."""

    @override
    def start(self, epoch: int, place: Place | None) -> Numbered:
        return Numbered(self, epoch, place)


class Numbered(DataIterator):
    """The walk along an indexed stage: a number that counts up."""

    def __init__(self, stage: Indexed, epoch: int, place: Place | None) -> None:
        self._stage = stage
        self._epoch = epoch
        self._length = stage.length
        self._position = 0
        self._one: Callable[[int], Any] | None = None
        if place is not None:
            self._position, outline = fields_of(place, ("position", "data"))
            if outline != stage.outline:
                raise wrong_place(f"that was {outline}; this is {stage.outline}")
            if not 0 <= self._position <= self._length:
                raise wrong_place(f"it has the position {self._position} of {self._length}")

    def __next__(self) -> Any:
        i = self._position
        if i >= self._length:
            raise StopIteration
        if self._one is None:  # now, so that a pass that is only made costs nothing
            self._one = self._stage.reader(self._epoch).one
        item = self._one(i)
        self._position = i + 1
        return item

    def __length_hint__(self) -> int:
        return 0 if self._length == math.inf else int(self._length) - self._position

    @override
    def place(self) -> dict[str, Any]:
        return {"position": self._position, "data": self._stage.outline}

    @override
    def close(self) -> None:
        self._length = self._position
        self._one = None


# Sources


class Arrays(Indexed, Reader):
    """The rows of a tree of arrays."""

    is_random = False

    def __init__(self, arrays: Any, use: str) -> None:
        leaves, self._treedef, self.length = rows_of(arrays, use)
        # The items of a file that is mapped into memory are ordinary arrays.
        leaves = [np.asarray(leaf) if isinstance(leaf, np.memmap) else leaf for leaf in leaves]
        # `take` copies, also one row, and is a little quicker than indexing.
        self._take = [leaf.take if isinstance(leaf, np.ndarray) else None for leaf in leaves]
        self._leaves = leaves

    @property
    @override
    def outline(self) -> str:
        return f"{self.length} samples"

    @override
    def reader(self, epoch: int) -> Reader:
        return self

    @override
    def one(self, i: int) -> Any:
        return tree.unflatten(
            self._treedef,
            [
                take(i, 0) if take else leaf[i]
                for take, leaf in zip(self._take, self._leaves, strict=True)
            ],
        )

    @override
    def many(self, rows: Rows, length: int) -> Any:
        if isinstance(rows, slice):  # a batch is the user's to change, and the data set is not
            parts = [leaf[rows].copy() for leaf in self._leaves]
        else:
            parts = [
                take(rows, 0) if take else leaf[rows]
                for take, leaf in zip(self._take, self._leaves, strict=True)
            ]
        return tree.unflatten(self._treedef, parts)


class Samples(Indexed, Reader):
    """The items of a sequence."""

    is_random = False

    def __init__(self, samples: Sequence[Any]) -> None:
        self.length = len(samples)
        self._samples = samples

    @property
    @override
    def outline(self) -> str:
        return f"{self.length} samples"

    @override
    def reader(self, epoch: int) -> Reader:
        return self

    @override
    def one(self, i: int) -> Any:
        return self._samples[i]


# What changes the numbers


class Ordered(Reader):
    """Another reader's items in a given order."""

    __slots__ = ("_inner", "_order")

    def __init__(self, inner: Reader, order: NDArray[np.int64]) -> None:
        self._inner = inner
        self._order = order

    @override
    def one(self, i: int) -> Any:
        return self._inner.one(int(self._order[i]))

    @override
    def many(self, rows: Rows, length: int) -> Any:
        return self._inner.many(self._order[rows], len(self._order))


class Shuffled(Indexed):
    """All items in an order that the key and the epoch decide."""

    is_random = True
    names_samples = False

    def __init__(self, inner: Indexed, key: random.Key) -> None:
        self.length = inner.length
        self._inner = inner
        self._key = key

    @property
    @override
    def outline(self) -> str:
        return f"{self._inner.outline}, shuffled"

    @override
    def reader(self, epoch: int) -> Reader:
        order = random.permutation(random.fold_in(self._key, epoch), int(self.length))
        return Ordered(self._inner.reader(epoch), order)


class Picked(Indexed):
    """The items of given numbers, in that order."""

    def __init__(self, inner: Indexed, order: NDArray[np.int64]) -> None:
        self.length = len(order)
        self.is_random = inner.is_random
        self._inner = inner
        self._order = order

    @property
    @override
    def outline(self) -> str:
        return f"{self._inner.outline}, {self.length} of them"

    @override
    def reader(self, epoch: int) -> Reader:
        return Ordered(self._inner.reader(epoch), self._order)


class Shifted(Reader):
    """Another reader's items from a number on."""

    __slots__ = ("_inner", "_start")

    def __init__(self, inner: Reader, start: int) -> None:
        self._inner = inner
        self._start = start

    @override
    def one(self, i: int) -> Any:
        return self._inner.one(i + self._start)

    @override
    def many(self, rows: Rows, length: int) -> Any:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(length)
            rows = slice(start + self._start, stop + self._start)
        else:
            rows = rows + self._start
        return self._inner.many(rows, length + self._start)


class Part(Indexed):
    """Items `start` to `stop`."""

    def __init__(self, inner: Indexed, start: int, stop: int | float) -> None:
        self._start = int(min(start, inner.length))
        self.length = max(min(stop, inner.length) - self._start, 0)
        self.is_random = inner.is_random
        self._inner = inner

    @property
    @override
    def outline(self) -> str:
        return f"{self._inner.outline}, {self.length} from {self._start} on"

    @override
    def reader(self, epoch: int) -> Reader:
        return Shifted(self._inner.reader(epoch), self._start)


class Again(Reader):
    """Epoch after epoch of a stage. The reader of the last one that was needed is kept."""

    __slots__ = ("_first", "_inner", "_kept", "_length")

    def __init__(self, inner: Indexed, first: int) -> None:
        self._inner = inner
        self._first = first
        self._length = int(inner.length)
        self._kept: tuple[int, Reader] = 0, inner.reader(first)

    def _reader(self, turn: int) -> Reader:
        kept, reader = self._kept
        if kept != turn:
            reader = self._inner.reader(self._first + turn)
            self._kept = turn, reader
        return reader

    @override
    def one(self, i: int) -> Any:
        turn, within = divmod(i, self._length)
        return self._reader(turn).one(within)

    @override
    def many(self, rows: Rows, length: int) -> Any:
        numbers = np.arange(*rows.indices(length)) if isinstance(rows, slice) else rows
        turns, within = np.divmod(numbers, self._length)
        found = np.unique(turns)
        if found.size == 1:
            return self._reader(int(found[0])).many(within, self._length)
        parts = [
            self._reader(int(turn)).many(within[turns == turn], self._length) for turn in found
        ]
        joined = tree.map(_concatenate, *parts)
        back = np.argsort(np.argsort(turns, kind="stable"), kind="stable")
        return tree.map(lambda leaf: leaf[back], joined)


def _concatenate(*parts: Any) -> Any:
    return np.concatenate(parts)


class Repeated(Indexed):
    """The stage some times over, each time as another epoch."""

    names_samples = False

    def __init__(self, inner: Indexed, times: int | None) -> None:
        self.length = math.inf if times is None else times * inner.length
        self.is_random = inner.is_random
        self._inner = inner
        self._times = times

    @property
    @override
    def outline(self) -> str:
        often = "without end" if self._times is None else f"{self._times} times"
        return f"{self._inner.outline}, {often}"

    @override
    def reader(self, epoch: int) -> Reader:
        return Again(self._inner, first_of(epoch, self._times))


def first_of(epoch: int, times: int | None) -> int:
    """Return the number of the first epoch inside of repetitions, which are an epoch together."""
    return epoch * (2**32 if times is None else times)


# What changes the items


class Changed(Reader):
    """A function of another reader's items."""

    __slots__ = ("_fun", "_inner", "_key")

    def __init__(self, inner: Reader, fun: Callable[..., Any], key: random.Key | None) -> None:
        self._inner = inner
        self._fun = fun
        self._key = key

    @override
    def one(self, i: int) -> Any:
        item = self._inner.one(i)
        try:
            if self._key is None:
                return self._fun(item)
            return self._fun(item, random.fold_in(self._key, i))
        except StopIteration as error:
            raise stopped("map", error) from error


class Mapped(Indexed):
    """A function of each item, and of a key for each if there is one."""

    def __init__(self, inner: Indexed, fun: Callable[..., Any], key: random.Key | None) -> None:
        self.length = inner.length
        self.is_random = inner.is_random or key is not None
        self._inner = inner
        self._fun = fun
        self._key = key

    @override
    def reader(self, epoch: int) -> Reader:
        key = None if self._key is None else random.fold_in(self._key, epoch)
        return Changed(self._inner.reader(epoch), self._fun, key)


class Batches(Reader):
    """Consecutive items of another reader, `size` at a time."""

    __slots__ = ("_collate", "_inner", "_length", "_size")

    def __init__(
        self,
        inner: Reader,
        length: int | float,
        size: int,
        collate: Callable[[list[Any]], Any] | None,
    ) -> None:
        self._inner = inner
        self._length = length
        self._size = size
        self._collate = collate

    @override
    def one(self, i: int) -> Any:
        start = i * self._size
        stop = int(min(start + self._size, self._length))
        if self._collate is None:
            return self._inner.many(slice(start, stop), stop)
        samples = [self._inner.one(k) for k in range(start, stop)]
        try:
            return self._collate(samples)
        except StopIteration as error:
            raise stopped("batch", error) from error


class Batched(Indexed):
    """Batches of consecutive items."""

    def __init__(
        self,
        inner: Indexed,
        size: int,
        drop_last: bool,
        collate: Callable[[list[Any]], Any] | None,
    ) -> None:
        length = inner.length
        if drop_last and length < size:
            raise ArgumentError(
                f"batch() with drop_last=True leaves nothing of {length} samples",
                where=f"size={size} of batch() at {user_line()}",
                fix=f"give a size of at most {length}, or drop_last=False",
            )
        if length == math.inf:
            self.length = length
        else:
            self.length = int(length // size if drop_last else -(-length // size))
        self.is_random = inner.is_random
        self._inner = inner
        self._size = size
        self._drop_last = drop_last
        self._collate = collate

    @property
    @override
    def outline(self) -> str:
        kind = "full batches" if self._drop_last else "batches"
        return f"{self._inner.outline}, in {kind} of {self._size}"

    @override
    def reader(self, epoch: int) -> Reader:
        inner = self._inner
        return Batches(inner.reader(epoch), inner.length, self._size, self._collate)
