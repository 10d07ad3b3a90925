"""`Module`: models as immutable classes whose fields are the branches of a pytree.

The one idea: subclassing is all it takes. The metaclass makes an attrs class of each subclass and
registers its fields, so a model goes through `grad`, `vmap`, `tree.map` and an optimizer as it is,
and comes out as another model of the same class. Attributes can be set inside ``__init__`` only.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from collections.abc import Iterable
from typing import Any, Self, TypeVar, dataclass_transform

import attrs

import funcgrad as fg
from funcgrad.errors import ArgumentError, MutationError, user_line
from funcgrad.nn.printing import show
from funcgrad.tree import static

__all__ = ["Module"]

T = TypeVar("T")

# The instances whose ``__init__`` is running, by id. Adding and discarding are atomic.
_making: set[int] = set()


def _fields(cls: Any) -> Iterable[Any]:
    return cls.__attrs_attrs__  # type: ignore[no-any-return]


def _default(field: Any, self: Any) -> Any:
    """Return what a field is when ``__init__`` has not set it."""
    if field.default is attrs.NOTHING:
        raise ArgumentError(
            f"{type(self).__name__}.__init__ has not set the field {field.name!r}",
            where=user_line(),
            fix=f"add self.{field.name} = ... to __init__, or a default to the field",
        )
    if not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return field.default
    return field.default.factory(self) if field.default.takes_self else field.default.factory()


@dataclass_transform(field_specifiers=(attrs.field, static))
class ModuleMeta(abc.ABCMeta):
    """Makes each subclass of `Module` an attrs class and a node of pytrees."""

    _own_init: bool

    def __new__(
        meta, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        """Make the class, its ``__init__`` unless it or a base has one, and register its fields."""
        for field, value in namespace.items():
            _refuse_default(name, field, value, namespace.get("__annotations__", {}))
        cls: Any = super().__new__(meta, name, bases, namespace, **options)
        cls._own_init = "__init__" in namespace or any(
            getattr(base, "_own_init", False) for base in bases
        )
        # No slots, which would take a second class; and no ``__setattr__`` but that of `Module`.
        # The order of fields matters to a generated ``__init__`` only: keywords have none.
        try:
            cls = attrs.define(
                cls,
                slots=False,
                eq=False,
                repr=False,
                init=not cls._own_init,
                kw_only=cls._own_init,
                on_setattr=attrs.setters.NO_OP,
            )
        except ValueError as error:
            if "mandatory" not in str(error):
                raise
            raise ArgumentError(
                f"a field of {name} without a default comes after one that has a default",
                where=user_line(),
                fix="give it a default too, or the class an __init__ of its own",
            ) from error
        return fg.tree.register_dataclass(
            cls,
            [field.name for field in _fields(cls) if not field.metadata.get("static")],
            [field.name for field in _fields(cls) if field.metadata.get("static")],
        )

    @property
    def __signature__(cls) -> inspect.Signature:
        """The parameters of ``__init__``, for `help` and editors."""
        parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature(list(parameters)[1:])

    def __call__(cls: type[T], *args: Any, **kwargs: Any) -> T:
        """Make an instance, which is open to changes until its ``__init__`` has ended."""
        self = cls.__new__(cls)
        _making.add(id(self))
        try:
            self.__init__(*args, **kwargs)  # type: ignore[misc]
            if not cls._own_init and hasattr(self, "__post_init__"):  # type: ignore[attr-defined]
                self.__post_init__()
        finally:
            _making.discard(id(self))
        for field in _fields(cls):
            if not hasattr(self, field.name):
                object.__setattr__(self, field.name, _default(field, self))
        return self

    def __setattr__(cls, name: str, value: Any) -> None:
        """Refuse to be made a dataclass, which would replace ``__eq__`` and ``__repr__``."""
        if name in ("__dataclass_params__", "__dataclass_fields__"):
            raise ArgumentError(
                f"{cls.__name__} is a Module, and no dataclass",
                where=user_line(),
                fix="leave out the decorator @dataclass: fields, an __init__ and __post_init__ "
                "work without it",
            )
        super().__setattr__(name, value)


def _refuse_default(kind: str, field: str, value: Any, annotations: Any) -> None:
    """Raise if a field's default is not what it seems, or one object for all instances."""
    if isinstance(value, dataclasses.Field):
        raise ArgumentError(
            f"{kind}.{field} is a dataclasses.field, which a Module does not know",
            where=user_line(),
            fix="attrs.field(default=..., factory=..., kw_only=...), or fg.static(default=...) "
            "for a part of the structure",
        )
    if field in annotations and isinstance(value, list | dict | set):
        raise ArgumentError(
            f"all instances of {kind} would share one {type(value).__name__} as {field!r}",
            where=user_line(),
            fix=f"{field}: ... = attrs.field(factory={type(value).__name__}), "
            "or set it in __init__",
        )


