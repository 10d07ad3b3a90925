"""A layered layout: where the boxes of a drawing go, when graphviz is not there to say.

The steps are those of K. Sugiyama, S. Tagawa and M. Toda ("Methods for visual understanding of
hierarchical system structures", 1981). Each box goes into a layer below all that it depends on. An
edge that spans several layers becomes a chain of points, one in each. The order within the layers
is improved by sorting them by the mean place of the neighbours, and the places along a layer are
those nearest to the neighbours' for which nothing overlaps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs

__all__ = ["Item", "Placed", "place"]

# Between boxes of a layer, between points of edges, and between layers.
GAP, NARROW, BETWEEN = 22.0, 12.0, 44.0
_SWEEPS = 12
# How many points of edges are placed. In the backward pass of a long loop there could be millions.
_MOST = 10_000


@attrs.frozen
class Item:
    """What is to be placed: its size, and how far beyond its middle labels reach to the right."""

    width: float
    height: float
    right: float = 0.0
    source: bool = False  # has no inputs: goes just above the first box that uses it


@attrs.frozen
class Placed:
    """A layout.

    Attributes
    ----------
    centres : list of (float, float)
        The middle of each item.
    routes : list of list of (float, float)
        For each edge, the points that it passes between the layers.
    width, height : float
    """

    centres: list[tuple[float, float]]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float


def place(items: Sequence[Item], edges: Sequence[tuple[int, int]]) -> Placed:
    """Place items so that none overlap, and every edge goes downwards.

    Parameters
    ----------
    items : sequence of Item
        In an order in which each comes after those that it depends on.
    edges : sequence of (int, int)
        From which item to which.
    """
    ranks = _ranks(items, edges)
    sizes = list(items)
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for number, rank in enumerate(ranks):
        layers[rank].append(number)
    chains: list[list[int]] = []
    up: dict[int, list[int]] = {}
    down: dict[int, list[int]] = {}
    longest = _longest(ranks, edges)
    for source, target in edges:
        chain = [source]
        if ranks[target] - ranks[source] > longest:
            chains.append([])  # passes behind the boxes
            continue
        for rank in range(ranks[source] + 1, ranks[target]):
            chain.append(len(sizes))
            layers[rank].append(len(sizes))
            sizes.append(Item(0.0, 0.0))
        chain.append(target)
        for above, below in itertools.pairwise(chain):
            down.setdefault(above, []).append(below)
            up.setdefault(below, []).append(above)
        chains.append(chain[1:-1])
    _order(layers, up, down)
    points = len(items)
    x = _spread(layers, sizes, up, down, points)
    y, height = _heights(layers, sizes)
    left = min((x[n] - sizes[n].width / 2 for n in range(len(sizes))), default=0.0)
    x = [value - left for value in x]
    width = max(
        (x[n] + max(sizes[n].width / 2, sizes[n].right) for n in range(len(sizes))), default=0.0
    )
    return Placed(
        [(x[n], y[n]) for n in range(points)],
        [[(x[n], y[n]) for n in chain] for chain in chains],
        width,
        height,
    )


def _ranks(items: Sequence[Item], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each item: below all that it depends on."""
    ranks = [0] * len(items)
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for source, target in edges:
        above.setdefault(target, []).append(source)
        below.setdefault(source, []).append(target)
    for number in range(len(items)):
        ranks[number] = max((ranks[n] + 1 for n in above.get(number, ())), default=0)
    for number, item in enumerate(items):
        if item.source and number in below:
            ranks[number] = min(ranks[n] for n in below[number]) - 1
    lowest = min(ranks, default=0)
    return [rank - lowest for rank in ranks]


def _longest(ranks: Sequence[int], edges: Sequence[tuple[int, int]]) -> int:
    """Return how many layers an edge may span to get a place in each of them."""
    points = 0
    for span in sorted(ranks[target] - ranks[source] for source, target in edges):
        points += span - 1
        if points > _MOST:
            return span - 1
    return len(ranks)


