"""Padding, and batches of one long text."""

import numpy as np
import pytest

from funcgrad import errors
from funcgrad.data import Dataset, batchify, get_batch, pad_sequences

# pad_sequences


def test_padded_on_the_right():
    padded, mask = pad_sequences([[1, 2, 3], [], [4]], padding=9)
    assert padded.tolist() == [[1, 2, 3], [9, 9, 9], [4, 9, 9]]
    assert padded.dtype == np.int64
    assert mask.tolist() == [[True] * 3, [False] * 3, [True, False, False]]


def test_padded_on_the_left():
    padded, mask = pad_sequences([[1, 2], [3]], 3, side="left")
    assert padded.tolist() == [[0, 1, 2], [0, 0, 3]]
    assert mask.tolist() == [[False, True, True], [False, False, True]]


@pytest.mark.parametrize(("side", "expected"), [("right", [1, 2]), ("left", [2, 3])])
def test_cut_at_the_side_of_the_padding(side, expected):
    assert pad_sequences([[1, 2, 3]], 2, side=side, truncate=True)[0].tolist() == [expected]


def test_vectors_in_each_step():
    padded, mask = pad_sequences([np.ones((2, 3)), np.zeros((0, 3)), np.ones((1, 3))])
    assert padded.shape == (3, 2, 3)
    assert padded.sum(axis=2).tolist() == [[3.0, 3.0], [0.0, 0.0], [3.0, 0.0]]
    assert mask.sum() == 3


def test_dtypes():
    assert pad_sequences([np.ones(2, np.float32), np.ones(1, np.float32)])[0].dtype == np.float32
    assert pad_sequences([[1], [2.5]])[0].tolist() == [[1.0], [2.5]]
    assert pad_sequences([[1]], dtype=np.int8)[0].dtype == np.int8
    assert pad_sequences([[], []])[0].shape == (2, 0)


def test_as_collate_of_a_pipeline():
    data = Dataset.from_sequence([[1], [2, 3], [4, 5, 6]]).batch(2, collate=pad_sequences)
    assert [padded.tolist() for padded, _ in data] == [[[1, 0], [2, 3]], [[4, 5, 6]]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: pad_sequences([]), "no sequences"),
        (lambda: pad_sequences([[1], [1, 2]], 1), r"2 steps, more than length=1\n.*sequences\[1\]"),
        (
            lambda: pad_sequences([np.ones((2, 3)), np.ones((2, 4))]),
            r"sequences\[1\] is float64\[2,4\]",
        ),
        (lambda: pad_sequences([[1], 2]), r"sequences\[1\] is int64\[\]"),
        (lambda: pad_sequences([[1]], side="top"), "side='top'"),
    ],
)
def test_sequences_that_do_not_fit(wrong, message):
    with pytest.raises(errors.FuncgradError, match=message):
        wrong()


# batchify and get_batch


def test_streams_are_columns():
    streams = batchify(list("abcdefghijklmnopqrstuvwxyz"), 4)
    assert ["".join(stream) for stream in streams.T] == ["abcdef", "ghijkl", "mnopqr", "stuvwx"]


def test_windows_cover_all_but_the_first_token_once():
    streams = batchify(np.arange(23), 2)
    inputs, targets = zip(
        *(get_batch(streams, i, 4) for i in range(0, len(streams) - 1, 4)), strict=True
    )
    assert [len(window) for window in inputs] == [4, 4, 2]
    assert np.array_equal(np.concatenate(inputs), streams[:-1])
    assert np.array_equal(np.concatenate(targets), streams[1:])


def test_windows_are_copies():
    streams = batchify(np.arange(10), 2)
    for window in get_batch(streams, 0, 2):
        window += 100
    assert streams.max() == 9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: batchify([1, 2], 3), "3 streams of 2 tokens"),
        (lambda: batchify(np.zeros((2, 2)), 1), "one long sequence"),
        (lambda: batchify([1, 2], 0), "batch_size=0"),
        (lambda: get_batch(np.zeros((5, 2)), 4, 2), r"start=4, of 5 steps(.|\n)*range\(0, 4, 2\)"),
        (lambda: get_batch(np.zeros((1, 2)), 0, 2), "start=0, of 1 steps"),
        (lambda: get_batch(np.zeros(5), 0, 2), "two axes"),
        (lambda: get_batch(np.zeros((5, 2)), 0, 0), "length=0"),
    ],
)
def test_arguments_that_make_no_sense(wrong, message):
    with pytest.raises(errors.FuncgradError, match=message):
        wrong()
