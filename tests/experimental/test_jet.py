"""jet: derivatives of any order along a path, against closed forms, nested jvp, and JAX."""

import math

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.control import scan
from funcgrad.core.primitive import Primitive
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MissingRuleError,
    ShapeError,
    TreeMismatchError,
)
from funcgrad.experimental import jet

ORDER = 8
W = np.array([[0.5, -1.0], [0.3, 0.8]])
X = np.array([0.3, -0.2])


def along(order):
    """Return the terms of the path x + t."""
    return [1.0, *[0.0] * (order - 1)]


def derivatives(f, x, order=ORDER):
    """Return f(x), f'(x), ... by jet."""
    value, terms = jet(f, (x,), (along(order),))
    return [value, *terms]


def nested(f, order, *primals, dots):
    """Return the derivatives of f along a line, by one jvp in another."""
    made = [f(*primals)]
    for _ in range(order):
        f = (lambda g: lambda *xs: fg.jvp(g, xs, dots)[1])(f)
        made.append(f(*primals))
    return made


# Closed forms


def falling(a, n):
    """a (a - 1) ... (a - n + 1)"""
    return math.prod(a - k for k in range(n))


CLOSED = {
    "exp": (np.exp, lambda x, n: math.exp(x)),
    "sin": (np.sin, lambda x, n: math.sin(x + n * math.pi / 2)),
    "cos": (np.cos, lambda x, n: math.cos(x + n * math.pi / 2)),
    "log": (np.log, lambda x, n: (-1) ** (n - 1) * math.factorial(n - 1) / x**n),
    "power": (lambda x: x**2.5, lambda x, n: falling(2.5, n) * x ** (2.5 - n)),
    "sqrt": (np.sqrt, lambda x, n: falling(0.5, n) * x ** (0.5 - n)),
    "reciprocal": (lambda x: 1 / x, lambda x, n: (-1) ** n * math.factorial(n) / x ** (n + 1)),
    "base": (lambda x: 2.0**x, lambda x, n: math.log(2.0) ** n * 2.0**x),
    "sinh": (np.sinh, lambda x, n: math.cosh(x) if n % 2 else math.sinh(x)),
    "quotient": (
        lambda x: (1 + x) / (1 - x),  # 2 / (1 - x) - 1
        lambda x, n: 2 * math.factorial(n) / (1 - x) ** (n + 1),
    ),
    "exp of square": (  # Hermite polynomials
        lambda x: np.exp(-x * x),
        lambda x, n: (-1) ** n * sp.eval_hermite(n, x) * math.exp(-x * x),
    ),
    "digamma": (sp.digamma, lambda x, n: sp.polygamma(n, x)),
}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("x", [0.7, np.float64(1.3)])
def test_eight_derivatives(name, x):
    f, closed = CLOSED[name]
    value, *terms = derivatives(f, x)
    assert value == f(x)
    assert_allclose(terms, [closed(float(x), n) for n in range(1, ORDER + 1)], rtol=2e-13)


def test_tanh_by_the_tangent_numbers():
    """At 0 the derivatives of tanh are 1, 0, -2, 0, 16, 0, -272, 0."""
    _, *terms = derivatives(np.tanh, 0.0)
    assert_allclose(terms, [1.0, 0.0, -2.0, 0.0, 16.0, 0.0, -272.0, 0.0], rtol=1e-14, atol=1e-13)


def test_tan_by_the_tangent_numbers():
    _, *terms = derivatives(np.tan, 0.0)
    assert_allclose(terms, [1.0, 0.0, 2.0, 0.0, 16.0, 0.0, 272.0, 0.0], rtol=1e-14, atol=1e-13)


def test_arcsin_and_arctan_at_zero():
    _, *terms = derivatives(np.arcsin, 0.0)
    assert_allclose(terms, [1, 0, 1, 0, 9, 0, 225, 0], rtol=1e-14, atol=1e-13)
    _, *terms = derivatives(np.arctan, 0.0)
    assert_allclose(terms, [1, 0, -2, 0, 24, 0, -720, 0], rtol=1e-14, atol=1e-12)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5])
def test_polynomials_end(exponent):
    for x in (2.0, 0.0):
        _, *terms = derivatives(lambda x: x**exponent, x)
        expected = [falling(exponent, n) * x ** max(exponent - n, 0) for n in range(1, ORDER + 1)]
        assert terms == expected


