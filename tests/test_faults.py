"""What six small frameworks get wrong, and the right answer, keyed by the fault's number.

A is gradflow, B metagrad, C similartorch, D Terox as their articles print them, R is found in
their repositories only. Each entry gives ``(got, want)``, compared value by value in float64.
"""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import DtypeError, FuncgradError, ShapeError

F = fg.nn.functional
FAULTS = {}
# The first row of the Jacobian of softmax at [1, 2, 3].
SOFTMAX_ROW = [0.081925069064993, -0.022033044520174, -0.059892024544819]


def fault(*names):
    """Enter a case under the numbers of the faults that it covers."""

    def enter(case):
        for name in names:
            assert name not in FAULTS
            FAULTS[name] = case
        return case

    return enter


def total_grad(f, *args, argnums=0):
    """The gradient of the sum of all outputs."""
    return fg.grad(lambda *xs: np.sum(f(*xs)), argnums=argnums)(*args)


def doublings(n):
    def f(x):
        for _ in range(n):
            x = x + x
        return x

    return f


@fault("A1")
def shared_intermediate():
    return fg.grad(doublings(2))(1.0), 4.0


@fault("A2")
def six_doublings():
    return fg.grad(doublings(6))(1.0), 64.0


@fault("A3")
def shared_residual():
    def loss(w, b):
        return (w * 2.0 + b - 3.0) ** 2

    value, gradient = fg.value_and_grad(loss, argnums=(0, 1))(1.0, 0.0)
    return [value, *gradient], [1.0, -4.0, -2.0]


@fault("A4")
def constant_operand():
    c = np.array([3.0, 4.0])
    return total_grad(lambda x: x + c, np.array([1.0, 2.0])), np.ones(2)


@fault("A5", "B1")
def broadcast_scalar_is_summed():
    got = total_grad(lambda b: np.array([1.0, 2.0, 3.0]) + b, np.array(0.0))
    return [got, got.shape], [3.0, ()]


@fault("A6", "B5", "C6")
def vector_output_is_refused_and_vjp_takes_it():
    x = np.ones(3)
    with pytest.raises(ShapeError, match=r"scalar, got float64\[3\]"):
        fg.grad(lambda v: v + v)(x)
    return fg.vjp(lambda v: v + v, x)[1](np.ones(3))[0], np.full(3, 2.0)


@fault("A7")
def relu_mask_of_a_square():
    return total_grad(F.relu, np.array([[1.0, -1.0], [2.0, 3.0]])), [[1.0, 0.0], [1.0, 1.0]]


@fault("A8")
def relu_mask_of_a_rectangle():
    x = np.array([[1.0, -1.0, 2.0], [2.0, 3.0, -4.0]])
    return total_grad(F.relu, x), [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]


@fault("A9")
def sgd_keeps_the_orientation():
    opt = fg.optim.sgd(0.1)
    w, g = np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])
    updates, _ = opt.update(g, opt.init(w), w)
    return fg.optim.apply_updates(w, updates), [[-0.1, -0.2], [-0.3, -0.4]]


@fault("A10")
def sgd_does_not_clip():
    opt = fg.optim.sgd(0.1)
    p = np.zeros(2)
    updates, _ = opt.update(np.array([2000.0, 1.0]), opt.init(p), p)
    return fg.optim.apply_updates(p, updates), [-200.0, -0.1]


@fault("A12")
def unused_parameter():
    g_w, g_u = fg.grad(lambda w, u: np.sum(w), argnums=(0, 1))(np.ones(2), np.ones((2, 3)))
    return [g_w, g_u + 1.0], [np.ones(2), np.ones((2, 3))]


@fault("A17", "R26")
def weight_used_twice():
    def f(w):
        return w * (w * 2.0)

    value, slope = fg.value_and_grad(f)(3.0)
    return [value, slope, 3.0 - 0.1 * slope], [18.0, 12.0, 1.8]


