"""checkpoint_every: the same values and derivatives, in less memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.control import fori_loop, scan, while_loop
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ArgumentError, ShapeError

X = np.array([0.3, -0.8, 1.1])
W = np.array([[0.5, -1.0, 0.2], [0.3, 0.8, -0.4], [1.0, 0.1, 0.6]])
XS = W * np.array([[1.0], [0.01], [1.0]])  # examples that end at different steps
ROWS = np.cos(np.arange(30.0)).reshape(10, 3)
EVERY = [1, 3, 5, 10, 100]


def scanned(x, rows, every, **options):
    def step(carry, row):
        carry = np.sin(carry * row) + carry[::-1]
        return carry, carry[0] * row

    carry, ys = scan(step, x, rows, checkpoint_every=every, **options)
    return np.sum(carry**2) + np.sum(ys**3)


def counted(x, rows, every):
    def step(i, x):
        return np.sin(x * rows[i]) + x[::-1]

    return np.sum(fori_loop(0, 10, step, x, checkpoint_every=every) ** 2)


def halved(x, rows, every):
    def step(val):
        n, x = val
        return n + 1, np.sin(x) * rows[n % 10] / 2

    def going(val):
        return np.max(np.abs(val[1])) > 1e-3

    n, x = while_loop(going, step, (0, x), checkpoint_every=every)
    return np.sum(x**2) * 1e6 + n


LOOPS = {"scan": scanned, "fori_loop": counted, "while_loop": halved}


@pytest.fixture(params=LOOPS)
def loop(request):
    return LOOPS[request.param]


# Nothing changes but what is kept


@pytest.mark.parametrize("every", EVERY)
def test_value_and_gradient_are_identical(loop, every):
    value, gradient = fg.value_and_grad(loop)(X, ROWS, every)
    expected_value, expected = fg.value_and_grad(loop)(X, ROWS, None)
    assert value == expected_value
    assert np.array_equal(gradient, expected)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 4])
def test_gradient_of_the_slices_is_identical(every, reverse, unroll):
    def gradient(every):
        return fg.grad(scanned, argnums=1)(X, ROWS, every, reverse=reverse, unroll=unroll)

    assert np.array_equal(gradient(every), gradient(None))


@pytest.mark.parametrize("every", EVERY)
def test_gradient_of_what_is_closed_over(loop, every):
    """Its cotangents are added up in another order."""
    gradient = fg.grad(loop, argnums=1)(X, ROWS, every)
    assert_allclose(gradient, fg.grad(loop, argnums=1)(X, ROWS, None), rtol=1e-13, atol=1e-15)


TRANSFORMED = {
    "jvp": lambda f: fg.jvp(f, (X,), (W[0],))[1],
    "linearize": lambda f: fg.linearize(f, X)[1](W[0]),
    "vmap": lambda f: fg.vmap(f)(XS),
    "vmap of grad": lambda f: fg.vmap(fg.grad(f))(XS),
    "grad of vmap": lambda f: fg.grad(lambda w: np.sum(fg.vmap(f)(w)))(XS),
    "reverse over reverse": lambda f: fg.jacrev(fg.grad(f))(X),
    "forward over reverse": lambda f: fg.jacfwd(fg.grad(f))(X),
    "reverse over forward": lambda f: fg.jacrev(fg.jacfwd(f))(X),
    "hvp": lambda f: fg.hvp(f, (X,), (W[0],)),
    "third order": lambda f: fg.jacrev(fg.jacrev(fg.grad(f)))(X),
    "vmap of hessian": lambda f: fg.vmap(fg.hessian(f))(XS),
    "in a checkpoint": lambda f: fg.grad(fg.checkpoint(f))(X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_every_transform(loop, name):
    """In the while loop the examples end at different steps."""
    transformed = TRANSFORMED[name]
    got, expected = [transformed(lambda x, k=k: loop(x, ROWS, k)) for k in (3, None)]
    assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


def test_examples_end_at_different_steps():
    steps = [
        while_loop(
            lambda v: np.max(np.abs(v[1])) > 1e-3,
            lambda v: (v[0] + 1, np.sin(v[1]) * ROWS[v[0] % 10] / 2),
            (0, x),
        )[0]
        for x in XS
    ]
    assert len(set(steps)) > 1


@pytest.mark.parametrize("inner", [None, 2])
@pytest.mark.parametrize("outer", [None, 2, 3])
def test_loop_in_a_loop(inner, outer):
    def f(x, outer, inner):
        def step(x, row):
            x = fori_loop(0, 5, lambda i, y: np.sin(y * row) + y, x, checkpoint_every=inner)
            return np.tanh(x), None

        return np.sum(scan(step, x, ROWS, checkpoint_every=outer)[0])

    assert np.array_equal(fg.grad(f)(X, outer, inner), fg.grad(f)(X, None, None))
    assert_allclose(fg.hessian(f)(X, outer, inner), fg.hessian(f)(X, None, None), rtol=1e-12)


def test_no_steps():
    def f(x):
        return np.sum(fori_loop(0, 0, lambda i, y: y * 2.0, x, checkpoint_every=4) * 3.0)

    assert np.array_equal(fg.grad(f)(X), [3.0, 3.0, 3.0])


def test_pullback_many_times():
    _, pullback = fg.vjp(lambda x: scanned(x, ROWS, 4), X)
    expected = fg.grad(scanned)(X, ROWS, None)
    for _ in range(2):
        assert np.array_equal(pullback(1.0)[0], expected)


def test_error_in_a_step_leaves_no_trace():
    def fails(c, x):
        if x > 3:
            raise KeyError("mine")
        return np.sin(c), None

    def f(x):
        with pytest.raises(KeyError, match="mine"):
            scan(fails, x, np.arange(8), checkpoint_every=3)
        return scan(lambda c, _: (np.sin(c), None), x, length=1, checkpoint_every=3)[0]

    assert fg.grad(f)(1.0) == np.cos(1.0)


def test_error_of_the_carry_is_the_same():
    def f(x):
        return scan(lambda c, _: (np.stack([c, c]), None), x, length=4, checkpoint_every=2)[0]

    with pytest.raises(ShapeError, match="changed at step 0"):
        fg.grad(f)(1.0)


@pytest.mark.parametrize("every", [None, 4])
def test_how_often_a_step_runs(every):
    runs = []

    def forward(x):
        runs.append(1)
        return x * 0.5

    made = Primitive(forward, name="noted")
    made.def_vjp(lambda primals, out: lambda out_bar: 0.5 * out_bar)
    gradient = fg.grad(
        lambda x: fori_loop(0, 8, lambda i, y: made.bind(y), x, checkpoint_every=every)
    )
    assert gradient(1.0) == 0.5**8
    assert len(runs) == (8 if every is None else 16)


# Memory

MEMORY = """
import tracemalloc
import numpy as np
import funcgrad as fg

