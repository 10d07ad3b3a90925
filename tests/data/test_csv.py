"""`read_csv`: what it reads, and how it names what is wrong."""

import gzip
import re

import numpy as np
import pytest

from funcgrad import errors
from funcgrad.data import DataFormatError, Dataset, read_csv


@pytest.fixture
def write(tmp_path):
    def writer(text, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        content = text.encode(encoding)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return writer


def test_all_columns_below_names(write):
    table = read_csv(write("a,b,c\n1,2,3\n-4.5,5e-3,inf\n"))
    assert table.dtype == np.float64
    assert table.tolist() == [[1.0, 2.0, 3.0], [-4.5, 0.005, np.inf]]


def test_file_without_names(write):
    assert read_csv(write("1,2\n3,4\n")).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_names_that_are_numbers_are_said_to_be_names(write):
    path = write("2001,2002\n3,4\n")
    assert read_csv(path, "2002", header=True).tolist() == [4.0]
    assert read_csv(path, 1, header=False).tolist() == [2002.0, 4.0]


def test_columns_are_a_tree_of_names(write):
    path = write("a,b,c\n1,2,3\n4,5,6\n")
    data = read_csv(path, {"x": ["c", "a"], "rest": ("b", [1], -1)})
    assert data["x"].tolist() == [[3.0, 1.0], [6.0, 4.0]]
    assert data["rest"][0].tolist() == [2.0, 5.0]
    assert data["rest"][1].tolist() == [[2.0], [5.0]]
    assert data["rest"][2].tolist() == [3.0, 6.0]
    assert len(Dataset.from_arrays(data)) == 2


def test_columns_of_text_are_left_alone_or_converted(write):
    path = write("x,kind\n1,cat\n2,dog\n")
    assert read_csv(path, "x").tolist() == [1.0, 2.0]
    converted = read_csv(path, convert={"kind": {"cat": 0, "dog": 1}, "x": lambda t: -float(t)})
    assert converted.tolist() == [[-1.0, 0.0], [-2.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,b\r\n1,2\r\n", {}),
        ("\ufeffa,b\n1,2\n", {}),
        ("\n\na,b\n\n1,2\n   \n\n", {}),
        ("a, b\n 1 , 2", {}),
        ('"a","b"\n"1","2"\n', {}),
        ("a;b\n1;2\n", {"delimiter": ";"}),
        ("a\tb\n1\t2\n", {"delimiter": "\t"}),
    ],
)
def test_spellings_of_one_table(write, text, options):
    path = write(text)
    assert read_csv(path, ["a", "b"], **options).tolist() == [[1.0, 2.0]]


def test_gzip_is_recognised_by_its_content(write):
    path = write("a\n1\n", "table.gz")
    renamed = path.rename(path.with_name("table.txt"))
    assert read_csv(renamed).tolist() == [[1.0]]


def test_other_dtypes_and_encodings(write):
    assert read_csv(write("a\n3\n")).dtype == np.float64
    assert read_csv(write("a\n3\n"), dtype=np.float32).dtype == np.float32
    assert read_csv(write("a\n3\n"), "a", dtype=int).tolist() == [3]
    assert read_csv(write("größe\n3\n", encoding="latin-1"), encoding="latin-1").tolist() == [[3.0]]


def test_empty_fields_stand_for_what_is_said(write):
    table = read_csv(write("a,b\n1,\n,4\n"), missing=np.nan)
    assert np.array_equal(table, [[1.0, np.nan], [np.nan, 4.0]], equal_nan=True)


# What is wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", r"1 fields, and the first one 2\n.*line 3 of"),
        ("a,b\n\n1,2,3\n", r"3 fields, and the first one 2\n.*line 3 of"),
        ("1,2\n3,4,\n", r"3 fields.*\n.*line 2"),
        ("a,b\n1,2\n\n3,x\n", r"'x' is no number\n.*line 4, column 'b' of .*table.csv"),
        ("1,2\n3,4x\n", r"'4x' is no number\n.*line 2, column 1 of"),
        ("a,b\n1,1_000\n", r"'1_000' is no number\n.*line 2, column 'b'"),
        ("a,b\n1,\n", r"a field is empty\n.*line 2, column 'b'.*\n.*missing=np.nan"),
        ("", "no lines"),
        ("\n \n", "no lines"),
        ("a,b\n", "but the names"),
    ],
)
def test_line_and_column_are_named(write, text, message):
    with pytest.raises(DataFormatError, match=message):
        read_csv(write(text))


