"""Branches that return otherwise than the others: an error wherever that can be noticed."""

import re

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import debug
from funcgrad.errors import ShapeError, TreeMismatchError


def pair(x):
    return {"a": x, "b": x}


def single(x):
    return {"a": x}


def row(x):
    return {"a": np.stack([x, x]), "b": x}


def test_structure_is_noticed_when_the_second_is_called():
    assert fg.cond(True, pair, single, 1.0) == {"a": 1.0, "b": 1.0}
    with pytest.raises(TreeMismatchError) as caught:
        fg.cond(False, pair, single, 1.0)
    text = str(caught.value)
    assert text.startswith("the branches of cond must return the same structure")
    assert "single (" in text
    assert "pair (" in text
    assert "'b'" in text


def test_shape_is_noticed_when_the_second_is_called():
    fg.cond(False, row, pair, 1.0)
    with pytest.raises(ShapeError) as caught:
        fg.cond(True, row, pair, 1.0)
    text = str(caught.value)
    assert "float64[2]" in text
    assert re.search(r"pair \(\S*test_alike\.py:\d+\) returned float64\[\]", text)
    assert "the output at ['a'] of cond(row)" in text


def test_in_a_scan():
    def step(carry, _):
        return fg.cond(carry > 1.0, lambda c: c / 2, lambda c: (c, c), carry), None

    with pytest.raises(TreeMismatchError, match="the branches of cond must return"):
        fg.scan(step, 3.0, None, length=5)


def test_switch():
    branches = [pair, lambda x: {"a": -x, "b": x}, single]
    for index in (0, 1):
        fg.switch(index, branches, 1.0)
    with pytest.raises(TreeMismatchError, match="the branches of switch"):
        fg.switch(2, branches, 1.0)


def test_functions_that_are_made_anew():
    def f(p, x):
        return fg.cond(p, lambda x: x, lambda x: (x, x), x)

    f(True, 1.0)
    with pytest.raises(TreeMismatchError):
        f(False, 1.0)


def test_dtypes_may_differ():
    for p in (True, False):
        fg.cond(p, lambda x: x, lambda x: 0, 1.5)


def test_operands_of_other_shapes_are_another_matter():
    def f(p, x):
        return fg.cond(p, lambda x: x, lambda x: 2 * x, x)

    assert np.shape(f(True, np.ones(3))) == (3,)
    assert np.shape(f(False, np.ones(4))) == (4,)


@pytest.mark.parametrize("how", ["closure", "default", "operand", "numpy integer"])
def test_lengths_that_differ_between_calls_are_another_matter(how):
    def f(p, n):
        if how == "closure":
            return fg.cond(p, lambda: np.zeros(n), lambda: np.ones(n))
        if how == "default":
            return fg.cond(p, lambda n=n: np.zeros(n), lambda n=n: np.ones(n))
        if how == "operand":
            return fg.cond(p, np.zeros, lambda n: np.ones(n), n)
        return fg.cond(p, lambda n: np.zeros(n), lambda n: np.ones(n), np.int64(n))

    assert f(True, 3).shape == (3,)
    assert f(False, 4).shape == (4,)
    assert f(False, 3).shape == (3,)


LENGTH = 3


def test_globals_that_differ_between_calls_are_another_matter(monkeypatch):
    def f(p):
        return fg.cond(p, lambda: np.zeros(LENGTH), lambda: np.ones(LENGTH))

    assert f(True).shape == (3,)
    monkeypatch.setitem(globals(), "LENGTH", 4)
    assert f(False).shape == (4,)


class Layer:
    def __init__(self, size):
        self.size = size

    def zeros(self):
        return np.zeros(self.size)

    def ones(self):
        return np.ones(self.size)


def test_methods_of_other_objects_are_another_matter():
    first, second = Layer(3), Layer(4)
    fg.cond(True, first.zeros, first.ones)
    assert fg.cond(False, second.zeros, second.ones).shape == (4,)


def test_methods_of_an_object_that_changes():
    layer = Layer(3)
    fg.cond(True, layer.zeros, layer.ones)
    layer.size = 4
    assert fg.cond(False, layer.zeros, layer.ones).shape == (4,)


def test_the_other_branch_is_not_called():
    def refuse(x):
        raise AssertionError

    assert fg.cond(True, lambda x: x, refuse, 1.0) == 1.0
    assert fg.grad(lambda x: fg.cond(x > 0, lambda x: x**2, refuse, x))(3.0) == 6.0


def test_recursion():
    def factorial(n):
        return fg.cond(n < 2, lambda n: 1.0, lambda n: n * factorial(n - 1), n)

    assert factorial(5) == 120.0


# debug.check_branches


def test_check_branches_runs_the_others():
    with debug.check_branches(), pytest.raises(TreeMismatchError) as caught:
        fg.cond(True, pair, single, 1.0)
    assert "single (" in str(caught.value)


def test_check_branches_finds_shapes():
    with debug.check_branches(), pytest.raises(ShapeError, match="must return the same shapes"):
        fg.switch(1, [pair, pair, row], 1.0)


def test_check_branches_under_grad():
    def f(x):
        return fg.cond(x > 0, lambda x: x**2, lambda x: (x, x), x)

    with debug.check_branches(), pytest.raises(TreeMismatchError):
        fg.grad(f)(3.0)


def test_check_branches_returns_what_was_chosen():
    with debug.check_branches():
        assert fg.grad(lambda x: fg.cond(x > 0, np.square, np.negative, x))(3.0) == 6.0


def test_check_branches_ignores_what_the_others_raise():
    def refuse(x):
        raise ValueError

    with debug.check_branches():
        assert fg.cond(True, lambda x: x, refuse, 1.0) == 1.0


def test_check_branches_and_recursion():
    def factorial(n):
        return fg.cond(n < 2, lambda n: 1.0, lambda n: n * factorial(n - 1), n)

    with debug.check_branches():
        assert factorial(5) == 120.0


def test_check_branches_ends_with_the_block():
    called = []
    with debug.check_branches():
        fg.cond(True, lambda: 1.0, lambda: called.append(1) or 2.0)
    fg.cond(True, lambda: 1.0, lambda: called.append(1) or 2.0)
    assert called == [1]
