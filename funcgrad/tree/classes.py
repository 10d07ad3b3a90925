"""Classes as pytrees: `pytree` makes a class immutable and registers its fields.

Each field is a child, but for those declared with `static`, whose values are part of the
structure: sizes, flags, names, functions. attrs does the making and is imported only when
a class that nobody has made yet is decorated; attrs classes and dataclasses are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from funcgrad.tree.containers import FieldsContainer, add_container
from funcgrad.tree.content import same
from funcgrad.tree.treedef import flatten

if TYPE_CHECKING:
    from attrs import field as _field
else:
    _field = None  # what type checkers read in the decorator below costs nothing at run time

__all__ = ["pytree", "register_dataclass", "static"]

T = TypeVar("T")


def static(**options: Any) -> Any:
    """Declare a field that belongs to the structure, not to the leaves.

    Parameters
    ----------
    **options
        Those of ``attrs.field``: ``default``, ``factory``, ``converter``, ``validator``,
        ``kw_only``...

    Returns
    -------
    attrs field
        For the body of a class that `pytree` or attrs decorates. In a dataclass, write
        ``dataclasses.field(metadata={"static": True})`` instead.

    Notes
    -----
    Two trees whose static fields differ have different structures, and a function compiled for
    one is compiled again for the other. Values are compared by type and content: lists, dicts and
    arrays may be static too.

    Examples
    --------
    >>> import funcgrad.tree as tree
    >>> @tree.pytree
    ... class Scale:
    ...     factor: float
    ...     name: str = tree.static(default="scale")
    >>> tree.leaves(Scale(2.0)), tree.structure(Scale(2.0))
    ([2.0], TreeDef(Scale(factor=*, name='scale')))
    """
    from attrs import field  # noqa: PLC0415 - not at `import funcgrad`: see above

    metadata = {**(options.pop("metadata", None) or {}), "static": True}
    return field(metadata=metadata, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(_field, static))
def pytree(cls: type[T]) -> type[T]:
    """Make a class an immutable node of pytrees, with its fields as children.

    Parameters
    ----------
    cls : type
        A class with annotated fields. Unless it is one already, it becomes an attrs class like
        those of ``attrs.frozen``, with two differences: instances are equal when their fields
        are the same by content (arrays too), and every instance can be hashed whose static
        fields can, by its structure.

    Returns
    -------
    type
        The class to use, as with any attrs class with slots: not the one that was given.

    Raises
    ------
    ArgumentError
        `cls` is registered already.

    Notes
    -----
    Transforms rebuild instances without running ``__init__``, and so without converters and
    validators. A subclass must be decorated too: its instances are leaves otherwise.

    Examples
    --------
    >>> import funcgrad.tree as tree
    >>> @tree.pytree
    ... class Linear:
    ...     weight: list[float]
    ...     bias: float | None = None
    ...     name: str = tree.static(default="linear")
    >>> tree.map(lambda x: 2 * x, Linear([1.0, 2.0], 3.0))
    Linear(weight=[2.0, 4.0], bias=6.0, name='linear')
    """
    if "__attrs_attrs__" not in vars(cls) and "__dataclass_fields__" not in vars(cls):
        from attrs import frozen  # noqa: PLC0415 - not at `import funcgrad`: see above

        if cls.__eq__ is object.__eq__:
            cls.__eq__ = _equal  # type: ignore[method-assign]
            cls.__hash__ = _hash  # type: ignore[method-assign]
        cls = frozen(cls, eq=False)
    fields = _fields(cls)
    return register_dataclass(
        cls,
        [field.name for field in fields if not field.metadata.get("static")],
        [field.name for field in fields if field.metadata.get("static")],
    )


def register_dataclass(
    cls: type[T], data_fields: Iterable[str], meta_fields: Iterable[str] = ()
) -> type[T]:
    """Make a class a node of pytrees, by the names of its attributes.

    Parameters
    ----------
    cls : type
        The class.
    data_fields : iterable of str
        Attributes that are children, in leaf order.
    meta_fields : iterable of str
        Attributes that belong to the structure.

    Returns
    -------
    type
        `cls`. It is rebuilt by setting these attributes, without running ``__init__``.

    Raises
    ------
    ArgumentError
        `cls` is registered already, or is no class.

    Examples
    --------
    >>> import funcgrad.tree as tree
    >>> class Point:
    ...     def __init__(self, x, y, label):
    ...         self.x, self.y, self.label = x, y, label
    >>> _ = tree.register_dataclass(Point, ["x", "y"], ["label"])
    >>> tree.leaves(Point(1.0, 2.0, "start"))
    [1.0, 2.0]
    """
    add_container(FieldsContainer(cls, tuple(data_fields), tuple(meta_fields)))
    return cls


def _fields(cls: type) -> Iterable[Any]:
    """Return the field descriptions of an attrs class or a dataclass."""
    if "__attrs_attrs__" in vars(cls):
        return cls.__attrs_attrs__  # type: ignore[attr-defined, no-any-return]
    from dataclasses import fields  # noqa: PLC0415 - there is a dataclass, so it is loaded

    return fields(cls)


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    leaves, treedef = flatten(self)
    other_leaves, other_treedef = flatten(other)
    return treedef == other_treedef and all(map(same, leaves, other_leaves))


def _hash(self: Any) -> int:
    return hash(flatten(self)[1])
