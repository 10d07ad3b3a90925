"""`funcgrad.testing`: right derivatives pass, wrong ones are found and named."""

from __future__ import annotations

import functools
import subprocess
import sys

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import concrete
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ArgumentError, FuncgradError, GradientCheckError
from funcgrad.testing import check_grads, check_jvp, check_vjp, numerical_jvp

X = np.array([0.5, -1.5, 2.0])


def broken(*, jvp=None, vjp=None):
    """Make the cube, a function of one array, with one of its rules replaced."""
    made = Primitive(cube_forward, name="broken_cube")
    made.def_jvp(jvp or cube_jvp)
    made.def_vjp(vjp or cube_vjp)
    return made


def cube_forward(x):
    return x * x * x


def cube_jvp(primals, tangents, out):
    return tangents[0] * (3 * primals[0] * primals[0])


def cube_vjp(primals, out):
    (x,) = primals
    return lambda out_bar: out_bar * (3 * x * x)


def twice_vjp(primals, out):
    (x,) = primals
    return lambda out_bar: out_bar * (6 * x * x)


def twice_jvp(primals, tangents, out):
    return tangents[0] * (6 * primals[0] * primals[0])


def forgetful_jvp(primals, tangents, out):
    x = concrete(primals[0])
    return tangents[0] * (3 * x * x)


def forgetful_vjp(primals, out):
    x = concrete(primals[0])
    return lambda out_bar: out_bar * (3 * x * x)


# check_grads passes


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("lin",), "fwd", ("fwd", "rev", "lin")])
def test_right_derivatives_pass(modes):
    check_grads(lambda x: np.sin(x) * x, (X,), order=2, modes=modes)


def test_right_rules_pass_to_third_order():
    check_grads(broken(), (X,), order=3)


def test_pytrees_pass():
    params = {"w": X, "b": [2.0, np.float64(3.0)]}
    check_grads(lambda p, y: {"out": (p["w"] * p["b"][0] * y, p["b"][1] ** 2)}, (params, 0.5))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_each_precision_passes(dtype):
    check_grads(lambda x: np.exp(x) * x, (X.astype(dtype),))


def test_functions_that_insist_on_float32_pass():
    check_grads(lambda x: np.sin(np.multiply(x, 1, dtype=np.float32)), (X.astype(np.float32),))


def test_functions_of_complex_numbers_pass_though_not_holomorphic():
    check_grads(lambda z: np.conj(z) * z * z + np.abs(z), (X + 1j,))


def test_other_leaves_are_left_alone():
    check_grads(lambda x, n, name: {name: x**n}, (X, 3, "cube"))


def test_integer_outputs_are_left_alone():
    check_grads(lambda x: (np.argmax(x), x * x), (X,))


def test_empty_arrays_pass():
    check_grads(np.sin, (np.zeros((0, 3)),))


def test_values_far_below_one_step_pass():
    check_grads(np.log, (np.array([1e-3, 1.0]),), order=1)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (np.sqrt, 1e-8),
        (np.sqrt, np.array([1e-8, 1.0, 1e-4])),
        (lambda x: np.sum(np.sqrt(x)), np.array([1e-8, 1.0])),
        (np.log, 1e-7),
        (np.arcsin, 1 - 1e-6),
        (np.sqrt, np.float32(1e-6)),
    ],
)
def test_points_next_to_the_edge_of_the_domain_pass(f, x):
    with np.errstate(divide="ignore"):
        check_grads(f, (x,))


def test_a_wrong_derivative_next_to_the_edge_of_the_domain_is_found():
    def f_jvp(args, dots):
        return np.sqrt(*args), dots[0] * 0.51 / np.sqrt(*args)

    with pytest.raises(GradientCheckError, match="JVP of sqrt is wrong: 641"):
        check_jvp(np.sqrt, f_jvp, (1e-8,))


@pytest.mark.parametrize(("f", "x"), [(np.sqrt, 0.0), (np.arcsin, 1.0)])
def test_a_point_on_the_edge_of_the_domain_cannot_be_checked(f, x):
    with (
        np.errstate(all="ignore"),
        pytest.raises(GradientCheckError, match="cannot be checked: it is inf, and differences"),
    ):
        check_grads(f, (x,))


