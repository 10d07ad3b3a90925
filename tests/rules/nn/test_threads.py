"""Convolutions in pieces: the same sums whatever the cuts, and threads that nobody notices."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from funcgrad.rules.nn import lowering, threads

# Images, kernel, stride, padding, dilation, groups: pieces that overlap, that see nothing but
# padding, that are strided and dilated, with rows that no window reaches.
CASES = {
    "plain": ((3, 4, 13, 5), (6, 4, 3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "padded": ((3, 4, 12, 5), (6, 4, 3, 2), (1, 1), ((1, 2), (0, 1)), (1, 1), 1),
    "far padded": ((3, 2, 2, 5), (4, 2, 2, 2), (1, 1), ((17, 9), (3, 0)), (1, 1), 1),
    "strided": ((3, 4, 28, 7), (6, 4, 3, 2), (2, 3), ((0, 1), (0, 0)), (1, 1), 1),
    "sparse": ((3, 4, 40, 7), (6, 4, 2, 2), (3, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "dilated": ((3, 4, 19, 7), (6, 4, 3, 2), (1, 1), ((4, 4), (0, 0)), (3, 2), 1),
    "long": ((3, 4, 30, 2), (6, 4, 15, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "groups": ((3, 4, 14, 5), (6, 2, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 2),
    "few channels": ((3, 1, 14, 5), (9, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "one axis": ((3, 4, 20), (6, 4, 3), (1,), ((1, 1),), (1,), 1),
    "winograd": ((40, 16, 15, 12), (32, 16, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
}


def three_products(case, dtype):
    images, weights, stride, padding, dilation, groups = case
    rng = np.random.default_rng(0)
    params = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    size = lowering.output_size(images[2:], weights[2:], stride, padding, dilation)
    # Small whole numbers: their sums are exact in any order.
    x, w, y = (
        rng.integers(-4, 5, size=shape).astype(dtype)
        for shape in (images, weights, (images[0], weights[0], *size))
    )
    return (
        lowering.correlate(x, w, **params),
        lowering.scatter(y, w, size=images[2:], **params),
        lowering.kernel_sum(x, y, kernel=weights[2:], **params),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gathers", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pieces_have_the_same_sums_as_the_whole(monkeypatch, case, gathers, dtype):
    monkeypatch.setattr(lowering, "_gathers", lambda *args: gathers and set(case[2]) == {1})
    monkeypatch.setattr(threads, "cores", lambda: 1)
    whole = three_products(case, dtype)
    cuts = []
    decide = threads.cut
    monkeypatch.setattr(threads, "cut", lambda *args: cuts.append(decide(*args)) or cuts[-1])
    monkeypatch.setattr(threads, "cores", lambda: 3)
    monkeypatch.setattr(threads, "_PIECE", 1)
    monkeypatch.setattr(threads, "_SHARED", 40_000)  # products of pieces are cut up as well
    for got, expected in zip(three_products(case, dtype), whole, strict=True):
        assert_array_equal(got, expected)
    assert max(map(len, cuts)) > 1


def test_results_do_not_depend_on_timing(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 3)
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(16, 16, 32, 32)).astype(np.float32) for _ in range(2))
    params = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    first, *others = [lowering.kernel_sum(x, y, kernel=(3, 3), **params) for _ in range(5)]
    for other in others:
        assert_array_equal(first, other)


@pytest.mark.parametrize("columns", [1, 63, 64, 1000])
def test_small_products_put_together_are_the_product(monkeypatch, columns):
    monkeypatch.setattr(threads, "_SHARED", 40 * 64)
    rng = np.random.default_rng(0)
    a = rng.integers(-9, 10, size=(2, 5, 8)).astype(float)
    b = rng.integers(-9, 10, size=(2, 8, columns)).astype(float)
    c = rng.integers(-9, 10, size=(2, 3, columns)).astype(float)
    out = np.empty((2, 5, columns))

    def products(_):
        threads.matmul(a, b, out)
        return threads.matmul_long(out, c)

    (long, _) = threads.run(products, [(0,), (1,)])
    assert_array_equal(out, np.einsum("gij,gjk->gik", a, b))
    assert_array_equal(long, np.einsum("gik,gjk->gij", out, c))


def test_results_come_in_the_order_of_the_pieces():
    assert threads.run(pow, [(2, 3), (3, 2), (5, 2), (7, 1)]) == [8, 9, 25, 7]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_when_all_pieces_have_ended(failing):
    running, lock = [], threading.Lock()

    def task(number):
        with lock:
            running.append(number)
        try:
            if number == failing:
                raise KeyError(number)
        finally:
            with lock:
                running.remove(number)

    with pytest.raises(KeyError, match=str(failing)):
        threads.run(task, [(0,), (1,), (2,)])
    assert running == []


def test_the_error_state_of_numpy_holds_in_all_pieces():
    def overflow(both):
        both.wait(10)  # until the other piece has begun, in another thread
        return np.float32(1e38) * np.float32(1e38)

    both = threading.Barrier(2)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        threads.run(overflow, [(both,), (both,)])
    both = threading.Barrier(2)
    with np.errstate(over="ignore"):
        assert threads.run(overflow, [(both,), (both,)]) == [np.inf, np.inf]


def test_a_piece_is_not_cut_again():
    def count(_):
        return len(threads.cut(100, 1 << 40, 10))

    assert threads.run(count, [(0,), (1,)]) == [1, 1]


def test_all_is_done_here_where_no_thread_can_be_started(monkeypatch):
    class NoPool:
        def submit(self, *args):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", lambda process: NoPool())
    assert threads.run(pow, [(2, 3), (3, 2), (5, 2)]) == [8, 9, 25]


PROGRAM = """
import os, sys, threading
import numpy as np
from funcgrad.rules.nn import lowering, threads

threads.cores = lambda: 2
params = dict(stride=(1, 1), padding=((0, 0),) * 2, dilation=(1, 1), groups=1)

def total(n):
    return np.sum(lowering.correlate(np.ones((n, 8, 20, 20)), np.ones((16, 8, 3, 3)), **params))

assert total(1) == 16 * 18 * 18 * 72
assert threading.active_count() == 1
assert total(64) == 64 * 16 * 18 * 18 * 72
assert threading.active_count() == 2
child = os.fork()
if child == 0:
    os._exit(0 if total(64) == 64 * 16 * 18 * 18 * 72 else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
def test_threads_start_at_the_first_large_convolution_and_again_in_a_fork():
    code = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
