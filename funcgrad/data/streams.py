"""Stages that give one item after the other: generators, and what comes after a `filter`.

The one idea: each walk asks the one before it for items, and its place holds the place of that one
under ``"source"``. A place is always that of the last item given, so that walks from there on give
the same items; those that have read ahead (a batch, a block that is shuffled) keep the place where
they began to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from typing_extensions import override

from funcgrad import random
from funcgrad.data.collating import collate as stack
from funcgrad.data.indexed import first_of
from funcgrad.data.stages import (
    UNKNOWN,
    DataIterator,
    Place,
    Stage,
    fields_of,
    stopped,
    wrong_place,
)
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = [
    "BatchedStream",
    "Filtered",
    "Generated",
    "MappedStream",
    "PartOfStream",
    "RepeatedStream",
    "ShuffledStream",
]


class Walk(DataIterator):
    """A walk that takes its items from another one."""

    def __init__(self, source: DataIterator) -> None:
        self._source = source

    @override
    def place(self) -> dict[str, Any]:
        return {"source": self._source.place()}

    @override
    def close(self) -> None:
        self._source.close()


class StreamStage(Stage):
    """A stage after another one."""

    def __init__(self, source: Stage) -> None:
        self.length = source.length
        self.is_random = source.is_random
        self._source = source

    def _begin(self, epoch: int, place: Place | None) -> DataIterator:
        """Start the walk of the source; `place` is that of this stage."""
        return self._source.start(epoch, None if place is None else place["source"])


# Sources


class Generated(Stage):
    """The items of a new iterator for each epoch."""

    is_random = False
    length = UNKNOWN

    def __init__(self, make: Callable[[], Iterable[Any]], length: int | None) -> None:
        self.length = length
        self._make = make

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        count = 0 if place is None else fields_of(place, ("count",))[0]
        return GeneratorWalk(self._make, count)


class GeneratorWalk(DataIterator):
    """The walk along an iterator, which is called anew and wound forward to go on with it."""

    def __init__(self, make: Callable[[], Iterable[Any]], count: int) -> None:
        self._make = make
        self._count = count
        self._items: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._items is None:
            made = self._make()
            try:
                self._items = iter(made)
            except TypeError as error:
                raise ArgumentError(
                    f"the function returned {describe(made)}, which is nothing to go through",
                    where=f"Dataset.from_generator({_name(self._make)}), used at {user_line()}",
                    fix="yield the items, or return a list or an iterator of them",
                ) from error
            for position in range(self._count):
                if next(self._items, self) is self:
                    raise wrong_place(
                        f"it stands after item {self._count} of a generator that gave {position}"
                    )
        try:
            item = next(self._items)
        except StopIteration:
            if not self._count:
                raise ArgumentError(
                    "the generator gave no items: the data set is empty",
                    where=f"Dataset.from_generator({_name(self._make)}), used at {user_line()}",
                    fix="give a function that returns a new iterator each time",
                ) from None
            raise
        self._count += 1
        return item

    @override
    def place(self) -> dict[str, Any]:
        return {"count": self._count}

    @override
    def close(self) -> None:
        items, self._items = self._items, iter(())
        self._count = self._count or 1  # nothing comes, and nothing is missing
        if items is not None and hasattr(items, "close"):
            items.close()


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function))


# Item by item


class MappedStream(StreamStage):
    """A function of each item, and of a key for each if there is one."""

    def __init__(self, source: Stage, fun: Callable[..., Any], key: random.Key | None) -> None:
        super().__init__(source)
        self.is_random = source.is_random or key is not None
        self._fun = fun
        self._key = key

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        count = 0
        if place is not None:
            _, count = fields_of(place, ("source", "count"))
        key = None if self._key is None else random.fold_in(self._key, epoch)
        return MapWalk(self._begin(epoch, place), self._fun, key, count)


class MapWalk(Walk):
    def __init__(
        self, source: DataIterator, fun: Callable[..., Any], key: random.Key | None, count: int
    ) -> None:
        super().__init__(source)
        self._fun = fun
        self._key = key
        self._count = count

    def __next__(self) -> Any:
        item = next(self._source)
        count = self._count
        self._count = count + 1
        try:
            if self._key is None:
                return self._fun(item)
            return self._fun(item, random.fold_in(self._key, count))
        except StopIteration as error:
            raise stopped("map", error) from error

    @override
    def place(self) -> dict[str, Any]:
        return {"source": self._source.place(), "count": self._count}


class Filtered(StreamStage):
    """The items that a function says yes to."""

    def __init__(self, source: Stage, keep: Callable[[Any], Any]) -> None:
        super().__init__(source)
        self.length = UNKNOWN
        self._keep = keep

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        if place is not None:
            fields_of(place, ("source",))
        return FilterWalk(self._begin(epoch, place), self._keep)


class FilterWalk(Walk):
    def __init__(self, source: DataIterator, keep: Callable[[Any], Any]) -> None:
        super().__init__(source)
        self._keep = keep

    def __next__(self) -> Any:
        for item in self._source:
            try:
                if self._keep(item):
                    return item
            except StopIteration as error:
                raise stopped("filter", error) from error
        raise StopIteration


class PartOfStream(StreamStage):
    """Items `start` to `stop`; without end if `stop` is None."""

    def __init__(self, source: Stage, start: int, stop: int | None) -> None:
        super().__init__(source)
        length = source.length
        self._start, self._stop = start, stop
        if length is not None:
            self.length = max((length if stop is None else min(stop, length)) - start, 0)

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        count = 0
        if place is not None:
            _, count = fields_of(place, ("source", "count"))
        return PartWalk(self._begin(epoch, place), count, self._start, self._stop)


class PartWalk(Walk):
    def __init__(self, source: DataIterator, count: int, start: int, stop: int | None) -> None:
        super().__init__(source)
        self._count = count  # of the source's items
        self._start, self._stop = start, stop

    def __next__(self) -> Any:
        while self._stop is None or self._count < self._stop:
            item = next(self._source)
            self._count += 1
            if self._count > self._start:
                return item
        raise StopIteration

    @override
    def place(self) -> dict[str, Any]:
        return {"source": self._source.place(), "count": self._count}


# Many items


class BatchedStream(StreamStage):
    """Batches of consecutive items."""

    def __init__(
        self,
        source: Stage,
        size: int,
        drop_last: bool,
        collate: Callable[[list[Any]], Any] | None,
    ) -> None:
        super().__init__(source)
        length = source.length
        if isinstance(length, int):
            self.length = length // size if drop_last else -(-length // size)
        self._options = size, drop_last, collate or stack

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        if place is not None:
            fields_of(place, ("source",))
        return BatchWalk(self._begin(epoch, place), *self._options)


class BatchWalk(Walk):
    def __init__(
        self,
        source: DataIterator,
        size: int,
        drop_last: bool,
        collate: Callable[[list[Any]], Any],
    ) -> None:
        super().__init__(source)
        self._size = size
        self._drop_last = drop_last
        self._collate = collate

    def __next__(self) -> Any:
        items = []
        for item in self._source:
            items.append(item)
            if len(items) == self._size:
                break
        if not items or (self._drop_last and len(items) < self._size):
            raise StopIteration
        try:
            return self._collate(items)
        except StopIteration as error:
            raise stopped("batch", error) from error


class ShuffledStream(StreamStage):
    """Blocks of items, each of them in random order."""

    def __init__(self, source: Stage, key: random.Key, size: int) -> None:
        super().__init__(source)
        self.is_random = True
        self._key = key
        self._size = size

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        block, given = 0, 0
        if place is not None:
            _, block, given = fields_of(place, ("source", "block", "given"))
        key = random.fold_in(self._key, epoch)
        return ShuffleWalk(self._begin(epoch, place), key, self._size, block, given)


class ShuffleWalk(Walk):
    def __init__(
        self, source: DataIterator, key: random.Key, size: int, block: int, given: int
    ) -> None:
        super().__init__(source)
        self._key = key
        self._size = size
        self._block = block
        self._given = given  # items of this block
        self._began = source.place()  # before this block
        self._items: list[Any] | None = None

    def __next__(self) -> Any:
        while True:
            if self._items is None:
                items = list(itertools.islice(self._source, self._size))
                order = random.permutation(random.fold_in(self._key, self._block), len(items))
                self._items = [items[i] for i in order.tolist()]
            if self._given < len(self._items):
                self._given += 1
                return self._items[self._given - 1]
            if len(self._items) < self._size:
                raise StopIteration
            self._block += 1
            self._given = 0
            self._began = self._source.place()
            self._items = None

    @override
    def place(self) -> dict[str, Any]:
        return {"source": self._began, "block": self._block, "given": self._given}

    @override
    def close(self) -> None:
        super().close()
        self._items = []


class RepeatedStream(StreamStage):
    """The stage some times over, each time as another epoch."""

    def __init__(self, source: Stage, times: int | None) -> None:
        super().__init__(source)
        self._times = times
        if times is None:
            self.length = float("inf")
        elif source.length is not None:
            self.length = times * source.length

    @override
    def start(self, epoch: int, place: Place | None) -> DataIterator:
        return RepeatWalk(self._source, first_of(epoch, self._times), self._times, place)


class RepeatWalk(Walk):
    def __init__(self, stage: Stage, first: int, times: int | None, place: Place | None) -> None:
        turn = 0
        if place is not None:
            _, turn = fields_of(place, ("source", "turn"))
        self._stage = stage
        self._first = first
        self._times = times
        self._turn = turn
        # Whether this turn has given anything; it has, if that is where we were.
        self._gave = place is not None
        self._closed = False
        super().__init__(stage.start(first + turn, None if place is None else place["source"]))

    def __next__(self) -> Any:
        while not self._closed and (self._times is None or self._turn < self._times):
            for item in self._source:
                self._gave = True
                return item
            if not self._gave:
                raise ArgumentError(
                    "repeat() got an epoch without items",
                    where=f"epoch {self._first + self._turn}, used at {user_line()}",
                    fix="look at what the filters before repeat() leave",
                )
            if self._turn + 1 == self._times:
                break
            self._turn += 1
            self._gave = False
            self._source.close()
            self._source = self._stage.start(self._first + self._turn, None)
        raise StopIteration

    @override
    def place(self) -> dict[str, Any]:
        return {"source": self._source.place(), "turn": self._turn}

    @override
    def close(self) -> None:
        self._closed = True
        super().close()
