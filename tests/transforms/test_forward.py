"""jvp and linearize: their arguments, and the kind of what they return."""

import itertools

import numpy as np
import pytest

import funcgrad as fg

X = np.array([1.0, 2.0, 3.0])
V = np.array([0.5, -1.0, 2.0])


def by_jvp(f, primals, tangents, has_aux=False):
    return fg.jvp(f, primals, tangents, has_aux=has_aux)


def by_linearize(f, primals, tangents, has_aux=False):
    if has_aux:
        out, pushforward, aux = fg.linearize(f, *primals, has_aux=True)
        return out, pushforward(*tangents), aux
    out, pushforward = fg.linearize(f, *primals)
    return out, pushforward(*tangents)


both = pytest.mark.parametrize("push", [by_jvp, by_linearize])


@both
def test_value_and_tangent(push):
    out, out_dot = push(lambda x: x * x, (X,), (V,))
    np.testing.assert_array_equal(out, X * X)
    np.testing.assert_array_equal(out_dot, 2 * X * V)


@both
def test_several_arguments(push):
    out, out_dot = push(lambda x, y: x * y, (X, 2.0), (V, 10.0))
    np.testing.assert_array_equal(out, 2 * X)
    np.testing.assert_array_equal(out_dot, 2 * V + 10 * X)


@both
def test_broadcasting_spreads_the_tangent(push):
    _, out_dot = push(lambda x: x + np.zeros((2, 3)), (X,), (V,))
    np.testing.assert_array_equal(out_dot, [V, V])


def test_primals_and_tangents_as_lists():
    assert fg.jvp(np.multiply, [2.0, 3.0], [1.0, 10.0]) == (6.0, 23.0)


@both
def test_pytrees(push):
    f = lambda p: {"y": p["w"] * p["b"], "n": p["n"], "text": "abc"}  # noqa: E731 - one expression
    primals = ({"w": X, "b": 2.0, "n": 3, "nothing": None, "f": np.sin},)
    tangents = ({"w": V, "b": 1.0, "n": None, "nothing": None, "f": None},)
    out, out_dot = push(f, primals, tangents)
    np.testing.assert_array_equal(out["y"], 2 * X)
    assert (out["n"], out["text"]) == (3, "abc")
    np.testing.assert_array_equal(out_dot["y"], 2 * V + X)
    assert (out_dot["n"], out_dot["text"]) == (None, None)


@both
@pytest.mark.parametrize("zero", [None, {"w": None, "b": None}])
def test_none_is_a_zero_tangent(push, zero):
    out, out_dot = push(lambda x, p: x * p["w"] + p["b"], (X, {"w": X, "b": 1.0}), (V, zero))
    np.testing.assert_array_equal(out, X * X + 1)
    np.testing.assert_array_equal(out_dot, X * V)


@both
def test_none_everywhere(push):
    out, out_dot = push(lambda x: x * x, (X,), (None,))
    np.testing.assert_array_equal(out, X * X)
    np.testing.assert_array_equal(out_dot, np.zeros(3))


@both
def test_aux(push):
    out, out_dot, aux = push(lambda x: (x * x, {"x": x, "s": np.sum(x)}), (X,), (V,), has_aux=True)
    np.testing.assert_array_equal(out, X * X)
    np.testing.assert_array_equal(out_dot, 2 * X * V)
    np.testing.assert_array_equal(aux["x"], X)
    assert type(aux["s"]) is np.float64
    assert aux["s"] == 6.0


@both
def test_output_that_does_not_depend_on_the_argument(push):
    out, out_dot = push(lambda x: (5.0, np.arange(3), np.ones(2, np.float32)), (X,), (V,))
    assert out[0] == 5.0
    assert (type(out_dot[0]), out_dot[0]) == (float, 0.0)
    assert out_dot[1] is None
    np.testing.assert_array_equal(out_dot[2], np.zeros(2, np.float32), strict=True)


@both
def test_comparison_and_rounding_have_plain_results(push):
    def f(x):
        assert type(x > 1.5) is np.ndarray
        assert type(np.floor(x)) is np.ndarray
        return np.where(x > 1.5, x * x, x) * np.floor(x)

    out, out_dot = push(f, (X,), (V,))
    np.testing.assert_array_equal(out, [1.0, 8.0, 27.0])
    np.testing.assert_array_equal(out_dot, V * [1.0, 8.0, 18.0])


KINDS = {
    "float": (2.0, 1.0),
    "int for a float": (2.0, 1),
    "float64": (np.float64(2.0), np.float64(1.0)),
    "float for a float32": (np.float32(2.0), 1.0),
    "float16": (np.float16(2.0), np.float16(1.0)),
    "longdouble": (np.longdouble(2.0), np.longdouble(1.0)),
    "0-d": (np.array(2.0), np.array(1.0)),
    "0-d float32": (np.array(2.0, np.float32), np.float32(1.0)),
    "array float32": (X.astype(np.float32), V.astype(np.float32)),
    "array float16": (X.astype(np.float16), V.astype(np.float16)),
    "empty": (np.zeros((1, 0)), np.zeros((1, 0))),
    "complex": (1 + 2j, 1j),
    "real tangent of a complex number": (1 + 2j, 1.0),
    "complex64": (np.complex64(1 + 2j), np.complex64(1j)),
    "complex array": (X + 1j, V * 1j),
}