def test_product_of_polynomials():
    """Coefficients multiply as np.polymul does."""
    p, q = np.array([2.0, -1.0, 3.0, 0.5]), np.array([1.0, 4.0, -2.0])
    value, terms = jet(
        np.multiply,
        (p[-1], q[-1]),
        (list(p[-2::-1]) + [None] * 2, list(q[-2::-1]) + [None] * 3),
        factorial_scaled=False,
    )
    assert_allclose([*terms[::-1], value], np.polymul(p, q), rtol=1e-15)


def test_composition_with_a_path():
    """x(t) = 1 + 2 t - t**2 and f = x**3: the coefficients of the cube of the polynomial."""
    value, terms = jet(
        lambda x: x * x * x, (1.0,), ([2.0, -1.0, *[None] * 4],), factorial_scaled=False
    )
    expected = np.polymul(np.polymul([-1, 2, 1], [-1, 2, 1]), [-1, 2, 1])
    assert_allclose([*terms[::-1], value], expected, rtol=1e-15)


def test_inverse_of_a_matrix():
    """(1 - t A)^-1 = sum of t**n A**n."""
    _, terms = jet(np.linalg.inv, (np.eye(2),), ([-W, *[None] * 5],), factorial_scaled=False)
    for n, term in enumerate(terms, 1):
        assert_allclose(term, np.linalg.matrix_power(W, n), rtol=1e-12, atol=1e-14)


def test_solve_with_a_path_in_the_matrix():
    b = np.array([1.0, 2.0])
    _, terms = jet(
        lambda a: np.linalg.solve(a, b), (np.eye(2),), ([-W, *[None] * 5],), factorial_scaled=False
    )
    for n, term in enumerate(terms, 1):
        assert_allclose(term, np.linalg.matrix_power(W, n) @ b, rtol=1e-12, atol=1e-14)


# JAX's convention


def mlp(x, w):
    return np.sum(np.tanh(w @ np.tanh(w @ x)))


def test_two_layers_as_jax():
    """jax.experimental.jet.jet, 0.10.2, in float64."""
    value, terms = jet(
        mlp,
        (X, W),
        (
            [np.array([1.0, 0.5]), np.array([0.0, -1.0]), np.array([2.0, 0.0]), np.zeros(2)],
            [np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((2, 2)), np.ones((2, 2)), None],
        ),
    )
    assert_allclose(value, 0.2786490124368304, rtol=1e-14)
    expected = [-0.013616551067993754, 1.9899317207644909, 10.826423400019126, -28.67129497031442]
    assert_allclose(terms, expected, rtol=1e-13)


def test_derivatives_of_a_sine_as_jax():
    """Of sin(z**3) at z = 0.5, the example in its documentation."""
    value, (first, second) = jet(np.sin, (0.5**3,), ((3 * 0.5**2, 6 * 0.5),))
    assert value == np.sin(0.125)
    assert_allclose([first, second], [0.74414825, 2.90646346], rtol=1e-8)


def test_coefficients_without_factorials_as_jax():
    _, terms = jet(lambda x: np.exp(x) / (1 + x**2), (0.4,), (along(6),), factorial_scaled=False)
    expected = [
        -0.7408965783828726,
        0.38123616803281757,
        0.42936810892960176,
        -0.6140506747380646,
        0.055124491041012025,
    ]
    assert_allclose(terms[0], 0.39912075739510805, rtol=1e-13)
    assert_allclose(terms[1:], expected, rtol=1e-13)


def test_pytree_of_outputs_as_jax():
    """A list of terms in the place of each leaf."""
    value, terms = jet(lambda x: {"a": x * x, "b": (np.log(x),)}, (0.4,), ([1.0, 2.0, -1.0],))
    assert value == {"a": 0.4 * 0.4, "b": (np.log(0.4),)}
    assert_allclose(terms["a"], [0.8, 3.6, 11.2], rtol=1e-14)
    assert_allclose(terms["b"][0], [2.5, -1.25, -8.75], rtol=1e-14)


# Against nested jvp


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def assigned(x):
    y = np.zeros_like(x)
    y[0] = x[1] ** 3
    y[1] = np.sin(x[0]) * y[0]
    return y


def looped(x):
    return scan(lambda c, w: (np.tanh(w @ c), c[0]), x, np.stack([W, W.T, -W]))


def by_eigenvalues(x):
    return np.linalg.eigvalsh(np.diag([1.0, 2.0, 4.0]) + np.outer(np.arange(3.0), x[[0, 1, 0]]))


