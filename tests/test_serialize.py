"""``fg.save`` and ``fg.load``: what goes in comes out, and what cannot is refused by its path."""

import io
import json
import math
import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict, defaultdict, namedtuple
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad import random, tree
from funcgrad.errors import (
    ArgumentError,
    DeepTreeError,
    DtypeError,
    TracerConversionError,
    TreeMismatchError,
)
from funcgrad.serialize import FileFormatError, load, save

ROOT = Path(fg.__file__).parent.parent


class State(NamedTuple):
    count: int
    mu: dict


@fg.pytree
class Linear:
    weight: np.ndarray
    bias: np.ndarray | None
    name: str = fg.static(default="linear")


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


def test_registered_class_comes_back_by_like(path):
    model = {"layer": Linear(np.ones((2, 3)), None, "first")}
    like = {"layer": Linear(np.zeros((2, 3)), None, "second")}
    out = there_and_back(model, path, template=like)["layer"]
    assert_array_equal(out.weight, np.ones((2, 3)))
    assert (out.bias, out.name) == (None, "second")


def test_children_of_one_name_come_back_by_like(path):
    out = there_and_back(Twins(np.ones(1), np.zeros(1)), path, template=Twins(np.zeros(1), np.ones(1)))
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


# Into a tree that is given


@pytest.mark.parametrize(
    ("saved", "like"),
    [
        (2.5, np.float64(0)),
        (2.5, np.array(0.0)),
        (np.float64(2.5), 0.0),
        (np.array(2.5), 0.0),
        (np.array(2.5), np.float64(0)),
        (3, np.int64(0)),
        (np.int64(3), 0),
        (np.bool_(1), False),
        (np.array([2.5], ">f8"), np.zeros(1)),
        (2**70, 1),
    ],
    ids=lambda value: f"{type(value).__name__} {value}",
)
def test_number_is_of_the_kind_that_like_has(saved, like, path):
    out = there_and_back({"x": saved}, path, template={"x": like})["x"]
    assert type(out) is type(like)
    assert getattr(out, "dtype", None) == getattr(like, "dtype", None)
    assert out == saved


def test_containers_are_those_of_like(path):
    out = there_and_back({"a": [1, 2]}, path, template=OrderedDict(a=(0, 0)))
    assert_same(out, OrderedDict(a=(1, 2)))


def test_order_of_keys_is_that_of_like(path):
    out = there_and_back({"a": 1, "b": 2}, path, template={"b": 0, "a": 0})
    assert_same(out, {"b": 2, "a": 1})


def test_like_is_left_as_it_was(path):
    like = {"x": np.zeros(2)}
    there_and_back({"x": np.ones(2)}, path, template=like)
    assert_array_equal(like["x"], [0, 0])


SAVED = {"w": np.ones((2, 3)), "b": np.zeros(3), "n": 4}


@pytest.mark.parametrize(
    ("like", "words"),
    [
        ({"w": np.ones((2, 3)), "b": np.zeros(3)}, "only in the file: ['n']"),
        (SAVED | {"more": 1.0}, "missing from the file: ['more']"),
        (SAVED | {"w": np.ones((3, 2))}, "['w'] is float64[2,3] in the file, float64[3,2] in template"),
        (SAVED | {"b": np.zeros(3, "f4")}, "['b'] is float64[3] in the file, float32[3] in template"),
        (SAVED | {"n": 4.0}, "['n'] is a Python int in the file, a Python float in template"),
        (SAVED | {"n": "4"}, "['n'] is a Python int in the file, a Python str in template"),
        (SAVED | {"n": True}, "['n'] is a Python int in the file, a Python bool in template"),
        (SAVED | {"n": np.zeros(1, int)}, "['n'] is a Python int in the file, int64[1] in template"),
        (SAVED | {"n": None}, "only in the file: ['n']"),
        (SAVED | {"n": random.key(0)}, "['n'] is a Python int in the file, Key[] in template"),
        (np.ones(2), "missing from the file: the root; only in the file: ['w'], ['b'], ['n']"),
    ],
)
def test_difference_is_named_by_its_path(like, words, path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError) as caught:
        load(path, template=like)
    assert words in caught.value.where
    assert "test_serialize.py:" in caught.value.where


def test_all_differences_are_named_at_once(path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError) as caught:
        load(path, template={"w": np.ones(2), "c": 0})
    for words in ("missing from the file: ['c']", "only in the file: ['b'], ['n']", "different: "):
        assert words in caught.value.where


