"""Every name that users of jax.nn and Equinox would look for is there."""

from pathlib import Path

import pytest

import funcgrad as fg

LIST = Path(__file__).parent.parent / "names" / "nn.txt"


def names():
    """Yield (the module that should have it, name)."""
    module = None
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            module = fg.nn.functional if "functional" in line else fg.nn
        elif line.startswith("initializers."):
            yield fg.nn.initializers, line.removeprefix("initializers.")
        elif line:
            yield module, line


def test_the_list_is_read():
    assert len(list(names())) == 97


@pytest.mark.parametrize(("module", "name"), list(names()))
def test_the_name_is_public(module, name):
    assert name in module.__all__
    assert getattr(module, name).__doc__
