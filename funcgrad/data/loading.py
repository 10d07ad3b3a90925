"""Short ways to batches: `DataLoader`, `batch_iterator` and `random_split`.

The one idea: they are what a few steps of a `Dataset` do, under the names that people look for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from funcgrad import random, tree
from funcgrad.data.collating import rows_of
from funcgrad.data.dataset import Dataset, _made, stage_of
from funcgrad.data.indexed import Indexed, Picked
from funcgrad.data.stages import DataIterator, check_count, check_key
from funcgrad.errors import ArgumentError, describe, user_line

__all__ = ["DataLoader", "batch_iterator", "random_split"]


class DataLoader(Dataset):
    """Batches of a data set: shuffled, batched and prefetched in one call.

    Parameters
    ----------
    data : Dataset or pytree of ndarray, shapes (n, ...)
        The samples.
    batch_size : int, default 1
        How many samples a batch has.
    key : Key, optional
        Shuffles the samples, in another order in each epoch; without it they come in order.
    drop_last : bool, default False
        Whether to leave out the last batch if it is smaller.
    collate : callable, optional
        Makes a batch of a list of samples; `fg.data.collate` if not given.
    prefetch : int, default 0
        How many batches a thread makes ahead; 0 for no thread.

    Raises
    ------
    ArgumentError, ShapeError
        As from the methods of `Dataset`: sizes that differ, no samples, a key that is none.

    Notes
    -----
    The same as ``data.shuffle(key).batch(batch_size, drop_last, collate).prefetch(prefetch)``, and
    a `Dataset`. As such it is a value: ``for batch in loader`` always passes over the epoch of
    number 0, and warns when it is used twice for shuffled data. Name the epoch to have another
    order in each.

    Examples
    --------
    >>> import numpy as np
    >>> from funcgrad import random
    >>> loader = DataLoader({"x": np.zeros((10, 3))}, batch_size=4, key=random.key(0))
    >>> for epoch in range(2):
    ...     print([batch["x"].shape for batch in loader.iterate(epoch=epoch)])
    [(4, 3), (4, 3), (2, 3)]
    [(4, 3), (4, 3), (2, 3)]
    """

    __slots__ = ()

    def __init__(
        self,
        data: Any,
        batch_size: int = 1,
        *,
        key: random.Key | None = None,
        drop_last: bool = False,
        collate: Callable[[list[Any]], Any] | None = None,
        prefetch: int = 0,
    ) -> None:
        made = _made(stage_of(data, "DataLoader"))
        if key is not None:
            made = made.shuffle(key)
        made = made.batch(batch_size, drop_last, collate).prefetch(prefetch)
        self._stage = made._stage
        self._passed = ""


def batch_iterator(
    key: random.Key | None, arrays: Any, size: int, drop_last: bool = False
) -> DataIterator:
    """Iterate over batches of arrays: one epoch, each sample once.

    Parameters
    ----------
    key : Key or None
        Shuffles the samples, and is used up; None for their own order.
    arrays : pytree of ndarray, shapes (n, ...)
        All of one length.
    size : int
        How many samples a batch has.
    drop_last : bool, default False
        Whether to leave out the last batch if it is smaller.

    Returns
    -------
    DataIterator
        Of trees as `arrays`, of shapes ``(size, ...)``. To resume a pass, make a `Dataset`.

    Raises
    ------
    ShapeError
        The arrays have different lengths: those that do are named by their paths.
    ArgumentError
        There are no samples, or `drop_last` leaves nothing of them.

    Examples
    --------
    >>> from funcgrad import random
    >>> x, y = np.arange(5.0), np.arange(5)
    >>> [len(batch_y) for batch_x, batch_y in batch_iterator(random.key(0), (x, y), 2)]
    [2, 2, 1]
    """
    data = _made(stage_of(arrays, "batch_iterator"))
    if key is not None:
        check_key(key, "batch_iterator")
        (own,) = random.split(key, 1)
        data = data.shuffle(own)
    return data.batch(size, drop_last).iterate()


def random_split(key: random.Key, data: Any, lengths: Sequence[float]) -> tuple[Any, ...]:
    """Split samples at random into parts, such as one to train on and one to test with.

    Parameters
    ----------
    key : Key
        Decides which sample goes where; it is used up.
    data : Dataset or pytree of ndarray, shapes (n, ...)
        The samples.
    lengths : sequence of int or of float
        How many samples each part has, `n` together; or which fractions, 1 together, of which
        what is left by rounding down goes to the first parts.

    Returns
    -------
    tuple
        For each length a `Dataset`, or a tree of arrays, as `data` is. Each sample is in one.

    Raises
    ------
    ArgumentError
        The lengths do not add up, or the data set has no items by number, or is shuffled.
    ShapeError
        The arrays have different lengths.

    Examples
    --------
    >>> from funcgrad import random
    >>> train, test = random_split(random.key(0), np.arange(10), [0.8, 0.2])
    >>> len(train), sorted([*train, *test]) == list(range(10))
    (8, True)
    """
    check_key(key, "random_split")
    if isinstance(data, Dataset):
        stage = data._stage
        # A part of what is shuffled in each epoch would have other samples in each.
        if not isinstance(stage, Indexed) or not stage.names_samples:
            raise ArgumentError(
                "random_split() needs items with numbers, which stay the same in all epochs",
                where=f"argument 'data' of random_split() is {data!r}, at {user_line()}",
                fix="split before shuffle(), filter(), prefetch() and repeat()",
            )
        parts = _parts(key, lengths, int(stage.length))
        return tuple([_made(Picked(stage, part)) for part in parts])
    leaves, treedef, count = rows_of(data, "random_split")
    parts = _parts(key, lengths, count)
    return tuple([tree.unflatten(treedef, [leaf[part] for leaf in leaves]) for part in parts])


def _parts(key: random.Key, lengths: Sequence[float], count: int) -> list[NDArray[np.int64]]:
    """Return the numbers of the samples of each part."""
    sizes = _sizes(lengths, count)
    return np.split(random.permutation(key, count), np.cumsum(sizes)[:-1])


def _sizes(lengths: Sequence[float], count: int) -> list[int]:
    values = list(lengths)
    if values and all(hasattr(value, "__index__") for value in values):
        sizes = [check_count(value, "lengths", "random_split", least=0) for value in values]
        if sum(sizes) == count:
            return sizes
        total = f"{sum(sizes)} together, of {count} samples"
    else:
        try:
            shares = [float(value) for value in values]
        except (TypeError, ValueError):
            shares = []
        if shares and min(shares) >= 0.0 and abs(sum(shares) - 1.0) < 1e-9:
            # The tolerance: 0.7 + 0.1 of ten are eight.
            sizes = [math.floor(share * count + 1e-9) for share in shares]
            left = count - sum(sizes)
            filled = [i for i, share in enumerate(shares) if share]
            for k in range(left):
                sizes[filled[k % len(filled)]] += 1
            return sizes
        total = f"{sum(shares)} together" if shares else describe(lengths)
    raise ArgumentError(
        f"random_split() got lengths that do not add up: {values}",
        where=f"argument 'lengths' of random_split(), {total}, at {user_line()}",
        fix=f"give ints that sum to {count}, or fractions that sum to 1",
    )
