"""Primitives of the user's: what is wrong about a rule is said by name, expected against found."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.batch import by_loop
from funcgrad.core.primitive import DECLARED, primitive
from funcgrad.errors import ArgumentError, MissingRuleError, ShapeError

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _registered():
    before = dict(DECLARED)
    yield
    DECLARED.clear()
    DECLARED.update(before)


@pytest.fixture
def times():
    @primitive()
    def times(x, y, *, factor=1.0):
        return factor * (x * y)

    return times


def summed(f):
    return lambda x: np.sum(f(x, 2.0))


@pytest.mark.parametrize(
    ("use", "declaration"),
    [
        (lambda f: fg.grad(summed(f))(X), "@times.def_vjp"),
        (lambda f: fg.jvp(summed(f), (X,), (X,)), "@times.def_jvp"),
        (lambda f: fg.vmap(f)(X, X), "@times.def_batch"),
    ],
)
def test_a_missing_rule_says_how_to_give_it(times, use, declaration):
    with pytest.raises(MissingRuleError, match=declaration):
        use(times)


@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_one_pullback_for_two_arguments(times, argnums):
    times.def_vjp(lambda primals, out, *, factor: lambda out_bar: out_bar)
    with pytest.raises(ArgumentError) as caught:
        fg.grad(times, argnums=argnums)(1.0, 2.0)
    assert "the vjp of primitive 'times' returned 1 pullbacks, expected 2" in str(caught.value)


def test_two_pullbacks_for_one_argument():
    @primitive()
    def twice(x):
        return 2.0 * x

    twice.def_vjp(lambda primals, out: (None, None))
    with pytest.raises(ArgumentError, match="'twice' returned 2 pullbacks, expected 1"):
        fg.grad(lambda x: np.sum(twice(x)))(X)


def test_an_array_for_a_pullback(times):
    times.def_vjp(lambda primals, out, *, factor: (primals[1] * np.ones(3), None))
    with pytest.raises(ArgumentError, match=r"returned float64\[3\], expected a pullback"):
        fg.grad(summed(times))(X)


@pytest.mark.parametrize("shape", [(2,), (2, 5), (), (1,), (3, 2)])
def test_a_cotangent_of_a_wrong_shape(times, shape):
    def times_vjp(primals, out, *, factor):
        return (lambda out_bar: np.ones(shape)), None

    times.def_vjp(times_vjp)
    with pytest.raises(ShapeError) as caught:
        fg.grad(summed(times))(X)
    assert "the pullback" in str(caught.value)
    assert "times_vjp" in str(caught.value)
    assert "for an argument of shape (3,)" in str(caught.value)
    assert "test_user_primitives.py" in str(caught.value)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (1, 6), (2, 1)])
def test_as_many_elements_in_another_shape_are_no_cotangent(times, shape):
    times.def_vjp(
        lambda primals, out, *, factor: ((lambda out_bar: np.resize(out_bar, shape)), None)
    )
    with pytest.raises(ShapeError, match=r"for an argument of shape \(2, 3\)"):
        fg.grad(summed(times))(np.ones((2, 3)))


def test_a_cotangent_that_is_still_broadcast_is_summed(times):
    times.def_vjp(lambda primals, out, *, factor: ((lambda out_bar: out_bar * primals[1]), None))
    y = np.arange(6.0).reshape(2, 3)
    assert fg.grad(lambda x: np.sum(times(x, y)))(1.0) == 15.0
    made = fg.grad(lambda x: np.sum(times(x, y)))(np.ones((2, 1)))
    np.testing.assert_array_equal(made, [[3.0], [12.0]])


def test_a_tangent_of_a_wrong_shape(times):
    times.def_jvp(lambda primals, tangents, out, *, factor: np.ones(9))
    with pytest.raises(ShapeError) as caught:
        fg.jvp(lambda x: times(x, 2.0), (X,), (X,))
    assert "the jvp of primitive 'times' returned float64[9]" in str(caught.value)
    assert "for an output of shape (3,)" in str(caught.value)


def test_one_tangent_for_two_results():
    @primitive()
    def pair(x):
        return 2.0 * x, 3.0 * x

    pair.def_jvp(lambda primals, tangents, out: (tangents[0],))
    with pytest.raises(ShapeError, match="primitive 'pair' returned 1 tangents for 2 results"):
        fg.jvp(pair, (X,), (X,))


def test_a_batching_rule_that_loses_the_examples(times):
    times.def_batch(lambda args, batched, *, factor: np.ones(7))
    with pytest.raises(ShapeError) as caught:
        fg.vmap(times)(X, X)
    assert "the batching rule of times returned float64[7], expected 3 examples" in str(
        caught.value
    )
    assert "vmap(times)" in str(caught.value)


def test_what_is_no_function_is_no_rule(times):
    with pytest.raises(ArgumentError, match=r"by_loop\(times\)"):
        times.def_batch(by_loop(times))  # it has the rule already
    np.testing.assert_array_equal(fg.vmap(times)(X, X), X * X)


def test_a_traced_value_in_a_list_that_is_static(times):
    with pytest.raises(ArgumentError, match="'factor' of times cannot be a traced value"):
        fg.grad(lambda x: times(x, 2.0, factor=[x]))(1.0)


def test_parentheses_that_were_left_out():
    @primitive
    def halved(x):
        return x / 2

    with pytest.raises(ArgumentError, match=r"write @primitive\(\)"):
        halved(2.0)
    with pytest.raises(ArgumentError, match=r"write @primitive\(\)"):
        halved.def_vjp(None)


def test_declared_again_in_the_same_place_it_is_replaced():
    def declare(factor):
        @primitive()
        def scaled(x):
            return factor * x

        return scaled

    assert declare(2.0)(3.0) == 6.0
    assert declare(5.0)(3.0) == 15.0


def test_the_name_of_another_is_refused():
    with pytest.raises(ArgumentError, match="there is a primitive named 'matmul' already"):

        @primitive()
        def matmul(x, y):
            return x @ y