class Module(metaclass=ModuleMeta):
    """Base class of models and layers.

    Annotated names in the body of a subclass are its fields, as in a dataclass. Each is a branch of
    the pytree, but for those declared with `fg.static`, which belong to the structure: sizes,
    flags, functions. Unless the subclass defines ``__init__``, it gets one with the fields as
    parameters, which calls ``__post_init__`` if there is one; one of its own sets every field.

    Raises
    ------
    ArgumentError
        ``__init__`` leaves a field unset; or the default of a field is a list, dict or set.
    MutationError
        An attribute is set, or deleted, after ``__init__``; or one that is no field.

    Notes
    -----
    Transforms and `replace` rebuild instances without running ``__init__``. Instances are equal
    when their structures are and their leaves are the same by content.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> class Affine(fg.nn.Module):
    ...     weight: np.ndarray
    ...     bias: np.ndarray
    ...     name: str = fg.static(default="affine")
    ...
    ...     def __call__(self, x):
    ...         return x @ self.weight + self.bias
    >>> model = Affine(np.ones((3, 2)), np.zeros(2))
    >>> model
    Affine(weight=float64[3,2], bias=float64[2], name='affine')  # 8 parameters
    >>> grads = fg.grad(lambda model, x: np.sum(model(x)))(model, np.ones(3))
    >>> grads.bias
    array([1., 1.])
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field, while ``__init__`` runs."""
        kind = type(self).__name__
        if name == "__orig_class__":  # what typing notes of Model[int](...), if it can
            return
        if id(self) not in _making:
            raise MutationError(
                f"{kind}.{name} cannot be set: a module does not change once it is made",
                where=user_line(),
                fix=f"make another one: model.replace({name}=...), or fg.tree.at(...) for a part "
                "that lies deeper",
            )
        if all(field.name != name for field in _fields(type(self))):
            raise MutationError(
                f"{kind} has no field {name!r}",
                where=user_line(),
                fix=f"declare it in the body of the class, as in `{name}: np.ndarray` or "
                f"`{name}: int = fg.static()`",
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        """Refuse."""
        raise MutationError(
            f"{type(self).__name__}.{name} cannot be deleted: modules do not change",
            where=user_line(),
            fix=f"model.replace({name}=None)",
        )

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values in the fields named.

        Parameters
        ----------
        **changes
            New values by field. They are taken as they are: ``__init__`` does not run.

        Returns
        -------
        Module
            Of the same class; all other fields are shared with `self`.

        Raises
        ------
        ArgumentError
            There is no field of that name.

        Examples
        --------
        >>> import funcgrad as fg
        >>> class Scale(fg.nn.Module):
        ...     factor: float
        >>> Scale(2.0).replace(factor=3.0).factor
        3.0
        """
        names = [field.name for field in _fields(type(self))]
        for name in changes:
            if name not in names:
                raise ArgumentError(
                    f"{type(self).__name__} has no field {name!r}",
                    where=user_line(),
                    fix=f"its fields are {', '.join(names)}",
                )
        new = object.__new__(type(self))
        for name in names:
            value = changes[name] if name in changes else getattr(self, name)
            object.__setattr__(new, name, value)
        return new

    def __eq__(self, other: object) -> Any:
        """Compare structure and content."""
        if type(other) is not type(self):
            return NotImplemented
        leaves, treedef = fg.tree.flatten(self)
        other_leaves, other_treedef = fg.tree.flatten(other)
        return treedef == other_treedef and all(map(fg.tree.same, leaves, other_leaves))

    def __hash__(self) -> int:
        """Hash the structure."""
        return hash(fg.tree.structure(self))

    def __repr__(self) -> str:
        """Write the tree with shapes, dtypes and numbers of parameters."""
        return show(self)
