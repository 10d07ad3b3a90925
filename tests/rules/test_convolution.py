"""Convolution, correlation and polynomials: known gradients, conjugation, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.rules import convolution

A, V = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])


def test_full_convolution_multiplies_the_sums():
    bars = fg.grad(lambda a, v: np.sum(np.convolve(a, v)), argnums=(0, 1))(A, V)
    assert_array_equal(bars[0], [9, 9, 9])
    assert_array_equal(bars[1], [6, 6])


def test_valid_convolution():
    # [1*5 + 2*4, 2*5 + 3*4]
    bars = fg.grad(lambda a, v: np.sum(np.convolve(a, v, "valid")), argnums=(0, 1))(A, V)
    assert_array_equal(bars[0], [5, 9, 4])
    assert_array_equal(bars[1], [5, 3])


def test_correlation_conjugates_its_second_sequence():
    # f = a conj(v)
    a, v = np.array([1 + 2j]), np.array([3 + 4j])
    _, pullback = fg.vjp(np.correlate, a, v)
    a_bar, v_bar = pullback(np.array([1j]))
    assert_array_equal(a_bar, [1j * (3 - 4j)])
    assert_array_equal(v_bar, [-1j * (1 - 2j)])


def test_gradient_of_a_polynomial_is_its_derivative():
    # 2 x**2 + 3 x + 5
    p, x = np.array([2.0, 3.0, 5.0]), np.array([1.0, -2.0])
    bars = fg.grad(lambda p, x: np.sum(np.polyval(p, x)), argnums=(0, 1))(p, x)
    assert_array_equal(bars[0], [5, -1, 2])
    assert_array_equal(bars[1], [7, -5])


@pytest.mark.parametrize(
    "call",
    [
        lambda a: np.convolve(a, []),
        lambda a: np.convolve(a, np.ones((2, 2))),
        lambda a: np.convolve(a, V, "other"),
        lambda a: np.correlate(a, []),
        lambda a: np.correlate(a, np.ones((2, 2))),
    ],
)
def test_errors_are_those_of_numpy(call):
    with pytest.raises((ValueError, TypeError)) as expected:
        call(A)
    with pytest.raises(expected.type) as raised:
        fg.grad(call)(A)
    assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("made", [convolution.convolve, convolution.correlate])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("lengths", [(6, 3), (3, 6), (5, 5), (200, 90)])
@pytest.mark.parametrize("batched", [(True, False), (False, True), (True, True)])
def test_batch_is_a_loop(made, mode, lengths, batched):
    rng = np.random.default_rng(1)
    args = [
        rng.normal(size=(4, n) if is_batched else n) + 1j * rng.normal(size=n)
        for n, is_batched in zip(lengths, batched, strict=True)
    ]
    rows = [
        made.bind(
            *(x[i] if is_batched else x for x, is_batched in zip(args, batched, strict=True)),
            mode=mode,
        )
        for i in range(4)
    ]
    assert_allclose(made.batch(args, batched, mode=mode), np.stack(rows), rtol=1e-12, atol=1e-12)


def test_batch_of_numbers_is_a_loop():
    a, v = np.arange(3.0), np.array([2.0, 5.0])
    got = convolution.convolve.batch((a, v), (False, True), mode="full")
    assert_array_equal(got, np.outer(v, a))


def test_valid_convolution_of_long_sequences_pulls_back_without_the_full_one():
    a, v = np.random.default_rng(2).normal(size=(2, 200_000))
    bars = fg.grad(lambda a, v: np.convolve(a, v, "valid")[0], argnums=(0, 1))(a, v)
    assert_array_equal(bars[0], v[::-1])
    assert_array_equal(bars[1], a[::-1])


def test_a_missing_value_stays_in_its_row():
    a = np.ones((3, 4))
    a[1, 3] = np.nan
    got = convolution.convolve.batch((a, np.ones(2)), (True, False), mode="valid")
    assert_array_equal(got, [[2, 2, 2], [2, 2, np.nan], [2, 2, 2]])
