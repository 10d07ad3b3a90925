"""Mistakes of the caller: each raises at once, in three lines that say what, where and how else."""

import dataclasses
import decimal
import fractions
import functools
import importlib
import math
import operator
import pickle
import re
import types

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import errors

X = np.array([1.0, 2.0, 3.0])
HERE = r"test_bad_input\.py:\d+"


def complaint(cls, call, *args, **kwargs):
    """Call, and return the three lines of the error of class `cls` that this raises."""
    with pytest.raises(errors.FuncgradError) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is cls
    lines = str(caught.value).split("\n")
    assert len(lines) == 3
    what, where, fix = lines
    assert where.startswith("  where: ")
    assert fix.startswith("  fix:   ")
    return what, where.removeprefix("  where: "), fix.removeprefix("  fix:   ")


def in_grad(cls, fun, x=X):
    """Return what is said of a mistake inside of a differentiated function."""
    return complaint(cls, fg.grad(fun), x)


def total(x):
    return np.sum(x)


# The classes


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.ArgumentError, ValueError),
        (errors.ArgumentError, TypeError),
        (errors.DtypeError, TypeError),
        (errors.ShapeError, ValueError),
        (errors.TreeMismatchError, ValueError),
        (errors.TracerLeakError, RuntimeError),
        (errors.TracerConversionError, TypeError),
        (errors.TracerConversionError, errors.TracerLeakError),
        (errors.UnhashableTracerError, TypeError),
        (errors.MutationError, TypeError),
        (errors.MissingRuleError, NotImplementedError),
        (errors.MissingExtraError, ImportError),
        (errors.GradientCheckError, AssertionError),
    ],
)
def test_class_is_caught_as_the_builtin(cls, builtin):
    assert issubclass(cls, builtin)
    assert issubclass(cls, errors.FuncgradError)


def test_error_survives_pickling():
    error = errors.ShapeError("what", where="where", fix="fix")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.ShapeError
    assert str(again) == "what\n  where: where\n  fix:   fix"
    assert (again.what, again.where, again.fix) == ("what", "where", "fix")


def test_user_line_is_of_the_file_that_called():
    assert re.fullmatch(r".*test_bad_input\.py:\d+", errors.user_line())


def test_arrays_are_described_not_printed():
    assert errors.describe(np.zeros((3, 4))) == "float64[3,4]"
    assert errors.describe(np.float32(1.0)) == "float32[]"
    assert errors.describe("abc") == "str 'abc'"
    assert len(errors.describe("a" * 1000)) < 80


# What is given to grad


def test_not_a_function():
    what, where, fix = complaint(errors.ArgumentError, fg.grad, total(X))
    assert what == "grad takes a function, got float64[]"
    assert re.search(HERE, where)
    assert fix == "write grad(f)(x), not grad(f(x))"


@pytest.mark.parametrize("transform", [fg.vjp, fg.linearize])
def test_not_a_function_given_to_vjp_or_linearize(transform):
    what, where, fix = complaint(errors.ArgumentError, transform, total(X), X)
    assert what == f"{transform.__name__} takes a function, got float64[]"
    assert re.search(HERE, where)
    assert f"not {transform.__name__}(f(x), ...)" in fix


def test_not_a_function_given_to_jvp():
    what, _, _ = complaint(errors.ArgumentError, fg.jvp, total(X), (X,), (X,))
    assert "jvp takes a function" in what


def test_integer():
    what, where, fix = in_grad(errors.DtypeError, lambda x: x**2, 3)
    assert "float" in what
    assert "int 3" in what
    assert "argument 0" in where
    assert re.search(HERE, where)
    assert "3.0" in fix


def test_boolean():
    what, where, fix = in_grad(errors.DtypeError, lambda x: x**2, True)
    assert "float" in what
    assert "bool True" in what
    assert "argument 0" in where
    assert "float" in fix


@pytest.mark.parametrize("x", [np.arange(3), np.array([True, False]), np.int8(3), np.bool_(True)])
def test_integer_and_boolean_arrays(x):
    what, where, fix = in_grad(errors.DtypeError, total, x)
    assert "float" in what
    assert str(x.dtype) in what
    assert "argument 0" in where
    assert "astype(float)" in fix
    assert "allow_int=True" in fix


def test_integer_array_among_others_is_named_by_its_path():
    params = {"layers": [{"w": 1.0}, {"w": 1.0, "step": np.arange(3)}]}
    what, where, _ = in_grad(errors.DtypeError, lambda p: p["layers"][0]["w"], params)
    assert "int64[3]" in what
    assert where.startswith("argument 0 at ['layers'][1]['step']")


def test_integer_array_in_the_second_argument_is_named():
    f = fg.grad(lambda x, y: total(x), argnums=(0, 1))
    _, where, _ = complaint(errors.DtypeError, f, X, np.arange(3))
    assert where.startswith("argument 1")


def test_integer_array_in_a_named_argument_is_named():
    f = fg.grad(lambda x, *, y: total(x), argnames="y")
    _, where, _ = complaint(errors.DtypeError, f, X, y=np.arange(3))
    assert where.startswith("argument 'y'")


@pytest.mark.parametrize("x", ["abc", None, [], {"a": None, "b": "text"}, math.sin])
def test_argument_without_a_floating_leaf(x):
    what, where, _ = in_grad(errors.DtypeError, lambda x: 1.0, x)
    assert "needs a floating-point (real or complex) leaf" in what
    assert "argument 0" in where


