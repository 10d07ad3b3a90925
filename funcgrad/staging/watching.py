"""What a compiled function closes over, to notice that it has changed.

A program has the values of closures and globals that the function saw when it was recorded. If a
name means another array, another number, or another function by the next call, the function would
see that; so the program is out of date. The same goes for ``self.scale``, ``config.RATE`` and the
elements of lists and dicts. All are compared by identity: an array that is written to is not
noticed.

Which names a function looks up is read from its bytecode, and from that of the user's functions
that it may call. So are those that it may find as methods and properties of objects, and attributes
of elements whose index is a constant or a name outside (``table["a"].scale``). What it finds by
other ways is not known: ``getattr(x, name)``, a loop over elements whose attributes it looks up.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import operator
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from funcgrad.errors import is_library, is_ours

__all__ = ["Watched"]

# How deep functions that call functions are looked through, and containers in containers.
_DEPTH = 4
# Elements of a list or dict from which on only the container itself is watched.
_MANY = 1000
_NUMBERS = frozenset({int, float, complex, bool, str})


class Watched:
    """The names that a function looks up outside of it, with what they mean now.

    Parameters
    ----------
    fun : callable
    arguments : mapping of str to object, optional
        Static arguments, whose attributes the function may look up.
    """

    __slots__ = ("_containers", "_entries", "_known")

    def __init__(self, fun: Callable[..., Any], arguments: Mapping[str, Any] | None = None):
        # What each is called, how it is found, and what was found.
        self._entries: list[tuple[str, Callable[[], Any], Any]] = []
        # What each is called, the values that it has, and those that it had.
        self._containers: list[tuple[str, Callable[[], Any], tuple[Any, ...]]] = []
        self._known: set[Any] = set()
        self.add(fun, arguments)

    def add(self, fun: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> None:
        """Watch what the function looks up when it is called with these static arguments."""
        for function, roots in _functions(fun, arguments or {}, set(), 0):
            if isinstance(function, functools.partial):
                self._note_elements("an argument of partial", function.args, 0)
                self._note_elements("an argument of partial", function.keywords, 0)
            else:
                self._watch(function, roots)

    def changed(self) -> str | None:
        """Return the name of something that means another thing now; None if there is nothing."""
        for name, find, value in self._entries:
            try:
                now = find()
            except (AttributeError, LookupError, ValueError):  # it is there no more
                return name
            if now is not value and not _is_same(now, value):
                return name
        for name, values, before in self._containers:
            found = values()
            if len(found) != len(before) or not all(map(operator.is_, found, before)):
                return name
        return None

    def settle(self) -> None:
        """Leave alone what has changed while the function ran: it writes to that by itself."""
        if self.changed() is not None:
            alone = [Watched._of([row], []).changed() is None for row in self._entries]
            others = [Watched._of([], [row]).changed() is None for row in self._containers]
            self._entries = list(itertools.compress(self._entries, alone))
            self._containers = list(itertools.compress(self._containers, others))

    @classmethod
    def _of(cls, entries: list[Any], containers: list[Any]) -> Watched:
        made = cls.__new__(cls)
        made._entries, made._containers = entries, containers
        return made

    def _watch(self, function: types.FunctionType, roots: Mapping[str, Any]) -> None:
        cells = _cells(function)
        codes = list(_codes(function.__code__))
        written = frozenset().union(*map(_written, codes))
        for code in codes:
            for kind, name, chain in _lookups(code):
                if kind == "argument":
                    if name in roots and code is function.__code__:
                        self._follow(name, roots[name], chain, function)
                    continue
                if name in written:
                    continue
                if kind == "cell":
                    if name not in cells or _content(cells[name]) is _EMPTY:
                        continue  # of the function itself; or assigned to later
                    find: Callable[[], Any]
                    find = functools.partial(getattr, cells[name], "cell_contents")
                elif name in function.__globals__:
                    find = functools.partial(function.__globals__.get, name)
                else:
                    continue
                value = find()
                self._note(name, find, value, (kind, id(cells.get(name)), name))
                self._follow(name, value, chain, function)
        defaults = function.__defaults__, function.__kwdefaults__
        for what, value in zip(("__defaults__", "__kwdefaults__"), defaults, strict=True):
            if value is not None:
                self._note(
                    f"the defaults of {function.__name__}",
                    functools.partial(getattr, function, what),
                    value,
                    (id(function), what),
                )

    def _follow(self, name: str, value: Any, chain: _Chain, function: types.FunctionType) -> None:
        """Watch the attributes and elements of a value, of those of the user's code."""
        for step in chain:
            owner = value
            key: tuple[Any, ...]
            find: Callable[[], Any]
            if isinstance(step, _Item):
                index = step.place(function)
                if not _has_element(owner, index):
                    return
                name, key = f"{name}[{index!r}]", (id(owner), "[]", index)
                find = functools.partial(operator.getitem, owner, index)
            else:
                if not _has(owner, step):
                    return
                name, key = f"{name}.{step}", (id(owner), step)
                find = functools.partial(getattr, owner, step)
            value = find()
            self._note(name, find, value, key)

    def _note(self, name: str, find: Callable[[], Any], value: Any, key: Any) -> None:
        if key in self._known or isinstance(value, types.ModuleType):
            return
        self._known.add(key)
        self._entries.append((name, find, value))
        self._note_elements(name, value, 0)

    def _note_elements(self, name: str, value: Any, depth: int) -> None:
        kind = type(value)
        if kind not in (dict, list, tuple, set, frozenset) or depth > _DEPTH or len(value) > _MANY:
            return
        elements = tuple(value.values() if kind is dict else value)
        if kind is dict:
            self._containers.append((name, value.values, elements))
        elif kind in (list, set):
            self._containers.append((name, functools.partial(_itself, value), elements))
        for element in elements:
            self._note_elements(name, element, depth + 1)


