"""custom_vmap: the rule that runs, its derivatives, and what goes wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.errors import ArgumentError, MissingRuleError, ShapeError, TreeMismatchError
from funcgrad.transforms.custom_batching import custom_vmap

A = np.array([[1.0, 2.0], [-0.5, 0.3]])
XS = np.array([[0.1, 0.2], [0.7, -0.4], [1.0, 2.0]])


def plain(a, x):
    return np.sin(a @ x)


def ruled():
    """Return `plain` with a rule, and the list of what the rule was called with."""
    calls = []
    fun = custom_vmap(plain)

    @fun.def_vmap
    def rule(axis_size, in_batched, a, x):
        calls.append((axis_size, in_batched))
        a = a if in_batched[0] else a[None]
        x = x if in_batched[1] else x[None]
        return np.sin(np.sum(a * x[:, None, :], axis=-1)), True

    return fun, calls


def test_rule_gets_all_examples():
    fun, calls = ruled()
    assert_allclose(fg.vmap(fun, (None, 0))(A, XS), np.sin(XS @ A.T))
    assert calls == [(3, (False, True))]


def test_function_runs_without_vmap():
    fun, calls = ruled()
    assert_allclose(fun(A, XS[0]), plain(A, XS[0]))
    assert_allclose(fg.jacrev(fun, 1)(A, XS[0]), fg.jacrev(plain, 1)(A, XS[0]))
    assert not calls


NESTED = {
    "vmap of grad": lambda f: fg.vmap(fg.grad(lambda a, x: np.sum(f(a, x) ** 3)), (None, 0))(A, XS),
    "grad of vmap": lambda f: fg.grad(lambda a: np.sum(fg.vmap(f, (None, 0))(a, XS) ** 3))(A),
    "vmap of jacfwd": lambda f: fg.vmap(fg.jacfwd(f, 1), (None, 0))(A, XS),
    "vmap of jvp": lambda f: fg.vmap(lambda x: fg.jvp(f, (A, x), (None, x))[1])(XS),
    "vmap of linearize": lambda f: fg.vmap(lambda x: fg.linearize(f, A, x)[1](A, x))(XS),
    "vmap of hessian": lambda f: fg.vmap(fg.hessian(lambda x: np.sum(f(A, x) ** 3)))(XS),
    "vmap of reverse over reverse": lambda f: fg.vmap(fg.jacrev(fg.jacrev(f, 1)), (None, 0))(A, XS),
    "vmap of forward over forward": lambda f: fg.vmap(fg.jacfwd(fg.jacfwd(f, 1)), (None, 0))(A, XS),
    "jacfwd of vmap of jacrev": lambda f: fg.jacfwd(
        lambda a: fg.vmap(fg.jacrev(f, 1), (None, 0))(a, XS)
    )(A),
    "vmap of vmap": lambda f: fg.vmap(lambda a: fg.vmap(f, (None, 0))(a, XS))(np.stack([A, A + 1])),
}


@pytest.mark.parametrize("name", NESTED)
def test_agrees_with_the_function_without_rule(name):
    fun, calls = ruled()
    assert_allclose(NESTED[name](fun), NESTED[name](plain), rtol=1e-12, atol=1e-13)
    assert calls


def test_derivative_is_that_of_the_rule():
    fun = custom_vmap(lambda x: x)
    fun.def_vmap(lambda axis_size, in_batched, x: (5.0 * x, True))
    assert np.array_equal(fg.vmap(fg.grad(fun))(np.ones(3)), [5.0, 5.0, 5.0])
    assert fg.grad(fun)(1.0) == 1.0


def test_output_that_all_examples_share():
    fun = custom_vmap(lambda x: (x, x))
    fun.def_vmap(lambda axis_size, in_batched, x: ((x, np.float64(7.0)), (True, False)))
    first, second = fg.vmap(fun)(np.arange(3.0))
    assert np.array_equal(first, [0.0, 1.0, 2.0])
    assert np.array_equal(second, [7.0, 7.0, 7.0])


def test_pytrees_and_keywords():
    fun = custom_vmap(lambda p, scale=2.0: {"y": p["x"] * scale})

    @fun.def_vmap
    def rule(axis_size, in_batched, p, scale):
        assert in_batched == ({"x": True}, False)
        return {"y": p["x"] * scale}, {"y": True}

    assert np.array_equal(fg.vmap(fun)({"x": np.arange(2.0)})["y"], [0.0, 2.0])


@pytest.mark.parametrize(
    ("returned", "error", "words"),
    [
        (np.ones(3), TreeMismatchError, r"pair \(out, out_batched\)"),
        (({"y": np.ones(2)}, True), ShapeError, r"at \['y'\] .* shape \(2,\), expected 3 examples"),
        (({"y": np.ones(3)}, {"z": True}), TreeMismatchError, "out_batched"),
    ],
)
def test_wrong_rule(returned, error, words):
    fun = custom_vmap(lambda x: x)
    fun.def_vmap(lambda axis_size, in_batched, x: returned)
    with pytest.raises(error, match=words):
        fg.vmap(fun)(np.ones(3))


def test_rule_missing():
    with pytest.raises(MissingRuleError, match="custom_vmap function 'plain' has no batching rule"):
        fg.vmap(custom_vmap(plain), (None, 0))(A, XS)


def test_rule_that_is_no_function():
    with pytest.raises(ArgumentError, match="batching rule of plain must be a function"):
        custom_vmap(plain).def_vmap(3)
