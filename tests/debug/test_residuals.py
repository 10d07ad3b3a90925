"""residuals: the memory that reverse mode keeps, by line."""

import gc
import inspect
import re
import weakref

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.debug import residuals
from funcgrad.errors import ArgumentError, DtypeError

# Large enough that constants of this size are kept as they are, and not copied.
X = np.linspace(0.1, 1.0, 3000).reshape(60, 50)
W = np.linspace(-1.0, 1.0, 2500).reshape(50, 50)


def line_of(fun, text):
    """Return where the line with `text` in the source of `fun` is, as rows say it."""
    lines, first = inspect.getsourcelines(fun)
    (number,) = [first + i for i, line in enumerate(lines) if text in line]
    return f"test_residuals.py:{number}"


def by_line(report):
    return {re.sub(r".*[/\\]", "", row.where): row.bytes for row in report.rows}


def layer(h, w):
    a = h @ w
    return np.sin(a) * np.exp(a)


def loss(w, x):
    h = layer(x, w)
    return np.mean(h**2)


def test_bytes_by_line():
    # sin keeps a, exp and * keep what sin and exp made, ** keeps h.
    assert by_line(residuals(loss, W, X)) == {
        line_of(layer, "np.sin(a)"): 3 * X.nbytes,
        line_of(loss, "h**2"): X.nbytes,
    }


def test_total_is_the_sum_of_the_rows():
    report = residuals(loss, W, X)
    assert report.total == sum(row.bytes for row in report.rows) == 4 * X.nbytes


def test_rows_have_source_and_arrays_the_largest_first():
    first, second = residuals(loss, W, X).rows
    assert first.source == "return np.sin(a) * np.exp(a)"
    assert first.arrays == ("float64[60,50]",) * 3
    assert first.bytes > second.bytes


def test_memory_of_the_arguments_is_counted_apart():
    assert residuals(loss, W, X).arguments == X.nbytes  # for the derivative by W
    assert residuals(loss, W, X, argnums=1).arguments == W.nbytes
    assert residuals(loss, W, X, argnums=(0, 1)).arguments == X.nbytes + W.nbytes


def test_part_of_an_argument_counts_as_the_argument():
    report = residuals(lambda x: np.sum(np.sin(x[0])), X)
    assert (report.total, report.arguments) == (0, X.nbytes)


def test_part_of_an_array_keeps_the_whole():
    def first_row(x):
        y = 2.0 * x
        return np.sum(np.sin(y[0]))

    assert residuals(first_row, X).total == X.nbytes


def test_an_array_that_is_kept_twice_counts_once():
    def twice(x):
        y = np.exp(x)
        return np.sum(np.sin(y) + np.cos(y))

    assert residuals(twice, X).total == X.nbytes


def test_linear_functions_keep_nothing():
    report = residuals(lambda x: np.sum(2.0 * x[::2] - np.flip(x, 0)[::2]), X)
    assert (report.total, report.arguments, report.rows) == (0, 0, ())


def test_array_that_is_closed_over_counts():
    scale = np.full((60, 50), 3.0)
    assert residuals(lambda x: np.sum(scale * x), X).total == scale.nbytes


def test_dtype_counts():
    assert residuals(lambda x: np.sum(np.exp(x)), X.astype(np.float32)).total == X.nbytes // 2


def test_parameters_may_be_a_pytree_with_other_leaves():
    params = {"w": W, "step": 3, "activation": np.tanh}
    report = residuals(lambda p: np.sum(p["activation"](p["w"])), params)
    assert report.total == W.nbytes


def test_checkpoint_keeps_what_goes_in():
    def chain(x):
        for _ in range(5):
            x = fg.checkpoint(lambda x: np.sin(np.sin(np.sin(x))))(x)
        return np.sum(x)

    report = residuals(chain, X)
    assert (report.total, report.arguments) == (4 * X.nbytes, X.nbytes)
    assert by_line(report) == {line_of(chain, "fg.checkpoint"): report.total}


def test_lines_stay_right_after_a_checkpoint():
    def fun(x):
        y = fg.checkpoint(lambda x: np.sin(np.sin(x)))(x)
        return np.sum(np.exp(y))

    assert by_line(residuals(fun, X)) == {line_of(fun, "np.exp(y)"): X.nbytes}


def test_policy_that_saves_counts_what_it_saves():
    policy = fg.checkpoint_policies.dots_saveable

    def fun(w, x):
        return np.sum(fg.checkpoint(layer, policy=policy)(x, w))

    assert residuals(fun, W, X).total == X.nbytes


def test_loops_count_each_step():
    def fun(x):
        return fg.fori_loop(0, 7, lambda i, c: np.sin(c), x)

    assert residuals(fun, X).total == 6 * X.nbytes


def test_residuals_of_a_rule_of_the_users():
    @fg.custom_vjp
    def sine(x):
        return np.sin(x)

    sine.defvjp(lambda x: (np.sin(x), {"cos": np.cos(x)}), lambda kept, bar: (bar * kept["cos"],))
    assert residuals(lambda x: np.sum(sine(x)), X).total == X.nbytes


def test_under_vmap_all_examples_count():
    found = []

    def fun(x):
        found.append(residuals(lambda y: np.sum(np.exp(y)), x).total)
        return x

    fg.vmap(fun)(X)
    assert found == [X.nbytes]


def test_report_prints_as_a_table():
    text = repr(residuals(loss, W, X))
    assert text.startswith("96 kB kept for the backward pass, and 24 kB of the arguments\n")
    assert re.search(r"\n  72 kB  \S+:\d+  return np\.sin\(a\) \* np\.exp\(a\)\n", text)
    assert re.search(r"\n +3 x float64\[60,50\]\n  24 kB  ", text)


def test_report_of_nothing():
    assert repr(residuals(lambda x: 2 * x, 1.0)) == "0 B kept for the backward pass"


def test_a_small_constant_counts_as_it_is_copied():
    scale = np.full(5, 3.0)
    assert residuals(lambda x: np.sum(scale * x), np.ones(5)).total == scale.nbytes


def test_nothing_stays_alive():
    made = []

    def fun(x):
        y = np.exp(x)
        made.append(weakref.ref(fg.debug.value(y)))
        return np.sum(y)

    residuals(fun, X)
    gc.collect()
    assert made[0]() is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: residuals(3.0, X), ArgumentError, "debug.residuals takes a function"),
        (lambda: residuals(loss, W, X, argnums=2), ArgumentError, "argnums=2 of debug.residuals"),
        (lambda: residuals(np.sum, "text"), DtypeError, "nothing to differentiate|needs"),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
