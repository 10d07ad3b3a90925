"""A tree as JSON, with its arrays beside it, and back.

In JSON a node is one of

=================================================== ===============================================
``null``                                            None
``true``, ``3``, ``2.5``, ``"text"``                Python's bool, int, float, str
``{"float": "nan"}``, ``int``, ``complex``,         those of them, and bytes, that JSON has no
``bytes``                                           form for
``{"array": name}``, ``scalar``, ``key``            an entry of the archive, and what it was: an
                                                    array, a NumPy scalar, a random key
``[node, ...]``, ``{"tuple": [node, ...]}``         a list, a tuple
``{"dict": [[key, node], ...]}``, ``OrderedDict``,  mappings, in their own order; the last has the
``defaultdict``                                     name of its ``factory`` besides
``{"namedtuple": class, "fields": {...}}``          a named tuple
``{"class": class, "children": [[step, node]...],`` a registered class, the steps of key paths, and
`` "static": [[name, description]...]}``            descriptions of what is no child: see `statics`
``{"function": "module:qualified name"}``           a function, which `load` takes from a template
=================================================== ===============================================

where a class is ``"module:qualified name"``. Files name classes, but looking one up imports nothing
outside of funcgrad and only ever finds named tuples.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from funcgrad import random, tree
from funcgrad.errors import (
    ArgumentError,
    DtypeError,
    FuncgradError,
    TracerConversionError,
    TreeMismatchError,
    describe,
    user_line,
)
from funcgrad.serialize.archive import ABOUT, npy_header
from funcgrad.serialize.statics import NOT_PLAIN, function_name, plain, static_fields

__all__ = [
    "SavedFunction",
    "as_node",
    "leaf_nodes",
    "leaf_value",
    "place",
    "static_nodes",
    "static_of",
    "tree_of",
    "unique_names",
]

_MAPPINGS: dict[str, type] = {cls.__name__: cls for cls in (dict, OrderedDict, defaultdict)}
_FACTORIES: dict[str, Any] = {
    cls.__name__: cls for cls in (bool, complex, dict, float, int, list, set, str, tuple)
}
_NAME_KEPT = 1000


def place(path: str) -> str:
    """Write where in a tree something is."""
    return path or "the root"


# Writing


def as_node(value: Any, path: tree.KeyPath = ()) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return a tree as JSON, and its arrays by the names of their entries."""
    arrays: dict[str, NDArray[Any]] = {}
    return _as_node(value, path, arrays), arrays


def _as_node(value: Any, path: tree.KeyPath, arrays: dict[str, NDArray[Any]]) -> Any:
    cls = type(value)
    if cls is list or cls is tuple:
        nodes = [
            _as_node(child, (*path, tree.SequenceKey(i)), arrays) for i, child in enumerate(value)
        ]
        return nodes if cls is list else {"tuple": nodes}
    if _MAPPINGS.get(cls.__name__) is cls:
        pairs = []
        for key, child in value.items():
            step = (*path, tree.DictKey(key))
            pairs.append([_key_node(key, step), _as_node(child, step, arrays)])
        if cls is defaultdict:
            return {"defaultdict": pairs, "factory": _factory_name(value.default_factory)}
        return {cls.__name__: pairs}
    simple = plain(value)
    if simple is not NOT_PLAIN:
        return simple
    children = tree.leaves_with_path(value, is_leaf=lambda node: node is not value)
    if len(children) == 1 and children[0][0] == ():
        return _leaf_node(value, path, arrays)
    steps = [str(key) for (key,), _ in children]
    nodes = [_as_node(child, (*path, *key), arrays) for key, child in children]
    fields = getattr(cls, "_fields", ())
    if issubclass(cls, tuple) and steps == [f".{field}" for field in fields]:
        return {"namedtuple": _class_name(cls), "fields": dict(zip(fields, nodes, strict=True))}
    pairs = [[step, node] for step, node in zip(steps, nodes, strict=True)]
    fixed = [[name, description] for name, description in static_fields(value)]
    return {"class": _class_name(cls), "children": pairs, **({"static": fixed} if fixed else {})}


def _key_node(key: Any, path: tree.KeyPath) -> Any:
    """Return the key of a mapping as JSON."""
    if type(key) is tuple:
        return {"tuple": [_key_node(part, path) for part in key]}
    node = plain(key)
    if node is NOT_PLAIN:
        raise ArgumentError(
            f"a dict with a key of type {type(key).__name__} cannot be saved",
            where=f"{tree.keystr(path)}, saved at {user_line()}",
            fix="use strings, numbers or tuples of them as keys",
        )
    return node


def _factory_name(factory: Any) -> str | None:
    if factory is None:
        return None
    name = getattr(factory, "__name__", type(factory).__name__)
    return name if _FACTORIES.get(name) is factory else f"another factory, {name}"


