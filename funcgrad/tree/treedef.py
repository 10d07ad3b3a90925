"""`TreeDef`, the structure of a pytree, and the three walks that every training step takes.

`flatten` takes a tree apart into leaves and structure, `unflatten` puts them together again, and
`flatten_up_to` lists what another tree has where this one has its leaves. All three run at each
step, so they are written for speed in plain Python: leaves are told by one test of membership
without a call, dicts, lists and tuples are handled in place, and the structure of a node that
holds only leaves (most are) is not built but looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from funcgrad.errors import ArgumentError, TreeMismatchError
from funcgrad.tree.containers import (
    CONTAINERS,
    LEAVES,
    Container,
    FieldsContainer,
    container_of,
)
from funcgrad.tree.content import content_hash
from funcgrad.tree.depth import check_depth
from funcgrad.tree.mismatch import Blame, Words, mismatch
from funcgrad.tree.order import ORDERS, order_of

__all__ = ["LEAF", "TreeDef", "check_match", "flatten", "unflatten"]

_DICT = CONTAINERS[dict]


class TreeDef:
    """The structure of a pytree: its containers, their keys and static fields, and no leaves.

    `flatten` and `structure` make them. They are immutable, can be compared, hashed and pickled,
    and print as the tree with ``*`` for each leaf.

    Attributes
    ----------
    num_leaves : int
        How many leaves a tree of this structure has.
    num_nodes : int
        How many containers and leaves it has; None is a container.
    is_leaf : bool
        Whether it is that of a single leaf.

    Examples
    --------
    >>> import funcgrad.tree as tree
    >>> treedef = tree.structure({"a": 1.0, "b": (2.0, None)})
    >>> treedef
    TreeDef({'a': *, 'b': (*, None)})
    >>> treedef.num_leaves, treedef.num_nodes
    (2, 5)
    >>> treedef.unflatten(["x", "y"])
    {'a': 'x', 'b': ('y', None)}
    >>> treedef == tree.structure({"b": (3.0, None), "a": 4.0})
    True
    """

    # `_flat`: all children are leaves. `_container` is None for a leaf alone.
    __slots__ = ("__weakref__", "_children", "_container", "_flat", "_hash", "_meta", "_num_leaves")

    _hash: int | None

    def __init__(
        self,
        container: Container | None,
        meta: Any,
        children: tuple[TreeDef, ...],
        num_leaves: int,
        flat: bool,
    ) -> None:
        self._container = container
        self._meta = meta
        self._children = children
        self._num_leaves = num_leaves
        self._flat = flat
        self._hash = None

    @property
    def num_leaves(self) -> int:
        """How many leaves a tree of this structure has."""
        return self._num_leaves

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves it has."""
        return 1 + sum(child.num_nodes for child in self._children)

    @property
    def is_leaf(self) -> bool:
        """Whether it is the structure of a single leaf."""
        return self._container is None

    @property
    def container(self) -> Container | None:
        """What knows the type of the outermost node; None for a leaf."""
        return self._container

    @property
    def meta(self) -> Any:
        """What belongs to the outermost node beside its type and its children."""
        return self._meta

    def children(self) -> list[TreeDef]:
        """List the structures of the children of the outermost node, in leaf order."""
        return list(self._children)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Build the tree of this structure that has these leaves; see `unflatten`."""
        return unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """List what `tree`, of this structure or deeper, has where this structure has leaves.

        Parameters
        ----------
        tree : pytree
            Like this structure, with any subtree in place of a leaf.

        Returns
        -------
        list
            `num_leaves` subtrees.

        Raises
        ------
        TreeMismatchError
            `tree` departs from this structure above its leaves.

        Examples
        --------
        >>> import funcgrad.tree as tree
        >>> tree.structure({"a": 0, "b": 0}).flatten_up_to({"a": (1, 2), "b": 3})
        [(1, 2), 3]
        """
        return check_match(
            self,
            tree,
            what="the tree does not fit the structure",
            where="the tree",
            against="the structure",
            fix=lambda: f"give it the containers of {_shortened(self)}",
            prefix=True,
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not TreeDef:
            return NotImplemented
        container = self._container
        if (
            container is None
            or container is not other._container
            or self._num_leaves != other._num_leaves
        ):
            return False  # the structure of a leaf is one object, equal to itself only
        if self._meta is not other._meta and not container.same_meta(self._meta, other._meta):
            return False
        return self._children == other._children

    def __hash__(self) -> int:
        if self._hash is None:
            container = self._container
            if container is None:
                self._hash = hash(TreeDef)
            else:
                try:
                    meta = container.hash_meta(self._meta)
                except TypeError as error:
                    raise _unhashable(container, self._meta) from error
                self._hash = hash((container.cls, meta, self._children))
        return self._hash

    def __repr__(self) -> str:
        return f"TreeDef({_show(self)})"

    def __reduce__(self) -> str | tuple[object, ...]:
        if self._container is None:
            return "LEAF"
        return _rebuild, (self._container, self._meta, self._children)


LEAF = TreeDef(None, None, (), 1, False)
"""The structure of a leaf: one object, so that it can be told by identity."""


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """Take a tree apart into its leaves and its structure.

    Parameters
    ----------
    tree : pytree
        Nested dicts, lists, tuples, named tuples, None and registered classes. Anything else is
        a leaf.
    is_leaf : callable, optional
        Asked about every node from the root down; where it says True, the node is a leaf.

    Returns
    -------
    leaves : list
        The leaves, those of a dict in the order of its sorted keys.
    treedef : TreeDef
        The structure.

    Raises
    ------
    DeepTreeError
        `tree` contains itself, or is nested more deeply than Python's recursion limit allows.

    Examples
    --------
    >>> flatten({"b": [2.0, None], "a": 1.0})
    ([1.0, 2.0], TreeDef({'a': *, 'b': [*, None]}))
    """
    leaves: list[Any] = []
    try:
        if is_leaf is None:
            return leaves, _flatten(tree, leaves)
        return leaves, _flatten_until(tree, leaves, is_leaf)
    except RecursionError:
        check_depth(tree)
        raise


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Build the tree that has this structure and these leaves.

    Parameters
    ----------
    treedef : TreeDef
        The structure.
    leaves : iterable
        As many values as `treedef` has leaves, in the order of `flatten`. They may be trees.

    Returns
    -------
    pytree
        The tree. Dicts list their keys in the order of the dict that the structure came from.

    Raises
    ------
    TreeMismatchError
        The number of leaves is wrong.

    Examples
    --------
    >>> leaves, treedef = flatten({"b": [2.0, None], "a": 1.0})
    >>> unflatten(treedef, [10, 20])
    {'b': [20, None], 'a': 10}
    """
    if type(treedef) is not TreeDef:
        raise ArgumentError(
            "unflatten takes the structure first",
            where=f"its first argument is of type {type(treedef).__name__}",
            fix="unflatten(treedef, leaves)",
        )
    if type(leaves) is not list:
        leaves = list(leaves)
    if len(leaves) != treedef._num_leaves:
        raise TreeMismatchError(
            "wrong number of leaves",
            where=f"{_count(treedef._num_leaves)} expected by {_shortened(treedef)}, "
            f"{len(leaves)} given",
            fix="give one value for each *, in the order in which flatten lists them",
        )
    if treedef._container is None:
        return leaves[0]
    return _build(treedef, iter(leaves))


