"""What is a node of a pytree and what is a leaf: one `Container` for each type of node.

The type of a value decides, exactly: a subclass of ``dict`` that nobody registered is a leaf. So
one dictionary from types to containers answers the question. Types that were looked up and are
no nodes are remembered in `LEAVES`, which lets every loop over children tell a leaf by one test
of membership, without a call. Named tuples are found by their ``_fields`` when first met.

A container takes a node apart into its children and its *meta*, everything else that is needed
to rebuild it (keys, static fields, auxiliary data). Metas decide whether structures are equal.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from types import MemberDescriptorType
from typing import Any

from funcgrad.errors import ArgumentError
from funcgrad.tree.content import content_hash, same
from funcgrad.tree.order import order_of
from funcgrad.tree.paths import AttrKey, DictKey, SequenceKey

__all__ = [
    "CONTAINERS",
    "LEAVES",
    "Container",
    "FieldsContainer",
    "add_container",
    "container_for",
    "container_of",
    "register",
]


class Container:
    """How to take apart and rebuild the nodes of one type; the base of the kinds below."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        # Structures of nodes that hold only leaves and have no meta, by number of leaves.
        self.flats: dict[int, Any] = {}

    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        """Return the children in leaf order, and the meta (None if there is nothing to keep)."""
        raise NotImplementedError

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        """Rebuild a node."""
        raise NotImplementedError

    def keys(self, node: Any) -> Iterable[Any]:
        """Return the path key of each child."""
        return [SequenceKey(i) for i in range(len(self.flatten(node)[0]))]

    def names(self, meta: Any) -> Sequence[Hashable] | None:
        """Return what each child is called, if that is a matter of the meta."""
        return None

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        """Write the structure, given those of the children."""
        return f"{self.cls.__name__}({', '.join(parts)})"

    def same_meta(self, a: Any, b: Any) -> bool:
        """Say whether two nodes of this type have the same structure, children apart."""
        return same(a, b)

    def hash_meta(self, meta: Any) -> int:
        """Hash a meta, in agreement with `same_meta`."""
        return content_hash(meta)

    def __reduce__(self) -> tuple[object, ...]:
        return container_for, (self.cls,)


class _Dict(Container):
    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        order = order_of(tuple(node))
        return [node[key] for key in order.sorted], order

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        node = meta.blank.copy()
        # Not `strict=`, here and below: the keyword costs as much as filling two places.
        for key, child in zip(meta.sorted, children):  # noqa: B905
            node[key] = child
        return node

    def keys(self, node: Any) -> Iterable[Any]:
        return [DictKey(key) for key in order_of(tuple(node)).sorted]

    def names(self, meta: Any) -> Sequence[Hashable]:
        return meta.sorted  # type: ignore[no-any-return]

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        return _braces(meta.sorted, parts)

    def same_meta(self, a: Any, b: Any) -> bool:
        return bool(a.sorted == b.sorted)

    def hash_meta(self, meta: Any) -> int:
        return hash(meta.sorted)


class _DefaultDict(_Dict):
    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        children, order = super().flatten(node)
        return children, (node.default_factory, order)

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        factory, order = meta
        return defaultdict(factory, super().unflatten(order, children))

    def names(self, meta: Any) -> Sequence[Hashable]:
        return super().names(meta[1])

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        factory, order = meta
        name = getattr(factory, "__name__", repr(factory))
        return f"defaultdict({name}, {super().show(order, parts)})"

    def same_meta(self, a: Any, b: Any) -> bool:
        return bool(a[0] == b[0]) and super().same_meta(a[1], b[1])

    def hash_meta(self, meta: Any) -> int:
        return hash((meta[0], super().hash_meta(meta[1])))


