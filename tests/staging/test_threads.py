"""Threads that go through blocks: each is done once, whoever does it, and nobody waits for long."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from funcgrad.staging.backends import threads
from funcgrad.staging.backends.threads import in_blocks

ENDS = [(i, i + 1) for i in range(64)]


@pytest.fixture(autouse=True)
def three(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "_team", threads._Team())


class Blocks:
    """Takes down which blocks were done, on which thread, and in which memory."""

    def __init__(self):
        self.done = []

    def __call__(self, k, start, stop, *work):
        time.sleep(0.0005)  # others may go on, as in NumPy
        self.done.append((k, start, stop, threading.get_ident(), [id(array) for array in work]))


def test_each_block_is_done_once():
    blocks = Blocks()
    in_blocks(blocks, ENDS)
    assert sorted(entry[:3] for entry in blocks.done) == [(k, *ENDS[k]) for k in range(64)]
    assert len({entry[3] for entry in blocks.done}) == 3


def test_each_thread_has_memory_of_its_own():
    blocks, work = Blocks(), (np.empty(10), np.empty((2, 3), np.float32))
    in_blocks(blocks, ENDS, *work)
    found = {(entry[3], tuple(entry[4])) for entry in blocks.done}
    assert len(found) == 3
    own = dict(found)
    assert own[threading.get_ident()] == tuple(map(id, work))
    assert len(set(own.values())) == 3


def test_one_thread_does_them_in_order(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    blocks = Blocks()
    in_blocks(blocks, ENDS)
    assert [entry[0] for entry in blocks.done] == list(range(64))
    assert {entry[3] for entry in blocks.done} == {threading.get_ident()}


@pytest.mark.parametrize("failing", [0, 1, 40, 63])
def test_errors_come_to_the_caller(failing):
    def piece(k, start, stop):
        time.sleep(0.0005)
        if k == failing:
            raise ZeroDivisionError(k)

    with pytest.raises(ZeroDivisionError, match=str(failing)):
        in_blocks(piece, ENDS)
    blocks = Blocks()
    in_blocks(blocks, ENDS)
    assert len(blocks.done) == 64


def test_an_interrupt_comes_to_the_caller_when_nobody_writes_any_more():
    running, own = set(), threading.get_ident()

    def piece(k, start, stop):
        running.add(k)
        time.sleep(0.002)
        running.discard(k)
        if threading.get_ident() == own:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_blocks(piece, ENDS)
    assert not running


def test_errors_leave_out_what_nobody_has_begun():
    done = []

    def piece(k, start, stop):
        time.sleep(0.0005)
        done.append(k)
        if k == 5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_blocks(piece, ENDS)
    assert len(done) < 30


def test_blocks_within_blocks_are_done():
    inner = Blocks()

    def piece(k, start, stop):
        in_blocks(inner, ENDS[:4])

    in_blocks(piece, ENDS[:8])
    assert len(inner.done) == 32


def test_calls_at_once_are_done_each():
    many = [Blocks() for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda blocks: in_blocks(blocks, ENDS), many))
    assert all(len(blocks.done) == 64 for blocks in many)
    # Whoever finds the threads busy does all by itself; no others are started.
    assert len(threads._team._members) == 2


def test_other_threads_warn_as_little_as_programs_do():
    zeros, names = np.zeros(4), set()

    def piece(k, start, stop):
        time.sleep(0.0005)
        names.add(threading.current_thread().name)
        np.divide(1.0, zeros)

    with np.errstate(all="ignore"), warnings.catch_warnings(action="error"):
        in_blocks(piece, ENDS)
    assert "funcgrad" in names


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own():
    code = """
import os, time
from funcgrad.staging.backends import threads
threads.thread_count = lambda: 3
done = []
def piece(k, start, stop):
    time.sleep(0.001)
    done.append(k)
ends = [(i, i + 1) for i in range(30)]
threads.in_blocks(piece, ends)
threads._team.lock.acquire()  # as if another thread were in the middle of a call
child = os.fork()
if child == 0:
    done.clear()
    threads.in_blocks(piece, ends)
    os._exit(sorted(done) != list(range(30)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "0", done.stderr


def test_no_thread_is_started_before_there_are_blocks():
    code = """
import threading
import numpy as np
import funcgrad as fg
fg.jit(lambda x: np.sin(x) * 2)(np.ones(100))
print(threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "1", done.stderr