@both
@pytest.mark.parametrize(("x", "x_dot"), KINDS.values(), ids=KINDS)
def test_tangent_is_of_the_kind_of_the_output(push, x, x_dot):
    for f in (
        lambda x: x,
        lambda x: x * x,
        lambda x: np.sum(x * x),
        lambda x: x * np.ones((2, 1)),
        lambda x: np.float32(2) * x - 0.1,
        lambda x: np.real(x * x),
        lambda x: np.abs(x),
    ):
        plain = f(x)
        out, out_dot = push(f, (x,), (x_dot,))
        for result in (out, out_dot):
            assert type(result) is type(plain)
            assert np.shape(result) == np.shape(plain)
            if not isinstance(plain, float | complex) or isinstance(plain, np.generic):
                assert result.dtype == plain.dtype
        np.testing.assert_array_equal(out, plain)


@both
def test_python_float_stays_weak(push):
    params = np.ones(3, np.float32)
    out, out_dot = push(lambda rate: params * rate, (0.1,), (1.0,))
    assert out.dtype == np.float32
    assert out_dot.dtype == np.float32
    np.testing.assert_array_equal(out_dot, params)


@both
def test_traced_python_number_is_the_tangent_of_a_float32(push):
    f = lambda t: push(lambda x: x * x, (np.float32(3.0),), (t,))[1] * 1.0  # noqa: E731
    assert fg.grad(f)(2.0) == 6.0


@both
def test_complex_tangent(push):
    z = 0.3 + 0.7j
    _, out_dot = push(lambda z: z**3, (z,), (1j,))
    assert out_dot == pytest.approx(3j * z**2, rel=1e-15)


@both
def test_complex_to_real(push):
    """|z|**2 in the direction 1j at 3 + 4j: 2 * 4."""
    _, out_dot = push(lambda z: np.real(z) ** 2 + np.imag(z) ** 2, (3 + 4j,), (1j,))
    assert out_dot == 8.0
    assert not isinstance(out_dot, complex)


@both
@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x, x),
        lambda x: (x + 0.0, np.reshape(x, (3, 1))),
        lambda x: (x[::-1], x[1:]),
        lambda x: (np.transpose(x), x * 1.0),
    ],
)
def test_tangents_own_their_memory(push, f):
    v = V.copy()
    out, out_dot = push(f, (X,), (v,))
    for part in out_dot:
        assert part.flags.writeable
        assert part.flags.owndata
    for a, b in itertools.product(out_dot, [*out, v, X]):
        assert not np.shares_memory(a, b)
    assert not np.shares_memory(*out_dot)


@both
def test_nothing_given_is_changed(push):
    x, v = X.copy(), V.copy()
    x.flags.writeable = v.flags.writeable = False
    push(lambda x: np.sin(x) * x + x, (x,), (v,))
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(v, V)


def test_pushforward_is_not_touched_by_writing_to_the_arguments():
    x = X.copy()
    _, pushforward = fg.linearize(lambda x: x * x, x)
    x[:] = 100.0
    np.testing.assert_array_equal(pushforward(V), 2 * X * V)


def test_pushforward_is_not_touched_by_writing_to_the_output():
    out, pushforward = fg.linearize(np.exp, X)
    out[:] = 100.0
    np.testing.assert_allclose(pushforward(V), np.exp(X) * V, rtol=1e-15)


def test_linearize_runs_the_function_once():
    calls = []
    _, pushforward = fg.linearize(lambda x: calls.append(1) or x * x, 3.0)
    assert [pushforward(1.0), pushforward(2.0)] == [6.0, 12.0]
    assert calls == [1]


def test_linearize_of_a_function_with_several_results():
    """np.frexp and np.modf: a mantissa with a derivative, an exponent without."""
    out, pushforward = fg.linearize(lambda x: np.modf(x), 2.5)
    assert out == (0.5, 2.0)
    assert pushforward(3.0)[0] == 3.0


@both
def test_transformed_functions_know_where_they_were_called(push):
    text = []
    push(lambda x: text.append(repr(x)) or x, (X,), (V,))
    assert "test_forward.py:" in text[0]
    assert "array([1., 2., 3.])" in text[0]


@pytest.mark.parametrize("warn", ["raise", "ignore"])
def test_derivative_raises_no_floating_point_warning_of_its_own(warn):
    """sqrt at 0: the value is fine, and the user did not write the division by zero."""
    with np.errstate(all=warn):
        _, out_dot = fg.jvp(np.sqrt, (np.array([0.0, 4.0]),), (np.array([1.0, 1.0]),))
        gradient = fg.grad(lambda x: np.sum(np.sqrt(x)))(np.array([0.0, 4.0]))
        _, pushforward = fg.linearize(np.sqrt, np.array([0.0, 4.0]))
        linear = pushforward(np.array([1.0, 1.0]))
    for result in (out_dot, gradient, linear):
        np.testing.assert_array_equal(result, [np.inf, 0.25])


def test_floating_point_warning_of_the_value_is_numpys():
    with pytest.warns(RuntimeWarning, match="invalid value encountered in sqrt"):
        fg.grad(np.sqrt)(-1.0)
