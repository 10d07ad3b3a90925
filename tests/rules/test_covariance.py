"""Covariance and correlation, against jax 0.10.2 and by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

M = np.array([[1.0, 2.0, 4.0, 3.0], [0.5, -1.0, 2.0, 2.5]])


def test_gradient_of_covariances():
    gradient = fg.grad(lambda m: np.cov(m)[0, 1] + 2 * np.cov(m)[1, 1])(M)
    expected = [
        [-0.16666666666666669, -0.6666666666666666, 0.3333333333333333, 0.5],
        [-1.1666666666666667, -2.833333333333333, 1.8333333333333333, 2.1666666666666665],
    ]
    assert_allclose(gradient, expected, rtol=1e-14)


def test_gradient_in_weights():
    weights = np.array([0.5, 1.0, 2.0, 1.5])
    gradient = fg.grad(lambda w: np.cov(M, aweights=w)[0, 1])(weights)
    expected = [0.11020408163265305, 0.3551020408163266, -0.012244897959183654, -0.2571428571428571]
    assert_allclose(gradient, expected, rtol=1e-13)


def test_gradient_of_a_correlation():
    gradient = fg.grad(lambda m: np.corrcoef(m)[0, 1])(M)
    expected = [
        [0.11430952132988166, -0.2612789058968723, -0.03265986323710908, 0.17962924780409972],
        [-0.20140248996217244, 0.09253627917180887, 0.1578560056460271, -0.0489897948556635],
    ]
    assert_allclose(gradient, expected, rtol=1e-12)


def test_a_variable_with_itself_keeps_its_correlation():
    assert_allclose(fg.grad(lambda m: np.corrcoef(m)[0, 0])(M), np.zeros((2, 4)), atol=1e-15)


def test_covariance_of_equal_memory_is_symmetric_to_the_bit():
    x = np.random.default_rng(0).normal(size=(7, 50))
    value, _ = fg.vjp(np.cov, x)
    assert_array_equal(value, np.cov(x))
    assert_array_equal(value, value.T)


def test_no_degrees_of_freedom_warn_as_in_numpy():
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        fg.grad(lambda m: np.sum(np.cov(m)))(M[:, :1])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"ddof": 1.5}, ValueError, "ddof must be integer"),
        ({"fweights": [0.5, 1, 1, 1]}, TypeError, "fweights must be integer"),
        ({"aweights": [1.0, 1.0]}, RuntimeError, "incompatible numbers"),
        ({"aweights": [-1.0, 1.0, 1.0, 1.0]}, ValueError, "cannot be negative"),
        ({"fweights": np.ones((2, 4))}, RuntimeError, "multidimensional"),
    ],
)
def test_numpys_errors(options, error, words):
    with pytest.raises(error, match=words):
        np.cov(M, **options)
    with pytest.raises(error, match=words):
        fg.jvp(lambda m: np.cov(m, **options), (M,), (M,))
