"""The numbers themselves: the same on every machine and with every NumPy.

They change only with a note in CHANGELOG.md, because they change everybody's results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from funcgrad import random

FLOAT_SAMPLERS = ["normal", "exponential", "gumbel", "laplace", "uniform"]
LOGITS = [-2.0, -1.0, 0.5, 1.0]
WEIGHTS = [0.0, 1.0, 2.0, 3.0, 4.0]
CALLS: dict[str, Any] = {
    **{
        f"{name} {dtype}": lambda k, name=name, dtype=dtype: getattr(k, name)((4,), dtype)
        for name in FLOAT_SAMPLERS
        for dtype in ("float64", "float32")
    },
    "normal complex128": lambda k: k.normal(2, np.complex128).view(np.float64),
    "normal, many": lambda k: k.normal(1000)[-3:],
    "uniform, scaled": lambda k: k.uniform(3, minval=-0.3, maxval=0.7),
    "truncated_normal float64": lambda k: k.truncated_normal([-1.0, 2.0, -np.inf, -2.0], np.inf),
    "truncated_normal float32": lambda k: k.truncated_normal(-2.0, 2.0, 4, np.float32),
    "bits": lambda k: k.bits(3),
    "bits uint16": lambda k: k.bits(4, np.uint16),
    "bernoulli": lambda k: k.bernoulli(0.4, 12),
    "rademacher": lambda k: k.rademacher(12),
    "randint": lambda k: k.randint(6, -50, 50),
    "randint, wide": lambda k: k.randint(2, -(2**63), 2**63),
    "permutation": lambda k: k.permutation(10),
    "choice": lambda k: k.choice(100, 6),
    "choice, p": lambda k: k.choice(5, 8, p=WEIGHTS),
    "choice, no replace": lambda k: k.choice(100, 5, replace=False),
    "choice, no replace, p": lambda k: k.choice(5, 4, replace=False, p=WEIGHTS),
    "categorical": lambda k: k.categorical(LOGITS, shape=(8,)),
    "split": lambda k: random.key_data(k.split(2)).ravel(),
    "fold_in": lambda k: random.key_data(k.fold_in(-(10**30))),
}
GOLDEN: dict[str, list[Any]] = {
    "normal float64": [
        -0.6908097427325931,
        -0.03391266106238616,
        -0.05021938467385495,
        0.7666309938978764,
    ],
    "normal float32": [
        -0.6908097267150879,
        -0.03391266241669655,
        -0.05021938309073448,
        0.766631007194519,
    ],
    "exponential float64": [
        1.4071399033073244,
        0.7205730582668562,
        0.7340237970852722,
        0.25057958985489465,
    ],
    "exponential float32": [
        1.4071398973464966,
        0.7205730676651001,
        0.7340238094329834,
        0.2505795955657959,
    ],
    "gumbel float64": [
        -0.3415592069540211,
        0.32770846928430286,
        0.30921382979607276,
        1.3839786849491547,
    ],
    "gumbel float32": [
        -0.34155920147895813,
        0.32770848274230957,
        0.3092138171195984,
        1.3839787244796753,
    ],
    "laplace float64": [
        -0.7139927227473789,
        -0.027425877706911034,
        -0.04087661652532675,
        0.8135064114602203,
    ],
    "laplace float32": [
        -0.713992714881897,
        -0.02742587774991989,
        -0.040876615792512894,
        0.8135064244270325,
    ],
    "uniform float64": [
        0.2448425560675177,
        0.48647339846421067,
        0.47997378215360775,
        0.7783495288223772,
    ],
    "uniform float32": [
        0.244842529296875,
        0.4864733815193176,
        0.4799737334251404,
        0.7783495187759399,
    ],
    "normal complex128": [
        -0.4884762535959509,
        -0.023979872605294245,
        -0.035510467449898615,
        0.5420899744529711,
    ],
    "normal, many": [-1.2366861891499765, -1.805632988566273, -0.9121559474337769],
    "uniform, scaled": [-0.055157443932482286, 0.18647339846421068, 0.17997378215360776],
    "truncated_normal float64": [
        -0.34605084439301703,
        2.2880489955338477,
        -0.05021938467385509,
        0.7837006391315187,
    ],
    "truncated_normal float32": [
        -0.6543216705322266,
        -0.03236907348036766,
        -0.047932595014572144,
        0.7247084975242615,
    ],
    "bits": [4516547970130382688, 8973850280137024990, 8853953521478023867],
    "bits uint16": [16046, 31881, 31455, 51009],
    "bernoulli": [True, False, False, False, True, False, True, True, True, False, False, True],
    "rademacher": [1, 1, 1, -1, 1, -1, 1, 1, 1, -1, -1, 1],
    "randint": [-26, -2, -3, 27, -22, 12],
    "randint, wide": [-4706824066724393120, -249521756717750818],
    "permutation": [7, 8, 6, 0, 4, 2, 1, 5, 9, 3],
    "choice": [24, 48, 47, 77, 28, 62],
    "choice, p": [4, 3, 3, 2, 4, 3, 4, 4],
    "choice, no replace": [72, 17, 11, 42, 7],
    "choice, no replace, p": [3, 4, 2, 1],
    "categorical": [3, 2, 2, 1, 0, 3, 0, 2],
    "split": [3790395674960893468, 3911625547731933490, 3651702335786410907, 10675326350529935650],
    "fold_in": [11640657347946862615, 11022230328523280742],
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_do_not_change(name: str) -> None:
    assert CALLS[name](random.key(42)).tolist() == GOLDEN[name]
