"""Distributions of one number: SciPy's values, derivatives, the edges of supports, arguments."""

import copy
import pickle
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

INF = np.inf
# For each distribution, shape parameters: usual ones first, then at and beyond their bounds.
CONTINUOUS = {
    "beta": [(2.0, 3.0), (1.0, 1.0), (0.5, 0.5), (1.0, 3.0), (20.0, 5.0), (2.0, 0.0)],
    "cauchy": [()],
    "chi2": [(3.0,), (1.0,), (2.0,)],
    "expon": [()],
    "f": [(3.0, 6.0), (1.0, 1.0), (2.0, 5.0), (6.0, 9.0)],
    "gamma": [(2.3,), (1.0,), (0.5,), (50.0,), (-1.0,)],
    "gennorm": [(2.6,), (1.0,), (0.7,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "halfcauchy": [()],
    "halfnorm": [()],
    "invgamma": [(4.5,), (0.5,), (1.5,)],
    "laplace": [()],
    "logistic": [()],
    "lognorm": [(0.7,), (2.0,)],
    "norm": [()],
    "pareto": [(2.5,), (1.0,), (0.5,)],
    "rayleigh": [()],
    "skewnorm": [(2.0,), (0.0,), (-3.0,)],
    "t": [(3.5,), (1.0,), (1e8,), (INF,), (-1.0,)],
    "truncnorm": [(-1.0, 2.0), (1.0, 3.0), (-3.0, -1.0), (-INF, 0.5), (2.0, INF), (2.0, 1.0)],
    "uniform": [()],
    "vonmises": [(1.5,), (0.0,), (40.0,)],
    "weibull_min": [(2.5,), (1.0,), (0.5,)],
    "wrapcauchy": [(0.4,), (0.9,), (1.2,)],
}
DISCRETE = {
    "bernoulli": [(0.3,), (0.0,), (1.0,), (1.1,)],
    "betabinom": [(5, 1.5, 2.0), (9, 0.5, 0.5), (5, -1.0, 1.0)],
    "binom": [(5, 0.3), (17, 0.6), (5, 0.0), (5, 1.0), (0, 0.5), (2.5, 0.5)],
    "geom": [(0.3,), (1.0,), (0.0,)],
    "nbinom": [(3.5, 0.4), (2, 0.5), (1.0, 1.0)],
    "poisson": [(3.0,), (0.5,), (20.0,), (0.0,), (-1.0,)],
}
ALL = {**CONTINUOUS, **DISCRETE}
POINTS = np.array(
    [-40, -3, -1, -0.7, -1e-3, 0, 1e-3, 0.25, 0.5, 0.9, 1, 1.5, 2, 3, 6, 2 * np.pi, 7.5, 40, np.nan]
)
COUNTS = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 17.0, np.nan])
SHARES = np.array([-0.1, 0.0, 1e-3, 0.2, 0.5, 0.6, 0.97, 1.0, 1.1, np.nan])
OF_SHARES = ("ppf", "isf")
OF_PARAMETERS = ("mean", "var", "std", "entropy")
PROBABILITIES = ("cdf", "sf", "logcdf", "logsf")

each = pytest.mark.parametrize("name", ALL)


def densities(name):
    return ("logpdf", "pdf") if name in CONTINUOUS else ("logpmf", "pmf")


def density(name):
    return getattr(getattr(stats, name), densities(name)[0])


# Without a formula, where SciPy answers, with plain values only.
MISSING = {("vonmises", m) for m in (*PROBABILITIES, *OF_SHARES, "mean", "var", "std")}
MISSING |= {("skewnorm", m) for m in (*PROBABILITIES, *OF_SHARES, "entropy")}
MISSING |= {("wrapcauchy", m) for m in ("mean", "var", "std")}
MISSING |= {("betabinom", m) for m in (*PROBABILITIES, "entropy")}
MISSING |= {("binom", "entropy"), ("nbinom", "entropy")}
MISSING |= {(n, m) for n in set(DISCRETE) - {"bernoulli"} for m in OF_SHARES}


