"""debug_nans and debug_infs: the operation that first made it, its line, its operands, the fix."""

import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import debug
from funcgrad.core.level import at_opening
from funcgrad.errors import FuncgradError, NonFiniteError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def log_loss(params):
    scaled = params["w"] * 2.0
    return np.sum(np.log(scaled))  # the line of the log


def two_roots(x):
    first = np.sqrt(x)  # the line of the root
    return np.sum(first - np.sqrt(2.0 * x))


BAD = {"w": np.array([1.0, -1.0, 2.0])}


def message(fun, *args):
    with debug.debug_nans(), pytest.raises(NonFiniteError) as caught:
        fun(*args)
    return str(caught.value)


def test_the_error_is_a_floating_point_error():
    with debug.debug_nans(), pytest.raises(FloatingPointError) as caught:
        fg.grad(log_loss)(BAD)
    assert isinstance(caught.value, FuncgradError)


# The forward pass


def test_names_the_primitive():
    assert message(fg.grad(log_loss), BAD).startswith("log made a NaN\n")


def test_names_the_line_and_shows_it():
    text = message(fg.grad(log_loss), BAD)
    line = log_loss.__code__.co_firstlineno + 2
    assert f"test_nans.py:{line}, in grad(log_loss)" in text
    assert "return np.sum(np.log(scaled))  # the line of the log" in text


def test_says_where_in_the_result():
    assert "result: float64[3], NaN at [1]" in message(fg.grad(log_loss), BAD)


def test_says_what_the_operand_is_there_and_what_made_it():
    text = message(fg.grad(log_loss), BAD)
    line = log_loss.__code__.co_firstlineno + 1
    assert "operand 0: float64[3], -2.0 there; made by multiply at" in text
    assert f"test_nans.py:{line}\n" in text


def test_says_what_to_write():
    text = message(fg.grad(log_loss), BAD)
    assert "np.where(ok, np.log(safe), 0.0), where safe = np.where(ok, x, 1.0)" in text
    assert "np.log(np.clip(x, 1e-12, None))" in text


def test_names_the_argument_and_its_path():
    def f(params, scale):
        return np.sum(np.log(params["layers"][1]) * scale)

    text = message(fg.grad(f), {"layers": [1.0, np.array([-1.0])]}, 2.0)
    assert "-1.0 there; argument params at ['layers'][1] of f" in text


def test_names_an_operand_that_was_nan_before():
    def f(w, data):
        return np.sum(w @ data)

    text = message(fg.grad(f), np.ones(2), np.array([1.0, np.nan]))
    assert text.startswith("matmul was given a NaN by operand 1, argument data of f\n")
    assert "operand 1: float64[2], nan at [1]" in text
    assert "np.nan_to_num" in text


def test_names_a_differentiated_argument_that_was_nan_before():
    text = message(fg.grad(lambda x: x * 2.0), np.nan)
    assert text.startswith("multiply was given a NaN by operand 0, argument x of <lambda>")


def test_names_an_operand_that_is_infinite():
    def f(x):
        big = np.exp(x)
        return big - big

    text = message(fg.grad(f), 1000.0)
    assert text.startswith("subtract made a NaN\n")
    assert text.count("the number inf; made by exp") == 2
    assert "keep infinities out" in text


def test_division_of_zeros():
    text = message(fg.grad(lambda x, y: x / y), 0.0, np.float64(0.0))
    assert text.startswith("divide made a NaN\n")
    assert "np.where(ok, x / np.where(ok, y, 1.0), 0.0)" in text


def test_jvp():
    text = message(lambda p: fg.jvp(log_loss, (p,), (p,)), BAD)
    assert text.startswith("log made a NaN\n")


def test_vmap_names_the_example():
    w = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]])
    text = message(fg.vmap(lambda w: np.log(w)), w)
    assert "result: float64[2], NaN at [1]" in text
    assert "operand 0: float64[2], -6.0 there; argument w of <lambda>" in text
    assert "example 2 of vmap(<lambda>)" in text


