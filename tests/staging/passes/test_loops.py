"""What is left out of loops, and what is done for all steps at once."""

import re

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4))
V = RNG.normal(size=(3, 4))
XS = RNG.normal(size=(9, 5, 3))


def parts_of(fun, *args):
    """Return the text of a program without its loops, and that of the steps."""
    text = fg.jit(fun).lower(*args).as_text()
    inside = "\n".join(row for row in text.splitlines() if row.startswith("    "))
    return "\n".join(row for row in text.splitlines() if not row.startswith("    ")), inside


def recurrent(v, w, xs):
    h, ys = fg.scan(lambda h, x: ((h := np.tanh(x @ v + h @ w)), h), np.zeros((5, 4)), xs)
    return np.sum(h), ys


def test_rows_are_multiplied_at_once():
    outside, inside = parts_of(recurrent, V, W, XS)
    assert outside.count("matmul") == 1
    assert inside.count("matmul") == 1
    for x, y in zip(fg.jit(recurrent)(V, W, XS), recurrent(V, W, XS), strict=True):
        assert_allclose(x, y, rtol=1e-13)


def test_gradients_of_matrices_are_one_product_each():
    slope = fg.grad(lambda *args: recurrent(*args)[0], argnums=(0, 1, 2))
    outside, inside = parts_of(slope, V, W, XS)
    assert inside.count("matmul") == 2  # h @ w, and the cotangent by w.T
    assert outside.count("matmul") == 4  # xs @ v, its cotangents, and that of w
    for x, y in zip(fg.jit(slope)(V, W, XS), slope(V, W, XS), strict=True):
        assert_allclose(x, y, rtol=1e-12)


def test_biases_are_one_sum():
    def fun(b, xs):
        return np.sum(fg.scan(lambda h, x: (np.sin(h * x + b), None), np.zeros((5, 3)), xs)[0])

    _, inside = parts_of(fg.grad(fun), np.ones(3), XS)
    assert "sum(" not in inside
    assert_allclose(fg.jit(fg.grad(fun))(np.ones(3), XS), fg.grad(fun)(np.ones(3), XS), rtol=1e-12)


def test_vectors_give_one_product_of_all_steps():
    def fun(w, xs):
        return np.sum(fg.scan(lambda h, x: (np.tanh(w @ h + x), None), np.zeros(4), xs)[0])

    xs = RNG.normal(size=(9, 4))
    _, inside = parts_of(fg.grad(fun), W, xs)
    assert "outer" not in inside
    assert_allclose(fg.jit(fg.grad(fun))(W, xs), fg.grad(fun)(W, xs), rtol=1e-12)


def test_what_depends_on_constants_alone_is_computed_before():
    def fun(w, xs):
        return fg.vmap(
            lambda w: fg.scan(lambda c, x: (c + x * np.exp(np.sum(w)), None), 0.0, xs)[0]
        )(w)

    outside, inside = parts_of(fun, W, np.ones(8))
    assert "exp" in outside
    assert "exp" not in inside
    assert_array_equal(fg.jit(fun)(W, np.ones(8)), fun(W, np.ones(8)))


def test_outputs_and_carries_that_nobody_needs_are_left_out():
    def fun(xs):
        def step(c, x):
            a, b = c
            return (a + x, np.cos(b)), (a * 2, np.sin(b))

        return fg.scan(step, (0.0, 1.0), xs)[1][0]

    _, inside = parts_of(fun, np.ones(8))
    assert "cos" not in inside
    assert "sin" not in inside
    assert_array_equal(fg.jit(fun)(np.ones(8)), fun(np.ones(8)))


def test_branches_compute_what_is_wanted():
    def fun(x):
        def first(x):
            return np.sin(x), np.exp(x)

        return fg.cond(np.sum(x) > 0, first, lambda x: (x, x * 3), x)[0]

    text = fg.jit(fun).lower(np.ones(3)).as_text()
    assert "exp" not in text
    assert_array_equal(fg.jit(fun)(np.ones(3)), np.sin(np.ones(3)))


def test_steps_go_through_all_passes():
    def fun(xs):
        def step(c, x):
            return np.sin(x) * 1 + np.sin(x) + c, np.cos(x)

        return fg.scan(step, np.zeros(2), xs)[0]

    xs = RNG.normal(size=(8, 2))
    _, inside = parts_of(fun, xs)
    assert inside.count("sin(") == 1
    assert "multiply" not in inside
    assert "cos" not in inside
    assert_array_equal(fg.jit(fun)(xs), fun(xs))


def test_a_transposed_matrix_is_copied_once():
    def fun(w, xs):
        return fg.scan(lambda h, x: (np.tanh(h @ w.T + x), None), np.zeros((5, 4)), xs)[0]

    xs = RNG.normal(size=(9, 5, 4))
    outside, _ = parts_of(fun, W, xs)
    assert len(re.findall(r"= copy\(", outside)) == 1
    assert_allclose(fg.jit(fun)(W, xs), fun(W, xs), rtol=1e-13)