def test_one_argument_of_several_without_a_floating_leaf():
    f = fg.grad(lambda x, y: total(x), argnums=(0, 1))
    what, where, _ = complaint(errors.DtypeError, f, X, "abc")
    assert "str 'abc'" in what
    assert "argument 1" in where


@pytest.mark.parametrize("transform", [fg.vjp, fg.linearize])
def test_integer_given_to_vjp_or_linearize(transform):
    what, where, fix = complaint(errors.DtypeError, transform, np.sin, 3)
    assert "float" in what
    assert "argument 0" in where
    assert "3.0" in fix


def test_integer_given_to_jvp():
    what, _, fix = complaint(errors.DtypeError, fg.jvp, np.sin, (3,), (1.0,))
    assert "float" in what
    assert "3.0" in fix


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrix_class_is_refused_as_its_product_is_another():
    what, where, fix = in_grad(errors.DtypeError, total, np.asmatrix(np.eye(2)))
    assert "numpy.matrix" in what
    assert "argument 0" in where
    assert "np.asarray" in fix


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrix_as_a_factor_is_refused():
    matrix = np.asmatrix(np.eye(2))
    what, where, _ = in_grad(errors.DtypeError, lambda x: total(x * matrix), np.eye(2))
    assert "numpy.matrix" in what
    assert re.search(HERE, where)


def test_masked_arrays_are_refused():
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    assert "MaskedArray" in in_grad(errors.DtypeError, total, masked)[0]
    assert "MaskedArray" in in_grad(errors.DtypeError, lambda x: total(x + masked))[0]


# argnums and argnames


def test_argnums_out_of_range():
    what, where, fix = complaint(errors.ArgumentError, fg.grad(total, argnums=1), X)
    assert what == "argnums=1 of grad is out of range: the call has 1 positional argument"
    assert re.search(HERE, where)
    assert "from 0" in fix


def test_no_arguments_at_all():
    what, _, _ = complaint(errors.ArgumentError, fg.grad(lambda: 1.0))
    assert "argnums=0 of grad is out of range" in what


@pytest.mark.parametrize("argnums", [-2, (0, -2)])
def test_argnums_too_negative(argnums):
    what, where, fix = complaint(errors.ArgumentError, fg.grad(total, argnums), X)
    assert what == "argnums=-2 of grad is out of range: the call has 1 positional argument"
    assert re.search(HERE, where)
    assert "from 0" in fix


@pytest.mark.parametrize("argnums", [True, 0.0, "x", (0, "x"), [False], None.__class__])
def test_argnums_of_another_type(argnums):
    what, where, _ = complaint(errors.ArgumentError, fg.value_and_grad, total, argnums)
    assert "argnums of value_and_grad must be int" in what
    assert re.search(HERE, where)


def test_argnums_twice():
    what, _, fix = complaint(errors.ArgumentError, fg.grad, total, (0, 0))
    assert "names an argument twice" in what
    assert "once" in fix


def test_argnums_empty():
    what, _, fix = complaint(errors.ArgumentError, fg.grad, total, ())
    assert "no argument" in what
    assert "argnums=" in fix


def test_argnums_and_argnames_name_the_same_argument():
    f = fg.grad(total, argnums=0, argnames="x")
    what, where, _ = complaint(errors.ArgumentError, f, X)
    assert "same argument" in what
    assert re.search(HERE, where)


def test_argnames_unknown():
    f = fg.grad(total, argnames="y")
    what, where, _ = complaint(errors.ArgumentError, f, X)
    assert "argnames='y' of grad names no argument" in what
    assert re.search(HERE, where)


def test_argnames_of_another_type():
    what, _, fix = complaint(errors.ArgumentError, fg.grad, total, argnames=0)
    assert "argnames of grad must be str" in what
    assert 'argnames="name"' in fix


# What the function returns


def test_output_not_a_scalar():
    what, where, fix = in_grad(errors.ShapeError, lambda x: 2 * x)
    assert what == "grad needs a function that returns a scalar, got float64[3]"
    assert re.search(r"grad\(<lambda>\) at .*" + HERE, where)
    assert "np.sum" in fix
    assert "funcgrad.jacobian" in fix


def test_output_none():
    def forgetful(x):
        np.sum(x)

    what, where, fix = in_grad(errors.ArgumentError, forgetful)
    assert what == "forgetful returned None, and grad needs a scalar"
    assert "grad(forgetful)" in where
    assert "return" in fix


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("vjp", lambda f: fg.vjp(f, X)),
        ("jvp", lambda f: fg.jvp(f, (X,), (X,))),
        ("linearize", lambda f: fg.linearize(f, X)),
    ],
)
def test_output_none_of_the_other_transforms(name, call):
    what, where, fix = complaint(errors.ArgumentError, call, lambda x: None)
    assert what == f"<lambda> returned None, and {name} needs an array"
    assert f"{name}(<lambda>)" in where
    assert "return" in fix


@pytest.mark.parametrize("out", [3, True, "abc", [1.0], {"a": 1.0}])
def test_output_of_another_type(out):
    what, _, _ = in_grad(errors.DtypeError, lambda x: out)
    assert "needs a function that returns a floating-point scalar" in what


