"""Every name that autograd differentiates or JAX has: under grad, jvp and vmap.

The lists are in `tests/names`, and so is a call of each function; that coverage does not shrink is
what this file is for. Values and derivatives are checked more closely by the laws of the rules.
"""

import importlib
import warnings
from pathlib import Path

import numpy as np
import pytest
from calls import CALLS, IN_PLACE, LEFT_OUT
from numpy.testing import assert_allclose
from table import written

import funcgrad as fg
from funcgrad import tree
from funcgrad.core.level import TracerBase
from funcgrad.testing import check_grads

HERE = Path(__file__).parent

LISTS = {
    name: (HERE / "names" / f"{name}.txt").read_text().split() for name in ("autograd", "jax_numpy")
}


def found(name):
    """Return the function of that name, or None where this NumPy or SciPy has none."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for part in parts[count:]:
                value = getattr(value, part, None)
        return value
    return None


def functions(name):
    """Yield our function, and NumPy's or SciPy's own where that takes traced values."""
    theirs = found(name)
    if theirs is None:
        return
    yield found(f"funcgrad.{name}")
    if CALLS[name].plain:
        yield theirs


class Function:
    """A call as a function of the floating arrays in it."""

    def __init__(self, name, fun):
        self.name = name
        self.call = CALLS[name]
        self.fun = fun
        self.leaves, self.treedef = tree.flatten((list(self.call.args), self.call.kwargs))
        self.places = [
            place
            for place, leaf in enumerate(self.leaves)
            if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "fc"
        ]
        self.values = tuple(self.leaves[place] for place in self.places)

    def result(self, *values):
        if self.call.symmetric:
            values = [(x + np.swapaxes(x, -1, -2)) / 2 if np.ndim(x) > 1 else x for x in values]
        leaves = list(self.leaves)
        for place, value in zip(self.places, values, strict=True):
            leaves[place] = value
        args, kwargs = tree.unflatten(self.treedef, leaves)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if self.name in IN_PLACE:
                y = args[0].copy()
                self.fun(y, *args[1:], **kwargs)
                return y
            if self.name in ("numpy.c_", "numpy.r_"):
                return self.fun[tuple(args)]
            if self.name == "numpy.intersect1d":
                return self.fun(args[0], args[0])
            if self.name == "numpy.vectorize":
                return self.fun(args[0])(*args[1:])
            if self.name == "numpy.frompyfunc":
                return self.fun(args[0], 1, 1)(*args[1:])
            return self.fun(*args, **kwargs)

    def __call__(self, *values):
        out = self.result(*values)
        return out if self.call.part is None else self.call.part(out)

    def floating(self, *values):
        return [
            leaf
            for leaf in tree.leaves(self(*values))
            if isinstance(leaf, np.ndarray | np.generic | TracerBase) and leaf.dtype.kind in "fc"
        ]


def of_kind(*kinds):
    return [name for name in sorted(CALLS) if CALLS[name].kind in kinds]


@pytest.mark.parametrize("name", [name for names in LISTS.values() for name in names])
def test_every_name_of_the_lists_has_a_call_or_a_reason(name):
    assert (name in CALLS) != (name in LEFT_OUT)


def test_few_names_are_left_out():
    assert not set(LISTS["autograd"]) & set(LEFT_OUT)
    assert len(LEFT_OUT) < 0.05 * len(LISTS["jax_numpy"])


def test_the_table_in_the_docs_is_up_to_date():
    path = HERE.parent / "docs" / "support.md"
    assert path.read_text(encoding="utf-8") == written(), "run python tests/names/table.py"


@pytest.mark.parametrize("name", of_kind("smooth"))
def test_derivatives_in_both_modes(name):
    for fun in functions(name):
        function = Function(name, fun)
        assert function.floating(*function.values)
        check_grads(function.floating, function.values, order=1)


@pytest.mark.parametrize("name", of_kind("smooth"))
def test_gradient(name):
    """The gradient of a sum is that of plain differences."""
    for fun in functions(name):
        function = Function(name, fun)

        def total(*values, function=function):
            return sum(np.sum(np.real(out)) for out in function.floating(*values))

        gradients = fg.grad(total, argnums=tuple(range(len(function.values))))(*function.values)
        _, slope = fg.jvp(total, function.values, function.values)
        inner = sum(np.sum(np.real(g * x)) for g, x in zip(gradients, function.values, strict=True))
        assert_allclose(inner, slope, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in of_kind("smooth", "discrete") if CALLS[n].batch])
def test_vmap_is_a_loop(name):
    for fun in functions(name):
        function = Function(name, fun)
        if not function.values:
            continue
        examples = [function.values, tuple(0.9 * value for value in function.values)]
        stacked = tuple(np.stack(values) for values in zip(*examples, strict=True))
        expected = [tree.leaves(function(*values)) for values in examples]
        got = tree.leaves(fg.vmap(function)(*stacked))
        for parts, out in zip(zip(*expected, strict=True), got, strict=True):
            if isinstance(out, str | np.dtype):
                continue
            assert_allclose(out, np.stack(parts), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", of_kind("discrete"))
def test_discrete_results_are_plain(name):
    for fun in functions(name):
        function = Function(name, fun)
        if not function.values:
            function(*function.values)
            continue
        expected = tree.leaves(function(*function.values))
        seen = []

        def observe(*values, function=function, seen=seen):
            seen.extend(tree.leaves(function(*values)))
            return np.sum(values[0])

        fg.grad(observe)(*function.values)
        for out, value in zip(seen, expected, strict=True):
            if name not in ("numpy.empty_like", "numpy.ones_like", "numpy.zeros_like"):
                assert not isinstance(out, TracerBase)
            if hasattr(value, "shape") and hasattr(value, "size"):
                assert_allclose(out, value)
            else:
                assert out == value


@pytest.mark.parametrize("name", of_kind("constant"))
def test_constants_are_those_of_numpy_while_traced(name):
    theirs = found(name)
    if theirs is None:
        return
    ours = found(f"funcgrad.{name}")
    expected = Function(name, theirs)
    expected = expected(*expected.values)
    seen = []

    def observe(x):
        function = Function(name, ours)
        seen.append(function(*function.values))
        return x

    fg.grad(observe)(1.0)
    for out, value in zip(tree.leaves(seen), tree.leaves(expected), strict=True):
        if name == "numpy.empty":
            assert np.shape(out) == np.shape(value)
        elif isinstance(value, np.ndarray):
            assert_allclose(np.asarray(out), value)
        else:
            assert out == value
