"""Distributions of several numbers, and kernel density estimates."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
import funcgrad.scipy as fg_scipy
from funcgrad.errors import MissingRuleError
from funcgrad.testing import check_grads

scipy_stats = pytest.importorskip("scipy.stats")
stats = fg_scipy.stats

MEAN = np.array([0.5, -1.0, 2.0])
COV = np.array([[2.0, 0.5, 0.25], [0.5, 1.0, -0.25], [0.25, -0.25, 1.5]])
FLAT = np.diag([1.0, 2.0, 0.0])  # of rank 2
POINTS = np.random.default_rng(0).normal(size=(2, 4, 3))
ALPHA = np.array([1.0, 2.0, 3.5])


def outcome(function, *args):
    """Return what `function` returns, or the kind and the words of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return type(error), str(error)


# Normal


@pytest.mark.parametrize("method", ["logpdf", "pdf"])
@pytest.mark.parametrize(
    "args",
    [
        (POINTS[0, 0], MEAN, COV),
        (POINTS[0], MEAN, COV),
        (POINTS, MEAN, COV),
        (POINTS[:1, 0], MEAN, COV),
        (np.zeros((0, 3)), MEAN, COV),
        (1.0,),
        (np.arange(3.0),),
        (np.arange(3.0), 1.0, 2.0),
        (np.arange(3.0), MEAN, 4.0),
        (np.arange(3.0), None, COV),
        (np.arange(3.0), MEAN, np.array([1.0, 2.0, 3.0])),
        ([1, 2], [0, 0], [[2, 0], [0, 2]]),
        (POINTS, MEAN, COV, True),
        ([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]], None, FLAT, True),
    ],
    ids=lambda args: "-".join(str(np.shape(arg)) for arg in args),
)
def test_normal_values_are_scipys(args, method):
    value = getattr(stats.multivariate_normal, method)(*args)
    expected = getattr(scipy_stats.multivariate_normal, method)(*args)
    assert_allclose(value, expected, rtol=1e-12)
    assert type(value) is type(expected)
    assert np.shape(value) == np.shape(expected)


@pytest.mark.parametrize("cov", [COV, FLAT, np.ones((3, 3))])
def test_normal_entropy_is_scipys(cov):
    expected = scipy_stats.multivariate_normal.entropy(MEAN, cov)
    assert_allclose(stats.multivariate_normal.entropy(MEAN, cov), expected, rtol=1e-13)


@pytest.mark.parametrize(
    "args",
    [
        (MEAN, MEAN, FLAT),
        (MEAN, MEAN, -COV),
        (MEAN, MEAN, COV - 3 * np.eye(3), True),
        (MEAN, MEAN, COV[:2]),
        (MEAN, MEAN, np.eye(2)),
        (MEAN, MEAN[None], COV[None]),
        (MEAN, MEAN, COV[None]),
        (MEAN, np.eye(2), COV),
        (MEAN, MEAN, np.nan * COV),
    ],
)
def test_normal_refuses_what_scipy_refuses(args):
    expected = outcome(scipy_stats.multivariate_normal.logpdf, *args)
    assert outcome(stats.multivariate_normal.logpdf, *args) == expected
    assert isinstance(expected, tuple)


def symmetric(method):
    """Return a method of the symmetric part of `cov`, in which no half is left unread."""

    def of_symmetric(x, mean, cov):
        return method(x, mean, 0.5 * (cov + cov.T))

    return of_symmetric


def test_normal_derivatives():
    for x in (POINTS[0, 0], POINTS[0]):
        check_grads(symmetric(stats.multivariate_normal.logpdf), (x, MEAN, COV), order=2)
    check_grads(symmetric(stats.multivariate_normal.pdf), (POINTS[0], MEAN, COV), order=1)
    entropy = symmetric(lambda x, mean, cov: stats.multivariate_normal.entropy(mean, cov))
    check_grads(lambda cov: entropy(None, MEAN, cov), (COV,), order=2)
    check_grads(stats.multivariate_normal.logpdf, (POINTS[0], MEAN, np.array(2.0)), order=2)


def test_normal_reads_the_lower_triangle_as_scipy_does():
    lopsided = np.array([[2.0, 9.0], [0.5, 3.0]])
    x = np.array([0.3, -0.4])
    value, pullback = fg.vjp(lambda cov: stats.multivariate_normal.logpdf(x, None, cov), lopsided)
    expected = scipy_stats.multivariate_normal.logpdf(x, None, lopsided)
    assert_allclose(value, expected, rtol=1e-13)
    batch = fg.vmap(lambda cov: stats.multivariate_normal.logpdf(x, None, cov))(lopsided[None])
    assert_allclose(batch, [expected], rtol=1e-13)
    (gradient,) = pullback(1.0)
    assert_allclose(gradient, gradient.T)


