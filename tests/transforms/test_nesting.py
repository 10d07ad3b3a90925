"""Transforms inside transforms, in any order, in threads and generators: what must stay apart."""

import concurrent.futures
import contextlib
import functools
import itertools
import math
import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import concrete, is_tracing
from funcgrad.errors import TracerLeakError


def by_grad(f):
    return fg.grad(f)


def by_vjp(f):
    def derivative(x):
        out, pullback = fg.vjp(f, x)
        return pullback(np.ones_like(out))[0] if np.ndim(out) else pullback(1.0)[0]

    return derivative


def by_jvp(f):
    return lambda x: fg.jvp(f, (x,), (1.0,))[1]


def by_linearize(f):
    return lambda x: fg.linearize(f, x)[1](1.0)


DERIVATIVES = (by_grad, by_vjp, by_jvp, by_linearize)

# Function, its n-th derivative in closed form, and where to look.
CLOSED_FORMS = {
    "sin": (np.sin, lambda n, x: math.sin(x + n * math.pi / 2), 0.7),
    "exp": (lambda x: np.exp(2.0 * x), lambda n, x: 2.0**n * math.exp(2.0 * x), 0.3),
    "power": (lambda x: x**7, lambda n, x: math.perm(7, n) * x ** (7 - n), 1.3),
    "reciprocal": (
        lambda x: 1.0 / x,
        lambda n, x: (-1.0) ** n * math.factorial(n) / x ** (n + 1),
        0.8,
    ),
    "log": (
        np.log,
        lambda n, x: (-1.0) ** (n - 1) * math.factorial(n - 1) / x**n,
        0.8,
    ),
    "product": (
        lambda x: x * np.exp(x),
        lambda n, x: (x + n) * math.exp(x),
        0.4,
    ),
    "branch": (
        lambda x: x * x * x if x > 0 else -x,
        lambda n, x: (3 * x**2, 6 * x, 6.0, 0.0, 0.0)[n - 1],
        1.7,
    ),
}


def orders(length):
    return list(itertools.product(DERIVATIVES, repeat=length))


def name_of(kinds):
    return "-".join(kind.__name__[3:] for kind in kinds)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.parametrize("kinds", [*orders(1), *orders(2), *orders(3)], ids=name_of)
