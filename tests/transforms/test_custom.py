"""custom_vjp and custom_jvp: the rule that counts, the one that is derived, and what goes wrong."""

import functools
import math
import pickle
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MissingRuleError,
    ShapeError,
    TracerConversionError,
    TracerLeakError,
    TreeMismatchError,
)
from funcgrad.transforms.custom import custom_jvp, custom_vjp

X = np.array([0.3, -1.2, 2.0])


def plain(x, y):
    """Return a function of two arguments whose true derivatives the rules below have, times 3."""
    return np.sin(x) * y


@custom_vjp
def by_vjp(x, y):
    return np.sin(x) * y


def by_vjp_fwd(x, y):
    return np.sin(x) * y, (x, y)


def by_vjp_bwd(residuals, out_bar):
    x, y = residuals
    return 3.0 * np.cos(x) * y * out_bar, np.sum(3.0 * np.sin(x) * out_bar)


by_vjp.defvjp(by_vjp_fwd, by_vjp_bwd)


@custom_jvp
def by_jvp(x, y):
    return np.sin(x) * y


@by_jvp.defjvp
def by_jvp_rule(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return np.sin(x) * y, 3.0 * np.cos(x) * y * x_dot + 3.0 * np.sin(x) * y_dot


@custom_jvp
def by_jvps(x, y):
    return np.sin(x) * y


by_jvps.defjvps(
    lambda x_dot, out, x, y: 3.0 * np.cos(x) * y * x_dot,
    lambda y_dot, out, x, y: 3.0 * np.sin(x) * y_dot,
)

RULED = pytest.mark.parametrize("fun", [by_vjp, by_jvp, by_jvps], ids=lambda fun: fun.__name__)


def with_rule(fun, fwd, bwd):
    made = custom_vjp(fun)
    made.defvjp(fwd, bwd)
    return made


# Values and first derivatives


@RULED
def test_value_is_that_of_the_function(fun):
    assert fun(1.0, 2.0) == np.sin(1.0) * 2.0
    assert fg.value_and_grad(fun)(1.0, 2.0)[0] == np.sin(1.0) * 2.0


@RULED
def test_grad_is_by_the_rule(fun):
    assert_allclose(fg.grad(fun, (0, 1))(1.0, 2.0), (6.0 * np.cos(1.0), 3.0 * np.sin(1.0)))


@RULED
def test_jvp_is_by_the_rule(fun):
    out, out_dot = fg.jvp(fun, (1.0, 2.0), (1.0, 0.5))
    assert out == np.sin(1.0) * 2.0
    assert_allclose(out_dot, 6.0 * np.cos(1.0) + 1.5 * np.sin(1.0))


@RULED
def test_linearize_is_by_the_rule(fun):
    out, push = fg.linearize(fun, X, 2.0)
    assert np.array_equal(out, np.sin(X) * 2.0)
    for y_dot in (0.5, 0.0):
        assert_allclose(push(X, y_dot), 6.0 * np.cos(X) * X + 3.0 * np.sin(X) * y_dot)


@RULED
def test_one_argument_of_two(fun):
    assert_allclose(fg.grad(lambda y: fun(1.0, y))(2.0), 3.0 * np.sin(1.0))
    assert_allclose(fg.jvp(lambda x: fun(x, 2.0), (1.0,), (1.0,))[1], 6.0 * np.cos(1.0))


@RULED
def test_pullback_many_times(fun):
    _, pullback = fg.vjp(fun, X, 2.0)
    for scale in (1.0, 10.0):
        assert_allclose(pullback(np.full(3, scale))[0], scale * 6.0 * np.cos(X))


@RULED
def test_arguments_may_change_before_the_pullback_runs(fun):
    x = X.copy()
    _, pullback = fg.vjp(fun, x, 2.0)
    x[:] = 100.0
    assert_allclose(pullback(np.ones(3))[0], 6.0 * np.cos(X))


@RULED
def test_constant_array_may_change_before_the_backward_pass(fun):
    buffer = X.copy()

    def loss(y):
        out = np.sum(fun(buffer, y))
        buffer[:] = 100.0
        return out

    assert_allclose(fg.grad(loss)(2.0), 3.0 * np.sum(np.sin(X)))


# Higher orders and mixtures: the rules are differentiated as the code that they are

MIXTURES = {
    "reverse over reverse": lambda f: fg.grad(fg.grad(f)),
    "forward over reverse": lambda f: fg.jacfwd(fg.grad(f)),
    "reverse over forward": lambda f: fg.grad(fg.jacfwd(f)),
    "forward over forward": lambda f: fg.jacfwd(fg.jacfwd(f)),
    "hessian": fg.hessian,
}


@RULED
@pytest.mark.parametrize("mixture", MIXTURES)
def test_second_derivative(fun, mixture):
    assert_allclose(MIXTURES[mixture](fun)(1.0, 2.0), -6.0 * np.sin(1.0))


def test_third_derivative_by_a_rule_that_calls_the_function():
    @custom_jvp
    def exp(x):
        return np.exp(x)

    @exp.defjvp
    def exp_jvp(primals, tangents):
        out = exp(*primals)
        return out, 2.0 * out * tangents[0]

    third = fg.grad(fg.grad(fg.grad(exp)))(1.0)
    assert_allclose(third, 8.0 * np.exp(1.0))


def test_rule_that_calls_the_function_on_tangents():
    @custom_jvp
    def product(a, x):
        return a @ x

    @product.defjvp
    def product_jvp(primals, tangents):
        (a, x), (a_dot, x_dot) = primals, tangents
        return product(a, x), product(a_dot, x) + product(a, x_dot)

    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    gradient = fg.grad(lambda a, x: np.sum(product(a, x)), (0, 1))(a, np.array([5.0, 6.0]))
    assert np.array_equal(gradient[0], [[5.0, 6.0], [5.0, 6.0]])
    assert np.array_equal(gradient[1], [4.0, 6.0])


def test_rules_of_two_functions_that_call_each_other_on_tangents():
    @custom_jvp
    def double(x):
        return 2.0 * x

    @custom_jvp
    def twice(x):
        return 2.0 * x

    double.defjvp(lambda primals, tangents: (double(*primals), twice(*tangents)))
    twice.defjvp(lambda primals, tangents: (twice(*primals), double(*tangents)))
    assert fg.grad(double)(1.0) == 2.0


# Under vmap


@RULED
def test_vmap_of_grad(fun):
    gradients = fg.vmap(fg.grad(fun), (0, None))(X, 2.0)
    assert_allclose(gradients, 6.0 * np.cos(X))


@RULED
def test_grad_of_vmap_sums_over_what_the_examples_share(fun):
    total = fg.grad(lambda y: np.sum(fg.vmap(fun, (0, None))(X, y)))(2.0)
    assert_allclose(total, 3.0 * np.sum(np.sin(X)))


@RULED
@pytest.mark.parametrize("jacobian", [fg.jacrev, fg.jacfwd])
def test_jacobian_of_vmap(fun, jacobian):
    assert_allclose(
        jacobian(lambda x: fg.vmap(fun, (0, None))(x, 2.0))(X),
        np.diag(6.0 * np.cos(X)),
        atol=1e-15,
    )


@RULED
def test_second_derivative_through_vmap(fun):
    def batch(x):
        return fg.vmap(fun, (None, 0))(x, X)

    assert_allclose(fg.jacfwd(fg.jacrev(batch))(1.0), -3.0 * np.sin(1.0) * X)
    assert_allclose(fg.jacrev(fg.jacfwd(batch))(1.0), -3.0 * np.sin(1.0) * X)


@RULED
def test_nested_vmap(fun):
    table = fg.vmap(lambda x: fg.vmap(lambda y: fg.grad(fun)(x, y))(X))(X)
    assert_allclose(table, 3.0 * np.outer(np.cos(X), X))


def test_rule_sees_one_example():
    shapes = []

    def fwd(x):
        shapes.append(np.shape(x))
        return np.sum(x), x

    def bwd(x, out_bar):
        shapes.append((np.shape(x), np.shape(out_bar)))
        return (np.ones_like(x) * out_bar,)

    total = with_rule(lambda x: np.sum(x), fwd, bwd)
    fg.vmap(fg.grad(total))(np.ones((4, 3)))
    fg.grad(lambda x: np.sum(fg.vmap(total)(x)))(np.ones((4, 3)))
    assert shapes == [(3,), ((3,), ())] * 2


def test_unbatched_integer_output_stays_an_integer_in_the_function():
    counted = with_rule(
        lambda x: (x, 3), lambda x: ((x, 3), None), lambda residuals, bars: (bars[0],)
    )

    def fill(x):
        value, count = counted(x)
        assert type(count) is int
        return value * np.ones(count)

    assert fg.vmap(fill)(X).shape == (3, 3)


def test_shared_array_is_indexed_by_what_differs_from_example_to_example():
    take = with_rule(
        lambda x, i: x[i],
        lambda x, i: (x[i], x.shape),
        lambda shape, out_bar: (np.full(shape, 7.0) * out_bar, None),
    )
    gradients = fg.vmap(fg.grad(take), (None, 0))(X, np.array([2, 0]))
    assert np.array_equal(gradients, np.full((2, 3), 7.0))


# What is not differentiated


@custom_vjp
def applied(x, n=3, mode="sin", fun=np.sin):
    return fun(x) * n


applied.defvjp(
    lambda x, n, mode, fun: (fun(x) * n, (n, mode)),
    lambda residuals, out_bar: (
        {"sin": 10.0, "cos": 20.0}[residuals[1]] * residuals[0] * out_bar,
        None,
        None,
        None,
    ),
)


def test_integers_strings_and_functions_are_not_differentiated():
    assert fg.grad(applied)(1.0, 2, "cos", np.cos) == 40.0


def test_arguments_by_keyword_and_by_default_reach_the_rule():
    assert fg.grad(lambda x: applied(mode="cos", x=x))(1.0) == 60.0


def test_forward_mode_of_a_function_with_static_arguments():
    assert fg.jvp(lambda x: applied(x, fun=np.cos), (1.0,), (2.0,))[1] == 60.0


def test_keys_and_integer_arrays_are_not_differentiated():
    noisy = with_rule(
        lambda x, index, key: x[index] + key.uniform(),
        lambda x, index, key: (x[index] + key.uniform(), (index, x.shape)),
        lambda residuals, out_bar: (5.0 * np.ones(residuals[1]) * out_bar, None, None),
    )
    keys = fg.random.key(0).split(2)
    indices = np.array([0, 2])
    assert np.array_equal(fg.grad(noisy)(X, indices[0], keys[0]), [5.0, 5.0, 5.0])
    gradients = fg.vmap(fg.grad(noisy), (None, 0, 0))(X, indices, fg.random.key(1).split(2))
    assert np.array_equal(gradients, np.full((2, 3), 5.0))


def test_nondiff_argnums_come_first_in_bwd():
    @functools.partial(custom_vjp, nondiff_argnums=(1,))
    def scaled(x, fun):
        return fun(x)

    scaled.defvjp(lambda x, fun: (fun(x), x), lambda fun, x, out_bar: (7.0 * fun(x) * out_bar,))
    assert_allclose(fg.grad(lambda x: scaled(x, np.sin))(1.0), 7.0 * np.sin(1.0))


def test_nondiff_argnums_come_first_in_the_forward_rule():
    @custom_jvp(nondiff_argnums=0)
    def scaled(n, x):
        return n * x

    @scaled.defjvp
    def scaled_jvp(n, primals, tangents):
        return n * primals[0], 5.0 * n * tangents[0]

    assert fg.grad(scaled, 1)(2.0, 1.0) == 10.0
    assert fg.grad(lambda x: scaled(x, x))(3.0) == 15.0  # nothing for n


def test_nondiff_argnums_out_of_range():
    scaled = custom_vjp(lambda x: x, nondiff_argnums=(3,))
    scaled.defvjp(lambda x: (x, None), lambda residuals, out_bar: (out_bar,))
    with pytest.raises(ArgumentError, match="nondiff_argnums=3 of <lambda> is out of range"):
        fg.grad(scaled)(1.0)


def test_tangents_of_what_is_not_perturbed_are_zeros():
    seen = []
    fun = custom_jvp(lambda x, y, n: x * y * n)

    @fun.defjvp
    def rule(primals, tangents):
        seen.append(tangents)
        return fun(*primals), tangents[0] * np.ones(2)

    fg.jvp(lambda x: fun(x, np.ones(2), 3), (1.0,), (1.0,))
    x_dot, y_dot, n_dot = seen[0]
    assert x_dot == 1.0
    assert np.array_equal(y_dot, [0.0, 0.0])
    assert n_dot is None


def test_symbolic_zeros_are_none():
    seen = []
    fun = custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        seen.append(tangents[1])
        return fun(*primals), tangents[0]

    fun.defjvp(rule, symbolic_zeros=True)
    assert fg.jvp(lambda x: fun(x, 2.0), (1.0,), (1.0,))[1] == 1.0
    assert fg.grad(lambda x: fun(x, 2.0))(1.0) == 1.0
    assert seen == [None, None]


def test_rule_of_none_in_defjvps_is_zero():
    fun = custom_jvp(lambda x, y: x * y)
    fun.defjvps(lambda x_dot, out, x, y: 9.0 * x_dot, None)
    assert fg.grad(fun, (0, 1))(1.0, 2.0) == (9.0, 0.0)


# Pytrees


@custom_vjp
def nested(params, name):
    out = params["a"] * params["b"]
    return {"y": out, "n": 3, "name": name, "parts": (params["b"], np.arange(2))}


nested.defvjp(
    lambda params, name: (nested(params, name), params),
    lambda params, bars: (
        {"a": bars["y"] * params["b"], "b": bars["y"] * params["a"] + 10.0 * bars["parts"][0]},
        None,
    ),
)


def of_nested(params):
    out = nested(params, "q")
    assert out["name"] == "q"
    return out["y"] * out["n"] + out["parts"][0] + out["parts"][1][1]


def test_pytrees_in_and_out():
    assert fg.grad(of_nested)({"a": 2.0, "b": 3.0}) == {"a": 9.0, "b": 16.0}


def test_pytrees_under_vmap():
    params = {"a": np.array([2.0, 0.0]), "b": np.array([3.0, 1.0])}
    gradients = fg.vmap(fg.grad(of_nested))(params)
    assert np.array_equal(gradients["a"], [9.0, 3.0])
    assert np.array_equal(gradients["b"], [16.0, 10.0])


def test_pytrees_in_forward_mode():
    tangents = {"a": 1.0, "b": 0.5}
    out_dot = fg.jvp(lambda p: nested(p, "q")["y"], ({"a": 2.0, "b": 3.0},), (tangents,))[1]
    assert out_dot == 3.0 * 1.0 + 2.0 * 0.5


def test_cotangent_of_an_unused_output_is_zero():
    seen = []
    pair = with_rule(
        lambda x: (x, np.stack([x, x])),
        lambda x: ((x, np.stack([x, x])), None),
        lambda residuals, bars: (seen.append(bars) or bars[0],),
    )
    assert fg.grad(lambda x: pair(x)[0])(1.0) == 1.0
    assert np.array_equal(seen[0][1], [0.0, 0.0])


def test_none_stands_for_zero():
    fun = with_rule(
        lambda x, tree: x * tree["s"],
        lambda x, tree: (x * tree["s"], None),
        lambda residuals, out_bar: (out_bar, {"s": None, "v": np.ones(2)}),
    )
    x_bar, tree_bar = fg.grad(fun, (0, 1))(3.0, {"s": 2.0, "v": np.zeros(2)})
    assert (x_bar, tree_bar["s"]) == (1.0, 0.0)
    assert np.array_equal(tree_bar["v"], [1.0, 1.0])


def test_output_that_is_an_argument():
    same = with_rule(lambda x: x, lambda x: (x, None), lambda residuals, out_bar: (2.0 * out_bar,))
    assert np.array_equal(fg.grad(lambda x: np.sum(same(x) * x))(X), 3.0 * X)


# Dtypes


def test_complex_functions_by_either_rule():
    def square_rule(primals, tangents):
        return primals[0] ** 2, 2.0 * primals[0] * tangents[0]

    forward = custom_jvp(np.square)
    forward.defjvp(square_rule)
    reverse = with_rule(np.square, lambda z: (z * z, z), lambda z, out_bar: (2.0 * z * out_bar,))
    for fun in (forward, reverse):
        assert fg.grad(fun, holomorphic=True)(1 + 2j) == 2 + 4j
        assert fg.grad(lambda z, fun=fun: np.real(fun(z)))(1 + 2j) == 2 + 4j
        assert fg.jvp(fun, (1 + 2j,), (1j,))[1] == -4 + 2j
        assert fg.grad(lambda x, fun=fun: np.real(fun(x * 1j)))(2.0) == -4.0


@RULED
def test_single_precision_is_kept(fun):
    x = X.astype(np.float32)
    assert fg.grad(lambda x: np.sum(fun(x, np.float32(2.0))))(x).dtype == np.float32
    assert fg.jvp(fun, (x, np.float32(2.0)), (x, None))[1].dtype == np.float32


# The object


def test_both_rules_on_one_function():
    fun = custom_vjp(lambda x: x)
    fun.defvjp(lambda x: (x, None), lambda residuals, out_bar: (2.0 * out_bar,))
    fun.defjvp(lambda primals, tangents: (primals[0], 3.0 * tangents[0]))
    assert fg.grad(fun)(1.0) == 2.0
    assert fg.jvp(fun, (1.0,), (1.0,))[1] == 3.0
    assert fg.linearize(fun, 1.0)[1](1.0) == 3.0


def test_method():
    class Model:
        @custom_jvp
        def predict(self, x):
            return 2.0 * x

        @predict.defjvp
        def predict_jvp(primals, tangents):
            return 2.0 * primals[1], 9.0 * tangents[1]

    assert fg.grad(Model().predict)(1.0) == 9.0


def test_pickle_of_a_function_in_a_module():
    assert pickle.loads(pickle.dumps(by_vjp)) is by_vjp


def test_name_and_docstring_are_those_of_the_function():
    assert fg.grad(by_vjp).__name__ == "by_vjp"
    assert repr(by_jvp) == "custom_jvp(by_jvp)"


# Closures


def over_closure(x, y):
    go = with_rule(
        lambda v: x * v, lambda v: (x * v, None), lambda residuals, out_bar: (10.0 * x * out_bar,)
    )
    return go(y)


def test_closing_over_a_batched_value():
    assert np.array_equal(fg.vmap(over_closure, (0, None))(X, 2.0), X * 2.0)
    assert_allclose(fg.vmap(fg.grad(over_closure, 1), (0, None))(X, 2.0), 10.0 * X)


@pytest.mark.parametrize("jacobian", [fg.jacrev, fg.jacfwd])
def test_closing_over_a_batched_value_inside_of_a_derivative(jacobian):
    batch = fg.vmap(over_closure, (0, None))
    assert_allclose(jacobian(lambda y: batch(X, y))(2.0), 10.0 * X)


def test_pullback_that_closes_over_a_batched_value_in_threads():
    _, pullback = fg.vjp(lambda y: fg.vmap(over_closure, (0, None))(X, y), 2.0)
    found = []

    def work():
        found.extend(pullback(np.ones(3))[0] for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_allclose(found, np.full(80, 10.0 * X.sum()))


def test_closing_over_a_value_of_an_outer_transform():
    def outer(w):
        scaled = with_rule(
            lambda v: v * v * w,
            lambda v: (v * v * w, v),
            lambda v, out_bar: (2.0 * w * v * out_bar,),
        )
        return fg.grad(scaled)(3.0)

    assert fg.grad(outer)(1.5) == 6.0


def by_function(x):
    return with_rule(lambda v: v * x, lambda v: (v * x, v), lambda v, out_bar: (out_bar,))(x)


def by_backward_rule(x):
    return with_rule(lambda v: v, lambda v: (v, None), lambda res, out_bar: (out_bar * x,))(x)


def by_residual(x):
    return with_rule(lambda v: v, lambda v: (v, x), lambda res, out_bar: (out_bar * res,))(x)


def by_forward_rule(x):
    fun = custom_jvp(lambda v: v)
    fun.defjvp(lambda primals, tangents: (primals[0], x * tangents[0]))
    return fun(x)


@pytest.mark.parametrize("fun", [by_function, by_backward_rule, by_residual, by_forward_rule])
def test_closing_over_a_differentiated_value_says_to_pass_it(fun):
    with pytest.raises(TracerLeakError, match="as an argument"):
        fg.grad(fun)(2.0)


def test_closing_over_a_value_of_an_inner_transform_says_to_pass_it():
    def inner(x):
        def along(t):
            return with_rule(lambda v: v * t, lambda v: (v * t, v), lambda v, bar: (bar,))(x)

        return fg.jvp(along, (2.0,), (1.0,))[1]

    with pytest.raises(TracerLeakError, match="traced by jvp"):
        fg.grad(inner)(3.0)


# Mistakes


def two(x, y):
    return x["w"] * y


def two_fwd(x, y):
    return x["w"] * y, None


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        ((1.0,), TreeMismatchError, "two returned 1 cotangents, expected 2.*'x'.*'y'"),
        (1.0, TreeMismatchError, "must return a tuple .* got float 1.0"),
        (({"v": 1.0}, 1.0), TreeMismatchError, "cotangent for argument 'x' .* structure"),
        (
            ({"w": np.ones(10)}, 1.0),
            ShapeError,
            r"'x' at \['w'\] .* of two returned has shape \(10,\), expected shape \(3,\)",
        ),
        (({"w": "one"}, 1.0), DtypeError, r"'x' at \['w'\] .* got str 'one'"),
    ],
)
def test_wrong_cotangents(returned, error, words):
    fun = with_rule(two, two_fwd, lambda residuals, out_bar: returned)
    with pytest.raises(error, match=words):
        fg.grad(lambda x, y: np.sum(fun(x, y)))({"w": np.ones(3)}, 2.0)