@fault("A20")
def evaluated_twice():
    gradient = fg.grad(lambda x: x + x)
    return [gradient(1.0), gradient(1.0)], [2.0, 2.0]


@fault("B2")
def broadcast_factor_is_summed():
    return total_grad(lambda s: np.array([1.0, 2.0, 3.0]) * s, 2.0), 6.0


@fault("B3")
def five_thousand_additions():
    def f(x):
        for _ in range(5000):
            x = x + 1.0
        return x

    return fg.grad(f)(0.0), 1.0


def product_of_sums(a, b):
    return (a + b) * (b + 1.0)


@fault("B4")
def second_backward_starts_afresh():
    value, pullback = fg.vjp(product_of_sums, 2.0, 1.0)
    return [value, *pullback(1.0), *pullback(1.0)], [6.0, 2.0, 5.0, 2.0, 5.0]


@fault("B6", "D3")
def higher_derivatives():
    def cube(x):
        return x**3

    second = fg.grad(fg.grad(cube))
    return (
        [fg.grad(fg.grad(lambda x: x**2))(3.0), second(2.0), fg.grad(second)(2.0)],
        [2.0, 12.0, 6.0],
    )


@fault("B7")
def gradients_share_no_memory():
    g_a, g_b = fg.grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(np.ones(3), np.ones(3))
    g_a[0] = 7.0
    return g_b, np.ones(3)


@fault("B8")
def integers_are_refused():
    with pytest.raises(DtypeError, match=r"2\.0"):
        fg.grad(lambda x: x**2)(2)
    with pytest.raises(DtypeError, match="int64"):
        fg.grad(lambda x: np.sum(x * x))(np.array([2]))
    return fg.grad(lambda x: x**2)(2.0), 4.0


@fault("C2", "D9")
def thirty_doublings():
    return fg.grad(doublings(30))(1.0), 1073741824.0


@fault("C3")
def eleven_hundred_additions():
    def f(x):
        for _ in range(1100):
            x = x + np.float64(1.0)
        return x

    return fg.grad(f)(np.float64(0.0)), 1.0


@fault("C4")
def size_one_axes_are_summed():
    x, y = np.ones((3, 1)), np.ones((1, 4))
    g_x, g_y = fg.grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(x, y)
    return [g_x, g_y], [np.full((3, 1), 4.0), np.full((1, 4), 3.0)]


@fault("C5")
def reused_bias():
    x = np.zeros((3, 2))
    return total_grad(lambda b: (x + b) + (x + b), np.zeros(2)), [6.0, 6.0]


@fault("C7")
def slope_of_exp():
    return fg.grad(np.exp)(1.0), 2.718281828459045


@fault("C8")
def slope_of_log():
    return fg.grad(np.log)(2.0), 0.5


@fault("C9")
def slope_of_the_identity():
    return fg.grad(lambda x: x)(5.0), 1.0


@fault("B9")
def threads_share_no_state():
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda x: fg.grad(doublings(5))(x), np.ones(32)))
    return got, [32.0] * 32


@fault("C27")
def cross_entropy_in_single_precision():
    logits = np.array([200.0, 0.0], np.float32)
    value, slope = fg.value_and_grad(cross_entropy)(logits, 1)
    return [value, slope, slope.dtype == np.float32], [200.0, [1.0, -1.0], True]


@fault("C10")
def product_of_vectors():
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    value, gradient = fg.value_and_grad(lambda a, b: a @ b, argnums=(0, 1))(a, b)
    return [value, *gradient], [11.0, [3.0, 4.0], [1.0, 2.0]]


@fault("C11")
def constant_exponent_of_a_negative_base():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fg.grad(lambda x: x**3)(-2.0), 12.0


@fault("C12")
def negative_integer_exponent():
    with pytest.raises(FuncgradError):
        fg.grad(lambda x: x**-1)(2)
    return fg.value_and_grad(lambda x: x**-1)(2.0), (0.5, -0.25)


