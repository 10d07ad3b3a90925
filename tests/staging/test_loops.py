"""Loops and branches in programs: one equation for all steps, with the values of the loop."""

import re
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg

RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4))
XS = RNG.normal(size=(6, 3, 4))


def counted(fun):
    """Return a function that counts how often its Python code runs, and the count."""
    runs = []

    def counting(*args):
        runs.append(1)
        return fun(*args)

    return counting, runs


def source_of(fun, *args):
    return fg.jit(fun).lower(*args).as_source()


def loops_in(fun, *args):
    """Return how many loops the source of a compiled function has."""
    text = fg.jit(fun).lower(*args)._executable.source().text()
    return len(re.findall(r"^ +(?:for .* in |while True)", text, re.MULTILINE))


def leaves(value):
    keys = fg.random.Key
    return [fg.random.key_data(x) if isinstance(x, keys) else x for x in fg.tree.leaves(value)]


def check(fun, *args, exact=True, loops=None):
    """Compare a compiled function with the function, at its first and its second call."""
    wanted = leaves(fun(*args))
    compiled = fg.jit(fun)
    for _ in range(2):
        made = leaves(compiled(*args))
        assert [np.asarray(x).dtype for x in made] == [np.asarray(x).dtype for x in wanted]
        assert list(map(type, made)) == list(map(type, wanted))
        for x, y in zip(made, wanted, strict=True):
            if exact:
                assert_array_equal(x, y)
            else:
                single = np.asarray(y).dtype in (np.float32, np.complex64)
                assert_allclose(
                    x, y, rtol=1e-4 if single else 1e-11, atol=1e-5 if single else 1e-12
                )
    if loops is not None:
        assert loops_in(fun, *args) == loops


def recurrent(w, xs, **options):
    def step(h, x):
        h = np.tanh(h @ w + x)
        return h, h * 2

    return fg.scan(step, np.zeros_like(xs[0]), xs, **options)


def loss(w, xs):
    h, ys = recurrent(w, xs)
    return np.sum(np.real(h)) + np.sum(np.real(ys * np.conj(ys)))


# scan


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_is_a_loop(dtype, reverse):
    check(
        lambda w, xs: recurrent(w, xs, reverse=reverse), W.astype(dtype), XS.astype(dtype), loops=1
    )


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 17])
def test_any_number_of_steps(length):
    xs = RNG.normal(size=(length, 3))
    check(lambda x: fg.scan(lambda c, r: (c + r, c * r), x, xs), np.ones(3))
    check(lambda x: fg.scan(lambda c, r: (np.sin(c), c), x, None, length=length), np.ones(3))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_the_gradient_of_a_scan_is_two_loops(dtype):
    # Products of all steps are one, so that sums have another order.
    check(
        fg.value_and_grad(loss, argnums=(0, 1)),
        W.astype(dtype),
        XS.astype(dtype),
        exact=False,
        loops=2,
    )


def test_elementwise_gradients_are_the_same_to_the_last_bit():
    def fun(a, xs):
        c, ys = fg.scan(lambda c, x: (np.sin(c * a + x), c), np.zeros_like(a), xs)
        return np.sum(c) + np.sum(ys**2)

    check(fg.grad(fun, argnums=1), np.ones(4), XS[:, 0], loops=2)


def test_tangents_are_pushed_in_one_loop():
    check(lambda w, xs: fg.jvp(loss, (w, xs), (w * 2, xs)), W, XS, exact=False, loops=1)
    check(lambda xs: fg.jvp(lambda xs: loss(W, xs), (xs,), (xs,)), XS, exact=False, loops=1)


def test_linearize_is_a_loop_of_tangents():
    def fun(w, xs, dot):
        out, push = fg.linearize(lambda w: recurrent(w, xs)[1], w)
        return out, push(dot)

    check(fun, W, XS, W.T, exact=False, loops=2)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_examples_are_steps_of_all_of_them(axes):
    args = [np.stack([x, x + 1]) if axis == 0 else x for x, axis in zip((W, XS), axes, strict=True)]
    check(fg.vmap(recurrent, axes), *args, exact=False, loops=1)
    check(fg.vmap(fg.grad(loss), axes), *args, exact=False, loops=2)


