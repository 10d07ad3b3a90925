"""`python -m funcgrad`: what it prints, in a process of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import __main__ as command


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "funcgrad", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_the_report_has_the_versions():
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"funcgrad {fg.__version__}"
    assert lines[1].startswith(f"Python {sys.version.split()[0]}, ")
    assert lines[2].startswith(f"NumPy {np.__version__}, with ")


def test_other_arguments_show_the_usage():
    done = run("--colour")
    assert done.returncode == 2
    assert "usage: python -m funcgrad" in done.stderr


def test_the_threads_are_those_of_the_first_variable_that_is_set():
    environment = {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"}
    assert command.blas_threads("scipy-openblas", environment, 8) == "1, by OPENBLAS_NUM_THREADS"
    assert command.blas_threads("mkl-sdl", environment, 8) == "3, by OMP_NUM_THREADS"


def test_without_a_variable_the_threads_are_the_processors():
    assert command.blas_threads("accelerate", {}, 8).startswith("8, all processors")


def test_the_threads_of_a_blas_that_is_not_known_are_not_guessed():
    assert command.blas_threads("reference", {}, 8) == "unknown"


def test_a_package_that_is_missing_comes_with_the_command(monkeypatch):
    monkeypatch.setitem(command.OPTIONAL, "no-such-package", ("plot", "nothing"))
    *_, last = command.optional_parts()
    assert 'not found: pip install "funcgrad[plot]"' in last


def test_a_package_that_is_there_comes_with_its_version(monkeypatch):
    monkeypatch.setattr(command, "OPTIONAL", {"numpy": ("scipy", "arrays")})
    assert next(command.optional_parts()).split() == ["numpy:", np.__version__, "(arrays)"]


@pytest.mark.parametrize("config", [{}, {"Build Dependencies": {"blas": {"version": "unknown"}}}])
def test_a_blas_without_a_name_is_called_unknown(config):
    assert command.blas(config) == "an unknown BLAS"