def check_match(
    expected: TreeDef,
    tree: Any,
    *,
    what: Words,
    where: Words,
    against: Words = "the expected tree",
    fix: Words | None = None,
    prefix: bool = False,
    blame: Blame = "tree",
) -> list[Any]:
    """Return the leaves of a tree that must have a given structure.

    Parameters
    ----------
    expected : TreeDef
        The structure.
    tree : pytree
        What must have it.
    what : str or callable
        First line of the error: what does not fit what. A callable is called for its words only
        when there is an error.
    where : str or callable
        What `tree` is to the user: "the cotangent", "argument 0". The path and the difference
        are added to it.
    against : str or callable, default "the expected tree"
        What `expected` is the structure of: "the output", "the optimizer state".
    fix : str or callable, optional
        What to write instead. A misspelt key, when it looks like one, takes precedence.
    prefix : bool, default False
        Let `tree` have subtrees where `expected` has leaves, and return those.
    blame : {"tree", "expected"}, default "tree"
        Which one the user should change. With "expected" (a mask or axes that are to fit an
        argument), `where` and `against` change places, and so do missing and unexpected keys.

    Returns
    -------
    list
        The leaves of `tree`, or its subtrees if `prefix`.

    Raises
    ------
    TreeMismatchError
        `tree` is different. It names the first path at which it is.

    Examples
    --------
    >>> params = {"weight": 1.0, "bias": 2.0}
    >>> _, treedef = flatten(params)
    >>> check_match(treedef, {"weight": 3.0, "bias": 4.0}, what="...", where="the gradient")
    [4.0, 3.0]
    >>> check_match(
    ...     treedef,
    ...     {"weight": 3.0, "bais": 4.0},
    ...     what="the gradient does not fit the parameters",
    ...     where="the gradient",
    ...     against="the parameters",
    ... )
    Traceback (most recent call last):
    funcgrad.errors.TreeMismatchError: the gradient does not fit the parameters
      where: the gradient at the root: missing key 'bias', unexpected key 'bais' (compared with ...
      fix:   rename 'bais' to 'bias'
    """
    leaves: list[Any] = []
    try:
        if _flatten_up_to(expected, tree, leaves) if prefix else _flatten(tree, leaves) == expected:
            return leaves
    except RecursionError:
        check_depth(tree)
        raise
    raise mismatch(
        expected,
        tree,
        what=what,
        where=where,
        against=against,
        fix=fix,
        prefix=prefix,
        blame=blame,
    )


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    """Append the leaves of `tree` to `leaves` and return its structure."""
    cls = type(tree)
    values: Any
    container: Container | None
    if cls is dict:
        keys = tuple(tree)
        meta = ORDERS.get(keys)
        # Keys that are equal to strings without being plain ones (enums) must come back as such.
        if meta is None or type(keys[0]) is not str:
            meta = order_of(keys)
        values = tree.values() if meta.in_order else meta.values(tree)
        container = _DICT
    else:
        container = container_of(cls)
        if container is None:
            leaves.append(tree)
            return LEAF
        values, meta = container.flatten(tree)
    for value in values:
        # The second question is for types that have not been met: is it a leaf after all?
        if type(value) not in LEAVES and container_of(type(value)) is not None:
            break
    else:
        leaves += values
        return _flat(container, meta, len(values))
    before = len(leaves)
    children = []
    for value in values:
        if type(value) in LEAVES:
            leaves.append(value)
            children.append(LEAF)
        else:
            children.append(_flatten(value, leaves))
    return TreeDef(container, meta, tuple(children), len(leaves) - before, False)


