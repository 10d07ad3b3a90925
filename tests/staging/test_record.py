"""Recording: what becomes an equation, a constant, a note; under and over the other transforms."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from recorded import in_threads

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import tree
from funcgrad.core.level import Origin
from funcgrad.errors import MutationError, SpecialisedError, TracerLeakError
from funcgrad.staging.record import record
from funcgrad.staging.trace import RecordTrace

X = np.array([0.5, -1.0, 2.0])
M = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])


def names_of(program):
    return [equation.name for equation in program.equations]


def kinds_of(notes):
    return [note.what for note in notes]


def assert_same(got, want):
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        assert type(a) is type(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        assert_array_equal(a, b)


# Equations


def test_operations_are_recorded_in_order():
    program = fg.make_program(lambda x: np.sum(np.sin(x) * 2))(X)
    assert names_of(program) == ["sin", "multiply", "reduce_sum"]


def test_what_is_computed_of_constants_is_not_recorded():
    program = fg.make_program(lambda x: x + np.exp(np.ones(3)))(X)
    assert names_of(program) == ["add"]
    assert_array_equal(program.constants[0].value, np.exp(np.ones(3)))


def test_comparisons_and_positions_are_recorded():
    program = fg.make_program(lambda x: (x > 0, np.argmax(x), np.searchsorted(x, x[0])))(X)
    assert [var.dtype.kind for var in program.outputs] == ["b", "i", "i"]
    assert_same(program(-X), (-X > 0, np.argmax(-X), np.searchsorted(-X, -X[0])))


def test_integer_arrays_are_variables():
    program = fg.make_program(lambda x, i: x[i])(X, np.array([2, 0]))
    assert_array_equal(program(X, np.array([1, -1])), [-1.0, 2.0])


def test_an_index_out_of_bounds_is_an_error_elsewhere_too():
    program = fg.make_program(lambda x, i: np.stack([x, x])[:, i])(X, np.array([2, 0]))
    with pytest.raises(SpecialisedError, match="within bounds"):
        program(X, np.array([3, 0]))


def test_python_integers_are_static():
    program = fg.make_program(lambda x, n: x**n)(X, 3)
    assert len(program.inputs) == 1
    assert_array_equal(program(2 * X, 3), (2 * X) ** 3)
    with pytest.raises(SpecialisedError, match="n = 3, which is static, got 2"):
        program(X, 2)


def test_python_floats_stay_weak():
    def fun(x, s):
        return x * (s + 1.0), s > 0, s / 3

    x, s = X.astype(np.float32), 0.5
    program = fg.make_program(fun)(x, s)
    assert program.inputs[1].python is float
    assert_same(program(x, 0.25), fun(x, 0.25))


def test_item_assignment_is_recorded():
    def fun(x):
        y = np.zeros_like(x)
        y[1:] = x[:-1] * 2
        y[0] += x[2]
        return y

    program = fg.make_program(fun)(X)
    assert_array_equal(program(3 * X), fun(3 * X))


def test_assignment_into_an_array_of_integers_is_recorded():
    def fun(i):
        y = fnp.zeros(3, int)
        y[0] = i[1]
        return y

    assert_array_equal(fg.make_program(fun)(np.array([1, 2]))(np.array([5, 7])), [7, 0, 0])


def test_the_argument_out_is_recorded():
    def fun(x):
        y = np.empty_like(x)
        np.add(x, 1, out=y)
        np.multiply(y, x, out=y, where=x > 0)
        return y

    assert_array_equal(fg.make_program(fun)(X)(-X), fun(-X))


def test_a_mask_given_as_where_is_kept():
    mask = np.array([True, False, True])

    def fun(x):
        return np.exp(x, where=mask, out=np.zeros_like(x))

    want = fun(X)
    program = fg.make_program(fun)(X)
    mask[:] = False
    assert_array_equal(program(X), want)


def test_arguments_cannot_be_assigned_to():
    def fun(x):
        x[0] = 1.0

    with pytest.raises(MutationError, match="an argument of a transformed function"):
        fg.make_program(fun)(X)


def test_masks_select_as_many_elements_as_when_recorded():
    program = fg.make_program(lambda x, mask: x[mask] * 2)(X, X > 0)
    assert_array_equal(program(X, X < 1), [1.0, -2.0])
    with pytest.raises(SpecialisedError, match="nonzero"):
        program(X, X < 9)


def test_assignment_by_a_mask():
    def fun(x, mask):
        y = x.copy()
        y[mask] = 0
        z = x.copy()
        z[mask] = x[:2]
        return y, z

    program = fg.make_program(fun)(X, X > 0)
    assert_same(program(X, X < 1), fun(X, X < 1))


def test_random_keys_are_variables():
    def fun(key, scale):
        key, other = fg.random.split(key)
        return fg.random.normal(key, (2,)) * scale, fg.random.randint(other, (2,), 0, 9), other

    program = fg.make_program(fun)(fg.random.key(0), 2.0)
    got, want = program(fg.random.key(7), 3.0), fun(fg.random.key(7), 3.0)
    assert_same(got[:2], want[:2])
    assert got[2] == want[2]


def test_operations_know_the_line_of_the_user():
    program = fg.make_program(lambda x: np.sin(x))(X)
    assert str(program.equations[0].line).rpartition(":")[0].endswith("test_record.py")


def test_the_backward_pass_has_no_line():
    program = fg.make_program(fg.grad(lambda x: np.sum(np.sin(x))))(X)
    by_name = {equation.name: equation.line for equation in program.equations}
    assert by_name["sin"] is not None
    assert by_name["cos"] is None


def test_threads_record_by_themselves():
    found = {}

    def work(n):
        found[n] = fg.make_program(lambda x: x * n + n)(X)

    in_threads(4, work)
    assert all(names_of(found[n]) == ["multiply", "add"] for n in range(4))


def test_an_escaped_value_says_where_it_comes_from():
    kept = []
    fg.make_program(kept.append)(X)
    with pytest.raises(TracerLeakError, match="make_program"):
        np.sin(kept[0])


# Constants


def test_a_constant_used_twice_has_one_variable():
    weights = np.arange(5000.0)
    program = fg.make_program(lambda x: x * weights + weights)(1.0)
    assert len(program.constants) == 1


def test_small_constants_of_the_same_content_share_a_variable():
    program = fg.make_program(lambda x: x * np.ones(3) + np.ones(3))(X)
    assert len(program.constants) == 1


def test_a_constant_that_is_written_to_meanwhile_becomes_two():
    def fun(x):
        buffer = np.ones(3)
        y = x * buffer
        buffer[:] = 5.0
        return y + x * buffer

    assert_array_equal(fg.make_program(fun)(X)(X), 6 * X)


def test_a_program_keeps_its_constants():
    weights = np.ones(5000)
    program = fg.make_program(lambda x: x * weights)(2.0)
    weights[:] = 7.0
    assert_array_equal(program(2.0), np.full(5000, 2.0))


def test_results_share_no_memory_with_constants():
    weights = np.ones(3)
    program = fg.make_program(lambda x: (x, weights))(1.0)
    program(1.0)[1][:] = 9.0
    assert_array_equal(program(1.0)[1], np.ones(3))


# Notes


def test_a_branch_is_noted():
    def fun(x):
        return np.sin(x) if np.sum(x) > 0 else np.cos(x)

    program = fg.make_program(fun)(X)
    (note,) = program.notes
    assert (note.what, bool(note.value)) == ("the truth value", True)
    assert str(note.line).rpartition(":")[0].endswith("test_record.py")
    assert_array_equal(program(2 * X), np.sin(2 * X))
    with pytest.raises(SpecialisedError, match="the truth value, which was True"):
        program(-X)


@pytest.mark.parametrize("take", [float, int, complex, np.array, lambda x: x.item(), round])
def test_a_value_taken_out_is_noted(take):
    program = fg.make_program(lambda x: x * take(x[2]))(X)
    assert program.notes
    assert_array_equal(program(X), X * take(X[2]))
    with pytest.raises(SpecialisedError, match="specialised on"):
        program(X + 5)


def test_a_number_of_steps_is_noted():
    def fun(x, n):
        for _ in range(n):
            x = x * 2
        return x

    program = fg.make_program(fun)(X, np.int64(3))
    assert kinds_of(program.notes) == ["an index, a length or an axis"]
    assert_array_equal(program(X, np.int64(3)), 8 * X)
    with pytest.raises(SpecialisedError, match="which was 3 when it was recorded, and is 4"):
        program(X, np.int64(4))


def test_a_static_argument_that_is_traced_is_noted():
    program = fg.make_program(lambda x, axis: np.sum(x, axis))(M, np.int64(0))
    assert_array_equal(program(M, np.int64(0)), np.sum(M, 0))


def test_nothing_is_noted_of_a_plain_function():
    program = fg.make_program(lambda x: np.where(x > 0, np.max(x), x) + np.median(x))(X)
    assert program.notes == ()


def test_printing_is_not_noted(capsys):
    def fun(x):
        sys.stdout.write(f"{x[0]:.1f} {x}")
        return x

    assert fg.make_program(fun)(X).notes == ()
    assert capsys.readouterr().out.startswith("0.5 ")


def test_another_kind_of_recording_may_refuse():
    """What `jit` does."""

    class Refusing(RecordTrace):
        def look(self, tracer, what, *, library=False):
            raise TypeError(f"it depends on {what}")

    def fun(x):
        return x if x[0] > 0 else -x

    origin = Origin("jit", fun)
    with pytest.raises(TypeError, match="it depends on the truth value"):
        record(fun, (X,), {}, origin, Refusing(origin))


# Other transforms inside


def mlp(params, x, y):
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    return np.mean((hidden @ params["w2"] - y) ** 2)


def mlp_arguments(seed):
    rng = np.random.default_rng(seed)
    shapes = {"w1": (3, 4), "b1": (4,), "w2": (4, 2)}
    params = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return params, rng.normal(size=(5, 3)), rng.normal(size=(5, 2))


FUNCTIONS = {
    "where": lambda x: np.sum(np.where(x > 0, np.exp(x), x**2)),
    "max": lambda x: np.max(x) * np.min(x),
    "norm": lambda x: np.linalg.norm(x) ** 3,
    "indexing": lambda x: x[0] * x[-1] + np.sum(x[[0, 0, 2]] ** 2),
    "mask": lambda x: np.sum(x[np.array([True, False, True])] ** 3),
    "clip": lambda x: np.sum(np.clip(x, -0.8, 0.8) ** 2),
    "sort": lambda x: np.sum(np.sort(x) * np.array([1.0, 10.0, 100.0])),
    "prod": np.prod,
    "cumprod": lambda x: np.sum(np.cumprod(x)),
    "abs": lambda x: np.sum(np.abs(x) ** 1.5),
    "std": np.std,
    "var": np.var,
    "interp": lambda x: np.sum(np.interp(x, [-1.0, 0.0, 3.0], [0.0, 1.0, 5.0]) ** 2),
    "hypot": lambda x: np.hypot(x[0], x[1]) + np.arctan2(x[1], x[2]),
    "logsumexp": lambda x: np.logaddexp.reduce(x),
    "power": lambda x: np.sum(np.abs(x) ** x),
    "solve": lambda x: np.sum(np.linalg.solve(M, x) ** 2),
    "det": lambda x: np.linalg.det(M * x),
    "eigh": lambda x: np.linalg.eigvalsh(M + np.outer(x, x))[1],
    "assignment": lambda x: _assigned(x),
    "loop": lambda x: _looped(x),
}


def _assigned(x):
    y = np.zeros_like(x)
    y[1:] = x[:-1] ** 2
    y *= x
    return np.sum(y)


def _looped(x):
    total = x[0]
    for part in x:
        total = total * np.cos(part) + part
    return total


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_program_of_a_gradient_is_right_elsewhere(name):
    gradient = fg.grad(FUNCTIONS[name])
    program = fg.make_program(gradient)(X)
    for other in (X, X * 0.7 + 0.1, X[::-1].copy()):
        assert_allclose(program(other), gradient(other), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_program_of_a_gradient_is_right_at_ties(name):
    gradient = fg.grad(FUNCTIONS[name])
    program = fg.make_program(gradient)(X)
    tied = np.array([0.8, 0.8, 0.8])
    assert_allclose(program(tied), gradient(tied), rtol=1e-12, atol=1e-13)


def test_the_program_of_a_gradient_shows_the_backward_pass():
    program = fg.make_program(fg.grad(mlp))(*mlp_arguments(0))
    assert names_of(program).count("matmul") == 5  # two forward, and none for x
    assert [leaf.path for leaf in program.results] == ["['b1']", "['w1']", "['w2']"]


TRANSFORMED = {
    "value_and_grad": fg.value_and_grad(mlp),
    "vmap": fg.vmap(fg.grad(mlp), in_axes=(None, 0, 0)),
    "checkpoint": fg.grad(fg.checkpoint(mlp)),
    "jacfwd": fg.jacfwd(mlp),
    "hessian": fg.hessian(lambda x: mlp(*mlp_arguments(3)[:1], x, 0.0), argnums=0),
    "jvp": lambda *args: fg.jvp(mlp, args, mlp_arguments(5)),
    "linearize": lambda *args: fg.linearize(mlp, *args)[1](*mlp_arguments(5)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transforms_inside_are_recorded(name):
    fun = TRANSFORMED[name]
    arguments = (lambda seed: mlp_arguments(seed)[1:2]) if name == "hessian" else mlp_arguments
    program = fg.make_program(fun)(*arguments(0))
    got, want = program(*arguments(1)), fun(*arguments(1))
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        assert_array_equal(a, b)


def test_control_flow_is_unrolled():
    def fun(x):
        carry, ys = fg.scan(lambda c, row: (c * row, c + row), 1.0, x)
        return fg.cond(carry > 0, np.sin, np.cos, carry) + np.sum(ys)

    program = fg.make_program(fg.grad(fun))(X)
    assert_allclose(program(2 * X), fg.grad(fun)(2 * X), rtol=1e-15)
    assert names_of(fg.make_program(fun)(X)).count("multiply") == 3
    with pytest.raises(SpecialisedError):
        program(-X)


def test_a_callback_is_one_equation():
    fun = lambda x: fg.pure_callback(np.sinh, x, x) + 1  # noqa: E731
    program = fg.make_program(fun)(X)
    assert names_of(program) == ["sinh", "add"]
    assert_array_equal(program(2 * X), np.sinh(2 * X) + 1)


# Zero wins


def rooted(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0))


def test_a_gradient_that_relies_on_finite_values_says_so():
    program = fg.make_program(fg.grad(rooted))(np.abs(X))
    assert kinds_of(program.notes) == ["finite"]
    with pytest.raises(SpecialisedError, match="careful=True"):
        program(np.array([0.0, 1.0, 4.0]))


def test_with_care_zero_wins_everywhere():
    program = fg.make_program(fg.grad(rooted), careful=True)(np.abs(X))
    assert program.notes == ()
    assert_array_equal(program(np.array([0.0, 1.0, 4.0])), [0.0, 0.5, 0.25])


def test_a_gradient_recorded_where_it_needs_care_is_right_elsewhere():
    program = fg.make_program(fg.grad(rooted))(np.array([0.0, 1.0, 4.0]))
    assert_array_equal(program(np.array([0.0, 4.0, 0.0])), [0.0, 0.25, 0.0])
    assert_array_equal(program(np.array([1.0, 4.0, 16.0])), [0.5, 0.25, 0.125])


# Other transforms outside


def test_a_program_can_be_recorded_again():
    inner = fg.make_program(lambda x: np.sin(x) * 2)(X)
    outer = fg.make_program(lambda x: inner(x) + 1)(X)
    assert names_of(outer) == ["sin", "multiply", "add"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_has_the_derivatives_of_its_function(name):
    fun = FUNCTIONS[name]
    program = fg.make_program(fun)(X)
    assert_allclose(fg.grad(program)(X), fg.grad(fun)(X), rtol=1e-13)
    assert_allclose(fg.jacfwd(fg.grad(program))(X), fg.jacfwd(fg.grad(fun))(X), atol=1e-12)


def test_a_program_can_be_mapped():
    program = fg.make_program(mlp)(*mlp_arguments(0))
    params, x, y = mlp_arguments(1)
    xs = np.stack([x, 2 * x])
    got = fg.vmap(program, in_axes=(None, 0, None))(params, xs, y)
    assert_allclose(got, [mlp(params, x, y), mlp(params, 2 * x, y)], rtol=1e-14)


def test_a_run_inside_of_a_gradient_is_recorded():
    def fun(x):
        return fg.make_program(np.sin)(x * 2)(x * 2) * x

    assert_allclose(fg.grad(fun)(0.3), np.sin(0.6) + 0.3 * 2 * np.cos(0.6), rtol=1e-15)


def test_a_run_inside_of_vmap_is_recorded():
    def fun(x):
        return fg.make_program(lambda x: np.sum(x) * 2)(x)(x)

    assert_array_equal(fg.vmap(fun)(M), 2 * np.sum(M, 1))


# Functions with rules of their own


@fg.custom_vjp
def tamed(x):
    return 2 * np.sin(x)


tamed.defvjp(lambda x: (tamed(x), None), lambda _, bar: (np.clip(bar, -1, 1) * 10,))


@fg.custom_jvp
def tripled(x):
    return np.exp(x)


@tripled.defjvp
def tripled_jvp(primals, tangents):
    return tripled(primals[0]), 3 * tangents[0]


@pytest.mark.parametrize("fun", [tamed, tripled])
def test_a_program_keeps_derivative_rules(fun):
    program = fg.make_program(lambda x: np.sum(fun(x) * x))(X)
    want = fg.grad(lambda x: np.sum(fun(x) * x))
    assert_array_equal(fg.grad(program)(2 * X), want(2 * X))
    assert_array_equal(fg.vmap(fg.grad(program))(np.stack([X, -X])), np.stack([want(X), want(-X)]))


def test_derivative_rules_are_run_inside():
    gradient = fg.grad(lambda x: np.sum(tamed(x) ** 2))
    program = fg.make_program(gradient)(X)
    assert "clip" in names_of(program)
    assert_array_equal(program(3 * X), gradient(3 * X))


def test_a_program_keeps_batching_rules():
    @fg.custom_vmap
    def fun(x):
        return x * 2

    @fun.def_vmap
    def rule(axis_size, in_batched, x):
        return x * 3, True

    program = fg.make_program(lambda x: fun(x) + 1)(X)
    assert_array_equal(program(X), 2 * X + 1)
    assert_array_equal(fg.vmap(program)(M), 3 * M + 1)


def test_a_program_keeps_checkpoints():
    fun = fg.checkpoint(lambda x: np.tanh(np.exp(x)))
    program = fg.make_program(lambda x: np.sum(fun(x)))(X)
    (region,) = program.regions
    assert (region.start, region.stop) == (0, 2)
    _, pullback = fg.vjp(program, X)
    assert_allclose(pullback(1.0)[0], fg.grad(lambda x: np.sum(fun(x)))(X), rtol=1e-15)


def test_python_integers_can_be_variables():
    def fun(x, n, flag):
        return (x + n, n + 1) if flag else x

    program = fg.make_program(fun, integers=True)(X, 3, True)
    assert [var.python for var in program.inputs[1:]] == [int, bool]
    assert_same(program(X, 5, True), (X + 5, 6))
    with pytest.raises(SpecialisedError, match="the truth value"):
        program(X, 5, False)


def test_a_step_of_training_is_recorded():
    optimizer = fg.optim.adam(0.1)

    def step(params, state, x, y):
        value, gradient = fg.value_and_grad(mlp)(params, x, y)
        updates, state = optimizer.update(gradient, state, params)
        return fg.optim.apply_updates(params, updates), state, value

    params, x, y = mlp_arguments(0)
    state = optimizer.init(params)
    program = fg.make_program(step, integers=True)(params, state, x, y)
    for _ in range(3):
        got, want = program(params, state, x, y), step(params, state, x, y)
        for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
            assert type(a) is type(b)
            assert_allclose(a, b, rtol=1e-13)
        params, state, _ = want


def test_values_that_print_show_are_no_part_of_the_program():
    def fun(x):
        fg.debug.print("{}", x)
        return np.sin(x)

    assert names_of(fg.make_program(fun)(X)) == ["sin"]