@pytest.mark.parametrize(
    ("out", "found", "advice"),
    [
        (lambda x: [np.sum(x)], "a list of 1", "return out[0] alone"),
        (lambda x: {"x": x, "loss": np.sum(x)}, "a dict of 2", "return out['loss'] alone"),
        (lambda x: (np.sum(x), 1, 2), "a tuple of 3", "has_aux=True"),
        (lambda x: [x, x], "a list of 2", "return a single float"),
    ],
)
def test_output_in_a_container(out, found, advice):
    what, _, fix = in_grad(errors.DtypeError, out)
    assert what.endswith(f"got {found}")
    assert advice in fix


def test_array_of_a_function_of_numpys_class():
    what, _, _ = in_grad(
        errors.TracerConversionError, lambda x: sum(y for _, y in np.ndenumerate(x))
    )
    assert "__init__" not in what


def test_output_of_integer_dtype():
    what, _, fix = in_grad(errors.DtypeError, lambda x: np.argmax(x))
    assert "needs a real floating-point output, got int64[]" in what
    assert "float" in fix


def test_output_complex_without_holomorphic():
    what, where, fix = in_grad(errors.DtypeError, lambda x: total(x * 1j))
    assert "needs a real floating-point output, got complex128[]" in what
    assert "grad(<lambda>)" in where
    assert "holomorphic=True" in fix


def test_holomorphic_with_a_real_argument():
    f = fg.grad(lambda x: total(x * 1j), holomorphic=True)
    what, where, fix = complaint(errors.DtypeError, f, X)
    assert "holomorphic=True needs complex arguments, got float64[3]" in what
    assert "argument 0" in where
    assert "x + 0j" in fix


def test_holomorphic_with_a_real_output():
    f = fg.grad(lambda x: total(np.abs(x)), holomorphic=True)
    what, _, fix = complaint(errors.DtypeError, f, X + 0j)
    assert "holomorphic=True needs a complex output, got float64[]" in what
    assert "holomorphic=True" in fix


def test_output_of_shape_1_warns_and_works():
    f = fg.grad(lambda x: np.sum(x**2, keepdims=True))
    with pytest.warns(UserWarning, match=r"shape \(1,\)") as caught:
        gradient = f(X)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(gradient, [2.0, 4.0, 6.0])


def test_has_aux_forgotten():
    what, where, fix = in_grad(errors.ArgumentError, lambda x: (total(x), {"n": 3}))
    assert "a pair" in what
    assert "grad(<lambda>)" in where
    assert "has_aux=True" in fix


@pytest.mark.parametrize("out", [lambda x: total(x), lambda x: (total(x), 1, 2), lambda x: [x, x]])
def test_has_aux_superfluous(out):
    what, where, fix = complaint(errors.ArgumentError, fg.grad(out, has_aux=True), X)
    assert "grad with has_aux=True needs a function that returns a pair" in what
    assert "grad(<lambda>)" in where
    assert "has_aux" in fix


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("vjp", lambda f: fg.vjp(f, X, has_aux=True)),
        ("jvp", lambda f: fg.jvp(f, (X,), (X,), has_aux=True)),
        ("linearize", lambda f: fg.linearize(f, X, has_aux=True)),
    ],
)
def test_has_aux_superfluous_in_the_other_transforms(name, call):
    what, _, _ = complaint(errors.ArgumentError, call, total)
    assert f"{name} with has_aux=True needs a function that returns a pair" in what


# Tangents and cotangents

WRONG = {
    "shape": (np.ones(2), errors.ShapeError, "shape (2,)", "shape (3,)"),
    "scalar": (1.0, errors.ShapeError, "shape ()", "shape (3,)"),
    "float32": (np.ones(3, np.float32), errors.DtypeError, "float32[3]", "astype('float64')"),
    "integer": (np.ones(3, int), errors.DtypeError, "int64[3]", "astype('float64')"),
    "complex": (np.ones(3, complex), errors.DtypeError, "complex128[3]", "astype('float64')"),
    "list": ([1.0, 1.0, 1.0], errors.DtypeError, "list", "float64"),
    "text": ("abc", errors.DtypeError, "str 'abc'", "float64"),
}


@pytest.mark.parametrize(("wrong", "cls", "got", "wanted"), WRONG.values(), ids=WRONG)
def test_wrong_tangent_in_jvp(wrong, cls, got, wanted):
    what, where, fix = complaint(cls, fg.jvp, np.sin, (X,), (wrong,))
    assert "tangent" in what
    assert "cotangent" not in what
    assert got in what
    assert "the tangent at [0]" in where
    assert wanted in what + fix


@pytest.mark.parametrize(("wrong", "cls", "got", "wanted"), WRONG.values(), ids=WRONG)
def test_wrong_tangent_in_a_pushforward(wrong, cls, got, wanted):
    _, pushforward = fg.linearize(np.sin, X)
    what, where, fix = complaint(cls, pushforward, wrong)
    assert "tangent" in what
    assert "cotangent" not in what
    assert got in what
    assert "the tangent at [0]" in where
    assert wanted in what + fix


