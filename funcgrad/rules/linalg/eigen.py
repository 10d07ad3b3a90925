"""Eigenvalues and eigenvectors: `eigh`, `eigvalsh`, `eig`, `eigvals`.

The one idea: with ``a @ v = v * w`` and ``p = inv(v) @ da @ v``, the eigenvalues move by the
diagonal of `p`, and the eigenvectors turn into each other by the rest, ``dv = v @ (f * p)`` with
``f[i, j] = 1 / (w[j] - w[i])`` (M. B. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation", 2008; M. Seeger et al., "Auto-differentiating linear
algebra", 2017; for complex and general matrices C. Boeddeker et al., "On the computation of
complex-valued gradients with application to statistically optimum beamforming", 2017).

Eigenvectors may be multiplied by a factor of size 1, and if their value is repeated, replaced by
another basis. Functions that do not depend on that (`v * w @ inv(v)`, projectors, sizes of
elements) have the right derivative whatever LAPACK returns. For others it is that of a choice:
Hermitian matrices have eigenvectors that do not turn on the spot, as in JAX and PyTorch; those of
general matrices stay as LAPACK scales them, to length 1 and with their largest element real.

Repeated values: see `funcgrad.rules.linalg.spectra`. What is right there are functions of whole
eigenspaces: their projectors, and sums over their values. If *all* eigenvalues of a Hermitian
matrix are equal, it has no eigenspace but the whole, and it is the matrix itself, ``v * w @ v^H``,
that is differentiated rightly, in place of ``v @ v^H``, of which nobody asks a derivative.
Second derivatives at repeated values lack what the first derivatives of eigenvectors lack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import broadcasting
from funcgrad.core.level import any_of, concrete
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.linalg.spectra import (
    as_read,
    asks_for,
    gaps,
    negligible,
    quiet,
    read_back,
    reciprocal,
    sums,
    triangle,
    warn_of_repeated,
)
from funcgrad.rules.linalg.stacks import (
    adjoint,
    diagonal_of,
    from_diagonal,
    hermitian_part,
    transposed,
)
from funcgrad.rules.matmul import conj
from funcgrad.rules.reducing import plus
from funcgrad.rules.spelling import as_array, as_arrays

__all__: list[str] = []

EighResult: Any = type(np.linalg.eigh(np.eye(1)))
EigResult: Any = type(np.linalg.eig(np.eye(1)))

_EIGENVECTORS = "single eigenvectors of a repeated eigenvalue"


def _off_diagonal(mask: Any) -> Any:
    return np.logical_and(mask, ~np.eye(shape_of(mask)[-1], dtype=bool))


# Hermitian matrices


def _rates(w: Any) -> tuple[Any, Any, Any]:
    """Return by what `p` turns the eigenvectors, which pairs are equal, and whether all are."""
    equal = negligible(gaps(w), w)
    rates = reciprocal(gaps(w), equal)
    whole = np.all(equal, axis=(-2, -1), keepdims=True)
    if shape_of(w)[-1] > 1 and any_of(whole):
        # This is no rotation. It is what makes d(v * w @ v^H) = da.
        total = sums(w)
        symmetric = np.where(_off_diagonal(equal), reciprocal(total, negligible(total, w)), 0)
        rates = np.where(whole, symmetric, rates)
    return rates, _off_diagonal(equal), whole


def _check_eigh(p_bar: Any, w: Any, w_bar: Any, equal: Any, whole: Any) -> None:
    """Warn if the cotangent of the eigenvectors, in their own basis, asks for what is undefined."""
    if not np.any(concrete(equal)):
        return
    turn = p_bar - adjoint(p_bar)  # 0 if the basis of an eigenspace does not matter
    stretch = p_bar + adjoint(p_bar)
    if w_bar is None:
        w_bar = np.zeros_like(w)
    # With a weight on the eigenvalue itself the vectors count one by one after all. If there is no
    # other eigenvalue, functions of the matrix ``v * w @ v^H`` have it in this proportion.
    size = np.max(np.abs(stretch), axis=-1)
    foreign = np.greater(np.abs(diagonal_of(np.real(stretch)) - 4 * w * w_bar), 1e-5 * size)
    split = np.where(whole[..., 0], foreign, np.not_equal(w_bar, 0))
    split = np.logical_or(np.expand_dims(split, -1), np.expand_dims(split, -2))
    if asks_for(turn, equal, p_bar) or asks_for(stretch, np.logical_and(equal, split), p_bar):
        warn_of_repeated(_EIGENVECTORS)


@primitive()
def eigh(a, *, UPLO="L"):
    """Eigenvalues, ascending, and orthonormal eigenvectors of a Hermitian matrix."""
    return tuple(np.linalg.eigh(a, UPLO))


@eigh.def_call(np.linalg.eigh)
def eigh_call(a, UPLO="L"):
    """Pack the results into NumPy's named tuple."""
    return EighResult(*eigh.bind(as_array(a), UPLO=UPLO))


