"""SciPy's linear algebra for traced code: ``from funcgrad.scipy import linalg``.

SciPy's functions do not know traced values; those that are replaced here do. They compute what
SciPy computes, by calling it, and have rules for all transforms. Options have SciPy's meaning.
Every other function is SciPy's and takes plain values only; of traced ones it says what to write
instead.

Examples
--------
>>> import numpy as np
>>> import funcgrad as fg
>>> from funcgrad.scipy import linalg

The derivative of a matrix exponential, in the direction of a matrix that commutes with it:

>>> a = np.diag([0.0, np.log(2.0)])
>>> fg.jvp(linalg.expm, (a,), (np.eye(2),))[1]
array([[1., 0.],
       [0., 2.]])

The logarithm of a Gaussian density, by the Cholesky factor of the covariance:

>>> def log_density(x, covariance):
...     factor = linalg.cholesky(covariance, lower=True)
...     z = linalg.solve_triangular(factor, x, lower=True)
...     return -0.5 * np.sum(z * z) - np.sum(np.log(np.diagonal(factor)))
>>> fg.grad(log_density)(np.array([2.0, 3.0]), np.diag([1.0, 4.0]))
array([-2.  , -0.75])
"""

from __future__ import annotations

from typing import Any

import scipy.linalg as _linalg

from funcgrad.core.alternatives import INSTEAD, offer
from funcgrad.core.namespace import standing_in
from funcgrad.rules.scipy.adopt import plain_only
from funcgrad.rules.scipy.linalg import (
    banded,
    decompositions,
    lu_factors,
    matrix_equations,
    matrix_functions,
    namesakes,
    structured,
    triangular,
)

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "circulant",
    "companion",
    "coshm",
    "cosm",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "expm_frechet",
    "fractional_matrix_power",
    "hankel",
    "inv",
    "logm",
    "lu",
    "lu_factor",
    "lu_solve",
    "norm",
    "pinv",
    "pinvh",
    "polar",
    "qr",
    "sinhm",
    "sinm",
    "solve",
    "solve_banded",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "svd",
    "svdvals",
    "tanhm",
    "tanm",
    "toeplitz",
]

# Functions of matrices.
expm = matrix_functions.expm.call
expm_frechet = matrix_functions.expm_frechet
sqrtm = matrix_functions.sqrtm.call
logm = matrix_functions.logm.call
fractional_matrix_power = matrix_functions.fractional_matrix_power.call
cosm = matrix_functions.functions["cosm"]
sinm = matrix_functions.functions["sinm"]
tanm = matrix_functions.functions["tanm"]
coshm = matrix_functions.functions["coshm"]
sinhm = matrix_functions.functions["sinhm"]
tanhm = matrix_functions.functions["tanhm"]

# Systems of equations.
solve = namesakes.solve.call
inv = namesakes.inv.call
pinv = namesakes.pinv.call
pinvh = namesakes.pinvh.call
solve_triangular = triangular.solve_triangular.call
solve_banded = banded.solve_banded.call
solveh_banded = banded.solveh_banded.call
solve_sylvester = matrix_equations.solve_sylvester.call
solve_continuous_lyapunov = matrix_equations.solve_continuous_lyapunov.call
solve_lyapunov = solve_continuous_lyapunov
solve_discrete_lyapunov = matrix_equations.solve_discrete_lyapunov.call

# Numbers that belong to a matrix.
det = namesakes.det.call
norm = namesakes.norm.call

# Factors.
cholesky = triangular.cholesky.call
cho_factor = triangular.cho_factor.call
cho_solve = triangular.cho_solve.call
lu = lu_factors.lu
lu_factor = lu_factors.lu_factor.call
lu_solve = lu_factors.lu_solve.call
qr = decompositions.qr.call
svd = decompositions.svd.call
svdvals = decompositions.svdvals.call
eigh = decompositions.eigh.call
eigvalsh = decompositions.eigvalsh.call
polar = matrix_equations.polar.call

# Matrices of structure.
block_diag = structured.block_diag.fun
toeplitz = structured.toeplitz.fun
hankel = structured.hankel.fun
circulant = structured.circulant.fun
companion = structured.companion.fun

# Docstrings: an example each.


def _show(function: Any, code: str, *result: str) -> None:
    """Add an example to the docstring of a function; ``A`` is [[2, 1], [0, 4]]."""
    lines = ["import numpy as np", "import funcgrad as fg", "from funcgrad.scipy import linalg"]
    if "A" in code:
        lines.append("A = np.array([[2.0, 1.0], [0.0, 4.0]])")
    shown = [f">>> {line}" for line in (*lines, code)]
    function.__doc__ += "\n".join(["", "Examples", "--------", *shown, *result, ""])