def test_a_carry_that_differs_from_the_second_step_on():
    def fun(x):
        return fg.scan(lambda c, r: ((c[1], c[1] * r), c[0]), (1.0, 2.0), x)

    check(fg.vmap(fun), RNG.normal(size=(3, 5)), loops=1)


def test_the_gradient_of_examples():
    def fun(w, xs):
        return np.sum(fg.vmap(loss, (0, None))(w, xs))

    check(fg.grad(fun), np.stack([W, W + 1]), XS, exact=False, loops=2)


def test_second_derivatives():
    def small(w):
        return loss(w, XS)

    check(fg.hessian(small), W, exact=False)
    check(fg.grad(lambda w: np.sum(fg.grad(small)(w) ** 2)), W, exact=False, loops=4)
    check(lambda w: fg.jvp(fg.grad(small), (w,), (W.T,)), W, exact=False, loops=2)
    check(lambda w: fg.hvp(small, (w,), (W.T,)), W, exact=False)
    check(lambda w: fg.jacobian(lambda w: recurrent(w, XS)[0])(w), W, exact=False)


def test_third_derivatives():
    def cube(x):
        return fg.scan(lambda c, _: (c * x, None), x, length=4)[0]

    third = fg.grad(fg.grad(fg.grad(cube)))
    check(third, np.float64(0.7), exact=False)
    assert_allclose(fg.jit(third)(np.float64(0.7)), 60 * 0.7**2)


def test_the_gradient_of_a_compiled_scan():
    compiled = fg.jit(loss)
    for _ in range(2):
        for made, wanted in zip(
            fg.grad(compiled, argnums=(0, 1))(W, XS),
            fg.grad(loss, argnums=(0, 1))(W, XS),
            strict=True,
        ):
            assert_allclose(made, wanted, rtol=1e-12)


def test_scans_in_scans():
    def fun(w, xs):
        def outer(c, x):
            return fg.scan(lambda d, r: (np.tanh(d * r + w), d), c, x)

        return fg.scan(outer, np.ones(4), xs)

    def total(w, xs):
        c, ys = fun(w, xs)
        return np.sum(c) + np.sum(ys**2)

    xs = RNG.normal(size=(5, 4, 4))
    check(fun, W[0], xs, loops=2)
    check(fg.grad(total, argnums=(0, 1)), W[0], xs, exact=False, loops=4)
    check(fg.hessian(total), W[0], xs, exact=False)
    check(lambda w: fg.vmap(total, (0, None))(w, xs), W, exact=False, loops=2)


def test_what_a_step_closes_over_is_found_wherever_it_is():
    class Model:
        def __init__(self, w):
            self.parts = {"w": w}

        def step(self, c, x):
            return np.tanh(c @ self.parts["w"] + x), None

    def fun(w, xs):
        return np.sum(fg.scan(Model(w).step, xs[0], xs)[0])

    check(fun, W, XS, loops=1)
    check(fg.grad(fun), W, XS, exact=False, loops=2)


def test_steps_that_are_given_nothing():
    def fun(x):
        return fg.scan(lambda c, _: ((c[1], c[0] + c[1]), c[0]), (x, x * 2), length=10)

    check(fun, np.ones(3), loops=1)
    check(fun, 1, loops=1)
    check(lambda x: fg.scan(lambda c, r: (c + r, None), 0.0, x), np.arange(9.0), loops=1)


@pytest.mark.parametrize("start", [0, 0.0, True, np.float32(1), 1j])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c16"])
def test_a_number_to_start_from_takes_the_dtype_of_the_first_step(start, dtype):
    xs = np.arange(1, 7).astype(dtype)

    def fun(xs):
        return fg.scan(lambda c, x: (c + x, c * x), start, xs)

    try:
        fun(xs)
    except fg.errors.DtypeError:
        with pytest.raises(fg.errors.DtypeError):
            fg.jit(fun)(xs)
    else:
        check(fun, xs)


def test_numbers_of_python_stay_weak():
    def fun(x):
        return fg.scan(lambda c, r: (c * 2.0, r * c), 1.0, x)

    check(fun, np.arange(6, dtype="f4"), loops=1)


def test_outputs_are_pytrees_and_static_leaves_pass():
    def step(carry, x):
        made = {"total": carry["total"] + x["a"], "name": carry["name"]}
        return made, {"twice": (made["total"] * 2, x["b"]), "nothing": None}

    def fun(a, b):
        return fg.scan(step, {"total": np.zeros(2), "name": "sum"}, {"a": a, "b": b})

    check(fun, np.arange(10.0).reshape(5, 2), np.arange(5), loops=1)