def _itself(value: Any) -> Any:
    return value


def _is_same(now: Any, value: Any) -> bool:
    """Tell whether two numbers, or strings, are the same though not the same object."""
    if type(now) is types.MethodType and type(value) is types.MethodType:
        return now.__func__ is value.__func__ and now.__self__ is value.__self__
    return type(now) is type(value) and type(now) in _NUMBERS and repr(now) == repr(value)


def _has(owner: Any, attribute: str) -> bool:
    """Tell whether an attribute can be looked up without running code of the user's."""
    if isinstance(owner, types.ModuleType):
        name = getattr(owner, "__file__", None) or ""
        return bool(name) and not is_library(name) and not is_ours(name)
    if isinstance(owner, type):
        kind = inspect.getattr_static(owner, attribute, _EMPTY)
        return kind is not _EMPTY and not hasattr(type(kind), "__get__")
    if type(owner).__module__.partition(".")[0] in ("numpy", "builtins"):
        return False
    try:
        found = inspect.getattr_static(owner, attribute)
    except AttributeError:
        return False
    if isinstance(found, types.MemberDescriptorType):
        return True
    return not hasattr(type(found), "__get__")


_EMPTY = object()


class _Item(NamedTuple):
    """The step to an element, by a constant or by a name outside of the function."""

    kind: str
    name: Any

    def place(self, function: types.FunctionType) -> Any:
        """Return what the index is now; `_EMPTY` if that cannot be told."""
        if self.kind == "constant":
            return self.name
        if self.kind == "global":
            return function.__globals__.get(self.name, _EMPTY)
        cells = _cells(function)
        return _content(cells[self.name]) if self.name in cells else _EMPTY


_Chain: TypeAlias = tuple["str | _Item", ...]


def _has_element(owner: Any, index: Any) -> bool:
    """Tell whether an element can be looked up without running code of the user's."""
    if type(owner) not in (dict, list, tuple) or type(index) not in (int, str, bool):
        return False
    try:
        owner[index]
    except (LookupError, TypeError):
        return False
    return True


def _cells(function: types.FunctionType) -> dict[str, types.CellType]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is assigned to later
        return _EMPTY


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function, and of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=512)
def _written(code: types.CodeType) -> frozenset[str]:
    """Return the names outside of a function that it assigns to by itself."""
    return frozenset(
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("STORE_DEREF", "STORE_GLOBAL")
    )


_LOADS = {"LOAD_GLOBAL": "global", "LOAD_NAME": "global", "LOAD_DEREF": "cell"}
_OUTSIDE = ("constant", "global", "cell")


def _is_subscript(instruction: dis.Instruction) -> bool:
    # Python 3.14 has a binary operation in place of the instruction.
    return instruction.opname == "BINARY_SUBSCR" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"
    )


