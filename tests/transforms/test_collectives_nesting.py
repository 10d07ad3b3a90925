"""Collectives among other things: control flow, rules of the user's, names, and mistakes."""

import pickle
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, AxisNameError, FuncgradError, ShapeError

V = np.array([1.0, 2.0, 3.0])


def named(fun, **options):
    return fg.vmap(fun, axis_name="i", **options)


def numerical_gradient(fun, x, step=1e-6):
    made = np.empty_like(x)
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += step
        up = fun(moved)
        moved[index] -= 2 * step
        made[index] = (up - fun(moved)) / (2 * step)
    return made


def check_gradients(of_one, of_all, x=V):
    """Compare the value and the gradients, outside and inside, with those of the whole batch."""
    mapped = named(of_one)
    assert_allclose(mapped(x), of_all(x), rtol=1e-12)
    want = numerical_gradient(lambda x: np.sum(np.sin(of_all(x))), x)
    outside = fg.grad(lambda x: np.sum(np.sin(mapped(x))))(x)
    assert_allclose(outside, want, rtol=1e-6, atol=1e-8)
    inside = named(fg.grad(lambda x: np.sin(of_one(x))))(x)
    assert_allclose(inside, want, rtol=1e-6, atol=1e-8)


# Functions in functions


def test_in_a_function_that_is_called():
    def centred(x):
        return x - fg.pmean(x, "i")

    check_gradients(
        lambda x: centred(centred(x) ** 2) * x,
        lambda x: (((x - x.mean()) ** 2) - np.mean((x - x.mean()) ** 2)) * x,
    )


def test_in_the_body_of_scan():
    def of_one(x):
        def step(carry, c):
            return carry + c * fg.psum(carry, "i"), carry

        last, _ = fg.scan(step, x, np.array([0.1, 0.2]))
        return last

    def of_all(x):
        for c in (0.1, 0.2):
            x = x + c * np.sum(x)
        return x

    check_gradients(of_one, of_all)


def test_in_the_body_of_fori_loop():
    def of_one(x):
        return fg.fori_loop(0, 3, lambda k, y: y + fg.pmean(y * k, "i"), x)

    def of_all(x):
        for k in range(3):
            x = x + np.mean(x * k)
        return x

    check_gradients(of_one, of_all)


def test_in_condition_and_body_of_while_loop():
    def of_one(x):
        return fg.while_loop(lambda y: fg.pmax(y, "i") < 50, lambda y: y + fg.psum(y, "i") / 3, x)

    def of_all(x):
        while np.max(x) < 50:
            x = x + np.sum(x) / 3
        return x

    check_gradients(of_one, of_all)


def test_in_a_while_loop_that_all_examples_leave_together():
    """The condition may differ from example to example, as long as all go on."""

    def of_one(x):
        def step(state):
            n, y = state
            return n + 1 + 0 * (y > 0), y + fg.psum(y, "i") / 3

        return fg.while_loop(lambda state: state[0] < 3, step, (0 * x, x))[1]

    def of_all(x):
        for _ in range(3):
            x = x + np.sum(x) / 3
        return x

    check_gradients(of_one, of_all)


def test_in_steps_of_a_loop_that_are_computed_again():
    def of_one(x):
        return fg.fori_loop(
            0, 5, lambda k, y: np.sin(y) + fg.pmean(y * k, "i"), x, checkpoint_every=2
        )

    def of_all(x):
        for k in range(5):
            x = np.sin(x) + np.mean(x * k)
        return x

    check_gradients(of_one, of_all)


def test_in_a_branch_that_all_examples_take():
    def of_one(x):
        return fg.cond(fg.pmax(x, "i") > 2, lambda x: x * fg.psum(x, "i"), np.negative, x)

    check_gradients(of_one, lambda x: x * np.sum(x))


def test_in_a_branch_that_all_examples_happen_to_take():
    def of_one(x):
        return fg.cond(x > 0, lambda x: x * fg.psum(x, "i"), np.negative, x)

    check_gradients(of_one, lambda x: x * np.sum(x))


