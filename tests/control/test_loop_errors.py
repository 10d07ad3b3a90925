"""What the loops say of a wrong use: the function, the step, the path, what to write instead."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.control import associative_scan, fori_loop, map, scan, while_loop
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    MutationError,
    ShapeError,
    TreeMismatchError,
)

ROWS = np.arange(3.0)


def message(kind, call):
    """Return what the error says that a call raises."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# How a function is called


def one(a):
    return a


def two(a, b):
    return a, b


@pytest.mark.parametrize(
    ("call", "count", "fix"),
    [
        (lambda: scan(one, 0.0, ROWS), "2 arguments", "def f(carry, x)"),
        (lambda: map(two, (ROWS, ROWS)), "1 argument,", "a, b = x"),
        (lambda: while_loop(two, one, (0, 1.0)), "1 argument,", "a, b = val"),
        (lambda: while_loop(lambda val: True, two, (0, 1.0)), "1 argument,", "a, b = val"),
        (lambda: fori_loop(0, 3, one, 0.0), "2 arguments", "def f(i, val)"),
    ],
)
def test_function_of_another_number_of_arguments(call, count, fix):
    text = message(ArgumentError, call)
    assert f"calls its function with {count}" in text
    assert "test_loop_errors.py" in text
    assert fix in text


def test_type_error_of_the_function_itself_is_left_alone():
    def step(carry, x):
        return one(carry, x)

    with pytest.raises(TypeError, match="takes 1 positional argument") as caught:
        scan(step, 0.0, ROWS)
    assert not isinstance(caught.value, ArgumentError)


# Errors in a step


def fails(x):
    if x > 1:
        raise KeyError("mine")
    return x


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scan(lambda c, x: (fails(x), None), 0.0, ROWS), "in step 2 of scan("),
        (lambda: map(fails, ROWS), "in step 2 of map(fails)"),
        (lambda: fori_loop(0, 5, lambda i, c: fails(c + 1.0), 0.0), "in step 1 of fori_loop("),
        (lambda: while_loop(lambda c: True, lambda c: fails(c + 1.0), 0.0), "in step 1 of while"),
        (lambda: while_loop(fails, lambda c: c + 1.0, 0.5), "in step 1 of while_loop("),
    ],
)
def test_error_of_the_user_notes_the_step(call, words):
    with pytest.raises(KeyError, match="mine") as caught:
        call()
    (note,) = caught.value.__notes__
    assert note.startswith(words)
    assert "test_loop_errors.py" in note


def test_error_in_a_loop_in_a_loop_notes_both_steps():
    def outer(i, c):
        return fori_loop(0, 5, lambda j, d: fails(d + 1.0), c - 1.0)

    with pytest.raises(KeyError) as caught:
        fori_loop(0, 5, outer, 0.0)
    assert [note.split(" of ")[0] for note in caught.value.__notes__] == ["in step 2", "in step 0"]


def test_step_that_writes_in_place():
    def step(c, x):
        if x > 0:
            c += x
        return c, None

    text = message(MutationError, lambda: scan(step, np.zeros(2), ROWS))
    assert "step (" in text
    assert "at step 1" in text
    assert "c = c + x" in text


# The carry


def test_path_step_and_dtype_of_a_carry_that_changes_late():
    def step(c, x):
        return {"n": c["n"] + (1 if x < 2 else 0.5), "x": c["x"]}, None

    text = message(DtypeError, lambda: scan(step, {"n": np.zeros(2, int), "x": 1.0}, ROWS))
    assert "at step 2: expected int64[2], found float64[2]" in text
    assert "the carry at ['n'] that step (" in text
    assert ".astype('int64')" in text


def test_carry_that_is_no_array_any_more():
    text = message(DtypeError, lambda: scan(lambda c, x: (1.0, None), "text", ROWS))
    assert "expected str, found float64[]" in text
    assert "return a value of the kind that was given" in text


def test_pair_in_the_wrong_order():
    def step(c, x):
        return c["sum"], {"sum": c["sum"] + x}

    text = message(TreeMismatchError, lambda: scan(step, {"sum": 0.0}, ROWS))
    assert "at step 0" in text
    assert "return carry, y in this order" in text


def test_carry_that_changes_its_shape_when_differentiated():
    def loss(a):
        return scan(lambda c, x: ({"h": np.append(c["h"], x)}, None), {"h": a}, ROWS)[0]["h"].sum()

    text = message(ShapeError, lambda: fg.grad(loss)(np.ones(2)))
    assert "at step 0: expected float64[2], found float64[3]" in text
    assert "the carry at ['h']" in text


def test_keys_in_the_carry():
    def step(key, x):
        key, own = fg.random.split(key)
        return key, fg.random.normal(own) * x

    key, draws = scan(step, fg.random.key(3), ROWS + 1.0)
    expected = []
    other = fg.random.key(3)
    for x in ROWS + 1.0:
        other, own = fg.random.split(other)
        expected.append(fg.random.normal(own) * x)
    assert np.array_equal(draws, expected)
    assert np.array_equal(fg.random.normal(key), fg.random.normal(other))


# The other arguments


def test_number_of_steps_in_the_place_of_arrays():
    assert "write length=3" in message(ShapeError, lambda: scan(two, 0.0, 3))


def test_length_that_is_traced():
    text = message(
        ArgumentError,
        lambda: fg.vmap(lambda n: scan(two, 0.0, length=n))(np.array([1, 2])),
    )
    assert "fori_loop" in text


def test_bound_that_is_differentiated():
    text = message(
        ArgumentError, lambda: fg.grad(lambda n: fori_loop(0, n, lambda i, c: c * n, 1.0))(3.0)
    )
    assert "int(funcgrad.stop_gradient(n))" in text
    assert fg.grad(lambda n: fori_loop(0, int(fg.stop_gradient(n)), lambda i, c: c * n, 1.0))(
        3.0
    ) == pytest.approx(27.0)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_map_to_text(batch_size):
    text = message(ArgumentError, lambda: map(lambda x: {"a": "text"}, ROWS, batch_size))
    assert "must be arrays or numbers, got str 'text'" in text
    assert "the output at ['a'] of <lambda>" in text


def test_unroll():
    assert "write unroll=1" in message(ArgumentError, lambda: scan(two, 0.0, ROWS, unroll=0))


# associative_scan


def test_combined_shape_says_which_leaf():
    def fn(a, b):
        return {"p": a["p"] + b["p"], "q": np.ones(7)}

    text = message(ShapeError, lambda: associative_scan(fn, {"p": ROWS, "q": ROWS}))
    assert "expected float64[1], found float64[7]" in text
    assert "returned at ['q']; associative_scan(fn)" in text


def test_combined_dtype():
    def fn(a, b):
        return (a + b).astype(np.float32)

    text = message(DtypeError, lambda: associative_scan(fn, ROWS))
    assert "expected float64[1], found float32[1]" in text
    assert ".astype('float64')" in text


def test_integers_become_floats():
    assert associative_scan(lambda a, b: (a + b) * 1.0, np.arange(4)).tolist() == [
        0.0,
        1.0,
        3.0,
        6.0,
    ]


@pytest.mark.parametrize("axis", [0.5, None, "0"])
def test_axis_that_is_no_integer(axis):
    text = message(ArgumentError, lambda: associative_scan(np.add, ROWS, axis=axis))
    assert "axis of associative_scan must be an integer" in text
