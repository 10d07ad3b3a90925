"""Random flips and crops."""

import numpy as np
import pytest

from funcgrad import errors, random
from funcgrad.data import Dataset, random_crop, random_flip

IMAGES = np.arange(200 * 12).reshape(200, 3, 4)


# random_flip


def test_about_half_of_the_pictures_are_flipped_and_no_others_changed():
    out = random_flip(random.key(0), IMAGES)
    flipped = (out == IMAGES[:, :, ::-1]).all(axis=(1, 2))
    kept = (out == IMAGES).all(axis=(1, 2))
    assert (flipped ^ kept).all()
    assert 70 < flipped.sum() < 130


@pytest.mark.parametrize(("axis", "expected"), [(-1, IMAGES[..., ::-1]), (1, IMAGES[:, ::-1])])
def test_flip_along_an_axis(axis, expected):
    assert np.array_equal(random_flip(random.key(0), IMAGES, 1.0, axis), expected)


def test_flip_never_and_leave_the_original_alone():
    before = IMAGES.copy()
    out = random_flip(random.key(0), IMAGES, 0.0)
    assert np.array_equal(out, before)
    assert not np.shares_memory(out, IMAGES)


# random_crop


def test_crop_is_a_window_of_each_picture():
    out = random_crop(random.key(0), IMAGES, (2, 3))
    assert out.shape == (200, 2, 3)
    places = set()
    for picture, cut in zip(IMAGES, out, strict=True):
        row, column = divmod(int(cut[0, 0] - picture[0, 0]), 4)
        assert np.array_equal(cut, picture[row : row + 2, column : column + 3])
        places.add((row, column))
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_padded_crop_moves_pictures():
    ones = np.ones((300, 2, 3, 3), np.float32)
    out = random_crop(random.key(0), ones, padding=1)
    assert out.shape == ones.shape
    assert out.dtype == np.float32
    sums = out.sum(axis=(1, 2, 3))
    assert set(sums.tolist()) == {2 * 9.0, 2 * 6.0, 2 * 4.0}
    assert np.array_equal(out[:, 0], out[:, 1])  # channels move together


def test_crop_along_other_axes():
    images = np.arange(2 * 4 * 5 * 3).reshape(2, 4, 5, 3)
    out = random_crop(random.key(0), images, (4, 2), axes=(-3, -2))
    assert out.shape == (2, 4, 2, 3)
    start = int(out[0, 0, 0, 0] - images[0, 0, 0, 0]) // 3
    assert np.array_equal(out[0], images[0, :, start : start + 2])


def test_whole_picture_is_the_only_crop_of_its_size():
    out = random_crop(random.key(0), IMAGES)
    assert np.array_equal(out, IMAGES)


@pytest.mark.parametrize("change", [random_flip, random_crop])
def test_changes_are_decided_by_the_key(change):
    options = {} if change is random_flip else {"padding": 1}
    one, same, other = (change(random.key(seed), IMAGES, **options) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_changes_are_steps_of_a_pipeline():
    data = (
        Dataset.from_arrays(IMAGES)
        .batch(50)
        .map(lambda x, key: random_flip(key, x), key=random.key(0))
    )
    first = np.concatenate(list(data.iterate(epoch=0)))
    second = np.concatenate(list(data.iterate(epoch=1)))
    assert not np.array_equal(first, second)


# Bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda key: random_flip(key, np.zeros(3)), "needs a batch of pictures"),
        (lambda key: random_flip(key, IMAGES, axis=0), "needs a batch of pictures"),
        (lambda key: random_flip(key, IMAGES, axis=5), "needs a batch of pictures"),
        (lambda key: random_flip(key, IMAGES, 1.5), "probability=1.5"),
        (lambda key: random_crop(key, IMAGES, (4, 4)), r"cannot cut \(4, 4\) out of \(3, 4\)"),
        (lambda key: random_crop(key, IMAGES, (2,)), r"cannot cut \(2,\)"),
        (lambda key: random_crop(key, IMAGES[0]), "needs a batch of pictures"),
        (lambda key: random_crop(key, IMAGES, padding=-1), "padding=-1"),
        (lambda key: random_flip(0, IMAGES), r"random.key\(0\)"),
    ],
)
def test_arguments_that_make_no_sense(wrong, message):
    with pytest.raises(errors.FuncgradError, match=message):
        wrong(random.key(0))