def test_many_differences_are_cut_short(path):
    save(path, [])
    with pytest.raises(TreeMismatchError, match=r"\[5\] and 94 more"):
        load(path, template=list(range(100)))


def test_misspelt_name_is_guessed(path):
    save(path, {"weight": 1.0, "bias": 2.0})
    with pytest.raises(TreeMismatchError, match=r"rename in template \['wieght'\] to \['weight'\]"):
        load(path, template={"wieght": 1.0, "bias": 2.0})


def test_name_that_is_unlike_is_no_guess(path):
    save(path, [{"c": 1.0}, {"weight": 2.0}])
    with pytest.raises(TreeMismatchError, match="strict=False keeps what is missing"):
        load(path, template=[{"b": 1.0, "weight": 2.0}, {}])


def test_shape_and_dtype_are_enough_of_a_leaf(path):
    like = {"w": fg.ShapeDtypeStruct((2,), np.float64)}
    assert_same(there_and_back({"w": np.ones(2)}, path, template=like), {"w": np.ones(2)})


def test_number_of_keys_counts(path):
    save(path, random.split(random.key(0), 3))
    with pytest.raises(TreeMismatchError, match=r"Key\[3\] in the file, Key\[2\] in template"):
        load(path, template=random.split(random.key(0), 2))


def test_not_strict_keeps_the_missing_and_drops_the_rest(path):
    save(path, SAVED)
    out = load(path, template={"n": 0, "head": np.full(2, 7.0)}, strict=False)
    assert_same(out, {"n": 4, "head": np.full(2, 7.0)})


def test_not_strict_still_compares_shapes(path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError, match="different"):
        load(path, template={"w": np.ones(2)}, strict=False)


def test_not_strict_needs_something_to_load(path):
    save(path, SAVED)
    with pytest.raises(TreeMismatchError, match="missing"):
        load(path, template={"v": np.ones(2)}, strict=False)


def test_registered_class_needs_like(path):
    save(path, {"model": [Linear(np.ones(2), None)]})
    with pytest.raises(ArgumentError, match="instance of Linear") as caught:
        load(path)
    assert "['model'][0]" in caught.value.where
    assert "template=" in caught.value.fix


def test_default_factory_of_the_users_needs_like(path):
    value = defaultdict(lambda: 3, a=1)
    save(path, value)
    with pytest.raises(ArgumentError, match="defaultdict"):
        load(path)
    assert load(path, template=value)["b"] == 3


def test_unknown_named_tuple_is_an_error(path):
    local = namedtuple("Local", "x y")
    save(path, {"s": local(1, 2)})
    with pytest.raises(ArgumentError, match="does not know the named tuple") as caught:
        load(path)
    assert "['s'] is a" in caught.value.where


def test_unknown_named_tuple_is_made_up_unless_strict(path):
    local = namedtuple("Local", "x y")
    out = there_and_back(local(1, 2), path, strict=False)
    assert (type(out).__name__, out.x, out.y) == ("Local", 1, 2)


def test_named_tuple_with_other_fields_is_an_error(path, monkeypatch):
    save(path, State(1, {}))
    monkeypatch.setattr(sys.modules[__name__], "State", namedtuple("State", "count nu"))
    with pytest.raises(TreeMismatchError, match=r"has count, mu; .*State has count, nu"):
        load(path)


# The file


def test_numpy_reads_the_arrays_by_their_paths(path):
    save(path, {"layers": [Linear(np.ones(2), np.zeros(1))], "step": np.int64(3)})
    with np.load(path, allow_pickle=False) as file:
        names = {"['layers'][0].weight", "['layers'][0].bias", "['step']", "__funcgrad__"}
        assert set(file.files) == names
        assert_array_equal(file["['layers'][0].weight"], [1, 1])
        assert file["['step']"] == 3


def test_structure_is_json(path):
    save(path, {"a": [1, None, "x"], "b": np.ones(2), "c": State(2, {})})
    with np.load(path) as file:
        about = json.loads(file["__funcgrad__"].item())
    assert (about["format"], about["version"]) == ("funcgrad", 1)
    pairs = dict(about["tree"]["dict"])
    assert pairs["a"] == [1, None, "x"]
    assert pairs["b"] == {"array": "['b']"}
    assert pairs["c"]["fields"] == {"count": 2, "mu": {"dict": []}}


