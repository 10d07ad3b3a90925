"""debug.print, callback, value and breakpoint: plain values under every transform."""

import io
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import debug
from funcgrad.errors import ArgumentError, TracerLeakError


def square(x):
    debug.print("x={}", x)
    return x**2


def test_untraced(capsys):
    square(3.0)
    assert capsys.readouterr().out == "x=3.0\n"


def test_grad_prints_the_primal_once(capsys):
    assert fg.grad(square)(3.0) == 6.0
    assert capsys.readouterr().out == "x=3.0\n"


def test_jvp_prints_the_primal_once(capsys):
    fg.jvp(square, (3.0,), (1.0,))
    assert capsys.readouterr().out == "x=3.0\n"


def test_grad_of_grad_prints_the_primal_once(capsys):
    assert fg.grad(fg.grad(square))(3.0) == 2.0
    assert capsys.readouterr().out == "x=3.0\n"


def test_hessian_prints_the_primal(capsys):
    assert fg.hessian(square)(3.0) == 2.0
    assert set(capsys.readouterr().out.splitlines()) == {"x=3.0"}


def test_vmap_prints_once_for_each_example(capsys):
    fg.vmap(square)(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "x=1.0\nx=2.0\n"


@pytest.mark.parametrize("order", [lambda f: fg.vmap(fg.grad(f)), lambda f: fg.vmap(fg.jacfwd(f))])
def test_vmap_of_a_derivative_prints_once_for_each_example(capsys, order):
    order(square)(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "x=1.0\nx=2.0\n"


def test_grad_of_vmap_prints_once_for_each_example(capsys):
    fg.grad(lambda x: np.sum(fg.vmap(square)(x)))(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "x=1.0\nx=2.0\n"


def test_vmap_prints_once_what_all_examples_share(capsys):
    fg.vmap(lambda x, y: square(y) * x, in_axes=(0, None))(np.ones(3), 5.0)
    assert capsys.readouterr().out == "x=5.0\n"


def test_vmap_prints_shared_values_beside_those_of_each_example(capsys):
    def f(x, y):
        debug.print("{} {}", x, y)
        return x

    fg.vmap(f, in_axes=(0, None))(np.array([1.0, 2.0]), np.array([5.0, 6.0]))
    assert capsys.readouterr().out == "1.0 [5. 6.]\n2.0 [5. 6.]\n"


def test_nested_vmaps_print_in_the_order_of_loops(capsys):
    def f(x, y):
        debug.print("{} {}", x, y)
        return x * y

    fg.vmap(lambda x: fg.vmap(lambda y: f(x, y))(np.array([3.0, 4.0])))(np.array([1.0, 2.0]))
    assert capsys.readouterr().out.split("\n")[:-1] == ["1.0 3.0", "1.0 4.0", "2.0 3.0", "2.0 4.0"]


def test_batched_prints_all_examples_in_one_line(capsys):
    def f(x):
        debug.print("{}", x, batched=True)
        return x

    fg.vmap(f)(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "[1. 2.]\n"


def test_examples_that_are_arrays(capsys):
    def f(x):
        debug.print("{}", x)
        return x

    fg.vmap(f, in_axes=1)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert capsys.readouterr().out == "[1. 3.]\n[2. 4.]\n"


def test_scan_prints_at_each_step(capsys):
    def step(carry, x):
        debug.print("{carry} {x}", carry=carry, x=x)
        return carry * x, None

    fg.grad(lambda c: fg.scan(step, c, np.array([2.0, 3.0]))[0])(1.0)
    assert capsys.readouterr().out == "1.0 2.0\n2.0 3.0\n"


def test_cond_prints_the_examples_that_take_the_branch(capsys):
    def negative(x):
        debug.print("{}", x)
        return -x

    def f(x):
        return fg.cond(x < 0, negative, lambda x: x, x)

    np.testing.assert_array_equal(fg.vmap(f)(np.array([1.0, -2.0, -3.0])), [1.0, 2.0, 3.0])
    assert capsys.readouterr().out == "-2.0\n-3.0\n"


def test_cond_prints_the_examples_of_what_a_branch_closes_over(capsys):
    def f(x, y):
        def negative(x):
            debug.print("{}", y)
            return -x

        return fg.cond(x < 0, negative, lambda x: x, x)

    fg.vmap(f)(np.array([1.0, -2.0, -3.0]), np.array([10.0, 20.0, 30.0]))
    assert capsys.readouterr().out == "20.0\n30.0\n"


def test_while_loop_prints_the_examples_that_are_not_done(capsys):
    def body(x):
        debug.print("{}", x)
        return x + 1

    fg.vmap(lambda x: fg.while_loop(lambda x: x < 3, body, x))(np.array([1, 2]))
    assert capsys.readouterr().out == "1\n2\n2\n"


def test_checkpoint_prints_once(capsys):
    assert fg.grad(fg.checkpoint(square))(3.0) == 6.0
    assert capsys.readouterr().out == "x=3.0\n"


def test_backward_rule_prints_when_it_is_run(capsys):
    @fg.custom_vjp
    def f(x):
        return x**2

    def forward(x):
        return f(x), x

    def backward(x, out_bar):
        debug.print("x={} out_bar={}", x, out_bar)
        return (2 * x * out_bar,)

    f.defvjp(forward, backward)
    fg.vmap(fg.grad(f))(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "x=1.0 out_bar=1.0\nx=2.0 out_bar=1.0\n"


def test_tracers_in_a_pytree(capsys):
    def f(params):
        debug.print("{p} {p[w]:.1f}", p=params)
        return params["w"] * params["b"][0]

    fg.grad(f)({"w": 2.0, "b": [3.0, None]})
    assert capsys.readouterr().out == "{'w': 2.0, 'b': [3.0, None]} 2.0\n"


def test_formats_of_numbers_and_arrays(capsys):
    debug.print("{x:.3f} {:>6.1f} {{}} {!r} {a:.1f}", 1.0, "s", x=2.0, a=np.array([1.0, 2.25]))
    assert capsys.readouterr().out == "2.000    1.0 {} 's' [1.0 2.2]\n"


@pytest.mark.parametrize(
    ("fmt", "args", "kwargs", "words"),
    [
        ("{} {}", (1.0,), {}, "out of range"),
        ("{x}", (), {"y": 1.0}, "no argument 'x'"),
        ("{}", (1.0, 2.0), {}, "leaves out argument 1"),
        ("{}", (1.0,), {"y": 1.0}, "leaves out argument 'y'"),
        ("{:q}", (1.0,), {}, "Unknown format code"),
        ("{", (), {}, "Single '{'"),
        (3.0, (), {}, "takes a format string first"),
    ],
)
def test_format_that_does_not_fit(fmt, args, kwargs, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        debug.print(fmt, *args, **kwargs)
    assert "test_printing.py" in caught.value.where


def test_callback_gets_plain_copies():
    kept = []
    x = np.array([1.0, 2.0])

    def f(x):
        debug.callback(lambda v, scale: kept.append(v * scale), x, scale=2.0)
        debug.callback(lambda v: v.fill(0.0), x)
        return np.sum(x**2)

    np.testing.assert_array_equal(fg.grad(f)(x), [2.0, 4.0])
    assert type(kept[0]) is np.ndarray
    np.testing.assert_array_equal(kept, [[2.0, 4.0]])


def test_callback_under_vmap():
    kept, together = [], []

    def f(x):
        debug.callback(kept.append, x)
        debug.callback(together.append, x, batched=True)
        return x

    fg.vmap(f)(np.array([1.0, 2.0]))
    assert kept == [1.0, 2.0]
    np.testing.assert_array_equal(together, [[1.0, 2.0]])


def test_callback_of_something_else():
    with pytest.raises(ArgumentError, match=r"debug\.callback takes a function"):
        debug.callback(3.0)


def test_value_reads_what_has_escaped():
    kept = {}

    def f(x):
        kept["y"] = x * 2
        return x

    fg.vmap(f)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(debug.value(kept)["y"], [2.0, 4.0])
    fg.grad(f)(1.5)
    assert debug.value(kept) == {"y": 3.0}
    with pytest.raises(TracerLeakError, match=r"debug\.value\(x\) reads its value"):
        kept["y"] + 1


# The debugger


def test_breakpoint_calls_the_hook(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda **kwargs: seen.append(kwargs))

    def f(x):
        debug.breakpoint(header="here")
        return x**2

    assert fg.grad(f)(3.0) == 6.0
    assert seen == [{"header": "here"}]


def test_breakpoint_stops_in_the_function_and_values_can_be_read():
    program = textwrap.dedent("""
        import numpy as np
        import funcgrad as fg

        def f(x):
            y = x * 2
            fg.debug.breakpoint()
            z = y + 1
            return z

        print(fg.vmap(fg.grad(f))(np.array([4.0, 5.0])))
    """)
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="p fg.debug.value(y)\np y\nup\ncontinue\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "f()" in done.stdout
    assert "array([ 8., 10.])" in done.stdout
    assert "Traced(array([ 8., 10.]), by grad(f)" in done.stdout
    assert done.stdout.rstrip().endswith("[2. 2.]")


def test_print_goes_to_the_present_stdout(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    debug.print("here")
    assert stream.getvalue() == "here\n"