def test_mixed_derivatives_to_third_order(name, kinds):
    f, exact, x = CLOSED_FORMS[name]
    derivative = functools.reduce(lambda g, kind: kind(g), kinds, f)
    assert derivative(x) == pytest.approx(exact(len(kinds), x), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("name", CLOSED_FORMS)
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("order", [4, 5])
def test_mixed_derivatives_to_fifth_order(name, order, start):
    f, exact, x = CLOSED_FORMS[name]
    kinds = [DERIVATIVES[(start + i) % 4] for i in range(order)]
    derivative = functools.reduce(lambda g, kind: kind(g), kinds, f)
    assert derivative(x) == pytest.approx(exact(order, x), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kind", DERIVATIVES)
def test_fifth_order_by_one_transform(kind):
    derivative = np.sin
    for _ in range(5):
        derivative = kind(derivative)
    assert derivative(0.7) == pytest.approx(math.cos(0.7), rel=1e-14)


@pytest.mark.parametrize("kinds", [*orders(1), *orders(2)], ids=name_of)
@pytest.mark.parametrize("inner", [by_grad, by_vjp])
@pytest.mark.parametrize(
    "x",
    [2.0, np.float64(2.0), np.float32(2.0), np.array(2.0), np.array(2.0, np.float32)],
    ids=["float", "float64", "float32", "0-d", "0-d float32"],
)
def test_gradient_is_of_the_same_kind_inside_other_transforms(inner, kinds, x):
    """A Python float stays one at every level, and so weakly typed."""
    seen = []

    def f(x):
        gradient = inner(lambda x: np.exp(x) * x)(x)
        seen.append(concrete(gradient))
        return gradient * x

    functools.reduce(lambda g, kind: kind(g), kinds, f)(x)
    plain = inner(lambda x: np.exp(x) * x)(x)
    assert [type(value) for value in seen] == [type(plain)]
    assert np.result_type(seen[0]) == np.result_type(plain)
    assert seen[0] == plain


# Vectors: f(x) = sum(sin(A x)), with gradient A' cos(A x) and Hessian -A' diag(sin(A x)) A.

A = np.array([[1.0, -2.0, 0.5], [0.3, 0.7, -1.1], [2.0, 0.1, 0.4], [-0.6, 1.2, 0.9]])
X = np.array([0.2, -0.4, 0.9])
U = np.array([1.0, 0.5, -2.0])
V = np.array([-0.3, 1.1, 0.8])


def f_vector(x):
    return np.sum(np.sin(A @ x))


HESSIAN = -(A.T * np.sin(A @ X)) @ A


def hvp_forward_over_reverse(f, x, v):
    return fg.jvp(fg.grad(f), (x,), (v,))[1]


def hvp_reverse_over_forward(f, x, v):
    return fg.grad(lambda x: fg.jvp(f, (x,), (v,))[1])(x)


def hvp_reverse_over_reverse(f, x, v):
    return fg.grad(lambda x: np.sum(fg.grad(f)(x) * v))(x)


def hvp_pullback_of_gradient(f, x, v):
    return fg.vjp(fg.grad(f), x)[1](v)[0]


def hvp_linearized_gradient(f, x, v):
    return fg.linearize(fg.grad(f), x)[1](v)


def hvp_reverse_over_linearize(f, x, v):
    return fg.grad(lambda x: fg.linearize(f, x)[1](v))(x)


def hvp_linearize_over_vjp(f, x, v):
    return fg.linearize(lambda x: fg.vjp(f, x)[1](1.0)[0], x)[1](v)


@pytest.mark.parametrize(
    "hvp",
    [
        hvp_forward_over_reverse,
        hvp_reverse_over_forward,
        hvp_reverse_over_reverse,
        hvp_pullback_of_gradient,
        hvp_linearized_gradient,
        hvp_reverse_over_linearize,
        hvp_linearize_over_vjp,
    ],
)
def test_hessian_vector_product(hvp):
    product = hvp(f_vector, X, V)
    assert product.dtype == np.float64
    np.testing.assert_allclose(product, HESSIAN @ V, rtol=1e-13)


def test_second_directional_derivative_forward_over_forward():
    along_u = fg.jvp(lambda x: fg.jvp(f_vector, (x,), (V,))[1], (X,), (U,))[1]
    assert along_u == pytest.approx(U @ HESSIAN @ V, rel=1e-13)


@pytest.mark.parametrize("hvp", [hvp_forward_over_reverse, hvp_reverse_over_forward])
def test_third_order_of_a_vector_function(hvp):
    third = fg.grad(lambda x: np.sum(hvp(f_vector, x, V) * U))(X)
    np.testing.assert_allclose(third, -A.T @ (np.cos(A @ X) * (A @ U) * (A @ V)), rtol=1e-12)


def test_hessian_of_a_known_function():
    """x**2 * y at (1, 2)."""
    gradient = fg.grad(lambda p: p[0] ** 2 * p[1])
    rows = [fg.grad(lambda p, i=i: gradient(p)[i])(np.array([1.0, 2.0])) for i in range(2)]
    np.testing.assert_array_equal(rows, [[4.0, 2.0], [2.0, 0.0]])


def test_mixed_partial_derivatives_of_two_arguments():
    f = lambda x, y: x**3 * np.sin(y)  # noqa: E731 - a formula
    dxdy = fg.grad(fg.grad(f, argnums=0), argnums=1)
    dydx = fg.grad(fg.grad(f, argnums=1), argnums=0)
    assert dxdy(1.2, 0.7) == pytest.approx(3 * 1.2**2 * math.cos(0.7), rel=1e-14)
    assert dydx(1.2, 0.7) == pytest.approx(3 * 1.2**2 * math.cos(0.7), rel=1e-14)


# Perturbation confusion: J. M. Siskind and B. A. Pearlmutter, "Nesting forward-mode AD in a
# functional framework", 2008; O. Manzyuk et al., "Perturbation confusion in forward automatic
# differentiation of higher-order functions", 2019.


@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("inner", DERIVATIVES)
def test_inner_derivative_does_not_see_the_outer_variable(outer, inner):
    """d/dx (x * d/dy (x + y)) is 1, where confusion gives 2."""
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0


@pytest.mark.parametrize("outer", DERIVATIVES)
@pytest.mark.parametrize("inner", DERIVATIVES)
def test_inner_derivative_at_the_outer_variable(outer, inner):
    """d/dx (x * d/dy (x * y**2) at y = x) = d/dx 2 x**3."""
    assert outer(lambda x: x * inner(lambda y: x * y**2)(x))(3.0) == 54.0


@pytest.mark.parametrize("kinds", orders(3), ids=name_of)
def test_three_levels_with_closures(kinds):
    """d/dx x**2 d/dy (x y d/dz (x y z**2)) at y = z = x = 2: 4 x**2 y**2 x z -> d/dx of 4 x**6."""
    outer, middle, inner = kinds

    def of_x(x):
        def of_y(y):
            return x * y * inner(lambda z: x * y * z * z)(x)

        return x * x * middle(of_y)(x)

    # inner: 2 x**2 y; of_y: 2 x**3 y**2; middle: 4 x**3 y; of_x: 4 x**6.
    assert outer(of_x)(2.0) == 24.0 * 2.0**5


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_curried_shift(derivative):
    """The derivative in u at 0 of f(x + u), as an operator on f, applied twice is f''."""

    def d(f):
        return lambda x: derivative(lambda u: f(x + u))(0.0)

    assert d(d(np.exp))(1.0) == pytest.approx(math.e, rel=1e-15)
    assert d(d(d(np.sin)))(0.4) == pytest.approx(-math.cos(0.4), rel=1e-14)


def test_function_returned_from_a_derivative_is_no_wrong_number():
    """A closure over the perturbation of an ended transform raises; it does not give 0."""
    _, shifted_dot = fg.jvp(lambda u: (u, lambda f: lambda x: f(x + u)), (0.0,), (1.0,))
    assert shifted_dot == (1.0, None)
    (_, shift), _ = fg.jvp(lambda u: (u, lambda f: lambda x: f(x + u)), (0.0,), (1.0,))
    with pytest.raises(TracerLeakError, match="escaped"):
        fg.grad(shift(np.exp))(1.0)


def test_inner_derivative_of_a_constant_in_its_variable_is_zero():
    f = fg.grad(lambda x: fg.grad(lambda y: x * x)(1.0) + x)
    assert f(3.0) == 1.0


def test_outer_variable_passes_through_an_inner_transform():
    def f(x):
        (value, outer), slope = fg.value_and_grad(lambda y: (y * x, x * x), has_aux=True)(2.0)
        return value + 10.0 * outer + 100.0 * slope

    # 2 x + 10 x**2 + 100 x
    assert fg.value_and_grad(f)(3.0) == (396.0, 162.0)


def test_gradient_step_is_differentiated():
    """One step of descent on (w - t)**2, differentiated in the learning rate."""

    def after_step(rate):
        w = 1.0 - rate * fg.grad(lambda w: (w - 3.0) ** 2)(1.0)
        return (w - 3.0) ** 2

    # w = 1 + 4 r; (4 r - 2)**2
    assert fg.grad(after_step)(0.1) == pytest.approx(8 * (0.4 - 2), rel=1e-14)


# Pullbacks and pushforwards as values


def test_pullback_is_called_several_times():
    out, pullback = fg.vjp(np.sin, X)
    np.testing.assert_array_equal(out, np.sin(X))
    first = pullback(U)[0]
    np.testing.assert_allclose(first, U * np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(pullback(V)[0], V * np.cos(X), rtol=1e-15)
    np.testing.assert_array_equal(pullback(U)[0], first)


def test_pushforward_is_called_several_times():
    _, pushforward = fg.linearize(np.exp, X)
    first = pushforward(U)
    np.testing.assert_allclose(first, U * np.exp(X), rtol=1e-15)
    np.testing.assert_allclose(pushforward(V), V * np.exp(X), rtol=1e-15)
    np.testing.assert_array_equal(pushforward(U), first)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_pullback_is_linear_and_differentiable(derivative):
    _, pullback = fg.vjp(lambda x: x**3, 2.0)
    assert derivative(lambda t: pullback(t)[0])(5.0) == 12.0


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_pushforward_is_linear_and_differentiable(derivative):
    _, pushforward = fg.linearize(lambda x: x**3, 2.0)
    assert derivative(lambda t: pushforward(t))(5.0) == 12.0


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_pullback_made_inside_another_transform(derivative):
    def f(x):
        _, pullback = fg.vjp(lambda y: x * y**3, x)
        return pullback(x)[0]  # 3 x * x**2 * x

    assert derivative(f)(2.0) == 3 * 4 * 8.0


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_pushforward_made_inside_another_transform(derivative):
    def f(x):
        _, pushforward = fg.linearize(lambda y: x * y**3, x)
        return pushforward(x)

    assert derivative(f)(2.0) == 3 * 4 * 8.0


def test_pullback_with_residuals_of_an_ended_transform_raises():
    kept = []

    def f(x):
        kept.append(fg.vjp(lambda y: x * y * y, 2.0)[1])
        return x

    fg.grad(f)(3.0)
    with pytest.raises(TracerLeakError, match="escaped"):
        kept[0](1.0)


def test_pullback_works_in_several_threads_at_once():
    w = np.linspace(0.5, 1.5, 50)
    _, pullback = fg.vjp(lambda x: np.tanh(x * w) * np.sin(x) + x * x, w)
    cotangents = [np.full(50, float(i)) for i in range(16)]
    expected = [pullback(c)[0] for c in cotangents]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        got = list(pool.map(lambda c: pullback(c)[0], cotangents * 4))
    for i, gradient in enumerate(got):
        np.testing.assert_array_equal(gradient, expected[i % 16])


# Threads


def test_each_thread_differentiates_by_itself():
    start = threading.Barrier(16)

    def work(k):
        start.wait()
        results = []
        for _ in range(10):
            f = fg.grad(fg.grad(lambda x: np.sin(float(k) * x)))
            results.append(f(0.1))
        return results

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for k, results in enumerate(pool.map(work, range(16))):
            expected = [-(k**2) * math.sin(k * 0.1)] * 10
            np.testing.assert_allclose(results, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_thread_pool_inside_a_differentiated_function(derivative):
    def f(x):
        def power(k):
            y = x
            for _ in range(k):
                y = y * x
            return y

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return functools.reduce(lambda a, b: a + b, pool.map(power, range(8)))

    x = 1.1
    exact = sum((k + 1) * x**k for k in range(8))
    assert derivative(f)(x) == pytest.approx(exact, rel=1e-13)


def test_inner_derivatives_in_threads_of_an_outer_one():
    def f(x):
        def inner(k):
            return fg.grad(lambda y: x * y**k)(x)  # k x**k

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return functools.reduce(lambda a, b: a + b, pool.map(inner, range(1, 5)))

    assert fg.grad(f)(2.0) == sum(k * k * 2.0 ** (k - 1) for k in range(1, 5))


# Generators


def multiples(x):
    """Yield x, x**2, x**3, ..."""
    y = x
    while True:
        yield y
        y = y * x


def test_generator_inside_a_differentiated_function():
    assert fg.grad(lambda x: list(itertools.islice(multiples(x), 4))[-1])(2.0) == 32.0


def test_generators_of_different_transforms_interleave():
    def outer(x):
        of_x = multiples(x)
        next(of_x)

        def inner(y):
            of_y = multiples(y * x)
            next(of_y)
            return next(of_y) * next(of_x)  # (x y)**2 * x**2, the generator of x goes on in here

        slope = fg.grad(inner)(3.0)  # 2 y x**4
        return slope * next(of_x)  # 6 x**4 * x**3

    assert fg.grad(outer)(2.0) == 42 * 2.0**6


def test_generator_suspended_after_its_transform_raises():
    kept = []

    def f(x):
        generator = multiples(x)
        next(generator)
        kept.append(generator)
        return x

    fg.grad(f)(2.0)
    with pytest.raises(TracerLeakError, match="escaped"):
        next(kept[0])


def test_generators_of_two_calls_stay_apart():
    """Two calls of the same transform run step by step in turn, as coroutines would."""

    def steps(x0, weight):
        def f(x):
            y = x
            for _ in range(3):
                y = y * weight
                events.append(weight)
                turns[weight].release()
                turns[5.0 - weight].acquire()
            return y

        results[weight] = fg.grad(f)(x0)
        turns[weight].release()

    events, results = [], {}
    turns = {2.0: threading.Semaphore(0), 3.0: threading.Semaphore(0)}
    threads = [threading.Thread(target=steps, args=(1.0, weight)) for weight in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results == {2.0: 8.0, 3.0: 27.0}


# Python's control flow


def newton_sqrt(a):
    """Iterate until it stands still."""
    x = a
    while abs(x * x - a) > 1e-15 * a:
        new = 0.5 * (x + a / x)
        if new == x:
            break
        x = new
    return x


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_while_loop_on_a_traced_value(derivative):
    assert derivative(newton_sqrt)(2.0) == pytest.approx(1 / (2 * math.sqrt(2.0)), rel=1e-7)


def factorial_like(x):
    return x if x < 1.0 else x * factorial_like(x - 1.0)


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_recursion_on_a_traced_value(derivative):
    """3.5 * 2.5 * 1.5 * 0.5, by the product rule."""
    factors = (3.5, 2.5, 1.5, 0.5)
    product = math.prod(factors)
    exact = sum(product / factor for factor in factors)
    assert derivative(factorial_like)(3.5) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize(("x", "exact"), [(-2.0, -4.0), (0.5, 1.0), (3.0, math.exp(3.0))])
def test_early_return(derivative, x, exact):
    def f(x):
        if x < 0:
            return x * x
        if not x > 1:
            return x
        return np.exp(x)

    assert derivative(f)(x) == pytest.approx(exact, rel=1e-15)


def test_sorting_and_choosing_by_value():
    f = fg.grad(lambda x: sorted(x)[0] * 10.0 + max(x) * min(x[0], x[1]))
    np.testing.assert_array_equal(f(np.array([3.0, 1.0, 2.0])), [1.0, 13.0, 0.0])


# No state is left behind


@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_is_tracing_only_inside(derivative):
    seen = []
    assert not is_tracing()
    derivative(lambda x: seen.append(is_tracing()) or x * x)(1.0)
    assert seen == [True]
    assert not is_tracing()


@pytest.mark.parametrize("kinds", orders(2), ids=name_of)
def test_exception_leaves_no_state(kinds):
    outer, inner = kinds

    def failing(x):
        raise KeyError("on purpose")

    for _ in range(2):
        with pytest.raises(KeyError, match="on purpose"):
            outer(lambda x: x * inner(failing)(x))(1.0)
        assert not is_tracing()
    assert outer(inner(np.sin))(0.5) == pytest.approx(-math.sin(0.5), rel=1e-15)


def test_exception_caught_inside_the_function_goes_unnoticed():
    def f(x):
        with contextlib.suppress(KeyError):
            fg.grad(lambda y: {}[str(y)] * y)(x)
        assert is_tracing()
        return x * x

    assert fg.grad(f)(3.0) == 6.0
    assert not is_tracing()


def test_error_of_numpy_is_the_same_as_without_tracing():
    with pytest.raises(ValueError, match="could not be broadcast together"):
        fg.grad(lambda x: np.sum(x + np.ones(4)))(X)
    assert not is_tracing()


def test_other_threads_are_not_tracing():
    def f(x):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            assert not pool.submit(is_tracing).result()
        return x

    assert fg.grad(f)(1.0) == 1.0