def test_nested_vmap_names_both_examples():
    w = np.array([[1.0, 2.0], [3.0, -4.0]])

    def outer(row):
        return fg.vmap(inner)(row)

    def inner(x):
        return np.log(x)

    text = message(fg.vmap(outer), w)
    assert "example 1 of vmap(outer)" in text
    assert "example 1 of vmap(inner)" in text
    assert "operand 0: float64[], -4.0; argument x of inner" in text


@pytest.mark.parametrize("order", [lambda f: fg.vmap(fg.grad(f)), lambda f: fg.vmap(fg.hessian(f))])
def test_derivatives_under_vmap_name_the_example(order):
    text = message(order(lambda x: np.log(x)), np.array([1.0, 2.0, -1.0]))
    assert text.startswith("log made a NaN\n")
    assert "example 2 of vmap(<lambda>)" in text


def test_grad_of_vmap_names_the_example():
    text = message(fg.grad(lambda x: np.sum(fg.vmap(np.log)(x))), np.array([1.0, -1.0]))
    assert "example 1 of vmap(log)" in text


def test_branch_names_the_example_by_its_own_number():
    def f(x):
        return fg.cond(x < 10.0, lambda x: np.log(x), lambda x: x, x)

    text = message(fg.vmap(f), np.array([20.0, 1.0, -1.0]))
    assert "example 2 of vmap(f)" in text


def test_scan_names_the_line_of_the_step():
    def step(carry, x):
        carry = np.sqrt(carry) - x
        return carry, carry

    text = message(fg.grad(lambda c: fg.scan(step, c, np.array([2.0, 3.0]))[0]), 1.0)
    assert text.startswith("sqrt made a NaN\n")
    assert "carry = np.sqrt(carry) - x" in text
    assert "operand 0: the number -1.0; made by subtract" in text


def test_within_checkpoint():
    assert message(fg.grad(fg.checkpoint(log_loss)), BAD).startswith("log made a NaN\n")


def test_code_in_a_custom_rule():
    @fg.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (np.log(x), x), lambda x, out_bar: (out_bar / x,))
    assert message(fg.grad(f), -1.0).startswith("f made a NaN\n")
    text = message(fg.hessian(f), -1.0)  # the levels below see what is in the rule
    assert text.startswith("log made a NaN\n")


def test_custom_jvp():
    @fg.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda primals, tangents: (primals[0], tangents[0] * np.nan))
    text = message(lambda: fg.jvp(f, (1.0,), (1.0,)))
    assert text.startswith("the derivative of f made a NaN\n")


# The backward pass


def test_pullback_names_the_operation_and_its_line():
    x = np.array([4.0, 0.0])
    text = message(fg.grad(lambda x: np.sum(np.sqrt(x) * np.array([1.0, np.inf]))), x)
    assert text.startswith("multiply made a NaN\n")  # already forward: 0 * inf
    text = message(fg.grad(two_roots), x)
    line = two_roots.__code__.co_firstlineno + 1
    assert text.startswith(
        "the cotangents by the pullback of sqrt and by other uses of its operand add up to a NaN\n"
    )
    assert f"test_nans.py:{line}, in grad(two_roots)" in text
    assert "first = np.sqrt(x)  # the line of the root" in text
    assert "operand 0: float64[2], 0.0 there; argument x of two_roots" in text
    assert "cotangent of the result: float64[2], 1.0 there" in text
    assert "the first infinity was made by the pullback of sqrt at" in text


def test_pullback_alone():
    def f(x):
        y = np.sqrt(x)
        return y + 0.0

    def pulled(x):
        return fg.vjp(f, x)[1](np.nan)

    text = message(pulled, 1.0)
    assert text.startswith("the pullback of add was given a NaN\n")


def test_backward_rule_of_the_user():
    @fg.custom_vjp
    def scale(x):
        return x * 2.0

    scale.defvjp(lambda x: (scale(x), x), lambda x, out_bar: (out_bar * np.nan,))

    def f(x):
        return scale(x) ** 2

    text = message(fg.grad(f), 3.0)
    assert text.startswith("the pullback of scale made a NaN\n")
    assert "return scale(x) ** 2" in text
    assert "operand 0: the number 3.0; argument x of f" in text
    assert "cotangent of the result: the number 12.0" in text