COMPOSED = {
    "rosenbrock": rosenbrock,
    "assignment": assigned,
    "scan": looped,
    "norm": np.linalg.norm,
    "softmax": fg.nn.functional.softmax,
    "logaddexp": lambda x: np.logaddexp(x[0], x[1]),
    "arctan2 and hypot": lambda x: (np.arctan2(x[0], x[1]), np.hypot(x[0], x[1])),
    "sort and max": lambda x: (np.sort(x) ** 2, np.max(x * x), np.where(x > 0, x**2, x**3)),
    "einsum of three": lambda x: np.einsum("i,ij,j->", x, W * x[0], x),
    "prod": lambda x: np.prod(x + 1.0),
    "cumprod": lambda x: np.cumprod(x + 1.0),
    "cholesky": lambda x: np.linalg.cholesky(np.eye(2) + 0.1 * np.outer(x, x)),
    "slogdet": lambda x: np.linalg.slogdet(np.eye(2) + np.outer(x, np.cos(x)))[1],
    "qr": lambda x: np.linalg.qr(W + np.outer(x, x)),
    "eigenvalues": by_eigenvalues,
    "fft": lambda x: np.abs(np.fft.fft(np.sin(x))) ** 2,
    "power of two": lambda x: (x + 1.0) ** x,
    "bessel": lambda x: sp.jv(1.5, x + 1.0),
    "gamma": lambda x: sp.gamma(x + 1.5),
    "a gradient": fg.grad(rosenbrock),
    "a hessian": fg.hessian(lambda x: np.sum(np.exp(x) * x[::-1])),
    "vmap": fg.vmap(lambda x: np.exp(x * x)),
    "checkpoint": fg.checkpoint(lambda x: np.sin(x) ** 2),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_five_orders_are_those_of_nested_jvp(name):
    f = COMPOSED[name]
    dot = np.array([0.9, -0.4])
    value, terms = jet(f, (X,), ([dot, None, None, None, None],))
    expected = nested(f, 5, X, dots=(dot,))
    columns = fg.tree.structure(value).flatten_up_to(terms)
    for place, leaf in enumerate(fg.tree.leaves(value)):
        assert np.array_equal(leaf, fg.tree.leaves(expected[0])[place])
        for k, term in enumerate(columns[place], 1):
            want = fg.tree.leaves(expected[k])[place]
            assert np.shape(term) == np.shape(want)
            scale = max(1.0, np.max(np.abs(want)))
            assert_allclose(term, want, rtol=1e-10, atol=1e-11 * scale)


def test_curved_path_of_two_arguments():
    """Against a run of the function on polynomials of t, differentiated by nested jvp."""
    primals = (X, W)
    series = ([W[0], W[1], X], [W.T, 2.0 * W, None])

    def of_t(t):
        x, w = (
            p + sum(s * t**k / math.factorial(k) for k, s in enumerate(terms, 1) if s is not None)
            for p, terms in zip(primals, series, strict=True)
        )
        return mlp(x, w)

    _, terms = jet(mlp, primals, series)
    assert_allclose(terms, nested(of_t, 3, 0.0, dots=(1.0,))[1:], rtol=1e-12)


def test_one_term_is_jvp():
    out, (term,) = jet(looped, (X,), ([W[0]],))[0], jet(lambda x: looped(x)[0], (X,), ([W[0]],))[1]
    expected, dot = fg.jvp(looped, (X,), (W[0],))
    assert np.array_equal(out[0], expected[0])
    assert_allclose(term, dot[0], rtol=1e-14)


# With other transforms


def third(f):
    return lambda x: jet(f, (x,), (along(3),))[1][2]


def test_gradient_of_a_third_derivative():
    assert_allclose(fg.grad(third(np.sin))(0.4), np.sin(0.4), rtol=1e-14)


def test_vmap_of_a_third_derivative():
    x = np.array([0.1, 0.4, 2.0])
    assert_allclose(fg.vmap(third(np.sin))(x), -np.cos(x), rtol=1e-14)
    assert_allclose(fg.vmap(fg.grad(third(np.sin)))(x), np.sin(x), rtol=1e-14)


def test_jet_of_a_jet():
    assert_allclose(third(third(np.exp))(0.3), np.exp(0.3), rtol=1e-14)
    assert_allclose(third(third(lambda x: x**7))(2.0), falling(7, 6) * 2.0, rtol=1e-14)


def test_path_by_a_traced_direction():
    """The second derivative along d is d H d; its gradient in d is 2 H d."""
    hessian = fg.hessian(rosenbrock)(X)
    gradient = fg.grad(lambda d: jet(rosenbrock, (X,), ([d, None],))[1][1])(W[0])
    assert_allclose(gradient, 2.0 * hessian @ W[0], rtol=1e-13)


def test_no_confusion_of_paths():
    def f(x):
        return x * jet(lambda y: x * y**2, (3.0,), ([1.0, None],))[1][0]  # x * 6 x

    assert derivatives(f, 2.0, 3) == [24.0, 24.0, 12.0, 0.0]


def test_custom_rules_are_used():
    ruled = fg.custom_jvp(np.sin)
    ruled.defjvp(lambda primals, dots: (np.sin(primals[0]), 7.0 * primals[0] * dots[0]))
    _, *terms = derivatives(ruled, 2.0, 3)
    assert terms == [14.0, 7.0, 0.0]
    assert terms == [d(2.0) for d in (fg.grad(ruled), fg.grad(fg.grad(ruled)), third(ruled))]
    backward = fg.custom_vjp(np.sin)
    backward.defvjp(lambda x: (np.sin(x), x), lambda x, out_bar: (7.0 * x * out_bar,))
    assert derivatives(backward, 2.0, 3)[1:] == terms


def test_custom_rule_that_calls_its_function():
    @fg.custom_jvp
    def f(x):
        return np.exp(2.0 * x)

    f.defjvp(lambda primals, dots: (f(primals[0]), 3.0 * f(primals[0]) * dots[0]))
    _, *terms = derivatives(f, 0.0, 4)
    assert_allclose(terms, [3.0, 9.0, 27.0, 81.0], rtol=1e-14)


def test_long_custom_rule():
    f = fg.custom_jvp(lambda x: x)

    def rule(primals, dots):
        x = y = primals[0]
        for _ in range(2_000):
            y = np.cos(y) * 0.5
        return x, y * 0.0 + dots[0]

    f.defjvp(rule)
    assert derivatives(lambda x: f(x) ** 2, 3.0, 3) == [9.0, 6.0, 2.0, 0.0]


def test_long_chain():
    def f(x):
        for _ in range(5_000):
            x = x + x * 1e-4
        return x

    assert_allclose(derivatives(f, 1.0, 3)[1:], [1.0001**5_000, 0.0, 0.0], rtol=1e-12)


# Kinds of values


def test_zero_wins_in_all_orders():
    with np.errstate(invalid="ignore"):
        _, *terms = derivatives(lambda x: np.where(x < 2, x * x, np.sqrt(x - 2)), 1.0, 3)
    assert terms == [2.0, 2.0, 0.0]


def test_constant_output():
    assert jet(lambda x: (x, 5.0), (2.0,), ([1.0, None],)) == ((2.0, 5.0), ([1.0, 0.0], [0.0, 0.0]))


def test_output_that_is_no_float():
    value, terms = jet(lambda x: (x * x, x > 0, "text", 3), (2.0,), ([1.0, 0.0],))
    assert value == (4.0, True, "text", 3)
    assert terms == ([4.0, 2.0], [None, None], [None, None], [None, None])


def test_pytree_of_arguments():
    params = {"w": W, "b": X, "name": "layer", "n": 2}
    series = {"w": [W, None], "b": None, "name": None, "n": None}
    _, terms = jet(lambda p: np.sum((p["w"] @ p["b"]) ** p["n"]), (params,), (series,))
    size = np.sum((W @ X) ** 2)  # times (1 + t)**2
    assert_allclose(terms, [2 * size, 2 * size], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtype_is_kept(dtype):
    x = np.array([0.5, 1.5], dtype)
    value, terms = jet(lambda x: np.exp(x) / x, (x,), ([np.ones(2, dtype), None, None],))
    assert value.dtype == dtype
    assert [term.dtype for term in terms] == [dtype] * 3


def test_complex_path():
    _, *terms = derivatives(np.exp, 1j, 4)
    assert_allclose(terms, [np.exp(1j)] * 4, rtol=1e-14)


def test_array_of_terms():
    _, terms = jet(np.exp, (X,), (np.array([[1.0, 1.0], [0.0, 0.0]]),))
    assert_allclose(terms, [np.exp(X), np.exp(X)], rtol=1e-15)


def test_no_terms():
    assert jet(np.square, (3.0,), ([],)) == (9.0, [])


def test_results_share_no_memory():
    dot = np.ones(2)
    _, (first, second) = jet(lambda x: x, (X,), ([dot, dot],))
    first[0] = 100.0
    assert np.array_equal(second, [1.0, 1.0])
    assert np.array_equal(dot, [1.0, 1.0])


# Cost


def operations(f, x, order):
    """Count the operations on numbers that a jet does: those that reverse mode would record."""
    counts = []

    def run(x):
        before = x._trace.new_index()
        derivatives(f, x, order)
        counts.append(x._trace.new_index() - before - 1)
        return x * 1.0

    fg.grad(run)(x)
    return counts[0]


def test_operations_of_exp_grow_with_the_square_of_the_order():
    assert [operations(np.exp, 0.3, n) for n in (1, 2, 4, 8, 16)] == [
        n * (n + 2) for n in (1, 2, 4, 8, 16)
    ]


@pytest.mark.parametrize(
    "f", [np.sin, np.tanh, np.log, np.sqrt, np.arctan, sp.erf, lambda x: x / (1 + x * x)]
)
def test_twice_the_order_takes_at_most_four_times_the_operations(f):
    assert operations(f, 0.3, 16) < 4.2 * operations(f, 0.3, 8)


@pytest.mark.parametrize("f", [lambda x: x**2.5, lambda x: x**x, sp.gammaln, sp.gamma])
def test_twice_the_order_takes_at_most_eight_times_the_operations(f):
    assert operations(f, 0.3, 12) < 8.5 * operations(f, 0.3, 6)


def test_layers_take_few_operations_where_nested_jvp_takes_many():
    def f(x):
        return mlp(X * x, W)

    def nested_operations(order):
        counts = []

        def run(x):
            before = x._trace.new_index()
            nested(f, order, x * 1.0, dots=(1.0,))
            counts.append(x._trace.new_index() - before - 1)
            return x * 1.0

        fg.grad(run)(0.3)
        return counts[0]

    assert operations(f, 0.3, 8) < 0.1 * nested_operations(8)


# Bad input


def test_series_that_is_no_list():
    with pytest.raises(ArgumentError, match=r"must be a list of terms, got float 1\.0") as caught:
        jet(np.sin, (1.0,), (1.0,))
    assert "argument 0" in str(caught.value)
    with pytest.raises(ArgumentError, match="series of jet must be a tuple or list"):
        jet(np.sin, (1.0,), 1.0)
    with pytest.raises(ArgumentError, match="primals of jet must be a tuple or list"):
        jet(np.sin, 1.0, ([1.0],))


def test_numbers_of_arguments():
    with pytest.raises(ArgumentError, match="jet got 2 primals but 1 series"):
        jet(np.multiply, (1.0, 2.0), ([1.0],))


def test_different_numbers_of_terms():
    with pytest.raises(ArgumentError, match="different numbers of terms") as caught:
        jet(lambda p, y: p["a"] * y, ({"a": 1.0}, 2.0), ({"a": [1.0, 0.0]}, [1.0]))
    assert "argument 0 at ['a']: 2 terms" in str(caught.value)
    assert "argument 1: 1 terms" in str(caught.value)


def test_no_series_at_all():
    with pytest.raises(ArgumentError, match="no series of jet has terms"):
        jet(np.sin, (1.0,), (None,))


def test_structure_of_the_series():
    with pytest.raises(TreeMismatchError, match=r"series\[0\] does not have the structure"):
        jet(lambda p: p["a"], ({"a": 1.0},), ({"b": [1.0]},))


def test_shape_and_dtype_of_a_term():
    with pytest.raises(ShapeError, match="the term of order 2 has shape"):
        jet(np.sin, (X,), ([X, np.ones(3)],))
    with pytest.raises(DtypeError, match="the term of order 1"):
        jet(np.sin, (X,), ([X * 1j],))


def test_integers_have_no_path():
    with pytest.raises(DtypeError, match="jet needs floating-point"):
        jet(np.square, (np.arange(3),), ([np.ones(3)],))


def test_operation_without_a_rule():
    lonely = Primitive(np.sin, name="lonely")
    with pytest.raises(MissingRuleError, match="lonely"):
        jet(lonely.bind, (1.0,), ([1.0],))


def test_value_that_escapes():
    kept = []

    def f(x):
        kept.append(x)
        return x

    jet(f, (1.0,), ([1.0],))
    with pytest.raises(fg.errors.TracerLeakError, match=r"jet\(f\)"):
        np.sin(kept[0])