def has_formula(name, method):
    """Return the methods that `method` stands for, without those that have no formula."""
    chosen = densities(name) if method == "density" else (method,)
    return [m for m in chosen if (name, m) not in MISSING]


def pairs(names, *methods):
    """Parametrize a test with the functions that have a formula."""
    chosen = [(n, m) for n in names for m in methods if has_formula(n, m)]
    return pytest.mark.parametrize(("name", "method"), chosen)


def units(name):
    """Return `loc`, and `scale` where there is one."""
    return (0.5, 2.0) if name in CONTINUOUS else (1.0,)


def points_of(name, method):
    if method in OF_SHARES:
        return SHARES
    return POINTS if name in CONTINUOUS else COUNTS


def inside(name):
    """Return two points in the support, for the first parameters and the units above."""
    if name == "bernoulli":
        return np.array([1.0, 2.0])
    if name in DISCRETE:
        return np.array([2.0, 4.0])
    return getattr(scipy_stats, name).ppf(
        np.array([0.22, 0.63]), *CONTINUOUS[name][0], *units(name)
    )


# Values


def scipys(name, method, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if (name, method) == ("halfnorm", "logsf"):  # SciPy's own underflows
            return np.minimum(np.log(2) + scipy_stats.norm.logsf(*args), 0)
        value = getattr(getattr(scipy_stats, name), method)(*args)
        if name == "bernoulli" and method in OF_SHARES and args[1] > 1:  # some versions have -1 too
            return np.full_like(value, np.nan)
        if method == "logcdf":  # SciPy has 0 for invalid parameters of counts, where cdf is NaN
            value = np.where(np.isnan(getattr(scipy_stats, name).cdf(*args)), np.nan, value)
        return value


@pairs(ALL, "density", *PROBABILITIES, *OF_SHARES)
def test_values_are_scipys(name, method):
    for chosen in has_formula(name, method):
        for shapes in ALL[name]:
            for more in ((), units(name)):
                x = points_of(name, chosen)
                value = getattr(getattr(stats, name), chosen)(x, *shapes, *more)
                expected = scipys(name, chosen, x, *shapes, *more)
                # SciPy has logcdf by the logarithm of cdf, and so to an absolute 1e-16.
                atol = 1e-15 if chosen.startswith("log") else 1e-300
                assert_allclose(value, expected, rtol=1e-12, atol=atol, err_msg=f"{shapes} {more}")


@pairs(ALL, *OF_PARAMETERS)
def test_moments_and_entropy_are_scipys(name, method):
    for shapes in ALL[name]:
        if (name, method) in {("geom", "entropy"), ("truncnorm", "entropy")} and (
            INF in np.abs(shapes) or 1.0 in shapes
        ):
            continue  # finite, of which SciPy makes NaN
        for more in ((), units(name)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = getattr(getattr(scipy_stats, name), method)(*shapes, *more)
            value = getattr(getattr(stats, name), method)(*shapes, *more)
            assert_allclose(value, expected, rtol=1e-11, atol=1e-14, err_msg=f"{shapes} {more}")


@pytest.mark.parametrize("name", CONTINUOUS)
def test_infinite_points_have_density_0(name):
    distribution = getattr(stats, name)
    assert_array_equal(distribution.pdf([-INF, INF], *CONTINUOUS[name][0]), [0, 0])
    assert_array_equal(distribution.logpdf([-INF, INF], *CONTINUOUS[name][0]), [-INF, -INF])


@pytest.mark.parametrize("name", sorted(set(CONTINUOUS) - {"skewnorm", "vonmises"}))
def test_isf_is_the_inverse_of_sf_far_out(name):
    distribution, shapes = getattr(stats, name), CONTINUOUS[name][0]
    far = 1e-3 if name in ("beta", "truncnorm", "uniform", "wrapcauchy") else 1e-12
    assert_allclose(distribution.sf(distribution.isf(far, *shapes), *shapes), far, rtol=1e-9)


@each
def test_a_scalar_gives_a_numpy_scalar(name):
    shapes = ALL[name][0]
    assert type(density(name)(1.0, *shapes)) is np.float64
    assert type(density(name)(-50.0, *shapes)) is np.float64
    assert type(getattr(stats, name).mean(*shapes)) is np.float64


@pytest.mark.parametrize("name", CONTINUOUS)
def test_float32_stays_float32(name):
    shapes = [np.float32(v) for v in CONTINUOUS[name][0]]
    x = np.array([0.5, 1.5], np.float32)
    for method in ("logpdf", "pdf"):
        assert getattr(getattr(stats, name), method)(x, *shapes).dtype == np.float32
        assert getattr(getattr(stats, name), method)(x, *shapes, 0.25, 2).dtype == np.float32


def test_python_numbers_take_the_dtype_beside_them():
    assert stats.norm.logpdf(1.0, np.zeros(2, np.float32), 2).dtype == np.float32
    assert stats.gamma.cdf(np.float32(1.0), 2).dtype == np.float32
    assert stats.norm.logpdf(np.array([1, 2])).dtype == np.float64


@each
def test_parameters_broadcast(name):
    shapes = ALL[name][0]
    wide = [np.full((3, 1, 1), v) for v in shapes]
    more = [np.full((2, 1), v) for v in units(name)]
    value = density(name)(inside(name), *wide, *more)
    assert value.shape == ((3, 2, 2) if shapes else (2, 2))
    alone = density(name)(inside(name), *shapes, *units(name))
    assert_array_equal(value, np.broadcast_to(alone, value.shape))


def test_poisson_entropy_is_continuous_where_the_series_takes_over():
    # By summation with 40 digits.
    assert_allclose(stats.poisson.entropy(399.0), 4.4132101236186003, rtol=1e-12)
    assert_allclose(stats.poisson.entropy(401.0), 4.4157111731167883, rtol=1e-12)


# Derivatives


@pairs(CONTINUOUS, "density", *PROBABILITIES, *OF_SHARES, *OF_PARAMETERS)
def test_derivatives_are_those_of_differences(name, method):
    distribution = getattr(stats, name)
    parameters = [np.array(v) for v in CONTINUOUS[name][0]]
    parameters += [np.array(0.5), np.array([2.0, 2.5])]
    for chosen in has_formula(name, method):
        function = getattr(distribution, chosen)
        first = {"ppf": (np.array([0.22, 0.63]),), "isf": (np.array([0.22, 0.63]),)}
        arguments = () if chosen in OF_PARAMETERS else first.get(chosen, (inside(name),))
        if (name, chosen) in UNDEFINED:  # whatever the parameters are
            assert not np.isfinite(function(*parameters)).any()
        else:
            check_grads(function, (*arguments, *parameters), order=2)


UNDEFINED = {(n, m) for n in ("cauchy", "halfcauchy") for m in ("mean", "var", "std")}


@pairs(DISCRETE, "density", *PROBABILITIES, *OF_PARAMETERS)
def test_derivatives_in_parameters_of_counts(name, method):
    shapes = DISCRETE[name][0]
    counts = 1 if name in ("binom", "betabinom") else 0  # parameters that are integers
    fixed, free = shapes[:counts], tuple(np.array(v) for v in shapes[counts:])
    k = inside(name) - 1
    if name == "bernoulli" and method in PROBABILITIES:
        k = np.zeros(2)
    for chosen in has_formula(name, method):
        function = getattr(getattr(stats, name), chosen)
        if chosen in OF_PARAMETERS:
            check_grads(lambda *p, f=function: f(*fixed, *p), free, order=2)
        else:
            check_grads(lambda *p, f=function: f(k, *fixed, *p), free, order=2)


@pytest.mark.parametrize(
    ("name", "method", "arguments", "expected"),
    # Differences of mpmath's functions, with 50 digits.
    [
        (
            "beta",
            "cdf",
            (0.3, 2.5, 3.25),
            (1.712156016481254, -0.1937859377237473, 0.1111402974287407),
        ),
        (
            "beta",
            "logpdf",
            (1.25, 2.5, 3.25, 0.5, 2.0),
            (0.2, -0.02425552258903284, 0.172735830754022, -0.2, -0.575),
        ),
        ("chi2", "sf", (2.5, 3.0), (-0.1807223926681813, 0.1836226641187239)),
        (
            "f",
            "cdf",
            (0.75, 3.0, 5.0),
            (0.4637197662691847, -0.03757306931393576, 0.007615168545856135),
        ),
        ("gamma", "logcdf", (1.75, 2.25), (0.6908442949724444, -0.6537395647111309)),
        ("gamma", "ppf", (0.375, 2.25), (3.071497479563433, 0.8793649956164949)),
        ("gennorm", "cdf", (0.75, 2.5), (0.3462225315066173, 0.02352884213019568)),
        (
            "nbinom",
            "logpmf",
            (2.0, 3.5, 0.375),
            (0.2183051842375484, -0.4728927450752183, 6.133333333333333),
        ),
        ("norm", "ppf", (0.375, 1.0, 2.0), (5.274327778564999, 1.0, -0.3186393639643752)),
        ("skewnorm", "logpdf", (-0.75, 2.0), (4.627354333245086, -1.454007874966907)),
        ("t", "cdf", (0.75, 3.5), (0.2658551561206778, 0.006268013975318063)),
        (
            "t",
            "logpdf",
            (0.75, 3.5, 0.25, 1.5),
            (-0.2769230769230769, 0.02383381170946143, 0.2769230769230769, -0.5743589743589744),
        ),
        (
            "truncnorm",
            "logcdf",
            (0.25, -1.0, 2.0),
            (0.8786891831983374, -0.2542767786080051, -0.06595568255870467),
        ),
        ("truncnorm", "logpdf", (6.5, 6.0, 7.0), (-6.5, 6.166481833850074, -0.009270930471794417)),
        (
            "truncnorm",
            "ppf",
            (0.375, -1.0, 2.0),
            (2.05956127575588, 0.3804947570276717, 0.05093991364273337),
        ),
        ("vonmises", "logpdf", (0.75, 1.5), (-1.022458140035001, 0.1355556300425302)),
        ("wrapcauchy", "cdf", (4.0, 0.375), (0.08386616312832459, -0.1477122828274451)),
    ],
)
def test_derivatives_are_those_of_mpmath(name, method, arguments, expected):
    function = getattr(getattr(stats, name), method)
    got = fg.grad(function, argnums=tuple(range(len(arguments))))(*arguments)
    assert_allclose(got, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("k", [0.0, 2.0])
def test_derivative_in_a_count_continues_the_formula(k):
    # log(mu) - digamma(k + 1)
    digamma = {0.0: -0.5772156649015329, 2.0: 0.9227843350984671}[k]
    assert_allclose(fg.grad(stats.poisson.logpmf)(k, 3.0), np.log(3.0) - digamma, rtol=1e-12)


def test_cdf_of_counts_is_flat_between_integers():
    assert fg.grad(stats.poisson.cdf)(2.5, 3.0) == 0.0


# Edges


def derivatives(function, args):
    """Return the value, and the derivative of each element in each argument, by both modes."""
    value, pullback = fg.vjp(function, *args)
    reverse = pullback(np.ones_like(value))
    forward = []
    for i, arg in enumerate(args):

        def of_one(x, i=i):
            return function(*args[:i], x, *args[i + 1 :])

        forward.append(fg.jvp(of_one, (arg,), (np.ones_like(arg),))[1])
    return value, np.array(reverse), np.array(forward)


@pairs(ALL, "density", *PROBABILITIES, *OF_SHARES)
def test_no_nan_in_derivatives_at_edges(name, method):
    for chosen in has_formula(name, method):
        function = getattr(getattr(stats, name), chosen)
        x = points_of(name, chosen)
        if chosen not in OF_SHARES:
            x = np.array([-INF, *x, INF])
        for shapes in ALL[name]:
            args = (x, *(np.full(x.shape, float(v)) for v in (*shapes, *units(name))))
            value, reverse, forward = derivatives(function, args)
            defined = ~np.isnan(value)
            assert not np.any(np.isnan(reverse[:, defined])), shapes
            assert_allclose(reverse, forward, rtol=1e-5, atol=1e-12, err_msg=str(shapes))
            assert np.all(np.isnan(reverse[:, ~defined])), "the derivative of NaN is NaN"


@pytest.mark.parametrize(
    ("name", "shapes", "x"),
    [
        ("beta", (2.0, 3.0), -0.5),
        ("beta", (2.0, 3.0), 1.5),
        ("binom", (5.0, 0.3), 6.0),
        ("expon", (), -1.0),
        ("gamma", (0.5,), -1.0),
        ("geom", (0.3,), 0.0),
        ("invgamma", (2.0,), 0.0),
        ("lognorm", (0.7,), -1.0),
        ("pareto", (2.0,), 0.5),
        ("poisson", (3.0,), 2.5),
        ("poisson", (3.0,), -1.0),
        ("truncnorm", (-1.0, 2.0), 2.5),
        ("uniform", (), 1.5),
        ("weibull_min", (0.5,), -2.0),
    ],
)
def test_outside_of_the_support_all_derivatives_are_0(name, shapes, x):
    function, plain = (
        getattr(getattr(stats, name), method) for method in reversed(densities(name))
    )
    args = tuple(np.array(v) for v in (x, *shapes))
    for chosen, value in ((function, 0.0), (plain, -INF)):
        got, reverse, forward = derivatives(chosen, args)
        assert got == value
        assert not np.any(reverse)
        assert not np.any(forward)
        for i in range(len(args)):
            assert fg.grad(fg.grad(chosen, i), i)(*args) == 0


@pytest.mark.parametrize(
    ("name", "shapes"),
    [("gamma", (1.0,)), ("beta", (1.0, 1.0)), ("chi2", (2.0,)), ("f", (2.0, 4.0))],
)
def test_second_derivatives_where_an_exponent_is_0(name, shapes):
    args = (0.4, *shapes)
    check_grads(getattr(stats, name).logpdf, tuple(np.array(v) for v in args), order=2)


@pytest.mark.parametrize("x", [-3.0, -1.0, 0.0, 1.0, 3.0])
def test_truncated_below_by_infinity_is_normal_there(x):
    ours = fg.value_and_grad(stats.truncnorm.logpdf)(x, -INF, INF)
    assert_allclose(ours, fg.value_and_grad(stats.norm.logpdf)(x), rtol=1e-15)


def test_a_pole_of_the_density_has_derivative_0():
    value, slopes = fg.value_and_grad(stats.gamma.pdf, argnums=(0, 1))(0.0, 0.5)
    assert value == INF
    assert slopes == (0.0, 0.0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_normal_tails_do_not_underflow(sign):
    method = stats.norm.logcdf if sign < 0 else stats.norm.logsf
    value, slope = fg.value_and_grad(method)(sign * 40.0)
    assert_allclose(value, -804.6084420137538, rtol=1e-13)  # by mpmath
    assert_allclose(slope, -sign * 40.024968847207264, rtol=1e-11)


# Under vmap


@pairs(ALL, "density", "cdf", "sf", "ppf")
def test_vmap_is_a_loop(name, method):
    for chosen in has_formula(name, method):
        function = getattr(getattr(stats, name), chosen)
        x = points_of(name, chosen)
        rows = [(shapes, *args) for shapes in ALL[name] for args in zip(x, strict=True)]
        xs = np.array([row[1] for row in rows])
        columns = [np.array(column) for column in zip(*(row[0] for row in rows), strict=True)]

        def scaled(x, *shapes, function=function, name=name):
            return function(x, *shapes, *units(name))

        got = fg.vmap(scaled)(xs, *columns)
        assert_array_equal(got, scaled(xs, *columns))
        slopes = fg.vmap(fg.grad(scaled))(xs[:8], *(column[:8] for column in columns))
        loop = [fg.grad(scaled)(*args) for args in zip(xs[:8], *columns, strict=False)]
        assert_allclose(slopes, loop, rtol=1e-12)


def test_vmap_over_one_parameter():
    scales = np.array([1.0, 2.0, -1.0])
    x = np.array([0.5, -0.5])
    got = fg.vmap(stats.norm.logpdf, in_axes=(None, None, 0))(x, 0.0, scales)
    assert_allclose(got, stats.norm.logpdf(x, 0.0, scales[:, None]), rtol=1e-15)


# Arguments


def test_arguments_by_name_and_by_position_are_the_same():
    expected = scipy_stats.gamma.logpdf(3.0, 2.0, 0.5, 1.5)
    assert_allclose(stats.gamma.logpdf(3.0, 2.0, 0.5, 1.5), expected)
    assert_allclose(stats.gamma.logpdf(x=3.0, a=2.0, scale=1.5, loc=0.5), expected)
    assert_allclose(stats.gamma.logpdf(3.0, 2.0, scale=1.5, loc=0.5), expected)
    assert_allclose(stats.nbinom.logpmf(k=3, p=0.5, n=2), scipy_stats.nbinom.logpmf(3, 2, 0.5))
    assert_allclose(stats.norm.ppf(q=0.2, loc=1), scipy_stats.norm.ppf(0.2, 1))


@pytest.mark.parametrize(
    ("args", "kwds", "message"),
    [
        ((1.0,), {}, "gamma misses the argument 'a'"),
        ((1.0, 2.0, 0.0, 1.0, 5.0), {}, "gamma takes at most 3 parameters"),
        ((1.0, 2.0), {"a": 2.0}, "gamma got multiple values for argument 'a'"),
        ((1.0, 2.0), {"sigma": 2.0}, "gamma got an unexpected keyword argument 'sigma'"),
    ],
)
def test_wrong_arguments_are_type_errors(args, kwds, message):
    with pytest.raises(TypeError, match=message):
        stats.gamma.logpdf(*args, **kwds)


def test_lists_may_hold_traced_values():
    slope = fg.grad(lambda x: np.sum(stats.norm.logpdf([x, 2 * x], [0.0, 0.0])))(1.0)
    assert_allclose(slope, -5.0)


@each
def test_frozen_is_the_same_with_its_parameters(name):
    distribution, shapes = getattr(stats, name), ALL[name][0]
    frozen = distribution(*shapes, *units(name))
    method = densities(name)[0]
    value = getattr(frozen, method)(inside(name))
    assert_array_equal(value, density(name)(inside(name), *shapes, *units(name)))
    assert_array_equal(frozen.mean(), distribution.mean(*shapes, *units(name)))
    assert (frozen.args, frozen.dist) == ((*shapes, *units(name)), distribution)


def test_frozen_with_traced_parameters():
    slope = fg.grad(lambda scale: stats.norm(loc=1.0, scale=scale).logpdf(2.0))(0.5)
    assert_allclose(slope, 1 / 0.5**3 - 1 / 0.5)


def test_frozen_draws_as_scipys_does():
    ours = stats.gamma(2.0, scale=3.0).rvs(size=3, random_state=1)
    assert_array_equal(ours, scipy_stats.gamma(2.0, scale=3.0).rvs(size=3, random_state=1))


def test_other_methods_are_scipys():
    assert_array_equal(
        stats.norm.rvs(1.0, size=3, random_state=1),
        scipy_stats.norm.rvs(1.0, size=3, random_state=1),
    )
    assert stats.norm.interval(0.5) == scipy_stats.norm.interval(0.5)
    assert stats.beta.support(2.0, 3.0, 0.0, 4.0) == (0, 4)
    assert stats.beta.shapes == "a, b"
    assert "rvs" in dir(stats.norm)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: stats.norm.rvs(x, size=2), "norm.rvs"),
        (lambda x: stats.vonmises.cdf(x, 1.0), "vonmises.cdf"),
        (lambda x: stats.binom.ppf(x, 3, 0.5), "binom.ppf"),
        (lambda x: stats.norm(x).rvs(), "norm"),
    ],
)
def test_a_traced_value_is_refused_where_there_is_no_formula(function, name):
    with pytest.raises(MissingRuleError, match=f"scipy.stats.{name} has no rule"):
        fg.grad(function)(0.5)


def test_distributions_can_be_copied_and_pickled():
    for thing in (stats.norm, stats.gamma(2.0)):
        for again in (copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
            args = (2.0,) if thing is stats.gamma else ()
            assert again.logpdf(1.0, *args) == thing.logpdf(1.0, *args)


# Names


def test_names_of_jax_and_autograd_are_there():
    names = "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gaussian_kde gennorm "
    names += "geom gumbel_l gumbel_r laplace logistic mode multinomial multivariate_normal nbinom "
    names += "norm pareto poisson rankdata sem t truncnorm uniform vonmises wrapcauchy"
    assert set(names.split()) <= set(stats.__all__)
    assert stats.__all__ == sorted(stats.__all__)


def test_other_names_are_scipys():
    assert stats.linregress.__wrapped__ is scipy_stats.linregress
    assert "linregress" in dir(stats)
    with pytest.raises(AttributeError, match=r"funcgrad.scipy.stats.* has no attribute 'nrom'"):
        stats.nrom  # noqa: B018 - the access is the test


@each
def test_each_distribution_says_what_it_is(name):
    assert "Examples" in getattr(stats, name).__doc__
    assert repr(getattr(stats, name)) == f"<distribution {name}>"


# Far out, and near the ends


@pytest.mark.parametrize("x", [1e3, 1e13, 1e15, 1e30])
def test_f_far_in_its_tail(x):
    # With 2 degrees in the numerator sf is (1 + 2 x / 3)**-1.5 for 3 in the denominator.
    density = (1 + 2 * x / 3) ** -2.5
    assert_allclose(stats.f.sf(x, 2.0, 3.0), (1 + 2 * x / 3) ** -1.5, rtol=1e-12)
    assert_allclose(stats.f.cdf(x, 2.0, 3.0), 1 - (1 + 2 * x / 3) ** -1.5, rtol=1e-14)
    assert_allclose(fg.grad(stats.f.cdf)(x, 2.0, 3.0), density, rtol=1e-12)
    assert_allclose(fg.grad(stats.f.sf)(x, 2.0, 3.0), -density, rtol=1e-12)


def test_f_far_in_its_lower_tail():
    assert_allclose(stats.f.cdf(1e-20, 2.0, 3.0), 1e-20, rtol=1e-14)
    assert stats.f.sf(1e-20, 2.0, 3.0) == 1.0


def test_halfnorm_near_0():
    x = 1e-12
    assert_allclose(stats.halfnorm.logsf(x), -np.sqrt(2 / np.pi) * x, rtol=1e-11)
    assert_allclose(fg.grad(stats.halfnorm.logsf)(x), -np.sqrt(2 / np.pi), rtol=1e-11)


@pytest.mark.parametrize(
    "function",
    [
        lambda s: stats.norm.logpdf(0.3, 0.0, s),
        lambda s: stats.norm.logpdf(s, 0.0, -1.0),
        lambda s: stats.norm.cdf(0.3, s, -1.0),
        lambda s: stats.norm.ppf(s),
        lambda s: stats.gamma.mean(s),
        lambda s: stats.binom.logpmf(2, 5, s),
    ],
)
def test_the_derivative_of_what_is_undefined_is_nan(function):
    assert np.isnan(function(-1.5))
    assert np.isnan(fg.grad(function)(-1.5))


def test_what_is_undefined_leaves_the_derivatives_beside_it_alone():
    scale = np.array([-1.0, 1.0])
    gradient = fg.grad(lambda s: np.sum(stats.norm.logpdf(2.0, 0.0, s)))(scale)
    assert np.isnan(gradient[0])
    assert gradient[1] == 3.0  # x^2 / scale^3 - 1 / scale


@pytest.mark.parametrize(
    "function",
    [
        stats.norm.cdf,
        stats.norm.ppf,
        stats.norm.logpdf,
        stats.expon.cdf,
        lambda x: stats.beta.logcdf(x, np.float32(2), np.float32(3)),
    ],
)
def test_float32_stays_float32_under_vmap(function):
    x = np.array([0.3, -1.0, 2.0], np.float32)
    assert fg.vmap(function)(x).dtype == np.float32