def test_backward_rule_of_the_user_under_vmap():
    @fg.custom_vjp
    def scale(x):
        return x * 2.0

    scale.defvjp(lambda x: (scale(x), x), lambda x, out_bar: (out_bar / (x - 3.0) * 0.0,))
    text = message(fg.vmap(fg.grad(scale)), np.array([1.0, 3.0]))
    assert text.startswith("the pullback of scale made a NaN\n")
    assert "example 1 of vmap(scale)" in text


@pytest.mark.parametrize(
    "transform",
    [
        fg.grad,
        lambda f: fg.grad(fg.checkpoint(f)),
        lambda f: fg.grad(lambda x: fg.checkpoint(f)(x) * 1.0),
        lambda f: fg.vmap(fg.grad(f)),
        fg.jacrev,
        fg.hessian,
        lambda f: fg.jacrev(fg.grad(f)),
        lambda f: lambda x: fg.vjp(f, x)[1](1.0),
    ],
    ids=range(8),
)
def test_backward_pass_of_each_transform_names_the_line(transform):
    line = two_roots.__code__.co_firstlineno + 1
    text = message(transform(two_roots), np.zeros(2))
    assert "pullback of sqrt" in text
    assert f"test_nans.py:{line}, in" in text


def test_backward_pass_of_a_scan_names_the_line_of_the_step():
    def step(carry, _):
        return carry, np.sqrt(carry)  # the step

    def f(x):
        roots = fg.scan(step, x, None, length=2)[1]
        return roots[0] - roots[1]

    text = message(fg.grad(f), 0.0)
    assert "return carry, np.sqrt(carry)  # the step" in text


def test_loop_recomputed_by_nested_checkpoints_names_the_line():
    inner = fg.checkpoint(two_roots)
    text = message(fg.grad(fg.checkpoint(lambda x: inner(x) * 2.0)), np.zeros(2))
    assert "first = np.sqrt(x)  # the line of the root" in text


def test_pullback_recorded_before_the_mode():
    _, pullback = fg.vjp(two_roots, np.zeros(2))
    text = message(pullback, 1.0)
    assert text.startswith("the backward pass made a NaN\n")
    assert "recorded before the debug mode was on" in text


def test_zero_that_wins_is_no_nan():
    with debug.debug_nans():
        gradient = fg.grad(lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0))(0.0)
        assert gradient == 0.0


def test_strict_and_debug_nans_find_it():
    def f(x):
        return np.where(x > 0, np.sqrt(x), 0.0)

    with debug.strict():
        text = message(fg.grad(f), 0.0)
    assert text.startswith("the pullback of sqrt made a NaN\n")


# Tangents


def test_jvp_of_grad_stops_at_the_tangent_which_comes_first():
    text = message(lambda x: fg.jvp(fg.grad(two_roots), (x,), (np.ones_like(x),)), np.zeros(2))
    assert text.startswith("the derivative of subtract made a NaN\n")


def test_jvp_names_the_tangents():
    text = message(lambda: fg.jvp(two_roots, (0.0,), (1.0,)))
    assert text.startswith("the derivative of subtract made a NaN\n")
    assert text.count("the number inf") == 2
    assert "made by sqrt" in text
    assert "np.sqrt(safe)" in text  # what to write is about the root


def test_linearize_names_the_line():
    def pushed():
        return fg.linearize(two_roots, 0.0)[1](1.0)

    text = message(pushed)
    assert text.startswith("the derivative of subtract made a NaN\n")
    assert "return np.sum(first - np.sqrt(2.0 * x))" in text


def test_jacfwd():
    assert "the derivative of subtract made a NaN" in message(fg.jacfwd(two_roots), np.zeros(2))


# Infinities


