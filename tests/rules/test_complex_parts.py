"""What the laws cannot know of the parts of numbers: kinks, types, plain results."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import MutationError

X = np.arange(6.0).reshape(2, 3)


def test_real_of_a_real_value_is_that_value():
    def f(x):
        assert np.real(x) is x
        assert x.real is x
        assert type(np.imag(x)) is np.ndarray
        return np.sum(x)

    fg.grad(f)(X)


def test_gradient_of_real_and_imaginary_part():
    z = np.array([1 + 2j])
    np.testing.assert_array_equal(fg.grad(lambda z: np.real(z)[0])(z), [1])
    np.testing.assert_array_equal(fg.grad(lambda z: np.imag(z)[0])(z), [-1j])


def test_angle_of_complex_numbers():
    # angle = atan2(y, x): d/dx = -y / r**2, d/dy = x / r**2; the gradient is d/dx - i d/dy.
    gradient = fg.grad(lambda z: np.angle(z))(3 + 4j)
    np.testing.assert_allclose(gradient, (-4 - 3j) / 25, rtol=1e-15)
    np.testing.assert_allclose(
        fg.grad(lambda z: np.angle(z, deg=True))(1j), -180 / np.pi + 0j, atol=1e-14
    )


def test_angle_of_a_real_number_is_flat():
    assert fg.grad(lambda x: np.angle(x))(-2.0) == 0.0


def test_nan_to_num_is_flat_where_it_replaces():
    x = np.array([np.nan, 1.0, np.inf, -np.inf])
    gradient = fg.grad(lambda x: np.sum(np.nan_to_num(x) / 2))(x)
    np.testing.assert_array_equal(gradient, [0, 0.5, 0, 0])


def test_nan_to_num_looks_at_the_parts_of_complex_numbers():
    z = np.array([complex(np.nan, 1.0), complex(2.0, np.inf), 1 + 1j])
    gradient = fg.grad(lambda z: np.sum(np.real(np.nan_to_num(z) * (1 - 1j))))(z)
    # Of x + y: the gradient is 1 - i where both parts count.
    np.testing.assert_array_equal(gradient, [-1j, 1, 1 - 1j])


def test_nan_to_num_in_place():
    def f(x):
        y = x * 1.0
        np.nan_to_num(y, copy=False, nan=3.0)
        return np.sum(y * y)

    np.testing.assert_array_equal(fg.grad(f)(np.array([np.nan, 2.0])), [0.0, 4.0])
    with pytest.raises(MutationError, match="argument"):
        fg.grad(lambda x: np.sum(np.nan_to_num(x, copy=False)))(X)


def test_modf_and_frexp_return_plain_whole_parts():
    kinds = []

    def f(x):
        fraction, whole = np.modf(x)
        mantissa, exponent = np.frexp(x)
        quotient, rest = np.divmod(x, 2.0)
        kinds.extend([type(whole), type(exponent), type(quotient)])
        return np.sum(fraction + mantissa + rest)

    gradient = fg.grad(f)(np.array([1.25, -12.0]))
    assert kinds == [np.ndarray] * 3
    # 1.25 = 0.625 * 2**1 and -12 = -0.75 * 2**4.
    np.testing.assert_array_equal(gradient, [2 + 1 / 2, 2 + 1 / 16])


def test_ldexp_multiplies_by_a_power_of_two():
    assert fg.grad(lambda x: np.ldexp(x, 3))(1.5) == 8.0


def test_modf_of_integers_under_vmap_gives_floats():
    part, whole = fg.vmap(np.modf)(np.array([3, -2], np.int8))
    assert part.dtype == whole.dtype == np.float16
    np.testing.assert_array_equal(part, [0, -0.0])
    np.testing.assert_array_equal(whole, [3, -2])
