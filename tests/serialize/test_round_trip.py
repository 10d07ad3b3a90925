"""``fg.save`` and ``fg.load``: what goes in comes out, of the same type and to the last bit."""

import math
import subprocess
import sys
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad import random, tree
from funcgrad.serialize import load, save

ROOT = Path(fg.__file__).parent.parent


class State(NamedTuple):
    count: int
    mu: dict


class Pair:
    """A registered class that does not name its children."""

    def __init__(self, *children):
        self.children = children


tree.register(Pair, lambda pair: (pair.children, None), lambda aux, children: Pair(*children))


class Twins(Pair):
    """A registered class whose children have one name."""


tree.register(
    Twins,
    lambda pair: (pair.children, None),
    lambda aux, children: Twins(*children),
    lambda pair: ([("twin", child) for child in pair.children], None),
)


@fg.pytree
class Linear:
    weight: np.ndarray
    bias: np.ndarray | None
    name: str = fg.static(default="linear")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.npz"


def there_and_back(value, path, **options):
    save(path, value)
    return load(path, **options)


def assert_same(got, want):
    """Equal in type, all the way down; arrays in dtype, shape and values, too."""
    assert type(got) is type(want)
    if isinstance(want, (np.ndarray, np.generic)):
        assert got.dtype == want.dtype
        assert_array_equal(got, want)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        assert [type(key) for key in got] == [type(key) for key in want]
        for key in want:
            assert_same(got[key], want[key])
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
    elif isinstance(want, (float, complex)):
        assert repr(got) == repr(want)  # nan and -0.0 as well
    else:
        assert got == want


# What comes back

