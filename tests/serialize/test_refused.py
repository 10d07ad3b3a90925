"""What ``fg.save`` refuses, and which files ``fg.load`` does: always by an error of ours."""

import io
import json
import os
import pickle
import sys
import zipfile
from enum import Enum

import numpy as np
import pytest

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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.npz"


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
        (np.zeros(1, [(f"field{i}", "f8") for i in range(900)]), DtypeError, "cannot be saved"),
        (np.ma.array([1, 2], mask=[0, 1]), ArgumentError, "a leaf of type MaskedArray"),
        (int, ArgumentError, "a leaf of type type"),
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
    assert "test_refused.py:" in caught.value.where
    assert not path.exists()


def test_both_parts_of_a_masked_array_are_the_advice(path):
    with pytest.raises(ArgumentError, match=r"save x\.data and np\.ma\.getmaskarray\(x\)"):
        save(path, np.ma.array([1, 2], mask=[0, 1]))


def test_static_field_is_the_advice_for_other_objects(path):
    with pytest.raises(ArgumentError, match=r"fg\.static\(\)"):
        save(path, {"colour": Colour.RED})


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
    assert tree.same(load(path), {"w": np.array([1.0, 2.0])})


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
    save(path, value)
    assert tree.structure(load(path)) == tree.structure(value)


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
        assert tree.same(out, value)  # a date, say, or the mode of a file


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
    assert tree.same(load(path), [np.ones(2), 2])


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
@pytest.mark.parametrize("template", [None, {"a": 1}])
def test_forged_structure_is_an_error_of_ours(about, template, path):
    forged(path, about, x=np.ones(2))
    with pytest.raises((FileFormatError, DtypeError, TreeMismatchError)):
        load(path, template=template)


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
        header(b"{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
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


def test_class_of_ours_that_moved_to_another_file_is_found(path):
    forged(path, ours({"namedtuple": "funcgrad.optim.before:TraceState", "fields": {"trace": 1}}))
    assert type(load(path)) is fg.optim.TraceState


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