@eigh.def_jvp
def eigh_jvp(primals, tangents, out, *, UPLO):
    (a,), (a_dot,), (w, v) = primals, tangents, out
    a_dot = as_read(a_dot, triangle(a, UPLO in "lL"))
    p = np.matmul(adjoint(v), np.matmul(a_dot, v))
    return np.real(diagonal_of(p)), np.matmul(v, _rates(w)[0] * p)


@eigh.def_vjp
def eigh_vjp(primals, out, *, UPLO):
    (a,), (w, v) = primals, out
    weights = triangle(a, UPLO in "lL")

    def eigh_pullback(out_bar):
        w_bar, v_bar = out_bar
        if v_bar is None:
            a_bar = np.matmul(conj(v) * np.expand_dims(w_bar, -2), transposed(v))
            return read_back(quiet(a_bar, np.expand_dims(w_bar, -2)), weights)
        rates, equal, whole = _rates(w)
        p_bar = np.matmul(adjoint(v), conj(v_bar))
        _check_eigh(p_bar, w, w_bar, equal, whole)
        p_bar = plus(rates * p_bar, None if w_bar is None else from_diagonal(w_bar))
        a_bar = conj(np.matmul(np.matmul(v, p_bar), adjoint(v)))
        lifted = None if w_bar is None else np.expand_dims(w_bar, -2)
        return read_back(quiet(a_bar, lifted, v_bar), weights)

    return eigh_pullback


broadcasting(eigh, 2)


def _eigh_invariants(a: Any, UPLO: Any = "L") -> Any:
    w, v = np.linalg.eigh(hermitian_part(a), UPLO)
    whole = np.matmul(v * np.expand_dims(np.sin(w), -2), adjoint(v))
    first = v[..., :1]
    return w, whole, np.abs(v), np.matmul(first, adjoint(first))


@eigh.def_samples
def eigh_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), fun=_eigh_invariants)
    yield Sample(rng.normal(size=(2, 1, 2, 2)), "U", fun=_eigh_invariants)
    yield Sample(rng.normal(size=(1, 1)), fun=_eigh_invariants)
    yield Sample(np.zeros((0, 2, 2)))
    yield Sample(np.zeros((0, 0)))
    # One triangle is read. The phase of complex vectors is LAPACK's business.
    yield Sample(rng.normal(size=(3, 3)), complex=False)
    yield Sample(rng.normal(size=(2, 2)), UPLO="u", complex=False)


@primitive(overrides=(np.linalg.eigvalsh,), canonical=as_arrays)
def eigvalsh(a, *, UPLO="L"):
    """Eigenvalues of a Hermitian matrix, ascending."""
    return np.linalg.eigvalsh(a, UPLO)


@eigvalsh.def_jvp
def eigvalsh_jvp(primals, tangents, out, *, UPLO):
    (a,), (a_dot,) = primals, tangents
    v = np.linalg.eigh(a, UPLO)[1]
    a_dot = as_read(a_dot, triangle(a, UPLO in "lL"))
    return np.real(np.sum(conj(v) * np.matmul(a_dot, v), axis=-2))


@eigvalsh.def_vjp
def eigvalsh_vjp(primals, out, *, UPLO):
    (a,) = primals
    v = np.linalg.eigh(a, UPLO)[1]
    weights = triangle(a, UPLO in "lL")

    def eigvalsh_pullback(out_bar):
        w_bar = np.expand_dims(out_bar, -2)
        a_bar = np.matmul(conj(v) * w_bar, transposed(v))
        return read_back(quiet(a_bar, w_bar), weights)

    return eigvalsh_pullback


broadcasting(eigvalsh, 2)


@eigvalsh.def_samples
def eigvalsh_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(rng.normal(size=(2, 1, 2, 2)), UPLO="U")
    yield Sample(rng.normal(size=(2, 2)), "l")
    yield Sample([[2, 1], [1, 3]])
    yield Sample(rng.normal(size=(1, 1)))
    yield Sample(np.zeros((0, 2, 2)))
    yield Sample(np.zeros((0, 0)))


# General matrices


def _phase(v: Any) -> Any:
    """Return `q` such that LAPACK keeps ``imag(q^T dv)`` at 0 for each eigenvector.

    It makes the largest element of each real. Should it not, vectors do not turn on the spot.
    """
    if not shape_of(v)[-1]:
        return v
    size = np.where(np.equal(np.imag(v), 0), np.abs(v), 0)
    largest = np.max(size, axis=-2, keepdims=True)
    hit = np.logical_and(np.equal(size, largest), np.greater(size, 0))
    count = np.sum(hit, axis=-2, keepdims=True)
    share = reciprocal(v, np.logical_not(hit)) / np.maximum(count, 1)
    return np.where(np.equal(count, 0), conj(v), share)


@primitive()
def eig(a):
    """Eigenvalues and eigenvectors of length 1 of a square matrix."""
    return tuple(np.linalg.eig(a))


@eig.def_call(np.linalg.eig)
def eig_call(a):
    """Pack the results into NumPy's named tuple."""
    return EigResult(*eig.bind(as_array(a)))


