"""`Dataset`: samples, and what is to be done to them, as a value that can be passed over any time.

The one idea: a data set is a description, and passing over it changes nothing in it. Which order
and which random changes an epoch has follows from the keys given and from the number of the epoch,
so that ``data.iterate(epoch=3)`` gives the same items whenever and wherever it is called, and a
pass can be resumed in its middle from a handful of ints.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from funcgrad import random
from funcgrad.data.indexed import (
    Arrays,
    Batched,
    Indexed,
    Mapped,
    Part,
    Repeated,
    Samples,
    Shuffled,
)
from funcgrad.data.prefetching import Prefetched
from funcgrad.data.stages import (
    DataIterator,
    Recorded,
    Stage,
    check_count,
    check_key,
    int_of,
    wrong_place,
)
from funcgrad.data.streams import (
    BatchedStream,
    Filtered,
    Generated,
    MappedStream,
    PartOfStream,
    RepeatedStream,
    ShuffledStream,
)
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.random import KeyReuseWarning

__all__ = ["Dataset"]


class Dataset:
    """Samples, and the steps that make batches of them.

    Made by `from_arrays`, `from_sequence` or `from_generator`; every method returns another data
    set and leaves this one alone. ``for item in data`` passes over the epoch of number 0,
    `iterate` over any.

    Notes
    -----
    Up to the first `filter` or generator, items have numbers: ``data[i]`` works, `shuffle` puts
    all of them in order, and a batch of arrays is one look-up an array, whatever lies between.
    After it, items come one by one.

    A sample is any pytree. A batch is the same pytree of arrays with one axis more, in front.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad import random
    >>> arrays = {"x": np.arange(10.0), "y": np.arange(10) % 2}
    >>> data = Dataset.from_arrays(arrays).shuffle(random.key(0)).batch(4)
    >>> len(data)
    3
    >>> for epoch in range(2):
    ...     for batch in data.iterate(epoch=epoch):
    ...         pass  # one training step
    """

    __slots__ = ("__weakref__", "_passed", "_stage")

    _passed: str  # where it was passed over first
    _stage: Stage

    def __init__(self, *_: Any) -> None:
        raise ArgumentError(
            f"{type(self).__name__} has no constructor",
            where=user_line(),
            fix="write Dataset.from_arrays(arrays), .from_sequence(samples) or "
            ".from_generator(function)",
        )

    # Sources

    @staticmethod
    def from_arrays(arrays: Any) -> Dataset:
        """Make a data set of the rows of arrays.

        Parameters
        ----------
        arrays : pytree of ndarray, shapes (n, ...)
            All of one length `n`. They are not copied; items and batches are copies.

        Returns
        -------
        Dataset
            Of `n` samples: the same tree, of row `i` of each array.

        Raises
        ------
        ShapeError
            The arrays have different lengths: those that do are named by their paths.
        ArgumentError
            A leaf is no array, or there are no samples.

        Examples
        --------
        >>> import numpy as np
        >>> data = Dataset.from_arrays((np.zeros((3, 2)), np.array([5, 6, 7])))
        >>> data[1]
        (array([0., 0.]), np.int64(6))
        """
        return _made(Arrays(arrays, "Dataset.from_arrays"))

    @staticmethod
    def from_sequence(samples: Sequence[Any]) -> Dataset:
        """Make a data set of whatever has a length and items by number.

        Parameters
        ----------
        samples : sequence of pytree
            A list, say of names of files; or any class with ``__len__`` and ``__getitem__``.

        Returns
        -------
        Dataset
            Of ``len(samples)`` samples.

        Raises
        ------
        ArgumentError
            It is no sequence, or empty.

        Examples
        --------
        >>> data = Dataset.from_sequence(["one", "three"]).map(len)
        >>> list(data)
        [3, 5]
        """
        if isinstance(samples, Mapping) or not (
            hasattr(samples, "__len__") and hasattr(samples, "__getitem__")
        ):
            raise ArgumentError(
                f"Dataset.from_sequence needs a sequence, got {describe(samples)}",
                where=user_line(),
                fix="write Dataset.from_arrays(...) for a tree of arrays, or "
                "Dataset.from_generator(function) for a function that makes an iterator",
            )
        if not len(samples):
            raise ArgumentError(
                "Dataset.from_sequence got no samples: the data set is empty",
                where=user_line(),
                fix="look at what read or selected the data",
            )
        return _made(Samples(samples))

    @staticmethod
    def from_generator(make: Callable[[], Iterable[Any]], length: int | None = None) -> Dataset:
        """Make a data set of what a function yields.

        Parameters
        ----------
        make : callable
            Called without arguments at the start of each epoch; returns an iterable. To resume a
            pass, it is called and what has been used already is passed over, so that it must give
            the same items each time.
        length : int, optional
            How many items that are, for ``len``; it is not checked.

        Returns
        -------
        Dataset
            Without items by number.

        Raises
        ------
        ArgumentError
            `make` is no function: a generator itself could be used once only. While iterating:
            it gave no items.

        Examples
        --------
        >>> def squares():
        ...     for i in range(4):
        ...         yield i**2
        >>> list(Dataset.from_generator(squares).batch(3))
        [array([0, 1, 4]), array([9])]
        """
        if not callable(make):
            raise ArgumentError(
                f"Dataset.from_generator needs a function, got {describe(make)}",
                where=user_line(),
                fix="give the function that makes the iterator, not what it returned",
            )
        if length is not None:
            check_count(length, "length", "from_generator", least=0)
        return _made(Generated(make, length))

    # Steps

    def map(self, fun: Callable[..., Any], key: random.Key | None = None) -> Dataset:
        """Apply a function to each item.

        Parameters
        ----------
        fun : callable
            Called as ``fun(item)``, and with a `key` as ``fun(item, key)``. After `batch` an item
            is a whole batch, for which one call of NumPy costs little more than for one sample.
        key : Key, optional
            Of which each item gets a key of its own in each epoch; it is not used up.

        Returns
        -------
        Dataset
            Of as many items.

        Examples
        --------
        >>> import numpy as np
        >>> from funcgrad import random
        >>> def jitter(x, key):
        ...     return x + 0.1 * random.normal(key, x.shape)
        >>> data = Dataset.from_arrays(np.zeros((6, 2))).batch(3).map(jitter, key=random.key(0))
        >>> next(data.iterate()).shape
        (3, 2)
        """
        if key is not None:
            check_key(key, "map")
        if not callable(fun):
            raise ArgumentError(
                f"map() needs a function, got {describe(fun)}",
                where=user_line(),
                fix="write data.map(fun)",
            )
        stage = self._stage
        if isinstance(stage, Indexed):
            return _made(Mapped(stage, fun, key))
        return _made(MappedStream(stage, fun, key))

    def filter(self, keep: Callable[[Any], Any]) -> Dataset:
        """Leave out items.

        Parameters
        ----------
        keep : callable
            Called with each item; those stay for which it returns something true.

        Returns
        -------
        Dataset
            Of unknown length, and without items by number: shuffle before.

        Examples
        --------
        >>> import numpy as np
        >>> list(Dataset.from_arrays(np.arange(5)).filter(lambda i: i % 2))
        [np.int64(1), np.int64(3)]
        """
        if not callable(keep):
            raise ArgumentError(
                f"filter() needs a function, got {describe(keep)}",
                where=user_line(),
                fix="write data.filter(keep)",
            )
        return _made(Filtered(self._stage, keep))

    def shuffle(self, key: random.Key, buffer: int | None = None) -> Dataset:
        """Put the items in random order, another one in each epoch.

        Parameters
        ----------
        key : Key
            Decides, with the number of the epoch, the order; it is not used up.
        buffer : int, optional
            For items that come one by one: how many to read at a time. Each block of that many is
            put in order by itself. Items that have numbers are all put in order, and need none.

        Returns
        -------
        Dataset
            Of as many items, each of them once.

        Raises
        ------
        ArgumentError
            `key` is no key, the data set is endless, or `buffer` is missing.

        Examples
        --------
        >>> import numpy as np
        >>> from funcgrad import random
        >>> data = Dataset.from_arrays(np.arange(5)).shuffle(random.key(0))
        >>> sorted(data.iterate(epoch=7)) == [0, 1, 2, 3, 4]
        True
        """
        check_key(key, "shuffle")
        if buffer is not None:
            check_count(buffer, "buffer", "shuffle")
        stage = self._stage
        if isinstance(stage, Indexed):
            if stage.length != math.inf:
                return _made(Shuffled(stage, key))
            if buffer is None:
                raise ArgumentError(
                    "shuffle() cannot put in order what has no end",
                    where=user_line(),
                    fix="shuffle first: data.shuffle(key).repeat()",
                )
        if buffer is None:
            raise ArgumentError(
                "shuffle() needs the size of a buffer for items that come one by one",
                where=f"argument 'buffer' of shuffle() at {user_line()}",
                fix="shuffle before filter(), or write shuffle(key, buffer=10_000)",
            )
        return _made(ShuffledStream(stage, key, buffer))

    def batch(
        self,
        size: int,
        drop_last: bool = False,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> Dataset:
        """Join items into batches.

        Parameters
        ----------
        size : int
            How many items a batch has.
        drop_last : bool, default False
            Whether to leave out the last batch if it is smaller.
        collate : callable, optional
            Makes a batch of a list of items; `fg.data.collate` if not given.

        Returns
        -------
        Dataset
            Of batches.

        Raises
        ------
        ArgumentError
            `size` is not positive, or `drop_last` leaves nothing.
        ShapeError
            While iterating: items of a batch have different shapes.

        Examples
        --------
        >>> import numpy as np
        >>> data = Dataset.from_arrays(np.arange(5))
        >>> list(data.batch(2))
        [array([0, 1]), array([2, 3]), array([4])]
        >>> len(data.batch(2, drop_last=True))
        2
        """
        size = check_count(size, "size", "batch")
        stage = self._stage
        if isinstance(stage, Indexed):
            return _made(Batched(stage, size, drop_last, collate))
        return _made(BatchedStream(stage, size, drop_last, collate))

    def repeat(self, times: int | None = None) -> Dataset:
        """Go through the data set several times, as one epoch.

        Parameters
        ----------
        times : int, optional
            How often; without end if not given. Each time is an epoch of its own for what is
            shuffled or random before this step.

        Returns
        -------
        Dataset
            After `batch`, each time ends in a smaller batch; before it, batches go across.

        Raises
        ------
        ArgumentError
            `times` is not positive. While iterating: an epoch has no items.

        Examples
        --------
        >>> import numpy as np
        >>> list(Dataset.from_arrays(np.arange(3)).repeat(2).batch(4))
        [array([0, 1, 2, 0]), array([1, 2])]
        """
        if times is not None:
            times = check_count(times, "times", "repeat")
        stage = self._stage
        if stage.length == math.inf:
            return self
        if isinstance(stage, Indexed):
            if not stage.length:
                raise ArgumentError(
                    "repeat() got an epoch without items",
                    where=user_line(),
                    fix="look at what take() or skip() leave before it",
                )
            return _made(Repeated(stage, times))
        return _made(RepeatedStream(stage, times))

    def take(self, count: int) -> Dataset:
        """Keep the first items of each epoch.

        Parameters
        ----------
        count : int
            How many; fewer if there are fewer.

        Returns
        -------
        Dataset
            After `shuffle`, others in each epoch.

        Examples
        --------
        >>> import numpy as np
        >>> list(Dataset.from_arrays(np.arange(5)).batch(2).take(1))
        [array([0, 1])]
        """
        count = check_count(count, "count", "take", least=0)
        stage = self._stage
        if isinstance(stage, Indexed):
            return _made(Part(stage, 0, count))
        return _made(PartOfStream(stage, 0, count))

    def skip(self, count: int) -> Dataset:
        """Leave out the first items of each epoch.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        Dataset
            Of what follows.

        Examples
        --------
        >>> import numpy as np
        >>> list(Dataset.from_arrays(np.arange(5)).skip(3))
        [np.int64(3), np.int64(4)]
        """
        count = check_count(count, "count", "skip", least=0)
        stage = self._stage
        if isinstance(stage, Indexed):
            return _made(Part(stage, count, math.inf))
        return _made(PartOfStream(stage, count, None))

    def prefetch(self, count: int) -> Dataset:
        """Make items ahead in a thread, while the last one is being used.

        Parameters
        ----------
        count : int
            How many finished items may wait; 0 for no thread.

        Returns
        -------
        Dataset
            Of the same items.

        Notes
        -----
        The thread starts when the first item is asked for, and ends with the pass: at its end, by
        `close`, or when the iterator is no longer used. An exception in it comes out where the item
        was asked for, with its traceback. Threads share one Python, so that it pays for steps that
        wait for files or spend their time inside of NumPy.

        Examples
        --------
        >>> import numpy as np
        >>> data = Dataset.from_arrays(np.arange(4)).map(lambda i: i * i).prefetch(2)
        >>> [int(i) for i in data]
        [0, 1, 4, 9]
        """
        count = check_count(count, "count", "prefetch", least=0)
        return _made(Prefetched(self._stage, count)) if count else self

    # Passes

    def iterate(self, state: Mapping[str, Any] | None = None, *, epoch: int = 0) -> DataIterator:
        """Pass over the items of an epoch, from its start or from where another pass was.

        Parameters
        ----------
        state : dict, optional
            The `state` of an iterator over a data set built in the same way, also one that
            `fg.load` has read. The items that follow are bit for bit those that followed then.
        epoch : int, default 0
            The number of the epoch, if there is no `state`, which knows it.

        Returns
        -------
        DataIterator
            An iterator with a `state`.

        Raises
        ------
        ArgumentError
            The state is of another pipeline, or of data of another length.

        Examples
        --------
        >>> import numpy as np
        >>> from funcgrad import random
        >>> data = Dataset.from_arrays(np.arange(100)).shuffle(random.key(0)).batch(10).prefetch(2)
        >>> with data.iterate(epoch=3) as batches:
        ...     first = [next(batches) for _ in range(4)]
        ...     state = batches.state
        >>> len(list(data.iterate(state)))
        6
        """
        place: dict[str, Any] | None = None
        if state is None:
            epoch = check_count(epoch, "epoch", "iterate", least=0)
        else:
            if not isinstance(state, Mapping) or "epoch" not in state:
                raise wrong_place(f"it is {describe(state)}")
            place = dict(state)
            epoch = int_of(place.pop("epoch"), "epoch")
        if isinstance(self._stage, Indexed):
            return self._stage.start(epoch, place)
        return Recorded(self._stage, epoch, place)

    def __iter__(self) -> DataIterator:
        if self._stage.is_random and self._passed:
            warnings.warn(
                "a data set was passed over twice in the same random order\n"
                f"  where: first at {self._passed}, then at {user_line()}\n"
                "  fix:   for epoch in range(n): for item in data.iterate(epoch=epoch)",
                KeyReuseWarning,
                stacklevel=2,
            )
        self._passed = self._passed or user_line()
        return self.iterate()

    def __len__(self) -> int:
        length = self._stage.length
        if isinstance(length, int):
            return length
        endless = length == math.inf
        raise ArgumentError(
            f"the data set has no {'end' if endless else 'known length'}",
            where=f"len(data) at {user_line()}",
            fix="take(count) of it has a length"
            if endless
            else "count while iterating; filter() and generators do not know it before",
        )

    def __bool__(self) -> bool:
        return bool(self._stage.length != 0)

    def __getitem__(self, index: int) -> Any:
        stage = self._stage
        if not isinstance(stage, Indexed):
            raise ArgumentError(
                "the items of this data set have no numbers: they come one by one",
                where=f"data[{index!r}] at {user_line()}",
                fix="next(data.iterate()), or index before filter() or prefetch()",
            )
        try:
            number = operator.index(index)
        except TypeError as error:
            raise ArgumentError(
                f"the number of an item is an int, not {describe(index)}",
                where=f"data[{index!r}] at {user_line()}",
                fix="several are data.skip(start).take(count)",
            ) from error
        position = number + stage.length if number < 0 else number
        if not 0 <= position < stage.length:
            raise IndexError(f"data[{number}] of {stage.length} items")
        return stage.reader(0).one(int(position))

    def __repr__(self) -> str:
        length = self._stage.length
        count = {None: "of unknown length", math.inf: "without end"}.get(length)
        return f"<{type(self).__name__} {count or f'of {length} items'}>"


def _made(stage: Stage) -> Dataset:
    made = object.__new__(Dataset)
    made._stage = stage
    made._passed = ""
    return made


def stage_of(data: Any, use: str) -> Stage:
    """Return the stage of a data set, or of the data set of a tree of arrays."""
    return data._stage if isinstance(data, Dataset) else Arrays(data, use)
