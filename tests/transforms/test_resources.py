"""Time and memory: long chains, what is kept for the backward pass, and when it is let go."""

import gc
import sys
import time
import tracemalloc
import weakref

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import Trace, TracerBase
from funcgrad.core.primitive import Primitive

SIZE = 50_000  # elements: large beside the bookkeeping of any node
NBYTES = 8 * SIZE


@pytest.fixture
def x():
    return np.linspace(0.1, 0.9, SIZE)


@pytest.fixture(autouse=True)
def _no_garbage_collection():
    """What is let go is let go at once, by reference counts: no cycle waits for the collector."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def peak_of(run):
    """Return the most memory that `run` has in use beyond what was before, in bytes."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def traced_value(tracer):
    """Return the array that a tracer of the innermost transform holds."""
    return tracer._value


def chain(steps):
    def f(x):
        for _ in range(steps):
            x = x * 1.0000001
        return x

    return f


# Long chains


def test_chain_of_many_operations_has_no_recursion():
    steps = 200_000
    assert steps > 100 * sys.getrecursionlimit()
    assert fg.grad(chain(steps))(1.0) == pytest.approx(1.0000001**steps, rel=1e-9)


@pytest.mark.parametrize("transform", ["vjp", "jvp", "linearize", "grad of grad"])
def test_long_chain_in_the_other_transforms(transform):
    steps = 20_000
    f = chain(steps)
    slope = {
        "vjp": lambda: fg.vjp(f, 1.0)[1](1.0)[0],
        "jvp": lambda: fg.jvp(f, (1.0,), (1.0,))[1],
        "linearize": lambda: fg.linearize(f, 1.0)[1](1.0),
        "grad of grad": lambda: fg.grad(fg.grad(lambda x: 0.5 * x * f(x)))(1.0),
    }[transform]()
    assert slope == pytest.approx(1.0000001**steps, rel=1e-9)


def test_long_chain_of_general_operations():
    def f(x):
        for _ in range(20_000):
            x = np.reshape(x, (1, 2))[0]
        return np.sum(x)

    np.testing.assert_array_equal(fg.grad(f)(np.array([1.0, 2.0])), [1.0, 1.0])


def test_chain_takes_bounded_memory_an_operation():
    few, many = 2_000, 22_000
    peaks = [peak_of(lambda steps=steps: fg.grad(chain(steps))(1.0)) for steps in (few, many)]
    assert (peaks[1] - peaks[0]) / (many - few) < 600  # bytes


def test_chain_takes_linear_time():
    def seconds(steps):
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            fg.grad(chain(steps))(1.0)
            best = min(best, time.perf_counter() - start)
        return best / steps

    seconds(1_000)  # warm up
    assert seconds(60_000) < 3.0 * seconds(6_000)


def test_each_shared_intermediate_is_walked_once():
    """60 doublings: 2**60 paths."""

    def f(x):
        for _ in range(60):
            x = x + x
        return x

    assert fg.grad(f)(1.0) == 2.0**60
    assert fg.jvp(f, (1.0,), (1.0,))[1] == 2.0**60


# What is kept


def test_add_keeps_nothing(x):
    refs = []

    def f(x):
        y = np.sin(x) + 1.0
        y = y + x
        refs.append(weakref.ref(traced_value(y)))
        y = y + 1.0
        assert refs[0]() is None  # gone in the forward pass already
        return np.sum(y)

    np.testing.assert_allclose(fg.grad(f)(x), np.cos(x) + 1.0, rtol=1e-15)


def test_sum_and_subtract_keep_nothing(x):
    def f(x):
        y = np.sin(x)
        ref = weakref.ref(traced_value(y))
        y = np.sum(y - 1.0)
        assert ref() is None
        return y

    np.testing.assert_allclose(fg.grad(f)(x), np.cos(x), rtol=1e-15)


def test_exp_keeps_its_output_alone(x):
    def f(x):
        y = x * 2.0
        before = weakref.ref(traced_value(y))
        y = np.exp(y)
        after = weakref.ref(traced_value(y))
        y = np.sum(y)
        assert before() is None
        assert after() is not None
        return y

    np.testing.assert_allclose(fg.grad(f)(x), 2.0 * np.exp(2.0 * x), rtol=1e-15)


