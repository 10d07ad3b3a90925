"""What a compiled function closes over: that it has changed is noticed, however it is found."""

from __future__ import annotations

import functools
import gc
import types
import weakref

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import jit

TABLE = np.arange(3.0)
OPTIONS = {"scale": 2.0, "layers": [np.ones(3)]}
CONFIG = types.SimpleNamespace(rate=0.5)


def shift(x):
    return x + TABLE


def changed(compiled):
    return compiled.explain().removesuffix(", which the function closes over, has changed")


def test_a_global_of_a_function_that_is_called(monkeypatch):
    compiled = jit(lambda x: shift(x) * 2)
    np.testing.assert_array_equal(compiled(1.0), [2.0, 4.0, 6.0])
    monkeypatch.setitem(globals(), "TABLE", np.zeros(3))
    np.testing.assert_array_equal(compiled(1.0), [2.0, 2.0, 2.0])
    assert changed(compiled) == "TABLE"


def test_another_function_of_the_same_name(monkeypatch):
    compiled = jit(lambda x: shift(x))
    compiled(1.0)
    monkeypatch.setitem(globals(), "shift", lambda x: -x)
    assert compiled(1.0) == -1.0
    assert changed(compiled) == "shift"


def test_a_global_that_a_function_within_looks_up(monkeypatch):
    def fun(x):
        return sum([x * TABLE[i] for i in range(3)])

    compiled = jit(fun)
    assert compiled(1.0) == 3.0
    monkeypatch.setitem(globals(), "TABLE", np.ones(3) * 5)
    assert compiled(1.0) == 15.0


def test_an_element_of_a_dict_or_list(monkeypatch):
    compiled = jit(lambda x: x * OPTIONS["scale"] + OPTIONS["layers"][0])
    np.testing.assert_array_equal(compiled(1.0), [3.0, 3.0, 3.0])
    monkeypatch.setitem(OPTIONS, "scale", 4.0)
    np.testing.assert_array_equal(compiled(1.0), [5.0, 5.0, 5.0])
    assert changed(compiled) == "OPTIONS"
    monkeypatch.setitem(OPTIONS, "layers", [np.zeros(3)])
    np.testing.assert_array_equal(compiled(1.0), [4.0, 4.0, 4.0])
    OPTIONS["layers"][0] = np.ones(3)
    np.testing.assert_array_equal(compiled(1.0), [5.0, 5.0, 5.0])


def test_an_attribute_of_a_global_object(monkeypatch):
    compiled = jit(lambda x: x * CONFIG.rate)
    assert compiled(2.0) == 1.0
    monkeypatch.setattr(CONFIG, "rate", 3.0)
    assert compiled(2.0) == 6.0
    assert changed(compiled) == "CONFIG.rate"


def test_a_name_in_a_module(monkeypatch):
    module = types.ModuleType("settings")
    module.__file__ = "settings.py"
    module.GAIN = 2.0
    monkeypatch.setitem(globals(), "settings", module)
    compiled = jit(lambda x: x * settings.GAIN)  # noqa: F821 - set just above
    assert compiled(2.0) == 4.0
    module.GAIN = 5.0
    assert compiled(2.0) == 10.0
    assert changed(compiled) == "settings.GAIN"


class Model:
    gain = 1.0

    def __init__(self, scale):
        self.scale = scale

    def scaled(self, x):
        return x * self.scale * self.gain

    def __call__(self, x):
        return self.scaled(x) + 1.0

    @jit
    def compiled(self, x):
        return self.scaled(x)


@pytest.mark.parametrize("of", [lambda model: model, lambda model: model.scaled], ids=str)
def test_an_attribute_of_self(of):
    model = Model(2.0)
    compiled = jit(of(model))
    before = compiled(3.0)
    model.scale = 4.0
    assert compiled(3.0) == before + 6.0
    assert changed(compiled) == "self.scale"


def test_an_attribute_of_self_where_that_is_an_argument():
    one, other = Model(2.0), Model(3.0)
    assert [one.compiled(1.0), other.compiled(1.0)] == [2.0, 3.0]
    one.scale = 5.0
    assert [one.compiled(1.0), other.compiled(1.0)] == [5.0, 3.0]
    other.scale = 7.0
    assert [one.compiled(1.0), other.compiled(1.0)] == [5.0, 7.0]


def test_an_attribute_of_the_class(monkeypatch):
    model = Model(2.0)
    compiled = jit(model.scaled)
    assert compiled(1.0) == 2.0
    monkeypatch.setattr(Model, "gain", 3.0)
    assert compiled(1.0) == 6.0


def test_a_model_in_a_closure():
    model = Model(2.0)
    compiled = jit(lambda x: model(x))
    assert compiled(1.0) == 3.0
    model = Model(5.0)
    assert compiled(1.0) == 6.0
    assert changed(compiled) == "model"


def test_a_default_argument():
    def fun(x, scale=2.0):
        return x * scale

    compiled = jit(fun)
    assert compiled(1.0) == 2.0
    fun.__defaults__ = (3.0,)
    assert compiled(1.0) == 3.0
    assert changed(compiled) == "the defaults of fun"


def test_closures_of_closures():
    scale = np.ones(2)

    def outer():
        def inner(x):
            return x * scale

        return inner

    inner = outer()
    compiled = jit(fg.grad(lambda x: np.sum(inner(x))))
    assert compiled(1.0) == 2.0
    scale = np.ones(3)
    assert compiled(1.0) == 3.0
    assert changed(compiled) == "scale"


