"""Activations and losses from logits: values, slopes and their behaviour at the ends."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.testing import check_grads

F = fg.nn.functional
inf = np.inf
ACTIVATIONS = [
    F.relu,
    F.sigmoid,
    F.log_sigmoid,
    F.softplus,
    F.silu,
    F.tanh,
    F.softmax,
    F.log_softmax,
    F.logsumexp,
]
every = pytest.mark.parametrize("f", ACTIVATIONS, ids=lambda f: f.__name__)


def slope(f, x):
    """The derivative of f at a number, by both modes, which must agree."""
    reverse = fg.grad(f)(x)
    _, forward = fg.jvp(f, (x,), (1.0,))
    assert_allclose(reverse, forward, rtol=1e-15)
    return reverse


# All of them


@every
def test_value_is_bit_identical_under_transforms(f):
    x = np.random.default_rng(0).normal(size=(3, 4)) * 3
    plain = f(x)
    out, _ = fg.vjp(f, x)
    pushed, _ = fg.jvp(f, (x,), (x,))
    nested, _ = fg.jvp(lambda v: fg.vjp(f, v)[0], (x,), (x,))
    for value in (out, pushed, nested):
        assert value.dtype == plain.dtype
        assert_array_equal(value, plain)


@every
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_is_kept_by_value_and_gradient(f, dtype):
    x = np.array([-1.0, 0.5, 2.0], dtype)
    out, pullback = fg.vjp(f, x)
    assert f(x).dtype == out.dtype == dtype
    (bar,) = pullback(np.ones_like(out) if out.ndim else out.dtype.type(1))
    assert bar.dtype == dtype


@every
def test_finite_and_without_a_warning_for_huge_arguments(f):
    x = np.array([-1e4, -700.0, 0.0, 700.0, 1e4])
    with warnings.catch_warnings(), np.errstate(divide="raise", over="raise", invalid="raise"):
        warnings.simplefilter("error")
        out, pullback = fg.vjp(f, x)
        (bar,) = pullback(np.ones_like(out))
        _, pushed = fg.jvp(f, (x,), (np.ones(5),))
    assert np.all(np.isfinite(out))
    assert np.all(np.isfinite(bar))
    assert np.all(np.isfinite(pushed))


@every
def test_derivatives_to_second_order_match_differences(f):
    check_grads(f, (np.array([[0.3, -1.2, 2.0], [-0.4, 0.9, 0.1]]),), order=2)


@every
def test_empty_array(f):
    out = f(np.zeros((0, 3)))
    assert out.size == (1 if f is F.logsumexp else 0)


@every
def test_list_of_numbers_is_taken(f):
    assert_array_equal(f([1.0, -2.0]), f(np.array([1.0, -2.0])))


@pytest.mark.parametrize("f", [f for f in ACTIVATIONS if f is not F.relu], ids=lambda f: f.__name__)
def test_integers_become_float64(f):
    x = np.array([1, -2], np.int64)
    assert f(x).dtype == np.float64
    assert_array_equal(f(x), f(x.astype(float)))


@pytest.mark.parametrize("f", [F.relu, F.sigmoid, F.softmax, F.logsumexp], ids=lambda f: f.__name__)
def test_complex_argument_is_refused(f):
    with pytest.raises(DtypeError, match="takes real numbers"):
        f(np.array([1j]))


@pytest.mark.parametrize("f", [F.relu, F.sigmoid, F.softplus, F.silu, F.tanh])
def test_gradient_of_a_python_float_is_one(f):
    assert type(fg.grad(f)(0.7)) is float


# Relu


def test_relu_at_zero_has_slope_zero():
    assert slope(F.relu, 0.0) == 0.0


def test_relu_keeps_integers():
    assert_array_equal(F.relu(np.array([-3, 4])), [0, 4])
    assert F.relu(np.array([-3, 4])).dtype.kind == "i"


def test_relu_selects_where_the_cotangent_is_infinite():
    _, pullback = fg.vjp(F.relu, np.array([-1.0, 2.0]))
    assert_array_equal(pullback(np.array([inf, inf]))[0], [0.0, inf])


def test_root_of_relu_is_flat_below_zero_in_both_modes():
    assert slope(lambda x: np.sqrt(F.relu(x)), -10.0) == 0.0
    assert slope(lambda x: np.sqrt(F.relu(x)), 4.0) == 0.25


def test_relu_passes_nan():
    assert np.isnan(F.relu(np.nan))


# Sigmoid and softplus


def test_sigmoid_far_left_is_zero_and_flat():
    assert F.sigmoid(-1000.0) == 0.0
    assert slope(F.sigmoid, -1000.0) == 0.0


def test_sigmoid_slope_keeps_its_right_tail():
    assert slope(F.sigmoid, 40.0) == pytest.approx(4.248354255291589e-18, rel=1e-14)
    assert slope(F.sigmoid, -40.0) == pytest.approx(4.248354255291589e-18, rel=1e-14)


def test_sigmoid_of_infinities():
    assert_array_equal(F.sigmoid(np.array([-inf, inf])), [0.0, 1.0])


def test_sigmoid_keeps_digits_on_the_left():
    assert F.sigmoid(-50.0) == pytest.approx(1.9287498479639178e-22, rel=1e-15)


def test_third_derivative_of_sigmoid_at_zero():
    assert fg.grad(fg.grad(fg.grad(F.sigmoid)))(0.0) == pytest.approx(-0.125, rel=1e-14)


def test_log_sigmoid_far_left_is_its_argument():
    assert F.log_sigmoid(-1000.0) == -1000.0
    assert slope(F.log_sigmoid, -1000.0) == 1.0


def test_softplus_at_one():
    assert F.softplus(1.0) == pytest.approx(1.3132616875182228, rel=1e-15)
    assert slope(F.softplus, 1.0) == pytest.approx(0.7310585786300049, rel=1e-15)


@pytest.mark.parametrize(("x", "value", "rise"), [(-1000.0, 0.0, 0.0), (1000.0, 1000.0, 1.0)])
def test_softplus_far_out(x, value, rise):
    assert F.softplus(x) == value
    assert slope(F.softplus, x) == rise


def test_softplus_of_infinities():
    assert_array_equal(F.softplus(np.array([-inf, inf])), [0.0, inf])


def test_silu_at_one():
    assert F.silu(1.0) == pytest.approx(0.7310585786300049, rel=1e-15)
    assert slope(F.silu, 1.0) == pytest.approx(0.9276705118714867, rel=1e-14)


def test_tanh_slope_at_a_half():
    assert slope(F.tanh, 0.5) == pytest.approx(0.7864477329659274, rel=1e-15)


# Softmax


def test_softmax_gradient_has_all_of_its_jacobian():
    _, pullback = fg.vjp(F.softmax, np.array([1.0, 2.0, 3.0]))
    expected = [0.081925069064993, -0.022033044520174, -0.059892024544819]
    assert_allclose(pullback(np.array([1.0, 0.0, 0.0]))[0], expected, atol=1e-15)


def test_softmax_jacobian_rows_sum_to_zero():
    _, pullback = fg.vjp(F.softmax, np.array([1.0, 2.0, 3.0]))
    assert_allclose(pullback(np.ones(3))[0], 0, atol=1e-15)


def test_softmax_of_large_equal_logits():
    assert_array_equal(F.softmax(np.array([1000.0, 1000.0])), [0.5, 0.5])


def test_softmax_over_any_axes_sums_to_one():
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    for axis in (0, -1, (0, 2), None):
        assert_allclose(np.sum(F.softmax(x, axis=axis), axis=axis), 1, rtol=1e-14)


def test_softmax_with_a_mask_leaves_the_others_out():
    x = np.array([1.0, 1e4, 3.0])
    where = np.array([True, False, True])
    assert_allclose(F.softmax(x, where=where), [0.11920292202211755, 0.0, 0.8807970779778823])
    assert_allclose(F.log_softmax(x, where=where), [-2.1269280110429727, -inf, -0.1269280110429726])


def test_softmax_with_a_mask_has_no_gradient_there():
    where = np.array([True, False, True])
    _, pullback = fg.vjp(lambda x: F.softmax(x, where=where), np.array([1.0, 1e4, 3.0]))
    (bar,) = pullback(np.array([1.0, 1.0, 0.0]))
    assert_allclose(bar, [0.10499358540350652, 0.0, -0.10499358540350652], rtol=1e-13)


def test_softmax_of_nothing_but_minus_infinity_shares_evenly():
    assert_allclose(F.softmax(np.full(4, -inf)), 0.25)
    assert_allclose(F.log_softmax(np.full(4, -inf)), -1.3862943611198906)


def test_log_of_softmax_that_underflows_elsewhere():
    with np.errstate(divide="ignore"):
        gradient = fg.grad(lambda x: np.log(F.softmax(x))[1])(np.array([0.0, 900.0]))
    assert_array_equal(gradient, [0.0, 0.0])


def test_log_softmax_with_logits_hundreds_apart():
    value, gradient = fg.value_and_grad(lambda x: -F.log_softmax(x)[0])(
        np.array([-500.0, 300.0, 450.0])
    )
    assert value == 950.0
    assert_allclose(gradient, [-1.0, 0.0, 1.0], atol=1e-15)


def test_log_softmax_of_a_logit_that_is_minus_infinity():
    x = np.array([0.0, -inf])
    assert_array_equal(F.log_softmax(x), [0.0, -inf])
    assert_array_equal(fg.grad(lambda x: F.log_softmax(x)[0])(x), [0.0, 0.0])


# Logsumexp


def test_logsumexp_of_large_values():
    assert F.logsumexp(np.array([1000.0, 1000.0])) == pytest.approx(1000.6931471805599, rel=1e-15)


def test_logsumexp_of_nothing_but_minus_infinity():
    x = np.full(3, -inf)
    value, gradient = fg.value_and_grad(F.logsumexp)(x)
    assert value == -inf
    assert_allclose(gradient, 1 / 3)
    _, pushed = fg.jvp(F.logsumexp, (x,), (np.array([1.0, 2.0, 3.0]),))
    assert pushed == 2.0
    _, second = fg.jvp(fg.grad(F.logsumexp), (x,), (np.array([1.0, 0.0, 0.0]),))
    assert_allclose(second, [2 / 9, -1 / 9, -1 / 9])


def test_logsumexp_with_one_row_of_minus_infinity_among_others():
    x = np.array([[-inf, -inf], [0.0, 0.0]])
    assert_allclose(F.logsumexp(x, axis=1), [-inf, 0.6931471805599453])
    _, pullback = fg.vjp(lambda x: F.logsumexp(x, axis=1), x)
    assert_allclose(pullback(np.array([1.0, 4.0]))[0], [[0.5, 0.5], [2.0, 2.0]])


def test_logsumexp_of_infinity_gives_it_all():
    value, gradient = fg.value_and_grad(F.logsumexp)(np.array([inf, 0.0, inf]))
    assert value == inf
    assert_array_equal(gradient, [0.5, 0.0, 0.5])


def test_logsumexp_of_a_large_logit_that_is_masked_out():
    keep = np.array([True, False, True])
    x = np.array([0.0, 1000.0, 1.0])
    by_where = fg.value_and_grad(lambda x: F.logsumexp(np.where(keep, x, -inf)))(x)
    by_argument = fg.value_and_grad(lambda x: F.logsumexp(x, where=keep))(x)
    for value, gradient in (by_where, by_argument):
        assert value == pytest.approx(1.3132616875182228, rel=1e-15)
        assert_allclose(gradient, [0.2689414213699951, 0.0, 0.7310585786300049], rtol=1e-14)


def test_logsumexp_of_no_terms_is_minus_infinity():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.logsumexp(np.zeros(0)) == -inf
        assert_array_equal(F.logsumexp(np.zeros((2, 0)), axis=1), [-inf, -inf])


def test_logsumexp_keepdims_and_axes():
    x = np.zeros((2, 3, 4))
    assert F.logsumexp(x, axis=(0, 2), keepdims=True).shape == (1, 3, 1)
    assert_allclose(F.logsumexp(x, axis=(0, -1)), np.full(3, 2.0794415416798357))


def test_logsumexp_with_factors():
    a, b = np.array([1.0, 0.0, 5.0]), np.array([1.0, -1.0, 0.0])
    assert F.logsumexp(a, b=b) == pytest.approx(0.541324854612918, rel=1e-14)
    out, sign = F.logsumexp(a, b=-b, return_sign=True)
    assert out == pytest.approx(0.541324854612918, rel=1e-14)
    assert sign == -1.0
    assert np.isnan(F.logsumexp(a, b=-b))


def test_logsumexp_with_factors_ignores_what_has_factor_zero():
    value, gradient = fg.value_and_grad(lambda a: F.logsumexp(a, b=np.array([2.0, 0.0])))(
        np.array([0.0, 5000.0])
    )
    assert value == pytest.approx(0.6931471805599453)
    assert_allclose(gradient, [1.0, 0.0])


def test_logsumexp_with_factors_matches_differences_in_both_arguments():
    args = np.array([[0.3, -1.0], [2.0, 0.5]]), np.array([[0.7, -0.2], [1.5, 0.0]])
    check_grads(lambda a, b: F.logsumexp(a, axis=1, b=b), args)


def test_logsumexp_sign_without_factors():
    assert F.logsumexp(np.array([0.0, -inf]), return_sign=True) == (0.0, 1.0)
    assert F.logsumexp(np.full(2, -inf), return_sign=True) == (-inf, 0.0)


# Losses


def test_cross_entropy_of_one_true_class():
    value, gradient = fg.value_and_grad(F.softmax_cross_entropy_with_integer_labels)(
        np.array([2.0, 1.0, 0.1]), 0
    )
    assert value == pytest.approx(0.4170300162778335, rel=1e-15)
    assert_allclose(gradient, [-0.340998861, 0.242432971, 0.098565890], atol=1e-9)


def test_cross_entropy_of_probabilities_as_logits():
    logits = np.log(np.array([0.7, 0.2, 0.1]))
    loss = F.softmax_cross_entropy(logits, np.array([1.0, 0.0, 0.0]))
    assert loss == pytest.approx(0.35667494393873245, rel=1e-14)


@pytest.mark.parametrize("size", [40.0, 1000.0, 1e4])
def test_cross_entropy_of_a_confident_mistake(size):
    logits = np.array([size, 0.0])
    for f, label in (
        (F.softmax_cross_entropy_with_integer_labels, 1),
        (F.softmax_cross_entropy, np.array([0.0, 1.0])),
    ):
        value, gradient = fg.value_and_grad(f)(logits, label)
        assert value == size
        assert_allclose(gradient, [1.0, -1.0], atol=1e-15)


def test_both_cross_entropies_agree_on_one_hot_labels():
    rng = np.random.default_rng(2)
    logits, labels = rng.normal(size=(5, 4)), np.array([0, 3, 1, 1, 2])
    one_hot = F.one_hot(labels, 4)
    by_number = fg.value_and_grad(
        lambda z: np.sum(F.softmax_cross_entropy_with_integer_labels(z, labels))
    )(logits)
    by_vector = fg.value_and_grad(lambda z: np.sum(F.softmax_cross_entropy(z, one_hot)))(logits)
    assert_allclose(by_number[0], by_vector[0], rtol=1e-14)
    assert_allclose(by_number[1], by_vector[1], atol=1e-15)


def test_cross_entropy_in_float32_of_a_sure_mistake_is_finite():
    loss = F.softmax_cross_entropy(np.array([200, -200], np.float32), np.array([0, 1], np.float32))
    assert loss.dtype == np.float32
    assert loss == 400


def test_cross_entropy_ignores_an_impossible_class_with_label_zero():
    logits, labels = np.array([1.0, -inf, 0.0]), np.array([1.0, 0.0, 0.0])
    value, (by_logits, by_labels) = fg.value_and_grad(F.softmax_cross_entropy, argnums=(0, 1))(
        logits, labels
    )
    assert value == pytest.approx(0.31326168751822286, rel=1e-15)
    assert_allclose(by_logits, [-0.2689414213699951, 0.0, 0.2689414213699951], rtol=1e-14)
    assert_allclose(by_labels, [0.31326168751822286, 0.0, 1.3132616875182228], rtol=1e-14)


def test_cross_entropy_matches_differences_in_logits_and_labels():
    rng = np.random.default_rng(3)
    args = rng.normal(size=(2, 3)), rng.uniform(size=(2, 3))
    check_grads(F.softmax_cross_entropy, args)
    check_grads(lambda z, p: F.softmax_cross_entropy(z, p, axis=0), args)


def test_integer_cross_entropy_matches_differences_to_second_order():
    labels = np.array([2, 0])
    check_grads(
        lambda z: F.softmax_cross_entropy_with_integer_labels(z, labels),
        (np.random.default_rng(4).normal(size=(2, 3)),),
    )


def test_integer_cross_entropy_with_classes_over_two_axes():
    logits = np.arange(24.0).reshape(2, 3, 4)
    loss = F.softmax_cross_entropy_with_integer_labels(logits, np.array([0, 1, 2]), axis=(0, -1))
    # From Optax 0.2.8.
    assert_allclose(loss, [15.440195842659673, 14.440195842659673, 13.440195842659673])


def test_integer_cross_entropy_with_a_mask_is_optax_s():
    loss = F.softmax_cross_entropy_with_integer_labels(
        np.array([[1000.0, 0.0, 3.0], [1.0, 2.0, 3.0]]),
        np.array([1, 0]),
        where=np.array([[True, True, False], [False, False, False]]),
    )
    assert_array_equal(loss, [1000.0, 0.0])


def test_gradient_keeps_one_array_of_the_size_of_the_logits():
    z = np.zeros((3, 4))
    kept = []
    _, pullback = fg.vjp(
        lambda z: np.sum(F.softmax_cross_entropy_with_integer_labels(z, np.zeros(3, int))), z
    )
    seen, stack = set(), [pullback._tape]
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            if item.shape == z.shape and item.dtype == float and np.any(item):
                kept.append(item)
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif getattr(item, "__closure__", None):
            stack.extend(cell.cell_contents for cell in item.__closure__)
    assert len(kept) == 1


@pytest.mark.parametrize("label", [3, -1])
def test_class_label_out_of_range_is_named(label):
    with pytest.raises(ArgumentError, match=f"class label {label} is out of range for 3 classes"):
        F.softmax_cross_entropy_with_integer_labels(np.zeros((2, 3)), np.array([0, label]))


def test_labels_of_another_shape_are_refused():
    with pytest.raises(ShapeError, match=r"int64\[2,1\] and logits float64\[2,3\]"):
        F.softmax_cross_entropy_with_integer_labels(np.zeros((2, 3)), np.zeros((2, 1), np.int64))


def test_labels_that_are_no_integers_are_refused():
    with pytest.raises(DtypeError, match="class labels must be integers"):
        F.softmax_cross_entropy_with_integer_labels(np.zeros((2, 3)), np.zeros(2))


def test_binary_cross_entropy_at_logit_zero():
    value, gradient = fg.value_and_grad(F.sigmoid_binary_cross_entropy)(0.0, 1.0)
    assert value == pytest.approx(0.6931471805599453, rel=1e-15)
    assert gradient == -0.5


def test_binary_cross_entropy_of_sure_mistakes():
    loss = F.sigmoid_binary_cross_entropy(np.array([-1e4, 1e4]), np.array([1.0, 0.0]))
    assert_array_equal(loss, [1e4, 1e4])


def test_losses_are_those_of_the_losses_module():
    assert F.softmax_cross_entropy is fg.nn.losses.softmax_cross_entropy


# One-hot


def test_one_hot_rows():
    assert_array_equal(F.one_hot(np.array([0, 2]), 3), [[1, 0, 0], [0, 0, 1]])


def test_one_hot_of_a_class_that_does_not_exist_is_zero():
    assert_array_equal(F.one_hot(np.array([-1, 3]), 3), np.zeros((2, 3)))


def test_one_hot_axis_and_dtype():
    made = F.one_hot(np.array([[0, 1], [2, 2]]), 3, axis=0, dtype=np.float32)
    assert made.dtype == np.float32
    assert made.shape == (3, 2, 2)
    assert_array_equal(made[2], [[0, 0], [1, 1]])


def test_one_hot_of_floats_is_refused():
    with pytest.raises(ArgumentError, match="one_hot needs integers"):
        F.one_hot(np.array([0.0]), 2)