_show(
    block_diag,
    "fg.grad(lambda a: linalg.block_diag(a, 5.0).sum())(A)",
    "array([[1., 1.],",
    "       [1., 1.]])",
)
_show(
    cho_factor,
    "fg.grad(lambda a: linalg.cho_factor(a)[0][0, 0])(np.eye(1) * 4.0)",
    "array([[0.25]])",
)
_show(
    cho_solve,
    "fg.grad(lambda b: linalg.cho_solve((np.eye(2) * 2.0, True), b)[1])(np.ones(2))",
    "array([0.  , 0.25])",
)
_show(cholesky, "fg.grad(lambda a: linalg.cholesky(a)[0, 0])(np.eye(1) * 4.0)", "array([[0.25]])")
_show(
    circulant,
    "fg.jacobian(lambda c: linalg.circulant(c)[0])(np.ones(2))",
    "array([[1., 0.],",
    "       [0., 1.]])",
)
_show(
    companion,
    "fg.jacobian(lambda c: linalg.companion(c)[0])(np.array([1.0, 2.0, 3.0]))",
    "array([[ 2., -1.,  0.],",
    "       [ 3.,  0., -1.]])",
)
_show(coshm, "fg.jvp(linalg.coshm, (np.eye(2),), (A,))[1][0] / np.sinh(1.0)", "array([2., 1.])")
_show(cosm, "fg.jvp(linalg.cosm, (np.eye(2),), (A,))[1][0] / np.sin(1.0)", "array([-2., -1.])")
_show(det, "fg.grad(linalg.det)(A)[1]", "array([-1.,  2.])")
_show(eigh, "fg.grad(lambda a: linalg.eigh(a)[0][1])(np.diag([1.0, 3.0]))[1]", "array([0., 1.])")
_show(
    eigvalsh, "fg.grad(lambda a: linalg.eigvalsh(a)[1])(np.diag([1.0, 3.0]))[1]", "array([0., 1.])"
)
_show(expm, "fg.jvp(linalg.expm, (np.eye(2) * 0,), (A,))[1][0]", "array([2., 1.])")
_show(expm_frechet, "linalg.expm_frechet(np.eye(2) * 0, A)[1][0]", "array([2., 1.])")
_show(
    fractional_matrix_power,
    "fg.jvp(lambda a: linalg.fractional_matrix_power(a, 1.5), (np.eye(2),), (A,))[1][0].round(12)",
    "array([3. , 1.5])",
)
_show(hankel, "fg.grad(lambda c: linalg.hankel(c).sum())(np.ones(3))", "array([1., 2., 3.])")
_show(inv, "fg.jvp(linalg.inv, (np.eye(2),), (A,))[1][0]", "array([-2., -1.])")
_show(logm, "fg.jvp(linalg.logm, (np.eye(2),), (A,))[1][0].round(12)", "array([2., 1.])")
_show(
    lu,
    "fg.grad(lambda a: linalg.lu(a)[2][1, 1])(A)",
    "array([[ 0. ,  0. ],",
    "       [-0.5,  1. ]])",
)
_show(
    lu_factor,
    "fg.grad(lambda a: linalg.lu_factor(a)[0][1, 1])(A)",
    "array([[ 0. ,  0. ],",
    "       [-0.5,  1. ]])",
)
_show(
    lu_solve,
    "fg.grad(lambda b: linalg.lu_solve(linalg.lu_factor(A), b)[1])(np.ones(2))",
    "array([0.  , 0.25])",
)
_show(norm, "fg.grad(linalg.norm)(np.array([3.0, 4.0]))", "array([0.6, 0.8])")
_show(pinv, "fg.jvp(linalg.pinv, (np.eye(2),), (A,))[1][0].round(12)", "array([-2., -1.])")
_show(
    pinvh,
    "fg.jvp(linalg.pinvh, (np.eye(2),), (np.diag([1.0, 3.0]),))[1].round(12)",
    "array([[-1.,  0.],",
    "       [ 0., -3.]])",
)
_show(
    polar,
    "fg.jvp(lambda a: linalg.polar(a)[1], (np.eye(2),), (A,))[1].round(12)",
    "array([[2. , 0.5],",
    "       [0.5, 4. ]])",
)
_show(qr, "fg.jvp(lambda x: np.abs(linalg.qr(x)[1]), (A,), (A,))[1][0]", "array([2., 1.])")
_show(sinhm, "fg.jvp(linalg.sinhm, (np.eye(2) * 0,), (A,))[1][0]", "array([2., 1.])")
_show(sinm, "fg.jvp(linalg.sinm, (np.eye(2) * 0,), (A,))[1][0]", "array([2., 1.])")
_show(
    solve,
    "fg.grad(lambda b: linalg.solve(A, b)[1])(np.ones(2))",
    "array([0.  , 0.25])",
)
_show(
    solve_banded,
    "fg.grad(lambda b: linalg.solve_banded((0, 0), np.array([[2.0, 4.0]]), b).sum())(np.ones(2))",
    "array([0.5 , 0.25])",
)
_show(
    solve_continuous_lyapunov,
    "fg.grad(lambda q: linalg.solve_continuous_lyapunov(np.eye(2), q)[0, 0])(A)",
    "array([[0.5, 0. ],",
    "       [0. , 0. ]])",
)
_show(
    solve_discrete_lyapunov,
    "fg.grad(lambda q: linalg.solve_discrete_lyapunov(np.eye(2) / 2, q)[0, 0])(A).round(12)",
    "array([[1.33333333, 0.        ],",
    "       [0.        , 0.        ]])",
)
_show(
    solve_sylvester,
    "fg.grad(lambda q: linalg.solve_sylvester(np.eye(2), np.eye(2), q)[0, 1])(A)",
    "array([[0. , 0.5],",
    "       [0. , 0. ]])",
)
_show(
    solve_triangular,
    "fg.grad(lambda b: linalg.solve_triangular(A, b)[1])(np.ones(2))",
    "array([0.  , 0.25])",
)
_show(
    solveh_banded,
    "fg.grad(lambda b: linalg.solveh_banded(np.array([[2.0, 4.0]]), b).sum())(np.ones(2))",
    "array([0.5 , 0.25])",
)
_show(sqrtm, "fg.jvp(linalg.sqrtm, (np.eye(2),), (A,))[1][0]", "array([1. , 0.5])")
_show(svd, "fg.grad(lambda a: linalg.svd(a)[1][0])(np.diag([1.0, 3.0]))[1]", "array([0., 1.])")
_show(svdvals, "fg.grad(lambda a: linalg.svdvals(a)[0])(np.diag([1.0, 3.0]))[1]", "array([0., 1.])")
_show(tanhm, "fg.jvp(linalg.tanhm, (np.eye(2) * 0,), (A,))[1][0]", "array([2., 1.])")
_show(tanm, "fg.jvp(linalg.tanm, (np.eye(2) * 0,), (A,))[1][0]", "array([2., 1.])")
_show(toeplitz, "fg.grad(lambda c: linalg.toeplitz(c).sum())(np.ones(3))", "array([3., 4., 2.])")

