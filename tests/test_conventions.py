"""Corner cases where libraries disagree, and the values that funcgrad decided on, in both modes.

Each entry is a scalar function, a point, and the gradient there. A library that returns NaN
for one of these is cited in the comment beside it.
"""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.scipy import special

F = fg.nn.functional
INF, NAN = np.inf, np.nan


def complex_squares(z):
    return np.real(z) ** 2 + np.imag(z) ** 2


def masked_log_softmax(x):
    return np.log(F.softmax(x))[1]


def reassembled(x):
    """Row 14: the Frobenius norm of U S V."""
    u, s, v = np.linalg.svd(x)
    return np.linalg.norm(u @ np.diag(s) @ v)


def from_eigenvectors(x):
    """Row 15: of V W V'."""
    w, v = np.linalg.eigh(x)
    return np.sum((v * w) @ v.T * np.array([[1.0, 2.0], [4.0, 8.0]]))


def sinc_by_hand(x):
    return np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x))


CASES = {
    "where, branch not taken": (lambda x: np.where(x < 2, x * x, np.sqrt(x - 2)), 1.0, 2.0),
    "where, before a root": (lambda x: np.sqrt(np.where(x > 0, x, 0)), -4.0, 0.0),
    "where, x log x at 0": (lambda x: np.where(x > 0, x * np.log(x), 0.0), 0.0, 0.0),
    "where, masked infinity": (
        lambda x: np.sum(np.where(np.isinf(x), 0.0, np.exp(-x) * x)),
        np.array([INF, 1.0]),
        [0.0, 0.0],
    ),
    "std of equal values": (np.std, np.array([4.0, 4.0]), [0.0, 0.0]),
    "logsumexp of -inf": (F.logsumexp, np.full(3, -INF), np.full(3, 1 / 3)),
    "log of softmax": (masked_log_softmax, np.array([0.0, 900.0]), [0.0, 0.0]),
    "sigmoid by hand": (lambda x: 1 / (1 + np.exp(-x)), -900.0, 0.0),
    "arccos after clip": (lambda x: np.arccos(np.clip(x, -1, 1)), 3.0, 0.0),
    "max with ties": (np.max, np.array([2.0, 7.0, 7.0]), [0.0, 0.5, 0.5]),
    "min with ties": (np.min, np.array([7.0, 2.0, 2.0]), [0.0, 0.5, 0.5]),
    "maximum at a tie": (lambda x: np.maximum(x, 0.0), 0.0, 0.5),
    "relu at the kink": (F.relu, 0.0, 0.0),
    "clip at the lower kink": (lambda x: np.clip(x, -1, 1), -1.0, 0.0),
    "clip at the upper kink": (lambda x: np.clip(x, -1, 1), 1.0, 0.0),
    "clip by itself": (lambda x: np.clip(x, 0.0, x), 5.0, 1.0),
    "abs at 0": (np.abs, 0.0, 0.0),
    "powers of 0": (lambda x: np.sum(x ** np.array([0.0, 1.0, 3.0])), 0.0, 1.0),
    "power 0 of 0": (lambda x: x**0, 0.0, 0.0),
    "complex squares": (complex_squares, 2.0 + 1.0j, 4.0 - 2.0j),
    "prod with a zero": (np.prod, np.array([0.0, 5.0, 7.0]), [35.0, 0.0, 0.0]),
    "prod with two zeros": (np.prod, np.array([0.0, 0.0, 3.0]), [0.0, 0.0, 0.0]),
    "nanmean": (lambda x: np.nanmean(x**2), np.array([NAN, 3.0, 5.0]), [0.0, 3.0, 5.0]),
    "hypot at 0": (lambda x: np.hypot(x, 0.0), 0.0, 0.0),
    "sinc at 0": (np.sinc, 0.0, 0.0),
    "sinc by hand at 0": (sinc_by_hand, 0.0, 0.0),
    "comparison as a mask": (
        lambda x: np.sum(x * (x < 0)),
        np.array([-2.0, -0.5, 0.0, 3.0]),
        [1.0, 1.0, 0.0, 0.0],
    ),
    "comparison of floats": (
        lambda x: np.sum(x * x * (x != 3.0)),
        np.array([-2.0, -0.5, 0.0, 3.0]),
        [-4.0, -1.0, 0.0, 0.0],
    ),
    "norm at 0": (np.linalg.norm, np.zeros(3), [0.0, 0.0, 0.0]),
    "squared norm at 0": (lambda x: np.linalg.norm(x) ** 2, np.zeros(3), [0.0, 0.0, 0.0]),
    "repeated singular values": (
        reassembled,
        np.diag([2.0, 2.0, 5.0]),
        np.diag([2.0, 2.0, 5.0]) / np.sqrt(33.0),
    ),
    "repeated eigenvalues": (from_eigenvectors, 3.0 * np.eye(2), [[1.0, 3.0], [3.0, 8.0]]),
    "det of a singular matrix": (
        np.linalg.det,
        np.array([[2.0, 1.0], [4.0, 2.0]]),
        [[2.0, -4.0], [-1.0, 2.0]],
    ),
    "det of a matrix of rank 1": (np.linalg.det, np.ones((3, 3)), np.zeros((3, 3))),
    "nuclear norm at 0": (lambda x: np.linalg.norm(x, "nuc"), np.zeros((2, 2)), np.zeros((2, 2))),
    "scipy's logsumexp of -inf": (special.logsumexp, np.full(3, -INF), np.full(3, 1 / 3)),
    "scipy's log of softmax": (
        lambda x: np.log(special.softmax(x))[1],
        np.array([0.0, 900.0]),
        [0.0, 0.0],
    ),
    "scipy's log_softmax": (
        lambda x: special.log_softmax(x)[1],
        np.array([0.0, 900.0]),
        [0.0, 0.0],
    ),
    "median of an even number": (np.median, np.array([4.0, 1.0, 3.0, 2.0]), [0, 0, 0.5, 0.5]),
    "float64 by default": (lambda x: (1.0 + x) - 1.0, 1e-9, 1.0),
}


