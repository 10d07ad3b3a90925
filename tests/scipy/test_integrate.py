"""`funcgrad.scipy.integrate`: closed solutions, both adjoints, steps, samples, errors."""

import gc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate as theirs

import funcgrad as fg
from funcgrad.core.level import TracerBase
from funcgrad.scipy import integrate as ours
from funcgrad.testing import check_grads

BOTH = pytest.mark.parametrize("adjoint", ["continuous", "discrete"])
TIGHT = {"rtol": 1e-11, "atol": 1e-12}
T = np.array([0.1, 0.7, 1.5])


def decay(y, t, k):
    return -k * y


def driven(y, t, a):
    return a * np.cos(t) * np.ones(1)


def oscillator(y, t, w):
    return [y[1], -w * w * y[0]]


def predators(y, t, p):
    prey, predator = y
    return np.stack([p["birth"] * prey - prey * predator, prey * predator - p["death"] * predator])


# Closed solutions: exp(-k (t - t0)) y0


@BOTH
def test_gradient_of_a_decay(adjoint):
    def last(y0, k, t):
        return ours.odeint(decay, y0, t, (k,), adjoint=adjoint, **TIGHT)[-1, 0]

    y0, k = 2.0, 0.8
    value = y0 * np.exp(-k * 1.4)
    got = fg.grad(last, argnums=(0, 1, 2))(y0, k, T)
    assert got[0] == pytest.approx(value / y0, rel=1e-9)
    assert got[1] == pytest.approx(-1.4 * value, rel=1e-9)
    assert_allclose(got[2], [k * value, 0, -k * value], rtol=1e-9, atol=1e-12)
    for index, x in enumerate((y0, k)):
        args = [y0, k, T]

        def of_one(x, index=index, args=args):
            return last(*args[:index], x, *args[index + 1 :])

        assert fg.jvp(of_one, (x,), (1.0,))[1] == pytest.approx(got[index], rel=1e-9)
    t_dot = np.array([0.3, -0.4, 0.5])
    _, out_dot = fg.jvp(lambda t: last(y0, k, t), (T,), (t_dot,))
    assert out_dot == pytest.approx(np.sum(got[2] * t_dot), rel=1e-9)


@BOTH
def test_each_output_has_its_cotangent(adjoint):
    w = np.array([[2.0], [3.0], [5.0]])

    def total(k):
        return np.sum(w * ours.odeint(decay, [1.0], T, (k,), adjoint=adjoint, **TIGHT))

    since = T - T[0]
    expected = np.sum(-w[:, 0] * since * np.exp(-0.8 * since))
    assert fg.grad(total)(0.8) == pytest.approx(expected, rel=1e-9)


@BOTH
def test_rate_that_depends_on_time(adjoint):
    def last(a, t):
        return ours.odeint(driven, 0.0, t, (a,), adjoint=adjoint, **TIGHT)[-1, 0]

    a_bar, t_bar = fg.grad(last, argnums=(0, 1))(1.5, T)
    assert a_bar == pytest.approx(np.sin(1.5) - np.sin(0.1), rel=1e-9)
    assert_allclose(t_bar, [-1.5 * np.cos(0.1), 0, 1.5 * np.cos(1.5)], rtol=1e-9, atol=1e-9)


@BOTH
def test_second_derivatives(adjoint):
    def last(k):
        return ours.odeint(decay, 1.0, T, (k,), adjoint=adjoint, **TIGHT)[-1, 0]

    expected = 1.4**2 * np.exp(-0.8 * 1.4)
    assert fg.grad(fg.grad(last))(0.8) == pytest.approx(expected, rel=1e-7)
    assert fg.jvp(fg.grad(last), (0.8,), (1.0,))[1] == pytest.approx(expected, rel=1e-7)
    forward = fg.jvp(lambda k: fg.jvp(last, (k,), (1.0,))[1], (0.8,), (1.0,))[1]
    assert forward == pytest.approx(expected, rel=1e-7)


def test_second_derivative_by_time_is_that_of_the_rate():
    def last(t):
        return ours.odeint(driven, 0.0, np.stack([0.1, t]), (1.5,), **TIGHT)[-1, 0]

    assert fg.grad(fg.grad(last))(1.2) == pytest.approx(-1.5 * np.sin(1.2), rel=1e-7)


