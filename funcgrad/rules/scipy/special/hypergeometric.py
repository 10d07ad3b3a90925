"""Hypergeometric functions and orthogonal polynomials.

In the argument each derivative is a function of the same kind with shifted parameters (NIST Digital
Library of Mathematical Functions, chapters 13, 15 and 18). In the parameters of the hypergeometric
functions it is by differences (`funcgrad.rules.scipy.special.numerical`): some 1e-11 relative,
where SciPy's values are exact; they are not for large parameters, and differences are then worse.
Polynomials have no derivative in their degree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.elementwise import elementwise
from funcgrad.core.primitive import Sample
from funcgrad.rules.scipy.special.declare import factors
from funcgrad.rules.scipy.special.numerical import slope

__all__: list[str] = []


def _upper_slope(fun: Callable[[Any], Any], p: Any, z: Any) -> Any:
    """Return the derivative in an upper parameter: powers of the argument, or nearly."""
    return slope(fun, p, 1 / (1 + np.log1p(np.abs(z))))


def _lower_slope(fun: Callable[[Any], Any], p: Any, z: Any) -> Any:
    """Return the derivative in a lower parameter, which has poles at 0, -1, -2, ..."""
    away = np.where(np.greater(p, 0.5), p, np.abs(p - np.round(p)))
    return slope(fun, p, np.minimum(away, 1 / (1 + np.log1p(np.abs(z)))))


# Hypergeometric functions

hyp0f1 = elementwise(sp.hyp0f1, domain=((0.5, 3.0), (-2.0, 2.0)))


@hyp0f1.def_partial(0)
def hyp0f1_partial_v(t, x, y):
    def of_parameter(p):
        return sp.hyp0f1(p, y)

    return t * _lower_slope(of_parameter, x, y)


@hyp0f1.def_partial(1)
def hyp0f1_partial_z(t, x, y):
    return t * (sp.hyp0f1(x + 1, y) / x)


hyp1f1 = factors(sp.hyp1f1, "a b z")


@hyp1f1.def_partial(0)
def hyp1f1_partial_a(t, a, b, z):
    def of_parameter(p):
        return sp.hyp1f1(p, b, z)

    return t * _upper_slope(of_parameter, a, z)


@hyp1f1.def_partial(1)
def hyp1f1_partial_b(t, a, b, z):
    def of_parameter(p):
        return sp.hyp1f1(a, p, z)

    return t * _lower_slope(of_parameter, b, z)


@hyp1f1.def_partial(2)
def hyp1f1_partial_z(t, a, b, z):
    return t * (a / b * sp.hyp1f1(a + 1, b + 1, z))


@hyp1f1.def_samples
def hyp1f1_samples(rng):
    a, b = rng.uniform(0.5, 3.0, size=(2, 3))
    yield Sample(a, b, rng.uniform(-2.0, 2.0, size=(2, 1)))
    yield Sample(np.float64(1.5), np.float64(2.5), np.float64(0.3))
    yield Sample(-0.5, 1.5, np.array([0.0, 1.0]))


hyperu = factors(sp.hyperu, "a b x")


@hyperu.def_partial(0)
def hyperu_partial_a(t, a, b, x):
    def of_parameter(p):
        return sp.hyperu(p, b, x)

    return t * _upper_slope(of_parameter, a, x)


@hyperu.def_partial(1)
def hyperu_partial_b(t, a, b, x):
    def of_parameter(p):
        return sp.hyperu(a, p, x)

    return t * _upper_slope(of_parameter, b, x)


@hyperu.def_partial(2)
def hyperu_partial_x(t, a, b, x):
    return t * (-a * sp.hyperu(a + 1, b + 1, x))


@hyperu.def_samples
def hyperu_samples(rng):
    a, b, x = rng.uniform(0.5, 1.9, size=(3, 3))
    yield Sample(1.0, 1.5, x)
    yield Sample(a, b, x, argnums=2)


hyp2f1 = factors(sp.hyp2f1, "a b c z")


def _gap_to_one(z: Any) -> Any:
    """Return what upper parameters are powers of: ``1 - z``, or its inverse."""
    gap = np.abs(1 - z)
    gap = np.where(np.equal(gap, 0), 1, gap)
    return np.maximum(gap, 1 / gap) - 1


@hyp2f1.def_partial(0)
def hyp2f1_partial_a(t, a, b, c, z):
    def of_parameter(p):
        return sp.hyp2f1(p, b, c, z)

    return t * _upper_slope(of_parameter, a, _gap_to_one(z))


@hyp2f1.def_partial(1)
def hyp2f1_partial_b(t, a, b, c, z):
    def of_parameter(p):
        return sp.hyp2f1(a, p, c, z)

    return t * _upper_slope(of_parameter, b, _gap_to_one(z))


@hyp2f1.def_partial(2)
def hyp2f1_partial_c(t, a, b, c, z):
    def of_parameter(p):
        return sp.hyp2f1(a, b, p, z)

    return t * _lower_slope(of_parameter, c, _gap_to_one(z))


@hyp2f1.def_partial(3)
def hyp2f1_partial_z(t, a, b, c, z):
    return t * (a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, z))


@hyp2f1.def_samples
def hyp2f1_samples(rng):
    a, b, c = rng.uniform(0.5, 2.0, size=(3, 3))
    yield Sample(a, b, c, rng.uniform(-0.8, 0.7, size=(2, 1)))
    yield Sample(np.float64(1.5), 0.5, np.float64(2.5), np.float64(0.3))


# Polynomials: the derivative of one of degree n is one of degree n - 1

_DEGREE = "it is a degree"


def _lower(n: Any) -> Any:
    """Return the degree of the derivative, 0 for that of a constant too."""
    return np.where(np.equal(n, 0), n, n - 1)


def _varies(n: Any) -> Any:
    """Return 0 where the polynomial is a constant, else 1."""
    return np.where(np.equal(n, 0), 0.0, 1.0)


def _polynomial(name: str, derivative: Callable[[Any, Any], Any]) -> None:
    """Declare a polynomial of two arguments: its degree, and where it is taken."""
    made = factors(getattr(sp, name), "n x")
    made.no_partial(0, _DEGREE)

    @made.def_partial(1)
    def polynomial_partial(t, n, x):
        return t * derivative(n, x)

    @made.def_samples
    def polynomial_samples(rng):
        yield Sample(np.array([0, 1, 4]), rng.uniform(-0.9, 0.9, size=(2, 3)))
        yield Sample(3, np.float64(0.3))
        yield Sample(2, np.array([-1.0, 1.0]), order=1)


def _legendre_rate(n, x):
    return (n + 1) / 2 * _varies(n) * sp.eval_jacobi(_lower(n), 1.0, 1.0, x)


def _sh_legendre_rate(n, x):
    return 2 * _legendre_rate(n, 2 * x - 1)


def _chebyt_rate(n, x):
    return n * sp.eval_chebyu(_lower(n), x)


def _chebyu_rate(n, x):
    return 2 * _varies(n) * sp.eval_gegenbauer(_lower(n), 2.0, x)


def _chebyc_rate(n, x):
    return n * sp.eval_chebys(_lower(n), x)


def _chebys_rate(n, x):
    return _varies(n) * sp.eval_gegenbauer(_lower(n), 2.0, x / 2)


def _sh_chebyt_rate(n, x):
    return 2 * n * sp.eval_sh_chebyu(_lower(n), x)


def _sh_chebyu_rate(n, x):
    return 4 * _varies(n) * sp.eval_gegenbauer(_lower(n), 2.0, 2 * x - 1)


def _laguerre_rate(n, x):
    return -_varies(n) * sp.eval_genlaguerre(_lower(n), 1.0, x)


def _hermite_rate(n, x):
    return 2 * n * sp.eval_hermite(_lower(n), x)


def _hermitenorm_rate(n, x):
    return n * sp.eval_hermitenorm(_lower(n), x)


for _name, _rate in {
    "eval_legendre": _legendre_rate,
    "eval_sh_legendre": _sh_legendre_rate,
    "eval_chebyt": _chebyt_rate,
    "eval_chebyu": _chebyu_rate,
    "eval_chebyc": _chebyc_rate,
    "eval_chebys": _chebys_rate,
    "eval_sh_chebyt": _sh_chebyt_rate,
    "eval_sh_chebyu": _sh_chebyu_rate,
    "eval_laguerre": _laguerre_rate,
    "eval_hermite": _hermite_rate,
    "eval_hermitenorm": _hermitenorm_rate,
}.items():
    _polynomial(_name, _rate)


eval_jacobi = factors(sp.eval_jacobi, "n alpha beta x")
eval_gegenbauer = factors(sp.eval_gegenbauer, "n alpha x")
eval_genlaguerre = factors(sp.eval_genlaguerre, "n alpha x")

for _made in (eval_jacobi, eval_gegenbauer, eval_genlaguerre):
    _made.no_partial(0, _DEGREE)


@eval_jacobi.def_partial(3)
def eval_jacobi_partial_x(t, n, alpha, beta, x):
    rate = _varies(n) * (n + alpha + beta + 1) / 2
    return t * (rate * sp.eval_jacobi(_lower(n), alpha + 1, beta + 1, x))


@eval_gegenbauer.def_partial(2)
def eval_gegenbauer_partial_x(t, n, alpha, x):
    return t * (2 * alpha * _varies(n) * sp.eval_gegenbauer(_lower(n), alpha + 1, x))


@eval_genlaguerre.def_partial(2)
def eval_genlaguerre_partial_x(t, n, alpha, x):
    return t * (-_varies(n) * sp.eval_genlaguerre(_lower(n), alpha + 1, x))


@eval_jacobi.def_samples
def eval_jacobi_samples(rng):
    x = rng.uniform(-0.9, 0.9, size=(2, 3))
    yield Sample(np.array([0, 1, 4]), 0.5, 1.5, x)


@eval_gegenbauer.def_samples
@eval_genlaguerre.def_samples
def eval_gegenbauer_samples(rng):
    yield Sample(np.array([0, 1, 4]), 0.5, rng.uniform(-0.9, 0.9, size=(2, 3)))