def test_equal_trees_give_equal_files(tmp_path):
    for name in "ab":
        save(tmp_path / name, {"x": np.arange(3), "y": [1, 2]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("kind", [str, Path])
def test_name_of_the_file_is_taken_as_it_is(kind, tmp_path):
    save(kind(tmp_path / "ckpt.bin"), 1)
    assert os.listdir(tmp_path) == ["ckpt.bin"]
    assert load(kind(tmp_path / "ckpt.bin")) == 1


def test_file_has_the_mode_of_any_new_file(path, tmp_path):
    save(path, 1)
    (tmp_path / "other").write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes there")
def test_file_that_is_replaced_keeps_its_mode(path):
    save(path, 1)
    path.chmod(0o640)
    save(path, 2)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_folder_is_not_replaced(tmp_path):
    with pytest.raises(FileExistsError, match="is no file"):
        save(tmp_path, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names there")
def test_what_is_no_file_is_not_replaced(path):
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="is no file"):
        save(path, 1)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_name_of_the_file_may_be_as_long_as_any(tmp_path):
    save(tmp_path / ("n" * 255), 1)
    assert load(tmp_path / ("n" * 255)) == 1


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_link_stays_a_link(path, tmp_path):
    path.symlink_to(tmp_path / "target")
    save(path, 1)
    assert path.is_symlink()
    assert load(tmp_path / "target") == 1


@pytest.mark.parametrize(
    "place", ["np.lib.format.write_array_header_1_0", "os.fsync", "os.replace"]
)
def test_failure_leaves_the_old_file_and_nothing_else(place, path, tmp_path, monkeypatch):
    save(path, {"x": np.ones(2)})

    def fail(*args, **kwargs):
        raise OSError("no space left")

    module, _, name = place.rpartition(".")
    monkeypatch.setattr(np.lib.format if module.startswith("np") else os, name, fail)
    with pytest.raises(OSError, match="no space left"):
        save(path, {"x": np.zeros(2)})
    monkeypatch.undo()
    assert os.listdir(tmp_path) == [path.name]
    assert_array_equal(load(path)["x"], [1, 1])


SAVING = """
import sys
import numpy as np
from funcgrad.serialize import save
for i in range(10**6):
    save(sys.argv[1], {"x": np.full(100_000, i), "i": i})
    print(i, flush=True)
"""


def test_file_is_whole_when_its_writer_is_killed(path):
    for saves in (1, 2, 5, 9):
        with subprocess.Popen(
            [sys.executable, "-c", SAVING, path], stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as writer:
            for _ in range(saves):
                last = int(writer.stdout.readline())
            time.sleep(0.0003 * saves)  # into the middle of the next one
            writer.kill()
        out = load(path)
        assert out["i"] >= last
        assert_array_equal(out["x"], np.full(100_000, out["i"]))


def test_refused_leaf_leaves_the_old_file(path, tmp_path):
    save(path, 1)
    with pytest.raises(ArgumentError):
        save(path, [np.ones(2), object()])
    assert load(path) == 1
    assert os.listdir(tmp_path) == [path.name]


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save(tmp_path / "nowhere" / "x.npz", 1)


def test_missing_file_is_a_file_not_found_error(path):
    with pytest.raises(FileNotFoundError, match="tree"):
        load(path)


def test_another_process_reads_it(path):
    save(path, SAVED)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert_same(pool.apply(load, (path,)), SAVED)


def test_what_is_loaded_pickles(path):
    out = there_and_back(State(1, {"k": random.key(3)}), path)
    assert pickle.loads(pickle.dumps(out)) == State(1, {"k": random.key(3)})


# What cannot be saved


class Colour(Enum):
    RED = 1


class Words(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("leaf", "error", "words"),
    [
        (np.array([1, None]), DtypeError, "an array of Python objects cannot be saved"),
        (np.array([(1, None)], [("a", int), ("b", object)]), DtypeError, "cannot be saved"),
        (np.array(["a"], np.dtypes.StringDType()), DtypeError, "cannot be saved"),
        (np.ma.array([1, 2], mask=[0, 1]), ArgumentError, "a leaf of type MaskedArray"),
        (np.tanh, ArgumentError, "a leaf of type ufunc"),
        (len, ArgumentError, "a leaf of type builtin_function_or_method"),
        (Colour.RED, ArgumentError, "a leaf of type Colour"),
        (Words("a"), ArgumentError, "a leaf of type Words"),
        ({1, 2}, ArgumentError, "a leaf of type set"),
        (np.dtype(float), ArgumentError, "a leaf of type"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_leaf_that_no_file_holds_is_named(leaf, error, words, path):
    with pytest.raises(error, match=words) as caught:
        save(path, {"a": [1, leaf]})
    assert caught.value.where.startswith("['a'][1]")
    assert "test_serialize.py:" in caught.value.where
    assert not path.exists()


def test_static_field_is_the_advice_for_functions(path):
    with pytest.raises(ArgumentError, match=r"fg\.static\(\)"):
        save(path, {"activation": np.tanh})


def test_key_of_a_dict_that_no_file_holds_is_named(path):
    with pytest.raises(ArgumentError, match="key of type Colour"):
        save(path, {"a": {Colour.RED: 1}})


@pytest.mark.parametrize("transform", [fg.grad, fg.vmap, fg.jacfwd])
def test_traced_value_is_named(transform, path):
    def f(x):
        save(path, {"w": [x]})
        return np.sum(x * x)

    with pytest.raises(TracerConversionError, match="a traced value cannot be saved") as caught:
        transform(f)(np.ones(3))
    assert caught.value.where.startswith("['w'][0] is float64[")
    assert "stop_gradient" in caught.value.fix
    assert not path.exists()


def test_traced_key_is_named(path):
    def f(key):
        save(path, [key])
        return key.normal()

    with pytest.raises(TracerConversionError, match="a traced value cannot be saved"):
        fg.vmap(f)(random.split(random.key(0), 2))


def test_stop_gradient_makes_a_traced_value_savable(path):
    def f(x):
        save(path, fg.stop_gradient({"w": x}))
        return np.sum(x * x)

    fg.grad(f)(np.array([1.0, 2.0]))
    assert_same(load(path), {"w": np.array([1.0, 2.0])})


def test_tree_that_contains_itself_is_named(path):
    value = [1]
    value.append(value)
    with pytest.raises(DeepTreeError, match="contains itself"):
        save(path, value)


def test_tree_that_is_too_deep_is_an_error_of_ours(path):
    value = 1
    for _ in range(sys.getrecursionlimit() // 2):
        value = [value]
    with pytest.raises(DeepTreeError):
        save(path, value)


def test_tree_of_a_hundred_levels_comes_back(path):
    value = np.ones(1)
    for _ in range(100):
        value = {"a": [value]}
    assert tree.structure(there_and_back(value, path)) == tree.structure(value)


@pytest.mark.parametrize("call", [lambda: save({"a": 1}, "x.npz"), lambda: load({"a": 1})])
def test_name_of_the_file_comes_first(call):
    with pytest.raises(ArgumentError, match="takes the name of a file first"):
        call()


# Files of others, and damaged ones


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"weights", "it is no zip archive"),
        (pickle.dumps({"a": 1}), "it is no zip archive"),
        (npz(x=np.ones(2)), "no entry '__funcgrad__'"),
    ],
    ids=["empty", "text", "pickle", "npz"],
)
def test_file_that_is_not_ours(content, words, path):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"was not written by funcgrad\.save") as caught:
        load(path)
    assert words in caught.value.where
    assert "tree.npz" in str(caught.value)


def test_other_npz_files_are_for_numpy(path):
    path.write_bytes(npz(x=np.ones(2)))
    with pytest.raises(FileFormatError, match=r"np\.load"):
        load(path)


def test_every_truncation_is_an_error(path):
    save(path, {"x": np.arange(5), "y": [1.0, "a"]})
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            load(path)


def test_changed_byte_of_data_is_an_error_that_names_the_entry(path):
    save(path, {"x": np.full(50, 7, np.uint8)})
    content = path.read_bytes()
    position = content.index(bytes([7] * 50)) + 20
    path.write_bytes(content[:position] + b"\x08" + content[position + 1 :])
    with pytest.raises(FileFormatError, match=r"tree\.npz is damaged") as caught:
        load(path)
    assert "['x']" in caught.value.where


def test_any_changed_byte_is_an_error_of_ours_or_nothing(path):
    value = {"x": np.arange(3), "e": np.zeros(0), "y": [1.0, "a"]}
    save(path, value)
    content = path.read_bytes()
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 0x55
        path.write_bytes(changed)
        try:
            out = load(path)
        except FileFormatError:
            continue
        assert_same(out, value)  # a date, say, or the mode of a file


def forged(path, about, **members):
    """Write an archive of our format with the given text."""
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"__funcgrad__": np.array(text), **members}.items():
            if isinstance(content, np.ndarray):
                out = io.BytesIO()
                np.save(out, content, allow_pickle=True)
                content = out.getvalue()
            archive.writestr(f"{name}.npy", content)


def ours(node):
    return {"format": "funcgrad", "version": 1, "tree": node}


def test_forged_file_is_read_if_it_is_right(path):
    forged(path, ours([{"array": "x"}, 2]), x=np.ones(2))
    assert_same(load(path), [np.ones(2), 2])


@pytest.mark.parametrize(
    "about",
    [
        b"\xff",
        b"{",
        b"[" * 100_000,
        b"1" * 10_000,
        [],
        {"format": "other", "version": 1, "tree": 1},
        {"format": "funcgrad", "version": "1", "tree": 1},
        {"format": "funcgrad", "version": 1},
        ours({}),
        ours({"array": "y"}),
        ours({"array": 3}),
        ours({"array": "x", "scalar": "x"}),
        ours({"strange": 1}),
        ours({"dict": 3}),
        ours({"dict": [[{"array": "x"}, 1]]}),
        ours({"dict": [[[], 1]]}),
        ours({"tuple": 3}),
        ours({"key": "x"}),
        ours({"int": "zz"}),
        ours({"complex": ["1"]}),
        ours({"bytes": "0"}),
        ours({"float": None}),
        ours({"namedtuple": 3, "fields": {}}),
        ours({"namedtuple": "a:b"}),
        ours({"class": "a:b", "children": 3}),
        ours({"defaultdict": []}),
    ],
    ids=lambda about: repr(about)[:60],
)
@pytest.mark.parametrize("like", [None, {"a": 1}])
def test_forged_structure_is_an_error_of_ours(about, like, path):
    forged(path, about, x=np.ones(2))
    with pytest.raises((FileFormatError, DtypeError, TreeMismatchError)):
        load(path, template=like)


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        np.array([1, None]),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }\n"),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n"),
        header(b"{'descr': '|O', 'fortran_order': False, 'shape': (), }\n"),
        header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n") + bytes(9),
        header(b"{" * 60_000),
        b"\x93NUMPY\x09\x00" + bytes(20),
    ],
    ids=lambda content: repr(content)[-60:],
)
def test_forged_array_is_an_error_of_ours(content, path):
    forged(path, ours([{"array": "x"}]), x=content)
    with pytest.raises(FileFormatError, match="is damaged"):
        load(path)