@pytest.mark.parametrize(("wrong", "cls", "got", "wanted"), WRONG.values(), ids=WRONG)
def test_wrong_cotangent(wrong, cls, got, wanted):
    _, pullback = fg.vjp(np.sin, X)
    what, where, fix = complaint(cls, pullback, wrong)
    assert "cotangent" in what
    assert got in what
    assert "the cotangent" in where
    assert wanted in what + fix


def test_complex_number_for_a_real_tangent():
    what, _, _ = complaint(errors.DtypeError, fg.jvp, np.sin, (1.0,), (1j,))
    assert "tangent" in what
    assert "float64" in what


def test_structure_of_a_tangent():
    what, where, _ = complaint(
        errors.TreeMismatchError, fg.jvp, lambda p: p["a"], ({"a": X},), ({"b": X},)
    )
    assert "the tangent does not have the structure" in what
    assert where.startswith("the tangent at [0]")
    assert "'a'" in where
    assert "'b'" in where


def test_structure_of_a_tangent_of_a_pushforward():
    _, pushforward = fg.linearize(lambda p: p["a"], {"a": X})
    what, where, _ = complaint(errors.TreeMismatchError, pushforward, X)
    assert "the tangent does not have the structure" in what
    assert where.startswith("the tangent at [0]")


def test_structure_of_a_cotangent():
    _, pullback = fg.vjp(lambda x: {"a": x, "b": x}, X)
    what, where, _ = complaint(errors.TreeMismatchError, pullback, {"a": X})
    assert "the cotangent does not have the structure" in what
    assert where.startswith("the cotangent")
    assert "'b'" in where


def test_path_of_a_wrong_cotangent():
    _, pullback = fg.vjp(lambda x: {"a": x, "b": [x]}, X)
    _, where, _ = complaint(errors.ShapeError, pullback, {"a": X, "b": [np.ones(2)]})
    assert where.startswith("the cotangent at ['b'][0], ")


def test_tangent_of_what_has_no_derivative():
    primals, tangents = ({"x": X, "n": 3},), ({"x": X, "n": 1},)
    what, where, fix = complaint(
        errors.DtypeError, fg.jvp, lambda p: p["x"] * p["n"], primals, tangents
    )
    assert "tangent of a leaf that has no derivative" in what
    assert "['n']" in where
    assert "None" in fix


def test_number_of_tangents_in_jvp():
    what, where, fix = complaint(errors.ArgumentError, fg.jvp, np.sin, (X,), (X, X))
    assert "1 primals but 2 tangents" in what
    assert re.search(HERE, where)
    assert "one tangent for each" in fix


@pytest.mark.parametrize("count", [0, 2])
def test_number_of_tangents_of_a_pushforward(count):
    _, pushforward = fg.linearize(np.sin, X)
    what, where, _ = complaint(errors.ArgumentError, pushforward, *[X] * count)
    assert "pushforward of linearize(sin)" in what
    assert f"got {count}" in what
    assert re.search(HERE, where)


def test_primals_of_jvp_not_in_a_tuple():
    what, where, fix = complaint(errors.ArgumentError, fg.jvp, np.sin, X, X)
    assert "primals of jvp must be a tuple or list" in what
    assert re.search(HERE, where)
    assert fix == "write jvp(f, (x,), (x_dot,))"


# Ways out of tracing


def test_function_of_the_math_module():
    what, where, fix = in_grad(errors.TracerConversionError, lambda x: math.sin(x), 1.0)
    assert "math module" in what
    assert "lose its derivative" in what
    assert re.search(HERE, where)
    assert "np.sin" in fix


@pytest.mark.parametrize("kind", [float, int, complex])
def test_conversion_to_a_number(kind):
    what, where, fix = in_grad(errors.TracerConversionError, lambda x: kind(x), 1.0)
    assert f"{kind.__name__}() of a traced value" in what
    assert re.search(HERE, where)
    assert "traced by grad(<lambda>)" in where
    assert "stop_gradient" in fix


@pytest.mark.parametrize("method", ["item", "tolist", "tobytes"])
def test_conversion_by_a_method(method):
    what, _, fix = in_grad(errors.TracerConversionError, lambda x: getattr(x, method)())
    assert f".{method}() of a traced value would lose its derivative" in what
    assert f"stop_gradient(x).{method}()" in fix


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.array(x),
        lambda x: np.array([x[0], x[1]]),
        lambda x: np.array([[x[0], 1.0]]),
        lambda x: np.array([x, x]),
        lambda x: np.asarray(x),
        lambda x: np.asarray(x, dtype=object),
        lambda x: np.asarray([x[0]]),
        lambda x: np.ascontiguousarray(x),
        lambda x: np.float64(x[0]),
        lambda x: np.fromiter(x, float),
    ],
)
def test_conversion_to_an_array(make):
    with pytest.raises(TypeError) as caught:
        fg.grad(lambda x: total(make(x)))(X)
    assert isinstance(caught.value, errors.TracerConversionError)
    text = str(caught.value)
    assert "traced value" in text
    assert re.search(HERE, text)
    assert "np.stack" in text or "keep the array" in text


def test_conversion_of_a_list_of_python_floats():
    what, _, fix = in_grad(errors.TracerConversionError, lambda x: total(np.array([x, x])), 1.0)
    assert "plain NumPy array cannot hold a traced value" in what
    assert "funcgrad.numpy.array" in fix


