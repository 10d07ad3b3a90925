"""What is looked for in the operations of a transform: what is not finite, and what is stored away.

Forward, each operation is looked at as it is done; its values, and under `jvp` its tangents.
Backward, so is each node of the tape; which line of the user's it comes from has been noted then.
"""

from __future__ import annotations

from cmath import isfinite
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad.core.level import TracerBase, batches_of
from funcgrad.core.watching import repeating
from funcgrad.core.zero import is_finite
from funcgrad.debug.leaks import report
from funcgrad.debug.operations import Made, Record
from funcgrad.debug.wording import Found, error_backward, error_forward
from funcgrad.transforms.backward import pulled_with_care
from funcgrad.transforms.forward import ForwardTrace, LinearTrace

__all__ = ["Watch"]

# The place in a tape's notes of what first made an infinite cotangent.
_INFINITE = -1


class Watch:
    """Which of the modes are on; it does their work.

    Parameters
    ----------
    nans, infs : bool
        Stop at these.
    leaks : bool
        Report what is stored away.
    """

    __slots__ = ("infs", "leaks", "nans")

    def __init__(self, nans: bool = False, infs: bool = False, leaks: bool = False):
        self.nans = nans
        self.infs = infs
        self.leaks = leaks

    def __bool__(self) -> bool:
        return self.nans or self.infs or self.leaks

    def changed(self, which: str, on: bool) -> Watch:
        """Return one with a mode switched on or off."""
        return Watch(**{name: getattr(self, name) for name in self.__slots__} | {which: on})

    def closed(self, record: Record) -> None:
        """Look at what is left of a trace that has ended."""
        if self.leaks:
            report(record)

    # What is not finite

    def find(self, value: Any) -> Found | None:
        """Return the first element of a value, or of a tangent of it, that is to be stopped at."""
        if self.nans or self.infs:
            for part in value if type(value) is tuple else (value,):
                for kind, plain, batches in _components(part, "value"):
                    found = _first(plain, self.nans, self.infs)
                    if found is not None:
                        return Found(kind, plain, batches, *found)
        return None

    def look(self, made: Made, args: Sequence[Any], out: Any) -> None:
        """Look at what an operation made."""
        found = self.find(out)
        if found is not None:
            guilty = [i for i, arg in enumerate(args) if self.find(arg) is not None]
            tangents = [list(_components(arg, "value"))[1:] for arg in args]
            raise error_forward(made, found, guilty, tangents)

    def look_at_pushed(self, made: Made, dots: Any, out_dot: Any) -> None:
        """Look at the tangent that `linearize` pushed through an operation."""
        found = self.find(out_dot)
        if found is not None:
            found.kind = "tangent"
            guilty = [i for i, dot in enumerate(dots) if self.find(dot) is not None]
            tangents = [[] if dot is None else list(_components(dot, "tangent")) for dot in dots]
            raise error_forward(made, found, guilty, tangents)

    def pull(self, nodes: list[Any], bars: list[Any], noted: dict[int, Made]) -> None:
        """Pull cotangents back through nodes, the last first, looking at each that is made."""
        for node in reversed(nodes):
            k = node[0]
            several = type(k) is tuple
            out_bar = tuple([bars[index] for index in k]) if several else bars[k]
            if out_bar is None or (several and all(bar is None for bar in out_bar)):
                continue
            for index in k if several else (k,):
                bars[index] = None
            made = next((noted[n] for n in (k if several else (k,)) if n in noted), None)
            with repeating(made or _UNKNOWN):
                for i, bar in pulled_with_care(node, out_bar):
                    if bar is None:
                        continue
                    self._look_at_pulled(made, i, bar, out_bar, noted)
                    before = bars[i]
                    if before is not None:
                        bar = before + bar
                        self._look_at_pulled(made, i, bar, out_bar, noted, summed=True)
                    bars[i] = bar

    def _look_at_pulled(
        self,
        made: Made | None,
        i: int,
        bar: Any,
        out_bar: Any,
        noted: dict[int, Made],
        summed: bool = False,
    ) -> None:
        found = self.find(bar)
        if found is not None:
            given = self.find(out_bar) is not None
            raise error_backward(made, i, found, out_bar, given, noted.get(_INFINITE), summed)
        if made is not None and _INFINITE not in noted and _has_infinity(bar):
            noted[_INFINITE] = made


_UNKNOWN = object()


def _components(value: Any, kind: str, batches: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Yield the plain value at the bottom of `value`, then the tangents that it carries."""
    if batches is None:
        batches = batches_of(value)
    tangents = []
    inner = value
    above: list[Any] = []
    while isinstance(inner, TracerBase):
        trace = inner._trace
        if isinstance(trace, ForwardTrace) and not isinstance(trace, LinearTrace):
            tangents.append((inner._extra, list(above)))
        if trace.lead:
            above.insert(0, trace)
        inner = inner._value
    yield kind, inner, batches
    for tangent, over in tangents:
        yield from _components(tangent, "tangent", (*batches_of(tangent), *over))


def _first(plain: Any, nans: bool, infs: bool) -> tuple[tuple[int, ...], Any] | None:
    """Return the place of the first element that is to be stopped at, and the element."""
    if isinstance(plain, float | complex) and not isinstance(plain, np.generic):
        if isfinite(plain):
            return None
        plain = np.asarray(plain)
    dtype = getattr(plain, "dtype", None)
    if getattr(dtype, "kind", "") not in ("f", "c") or is_finite(plain):
        return None
    if nans and infs:
        mask = np.logical_not(np.isfinite(plain))
    else:
        mask = np.isnan(plain) if nans else np.isinf(plain)
    if not np.any(mask):
        return None
    index = tuple(int(n) for n in np.argwhere(mask)[0])
    return index, np.asarray(plain)[index]


def _has_infinity(bar: Any) -> bool:
    for part in bar if type(bar) is tuple else (bar,):
        for _, plain, _ in _components(part, "value"):
            if _first(plain, False, True) is not None:
                return True
    return False
