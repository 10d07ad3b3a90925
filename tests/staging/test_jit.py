"""`jit`: what is compiled once, what is compiled again, and what a call gives."""

from __future__ import annotations

import copy
import gc
import linecache
import os
import pickle
import weakref

import numpy as np
import pytest
from recorded import in_threads

import funcgrad as fg
from funcgrad import jit
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    TracerLeakError,
    TracerValueError,
    TreeMismatchError,
)

RNG = np.random.default_rng(0)


def counted(fun):
    """Return a function that counts how often its Python code runs, and the count."""
    runs = []

    def counting(*args, **kwargs):
        runs.append(1)
        return fun(*args, **kwargs)

    return counting, runs


def double(x):
    return x * 2


@jit
def decorated(x):
    """Add one."""
    return x + 1


# When it is compiled


def test_the_function_runs_once_for_each_signature():
    fun, runs = counted(double)
    compiled = jit(fun)
    for value in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(compiled(np.full(3, value)), np.full(3, 2 * value))
    assert len(runs) == 1


@pytest.mark.parametrize(
    "other",
    [
        np.ones(4),
        np.ones(3, np.float32),
        np.ones((3, 1)),
        [np.ones(3)],
        1.0,
        1,
        True,
        1j,
        np.float64(1),
        np.array(1.0),
    ],
    ids=repr,
)
def test_another_signature_is_compiled_again(other):
    fun, runs = counted(lambda x: fg.tree.map(double, x))
    compiled = jit(fun)
    compiled(np.ones(3))
    compiled(other)
    compiled(other)
    assert len(runs) == 2


def test_numbers_of_python_are_not_compiled_for():
    fun, runs = counted(lambda x, n: x * n)
    compiled = jit(fun)
    assert [compiled(2.0, n) for n in range(5)] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert len(runs) == 1


def test_numbers_of_python_stay_weakly_typed():
    compiled = jit(lambda x, a: x * a)
    assert compiled(np.ones(3, np.float32), 2.0).dtype == np.float32
    assert compiled(np.ones(3, np.float32), np.float64(2.0)).dtype == np.float64
    assert type(compiled(3.0, 2.0)) is float
    assert type(compiled(3, 2)) is int


def test_strings_and_functions_are_static():
    fun, runs = counted(lambda x, mode, f: f(x) if mode == "apply" else x)
    compiled = jit(fun)
    assert compiled(2.0, "apply", double) == 4.0
    assert compiled(3.0, "apply", double) == 6.0
    assert compiled(2.0, "skip", double) == 2.0
    assert len(runs) == 2


def test_clear_cache_compiles_again():
    fun, runs = counted(double)
    compiled = jit(fun)
    compiled(np.ones(3))
    compiled(1.0)
    compiled.clear_cache()
    compiled(np.ones(3))
    assert len(runs) == 3


def test_keywords_in_another_order_are_the_same_call():
    fun, runs = counted(lambda *, a, b: a - b)
    compiled = jit(fun)
    assert compiled(a=3.0, b=1.0) == 2.0
    assert compiled(b=1.0, a=3.0) == 2.0
    assert len(runs) == 1


# Static arguments


def power(x, n, scale=1.0):
    for _ in range(n):
        x = x * scale
    return x


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1},
        {"static_argnums": (1,)},
        {"static_argnums": -2},
        {"static_argnames": "n"},
        {"static_argnames": ("n",)},
    ],
    ids=repr,
)
def test_a_static_argument_may_be_a_length(options):
    compiled = jit(power, **options)
    assert compiled(1.0, 3, 2.0) == 8.0
    assert compiled(1.0, n=4, scale=2.0) == 16.0
    assert compiled(x=1.0, n=5, scale=2.0) == 32.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [1, 2]),
        ({"a": [1.0, float("nan")]}, {"a": [1.0, float("nan")]}),
        (np.arange(3), np.arange(3)),
        (("x", {"y": np.ones(2)}), ("x", {"y": np.ones(2)})),
    ],
    ids=repr,
)
def test_static_arguments_are_compared_by_content(one, other):
    fun, runs = counted(lambda x, options: x)
    compiled = jit(fun, static_argnums=1)
    compiled(1.0, one)
    compiled(2.0, other)
    assert len(runs) == 1