@BOTH
def test_function_may_return_a_list(adjoint):
    def last(y0, w):
        return ours.odeint(oscillator, y0, T, (w,), adjoint=adjoint, **TIGHT)[-1, 0]

    y0_bar, w_bar = fg.grad(last, argnums=(0, 1))(np.array([1.0, 0.0]), 2.0)
    assert_allclose(y0_bar, [np.cos(2.8), np.sin(2.8) / 2], rtol=1e-8)
    assert w_bar == pytest.approx(-1.4 * np.sin(2.8), rel=1e-8)


@BOTH
def test_times_may_fall_and_repeat(adjoint):
    t = np.array([1.5, 0.7, 0.7, 0.1])

    def total(k):
        return np.sum(ours.odeint(decay, 1.0, t, (k,), adjoint=adjoint, **TIGHT))

    expected = np.sum((1.5 - t) * np.exp(0.8 * (1.5 - t)))
    assert fg.grad(total)(0.8) == pytest.approx(expected, rel=1e-9)


def test_adjoints_agree_on_parameters_in_a_tree():
    params = {"birth": np.float64(1.1), "death": np.float64(0.6), "name": "foxes", "year": 3}
    y0, t = np.array([1.0, 0.5]), np.linspace(0.0, 3.0, 5)

    def gradients(adjoint):
        def loss(y0, p):
            y = ours.odeint(predators, y0, t, (p,), adjoint=adjoint, **TIGHT)
            return np.sum(y[1:] ** 2)

        return fg.grad(loss, argnums=(0, 1))(y0, params)

    (y_bar, p_bar), (y_other, p_other) = map(gradients, ("continuous", "discrete"))
    assert_allclose(y_bar, y_other, rtol=1e-8)
    assert p_bar["birth"] == pytest.approx(p_other["birth"], rel=1e-8)
    assert p_bar["death"] == pytest.approx(p_other["death"], rel=1e-8)
    assert p_bar["name"] is None
    assert p_bar["year"] is None


def test_complex_parameters():
    def turning(y, t, z):
        return np.stack([np.real(z) * y[0] - np.imag(z) * y[1], np.imag(z) * y[0]])

    def loss(z):
        return ours.odeint(turning, [1.0, 0.5], T, (z,), **TIGHT)[-1, 0]

    check_grads(loss, (0.3 + 0.8j,), rtol=1e-6, order=1)


def test_discrete_modes_agree_to_rounding():
    w = np.random.default_rng(0).normal(size=(3, 2))

    def solve(y0, k, t):
        return ours.odeint(oscillator, y0, t, (k,), rtol=1e-4, adjoint="discrete")

    args = np.array([0.3, -0.5]), 1.7, T
    dots = np.array([0.2, 0.6]), 0.9, np.array([0.1, -0.3, 0.4])
    _, pullback = fg.vjp(solve, *args)
    _, out_dot = fg.jvp(solve, args, dots)
    pulled = sum(np.sum(bar * dot) for bar, dot in zip(pullback(w), dots, strict=True))
    assert pulled == pytest.approx(np.sum(w * out_dot), rel=1e-13)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_tolerances_refer_to_the_largest_cotangent(size):
    def last(k):
        return size * ours.odeint(decay, 1.0, T, (k,))[-1, 0]

    expected = -1.4 * np.exp(-0.8 * 1.4) * size
    assert fg.grad(last)(0.8) == pytest.approx(expected, rel=1e-6)
    _, out_dot = fg.jvp(lambda k: ours.odeint(decay, 1.0, T, (k,))[-1, 0], (0.8,), (size,))
    assert out_dot == pytest.approx(expected, rel=1e-6)


def test_cotangent_of_zero_costs_nothing_and_is_zero():
    _, pullback = fg.vjp(lambda k: ours.odeint(decay, 1.0, T, (k,)), 0.8)
    assert pullback(np.zeros((3, 1)))[0] == 0


def test_pullback_sees_what_was_written_to_its_cotangent():
    _, pullback = fg.vjp(lambda y0, k: ours.odeint(decay, y0, T, (k,), **TIGHT), np.ones(1), 0.8)
    bar = np.zeros((3, 1))
    bar[2] = 1
    first = pullback(bar)
    bar[2] = 2
    second = pullback(bar)
    assert_allclose(second[0], 2 * first[0], rtol=1e-9)
    assert second[1] == pytest.approx(2 * first[1], rel=1e-9)