# check_grads finds


@pytest.mark.parametrize(
    ("rules", "modes", "found"),
    [
        ({"vjp": twice_vjp}, ("fwd", "rev"), "mode rev, order 1"),
        ({"jvp": twice_jvp}, ("fwd", "rev"), "mode fwd, order 1"),
        ({"jvp": twice_jvp}, ("lin",), "mode lin, order 1"),
        ({"jvp": forgetful_jvp}, ("fwd",), "mode fwd over fwd, order 2"),
        ({"vjp": forgetful_vjp}, ("rev",), "mode rev over rev, order 2"),
        ({"vjp": forgetful_vjp}, ("fwd", "rev"), "mode fwd over rev, order 2"),
        ({"jvp": forgetful_jvp}, ("rev", "fwd"), "mode rev over fwd, order 2"),
    ],
)
def test_wrong_rules_are_found_and_the_mode_named(rules, modes, found):
    with pytest.raises(GradientCheckError) as caught:
        check_grads(broken(**rules), (X,), modes=modes)
    assert caught.value.where.endswith(found)


def test_a_wrong_second_derivative_passes_at_order_one():
    check_grads(broken(jvp=forgetful_jvp, vjp=forgetful_vjp), (X,), order=1)


def test_the_message_names_argument_and_element_and_both_numbers():
    def bent_vjp(primals, out):
        (x,) = primals
        return lambda out_bar: out_bar * np.where(np.arange(3) == 1, 5.0, 3 * x * x)

    cube = broken(vjp=bent_vjp)
    with pytest.raises(GradientCheckError) as caught:
        check_grads(lambda p: cube(p["w"]), ({"w": X},), order=1)
    what, where, fix = str(caught.value).split("\n")
    assert what.startswith("the VJP of <lambda> is wrong: ")
    assert where == "  where: argument 0 at ['w'], element [1]; mode rev, order 1"
    assert fix.startswith("  fix:   ")
    got, expected = what.removeprefix("the VJP of <lambda> is wrong: ").split(
        ", where differences give "
    )
    assert float(got) / float(expected) == pytest.approx(5.0 / 6.75, rel=1e-6)


def test_nan_for_a_finite_derivative_is_found():
    nan_cube = broken(vjp=lambda primals, out: lambda out_bar: out_bar * np.nan)
    with pytest.raises(GradientCheckError, match="is wrong: nan"):
        check_grads(nan_cube, (X,), order=1)


def test_a_step_is_found():
    with pytest.raises(GradientCheckError, match="the JVP of floor is wrong: 0"):
        check_grads(np.floor, (3.0,))


def test_tolerances_are_those_that_were_given():
    nearly = broken(jvp=lambda primals, tangents, out: cube_jvp(primals, tangents, out) * 1.0001)
    check_grads(nearly, (X,), order=1, rtol=1e-3, atol=0)
    with pytest.raises(GradientCheckError):
        check_grads(nearly, (X,), order=1, rtol=1e-5, atol=0)
    check_grads(nearly, (X,), order=1, rtol=0, atol=1e-2)


def test_the_error_is_an_assertion_of_ours():
    assert issubclass(GradientCheckError, AssertionError)
    assert issubclass(GradientCheckError, FuncgradError)


# check_jvp and check_vjp


def test_right_rules_of_ones_own_pass():
    def f(x, y):
        return {"out": np.sin(x) * y}

    check_jvp(f, functools.partial(fg.jvp, f), (X, 2.0))
    check_vjp(f, functools.partial(fg.vjp, f), (X, 2.0))


def test_check_jvp_finds_a_wrong_tangent():
    with pytest.raises(GradientCheckError, match="JVP of sin is wrong") as caught:
        check_jvp(np.sin, lambda args, dots: (np.sin(*args), dots[0]), (X,), err_msg="my rule")
    assert caught.value.where.endswith("; my rule")


def test_check_jvp_finds_another_value():
    with pytest.raises(GradientCheckError, match="value from the JVP of sin"):
        check_jvp(np.sin, lambda args, dots: (args[0], np.cos(args[0]) * dots[0]), (X,))