ARRAYS = {
    "float64": np.array([1.5, -0.0, np.inf, np.nan]),
    "float32": np.ones((2, 3), np.float32),
    "float16": np.array([0.5, 6e-8], np.float16),
    "longdouble": np.array([1.0], np.longdouble) / 3,
    "complex128": np.array([1 + 2j, -3.5j]),
    "complex64": np.array([1 + 2j], np.complex64),
    "bool": np.array([True, False]),
    "int8": np.array([-128, 127], np.int8),
    "uint64": np.array([2**64 - 1], np.uint64),
    "big-endian": np.array([1.0, 2.0], ">f4"),
    "datetime64": np.array(["2024-02-29", "NaT"], "M8[D]"),
    "timedelta64": np.array([3], "m8[ms]"),
    "str": np.array([["a", "\u00e9\U0001f600"]]),
    "bytes": np.array([b"ab", b"c"]),
    "structured": np.array([(1, 2.5)], [("n", "i4"), ("x", "f8")]),
    "padded": np.array([(1, 2.5)], np.dtype([("n", "i1"), ("x", "f8")], align=True)),
    "0-d": np.array(3.5),
    "0-d int": np.array(1),
    "empty": np.zeros((0, 4), np.float32),
    "empty in the middle": np.zeros((2, 0, 3), order="F"),
    "empty dates": np.zeros(0, "M8[s]"),
    "size-1 axes": np.ones((1, 3, 1)),
}
BASE = np.arange(24.0).reshape(4, 6)
LAYOUTS = {
    "C": BASE,
    "Fortran": np.asfortranarray(BASE),
    "transposed": BASE.T,
    "strided": BASE[::2, ::-3],
    "permuted": np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
    "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    "read-only": np.frombuffer(b"\1\2\3", np.uint8),
}
SCALARS = {
    "int": 4,
    "negative": -7,
    "2**63": 2**63,
    "-(2**70)": -(2**70),
    "int of 20000 bits": 3**12619,
    "float": 0.1,
    "whole float": 5.0,
    "1e300": 1e300,
    "-0.0": -0.0,
    "nan": math.nan,
    "-inf": -math.inf,
    "complex": complex(-0.0, math.nan),
    "True": True,
    "str": "text",
    "empty str": "",
    "unusual str": "\0\u00e9\U0001f600\ud800'\"\\",
    "bytes": b"\x00\xff",
    "float32": np.float32(2.5),
    "float64": np.float64(2.5),
    "complex64": np.complex64(1 - 1j),
    "int8": np.int8(-3),
    "bool_": np.True_,
    "str_": np.str_("text"),
    "datetime64": np.datetime64("2024-02-29"),
}
TREES = {
    "dict in its own order": {"b": 1, "a": {"z": 2, "y": 3}},
    "keys of all kinds": {1: 1, True + 1: 2, "1": 3, 2.5: 4, None: 5, (1, ("a", b"b")): 6, 1j: 7},
    "keys of unusual text": {"a/b": 1, "a\\b": np.ones(2), "..": np.zeros(1), "\u00e9'\n": 4},
    "lists and tuples": [1, (2, [3]), ((), [], {}), (np.ones(2),)],
    "None": {"a": np.arange(3), "b": None, "c": [None, np.ones(2)]},
    "OrderedDict": OrderedDict(b=1, a=np.ones(2)),
    "defaultdict": defaultdict(list, b=1, a=[2]),
    "named tuple": State(3, {"w": np.ones(2)}),
    "named tuple without fields": [fg.optim.EmptyState(), 1],
    "None alone": None,
    "array alone": np.arange(3),
    "number alone": 2.5,
    "name of the entry that is ours": {"__funcgrad__": np.ones(2)},
    "path in a key": {"a": {"b": np.ones(1)}, "a']['b": np.zeros(1)},
    "long key": {"k" * 3000: np.ones(2), "k" * 3000 + "l": np.zeros(2)},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array_comes_back(name, path):
    assert_same(there_and_back([ARRAYS[name]], path), [ARRAYS[name]])


@pytest.mark.parametrize("name", LAYOUTS)
def test_array_of_any_layout_comes_back(name, path):
    assert_same(there_and_back({"x": LAYOUTS[name]}, path), {"x": LAYOUTS[name]})


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_comes_back_as_what_it_was(name, path):
    assert_same(there_and_back([SCALARS[name], 1], path), [SCALARS[name], 1])


@pytest.mark.parametrize("name", TREES)
def test_tree_comes_back(name, path):
    assert_same(there_and_back(TREES[name], path), TREES[name])


@pytest.mark.parametrize("name", TREES)
def test_tree_comes_back_into_itself(name, path):
    assert_same(there_and_back(TREES[name], path, template=TREES[name]), TREES[name])


def test_fortran_order_is_kept(path):
    out = there_and_back(LAYOUTS["Fortran"], path)
    assert out.flags.f_contiguous
    assert not out.flags.c_contiguous


def test_arrays_are_writable_and_their_own(path):
    out = there_and_back({"x": LAYOUTS["read-only"]}, path)["x"]
    out += 1
    assert_array_equal(out, [2, 3, 4])


def test_arrays_of_megabytes_come_back(path):
    x = np.random.default_rng(0).normal(size=(3, 100_003))
    assert_array_equal(there_and_back(x, path), x)


def test_array_in_a_mapped_file_comes_back(path, tmp_path):
    mapped = np.memmap(tmp_path / "raw", np.float32, "w+", shape=(3,))
    mapped[:] = [1, 2, 3]
    assert_same(there_and_back(mapped, path), np.array([1, 2, 3], np.float32))


def test_key_draws_the_same_numbers(path):
    out = there_and_back({"key": random.key(7)}, path)["key"]
    assert isinstance(out, random.Key)
    assert random.normal(out) == random.normal(random.key(7))


def test_array_of_keys_comes_back(path):
    keys = random.split(random.key(0), (2, 3))
    out = there_and_back(keys, path)
    assert out.shape == (2, 3)
    assert out == keys


def test_default_factory_works_again(path):
    assert there_and_back(defaultdict(list, a=1), path)["new"] == []


def test_keys_of_one_value_and_two_types_stay_apart(path):
    assert_same(there_and_back({True: np.ones(1)}, path), {True: np.ones(1)})


def test_registered_class_comes_back_by_template(path):
    model = {"layer": Linear(np.ones((2, 3)), None, "first")}
    template = {"layer": Linear(np.zeros((2, 3)), None, "first")}
    out = there_and_back(model, path, template=template)["layer"]
    assert_array_equal(out.weight, np.ones((2, 3)))
    assert (out.bias, out.name) == (None, "first")


def test_children_of_one_name_come_back_by_like(path):
    out = there_and_back(
        Twins(np.ones(1), np.zeros(1)), path, template=Twins(np.zeros(1), np.ones(1))
    )
    assert_same(out.children, (np.ones(1), np.zeros(1)))


def test_state_of_an_optimizer_comes_back(path):
    params = {"w": np.ones(3), "b": 0.5}
    optimizer = fg.optim.adam(1e-2)
    grads = {"w": np.arange(3.0), "b": 1.0}
    _, state = optimizer.update(grads, optimizer.init(params), params)
    out = there_and_back(state, path)
    assert tree.structure(out) == tree.structure(state)
    want, _ = optimizer.update(grads, state, params)
    assert_same(optimizer.update(grads, out, params)[0], want)


def test_state_of_an_optimizer_is_found_in_a_new_process(path):
    save(path, fg.optim.adam(1e-2).init({"w": np.ones(3)}))
    code = "import sys; from funcgrad.serialize import load; print(load(sys.argv[1])[0].count)"
    done = subprocess.run(
        [sys.executable, "-c", code, path], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == "0"