def _class_name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _leaf_node(leaf: Any, path: tree.KeyPath, arrays: dict[str, NDArray[Any]]) -> Any:
    tag, array = "array", leaf
    if isinstance(leaf, random.Key):
        tag, array = "key", random.key_data(leaf)
    elif isinstance(leaf, np.generic):
        tag, array = "scalar", np.asarray(leaf)
    elif type(leaf) is np.memmap:
        array = leaf.view(np.ndarray)
    name = tree.keystr(path)
    if type(array) is not np.ndarray:
        function = None if hasattr(array, "__array__") else function_name(leaf)
        if function is not None:
            return {"function": function}
        raise _refusal(leaf, array, name)
    try:
        npy_header(array)
    except (ValueError, TypeError) as error:
        objects = array.dtype.kind == "O"
        raise DtypeError(
            "an array of Python objects cannot be saved"
            if objects
            else f"an array of dtype {array.dtype} cannot be saved",
            where=f"{place(name)} is {describe(array)}, saved at {user_line()}",
            fix="put the objects into lists and dicts, and numbers into arrays of a numeric dtype"
            if objects
            else "convert it to a dtype of NumPy's with .astype()",
        ) from error
    # Zip archives cut names at NUL, and on Windows make slashes of backslashes.
    if not name or not name.isprintable() or "\\" in name or len(name) > _NAME_KEPT:
        name = f"leaf {len(arrays)}" if path else "leaf"
    if name in arrays or name == ABOUT:
        name = f"leaf {len(arrays)}"
    arrays[name] = array
    return {tag: name}


def _refusal(leaf: Any, array: Any, name: str) -> FuncgradError:
    """Make the error of a leaf that no file can hold."""
    what = f"a leaf of type {type(leaf).__name__} cannot be saved"
    where = f"{place(name)}, saved at {user_line()}"
    if not hasattr(array, "__array__"):
        return ArgumentError(
            what,
            where=where,
            fix="leave it out of the tree, or make it a static field: fg.static()",
        )
    try:
        np.asarray(array)
    except TracerConversionError:
        return TracerConversionError(
            "a traced value cannot be saved",
            where=f"{place(name)} is {describe(leaf)}, saved at {user_line()}",
            fix="save after the transform has returned; within grad, save fg.stop_gradient(tree)",
        )
    except Exception:  # a class of array that does not convert: the fix below makes it say why
        pass
    if isinstance(array, np.ma.MaskedArray):
        return ArgumentError(what, where=where, fix="save x.data and np.ma.getmaskarray(x)")
    return ArgumentError(what, where=where, fix="save np.asarray(x) in its place")


# Reading


class SavedFunction(NamedTuple):
    """What a file says about a function: its name, for a template's to be compared with."""

    name: str


def static_nodes(node: Any, path: tree.KeyPath = ()) -> Iterator[tuple[str, Any]]:
    """Yield the path and the description of every static field."""
    if isinstance(node, dict) and "class" in node:
        for name, description in node.get("static", ()):
            yield tree.keystr(path) + (name if name.startswith(".") else f" ({name})"), description
    for step, child in _children(node) or ():
        yield from static_nodes(child, (*path, step))


def static_of(value: Any, path: tree.KeyPath = ()) -> Iterator[tuple[str, Any]]:
    """Yield the same of a tree."""
    children = tree.leaves_with_path(value, is_leaf=lambda node: node is not value)
    if len(children) == 1 and children[0][0] == ():
        return
    if type(value) not in (dict, list, tuple, OrderedDict, defaultdict):
        for name, description in static_fields(value):
            yield tree.keystr(path) + (name if name.startswith(".") else f" ({name})"), description
    for key, child in children:
        yield from static_of(child, (*path, *key))


def leaf_nodes(node: Any, path: tree.KeyPath = ()) -> Iterator[tuple[str, Any]]:
    """Yield the path and the node of every leaf."""
    children = _children(node)
    if children is None:
        yield tree.keystr(path), node
        return
    for step, child in children:
        yield from leaf_nodes(child, (*path, step))


def _children(node: Any) -> list[tuple[Any, Any]] | None:
    """List steps and nodes below a node, or return None for a leaf."""
    if node is None:
        return []
    if isinstance(node, list):
        return [(tree.SequenceKey(i), child) for i, child in enumerate(node)]
    if not isinstance(node, dict):
        return None
    if "tuple" in node:
        return _children(list(node["tuple"]))
    if "namedtuple" in node:
        return [(tree.AttrKey(name), child) for name, child in node["fields"].items()]
    if "class" in node:
        return [(step, child) for step, child in node["children"]]
    for tag in _MAPPINGS:
        if tag in node:
            return [(tree.DictKey(_key_of(key)), child) for key, child in node[tag]]
    return None


