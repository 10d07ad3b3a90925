"""`show_passes`: what `jit` makes of a function, as it is printed."""

from __future__ import annotations

import io

import numpy as np
import pytest

import funcgrad as fg


def fun(x):
    return np.sin(x) * 1 + np.sin(x)


def test_every_pass_that_changes_the_program_is_printed(capsys):
    compiled = fg.jit(fun)
    with fg.debug.show_passes():
        compiled(np.ones(3))
    text = capsys.readouterr().out
    for stage in ("recorded", "identities", "common subexpressions", "memory", "source"):
        assert stage in text
    assert text.index("jit(fun): recorded") < text.index("jit(fun): source")
    assert text.count("def fun(") == 1


def test_passes_can_be_chosen(capsys):
    with fg.debug.show_passes("identities", "source"):
        fg.jit(fun)(np.ones(3))
    heads = [row for row in capsys.readouterr().out.splitlines() if row.startswith("-- ")]
    assert [head.split()[-1] for head in heads] == ["identities", "source"]


def test_they_can_be_printed_elsewhere(capsys):
    file = io.StringIO()
    with fg.debug.show_passes(file=file):
        fg.jit(fun)(np.ones(3))
    assert "def fun(" in file.getvalue()
    assert capsys.readouterr().out == ""


def test_both_programs_of_a_gradient_are_printed(capsys):
    slope = fg.grad(fg.jit(lambda x: np.sum(np.sin(x))))
    with fg.debug.show_passes("source"):
        slope(np.ones(3))
    assert capsys.readouterr().out.count(": source") == 2


def test_it_is_over_after_the_block(capsys):
    with fg.debug.show_passes():
        pass
    fg.jit(fun)(np.ones(3))
    assert capsys.readouterr().out == ""


def test_it_is_a_decorator(capsys):
    @fg.debug.show_passes("source")
    def run():
        return fg.jit(fun)(np.ones(3))

    run()
    assert "def fun(" in capsys.readouterr().out


def test_what_is_compiled_already_is_not_shown_again(capsys):
    compiled = fg.jit(fun)
    compiled(np.ones(3))
    with fg.debug.show_passes():
        compiled(np.ones(3))
        assert capsys.readouterr().out == ""
        compiled.clear_cache()
        compiled(np.ones(3))
    assert capsys.readouterr().out


@pytest.mark.parametrize("size", [3, 300_000])
def test_stages_end_with_memory_and_source(size):
    stages = fg.jit(lambda x: np.tanh(x) * 2 + np.exp(x)).lower(np.ones(size)).stages()
    assert list(stages)[-2:] == ["memory", "source"]
    assert stages["source"].startswith("def _lambda(")
    assert "memory that is kept:" in stages["memory"]


def test_stages_show_what_is_done_in_blocks():
    stages = fg.jit(lambda x: np.tanh(x) * 2 + np.exp(x)).lower(np.ones(300_000)).stages()
    (blocks,) = [text for name, text in stages.items() if name.endswith("blocks")]
    assert "elements=" in blocks
    assert "tanh(x)" in blocks