class _OrderedDict(Container):
    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        return list(node.values()), tuple(node)

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        return OrderedDict(zip(meta, children, strict=False))

    def keys(self, node: Any) -> Iterable[Any]:
        return [DictKey(key) for key in node]

    def names(self, meta: Any) -> Sequence[Hashable]:
        return meta  # type: ignore[no-any-return]

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        return f"OrderedDict({_braces(meta, parts)})"

    def same_meta(self, a: Any, b: Any) -> bool:
        return bool(a == b)

    def hash_meta(self, meta: Any) -> int:
        return hash(meta)


class _List(Container):
    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        return node, None

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        return list(children)

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        return f"[{', '.join(parts)}]"


class _Tuple(Container):
    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        return node, None

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        return tuple(children)

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


class _None(Container):
    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        return (), None

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        return None

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        return "None"


class _NamedTuple(Container):
    def __init__(self, cls: Any) -> None:
        super().__init__(cls)
        self._names: tuple[str, ...] = tuple(cls._fields)

    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        return node, None

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        return self.cls._make(children)  # type: ignore[attr-defined]

    def keys(self, node: Any) -> Iterable[Any]:
        return [AttrKey(name) for name in self._names]

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        return f"{self.cls.__name__}({_arguments(self._names, parts)})"


class FieldsContainer(Container):
    """A class whose attributes are its children, but for the static ones, which are its meta.

    Rebuilding sets attributes and runs no ``__init__``: a converter or a validator that is meant
    for arrays would choke on what transforms put into trees (tracers, axes, None).
    """

    def __init__(self, cls: type, data: tuple[str, ...], static: tuple[str, ...]) -> None:
        super().__init__(cls)
        self.data, self.static = data, static
        self._get_data, self._get_static = _getter(data), _getter(static)
        self._setters = [_setter(cls, name) for name in (*data, *static)]

    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        """Read the attributes."""
        return self._get_data(node), self._get_static(node) or None

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        """Make an instance by setting its attributes."""
        node: Any = object.__new__(self.cls)
        values = children if meta is None else chain(children, meta)
        for set_value, value in zip(self._setters, values):  # noqa: B905 - strict=: 0.1 us
            set_value(node, value)
        return node

    def keys(self, node: Any) -> Iterable[Any]:
        """Return the path key of each child."""
        return [AttrKey(name) for name in self.data]

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        """Write the structure like a call of the class."""
        fields = [_arguments(self.data, parts)] if parts else []
        if meta is not None:
            fields.append(_arguments(self.static, [repr(value) for value in meta]))
        return f"{self.cls.__name__}({', '.join(fields)})"


class _Registered(Container):
    """A class of the user's, by the functions given to `register`."""

    def __init__(
        self,
        cls: type,
        flatten: Callable[[Any], tuple[Iterable[Any], Any]],
        unflatten: Callable[[Any, tuple[Any, ...]], Any],
        flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None,
    ) -> None:
        super().__init__(cls)
        self._flatten, self._unflatten = flatten, unflatten
        self._flatten_with_keys = flatten_with_keys

    def flatten(self, node: Any) -> tuple[Sequence[Any], Any]:
        children, aux = self._flatten(node)
        return tuple(children), aux

    def unflatten(self, meta: Any, children: Iterable[Any]) -> Any:
        return self._unflatten(meta, tuple(children))

    def keys(self, node: Any) -> Iterable[Any]:
        if self._flatten_with_keys is None:
            return super().keys(node)
        return [key for key, _ in self._flatten_with_keys(node)[0]]

    def show(self, meta: Any, parts: Sequence[str]) -> str:
        aux = [] if meta is None else [f"aux={meta!r}"]
        return f"{self.cls.__name__}({', '.join([*parts, *aux])})"


def _braces(keys: Iterable[Hashable], parts: Iterable[str]) -> str:
    return f"{{{', '.join(f'{k!r}: {p}' for k, p in zip(keys, parts, strict=True))}}}"


