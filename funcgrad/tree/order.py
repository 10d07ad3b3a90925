"""The order of a dict's leaves: that of its sorted keys, whatever the order of insertion.

Two dicts with equal keys then have their leaves in the same places. Sorting at every walk would
be slow, so the order of recently met keys is remembered: one look-up by the tuple of the keys,
whose hashes Python has kept.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterable
from itertools import pairwise
from operator import itemgetter
from typing import Any

__all__ = ["ORDERS", "KeyOrder", "order_of"]


class KeyOrder:
    """The keys of a dict in the order of its leaves, and in the order in which it was built.

    Only the former counts in comparisons; the latter is kept so that rebuilding gives it back.
    """

    __slots__ = ("blank", "flat", "given", "in_order", "sorted", "values")

    def __init__(self, given: tuple[Hashable, ...]) -> None:
        self.given = given
        self.sorted = _sorted_keys(given)
        self.in_order = self.sorted == given
        # Has the keys in the given order; a copy of it is filled faster than a new dict.
        self.blank = dict.fromkeys(given)
        # Reads, in leaf order, the values of a dict whose keys come in the given order.
        self.values: Callable[[Any], Iterable[Any]] = (
            dict.values if self.in_order else itemgetter(*self.sorted)
        )
        self.flat: Any = None  # the structure of a dict with these keys that holds only leaves

    def __reduce__(self) -> tuple[object, ...]:
        return order_of, (self.given,)


ORDERS: dict[tuple[Hashable, ...], KeyOrder] = {}
"""Orders of recently met keys that are plain strings.

A hit is right for sorting. For rebuilding it is so only if the keys are plain strings, which
members of a string enum are not though they are equal: look at the type of the first key.
"""

# The same for integers among the keys. 1 == True, so (1, 2) needs its types beside it.
_MIXED_ORDERS: dict[tuple[Any, ...], KeyOrder] = {}

_PLAIN = frozenset({str, int, bool})
_ORDERS_KEPT = 4096
_KEYS_KEPT = 256


def order_of(keys: tuple[Hashable, ...]) -> KeyOrder:
    """Find the order of `keys`, which are those of a dict."""
    types = tuple(map(type, keys))
    kinds = frozenset(types)
    if not kinds <= _PLAIN or len(keys) > _KEYS_KEPT:
        return KeyOrder(keys)
    strings = keys and kinds <= {str}
    orders: dict[Any, KeyOrder] = ORDERS if strings else _MIXED_ORDERS
    entry = keys if strings else (keys, types)
    order = orders.get(entry)
    if order is None:
        if len(orders) >= _ORDERS_KEPT:
            orders.clear()
        order = orders[entry] = KeyOrder(keys)
    return order


def _sorted_keys(keys: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Sort by type name, then key, in an order that does not depend on the given one."""
    groups: dict[str, list[Any]] = {}
    for key in keys:
        groups.setdefault(_type_name(key), []).append(key)
    return tuple(key for name in sorted(groups) for key in _sorted_group(groups[name]))


def _type_name(key: Hashable) -> str:
    """Name the type, the same for keys that can be equal: 1 == 1.0 == True, and str enums."""
    if isinstance(key, str):
        return "str"
    if isinstance(key, numbers.Real):
        return "int"
    return type(key).__name__


def _sorted_group(keys: list[Any]) -> list[Any]:
    try:
        ordered = sorted(keys)
        # Frozensets have a `<` that is no total order.
        if all(a < b for a, b in pairwise(ordered)):
            return ordered
    except TypeError:
        pass
    return sorted(keys, key=repr)