def test_what_is_carried_may_change_places():
    def fun(x):
        return fg.scan(lambda c, r: ((c[2], c[0], c[1] + r), c), (x[0], x[1], x[2]), x)

    check(fun, XS, loops=1)
    check(fg.grad(lambda x: np.sum(fun(x)[1][2] ** 2)), XS, loops=2)


def test_a_row_can_be_carried_and_returned():
    check(lambda x: fg.scan(lambda c, r: (r, c.T), x[0], x), RNG.normal(size=(5, 3, 3)), loops=1)
    check(lambda x: fg.scan(lambda c, r: (r.T, c), x[0], x), RNG.normal(size=(5, 3, 3)), loops=1)


def test_results_are_fresh():
    compiled = fg.jit(lambda w, xs: recurrent(w, xs))
    first = compiled(W, XS)
    kept = [x.copy() for x in first]
    compiled(W * 2, XS + 1)
    for x, y in zip(first, kept, strict=True):
        assert_array_equal(x, y)
        assert not np.may_share_memory(x, XS)
    assert not np.may_share_memory(*first)


def test_keys_are_carried_and_gone_over():
    def step(key, _):
        key, own = fg.random.split(key)
        return key, fg.random.normal(own, (3,))

    def drawn(data):
        key, ys = fg.scan(step, fg.random.wrap_key_data(data), length=6)
        return fg.random.key_data(key), ys

    check(drawn, fg.random.key_data(fg.random.key(0)), loops=1)
    check(
        lambda data: fg.map(
            lambda key: fg.random.normal(key, (2,)),
            fg.random.split(fg.random.wrap_key_data(data), 5),
        ),
        fg.random.key_data(fg.random.key(1)),
        loops=1,
    )


def test_custom_rules_count_in_a_step():
    @fg.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, bar: (10 * bar,))

    def fun(x):
        return np.sum(fg.scan(lambda c, r: (double(np.sin(c)) + r, None), x[0], x)[0])

    check(fg.grad(fun), XS, loops=2)
    check(fg.grad(fg.checkpoint(fun)), XS)


def test_large_steps_in_blocks():
    xs = RNG.normal(size=(5, 300, 300))

    def fun(xs):
        return fg.scan(lambda c, x: (np.tanh(c * x) + np.exp(-c * c), c * 2), xs[0], xs)

    check(fun, xs, loops=None)
    check(fg.grad(lambda xs: np.sum(fun(xs)[0])), xs, exact=False)


def test_many_steps_are_few_lines_and_one_run_of_the_step():
    step, runs = counted(lambda c, x: (np.cos(c) + x, c))
    compiled = fg.jit(lambda xs: fg.scan(step, 0.5, xs))
    xs = RNG.normal(size=10_000)
    made = compiled(xs)
    assert len(runs) <= 4
    assert compiled.lower(xs).as_source().count("\n") < 80
    wanted = fg.scan(lambda c, x: (np.cos(c) + x, c), 0.5, xs)
    for x, y in zip(made, wanted, strict=True):
        assert_array_equal(x, y)


def test_errors_are_those_of_the_loop():
    def widening(c, x):
        return np.append(c, x), None

    with pytest.raises(fg.errors.ShapeError, match="keep its shape"):
        fg.jit(lambda x: fg.scan(widening, np.zeros(1), x))(np.ones(6))
    with pytest.raises(fg.errors.TreeMismatchError, match="keep its structure"):
        fg.jit(lambda x: fg.scan(lambda c, x: ((c, x), None), 0.0, x))(np.ones(6))

    def writing(c, x):
        c[0] = x
        return c, None

    with pytest.raises(fg.errors.MutationError, match="assigned in place"):
        fg.jit(lambda x: fg.scan(writing, np.zeros(2), x))(np.ones(6))
    with pytest.raises(fg.errors.TracerValueError, match="truth value"):
        fg.jit(lambda x: fg.scan(lambda c, x: (c + 1 if x > 0 else c, None), 0.0, x))(np.ones(6))