def test_static_one_and_true_and_one_point_zero_differ():
    compiled = jit(lambda x, a: type(a).__name__, static_argnums=1)
    assert [compiled(0.0, a) for a in (1, True, 1.0)] == ["int", "bool", "float"]


def test_a_static_argument_without_hash_is_an_error_that_names_it():
    class Options:
        __hash__ = None

        def __eq__(self, other):
            return True

    compiled = jit(lambda x, options: x, static_argnames="options")
    with pytest.raises(ArgumentError, match=r"(?s)options is static.*frozen=True"):
        compiled(1.0, Options())


def test_a_traced_static_argument_is_an_error():
    compiled = jit(power, static_argnames="n")
    with pytest.raises(ArgumentError, match="'n' is static"):
        fg.grad(lambda n: compiled(1.0, n))(2.0)


def test_static_arguments_that_do_not_exist_are_errors():
    with pytest.raises(ArgumentError, match=r"static_argnames='m'.*names no parameter of power"):
        jit(power, static_argnames="m")
    with pytest.raises(ArgumentError, match="static_argnums=3 of jit is out of range"):
        jit(power, static_argnums=3)
    with pytest.raises(ArgumentError, match="donate_argnums=5 of jit is out of range"):
        jit(power, donate_argnums=5)


# What a call gives


def test_results_have_memory_of_their_own():
    compiled = jit(lambda x: (x, x, x.T, x + 1, (x + 1).T, x[0]))
    x = np.arange(6.0).reshape(2, 3)
    first = compiled(x)
    second = compiled(x)
    arrays = [x, *first, *second]
    for i, a in enumerate(arrays):
        for b in arrays[:i]:
            assert not np.shares_memory(a, b)


def test_results_can_be_written_to():
    x = np.ones(3)
    compiled = jit(lambda x: (x, np.broadcast_to(x, (2, 3)), np.broadcast_to(x + 1, (2, 3))))
    for out in compiled(x):
        out[...] = 5.0
    np.testing.assert_array_equal(x, np.ones(3))
    np.testing.assert_array_equal(compiled(x)[2], np.full((2, 3), 2.0))