@pytest.mark.parametrize("s", [1.0, np.float64(1.0), np.array(1.0), X])
def test_index_of_an_ndarray(s):
    table = np.arange(5.0)
    what, where, fix = in_grad(errors.TracerConversionError, lambda s: total(table[s]), s)
    assert "cannot be the index of a plain NumPy array" in what
    assert re.search(HERE, where)
    assert "astype(int)" in fix


@pytest.mark.parametrize("use", [lambda s: [1.0, 2.0][s], lambda s: range(s), lambda s: "a" * s])
def test_index_of_a_list_and_length(use):
    with pytest.raises(TypeError, match=r"traced value cannot be an index|can't multiply"):
        fg.grad(use)(1.0)


def test_assignment_to_an_argument():
    def f(x):
        x[0] = 1.0
        return total(x)

    what, where, fix = in_grad(errors.MutationError, f)
    assert "argument of a transformed function" in what
    assert re.search(HERE, where)
    assert "x.copy()" in fix
    assert "funcgrad.at(x)[i].set(v)" in fix


def test_assignment_to_an_argument_by_an_operator():
    def f(x):
        x += 1.0
        return total(x)

    what, _, fix = in_grad(errors.MutationError, f)
    assert "argument of a transformed function" in what
    assert "x = x + y in place of x += y" in fix


def test_in_place_operator_on_an_ndarray():
    def f(x):
        a = np.zeros(3)
        a += x
        return total(a)

    what, where, fix = in_grad(errors.MutationError, f)
    assert "a += b" in what
    assert re.search(HERE, where)
    assert "np.zeros_like(x)" in fix


@pytest.mark.parametrize("x", [X, 2.0, np.float32(2.0), np.array(2.0)])
def test_assignment_of_an_element_of_an_ndarray(x):
    def f(x):
        a = np.zeros(3)
        a[0] = x[0] if np.ndim(x) else x
        return total(a)

    what, where, fix = in_grad(errors.TracerConversionError, f, x)
    assert "plain NumPy array" in what
    assert re.search(HERE, where)
    assert "np.zeros_like(x)" in fix
    assert "funcgrad.numpy.zeros" in fix


def test_assignment_of_an_element_under_jvp():
    def f(x):
        a = np.zeros(3)
        a[0] = x
        return a

    what, _, _ = complaint(errors.TracerConversionError, fg.jvp, f, (1.0,), (1.0,))
    assert "plain NumPy array" in what


def test_other_value_errors_pass_through():
    def f(x):
        np.zeros(3)[0] = np.ones(2)

    with pytest.raises(ValueError, match="setting an array element") as caught:
        fg.grad(f)(X)
    assert not isinstance(caught.value, errors.FuncgradError)


def test_assignment_of_a_slice_of_an_ndarray():
    def f(x):
        a = np.zeros(3)
        a[:] = x
        return total(a)

    what, where, fix = in_grad(errors.TracerConversionError, f)
    assert "plain NumPy array cannot be assigned" in what
    assert re.search(HERE, where)
    assert "np.zeros_like(x)" in fix


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: np.sin(x, out=out),
        lambda x, out: np.add(x, 1.0, out),
        lambda x, out: np.cumsum(x, out=out),
        lambda x, out: x.clip(0.0, 1.0, out=out),
    ],
)
def test_out_of_an_ndarray(call):
    out = np.zeros(3)
    what, where, fix = in_grad(errors.MutationError, lambda x: total(call(x, out)))
    assert "out=" in what
    assert re.search(HERE, where)
    assert "out=" in fix
    np.testing.assert_array_equal(out, 0.0)


def test_ufunc_at_of_an_ndarray():
    what, _, fix = in_grad(errors.MutationError, lambda x: np.add.at(np.zeros(3), [0, 1, 2], x))
    assert "numpy.add.at writes in place" in what
    assert "funcgrad.at(x)[index].add(values)" in fix


@pytest.mark.parametrize("function", ["copyto", "put", "place", "putmask"])
def test_functions_that_write_into_an_ndarray(function):
    arguments = {"copyto": (), "put": ([0, 1, 2],), "place": ([1, 1, 1],), "putmask": ([1, 1, 1],)}

    def f(x):
        getattr(np, function)(np.zeros(3), *arguments[function], x)
        return total(x)

    with pytest.raises(errors.FuncgradError) as caught:
        fg.grad(f)(X)
    assert "plain NumPy array" in str(caught.value)


def test_pickle():
    what, _, fix = in_grad(errors.TracerConversionError, lambda x: pickle.dumps(x))
    assert what == "a traced value cannot be pickled"
    assert "stop_gradient" in fix


@pytest.mark.parametrize(
    "use",
    [
        hash,
        lambda x: {x: 1},
        lambda x: {x},
        lambda x: x in {1.0: 2},
        functools.lru_cache(lambda x: x),
    ],
    ids=["hash", "dict key", "set element", "dict lookup", "lru_cache"],
)
def test_hash(use):
    what, where, fix = in_grad(errors.UnhashableTracerError, use)
    assert "cannot be hashed" in what
    assert re.search(HERE, where)
    assert "key" in fix


@pytest.mark.parametrize("name", ["view", "ctypes", "data", "resize", "tofile", "byteswap", "base"])
def test_attribute_that_needs_a_buffer(name):
    what, where, fix = in_grad(errors.TracerAttributeError, lambda x: getattr(x, name))
    assert f"ndarray.{name} does not work on a traced value" in what
    assert re.search(HERE, where)
    assert f"stop_gradient(x).{name}" in fix


