"""`sinc` and `i0`: derivatives of high order, at 0, far out and in between."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.rules.sinc_and_i0 import sinc_derivative

PI = np.pi


def derivative(f, order, mode):
    for _ in range(order):
        f = mode(f)
    return f


def forward(f):
    return lambda x: fg.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("mode", [forward, fg.grad])
@pytest.mark.parametrize(
    ("x", "order", "expected"),
    [
        # From the series: (-1)**(n/2) pi**n / (n + 1) for even n, 0 for odd.
        (0.0, 1, 0.0),
        (0.0, 2, -(PI**2) / 3),
        (0.0, 3, 0.0),
        (0.0, 4, PI**4 / 5),
        (0.0, 6, -(PI**6) / 7),
        # From sin(pi x) / (pi x) at 1, by hand.
        (1.0, 1, -1.0),
        (1.0, 2, 2.0),
        (1.0, 3, PI**2 - 6),
        (-1.0, 1, 1.0),
        (1e-9, 2, -(PI**2) / 3),
        (1e4, 1, 1e-4),
    ],
)
def test_derivatives_of_sinc(mode, x, order, expected):
    got = derivative(np.sinc, order, mode)(x)
    assert got == pytest.approx(expected, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("nth", [1, 2, 3, 5])
def test_series_and_recurrence_meet(nth):
    """The method changes where pi x is nth + 1."""
    edge = (nth + 1) / PI
    below, above = sinc_derivative(np.array([edge - 1e-12, edge + 1e-12]), nth=nth)
    assert below == pytest.approx(above, rel=1e-9)


@pytest.mark.parametrize("mode", [forward, fg.grad])
@pytest.mark.parametrize(
    ("x", "order", "expected"),
    [
        # Values of scipy.special.ivp(0, x, order).
        (1.0, 1, 0.565159103992485),
        (20.0, 1, 42454973.38512778),
        (700.0, 1, 1.5285003902339006e302),
        (1e-5, 1, 5.0000000000625004e-06),
        (5.0, 3, 20.83451914912568),
        (0.0, 1, 0.0),
        (0.0, 2, 1 / 2),
        (0.0, 4, 3 / 8),
        (-1.0, 1, -0.565159103992485),
    ],
)
def test_derivatives_of_i0(mode, x, order, expected):
    assert derivative(np.i0, order, mode)(x) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("f", [np.sinc, np.i0])
def test_complex_numbers_are_taken_as_numpy_takes_them(f):
    if f is np.i0:
        with pytest.raises(TypeError, match="complex"):
            fg.vjp(f, 1 + 1j)
    else:
        _, out_dot = fg.jvp(f, (1e-3j,), (1.0 + 0j,))
        assert out_dot == pytest.approx(-(PI**2) / 3 * 1e-3j, rel=1e-5)