@eig.def_jvp
def eig_jvp(primals, tangents, out):
    (a_dot,), (w, v) = tangents, out
    p = np.linalg.solve(v, np.matmul(a_dot, v))
    v_dot = np.matmul(v, reciprocal(gaps(w), negligible(gaps(w), w)) * p)
    turn = np.sum(conj(v) * v_dot, axis=-2, keepdims=True)  # which changes the length
    if dtype_of(v).kind == "c":
        turn = np.real(turn) + 1j * np.imag(np.sum(_phase(v) * v_dot, axis=-2, keepdims=True))
    return diagonal_of(p), v_dot - v * turn


@eig.def_vjp
def eig_vjp(primals, out):
    w, v = out

    def eig_pullback(out_bar):
        w_bar, v_bar = out_bar
        p_bar: Any = None if w_bar is None else from_diagonal(conj(w_bar))
        if v_bar is not None:
            bar = conj(v_bar)
            turn = np.sum(conj(bar) * v, axis=-2, keepdims=True)
            if dtype_of(v).kind == "c":
                bar = bar - v * np.real(turn) + 1j * conj(_phase(v)) * np.imag(turn)
            else:
                bar = bar - v * turn
            inner = np.matmul(adjoint(v), bar)
            equal = negligible(gaps(w), w)
            if asks_for(inner, _off_diagonal(equal), inner):
                warn_of_repeated(_EIGENVECTORS)
            p_bar = plus(p_bar, conj(reciprocal(gaps(w), equal)) * inner)
        a_bar = conj(np.linalg.solve(adjoint(v), np.matmul(p_bar, adjoint(v))))
        return quiet(a_bar, None if w_bar is None else np.expand_dims(w_bar, -2), v_bar)

    return eig_pullback


broadcasting(eig, 2)


def _eig_invariants(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    order = np.argsort(np.real(w) + 1e-3 * np.imag(w))
    back = np.linalg.inv(v)
    whole = np.matmul(v * np.expand_dims(np.sin(w), -2), back)
    return w, whole, np.abs(v), order


@eig.def_samples
def eig_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(rng.normal(size=(2, 1, 2, 2)))
    yield Sample(np.array([[1.0, -2.0, 0.3], [2.0, 0.5, 0.1], [0.2, -0.4, 3.0]]))
    yield Sample(np.array([[1.0, 0.3], [0.2, 2.0]]))
    yield Sample(rng.normal(size=(3, 3)), fun=_eig_invariants)
    yield Sample(rng.normal(size=(1, 1)))
    yield Sample(np.zeros((0, 2, 2)))
    yield Sample(np.zeros((0, 0)))


@primitive(overrides=(np.linalg.eigvals,), canonical=as_arrays)
def eigvals(a):
    """Eigenvalues of a square matrix."""
    return np.linalg.eigvals(a)


def _eigenvectors(a: Any, out: Any) -> Any:
    """Return the eigenvectors of `a` in the order of its eigenvalues `out`.

    Computed with and without eigenvectors, those of large matrices come in another order.
    """
    w, v = np.linalg.eig(a)
    bound = np.sqrt(np.finfo(dtype_of(w)).eps) * np.sum(np.abs(w), axis=-1, keepdims=True)
    if not any_of(np.greater(np.abs(w - out), bound)):
        return v
    # Each group of equal values is known by its first member; its members are taken in order.
    close = np.less_equal(np.abs(gaps(w)), np.expand_dims(bound, -1))
    groups = np.argmax(close, axis=-2)
    nearest = np.argmin(np.abs(np.expand_dims(w, -1) - np.expand_dims(out, -2)), axis=-2)
    wanted = np.take_along_axis(groups, nearest, axis=-1)
    rank, rank_wanted = (
        np.argsort(np.argsort(x, axis=-1, kind="stable"), axis=-1) for x in (groups, wanted)
    )
    chosen = np.equal(np.expand_dims(rank, -1), np.expand_dims(rank_wanted, -2))
    return np.matmul(v, chosen.astype(dtype_of(v)))


@eigvals.def_jvp
def eigvals_jvp(primals, tangents, out):
    (a,), (a_dot,) = primals, tangents
    v = _eigenvectors(a, out)
    return diagonal_of(np.linalg.solve(v, np.matmul(a_dot, v)))


@eigvals.def_vjp
def eigvals_vjp(primals, out):
    (a,) = primals
    v = _eigenvectors(a, out)

    def eigvals_pullback(out_bar):
        w_bar = np.expand_dims(out_bar, -1)
        a_bar = np.linalg.solve(transposed(v), w_bar * transposed(v))
        return quiet(a_bar, w_bar)

    return eigvals_pullback


broadcasting(eigvals, 2)


@eigvals.def_samples
def eigvals_samples(rng):
    yield Sample(rng.normal(size=(3, 3)))
    yield Sample(rng.normal(size=(2, 1, 2, 2)))
    yield Sample(np.array([[1.0, -2.0, 0.3], [2.0, 0.5, 0.1], [0.2, -0.4, 3.0]]))
    yield Sample(np.array([[1.0, 0.3], [0.2, 2.0]]))
    yield Sample([[2, 1], [1, 3]])
    yield Sample(np.zeros((0, 2, 2)))
    yield Sample(np.zeros((0, 0)))
