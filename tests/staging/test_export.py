"""`export`: the module it writes needs NumPy alone, gives the same, and refuses what differs."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from recorded import in_threads

import funcgrad as fg
from funcgrad.errors import ArgumentError

RNG = np.random.default_rng(0)
# Runs the function of a module in a process that has no funcgrad.
RUNNER = """
import importlib.util, pickle, sys

sys.modules["funcgrad"] = None
path, name, given, found = sys.argv[1:]
spec = importlib.util.spec_from_file_location("exported", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
with open(given, "rb") as file:
    calls = pickle.load(file)
with open(found, "wb") as file:
    pickle.dump([getattr(module, name)(*args, **kwargs) for args, kwargs in calls], file)
assert "scipy" not in sys.modules
"""


def loaded(path):
    """Return a module by its path."""
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(path, name, *calls):
    """Call the function of a module in another process; each call is ``(args, kwargs)``."""
    given, found = path.with_name("given.pickle"), path.with_name("found.pickle")
    given.write_bytes(pickle.dumps(calls))
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, str(path), name, str(given), str(found)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return pickle.loads(found.read_bytes())


def assert_same(got, want):
    got, treedef = fg.tree.flatten(got)
    want, want_treedef = fg.tree.flatten(want)
    assert treedef == want_treedef
    for a, b in zip(got, want, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def loss(params, x, y):
    hidden = np.tanh(x @ params["w"] + params["b"])
    return np.mean((hidden - y) ** 2) + np.sum(np.sqrt(np.abs(params["w"])))


PARAMS = {"w": RNG.normal(size=(4, 3)), "b": np.zeros(3)}
X, Y = RNG.normal(size=(8, 4)), RNG.normal(size=(8, 3))


def test_it_gives_the_same_where_there_is_no_funcgrad(tmp_path):
    step = fg.value_and_grad(loss)
    path = fg.export(step, PARAMS, X, Y, path=tmp_path / "step.py")
    others = {"w": PARAMS["w"] * 2, "b": PARAMS["b"] + 1}
    found = results(path, "loss", ((PARAMS, X, Y), {}), ((others,), {"y": Y, "x": X}))
    assert_same(found, [step(PARAMS, X, Y), step(others, X, Y)])


def test_where_derivatives_are_not_finite_it_gives_those_of_the_function(tmp_path):
    step = fg.value_and_grad(loss)
    path = fg.export(step, PARAMS, X, Y, path=tmp_path / "step.py")
    kinked = {"w": PARAMS["w"] * (PARAMS["w"] > 0), "b": PARAMS["b"]}
    (found,) = results(path, "loss", ((kinked, X, Y), {}))
    assert_same(found, step(kinked, X, Y))
    assert np.all(np.isfinite(found[1]["w"]))


def test_a_training_step_goes_on_by_itself(tmp_path):
    optimizer = fg.optim.adam(1e-2)

    @fg.jit
    def train(params, state, x, y):
        value, slope = fg.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(slope, state, params)
        return fg.optim.apply_updates(params, updates), state, value

    params, state = PARAMS, optimizer.init(PARAMS)
    path = fg.export(train, params, state, X, Y, path=tmp_path / "train.py")
    module = loaded(path)
    got = params, state
    for _ in range(3):
        *got, value = module.train(*got, X, Y)
        params, state, want = train(params, state, X, Y)
        assert value == want
    for a, b in zip(fg.tree.leaves(got[0]), fg.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_model_is_taken_by_its_attributes_and_comes_back_as_a_namespace(tmp_path):
    model = fg.nn.Linear(4, 3, key=fg.random.key(0))

    def slope(model, x):
        return fg.grad(lambda model: np.sum(model(x) ** 2))(model)

    path = fg.export(slope, model, X, path=tmp_path / "slope.py")
    got, want = loaded(path).slope(model, X), slope(model, X)
    np.testing.assert_array_equal(got.weight, want.weight)
    np.testing.assert_array_equal(got.bias, want.bias)
    again = loaded(path).slope(got, X)
    np.testing.assert_array_equal(again.weight, slope(want, X).weight)


class Point(NamedTuple):
    x: object
    y: object


def test_named_tuples_stay_named_tuples(tmp_path):
    path = fg.export(lambda p: Point(p.y, (p.x, None)), Point(X, 1.0), path=tmp_path / "swap.py")
    out = loaded(path).function(Point(X, 2.0))
    assert type(out).__name__ == "Point"
    assert out.x == 2.0
    np.testing.assert_array_equal(out.y[0], X)
    assert out.y[1] is None


def test_random_keys_are_given_by_their_data(tmp_path):
    def draw(key):
        key, other = key.split()
        return other.normal((3,)), key

    path = fg.export(draw, fg.random.key(0), path=tmp_path / "draw.py")
    ((values, key),) = results(path, "draw", ((fg.random.key_data(fg.random.key(5)),), {}))
    want, want_key = draw(fg.random.key(5))
    np.testing.assert_array_equal(values, want)
    np.testing.assert_array_equal(key, fg.random.key_data(want_key))


def test_arguments_of_any_number_and_by_name(tmp_path):
    def total(*xs, scale):
        return sum(xs) * scale

    path = fg.export(total, X, X, scale=2.0, path=tmp_path / "total.py")
    module = loaded(path)
    np.testing.assert_array_equal(module.total(X, X + 1, scale=3), (X + (X + 1)) * 3.0)
    with pytest.raises(ValueError, match="xs must have 2 elements, got 1"):
        module.total(X, scale=1.0)


def test_numbers_keep_their_type(tmp_path):
    path = fg.export(lambda x, n: x * n, np.ones(3, np.float32), 2.0, path=tmp_path / "f.py")
    function = loaded(path).function
    assert function(np.ones(3, np.float32), 3).dtype == np.float32
    assert function(np.ones(3, np.float32), np.float64(3)).dtype == np.float32
    with pytest.raises(TypeError, match="n must be a number, float, got complex"):
        function(np.ones(3, np.float32), 3j)


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((PARAMS, X[:2], Y), ValueError, r"x must be float64\[8,4\], got float64\[2,4\]"),
        (
            (PARAMS, X.astype(np.float32), Y),
            TypeError,
            r"x must be float64\[8,4\], got float32\[8,4\]",
        ),
        ((PARAMS, X.tolist(), Y), TypeError, "x must be an array, .*, got list"),
        (({"w": PARAMS["w"]}, X, Y), ValueError, r"params misses \['b'\]"),
        (({**PARAMS, "c": 1.0}, X, Y), ValueError, r"params has \['c'\] besides"),
        (([1, 2], X, Y), TypeError, "params must be a dict, got list"),
        (({**PARAMS, "b": np.zeros(4)}, X, Y), ValueError, r"params\['b'\] must be float64\[3\]"),
    ],
)
def test_other_arguments_are_errors_that_name_the_leaf(args, error, words, tmp_path):
    path = fg.export(loss, PARAMS, X, Y, path=tmp_path / "loss.py")
    with pytest.raises(error, match=words):
        loaded(path).loss(*args)


def test_static_arguments_are_fixed(tmp_path):
    def power(x, n, mode):
        return x**n if mode == "power" else x

    compiled = fg.jit(power, static_argnames="n")
    path = fg.export(compiled, X, 3, "power", path=tmp_path / "power.py")
    module = loaded(path)
    np.testing.assert_array_equal(module.power(X, 3, "power"), X**3)
    with pytest.raises(ValueError, match="n must be 3, for which this was made, got 4"):
        module.power(X, 4, "power")
    with pytest.raises(ValueError, match="mode must be 'power'"):
        module.power(X, 3, "none")


def test_another_way_than_was_recorded_is_an_error(tmp_path):
    compiled = fg.jit(lambda x, axis: np.sum(x, axis))
    path = fg.export(compiled, X, 0, path=tmp_path / "total.py")
    function = loaded(path).function
    np.testing.assert_array_equal(function(X, 0), np.sum(X, 0))
    with pytest.raises(ValueError, match="takes another way for these values"):
        function(X, 1)
    assert "It holds as long as" in path.read_text()


def test_large_constants_are_beside_the_module(tmp_path):
    table = RNG.normal(size=(40, 50))
    folded, small = np.asfortranarray(table), np.arange(3.0)

    def scaled(x):
        return x * table, np.sum(folded, axis=0), np.sum(np.transpose(folded) * x), small

    path = fg.export(scaled, 2.0, path=tmp_path / "scaled.py")
    (file,) = tmp_path.glob("*.npz")
    assert file.name in path.read_text()
    (found,) = results(path, "scaled", ((3.0,), {}))
    assert_same(found, scaled(3.0))
    assert len(path.read_text()) < 8000


def test_exporting_again_keeps_one_file_of_constants(tmp_path):
    for value in (1.0, 2.0):
        table = RNG.normal(size=500) * value
        fg.export(lambda x, table=table: x * table, 1.0, path=tmp_path / "f.py")
    assert len(list(tmp_path.glob("*.npz"))) == 1
    np.testing.assert_array_equal(loaded(tmp_path / "f.py").function(1.0), table)


def test_the_text_is_the_same_each_time(tmp_path):
    table = RNG.normal(size=500)

    def fun(x):
        return x * table

    first = fg.export(fun, 1.0, path=tmp_path / "f.py").read_text()
    assert fg.export(fun, 2.0, path=tmp_path / "f.py").read_text() == first


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    path = fg.export(loss, PARAMS, X, Y, path=tmp_path / "loss.py")
    before = path.read_text()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fg.export(fg.grad(loss), PARAMS, X, Y, path=path)
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["loss.py"]


def test_results_are_fresh(tmp_path):
    table = np.ones(3)
    path = fg.export(lambda x: (x, table, x * 2), np.zeros(3), path=tmp_path / "f.py")
    function, x = loaded(path).function, np.zeros(3)
    for out in function(x):
        out[...] = 5.0
    np.testing.assert_array_equal(x, np.zeros(3))
    np.testing.assert_array_equal(function(x)[1], np.ones(3))


def test_threads_do_not_meet_in_it(tmp_path):
    path = fg.export(fg.grad(loss), PARAMS, X, Y, path=tmp_path / "slope.py")
    function, slope, failed = loaded(path).loss, fg.grad(loss), []

    def work(i):
        params = {"w": PARAMS["w"] + i, "b": PARAMS["b"]}
        want = slope(params, X, Y)
        for _ in range(20):
            if not np.array_equal(function(params, X, Y)["w"], want["w"]):
                failed.append(i)

    in_threads(8, work)
    assert not failed


def test_what_calls_back_is_refused(tmp_path):
    def mine(x):
        return x

    def fun(x):
        return fg.pure_callback(mine, fg.ShapeDtypeStruct((3,), np.float64), x)

    with pytest.raises(ArgumentError, match=r"fun cannot be exported: .*mine"):
        fg.export(fun, np.ones(3), path=tmp_path / "f.py")
    assert not list(tmp_path.iterdir())


def test_traced_arguments_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="export needs plain arguments"):
        fg.grad(lambda x: fg.export(np.sin, x, path=tmp_path / "f.py"))(1.0)


def test_explain_does_not_speak_of_export(tmp_path):
    compiled = fg.jit(loss)
    fg.export(compiled, PARAMS, X, Y, path=tmp_path / "loss.py")
    assert compiled.explain() == "it has not been called"


def test_large_results_that_somebody_holds_stay(tmp_path):
    def fun(x):
        y = np.sin(x) * 2
        return y + x, np.cos(y)

    x = RNG.normal(size=1 << 16)
    function = loaded(fg.export(fun, x, path=tmp_path / "f.py")).fun
    held, places = [], set()
    for i in range(6):
        held.append([part[::2] for part in function(x * i)])  # views count
    for i, parts in enumerate(held):
        for part, want in zip(parts, fun(x * i), strict=True):
            np.testing.assert_array_equal(part, want[::2])
    held.clear()
    del parts, part
    for _ in range(8):
        x, _ = function(x)
        places.add(x.__array_interface__["data"][0])
    assert len(places) <= 3


def test_loops_and_branches_are_in_the_module(tmp_path):
    def fun(x, ys):
        def step(c, y):
            return np.tanh(c + y), fg.cond(y > 0, np.square, np.negative, c)

        last, rows = fg.scan(step, x, ys)
        return np.sum(last) + np.sum(rows)

    ys = RNG.normal(size=20)
    slope = fg.value_and_grad(fun)
    path = fg.export(slope, 0.3, ys, path=tmp_path / "fun.py")
    found = results(path, "fun", ((0.3, ys), {}), ((-0.7, -ys), {}))
    for got, want in zip(found, [slope(0.3, ys), slope(-0.7, -ys)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_convolutions_and_softmax_are_in_the_module(tmp_path):
    model = fg.nn.Conv2d(1, 4, 3, key=fg.random.key(0))

    def fun(model, x):
        return np.sum(fg.nn.functional.log_softmax(model(x), axis=1) ** 2)

    x = RNG.normal(size=(2, 1, 8, 8))
    slope = fg.value_and_grad(fun)
    value, grads = loaded(fg.export(slope, model, x, path=tmp_path / "fun.py")).fun(model, x)
    want, want_grads = slope(model, x)
    assert value == want
    np.testing.assert_array_equal(grads.weight, want_grads.weight)


@pytest.mark.parametrize("name", ["np", "Memory", "NotFinite", "tuple"])
def test_a_function_does_not_hide_what_the_module_uses(name, tmp_path):
    def fun(x):
        return np.sin(x)

    fun.__name__ = name
    module = loaded(fg.export(fun, np.ones(3), path=tmp_path / "named.py"))
    np.testing.assert_array_equal(getattr(module, f"{name}_")(np.ones(3)), np.sin(np.ones(3)))


def test_an_argument_that_would_hide_what_the_module_uses_is_named(tmp_path):
    def fun(NotFinite):
        return np.sum(np.sin(NotFinite))

    with pytest.raises(ArgumentError, match="give the argument another name: NotFinite_"):
        fg.export(fg.grad(fun), np.ones(3), path=tmp_path / "named.py")


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "nowhere" / "fun.py"
    with pytest.raises(FileNotFoundError, match=r"there is no such folder.*nowhere"):
        fg.export(np.sin, np.ones(3), path=path)