def test_around_a_branch():
    def of_one(x):
        y = fg.cond(x > 1.5, np.square, np.negative, x)
        return y * fg.psum(y, "i")

    def of_all(x):
        y = np.where(x > 1.5, x**2, -x)
        return y * np.sum(y)

    check_gradients(of_one, of_all)


def test_number_and_size_of_the_axis_in_a_branch_of_some_examples():
    def of_one(x):
        return fg.cond(
            x > 1.5, lambda x: x * fg.axis_index("i") + fg.axis_size("i"), np.negative, x
        )

    check_gradients(of_one, lambda x: np.where(x > 1.5, x * np.arange(3) + 3, -x))


def test_constant_in_a_branch_of_some_examples_is_multiplied_by_all():
    made = named(lambda x: fg.cond(x > 1.5, lambda: fg.psum(1, "i"), lambda: 0))(V)
    assert_array_equal(made, [0, 3, 3])


def test_other_axis_in_a_branch_of_some_examples():
    def of_one(x):
        def summed(x):
            return fg.vmap(lambda y: fg.psum(x * y, "j"), axis_name="j", out_axes=None)(V)

        return fg.cond(x > 1.5, summed, np.negative, x)

    assert_array_equal(named(of_one)(V), [-1, 12, 18])


def test_outer_axis_in_a_branch_of_some_inner_examples():
    def outer(x):
        return fg.vmap(lambda y: fg.cond(y > 0, lambda: fg.psum(x, "i"), lambda: 0.0 * x))(
            np.array([-1.0, 1.0])
        )

    assert_array_equal(named(outer)(V), [[0, 6], [0, 6], [0, 6]])


def refuse_in_part(fun, name="psum"):
    with pytest.raises(ArgumentError, match=f"{name} over the axis 'i' was reached by some") as got:
        named(fun)(V)
    text = str(got.value)
    assert "test_collectives_nesting.py" in text
    assert f"call {name} before the branch" in text


def test_branch_of_some_examples_is_refused():
    refuse_in_part(lambda x: fg.cond(x > 1.5, lambda x: fg.psum(x, "i"), np.negative, x))
    # Also of what all examples share, since not all have come.
    refuse_in_part(lambda x: fg.cond(x > 1.5, lambda: fg.pmax(V, "i"), lambda: V), "pmax")


def test_branch_of_some_examples_in_a_switch_is_refused():
    refuse_in_part(
        lambda x: fg.switch(
            x.astype(int) % 2, [lambda x: fg.all_gather(x, "i")[0], np.negative], x
        ),
        "all_gather",
    )


def test_branch_of_some_examples_inside_of_a_derivative_is_refused():
    refuse_in_part(fg.grad(lambda x: fg.cond(x > 1.5, lambda x: fg.psum(x, "i"), np.negative, x)))


def test_pullback_of_a_collective_in_a_branch_of_some_examples_is_refused():
    def of_one(x):
        _, pullback = fg.vjp(lambda x: fg.psum(x, "i"), x)
        return fg.cond(x > 1.5, lambda x: pullback(x)[0], np.negative, x)

    refuse_in_part(of_one)


def test_step_that_some_examples_do_not_make_is_refused():
    refuse_in_part(lambda x: fg.while_loop(lambda y: y < 4, lambda y: y + fg.psum(y, "i") / 6, x))


def test_solver_that_takes_one_example_at_a_time_is_refused():
    pytest.importorskip("scipy")
    from funcgrad.scipy import optimize

    refuse_in_part(lambda x: optimize.root(lambda y: y**2 - fg.psum(x, "i") * x, x).x)

    def before(x):
        total = fg.psum(x, "i")
        return optimize.root(lambda y: y**2 - total * x, x).x

    assert_allclose(named(before)(V), np.sqrt(6 * V))


