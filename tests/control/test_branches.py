"""`cond` and `switch`: which branch runs, on which examples, and what is said of wrong ones."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.control import cond, switch
from funcgrad.errors import ArgumentError, ShapeError, TreeMismatchError


@pytest.fixture(autouse=True)
def warnings_are_errors():
    """A branch that runs on examples that do not take it would often warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# Eagerly


@pytest.mark.parametrize("pred", [True, np.True_, np.array(True), 1, 2.5, np.int64(3)])
def test_true_by_any_scalar(pred):
    assert cond(pred, lambda: "yes", lambda: "no") == "yes"


@pytest.mark.parametrize("pred", [False, np.False_, np.array(False), 0, 0.0])
def test_false_by_any_scalar(pred):
    assert cond(pred, lambda: "yes", lambda: "no") == "no"


def test_only_the_chosen_function_is_called():
    assert cond(True, lambda: 1, lambda: 1 / 0) == 1


def test_several_operands():
    assert cond(False, max, min, 3, 4) == 3


@pytest.mark.parametrize("operand", [None, 3.0, (1, 2)])
def test_operand_by_keyword(operand):
    assert cond(True, lambda x: x, lambda x: 0, operand=operand) is operand


def test_predicate_that_is_traced_by_grad_is_a_plain_bool():
    seen = []

    def f(x):
        return cond(x > 1.0, lambda: seen.append(True) or x * x, lambda: x)

    assert fg.grad(f)(3.0) == 6.0
    assert seen == [True]


def test_traced_number_as_predicate():
    assert fg.grad(lambda x: cond(x, lambda: 5 * x, lambda: x))(2.0) == 5.0


@pytest.mark.parametrize(
    ("index", "want"), [(-5, "a"), (0, "a"), (1, "b"), (2, "c"), (9, "c"), (np.int8(1), "b")]
)
def test_switch_clamps_the_index(index, want):
    assert switch(index, [lambda: "a", lambda: "b", lambda: "c"]) == want


def test_switch_with_one_branch_and_operand_by_keyword():
    assert switch(3, [abs], operand=-2) == 2


# By rows


def test_branch_runs_on_the_rows_that_take_it():
    sizes = []

    def root(v):
        sizes.append(v._value.shape)
        return np.sqrt(v)

    x = np.array([4.0, -1.0, 9.0, -4.0, 16.0])
    out = fg.vmap(lambda x: cond(x > 0, root, lambda v: v, x))(x)
    assert_array_equal(out, [2.0, -1.0, 3.0, -4.0, 4.0])
    assert sizes == [(3,)]


def test_branch_that_names_a_value_runs_on_the_rows_that_take_it():
    x = np.array([4.0, -1.0, 9.0])
    assert_array_equal(fg.vmap(lambda x: cond(x > 0, lambda: np.sqrt(x), lambda: x))(x), [2, -1, 3])


def test_branch_that_would_raise_for_other_rows():
    matrices = np.stack([2 * np.eye(2), np.zeros((2, 2))])

    def inverse(a):
        return cond(np.any(a > 0), lambda: np.linalg.inv(a), lambda: a)

    assert_array_equal(fg.vmap(inverse)(matrices), [np.eye(2) / 2, np.zeros((2, 2))])


def test_named_value_in_a_helper_that_the_branch_calls():
    def f(x):
        def helper():
            return np.log(x)

        return cond(x > 0, lambda: helper() * 2.0, lambda: 0.0)

    assert_allclose(fg.vmap(f)(np.array([np.e, -1.0])), [2.0, 0.0])


def test_named_value_as_a_default_argument():
    def f(x):
        return cond(x > 0, lambda x=x: np.log(x), lambda *, x=x: x)

    assert_allclose(fg.vmap(f)(np.array([np.e, -1.0])), [1.0, -1.0])


def test_named_value_in_a_partial():
    def f(x):
        return cond(x > 0, partial(np.multiply, x), partial(lambda a, b: a * b * b, x), 3.0)

    assert_allclose(fg.vmap(f)(np.array([2.0, -1.0])), [6.0, -9.0])


