"""Fused operations: one operation where nobody differentiates, elsewhere their lines."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.fused import fused
from funcgrad.core.primitive import DECLARED

X = np.array([0.3, -0.2, 1.1])


@pytest.fixture
def counted():
    """Return an operation, and how often it was done in one go, and how often in lines."""
    count = {"at once": 0, "lines": 0}

    def lines(x, y):
        count["lines"] += 1
        return np.sin(x) * y, np.cos(y)

    def counted_at_once(x, y):
        count["at once"] += 1
        return np.sin(x) * y, np.cos(y)

    operation = fused(lines)(counted_at_once)
    yield operation, count
    del DECLARED[operation.name]


def test_plain_arrays_are_done_at_once(counted):
    operation, count = counted
    first, second = operation.bind(X, X)
    np.testing.assert_array_equal(first, np.sin(X) * X)
    np.testing.assert_array_equal(second, np.cos(X))
    assert count == {"at once": 1, "lines": 0}


def test_derivatives_are_those_of_the_lines(counted):
    operation, count = counted

    def fun(x):
        first, second = operation.bind(x, x)
        return np.sum(first) + np.sum(second)

    np.testing.assert_allclose(fg.grad(fun)(X), np.cos(X) * X + np.sin(X) - np.sin(X), rtol=1e-14)
    slope = np.diag(fg.hessian(fun)(X))
    np.testing.assert_allclose(slope, np.cos(X) - X * np.sin(X), rtol=1e-13)
    assert count["at once"] == 0


def test_without_a_rule_a_batch_is_done_in_lines(counted):
    operation, count = counted
    first, _ = fg.vmap(lambda x: operation.bind(x, 2.0 * x))(X)
    np.testing.assert_array_equal(first, np.sin(X) * (2 * X))
    assert count == {"at once": 0, "lines": 1}


def test_a_program_has_it_as_one_operation(counted):
    operation, count = counted
    compiled = fg.jit(lambda x: operation.bind(x, x)[0])
    np.testing.assert_array_equal(compiled(X), np.sin(X) * X)
    assert count["lines"] == 0
    assert "counted_at_once" in compiled.lower(X).as_text()


def test_the_derivative_of_a_program_is_that_of_the_lines(counted):
    operation, _ = counted
    compiled = fg.jit(lambda x: np.sum(operation.bind(x, x)[0]))
    np.testing.assert_allclose(fg.grad(compiled)(X), np.cos(X) * X + np.sin(X), rtol=1e-14)
