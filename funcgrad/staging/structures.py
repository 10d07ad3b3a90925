"""Code that takes pytrees of one structure apart, and puts them together.

`tree.flatten` asks each node what it is. A compiled function is called with the same structure
again and again, so that straight code for it (``a["w"]``, ``{"w": x}``), made once, is several
times as fast. Nodes other than dicts, lists and tuples are left to `tree`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree

__all__ = ["builder", "flattener"]

_KEYS = (str, int)


class _Code:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {
            "flatten": tree.flatten,
            "unflatten": tree.unflatten,
            "dict": dict,
            "list": list,
            "tuple": tuple,
        }
        self.fresh = map("v{}".format, itertools.count())

    def bind(self, value: Any) -> str:
        name = next(self.fresh)
        self.values[name] = value
        return name

    def function(self, head: str) -> Any:
        namespace = self.values
        text = "\n".join([head, *(f"    {line}" for line in self.lines)])
        exec(compile(text, "<structure>", "exec"), namespace)
        return namespace["made"]


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    """Return the children of a node with their keys, in the order of the leaves.

    None of what is left to `tree`: leaves, and nodes of other kinds.
    """
    kind = type(value)
    if kind is dict:
        if not all(type(key) in _KEYS for key in value):
            return None
        keys = list(value)
        order = tree.leaves({key: place for place, key in enumerate(keys)})
        return [(keys[place], value[keys[place]]) for place in order]
    if kind is list or kind is tuple or _is_plain_named(value):
        return list(enumerate(value))
    return None


def _is_plain_named(value: Any) -> bool:
    """Tell whether a named tuple is a node for what it is, and not registered in another way."""
    if not _is_named(value):
        return False
    marks = [object() for _ in value]
    try:
        leaves = tree.leaves(type(value)(*marks))
    except Exception:  # it looks at what it is made of
        return False
    return len(leaves) == len(marks) and all(a is b for a, b in zip(leaves, marks, strict=True))


def flattener(args: tuple[Any, ...]) -> Callable[..., list[Any] | None]:
    """Make a function that returns the leaves of arguments like these.

    It returns None if their structure is another. A leaf may be anything, also a node: the caller
    looks at the types.
    """
    code = _Code()
    leaves: list[str] = []

    def take(name: str, value: Any) -> None:
        parts = _parts(value)
        if parts is not None:
            kind = type(value)
            written = kind.__name__ if kind in (dict, list, tuple) else code.bind(kind)
            code.lines.append(f"if type({name}) is not {written} or len({name}) != {len(parts)}:")
            code.lines.append("    return None")
            inner = [next(code.fresh) for _ in parts]
            if kind is dict:
                for (key, _), part in zip(parts, inner, strict=True):
                    code.lines.append(f"{part} = {name}[{key!r}]")
            elif parts:
                comma = "," if len(parts) == 1 else ""
                code.lines.append(f"{', '.join(inner)}{comma} = {name}")
            for (_, child), part in zip(parts, inner, strict=True):
                take(part, child)
            return
        found, structure = tree.flatten(value)
        if len(found) == 1 and found[0] is value:
            leaves.append(name)
            return
        if value is None:
            code.lines.append(f"if {name} is not None:")
            code.lines.append("    return None")
            return
        part, other = next(code.fresh), next(code.fresh)
        code.lines.append(f"{part}, {other} = flatten({name})")
        code.lines.append(f"if {other} != {code.bind(structure)}:")
        code.lines.append("    return None")
        leaves.append(f"*{part}")

    names = [next(code.fresh) for _ in args]
    for name, value in zip(names, args, strict=True):
        take(name, value)
    code.lines.append(f"return [{', '.join(leaves)}]")
    return code.function(f"def made({', '.join(names)}):")  # type: ignore[no-any-return]


def builder(treedef: Any, count: int) -> Callable[[Sequence[Any]], Any]:
    """Make a function that puts `count` leaves together as `treedef` says."""
    code = _Code()
    marks = [object() for _ in range(count)]
    places = {id(mark): place for place, mark in enumerate(marks)}

    def written(value: Any) -> str:
        place = places.get(id(value))
        if place is not None:
            return f"o{place}"
        if value is None:
            return "None"
        parts = _parts(value)
        if parts is None:
            leaves, structure = tree.flatten(value)
            inner = ", ".join([f"o{places[id(leaf)]}" for leaf in leaves])
            return f"unflatten({code.bind(structure)}, [{inner}])"
        kind = type(value)
        if kind is dict:
            return (
                f"{{{', '.join([f'{key!r}: {written(child)}' for key, child in value.items()])}}}"
            )
        inner = ", ".join([written(child) for _, child in parts])
        if kind is list:
            return f"[{inner}]"
        if kind is tuple:
            return f"({inner}{',' if len(parts) == 1 else ''})"
        return f"{code.bind(kind)}({inner})"

    try:
        example = tree.unflatten(treedef, marks)
        text = written(example)
    except Exception:  # a node that looks at what it is made of
        return lambda leaves: tree.unflatten(treedef, leaves)
    if count:
        comma = "," if count == 1 else ""
        code.lines.append(f"{', '.join([f'o{i}' for i in range(count)])}{comma} = leaves")
    code.lines.append(f"return {text}")
    return code.function("def made(leaves):")  # type: ignore[no-any-return]
