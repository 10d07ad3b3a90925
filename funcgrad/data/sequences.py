"""Sequences for recurrent networks: padded to one length, or one long text cut into streams.

The one idea, of the latter: a text is cut into as many streams as a batch has rows, and these are
read in parallel, a window at a time, so that a hidden state goes on from window to window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from funcgrad.data.stages import check_count
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line

__all__ = ["batchify", "get_batch", "pad_sequences"]


def pad_sequences(
    sequences: Sequence[ArrayLike],
    length: int | None = None,
    *,
    padding: Any = 0,
    side: str = "right",
    truncate: bool = False,
    dtype: DTypeLike | None = None,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Bring sequences to one length.

    Parameters
    ----------
    sequences : sequence of array_like, shapes (t_i, ...)
        At least one; lengths may be 0, and all other axes agree.
    length : int, optional
        The length to have; that of the longest if not given.
    padding : number, default 0
        What is put where a sequence has nothing; the integer of ``"<pad>"`` in a vocabulary.
    side : {"right", "left"}, default "right"
        Where to put it.
    truncate : bool, default False
        Whether sequences that are longer than `length` are cut, at that side, or an error.
    dtype : dtype_like, optional
        Of the result; that which all sequences fit in if not given.

    Returns
    -------
    padded : ndarray, shape (n, length, ...)
        The sequences.
    mask : ndarray of bool, shape (n, length)
        True where there is a sequence, False where there is padding.

    Raises
    ------
    ArgumentError
        There are no sequences, or one is longer than `length`: it is named.
    ShapeError
        Sequences differ in another axis than the first one.

    Examples
    --------
    >>> padded, mask = pad_sequences([[5, 6, 7], [8]])
    >>> padded
    array([[5, 6, 7],
           [8, 0, 0]])
    >>> mask.sum(axis=1)
    array([3, 1])
    """
    arrays = [np.asarray(sequence) for sequence in sequences]
    if not arrays:
        raise ArgumentError(
            "pad_sequences() got no sequences", where=user_line(), fix="give at least one"
        )
    if side not in ("right", "left"):
        raise ArgumentError(
            f"pad_sequences() got side={side!r}", where=user_line(), fix="'right' or 'left'"
        )
    filled = [array for array in arrays if array.size or array.ndim > 1] or arrays
    inner = filled[0].shape[1:]
    for i, array in enumerate(arrays):
        if array.ndim == 0 or (array.shape[1:] != inner and array.shape != (0,)):
            raise ShapeError(
                "pad_sequences() needs sequences that differ in their first axis alone",
                where=f"sequences[{i}] is {describe(array)}, where others are "
                f"[t{''.join(f',{n}' for n in inner)}], at {user_line()}",
                fix="give one array a sequence, of steps along the first axis",
            )
    if length is None:
        length = max(map(len, arrays))
    else:
        length = check_count(length, "length", "pad_sequences", least=0)
    kind = np.result_type(*filled) if dtype is None else np.dtype(dtype)
    padded = np.full((len(arrays), length, *inner), padding, kind)
    mask = np.zeros((len(arrays), length), np.bool_)
    for i, array in enumerate(arrays):
        if len(array) > length and not truncate:
            raise ArgumentError(
                f"a sequence has {len(array)} steps, more than length={length}",
                where=f"sequences[{i}] of pad_sequences() at {user_line()}",
                fix="give a larger length, or truncate=True",
            )
        count = min(len(array), length)
        if not count:
            continue
        if side == "right":
            padded[i, :count], mask[i, :count] = array[:count], True
        else:
            padded[i, -count:], mask[i, -count:] = array[-count:], True
    return padded, mask


def batchify(tokens: ArrayLike, batch_size: int) -> NDArray[Any]:
    """Cut one long sequence into streams that are read in parallel.

    Parameters
    ----------
    tokens : array_like, shape (n,)
        The integers of a text, as from `Vocabulary.encode`.
    batch_size : int
        How many streams.

    Returns
    -------
    ndarray, shape (n // batch_size, batch_size)
        Stream `b` is column `b`; what is left over at the end is left out.

    Raises
    ------
    ShapeError
        `tokens` is no vector.
    ArgumentError
        There are fewer tokens than streams.

    Examples
    --------
    >>> batchify(np.arange(11), 2)
    array([[0, 5],
           [1, 6],
           [2, 7],
           [3, 8],
           [4, 9]])
    """
    values = np.asarray(tokens)
    batch_size = check_count(batch_size, "batch_size", "batchify")
    if values.ndim != 1:
        raise ShapeError(
            "batchify() needs one long sequence",
            where=f"argument 'tokens' of batchify() is {describe(values)}, at {user_line()}",
            fix="join texts by np.concatenate",
        )
    steps = len(values) // batch_size
    if not steps:
        raise ArgumentError(
            f"batchify() cannot make {batch_size} streams of {len(values)} tokens",
            where=f"argument 'tokens' of batchify() at {user_line()}",
            fix="give more tokens, or a smaller batch_size",
        )
    return values[: steps * batch_size].reshape(batch_size, steps).T.copy()


def get_batch(streams: NDArray[Any], start: int, length: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a window of streams, and the tokens that follow each of its tokens.

    Parameters
    ----------
    streams : ndarray, shape (steps, batch)
        What `batchify` made.
    start : int
        The first step, from 0 to below ``steps - 1``: for one pass
        ``range(0, len(streams) - 1, length)``.
    length : int
        How many steps; fewer at the end, as the last token has none that follows.

    Returns
    -------
    inputs : ndarray, shape (length, batch)
        Steps `start` to ``start + length``.
    targets : ndarray, shape (length, batch)
        One step later; ``targets.ravel()`` for a loss over all of them.

    Raises
    ------
    ArgumentError
        `start` is out of range.
    ShapeError
        `streams` has not two axes.

    Examples
    --------
    >>> streams = batchify(np.arange(10), 2)
    >>> inputs, targets = get_batch(streams, 0, 2)
    >>> inputs.T, targets.T
    (array([[0, 1],
           [5, 6]]), array([[1, 2],
           [6, 7]]))
    """
    if np.ndim(streams) != 2:
        raise ShapeError(
            "get_batch() needs streams with two axes, steps and batch",
            where=f"argument 'streams' of get_batch() is {describe(streams)}, at {user_line()}",
            fix="write batchify(tokens, batch_size)",
        )
    start = check_count(start, "start", "get_batch", least=0)
    length = check_count(length, "length", "get_batch")
    last = len(streams) - 1
    if start >= last:
        raise ArgumentError(
            f"get_batch() got start={start}, of {len(streams)} steps",
            where=f"argument 'start' of get_batch() at {user_line()}",
            fix=f"loop over range(0, {max(last, 0)}, {length})",
        )
    stop = min(start + length, last)
    return streams[start:stop].copy(), streams[start + 1 : stop + 1].copy()
