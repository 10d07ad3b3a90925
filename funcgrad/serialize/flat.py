"""Pytrees in ``.safetensors`` files, which have names instead of a structure.

A leaf is called by its path, with dots between the steps: ``layers.0.weight``. Whatever such a file
cannot hold is an error, but for functions, which a template has too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import random
from funcgrad import tree as trees
from funcgrad.errors import ArgumentError, DtypeError, describe, user_line
from funcgrad.serialize.fitting import Names, Stored, fitting_leaves
from funcgrad.serialize.safetensors import SafetensorsFile, dtype_code, write_safetensors
from funcgrad.serialize.statics import function_name
from funcgrad.serialize.structure import as_node, place

__all__ = ["load_arrays", "save_arrays"]


def load_arrays(name: str, template: Any, strict: bool, names: Names | None) -> Any:
    """Read a file, into a template or as a dict of its arrays."""
    with SafetensorsFile(name) as file:
        if template is None:
            return {key: file.read(key) for key in file.names}
        # What is no array cannot be in such a file: it is that of the template.
        leaves, structure = trees.flatten(template)
        pairs = trees.leaves_with_path(template)
        arrays = [i for i, leaf in enumerate(leaves) if function_name(leaf) is None]
        found = fitting_leaves(
            Stored(file.names, file.read),
            [pairs[i] for i in arrays],
            names=names,
            own_name=_dotted,
            statics=[],
            strict=strict,
            file=name,
        )
    for i, leaf in zip(arrays, found, strict=True):
        leaves[i] = leaf
    return trees.unflatten(structure, leaves)


def save_arrays(name: str, tree: Any, fsync: bool) -> None:
    """Write the arrays and numbers of a tree."""
    arrays: dict[str, Any] = {}
    for path, leaf in trees.leaves_with_path(tree):
        if function_name(leaf) is not None:
            continue
        _, found = as_node(leaf, path)  # says what is wrong with a leaf
        array = next(iter(found.values()), None)
        if array is None and type(leaf) in (bool, int, float):
            array = np.asarray(leaf)
        place_name = place(trees.keystr(path))
        if array is None or isinstance(leaf, random.Key) or dtype_code(array.dtype) is None:
            raise DtypeError(
                f"a .safetensors file cannot hold {_a_leaf(leaf)}",
                where=f"{place_name}, saved at {user_line()}",
                fix="leave it out, convert it, or save to an .npz file, which holds any tree",
            )
        key = _dotted(path)
        if key in arrays or key == "__metadata__":
            raise ArgumentError(
                f"a .safetensors file would have {key!r} twice",
                where=f"{place_name}, saved at {user_line()}",
                fix="use keys without dots, or save to an .npz file",
            )
        arrays[key] = array
    write_safetensors(name, arrays, fsync)


def _a_leaf(leaf: Any) -> str:
    return describe(leaf) if hasattr(leaf, "shape") else f"a Python {type(leaf).__name__}"


def _dotted(path: trees.KeyPath) -> str:
    return trees.keystr(path, simple=True, separator=".") or "leaf"  # a tree that is one array