def test_normal_gradient_in_the_covariance_is_symmetric():
    # (S**-1 d d' S**-1 - S**-1) / 2 for the deviation d, here with fractions by hand.
    cov = np.array([[2.0, 1.0], [1.0, 2.0]])
    gradient = fg.grad(stats.multivariate_normal.logpdf, 2)(np.array([3.0, 0.0]), np.zeros(2), cov)
    assert_allclose(gradient, [[5 / 3, -5 / 6], [-5 / 6, 1 / 6]], rtol=1e-14)


def test_normal_gradient_at_a_multiple_of_the_identity():
    gradient = fg.grad(stats.multivariate_normal.logpdf, 2)(MEAN, 0 * MEAN, 2 * np.eye(3))
    assert_allclose(gradient, (np.outer(MEAN, MEAN) / 4 - np.eye(3) / 2) / 2, rtol=1e-14)


def test_normal_of_lower_rank_has_the_gradient_of_its_subspace():
    def logpdf(x, cov):
        return stats.multivariate_normal.logpdf(x, np.zeros(3), cov, True)

    def on_plane(x, cov):
        return stats.multivariate_normal.logpdf(x, np.zeros(2), cov)

    x = np.array([1.0, -0.5, 0.0])
    x_bar, cov_bar = fg.grad(logpdf, (0, 1))(x, FLAT)
    expected = fg.grad(on_plane, (0, 1))(x[:2], FLAT[:2, :2])
    assert_allclose(x_bar[:2], expected[0], rtol=1e-12)
    assert_allclose(cov_bar[:2, :2], expected[1], rtol=1e-12)
    assert logpdf(np.array([1.0, -0.5, 0.1]), FLAT) == -np.inf


def test_normal_under_vmap():
    covs = np.stack([COV, 2 * COV, np.eye(3)])
    points = POINTS[0, :3]
    got = fg.vmap(stats.multivariate_normal.logpdf, in_axes=(0, None, 0))(points, MEAN, covs)
    loop = [
        scipy_stats.multivariate_normal.logpdf(x, MEAN, cov)
        for x, cov in zip(points, covs, strict=True)
    ]
    assert_allclose(got, loop, rtol=1e-12)
    slopes = fg.vmap(fg.grad(stats.multivariate_normal.logpdf, 1), in_axes=(0, None, None))
    assert_allclose(
        slopes(points, MEAN, COV), np.linalg.solve(COV, (points - MEAN).T).T, rtol=1e-12
    )


def test_normal_can_be_frozen():
    ours = stats.multivariate_normal(MEAN, COV)
    scipys = scipy_stats.multivariate_normal(MEAN, COV)
    assert_allclose(ours.logpdf(POINTS), scipys.logpdf(POINTS), rtol=1e-12)
    assert_allclose(ours.pdf(POINTS), scipys.pdf(POINTS), rtol=1e-12)
    assert_allclose(ours.entropy(), scipys.entropy(), rtol=1e-12)
    assert_array_equal(ours.mean, MEAN)
    assert_array_equal(ours.cov, COV)
    assert ours.dim == 3
    assert_array_equal(ours.rvs(2, random_state=1), scipys.rvs(2, random_state=1))
    assert stats.multivariate_normal(None, FLAT, allow_singular=True).pdf([0, 0, 1.0]) == 0
    with pytest.raises(np.linalg.LinAlgError, match="allow_singular"):
        stats.multivariate_normal(MEAN, FLAT)
    slope = fg.grad(lambda mean: stats.multivariate_normal(mean, COV).logpdf(MEAN))(MEAN + 1)
    assert_allclose(slope, -np.linalg.solve(COV, np.ones(3)), rtol=1e-12)


def test_normal_with_a_covariance_object():
    cov = scipy_stats.Covariance.from_diagonal([1.0, 2.0, 3.0])
    value = stats.multivariate_normal.logpdf(POINTS, MEAN, cov)
    assert_array_equal(value, scipy_stats.multivariate_normal.logpdf(POINTS, MEAN, cov))
    with pytest.raises(MissingRuleError, match=r"multivariate_normal\.logpdf"):
        fg.grad(stats.multivariate_normal.logpdf)(MEAN, MEAN, cov)


# Dirichlet


