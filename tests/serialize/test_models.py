"""Modules, optimizer states and functions in files: a template is needed, and compared in full."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg
from funcgrad.errors import ArgumentError, TreeMismatchError
from funcgrad.serialize import FileFormatError
from funcgrad.serialize.archive import Archive, write_archive
from funcgrad.serialize.statics import function_name


def mlp(seed=0, activation=np.tanh, **options):
    return fg.nn.MLP(3, 2, 4, 1, activation, key=fg.random.key(seed), **options)


class Scale(fg.nn.Module):
    factor: float
    fun: object = fg.static(default=None)
    name: str = fg.static(default="scale")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


def there_and_back(value, path, template, **options):
    fg.save(path, value)
    return fg.load(path, template, **options)


def difference(value, path, template, **options):
    """Save one, load into the other, and return where the error says that they differ."""
    with pytest.raises(TreeMismatchError) as caught:
        there_and_back(value, path, template, **options)
    return caught.value.where


def relu(x):
    return np.maximum(x, 0)


# What comes back


@pytest.mark.parametrize("activation", [np.tanh, relu, lambda x: x, fg.nn.functional.gelu])
def test_module_with_a_function_comes_back(activation, path):
    assert there_and_back(mlp(1, activation), path, mlp(2, activation)) == mlp(1, activation)


def test_sequential_with_functions_among_its_layers_comes_back(path):
    def make(seed):
        k1, k2 = fg.random.split(fg.random.key(seed))
        return fg.nn.Sequential([fg.nn.Linear(2, 3, key=k1), relu, fg.nn.Linear(3, 1, key=k2)])

    assert there_and_back(make(1), path, make(2)) == make(1)


def test_model_with_state_comes_back(path):
    model, state = fg.nn.make_with_state(fg.nn.BatchNorm)(2)
    _, later = model(np.array([[1.0, 10.0], [3.0, 30.0]]), state)
    _, out = there_and_back((model, later), path, (model, state))
    assert_array_equal(out.get(model.running).mean, [2, 20])


@pytest.mark.parametrize(
    "optimizer",
    [
        fg.optim.adam(1e-2),
        fg.optim.chain(fg.optim.clip_by_global_norm(1.0), fg.optim.sgd(0.1, momentum=0.9)),
    ],
    ids=["adam", "chain"],
)
def test_state_of_an_optimizer_of_a_module_comes_back(optimizer, path):
    model = mlp()
    grads = fg.grad(lambda model, x: np.sum(model(x) ** 2))(model, np.ones(3))
    _, state = optimizer.update(grads, optimizer.init(model), model)
    out = there_and_back(state, path, optimizer.init(mlp(5)))
    assert fg.tree.structure(out) == fg.tree.structure(state)
    assert all(map(fg.tree.same, fg.tree.leaves(out), fg.tree.leaves(state)))


def test_all_of_a_training_state_comes_back(path):
    model = mlp()
    state = {
        "model": model,
        "key": fg.random.key(0),
        "step": 7,
        "run": "first",
        "done": False,
        "best": None,
        "rate": 0.5,
    }
    template = {
        **state,
        "model": mlp(3),
        "key": fg.random.key(9),
        "step": 0,
        "run": "",
        "rate": 0.0,
    }
    out = there_and_back(state, path, template)
    assert out["model"] == model
    assert (out["step"], out["run"], out["done"], out["rate"]) == (7, "first", False, 0.5)
    assert fg.random.normal(out["key"]) == fg.random.normal(fg.random.key(0))


def test_partly_filled_function_comes_back(path):
    fun = functools.partial(np.add, 2.0)
    assert there_and_back(Scale(1.0, fun), path, Scale(0.0, fun)).factor == 1.0


# What differs


def test_other_function_is_named(path):
    where = difference(mlp(), path, mlp(activation=relu))
    assert ".activation is numpy:tanh in the file" in where
    assert "test_models:relu in template" in where


def test_other_function_among_leaves_is_named(path):
    where = difference([np.tanh, 1.0], path, [np.sin, 1.0])
    assert "[0] is the function numpy:tanh in the file, the function numpy:sin in template" in where


def test_function_in_place_of_a_number_is_named(path):
    assert "[0] is the function numpy:tanh in the file, a Python float" in difference(
        [np.tanh], path, [1.0]
    )


def test_other_value_filled_in_is_a_difference(path):
    one, two = functools.partial(np.add, 1.0), functools.partial(np.add, 2.0)
    where = difference(Scale(1.0, one), path, Scale(1.0, two))
    assert '.fun is numpy:add, with [{"tuple": [1.0]}, {"dict": []}] in the file' in where


@pytest.mark.parametrize(
    ("saved", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ("a", "b"),
        ((1, 2), [1, 2]),
        ({"a": 1}, {"a": 2}),
        (np.float32, np.float64),
        (np.dtype("f4"), np.dtype("f8")),
        (np.array([1, 2]), np.array([1, 3])),
        (None, np.tanh),
        (len, "builtins:len"),
    ],
    ids=repr,
)
def test_other_static_value_is_a_difference(saved, other, path):
    assert ".fun is " in difference(Scale(1.0, saved), path, Scale(1.0, other))


@pytest.mark.parametrize(
    "value",
    [float("nan"), 2**80, b"\0", 1j, (1, [None, {"a": True}]), np.ones(3), np.float32, object()],
    ids=repr,
)
def test_equal_static_values_are_none(value, path):
    assert there_and_back(Scale(2.0, value), path, Scale(1.0, value)).factor == 2.0


def test_path_of_a_static_field_is_that_of_the_module(path):
    where = difference({"a": [Scale(1.0, None, "x")]}, path, {"a": [Scale(1.0, None, "y")]})
    assert "['a'][0].name is 'x' in the file, 'y' in template" in where


def test_not_strict_takes_the_static_fields_of_the_template(path):
    out = there_and_back(Scale(2.0, np.tanh), path, Scale(1.0, np.sin), strict=False)
    assert (out.factor, out.fun) == (2.0, np.sin)


def test_other_size_is_named(path):
    where = difference(mlp(), path, fg.nn.MLP(3, 2, 5, 1, np.tanh, key=fg.random.key(0)))
    assert ".layers[0].weight is float64[4,3] in the file, float64[5,3] in template" in where
    assert ".width_size is 4 in the file, 5 in template" in where


def test_other_dtype_is_named(path):
    where = difference(mlp(), path, mlp(dtype=np.float32))
    assert ".layers[0].weight is float64[4,3] in the file, float32[4,3] in template" in where


def test_missing_and_extra_layers_are_named(path):
    where = difference(mlp(), path, fg.nn.MLP(3, 2, 4, 2, np.tanh, key=fg.random.key(0)))
    assert "missing from the file: .layers[2].weight, .layers[2].bias" in where


def test_other_auxiliary_data_is_named(path):
    class Tagged:
        def __init__(self, x, tag):
            self.x, self.tag = x, tag

    fg.tree.register(Tagged, lambda t: ((t.x,), t.tag), lambda tag, xs: Tagged(xs[0], tag))
    where = difference([Tagged(1.0, "a")], path, [Tagged(1.0, "b")])
    assert "[0] (the auxiliary data) is 'a' in the file, 'b' in template" in where


def test_script_and_module_name_one_function(path):
    def made_in(module):
        def fun(x):
            return x

        fun.__module__ = module
        return fun

    for saved, template in [("__main__", "train"), ("train", "__main__")]:
        made = there_and_back(Scale(2.0, made_in(saved)), path, Scale(1.0, made_in(template)))
        assert made.factor == 2.0
    assert "train:" in difference(Scale(2.0, made_in("train")), path, Scale(1.0, made_in("other")))


def test_function_of_ours_may_move_to_another_file_of_its_package(path):
    def made_in(module):
        def relu(x):
            return x

        relu.__module__ = module
        return relu

    saved, wanted = (
        Scale(2.0, made_in("funcgrad.nn.before")),
        Scale(1.0, made_in("funcgrad.nn.now")),
    )
    assert there_and_back(saved, path, wanted).factor == 2.0
    other = difference(saved, path, Scale(1.0, made_in("funcgrad.random.now")))
    assert "funcgrad.nn:test_function" in other
    assert "funcgrad.random:test_function" in other


@pytest.mark.parametrize("name", fg.nn.functional.__all__)
def test_functions_of_ours_are_named_by_their_package(name):
    function = getattr(fg.nn.functional, name)
    assert function_name(function).rpartition(":")[0] == "funcgrad.nn"


# Without a template


def test_module_needs_a_template(path):
    fg.save(path, mlp())
    with pytest.raises(ArgumentError, match=r"instance of MLP.*\n.*\n.*template="):
        fg.load(path)


def test_function_needs_a_template(path):
    fg.save(path, {"f": [np.tanh]})
    with pytest.raises(ArgumentError, match="cannot make the function") as caught:
        fg.load(path)
    assert "['f'][0]" in caught.value.where


# Names


def test_names_may_be_a_dict(path):
    fg.save(path, {"w": np.ones(2), "b": 1.0})
    out = fg.load(path, {"weight": np.zeros(2), "b": 0.0}, names={"['weight']": "['w']"})
    assert_array_equal(out["weight"], [1, 1])
    assert out["b"] == 1.0


def test_names_may_be_a_function(path):
    fg.save(path, {"old_w": np.ones(2)})
    out = fg.load(path, {"w": np.zeros(2)}, names=lambda name: name.replace("['", "['old_"))
    assert_array_equal(out["w"], [1, 1])


def test_leaf_may_be_made_of_several(path):
    fg.save(path, {"a": np.ones(2), "b": np.full(2, 3.0)})
    names = {"['sum']": lambda file: file["['a']"] + file["['b']"]}
    assert_array_equal(fg.load(path, {"sum": np.zeros(2)}, names=names)["sum"], [4, 4])


def test_missing_name_is_named_with_its_path(path):
    fg.save(path, {"a": 1.0})
    with pytest.raises(TreeMismatchError) as caught:
        fg.load(path, {"x": 1.0}, names={"['x']": "['y']"})
    assert "missing from the file: ['x'] (\"['y']\" there); only in the file: ['a']" in str(
        caught.value
    )


def test_name_that_a_function_asks_for_is_named(path):
    fg.save(path, {"a": 1.0})
    with pytest.raises(TreeMismatchError, match=r"missing from the file: \['a'\] \('z' there\)"):
        fg.load(path, {"a": 1.0}, names={"['a']": lambda file: file["z"]})


def test_names_of_what_the_template_has_not(path):
    fg.save(path, {"a": 1.0})
    with pytest.raises(ArgumentError, match="names speaks of leaves") as caught:
        fg.load(path, {"a": 1.0}, names={"['b']": "['a']"})
    assert "['b']" in caught.value.where


def test_names_need_a_template(path):
    fg.save(path, {"a": 1.0})
    with pytest.raises(ArgumentError, match="there is none"):
        fg.load(path, names={"['b']": "['a']"})


# Files of strangers


@pytest.mark.parametrize(
    "node",
    [
        {"class": "a:B", "children": [[".factor", 1.0]], "static": 3},
        {"class": "a:B", "children": [[".factor", 1.0]], "static": [3]},
        {"class": "a:B", "children": [[".factor", 1.0]], "static": [[{}, 3]]},
        {"class": "a:B", "children": [[".factor", {"function": 3}]]},
    ],
    ids=repr,
)
def test_forged_static_fields_are_an_error_of_ours(node, path):
    write_archive(str(path), {"tree": node}, {})
    with pytest.raises(FileFormatError, match="is damaged"):
        fg.load(path, Scale(1.0))


def test_function_named_by_a_file_is_not_called(path):
    node = {"class": "a:B", "children": [[".factor", {"function": "os:abort"}]], "static": []}
    write_archive(str(path), {"tree": node}, {})
    with pytest.raises(TreeMismatchError, match="the function os:abort in the file"):
        fg.load(path, Scale(1.0))


def test_module_named_by_a_file_is_not_imported(path):
    import sys

    node = {"class": "turtledemo:X", "children": [[".factor", 1.0]]}
    node["static"] = [[".fun", {"function": "turtledemo.chaos:main"}], [".name", "scale"]]
    write_archive(str(path), {"tree": node}, {})
    with pytest.raises(TreeMismatchError, match=r"\.fun is turtledemo\.chaos:main"):
        fg.load(path, Scale(1.0))
    assert "turtledemo" not in sys.modules


def test_description_of_a_function_is_its_name(path):
    fg.save(path, Scale(1.0, np.tanh))
    with Archive(str(path)) as archive:
        static = archive.about["tree"]["static"]
    assert static == [[".fun", {"function": "numpy:tanh"}], [".name", "scale"]]
