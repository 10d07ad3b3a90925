"""The words of a mismatch: the first path at which a tree departs from an expected structure.

Matching is fast because it only answers yes or no. When it said no, the functions here walk the
two again, slowly, to say what a person needs: where, what is there, what should be, and which
key was probably misspelt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from funcgrad.errors import TreeMismatchError, describe
from funcgrad.tree.containers import Container, FieldsContainer, container_of
from funcgrad.tree.content import same
from funcgrad.tree.paths import KeyPath, keystr

if TYPE_CHECKING:
    from funcgrad.tree.treedef import TreeDef

__all__ = ["Blame", "Words", "mismatch"]

Words: TypeAlias = str | Callable[[], str]
"""Part of a message, or how to make it: a hot path should not format what nobody will read."""

Blame: TypeAlias = Literal["tree", "expected"]
"""Which of the two the user should change, and so which one the message is about."""

_SHOWN = 6
_NONE_FIX = "give a value there; None is an empty container, not a leaf"


class _Difference(NamedTuple):
    path: KeyPath
    words: str  # with {against} for the name of what is expected
    fix: str | None = None


def mismatch(
    expected: TreeDef,
    tree: Any,
    *,
    what: Words,
    where: Words,
    against: Words,
    fix: Words | None = None,
    prefix: bool = False,
    blame: Blame = "tree",
) -> TreeMismatchError:
    """Make the error that says how `tree` and `expected` differ; see `check_match`."""
    found = _difference(expected, tree, (), prefix, blame == "expected")
    if found is None:
        # A registered class whose functions do not give the same answer twice.
        found = _Difference((), "its structure changed while it was being compared")
    name = _text(against)
    place = keystr(found.path) or "the root"
    return TreeMismatchError(
        _text(what),
        where=f"{_text(where)} at {place}: {found.words.replace('{against}', name)}",
        fix=found.fix or (_text(fix) if fix is not None else f"give it the structure of {name}"),
    )


def _text(words: Words) -> str:
    return words if isinstance(words, str) else words()


def _difference(
    expected: TreeDef, tree: Any, path: KeyPath, prefix: bool, flip: bool
) -> _Difference | None:
    """Find the first difference; `flip` words it from the side of `expected`."""
    container = container_of(type(tree))
    if expected.is_leaf and (prefix or container is None):
        return None
    if container is None or container is not expected.container:
        words = _versus("it has {}, {{against}} has {}", _at(tree), _at_structure(expected), flip)
        none = container is not None and container.cls is type(None)
        return _Difference(path, words, _NONE_FIX if none and not flip else None)
    children, meta = container.flatten(tree)
    difference = _node_difference(container, expected, meta, len(children), flip)
    if difference is not None:
        return _Difference(path, *difference)
    for key, child, structure in zip(
        container.keys(tree), children, expected.children(), strict=True
    ):
        found = _difference(structure, child, (*path, key), prefix, flip)
        if found is not None:
            return found
    return None


def _node_difference(
    container: Container, expected: TreeDef, meta: Any, count: int, flip: bool
) -> tuple[str, str | None] | None:
    """Word the difference of two nodes of one type, children apart."""
    wanted, name = expected.meta, container.cls.__name__
    names, wanted_names = container.names(meta), container.names(wanted)
    if names is not None and wanted_names is not None:
        ours, theirs = set(names), set(wanted_names)
        missing = [key for key in wanted_names if key not in ours]
        extra = [key for key in names if key not in theirs]
        if flip:
            missing, extra = extra, missing
        if missing or extra:
            return _key_words(missing, extra), _key_fix(missing, extra)
    wanted_count = len(expected.children())
    if count != wanted_count:
        return _versus(
            "it has {}, {{against}} has {}",
            _counted(container, count),
            _counted(container, wanted_count),
            flip,
        ), None
    if meta is wanted or container.same_meta(meta, wanted):
        return None
    if names is not None and wanted_names is not None and list(names) != list(wanted_names):
        words = "its keys are in the order {}, those of {{against}} in the order {}"
        return _versus(words, _listed(names), _listed(wanted_names), flip), None
    if container.cls is defaultdict:
        words = "its default factory is {}, that of {{against}} is {}"
        return _versus(words, _name(meta[0]), _name(wanted[0]), flip), None
    if isinstance(container, FieldsContainer):
        for field, given, other in zip(container.static, meta, wanted, strict=True):
            if not same(given, other):
                words = f"static field {field!r} of {name} is {{}}, in {{{{against}}}} {{}}"
                fix = f"build both with the same {field!r}: it belongs to the structure"
                return _versus(words, _short(given), _short(other), flip), fix
    words = f"the auxiliary data of {name} is {{}}, in {{{{against}}}} {{}}"
    return _versus(words, _short(meta), _short(wanted), flip), None


def _versus(words: str, given: str, wanted: str, flip: bool) -> str:
    return words.format(wanted, given) if flip else words.format(given, wanted)


def _key_words(missing: Sequence[Any], extra: Sequence[Any]) -> str:
    parts = []
    if missing:
        parts.append(f"missing key{'s' * (len(missing) > 1)} {_listed(missing)}")
    if extra:
        parts.append(f"unexpected key{'s' * (len(extra) > 1)} {_listed(extra)}")
    return f"{', '.join(parts)} (compared with {{against}})"


def _key_fix(missing: Sequence[Any], extra: Sequence[Any]) -> str | None:
    """Guess which keys were meant, nearest names first."""
    # difflib brings `re`, which costs more to import than this package.
    from difflib import get_close_matches  # noqa: PLC0415

    left = [name for name in missing if isinstance(name, str)]
    pairs = []
    for name in extra:
        near = get_close_matches(name, left, n=1) if isinstance(name, str) else []
        if near:
            left.remove(near[0])
            pairs.append(f"{name!r} to {near[0]!r}")
    return f"rename {', '.join(pairs)}" if pairs else None


def _at(tree: Any) -> str:
    """Write what stands at a place of a tree, without what is below it."""
    container = container_of(type(tree))
    if container is None:
        return describe(tree)
    children, meta = container.flatten(tree)
    return _in_words(container, meta, len(children))


def _at_structure(treedef: TreeDef) -> str:
    """Write the same for a structure."""
    if treedef.is_leaf:
        return "a leaf"
    return _in_words(treedef.container, treedef.meta, len(treedef.children()))


def _in_words(container: Any, meta: Any, count: int) -> str:
    names = container.names(meta)
    if names is None:
        return _counted(container, count)
    if not names:
        return f"an empty {container.cls.__name__}"
    return f"{_a(container.cls)} with {_listed(names)}"


def _counted(container: Container, count: int) -> str:
    if container.cls is type(None):
        return "None"
    if isinstance(container, FieldsContainer):
        return _a(container.cls)
    return f"{_a(container.cls)} of {count}"


def _a(cls: type) -> str:
    name = cls.__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def _listed(names: Iterable[Any]) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _name(factory: Any) -> str:
    return str(getattr(factory, "__name__", factory))


def _short(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return describe(value)
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