@pytest.mark.parametrize(
    ("x", "alpha"),
    [
        (np.array([0.2, 0.3, 0.5]), ALPHA),
        (np.array([0.2, 0.3]), ALPHA),
        ([0.2, 0.3, 0.5], [1, 2, 3]),
        (np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]]), ALPHA),
        (np.array([[0.2, 0.5], [0.3, 0.1]]), ALPHA),
        (np.array([0.0, 0.5, 0.5]), ALPHA),
        (np.array([0.0, 0.5, 0.5]), ALPHA + 1),
        (np.array([0.0, 0.5, 0.5]), ALPHA / 2),
        (np.array([0.1, 0.5, 0.5]), ALPHA),
        (np.array([-0.1, 0.6, 0.5]), ALPHA),
        (np.array([1.5, -0.0, 0.0]), ALPHA),
        (np.ones(3) / 3, [1, 0, 1]),
        (np.ones(3) / 3, np.ones((1, 3))),
        (np.ones(5) / 5, ALPHA),
        (np.ones((2, 2, 2)) / 3, ALPHA),
    ],
)
def test_dirichlet_is_scipys(x, alpha):
    for method in ("logpdf", "pdf"):
        value = outcome(getattr(stats.dirichlet, method), x, alpha)
        expected = outcome(getattr(scipy_stats.dirichlet, method), x, alpha)
        if isinstance(expected, tuple):
            assert value == expected
        else:
            assert_allclose(value, expected, rtol=1e-13)
            assert np.shape(value) == np.shape(expected)


@pytest.mark.parametrize("method", ["mean", "var", "entropy"])
def test_dirichlet_moments_are_scipys(method):
    expected = getattr(scipy_stats.dirichlet, method)(ALPHA)
    assert_allclose(getattr(stats.dirichlet, method)(ALPHA), expected, rtol=1e-13)
    assert_allclose(getattr(stats.dirichlet(ALPHA), method)(), expected, rtol=1e-13)
    check_grads(getattr(stats.dirichlet, method), (ALPHA,), order=2)


def test_dirichlet_derivatives():
    check_grads(stats.dirichlet.logpdf, (np.array([0.2, 0.3]), ALPHA), order=2)
    check_grads(stats.dirichlet.pdf, (np.array([[0.2, 0.5], [0.3, 0.1]]), ALPHA), order=2)
    # (alpha - 1) / x where all shares are free
    slope = fg.grad(stats.dirichlet.logpdf)(np.array([0.25, 0.25, 0.5]), ALPHA)
    assert_allclose(slope, [0, 4, 5], rtol=1e-14)


def test_dirichlet_under_vmap():
    x = np.array([[0.2, 0.3, 0.5], [0.5, 0.1, 0.4]])
    assert_allclose(
        fg.vmap(stats.dirichlet.logpdf, in_axes=(0, None))(x, ALPHA),
        scipy_stats.dirichlet.logpdf(x.T, ALPHA),
        rtol=1e-13,
    )
    with pytest.raises(ValueError, match="normal simplex"):
        fg.vmap(stats.dirichlet.logpdf, in_axes=(0, None))(1.1 * x, ALPHA)


# Multinomial


@pytest.mark.parametrize(
    ("x", "n", "p"),
    [
        ([1, 2, 3], 6, [0.2, 0.3, 0.5]),
        ([1, 2, 3], 5, [0.2, 0.3, 0.5]),
        ([[1, 2, 3], [0, 0, 6]], 6, [0.2, 0.3, 0.5]),
        ([[1, 2, 3], [0, 0, 5]], [6, 5], [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]),
        ([1, 2, 3], 6, [-0.2, 0.7, 0.5]),
        ([1.5, 1.5, 3.0], 6, [0.2, 0.3, 0.5]),
        ([0, 0], -1, [0.5, 0.5]),
        ([0, 2], 2, [0.0, 1.0]),
        ([1, 1], 2, [0.0, 1.0]),
        (2, 2, [0.5, 0.5]),
        ([1, 1], 2, [0.2, 0.3, 0.5]),
    ],
)
def test_multinomial_is_scipys(x, n, p):
    for method in ("logpmf", "pmf"):
        value = outcome(getattr(stats.multinomial, method), x, n, p)
        expected = outcome(getattr(scipy_stats.multinomial, method), x, n, p)
        if isinstance(expected, tuple):
            assert value == expected
        else:
            assert_allclose(value, expected, rtol=1e-13)
            assert np.shape(value) == np.shape(expected)


def test_multinomial_probabilities_that_do_not_add_up_are_completed():
    value = stats.multinomial.logpmf([1, 2, 3], 6, [0.2, 0.3, 0.9])
    assert value == stats.multinomial.logpmf([1, 2, 3], 6, [0.2, 0.3, 0.5])