def test_derivatives_that_are_not_finite_are_those_of_the_function():
    def fun(x):
        def step(c, r):
            return np.where(r > 0, c * np.sqrt(r), c), None

        return np.sum(fg.scan(step, np.ones(3), x)[0])

    slope = fg.jit(fg.grad(fun))
    good, bad = np.abs(XS[:, 0, :3]), XS[:, 0, :3]
    for x in (good, bad, good, np.zeros((6, 3))):
        with np.errstate(all="ignore"):
            assert_allclose(slope(x), fg.grad(fun)(x), rtol=1e-12)


def test_named_axes_see_through_steps():
    def fun(x):
        return fg.scan(lambda c, r: (c + fg.psum(r, "i"), None), 0.0, x)[0]

    check(fg.vmap(fun, axis_name="i"), np.arange(12.0).reshape(2, 6))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("every", [2, 4, 5, 30])
def test_segments_are_made_again(every, reverse):
    xs = RNG.normal(size=(22, 3, 4))

    def fun(w):
        def step(h, x):
            h = np.tanh(h @ w + x)
            return h, h[0]

        h, ys = fg.scan(step, xs[0], xs, reverse=reverse, checkpoint_every=every)
        return np.sum(h) + np.sum(ys**2), ys

    check(fg.grad(fun, has_aux=True), W, exact=False)


def test_a_checkpoint_keeps_what_is_carried_alone():
    def fun(w):
        def step(h, x):
            return np.tanh(np.sin(np.sin(h @ w + x))), None

        return np.sum(fg.scan(fg.checkpoint(step), XS[0], XS)[0])

    check(fg.grad(fun), W, exact=False, loops=2)
    text = fg.jit(fg.grad(fun)).lower(W).as_text()
    (kept,) = re.findall(r"^  (.*) = scan\(.*length=6\)", text, re.MULTILINE)[:1]
    assert kept.count("[6,3,4]") == 1


# map


def test_a_map_is_a_loop():
    check(lambda x: fg.map(lambda r: (np.sum(r), r * 2), x), XS, loops=1)
    check(fg.grad(lambda x: np.sum(fg.map(lambda r: np.sum(r**2), x))), XS, loops=2)


# while_loop, fori_loop


def newton(a):
    return fg.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
def test_one_program_for_any_number_of_steps(kind):
    fun, runs = counted(newton)
    compiled = fg.jit(fun)
    for a in (9.0, 1.0, 2.0, 1e6):
        assert_array_equal(compiled(kind(a)), newton(kind(a)))
    assert len(runs) == 1


def test_derivatives_of_a_while_loop():
    for a in (9.0, 16.0, 1e6):
        check(fg.grad(newton), a)
        check(lambda a: fg.jvp(newton, (a,), (1.0,)), a, loops=1)
        check(fg.grad(fg.grad(newton)), a, exact=False)
    slope = fg.jit(fg.grad(newton))
    for a in (9.0, 16.0, 2.0, 1e6, 9.0):  # with another number of steps
        assert_allclose(slope(a), 1 / (2 * a**0.5), rtol=1e-9)


def test_examples_with_one_condition_are_one_loop():
    def fun(x):
        return fg.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, np.sin(s[1]) * 2), (0, x))[1]

    check(fg.vmap(fun), np.arange(6.0).reshape(2, 3), loops=1)
    check(fg.grad(lambda x: np.sum(fun(x))), np.ones(3))


def test_examples_with_conditions_of_their_own_end_for_themselves():
    check(fg.vmap(newton), np.array([1.0, 4.0, 9.0]))
    check(fg.vmap(fg.grad(newton)), np.array([1.0, 4.0, 9.0]))


def test_loops_that_make_no_step():
    compiled = fg.jit(lambda x: fg.while_loop(lambda x: x < 10, lambda x: x * 2, x))
    assert [compiled(x) for x in (11.0, 1.0, 12.0)] == [11.0, 16.0, 12.0]
    check(lambda x: fg.fori_loop(5, 2, lambda i, c: c * i, x), 2.0)


def test_a_while_loop_in_a_scan():
    def fun(xs):
        def step(c, x):
            c = fg.while_loop(lambda v: np.sum(v) < x, lambda v: v * 2.0, c)
            return c * 0.1, c

        return fg.scan(step, np.ones(3), xs)

    check(fun, np.array([10.0, 3.0, 50.0, 0.0, 7.0]), loops=2)


