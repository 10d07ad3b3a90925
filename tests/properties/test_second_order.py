"""Random programs: second derivatives are the same in every order of modes."""

import numpy as np
from hypothesis import given
from programs import assert_close, programs

import funcgrad as fg


@given(programs())
def test_second_derivative_is_the_limit_of_differences(program):
    x, v = program.vector(), program.direction()
    gradient = fg.grad(program.scalar)
    expected = fg.testing.numerical_jvp(gradient, (x,), (v,))
    assert_close(fg.jvp(gradient, (x,), (v,))[1], expected, 1e-5)


@given(programs(kinked=True, most=8))
def test_hessian_is_symmetric_and_the_same_in_every_mix_of_modes(program):
    x = program.vector()
    hessian = fg.hessian(program.scalar)(x)
    assert_close(hessian, hessian.T)
    for outer in (fg.jacfwd, fg.jacrev):
        for inner in (fg.jacfwd, fg.jacrev):
            assert_close(outer(inner(program.scalar))(x), hessian)
    assert_close(fg.hessian(program.scalar, chunk_size=2)(x), hessian, 1e-11)


@given(programs(kinked=True))
def test_product_with_the_hessian_in_every_mix_of_modes(program):
    f, x, v = program.scalar, program.vector(), program.direction()
    product = fg.hvp(f, (x,), (v,))
    assert_close(fg.grad(lambda x: fg.jvp(f, (x,), (v,))[1])(x), product)
    assert_close(fg.grad(lambda x: fg.grad(f)(x) @ v)(x), product)
    assert_close(fg.vjp(fg.grad(f), x)[1](v)[0], product)
    assert_close(fg.linearize(fg.grad(f), x)[1](v), product)
    assert_close(fg.grad(lambda x: fg.linearize(f, x)[1](v))(x), product)
    u = program.direction(1)
    along = fg.jvp(lambda x: fg.jvp(f, (x,), (v,))[1], (x,), (u,))[1]
    assert_close(along, u @ product)


@given(programs(kinked=True, most=8))
def test_product_with_the_hessian_is_a_product_with_the_hessian(program):
    x, v = program.vector(), program.direction()
    assert_close(fg.hvp(program.scalar, (x,), (v,)), fg.hessian(program.scalar)(x) @ v)


@given(programs(kinked=True))
def test_checkpoint_changes_no_second_derivative(program):
    f, x, v = program.scalar, program.vector(), program.direction()
    again = fg.checkpoint(f)
    expected = fg.hvp(f, (x,), (v,))
    assert_close(fg.hvp(again, (x,), (v,)), expected, 1e-12)
    assert_close(fg.jvp(fg.checkpoint(fg.grad(f)), (x,), (v,))[1], expected, 1e-12)
    assert_close(fg.grad(lambda x: fg.grad(again)(x) @ v)(x), expected)
    assert_close(fg.grad(fg.checkpoint(lambda x: fg.grad(again)(x) @ v))(x), expected)


@given(programs(most=6))
def test_third_derivative_is_the_limit_of_differences(program):
    x, v = program.vector(), program.direction()

    def curvature(x):
        return fg.jvp(fg.grad(program.scalar), (x,), (v,))[1] @ v

    gradient = fg.grad(curvature)(x)
    along = fg.jvp(curvature, (x,), (v,))[1]
    assert_close(along, gradient @ v)
    assert_close(along, fg.testing.numerical_jvp(curvature, (x,), (v,)), 1e-4)


@given(programs(kinked=True))
def test_vector_functions_have_second_derivatives_that_are_symmetric(program):
    x, u, v = program.vector(), program.direction(), program.direction(1)

    def twice(first, second):
        return fg.jvp(lambda x: fg.jvp(program.flat, (x,), (first,))[1], (x,), (second,))[1]

    assert_close(twice(u, v), twice(v, u))
    assert_close(np.sum(program.weights * twice(u, v)), fg.hvp(program.scalar, (x,), (u,)) @ v)
