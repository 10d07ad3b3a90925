"""The layered layout: order, places, and distances."""

import itertools

import pytest

from funcgrad.viz.layout import BETWEEN, GAP, Item, _inversions, _nearest, place


def boxes(*widths):
    return [Item(width, 20.0) for width in widths]


def test_nothing_takes_no_place():
    placed = place([], [])
    assert (placed.centres, placed.routes, placed.width, placed.height) == ([], [], 0.0, 0.0)


def test_a_chain_is_straight():
    placed = place(boxes(30, 50, 40), [(0, 1), (1, 2)])
    xs, ys = zip(*placed.centres, strict=True)
    assert xs == pytest.approx((25, 25, 25))
    assert ys == (10, 10 + 20 + BETWEEN, 10 + 2 * (20 + BETWEEN))


def test_a_long_edge_passes_beside_the_boxes():
    placed = place(boxes(30, 50, 40), [(0, 1), (1, 2), (0, 2)])
    ((x, y),) = placed.routes[2]
    middle, height = placed.centres[1]
    assert y == height
    assert abs(x - middle) > 25


def test_neighbours_keep_their_distance():
    placed = place(boxes(30, 60, 80, 10), [(0, 1), (0, 2), (0, 3)])
    row = sorted(zip(placed.centres[1:], (60, 80, 10), strict=True))
    for ((x, _), width), ((right, _), wide) in itertools.pairwise(row):
        assert right - x >= (width + wide) / 2 + GAP - 1e-9


def test_a_source_stands_just_above_what_uses_it():
    items = [Item(30, 20), Item(30, 20), Item(30, 20), Item(10, 10, source=True), Item(30, 20)]
    placed = place(items, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert placed.centres[3][1] == placed.centres[2][1]


def test_edges_that_need_not_cross_do_not():
    # Two parents whose children come in the other order.
    placed = place(boxes(30, 30, 30, 30), [(0, 3), (1, 2)])
    (left, _), (right, _) = placed.centres[:2]
    (right_child, _), (left_child, _) = placed.centres[2:]
    assert (left < right) == (left_child < right_child)


def test_of_many_long_edges_the_longest_pass_behind_the_boxes(monkeypatch):
    monkeypatch.setattr("funcgrad.viz.layout._MOST", 3)
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (0, 4)]
    placed = place(boxes(30, 30, 30, 30, 30), edges)
    assert [len(route) for route in placed.routes] == [0, 0, 0, 0, 1, 0]


def test_inversions_are_counted():
    assert _inversions([3, 1, 2, 1]) == 4
    assert _inversions([]) == 0


def test_places_are_the_nearest_in_the_least_squares():
    assert _nearest([0, 0], [1, 1], [10]) == [-5, 5]
    assert _nearest([0, 0], [3, 1], [10]) == [-2.5, 7.5]
    assert _nearest([0, 30], [1, 1], [10]) == [0, 30]