def test_constant_results_are_fresh():
    table = np.arange(3.0)
    compiled = jit(lambda x: (x, table, np.ones(2)))
    compiled(1.0)[1][:] = 7.0
    compiled(1.0)[2][:] = 7.0
    np.testing.assert_array_equal(compiled(1.0)[1], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(compiled(1.0)[2], [1.0, 1.0])
    np.testing.assert_array_equal(table, [0.0, 1.0, 2.0])


def test_what_an_earlier_call_gave_stays():
    compiled = jit(lambda x: np.sin(np.cos(x) * 2) + 1)
    first = compiled(np.zeros(4))
    kept = first.copy()
    compiled(np.ones(4))
    np.testing.assert_array_equal(first, kept)


def test_pytrees_come_back_in_their_structure():
    tree = {"b": [np.ones(2), (1.0, None)], "a": np.zeros(3)}
    out = jit(lambda t: fg.tree.map(double, t))(tree)
    assert list(out) == ["b", "a"]
    assert out["b"][1] == (2.0, None)
    np.testing.assert_array_equal(out["a"], np.zeros(3))


def test_a_function_without_arguments_or_results():
    assert jit(lambda: 3.0)() == 3.0
    assert jit(lambda x: None)(1.0) is None
    assert jit(lambda x: {})(1.0) == {}


def test_constants_are_those_of_the_first_call():
    table = np.arange(3.0)
    compiled = jit(lambda x: x * table)
    compiled(2.0)
    table[:] = -1.0
    np.testing.assert_array_equal(compiled(2.0), [0.0, 2.0, 4.0])


def test_numbers_too_large_for_a_dtype_are_infinite_without_a_warning():
    compiled = jit(lambda x: x * 1e10)
    assert np.all(np.isinf(compiled(np.ones(3, np.float16))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32, np.bool])
def test_dtypes_are_those_of_the_function(dtype):
    def fun(x):
        return x + x, x * 2, np.sum(x), np.mean(x), x == x, np.exp(x), x / 3, x**2

    x = np.ones(3, dtype)
    for got, want in zip(jit(fun)(x), fun(x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_arrays_in_fortran_order_give_fortran_order():
    x = np.asfortranarray(RNG.normal(size=(40, 50)))

    def fun(x):
        y = np.sin(x) * 2
        return y + 1, np.sum(y), np.sum(y, axis=0)

    compiled = jit(fun)
    for got, want in zip(compiled(x), fun(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert compiled(x)[0].flags.f_contiguous


def test_exceptions_are_those_of_the_function():
    compiled = jit(lambda x: np.linalg.inv(x))
    compiled(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        compiled(np.zeros((2, 2)))
    np.testing.assert_array_equal(compiled(np.eye(2)), np.eye(2))


def test_exceptions_at_the_first_call_leave_nothing_behind():
    def fun(x):
        raise KeyError("mine")

    compiled = jit(fun)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            compiled(1.0)


def test_random_keys_can_be_arguments():
    def draw(key):
        key, other = key.split()
        return other.normal((3,)), key

    compiled = jit(draw)
    for seed in (0, 1):
        got, key = compiled(fg.random.key(seed))
        want, want_key = draw(fg.random.key(seed))
        np.testing.assert_array_equal(got, want)
        assert key == want_key


def test_arrays_that_are_made_inside_may_be_written_to():
    def fun(x):
        y = np.zeros_like(x)
        y[1:] = x[:-1] * 2
        y[0] += np.sum(x)
        z = fg.at(y)[0].set(5.0)
        return y, z, fg.at(x)[np.array([0, 0, 1])].add(1.0)

    compiled = jit(fun)
    for x in (np.arange(3.0), np.ones(3)):
        for got, want in zip(compiled(x), fun(x), strict=True):
            np.testing.assert_array_equal(got, np.asarray(want))


def test_tracebacks_show_the_lines_of_the_program():
    compiled = jit(np.linalg.inv)
    compiled(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError) as caught:
        compiled(np.zeros((2, 2)))
    assert any("inv(a)" in (entry.statement.lines or [""])[0] for entry in caught.traceback)


def test_programs_leave_nothing_behind():
    before = set(linecache.cache)
    compiled = jit(lambda x: np.sin(x) + 1)
    compiled(1.0)
    (name,) = set(linecache.cache) - before
    del compiled
    gc.collect()
    assert name not in linecache.cache


# Conditions


def test_branches_of_cond_that_return_other_dtypes_have_a_program_each():
    fun, runs = counted(lambda x: fg.cond(x > 0, np.sqrt, lambda x: 1, x))
    compiled = jit(fun)
    assert [compiled(x) for x in (4.0, -4.0, 9.0, -9.0)] == [2.0, 1, 3.0, 1]
    assert type(compiled(-1.0)) is int
    assert len(runs) == 2


def test_a_while_loop_ends_when_it_should():
    compiled = jit(lambda x: fg.while_loop(lambda x: x < 10, lambda x: x * 2, x))
    assert [compiled(x) for x in (1.0, 3.0, 11.0, 1.0)] == [16.0, 12.0, 11.0, 16.0]


def test_an_index_out_of_bounds_is_an_error_at_any_call():
    compiled = jit(lambda x, i: x[i])
    assert compiled(np.arange(3.0), 1) == 1.0
    with pytest.raises(IndexError):
        compiled(np.arange(3.0), 3)
    assert compiled(np.arange(3.0), 2) == 2.0


def test_gradients_that_are_not_finite_are_those_of_the_function():
    def slope(x):
        return fg.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(x)

    compiled = jit(slope)
    np.testing.assert_array_equal(compiled(np.array([4.0, 1.0])), [0.25, 0.5])
    for _ in range(5):
        np.testing.assert_array_equal(compiled(np.array([4.0, 0.0])), slope(np.array([4.0, 0.0])))
        np.testing.assert_array_equal(compiled(np.array([-1.0, 1.0])), [0.0, 0.5])
    np.testing.assert_array_equal(compiled(np.array([4.0, 1.0])), [0.25, 0.5])


def test_counts_have_the_length_that_they_should():
    compiled = jit(lambda x: np.bincount(x, minlength=3))
    for x in ([0, 1, 1], [0, 5, 1], [2, 2, 2]):
        np.testing.assert_array_equal(compiled(np.array(x)), np.bincount(x, minlength=3))


# Composition


def loss(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


W, X = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 3))


def test_grad_of_jit():
    np.testing.assert_array_equal(fg.grad(jit(loss))(W, X), fg.grad(loss)(W, X))


def test_jit_of_grad():
    np.testing.assert_array_equal(jit(fg.grad(loss))(W, X), fg.grad(loss)(W, X))


def test_jit_of_grad_of_jit():
    np.testing.assert_array_equal(jit(fg.grad(jit(loss)))(W, X), fg.grad(loss)(W, X))


def test_jit_of_hessian_and_hessian_of_jit():
    want = fg.hessian(loss)(W, X)
    np.testing.assert_allclose(jit(fg.hessian(loss))(W, X), want, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(fg.hessian(jit(loss))(W, X), want, rtol=1e-13, atol=1e-14)


def test_jvp_of_jit_and_jit_of_jvp():
    def push(fun):
        return lambda w, x, dot: fg.jvp(fun, (w, x), (dot, None))

    want = push(loss)(W, X, W)
    for fun in (push(jit(loss)), jit(push(loss)), jit(push(jit(loss)))):
        np.testing.assert_array_equal(fun(W, X, W), want)


def test_vmap_of_jit_and_jit_of_vmap():
    want = fg.vmap(loss, in_axes=(None, 0))(W, X)
    np.testing.assert_array_equal(fg.vmap(jit(loss), in_axes=(None, 0))(W, X), want)
    np.testing.assert_array_equal(jit(fg.vmap(loss, in_axes=(None, 0)))(W, X), want)


def test_gradients_for_each_example_of_jit():
    per_example = fg.vmap(fg.grad(loss), in_axes=(None, 0))
    np.testing.assert_array_equal(jit(per_example)(W, X), per_example(W, X))


def test_vmap_of_a_jitted_cond_takes_both_branches():
    fun = jit(lambda x: fg.cond(x > 0, np.sqrt, np.negative, x))
    np.testing.assert_array_equal(fg.vmap(fun)(np.array([4.0, -4.0])), [2.0, 4.0])


def test_jit_in_jit_is_one_program():
    inner, runs = counted(lambda x: np.sin(x) * 2)
    inner = jit(inner)
    outer = jit(lambda x: inner(x) + inner(x * 2))
    x = np.ones(3)
    np.testing.assert_array_equal(outer(x), np.sin(x) * 2 + np.sin(x * 2) * 2)
    outer(x)
    assert len(runs) == 2
    assert len(outer.lower(x).as_text().splitlines()) > 5


def test_custom_vjp_in_jit():
    @fg.custom_vjp
    def clipped(x):
        return np.sin(x)

    clipped.defvjp(lambda x: (np.sin(x), x), lambda x, bar: (np.clip(bar, -0.1, 0.1) * x,))

    def slope(x):
        return fg.grad(lambda x: np.sum(clipped(x) * 3))(x)

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(jit(slope)(x), [0.1, 0.2])
    np.testing.assert_array_equal(fg.grad(jit(lambda x: np.sum(clipped(x) * 3)))(x), [0.1, 0.2])


def test_checkpoint_in_jit():
    def fun(w):
        return np.sum(fg.checkpoint(lambda w: np.tanh(np.sin(w) * 2))(w))

    np.testing.assert_array_equal(jit(fg.grad(fun))(W), fg.grad(fun)(W))
    np.testing.assert_array_equal(fg.grad(jit(fun))(W), fg.grad(fun)(W))


def test_scan_in_jit():
    def fun(x):
        return fg.scan(lambda c, row: (np.tanh(c + row), c * row), np.zeros(3), x)

    x = RNG.normal(size=(5, 3))
    for got, want in zip(jit(fun)(x), fun(x), strict=True):
        np.testing.assert_array_equal(got, want)

    def slope(x):
        return fg.grad(lambda x: np.sum(fun(x)[0] ** 2))(x)

    np.testing.assert_array_equal(jit(slope)(x), slope(x))


def test_a_traced_closure_is_part_of_the_transform_around():
    def outer(x):
        return jit(lambda y: y * x)(2.0) + jit(lambda: x * x)()

    assert fg.grad(outer)(3.0) == 8.0
    assert jit(fg.grad(outer))(3.0) == 8.0


def test_a_training_step_is_compiled_as_a_whole():
    optimizer = fg.optim.adam(1e-2)

    def step(w, state, x):
        value, slope = fg.value_and_grad(loss)(w, x)
        updates, state = optimizer.update(slope, state, w)
        return fg.optim.apply_updates(w, updates), state, value

    fun, runs = counted(step)
    compiled = jit(fun)
    got = want = (W, optimizer.init(W))
    for _ in range(5):
        *got, _ = compiled(*got, X)
        *want, _ = step(*want, X)
    for a, b in zip(fg.tree.leaves(got), fg.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)  # of plain arrays Adam orders it otherwise
    assert len(runs) == 1


# What cannot be compiled


def test_branching_on_a_traced_value_says_what_to_do():
    def absolute(limit, x):
        y = x * 2
        if y > 0:
            return y
        return -y

    with pytest.raises(TracerValueError) as caught:
        jit(absolute)(1.0, 2.0)
    text = str(caught.value)
    assert "jit(absolute) compiles for all values" in text
    assert "the truth value of a number" in text
    assert "test_jit.py" in text
    assert "depends on x" in text
    assert "fg.cond" not in text
    assert "funcgrad.cond" in text
    assert "np.where" in text
    assert "static_argnames='x'" in text


def test_the_argument_that_a_value_depends_on_is_named_with_its_path():
    def fun(params, n):
        return float(np.sum(params["w"] * 2)) + n

    with pytest.raises(TracerValueError, match=r"depends on params\['w'\]"):
        jit(fun)({"v": np.ones(2), "w": np.ones(2)}, 1.0)


def test_a_traced_length_says_what_to_do():
    with pytest.raises(TracerValueError, match=r"(?s)static_argnames='n'.*fori_loop"):
        jit(power)(1.0, 3)
    with pytest.raises(TracerValueError, match="static_argnames='n'"):
        jit(lambda n: np.zeros(n))(3)


def test_an_axis_may_be_an_argument():
    compiled = jit(lambda x, axis: np.sum(x, axis))
    x = np.arange(6.0).reshape(2, 3)
    for axis in (0, 1, -1, 0):
        np.testing.assert_array_equal(compiled(x, axis), np.sum(x, axis))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x[x > 0],
        lambda x: np.nonzero(x)[0],
        lambda x: np.unique(x),
        lambda x: np.where(x > 0)[0],
        lambda x: np.flatnonzero(x),
        lambda x: np.argwhere(x > 0),
    ],
)
def test_shapes_that_depend_on_values_are_errors(fun):
    with pytest.raises(ShapeError, match=r"(?s)depends on the values.*np.where"):
        jit(fun)(np.array([1.0, -1.0, 1.0]))


def test_a_tracer_that_is_stored_away_is_an_error():
    kept = []

    @jit
    def fun(x):
        kept.append(x)
        return x * 2

    fun(np.ones(2))
    with pytest.raises(TracerLeakError, match=r"traced by jit\(fun\)"):
        kept[0] + 1


def test_writing_to_an_argument_is_an_error_and_does_nothing():
    def fun(x):
        x[0] = 1.0
        return x

    x = np.zeros(2)
    with pytest.raises(TypeError):
        jit(fun)(x)
    np.testing.assert_array_equal(x, np.zeros(2))


def test_arrays_of_objects_are_errors():
    with pytest.raises((DtypeError, ArgumentError, TypeError)):
        jit(lambda x: x * 2)(np.array([1, None]))


# Lowering


def test_as_text_is_the_program_that_runs():
    lowered = jit(lambda x: (np.sin(x), np.cos(x))[0]).lower(np.ones(3))
    assert "cos" not in lowered.as_text()
    assert "cos(x)" in lowered.as_text(optimized=False)


def test_stages_show_what_each_pass_does():
    lowered = jit(lambda x: (np.sin(x) * 1 + np.sin(x), np.cos(x))[0]).lower(np.ones(3))
    stages = {name.lstrip("0123456789 "): text for name, text in lowered.stages().items()}
    order = ["recorded", "dead code", "identities", "common subexpressions"]
    assert [name for name in stages if name in order] == order
    assert "cos" in stages["recorded"]
    assert "multiply" not in stages["identities"]
    assert stages["common subexpressions"].count("sin") == 1


def run_source(text, *leaves):
    """Run the source of a program in a module of its own."""
    namespace = {}
    exec(text, namespace)
    name = text.partition(",")[0].removeprefix('"""')
    return namespace[name](*leaves)


def test_as_source_is_a_module_that_gives_the_same():
    text = jit(fg.value_and_grad(loss)).lower(W, X).as_source()
    assert "funcgrad" not in text
    value, slope = run_source(text, W, X)
    want, want_slope = fg.value_and_grad(loss)(W, X)
    assert value == want
    np.testing.assert_array_equal(slope, want_slope)


def test_as_source_has_the_lines_of_the_user():
    text = jit(loss).lower(W, X).as_source()
    assert "return np.sum(np.tanh(x @ w) ** 2)" in text


def test_as_source_has_constants_to_the_last_bit():
    table, row = RNG.normal(size=(40, 3)), np.array([0.1, 1 / 3, -0.0])
    text = jit(lambda x: x * table + row).lower(2.0).as_source()
    (out,) = run_source(text, 2.0)
    np.testing.assert_array_equal(out, 2.0 * table + row)


def test_as_source_says_what_it_needs():
    text = jit(lambda x: fg.nn.functional.log_softmax(x)).lower(np.ones(3)).as_source()
    if "funcgrad" in text:
        assert "It needs funcgrad for: log_softmax" in text
    (out,) = run_source(text, np.arange(3.0))
    np.testing.assert_array_equal(out, fg.nn.functional.log_softmax(np.arange(3.0)))


def test_a_compiled_function_takes_its_signature_alone():
    compiled = jit(loss).lower(W, X).compile()
    assert compiled(W * 2, X) == loss(W * 2, X)
    with pytest.raises(ShapeError, match="x"):
        compiled(W, X[:2])
    with pytest.raises(TreeMismatchError):
        compiled(W, [X])


def test_lower_does_not_count_on_the_values():
    compiled = jit(lambda x: fg.cond(x > 0, np.sqrt, np.negative, x)).lower(4.0).compile()
    assert float(compiled(-4.0)) == 4.0


# As an object


def test_it_looks_like_the_function():
    assert decorated.__name__ == "decorated"
    assert decorated.__doc__ == "Add one."
    assert repr(decorated) == "jit(decorated)"


def test_it_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(decorated))(1.0) == 2.0
    assert pickle.loads(pickle.dumps(jit(power, static_argnums=1)))(1.0, 3, 2.0) == 8.0
    assert copy.deepcopy(jit(double))(1.0) == 2.0


def test_options_can_stand_before_the_function():
    @jit(static_argnames="n")
    def fun(x, n):
        return x * n

    assert fun(2.0, 3) == 6.0


def test_a_method_can_be_compiled():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @jit
        def __call__(self, x):
            return x * self.scale

    assert Model(2.0)(3.0) == 6.0
    assert Model(4.0)(3.0) == 12.0


def test_what_it_closes_over_is_freed_with_it():
    class Owner(np.ndarray):
        pass

    big = np.ones(1000).view(Owner)
    ref = weakref.ref(big)
    compiled = jit(lambda x, big=big: x + np.sum(big))
    compiled(1.0)
    del big, compiled
    gc.collect()
    assert ref() is None


# In threads and processes


def test_threads_do_not_meet():
    def fun(x):
        for _ in range(20):
            x = np.sin(x) * 1.5 + x * 0.1
        return x

    compiled = jit(fun)
    inputs = [RNG.normal(size=2000) for _ in range(16)]
    wanted = [fun(x) for x in inputs]
    failed = []

    def work(i):
        for _ in range(20):
            if not np.array_equal(compiled(inputs[i]), wanted[i]):
                failed.append(i)

    in_threads(16, work)
    assert not failed


def test_a_call_within_a_call_has_memory_of_its_own():
    def inner(x):
        return np.asarray(compiled(x - 1, True)) if x[0] > 1 else x

    def fun(x, deep):
        y = np.sin(x) * 2
        z = fg.pure_callback(inner, fg.ShapeDtypeStruct((3,), np.float64), x)
        return np.cos(y) + z

    compiled = jit(fun)
    np.testing.assert_array_equal(compiled(np.full(3, 3.0), True), fun(np.full(3, 3.0), True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_it_works_after_a_fork():
    compiled = jit(double)
    compiled(np.ones(3))
    pid = os.fork()
    if pid == 0:
        same = np.array_equal(compiled(np.ones(3)), np.full(3, 2.0))
        os._exit(0 if same and jit(double)(2.0) == 4.0 else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0


# Memory of large results


LARGE = 1 << 16


def stepped(x):
    y = np.sin(x) * 2
    return y + x, np.cos(y)


def test_large_results_that_somebody_holds_stay():
    compiled = jit(stepped)
    x = RNG.normal(size=LARGE)
    held, copies = [], []
    for i in range(6):
        found = compiled(x * i)
        held.append(found if i % 2 else [part[::2] for part in found])  # views count
        copies.append([part.copy() for part in held[-1]])
        del found
    for parts, wanted in zip(held, copies, strict=True):
        for part, want in zip(parts, wanted, strict=True):
            np.testing.assert_array_equal(part, want)


def test_the_memory_of_large_results_that_nobody_holds_is_used_again():
    compiled = jit(stepped)
    x = RNG.normal(size=LARGE)
    places = set()
    for _ in range(8):
        x, _ = compiled(x)
        places.add(x.__array_interface__["data"][0])
    assert len(places) <= 2


def test_large_results_that_were_made_read_only_stay():
    compiled = jit(stepped)
    x = np.ones(LARGE)
    compiled(x)[0].flags.writeable = False
    np.testing.assert_array_equal(compiled(x)[0], stepped(x)[0])
    assert compiled(x)[0].flags.writeable


def test_threads_do_not_meet_in_large_results():
    compiled = jit(stepped)
    failed = []

    def work(seed):
        x = np.random.default_rng(seed).normal(size=LARGE)
        want = stepped(x)
        for _ in range(10):
            got = compiled(x)
            if not all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
                failed.append(seed)

    in_threads(6, work)
    assert not failed


# Why it is compiled again


def test_explain_names_the_argument_that_differs():
    compiled = jit(lambda params, n: params["w"] * n)
    assert compiled.explain() == "it has not been called"
    compiled({"w": np.ones(3)}, 2)
    assert compiled.explain() == "it was called for the first time"
    compiled({"w": np.ones(4)}, 2)
    assert compiled.explain() == "params['w'] was float64[3], and is float64[4]"
    compiled({"w": np.ones(4)}, 2.0)
    assert compiled.explain() == "n was int, and is float"
    compiled({"w": np.ones(4), "b": 1.0}, 2.0)
    assert compiled.explain() == "params['b'] is new"


def test_explain_names_static_values():
    compiled = jit(power, static_argnames="n")
    compiled(1.0, 2)
    compiled(1.0, 3)
    assert compiled.explain() == "n was 2, which is static, and is 3, which is static"


def test_explain_knows_conditions():
    compiled = jit(lambda x: fg.cond(x > 0, np.sqrt, lambda x: 1, x))
    compiled(1.0)
    compiled(-1.0)
    assert compiled.explain() == "the function takes another way for these values"
    slope = jit(fg.grad(lambda x: np.sqrt(x)))
    slope(1.0)
    with np.errstate(all="ignore"):
        slope(0.0)
    assert slope.explain() == "a derivative is not finite"


def test_another_array_in_a_closure_is_noticed():
    table = np.arange(3.0)

    def scaled(x):
        return x * table

    compiled = jit(lambda x: scaled(x) + 1)
    np.testing.assert_array_equal(compiled(2.0), [1.0, 3.0, 5.0])
    table = np.ones(3)
    np.testing.assert_array_equal(compiled(2.0), [3.0, 3.0, 3.0])
    assert compiled.explain() == "table, which the function closes over, has changed"


SCALE = 2.0


def by_scale(x):
    return x * SCALE


def test_another_global_is_noticed(monkeypatch):
    compiled = jit(by_scale)
    assert compiled(3.0) == 6.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert compiled(3.0) == 15.0
    assert jit(fg.grad(by_scale))(3.0) == 5.0


def test_the_same_values_in_a_closure_are_not_compiled_for():
    runs, scale = [], 2.0

    def fun(x):
        runs.append(1)
        return x * scale

    compiled = jit(fun)
    for i in range(3):
        scale = float(f"{2.0 + 0 * i}")
        assert compiled(3.0) == 6.0
    assert len(runs) == 1


def test_what_the_function_writes_to_by_itself_is_not_watched():
    count = 0

    def fun(x):
        nonlocal count
        count += 1
        return x * 2

    compiled = jit(fun)
    assert [compiled(x) for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert count == 1