def test_branch_that_assigns_outside_of_itself():
    def f(x):
        calls = 0

        def positive():
            nonlocal calls
            calls += 1
            return x * 2

        y = cond(x > 0, positive, lambda: x)
        assert calls == 1
        return y

    assert_array_equal(fg.vmap(f)(np.array([1.0, -1.0])), [2.0, -1.0])


def test_branch_that_no_row_takes_is_not_called():
    out = fg.vmap(lambda x: cond(x > 0, lambda v: v * 2, lambda v: 1 / 0, x))(np.ones(3))
    assert_array_equal(out, [2.0, 2.0, 2.0])


def test_no_rows_at_all():
    out = fg.vmap(lambda x: cond(np.sum(x) > 0, lambda v: v * 2, lambda v: v, x))(np.ones((0, 3)))
    assert out.shape == (0, 3)


def test_nan_of_the_branch_not_taken_stays_out_of_the_gradient():
    def f(x):
        return cond(x > 0, lambda: np.sqrt(x), lambda: 3.0 * x)

    x = np.array([4.0, 0.0, -1.0])
    assert_array_equal(fg.vmap(fg.grad(f))(x), [0.25, 3.0, 3.0])
    assert_array_equal(fg.grad(lambda x: np.sum(fg.vmap(f)(x)))(x), [0.25, 3.0, 3.0])


def test_integer_next_to_a_float_becomes_a_float():
    out = fg.vmap(lambda x: cond(x > 0, lambda: 1, lambda: 2.5))(np.array([1.0, -1.0]))
    assert out.dtype == np.float64
    assert_array_equal(out, [1.0, 2.5])


def test_float32_stays():
    x = np.array([1.0, -1.0], np.float32)
    assert fg.vmap(lambda x: cond(x > 0, np.sin, np.cos, x))(x).dtype == np.float32


def test_complex_gradient():
    z = np.array([1.0 + 2.0j, -1.0 + 0.5j])
    f = fg.grad(lambda z: cond(z.real > 0, lambda: z**2, lambda: z**3), holomorphic=True)
    assert_allclose(fg.vmap(f)(z), [2 * z[0], 3 * z[1] ** 2])


def test_outputs_as_pytrees_with_none_and_what_is_one_for_all():
    marker = object()

    def f(x):
        return cond(
            x > 0,
            lambda: {"a": (x, None), "b": marker},
            lambda: {"b": marker, "a": (2 * x, None)},
        )["a"]

    out = fg.vmap(f)(np.array([1.0, -1.0]))
    assert_array_equal(out[0], [1.0, -2.0])
    assert out[1] is None


def test_rows_of_keys():
    keys = fg.random.key(0).split(2)

    def f(key, x):
        return cond(x > 0, lambda key: key, lambda key: key.split(2)[1], key)

    out = fg.vmap(f)(keys, np.array([1.0, -1.0]))
    assert out[0] == keys[0]
    assert out[1] == keys[1].split(2)[1]


def test_switch_by_rows():
    index = np.array([-3, 0, 1, 2, 9])
    x = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    out = fg.vmap(lambda i, x: switch(i, [np.sin, np.cos, np.exp], x))(index, x)
    assert_array_equal(out, [*np.sin(x[:2]), np.cos(0.3), *np.exp(x[3:])])


def test_gradient_of_switch_by_rows():
    index = np.array([0, 1, 2])
    f = fg.vmap(fg.grad(lambda x, i: switch(i, [np.sin, np.square, lambda v: 5.0 * v], x)))
    assert_allclose(f(np.array([0.0, 3.0, 1.0]), index), [1.0, 6.0, 5.0])


def test_recursion_ends_for_each_row():
    def factorial(n):
        return cond(n <= 1, lambda: 1.0, lambda: n * factorial(n - 1))

    n = np.array([5.0, 1.0, 3.0])
    assert_array_equal(fg.vmap(factorial)(n), [120.0, 1.0, 6.0])
    # Of n (n-1) (n-2) (n-3): the sum of the products of three.
    assert_allclose(fg.vmap(fg.grad(factorial))(n), [154.0, 0.0, 5.0])