def test_multinomial_derivative_is_counts_by_probabilities():
    p = np.array([0.25, 0.25, 0.5])
    x = np.array([1, 2, 3])
    assert_allclose(fg.grad(lambda p: stats.multinomial.logpmf(x, 6, p))(p), x / p, rtol=1e-14)
    logits = np.array([0.1, 0.5, -0.3])

    def of_logits(logits):
        weights = np.exp(logits)
        return stats.multinomial.logpmf(x, 6, weights / np.sum(weights))

    check_grads(of_logits, (logits,), order=2)


def test_multinomial_impossible_counts_have_derivative_0():
    slope = fg.grad(lambda p: stats.multinomial.logpmf([1, 1, 1], 6, p))(np.array([0.2, 0.3, 0.5]))
    assert_array_equal(slope, 0)


def test_multinomial_under_vmap():
    x = np.array([[1, 2, 3], [0, 0, 6], [1, 1, 1]])
    p = np.array([0.25, 0.25, 0.5])
    got = fg.vmap(lambda x: stats.multinomial.logpmf(x, 6, p))(x)
    assert_allclose(got, scipy_stats.multinomial.logpmf(x, 6, p), rtol=1e-13)
    assert_allclose(stats.multinomial.mean(6, p), 6 * p)


# Kernel density estimates

SAMPLE = np.random.default_rng(1).normal(size=(2, 6))
WEIGHTS = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0])


@pytest.mark.parametrize("bw_method", [None, "scott", "silverman", 0.7, lambda kde: 0.5])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("sample", [SAMPLE, SAMPLE[0]])
def test_kde_is_scipys(sample, weights, bw_method):
    ours = stats.gaussian_kde(sample, bw_method, weights)
    scipys = scipy_stats.gaussian_kde(sample, bw_method, weights)
    points = np.atleast_2d(sample)[:, :4] + 0.3
    for method in ("evaluate", "pdf", "logpdf"):
        expected = getattr(scipys, method)(points)
        assert_allclose(getattr(ours, method)(points), expected, rtol=1e-12)
    assert_allclose(ours(points), scipys(points), rtol=1e-12)
    assert_allclose(ours.factor, scipys.factor, rtol=1e-14)
    assert_allclose(ours.neff, scipys.neff, rtol=1e-14)
    assert_allclose(ours.covariance, scipys.covariance, rtol=1e-13)
    mean, cov = np.zeros(ours.d), np.eye(ours.d)
    expected = scipys.integrate_gaussian(mean, cov)
    assert_allclose(ours.integrate_gaussian(mean, cov), expected, rtol=1e-12)
    assert_allclose(ours.integrate_kde(ours), scipys.integrate_kde(scipys), rtol=1e-12)
    if ours.d == 1:
        expected = scipys.integrate_box_1d(-1.0, 2.0)
        assert_allclose(ours.integrate_box_1d(-1.0, 2.0), expected, rtol=1e-12)


def test_kde_derivatives():
    def logpdf(sample, weights, width, points):
        return stats.gaussian_kde(sample, width, weights).logpdf(points)

    points = SAMPLE[:, :2] + 0.3
    check_grads(logpdf, (SAMPLE, WEIGHTS, np.array(0.7), points), order=1)
    check_grads(lambda x: stats.gaussian_kde(SAMPLE[0])(x), (np.array([0.1, 0.5]),), order=2)


def test_kde_far_away_does_not_underflow():
    value, slope = fg.value_and_grad(lambda x: stats.gaussian_kde([-1.0, 1.0], 1.0).logpdf(x)[0])(
        90.0
    )
    # By the nearer of the kernels, of variance 2; the other is negligible.
    assert_allclose(value, -(89.0**2) / 4 - np.log(2 * np.sqrt(4 * np.pi)), rtol=1e-13)
    assert_allclose(slope, -89.0 / 2, rtol=1e-13)


def test_kde_under_vmap():
    kde = stats.gaussian_kde(SAMPLE)
    got = fg.vmap(lambda point: kde.logpdf(point)[0], in_axes=1)(SAMPLE)
    assert_allclose(got, kde.logpdf(SAMPLE), rtol=1e-12)


@pytest.mark.parametrize(
    "args",
    [([1.0],), (SAMPLE, None, WEIGHTS[:3]), (SAMPLE, None, WEIGHTS[None]), (SAMPLE, "wide")],
)
def test_kde_refuses_what_scipy_refuses(args):
    expected = outcome(scipy_stats.gaussian_kde, *args)
    assert outcome(stats.gaussian_kde, *args) == expected


def test_kde_points_of_another_dimension():
    with pytest.raises(ValueError, match="points have dimension 3, dataset has dimension 2"):
        stats.gaussian_kde(SAMPLE)(np.ones((3, 2)))