def test_multiplication_by_a_constant_does_not_keep_the_variable(x):
    def f(x):
        y = np.sin(x)
        ref = weakref.ref(traced_value(y))
        y = 3.0 * (y * x.shape[0])
        assert ref() is None
        return np.sum(y)

    np.testing.assert_allclose(fg.grad(f)(x), 3.0 * SIZE * np.cos(x), rtol=1e-15)


def test_matrix_product_with_a_constant_does_not_keep_the_variable():
    w = np.ones((4, 3))

    def f(x):
        y = np.sin(x)
        ref = weakref.ref(traced_value(y))
        y = np.sum(y @ w)
        assert ref() is None
        return y

    x = np.linspace(0.0, 1.0, 8).reshape(2, 4)
    np.testing.assert_allclose(fg.grad(f)(x), 3.0 * np.cos(x), rtol=1e-15)


def test_matrix_product_with_a_constant_costs_one_product_backward():
    """No cotangent is computed that nobody asked for."""
    shapes = []

    class Counting(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            plain = [np.asarray(a) if isinstance(a, Counting) else a for a in inputs]
            if any(isinstance(a, TracerBase) for a in plain):
                return NotImplemented
            if ufunc is np.matmul:
                shapes.append(tuple(a.shape for a in plain))
            return getattr(ufunc, method)(*plain, **kwargs)

    data, w = np.ones((5, 4)).view(Counting), np.ones((4, 3)).view(Counting)
    gradient = fg.grad(lambda w: np.sum(np.matmul(data, w)))(w)
    np.testing.assert_array_equal(gradient, np.full((4, 3), 5.0))
    assert shapes == [((5, 4), (4, 3)), ((4, 5), (5, 3))]


@pytest.mark.parametrize("prune", ["comparison", "constant"])
def test_what_does_not_depend_on_the_variable_is_not_kept(x, prune):
    def f(x):
        y = x * 2.0
        ref = weakref.ref(traced_value(y))
        chosen = y > 1.0 if prune == "comparison" else np.floor(y)
        del y
        assert ref() is None
        return np.sum(x * chosen)

    expected = 2.0 * x > 1.0 if prune == "comparison" else np.floor(2.0 * x)
    np.testing.assert_array_equal(fg.grad(f)(x), expected)


def test_linearize_keeps_what_its_pushforward_needs_alone(x):
    refs = []

    def f(x):
        y = np.sin(x)
        refs.append(weakref.ref(traced_value(y)))
        y = y + 1.0
        refs.append(weakref.ref(traced_value(y)))
        return np.sum(np.exp(y * 0.5))

    _, pushforward = fg.linearize(f, x)
    assert [ref() is None for ref in refs] == [True, True]
    assert pushforward(np.ones(SIZE)) == pytest.approx(
        np.sum(np.exp(0.5 * (np.sin(x) + 1.0)) * 0.5 * np.cos(x)), rel=1e-12
    )


def test_forward_mode_keeps_nothing(x):
    def f(x):
        y = np.sin(x)
        ref = weakref.ref(traced_value(y))
        y = np.exp(y)
        assert ref() is None
        return y

    fg.jvp(f, (x,), (x,))


def test_forward_mode_takes_the_same_memory_for_any_length(x):
    def run(steps):
        def f(x):
            for _ in range(steps):
                x = np.sin(x)
            return x

        return lambda: fg.jvp(f, (x,), (x,))

    run(1)()
    assert peak_of(run(40)) < peak_of(run(4)) + NBYTES


# When it is let go


def test_residuals_are_freed_on_the_way(x):
    """When the backward pass has come to an operation, the residuals of those long past are gone.

    It lets go of a segment of the tape at a time.
    """
    steps = 200
    refs = []
    alive = []
    watch = Primitive(lambda x: x * 1.0, name="watch")

    @watch.def_vjp
    def watch_vjp(primals, out):
        def watch_pullback(out_bar):
            alive.append(sum(ref() is not None for ref in refs))
            return out_bar

        return watch_pullback

    def f(x):
        for _ in range(steps):
            x = np.exp(watch.bind(x) - 1.0)
            refs.append(weakref.ref(traced_value(x)))
        return np.sum(x)

    fg.grad(f)(x)
    assert len(alive) == steps
    nodes = 3 * steps + 1
    for done, left in enumerate(alive):
        assert left <= steps - done + nodes // 8 // 3 + 1


def test_gradient_needs_no_more_than_the_residuals_and_a_few_arrays(x):
    steps = 20

    def f(x):
        for _ in range(steps):
            x = np.sin(x)
        return np.sum(x)

    fg.grad(f)(x)
    peak = peak_of(lambda: fg.grad(f)(x))
    assert peak < (steps + 4) * NBYTES


def test_chain_without_residuals_needs_a_few_arrays(x):
    def f(x):
        for _ in range(50):
            x = (x + 1.0) - 0.5
        return np.sum(x)

    fg.grad(f)(x)
    assert peak_of(lambda: fg.grad(f)(x)) < 5 * NBYTES


def test_gradients_of_large_arrays_leave_no_memory_behind(x):
    f = fg.grad(lambda x: np.sum(np.sin(x) * x))
    f(x)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            f(x)
        assert tracemalloc.get_traced_memory()[0] - before < NBYTES / 10
    finally:
        tracemalloc.stop()


# Nothing is left alive


def living():
    return [obj for obj in gc.get_objects() if isinstance(obj, Trace | TracerBase)]


@pytest.mark.parametrize(
    "run",
    [
        lambda f, x: fg.grad(f)(x),
        lambda f, x: fg.value_and_grad(f)(x),
        lambda f, x: fg.vjp(f, x)[1](1.0),
        lambda f, x: fg.jvp(f, (x,), (x,)),
        lambda f, x: fg.linearize(f, x)[1](x),
        lambda f, x: fg.grad(lambda x: np.sum(fg.grad(f)(x)))(x),
        lambda f, x: fg.grad(lambda x: fg.jvp(f, (x,), (x,))[1])(x),
    ],
    ids=["grad", "value_and_grad", "vjp", "jvp", "linearize", "grad of grad", "grad of jvp"],
)
def test_no_trace_or_tracer_is_alive_after_the_transform(run):
    seen = []

    def f(x):
        seen.append(weakref.ref(x))
        y = np.sin(x) * x
        return np.sum(y) + y[0] * 2.0 + np.sum(np.reshape(y, (1, -1)))

    before = len(living())
    run(f, np.arange(3.0))
    assert seen
    assert [ref() for ref in seen] == [None] * len(seen)
    assert len(living()) == before


def test_pullback_keeps_no_tracer():
    before = len(living())
    _, pullback = fg.vjp(lambda x: np.sin(x) * x, np.arange(3.0))
    _, pushforward = fg.linearize(lambda x: np.sin(x) * x, np.arange(3.0))
    assert len(living()) == before
    assert callable(pullback)
    assert callable(pushforward)


def test_letting_go_of_a_pullback_frees_its_residuals(x):
    refs = []

    def f(x):
        y = np.exp(x)
        refs.append(weakref.ref(traced_value(y)))
        return np.sum(y)

    _, pullback = fg.vjp(f, x)
    pullback(1.0)
    assert refs[0]() is not None
    del pullback
    assert refs[0]() is None


@pytest.mark.parametrize(
    "run",
    [
        lambda f, x: fg.grad(f)(x),
        lambda f, x: fg.vjp(f, x),
        lambda f, x: fg.jvp(f, (x,), (x,)),
        lambda f, x: fg.linearize(f, x),
    ],
    ids=["grad", "vjp", "jvp", "linearize"],
)
def test_escaped_tracer_does_not_keep_the_others_alive(run, x):
    kept, refs = [], []

    def f(x):
        kept.append(x[:1] * 2.0)
        y = np.exp(x)
        refs.append(weakref.ref(traced_value(y)))
        return np.sum(y)

    run(f, x)
    assert len(kept) == 1
    assert refs[0]() is None


@pytest.mark.parametrize("run", [lambda f, x: fg.grad(f)(x), lambda f, x: fg.linearize(f, x)])
def test_failed_call_does_not_keep_its_residuals(run, x):
    kept, refs = [], []

    def f(x):
        kept.append(x[:1] * 2.0)
        y = np.exp(x)
        refs.append(weakref.ref(traced_value(y)))
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose") as caught:
        run(f, x)
    del caught
    gc.collect()  # pytest's own records of the exception
    assert refs[0]() is None
