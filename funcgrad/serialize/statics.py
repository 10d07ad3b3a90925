"""Static fields and functions as text: enough to say whether two are the same, never to make one.

What belongs to the structure of a model (sizes, flags, activation functions) comes from the tree
that is given to `load`. The file has a description of it, and a difference is an error: the
parameters of a network with tanh are of no use in one with relu. A function is described as
``module:qualified name``, one of ours by its package: ``funcgrad.nn:relu``. Descriptions are only
ever compared; nothing is looked up by one.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from funcgrad import tree

__all__ = ["NOT_PLAIN", "function_name", "is_same", "plain", "shown", "static_fields"]

NOT_PLAIN = object()
_SHOWN = 60


def plain(value: Any) -> Any:
    """Return a value of Python's own as JSON, or `NOT_PLAIN`."""
    cls = type(value)
    if value is None or cls is bool or cls is str:
        return value
    if cls is int:
        return value if abs(value) < 2**63 else {"int": hex(value)}
    if cls is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if cls is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if cls is bytes:
        return {"bytes": value.hex()}
    return NOT_PLAIN


def function_name(value: Any) -> str | None:
    """Return ``module:qualified name`` of a function, or None for anything else."""
    if isinstance(value, partial):
        # What it fills in is part of what it computes.
        filled = json.dumps([_described(value.args), _described(value.keywords)])
        return f"{function_name(value.func)}, with {filled}"
    if not callable(value) or isinstance(value, type):
        return None
    return _name(value)


def _name(value: Any) -> str | None:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    module = getattr(value, "__module__", None) or "builtins"
    if module.startswith("funcgrad."):  # in which of our files it is may change
        module = ".".join(module.split(".")[:2])
    return f"{module}:{name}"


def static_fields(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the description of what belongs to the structure of a class's instance."""
    structure = tree.structure(node, is_leaf=lambda inner: inner is not node)
    meta = structure.meta
    if meta is None:
        return
    names = getattr(structure.container, "static", None)
    if names is None:
        yield "the auxiliary data", _described(meta)
    else:
        for name, value in zip(names, meta, strict=True):
            yield f".{name}", _described(value)


def _described(value: Any) -> Any:
    """Return JSON that is equal for equal values."""
    found = plain(value)
    if found is not NOT_PLAIN:
        return found
    cls = type(value)
    if cls is list or cls is tuple:
        parts = [_described(part) for part in value]
        return parts if cls is list else {"tuple": parts}
    if cls is dict:
        return {"dict": [[_described(key), _described(part)] for key, part in value.items()]}
    if isinstance(value, np.dtype):
        return {"dtype": str(value)}
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return {"array": [str(value.dtype), list(value.shape), zlib.crc32(value.tobytes())]}
    name = _name(value) if isinstance(value, type) else function_name(value)
    return {"object": _name(cls)} if name is None else {"function": name}


def is_same(saved: Any, wanted: Any) -> bool:
    """Compare two descriptions.

    A script that runs is the module ``__main__``, and imported, it has another name: that
    difference is none.
    """
    # As text: in Python, 1, 1.0 and True are equal.
    texts = [json.dumps(node, sort_keys=True) for node in (saved, wanted)]
    if texts[0] == texts[1]:
        return True
    return _in_main(saved, wanted) or _in_main(wanted, saved)


def _in_main(one: Any, other: Any) -> bool:
    module, name = _parts(one)
    return module == "__main__" and name == _parts(other)[1]


def _parts(node: Any) -> tuple[str | None, str | None]:
    """Part the name of a function or a class; for anything else, return nothing."""
    name = node.get("function", node.get("object")) if isinstance(node, dict) else None
    if not isinstance(name, str):
        return None, None
    module, _, qualified = name.partition(":")
    return module, qualified


def shown(node: Any) -> str:
    """Write a description for a person."""
    if isinstance(node, dict) and len(node) == 1:
        ((kind, content),) = node.items()
        if kind in ("function", "object", "dtype") and isinstance(content, str):
            return _cut(f"an object of {content}" if kind == "object" else content)
        if kind == "tuple" and isinstance(content, list):
            parts: Callable[[Any], str] = shown
            return _cut(f"({', '.join(map(parts, content))}{',' * (len(content) == 1)})")
    return _cut(repr(node))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