# Values


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rtol": 1e-4, "atol": 1e-5},
        {"rtol": np.array([1e-5, 1e-6])},
        {"hmax": 0.1},
        {"Dfun": lambda y, t, w: [[0, 1], [-w * w, 0]]},
        {"Dfun": lambda y, t, w: [[0, -w * w], [1, 0]], "col_deriv": True},
        {"tcrit": [2.0], "mxords": 3},
    ],
)
def test_values_are_those_of_scipy(options):
    y0 = np.array([1.0, 0.0])
    expected = theirs.odeint(oscillator, y0, T, (2.0,), **options)

    def solve(w):
        return ours.odeint(oscillator, y0, T, (w,), **options)

    assert_array_equal(solve(2.0), expected)
    out, pullback = fg.vjp(solve, 2.0)
    assert_array_equal(out, expected)
    assert_array_equal(fg.jvp(solve, (2.0,), (1.0,))[0], expected)
    bar = np.zeros((3, 2))
    bar[2, 0] = 1
    assert pullback(bar)[0] == pytest.approx(-1.4 * np.sin(2.8), rel=1e-3)


def test_time_may_come_first():
    def decay_t(t, y, k):
        return -k * y

    def last(k):
        return ours.odeint(decay_t, 1.0, T, (k,), tfirst=True)[-1, 0]

    assert fg.grad(last)(0.8) == pytest.approx(-1.4 * np.exp(-0.8 * 1.4), rel=1e-6)


def test_details_of_plain_values():
    _, details = ours.odeint(decay, 1.0, T, (0.8,), full_output=True)
    assert details["message"] == "Integration successful."


def test_discrete_values_are_the_same_traced_or_not():
    def solve(w):
        return ours.odeint(oscillator, [1.0, 0.0], T, (w,), adjoint="discrete")

    assert_array_equal(fg.vjp(solve, 2.0)[0], solve(2.0))
    assert_allclose(solve(2.0), theirs.odeint(oscillator, [1.0, 0.0], T, (2.0,)), atol=1e-6)


def test_leaves_keep_their_dtype():
    seen = set()

    def watch(y, t, k):
        seen.add(np.asarray(k).dtype if isinstance(k, np.ndarray | np.generic) else k.dtype)
        return -k * y

    k = np.array([0.5], np.float32)
    bar = fg.grad(lambda k: ours.odeint(watch, [1.0], T, (k,))[-1, 0])(k)
    assert bar.dtype == np.float32
    assert seen == {np.dtype(np.float32)}


# Many at once


@BOTH
def test_vmap_is_a_loop(adjoint):
    k = np.array([0.3, 0.9, 2.0])

    def last(k):
        return ours.odeint(decay, 1.0, T, (k,), adjoint=adjoint)[-1, 0]

    for fun in (last, fg.grad(last), lambda k: fg.jvp(last, (k,), (1.0,))[1]):
        assert_array_equal(fg.vmap(fun)(k), [fun(x) for x in k])


# Errors


def test_traced_value_in_a_closure_is_named():
    def loss(k):
        return ours.odeint(lambda y, t: -k * y, 1.0, T)[-1, 0]

    with pytest.raises(fg.errors.ArgumentError, match=r"pass it in args"):
        fg.grad(loss)(0.8)


def test_traced_value_in_a_closure_is_named_where_it_becomes_an_array():
    def loss(k):
        return ours.odeint(lambda y, t, b: np.array([-k * y[0], b]), [1.0, 0.0], T, (k,))[-1, 0]

    with pytest.raises(fg.errors.ArgumentError, match=r"float64|float\[\]|pass it in args"):
        fg.grad(loss)(0.8)


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"full_output": True}, fg.errors.MissingRuleError, "full_output"),
        ({"adjoint": "other"}, fg.errors.ArgumentError, "adjoint='other'"),
        ({"adjoint": "discrete", "h0": 0.1}, fg.errors.ArgumentError, "h0"),
        ({"adjoint": "discrete", "Dfun": decay}, fg.errors.ArgumentError, "Dfun"),
        ({"adjoint": "discrete", "mxstep": 2}, fg.errors.ArgumentError, "2 steps"),
    ],
)
def test_options_that_cannot_be(kwargs, error, match):
    with pytest.raises(error, match=match):
        fg.grad(lambda k: ours.odeint(decay, 1.0, T, (k,), **kwargs)[-1, 0])(0.8)


