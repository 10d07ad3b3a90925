"""The pointwise activation functions: values and slopes as in JAX and PyTorch, and the ends."""

import warnings

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ShapeError

F = fg.nn.functional
X = np.array([-7.0, -3.5, -1.3, -0.3, 0.2, 0.9, 2.5, 8.0])
# Values and slopes at X, by JAX 0.10 (from "threshold" on by PyTorch 2.13), in float64.
TABLE = {
    "leaky_relu": (
        [-0.7000000000000001, -0.35000000000000003, -0.13, -0.03, 0.2, 0.9, 2.5, 8.0],
        [0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0],
    ),
    "elu": (
        [
            -1.4986321770516682,
            -1.4547039248665223,
            -1.0912023104489812,
            -0.3887726689774232,
            0.2,
            0.9,
            2.5,
            8.0,
        ],
        [
            0.0013678229483317095,
            0.04529607513347772,
            0.4087976895510188,
            1.1112273310225769,
            1.0,
            1.0,
            1.0,
            1.0,
        ],
    ),
    "celu": (
        [
            -1.485894656172757,
            -1.3545420482033925,
            -0.8694744232369771,
            -0.2719038703830272,
            0.2,
            0.9,
            2.5,
            8.0,
        ],
        [
            0.009403562551495215,
            0.09697196786440498,
            0.4203503845086819,
            0.8187307530779818,
            1.0,
            1.0,
            1.0,
            1.0,
        ],
    ),
    "selu": (
        [
            -1.7564961617648047,
            -1.705009340957283,
            -1.2789613751543256,
            -0.4556673153791221,
            0.2101401974710961,
            0.9456308886199324,
            2.626752468388701,
            8.405607898843844,
        ],
        [
            0.001603179082571929,
            0.053089999890093616,
            0.4791379656930511,
            1.3024320254682547,
            1.0507009873554805,
            1.0507009873554805,
            1.0507009873554805,
            1.0507009873554805,
        ],
    ),
    "gelu_exact": (
        [
            -8.958687807200846e-12,
            -0.0008142017766243376,
            -0.12584062996129347,
            -0.1146265733433142,
            0.11585194188782061,
            0.7343458871879165,
            2.4844758366855597,
            7.999999999999995,
        ],
        [
            -6.266323031466633e-11,
            -0.002821760353624635,
            -0.12597868507653925,
            0.2676722331728902,
            0.6574682482341941,
            1.0554165995621199,
            1.037611085908145,
            1.0000000000000397,
        ],
    ),
    "gelu_tanh": (
        [
            -2.7200464103316335e-15,
            -0.0006161976553737403,
            -0.12607098768269054,
            -0.11462907645724074,
            0.11585142978210627,
            0.7342284887097207,
            2.4849157339100016,
            8.0,
        ],
        [
            -3.1812136339434276e-14,
            -0.0024226437601169923,
            -0.12587806978401667,
            0.26770454836119817,
            0.6574581491956994,
            1.0550672047596168,
            1.0379515762126654,
            1.0,
        ],
    ),
    "mish": (
        [
            -0.006380263409573668,
            -0.10409575448637122,
            -0.30738246474949593,
            -0.15113317713833452,
            0.13259900186215925,
            0.7612059289525153,
            2.471392304557881,
            7.9999982006448445,
        ],
        [
            -0.005465886861314786,
            -0.07276041344326706,
            -0.026400962159801533,
            0.408510876935702,
            0.7246245404198408,
            1.0279182005317524,
            1.041129530131353,
            1.000003372583684,
        ],
    ),
    "relu6": (
        [0.0, 0.0, 0.0, 0.0, 0.2, 0.9, 2.5, 6.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0],
    ),
    "hard_tanh": (
        [-1.0, -1.0, -1.0, -0.3, 0.2, 0.9, 1.0, 1.0],
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
    ),
    "hard_sigmoid": (
        [
            0.0,
            0.0,
            0.2833333333333333,
            0.45,
            0.5333333333333333,
            0.6499999999999999,
            0.9166666666666666,
            1.0,
        ],
        [
            0.0,
            0.0,
            0.16666666666666666,
            0.16666666666666666,
            0.16666666666666666,
            0.16666666666666666,
            0.16666666666666666,
            0.0,
        ],
    ),
    "hard_silu": (
        [
            -0.0,
            -0.0,
            -0.36833333333333335,
            -0.135,
            0.10666666666666667,
            0.585,
            2.2916666666666665,
            8.0,
        ],
        [
            0.0,
            0.0,
            0.06666666666666665,
            0.4,
            0.5666666666666667,
            0.7999999999999999,
            1.3333333333333333,
            1.0,
        ],
    ),
    "soft_sign": (
        [
            -0.875,
            -0.7777777777777778,
            -0.5652173913043479,
            -0.23076923076923075,
            0.16666666666666669,
            0.4736842105263158,
            0.7142857142857143,
            0.8888888888888888,
        ],
        [
            0.015625,
            0.04938271604938271,
            0.1890359168241966,
            0.5917159763313609,
            0.6944444444444444,
            0.2770083102493074,
            0.0816326530612245,
            0.012345679012345678,
        ],
    ),
    "squareplus": (
        [
            0.14005494464025903,
            0.2655644370746373,
            0.5426860441876563,
            0.8611874208078342,
            1.104987562112089,
            1.5465856099730653,
            2.850781059358212,
            8.123105625617661,
        ],
        [
            0.019238026179588377,
            0.06587842893777036,
            0.22750582470229297,
            0.42582977353487766,
            0.5497518595104994,
            0.7051823386643989,
            0.8904344047215151,
            0.9850712500726659,
        ],
    ),
    "sparse_plus": (
        [0.0, 0.0, 0.0, 0.12249999999999998, 0.36, 0.9025, 2.5, 8.0],
        [0.0, 0.0, 0.0, 0.35, 0.6, 0.95, 1.0, 1.0],
    ),
    "sparse_sigmoid": (
        [0.0, 0.0, 0.0, 0.35, 0.6, 0.95, 1.0, 1.0],
        [0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.0, 0.0],
    ),
    "threshold": (
        [-2.0, -2.0, -2.0, -2.0, -2.0, 0.9, 2.5, 8.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ),
    "hard_shrink": (
        [-7.0, -3.5, -1.3, 0.0, 0.0, 0.9, 2.5, 8.0],
        [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ),
    "soft_shrink": (
        [-6.3, -2.8, -0.6000000000000001, 0.0, 0.0, 0.20000000000000007, 1.8, 7.3],
        [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    ),
    "tanh_shrink": (
        [
            -6.0000016630560555,
            -2.501822102388801,
            -0.4382768406866937,
            -0.008687387548409087,
            0.002624679775096006,
            0.18370212980097556,
            1.5133857018485697,
            7.000000225070324,
        ],
        [
            0.9999966738906552,
            0.9963591152795126,
            0.7425668032969059,
            0.08486303817337082,
            0.038957017033883434,
            0.5130826388516585,
            0.9734077733168395,
            0.9999995498594023,
        ],
    ),
}
CALLS = {
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 1.5),
    "celu": lambda x: F.celu(x, 1.5),
    "gelu_exact": lambda x: F.gelu(x, approximate=False),
    "gelu_tanh": F.gelu,
    "threshold": lambda x: F.threshold(x, 0.5, -2.0),
    "hard_shrink": lambda x: F.hard_shrink(x, 0.7),
    "soft_shrink": lambda x: F.soft_shrink(x, 0.7),
}


def call(name):
    return CALLS.get(name, getattr(F, name, None))


@pytest.mark.parametrize("name", TABLE)
def test_values(name):
    np.testing.assert_allclose(call(name)(X), TABLE[name][0], rtol=1e-12, atol=2e-14)


@pytest.mark.parametrize("name", TABLE)
def test_slopes_in_both_modes(name):
    expected = TABLE[name][1]
    np.testing.assert_allclose(fg.elementwise_grad(call(name))(X), expected, rtol=1e-12, atol=2e-14)
    np.testing.assert_allclose(
        fg.jvp(call(name), (X,), (np.ones_like(X),))[1], expected, rtol=1e-12, atol=2e-14
    )


@pytest.mark.parametrize("name", TABLE)
def test_second_derivatives(name):
    fg.testing.check_grads(lambda x: np.sum(call(name)(x)), (X[2:7],), order=2)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_stay(name, dtype):
    out = call(name)(X.astype(dtype))
    assert out.dtype == dtype
    wide = call(name)(X.astype(dtype).astype(np.float64))
    np.testing.assert_allclose(out, wide, rtol=8 * np.finfo(dtype).eps, atol=np.finfo(dtype).eps)


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ("threshold",)])
def test_the_ends_are_finite(name):
    x = np.array([-1e30, -1e3, 1e3, 1e30])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        out = call(name)(x)
        slopes = fg.elementwise_grad(call(name))(x)
    assert np.isfinite(out).all()
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("name", TABLE)
def test_lists_integers_and_numbers(name):
    np.testing.assert_array_equal(call(name)([1, -2]), call(name)(np.array([1.0, -2.0])))
    assert call(name)(1.0) == call(name)(np.array([1.0]))[0]