x = np.linspace(0.1, 0.9, 4_000)
rows = np.linspace(-1.0, 1.0, 1_000)

def scanned(x, every):
    def step(c, row):
        return c + 0.001 * np.sin(c * row), None
    return np.sum(fg.scan(step, x, rows, checkpoint_every=every)[0])

def counted(x, every, steps=1_000):
    def step(i, c):
        return c + 0.001 * np.sin(c * c)
    return np.sum(fg.fori_loop(0, steps, step, x, checkpoint_every=every))

def conditional(x, every):
    def step(val):
        return val[0] + 1, val[1] + 0.001 * np.sin(val[1] * val[1])
    def going(val):
        return val[0] < 1_000
    return np.sum(fg.while_loop(going, step, (0, x), checkpoint_every=every)[1])

def batched(x, every):
    limits = np.array([900, 1_000])
    def one(x, n):
        return fg.fori_loop(0, n, lambda i, c: c + 0.001 * np.sin(c * c), x, checkpoint_every=every)
    return np.sum(fg.vmap(one)(np.reshape(x, (2, -1)), limits))

def second(x, every):
    return np.sum(fg.grad(lambda x: counted(x, every, 200) ** 2)(x))

for fun in (scanned, counted, conditional, batched, second):
    peaks, results = [], []
    for every in (None, 14 if fun is second else 32):
        tracemalloc.start()
        results.append(fg.grad(fun)(x, every))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    print(peaks[1] / peaks[0], np.abs(results[1] / results[0] - 1).max())
"""


@pytest.fixture(scope="module")
def memory():
    done = subprocess.run(
        [sys.executable, "-c", MEMORY],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(fg.__file__).parents[1],
    )
    lines = np.array([line.split() for line in done.stdout.splitlines()], dtype=float)
    return dict(
        zip(["scan", "fori_loop", "while_loop", "batched", "second order"], lines, strict=True)
    )


@pytest.mark.parametrize("name", ["scan", "fori_loop", "while_loop", "batched", "second order"])
def test_peak_memory_of_a_thousand_steps(memory, name):
    ratio, difference = memory[name]
    assert ratio < (0.3 if name == "second order" else 0.15)
    assert difference < 1e-11, (ratio, difference)


# The argument


@pytest.mark.parametrize("every", [0, -1, 2.5, True, "8"])
def test_wrong_number_of_steps(loop, every):
    with pytest.raises(ArgumentError, match=r"checkpoint_every of .* must be a positive number"):
        loop(X, ROWS, every)


def test_any_integer_type():
    assert scanned(X, ROWS, np.int64(2)) == scanned(X, ROWS, None)
