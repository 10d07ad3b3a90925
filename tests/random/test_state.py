"""No state, threads, import."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from funcgrad import random
from funcgrad.random import stream

KEY = random.key(2024)


def fresh(number: int) -> random.Key:
    return random.fold_in(KEY, number)


def test_no_state_passes_from_one_call_to_the_next() -> None:
    state: Any = np.random.get_state()  # noqa: NPY002  # NumPy's global state, untouched
    expected = [fresh(i).normal(100) for i in range(20)]
    random.bits(fresh(99), 3)  # leaves a half-used block
    for i in reversed(range(20)):
        fresh(i).randint((), 0, 2**31, np.int32)
        assert_array_equal(fresh(i).normal(100), expected[i])
    after: Any = np.random.get_state()  # noqa: NPY002
    assert_array_equal(after[1], state[1])


def test_threads_draw_the_same_numbers() -> None:
    expected = [fresh(i).normal(500) for i in range(40)]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(5):
            for i in range(40):
                if not np.array_equal(fresh(i).normal(500), expected[i]):
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_draw_in_the_middle_of_a_draw_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal handler or finalizer may draw between setting the state and taking the words."""

    class Interrupted:
        def __init__(self) -> None:
            self.inner = np.random.Philox(key=0)

        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)
            if name == "state":
                self.inner.state = value
                random.key(0).bits(3)

        def random_raw(self, count: int) -> Any:
            return self.inner.random_raw(count)

    expected = fresh(1).bits(5)
    key = fresh(1)
    monkeypatch.setattr(stream, "_idle", [np.random.Philox(key=0), Interrupted()])
    assert_array_equal(key.bits(5), expected)
    assert len(stream._idle) == 2  # both are back


def test_importing_does_not_load_numpy_random() -> None:
    """NumPy loads it on first use, which costs a fifth of `import numpy`."""
    program = (
        "import sys, numpy\n"
        "before = 'numpy.random' in sys.modules\n"
        "import funcgrad.random\n"
        "assert before == ('numpy.random' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