@pytest.mark.parametrize("name", TABLE)
def test_empty(name):
    assert call(name)(np.zeros((0, 3))).shape == (0, 3)


# At kinks the slope of least size of the two beside it.
KINKS = [
    ("leaky_relu", 0.0, 0.1),
    ("selu", 0.0, 1.7580993408473768),
    ("relu6", 0.0, 0.0),
    ("relu6", 6.0, 0.0),
    ("hard_tanh", 1.0, 0.0),
    ("hard_tanh", -1.0, 0.0),
    ("hard_sigmoid", 3.0, 0.0),
    ("hard_silu", -3.0, 0.0),
    ("soft_sign", 0.0, 1.0),
    ("sparse_sigmoid", 1.0, 0.0),
    ("sparse_plus", 1.0, 1.0),
    ("sparse_plus", -1.0, 0.0),
    ("celu", 0.0, 1.0),
    ("gelu_tanh", 0.0, 0.5),
    ("gelu_exact", 0.0, 0.5),
    ("mish", 0.0, 0.6),
]


@pytest.mark.parametrize(("name", "x", "slope"), KINKS)
def test_kinks(name, x, slope):
    assert fg.grad(call(name))(x) == pytest.approx(slope, rel=1e-14)
    assert fg.jvp(call(name), (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-14)


def test_exact_gelu_keeps_its_tail():
    # By mpmath.
    out = F.gelu(np.array([-10.0, -30.0]), approximate=False)
    np.testing.assert_allclose(out, [-7.619853024160526e-23, -1.472014178144456e-196], rtol=1e-12)


def test_approximate_gelu_keeps_its_tail():
    # By mpmath, of the formula with the tanh.
    np.testing.assert_allclose(F.gelu(-7.0), -2.315442262072549e-15, rtol=1e-12)


def test_glu():
    expected = [-3.8488379811873457, -2.4883232591875135, -1.2013843659723835, -0.2998993949608601]
    np.testing.assert_allclose(F.glu(X), expected, rtol=1e-14)
    np.testing.assert_allclose(F.glu(X.reshape(4, 2), 0), np.reshape(expected, (2, 2)), rtol=1e-14)
    with pytest.raises(ShapeError, match="cannot halve"):
        F.glu(X[:3])


def test_log1mexp():
    expected = [
        -27.631021115929048,
        -1.3502256128148467,
        -0.6863410028083852,
        -0.006760749449488557,
        -4.248354255291589e-18,
    ]
    x = np.array([1e-12, 0.3, 0.7, 5.0, 40.0])
    np.testing.assert_allclose(F.log1mexp(x), expected, rtol=1e-14)
    np.testing.assert_allclose(fg.elementwise_grad(F.log1mexp)(x), 1 / np.expm1(x), rtol=1e-13)


def test_logmeanexp():
    assert F.logmeanexp(X) == pytest.approx(5.9262144215569865, rel=1e-14)
    where = np.array([True, False, True, True])
    out = F.logmeanexp(X.reshape(2, 4), axis=1, where=where, keepdims=True)
    np.testing.assert_allclose(out, [[-1.0844511370830139], [6.905874138666831]], rtol=1e-14)


def test_standardize():
    x = X.reshape(2, 4)
    expected = [-0.9999996141977541, -0.9999989669437498, -0.999998614961326, -0.9999997096822284]
    np.testing.assert_allclose(F.standardize(x, axis=0)[0], expected, rtol=1e-13)
    np.testing.assert_allclose(
        F.standardize(x, mean=1.0, variance=4.0, epsilon=0.0), (x - 1) / 2, rtol=1e-14
    )
    where = np.array([True, True, False, True])
    part = x[:, where]
    given = (x - part.mean(1, keepdims=True)) / np.sqrt(part.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(F.standardize(x, where=where), given, rtol=1e-13)


def test_softmin():
    np.testing.assert_allclose(F.softmin(X), np.exp(-X) / np.exp(-X).sum(), rtol=1e-13)


def test_rrelu():
    x = -np.ones(10_000)
    out = F.rrelu(x, fg.random.key(0), 0.2, 0.6)
    assert out.min() >= -0.6
    assert out.max() <= -0.2
    assert out.mean() == pytest.approx(-0.4, rel=0.01)
    assert F.rrelu(-1.0, lower=0.2, upper=0.6) == -0.4
    assert F.rrelu(2.0, fg.random.key(0)) == 2.0


def test_gumbel_softmax_chooses_by_probability():
    logits = np.log([0.5, 0.3, 0.2])
    drawn = F.gumbel_softmax(np.tile(logits, (20_000, 1)), fg.random.key(0), hard=True)
    np.testing.assert_array_equal(drawn.sum(axis=1), 1)
    np.testing.assert_allclose(drawn.mean(axis=0), [0.5, 0.3, 0.2], atol=0.015)


def test_gumbel_softmax_has_the_smooth_derivative():
    weights = np.array([1.0, 2.0, 4.0])

    def choose(logits, hard):
        return F.gumbel_softmax(logits, fg.random.key(0), 0.5, hard=hard) @ weights

    hard = fg.grad(lambda z: choose(z, True))(np.zeros(3))
    np.testing.assert_allclose(hard, fg.grad(lambda z: choose(z, False))(np.zeros(3)), rtol=1e-13)


def test_identity_and_arctan():
    assert F.identity(X) is X
    np.testing.assert_array_equal(F.arctan(X), np.arctan(X))
    assert F.hard_swish is F.hard_silu


@pytest.mark.parametrize(
    "big", [np.float16(3e4), np.float32(1e30), np.float64(1e200)], ids=lambda big: str(big.dtype)
)
@pytest.mark.parametrize("name", ["gelu", "squareplus"])
def test_squares_of_large_numbers_do_not_overflow(name, big):
    f = getattr(fg.nn.functional, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = fg.value_and_grad(f)(big)
        _, slope_below = fg.value_and_grad(f)(-big)
        curvature = fg.grad(fg.grad(f))(big)
    assert value == big
    assert value.dtype == big.dtype
    assert (slope, slope_below, curvature) == (1, 0, 0)