def _order(layers: list[list[int]], up: dict[int, list[int]], down: dict[int, list[int]]) -> None:
    """Sort the layers, so that few edges cross."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, down)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        neighbours, sequence = (up, layers) if sweep % 2 == 0 else (down, layers[::-1])
        before: dict[int, int] = {}
        for layer in sequence:
            mean = {}
            for place_, number in enumerate(layer):
                found = [before[n] for n in neighbours.get(number, ()) if n in before]
                mean[number] = sum(found) / len(found) if found else float(place_)
            layer.sort(key=mean.__getitem__)
            before = {number: place_ for place_, number in enumerate(layer)}
        crossings = _crossings(layers, down)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _crossings(layers: list[list[int]], down: dict[int, list[int]]) -> int:
    total = 0
    for layer, following in itertools.pairwise(layers):
        places = {number: index for index, number in enumerate(following)}
        ends = [
            places[target]
            for number in layer
            for target in sorted(down.get(number, ()), key=places.__getitem__)
        ]
        total += _inversions(ends)
    return total


def _inversions(values: list[int]) -> int:
    """Count the pairs out of order, by merging."""
    if len(values) < 2:
        return 0
    middle = len(values) // 2
    left, right = values[:middle], values[middle:]
    count = _inversions(left) + _inversions(right)
    left.sort()
    right.sort()
    index = 0
    for value in right:
        while index < len(left) and left[index] <= value:
            index += 1
        count += len(left) - index
    return count


def _spread(
    layers: list[list[int]],
    sizes: list[Item],
    up: dict[int, list[int]],
    down: dict[int, list[int]],
    points: int,
) -> list[float]:
    """Return the place of each item along its layer."""
    x = [0.0] * len(sizes)
    for layer in layers:
        position = 0.0
        for index, number in enumerate(layer):
            if index:
                position += _apart(sizes, layer[index - 1], number, points)
            x[number] = position
        for number in layer:
            x[number] -= position / 2

    def mean(numbers: Sequence[int], otherwise: float) -> float:
        # Arguments and constants follow what uses them, which goes straight on.
        shares = [0.1 if sizes[n].source else 1.0 for n in numbers]
        if not numbers:
            return otherwise
        return sum(x[n] * s for n, s in zip(numbers, shares, strict=True)) / sum(shares)

    for sweep in range(3 * _SWEEPS + 1):
        # First by turns to what is above and what is below, then between both; then straight down.
        between = 2 * _SWEEPS <= sweep < 3 * _SWEEPS
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted, weights = [], []
            for number in layer:
                above, below = up.get(number, []), down.get(number, [])
                if not above and not below:  # beside the others
                    wanted.append(sum(x[n] for n in layer if n != number) / max(len(layer) - 1, 1))
                    weights.append(0.01)
                    continue
                near = [*above, *below] if between else above if sweep % 2 == 0 else below
                wanted.append(mean(near, x[number]))
                # Points of long edges count more, so that these are straight.
                weights.append(
                    4.0 if number >= points else 0.05 if sizes[number].source or not near else 1.0
                )
            apart = [_apart(sizes, one, other, points) for one, other in itertools.pairwise(layer)]
            for number, place_ in zip(layer, _nearest(wanted, weights, apart), strict=True):
                x[number] = place_
    return x


def _apart(sizes: list[Item], left: int, right: int, points: int) -> float:
    """Return how far the middles of two neighbours must be apart."""
    gap = NARROW if left >= points or right >= points else GAP
    return max(sizes[left].width / 2, sizes[left].right) + gap + sizes[right].width / 2


def _nearest(wanted: list[float], weights: list[float], apart: list[float]) -> list[float]:
    """Return the places nearest to those wanted, in the least squares, with these distances.

    That is isotonic regression of what remains of them without the distances; by pooling adjacent
    violators.
    """
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count
    for place_, weight, offset in zip(wanted, weights, offsets, strict=False):
        mean, total, count = place_ - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, heavy, many = blocks.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        blocks.append((mean, total, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _heights(layers: list[list[int]], sizes: list[Item]) -> tuple[list[float], float]:
    """Return the height of the middle of each item, and of the drawing."""
    y = [0.0] * len(sizes)
    top = 0.0
    for layer in layers:
        tallest = max((sizes[number].height for number in layer), default=0.0)
        for number in layer:
            y[number] = top + tallest / 2
        top += tallest + BETWEEN
    return y, max(top - BETWEEN, 0.0)
