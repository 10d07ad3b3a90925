"""Parameters that are traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import random
from funcgrad.errors import TracerConversionError

KEY = random.key(2024)


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A duck array that answers NumPy's protocols and refuses to become an array."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)
        self.shape, self.dtype, self.ndim = self.value.shape, self.value.dtype, self.value.ndim

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a traced value was converted")

    def __bool__(self) -> bool:
        raise TypeError("a traced value was branched on")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return Traced(getattr(ufunc, method)(*map(bare, args), **kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Traced(func(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __getitem__(self, index: Any) -> Traced:
        return Traced(self.value[index])

    def astype(self, dtype: Any) -> Traced:
        return Traced(self.value.astype(dtype))


def bare(value: Any) -> Any:
    return value.value if isinstance(value, Traced) else value


@pytest.mark.parametrize(
    "draw",
    [
        lambda k, t: k.uniform((3,), minval=t(-1.0)),
        lambda k, t: k.uniform((2, 3), np.float32, t(np.zeros(3)), t(np.ones(3))),
        lambda k, t: k.uniform((), maxval=t(2.0)),
        lambda k, t: k.bernoulli(t(0.3), (4,)),
        lambda k, t: k.bernoulli(t(np.array([0.3, 0.9]))),
        lambda k, t: k.categorical(t(np.zeros((2, 3)))),
        lambda k, t: k.categorical(t(np.zeros((2, 3))), 0, (5, 3)),
        lambda k, t: k.categorical(t(np.zeros((2, 3))), shape=(3, 2), replace=False),
        lambda k, t: k.permutation(t(np.arange(5.0))),
        lambda k, t: k.permutation(t(np.ones((2, 3))), 1, True),
        lambda k, t: k.choice(t(np.arange(5.0)), (2, 2)),
        lambda k, t: k.choice(t(np.arange(5.0)), (2,), False, np.arange(5)),
        lambda k, t: t(3.0) + t(2.0) * k.normal(4),
    ],
)
def test_parameters_may_be_traced(draw: Any) -> None:
    plain, traced = draw(random.clone(KEY), np.asarray), draw(random.clone(KEY), Traced)
    assert isinstance(traced, Traced)
    assert traced.dtype == plain.dtype
    assert traced.shape == plain.shape
    assert_array_equal(traced.value, plain)


@pytest.mark.parametrize(
    ("argument", "draw"),
    [
        ("minval of randint", lambda k, x: k.randint(3, x, 9)),
        ("maxval of randint", lambda k, x: k.randint(3, 0, x)),
        ("p of choice", lambda k, x: k.choice(2, p=[x, 1 - x])),
    ],
)
def test_parameters_without_a_derivative_say_that_they_cannot_be_traced(
    argument: str, draw: Any
) -> None:
    words = rf"^{argument}\(\) cannot be traced: .*\n  where: .*\n  fix:   write .*stop_gradient"
    with pytest.raises(TracerConversionError, match=words):
        fg.grad(lambda x: x * np.sum(draw(random.key(0), x)))(0.5)


def test_what_those_errors_say_to_write_works() -> None:
    def f(x: Any) -> Any:
        held = fg.stop_gradient(x)
        k1, k2, k3, k4 = random.split(random.key(0), 4)
        p = fnp.array([x / 4, 1 - x / 4])
        total = random.truncated_normal(k1, -held, held) + random.randint(k2, (), 0, int(held))
        total += random.choice(k3, 2, p=fg.stop_gradient(p)) + random.categorical(k4, np.log(p))
        return x * total

    assert fg.grad(f)(3.0) == f(3.0) / 3.0


def test_a_bernoulli_draw_has_no_slope_in_its_probability() -> None:
    def f(p: Any) -> Any:
        return np.sum(p * random.bernoulli(random.key(0), p, (100,)))

    assert fg.grad(f)(0.25) == random.bernoulli(random.key(0), 0.25, (100,)).sum()


def test_a_number_of_python_is_folded_into_a_key_under_jit() -> None:
    folded = fg.jit(random.fold_in)
    for number in (0, -1, 7, 2**63 - 1):
        assert folded(KEY, number) == random.fold_in(KEY, number)
