"""Functions of matrices from `scipy.linalg`: `expm`, `logm`, `sqrtm`, `cosm` and their like.

The one idea: an analytic function `f` of a block triangular matrix holds its own derivative,
``f([[a, e], [0, a]]) = [[f(a), d], [0, f(a)]]`` where `d` is the Frechet derivative at `a` in the
direction `e` (R. Mathias, "A chain rule for matrix functions and applications", 1996). So tangents
are such a block, for any order; and the transpose of ``e -> d`` is the same map at the transposed
matrix (N. J. Higham, *Functions of Matrices*, 2008). For `expm` SciPy has it by itself, at a third
of the cost; that of `sqrtm` solves a Sylvester equation, and that of `logm` many.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import align, broadcasting, by_loop
from funcgrad.core.level import looked_at
from funcgrad.core.primitive import Primitive, Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.linalg.stacks import transposed
from funcgrad.rules.reducing import plus
from funcgrad.rules.scipy.adopt import adopt, document, in_place_of
from funcgrad.rules.scipy.linalg.matrix_equations import sylvester
from funcgrad.rules.spelling import as_array

__all__ = ["expm", "expm_frechet", "fractional_matrix_power", "functions", "logm", "sqrtm"]


def _triangle(a: Any, e: Any) -> Any:
    """Return ``[[a, e], [0, a]]``."""
    a, e = np.broadcast_arrays(a, e)
    upper = np.concatenate([a, e], axis=-1)
    lower = np.concatenate([np.zeros_like(a), a], axis=-1)
    return np.concatenate([upper, lower], axis=-2)


def _corner(x: Any) -> Any:
    """Return the block on the upper right."""
    n = shape_of(x)[-1] // 2
    return x[..., :n, n:]


def analytic(made: Primitive) -> None:
    """Give rules to an analytic function of a matrix, by way of block triangular ones."""

    def analytic_jvp(primals: Any, tangents: Any, out: Any, **options: Any) -> Any:
        (a,), (a_dot,) = primals, tangents
        return _corner(made.bind(_triangle(a, a_dot), **options))

    def analytic_vjp(primals: Any, out: Any, **options: Any) -> Any:
        (a,) = primals

        def analytic_pullback(out_bar: Any) -> Any:
            return _corner(made.bind(_triangle(transposed(a), out_bar), **options))

        return analytic_pullback

    made.def_jvp(analytic_jvp)
    made.def_vjp(analytic_vjp)
    by_loop(made)


expm = adopt(scipy.linalg.expm, "A", summary="Matrix exponential.")


@primitive()
def exponential_frechet(a, e):
    """Frechet derivative of `expm` at `a` in the direction `e`; of stacks, by blocks."""
    if a.ndim == e.ndim == 2 and a.size:
        return scipy.linalg.expm_frechet(a, e, compute_expm=False)
    return _corner(scipy.linalg.expm(_triangle(a, e)))


@exponential_frechet.def_jvp
def exponential_frechet_jvp(primals, tangents, out):
    (a, e), (a_dot, e_dot) = primals, tangents
    out_dot = None if e_dot is None else exponential_frechet.bind(a, e_dot)
    if a_dot is not None:
        turn = exponential_frechet.bind(_triangle(a, e), _triangle(a_dot, np.zeros_like(a_dot)))
        out_dot = plus(out_dot, _corner(turn))
    return out_dot


@exponential_frechet.def_vjp
def exponential_frechet_vjp(primals, out):
    a, e = primals

    def exponential_frechet_pullback_a(out_bar):
        n = shape_of(out_bar)[-1]
        none = np.zeros_like(out_bar)
        bar = np.concatenate(
            [
                np.concatenate([none, out_bar], axis=-1),
                np.concatenate([none, none], axis=-1),
            ],
            axis=-2,
        )
        blocks = exponential_frechet.bind(transposed(_triangle(a, e)), bar)
        return blocks[..., :n, :n] + blocks[..., n:, n:]

    def exponential_frechet_pullback_e(out_bar):
        return exponential_frechet.bind(transposed(a), out_bar)

    return exponential_frechet_pullback_a, exponential_frechet_pullback_e


@exponential_frechet.def_batch
def exponential_frechet_batch(args, batched):
    return exponential_frechet.bind(*align(args, batched, (2, 2)))


@exponential_frechet.def_samples
def exponential_frechet_samples(rng):
    yield Sample(rng.normal(size=(2, 2)), rng.normal(size=(2, 2)))
    yield Sample(rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2)))


@expm.def_jvp
def expm_jvp(primals, tangents, out):
    (a,), (a_dot,) = primals, tangents
    return exponential_frechet.bind(a, a_dot)


@expm.def_vjp
def expm_vjp(primals, out):
    (a,) = primals

    def expm_pullback(out_bar):
        return exponential_frechet.bind(transposed(a), out_bar)

    return expm_pullback


broadcasting(expm, 2)


@expm.def_samples
def expm_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(np.zeros((2, 2)))
    yield Sample(np.diag([1.0, 1.0, 2.0]))
    yield Sample(np.array([[0.0, 1.0], [0.0, 0.0]]))
    yield Sample(rng.normal(size=(2, 2, 2)))
    yield Sample(rng.normal(size=(1, 1)))


@primitive(name="scipy_expm_frechet")
def exponential_and_frechet(a, e, **options):
    """`expm` at `a`, as it comes out beside its derivative in the direction `e`, and that."""
    return tuple(scipy.linalg.expm_frechet(a, e, **options))


@exponential_and_frechet.def_jvp
def exponential_and_frechet_jvp(primals, tangents, out, **options):
    (a, _), (a_dot, _) = primals, tangents
    first = None if a_dot is None else exponential_frechet.bind(a, a_dot)
    return first, exponential_frechet_jvp(primals, tangents, out[1])


@exponential_and_frechet.def_vjp
def exponential_and_frechet_vjp(primals, out, **options):
    a, _ = primals
    pull_a, pull_e = exponential_frechet_vjp(primals, out[1])

    def exponential_and_frechet_pullback_a(out_bar):
        first, second = out_bar
        total = None if second is None else pull_a(second)
        return total if first is None else plus(total, expm_vjp((a,), None)(first))

    def exponential_and_frechet_pullback_e(out_bar):
        return None if out_bar[1] is None else pull_e(out_bar[1])

    return exponential_and_frechet_pullback_a, exponential_and_frechet_pullback_e


by_loop(exponential_and_frechet)


@in_place_of(scipy.linalg.expm_frechet)
def _expm_frechet(A, E, method=None, compute_expm=True, check_finite=True):
    A, E = as_array(A), as_array(E)
    if not compute_expm:
        return exponential_frechet.bind(A, E)
    return exponential_and_frechet.bind(A, E, method=method, check_finite=check_finite)


expm_frechet = document(
    _expm_frechet, scipy.linalg.expm_frechet, "Frechet derivative of the matrix exponential."
)
exponential_and_frechet.overridden = (expm_frechet,)


@exponential_and_frechet.def_samples
def exponential_and_frechet_samples(rng):
    yield Sample(rng.normal(size=(2, 2)), rng.normal(size=(2, 2)))


sqrtm = adopt(
    scipy.linalg.sqrtm,
    "A",
    summary="Principal square root of a matrix; its derivative solves a Sylvester equation.",
)


@sqrtm.def_jvp
def sqrtm_jvp(primals, tangents, out, **options):
    (a_dot,) = tangents
    return sylvester(out, out, a_dot)


@sqrtm.def_vjp
def sqrtm_vjp(primals, out, **options):
    def sqrtm_pullback(out_bar):
        back = transposed(out)
        return sylvester(back, back, out_bar)

    return sqrtm_pullback


by_loop(sqrtm)


def positive(rng: Any, n: int) -> Any:
    """Draw a matrix that is not symmetric and has positive eigenvalues: a product of two such."""
    x = 0.5 * rng.normal(size=(n, n))
    return (x @ x.T + np.eye(n)) * np.arange(1.0, n + 1)


@sqrtm.def_samples
def sqrtm_samples(rng):
    yield Sample(positive(rng, 3))
    yield Sample(np.diag([1.0, 1.0, 2.0]))
    yield Sample(np.array([[2.0]]))


logm = adopt(scipy.linalg.logm, "A", summary="Principal logarithm of a matrix.")
# log(1 + x) is the integral of x / (1 + t x) over t from 0 to 1: by eight points, as exact as
# float64 for x up to a quarter.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _is_far(a: Any, eye: Any) -> bool:
    """Tell whether a matrix, or one of a stack, is not yet near to 1."""
    far = np.greater(np.sum(np.abs(a - eye), axis=-2), 0.25)
    return bool(np.any(looked_at(np.any(far), "the number of roots that are taken")))


def logarithm_frechet(a: Any, e: Any) -> Any:
    """Return the Frechet derivative of `logm` at `a` in the direction `e`.

    By roots of `a` until it is near to 1, and the derivative of the integral there: the method of
    A. Al-Mohy, N. Higham, S. Relton, "Computing the Frechet derivative of the matrix logarithm and
    estimating the condition number", 2013, with roots one by one.
    """
    eye, scale = np.eye(shape_of(a)[-1]), 1.0
    while _is_far(a, eye) and scale < 2.0**60:
        a = sqrtm.bind(a)
        e = sylvester(a, a, e)
        scale *= 2
    total = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        part = np.linalg.inv(eye + (node + 1) / 2 * (a - eye))
        total = total + weight / 2 * np.matmul(np.matmul(part, e), part)
    return scale * total


@logm.def_jvp
def logm_jvp(primals, tangents, out, **options):
    (a,), (a_dot,) = primals, tangents
    return logarithm_frechet(a, a_dot)


@logm.def_vjp
def logm_vjp(primals, out, **options):
    (a,) = primals

    def logm_pullback(out_bar):
        return logarithm_frechet(transposed(a), out_bar)

    return logm_pullback


by_loop(logm)


def _quiet_logm(a: Any) -> Any:
    """Compute `logm` of float32 without SciPy's warning that it is not as accurate as float64."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return logm.call(a)


@logm.def_samples
def logm_samples(rng):
    yield Sample(positive(rng, 3), fun=_quiet_logm)
    yield Sample(np.diag([1.0, 1.0, 2.0]), fun=_quiet_logm)
    yield Sample(np.array([[2.0]]), fun=_quiet_logm)


fractional_matrix_power = adopt(
    scipy.linalg.fractional_matrix_power, "A", summary="Power of a matrix, of any real exponent."
)
analytic(fractional_matrix_power)


@fractional_matrix_power.def_samples
def fractional_matrix_power_samples(rng):
    yield Sample(positive(rng, 3), 0.3)
    yield Sample(positive(rng, 2), -1.5)
    yield Sample(positive(rng, 2), 2)


functions: dict[str, Any] = {}  # by name


def _trigonometric(name: str) -> None:
    function = getattr(scipy.linalg, name)
    made = adopt(function, "A", summary=function.__doc__.strip().splitlines()[0])
    analytic(made)
    functions[name] = made.call

    @made.def_samples
    def samples(rng):
        yield Sample(0.5 * rng.normal(size=(3, 3)))
        yield Sample(np.diag([0.5, 0.5]))


for _name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm"):
    _trigonometric(_name)