@fault("C13")
def softmax_pullback():
    _, pullback = fg.vjp(F.softmax, np.array([1.0, 2.0, 3.0]))
    return pullback(np.array([1.0, 0.0, 0.0]))[0], SOFTMAX_ROW


@fault("C14")
def softmax_rows_sum_to_zero():
    return total_grad(F.softmax, np.array([1.0, 2.0, 3.0])) + 1.0, np.ones(3)


@fault("C15")
def softmax_of_large_numbers():
    x = np.array([1000.0, 1000.0])
    return [F.softmax(x), F.logsumexp(x)], [[0.5, 0.5], 1000.6931471805599]


@fault("C16")
def softplus_at_one():
    return fg.value_and_grad(F.softplus)(1.0), (1.3132616875182228, 0.7310585786300049)


@fault("C17")
def softplus_far_out():
    far = fg.value_and_grad(F.softplus)
    return [*far(-1000.0), *far(1000.0)], [0.0, 0.0, 1000.0, 1.0]


@fault("C18")
def softsign():
    slope = fg.grad(lambda x: x / (1 + np.abs(x)))
    return [slope(1.0), slope(-3.0)], [0.25, 0.0625]


@fault("C19")
def relu_at_zero():
    return fg.grad(F.relu)(0.0), 0.0


@fault("C20")
def sigmoid_far_out_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return (
            [*fg.value_and_grad(F.sigmoid)(-1000.0), *fg.value_and_grad(F.log_sigmoid)(-1000.0)],
            [0.0, 0.0, -1000.0, 1.0],
        )


@fault("C21")
def sigmoid_keeps_its_tail():
    return fg.grad(F.sigmoid)(40.0) / 4.248354255291589e-18, 1.0


@fault("C22")
def mean_squared_error():
    target = np.zeros((2, 3))
    value, slope = fg.value_and_grad(lambda x: np.mean((x - target) ** 2))(np.ones((2, 3)))
    return [value, slope], [1.0, np.full((2, 3), 1 / 3)]


def cross_entropy(logits, label):
    return -F.log_softmax(logits)[label]


@fault("C23")
def cross_entropy_of_probabilities():
    return cross_entropy(np.log(np.array([0.7, 0.2, 0.1])), 0), 0.35667494393873245


@fault("C24")
def cross_entropy_and_its_gradient_agree():
    value, slope = fg.value_and_grad(cross_entropy)(np.array([2.0, 1.0, 0.1]), 0)
    return (
        [value, slope],
        [0.4170300162778335, [-0.340998861, 0.242432971, 0.098565890]],
    )


@fault("C25")
def cross_entropy_of_a_sure_mistake():
    value, slope = fg.value_and_grad(cross_entropy)(np.array([40.0, 0.0]), 1)
    return [value, slope], [40.0, [1.0, -1.0]]


@fault("C26")
def cross_entropy_of_a_surer_mistake():
    value, slope = fg.value_and_grad(cross_entropy)(np.array([1000.0, 0.0]), 1)
    return [value, slope], [1000.0, [1.0, -1.0]]


@fault("C29")
def tied_maxima_share():
    x = np.ones((1, 1, 2, 2))
    return total_grad(lambda v: F.max_pool2d(v, 2), x), np.full((1, 1, 2, 2), 0.25)