def test_a_loop_over_a_range():
    check(lambda x: fg.fori_loop(0, 10, lambda i, c: c * x + i, x), np.full(3, 0.3), loops=1)
    check(lambda x: fg.fori_loop(1, 6, lambda i, c: c * i, x), 1, loops=1)
    check(lambda x: fg.fori_loop(0, 6, lambda i, c: c * x[i] + i, 0.0), np.full(6, 0.3), loops=1)
    check(
        lambda x: fg.fori_loop(0, 6, lambda i, c: fg.at(c)[i].set(c[i] * 2 + i), x),
        np.arange(6.0),
        loops=1,
    )


def test_the_gradient_of_a_loop_over_a_range():
    def fun(x):
        return np.sum(fg.fori_loop(2, 10, lambda i, c: np.sin(c * x[i]) + i, x[:3]))

    check(fg.grad(fun), np.linspace(0.1, 0.5, 10), loops=2)


def test_steps_that_depend_on_their_number_in_python_are_unrolled():
    check(lambda x: fg.fori_loop(0, 6, lambda i, c: c * x if i == 0 else c + 1, 1.0), 2.0, loops=0)


def test_bounds_that_are_arguments():
    compiled = fg.jit(lambda x, n: fg.fori_loop(0, n, lambda i, c: c * x + i, x))
    for n in (8, 3, 0, 20):
        assert_array_equal(
            compiled(np.full(3, 0.3), n),
            fg.fori_loop(0, n, lambda i, c: c * np.full(3, 0.3) + i, np.full(3, 0.3)),
        )


# cond, switch


def either(x):
    return fg.cond(np.sum(x) > 0, lambda x: np.sin(x) * 2, lambda x: x**2 + 1, x)


SIGNS = [np.array([1.0, 2.0]), np.array([-1.0, -2.0])]


def test_both_branches_are_in_one_program():
    fun, runs = counted(either)
    compiled = fg.jit(fun)
    for x in (*SIGNS, *SIGNS):
        assert_array_equal(compiled(x), either(x))
    assert len(runs) == 1


@pytest.mark.parametrize("x", SIGNS, ids=["first", "second"])
def test_derivatives_of_branches(x):
    def total(x):
        return np.sum(either(x) ** 2)

    check(fg.value_and_grad(total), x)
    check(fg.hessian(total), x, exact=False)
    check(lambda x: fg.jvp(either, (x,), (x,)), x)
    check(fg.grad(lambda x: np.sum(fg.grad(total)(x) ** 2)), x, exact=False)
    check(lambda x: fg.linearize(either, x)[1](x), x)
    assert_allclose(fg.grad(fg.jit(total))(x), fg.grad(total)(x))


def test_one_program_has_the_gradients_of_both_branches():
    fun, runs = counted(lambda x: np.sum(either(x) ** 2))
    slope = fg.jit(fg.grad(fun))
    for x in (*SIGNS, *SIGNS):
        assert_array_equal(slope(x), fg.grad(lambda x: np.sum(either(x) ** 2))(x))
    assert len(runs) == 1


def test_examples_that_choose_for_themselves():
    check(fg.vmap(either), np.stack(SIGNS))
    check(fg.vmap(fg.grad(lambda x: np.sum(either(x)))), np.stack(SIGNS))


def test_examples_with_one_choice():
    def fun(p, xs):
        return fg.vmap(lambda x: fg.cond(p > 0, np.sin, lambda x: np.float64(1.0) * x, x))(xs)

    compiled = fg.jit(fun)
    for p in (1.0, -1.0):
        assert_array_equal(compiled(p, np.stack(SIGNS)), fun(p, np.stack(SIGNS)))


@pytest.mark.parametrize("x", SIGNS, ids=["first", "second"])
def test_branches_that_close_over_values(x):
    def fun(x):
        return fg.cond(x[0] > 0, lambda: np.sqrt(x), lambda: np.zeros_like(x))

    check(fun, x)
    check(fg.grad(lambda x: np.sum(fun(x))), x)


@pytest.mark.parametrize("i", [-1, 0, 1, 2, 7])
def test_a_switch(i):
    def fun(i, x):
        return fg.switch(i, [np.sin, np.negative, np.square], x)

    check(fun, i, SIGNS[0])
    check(lambda i, x: fg.grad(lambda x: np.sum(fun(i, x)))(x), i, SIGNS[0])