@pytest.mark.parametrize("inside", [False, True])
def test_collective_of_what_an_equation_depends_on(inside):
    def of_one(x):
        return fg.fixed_point(lambda y, x: np.cos(y) * x / 6 + fg.pmean(x, "i") / 5, x, x)

    mapped = named(of_one)
    want = numerical_gradient(lambda x: np.sum(np.sin(mapped(x))), V)
    if inside:
        got = named(fg.grad(lambda x: np.sin(of_one(x))))(V)
    else:
        got = fg.grad(lambda x: np.sum(np.sin(mapped(x))))(V)
    assert_allclose(got, want, rtol=1e-6)


def test_derivative_of_equations_that_collectives_couple_is_refused():
    """Each is solved for by itself, and they would have to be solved together."""

    def of_one(x):
        return fg.fixed_point(lambda y, x: np.cos(y) * x / 6 + fg.pmean(y, "i") / 5, x, x)

    values = named(of_one)(V)
    assert_allclose(values, np.cos(values) * V / 6 + np.mean(values) / 5, rtol=1e-8)
    with pytest.raises(ArgumentError, match="an equation solved for each by itself"):
        fg.grad(lambda x: np.sum(named(of_one)(x)))(V)
    refuse_in_part(fg.grad(of_one))


# Checkpoint, and rules of the user's


@pytest.mark.parametrize("inside", [False, True])
def test_in_a_checkpoint(inside):
    def of_one(x):
        return np.sin(fg.psum(x**2, "i")) * fg.pmax(x, "i") * x

    policies = [None, fg.checkpoint_policies.dots_saveable]
    for policy in policies:
        again = fg.checkpoint(of_one, policy=policy)
        if inside:
            got, want = named(fg.grad(again))(V), named(fg.grad(of_one))(V)
        else:
            got, want = (fg.grad(lambda x, f=f: np.sum(named(f)(x)))(V) for f in (again, of_one))
        assert_allclose(got, want, rtol=1e-14)


def test_checkpoint_around_the_vmap():
    def loss(x):
        return np.sum(named(lambda x: np.sin(fg.psum(x**2, "i")) * x)(x))

    assert_allclose(fg.grad(fg.checkpoint(loss))(V), fg.grad(loss)(V), rtol=1e-14)


@fg.custom_vjp
def total(x):
    return fg.psum(x**2, "i")


def total_fwd(x):
    return total(x), x


def total_bwd(x, out_bar):
    """Return twice what it should be, so that one sees that this rule ran."""
    return (2 * 2 * x * fg.psum(out_bar, "i"),)


total.defvjp(total_fwd, total_bwd)


@fg.custom_jvp
def pushed_total(x):
    return fg.psum(x**2, "i")


@pushed_total.defjvp
def pushed_total_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return pushed_total(x), 2 * fg.psum(2 * x * x_dot, "i")


WEIGHTS = np.array([1.0, -0.5, 2.0])


@pytest.mark.parametrize("fun", [total, pushed_total])
def test_rule_with_a_collective_runs_in_the_backward_pass(fun):
    def loss(x):
        return np.sum(WEIGHTS * named(fun)(x))

    assert_allclose(fg.grad(loss)(V), 2 * 2 * V * np.sum(WEIGHTS), rtol=1e-14)
    _, pullback = fg.vjp(loss, V)  # called when the vmap is long over
    assert_allclose(pullback(3.0)[0], 3 * 2 * 2 * V * np.sum(WEIGHTS), rtol=1e-14)


@pytest.mark.parametrize("fun", [total, pushed_total])
def test_rule_with_a_collective_in_forward_mode(fun):
    want = 2 * np.sum(2 * V * WEIGHTS) * np.ones(3)
    assert_allclose(fg.jvp(named(fun), (V,), (WEIGHTS,))[1], want, rtol=1e-14)
    _, pushforward = fg.linearize(named(fun), V)
    assert_allclose(pushforward(WEIGHTS), want, rtol=1e-14)


@pytest.mark.parametrize("fun", [total, pushed_total])
def test_rule_with_a_collective_inside(fun):
    got = named(lambda x, w: fg.grad(lambda x: w * fun(x))(x))(V, WEIGHTS)
    assert_allclose(got, 2 * 2 * V * np.sum(WEIGHTS), rtol=1e-14)
    got = named(lambda x, w: fg.jvp(fun, (x,), (w,))[1])(V, WEIGHTS)
    assert_allclose(got, 2 * np.sum(2 * V * WEIGHTS) * np.ones(3), rtol=1e-14)