def unique_names(pairs: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Return pairs as a dict; of equal names, the second and later ones get a number."""
    named: dict[str, Any] = {}
    for name, value in pairs:
        free, count = name, 1
        while free in named:
            count += 1
            free = f"{name} ({count})"
        named[free] = value
    return named


def leaf_value(node: Any, read: Callable[[str], NDArray[Any]]) -> Any:
    """Return the leaf that a node describes; `read` gives the array of a name."""
    if not isinstance(node, dict):
        return node
    ((tag, content),) = node.items()
    if tag == "array":
        return read(content)
    if tag == "scalar":
        return read(content)[()]
    if tag == "key":
        return random.wrap_key_data(read(content))
    if tag == "int":
        return int(content, 16)
    if tag == "float":
        return float(content)
    if tag == "complex":
        real, imag = content
        return complex(float(real), float(imag))
    if tag == "bytes":
        return bytes.fromhex(content)
    if tag == "function" and isinstance(content, str):
        return SavedFunction(content)
    raise ValueError(f"unknown kind of leaf: {tag!r}")


def _key_of(node: Any) -> Any:
    if isinstance(node, dict) and "tuple" in node:
        return tuple([_key_of(part) for part in node["tuple"]])
    return leaf_value(node, _no_array)


def _no_array(name: str) -> NDArray[Any]:
    raise ValueError(f"the key of a dict is the array {name!r}")


def tree_of(
    node: Any, read: Callable[[str], NDArray[Any]], strict: bool, path: tree.KeyPath = ()
) -> Any:
    """Build the tree that a node describes."""
    children = _children(node)
    if children is None:
        value = leaf_value(node, read)
        if isinstance(value, SavedFunction):
            raise _needs_template("the function", value.name, path)
        return value
    if node is None:
        return None
    if isinstance(node, dict) and "class" in node:
        raise _needs_template("an instance of", node["class"], path)
    steps = [step for step, _ in children]
    values = [tree_of(child, read, strict, (*path, step)) for step, child in children]
    if isinstance(node, list):
        return values
    if "tuple" in node:
        return tuple(values)
    if "namedtuple" in node:
        fields = tuple(node["fields"])
        cls: Any = _named_tuple(node["namedtuple"], fields, strict, path)
        return cls._make(values)
    pairs = zip([step.key for step in steps], values, strict=True)
    if "defaultdict" in node:
        factory = node["factory"]
        if factory is not None and factory not in _FACTORIES:
            raise _needs_template("a defaultdict with", factory, path)
        return defaultdict(_FACTORIES.get(factory), pairs)
    return OrderedDict(pairs) if "OrderedDict" in node else dict(pairs)


def _needs_template(what: str, name: str, path: tree.KeyPath) -> ArgumentError:
    return ArgumentError(
        f"load cannot make {what} {name.partition(':')[2] or name}",
        where=f"{place(tree.keystr(path))}, loaded at {user_line()}",
        fix="give a tree of the same structure to take it from: load(path, template=tree)",
    )


def _named_tuple(name: str, fields: tuple[str, ...], strict: bool, path: tree.KeyPath) -> type:
    """Find the class of a named tuple among those that are there, or else make one up."""
    module, _, qualified = name.partition(":")
    if module.partition(".")[0] == "funcgrad":
        with contextlib.suppress(ImportError):  # ours to import: the state of an optimizer, say
            importlib.import_module(module)
    found = _found_class(module, qualified)
    if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_make"):
        known = tuple(getattr(found, "_fields", ()))
        if known == fields:
            return found
        if strict:
            raise TreeMismatchError(
                f"the named tuple {qualified} had other fields when it was saved",
                where=f"{place(tree.keystr(path))} has {', '.join(fields)}; "
                f"{module}.{qualified} has {', '.join(known)}",
                fix="give template=, to take the values by name; or strict=False, to have them "
                "as they were saved",
            )
    if strict:
        raise ArgumentError(
            f"load does not know the named tuple {qualified}",
            where=f"{place(tree.keystr(path))} is a {module}.{qualified}, loaded at {user_line()}",
            fix=f"import {module} first, or give template=; strict=False makes up a class",
        )
    return namedtuple(qualified.rpartition(".")[2], fields)


def _found_class(module: str, qualified: str) -> Any:
    """Return what has a name in a module that is loaded, or in one beside it if it is ours.

    A class of ours that has moved to another file of its package is found by its name.
    """
    package, _, _ = module.rpartition(".")
    beside = [name for name in sys.modules if package and name.startswith(f"{package}.")]
    ours = module.partition(".")[0] == "funcgrad"
    for name in [module, *(sorted(beside) if ours else [])]:
        found: Any = sys.modules.get(name)
        for part in qualified.split("."):
            found = _attributes(found).get(part)  # not getattr, which may run code
        if found is not None:
            return found
    return None


def _attributes(owner: Any) -> Mapping[str, Any]:
    attributes: Mapping[str, Any] = getattr(owner, "__dict__", {})
    return attributes
