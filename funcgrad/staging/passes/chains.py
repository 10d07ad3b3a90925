"""Chains: which equations share arrays, so that what one writes to the cache the next finds there.

A chain is followed from an equation on by what shares arrays with it: whoever uses its results, and
whoever uses what it uses. What these need is looked at before them. Equations that stand between
those of a chain are done before or after it, as they need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from funcgrad.staging.equations import Equation, vars_of
from funcgrad.staging.passes.rowwise import Fold, Scheme, can_be_before, can_move, shares_memory

__all__ = ["Segment", "connected"]


class Segment:
    """Equations between two conditions, some of which are done.

    Parameters
    ----------
    equations : sequence of Equation
    is_large : callable
        Tells whether an equation has to do with large arrays: others follow where these go.

    Attributes
    ----------
    done : list of bool
    missing : set of int
        The variables that are computed here, and not yet.
    """

    def __init__(self, equations: Sequence[Equation], is_large: Callable[[Equation], bool]):
        self.equations = equations
        self.done = [False] * len(equations)
        self._is_large = is_large
        self._maker: dict[int, int] = {}
        self._users: dict[int, list[int]] = {}
        for place, equation in enumerate(equations):
            for var in vars_of(equation.outputs):
                self._maker[var.number] = place
            for var in vars_of(equation.inputs):
                self._users.setdefault(var.number, []).append(place)
        self.missing = set(self._maker)
        self._can_move = [can_move(equation) for equation in equations]

    def finish(self, places: Sequence[int]) -> None:
        """Note that equations are done."""
        for place in places:
            self.done[place] = True
            self.missing.difference_update(v.number for v in vars_of(self.equations[place].outputs))

    def gathered(
        self, position: int, scheme: Scheme
    ) -> tuple[list[int], list[int], dict[int, Fold]]:
        """Return the places of what can go with the equation at `position`.

        First of what has to be done before, then of equations in the chain, and of sums behind it;
        each in order. What shares an array with the chain is looked at, and what that needs.
        """
        before: list[int] = []
        found: list[int] = []
        folds: dict[int, Fold] = {}
        own: set[int] = set()
        there: set[int] = set()
        seen: set[int] = set()
        waiting: set[int] = set()
        heap = [position]
        while heap:
            place = heappop(heap)
            if place in seen or self.done[place] or place < position:
                continue
            equation = self.equations[place]
            inputs = [var.number for var in vars_of(equation.inputs)]
            lacking = [n for n in inputs if n in self.missing and n not in there]
            if lacking and place not in waiting:
                waiting.add(place)
                makers = [self._maker[number] for number in lacking]
                if all(self._can_move[maker] for maker in makers):
                    for other in (*makers, place):  # which are looked at before it
                        heappush(heap, other)
                    continue
            seen.add(place)
            if lacking:
                continue
            outs = [var.number for var in vars_of(equation.outputs)]
            touches = not own.isdisjoint(inputs)
            fold = scheme.fold(equation) if touches else None
            if fold is not None:  # its result is there only behind the chain
                folds[place] = fold
                continue
            is_large = self._is_large(equation)
            if (touches or (is_large and not shares_memory(equation))) and scheme.takes(equation):
                found.append(place)
                own.update(outs)
                for number in (*outs, *scheme.cut.intersection(inputs)):
                    for user in self._users.get(number, ()):
                        if user not in seen:
                            heappush(heap, user)
            elif place == position:
                break
            elif not touches and can_be_before(equation, is_large):
                before.append(place)
            else:
                continue
            there.update(outs)
        return sorted(before), sorted(found), dict(sorted(folds.items()))


def connected(
    equations: Sequence[Equation], found: list[int], folds: dict[int, Fold], scheme: Scheme
) -> tuple[list[int], dict[int, Fold]]:
    """Return those that share arrays with the first, or with one that does.

    What they need of each other is among them.
    """
    groups: dict[int, int] = {}  # of each variable, as far as known by now
    leader = list(range(len(found)))

    def lead(k: int) -> int:
        while leader[k] != k:
            k = leader[k]
        return k

    for k, place in enumerate(found):
        equation = equations[place]
        for var in (*vars_of(equation.inputs), *vars_of(equation.outputs)):
            if var.number in scheme.cut:
                a, b = lead(k), lead(groups.setdefault(var.number, k))
                leader[max(a, b)] = min(a, b)
    kept = [place for k, place in enumerate(found) if lead(k) == 0]
    own = {var.number for place in kept for var in vars_of(equations[place].outputs)}
    return kept, {place: fold for place, fold in folds.items() if fold.var.number in own}
