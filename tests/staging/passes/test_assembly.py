"""Cotangents of slices are put beside each other."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg

X = np.arange(1.0, 25.0).reshape(4, 6)


def text_of(fun):
    return fg.jit(fg.grad(fun)).lower(X).as_text()


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(np.sin(x[:, :2])) + np.sum(np.cos(x[:, 2:])),
        lambda x: (
            np.sum(np.sin(x[..., 4:])) + np.sum(np.cos(x[..., :2])) + np.sum(x[..., 2:4] ** 2)
        ),
        lambda x: np.sum(np.sin(x[0]) * np.cos(x[1]) + x[2] * x[3]),
        lambda x: np.sum(np.sin(x[:, 0]) * np.cos(x[:, 4])),
        lambda x: np.sum(np.sin(x[-1]) * np.exp(x[1:2])),
    ],
    ids=["halves", "thirds", "rows", "some columns", "some rows"],
)
def test_slices_that_share_nothing_are_concatenated(fun):
    text = text_of(fun)
    assert "concatenate" in text
    assert "scatter_add" not in text
    assert_array_equal(fg.jit(fg.grad(fun))(X), fg.grad(fun)(X))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(np.sin(x[:, :3])) + np.sum(np.cos(x[:, 2:])),
        lambda x: np.sum(np.sin(x[:2, :3])) + np.sum(np.cos(x[2:, 3:])),
        lambda x: np.sum(np.sin(x[:, ::2])) + np.sum(np.cos(x[:, 1::2])),
        lambda x: np.sum(np.sin(x[[0, 1]])) + np.sum(np.cos(x[2:])),
    ],
    ids=["overlap", "two axes", "steps", "list"],
)
def test_others_are_added_up(fun):
    assert "concatenate" not in text_of(fun)
    assert_array_equal(fg.jit(fg.grad(fun))(X), fg.grad(fun)(X))