@fault("C30")
def convolution_pads():
    x, w = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    return F.conv2d(x, w, padding=1)[0, 0], [[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]


@fault("C31")
def pairs_are_height_and_width():
    x, w = np.ones((1, 1, 4, 6)), np.ones((1, 1, 3, 2))
    return (
        [
            F.conv2d(x, w).shape,
            F.conv2d(x, w, stride=(1, 2)).shape,
            F.max_pool2d(x, (3, 2), 1).shape,
        ],
        [(1, 1, 2, 5), (1, 1, 2, 3), (1, 1, 2, 5)],
    )


@fault("C32")
def bias_goes_to_its_output():
    x, w = np.ones((2, 1, 3, 3)), np.ones((2, 1, 2, 2))
    out = F.conv2d(x, w, np.array([1.0, 2.0]))
    return [out[:, 0], out[:, 1]], [np.full((2, 2, 2), 5.0), np.full((2, 2, 2), 6.0)]


@fault("C35")
def first_step_of_adam():
    opt = fg.optim.adam(0.01)
    got = []
    for g in (-1.0, 4.0):
        w = np.array(1.0)
        updates, _ = opt.update(np.array(g), opt.init(w), w)
        got.append(fg.optim.apply_updates(w, updates))
    return got, [1.0099999999, 0.990000000025]


@fault("C37")
def numbers_as_operands():
    return (
        [*fg.value_and_grad(lambda x: x + 1.0)(2.0), *fg.value_and_grad(lambda x: 1.0 + x)(2.0)],
        [3.0, 1.0, 3.0, 1.0],
    )


@fault("C38")
def operators():
    x = np.array([[1.0, 2.0, 3.0]])
    return (
        [
            fg.grad(lambda x: x / 2)(3.0),
            fg.grad(lambda x: x**2)(3.0),
            fg.grad(lambda x: -x)(3.0),
            total_grad(lambda v: v.T * np.array([[1.0], [2.0], [4.0]]), x),
        ],
        [0.5, 6.0, -1.0, [[1.0, 2.0, 4.0]]],
    )


@fault("C39")
def saved_values_are_not_the_callers():
    w = np.array(3.0)
    _, pullback = fg.vjp(lambda w, x: w * x, w, np.array(2.0))
    w -= 1.0
    return pullback(1.0)[1], 3.0


@fault("D1", "D2")
def one_tracked_operand():
    return fg.grad(lambda w: w * 2.0)(3.0), 2.0


@fault("D4")
def numbers_on_either_side():
    return [fg.grad(lambda x: x * 1.0)(2.0), fg.grad(lambda x: 1.0 * x)(2.0)], [1.0, 1.0]


@fault("D5")
def comparisons_are_plain():
    seen = []

    def f(x):
        seen.append(x == 2.0)
        return x

    fg.grad(f)(1.0)
    return [type(seen[0]) in (bool, np.bool_), bool(seen[0])], [True, False]


@fault("D10")
def no_tape_without_a_transform():
    return [type(np.sin(np.ones(2))) is np.ndarray], [True]


@fault("S5")
def values_to_check_from_the_list():
    def f(v):
        return v[0] ** 2 * v[1]

    x = np.array([1.0, 2.0])
    hessian = [fg.jvp(fg.grad(f), (x,), (e,))[1] for e in np.eye(2)]
    value, gradient = fg.value_and_grad(product_of_sums, argnums=(0, 1))(2.0, 1.0)
    return [*hessian, value, gradient], [[4.0, 2.0], [2.0, 0.0], 6.0, [2.0, 5.0]]


@fault("R1")
def matrix_product():
    x, w = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [2.0, 1.0]])
    got = fg.grad(lambda x, w: np.sum(x @ w), argnums=(0, 1))(x, w)
    return got, ([[1.0, 3.0], [1.0, 3.0]], [[4.0, 4.0], [6.0, 6.0]])


@fault("R2")
def tanh():
    return fg.grad(np.tanh)(0.5), 0.7864477329659274


@fault("R3")
def an_exception_leaves_no_state():
    def fails(x):
        raise KeyError("user")

    with pytest.raises(KeyError):
        fg.grad(fails)(1.0)
    return fg.grad(np.sin)(0.0), 1.0


@fault("R5")
def binary_cross_entropy_at_zero():
    return fg.value_and_grad(lambda z: F.softplus(-z))(0.0), (0.6931471805599453, -0.5)


@fault("R6")
def binary_cross_entropy_is_averaged():
    value = np.mean(F.softplus(np.zeros((2, 3))))
    return value, 0.6931471805599453


