"""Random programs: values are untouched, and all first derivatives are one linear map."""

import numpy as np
from hypothesis import given, reject
from programs import assert_close, programs

import funcgrad as fg
from funcgrad import tree
from funcgrad.errors import DtypeError


def assert_identical(got, expected):
    assert tree.structure(got) == tree.structure(expected)
    for one, other in zip(tree.leaves(got), tree.leaves(expected), strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other, strict=True)


def tangent_like(program, number=0):
    return program.unravel(program.direction(number))


@given(programs(kinked=True))
def test_value_is_the_same_to_the_last_bit_under_every_transform(program):
    x, expected = program.point(), program(program.point())
    assert_identical(fg.vjp(program, x)[0], expected)
    assert_identical(fg.jvp(program, (x,), (tangent_like(program),))[0], expected)
    assert_identical(fg.linearize(program, x)[0], expected)
    assert_identical(fg.checkpoint(program)(x), expected)
    assert_identical(fg.vjp(fg.checkpoint(program), x)[0], expected)
    v = program.vector()
    assert_identical(fg.value_and_grad(program.scalar)(v)[0], program.scalar(v))
    assert_identical(fg.value_and_jacrev(program.flat)(v)[0], program.flat(v))
    assert_identical(fg.value_and_jacfwd(program.flat)(v)[0], program.flat(v))


@given(programs(kinked=True))
def test_inner_value_is_the_same_under_two_transforms(program):
    expected = program.scalar(program.vector())
    seen = []

    def kept(x):
        value = program.scalar(x)
        fg.pure_callback(lambda value: seen.append(value) or value, 0.0, fg.stop_gradient(value))
        return value

    x, v = program.vector(), program.direction()
    fg.jvp(fg.grad(kept), (x,), (v,))
    fg.grad(lambda x: fg.jvp(kept, (x,), (v,))[1])(x)
    fg.grad(lambda x: fg.grad(kept)(x) @ v)(x)
    assert seen == [expected] * 3


@given(programs())
def test_forward_mode_is_the_limit_of_differences(program):
    x, v = program.vector(), program.direction()
    expected = fg.testing.numerical_jvp(program.flat, (x,), (v,))
    assert_close(fg.jvp(program.flat, (x,), (v,))[1], expected, 1e-6)


@given(programs(kinked=True))
def test_reverse_mode_is_the_transpose_of_forward_mode(program):
    x, v, w = program.vector(), program.direction(), program.weights
    out_dot = fg.jvp(program.flat, (x,), (v,))[1]
    (x_bar,) = fg.vjp(program.flat, x)[1](w)
    assert_close(x_bar @ v, w @ out_dot, 1e-10)


@given(programs(kinked=True))
def test_gradient_has_the_structure_of_the_argument(program):
    x = program.point()
    gradient = fg.grad(lambda x: program.scalar(tree.ravel(x)[0]))(x)
    assert tree.structure(gradient) == tree.structure(x)
    for one, other in zip(tree.leaves(gradient), tree.leaves(x), strict=True):
        assert type(one) is type(other)
        assert np.shape(one) == np.shape(other)


@given(programs(kinked=True))
def test_linearize_is_jvp(program):
    x = program.point()
    out, pushforward = fg.linearize(program, x)
    for number in range(2):
        v = tangent_like(program, number)
        expected = fg.jvp(program, (x,), (v,))[1]
        assert tree.structure(pushforward(v)) == tree.structure(out)
        assert_close(tree.ravel(pushforward(v))[0], tree.ravel(expected)[0], 1e-12)


@given(programs(kinked=True))
def test_pullback_is_linear(program):
    x, w = program.vector(), program.weights
    u = np.cos(np.arange(w.size) + 0.5)
    _, pullback = fg.vjp(program.flat, x)
    (of_w,), (of_u,), (of_both,) = pullback(w), pullback(u), pullback(2.0 * w - 3.0 * u)
    assert_close(of_both, 2.0 * of_w - 3.0 * of_u, 1e-11)
    assert np.all(pullback(0.0 * w)[0] == 0.0)


