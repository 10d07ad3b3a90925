"""The thread of `prefetch`: when it starts, that it ends, and what it hands over."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest

from funcgrad.data import DataLoader, Dataset


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "funcgrad-prefetch"]


def wait_for_threads(count):
    """Give threads that have been told to end a moment to do so."""
    deadline = time.monotonic() + 10.0
    while len(threads()) != count and time.monotonic() < deadline:
        time.sleep(0.001)
    return len(threads()) == count


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    assert not threads()
    yield
    assert wait_for_threads(0)


def numbers(n=100, prefetch=2):
    return Dataset.from_arrays(np.arange(n)).prefetch(prefetch)


def test_items_are_the_same_in_the_same_order():
    assert [int(i) for i in numbers()] == list(range(100))


def test_no_thread_before_the_first_item():
    items = numbers().iterate()
    assert not threads()
    next(items)
    assert len(threads()) == 1
    items.close()


def test_thread_ends_with_the_pass():
    items = numbers(3).iterate()
    list(items)
    assert not threads()
    assert list(items) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_pass_goes_on_in_a_forked_process():
    items = numbers(20).map(lambda i: i + 0).prefetch(2).iterate()
    first = [int(next(items)) for _ in range(5)]
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(30)  # a thread that is not there is never waited for
            os.write(writing, bytes(int(i) for i in items))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        there = list(pipe.read())
    os.waitpid(child, 0)
    here = [int(i) for i in items]
    assert first == list(range(5))
    assert there == here == list(range(5, 20))


def test_thread_ends_when_closed():
    with numbers().iterate() as items:
        next(items)
    assert not threads()
    assert list(items) == []


def test_thread_ends_when_the_iterator_is_forgotten():
    items = numbers().iterate()
    next(items)
    del items
    gc.collect()
    assert wait_for_threads(0)


def test_thread_ends_when_the_loop_is_left():
    for item in numbers():
        if item == 3:
            break
    gc.collect()
    assert wait_for_threads(0)


def test_threads_of_all_steps_end():
    data = numbers().map(lambda i: i + 1).prefetch(2).batch(3).prefetch(1)
    with data.iterate() as items:
        assert next(items).tolist() == [1, 2, 3]
        assert len(threads()) == 3
    assert wait_for_threads(0)


def test_close_before_the_first_item():
    items = numbers().iterate()
    items.close()
    assert list(items) == []


def test_no_more_is_made_ahead_than_asked_for():
    made = []
    items = Dataset.from_arrays(np.arange(50)).map(made.append).prefetch(3).iterate()
    next(items)
    deadline = time.monotonic() + 10.0
    while len(made) < 5 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.02)
    assert len(made) == 5  # one used, three waiting, one that waits for room
    items.close()


def test_items_are_made_in_another_thread_while_one_is_used():
    names = []
    data = Dataset.from_arrays(np.arange(3)).map(lambda i: names.append(threading.current_thread()))
    list(data.prefetch(1))
    assert {thread.name for thread in names} == {"funcgrad-prefetch"}


def test_exception_comes_out_with_its_traceback():
    def broken_step(i):
        if i == 2:
            raise ValueError("item two")
        return i

    items = Dataset.from_arrays(np.arange(5)).map(broken_step).prefetch(4).iterate()
    assert [int(next(items)), int(next(items))] == [0, 1]
    with pytest.raises(ValueError, match="item two") as caught:
        next(items)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "broken_step" in names
    assert names[0] == "test_exception_comes_out_with_its_traceback"
    assert not threads()
    items.close()


def test_settings_of_the_context_hold_in_the_thread():
    data = Dataset.from_arrays(np.arange(2.0)).map(lambda x: np.float64(1.0) / x).prefetch(1)
    with np.errstate(divide="ignore"):
        assert [float(x) for x in data] == [np.inf, 1.0]
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        list(data)


def test_many_passes_leave_no_threads():
    loader = DataLoader(np.arange(40), 4, prefetch=2)
    for _ in range(20):
        with loader.iterate() as batches:
            next(batches)
        list(loader.iterate())
    assert not threads()


def test_prefetch_of_nothing_is_no_thread():
    items = numbers(prefetch=0).iterate()
    next(items)
    assert not threads()


def test_program_ends_while_a_thread_waits():
    program = """
import numpy as np, funcgrad as fg
items = fg.data.Dataset.from_arrays(np.arange(1000)).batch(2).prefetch(2).iterate()
next(items)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