def test_wrong_shape_is_told_of_one_example():
    fun = with_rule(lambda x: x, lambda x: (x, None), lambda residuals, out_bar: (np.ones(10),))
    with pytest.raises(ShapeError, match=r"shape \(10,\), expected shape \(\)"):
        fg.vmap(fg.grad(fun))(np.ones(4))


def test_forward_rule_of_custom_vjp_without_residuals():
    fun = with_rule(lambda x: x, lambda x: x, lambda residuals, out_bar: (out_bar,))
    with pytest.raises(TreeMismatchError, match=r"pair \(out, residuals\), got float"):
        fg.grad(fun)(1.0)


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        ((np.ones(2), np.ones(3)), ShapeError, r"float64\[3\], expected shape \(2,\)"),
        (({"a": np.ones(2)}, np.ones(2)), TreeMismatchError, "structure of the output"),
        (np.ones(2), TreeMismatchError, r"pair \(out, out_dot\), got float64\[2\]"),
    ],
)
def test_wrong_tangents(returned, error, words):
    fun = custom_jvp(lambda x: x)
    fun.defjvp(lambda primals, tangents: returned)
    with pytest.raises(error, match=words):
        fg.jvp(fun, (np.ones(2),), (np.ones(2),))


@pytest.mark.parametrize(
    "use", [lambda fun: fg.jvp(fun, (1.0,), (1.0,)), lambda fun: fg.grad(fg.grad(fun))(1.0)]
)
def test_backward_rule_that_cannot_be_traced(use):
    fun = custom_vjp(lambda x: x * x)
    fun.defvjp(lambda x: (x * x, x), lambda x, out_bar: (2.0 * math.exp(x * out_bar),))
    with pytest.raises(TracerConversionError, match="backward rule of <lambda>") as caught:
        use(fun)
    assert "@<lambda>.defjvp" in str(caught.value)