def test_check_vjp_finds_a_wrong_cotangent_and_its_argument():
    def f_vjp(x, y):
        return x * y, lambda bar: (bar * y, bar * y)

    with pytest.raises(GradientCheckError, match="argument 1"):
        check_vjp(np.multiply, f_vjp, (2.0, 3.0))


def test_check_vjp_finds_a_cotangent_of_another_shape():
    def f_vjp(x, y):
        return x * y, lambda bar: (bar * y, bar * x)

    with pytest.raises(GradientCheckError, match=r"float64\[3\] for float64\[\]"):
        check_vjp(np.multiply, f_vjp, (X, np.float64(3.0)))


def test_check_vjp_finds_a_cotangent_of_another_dtype():
    def f_vjp(x):
        return 2 * x, lambda bar: ((2 * bar).astype(np.float64),)

    with pytest.raises(GradientCheckError, match=r"float64\[3\] for float32\[3\]"):
        check_vjp(lambda x: 2 * x, f_vjp, (X.astype(np.float32),))


# numerical_jvp


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (np.exp, 1.0, 2.718281828459045),
        (np.abs, 1e-4, 1.0),  # next to a kink
        (np.abs, -1e-4, -1.0),
        (np.log, 1e-3, 1000.0),  # the first steps leave the domain
        (np.log, 1e-8, 1e8),  # the usual steps all do
        (lambda x: np.sin(50 * x), 1.0, 48.248301424605664),
        (lambda x: np.real(np.exp(1j * x)), 0.5, -0.479425538604203),
        (lambda x: np.linalg.norm(np.array([x, 3.0])), 4.0, 0.8),
    ],
)
def test_numerical_jvp_is_exact_to_eleven_digits(f, x, expected):
    assert numerical_jvp(f, (x,), (1.0,)) == pytest.approx(expected, rel=1e-11)


def test_numerical_jvp_of_narrow_floats_is_double():
    x = np.float32(0.7)
    got = numerical_jvp(np.tanh, (x,), (np.float32(1),))
    assert got == pytest.approx(0.6347395991285802, rel=1e-12)


def test_numerical_jvp_goes_along_complex_directions():
    got = numerical_jvp(np.conj, (np.array([1 + 2j]),), (np.array([3 - 1j]),))
    np.testing.assert_allclose(got, [3 + 1j], rtol=1e-12)


def test_numerical_jvp_keeps_the_structure():
    got = numerical_jvp(lambda x, y: {"a": x * y, "n": 3}, (X, 2.0), (np.ones(3), None))
    assert got["n"] is None
    np.testing.assert_allclose(got["a"], [2, 2, 2], rtol=1e-12)


# Bad input


def test_a_bare_array_is_refused():
    with pytest.raises(ArgumentError, match="args of check_grads must be a tuple or list"):
        check_grads(np.sin, X)


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("f of check_grads", lambda: check_grads(3, (1.0,))),
        ("f of check_jvp", lambda: check_jvp(3, np.sin, (1.0,))),
        ("f_jvp of check_jvp", lambda: check_jvp(np.sin, 3, (1.0,))),
        ("f_vjp of check_vjp", lambda: check_vjp(np.sin, 3, (1.0,))),
        ("f of numerical_jvp", lambda: numerical_jvp(3, (1.0,), (1.0,))),
    ],
)
def test_what_is_no_function_is_refused(argument, call):
    with pytest.raises(ArgumentError, match=f"{argument} must be a function, got int 3"):
        call()


def test_arguments_without_a_float_are_refused():
    with pytest.raises(ArgumentError, match="hold no floating-point array"):
        check_grads(np.sin, (3,))


def test_unknown_modes_are_refused():
    with pytest.raises(ArgumentError, match="'fwd', 'rev', 'lin'"):
        check_grads(np.sin, (X,), modes=["reverse"])


@pytest.mark.parametrize("order", [0, 1.5])
def test_an_order_that_is_no_positive_integer_is_refused(order):
    with pytest.raises(ArgumentError, match="must be a positive integer"):
        check_grads(np.sin, (X,), order=order)


def test_testing_loads_when_it_is_first_named():
    code = "import sys, funcgrad as fg; assert 'funcgrad.testing' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{code}; fg.testing.check_grads"], check=True)