def _flatten_until(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool]) -> TreeDef:
    """Like `_flatten`, stopping where `is_leaf` says so."""
    container = None if is_leaf(tree) else container_of(type(tree))
    if container is None:
        leaves.append(tree)
        return LEAF
    values, meta = container.flatten(tree)
    before = len(leaves)
    children = tuple([_flatten_until(value, leaves, is_leaf) for value in values])
    return _node(container, meta, children, len(leaves) - before)


def _flatten_up_to(expected: TreeDef, tree: Any, leaves: list[Any]) -> bool:
    """Append what `tree` has at the leaves of `expected`, or return False where it differs."""
    container = expected._container
    if container is None:
        leaves.append(tree)
        return True
    cls: Any = type(tree)
    if cls is not container.cls:
        return False
    children: Any
    if container is _DICT:
        order = expected._meta
        keys = tuple(tree)
        if keys == order.given:
            children = order.values(tree)
        elif len(keys) != len(order.given):
            return False
        else:
            try:
                children = [tree[key] for key in order.sorted]
            except KeyError:
                return False
    else:
        children, meta = container.flatten(tree)
        if len(children) != len(expected._children):
            return False
        if meta is not expected._meta and not container.same_meta(meta, expected._meta):
            return False
    if expected._flat:
        leaves += children
        return True
    for structure, child in zip(expected._children, children):  # noqa: B905 - same length
        if structure is LEAF:
            leaves.append(child)
        elif not _flatten_up_to(structure, child, leaves):
            return False
    return True


