"""What `jit` refuses: each error names the user's line, and says what to write instead."""

from __future__ import annotations

import math

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import jit
from funcgrad.errors import (
    ArgumentError,
    FuncgradError,
    MutationError,
    ShapeError,
    SpecialisedError,
    TracerLeakError,
    TracerValueError,
    UnhashableTracerError,
)

X = np.array([1.0, -1.0, 2.0])
KEPT = []


def branches(x):
    return x if x > 0 else -x


def loops(x):
    while x < 10:
        x = x * 2
    return x


def assigns(x):
    buffer = np.zeros(3)
    buffer[:] = x
    return buffer


@pytest.mark.parametrize(
    ("fun", "args", "error", "words"),
    [
        (branches, (1.0,), TracerValueError, "the truth value of a number.*funcgrad.cond"),
        (loops, (1.0,), TracerValueError, "the truth value of a number.*np.where"),
        (lambda x: 0 < x < 1, (1.0,), TracerValueError, "the truth value.*static_argnames='x'"),
        (lambda x: 1.0 in x, (X,), TracerValueError, "the truth value"),
        (lambda x: max(x), (X,), TracerValueError, "the truth value"),
        (
            lambda x: float(x),
            (1.0,),
            TracerValueError,
            r"float\(\) of a number.*NumPy's functions",
        ),
        (lambda x: math.sin(x), (1.0,), TracerValueError, r"np.sin\(x\) in place of math.sin"),
        (lambda x: complex(x), (1.0,), TracerValueError, r"complex\(\) of a number"),
        (lambda n: int(n), (3,), TracerValueError, r"int\(\) of a number.*static_argnames='n'"),
        (lambda x: x.item(), (1.0,), TracerValueError, r"\.item\(\) of a number"),
        (lambda x: x.tolist(), (X,), TracerValueError, r"\.tolist\(\) of an array"),
        (lambda x: f"{x:.2f}", (1.0,), TracerValueError, "into a text.*debug.print"),
        (lambda n: range(n), (3,), TracerValueError, "a length.*fori_loop"),
        (lambda n: [1, 2][n], (1,), TracerValueError, "an index,.*static_argnames='n'"),
        (lambda x, n: x[:n], (X, 2), TracerValueError, "an index,.*static_argnames='n'"),
        (lambda x, n: x[n:0:-1], (X, 2), TracerValueError, "an index,.*static_argnames='n'"),
        (lambda x, n: x.reshape(n, -1), (X, 3), TracerValueError, "a length.*static_argnames='n'"),
        (lambda n: np.zeros((n, 2)), (3,), TracerValueError, "a length.*static_argnames='n'"),
        (lambda n: np.arange(n), (3,), TracerValueError, "plain array.*static_argnames='n'"),
        (lambda n: np.linspace(0, 1, n), (3,), TracerValueError, "a length.*static_argnames"),
        (lambda x, n: np.repeat(x, n), (X, 2), TracerValueError, "'repeats' of repeat.*static"),
        (lambda x, n: np.tile(x, n), (X, 2), TracerValueError, "'reps' of tile.*static"),
        (
            lambda x: np.array([x, x]),
            (1.0,),
            TracerValueError,
            "plain array.*funcgrad.numpy.array",
        ),
        (lambda x: np.full(3, x), (1.0,), TracerValueError, "plain array.*funcgrad.numpy.full"),
        (lambda n: np.array([n, n, 2]), (1,), TracerValueError, "plain.*use funcgrad.numpy.array"),
        (lambda n: np.asarray(n), (1,), TracerValueError, "plain.*use funcgrad.numpy.asarray"),
        (lambda n: np.asarray(n), (True,), TracerValueError, "plain.*use funcgrad.numpy.asarray"),
        (lambda n: np.full(3, n), (1,), TracerValueError, "plain array.*funcgrad.numpy.full"),
        (
            lambda i: X[i],
            (1,),
            TracerValueError,
            r"funcgrad.numpy.take\(a, i, axis=0\), or funcgrad.at\(a\)\[i\].get\(\)",
        ),
        (lambda i: np.take(X, i), (1,), TracerValueError, r"funcgrad.numpy.take\(a, i, axis=0\)"),
        (lambda i: X[i], (True,), TracerValueError, r"use np.where\(condition, a, b\)"),
        (lambda n: np.repeat(X, n), (2,), TracerValueError, "plain array.*static_argnames='n'"),
        (assigns, (X,), TracerValueError, r"plain array.*np.zeros_like\(x\)"),
        (lambda x: {x: 1}, (1.0,), UnhashableTracerError, "cannot be hashed"),
        (lambda x: x[x > 0], (X,), ShapeError, r"x\[mask\],.*np.where\(mask, x, 0\)"),
        (lambda x: np.nonzero(x), (X,), ShapeError, "nonzero returns, depends on the values"),
        (lambda x: np.unique(x), (X,), ShapeError, "depends on the values"),
        (lambda x: np.trim_zeros(x), (X,), ShapeError, "depends on the values"),
        (lambda x: np.bincount(x), (np.array([1, 2]),), ShapeError, "bincount returns"),
    ],
)
def test_asking_for_a_value_says_what_to_write(fun, args, error, words):
    with pytest.raises(error, match=rf"(?s){words}") as caught:
        jit(fun)(*args)
    assert "test_jit_errors.py" in str(caught.value)
    assert "traced by jit(" in str(caught.value) or "in jit(" in str(caught.value)