@BOTH
def test_times_that_go_back_and_forth_are_scipys_error(adjoint):
    with pytest.raises(ValueError, match="monotonically"):
        fg.grad(lambda k: ours.odeint(decay, 1.0, [0, 2, 1], (k,), adjoint=adjoint)[-1, 0])(0.8)


def test_complex_state_is_an_error():
    with pytest.raises(fg.errors.DtypeError, match="complex"):
        fg.jvp(lambda y0: ours.odeint(decay, y0, T, (1.0,)), (1 + 1j,), (1 + 0j,))


def test_failure_is_warned_of_as_by_scipy():
    with pytest.warns(theirs.ODEintWarning):
        fg.jvp(lambda y0: ours.odeint(lambda y, t: y**2, y0, [0.0, 2.0]), (1.0,), (1.0,))


def test_solve_ivp_names_odeint():
    with pytest.raises(fg.errors.MissingRuleError, match="odeint"):
        fg.grad(lambda y: ours.solve_ivp(lambda t, y: -y, (0, 1), np.stack([y])).y[0, -1])(1.0)
    with pytest.raises(fg.errors.ArgumentError, match="args"):
        fg.grad(lambda k: ours.solve_ivp(lambda t, y: -k * y, (0, 1), [1.0]).y[0, -1])(1.0)


# Functions of one variable


def test_gradient_of_an_integral_in_ends_and_parameters():
    def area(a, b, k):
        return ours.quad(lambda x, k: np.exp(-k * x), a, b, (k,))[0]

    a, b, k = 0.2, 1.3, 0.7
    bars = fg.grad(area, argnums=(0, 1, 2))(a, b, k)
    assert bars[0] == pytest.approx(-np.exp(-k * a), rel=1e-12)
    assert bars[1] == pytest.approx(np.exp(-k * b), rel=1e-12)
    at = [np.exp(-k * x) * (x / k + 1 / k**2) for x in (a, b)]
    assert bars[2] == pytest.approx(at[1] - at[0], rel=1e-12)
    check_grads(area, (a, b, k))


def test_integral_to_infinity_with_an_array_of_parameters():
    def area(k):
        return ours.quad(lambda x, k: np.sum(np.exp(-k * x)), 0.0, np.inf, (k,))[0]

    k = np.array([1.0, 2.0, 4.0])
    assert_allclose(fg.grad(area)(k), -1 / k**2, rtol=1e-8)
    assert_allclose(fg.vmap(fg.grad(lambda k: area(np.stack([k]))))(k), -1 / k**2, rtol=1e-8)


def test_value_of_an_integral_is_scipys():
    f = lambda x, k: np.exp(-k * x)  # noqa: E731
    expected = theirs.quad(f, 0.0, 1.0, (0.7,), epsabs=1e-5)
    assert ours.quad(f, 0.0, 1.0, (0.7,), epsabs=1e-5) == expected
    out, _ = fg.vjp(lambda k: ours.quad(f, 0.0, 1.0, (k,), epsabs=1e-5), 0.7)
    assert out == expected


def test_weighted_integral_has_derivatives_in_parameters_only():
    def area(a, k):
        return ours.quad(lambda x, k: np.exp(-k * x), a, 1.0, (k,), weight="cos", wvar=2.0)[0]

    check_grads(lambda k: area(0.0, k), (0.7,))
    with pytest.raises(fg.errors.MissingRuleError, match="weight"):
        fg.grad(area)(0.0, 0.7)


def test_integrand_that_closes_over_a_traced_value_is_named():
    with pytest.raises(fg.errors.ArgumentError, match="args"):
        fg.grad(lambda k: ours.quad(lambda x: np.exp(-k * x), 0.0, 1.0)[0])(0.7)


# Samples

