"""Derivatives of loops and branches in which functions have rules of their own, under `jit`.

The values are those without `jit`, where each step and the branch taken are seen by themselves.
"""

import numpy as np
import pytest

import funcgrad as fg

X = np.array([0.3, 0.8, 1.1])


def forward_rule():
    """Twice the derivative of sin."""
    fun = fg.custom_jvp(np.sin)
    fun.defjvp(lambda primals, dots: (np.sin(primals[0]), 2 * dots[0] * np.cos(primals[0])))
    return fun


def backward_rule():
    """Twice the derivative of sin."""
    fun = fg.custom_vjp(np.sin)
    fun.defvjp(lambda x: (np.sin(x), x), lambda x, bar: (2 * bar * np.cos(x),))
    return fun


def calling_itself():
    """A forward rule that calls its function."""
    fun = fg.custom_jvp(np.sin)
    fun.defjvp(lambda primals, dots: (fun(primals[0]), 2 * dots[0] * np.cos(primals[0])))
    return fun


def straight_through():
    """Rounds, with the derivative of what does not."""
    fun = fg.custom_jvp(np.round)
    fun.defjvp(lambda primals, dots: (np.round(primals[0]), dots[0]))
    return fun


def clipping():
    """Returns what it is given, and clips its cotangent."""
    fun = fg.custom_vjp(lambda x: x)
    fun.defvjp(lambda x: (x, None), lambda _, bar: (np.clip(bar, -1, 1),))
    return fun


RULES = {
    "custom_jvp": forward_rule,
    "custom_vjp": backward_rule,
    "calling itself": calling_itself,
    "straight-through": straight_through,
    "clipping": clipping,
}

AROUND = {
    "cond": lambda h: lambda x: fg.cond(np.sum(x) > 0, h, lambda v: v * 3, x),
    "cond, other": lambda h: lambda x: fg.cond(np.sum(x) < 0, lambda v: v * 3, h, x),
    "switch": lambda h: lambda x: fg.switch((np.sum(x) > 0) * 1, [lambda v: v * 3, h], x),
    "jit in cond": lambda h: lambda x: fg.cond(np.sum(x) > 0, fg.jit(h), lambda v: v * 3, x),
    "checkpoint in cond": lambda h: (
        lambda x: fg.cond(np.sum(x) > 0, fg.checkpoint(h), lambda v: v * 3, x)
    ),
    "scan": lambda h: lambda x: fg.scan(lambda c, a: (h(c) * a, h(c + a)), x, np.ones(5))[1].sum(0),
    "cond in scan": lambda h: (
        lambda x: fg.scan(
            lambda c, a: (fg.cond(np.sum(c) > 0, h, lambda v: v * 3, c), a), x, np.ones(5)
        )[0]
    ),
    "while_loop": lambda h: (
        lambda x: fg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, h(c[1])), (0, x))[1]
    ),
    "fori_loop": lambda h: lambda x: fg.fori_loop(0, 5, lambda i, c: h(c) + i, x),
    "map": lambda h: lambda x: fg.map(h, np.stack([x] * 5)),
}

TRANSFORMS = {
    "grad": lambda f: fg.grad(lambda x: 10 * np.sum(f(x))),
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (x + 1,)),
    "linearize": lambda f: lambda x: fg.linearize(f, x)[1](x + 1),
    "hessian": lambda f: fg.hessian(lambda x: np.sum(f(x) ** 2)),
    "jacfwd": fg.jacfwd,
    "jacrev": fg.jacrev,
}
FORWARD = ("jvp", "linearize", "hessian", "jacfwd")