def _arguments(names: Iterable[str], parts: Iterable[str]) -> str:
    return ", ".join(f"{name}={part}" for name, part in zip(names, parts, strict=True))


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads the attributes `names` as a tuple."""
    if not names:
        return lambda node: ()
    get: Callable[[Any], Any] = attrgetter(*names)
    return get if len(names) > 1 else lambda node: (get(node),)


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """Return a function that sets an attribute, though the class be frozen."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda node, value: object.__setattr__(node, name, value)


CONTAINERS: dict[type, Container] = {
    kind.cls: kind
    for kind in (
        _Dict(dict),
        _List(list),
        _Tuple(tuple),
        _None(type(None)),
        _OrderedDict(OrderedDict),
        _DefaultDict(defaultdict),
    )
}
"""The container of each type of node. Read it through `container_of`."""

_COMMON_LEAVES = (float, int, bool, complex, str, bytes)
_LEAVES_KEPT = 1024

LEAVES: set[type] = set(_COMMON_LEAVES)
"""Types that are certainly leaves. A type that is in neither place has not been met yet."""


def container_of(cls: Any) -> Container | None:
    """Find the container of a type, or None when its values are leaves."""
    container = CONTAINERS.get(cls)
    if container is None and cls not in LEAVES:
        if issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_make"):
            container = CONTAINERS.setdefault(cls, _NamedTuple(cls))
        else:
            if len(LEAVES) >= _LEAVES_KEPT:  # classes made on the fly must not pile up
                LEAVES.clear()
                LEAVES.update(_COMMON_LEAVES)
            LEAVES.add(cls)
    return container


def container_for(cls: type) -> Container:
    """Find the container of a type that must be a node, as when a structure is unpickled."""
    container = container_of(cls)
    if container is None:
        raise ArgumentError(
            f"{cls.__qualname__} is no pytree node",
            where=f"a structure that contains {cls.__module__}.{cls.__qualname__}",
            fix="register the class before its structure is loaded",
        )
    return container


def add_container(container: Container) -> None:
    """Make a type a node, from now on."""
    cls = container.cls
    if not isinstance(cls, type):
        raise ArgumentError(
            "only a class can be registered as a pytree node",
            where=f"register got {cls!r}",
            fix="register(type(x), flatten, unflatten)",
        )
    if cls in CONTAINERS:
        raise ArgumentError(
            f"{cls.__qualname__} is a pytree node already",
            where=f"register({cls.__module__}.{cls.__qualname__})",
            fix="register a class once, where it is defined",
        )
    CONTAINERS[cls] = container
    LEAVES.discard(cls)


def register(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten: Callable[[Any, tuple[Any, ...]], Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make a class a node of pytrees, by functions that take it apart and rebuild it.

    Parameters
    ----------
    cls : type
        The class. Its subclasses are not registered with it.
    flatten : callable
        From an instance to its children and its auxiliary data. The latter is part of the
        structure: it is compared and hashed by content.
    unflatten : callable
        From auxiliary data and a tuple of children, in this order, to an instance. It must accept
        any children: transforms put other things than arrays there.
    flatten_with_keys : callable, optional
        Like `flatten`, with a pair of key and child in place of each child. Without it, paths
        number the children.

    Raises
    ------
    ArgumentError
        `cls` is registered already, or is no class.

    Examples
    --------
    >>> import funcgrad.tree as tree
    >>> class Interval:
    ...     def __init__(self, low, high, unit):
    ...         self.low, self.high, self.unit = low, high, unit
    >>> tree.register(
    ...     Interval,
    ...     lambda interval: ((interval.low, interval.high), interval.unit),
    ...     lambda unit, children: Interval(*children, unit),
    ... )
    >>> doubled = tree.map(lambda x: 2 * x, Interval(1.0, 2.5, "m"))
    >>> doubled.low, doubled.high, doubled.unit
    (2.0, 5.0, 'm')
    """
    add_container(_Registered(cls, flatten, unflatten, flatten_with_keys))
