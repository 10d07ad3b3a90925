"""`take` and `take_along_axis`: modes, repetitions, errors. The samples run in test_laws.py."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import ArgumentError, TracerConversionError

X = np.array([1.0, 2.0, 3.0, 4.0])
M = np.arange(12.0).reshape(3, 4)


def test_take_out_of_range_by_mode():
    def f(x, mode):
        return np.sum(np.take(x, [-5, 5, -1], mode=mode) * [1, 10, 100])

    assert_array_equal(fg.grad(f)(X, "wrap"), [0, 10, 0, 101])
    assert_array_equal(fg.grad(f)(X, "clip"), [101, 0, 0, 10])
    with pytest.raises(IndexError, match="out of bounds"):
        fg.grad(f)(X, "raise")


def test_take_of_a_list_by_indices_that_differ_between_examples():
    taken = fg.vmap(lambda i: fnp.take([10.0, 20.0, 30.0], i))(np.array([2, 0]))
    assert_array_equal(taken, [30.0, 10.0])


def test_take_as_a_method_and_with_out():
    def f(x):
        y = np.zeros_like(x, shape=(2,))
        np.take(x, [1, 1], out=y)
        return np.sum(y * x.take([0, 3]))

    # x1 (x0 + x3)
    assert_array_equal(fg.grad(f)(X), [2, 5, 0, 2])


def test_take_along_axis_with_repeated_indices():
    index = np.array([[0, 0], [3, 1], [2, 2]])
    gradient = fg.grad(lambda x: np.sum(np.take_along_axis(x, index, axis=1)))(M)
    assert_array_equal(gradient, [[2, 0, 0, 0], [0, 1, 0, 1], [0, 0, 2, 0]])


def test_take_along_axis_raises_as_numpy_does():
    for args in ((np.zeros((3, 1)), 1), (np.zeros(3, int), 1), (np.zeros((1, 1), int), None)):
        with pytest.raises((IndexError, ValueError)) as want:
            np.take_along_axis(M, *args)
        with pytest.raises(want.type, match=re.escape(str(want.value))):
            fg.grad(lambda x, args=args: np.sum(np.take_along_axis(x, *args)))(M)


def test_unknown_keywords_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword"):
        fg.grad(lambda x: np.sum(np.take(x, 0, axs=1)))(X)


def test_an_axis_that_is_traced_is_refused():
    with pytest.raises(ArgumentError, match="'axis' of take cannot be a traced value"):
        fg.grad(lambda x: np.sum(np.take(x, [0], axis=x[0])))(X)
    with pytest.raises(TracerConversionError, match="cannot be an index, a length or an axis"):
        fg.grad(lambda x: np.sum(np.take(X, [0], axis=x[0])) * x[0])(X)