def test_a_branch_that_is_not_chosen_may_raise():
    def fun(x):
        return fg.cond(x[0] > 0, lambda x: np.linalg.inv(x[1:].reshape(2, 2)), lambda x: x * 0, x)

    with pytest.raises(np.linalg.LinAlgError):
        fg.jit(fun)(np.ones(5))


def test_branches_in_steps():
    def fun(x):
        def step(c, r):
            c = fg.cond(r[0] > 0, lambda c: c + r, lambda c: c * 2.0, c)
            return c, c

        return fg.scan(step, x[0], x)

    x = RNG.normal(size=(9, 3))
    check(fun, x, loops=1)
    check(fg.grad(lambda x: np.sum(fun(x)[1])), x, loops=2)
    check(fg.vmap(fun), RNG.normal(size=(2, 9, 3)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_steps_in_branches(sign):
    def fun(x):
        def run(x):
            return fg.scan(lambda c, r: (c + r, c * r), np.float64(0.0), x)

        return fg.cond(x[0] > 0, run, lambda x: (x[0], x), x)

    x = np.arange(1.0, 8.0) * sign
    check(fun, x, loops=1)
    check(fg.grad(lambda x: np.sum(fun(x)[1])), x, loops=2)


# What is shown


def test_the_program_shows_the_steps():
    text = fg.jit(lambda x: fg.scan(lambda c, r: (np.sin(c) * r, c), x[0], x)).lower(np.ones(6))
    text = text.as_text(optimized=False)
    assert re.sub(r" *#.*", "", text.replace("<lambda>", "f")).splitlines() == [
        "program f(x: float64[6])",
        "  a: float64[] = getitem(x, [0])",
        "  (b: float64[], c: float64[6]) = scan(a, x, length=6)",
        "    step(d: float64[], e: float64[]):",
        "      f: float64[] = sin(d)",
        "      g: float64[] = multiply(f, e)",
        "      return g, d",
        "  return",
        "    [0] = b: float64[]",
        "    [1] = c: float64[6]",
    ]


def test_the_program_shows_branches():
    text = fg.jit(lambda x: fg.cond(x > 0, np.sin, np.cos, x)).lower(np.float64(1)).as_text()
    rows = [row.partition("#")[0].strip() for row in text.splitlines()]
    assert rows[3:7] == [
        "if it holds:",
        "c: float64[] = sin(x)",
        "return c",
        "if not:",
    ]


def test_the_source_needs_numpy_alone(tmp_path):
    text = source_of(fg.value_and_grad(lambda w, xs: np.sum(recurrent(w, xs)[1] ** 2)), W, XS)
    assert "funcgrad" not in text
    np.savez(tmp_path / "arrays.npz", w=W, xs=XS)
    name = re.findall(r"^def (\w+)", text, re.MULTILINE)[-1]
    script = (
        "import sys; sys.modules['funcgrad'] = None\n"
        f"{text}\n"
        "import numpy as np\n"
        f"data = np.load({str(tmp_path / 'arrays.npz')!r})\n"
        f"found = {name}(data['w'], data['xs'])\n"
        "print([float(np.sum(x)) for x in found])\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    value, slope = fg.value_and_grad(lambda w, xs: np.sum(recurrent(w, xs)[1] ** 2))(W, XS)
    assert_allclose(eval(out.stdout), [value, np.sum(slope)], rtol=1e-12)


def test_threads_run_loops_with_memory_of_their_own():
    from concurrent.futures import ThreadPoolExecutor

    compiled = fg.jit(fg.grad(loss))
    inputs = [XS * k for k in range(8)]
    wanted = [compiled(W, xs) for xs in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            made = list(pool.map(lambda xs: compiled(W, xs), inputs))
            for x, y in zip(made, wanted, strict=True):
                assert_array_equal(x, y)


def test_a_loop_in_a_branch_that_is_not_taken_need_not_end():
    def fun(x):
        def doubled(x):
            return fg.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, x)

        return fg.cond(x > 0, doubled, lambda x: -x, x)

    compiled, slope = fg.jit(fun), fg.jit(fg.grad(fun))
    for x in map(np.float64, (-3.0, 3.0, 0.5, -1.0)):  # of a negative number it goes on for ever
        assert compiled(x) == fun(x)
        assert slope(x) == fg.grad(fun)(x)
