"""Pytrees: nested containers of arrays, and functions over all of their leaves.

Parameters, gradients and optimizer states are trees of arrays: dicts, lists, tuples, named
tuples, None (no leaves), and classes made by `pytree` or announced by `register`. Everything
that is of none of these types is a leaf. The one idea: a tree is a list of leaves and a structure
(a `TreeDef`), `flatten` parts them and `unflatten` joins them again, and whatever handles
leaves needs to know nothing of containers. Names and meanings are those of ``jax.tree`` and, for
`partition` and `combine`, of Equinox.

The files, each of which imports only those before it: ``paths`` (keys and how they print),
``content`` (equality by content), ``order`` (of the leaves of a dict), ``containers`` (what is a
node), ``depth`` (trees without end), ``mismatch`` (the words of errors), ``treedef`` (structures,
and the fast walks), ``operations`` (map and its kin), ``regroup`` (partition and its kin),
``surgery`` (replacing parts), ``classes`` (classes as nodes), ``ravel`` (to one vector and back).
"""

from funcgrad.tree.classes import pytree, register_dataclass, static
from funcgrad.tree.containers import register
from funcgrad.tree.content import content_hash, same
from funcgrad.tree.operations import (
    all,
    flatten_with_path,
    leaves,
    leaves_with_path,
    map,
    map_with_path,
    reduce,
    structure,
)
from funcgrad.tree.paths import AttrKey, DictKey, KeyPath, SequenceKey, keystr
from funcgrad.tree.ravel import ravel
from funcgrad.tree.regroup import broadcast, combine, partition, transpose
from funcgrad.tree.surgery import at
from funcgrad.tree.treedef import TreeDef, check_match, flatten, unflatten

__all__ = [
    "AttrKey",
    "DictKey",
    "KeyPath",
    "SequenceKey",
    "TreeDef",
    "all",
    "at",
    "broadcast",
    "check_match",
    "combine",
    "content_hash",
    "flatten",
    "flatten_with_path",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "partition",
    "pytree",
    "ravel",
    "reduce",
    "register",
    "register_dataclass",
    "same",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