@given(programs(kinked=True))
def test_transpose_of_the_pushforward_is_the_pullback(program):
    x, w = program.vector(), program.weights
    _, pushforward = fg.linearize(program.flat, x)
    (x_bar,) = fg.linear_transpose(pushforward, x)(w)
    assert_close(x_bar, fg.vjp(program.flat, x)[1](w)[0], 1e-10)


@given(programs(kinked=True))
def test_transpose_of_the_pullback_is_the_pushforward(program):
    x, v, w = program.vector(), program.direction(), program.weights
    _, pullback = fg.vjp(program.flat, x)
    (out_dot,) = fg.linear_transpose(lambda w: pullback(w)[0], w)(v)
    assert_close(out_dot, fg.jvp(program.flat, (x,), (v,))[1], 1e-10)


@given(programs(kinked=True))
def test_jacobian_is_the_same_in_all_modes_and_chunks(program):
    x, v, w = program.vector(), program.direction(), program.weights
    by_rows = fg.jacrev(program.flat)(x)
    assert by_rows.shape == (w.size, x.size)
    assert_close(by_rows @ v, fg.jvp(program.flat, (x,), (v,))[1], 1e-10)
    assert_close(fg.jacfwd(program.flat)(x), by_rows, 1e-10)
    assert_close(fg.jacobian(program.flat)(x), by_rows, 1e-10)
    assert_close(fg.jacrev(program.flat, chunk_size=2)(x), by_rows, 1e-10)
    assert_close(fg.jacfwd(program.flat, chunk_size=2)(x), by_rows, 1e-10)


@given(programs(kinked=True))
def test_jacobian_of_trees_is_that_of_vectors_in_parts(program):
    x = program.point()
    made = fg.jacobian(program)(x)
    expected = fg.jacrev(program.flat)(program.vector())
    rows = []
    for row in tree.structure(program(x)).flatten_up_to(made):
        parts = tree.structure(x).flatten_up_to(row)
        sizes = [np.size(leaf) for leaf in tree.leaves(x)]
        rows.append(
            np.concatenate(
                [np.reshape(part, (-1, size)) for part, size in zip(parts, sizes, strict=True)],
                axis=1,
            )
        )
    assert_close(np.concatenate(rows), expected, 1e-10)


@given(programs(kinked=True))
def test_checkpoint_changes_no_first_derivative(program):
    x, v, w = program.vector(), program.direction(), program.weights
    again = fg.checkpoint(program.flat)
    np.testing.assert_array_equal(fg.vjp(again, x)[1](w)[0], fg.vjp(program.flat, x)[1](w)[0])
    np.testing.assert_array_equal(fg.jvp(again, (x,), (v,))[1], fg.jvp(program.flat, (x,), (v,))[1])


@given(programs(kinked=True))
def test_narrow_programs_stay_narrow(program):
    """float32 in: values and dtypes are those without transforms; the modes agree roughly."""
    x = tree.map(np.float32, program.point())
    try:
        expected = program(x)
    except DtypeError:  # a carry of a loop that a float64 constant widens
        reject()
    out, pullback = fg.vjp(program, x)
    assert_identical(out, expected)
    (x_bar,) = pullback(tree.map(np.ones_like, out))
    for one, other in zip(tree.leaves(x_bar), tree.leaves(x), strict=True):
        assert one.dtype == other.dtype == np.float32
        assert np.shape(one) == np.shape(other)
    ones = tree.map(np.ones_like, x)
    out, out_dot = fg.jvp(program, (x,), (ones,))
    assert_identical(out, expected)
    for one, other in zip(tree.leaves(out_dot), tree.leaves(out), strict=True):
        assert one.dtype == other.dtype
    summed = sum(np.sum(leaf, dtype=float) for leaf in tree.leaves(x_bar))
    pushed = sum(np.sum(leaf, dtype=float) for leaf in tree.leaves(out_dot))
    size = sum(np.sum(np.abs(leaf), dtype=float) for leaf in tree.leaves((x_bar, out_dot)))
    assert abs(summed - pushed) <= 1e-3 * (1.0 + size)