def assert_same(made, expected):
    for one, other in zip(fg.tree.leaves(made), fg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def check(fun, transform):
    """Compare both orders of `jit` and the transform, at two points."""
    eager = transform(fun)
    outer, inner = fg.jit(eager), transform(fg.jit(fun))
    for x in (X, -X):
        expected = eager(x)
        assert_same(outer(x), expected)
        assert_same(inner(x), expected)


PAIRS = [
    (rule, transform)
    for rule in RULES
    for transform in TRANSFORMS
    if not (rule in ("custom_vjp", "clipping") and transform in FORWARD)
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("rule", "transform"), PAIRS)
def test_rules_hold_in_loops_and_branches(rule, transform, around):
    check(AROUND[around](RULES[rule]()), TRANSFORMS[transform])


def test_clipped_gradient_of_a_branch_is_that_of_the_rule():
    clip = clipping()
    slope = fg.jit(fg.grad(lambda x: np.sum(10 * fg.cond(x[0] > 0, clip, lambda v: v * 2, x))))
    np.testing.assert_array_equal(slope(np.ones(2)), [1, 1])


def test_rounding_in_a_branch_has_the_derivative_of_its_rule():
    rounded = straight_through()
    slope = fg.jit(fg.grad(lambda x: np.sum(fg.cond(x[0] > 0, rounded, lambda v: v * 2, x))))
    np.testing.assert_array_equal(slope(np.ones(2)), [1, 1])


def test_rule_of_identity_holds_in_a_jitted_function_that_uses_its_argument_too():
    clip = clipping()
    fun = fg.make_program(lambda x: np.sum(10 * clip(x) + x))(np.ones(2))
    np.testing.assert_array_equal(fg.grad(fun)(np.ones(2)), [2, 2])


def root(x):
    """Solve y**3 + y = x by an equation that closes over x."""

    def newton(equation, start):
        y = start
        for _ in range(30):
            y = y - equation(y) / (3 * y * y + 1)
        return fg.stop_gradient(y)

    return fg.custom_root(
        lambda y: y**3 + y - x, x * 0, newton, lambda g, y: y / g(np.ones_like(y))
    )


def solution(x):
    """Solve a diagonal system that closes over x."""
    return fg.custom_linear_solve(
        lambda u: (2 + x) * u,
        np.cos(x),
        lambda matvec, b: b / fg.stop_gradient(matvec(np.ones_like(b))),
        symmetric=True,
    )


def closing_over(x):
    """Apply a rule that closes over x, beside its argument."""
    fun = fg.custom_vjp(np.sin)
    fun.defvjp(lambda u: (np.sin(u), u), lambda u, bar: (bar * np.cos(u) * fg.stop_gradient(x),))
    return fun(x)


SOLVERS = {"custom_root": root, "custom_linear_solve": solution}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("transform", ["grad", "jvp", "hessian"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_equations_that_close_over_a_step_have_their_derivative(solver, transform, around):
    check(AROUND[around](SOLVERS[solver]), TRANSFORMS[transform])


@pytest.mark.parametrize("around", ["cond", "scan", "while_loop", "fori_loop", "map"])
def test_rules_that_close_over_a_step_raise_as_without_jit(around):
    slope = fg.grad(lambda x: np.sum(AROUND[around](closing_over)(x)))
    for fun in (slope, fg.jit(slope)):
        with pytest.raises(fg.errors.TracerLeakError, match="neither an argument nor a residual"):
            fun(X)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_loop_that_stops_the_gradient_has_zero_derivatives(transform):
    fun = AROUND["while_loop"](lambda v: np.tanh(fg.stop_gradient(v)))
    check(fun, TRANSFORMS[transform])


STEPS = {
    "log": lambda v: np.where(v > 0, np.log(v), v),
    "sqrt": lambda v: np.where(v > 0.5, np.sqrt(v - 0.5), 0.0) + v,
    "minimum": lambda v: np.minimum(np.tanh(v * v), 0.3) + v * 0.1,
}
POINTS = {
    "finite": np.array([0.3, 0.8, 1.1]),
    "on the edge": np.array([0.5, 0.5, 0.2]),
    "zero": np.zeros(3),
    "infinite": np.array([np.inf, 0.3, -0.2]),
}


@pytest.mark.parametrize("around", ["cond", "scan", "while_loop", "fori_loop", "map"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_in_a_step_is_repaired(step, transform, around):
    eager = TRANSFORMS[transform](AROUND[around](STEPS[step]))
    jitted = fg.jit(eager)
    for x in POINTS.values():
        assert_same(jitted(x), eager(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_repair_where_a_later_step_is_not_finite():
    def total(x):
        step = STEPS["log"]
        _, rows = fg.scan(lambda c, a: (np.tanh(c * a), step(c)), x, np.arange(5.0))
        return np.sum(rows.sum(0) * x)

    expected = fg.grad(total)(X)
    assert np.all(np.isfinite(expected))
    assert_same(fg.jit(fg.grad(total))(X), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_repair_where_a_later_linearised_step_is_not_finite():
    def fun(x):
        factors = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 2.0])  # at sqrt(0), 0 times infinity
        return fg.scan(lambda c, factor: (np.sqrt(c * factor) + c, None), x, factors)[0]

    def pushed(x):
        return fg.linearize(fun, x)[1](np.ones(3))

    expected = pushed(X)
    assert np.all(np.isfinite(expected))
    assert_same(fg.jit(pushed)(X), expected)