@pytest.mark.parametrize("fun", [total, pushed_total])
def test_rule_with_a_collective_of_what_all_share(fun):
    """The rule runs when no vmap is left, and no value says that there was one."""

    def loss(w):
        return np.sum(named(lambda x: x * fun(w))(V))

    assert_allclose(fg.grad(loss)(2.0), 2 * 2 * 2.0 * 3 * np.sum(V), rtol=1e-14)


@pytest.mark.parametrize("fun", [total, pushed_total])
def test_rule_with_a_collective_that_checkpoint_repeats(fun):
    def loss(x):
        return np.sum(WEIGHTS * fg.checkpoint(named(fun))(np.sin(x)))

    want = 2 * 2 * np.sin(V) * np.cos(V) * np.sum(WEIGHTS)
    assert_allclose(fg.grad(loss)(V), want, rtol=1e-14)


def test_rule_of_a_vmap_has_the_examples_and_no_name_for_them():
    @fg.custom_vmap
    def total(x):
        return fg.psum(x, "i")

    @total.def_vmap
    def total_rule(axis_size, in_batched, x):
        return fg.psum(x, "i"), True

    with pytest.raises(AxisNameError, match="no axis name is bound here"):
        named(total)(V)


def test_function_that_runs_one_example_at_a_time_has_no_name_for_the_axis():
    """Else a sum over the examples would be one example times their number."""
    pytest.importorskip("scipy")
    from funcgrad.scipy import integrate

    def of_one(x):
        return integrate.quad(lambda t, x: t * fg.psum(x, "i"), 0.0, 1.0, (x,))[0]

    with pytest.raises(AxisNameError):
        named(of_one)(V)
    before = named(lambda x: integrate.quad(lambda t, s: t * s, 0.0, 1.0, (fg.psum(x, "i"),))[0])
    assert_allclose(before(V), [3, 3, 3])


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_callback_has_no_names(method):
    def of_one(x):
        return fg.pure_callback(lambda x: fg.psum(x, "i"), x, x, vmap_method=method)

    with pytest.raises(AxisNameError):
        named(of_one)(V)


# Other transforms around and between


def test_solver_in_chunks_keeps_the_names():
    def of_one(x):
        return fg.jacrev(lambda x: x * fg.psum(x, "i"), chunk_size=1)(x)

    xs = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    # Rows: the derivative of the sum over the examples of an element.
    want = [np.diag(np.sum(xs, 0) + np.sum(xs, 0))] * 3
    assert_allclose(named(of_one)(xs), want)


def test_pullback_of_many_cotangents_inside():
    def of_one(x):
        _, pullback = fg.vjp(lambda x: x * fg.psum(x, "i"), x)
        return fg.vmap(lambda t: pullback(t)[0])(np.array([1.0, 2.0]))

    want = np.array([[1.0, 2.0]] * 3) * (6 + 6)
    assert_allclose(named(of_one)(V), want)


def test_perturbations_of_inside_and_outside_stay_apart():
    """The derivative by t of gradients with respect to x."""

    def loss(x, t):
        return fg.psum(np.sin(t * x), "i")

    def outer(t):
        return named(lambda x: fg.grad(loss)(x, t))(V)

    _, got = fg.jvp(outer, (0.7,), (1.0,))
    assert_allclose(got, 3 * (np.cos(0.7 * V) - 0.7 * V * np.sin(0.7 * V)), rtol=1e-13)


def test_batch_normalization_has_the_gradient_of_the_batch():
    def of_one(x):
        mean = fg.pmean(x, "i")
        return (x - mean) / np.sqrt(fg.pmean((x - mean) ** 2, "i") + 1e-5)

    def of_all(x):
        return (x - x.mean()) / np.sqrt(np.mean((x - x.mean()) ** 2) + 1e-5)

    check_gradients(of_one, of_all)