@pytest.fixture(params=CASES)
def case(request):
    # The functions themselves divide by zero and overflow, and NumPy says so, traced or not.
    with np.errstate(all="ignore"):
        yield CASES[request.param]


def directions(x):
    """A basis, in the shape of `x`; imaginary directions too where it is complex."""
    if np.ndim(x):
        return list(np.eye(np.size(x)).reshape(-1, *np.shape(x)))
    return [1.0 + 0j, 1j] if isinstance(x, complex) else [1.0]


def pair(want, v):
    """What the tangent in direction `v` must be."""
    return np.sum(np.real(np.asarray(want) * v))


def test_reverse(case):
    f, x, want = case
    np.testing.assert_allclose(fg.grad(f)(x), want, rtol=1e-12, atol=1e-12)


def test_forward(case):
    f, x, want = case
    for v in directions(x):
        _, got = fg.jvp(f, (x,), (v,))
        np.testing.assert_allclose(got, pair(want, v), rtol=1e-12, atol=1e-12)


def test_reverse_inside_forward(case):
    """The tangent of the value of an inner gradient's function, and a finite second derivative."""
    f, x, want = case
    for v in directions(x):
        got, dot = fg.jvp(fg.grad(f), (x,), (v,))
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
        assert np.all(np.isfinite(dot))


# Of a repeated eigenvalue the second derivative is undefined, and said to be.
@pytest.mark.filterwarnings("ignore::funcgrad.errors.RepeatedValueWarning")
def test_forward_inside_reverse(case):
    f, x, want = case
    for v in directions(x):

        def slope(x, v=v):
            return fg.jvp(f, (x,), (v,))[1]

        got, second = fg.value_and_grad(slope)(x)
        np.testing.assert_allclose(got, pair(want, v), rtol=1e-12, atol=1e-12)
        assert np.all(np.isfinite(second))


def test_two_rounding_digits_survive():
    value, _ = fg.value_and_grad(lambda x: (1.0 + x) - 1.0)(1e-9)
    assert value == 1.000000082740371e-09


def test_second_derivative_of_sinc_at_zero():
    np.testing.assert_allclose(fg.grad(fg.grad(np.sinc))(0.0), -(np.pi**2) / 3, rtol=1e-10)


def test_derivatives_of_exp_of_minus_square():
    f, got = lambda x: np.exp(-(x**2)), []
    for _ in range(4):
        f = fg.grad(f)
        got.append(f(0.0))
    np.testing.assert_allclose(got, [0.0, -2.0, 0.0, 12.0], atol=1e-12)


@pytest.mark.parametrize(("x", "y"), [(5.0, 0.0), (23.0, 0.0), (5.0, 1.0), (2.0, -1.5)])
def test_mixed_second_derivatives_of_power_agree(x, y):
    want = x ** (y - 1) * (1 + y * np.log(x))
    np.testing.assert_allclose(fg.grad(fg.grad(np.power, 0), 1)(x, y), want, rtol=1e-12)
    np.testing.assert_allclose(fg.grad(fg.grad(np.power, 1), 0)(x, y), want, rtol=1e-12)


def test_zero_base_pulls_back_to_both_arguments():
    ct = np.array([7.0, 0.5, -2.0])
    _, pullback = fg.vjp(lambda a, b: (a - b) ** b, np.ones(3), np.ones(3))
    a_bar, b_bar = pullback(ct)
    np.testing.assert_array_equal(a_bar, ct)
    np.testing.assert_array_equal(b_bar, -ct)


@pytest.mark.parametrize("c", [3e7, -3e7])
def test_saturated_tanh_in_every_mix_of_modes(c):
    def f(v):
        u = c * v
        return np.tanh(u) * u * u

    def forward(g):
        return lambda x: fg.jvp(g, (x,), (1.0,))[1]

    for first in (forward, fg.grad):
        for second in (forward, fg.grad):
            np.testing.assert_allclose(second(first(f))(1.0), 2 * c * abs(c), rtol=1e-6)


def test_hessian_of_prod_with_two_zeros():
    x = np.array([2.0, 3.0, 0.0, 0.0])
    want = np.zeros((4, 4))
    want[2, 3] = want[3, 2] = 6.0
    got = [fg.jvp(fg.grad(np.prod), (x,), (e,))[1] for e in np.eye(4)]
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_sixteen_bit_maximum_of_many_ties():
    got = fg.grad(np.max)(np.ones(70000, np.float16))
    assert got.dtype == np.float16
    assert abs(got.astype(float).sum() - 1) < 2e-2