@pytest.mark.parametrize(
    ("fun", "plain"),
    [
        (lambda n: fg.numpy.array([n, n, 2]), lambda n: np.array([n, n, 2])),
        (lambda n: fg.numpy.asarray(n), lambda n: np.asarray(n)),
        (lambda n: fg.numpy.full(3, n), lambda n: np.full(3, n)),
        (lambda i: fg.numpy.take(X, i, axis=0), lambda i: X[i]),
        (lambda i: fg.at(X)[i].get(), lambda i: X[i]),
    ],
)
def test_what_to_write_for_a_count_works(fun, plain):
    compiled = jit(fun)
    for value in (1, 2, 0):
        np.testing.assert_array_equal(compiled(value), plain(value), strict=True)


# What is done besides computing


def stored_away():
    class Holder:
        value = None

    def to_list(x):
        KEPT.append(x * 2)
        return x

    def to_attribute(x):
        Holder.value = x * 2
        return x

    yield to_list, lambda: KEPT.pop()
    yield to_attribute, lambda: Holder.value


@pytest.mark.parametrize("use", [lambda x: x + 1, lambda x: float(np.sum(x)), np.asarray, bool])
@pytest.mark.parametrize(("fun", "find"), list(stored_away()))
def test_a_value_that_is_stored_away_says_so_when_it_is_used(fun, find, use):
    jit(fun)(X)
    value = find()
    with pytest.raises(TracerLeakError, match=r"(?s)traced by jit\(to_\w+\).*return it from"):
        use(value)


def test_a_value_that_is_stored_away_says_so_in_another_function():
    jit(lambda x: KEPT.append(x))(X)
    value = KEPT.pop()
    with pytest.raises(TracerLeakError, match="it escaped"):
        jit(lambda x: x + value)(X)


class Result:
    def __init__(self, x):
        self.x = x


@pytest.mark.parametrize(
    ("fun", "error", "words"),
    [
        (lambda x: Result(x), TracerLeakError, "an object of the class Result.*funcgrad.pytree"),
        (lambda x: [lambda y: x + y], TracerLeakError, r"the result\[0\].*a function returned by"),
        (lambda x: (y for y in [x]), ArgumentError, "is generator,.*return a list"),
        (lambda x: map(np.sin, [x]), ArgumentError, "is map,.*return a list"),
    ],
)
def test_results_that_hide_traced_values_are_errors(fun, error, words):
    with pytest.raises(error, match=rf"(?s){words}") as caught:
        jit(fun)(X)
    assert "test_jit_errors.py" in str(caught.value)


def test_results_without_traced_values_may_be_anything():
    marker = Result("a")
    out = jit(lambda x: ("text", None, True, marker, np.float32, x))(1.0)
    assert out == ("text", None, True, marker, np.float32, 1.0)


# Writing to what is not the function's own


def in_place(x):
    x[0] = 5.0


def adds_in_place(x):
    x += 1


@pytest.mark.parametrize(
    "fun",
    [
        in_place,
        adds_in_place,
        lambda x: np.add(x, 1, out=x),
        lambda x: x.sort(),
        lambda x: x.fill(0.0),
        lambda x: np.copyto(x, 0.0),
        lambda x: x[1:].__setitem__(0, 1.0),
    ],
)
def test_writing_to_an_argument_says_to_copy_it(fun):
    x = X.copy()
    with pytest.raises(MutationError, match=r"(?s)assigned to in place.*y = x.copy\(\)"):
        jit(fun)(x)
    np.testing.assert_array_equal(x, X)


def test_writing_to_a_closed_over_array_says_so():
    buffer = np.zeros(3)
    with pytest.raises(MutationError, match=r"(?s)into a plain NumPy array.*leave out= away"):
        jit(lambda x: np.multiply(x, 2, out=buffer))(X)
    np.testing.assert_array_equal(buffer, np.zeros(3))


def replaces(d):
    d["a"] = d["a"] * 2
    return d


