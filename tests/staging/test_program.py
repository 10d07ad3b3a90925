"""Programs: evaluation, pruning, what they refuse, and how they print."""

import textwrap
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import DtypeError, ShapeError, TreeMismatchError

X = np.array([0.5, -1.0, 2.0])


def text_of(program):
    return program.as_text(lines=False)


def dedented(text):
    return textwrap.dedent(text).strip("\n")


def predict(params, x):
    return np.tanh(x @ params["w"] + params["b"])


PARAMS = {"w": np.ones((3, 2)), "b": np.zeros(2)}


# Evaluation


def test_arguments_may_be_given_by_keyword():
    program = fg.make_program(lambda x, scale: x * scale)(X, scale=2.0)
    assert_array_equal(program(X, scale=3.0), 3 * X)


def test_results_are_pytrees():
    program = fg.make_program(lambda x: {"a": (x, x + 1), "n": 3, "s": "text", "z": None})(X)
    out = program(2 * X)
    assert out["n"] == 3
    assert out["s"] == "text"
    assert out["z"] is None
    assert_array_equal(out["a"][1], 2 * X + 1)


def test_an_argument_may_be_a_result():
    assert_array_equal(fg.make_program(lambda x: x)(X)(2 * X), 2 * X)


def test_evaluation_lets_go_of_values():
    """Of a long chain only a few arrays are alive at a time."""

    def chain(x):
        for _ in range(50):
            x = x * 1.5
        return x

    x = np.ones(100_000)
    program = fg.make_program(chain)(x)
    tracemalloc.start()
    program(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * x.nbytes


def test_another_structure_is_refused():
    program = fg.make_program(predict)(PARAMS, X)
    with pytest.raises(TreeMismatchError, match="the arguments of the program of predict"):
        program({"w": PARAMS["w"]}, X)


def test_another_shape_is_refused():
    program = fg.make_program(predict)(PARAMS, X)
    with pytest.raises(ShapeError, match=r"params\['b'\] of float64\[2\], got float64\[3\]"):
        program({**PARAMS, "b": np.zeros(3)}, X)


def test_another_dtype_is_refused():
    program = fg.make_program(predict)(PARAMS, X)
    with pytest.raises(DtypeError, match=r"x of float64\[3\], got float32\[3\]"):
        program(PARAMS, X.astype(np.float32))


def test_an_array_for_a_python_number_is_refused():
    program = fg.make_program(lambda x: x + 1)(1.0)
    with pytest.raises(DtypeError, match=r"x of float, got float64\[\]"):
        program(np.float64(1.0))


# Pruning


def test_pruning_leaves_out_what_is_not_used():
    def fun(x):
        np.exp(x)
        unused = np.cos(x)
        unused + 1
        return np.sin(x)

    program = fg.make_program(fun)(X)
    assert len(program.equations) == 4
    pruned = program.pruned()
    assert [equation.name for equation in pruned.equations] == ["sin"]
    assert_array_equal(pruned(X), np.sin(X))


def test_pruning_keeps_what_notes_are_of():
    def fun(x):
        if np.sum(x) > 0:
            return np.sin(x)
        return x

    program = fg.make_program(fun)(X).pruned()
    assert [equation.name for equation in program.equations] == ["reduce_sum", "greater", "sin"]
    assert program.notes[0].position == 2
    assert_array_equal(program(X), np.sin(X))


def test_pruning_keeps_regions():
    def fun(x):
        np.exp(x)
        return fg.checkpoint(np.sin)(x) + 1

    program = fg.make_program(fun)(X).pruned()
    (region,) = program.regions
    assert (region.start, region.stop) == (0, 1)


def test_the_value_of_a_gradient_is_pruned():
    program = fg.make_program(fg.grad(lambda x: np.sum(np.sin(x))))(X)
    assert "reduce_sum" in [equation.name for equation in program.equations]
    assert [equation.name for equation in program.pruned().equations] == ["cos", "multiply"]


# Printing


def test_a_program_prints():
    program = fg.make_program(predict)(PARAMS, X)
    assert text_of(program) == dedented("""
        program predict(params: {'w': float64[3,2], 'b': float64[2]}, x: float64[3])
          a: float64[2] = matmul(x, params['w'])
          b: float64[2] = add(a, params['b'])
          c: float64[2] = tanh(b)
          return c: float64[2]
    """)


def test_the_lines_of_the_user_stand_beside_the_equations():
    rows = str(fg.make_program(predict)(PARAMS, X)).splitlines()
    first = predict.__code__.co_firstlineno + 1
    assert all(row.endswith(f"test_program.py:{first}") for row in rows[1:4])
    assert len({row.index("# ") for row in rows[1:4]}) == 1


def test_a_gradient_prints():
    program = fg.make_program(fg.grad(lambda x, w: np.sum(np.sin(x) * w)))(X, np.ones(3))
    assert text_of(program.pruned()) == dedented("""
        program <lambda>(x: float64[3], w: float64[3])
          const A: float64[3] = [1., 1., 1.]
          a: float64[3] = multiply(A, w)
          b: float64[3] = cos(x)
          c: float64[3] = multiply(a, b)
          # specialised on finite c
          return c: float64[3]
    """)


def test_constants_and_static_parameters_print():
    weights = np.arange(12.0).reshape(3, 4)

    def fun(x):
        y = np.sum(x[1:, 0] * np.array([1.0, 2.0]), axis=0)
        return y + weights, np.full(9, 2.0) * y

    assert text_of(fg.make_program(fun)(weights)) == dedented("""
        program fun(x: float64[3,4])
          const A: float64[2] = [1., 2.]
          const B: float64[3,4]
          const C: float64[9], all 2.0
          a: float64[2] = getitem(x, [1:, 0])
          b: float64[2] = multiply(a, A)
          c: float64[] = sum(b, axis=0)
          d: float64[3,4] = add(c, B)
          e: float64[9] = multiply(C, c)
          return
            [0] = d: float64[3,4]
            [1] = e: float64[9]
    """)


def test_numbers_static_arguments_and_dtypes_print():
    def fun(x, s, n, mode):
        return x * s + np.float32(2.0) if mode == "plus" else n

    program = fg.make_program(fun)(X.astype(np.float32), 0.5, 3, "plus")
    assert text_of(program) == dedented("""
        program fun(x: float32[3], s: float, n: 3, mode: 'plus')
          a: float32[3] = multiply(x, s)
          b: float32[3] = add(a, float32(2.0))
          return b: float32[3]
    """)


def test_notes_print_where_they_hold():
    def fun(x):
        y = np.exp(x)
        if np.sum(y) > 1:
            y = y * float(x[0])
        return y

    assert text_of(fg.make_program(fun)(X)) == dedented("""
        program fun(x: float64[3])
          a: float64[3] = exp(x)
          b: float64[] = sum(a)
          c: bool[] = greater(b, 1)
          # specialised on c = True (the truth value)
          d: float64[] = getitem(x, [0])
          # specialised on d = 0.5 (float())
          e: float64[3] = multiply(a, 0.5)
          return e: float64[3]
    """)


def test_several_results_and_regions_print():
    @fg.checkpoint
    def block(x):
        w, _ = np.linalg.eigh(x)
        return np.sum(w)

    program = fg.make_program(lambda x: block(x) * 2)(np.eye(2))
    assert text_of(program) == dedented("""
        program <lambda>(x: float64[2,2])
          checkpoint(block):
            (a: float64[2], b: float64[2,2]) = eigh(x)
            c: float64[] = sum(a)
          d: float64[] = multiply(c, 2)
          return d: float64[]
    """)


def test_names_of_arguments_are_not_used_twice():
    program = fg.make_program(lambda a, c: (a + c) * 2)(X, X)
    assert "b: float64[3] = add(a, c)" in text_of(program)
    assert "d: float64[3] = multiply(b, 2)" in text_of(program)


def test_many_variables_get_names_of_two_letters():
    def fun(x):
        for _ in range(60):
            x = x + 1
        return x

    text = text_of(fg.make_program(fun)(X))
    assert "\n  z: float64[3] = add(y, 1)\n  aa: float64[3] = add(z, 1)" in text
    assert " as:" not in text


def test_keys_and_functions_print():
    program = fg.make_program(lambda key: fg.random.bits(key, (2,)))(fg.random.key(0))
    assert text_of(program).startswith("program <lambda>(key: Key[])\n")


def test_variadic_arguments_have_paths():
    def fun(*args, **options):
        return args[0] + args[1] * options["scale"]

    program = fg.make_program(fun)(X, X, scale=2.0)
    assert [leaf.path for leaf in program.arguments] == ["args[0]", "args[1]", "scale"]


def test_wide_headers_are_broken():
    params = {f"weight_{n}": np.zeros((100, 100)) for n in range(4)}
    rows = text_of(fg.make_program(lambda params, x: x)(params, X)).splitlines()
    assert rows[0] == "program <lambda>("
    assert rows[2] == "    x: float64[3],"
