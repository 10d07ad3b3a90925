"""The laws of `as_source`, checked on samples of every primitive: the source stands alone.

It runs where the package cannot be imported, and gives what the function gives, to the last bit.
"""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from cases import CASES, SMOOTH
from recorded import called, first_of_each, pulled_at

from funcgrad import jit, tree
from funcgrad.errors import ShapeError, TracerValueError

# Runs the sources of a file without the package; prints the names of those that differ.
RUNNER = """
import pickle, sys
import numpy as np

sys.modules["funcgrad"] = None
np.seterr(all="ignore")


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(
        a, b, equal_nan=a.dtype.kind in "fc"
    )


for name, text, values, wanted in pickle.load(open(sys.argv[1], "rb")):
    try:
        module = {}
        exec(compile(text, name, "exec"), module)
        found = module["fun"](*values)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
        continue
    if len(found) != len(wanted) or not all(map(same, found, wanted)):
        print(f"{name}: another value")
"""
# These call a function of the user's, which has no source that could be taken along.
CALLS_BACK = {"scipy.integrate.odeint", "scipy.integrate.quad", "scipy.opaque", "scipy.twin"}


def sources(cases, make):
    """Yield the name of each case, its source, the values of its parameters, and the result."""
    for case in cases:
        try:
            lowered = jit(make(case)).lower(*case.values)
        except (ShapeError, TracerValueError):
            continue  # which elements there are depends on the values
        text = lowered.as_source()
        if case.name in CALLS_BACK and "cannot have in itself" in text:
            continue
        leaves = tree.leaves(lowered.compile()(*case.values))
        yield repr(case), text, list(case.values), leaves


@pytest.fixture(
    scope="module",
    params=[(first_of_each(CASES, 3), called), (first_of_each(SMOOTH, 1), pulled_at)],
    ids=["values", "pullbacks"],
)
def written(request):
    with np.errstate(all="ignore"):
        return list(sources(*request.param))


def test_sources_run_without_the_package_and_give_the_same(written, tmp_path):
    path = tmp_path / "sources.pickle"
    path.write_bytes(pickle.dumps(written))
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == ""
    assert len(written) > 500


def test_sources_do_not_mention_the_package(written):
    mentioned = {name for name, text, _, _ in written if "import funcgrad" in text}
    assert not mentioned
    assert not {name for name, text, _, _ in written if "from funcgrad" in text}
