"""Casts: what is plain, what comes back, and what is refused."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import DtypeError

X = np.arange(6.0).reshape(2, 3)


def test_cast_to_integers_or_booleans_is_plain():
    kinds = []

    def f(x):
        kinds.append(type(x.astype(int)))
        kinds.append(type(x.astype(bool)))
        kinds.append(type(x[0, 0].astype(np.int8)))
        return np.sum(x)

    for run in (
        fg.grad(f),
        fg.grad(lambda x: fg.grad(f)(x)[0, 0]),
        lambda x: fg.jvp(f, (x,), (x,)),
    ):
        run(X)
    assert set(kinds) == {np.ndarray, np.int8}


def test_cast_to_narrow_floats_brings_the_cotangent_back():
    gradient = fg.grad(lambda x: np.sum(x.astype(np.float32) ** 2))(X)
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, 2 * X)


def test_cast_between_real_and_complex():
    gradient = fg.grad(lambda x: np.sum(np.imag(x.astype(complex) * (2 + 3j))))(X)
    np.testing.assert_array_equal(gradient, np.full((2, 3), 3.0))


def test_cast_to_real_discards_the_imaginary_part_with_numpys_warning():
    with pytest.warns(np.exceptions.ComplexWarning):
        gradient = fg.grad(lambda z: np.sum(z.astype(float) ** 2))(np.array([1 + 2j]))
    np.testing.assert_array_equal(gradient, [2 + 0j])


def test_cast_copies_unless_told_not_to():
    def f(x):
        assert x.astype(float, copy=False) is x
        y = x.astype(float)
        y[0] = 0.0  # not a view of the argument
        return np.sum(y)

    np.testing.assert_array_equal(fg.grad(f)(X), [[0, 0, 0], [1, 1, 1]])


def test_cast_that_a_rule_forbids_raises():
    with pytest.raises(TypeError, match="according to the rule 'safe'"):
        fg.grad(lambda x: np.sum(x.astype(np.float32, casting="safe")))(X)


def test_cast_to_objects_is_refused():
    with pytest.raises(DtypeError, match="array of objects"):
        fg.grad(lambda x: x.astype(object)[0, 0])(X)
