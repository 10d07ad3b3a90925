"""The writer of zip files, against `zipfile`: what it writes is what that reads, at all sizes."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from funcgrad.serialize import zipping
from funcgrad.serialize.zipping import ZipWriter

MEMBERS = {"a.npy": b"0123456789", "empty": b"", "\u00e9\U0001f600": b"x" * 5000}


def written(members=MEMBERS):
    file = io.BytesIO()
    with ZipWriter(file) as archive:
        for name, content in members.items():
            archive.add(name, content[:3], memoryview(content[3:]))
    return file


def read(file):
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None  # all checksums are right
        return {name: archive.read(name) for name in archive.namelist()}


def test_members_are_read():
    assert read(written()) == MEMBERS


def test_no_members_are_read():
    assert read(written({})) == {}


def test_checksum_of_a_large_member_comes_from_the_thread(monkeypatch):
    monkeypatch.setattr(zipping, "_LARGE", 100)
    assert read(written()) == MEMBERS


@pytest.mark.parametrize("limit", [0, 40, 4000], ids="numbers from {} on in 64 bits".format)
def test_numbers_of_64_bits_are_read(limit, monkeypatch):
    monkeypatch.setattr(zipping, "_LIMIT", limit)
    assert read(written()) == MEMBERS


def test_many_members_are_read():
    members = {str(i): b"" for i in range(0x10001)}
    file = written(members)
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == list(members)


def test_file_is_that_of_zipfile_but_for_its_own_marks():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in MEMBERS.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as out:
                out.write(content)
    want, got = (zipfile.ZipFile(f).infolist() for f in (file, written()))
    for one, other in zip(want, got, strict=True):
        for field in ("filename", "date_time", "CRC", "file_size", "header_offset", "flag_bits"):
            assert getattr(one, field) == getattr(other, field)
    assert len(file.getvalue()) == len(written().getvalue())


def test_failure_in_the_block_writes_no_directory():
    file = io.BytesIO()

    def write():
        with ZipWriter(file) as archive:
            archive.add("a", b"", memoryview(b"1"))
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert not zipfile.is_zipfile(file)


def test_nothing_waits_for_a_thread_at_the_end(tmp_path):
    code = (
        "import sys, numpy as np; from funcgrad.serialize import save, load;"
        "x = np.arange(3_000_000.0); [save(sys.argv[1], x) for _ in range(3)];"
        "print(np.array_equal(load(sys.argv[1]), x))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "x"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["True"], done.stderr


def test_array_larger_than_a_buffer_is_written_whole(tmp_path):
    with open(tmp_path / "x", "wb") as file, ZipWriter(file) as archive:
        archive.add("x", b"head", memoryview(np.arange(1_000_000)).cast("B"))
    with zipfile.ZipFile(tmp_path / "x") as archive:
        assert archive.read("x") == b"head" + np.arange(1_000_000).tobytes()
