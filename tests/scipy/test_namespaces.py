"""What all namespaces of `funcgrad.scipy` share: lists with traced values, and refusals by name."""

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import MissingRuleError
from funcgrad.scipy import integrate, linalg, ndimage, signal, special, stats

V = np.array([1.0, 2.0, 4.0])
IMAGE = np.arange(9.0).reshape(3, 3)
ROW = np.arange(1.0, 6.0)

# A function of three numbers, in a list; the gradient at V.
LISTS = {
    "map_coordinates": (
        lambda a, b, c: ndimage.map_coordinates(IMAGE, [[a / 4], [b / 4]], order=1)[0],
        [0.75, 0.25, 0.0],
    ),
    "correlate1d": (lambda a, b, c: np.sum(ndimage.correlate1d(ROW, [a, b, c])), [11, 15, 19]),
    "gaussian_filter": (lambda a, b, c: np.sum(ndimage.gaussian_filter([a, b, c], 1.0)), [1, 1, 1]),
    "uniform_filter1d": (lambda a, b, c: ndimage.uniform_filter1d([a, b, c], 3)[1], [1 / 3] * 3),
    "simpson": (lambda a, b, c: integrate.simpson([a, b, c]), [1 / 3, 4 / 3, 1 / 3]),
    "trapezoid": (lambda a, b, c: integrate.trapezoid([a, b, c]), [0.5, 1.0, 0.5]),
    "odeint": (
        lambda a, b, c: integrate.odeint(lambda y, t: -y, [a, b, c], [0.0, 1.0])[-1, 1],
        [0.0, np.exp(-1), 0.0],
    ),
    "quad": (
        lambda a, b, c: integrate.quad(lambda x, k: k[0] * x, 0, 1, ([a, b],))[0],
        [0.5, 0, 0],
    ),
    "detrend": (
        lambda a, b, c: signal.detrend([a, b, c], type="constant")[0],
        [2 / 3, -1 / 3, -1 / 3],
    ),
    "convolve": (lambda a, b, c: np.sum(signal.convolve([a, b], [1.0, 2.0])), [3, 3, 0]),
    "convolve2d": (
        lambda a, b, c: np.sum(signal.convolve2d([[a, b, c]], [[1.0, 2.0]], boundary="wrap")),
        [4, 3, 5],
    ),
    "lfilter": (lambda a, b, c: np.sum(signal.lfilter([a, b], [1.0], ROW)), [15, 10, 0]),
    "hilbert": (lambda a, b, c: np.real(signal.hilbert([a, b, c]))[1], [0, 1, 0]),
    "solve": (lambda a, b, c: linalg.solve([[a, 0.0], [0.0, b]], [2.0, c])[1], [0.0, -1.0, 0.5]),
    "det": (lambda a, b, c: linalg.det([[a, b], [3.0, c]]), [4, -3, 1]),
    "inv": (lambda a, b, c: linalg.inv([[a, 0.0], [0.0, b]])[1, 1], [0.0, -0.25, 0.0]),
    "expm": (lambda a, b, c: linalg.expm([[0.0, b], [0.0, 0.0]])[0, 1], [0, 1, 0]),
    "expm_frechet": (
        lambda a, b, c: linalg.expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[a, b], [c, c]])[1][0, 1],
        [0, 1, 0],
    ),
    "block_diag": (lambda a, b, c: linalg.block_diag([[a]], [[b]])[1, 1], [0, 1, 0]),
    "logsumexp": (lambda a, b, c: special.logsumexp([a, b]), [sp.expit(-1.0), sp.expit(1.0), 0]),
    "gmean": (lambda a, b, c: stats.gmean([a, b, c]), [2 / 3, 1 / 3, 1 / 6]),
    "norm.logpdf": (lambda a, b, c: np.sum(stats.norm.logpdf([a, b, c])), [-1, -2, -4]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_may_hold_traced_values(name):
    function, expected = LISTS[name]
    got = fg.grad(lambda v: function(v[0], v[1], v[2]))(V)
    assert_allclose(got, expected, rtol=1e-6, atol=1e-9)


def test_a_dict_in_the_arguments_of_quad_may_hold_traced_values():
    def area(k):
        return integrate.quad(lambda x, p: p["k"] * x * x, 0, 1, args=({"k": k},))[0]

    assert_allclose(fg.grad(area)(0.5), 1 / 3)


# What has no rule

REFUSED = {
    "scipy.special.diric": (lambda v: special.diric(v, 3), "numpy.sin"),
    "scipy.special.pbdv": (lambda v: special.pbdv(1.0, v), "hyp1f1"),
    "scipy.ndimage.rotate": (lambda v: ndimage.rotate(v[0] * IMAGE, 30.0), "map_coordinates"),
    "scipy.ndimage.shift": (lambda v: ndimage.shift(v, 1), "map_coordinates"),
    "scipy.ndimage.sobel": (lambda v: ndimage.sobel(v[0] * IMAGE), "correlate1d"),
    "scipy.signal.sosfilt": (lambda v: signal.sosfilt(np.ones((1, 6)), v), "lfilter"),
    "scipy.signal.chirp": (lambda v: signal.chirp(v, 1.0, 2.0, 3.0), "functions that have one"),
    "scipy.integrate.romb": (lambda v: integrate.romb(v), "simpson"),
    "scipy.integrate.dblquad": (
        lambda v: integrate.dblquad(lambda x, y, a: a * x, 0, 1, 0, 1, args=(v[0],))[0],
        "quad",
    ),
    "scipy.integrate.solve_ivp": (
        lambda v: integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), v).y,
        "odeint",
    ),
    "scipy.linalg.schur": (lambda v: linalg.schur(v[0] * IMAGE), "eig"),
    "scipy.stats.chi.logpdf": (lambda v: stats.chi.logpdf(v, 2.0), "chi2"),
    "scipy.stats.ncx2": (lambda v: stats.ncx2(v[0], 1.0).pdf(2.0), "special.ive"),
    "scipy.stats.burr.cdf": (lambda v: stats.burr.cdf(v, 2.0, 3.0), "scipy.special"),
    "scipy.stats.wishart.logpdf": (
        lambda v: stats.wishart.logpdf(v[0] * np.eye(2), 3, np.eye(2)),
        "multigammaln",
    ),
    "scipy.stats.norm.rvs": (lambda v: stats.norm.rvs(v), "funcgrad.random"),
    "scipy.stats.linregress": (lambda v: stats.linregress(v, v), "functions that have one"),
    "numpy.save": (lambda v: np.save("never", v), "has_aux"),
    "numpy.savetxt": (lambda v: np.savetxt("never", v), "has_aux"),
    "numpy.busday_count": (lambda v: np.busday_count(v, v), "outside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rule_says_so_by_name_and_what_to_write(name):
    function, instead = REFUSED[name]
    with pytest.raises(NotImplementedError) as raised:
        fg.grad(lambda v: np.sum(function(v)))(V)
    assert type(raised.value) is MissingRuleError
    what, where, fix = str(raised.value).splitlines()
    assert what.startswith(f"{name} has no rule for traced values: ")
    assert "test_namespaces.py" in where
    assert instead in fix


def test_a_function_without_alternative_names_the_most_similar():
    with pytest.raises(MissingRuleError, match=r"such as scipy\.stats\.kurtosis"):
        fg.grad(lambda v: stats.kurtosistest(v).statistic)(V)


def test_functions_composed_of_others_need_no_rule():
    # By Bessel's equation, J1'' = -J1'/z - (1 - 1/z^2) J1.
    second = -sp.jvp(1, V) / V - (1 - 1 / V**2) * sp.jv(1, V)
    assert_allclose(fg.grad(lambda v: np.sum(special.jvp(1, v)))(V), second, rtol=1e-13)
    assert_allclose(fg.grad(lambda v: np.sum(special.sinc(v)))(np.array([0.5]))[0], -4 / np.pi)


def test_errors_that_have_nothing_to_do_with_tracing_are_scipys():
    with pytest.raises(RuntimeError, match="not supported"):
        fg.grad(lambda v: v[0] * ndimage.median_filter(ROW, 3, mode="none")[0])(V)


def test_distributions_without_formulas_are_scipys_for_plain_values():
    assert stats.chi.logpdf(1.0, 2.0) == stats.chi._of_scipy.logpdf(1.0, 2.0)
    assert stats.chi is stats.chi
    assert stats.chi.name == "chi"
