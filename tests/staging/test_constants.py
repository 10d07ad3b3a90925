"""Numbers and arrays in source: what is written comes back to the last bit, and in its order."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from funcgrad.staging.backends.constants import array_text, number_text

RNG = np.random.default_rng(0)
CUBE = RNG.normal(size=(2, 3, 4))


@pytest.mark.parametrize(
    "value", [1, True, 0.1, 1 / 3, -0.0, np.inf, -np.inf, 1e-320, 2.5j, complex(-0.0, np.inf)]
)
def test_numbers_come_back(value):
    made = eval(number_text(value), {"np": np})
    assert type(made) is type(value)
    assert repr(made) == repr(value)


def test_what_is_not_a_number_comes_back():
    assert np.isnan(eval(number_text(np.nan), {"np": np}))


@pytest.mark.parametrize(
    "value",
    [
        np.array(0.1),
        np.array([0.1, 1 / 3, -0.0]),
        np.array([np.nan, np.inf, -np.inf]),
        np.array([-0.0 + 1j, 2.0], np.complex64),
        np.zeros((0, 3)),
        np.zeros((3, 2)),
        np.full((40, 2), -0.0),
        np.full((40, 2), 7, np.uint8, order="F"),
        np.array([True, False]),
        np.array([2**63], np.uint64),
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        RNG.normal(size=(5, 20)).astype(np.float16),
        np.asfortranarray(RNG.normal(size=(5, 20))),
        CUBE.transpose(1, 2, 0),
        np.ascontiguousarray(np.tile(CUBE, 3)).transpose(2, 0, 1),
        RNG.normal(size=(3, 20)).astype(">f4"),
    ],
    ids=lambda x: f"{x.dtype}{x.shape}",
)
def test_arrays_come_back(value):
    made = eval(array_text(value), {"np": np, "base64": base64})
    assert made.dtype == value.dtype
    assert made.shape == value.shape
    assert made.tobytes() == value.tobytes()
    if value.size > 1:
        assert made.strides == value.strides


def test_arrays_of_objects_have_no_text():
    assert array_text(np.array([None])) is None
