"""Layers in programs: products and sums by themselves, with the same results to the last bit."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.rules.nn.affine import affine

RNG = np.random.default_rng(0)


def names(compiled, *args):
    return [equation.name for equation in compiled.lower(*args)._executable.program.equations]


@pytest.mark.parametrize("lead", [(), (5,), (2, 5), (2, 3, 5), (0,), (2, 0), (1,)])
@pytest.mark.parametrize(("outputs", "inputs"), [(4, 3), (1, 3), (4, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_layer_is_the_same_to_the_last_bit(lead, outputs, inputs, order):
    x = RNG.normal(size=(*lead, inputs)).astype(np.float32)
    w = np.asarray(RNG.normal(size=(outputs, inputs)), np.float32, order=order)
    b = RNG.normal(size=outputs).astype(np.float32)
    compiled = fg.jit(affine)
    np.testing.assert_array_equal(compiled(x, w, b), affine(x, w, b), strict=True)
    if min(w.shape) > 1:
        assert "affine" not in names(compiled, x, w, b)


def test_what_follows_a_layer_sees_its_memory_as_it_is():
    """A sum goes in the order of the memory."""
    x, w, b = RNG.normal(size=(6, 7, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=4)

    def loss(w, b):
        return np.sum(np.tanh(affine(np.swapaxes(x, 0, 1), w, b)).T ** 2)

    value, slopes = fg.jit(fg.value_and_grad(loss, argnums=(0, 1)))(w, b)
    expected, slopes_too = fg.value_and_grad(loss, argnums=(0, 1))(w, b)
    assert value == expected
    for one, other in zip(slopes, slopes_too, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_weight_may_be_a_view_with_gaps():
    w = RNG.normal(size=(4, 6))

    def fun(x, w, b):
        return affine(x, w[:, ::2], b)

    x, b = RNG.normal(size=(5, 3)), RNG.normal(size=4)
    np.testing.assert_array_equal(fg.jit(fun)(x, w, b), fun(x, w, b))
