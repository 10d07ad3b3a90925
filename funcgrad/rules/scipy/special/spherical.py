"""Spherical Bessel functions and spherical harmonics.

The derivative of a spherical Bessel function is SciPy's; further ones follow from the recurrence
with both neighbours. Orders and degrees are integers, without derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sp

from funcgrad.core.batch import broadcasting
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import zero_wins
from funcgrad.rules.scipy.special.declare import missing_partial
from funcgrad.rules.spelling import as_arrays

__all__ = ["sph_harm_y", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn"]

# Spherical Bessel functions


@primitive(canonical=as_arrays)
def spherical_jn(n, z, *, derivative=False):
    """Spherical Bessel function of the first kind."""
    return sp.spherical_jn(n, z, derivative=derivative)


@primitive(canonical=as_arrays)
def spherical_yn(n, z, *, derivative=False):
    """Spherical Bessel function of the second kind."""
    return sp.spherical_yn(n, z, derivative=derivative)


@primitive(canonical=as_arrays)
def spherical_in(n, z, *, derivative=False):
    """Modified spherical Bessel function of the first kind."""
    return sp.spherical_in(n, z, derivative=derivative)


@primitive(canonical=as_arrays)
def spherical_kn(n, z, *, derivative=False):
    """Modified spherical Bessel function of the second kind."""
    return sp.spherical_kn(n, z, derivative=derivative)


def _declare_spherical(made: Any, below: int, above: int) -> None:
    """Declare the rules of functions with ``(2n + 1) w[n]' = below n w[n-1] + above (n+1) w[n+1]``.

    Without a quotient by z, unlike their differential equation, this holds at 0 too.
    """

    def rate(n, z, derivative):
        if not derivative:
            return made.bind(n, z, derivative=True)
        first = below * n * made.bind(np.maximum(n - 1, 0), z, derivative=True)
        second = above * (n + 1) * made.bind(n + 1, z, derivative=True)
        return (first + second) / (2 * n + 1)

    @made.def_jvp
    def spherical_jvp(primals, tangents, out, *, derivative):
        n, z = primals
        n_dot, z_dot = tangents
        if n_dot is not None:
            raise missing_partial(made.name, "n", "it is an integer")
        return zero_wins(z_dot * rate(n, z, derivative), z_dot)

    @made.def_vjp
    def spherical_vjp(primals, out, *, derivative):
        n, z = primals

        def spherical_pullback_n(out_bar):
            raise missing_partial(made.name, "n", "it is an integer")

        def spherical_pullback_z(out_bar):
            return zero_wins(out_bar * rate(n, z, derivative), out_bar)

        return spherical_pullback_n, spherical_pullback_z

    @made.def_samples
    def spherical_samples(rng):
        z = rng.uniform(0.5, 4.0, size=(2, 3))
        yield Sample(np.array([0, 1, 3]), z, fun=made)
        yield Sample(np.array([0, 1, 3]), z, fun=made, derivative=True)
        yield Sample(2, np.float64(1.5), fun=made)

    broadcasting(made)


_declare_spherical(spherical_jn, 1, -1)
_declare_spherical(spherical_yn, 1, -1)
_declare_spherical(spherical_in, 1, 1)
_declare_spherical(spherical_kn, -1, -1)


# Spherical harmonics


@primitive(canonical=as_arrays)
def sph_harm_y(n, m, theta, phi):
    """Spherical harmonics; by the ladder operators they are differentiated at the poles too."""
    return sp.sph_harm_y(n, m, theta, phi)


def _by_theta(n: Any, m: Any, theta: Any, phi: Any) -> Any:
    up, down = (n - m) * (n + m + 1), (n + m) * (n - m + 1)
    above = sph_harm_y.bind(n, np.minimum(m + 1, n), theta, phi)
    below = sph_harm_y.bind(n, np.maximum(m - 1, -n), theta, phi)
    turn = np.exp(1j * phi)
    return 0.5 * (np.sqrt(1.0 * up) * above / turn - np.sqrt(1.0 * down) * below * turn)


def _sph_missing(name: str) -> Any:
    return missing_partial("sph_harm_y", name, "it is an integer")


@sph_harm_y.def_jvp
def sph_harm_y_jvp(primals, tangents, out):
    n, m, theta, phi = primals
    n_dot, m_dot, theta_dot, phi_dot = tangents
    if n_dot is not None or m_dot is not None:
        raise _sph_missing("m" if n_dot is None else "n")
    total = None
    if theta_dot is not None:
        total = theta_dot * _by_theta(n, m, theta, phi)
    if phi_dot is not None:
        part = phi_dot * (1j * m * out)
        total = part if total is None else total + part
    return total


@sph_harm_y.def_vjp
def sph_harm_y_vjp(primals, out):
    n, m, theta, phi = primals

    def sph_harm_y_pullback_n(out_bar):
        raise _sph_missing("n")

    def sph_harm_y_pullback_m(out_bar):
        raise _sph_missing("m")

    def sph_harm_y_pullback_theta(out_bar):
        return out_bar * _by_theta(n, m, theta, phi)

    def sph_harm_y_pullback_phi(out_bar):
        return out_bar * (1j * m * out)

    return (
        sph_harm_y_pullback_n,
        sph_harm_y_pullback_m,
        sph_harm_y_pullback_theta,
        sph_harm_y_pullback_phi,
    )


broadcasting(sph_harm_y)


@sph_harm_y.def_samples
def sph_harm_y_samples(rng):
    theta, phi = rng.uniform(0.2, 2.8, size=(2, 4))
    n, m = np.array([0, 1, 2, 3]), np.array([0, -1, 2, 1])
    yield Sample(n, m, theta, phi, fun=sph_harm_y, complex=False)
    yield Sample(2, 1, theta[:, None], phi, fun=sph_harm_y, complex=False)
    # SciPy's values are even in theta, which the polynomials are not: no second differences at 0.
    yield Sample(2, 0, np.zeros(2), phi[:2], fun=sph_harm_y, complex=False, order=1)
    yield Sample(1, 1, np.float64(0.4), np.float64(0.1), fun=sph_harm_y, complex=False)