@pytest.mark.parametrize(
    ("fun", "args", "words"),
    [
        (lambda d: d.update(new=1.0), ({"a": X},), "changed the dict that it was given as d"),
        (replaces, ({"a": X},), r"replaces changed the dict.*dict\(d\)"),
        (lambda x, d: d.pop("a") * x, (X, {"a": X}), "changed the dict that it was given as d"),
        (lambda xs: xs.append(1.0), ([1.0],), r"changed the list.*list\(xs\)"),
        (lambda t: t["a"].reverse(), ({"a": [1.0, X]},), "changed the dict that it was given as t"),
    ],
)
def test_changing_the_lists_and_dicts_of_the_arguments_is_an_error(fun, args, words):
    with pytest.raises(MutationError, match=rf"(?s){words}") as caught:
        jit(fun)(*args)
    assert "test_jit_errors.py" in str(caught.value)


def test_changing_a_copy_of_a_dict_is_no_error():
    def fun(d):
        d = dict(d)
        d["b"] = d.pop("a") * 2
        return d

    assert list(jit(fun)({"a": 1.0})) == ["b"]


# Options


def fun(x, n=2):
    return x * n


class Unhashable:
    __hash__ = None

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    "value", [Unhashable(), [1, {"a": Unhashable()}]], ids=["itself", "within"]
)
def test_a_static_value_without_hash_is_named(value):
    with pytest.raises(
        ArgumentError, match=r"(?s)n is static, and Unhashable.*dataclass"
    ) as caught:
        jit(fun, static_argnames="n")(1.0, value)
    assert "test_jit_errors.py" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"static_argnums": 5}, r"static_argnums=5 of jit is out of range.*\['x', 'n'\]"),
        ({"static_argnums": -3}, "static_argnums=-3 of jit is out of range"),
        ({"static_argnums": 1.0}, "static_argnums=1.0 of jit must be int, or a sequence"),
        ({"static_argnums": "n"}, "static_argnums='n' of jit must be int"),
        ({"static_argnames": 1}, "static_argnames=1 of jit must be str"),
        ({"static_argnames": ["n", "m"]}, "static_argnames='m' of jit names no parameter of fun"),
        ({"donate_argnums": 2}, "donate_argnums=2 of jit is out of range"),
        ({"static_argnums": 1, "donate_argnums": 1}, r"static and take its memory: \['n'\]"),
        ({"static_argnums": 1, "donate_argnames": "n"}, r"static and take its memory: \['n'\]"),
    ],
)
def test_options_that_do_not_fit_are_errors(options, words):
    with pytest.raises(ArgumentError, match=rf"(?s){words}") as caught:
        jit(fun, **options)
    assert "test_jit_errors.py" in str(caught.value)


def test_none_is_no_static_argument():
    assert jit(fun, static_argnums=None, static_argnames=None)(2.0) == 4.0


# What can be compiled


def generator(x):
    yield x


async def coroutine(x):
    return x


async def async_generator(x):
    yield x


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (3, "jit takes a function, got int 3"),
        (X, r"jit takes a function, got float64\[3\]"),
        (np, "jit takes a function, got the module numpy"),
        (generator, "generator, a generator function.*return a list"),
        (coroutine, "coroutine, an async function"),
        (async_generator, "async_generator, an async generator"),
        (classmethod(fun), "got a classmethod.*write @classmethod above @jit"),
        (property(fun), "got a property.*write @property above @jit"),
    ],
    ids=str,
)
def test_what_is_no_function_is_refused_at_once(what, words):
    with pytest.raises(ArgumentError, match=rf"(?s){words}") as caught:
        jit(what)
    assert "test_jit_errors.py" in str(caught.value)


class Model:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return x * self.scale

    @classmethod
    @jit
    def of_class(cls, x):
        return x * 3

    @staticmethod
    @jit
    def of_nothing(x):
        return x * 4


@pytest.mark.parametrize(
    ("what", "want"),
    [
        (abs, np.abs(X)),
        (np.sin, np.sin(X)),
        (np.sum, np.sum(X)),
        (len, 3),
        (sum, 2.0),
        (Model(2.0), X * 2),
        (Model(2.0).__call__, X * 2),
        (Model.of_class, X * 3),
        (Model.of_nothing, X * 4),
        (Model(2.0).of_nothing, X * 4),
        (jit(fun), X * 2),
        (fg.nn.Linear(3, 2, key=fg.random.key(0)), None),
    ],
    ids=str,
)
def test_all_that_can_be_called_can_be_compiled(what, want):
    compiled = jit(what)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), what(X) if want is None else want)


