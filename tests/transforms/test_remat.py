"""checkpoint: nothing changes but what is kept, and what is kept is what the policy says."""

import functools
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.core.primitive import Primitive
from funcgrad.errors import ArgumentError
from funcgrad.transforms.custom import custom_vjp
from funcgrad.transforms.named_values import checkpoint_name
from funcgrad.transforms.remat import checkpoint, checkpoint_policies, remat

X = np.linspace(-1.0, 1.0, 3)
W = np.array([[0.5, -1.0, 0.2], [0.3, 0.8, -0.4], [1.0, 0.1, 0.6]])


def layers(x, w=W):
    """Return a few layers with views, a constant, a branch and an assignment among them."""
    for _ in range(2):
        h = np.tanh(w @ x)
        y = np.zeros_like(h)
        y[:2] = h[1:] * x[0]
        y[2] = np.sum(np.where(x > 0, x, 0.1 * x))
        x = y + np.sin(x)
    return x


def loss(x):
    return np.sum(layers(x) ** 2)


def forgetful_loss(x):
    return np.sum(checkpoint(layers)(x) ** 2)


def module_level(x):
    return np.sin(x)


# Nothing changes


def test_value_and_gradient_are_identical():
    value, gradient = fg.value_and_grad(forgetful_loss)(X)
    expected_value, expected = fg.value_and_grad(loss)(X)
    assert value == expected_value
    assert np.array_equal(gradient, expected)