def test_attribute_that_no_array_has():
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        fg.grad(lambda x: x.colour)(X)


# After the end


def grad_once(f):
    fg.grad(f)(X)


def vjp_once(f):
    fg.vjp(f, X)


def jvp_once(f):
    fg.jvp(f, (X,), (X,))


def linearize_once(f):
    fg.linearize(f, X)


@pytest.mark.parametrize("run", [grad_once, vjp_once, jvp_once, linearize_once])
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * 2,
        lambda x: 2 * x,
        lambda x: X + x,
        lambda x: np.sin(x),
        lambda x: x.sum(),
        lambda x: x[0],
        lambda x: np.stack([X, x]),
        lambda x: fg.grad(lambda y: total(y * x))(X),
        lambda x: fg.jvp(lambda y: y + x, (X,), (X,)),
    ],
)
def test_escaped(run, use):
    kept = []

    def storing(x):
        kept.append(x * x)
        return total(x)

    run(storing)
    what, where, fix = complaint(errors.TracerLeakError, use, kept[0])
    transform = run.__name__.removesuffix("_once")
    assert what.startswith(f"a value traced by {transform}(storing)")
    assert "escaped" in what
    assert len(re.findall(HERE, where)) == 2  # the use, and the call of the transform
    assert "has_aux=True" in fix


def test_escaped_by_a_failed_call():
    kept = []

    def failing(x):
        kept.append(x)
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        fg.grad(failing)(X)
    assert "escaped" in complaint(errors.TracerLeakError, np.sin, kept[0])[0]


def test_escaped_in_a_returned_closure():
    """A function is no pytree of arrays: what it holds is caught when it is called."""
    shift, _ = fg.jvp(lambda u: lambda f: lambda x: f(x + u), (0.0,), (1.0,))
    what, _, _ = complaint(errors.TracerLeakError, shift(np.sin), 1.0)
    assert "jvp(<lambda>)" in what
    assert "escaped" in what


# Functions without a rule

no_rule = np.frompyfunc(abs, 1, 1)


def test_ufunc_without_a_rule():
    what, where, fix = in_grad(errors.MissingRuleError, lambda x: no_rule(x))
    assert "abs" in what
    assert "has no rule for traced values" in what
    assert re.search(HERE, where)
    assert "float64[3], traced by grad" in where
    assert "add the rule" in fix


def test_function_without_a_rule():
    what, where, _ = in_grad(errors.MissingRuleError, lambda x: np.busday_count(x, x))
    assert what.startswith("numpy.busday_count has no rule for traced values: it takes dates")
    assert re.search(HERE, where)


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
def test_ufunc_method_without_a_rule(method):
    largest = np.frompyfunc(max, 2, 1)
    what, where, _ = in_grad(errors.MissingRuleError, lambda x: getattr(largest, method)(x))
    assert "max" in what
    assert f".{method} has no rule for traced values" in what
    assert re.search(HERE, where)


# Arrays of other kinds


class Frame:
    """Speaks one protocol only, as a data frame does."""

    dtype = np.dtype(float)
    shape = (3,)

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0, 3.0])

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented

    def __mul__(self, other):
        return np.asarray(self) * np.asarray(other)

    def to_numpy(self):
        return np.asarray(self)


class Quantity(np.ndarray):
    """An array with an arithmetic of its own, as one with a unit has."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented

    def __array_function__(self, function, types, args, kwargs):
        return NotImplemented


FOREIGN = {
    "frame": (Frame(), "Frame", ".to_numpy() of the Frame"),
    "matrix": (np.eye(3).view(np.matrix), "numpy.matrix", "np.asarray(m)"),
    "masked": (np.ma.array(X, mask=[0, 1, 0]), "numpy.ma.MaskedArray", "m.filled(0)"),
    "quantity": (X.view(Quantity), "Quantity", "np.asarray(q)"),
}

MEETINGS = {
    "operator": lambda x, m: x * m,
    "matmul operator": lambda x, m: x @ m,
    "matmul": lambda x, m: np.matmul(m, x),
    "ufunc": lambda x, m: np.arctan2(x, m),
    "ufunc with dtype": lambda x, m: np.add(x, m, dtype=float),
    "outer": lambda x, m: np.multiply.outer(x, m),
    "dot": lambda x, m: np.dot(m, x),
    "where": lambda x, m: np.where(x > 1.0, x, m),
    "concatenate": lambda x, m: np.concatenate([x, m], axis=None),
    "assignment": lambda x, m: operator.setitem(np.zeros_like(x), slice(None), m),
    "comparison": lambda x, m: x == m,
}


@pytest.mark.parametrize("meet", MEETINGS.values(), ids=MEETINGS)
@pytest.mark.parametrize(("foreign", "name", "instead"), FOREIGN.values(), ids=FOREIGN)
def test_array_of_another_kind_meets_a_traced_one(foreign, name, instead, meet):
    what, where, fix = in_grad(errors.DtypeError, lambda x: total(meet(x, foreign)))
    assert name in what
    assert re.search(HERE, where)
    assert instead in fix


@pytest.mark.parametrize(("foreign", "name", "instead"), FOREIGN.values(), ids=FOREIGN)
def test_array_of_another_kind_on_the_left(foreign, name, instead):
    what, _, fix = in_grad(errors.DtypeError, lambda x: total(foreign * x))
    assert name in what
    assert instead in fix


@pytest.mark.parametrize(("foreign", "name", "instead"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize(
    "call",
    [
        lambda m: fg.grad(total)(m),
        lambda m: fg.grad(lambda p: total(p["x"]))({"x": X, "m": m}),
        lambda m: fg.vjp(np.sin, m),
        lambda m: fg.jvp(np.sin, (m,), (X,)),
        lambda m: fg.jvp(np.sin, (X,), (m,)),
        lambda m: fg.vjp(np.sin, X)[1](m),
    ],
    ids=["grad", "grad beside others", "vjp", "jvp", "tangent", "cotangent"],
)
def test_array_of_another_kind_as_a_leaf(foreign, name, instead, call):
    what, _, fix = complaint(errors.DtypeError, call, foreign)
    assert name in what
    assert instead in fix


class Holder:
    """Can become an array, and nothing else."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, c: x * c,
        lambda x, c: c * x,
        lambda x, c: np.multiply(c, x),
        lambda x, c: np.add(0.0, np.multiply(x, c, dtype=float)),
    ],
)
def test_object_that_converts_to_an_array_is_a_constant_operand(f):
    c = Holder([2.0, 3.0, 4.0])
    np.testing.assert_array_equal(fg.grad(lambda x: total(f(x, c)))(X), [2.0, 3.0, 4.0])