def test_pickle_in_a_forged_file_is_not_run(path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(path) + " was here",)

    forged(path, ours([{"array": "x"}]), x=np.array([Trap()], object))
    with pytest.raises(FileFormatError):
        load(path)
    assert os.listdir(path.parent) == [path.name]


def test_class_named_by_a_file_is_not_imported(path):
    forged(path, ours({"namedtuple": "turtledemo.chaos:main", "fields": {"x": 1}}))
    with pytest.raises(ArgumentError, match="does not know"):
        load(path)
    assert "turtledemo" not in sys.modules


def test_class_named_by_a_file_is_a_named_tuple_or_nothing(path):
    forged(path, ours({"namedtuple": "subprocess:Popen", "fields": {"args": "true"}}))
    with pytest.raises(ArgumentError, match="does not know"):
        load(path)


@pytest.mark.parametrize("fields", [["x y"], ["class"], ["_x"]])
def test_made_up_fields_are_names(fields, path):
    forged(path, ours({"namedtuple": "a:b", "fields": dict.fromkeys(fields, 1)}))
    with pytest.raises(FileFormatError):
        load(path, strict=False)


def test_newer_format_says_so(path):
    forged(path, {"format": "funcgrad", "version": 2, "tree": 1})
    with pytest.raises(FileFormatError, match=r"newer format: 2.*\n.*\n.*upgrade"):
        load(path)


def test_archive_that_unpacks_to_more_than_its_size_is_refused(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__funcgrad__.npy", bytes(10_000_000))
    with pytest.raises(FileFormatError, match="more than its size"):
        load(path)