def test_partial_of_a_function():
    scale = 2.0

    def fun(y, x):
        return x * y * scale

    compiled = jit(functools.partial(fun, 3.0))
    assert compiled(1.0) == 6.0
    scale = 5.0
    assert compiled(1.0) == 15.0


def test_gradients_of_jitted_functions_notice_too():
    scale = 2.0
    compiled = jit(lambda x: x * x * scale)
    slope = fg.grad(compiled)
    assert slope(1.0) == 4.0
    scale = 5.0
    assert slope(1.0) == 10.0


def test_what_stays_the_same_is_not_compiled_for():
    runs = []

    def fun(x):
        runs.append(1)
        return shift(x) * OPTIONS["scale"] * CONFIG.rate * np.pi

    compiled = jit(fun)
    for x in (1.0, 2.0, 3.0):
        compiled(x)
    assert len(runs) == 1


def test_a_model_that_is_an_argument_is_not_kept():
    compiled = jit(lambda model, x: np.sum(model.weight @ x) + np.sum(model.bias))
    model = fg.nn.Linear(3, 2, key=fg.random.key(0))
    compiled(model, np.ones(3))
    ref = weakref.ref(model)
    del model
    gc.collect()
    assert ref() is None


class Inner:
    scale = 1.0


class Outer:
    factor = 2.0

    def __init__(self):
        self.rows = [1.0]
        self.inner = Inner()
        self.weight = 3.0

    def by_rows(self, x):
        return x * self.rows[0]

    def by_factor(self, x):
        return x * self.factor

    def by_inner(self, x):
        return x * self.inner.scale

    @property
    def twice(self):
        return self.weight * 2

    def __call__(self, x):
        return x * self.weight


def by_methods(it):
    return {
        "list": lambda x: it.by_rows(x),
        "attribute of an attribute": lambda x: it.by_inner(x),
        "attribute": lambda x: it.by_factor(x),
        "property": lambda x: it.twice * x,
        "call": lambda x: it(x),
    }


@pytest.mark.parametrize(
    ("name", "change", "before", "after"),
    [
        ("list", lambda it: it.rows.__setitem__(0, 5.0), 1.0, 5.0),
        ("attribute of an attribute", lambda it: setattr(it.inner, "scale", 4.0), 1.0, 4.0),
        ("attribute", lambda it: setattr(it, "factor", 7.0), 2.0, 7.0),
        ("property", lambda it: setattr(it, "weight", 4.0), 6.0, 8.0),
        ("call", lambda it: setattr(it, "weight", 4.0), 3.0, 4.0),
    ],
)
def test_what_a_method_of_an_object_looks_up(name, change, before, after):
    it = Outer()
    compiled = fg.jit(by_methods(it)[name])
    assert compiled(1.0) == before
    change(it)
    assert compiled(1.0) == after


def test_an_attribute_of_a_class():
    class Own(Outer):
        pass

    it = Own()
    by_method, by_name = fg.jit(lambda x: it.by_factor(x)), fg.jit(lambda x: x * Own.factor)
    assert (by_method(1.0), by_name(1.0)) == (2.0, 2.0)
    Own.factor = 3.0
    assert (by_method(1.0), by_name(1.0)) == (3.0, 3.0)


class Part:
    scale = 1.0


TABLE_OF_PARTS = {"a": Part()}
NAME_OF_PART = "a"


def test_an_attribute_of_an_element_by_a_constant_or_a_name_outside():
    parts, place = [Part(), Part()], 1
    for fun, part in (
        (lambda x: x * TABLE_OF_PARTS["a"].scale, TABLE_OF_PARTS["a"]),
        (lambda x: x * TABLE_OF_PARTS[NAME_OF_PART].scale, TABLE_OF_PARTS["a"]),
        (lambda x: x * parts[0].scale, parts[0]),
        (lambda x: x * parts[place].scale, parts[1]),
    ):
        part.scale = 2.0
        compiled = jit(fun)
        assert compiled(1.0) == 2.0
        part.scale = 3.0
        assert compiled(1.0) == 3.0
        assert changed(compiled).endswith("].scale")


def test_an_attribute_of_an_element_that_is_gone():
    parts = {"a": Part()}
    compiled = jit(lambda x: x * parts["a"].scale)
    assert compiled(1.0) == 1.0
    del parts["a"]
    with pytest.raises(KeyError):
        compiled(1.0)


def test_a_set():
    known = {1}
    compiled = jit(lambda x: x * (2.0 if 2 in known else 3.0))
    assert compiled(1.0) == 3.0
    known.add(2)
    assert compiled(1.0) == 2.0
    assert changed(compiled) == "known"


def test_arguments_of_partial():
    def fun(rows, config, x):
        return x * rows[0] * config.scale

    rows, config = [1.0], Part()
    compiled = jit(functools.partial(fun, rows, config))
    assert compiled(1.0) == 1.0
    rows[0] = 4.0
    assert compiled(1.0) == 4.0
    config.scale = 2.0
    assert compiled(1.0) == 8.0


def test_keyword_arguments_of_partial():
    def fun(x, *, rows):
        return x * rows[0]

    rows = [1.0]
    compiled = jit(functools.partial(fun, rows=rows))
    assert compiled(1.0) == 1.0
    rows[0] = 4.0
    assert compiled(1.0) == 4.0