def test_object_that_converts_to_an_array_is_a_constant_argument():
    c = Holder([2.0, 3.0, 4.0])
    np.testing.assert_array_equal(fg.grad(lambda x: np.dot(c, x))(X), [2.0, 3.0, 4.0])


def test_fraction_times_a_python_float_is_a_float():
    value, slope = fg.value_and_grad(lambda x: fractions.Fraction(1, 2) * x)(3.0)
    assert (value, slope) == (1.5, 0.5)
    assert type(value) is float


@pytest.mark.parametrize("factor", [fractions.Fraction(1, 2), decimal.Decimal("0.5")])
def test_number_that_would_make_an_array_of_objects(factor):
    what, where, fix = in_grad(errors.DtypeError, lambda x: total(x * factor))
    assert type(factor).__name__ in what
    assert re.search(HERE, where)
    assert "float(" in fix


def test_fraction_compares_as_with_an_array():
    f = fg.grad(lambda x: total(np.where(x > fractions.Fraction(3, 2), x, 0.0)))
    np.testing.assert_array_equal(f(X), [0.0, 1.0, 1.0])


@pytest.mark.parametrize("x", [2.0, X])
def test_power_modulo(x):
    with pytest.raises(TypeError, match=r"pow\(\)"):
        fg.grad(lambda x: total(pow(x, 2, 3)))(x)


# Leaves


def test_integer_with_too_many_digits_for_a_float():
    what, _, fix = in_grad(errors.DtypeError, lambda x: x, 10**400)
    assert "needs a floating-point" in what
    assert "write a float" in fix


@pytest.mark.parametrize(
    "call",
    [
        lambda x: fg.vjp(np.sin, x),
        lambda x: fg.jvp(np.sin, (x,), (x,)),
        lambda x: fg.linearize(np.sin, x),
    ],
)
def test_transforms_without_allow_int_do_not_suggest_it(call):
    _, _, fix = complaint(errors.DtypeError, call, np.arange(3))
    assert "allow_int" not in fix
    assert "close over it" in fix


@dataclasses.dataclass
class Params:
    w: float = 1.0


class Weights(dict):
    pass


@pytest.mark.parametrize(
    "leaf", [Params(), types.SimpleNamespace(w=1.0), Weights(w=1.0), [Weights(w=X)]]
)
def test_object_that_is_no_pytree_node(leaf):
    name = type(leaf[0] if type(leaf) is list else leaf).__name__
    _, where, fix = in_grad(errors.DtypeError, lambda p: 1.0, leaf)
    assert "argument 0" in where
    assert f"make {name} a node" in fix
    assert "funcgrad.pytree" in fix
    assert f"funcgrad.tree.register({name}" in fix


# Attributes and elements


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("shape", (3, 1), "y.reshape(shape)"),
        ("dtype", float, "y.astype(dtype)"),
        ("T", X, "y[...] = v"),
        ("imag", X, "y.astype(complex)"),
    ],
)
def test_attribute_that_cannot_be_assigned_to(name, value, instead):
    what, where, fix = in_grad(
        errors.TracerAttributeError, lambda x: setattr(x.copy(), name, value)
    )
    assert f".{name}" in what
    assert re.search(HERE, where)
    assert instead in fix


def test_deleting_an_element():
    _, where, fix = in_grad(errors.ArgumentError, lambda x: operator.delitem(x.copy(), 0))
    assert re.search(HERE, where)
    assert "np.delete" in fix


