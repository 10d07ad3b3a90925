"""The decompositions of `scipy.linalg` that NumPy has too: `svd`, `eigh` and `qr`.

SciPy computes the values, with its own options. The rules are those of the functions of the same
name in `numpy.linalg`, which look at the results, not at how they came about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import Primitive, Sample
from funcgrad.core.zero import shape_of
from funcgrad.rules.linalg import eigen, factorizations, singular
from funcgrad.rules.linalg.stacks import adjoint, hermitian_part
from funcgrad.rules.scipy.adopt import adopt, no_option, pull, push

__all__ = ["eigh", "eigvalsh", "qr", "svd", "svdvals"]

svd = adopt(scipy.linalg.svd, "a", summary="Singular value decomposition.")


@svd.def_jvp
def svd_jvp(primals, tangents, out, *, full_matrices=True, compute_uv=True, **options):
    if not compute_uv:
        return push(singular.svdvals, primals, tangents, out)
    return push(singular.svd, primals, tangents, out, full_matrices=full_matrices)


@svd.def_vjp
def svd_vjp(primals, out, *, full_matrices=True, compute_uv=True, **options):
    if not compute_uv:
        return pull(singular.svdvals, primals, out)
    return pull(singular.svd, primals, out, full_matrices=full_matrices)


by_loop(svd)


def _svd_invariants(a: Any, **options: Any) -> Any:
    u, s, vh = svd.call(a, **options)
    k = shape_of(s)[-1]
    return s, np.matmul(u[:, :k] * np.sin(s), vh[:k]), np.abs(u[:, :k]), np.abs(vh[:k])


@svd.def_samples
def svd_samples(rng):
    yield Sample(rng.normal(size=(3, 2)), fun=_svd_invariants)
    yield Sample(rng.normal(size=(2, 3)), full_matrices=False, fun=_svd_invariants)
    yield Sample(rng.normal(size=(2, 2)), compute_uv=False)


svdvals = adopt(scipy.linalg.svdvals, "a", summary="Singular values.")


@svdvals.def_jvp
def svdvals_jvp(primals, tangents, out, **options):
    return push(singular.svdvals, primals, tangents, out)


@svdvals.def_vjp
def svdvals_vjp(primals, out, **options):
    return pull(singular.svdvals, primals, out)


by_loop(svdvals)


@svdvals.def_samples
def svdvals_samples(rng):
    yield Sample(rng.normal(size=(3, 2)))


_ONE = {
    "b": "with c = cholesky(b, lower=True) take eigh of solve_triangular(c, solve_triangular("
    "c, a, lower=True).conj().T, lower=True), and vectors solve_triangular(c, v, lower=True, "
    "trans='C')",
    "subset_by_index": "take a slice of all eigenvalues",
    "subset_by_value": "take a slice of all eigenvalues",
}
eigh = adopt(
    scipy.linalg.eigh,
    "a",
    summary="Eigenvalues and eigenvectors of a Hermitian matrix.",
    refused=_ONE,
)
eigvalsh = adopt(
    scipy.linalg.eigvalsh, "a", summary="Eigenvalues of a Hermitian matrix.", refused=_ONE
)


def _declare_eigh(made: Primitive, values: bool) -> None:
    def eigh_jvp(primals, tangents, out, *, lower=True, eigvals_only=values, **options):
        rules = eigen.eigvalsh if eigvals_only else eigen.eigh
        return push(rules, primals, tangents, out, UPLO="L" if lower else "U")

    def eigh_vjp(primals, out, *, lower=True, eigvals_only=values, **options):
        rules = eigen.eigvalsh if eigvals_only else eigen.eigh
        return pull(rules, primals, out, UPLO="L" if lower else "U")

    made.def_jvp(eigh_jvp)
    made.def_vjp(eigh_vjp)
    by_loop(made)


_declare_eigh(eigh, False)
_declare_eigh(eigvalsh, True)


def _eigh_invariants(a: Any, **options: Any) -> Any:
    w, v = eigh.call(hermitian_part(a), **options)
    return w, np.matmul(v * np.sin(w), adjoint(v)), np.abs(v)


@eigh.def_samples
def eigh_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), fun=_eigh_invariants)
    yield Sample(rng.normal(size=(2, 2)), lower=False, fun=_eigh_invariants)
    yield Sample(rng.normal(size=(3, 3)), eigvals_only=True, complex=False)


@eigvalsh.def_samples
def eigvalsh_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), complex=False)
    yield Sample(rng.normal(size=(2, 2)), lower=False, complex=False)


qr = adopt(
    scipy.linalg.qr,
    "a",
    summary="Orthonormal and triangular factor.",
    refused={"pivoting": "permute the columns first, in the order of the concrete matrix"},
)
_MODES = {"full": "complete", "economic": "reduced"}


def _qr_rules(mode: Any) -> tuple[Any, dict[str, Any]]:
    if mode in _MODES:
        return factorizations.qr, {"mode": _MODES[mode]}
    raise no_option(scipy.linalg.qr, "mode", "use mode='full' or mode='economic'")


@qr.def_jvp
def qr_jvp(primals, tangents, out, *, mode="full", **options):
    rules, settings = _qr_rules(mode)
    return push(rules, primals, tangents, out, **settings)


@qr.def_vjp
def qr_vjp(primals, out, *, mode="full", **options):
    rules, settings = _qr_rules(mode)
    return pull(rules, primals, out, **settings)


by_loop(qr)


def _qr_invariants(a: Any, **options: Any) -> Any:
    q, r = qr.call(a, **options)
    return np.abs(r), np.matmul(q[:, :2], adjoint(q[:, :2]))


@qr.def_samples
def qr_samples(rng):
    yield Sample(rng.normal(size=(3, 3)), fun=_qr_invariants)
    yield Sample(rng.normal(size=(3, 2)), mode="economic", fun=_qr_invariants)
