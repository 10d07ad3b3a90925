"""What is asked of the machine."""

from __future__ import annotations

import os

import pytest

from funcgrad.staging import machine


@pytest.fixture(autouse=True)
def asked_anew():
    machine.cache_bytes.cache_clear()
    machine.thread_count.cache_clear()
    yield
    machine.cache_bytes.cache_clear()
    machine.thread_count.cache_clear()


def index(folder, number, level, size, shared):
    made = folder / f"index{number}"
    made.mkdir()
    for name, text in (("level", level), ("size", size), ("shared_cpu_list", shared)):
        (made / name).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("size", "shared", "expected"),
    [
        ("1024K", "0", 1 << 20),
        ("2M", "0", 1 << 21),
        ("2048K", "0-1", 1 << 20),
        ("4M", "0,4-6", 1 << 20),
    ],
)
def test_the_cache_of_a_core_is_read(tmp_path, monkeypatch, size, shared, expected):
    index(tmp_path, 0, 1, "48K", "0")
    index(tmp_path, 1, 2, size, shared)
    index(tmp_path, 2, 3, "32768K", "0-7")
    monkeypatch.setattr(machine, "_CACHES", tmp_path)
    assert machine.cache_bytes() == expected


def test_where_nobody_says_it_is_a_megabyte(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_CACHES", tmp_path / "none")
    monkeypatch.setattr(machine, "_from_posix", lambda: None)
    assert machine.cache_bytes() == 1 << 20


@pytest.mark.parametrize(
    ("given", "expected"), [("1", 1), ("3", 3), ("100", 4), ("2,4", 2), ("", 4), ("no", 4)]
)
def test_threads_are_as_many_as_wanted_and_at_most_four(monkeypatch, given, expected):
    monkeypatch.setattr(machine, "_processors", lambda: 16)
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert machine.thread_count() == expected


def test_threads_are_no_more_than_processors(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert machine.thread_count() == min(allowed, 4)
