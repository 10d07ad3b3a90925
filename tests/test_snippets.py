"""Plain NumPy code, as people write it, under `grad`, `jvp` and each inside of the other.

Each snippet is a function of a matrix (or of a scalar) with a scalar result. The reference for
the first derivative is central differences of the snippet itself; for the second, central
differences of its gradient.
"""

import contextlib

import numpy as np
import pytest
import scipy.special

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import TracerConversionError
from funcgrad.scipy import special

A = np.array([[0.9, 0.3, -0.4], [0.2, 1.1, 0.6], [-0.5, 0.7, 1.3]])
W = np.array([[0.3, -1.2, 0.8], [0.5, 0.1, -0.7], [1.1, 0.4, 0.2]])

SNIPPETS = {
    "sin": lambda x: np.sum(np.sin(x)),
    "multiply": lambda x: np.sum(np.multiply(x, W) * x),
    "operator @": lambda x: np.sum((x @ W @ x) * W),
    "matmul": lambda x: np.sum(np.matmul(x, x) * W),
    "dot": lambda x: np.sum(np.dot(x, W) ** 2),
    "einsum": lambda x: np.einsum("ij,jk,ik->", x, W, x),
    "where": lambda x: np.sum(np.where(x > 0.4, x**2, np.exp(x))),
    "concatenate": lambda x: np.sum(np.concatenate([x, W, x * x], axis=1) ** 3),
    "stack": lambda x: np.sum(np.stack([x[0], np.sin(x[1]), W[0]]) ** 2),
    "maximum": lambda x: np.sum(np.maximum(x, 0.25) * x),
    "exp and log": lambda x: np.sum(np.log(1 + np.exp(x))),
    "mean": lambda x: np.sum(np.mean(x, axis=0) ** 2),
    "var": lambda x: np.sum(np.var(x, axis=1) * W[0]),
    "cumsum": lambda x: np.sum(np.cumsum(x, axis=1) ** 2),
    "cumprod": lambda x: np.sum(np.cumprod(x, axis=0) * W),
    "tensordot": lambda x: np.sum(np.tensordot(x, x, axes=([0], [1])) * W),
    "transpose": lambda x: np.sum(x.T * W * np.transpose(x)),
    "reshape": lambda x: np.sum(x.reshape(-1)[:6].reshape(2, 3) ** 2),
    "add.reduce": lambda x: np.sum(np.add.reduce(x, axis=1) ** 2),
    "outer": lambda x: np.sum(np.outer(x[0], x[1]) * W),
    "clip": lambda x: np.sum(np.clip(x, -0.45, 0.95) * x),
    "array": lambda x: np.sum(fnp.array([x[0, 0], x[1, 1] ** 2])),
    "copy, then assignment": lambda x: copied(x),
    "nan_to_num": lambda x: np.sum(np.nan_to_num(x) ** 2),
    "linspace": lambda x: np.sum(np.linspace(0, x[0, 0], 5) ** 2),
    "meshgrid": lambda x: np.sum(np.multiply(*np.meshgrid(x[0], x[1])) * W),
    "roll": lambda x: np.sum(np.roll(x, 1, axis=0) * x),
    "pad": lambda x: np.sum(np.pad(x, 1) ** 2),
    "diff": lambda x: np.sum(np.diff(x, axis=0) ** 2),
    "take": lambda x: np.sum(np.take(x, [0, 2, 2], axis=1) ** 2),
    "out=": lambda x: written(x),
    "zeros_like + x": lambda x: np.sum((np.zeros_like(x) + x) ** 2),
    "fancy indexing": lambda x: np.sum(x[[0, 0, 2], [1, 1, 0]] ** 2),
    "zeros, then assignment": lambda x: filled(x),
    "inv": lambda x: np.sum(np.linalg.inv(x) * W),
    "solve": lambda x: np.sum(np.linalg.solve(x, W[0] * x[0])),
    "det": lambda x: np.linalg.det(x),
    "cholesky": lambda x: np.sum(np.linalg.cholesky(x @ x.T) * W),
    "norm": lambda x: np.linalg.norm(x) + np.sum(np.linalg.norm(x, axis=1) * W[0]),
    "eigvalsh": lambda x: np.linalg.eigvalsh(x @ x.T)[1],
    "svdvals": lambda x: np.sum(np.linalg.svdvals(x)[:2] * W[0, :2]),
    "fft": lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2 * W),
    "sort": lambda x: np.sum(np.sort(x, axis=None)[:4] ** 2),
    "interp": lambda x: np.sum(
        np.interp(x, [-1.0, 0.15, 0.65, 2.0], W[0, 0] * x[0, 0] * np.arange(4.0))
    ),
    "trapezoid": lambda x: np.sum(np.trapezoid(x**2, axis=0)),
    "gammaln": lambda x: np.sum(scipy.special.gammaln(x**2 + 0.5) * W),
    "erf": lambda x: np.sum(scipy.special.erf(x) * W),
    "logsumexp": lambda x: np.sum(special.logsumexp(x, axis=0) * W[0]),
    "median": lambda x: np.median(x) ** 2 + np.sum(np.median(x, axis=0) ** 2),
    "percentile": lambda x: np.sum(np.percentile(x, [20.0, 70.0], axis=1) ** 2),
    "convolve": lambda x: np.sum(np.convolve(x[0], x[1]) ** 2),
    "kron": lambda x: np.sum(np.kron(x, W) ** 2),
    "polyval": lambda x: np.sum(np.polyval(x[0], x[1]) * W[0]),
    "cross": lambda x: np.sum(np.cross(x[0], x[1]) * x[2]),
    "vectorize": lambda x: np.sum(fnp.vectorize(lambda a: a * a if a > 0 else -a)(x) * W),
    "apply_along_axis": lambda x: np.sum(np.apply_along_axis(lambda r: r * r[0], 1, x) * W),
}
# A function that branches on elements cannot do it for many examples at once.
BRANCHING = {"vectorize"}


