"""The file that ``fg.save`` writes: what NumPy reads, and what stays if it cannot be written."""

import json
import multiprocessing
import os
import pickle
import stat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad import random, tree
from funcgrad.errors import (
    ArgumentError,
)
from funcgrad.serialize import load, save


class State(NamedTuple):
    count: int
    mu: dict


@fg.pytree
class Linear:
    weight: np.ndarray
    bias: np.ndarray | None
    name: str = fg.static(default="linear")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.npz"


SAVED = {"w": np.ones((2, 3)), "b": np.zeros(3), "n": 4}


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
        assert tree.same(pool.apply(load, (path,)), SAVED)


def test_what_is_loaded_pickles(path):
    save(path, State(1, {"k": random.key(3)}))
    out = load(path)
    assert pickle.loads(pickle.dumps(out)) == State(1, {"k": random.key(3)})