TRANSFORMED = {
    "vjp": lambda f: fg.vjp(f, X)[1](1.0)[0],
    "jvp": lambda f: fg.jvp(f, (X,), (W[0],))[1],
    "linearize": lambda f: fg.linearize(f, X)[1](W[0]),
    "vmap": lambda f: fg.vmap(f)(W),
    "vmap of grad": lambda f: fg.vmap(fg.grad(f))(W),
    "grad of vmap": lambda f: fg.grad(lambda w: np.sum(fg.vmap(f)(w)))(W),
    "jacrev of vmap": lambda f: fg.jacrev(fg.vmap(f))(W),
    "reverse over reverse": lambda f: fg.jacrev(fg.grad(f))(X),
    "forward over reverse": lambda f: fg.jacfwd(fg.grad(f))(X),
    "reverse over forward": lambda f: fg.jacrev(fg.jacfwd(f))(X),
    "reverse over linearize": lambda f: fg.grad(lambda x: fg.linearize(f, x)[1](W[0]))(X),
    "hvp": lambda f: fg.hvp(f, (X,), (W[0],)),
    "third order": lambda f: fg.jacrev(fg.jacrev(fg.grad(f)))(X),
    "vmap of hessian": lambda f: fg.vmap(fg.hessian(f))(W),
    "hessian of vmap": lambda f: fg.hessian(lambda w: np.sum(fg.vmap(f)(w)))(W),
}
POLICIES = {
    "by default": None,
    "nothing": checkpoint_policies.nothing_saveable,
    "everything": checkpoint_policies.everything_saveable,
    "dots": checkpoint_policies.dots_saveable,
    "all but names": checkpoint_policies.save_anything_except_these_names("h"),
    "sums": lambda primitive, *args, **params: primitive.name == "reduce_sum",
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_every_transform(name):
    transformed = TRANSFORMED[name]
    assert_allclose(transformed(forgetful_loss), transformed(loss), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["vjp", "grad of vmap", "reverse over reverse"])
def test_every_policy(name, policy):
    inner = checkpoint(layers, policy=POLICIES[policy])
    transformed = TRANSFORMED[name]
    assert_allclose(
        transformed(lambda x: np.sum(inner(x) ** 2)), transformed(loss), rtol=1e-13, atol=1e-13
    )


@pytest.mark.parametrize("name", TRANSFORMED)
def test_nested_checkpoints(name):
    inner = checkpoint(layers)
    outer = checkpoint(lambda x: inner(inner(x)) * x)
    transformed = TRANSFORMED[name]
    assert_allclose(
        transformed(lambda x: np.sum(outer(x))),
        transformed(lambda x: np.sum(layers(layers(x)) * x)),
        rtol=1e-12,
        atol=1e-12,
    )


def test_gradient_of_what_is_closed_over():
    gradient = fg.grad(lambda w: np.sum(checkpoint(lambda x: layers(x, w))(X)))(W)
    assert np.array_equal(gradient, fg.grad(lambda w: np.sum(layers(X, w)))(W))


def test_closure_that_has_moved_on_when_the_backward_pass_comes():
    def chain(w, wrap):
        x = X
        for row in w:
            x = wrap(lambda x: np.tanh(row * x))(x)  # noqa: B023 - the late binding is the test
        return np.sum(x)

    expected = fg.grad(chain)(W, lambda f: f)
    assert np.array_equal(fg.grad(chain)(W, checkpoint), expected)


def test_random_numbers_are_not_drawn_again():
    generator = np.random.default_rng(0)
    drawn = []

    def dropout(x):
        drawn.append(generator.uniform(size=3))
        return x * drawn[-1] * x

    gradient = fg.grad(lambda x: np.sum(checkpoint(dropout)(x)))(X)
    assert np.array_equal(gradient, 2.0 * X * drawn[0])
    assert len(drawn) == 1


def test_value_that_escapes_from_the_function_still_has_its_gradient():
    kept = []

    def leaky(x):
        kept.append(np.sin(x))
        return kept[-1] ** 2

    def total(x):
        return checkpoint(leaky)(x) + kept[-1]

    assert_allclose(fg.grad(total)(1.0), 2.0 * np.sin(1.0) * np.cos(1.0) + np.cos(1.0))


def test_assignment_after_the_checkpoint():
    def assigned(x):
        y = np.zeros_like(x)
        y[0] = x[0] ** 2
        out = checkpoint(lambda z: z * y)(x)
        y[0] = 100.0
        return np.sum(out) + np.sum(y)

    assert np.array_equal(fg.grad(assigned)(np.array([3.0, 4.0])), [27.0, 0.0])


def test_constant_array_that_changes_before_the_backward_pass():
    buffer = np.array([1.0, 2.0, 3.0])

    def f(x):
        out = np.sum(checkpoint(lambda x: x**2 * buffer)(x))
        buffer[:] = 0.0
        return out

    assert np.array_equal(fg.grad(f)(np.ones(3)), [2.0, 4.0, 6.0])


def test_argument_of_vjp_that_changes_before_the_pullback():
    x = X.copy()
    _, pullback = fg.vjp(forgetful_loss, x)
    x[:] = 100.0
    assert np.array_equal(pullback(1.0)[0], fg.grad(loss)(X))


def test_pullback_many_times():
    _, pullback = fg.vjp(checkpoint(layers), X)
    expected = fg.jacrev(layers)(X)
    for _ in range(2):
        assert_allclose([pullback(row)[0] for row in np.eye(3)], expected, atol=1e-15)


def test_pytrees_and_other_leaves():
    @checkpoint
    def f(params, mode, *, scale):
        assert mode == "train"
        return {"y": params["w"] * scale, "n": 3, "mode": mode}

    gradient = fg.grad(lambda p: f(p, "train", scale=2.0)["y"] * 5.0)({"w": 1.0, "n": 7})
    assert gradient == {"w": 10.0, "n": None}


def test_function_with_a_rule_of_its_own():
    calls = []
    ruled = custom_vjp(np.sin)

    def fwd(x):
        calls.append("forward")
        return np.sin(x), x

    ruled.defvjp(fwd, lambda x, out_bar: (7.0 * x * out_bar,))
    f = checkpoint(lambda x: ruled(x) ** 2)
    assert_allclose(fg.grad(f)(2.0), 2.0 * np.sin(2.0) * 14.0)
    assert calls == ["forward"] * 2
    assert_allclose(fg.vmap(fg.grad(f))(X), 2.0 * np.sin(X) * 7.0 * X)
    over_batch = fg.grad(lambda x: np.sum(fg.vmap(f)(x)))(X)
    assert_allclose(over_batch, 2.0 * np.sin(X) * 7.0 * X)
    second = fg.grad(fg.grad(f))(2.0)
    assert_allclose(second, fg.grad(lambda x: 14.0 * np.sin(x) * x)(2.0))


def test_error_inside_leaves_no_trace():
    @checkpoint
    def fails(x):
        np.sin(x)
        raise KeyError("mine")

    def f(x):
        with pytest.raises(KeyError, match="mine"):
            fails(x)
        return checkpoint(module_level)(x)

    assert fg.grad(f)(1.0) == np.cos(1.0)


# What is done again, and what is kept


def counted():
    """Make an operation that counts how often it runs."""
    runs = []

    def forward(x):
        runs.append(1)
        return x * 2.0

    made = Primitive(forward, name="counted")
    made.def_vjp(lambda primals, out: lambda out_bar: 2.0 * out_bar)
    return made, runs


@pytest.mark.parametrize(
    ("policy", "times"),
    [
        (None, 2),
        (checkpoint_policies.nothing_saveable, 2),
        (checkpoint_policies.everything_saveable, 1),
        (lambda primitive, *args, **params: primitive.name == "counted", 1),
        (checkpoint_policies.dots_saveable, 2),
        (checkpoint_policies.save_only_these_names("h"), 1),
        (checkpoint_policies.save_only_these_names("other"), 2),
        (checkpoint_policies.save_anything_except_these_names("h"), 2),
        (checkpoint_policies.save_anything_except_these_names("other"), 1),
        (checkpoint_policies.save_any_names_but_these("h"), 2),
        (checkpoint_policies.save_any_names_but_these("other"), 1),
        (
            checkpoint_policies.save_from_both_policies(
                checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("h")
            ),
            1,
        ),
    ],
)
def test_how_often_an_operation_runs(policy, times):
    operation, runs = counted()

    @checkpoint(policy=policy)
    def f(x):
        return np.sin(checkpoint_name(operation.bind(np.exp(x)), "h"))

    assert_allclose(fg.grad(f)(0.5), np.cos(2.0 * np.exp(0.5)) * 2.0 * np.exp(0.5))
    assert len(runs) == times


def test_matrix_products_are_dots():
    seen = []

    def policy(primitive, *args, **params):
        if checkpoint_policies.dots_saveable(primitive, *args, **params):
            seen.append(primitive.name)
        return False

    fg.grad(lambda w: np.sum(checkpoint(lambda w: np.tanh(w @ X) + w.dot(X), policy=policy)(w)))(W)
    assert seen == ["matmul", "dot"]
    assert checkpoint_policies.checkpoint_dots is checkpoint_policies.dots_saveable


M, MANY = np.ones((3, 3)), np.ones((2, 3, 3))


@pytest.mark.parametrize(
    ("product", "kept"),
    [
        (lambda w: w @ M, True),
        (lambda w: MANY @ w, True),  # the same matrix for all
        (lambda w: MANY @ (MANY * w), False),
        (lambda w: np.tensordot(MANY, w, 1), True),
        (lambda w: np.matvec(w, MANY[0]), True),
        (lambda w: np.matvec(MANY * w, M[:2]), False),
        (lambda w: np.einsum("bij,jk->bik", MANY, w), True),
        (lambda w: np.einsum("bij,bjk->bik", MANY, MANY * w), False),
        (lambda w: np.einsum("bij,bjk->ik", MANY, MANY * w), True),  # summed over
        (lambda w: np.einsum("...ij,jk", MANY, w), True),
        (lambda w: np.einsum("...ij,...jk", MANY, MANY * w), False),
        (np.sin, False),
    ],
)
def test_products_of_many_matrices_with_many_are_not_kept(product, kept):
    asked = []

    def policy(primitive, *args, **params):
        keep = checkpoint_policies.dots_with_no_batch_dims_saveable(primitive, *args, **params)
        asked.append(keep)
        return keep

    fg.grad(lambda w: np.sum(checkpoint(product, policy=policy)(w)))(W)
    assert (True in asked) == kept


def test_policy_is_asked_with_the_arguments_of_the_operation():
    seen = {}

    def policy(primitive, *args, **params):
        seen[primitive.name] = [np.shape(arg) for arg in args]
        return False

    fg.grad(lambda w: np.sum(checkpoint(lambda w: w @ X, policy=policy)(w)))(W)
    assert seen == {"matmul": [(3, 3), (3,)]}


def test_function_runs_once_in_forward_mode_and_without_derivatives():
    runs = []

    @checkpoint
    def f(x):
        runs.append(1)
        return np.sin(x)

    f(1.0)
    fg.jvp(f, (1.0,), (1.0,))
    assert len(runs) == 2


MEMORY = """
import sys, tracemalloc
import numpy as np
import funcgrad as fg
from funcgrad.transforms.remat import checkpoint

w = 1.5 * np.linalg.qr(np.cos(np.arange(64.0)).reshape(8, 8))[0]
x = np.linspace(-1.0, 1.0, 8 * 20000).reshape(20000, 8)

def ten_layers(w, x):
    for _ in range(10):
        x = np.tanh(x @ w)
    return x

def loss(w, wrap):
    out = x
    for _ in range(10):
        out = wrap(ten_layers)(w, out)
    return np.sum(out * out)

def gradient(w, wrap):
    return fg.grad(loss)(w, wrap)

def second(w, wrap):
    return fg.grad(lambda w: np.sum(gradient(w, wrap) ** 2))(w)

for fun in (gradient, second):
    peaks, results = [], []
    for wrap in (lambda f: f, checkpoint):
        tracemalloc.start()
        results.append(fun(w, wrap))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    scale = np.abs(results[0]).max()
    print(peaks[1] / peaks[0], np.abs(results[1] - results[0]).max() / scale, scale)
"""


@pytest.fixture(scope="module")
def memory():
    done = subprocess.run(
        [sys.executable, "-c", MEMORY],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(fg.__file__).parents[1],
    )
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)