def _build(treedef: TreeDef, leaves: Iterator[Any]) -> Any:
    """Build a node from the next leaves."""
    children: Iterable[Any]
    if treedef._flat:
        children = leaves
    else:
        children = [
            next(leaves) if child is LEAF else _build(child, leaves) for child in treedef._children
        ]
    container: Any = treedef._container
    if container is _DICT:
        order = treedef._meta
        # `zip` asks for a leaf only after a key, so it takes no more of them than there are
        # keys. Its `strict=` would cost as much as two leaves.
        if order.in_order:
            return dict(zip(order.given, children))  # noqa: B905
        node = order.blank.copy()
        for key, child in zip(order.sorted, children):  # noqa: B905
            node[key] = child
        return node
    if children is leaves:
        children = islice(leaves, treedef._num_leaves)
    return container.unflatten(treedef._meta, children)


def _flat(container: Container, meta: Any, count: int) -> TreeDef:
    """Return the structure of a node that holds `count` leaves and nothing else."""
    if container is _DICT:
        treedef: TreeDef | None = meta.flat
        if treedef is None:
            treedef = meta.flat = TreeDef(container, meta, (LEAF,) * count, count, True)
        return treedef
    if meta is not None:
        return TreeDef(container, meta, (LEAF,) * count, count, True)
    treedef = container.flats.get(count)
    if treedef is None:
        treedef = TreeDef(container, None, (LEAF,) * count, count, True)
        if count <= _FLATS_KEPT:
            container.flats[count] = treedef
    return treedef


_FLATS_KEPT = 64


def _node(
    container: Container, meta: Any, children: tuple[TreeDef, ...], num_leaves: int
) -> TreeDef:
    """Return a structure by its parts, outside of the hot path."""
    flat = all(child is LEAF for child in children)
    return TreeDef(container, meta, children, num_leaves, flat)


def _rebuild(container: Container, meta: Any, children: tuple[TreeDef, ...]) -> TreeDef:
    return _node(container, meta, children, sum(child._num_leaves for child in children))


def _show(treedef: TreeDef) -> str:
    container = treedef._container
    if container is None:
        return "*"
    return container.show(treedef._meta, [_show(child) for child in treedef._children])


def _shortened(treedef: TreeDef) -> str:
    text = repr(treedef)
    return text if len(text) <= 120 else text[:117] + "..."


def _count(number: int) -> str:
    return f"{number} {'leaf' if number == 1 else 'leaves'}"


def _unhashable(container: Container, meta: Any) -> ArgumentError:
    name = container.cls.__name__
    values = {"the auxiliary data": meta}
    if isinstance(container, FieldsContainer):
        values = {
            f"the static field {field!r}": value
            for field, value in zip(container.static, meta, strict=True)
        }
    for place, value in values.items():
        try:
            content_hash(value)
        except TypeError:
            return ArgumentError(
                f"the structure of {name} cannot be hashed",
                where=f"{place} of {name} is of type {type(value).__name__}",
                fix="use a tuple, a frozenset or another value that can be hashed",
            )
    return ArgumentError(
        f"the structure of {name} cannot be hashed",
        where=f"{name}",
        fix="use values that can be hashed in it",
    )