def test_infs_stop_at_the_first_infinity():
    def f(x):
        return 1.0 / np.exp(x)

    with debug.debug_infs(), pytest.raises(NonFiniteError, match="exp made an infinity") as caught:
        fg.grad(f)(1000.0)
    assert "np.clip(x, None, 700.0)" in str(caught.value)


def test_infs_in_the_backward_pass():
    with (
        debug.debug_infs(),
        pytest.raises(NonFiniteError, match="the pullback of sqrt made an infinity"),
    ):
        fg.grad(np.sqrt)(0.0)


def test_nans_let_infinities_pass():
    with debug.debug_nans():
        assert fg.grad(np.sqrt)(0.0) == np.inf


def test_infs_let_nans_pass():
    with debug.debug_infs():
        assert np.isnan(fg.grad(np.log)(np.nan))


def test_both_together():
    with debug.debug_infs(), debug.debug_nans():
        with pytest.raises(NonFiniteError, match="an infinity"):
            fg.grad(np.exp)(1000.0)
        with pytest.raises(NonFiniteError, match="a NaN"):
            fg.grad(np.log)(-1.0)


# Where the mode is on


def finds():
    try:
        fg.grad(log_loss)(BAD)
    except NonFiniteError:
        return True
    return False


def test_off_by_default_and_after_the_block():
    assert not finds()
    with debug.debug_nans():
        assert finds()
    assert not finds()
    assert at_opening == []


def test_off_after_an_error():
    with pytest.raises(KeyError), debug.debug_nans():
        raise KeyError
    assert not finds()


def test_decorator():
    decorated = debug.debug_nans()(finds)
    assert decorated()
    assert decorated.__name__ == "finds"
    assert not finds()


def test_off_in_a_part():
    with debug.debug_nans():
        with debug.debug_nans(False):
            assert not finds()
        assert finds()


def test_switch():
    debug.debug_nans(True)
    try:
        assert finds()
        with debug.debug_nans(False):
            assert not finds()
        assert finds()
        found = []
        thread = threading.Thread(target=lambda: found.append(finds()))
        thread.start()
        thread.join()
        assert found == [True]
    finally:
        debug.debug_nans(False)
    assert not finds()
    assert at_opening == []


@pytest.mark.parametrize("on", [True, False])
def test_switch_in_a_with_statement_counts_there_alone(on):
    with debug.debug_nans(on):
        assert finds() is on
    assert not finds()
    assert at_opening == []


def test_blocks_of_other_threads_do_not_count():
    found = []
    with debug.debug_nans():
        thread = threading.Thread(target=lambda: found.append(finds()))
        thread.start()
        thread.join()
    assert found == [False]


def test_switched_on_inside_of_the_function():
    def f(x):
        y = np.log(x)
        with debug.debug_nans():
            z = np.sqrt(x)
        return y + z

    with pytest.raises(NonFiniteError, match="sqrt made a NaN"):
        fg.grad(f)(-1.0)


def test_results_are_the_same_with_the_mode_on():
    def f(params, x):
        h = np.tanh(x @ params["a"]) ** 2
        h = fg.checkpoint(lambda h: np.exp(-h) / (1.0 + h))(h)
        return np.mean(np.where(h > 0.5, h, h**3) @ params["b"])

    rng = np.random.default_rng(0)
    params = {"a": rng.normal(size=(3, 4)), "b": rng.normal(size=4)}
    x = rng.normal(size=(5, 3))
    plain = fg.value_and_grad(f)(params, x), fg.vmap(fg.grad(f), in_axes=(None, 0))(params, x)
    with debug.debug_nans(), debug.debug_infs(), debug.check_leaks():
        seen = fg.value_and_grad(f)(params, x), fg.vmap(fg.grad(f), in_axes=(None, 0))(params, x)
    for a, b in zip(fg.tree.leaves(plain), fg.tree.leaves(seen), strict=True):
        np.testing.assert_array_equal(a, b)


def test_decorating_what_is_no_function():
    with pytest.raises(fg.errors.ArgumentError, match="a debug mode decorates a function"):
        debug.debug_nans()(3)
