"""Initial values: variances, ranges and structure of what is drawn."""

import math

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.nn import initializers as init


def fresh():
    """Return the same key, not used yet."""
    return fg.random.key(0)


# Of (200, 400): fan-in 200, fan-out 400.
SCALED = {
    "glorot_normal": 1 / 300,
    "glorot_uniform": 1 / 300,
    "xavier_normal": 1 / 300,
    "xavier_uniform": 1 / 300,
    "he_normal": 2 / 200,
    "he_uniform": 2 / 200,
    "kaiming_normal": 2 / 200,
    "kaiming_uniform": 2 / 200,
    "lecun_normal": 1 / 200,
    "lecun_uniform": 1 / 200,
}


@pytest.mark.parametrize("name", SCALED)
def test_variance(name):
    w = getattr(init, name)()(fresh(), (200, 400))
    assert w.dtype == np.float64
    assert abs(w.mean()) < 4 * math.sqrt(SCALED[name] / w.size)
    assert w.var() == pytest.approx(SCALED[name], rel=0.02)


@pytest.mark.parametrize("name", [name for name in SCALED if "uniform" in name])
def test_uniform_reaches_its_bounds(name):
    w = getattr(init, name)()(fresh(), (200, 400))
    assert np.abs(w).max() == pytest.approx(math.sqrt(3 * SCALED[name]), rel=1e-3)


@pytest.mark.parametrize("name", [name for name in SCALED if "normal" in name])
def test_normal_is_cut_at_two_deviations(name):
    w = getattr(init, name)()(fresh(), (200, 400))
    bound = 2 * math.sqrt(SCALED[name]) / 0.879625661034
    assert np.abs(w).max() == pytest.approx(bound, rel=1e-2)
    assert np.abs(w).max() <= bound


@pytest.mark.parametrize(
    ("mode", "n"), [("fan_in", 45), ("fan_out", 90), ("fan_avg", 67.5), ("fan_geo_avg", 4050**0.5)]
)
def test_modes_count_the_receptive_field(mode, n):
    # A kernel of 10 outputs and 5 inputs at 3 x 3 places, in 40 groups.
    draw = init.variance_scaling(3.0, mode, "normal", in_axis=2, out_axis=1, batch_axis=0)
    w = draw(fresh(), (40, 10, 5, 3, 3))
    assert w.var() == pytest.approx(3 / n, rel=0.05)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["uniform", "normal", "truncated_normal", *SCALED])
def test_dtypes(name, dtype):
    assert getattr(init, name)()(fresh(), (3, 2), dtype).dtype == dtype
    assert getattr(init, name)(dtype=dtype)(fresh(), (3, 2)).dtype == dtype


def test_complex_normal_has_the_variance_in_all():
    w = init.normal(0.5, np.complex128)(fresh(), (20_000,))
    assert np.mean(np.abs(w) ** 2) == pytest.approx(0.25, rel=0.03)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_orthogonal(shape, dtype):
    q = init.orthogonal(2.0)(fresh(), shape, dtype).reshape(-1, shape[-1]) / 2
    small = q.conj().T @ q if q.shape[0] >= q.shape[1] else q @ q.conj().T
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-14)
    assert q.dtype == dtype


def test_orthogonal_column_axis():
    q = init.orthogonal(column_axis=0)(fresh(), (3, 5))
    np.testing.assert_allclose(q @ q.T, np.eye(3), atol=1e-14)


def test_orthogonal_has_no_favourite_direction():
    """Of Haar measure the trace of a 2x2 matrix has mean 0; of plain QR it has not."""
    keys = fg.random.split(fresh(), 2000)
    traces = [np.trace(init.orthogonal()(key, (2, 2))) for key in keys]
    assert abs(np.mean(traces)) < 4 * np.std(traces) / math.sqrt(2000)


def test_delta_orthogonal():
    w = init.delta_orthogonal()(fresh(), (3, 3, 2, 4))
    np.testing.assert_allclose(w[1, 1] @ w[1, 1].T, np.eye(2), atol=1e-14)
    w[1, 1] = 0
    assert not w.any()


def test_sparse():
    w = init.sparse(0.3, stddev=2.0)(fresh(), (10, 500))
    np.testing.assert_array_equal((w == 0).sum(axis=0), 3)
    assert w[w != 0].std() == pytest.approx(2.0, rel=0.05)
    assert len({tuple(column) for column in (w == 0).T}) > 50  # not the same inputs everywhere


@pytest.mark.parametrize(
    ("name", "param", "expected"),
    [
        ("linear", None, 1.0),
        ("sigmoid", None, 1.0),
        ("tanh", None, 1.6666666666666667),
        ("relu", None, 1.4142135623730951),
        ("leaky_relu", None, 1.4141428569978354),
        ("leaky_relu", 0.2, 1.3867504905630728),
        ("selu", None, 0.75),
    ],
)
def test_gain_as_in_pytorch(name, param, expected):
    assert init.gain(name, param) == pytest.approx(expected, rel=1e-15)


def test_fixed_values():
    np.testing.assert_array_equal(init.zeros(None, (2, 1)), [[0.0], [0.0]])
    np.testing.assert_array_equal(init.ones(None, [2], np.float32), np.ones(2, np.float32))
    np.testing.assert_array_equal(init.constant([1, 2])(None, (2, 2)), [[1.0, 2.0], [1.0, 2.0]])


def test_empty_shapes():
    assert init.he_normal()(fresh(), (0, 3)).shape == (0, 3)
    assert init.orthogonal()(fresh(), (0, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: init.he_normal()(fresh(), (3,)), ShapeError, "at least 2 axes"),
        (lambda: init.orthogonal()(fresh(), (3,)), ShapeError, "at least 2 axes"),
        (lambda: init.delta_orthogonal()(fresh(), (3, 4, 2)), ShapeError, "delta_orthogonal"),
        (lambda: init.normal()(fresh(), (3,), np.int64), DtypeError, "int64"),
        (lambda: init.he_uniform()(fresh(), (3, 3), complex), DtypeError, "complex"),
        (lambda: init.uniform()(fresh(), (3,), complex), DtypeError, "complex"),
        (lambda: init.variance_scaling(1.0, "fan", "normal"), ArgumentError, "no mode 'fan'"),
        (lambda: init.variance_scaling(1.0, "fan_in", "u"), ArgumentError, "no distribution"),
        (lambda: init.gain("swish"), ArgumentError, "no gain is known for 'swish'"),
        (lambda: init.sparse(1.5), ArgumentError, "from 0 to 1"),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()
