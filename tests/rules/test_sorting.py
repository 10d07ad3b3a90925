"""Sorting: ties, and what follows its element. The samples run in test_laws.py."""

import numpy as np
from numpy.testing import assert_array_equal

import funcgrad as fg


def test_sort_gives_equal_elements_their_places_in_order():
    x = np.array([2.0, 1.0, 2.0, 1.0])
    gradient = fg.grad(lambda x: np.sum(np.sort(x) * [1.0, 10.0, 100.0, 1000.0]))(x)
    assert_array_equal(gradient, [100, 1, 1000, 10])