RULES = ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_samples(name, count):
    rng = np.random.default_rng(count)
    y = rng.normal(size=(2, count))
    x = np.cumsum(rng.uniform(0.5, 1.5, size=count))
    rule, theirs_ = getattr(ours, name), getattr(theirs, name)
    calls = [
        (lambda y, x: rule(y, x=x), (y, x)),
        (lambda y, x: rule(y, x=x, axis=0), (y.T, np.stack([x, 2 * x], axis=1))),
        (lambda y, dx: rule(y, dx=dx), (y, 0.3)),
    ]
    for call, args in calls:
        check_grads(call, args)
    assert_array_equal(fg.vjp(calls[0][0], y, x)[0], theirs_(y, x=x))
    assert_array_equal(rule(y, dx=0.3), theirs_(y, dx=0.3))


@pytest.mark.parametrize("name", ["cumulative_trapezoid", "cumulative_simpson"])
def test_initial_value_is_put_in_front(name):
    y = np.random.default_rng(0).normal(size=(2, 5))
    rule = getattr(ours, name)
    out, pullback = fg.vjp(lambda y: rule(y, initial=0), y)
    assert out.shape == (2, 5)
    check_grads(lambda y: rule(y, initial=0), (y,))
    assert_array_equal(pullback(np.eye(2, 5))[0][0], np.zeros(5))


def test_gradient_of_simpsons_rule_are_its_weights():
    bar = fg.grad(ours.simpson)(np.zeros(7))
    assert_allclose(3 * bar, [1, 4, 2, 4, 2, 4, 1], rtol=1e-14)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, y: m.trapezoid(y, axis=3),
        lambda m, y: m.cumulative_trapezoid(y, initial=2.0),
        lambda m, y: m.cumulative_simpson(y, x=np.zeros(4)),
        lambda m, y: m.simpson(y, x=np.ones(3)),
    ],
)
def test_errors_are_those_of_scipy(call):
    y = np.arange(4.0)
    with pytest.raises(Exception) as expected:  # noqa: PT011 - compared below
        call(theirs, y)
    with pytest.raises(expected.type) as raised:
        fg.vjp(lambda y: call(ours, y), y)
    assert str(raised.value) == str(expected.value)


def test_other_names_are_scipys():
    assert ours.dblquad.__wrapped__ is theirs.dblquad
    assert {"odeint", "dblquad"} <= set(dir(ours))
    with pytest.raises(AttributeError, match="colour"):
        ours.colour  # noqa: B018 - the access is the test


def test_plain_calls_outside_of_transforms_are_scipys_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(ours.odeint(decay, 1.0, T, (0.8,)), theirs.odeint(decay, 1.0, T, (0.8,)))


@BOTH
def test_no_tracer_outlives_its_transform(adjoint):
    def solve(y0, p):
        return ours.odeint(decay, y0, T, (p["k"],), adjoint=adjoint)

    args = np.ones(1), {"k": np.float64(0.8)}
    gc.collect()
    gc.freeze()  # look at what is new only
    out, pullback = fg.vjp(solve, *args)
    pullback(out)
    fg.jvp(lambda bar: pullback(bar), (out,), (out,))
    gc.collect()
    left = [found for found in gc.get_objects() if issubclass(type(found), TracerBase)]
    gc.unfreeze()
    assert not left


def test_one_integration_serves_all_arguments():
    count = 0

    def counted(y, t, k):
        nonlocal count
        count += 1
        return -k * y

    def last(y0, t, k):
        return ours.odeint(counted, y0, t, (k,))[-1, 0]

    calls = []
    for argnums in (2, (0, 1, 2)):
        count = 0
        fg.grad(last, argnums=argnums)(1.0, T, 0.8)
        calls.append(count)
    assert calls[0] == calls[1]


# What carries no derivative, and what decides no dtype


def test_the_estimate_of_the_error_of_quad_carries_no_derivative():
    def error(a, b, k):
        return ours.quad(lambda x, k: k * x, a, b, args=(k,))[1]

    assert fg.grad(error, (0, 1, 2))(0.0, 1.0, 0.5) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("options", [{}, {"dx": 0.5}])
@pytest.mark.parametrize(
    "name", ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"]
)
def test_rules_for_samples_of_float32_have_the_dtype_of_scipys(name, options):
    y = np.array([0.3, -1.0, 2.0, 0.5], np.float32)
    expected = getattr(theirs, name)(y, **options)
    value, pullback = fg.vjp(lambda y: getattr(ours, name)(y, **options), y)
    assert_array_equal(value, expected)
    assert value.dtype == expected.dtype
    assert pullback(np.ones_like(value))[0].dtype == np.float32
