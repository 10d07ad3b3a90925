"""`one_hot`, `standardize` and its inverse."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors
from funcgrad.data import Standardizer, one_hot, standardize

# one_hot


def test_one_hot_of_a_batch():
    assert one_hot([[1], [0]], 3).tolist() == [[[0, 1, 0]], [[1, 0, 0]]]
    assert one_hot(np.uint8(2), 3, dtype=np.float32).dtype == np.float32


def test_classes_are_counted_if_not_given():
    assert one_hot([0, 3]).shape == (2, 4)
    assert one_hot(np.zeros(0, int)).shape == (0, 0)


@pytest.mark.parametrize(
    ("labels", "place"), [([0, 3], r"labels\[1\]"), ([[0], [-1]], r"labels\[1, 0\]")]
)
def test_label_out_of_range_is_named(labels, place):
    with pytest.raises(errors.ArgumentError, match=rf"a label is -?\d, of 3 classes\n.*{place}"):
        one_hot(labels, 3)


def test_labels_are_integers():
    with pytest.raises(errors.DtypeError, match="labels of classes are integers"):
        one_hot([0.0, 1.0])


# standardize


def test_standardized_data_has_mean_0_and_deviation_1():
    x = np.random.default_rng(0).normal(3.0, 5.0, (200, 4))
    z, scale = standardize(x)
    assert np.allclose(z.mean(axis=0), 0.0, atol=1e-14)
    assert np.allclose(z.std(axis=0), 1.0, rtol=1e-14)
    assert np.allclose(scale.inverse(z), x, rtol=1e-14)


def test_other_data_is_scaled_by_what_was_learned():
    scale = Standardizer.fit(np.array([[0.0, 1.0], [2.0, 5.0]]))
    assert scale(np.array([3.0, 7.0])).tolist() == [[2.0, 2.0]]


def test_column_that_does_not_vary_becomes_0():
    x = np.full((7, 1), 0.1)
    z, scale = standardize(x)
    assert z.tolist() == [[0.0]] * 7
    assert scale.std.tolist() == [[1.0]]
    assert scale.inverse(z).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("axis", "shape"), [(None, (1, 1, 1)), ((0, 2), (1, 3, 1)), (-1, (2, 3, 1))]
)
def test_axes(axis, shape):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    z, scale = standardize(x, axis)
    assert scale.mean.shape == shape
    assert np.allclose(z.std(axis), 1.0)


def test_dtypes():
    assert standardize(np.array([1.0, 2.0], np.float32))[0].dtype == np.float32
    assert standardize(np.array([1, 3]))[0].tolist() == [-1.0, 1.0]


def test_standardizer_is_saved_and_differentiated(tmp_path):
    scale = Standardizer.fit(np.array([[0.0], [4.0]]))
    fg.save(tmp_path / "scale.npz", scale)
    loaded = fg.load(tmp_path / "scale.npz")
    assert type(loaded) is Standardizer
    assert fg.grad(lambda x: loaded(x).sum())(np.ones((3, 1))).tolist() == [[0.5]] * 3


def test_value_without_a_mean_is_named():
    with pytest.raises(errors.ArgumentError, match=r"a value is nan.*\n.*x\[1, 0\]"):
        standardize([[1.0, 2.0], [np.nan, 3.0]])


def test_nothing_to_standardize():
    with pytest.raises(errors.ArgumentError, match="data set is empty"):
        standardize(np.zeros((0, 3)))
