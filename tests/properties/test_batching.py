"""Random programs: `vmap` is a loop over examples, wherever it stands among other transforms."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from programs import assert_close, programs

import funcgrad as fg
from funcgrad import tree

COUNT = 3


def vectors(program):
    return np.stack([program.vector(number) for number in range(COUNT)])


def directions(program):
    return np.stack([program.direction(number) for number in range(COUNT)])


def loop(fun, *args):
    return np.stack([fun(*parts) for parts in zip(*args, strict=True)])


@given(programs(kinked=True))
def test_vmap_is_a_loop_over_trees(program):
    examples, each = program.examples(COUNT)
    got = fg.vmap(program)(examples)
    expected = tree.map(lambda *leaves: np.stack(leaves), *map(program, each))
    assert tree.structure(got) == tree.structure(expected)
    for one, other in zip(tree.leaves(got), tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        assert_close(one, other, 1e-11)


@given(programs(kinked=True), st.integers(-2, 1), st.integers(-2, 1))
def test_vmap_takes_and_gives_examples_along_any_axis(program, in_axis, out_axis):
    xs = vectors(program)
    expected = loop(program.flat, xs)
    got = fg.vmap(program.flat, in_axis, out_axis)(np.moveaxis(xs, 0, in_axis))
    assert_close(np.moveaxis(got, out_axis, 0), expected, 1e-11)


@given(programs(kinked=True))
def test_vmap_over_one_argument_of_two(program):
    """The other is the same for all examples, and so may be whatever depends on it alone."""
    program = program.with_assignable_copies()
    examples, each = program.examples(COUNT)
    leaves, treedef = tree.flatten(examples)
    shared = tree.leaves(each[0])
    for chosen in range(len(leaves)):
        mixed = [leaf if k == chosen else shared[k] for k, leaf in enumerate(leaves)]
        axes = treedef.unflatten([0 if k == chosen else None for k in range(len(leaves))])
        got = fg.vmap(program, (axes,), axis_size=COUNT)(treedef.unflatten(mixed))

        def of_one(number, chosen=chosen):
            parts = [leaf[number] if k == chosen else shared[k] for k, leaf in enumerate(leaves)]
            return program(treedef.unflatten(parts))

        for one, *others in zip(
            tree.leaves(got), *(tree.leaves(of_one(n)) for n in range(COUNT)), strict=True
        ):
            assert_close(one, np.stack(others), 1e-11)


@given(programs(kinked=True))
def test_vmap_of_a_gradient_is_the_gradient_of_the_sum_of_vmap(program):
    xs = vectors(program)
    expected = loop(fg.grad(program.scalar), xs)
    assert_close(fg.vmap(fg.grad(program.scalar))(xs), expected)
    assert_close(fg.grad(lambda xs: np.sum(fg.vmap(program.scalar)(xs)))(xs), expected)


@given(programs(kinked=True))
def test_vmap_of_jvp_is_jvp_of_vmap(program):
    xs, vs = vectors(program), directions(program)

    def pushed(x, v):
        return fg.jvp(program.flat, (x,), (v,))[1]

    expected = loop(pushed, xs, vs)
    assert_close(fg.vmap(pushed)(xs, vs), expected)
    assert_close(fg.jvp(fg.vmap(program.flat), (xs,), (vs,))[1], expected)
    assert_close(fg.linearize(fg.vmap(program.flat), xs)[1](vs), expected)


@given(programs(kinked=True))
def test_vmap_of_vjp_is_vjp_of_vmap(program):
    xs, w = vectors(program), program.weights

    def pulled(x):
        return fg.vjp(program.flat, x)[1](w)[0]

    expected = loop(pulled, xs)
    assert_close(fg.vmap(pulled)(xs), expected)
    batched = fg.vjp(fg.vmap(program.flat), xs)[1]
    assert_close(batched(np.stack([w] * COUNT))[0], expected)


@given(programs(kinked=True))
def test_vmap_of_the_linear_maps_alone(program):
    """Many tangents, and many cotangents, at one point: as Jacobians are made."""
    x, vs = program.vector(), directions(program)
    _, pushforward = fg.linearize(program.flat, x)
    assert_close(fg.vmap(pushforward)(vs), loop(pushforward, vs), 1e-11)
    _, pullback = fg.vjp(program.flat, x)
    ws = np.stack([program.weights, -program.weights, program.weights**2])
    expected = loop(lambda w: pullback(w)[0], ws)
    assert_close(fg.vmap(lambda w: pullback(w)[0])(ws), expected, 1e-11)
    tangents = fg.vmap(lambda v: fg.jvp(program.flat, (x,), (v,))[1])(vs)
    assert_close(tangents, loop(pushforward, vs), 1e-10)


@given(programs(kinked=True, most=6))
def test_vmap_of_vmap_is_a_loop_in_a_loop(program):
    xs = vectors(program)
    grid = xs[:, np.newaxis] + 0.1 * xs[np.newaxis, ::-1]
    expected = np.stack([loop(program.flat, row) for row in grid])
    assert_close(fg.vmap(fg.vmap(program.flat))(grid), expected, 1e-11)
    across = fg.vmap(fg.vmap(program.flat), in_axes=1, out_axes=1)(grid)
    assert_close(across, expected, 1e-11)


@given(programs(kinked=True, most=6))
def test_vmap_of_a_hessian_is_a_part_of_the_hessian_of_vmap(program):
    xs = vectors(program)
    expected = loop(fg.hessian(program.scalar), xs)
    assert_close(fg.vmap(fg.hessian(program.scalar))(xs), expected)
    whole = fg.hessian(lambda xs: np.sum(fg.vmap(program.scalar)(xs)))(xs)
    for i in range(COUNT):
        for j in range(COUNT):
            assert_close(whole[i, :, j], expected[i] if i == j else 0.0 * expected[i])


@given(programs(kinked=True))
def test_vmap_of_products_with_the_hessian(program):
    xs, vs = vectors(program), directions(program)

    def product(x, v):
        return fg.hvp(program.scalar, (x,), (v,))

    expected = loop(product, xs, vs)
    assert_close(fg.vmap(product)(xs, vs), expected)
    gradients = fg.vmap(fg.grad(program.scalar))
    assert_close(fg.jvp(gradients, (xs,), (vs,))[1], expected)
    assert_close(fg.vjp(gradients, xs)[1](vs)[0], expected)
    slopes = fg.vmap(lambda x, v: fg.jvp(program.scalar, (x,), (v,))[1])
    assert_close(fg.grad(lambda xs: np.sum(slopes(xs, vs)))(xs), expected)


@given(programs(kinked=True))
def test_checkpoint_inside_and_around_vmap(program):
    xs = vectors(program)
    expected = loop(fg.grad(program.scalar), xs)
    again = fg.checkpoint(program.scalar)
    assert_close(fg.vmap(again)(xs), loop(program.scalar, xs), 1e-11)
    assert_close(fg.vmap(fg.grad(again))(xs), expected)
    assert_close(fg.grad(lambda xs: np.sum(fg.vmap(again)(xs)))(xs), expected)
    assert_close(
        fg.grad(lambda xs: np.sum(fg.checkpoint(fg.vmap(program.scalar))(xs)))(xs), expected
    )


@given(programs(kinked=True))
def test_jacobians_under_vmap(program):
    xs = vectors(program)
    expected = loop(fg.jacrev(program.flat), xs)
    assert_close(fg.vmap(fg.jacrev(program.flat))(xs), expected)
    assert_close(fg.vmap(fg.jacfwd(program.flat))(xs), expected)
    assert_close(fg.vmap(fg.jacfwd(program.flat, chunk_size=1))(xs), expected)


@given(programs(kinked=True))
def test_map_is_vmap(program):
    xs = vectors(program)
    expected = loop(program.flat, xs)
    assert_close(fg.map(program.flat, xs), expected, 1e-12)
    assert_close(fg.map(program.flat, xs, batch_size=2), expected, 1e-11)
    w = np.stack([program.weights] * COUNT)
    slopes = loop(fg.grad(program.scalar), xs)
    assert_close(fg.grad(lambda xs: np.sum(w * fg.map(program.flat, xs)))(xs), slopes)