# Functions without a rule -> what to write instead.
_INSTEAD = {
    "cho_solve_banded": "use solveh_banded",
    "cholesky_banded": "use solveh_banded, or cholesky of the whole matrix",
    "convolution_matrix": "use numpy.convolve",
    "eig": "use numpy.linalg.eig",
    "eig_banded": "use eigh of the whole matrix",
    "eigh_tridiagonal": "use eigh of the whole matrix",
    "eigvals": "use numpy.linalg.eigvals",
    "eigvals_banded": "use eigvalsh of the whole matrix",
    "eigvalsh_tridiagonal": "use eigvalsh of the whole matrix",
    "expm_cond": "use norms of expm and expm_frechet",
    "fiedler": "use numpy.abs(a[:, None] - a)",
    "funm": "use expm, logm, sqrtm, cosm and their like, or numpy.linalg.eigh",
    "hessenberg": "use qr, or numpy.linalg.eig",
    "khatri_rao": "use numpy.einsum",
    "ldl": "use cholesky, or lu",
    "lstsq": "use numpy.linalg.lstsq",
    "matmul_toeplitz": "use toeplitz(c, r) @ x",
    "null_space": "use svd",
    "ordqz": "use numpy.linalg.eig",
    "orth": "use svd",
    "orthogonal_procrustes": "use svd",
    "qr_multiply": "use qr",
    "qz": "use numpy.linalg.eig",
    "rq": "use qr of the matrix with its rows reversed",
    "schur": "use numpy.linalg.eig, or eigh of a Hermitian matrix",
    "signm": "use a @ inv(sqrtm(a @ a))",
    "solve_circulant": "use solve(circulant(c), b)",
    "solve_continuous_are": "differentiate the equation itself, with solve_continuous_lyapunov",
    "solve_discrete_are": "differentiate the equation itself, with solve_discrete_lyapunov",
    "solve_toeplitz": "use solve(toeplitz(c, r), b)",
    "subspace_angles": "use svd",
}


offer("scipy.linalg", __all__)
INSTEAD.update({f"scipy.linalg.{name}": instead for name, instead in _INSTEAD.items()})

__getattr__, __dir__ = standing_in(__name__, _linalg, __all__, plain_only)
