"""`read_csv`: tables of numbers in text files.

The one idea: `columns` is a pytree of names, and the result is the same pytree of arrays, which is
what a data set is made of.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from funcgrad.data.opening import DataFormatError, read_bytes
from funcgrad.errors import ArgumentError, DtypeError, user_line

__all__ = ["read_csv"]

Convert: TypeAlias = Mapping[Any, Mapping[str, float] | Callable[[str], float]]


def read_csv(
    path: str | os.PathLike[str],
    columns: Any = None,
    *,
    header: bool | None = None,
    delimiter: str = ",",
    dtype: DTypeLike = np.float64,
    convert: Convert | None = None,
    missing: float | None = None,
    encoding: str = "utf-8-sig",
) -> Any:
    r"""Read numbers from a text file of rows and columns.

    Parameters
    ----------
    path : str or path-like
        The file, also if it is compressed by gzip.
    columns : str, int, list, dict or tuple, optional
        Which columns, by their names or their numbers from 0. One column gives an array of shape
        (rows,), a list of columns one of shape (rows, columns), and a dict or a tuple of these a
        dict or a tuple of arrays. All columns if not given.
    header : bool, optional
        Whether the first line has names. If not given, it has if none of its fields is a number.
    delimiter : str, default ","
        What stands between fields.
    dtype : dtype_like, default float64
        Of the arrays. Integers are read exactly, and have to fit; so have booleans, 0 or 1.
    convert : dict, optional
        For columns that are no numbers: by the name or number of the column, a dict from texts to
        numbers, or a function of a text that returns a number.
    missing : float, optional
        What an empty field stands for, such as ``np.nan``; an error if not given.
    encoding : str, default "utf-8-sig"
        Of the text.

    Returns
    -------
    ndarray of `dtype`, or dict or tuple of these
        See `columns`.

    Raises
    ------
    DataFormatError
        A line has more or fewer fields than the first one, or a field is no number, or one that
        `dtype` does not hold: line and column are named. Or there are no rows.
    ArgumentError
        There is no such column, or it is not clear whether the first line has names; `delimiter`
        is longer than a character, or `encoding` is unknown.
    DtypeError
        `dtype` is none of numbers.
    OSError
        The file is not there, or cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "flowers.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("width,length,kind\n1.5,4.0,setosa\n2.0,3.5,other\n")
    >>> data = read_csv(
    ...     path,
    ...     {"x": ["width", "length"], "y": "kind"},
    ...     convert={"kind": {"setosa": 0, "other": 1}},
    ... )
    >>> data["x"]
    array([[1.5, 4. ],
           [2. , 3.5]])
    >>> data["y"]
    array([0., 1.])

    A field that is no number is named:

    >>> read_csv(path)
    Traceback (most recent call last):
        ...
    funcgrad.data.opening.DataFormatError: 'setosa' is no number
      where: line 2, column 'kind' of ...flowers.csv, read at ...
      fix:   correct the file, leave the column out by columns=, or give convert={'kind': ...}
    >>> folder.cleanup()
    """
    kind = _number_type(dtype)
    content, name = read_bytes(path, "read_csv")
    lines, rows = _rows_of(content, name, delimiter, encoding)
    if not rows:
        raise _empty(name, "it has no lines")
    names = _names(rows[0], header, name)
    if names is not None:
        del lines[0], rows[0]
        if not rows:
            raise _empty(name, "it has no lines but the names of columns")
    plain = b"_" not in content  # which Python's float takes within numbers
    table = Table(name, names, lines, rows, convert or {}, missing, plain)
    if columns is None:
        columns = list(range(len(names or rows[0])))
    return table.select(columns, kind)


def _number_type(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "biufc":
        raise DtypeError(
            f"a table of numbers cannot be of dtype {dtype!r}",
            where=f"argument 'dtype' of read_csv() at {user_line()}",
            fix="write dtype=np.float64, and convert={column: {text: number}} for columns of text",
        )
    return kind


def _rows_of(
    content: bytes, name: str, delimiter: str, encoding: str
) -> tuple[list[int], list[list[str]]]:
    """Return the lines that are not blank, with their numbers; all of one length."""
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ArgumentError(
            f"a delimiter is one character, not {delimiter!r}",
            where=f"argument 'delimiter' of read_csv() at {user_line()}",
            fix="write delimiter=';', say; blanks around it are left out",
        )
    try:
        text = content.decode(encoding)
    except LookupError as error:
        raise ArgumentError(
            f"there is no encoding {encoding!r}",
            where=f"argument 'encoding' of read_csv() at {user_line()}",
            fix="write encoding='latin-1', say",
        ) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        other = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None
        raise DataFormatError(
            f"{name} is no text in {encoding}",
            where=f"line {line}, read at {user_line()}",
            fix=f"give its encoding: encoding={other!r}"
            if other
            else "give its encoding, such as encoding='latin-1'",
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    lines, rows = [], []
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                lines.append(reader.line_num)
                rows.append(row)
                if len(row) != len(rows[0]):
                    raise DataFormatError(
                        f"a line has {len(row)} fields, and the first one {len(rows[0])}",
                        where=f"line {reader.line_num} of {name}, read at {user_line()}",
                        fix="correct the file, or give its delimiter=",
                    )
    except csv.Error as error:
        raise DataFormatError(
            f"{name} is no table in text: {error}",
            where=f"line {reader.line_num}, read at {user_line()}",
            fix="correct the file",
        ) from error
    return lines, rows


def _empty(name: str, reason: str) -> DataFormatError:
    return DataFormatError(
        f"{name} has no rows: {reason}", where=f"read at {user_line()}", fix="give another file"
    )


def _names(first: list[str], header: bool | None, file: str) -> list[str] | None:
    """Return the names of the columns, or None if the first line has none."""
    if header is None:
        numbers = sum(_is_number(field) for field in first)
        blank = sum(not field.strip() for field in first)
        if 0 < numbers + blank < len(first) and numbers:
            raise ArgumentError(
                "the first line has names and numbers",
                where=f"line 1 of {file} is {first}, read at {user_line()}",
                fix="say whether it has the names of the columns: header=True or header=False",
            )
        header = not numbers
    return [field.strip() for field in first] if header else None


def _is_number(text: str) -> bool:
    try:
        number(text)
    except ValueError:
        return False
    return True


def number(text: str) -> float:
    """Return the number that a text is."""
    if "_" in text:  # Python's own, and no number to anybody else
        raise ValueError(text)
    return float(text)


def exact_number(text: str) -> float:
    """Return the number that a text is: an int, however long, where it has no point."""
    value = number(text)
    try:
        return int(text)
    except ValueError:
        return value


class Table:
    """The fields of a file, and columns of numbers from it."""

    def __init__(
        self,
        file: str,
        names: list[str] | None,
        lines: list[int],
        rows: list[list[str]],
        convert: Convert,
        missing: float | None,
        plain: bool,
    ) -> None:
        self._file = file
        self._names = names
        self._lines = lines
        self._rows = rows
        self._missing = missing
        self._plain = plain
        self._convert = {self._index(column): how for column, how in convert.items()}

    def select(self, columns: Any, dtype: np.dtype[Any]) -> Any:
        """Return the columns that a tree names."""
        if isinstance(columns, dict):
            return {key: self.select(value, dtype) for key, value in columns.items()}
        if isinstance(columns, tuple):
            return tuple([self.select(value, dtype) for value in columns])
        if isinstance(columns, list):
            if not columns:
                raise ArgumentError(
                    "a list of no columns",
                    where=f"argument 'columns' of read_csv() at {user_line()}",
                    fix="leave columns= out to read all of them",
                )
            indices = [self._index(column) for column in columns]
            return np.stack([self._column(i, dtype) for i in indices], axis=1)
        return self._column(self._index(columns), dtype)

    def _index(self, column: Any) -> int:
        names = self._names
        width = len(self._rows[0])
        if isinstance(column, str):
            if names is not None and names.count(column) == 1:
                return names.index(column)
            near = get_close_matches(column, names or [], n=1)
            raise ArgumentError(
                f"there is no column {column!r}"
                if names is None or column not in names
                else f"there are two columns {column!r}",
                where=f"the columns of {self._file} are {names or 'not named'}, at {user_line()}",
                fix=f"did you mean {near[0]!r}?"
                if near and near[0] != column
                else f"give a number from 0 to {width - 1}",
            )
        if hasattr(column, "__index__") and not isinstance(column, bool):
            index = column.__index__()
            if -width <= index < width:
                return int(index % width)
        raise ArgumentError(
            f"there is no column {column!r}",
            where=f"{self._file} has {width} columns, at {user_line()}",
            fix=f"give a number from 0 to {width - 1}, or a name",
        )

    def _column(self, index: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        fields = [row[index] for row in self._rows]
        how = self._convert.get(index)
        read = exact_number if dtype.kind in "iu" else number
        try:
            if how is not None or not self._plain:
                raise ValueError
            values: list[Any] = list(map(int if dtype.kind in "iu" else float, fields))
        except ValueError:
            values = [self._number(i, index, how, read) for i in range(len(fields))]
        if dtype.kind in "iu":
            return np.array(self._integers(values, index, dtype), dtype)
        numbers = np.array(values)
        with np.errstate(over="ignore"):  # said below
            out = numbers.astype(dtype)
        lost = (numbers != 0) & (numbers != 1) if dtype.kind == "b" else np.isinf(out)
        for i in np.flatnonzero(lost & (np.isfinite(numbers) | (dtype.kind == "b"))):
            raise self._unfit(int(i), index, dtype)
        return out

    def _integers(self, values: list[Any], index: int, dtype: np.dtype[Any]) -> list[Any]:
        """Return numbers as integers, if they are some that the dtype holds."""
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        for i, value in enumerate(values):
            if not (isinstance(value, int) or float(value).is_integer()):
                raise DataFormatError(
                    f"{self._rows[i][index]!r} is no integer",
                    where=self._place(i, index),
                    fix="read the column as floats: dtype=np.float64",
                )
            if not least <= value <= most:
                raise self._unfit(i, index, dtype)
        return [int(value) for value in values]

    def _unfit(self, row: int, index: int, dtype: np.dtype[Any]) -> DataFormatError:
        return DataFormatError(
            f"{self._rows[row][index]!r} does not fit into {dtype}",
            where=self._place(row, index),
            fix="read the column as another dtype, such as np.float64",
        )

    def _number(self, row: int, index: int, how: Any, read: Callable[[str], float]) -> float:
        """Return the number that a field is or stands for; `how` converts it, if not None."""
        field = self._rows[row][index]
        text = field.strip()
        try:
            if not text and self._missing is not None:
                return self._missing
            if how is None:
                return read(text)
            return float(how(text) if callable(how) else how[text])
        except Exception as error:
            label = repr(self._names[index]) if self._names else index
            if not text:
                what, fix = "a field is empty", "say what it stands for, such as missing=np.nan"
            elif how is None:
                what = f"{field!r} is no number"
                fix = (
                    "correct the file, leave the column out by columns=, or give "
                    f"convert={{{label}: ...}}"
                )
                other = next((mark for mark in ";\t|" if mark in text), None)
                if other is not None:
                    fix = f"give the delimiter of the file: delimiter={other!r}"
            else:
                what, fix = f"convert has nothing for {field!r}", f"look at convert[{label}]"
            raise DataFormatError(what, where=self._place(row, index), fix=fix) from error

    def _place(self, row: int, index: int) -> str:
        label = repr(self._names[index]) if self._names else index
        return f"line {self._lines[row]}, column {label} of {self._file}, read at {user_line()}"
