"""The ``.safetensors`` format, against files that its own package has written for PyTorch."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, TreeMismatchError
from funcgrad.serialize import FileFormatError

# Written by safetensors 0.8 from tensors of torch 2.13, with {"format": "pt"} as metadata.
DTYPES = Path(__file__).parent / "dtypes.safetensors"
INF, NAN = np.inf, np.nan


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.safetensors"


def written(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


# Reading


@pytest.mark.parametrize(
    ("name", "values", "dtype"),
    [
        ("f64", [1.5, -2.0], np.float64),
        ("f32", np.float32([[0.1, 2.0]]), np.float32),
        ("f16", [1.0, 65504.0], np.float16),
        ("bf16", np.float32([1.0, -3.140625, INF, NAN, 9.183549615799121e-41, 3.00405527047391e38]),
         np.float32),
        ("e4m3", [1.0, -448.0, 0.001953125, 0.0, NAN, 0.875], np.float32),
        ("e5m2", [1.0, -57344.0, 1.52587890625e-05, INF, NAN], np.float32),
        ("i64", [-(2**62)], np.int64),
        ("i32", [-5], np.int32),
        ("i16", [-5], np.int16),
        ("i8", [-5], np.int8),
        ("u8", [250], np.uint8),
        ("u16", [65535], np.uint16),
        ("bool", [True, False], np.bool_),
        ("c64", [1 + 2j], np.complex64),
        ("scalar", 7.0, np.float32),
        ("empty", np.zeros((0, 3)), np.float32),
        ("nested.name", [[0, 1, 2], [3, 4, 5]], np.float32),
    ],
)  # fmt: skip
def test_array_of_pytorch_is_read(name, values, dtype):
    out = fg.load(DTYPES)[name]
    assert out.dtype == dtype
    assert out.shape == np.shape(values)
    assert_array_equal(out, values)


def test_every_float8_is_read(path):
    data = bytes(range(256))
    out = fg.load(written(path, {"x": entry("F8_E4M3", (256,), (0, 256))}, data))["x"]
    # 0b0_1110_111 is 2**7 * 1.875; the smallest step is 2**-9; the highest exponent is one of
    # numbers, too, but for its last mantissa.
    assert (out[0b01110111], out[1], out[0b01111110]) == (240.0, 2.0**-9, 448.0)
    assert_array_equal(out[128:], -out[:128])
    assert np.isnan(out[[127, 255]]).all()
    assert np.isnan(out).sum() == 2
    assert (np.diff(out[:127]) > 0).all()


def test_arrays_are_writable_and_their_own(path):
    fg.save(path, {"x": np.arange(3)})
    out = fg.load(path)["x"]
    out += 1
    assert_array_equal(out, [1, 2, 3])


# Writing


def test_bytes_are_those_of_the_format(path):
    fg.save(path, {"b": np.array([1, 2], np.uint8), "a": np.array(1.0, np.float32)})
    text = (
        b'{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},'
        b'"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}'
    )
    text += b" " * (-len(text) % 8)
    assert path.read_bytes() == len(text).to_bytes(8, "little") + text + b"\0\0\x80?\1\2"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        np.arange(10.0)[::-3],
        np.array([1.0, 2.0], ">f4"),
        np.array(2.5),
        np.zeros((2, 0)),
        np.array([True, False]),
        np.array([1 + 2j], np.complex64),
        np.float16(0.5),
    ],
    ids=repr,
)
def test_array_comes_back(array, path):
    fg.save(path, {"x": array})
    out = fg.load(path)["x"]
    assert (out.shape, out.dtype) == (array.shape, array.dtype.newbyteorder("="))
    assert_array_equal(out, array)


def test_leaves_are_named_by_their_paths_with_dots(path):
    fg.save(path, {"a": [np.ones(1), {"b": np.ones(2)}], "n": 3, "x": 0.5})
    assert set(fg.load(path)) == {"a.0", "a.1.b", "n", "x"}


def test_tree_comes_back_into_a_template(path):
    tree = {"a": [np.ones(1), {"b": np.ones(2)}], "n": 3, "x": 0.5}
    fg.save(path, tree)
    out = fg.load(path, {"a": [np.zeros(1), {"b": np.zeros(2)}], "n": 0, "x": 0.0})
    assert_array_equal(out["a"][1]["b"], [1, 1])
    assert (type(out["n"]), out["n"], type(out["x"]), out["x"]) == (int, 3, float, 0.5)


def test_array_alone_comes_back(path):
    fg.save(path, np.arange(3))
    assert_array_equal(fg.load(path, np.zeros(3, int)), [0, 1, 2])


def test_model_with_functions_comes_back(path):
    def make(seed):
        k1, k2 = fg.random.split(fg.random.key(seed))
        return fg.nn.Sequential([fg.nn.Linear(2, 3, key=k1), np.tanh, fg.nn.Linear(3, 1, key=k2)])

    fg.save(path, make(1))
    assert fg.load(path, make(2)) == make(1)


def test_name_is_unicode(path):
    fg.save(path, {"\u00e9\U0001f600": np.ones(1)})
    assert list(fg.load(path)) == ["\u00e9\U0001f600"]


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        ("text", "a Python str"),
        (1j, "a Python complex"),
        (2**70, "a Python int"),
        (fg.random.key(0), "Key"),
        (np.ones(1, np.complex128), "complex128"),
        (np.ones(1, np.longdouble), "longdouble|float128"),
        (np.array(["a"]), "<U1"),
        (np.array("2020", "M8[D]"), "datetime64"),
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_leaf_that_the_format_has_not_is_named(leaf, words, path):
    with pytest.raises(DtypeError, match=words) as caught:
        fg.save(path, {"a": [leaf]})
    assert caught.value.where.startswith("['a'][0]")
    assert not path.exists()


def test_two_leaves_of_one_name_are_an_error(path):
    with pytest.raises(ArgumentError, match=r"'a\.b' twice"):
        fg.save(path, {"a": {"b": np.ones(1)}, "a.b": np.ones(1)})


def test_mismatch_is_named_by_the_path_in_the_template(path):
    fg.save(path, {"a": np.ones(2), "c": np.ones(1)})
    with pytest.raises(TreeMismatchError) as caught:
        fg.load(path, {"a": np.ones(3), "b": np.ones(1)})
    assert "missing from the file: ['b'] ('b' there); only in the file: c" in caught.value.where
    assert "['a'] is float64[2] in the file, float64[3] in template" in caught.value.where


def test_old_file_stays_if_saving_fails(path, monkeypatch):
    import os

    fg.save(path, {"a": np.ones(2)})

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        fg.save(path, {"a": np.zeros(2)})
    assert_array_equal(fg.load(path)["a"], [1, 1])
    assert os.listdir(path.parent) == [path.name]


# Files of strangers

BAD = {
    "empty": b"",
    "short": b"\1\0",
    "text": b"this is no such file at all",
    "huge header": (2**63).to_bytes(8, "little") + b"{}",
    "header of 200 MB": (200_000_000).to_bytes(8, "little") + b"{}",
    "header longer than the file": (100).to_bytes(8, "little") + b"{}",
    "npz": b"PK\3\4" + bytes(100),
}
BAD_HEADERS = {
    "no JSON": b"{",
    "a list": b"[]",
    "deep": b'{"a":' + b"[" * 100_000,
    "no unicode": b'{"\xff": 1}',
    "a name twice": b'{"a": %(e)s, "a": %(e)s}' % {b"e": json.dumps(entry()).encode()},
    "no entry": {"a": 3},
    "entry without shape": {"a": {"dtype": "F32", "data_offsets": [0, 4]}},
    "one offset": {"a": entry(offsets=(0,))},
    "negative offset": {"a": entry(offsets=(-4, 0))},
    "offsets turned round": {"a": entry(offsets=(4, 0))},
    "float offset": {"a": entry(offsets=(0, 4.0))},
    "bool offset": {"a": entry("U8", (1,), (False, True))},
    "offset past the end": {"a": entry(shape=(2,), offsets=(0, 8))},
    "negative shape": {"a": entry(shape=(-1,))},
    "shape of text": {"a": entry(shape="1")},
    "shape that overflows": {"a": entry(shape=(2**32, 2**32, 2**32))},
    "other size": {"a": entry(shape=(2,))},
    "gap": {"a": entry("U8", (1,), (0, 1)), "b": entry("U8", (2,), (2, 4))},
    "overlap": {"a": entry("U8", (3,), (0, 3)), "b": entry("U8", (2,), (2, 4))},
    "bytes left": {"a": entry("U8", (3,), (0, 3))},
    "unknown dtype": {"a": entry("F4", (8,), (0, 4))},
    "dtype that is a list": {"a": entry(["F32"])},
    "metadata of numbers": {"__metadata__": {"a": 1}, "a": entry()},
    "truth value 2": {"a": entry("BOOL", (4,), (0, 4))},
}


@pytest.mark.parametrize("name", BAD)
def test_file_of_another_kind_is_an_error(name, path):
    path.write_bytes(BAD[name])
    with pytest.raises(FileFormatError, match=r"x\.safetensors is no safetensors file"):
        fg.load(path)


@pytest.mark.parametrize("name", BAD_HEADERS)
@pytest.mark.parametrize("template", [None, {"a": np.ones(1, np.float32)}], ids=["dict", "tree"])
def test_forged_header_is_an_error(name, template, path):
    written(path, BAD_HEADERS[name], b"\2\2\2\2")
    with pytest.raises(FileFormatError, match=r"x\.safetensors (is|has)"):
        fg.load(path, template)


def test_right_header_is_read(path):
    written(path, {"a": entry()}, b"\0\0\x80?")
    assert_array_equal(fg.load(path)["a"], [1])


def test_unknown_dtype_is_named(path):
    written(path, {"a": entry("F8_E8M0", (4,))}, bytes(4))
    with pytest.raises(FileFormatError, match="dtype F8_E8M0, which funcgrad does not know"):
        fg.load(path)


def test_every_truncation_is_an_error(path):
    content = DTYPES.read_bytes()
    for length in range(0, len(content), 13):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            fg.load(path)


def test_any_changed_byte_of_the_header_is_an_error_of_ours_or_nothing(path):
    content = DTYPES.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    for position in range(end):
        changed = bytearray(content)
        changed[position] ^= 0x15
        path.write_bytes(changed)
        try:
            out = fg.load(path)
        except FileFormatError:
            continue
        assert len(out) == 17  # with another name