def test_result_may_be_assigned_to():
    def f(x):
        y = cond(x[0] > 0, lambda: x * 2.0, lambda: x * 3.0)
        y[0] = 0.0
        return np.sum(y)

    x = np.array([[1.0, 2.0], [-1.0, 2.0]])
    assert_array_equal(fg.vmap(fg.grad(f))(x), [[0.0, 2.0], [0.0, 3.0]])


# Errors


@pytest.mark.parametrize(
    ("pred", "words"),
    [
        (np.ones(2), "pred of cond must be a scalar that is true or false, got float64[2]"),
        ("yes", "got str 'yes'"),
        (None, "got NoneType None"),
    ],
)
def test_wrong_predicate(pred, words):
    with pytest.raises(ArgumentError) as error:
        cond(pred, abs, abs, 1)
    assert words in str(error.value)


def test_predicate_with_an_axis_under_vmap():
    with pytest.raises(ArgumentError, match=r"got bool\[3\]"):
        fg.vmap(lambda x: cond(x > 0, abs, abs, x))(np.ones((2, 3)))


def test_operands_both_ways():
    with pytest.raises(ArgumentError, match="both by position and as operand="):
        cond(True, abs, abs, 1, operand=2)


def test_branch_that_is_no_function():
    with pytest.raises(ArgumentError, match="cond takes a function"):
        cond(True, 1.0, abs)


@pytest.mark.parametrize("index", [1.0, True, "a", np.array([1]), np.float64(1)])
def test_wrong_index(index):
    with pytest.raises(ArgumentError, match="index of switch must be an integer"):
        switch(index, [abs, abs], 1)


@pytest.mark.parametrize("branches", [[], abs, [abs, 3]])
def test_wrong_branches(branches):
    with pytest.raises(ArgumentError, match="branches of switch must be a list of functions"):
        switch(0, branches, 1)


def test_branches_of_different_structure():
    def pair(x):
        return {"a": x, "b": x}

    def single(x):
        return {"a": x}

    with pytest.raises(TreeMismatchError) as error:
        fg.vmap(lambda x: cond(x > 0, pair, single, x))(np.array([1.0, -1.0]))
    words = str(error.value)
    assert "the branches of cond must return the same structure" in words
    assert "what pair (" in words
    assert "what single (" in words
    assert "'b'" in words


def test_branches_of_different_shape():
    def short(x):
        return {"a": x}

    def long(x):
        return {"a": x * np.ones(2)}

    with pytest.raises(ShapeError) as error:
        fg.vmap(lambda x: cond(x > 0, short, long, x))(np.array([1.0, -1.0]))
    words = str(error.value)
    assert "short (" in words
    assert "returned float64[]" in words
    assert "long (" in words
    assert "float64[2]" in words
    assert "at ['a']" in words


def test_text_that_differs_between_rows():
    with pytest.raises(ArgumentError, match="a str cannot differ from example to example"):
        fg.vmap(lambda x: cond(x > 0, lambda: "a", lambda: "b"))(np.array([1.0, -1.0]))


def test_value_that_leaves_a_branch_by_the_back_door():
    def f(x):
        kept = []
        cond(x > 0, lambda v: kept.append(v) or v, lambda v: v, x)
        return kept[0] + 1.0

    with pytest.raises(fg.errors.TracerLeakError, match="it escaped"):
        fg.vmap(f)(np.array([1.0, -1.0]))


def test_operand_of_a_branch_by_rows_is_read_only():
    def positive(v):
        v[0] = 0.0
        return v

    with pytest.raises(fg.errors.MutationError, match="copy it first"):
        fg.vmap(lambda x: cond(x[0] > 0, positive, lambda v: v, x * 1.0))(np.eye(2) - 0.5)