def copied(x):
    y = x.copy()
    y[1:] += x[:-1] ** 2
    y[0, 0] = y[2, 2] * 3.0
    return np.sum(y**2)


def written(x):
    y = np.zeros_like(x)
    np.multiply(x, x, out=y)
    return np.sum(y * W)


def filled(x):
    y = fnp.zeros(2)
    y[0] = x[0, 0] ** 2
    y[1] = y[0] * x[1, 1]
    return np.sum(y)


def differences(f, x, v, eps=1e-6):
    return (f(x + eps * v) - f(x - eps * v)) / (2 * eps)


@pytest.fixture
def direction():
    return np.random.default_rng(3).normal(size=A.shape)


@pytest.fixture(params=SNIPPETS)
def snippet(request):
    return SNIPPETS[request.param]


def test_value_is_the_same_traced_or_not(snippet):
    value, _ = fg.value_and_grad(snippet)(A)
    plain = snippet(A)
    assert value == plain
    assert np.asarray(value).dtype == np.asarray(plain).dtype


def test_grad(snippet, direction):
    got = np.sum(fg.grad(snippet)(A) * direction)
    np.testing.assert_allclose(got, differences(snippet, A, direction), rtol=1e-6, atol=1e-8)


def test_jvp(snippet, direction):
    _, got = fg.jvp(snippet, (A,), (direction,))
    np.testing.assert_allclose(got, differences(snippet, A, direction), rtol=1e-6, atol=1e-8)


def test_jvp_of_grad(snippet, direction):
    gradient = fg.grad(snippet)
    _, got = fg.jvp(gradient, (A,), (direction,))
    np.testing.assert_allclose(got, differences(gradient, A, direction), rtol=1e-5, atol=1e-7)


def test_grad_of_jvp(snippet, direction):
    def slope(x):
        return fg.jvp(snippet, (x,), (direction,))[1]

    want = differences(fg.grad(snippet), A, direction)
    np.testing.assert_allclose(fg.grad(slope)(A), want, rtol=1e-5, atol=1e-7)


def test_grad_of_grad(snippet, direction):
    def slope(x):
        return np.sum(fg.grad(snippet)(x) * direction)

    want = differences(fg.grad(snippet), A, direction)
    np.testing.assert_allclose(fg.grad(slope)(A), want, rtol=1e-5, atol=1e-7)


@pytest.fixture
def examples():
    return np.stack([A, 1.1 * A + 0.01 * W])


def unless_branching(request):
    if request.node.callspec.params["snippet"] in BRANCHING:
        return pytest.raises(TracerConversionError, match="truth value")
    return contextlib.nullcontext()


def test_vmap(snippet, examples, request):
    with unless_branching(request):
        got = fg.vmap(snippet)(examples)
        np.testing.assert_allclose(got, [snippet(x) for x in examples], rtol=1e-12)


def test_vmap_of_grad(snippet, examples, request):
    with unless_branching(request):
        got = fg.vmap(fg.grad(snippet))(examples)
        want = [fg.grad(snippet)(x) for x in examples]
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_grad_of_vmap(snippet, examples, request):
    with unless_branching(request):
        got = fg.grad(lambda xs: np.sum(fg.vmap(snippet)(xs) * W[0, :2]))(examples)
        want = [w * fg.grad(snippet)(x) for w, x in zip(W[0], examples, strict=False)]
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_vmap_of_jvp(snippet, examples, direction, request):
    with unless_branching(request):
        got = fg.vmap(lambda x: fg.jvp(snippet, (x,), (direction,))[1])(examples)
        want = [fg.jvp(snippet, (x,), (direction,))[1] for x in examples]
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