@functools.lru_cache(maxsize=512)
def _lookups(code: types.CodeType) -> tuple[tuple[str, str, _Chain], ...]:
    """Return the names that code looks up, with the attributes of each that it looks up.

    As ``(kind, name, steps)``, of the kinds ``"global"``, ``"cell"`` and ``"argument"``. The last
    of the steps is an attribute.
    """
    found: dict[tuple[str, str, _Chain], None] = {}
    stored: set[Any] = set()
    current: tuple[str, Any] | None = None
    chain: _Chain = ()
    # What was looked up right before: this may be an index into that.
    before: tuple[Any, _Chain] = (None, ())

    def end() -> None:
        if current is not None and current[0] != "constant":
            steps = chain
            while steps and isinstance(steps[-1], _Item):
                steps = steps[:-1]
            found[*current, steps] = None

    for instruction in dis.get_instructions(code):
        operation, value = instruction.opname, instruction.argval
        if operation in ("LOAD_ATTR", "LOAD_METHOD") and current is not None:
            chain = (*chain, str(value))
            continue
        if operation in ("EXTENDED_ARG", "CACHE"):
            continue
        is_index = current is not None and current[0] in _OUTSIDE and not chain
        end()
        if is_index and before[0] is not None and _is_subscript(instruction):
            assert current is not None
            current, chain = before[0], (*before[1], _Item(*current))
            before = None, ()
            continue
        before = (current, chain) if current is None or current[0] != "constant" else (None, ())
        current, chain = None, ()
        if operation in ("LOAD_CONST", "LOAD_SMALL_INT"):
            current = "constant", value
        elif operation in _LOADS:
            current = _LOADS[operation], str(value)
        elif operation.startswith("LOAD_FAST"):
            current = "argument", str(value[-1] if isinstance(value, tuple) else value)
        elif operation.startswith(("STORE_FAST", "DELETE_FAST")):
            stored.update(value if isinstance(value, tuple) else (value,))
    end()
    return tuple(row for row in found if row[0] != "argument" or (row[1] not in stored and row[2]))


def _given(fun: functools.partial[Any]) -> dict[str, Any]:
    """Return the arguments that `partial` fixes, by name."""
    names: tuple[str, ...] = ()
    if isinstance(fun.func, types.FunctionType):
        code = fun.func.__code__
        names = code.co_varnames[: code.co_argcount]
    return {**dict(zip(names, fun.args, strict=False)), **fun.keywords}


def _functions(
    fun: Any, arguments: Mapping[str, Any], seen: set[Any], depth: int
) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the user's functions that `fun` is made of or may call, with arguments that are known.

    Of methods, the first argument is. A `partial` is yielded too.
    """
    owner = getattr(fun, "__self__", None) if isinstance(fun, types.MethodType) else None
    key = (id(fun.__func__), id(owner)) if owner is not None else id(fun)
    if depth > _DEPTH or key in seen:
        return
    seen.add(key)
    if isinstance(fun, functools.partial):
        yield fun, {}
        yield from _functions(fun.func, {**arguments, **_given(fun)}, seen, depth)
        return
    if isinstance(fun, types.MethodType):
        inner: Any = fun.__func__
        if isinstance(inner, types.FunctionType) and inner.__code__.co_argcount:
            arguments = {**arguments, inner.__code__.co_varnames[0]: fun.__self__}
        yield from _functions_of(inner, arguments, seen, depth)
        return
    if not isinstance(fun, types.FunctionType):
        inner = getattr(fun, "fun", None)  # of a transform
        if callable(inner):
            yield from _functions(inner, arguments, seen, depth)
        elif "__call__" in dir(type(fun)) and isinstance(type(fun).__call__, types.FunctionType):
            yield from _functions(fun.__call__, arguments, seen, depth)
        return
    yield from _functions_of(fun, arguments, seen, depth)


def _functions_of(
    fun: Any, arguments: Mapping[str, Any], seen: set[Any], depth: int
) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    if not isinstance(fun, types.FunctionType):
        yield from _functions(fun, arguments, seen, depth + 1)
        return
    filename = fun.__code__.co_filename
    if is_ours(filename) or is_library(filename):
        return
    yield fun, arguments
    for cell in fun.__closure__ or ():
        content = _content(cell)
        if callable(content):
            yield from _functions(content, {}, seen, depth + 1)
    cells = _cells(fun)
    for code in _codes(fun.__code__):
        for kind, name, chain in _lookups(code):
            if kind == "global":
                value = fun.__globals__.get(name)
            elif kind == "cell":
                value = _content(cells[name]) if name in cells else None
            else:
                value = arguments.get(name)
            for function in _called(value, chain, fun):
                yield from _functions(function, {}, seen, depth + 1)


def _called(value: Any, chain: _Chain, function: types.FunctionType) -> Iterator[Any]:
    """Yield what code may call that looks up these attributes, one after another, of a value.

    That is a function, a method, or that of a property.
    """
    for attribute in chain:
        if isinstance(attribute, _Item):
            index = attribute.place(function)
            if not _has_element(value, index):
                return
            value = value[index]
            continue
        found = inspect.getattr_static(value, attribute, None)
        if not isinstance(value, type | types.ModuleType):
            method = found.fget if isinstance(found, property) else found
            if isinstance(method, types.FunctionType):
                yield types.MethodType(method, value)
                return
        if not _has(value, attribute):
            return
        value = getattr(value, attribute)
    if callable(value):
        yield value