def test_vmap_in_a_gradient_in_a_vmap():
    def loss(w, xs):
        each = fg.vmap(lambda x: (w * x - fg.pmean(x, "j")) ** 2, axis_name="j")
        return fg.pmean(np.sum(each(xs)), "i")

    xs = np.array([[1.0, 2.0], [3.0, 5.0]])
    got = fg.vmap(fg.grad(loss), in_axes=(None, 0), axis_name="i")(2.0, xs)
    slopes = [np.sum(2 * (2.0 * x - np.mean(x)) * x) for x in xs]
    assert_allclose(got, slopes)  # two means, of half the sum


# Names


def unbound(fun, *args):
    with pytest.raises(AxisNameError) as caught:
        fun(*args)
    return str(caught.value)


@pytest.mark.parametrize(
    ("collective", "call"),
    [
        ("psum", lambda x: fg.psum(x, "j")),
        ("pmean", lambda x: fg.pmean(x, "j")),
        ("pmax", lambda x: fg.pmax(x, "j")),
        ("pmin", lambda x: fg.pmin(x, "j")),
        ("all_gather", lambda x: fg.all_gather(x, "j")),
        ("psum_scatter", lambda x: fg.psum_scatter(x, "j")),
        ("all_to_all", lambda x: fg.all_to_all(x, "j", 0, 0)),
        ("ppermute", lambda x: fg.ppermute(x, "j", [])),
        ("pshuffle", lambda x: fg.pshuffle(x, "j", [])),
        ("axis_index", lambda x: fg.axis_index("j")),
        ("axis_size", lambda x: fg.axis_size("j")),
    ],
)
def test_unbound_name_says_which_are_bound(collective, call):
    text = unbound(named(call), V)
    assert text.startswith(f"{collective} refers to the axis name 'j', which no vmap around it has")
    assert "bound here: 'i' (of vmap(<lambda>) at " in text
    assert "vmap(f, axis_name='j')" in text
    assert "or, if that axis is meant, write 'i'" in text
    assert "test_collectives_nesting.py" in text


def test_unbound_name_without_any():
    text = unbound(fg.psum, V, "i")
    assert "no axis name is bound here" in text
    assert "call it in a function under vmap(f, axis_name='i')" in text
    assert unbound(fg.vmap(lambda x: fg.psum(x, "i")), V) is not None
    assert issubclass(AxisNameError, NameError)
    assert issubclass(AxisNameError, FuncgradError)


@pytest.mark.parametrize("name", [None, 0])
def test_what_is_no_name(name):
    text = unbound(named(lambda x: fg.psum(x, name)), V)
    assert 'psum(x, "i") under vmap(f, axis_name="i")' in text


def test_name_is_unbound_again_after_the_vmap_and_after_an_error():
    named(np.sin)(V)
    unbound(fg.psum, V, "i")
    with pytest.raises(ZeroDivisionError):
        named(lambda x: 1 / 0)(V)
    unbound(fg.psum, V, "i")


def test_name_twice():
    with pytest.raises(ArgumentError, match=r"psum was given an axis twice: \('i', 'i'\)"):
        named(lambda x: fg.psum(x, ("i", "i")))(V)


@pytest.mark.parametrize("name", [0, True, ("i", "j"), ["i"], np.int64(1)])
def test_axis_name_of_vmap_that_is_none(name):
    with pytest.raises(ArgumentError, match="axis_name of vmap must be a name"):
        fg.vmap(np.sin, axis_name=name)


def test_threads_do_not_see_the_names_of_others():
    seen = []

    def of_one(x):
        thread = threading.Thread(target=lambda: seen.append(unbound(fg.axis_size, "i")))
        thread.start()
        thread.join()
        return fg.psum(x, "i")

    assert_array_equal(named(of_one)(V), [6, 6, 6])
    assert "no axis name is bound here" in seen[0]