@pytest.mark.parametrize("index", [0, slice(None)])
@pytest.mark.parametrize(
    "make", [lambda x: np.zeros_like(x, dtype=int), lambda x: fg.numpy.zeros(3, int)]
)
def test_assignment_to_an_array_of_integers(make, index):
    def f(x):
        y = make(x)
        y[index] = x[index]
        return total(y)

    what, where, fix = in_grad(errors.DtypeError, f)
    assert "dtype has no derivative" in what
    assert "array of int" in what
    assert re.search(HERE, where)
    assert "dtype=int" in fix


def test_indexing_twice_in_an_assignment():
    def f(x):
        a = np.zeros_like(np.outer(x, x))
        a[0][1] = x[0]
        return total(a)

    what, where, fix = in_grad(errors.MutationError, f)
    assert "share memory" in what
    assert "a constant array made in the function" in where
    assert "A[0, 1] = v in place of A[0][1] = v" in fix


# Which conversion it was


@pytest.mark.parametrize(
    ("use", "named", "instead"),
    [
        (lambda x: np.asarray(x), "np.asarray()", "funcgrad.numpy.asarray"),
        (lambda x: np.float64(x[0]), "np.float64()", "x.astype(np.float64)"),
        (lambda x: np.sum([x[0], x[1]]), "numpy.sum", "np.sum(np.stack([a, b]))"),
        (lambda x: "%.2f" % x[0], "% operator", 'f"{x:.2f}"'),  # noqa: UP031
        (lambda x: math.exp(x[0]), "float()", "np.exp for math.exp"),
    ],
)
def test_conversion_is_named(use, named, instead):
    what, _, fix = in_grad(errors.TracerConversionError, use)
    assert named in what
    assert instead in fix


def test_filling_a_plain_array():
    _, _, fix = in_grad(errors.TracerConversionError, lambda x: total(np.full(2, x[0])))
    assert fix == "use funcgrad.numpy.full(shape, x)"


def test_filling_an_array_like_a_plain_one():
    _, _, fix = in_grad(errors.MutationError, lambda x: total(np.full_like(np.ones(2), x[0])))
    assert fix == "use funcgrad.numpy.full(shape, x)"


def test_conversion_in_an_installed_package(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "converts_all.py"
    package.parent.mkdir()
    package.write_text("import numpy as np\ndef convert(x):\n    return np.asarray(x)\n")
    monkeypatch.syspath_prepend(str(package.parent))
    convert = importlib.import_module("converts_all").convert
    what, where, fix = in_grad(errors.TracerConversionError, lambda x: total(convert(x)))
    assert "converts_all would make one of it" in what
    assert re.search(HERE + r", through converts_all\.py:3;", where)
    assert "NumPy functions" in fix


def test_conversion_of_an_escaped_value_says_that_it_escaped():
    kept = []
    fg.grad(lambda x: total([kept.append(x * x), x][1]))(X)
    for use in (np.asarray, lambda t: operator.setitem(t, 0, 1.0), lambda t: t.item()):
        assert "escaped" in complaint(errors.TracerLeakError, use, kept[0])[0]


# Lists that NumPy would make something else of


@pytest.mark.parametrize(
    ("extra", "kind"), [(None, "objects"), ("1", "<U1"), (fractions.Fraction(1, 2), "objects")]
)
@pytest.mark.parametrize("make", [fg.numpy.array, fg.numpy.asarray])
def test_list_with_something_that_is_no_number(make, extra, kind):
    what, where, fix = in_grad(errors.DtypeError, lambda x: total(make([x[0], extra])))
    assert f"array of {kind}" in what
    assert re.search(HERE, where)
    assert "numbers" in fix


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.concatenate([x, np.array([1, 2], object)]).sum(),
        lambda x: np.sum(np.where([True, False], x, np.array([1, 2], object))),
        lambda x: np.stack([x[0], None])[0] * 1.0,
    ],
)
def test_objects_beside_a_traced_value(f):
    x = np.ones(2)
    for transform in (fg.grad(f), lambda x: fg.jvp(f, (x,), (x,)), lambda x: fg.linearize(f, x)):
        with pytest.raises(errors.DtypeError, match="array of objects"):
            transform(x)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x > 0,
        bool,
        np.argmax,
        np.sign,
        np.floor,
        np.isnan,
        np.any,
        np.nonzero,
        lambda x: np.isclose(x, 1.0),
        lambda x: x.astype(int),
        fg.stop_gradient,
        lambda x: fg.vjp(lambda y: x, 1.0),
        lambda x: fg.jvp(lambda y: x, (1.0,), (1.0,)),
        lambda x: fg.linearize(lambda y: x, 1.0),
        lambda x: fg.grad(lambda y: (y, x), has_aux=True)(1.0),
    ],
)
def test_a_leaked_value_is_noticed_where_no_derivative_is_made(use):
    kept = []

    def f(x):
        kept.append(x)
        return np.sum(x)

    fg.grad(f)(np.ones(1))
    with pytest.raises(errors.TracerLeakError, match="escaped"):
        use(kept[0])


def test_a_random_key_passes_through_a_tree():
    key = fg.random.key(1)
    gradient = fg.grad(lambda p: p["w"] ** 2)({"w": 2.0, "key": key})
    assert gradient == {"w": 4.0, "key": None}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("lax", "funcgrad.scan"), ("tree_map", "funcgrad.tree.map"), ("pmap", "vmap")],
)
def test_names_of_jax_say_where_they_are(name, hint):
    with pytest.raises(AttributeError, match=hint):
        getattr(fg, name)
