"""profile: how long each operation takes, by line."""

import inspect
import re
import time

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.debug import profile
from funcgrad.errors import ArgumentError

X = np.linspace(0.1, 1.0, 3000).reshape(60, 50)
W = np.linspace(-1.0, 1.0, 2500).reshape(50, 50)


def slow(x):
    time.sleep(0.02)
    return np.sin(x)


def loss(w, x):
    h = np.tanh(x @ w)
    h = np.tanh(h @ w)
    slowed = fg.pure_callback(slow, fg.ShapeDtypeStruct(x.shape, x.dtype), x)
    return np.sum(h) + np.sum(slowed)


def line_of(text):
    lines, first = inspect.getsourcelines(loss)
    (number,) = [first + i for i, line in enumerate(lines) if text in line]
    return f"test_profiling.py:{number}"


def test_rows_are_operations_by_line():
    rows = profile(loss, W, X).rows
    found = {(row.name, re.sub(r".*[/\\]", "", row.where)) for row in rows}
    first, second = line_of("x @ w"), line_of("h @ w")
    assert {("matmul", first), ("tanh", first), ("matmul", second), ("tanh", second)} <= found


def test_calls_of_one_line_are_one_row():
    def chain(x):
        for _ in range(7):
            x = np.sin(x)
        return x

    (row,) = profile(chain, X).rows
    assert (row.name, row.calls) == ("sin", 7)


def test_the_slowest_comes_first():
    measured = profile(loss, W, X, repeats=2)
    assert re.sub(r".*[/\\]", "", measured.rows[0].where) == line_of("pure_callback")
    assert measured.rows[0].seconds >= 0.02
    seconds = [row.seconds for row in measured.rows]
    assert seconds == sorted(seconds, reverse=True)


def test_total_is_the_sum_of_the_rows():
    measured = profile(loss, W, X, repeats=1)
    assert measured.total == sum(row.seconds for row in measured.rows)


def test_backward_pass_has_rows_without_a_line():
    def waves(x):
        return np.sum(np.sin(x))

    rows = profile(fg.grad(waves), X).rows
    assert {row.name: bool(row.where) for row in rows}.items() >= {
        "sin": True,
        "cos": False,
    }.items()


def test_keyword_arguments_are_passed_on():
    def scaled(x, *, scale):
        return x * scale

    (row,) = profile(scaled, X, scale=np.float64(2.0)).rows
    assert row.name == "multiply"


def test_function_runs_once():
    runs = []

    def counted(x):
        runs.append(1)
        return np.sin(x)

    profile(counted, X, repeats=3)
    assert len(runs) == 1


def test_no_operations_take_no_time():
    measured = profile(lambda x: 1.0, X)
    assert (measured.total, measured.rows) == (0.0, ())
    assert repr(measured) == "0 us in 0 operations"


def test_report_is_a_table():
    first, *rows = repr(profile(loss, W, X, repeats=1)).splitlines()
    assert re.fullmatch(r"[\d.]+ (us|ms|s) in \d+ operations", first)
    assert all(re.match(r" *[\d.]+ (us|ms|s) +\d+% +\d+ x \w+", row) for row in rows)


@pytest.mark.parametrize("repeats", [0, 1.5, True, "3"])
def test_repeats_is_a_positive_int(repeats):
    with pytest.raises(ArgumentError, match="cannot have repeats="):
        profile(loss, W, X, repeats=repeats)


def test_what_is_no_function_is_refused():
    with pytest.raises(ArgumentError, match=r"debug\.profile takes a function"):
        profile(3.0, X)
