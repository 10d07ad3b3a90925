"""What is in a file against a tree that is to take it, leaf by leaf, by the paths.

Paths decide, and not the types of containers: a class may be renamed or moved, and a list may
become a tuple, between saving and loading. Where a file has other names, the caller tells them.
What differs is said of all leaves at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from funcgrad import random, tree
from funcgrad.errors import ArgumentError, TreeMismatchError, describe, user_line
from funcgrad.serialize.statics import function_name, is_same, shown
from funcgrad.serialize.structure import SavedFunction, place, static_of, unique_names

__all__ = ["Names", "Stored", "differing", "fitting_leaves"]

Source: TypeAlias = str | Callable[[Mapping[str, Any]], Any]
Names: TypeAlias = Mapping[str, Source] | Callable[[str], Source]
"""From paths in a template to names in a file, or to functions that make a leaf of a file."""

_SHOWN = 6


class _NotStoredError(KeyError):
    """A function given in `names` asks for what is not in the file."""


class Stored(Mapping[str, Any]):
    """The leaves of a file, by their names there: read when they are asked for, and then `used`."""

    def __init__(self, names: Iterable[str], read: Callable[[str], Any]) -> None:
        self._names = dict.fromkeys(names)
        self._read = read
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise _NotStoredError(name)
        self.used.add(name)
        return self._read(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def fitting_leaves(
    stored: Stored,
    pairs: list[tuple[tree.KeyPath, Any]],
    *,
    names: Names | None,
    own_name: Callable[[tree.KeyPath], str],
    statics: list[str],
    strict: bool,
    file: str,
) -> list[Any]:
    """Return the leaves that are `stored`, in the order and the kinds of those of a template.

    The `pairs` are those of `tree.leaves_with_path`. `own_name` gives the name of a path where
    `names` does not; `statics` are further differences.
    """
    wanted = unique_names((tree.keystr(path), leaf) for path, leaf in pairs)
    own = unique_names((own_name(path), None) for path, _ in pairs)
    sources = _sources(dict(zip(wanted, own, strict=True)), names)
    values: dict[str, Any] = {}
    missing = {}
    for path, source in sources.items():
        try:
            values[path] = source(stored) if callable(source) else stored[source]
        except _NotStoredError as error:
            if function_name(wanted[path]) is None or names is None:
                missing[path] = str(error.args[0])
    extra = [name for name in stored if name not in stored.used]
    other = [path for path, value in values.items() if not _fits(value, wanted[path])]
    differences = [
        f"{place(path)} is {_words(values[path])} in the file, {_words(wanted[path])} in template"
        for path in other
    ]
    nothing = bool(wanted) and not values
    if other or nothing or (strict and (missing or extra or statics)):
        raise _mismatch(file, missing, extra, differences, statics)
    return [
        _of_kind(values[path], leaf) if path in values else leaf for path, leaf in wanted.items()
    ]


def differing(saved: Mapping[str, Any], template: Any) -> list[str]:
    """Say which static fields are not those of a template, of those that both have."""
    return [
        f"{path} is {shown(saved[path])} in the file, {shown(description)} in template"
        for path, description in static_of(template)
        if path in saved and not is_same(saved[path], description)
    ]


def _sources(own: dict[str, str], names: Names | None) -> dict[str, Source]:
    """Return where each leaf comes from, by its path in the template."""
    if names is None:
        return dict(own)
    if callable(names):
        return {path: names(path) for path in own}
    unknown = [path for path in names if path not in own]
    if unknown:
        raise ArgumentError(
            "names speaks of leaves that template does not have",
            where=f"{_listed(map(repr, unknown))}, at {user_line()}",
            fix=f"its leaves are {_listed(map(repr, own))}",
        )
    return {path: names.get(path, name) for path, name in own.items()}


def _fits(value: Any, leaf: Any) -> bool:
    if isinstance(value, SavedFunction):
        name = function_name(leaf)
        return name is not None and is_same({"function": value.name}, {"function": name})
    # Python's numbers and strings have one type each, whatever their size.
    alike = type(value) is type(leaf) and not hasattr(leaf, "shape")
    return alike or _signature(value) == _signature(leaf)


def _signature(value: Any) -> tuple[Any, Any]:
    """Return what must be equal: the shape, and the dtype or something in its place.

    A number is the same as an array of shape (): which of them it is changes in training.
    """
    if isinstance(value, random.Key):
        return random.Key, value.shape
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(dtype, np.dtype):
        return dtype.newbyteorder("="), shape
    if type(value) is int and not -(2**63) <= value < 2**63:
        return "an int of more than 64 bits", ()
    if type(value) in (bool, int, float, complex):
        return np.dtype(type(value)), ()
    return type(value), ()


def _of_kind(value: Any, leaf: Any) -> Any:
    """Return a value that fits, as an array, a NumPy scalar or a Python number like `leaf`."""
    if isinstance(value, SavedFunction):
        return leaf
    if type(value) is type(leaf) and not hasattr(leaf, "dtype"):
        return value
    if isinstance(leaf, np.generic):
        return np.asarray(value, leaf.dtype)[()]
    if hasattr(leaf, "dtype"):
        return np.asarray(value, leaf.dtype)
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _mismatch(
    file: str,
    missing: Mapping[str, str],
    extra: list[str],
    differences: list[str],
    statics: list[str],
) -> TreeMismatchError:
    parts = []
    if missing:
        paths = [
            place(path) + (f" ({name!r} there)" if name not in (path, path.lstrip(".")) else "")
            for path, name in missing.items()
        ]
        parts.append(f"missing from the file: {_listed(paths)}")
    if extra:
        parts.append(f"only in the file: {_listed(map(place, extra))}")
    if differences or statics:
        parts.append(f"different: {_listed(differences + statics)}")
    return TreeMismatchError(
        f"{file} does not fit the template",
        where=f"{'; '.join(parts)}; loaded at {user_line()}",
        fix=_fix(list(missing), extra, bool(differences), bool(statics)),
    )


def _fix(missing: list[str], extra: list[str], leaves_differ: bool, statics_differ: bool) -> str:
    # difflib brings `re`, which a load that goes well has no use for.
    from difflib import get_close_matches  # noqa: PLC0415

    left, pairs = list(extra), []
    for name in missing:
        parent, last = _parted(name)
        beside = {_parted(other)[1]: other for other in left if _parted(other)[0] == parent}
        near = get_close_matches(last, beside, n=1)
        if near:
            left.remove(beside[near[0]])
            pairs.append(f"{name} to {beside[near[0]]}")
    if pairs:
        return f"rename in template {_listed(pairs)}"
    if leaves_differ:
        return "build template as the tree that was saved: of the same sizes, with the same dtype="
    if statics_differ:
        return (
            "build template with the same static fields; strict=False takes those of template, "
            "whatever they were"
        )
    return (
        "build template as the tree that was saved, or tell with names= what is called otherwise; "
        "strict=False keeps what is missing as it is in template, and leaves out what is only "
        "in the file"
    )


def _parted(name: str) -> tuple[str, str]:
    """Part a path into that of the container and the bare name of the last step."""
    last = max(name.rfind("["), name.rfind("."), 0)
    return name[:last], name[last:].strip("[]'.")


def _words(value: Any) -> str:
    if isinstance(value, SavedFunction):
        return f"the function {shown({'function': value.name})}"
    if hasattr(value, "shape"):
        return describe(value)
    name = function_name(value)
    return f"the function {name}" if name else f"a Python {type(value).__name__}"


def _listed(items: Iterable[str]) -> str:
    items = list(items)
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