@fault("R7")
def upstream_gradient_counts():
    labels = np.array([0, 2])

    def loss(z):
        return 10 * np.mean(-z[np.arange(2), labels])

    want = np.zeros((2, 3))
    want[[0, 1], labels] = -5.0
    return fg.grad(loss)(np.zeros((2, 3))), want


@fault("R11", "R23")
def nothing_overflows():
    _, pullback = fg.vjp(F.softmax, np.array([1.0, 2.0, 3.0]))
    return (
        [
            *fg.value_and_grad(F.softplus)(1000.0),
            *fg.value_and_grad(F.log_sigmoid)(-1000.0),
            F.sigmoid(-1000.0),
            np.tanh(1000.0),
            pullback(np.array([1.0, 0.0, 0.0]))[0],
        ],
        [1000.0, 1.0, -1000.0, 1.0, 0.0, 1.0, SOFTMAX_ROW],
    )


@fault("R13")
def standard_deviation():
    x = np.array([[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]])
    row = [-0.408248290463863, 0.0, 0.408248290463863]
    return total_grad(lambda v: np.std(v, axis=1), x), [row, row]


@fault("R17")
def short_and_long_paths():
    def f(x):
        u = 2 * x
        return u**2 + np.exp(np.log(np.exp(u)))

    return fg.grad(f)(1.0), 22.778112197861300


@fault("R18")
def division():
    a, b = np.array([6.0, 8.0]), np.array([2.0, 4.0])
    got = fg.grad(lambda a, b: np.sum(a / b), argnums=(0, 1))(a, b)
    return got, ([0.5, 0.25], [-1.5, -0.5])


@fault("R19")
def mean_over_an_axis():
    got = total_grad(lambda x: np.mean(x, axis=0), np.ones((2, 3)))
    return [got, fg.grad(np.tanh)(0.5)], [np.full((2, 3), 0.5), 0.7864477329659274]


@fault("R20")
def permuted_axes():
    x = np.arange(6.0).reshape(2, 3)
    c = np.arange(6.0).reshape(3, 2)
    return total_grad(lambda v: np.transpose(v, (1, 0)) * c, x), c.T


@fault("R21")
def equal_arguments_of_maximum_share():
    upstream = np.array([-2.0, 3.0])
    _, pullback = fg.vjp(np.abs, np.array([-1.0, 1.0]))
    pulled = pullback(upstream)[0]
    return (
        [*fg.grad(np.maximum, argnums=(0, 1))(1.0, 1.0), pulled, upstream],
        [0.5, 0.5, [2.0, 3.0], [-2.0, 3.0]],
    )


@fault("R22")
def adam_on_an_array():
    opt = fg.optim.adam(0.1)
    p = np.zeros(2)
    updates, _ = opt.update(np.array([1.0, -2.0]), opt.init(p), p)
    return updates, [-0.1, 0.1]


@fault("R25")
def log_of_one_and_a_low_maximum():
    return [np.log(1.0), fg.value_and_grad(np.max)(np.array([-2e9]))[0]], [0.0, -2e9]


@fault("R27")
def reflected_operators_indexing_and_heavy_ball():
    opt = fg.optim.sgd(0.1, momentum=0.9)
    p = np.zeros(1)
    state, steps = opt.init(p), []
    for _ in range(2):
        update, state = opt.update(np.ones(1), state, p)
        steps.append(update[0])
    return (
        [
            fg.grad(lambda x: 1.0 - x)(2.0),
            fg.grad(lambda x: 1.0 / x)(2.0),
            fg.grad(lambda x: 2.0**x)(2.0),
            fg.grad(lambda x: x[1])(np.ones(3)),
            *steps,
        ],
        [-1.0, -0.25, 4 * np.log(2.0), [0.0, 1.0, 0.0], -0.1, -0.19],
    )


def assert_same(got, want):
    if isinstance(want, list | tuple) and isinstance(got, list | tuple):
        assert len(got) == len(want)
        for part, right in zip(got, want, strict=True):
            assert_same(part, right)
        return
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name):
    got, want = FAULTS[name]()
    assert_same(got, want)