def test_peak_memory_of_a_chain_of_a_hundred_layers(memory):
    ratio, difference, scale = memory[0]
    assert ratio < 0.3
    assert difference < 1e-12  # the weights' cotangents are added in another order
    assert scale > 1.0


def test_peak_memory_of_the_second_derivative(memory):
    ratio, difference, _ = memory[1]
    assert ratio < 0.3
    assert difference < 1e-12


# The function


def test_remat_is_another_name():
    assert remat is checkpoint


def test_options_of_jax_are_taken():
    f = checkpoint(np.sin, prevent_cse=False, static_argnums=(1,))
    assert fg.grad(f)(0.0) == 1.0


def test_decorator_with_a_policy():
    @functools.partial(checkpoint, policy=checkpoint_policies.dots_saveable)
    def f(x):
        return np.sin(x)

    assert fg.grad(f)(0.0) == 1.0


def test_pickle():
    again = pickle.loads(pickle.dumps(checkpoint(module_level)))
    assert fg.grad(again)(0.0) == 1.0


def test_policy_that_is_no_function():
    with pytest.raises(ArgumentError, match="policy of checkpoint must be a function"):
        checkpoint(np.sin, policy="dots")


def test_name_outside_of_transforms_changes_nothing():
    assert checkpoint_name(X, "x") is X
    assert checkpoint_name({"a": 1.0, "b": "text"}, "x") == {"a": 1.0, "b": "text"}


def test_name_in_every_mode():
    def f(x):
        return np.sum(checkpoint_name(x**2, "square"))

    assert np.array_equal(fg.grad(f)(X), 2.0 * X)
    assert fg.jvp(f, (X,), (np.ones(3),))[1] == np.sum(2.0 * X)
    assert np.array_equal(fg.vmap(fg.grad(f))(W), 2.0 * W)


def test_name_that_is_no_string():
    with pytest.raises(ArgumentError, match="needs a string for a name"):
        checkpoint_name(X, 3)


@pytest.mark.parametrize(
    "make",
    [
        checkpoint_policies.save_only_these_names,
        checkpoint_policies.save_any_names_but_these,
        checkpoint_policies.save_anything_except_these_names,
    ],
)
def test_names_of_a_policy_are_strings(make):
    with pytest.raises(ArgumentError, match="takes names, which are strings, got list"):
        make(["h"])


def test_maker_of_a_policy_that_is_not_called():
    fun = checkpoint(np.sin, policy=checkpoint_policies.save_only_these_names)
    with pytest.raises(ArgumentError, match="save_only_these_names takes names"):
        fg.grad(fun)(1.0)
