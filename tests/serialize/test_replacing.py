"""Files that are replaced in one step: what happens when a part of it fails, or takes long."""

import os
import time

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.serialize import replacing as module
from funcgrad.serialize.replacing import given_back, replacing


@pytest.fixture
def small_is_large(monkeypatch):
    """Use the threads that are for large files."""
    monkeypatch.setattr(module, "_LARGE", 1)
    monkeypatch.setattr(module, "_PAUSE", 0.0)


@pytest.mark.usefixtures("small_is_large")
def test_large_file_is_replaced(tmp_path):
    for value in (1.0, 2.0, 3.0):
        fg.save(tmp_path / "x.npz", np.full(1000, value))
    assert fg.load(tmp_path / "x.npz")[999] == 3.0
    assert os.listdir(tmp_path) == ["x.npz"]


@pytest.mark.usefixtures("small_is_large")
def test_error_of_the_disk_in_the_thread_is_raised(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fail(descriptor):
        raise OSError(5, "the disk is broken")

    monkeypatch.setattr(os, "fdatasync" if hasattr(os, "fdatasync") else "fsync", fail)

    def write():
        with replacing(str(path), size=100) as file:
            file.write(b"new")
            time.sleep(0.1)

    with pytest.raises(OSError, match="the disk is broken"):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.usefixtures("small_is_large")
def test_file_is_removed_whose_space_is_given_back_later(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with given_back(str(path)):
        os.unlink(path)
    assert not path.exists()


def test_old_file_that_somebody_removes_meanwhile_is_not_missed(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with replacing(str(path)) as file:
        file.write(b"new")
        path.unlink()
    assert path.read_bytes() == b"new"


def test_failure_in_the_block_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def write():
        with replacing(str(path)) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_no_file_is_visible_before_it_is_complete(tmp_path):
    with replacing(str(tmp_path / "x")) as file:
        file.write(b"new")
        file.flush()
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").read_bytes() == b"new"


def test_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    with replacing(str(tmp_path / "x")) as file:
        file.write(b"new")
    # The second is that of the folder, where folders have one.
    assert calls[:2] == ["fsync", "replace"]
    assert calls[2:] == ["fsync"] * (os.name != "nt")
