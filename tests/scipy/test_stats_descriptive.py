"""Functions of samples: traced values give what SciPy gives, and the right derivatives."""

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

X = np.random.default_rng(0).uniform(0.5, 2.0, size=(4, 3))
Y = np.random.default_rng(1).uniform(0.5, 2.0, size=(4, 3))
CALLS = [
    ("sem", {}),
    ("sem", {"axis": 1, "ddof": 0}),
    ("sem", {"axis": None}),
    ("sem", {"keepdims": True}),
    ("zscore", {}),
    ("zscore", {"axis": None, "ddof": 1}),
    ("variation", {}),
    ("variation", {"axis": 1, "ddof": 1, "keepdims": True}),
    ("entropy", {}),
    ("entropy", {"qk": Y}),
    ("entropy", {"base": 2, "axis": 1}),
    ("entropy", {"axis": -1, "keepdims": True}),
    ("gmean", {}),
    ("gmean", {"axis": None}),
    ("gmean", {"weights": Y}),
    ("gmean", {"axis": 1, "weights": Y}),
    ("hmean", {}),
    ("hmean", {"axis": 1, "weights": Y}),
    ("moment", {}),
    ("moment", {"order": 3}),
    ("moment", {"order": 2, "axis": None}),
    ("moment", {"order": [1, 2]}),
    ("moment", {"order": 2, "center": 1.0, "axis": 1}),
    ("skew", {}),
    ("skew", {"axis": 1, "bias": False}),
    ("skew", {"axis": None}),
    ("kurtosis", {}),
    ("kurtosis", {"bias": False}),
    ("kurtosis", {"axis": 1, "fisher": False}),
]

each = pytest.mark.parametrize(("name", "kwds"), CALLS, ids=str)


def call(name, kwds):
    return lambda x: getattr(stats, name)(x, **kwds)


@each
def test_plain_values_are_scipys(name, kwds):
    assert_array_equal(call(name, kwds)(X), getattr(scipy_stats, name)(X, **kwds))


@each
def test_traced_values_are_scipys(name, kwds):
    value, _ = fg.vjp(call(name, kwds), X)
    expected = getattr(scipy_stats, name)(X, **kwds)
    assert_allclose(value, expected, rtol=1e-12, atol=1e-15)
    assert np.shape(value) == np.shape(expected)


@each
def test_derivatives_are_those_of_differences(name, kwds):
    check_grads(call(name, kwds), (X,), order=2)


@each
def test_vmap_is_a_loop(name, kwds):
    batch = np.stack([X, Y])
    loop = [getattr(scipy_stats, name)(x, **kwds) for x in batch]
    assert_allclose(fg.vmap(call(name, kwds))(batch), loop, rtol=1e-12, atol=1e-15)


def test_entropy_relative_to_others_has_a_derivative_in_both():
    check_grads(stats.entropy, (X, Y), order=2)


def test_entropy_of_what_is_impossible():
    # -(1 + log p) but for the constant that normalizing takes away; infinite at 0.
    p = np.array([0.0, 0.5, 0.5])
    value, _ = fg.vjp(stats.entropy, p)
    assert_allclose(value, np.log(2), rtol=1e-15)


def test_other_policies_for_nan_are_refused():
    with pytest.raises(
        MissingRuleError, match=r"scipy\.stats\.sem has no rule for nan_policy='omit'"
    ):
        fg.grad(lambda x: stats.sem(x, nan_policy="omit"))(X[:, 0])
    assert stats.sem([1.0, np.nan, 3.0], nan_policy="omit") == 1.0


# Ranks and modes

TIES = np.array([[3.0, 1.0, 3.0, 2.0], [1.0, 1.0, 2.0, 2.0]])


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_ranks_are_scipys_and_carry_no_derivative(method, axis):
    expected = scipy_stats.rankdata(TIES, method, axis=axis)
    value, slope = fg.value_and_grad(
        lambda x: np.sum(x) * 0 + np.sum(stats.rankdata(x, method, axis=axis))
    )(TIES)
    assert value == np.sum(expected)
    assert_array_equal(slope, 0)
    got = fg.vmap(lambda x: stats.rankdata(x, method, axis=axis))(np.stack([TIES, -TIES]))
    assert_array_equal(got[1], scipy_stats.rankdata(-TIES, method, axis=axis))


@pytest.mark.parametrize(
    "kwds", [{}, {"axis": 1}, {"axis": None}, {"axis": 1, "keepdims": True}], ids=str
)
def test_mode_is_scipys(kwds):
    expected = scipy_stats.mode(TIES, **kwds)
    value, _ = fg.vjp(lambda x: stats.mode(x, **kwds).mode, TIES)
    assert_array_equal(value, expected.mode)
    assert np.shape(value) == np.shape(expected.mode)
    count = fg.vmap(lambda x: stats.mode(x, **kwds).count)(np.stack([TIES, TIES]))
    assert_array_equal(count[1], expected.count)
    assert_array_equal(stats.mode(TIES, **kwds), expected)


def test_elements_equal_to_the_mode_share_its_derivative():
    x = np.array([1.0, 2.0, 5.0, 2.0])

    def twice(x):
        return 2 * stats.mode(x).mode

    assert_array_equal(fg.grad(twice)(x), [0, 1, 0, 1])
    _, tangent = fg.jvp(twice, (x,), (np.array([1.0, 2.0, 4.0, 8.0]),))
    assert tangent == 10.0


def test_mode_under_vmap_of_grad():
    slopes = fg.vmap(fg.grad(lambda x: stats.mode(x).mode))(TIES)
    assert_array_equal(slopes, [[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]])


# Samples at which there is little to say

ODD = {
    "zero": [0.0, 1.0, 2.0],
    "negative": [-1.0, 2.0, 3.0],
    "equal": [2.0, 2.0, 2.0],
    "nan": [np.nan, 1.0, 2.0],
    "infinite": [np.inf, 1.0, 2.0],
    "zeros": [0.0, 0.0, 0.0],
    "one": [3.0],
    "none": [],
}
FUNCTIONS = ["sem", "zscore", "variation", "entropy", "gmean", "hmean", "skew", "kurtosis"]


def warned_by(function, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = function(x)
    return out, {str(w.message) for w in caught}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_traced_values_and_warnings_are_scipys(name, kind, dtype):
    x = np.array(ODD[kind], dtype)
    expected, warned = warned_by(getattr(scipy_stats, name), x)
    got, more = warned_by(lambda x: fg.vjp(getattr(stats, name), x)[0], x)
    assert_array_equal(got, expected)
    assert np.asarray(got).dtype == np.asarray(expected).dtype
    assert more <= warned


def test_entropy_to_a_base_stays_float32():
    x = np.array([1.0, 2.0, 4.0], np.float32)
    value = fg.vjp(lambda x: stats.entropy(x, base=2), x)[0]
    assert value == scipy_stats.entropy(x, base=2)
    assert value.dtype == np.float32


@pytest.mark.filterwarnings("ignore:The harmonic mean is only defined")
def test_harmonic_mean_of_negative_numbers_has_no_derivative():
    assert np.all(np.isnan(fg.grad(stats.hmean)(np.array([-1.0, 2.0]))))
    assert np.isnan(fg.vmap(stats.hmean)(np.array([[-1.0, 2.0]]))[0])