@pytest.mark.parametrize("make", [custom_vjp, custom_jvp])
def test_rule_missing(make):
    fun = make(plain)
    assert fun(1.0, 2.0) == plain(1.0, 2.0)
    for use in (fg.grad(fun), lambda x, y: fg.jvp(fun, (x, y), (1.0, 1.0))):
        with pytest.raises(MissingRuleError, match="function 'plain' has no derivative rule"):
            use(1.0, 2.0)


def test_number_of_rules_for_defjvps():
    fun = custom_jvp(plain)
    fun.defjvps(lambda x_dot, out, x, y: x_dot)
    with pytest.raises(TreeMismatchError, match=r"given 1 rules, .* 2 arguments"):
        fg.grad(fun)(1.0, 2.0)


def test_keyword_only_arguments():
    with pytest.raises(ArgumentError, match=r"keyword-only arguments \['n'\]"):
        custom_vjp(lambda x, *, n: x)(1.0, n=2)


def test_rule_that_is_no_function():
    with pytest.raises(ArgumentError, match="bwd of plain must be a function"):
        custom_vjp(plain).defvjp(plain, None)


def test_nondiff_argnums_that_are_no_numbers():
    with pytest.raises(ArgumentError, match="nondiff_argnums of custom_vjp"):
        custom_vjp(plain, nondiff_argnums="x")