def test_threads_with_the_same_name():
    barrier = threading.Barrier(2)
    made = {}

    def work(key, x):
        def of_one(x):
            barrier.wait(10)
            before = fg.psum(x, "i")
            barrier.wait(10)
            return before + fg.axis_size("i")

        made[key] = named(of_one)(x)

    threads = [
        threading.Thread(target=work, args=(key, x)) for key, x in (("a", V), ("b", np.ones(5)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_array_equal(made["a"], [9, 9, 9])
    assert_array_equal(made["b"], [10] * 5)


def test_generator_that_is_resumed_under_another_vmap():
    """A name means what is around where the collective is called."""

    def sizes():
        while True:
            yield fg.axis_size("i")

    generator = sizes()
    assert_array_equal(named(lambda x: next(generator) * x)(V), 3 * V)
    assert_array_equal(named(lambda x: next(generator) * x)(np.ones(2)), [2, 2])


def mean_of_all(x):
    return fg.pmean(x, "i")


def test_named_vmap_is_pickled():
    again = pickle.loads(pickle.dumps(fg.vmap(mean_of_all, axis_name="i")))
    assert_array_equal(again(V), [2, 2, 2])


# Mistakes


def test_leaf_that_is_no_array():
    with pytest.raises(ArgumentError, match="psum takes arrays and numbers, got str 'no'") as got:
        named(lambda x: fg.psum({"a": x, "b": ["no"]}, "i"))(V)
    assert "the leaf ['b'][0] of its argument" in str(got.value)


def test_keys():
    with pytest.raises(ArgumentError, match="all_gather takes arrays and numbers, got Key") as got:
        named(lambda x: fg.all_gather(fg.random.key(0), "i"))(V)
    assert "key_data" in str(got.value)


@pytest.mark.parametrize(
    ("perm", "words"),
    [
        ([0, 1, 2], "a list of pairs of int"),
        ([(0, 1.0)], "a list of pairs of int"),
        (3, "a list of pairs of int"),
        ([(0, 3)], "names example 3, and there are 3"),
        ([(-1, 0)], "names example -1"),
        ([(0, 1), (2, 1)], "receives twice: number 1"),
        ([(0, 1), (0, 2)], "sends twice: number 0"),
    ],
)
def test_pairs_that_are_no_permutation(perm, words):
    with pytest.raises(ArgumentError, match=words):
        named(lambda x: fg.ppermute(x, "i", perm))(V)


@pytest.mark.parametrize("perm", [[0, 1], [0, 1, 1], [1, 2, 3], 3, ["a"]])
def test_order_that_is_no_permutation(perm):
    with pytest.raises(ArgumentError, match="must name each of the 3 examples once"):
        named(lambda x: fg.pshuffle(x, "i", perm))(V)


def test_axis_that_cannot_be_dealt_out():
    with pytest.raises(ShapeError, match=r"axis 0 of float64\[6\], of size 6, to 3") as caught:
        named(lambda x: fg.psum_scatter(x, "i"))(np.ones((3, 6)))
    assert "or tiled=True" in str(caught.value)
    with pytest.raises(ShapeError, match="all_to_all deals out axis 1") as caught:
        named(lambda x: fg.all_to_all(x, "i", 1, 0, tiled=True))(np.ones((3, 3, 4)))
    assert "a multiple of 3" in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: fg.ppermute(x, ("i", "j"), []),
        lambda x: fg.pshuffle(x, (), []),
        lambda x: fg.all_to_all(x, ("i", "j"), 0, 0),
    ],
)
def test_one_axis_only(call):
    with pytest.raises(ArgumentError, match="works along one axis"):
        named(fg.vmap(call, axis_name="j"))(np.ones((2, 2)))


def test_axis_of_gathering_that_there_is_not():
    with pytest.raises(np.exceptions.AxisError):
        named(lambda x: fg.all_gather(x, "i", axis=1))(V)


def test_value_of_a_vmap_that_has_ended():
    kept = []
    named(lambda x: kept.append(x) or x)(V)
    with pytest.raises(RuntimeError, match="escaped"):
        named(lambda x: fg.psum(kept[0], "i"))(V)
