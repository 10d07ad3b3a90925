"""check_leaks: traced values that are stored away, where, and the line that made them."""

import re
import sys
import warnings

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import debug
from funcgrad.errors import TracerLeakWarning

history = []
table = {}


class Model:
    last = None


class Slotted:
    __slots__ = ("kept",)


model, slotted = Model(), Slotted()


@pytest.fixture(autouse=True)
def _emptied():
    yield
    history.clear()
    table.clear()
    for holder, name in ((model, "last"), (Model, "last"), (slotted, "kept")):
        setattr(holder, name, None)


def leaks(fun, *args):
    """Return the messages of the warnings."""
    with warnings.catch_warnings(record=True, action="always") as caught, debug.check_leaks():
        fun(*args)
    assert all(warning.category is TracerLeakWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def stored(message):
    return re.search(r"stored in (.*)\n", message)[1]


def into_list(x):
    y = np.sin(x)  # made here
    history.append(y)
    return y**2


TRANSFORMS = {
    "grad": fg.grad,
    "vmap": lambda f: lambda x: fg.vmap(f)(np.full(3, x)),
    "jvp": lambda f: lambda x: fg.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: fg.vjp(f, x),
    "linearize": lambda f: lambda x: fg.linearize(f, x),
    "value_and_grad": fg.value_and_grad,
    "grad of a checkpoint": lambda f: fg.grad(fg.checkpoint(f)),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_each_transform_reports_the_holder_and_the_line(transform):
    (message,) = leaks(transform(into_list), 1.0)
    assert stored(message) == f"list in global `history` of {__name__}"
    line = into_list.__code__.co_firstlineno + 1
    assert re.search(rf"made by sin at \S*test_leaks\.py:{line}\n", message)
    assert "y = np.sin(x)  # made here" in message
    assert "funcgrad.debug.value(x)" in message


def test_names_the_transform():
    (message,) = leaks(fg.grad(into_list), 1.0)
    assert message.startswith("a value traced by grad(into_list) at ")
    assert "outlives it: float64[]" in message


def test_argument():
    def f(params):
        table["a"] = [params["w"]]
        return params["w"] ** 2

    (message,) = leaks(fg.grad(f), {"w": 3.0})
    assert stored(message) == f"list in dict in global `table` of {__name__}"
    assert "it is argument params at ['w'] of f" in message


def test_attribute_of_an_object():
    def f(x):
        model.last = x * 3
        return x

    (message,) = leaks(fg.grad(f), 1.0)
    assert stored(message) == f"attribute `last` of Model in global `model` of {__name__}"


def test_attribute_of_a_class():
    def f(x):
        Model.last = x * 3
        return x

    (message,) = leaks(fg.grad(f), 1.0)
    assert stored(message) == "attribute `last` of class Model"


def test_slot():
    def f(x):
        slotted.kept = x * 3
        return x

    (message,) = leaks(fg.grad(f), 1.0)
    assert stored(message) == f"attribute `kept` of Slotted in global `slotted` of {__name__}"


def test_variable_of_a_function_that_is_running():
    local = []

    def f(x):
        local.append(x**2)
        return x

    (message,) = leaks(fg.grad(f), 1.0)
    assert stored(message) == (
        "list in variable `local` of test_variable_of_a_function_that_is_running"
    )


def test_variable_that_a_function_closes_over():
    def f(x):
        y = x**2
        history.append(lambda: y)
        return x

    (message,) = leaks(fg.grad(f), 1.0)
    assert "variable `y` that <lambda> closes over in list in global `history`" in stored(message)


def test_many_values_are_counted():
    def f(x):
        history.extend(x * i for i in range(8))
        return x

    messages = leaks(fg.grad(f), 1.0)
    assert len(messages) == 6
    assert messages[-1].startswith("and more values traced by grad(f)")


def test_many_values_that_are_returned_are_not_reported():
    def f(x):
        return [x * i for i in range(2_000)]

    assert leaks(fg.vmap(f), np.ones(2)) == []


def test_warning_points_at_the_call():
    with warnings.catch_warnings(record=True, action="always") as caught, debug.check_leaks():
        fg.grad(into_list)(1.0)
    assert caught[0].filename == __file__


def clean(x):
    kept = [x, {"y": x * 2}]

    def inner(y):
        return y * x + kept[1]["y"]

    return fg.grad(inner)(2.0) + np.sum(kept[0]) + fg.scan(lambda c, _: (c * x, c), x, None, 3)[0]


NESTED = {
    **TRANSFORMS,
    "hessian": fg.hessian,
    "jacfwd": fg.jacfwd,
    "vmap of grad": lambda f: lambda x: fg.vmap(fg.grad(f))(np.full(3, x)),
    "pullback": lambda f: lambda x: fg.vjp(f, x)[1](1.0),
}


@pytest.mark.parametrize("transform", NESTED.values(), ids=NESTED)
def test_what_is_only_used_in_the_function_is_not_reported(transform):
    assert leaks(transform(clean), 1.5) == []


def test_returned_containers_are_not_reported():
    assert leaks(fg.vmap(lambda x: {"a": (x, [x * 2])}), np.ones(3)) == []
    assert leaks(fg.grad(lambda x: (x**2, {"aux": [x]}), has_aux=True), 1.0) == []


def test_stored_plain_values_are_not_reported():
    def f(x):
        history.append(fg.stop_gradient(x))
        table["x"] = debug.value(x)
        return x**2

    assert leaks(fg.grad(f), 1.0) == []


def test_nothing_is_reported_of_a_call_that_failed():
    def f(x):
        history.append(x)
        raise KeyError

    def call():
        with pytest.raises(KeyError):
            fg.grad(f)(1.0)

    assert leaks(call) == []


def test_outside_nothing_is_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fg.grad(into_list)(1.0)


def test_as_an_error_it_leaves_nothing_behind():
    big = np.ones(10_000)

    def f(x):
        history.append(x)
        return np.sum(x * big)

    with debug.check_leaks(), pytest.raises(TracerLeakWarning):
        fg.grad(f)(1.0)
    big[0] = 2.0  # is not held any more
    assert sys.exc_info() == (None, None, None)
    assert fg.grad(lambda x: x**2)(3.0) == 6.0


def test_an_operand_of_a_branch_that_only_some_examples_take():
    def store(x):
        history.append(x)
        return x

    found = leaks(fg.vmap(lambda x: fg.cond(x > 1.0, store, np.sin, x)), np.array([1.0, 2.0]))
    assert [stored(message) for message in found] == [f"list in global `history` of {__name__}"]


def test_what_a_stored_value_refers_to_is_not_reported_too():
    def objective(x):
        return fg.fixed_point(lambda y: history.append(y) or 0.5 * np.cos(x * y), 1.0)

    found = leaks(fg.grad(objective), 0.5)
    assert found
    assert {stored(message) for message in found} == {f"list in global `history` of {__name__}"}