@pytest.mark.parametrize("name", ["abs", "range", "np", "min", "float", "class", "_work"])
def test_functions_may_be_called_like_builtin_ones(name):
    def made(x):
        return abs(x) + min(x.shape) + np.sum(x)

    made.__name__ = name
    np.testing.assert_array_equal(jit(made)(X), made(X))
    np.testing.assert_array_equal(jit(made)(X), made(X))


# Lowering


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        ((X[:2], 2), ShapeError, r"x of float64\[3\], got float64\[2\]"),
        ((X, 3), SpecialisedError, "n = 2, which is static, got 3"),
    ],
)
def test_a_compiled_function_says_what_it_was_made_for(args, error, words):
    compiled = jit(fun, static_argnames="n").lower(X, 2).compile()
    with pytest.raises(error, match=rf"(?s){words}.*call the jitted function"):
        compiled(*args)


@pytest.mark.parametrize("transform", [fg.grad, fg.vmap, jit])
def test_lower_in_a_transform_says_to_call_it_outside(transform):
    with pytest.raises(ArgumentError, match=r"(?s)lower needs plain arguments.*outside"):
        transform(lambda x: jit(fun).lower(x).compile()(x))(X if transform is fg.vmap else 1.0)


def test_lower_of_what_closes_over_a_traced_value_says_so():
    with pytest.raises(ArgumentError, match="closes over a value that a transform watches"):
        fg.grad(lambda x: jit(lambda y: y * x).lower(1.0))(2.0)


# Checks of values: the same exceptions, also at later calls


@pytest.mark.parametrize(
    ("fun", "good", "bad", "error"),
    [
        (lambda x, w: np.average(x, weights=w), (X, X), (X, X - X), ZeroDivisionError),
        (lambda x, i: np.insert(x, i, 0.0), (X, 1), (X, 7), IndexError),
        (lambda x, w: np.cov(x, aweights=w), (X, X * X), (X, X), ValueError),
        (lambda x, p: np.interp(x, x, x, period=p), (X, 4.0), (X, 0.0), ValueError),
        (lambda x, a: np.histogram(x, 3, range=(a, 5.0)), (X, 0.0), (X, 9.0), ValueError),
        (lambda x, e: np.histogram(x, e), (X, np.arange(3.0)), (X, -np.arange(3.0)), ValueError),
        (lambda x: np.histogram(x, 3), (X,), (X * np.nan,), ValueError),
        (
            lambda x: np.bincount(x, minlength=9),
            (np.array([1, 2]),),
            (np.array([1, -2]),),
            ValueError,
        ),
        (
            lambda k, a: fg.random.randint(k, (3,), a, 5),
            (fg.random.key(0), 1),
            (fg.random.key(1), 9),
            ArgumentError,
        ),
        (
            lambda k, p: fg.random.choice(k, 3, (2,), p=p),
            (fg.random.key(0), np.array([0.2, 0.3, 0.5])),
            (fg.random.key(1), np.array([-0.2, 0.7, 0.5])),
            ArgumentError,
        ),
        (
            fg.nn.Embedding(3, 2, key=fg.random.key(0)),
            (np.array([0, 1]),),
            (np.array([0, -1]),),
            IndexError,
        ),
        (lambda x, i: x[i], (X, np.array([0, 1])), (X, np.array([0, 5])), IndexError),
        (np.linalg.cholesky, (np.eye(2),), (-np.eye(2),), np.linalg.LinAlgError),
    ],
)
def test_a_later_call_raises_what_the_function_raises(fun, good, bad, error):
    compiled = jit(fun)
    compiled(*good)
    with np.errstate(all="ignore"), pytest.raises(error):
        fun(*bad)
    with np.errstate(all="ignore"), pytest.raises(error):
        compiled(*[fg.random.key(1) if isinstance(x, fg.random.Key) else x for x in bad])


@pytest.mark.parametrize(
    ("fun", "first", "second"),
    [
        (
            fg.vmap(lambda x: np.bincount(x, minlength=4)),
            np.array([[1, 2], [0, 1]]),
            np.array([[5, 2], [0, 1]]),
        ),
        (lambda x: np.histogram(x, 3, range=(x[0], 5.0))[0], X, X + 0.5),
        (
            fg.grad(np.linalg.det),
            np.array([[1.0, 2.0], [3.0, 4.0]]),
            np.array([[1.0, 2.0], [2.0, 4.0]]),
        ),
        (lambda x: np.split(X, x), 3, 1),
    ],
)
def test_what_depends_on_values_is_right_for_others(fun, first, second):
    compiled = jit(fun)
    compiled(first)
    for got, want in zip(
        fg.tree.leaves(compiled(second)), fg.tree.leaves(fun(second)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_every_error_is_one_of_ours():
    for error in (ArgumentError, MutationError, ShapeError, TracerLeakError, TracerValueError):
        assert issubclass(error, FuncgradError)