def test_quoted_line_breaks_count(write):
    with pytest.raises(DataFormatError, match=r"line 4, column 'b'"):
        read_csv(write('a,"b\n"\n1,2\n3,x\n'.replace('"b\n"', '"b\n"')))


def test_integers_are_exact_to_the_last_digit(write):
    largest = np.iinfo(np.uint64).max
    path = write(f"a\n9007199254740993\n{largest}\n 3.0\n")
    assert read_csv(path, "a", dtype=np.uint64).tolist() == [2**53 + 1, largest, 3]


@pytest.mark.parametrize(
    ("field", "dtype"),
    [
        ("256", np.uint8),
        ("-1", np.uint8),
        ("1e3", np.int8),
        ("18446744073709551616", np.uint64),
        ("2", bool),
        ("nan", bool),
        ("1e39", np.float32),
        ("-1e39", np.complex64),
    ],
)
def test_number_that_the_dtype_does_not_hold(write, field, dtype):
    name = np.dtype(dtype).name
    with pytest.raises(DataFormatError, match=f"'{field}' does not fit into {name}\n.*line 3"):
        read_csv(write(f"a\n1\n{field}\n"), dtype=dtype)


def test_infinities_and_nan_are_numbers_of_every_float(write):
    table = read_csv(write("a\ninf\n-inf\nnan\n"), "a", dtype=np.float16)
    assert np.array_equal(table, [np.inf, -np.inf, np.nan], equal_nan=True)


def test_booleans_are_0_and_1(write):
    assert read_csv(write("a\n1\n0.0\n"), "a", dtype=bool).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [str, object, "M8[D]", "flot"])
def test_dtypes_that_are_none_of_numbers(write, dtype):
    with pytest.raises(errors.DtypeError, match="argument 'dtype' of read_csv"):
        read_csv(write("a\n1\n"), dtype=dtype)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ", "}, "a delimiter is one character, not ', '"),
        ({"encoding": "utf-7000"}, "no encoding 'utf-7000'"),
        ({"columns": []}, "a list of no columns"),
    ],
)
def test_options_that_make_no_sense(write, options, message):
    with pytest.raises(errors.ArgumentError, match=message):
        read_csv(write("a\n1\n"), **options)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_delimiter_of_the_file_is_named(write, mark):
    with pytest.raises(DataFormatError, match=re.escape(f"delimiter={mark!r}")):
        read_csv(write(f"a{mark}b\n1{mark}2\n"))


def test_utf_16_is_recognised_by_its_mark(write):
    with pytest.raises(DataFormatError, match="encoding='utf-16'"):
        read_csv(write("a,b\n1,2\n", encoding="utf-16"))


def test_integers_that_are_none(write):
    with pytest.raises(DataFormatError, match=r"'2.5' is no integer\n.*line 3, column 'a'"):
        read_csv(write("a\n2\n2.5\n"), dtype=int)


def test_text_that_convert_does_not_know(write):
    with pytest.raises(DataFormatError, match=r"nothing for 'cow'\n.*line 3, column 'kind'"):
        read_csv(write("kind\ncat\ncow\n"), convert={"kind": {"cat": 0}})


def test_first_line_of_names_and_numbers(write):
    with pytest.raises(errors.ArgumentError, match="names and numbers"):
        read_csv(write("a,2\n3,4\n"))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("widht", r"no column 'widht'\n.*\n.*did you mean 'width'\?"),
        (2, r"no column 2\n.*2 columns"),
        (-3, "no column -3"),
        (None, None),
        (1.5, "no column 1.5"),
        ({"x": ["width", "w"]}, "no column 'w'"),
    ],
)
def test_column_that_is_not_there(write, column, message):
    path = write("width,length\n1,2\n")
    if message is None:
        assert read_csv(path, column).shape == (1, 2)
        return
    with pytest.raises(errors.ArgumentError, match=message):
        read_csv(path, column)


def test_name_that_two_columns_have(write):
    with pytest.raises(errors.ArgumentError, match="two columns 'a'"):
        read_csv(write("a,a\n1,2\n"), "a")


def test_text_in_another_encoding(write):
    with pytest.raises(DataFormatError, match=r"no text in utf-8-sig\n.*line 2"):
        read_csv(write("a\nö\n", encoding="latin-1"))


def test_gzip_that_is_cut_off(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 1000)[:-12])
    with pytest.raises(DataFormatError, match="cut off or damaged"):
        read_csv(path)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "none.csv")
    with pytest.raises(errors.ArgumentError, match="needs the name of a file"):
        read_csv(3)
