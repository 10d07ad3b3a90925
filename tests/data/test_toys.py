"""Toy problems: labels against their definitions, shares of classes against areas."""

import math

import numpy as np
import pytest

from funcgrad import errors, random
from funcgrad.data import make_regression, toys

# The share of class 1 is the area that belongs to it.
AREAS = {
    "simple": 0.5,
    "diag": 0.125,
    "split": 0.4,
    "xor": 0.5,
    "circle": 1 - 0.1 * math.pi,
    "parabola": 0.5 - 1 / 12,
}


@pytest.mark.parametrize("name", AREAS)
def test_share_of_class_1_is_its_area(name):
    points, labels = getattr(toys, name)(random.key(0), 20_000)
    assert points.shape == (20_000, 2)
    assert points.dtype == np.float64
    assert labels.dtype == np.int64
    assert set(labels.tolist()) == {0, 1}
    assert abs(labels.mean() - AREAS[name]) < 0.015
    low = -0.5 if name == "parabola" else 0.0
    assert low <= points.min() < low + 0.01
    assert low + 0.99 < points.max() < low + 1.0


DEFINITIONS = {
    "simple": lambda x, y: x < 0.5,
    "diag": lambda x, y: x + y < 0.5,
    "split": lambda x, y: x < 0.2 or x > 0.8,
    "xor": lambda x, y: (x < 0.5) != (y < 0.5),
    "circle": lambda x, y: math.hypot(x - 0.5, y - 0.5) > math.sqrt(0.1),
    "parabola": lambda x, y: not x * x > y,
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_labels_follow_the_definition(name):
    points, labels = getattr(toys, name)(random.key(1), 500)
    assert labels.tolist() == [int(DEFINITIONS[name](x, y)) for x, y in points.tolist()]


@pytest.mark.parametrize("name", AREAS)
def test_points_are_decided_by_the_key(name):
    make = getattr(toys, name)
    assert np.array_equal(make(random.key(5), 9)[0], make(random.key(5), 9)[0])
    assert not np.array_equal(make(random.key(5), 9)[0], make(random.key(6), 9)[0])


def test_spiral_is_that_of_minitorch():
    points, labels = toys.spiral(None, 50)
    ends = [
        [0.4583853163452858, 0.5909297426825681],
        [0.8296079852654247, 0.022759414918148813],
        [0.5909297426825681, 0.5416146836547142],
        [0.022759414918148813, 0.17039201473457533],
    ]
    assert np.allclose(points[[0, 24, 25, 49]], ends, rtol=1e-14)
    assert labels.tolist() == [0] * 25 + [1] * 25


@pytest.mark.parametrize("n", [1, 2, 51])
def test_spiral_has_as_many_points_as_asked_for(n):
    points, labels = toys.spiral(None, n)
    assert points.shape == (n, 2)
    assert labels.sum() == n // 2
    assert np.isfinite(points).all()


def test_noise_takes_a_key():
    points, _ = toys.spiral(random.key(0), 50, noise=0.1)
    spread = points - toys.spiral(None, 50)[0]
    assert 0.07 < spread.std() < 0.13
    with pytest.raises(errors.ArgumentError, match="needs a key to make noise"):
        toys.moons(None, 50, noise=0.1)


def test_moons_are_those_of_scikit_learn():
    points, labels = toys.moons(None, 7)
    expected = [
        [1.0, 0.0],
        [0.0, 1.0],
        [-1.0, 0.0],
        [0.0, 0.5],
        [0.4999999999999999, -0.3660254037844386],
        [1.4999999999999998, -0.3660254037844387],
        [2.0, 0.5],
    ]
    assert np.allclose(points, expected, rtol=0, atol=1e-15)
    assert labels.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_blobs_lie_around_their_centers():
    centers = np.array([[0.0, 0.0, 50.0], [30.0, 0.0, 0.0]])
    points, labels = toys.blobs(random.key(0), 2000, centers, std=2.0)
    for label, center in enumerate(centers):
        cloud = points[labels == label]
        assert len(cloud) == 1000
        assert np.allclose(cloud.mean(axis=0), center, atol=0.3)
        assert np.allclose(cloud.std(axis=0), 2.0, atol=0.2)


def test_blobs_at_random_centers():
    points, labels = toys.blobs(random.key(0), 10, centers=4, features=5)
    assert points.shape == (10, 5)
    assert np.bincount(labels).tolist() == [3, 3, 2, 2]


@pytest.mark.parametrize("name", [*AREAS, "spiral", "moons", "blobs"])
def test_no_points(name):
    with pytest.raises(errors.ArgumentError, match=rf"{name}\(\) got n=0"):
        getattr(toys, name)(random.key(0), 0)


def test_centers_without_axes():
    with pytest.raises(errors.ShapeError, match="two axes"):
        toys.blobs(random.key(0), 5, centers=[1.0, 2.0])


# make_regression


def test_regression_of_the_recipe():
    x, y, coefficients = make_regression()
    assert np.allclose(coefficients, [42.38550486], atol=5e-9)
    assert np.allclose(x[:3, 0], [-0.35955316, 0.97663904, 0.40234164], atol=5e-9)
    assert np.allclose(y[:3], [-19.95588561, 21.33977271, 11.55689458], atol=5e-9)
    assert x.shape == (100, 1)
    assert y.shape == (100,)


def test_regression_has_the_least_squares_solution_of_the_article():
    x, y, _ = make_regression()
    design = np.stack([x[:, 0], np.ones(100)], axis=1)
    solution, residual, *_ = np.linalg.lstsq(design, y)
    assert np.allclose(solution, [42.61943029, -0.81418183], atol=5e-9)
    assert np.allclose(residual / 100, 114.17148617, atol=5e-9)


def test_regression_with_more_features_is_that_of_scikit_learn():
    x, y, coefficients = make_regression(5, 3, noise=2.5, bias=7.0, seed=11)
    expected = [
        [-1.3055485097805806, 0.5611921760332811, 0.6896823102014212],
        [-0.4845651322211443, -0.28607299681629417, 1.7494547413051793],
        [-0.31963136376429824, -0.00828462937293584, -2.653318559261479],
        [-0.4757334926833952, -0.886239669955473, -1.0656029804488336],
        [0.42105071625547846, 0.3154026684256969, -0.53662936223473],
    ]
    targets = [
        -74.91254443096807, -13.20194743737459, -46.97020071422424, -52.45177190650304,
        33.999559515414326,
    ]  # fmt: skip
    assert np.allclose(x, expected, rtol=1e-15)
    assert np.allclose(y, targets, rtol=1e-13)
    assert np.allclose(coefficients, [71.27259356888429, 8.395314332205706, 11.166123199466039])
