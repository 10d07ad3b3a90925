"""NumPy's functions, ufuncs and their methods on traced values, with operands of every kind."""

import inspect
import itertools
import operator
import warnings

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import TracerBase
from funcgrad.errors import FuncgradError, MissingRuleError, MutationError

X = np.array([0.3, 1.2, 2.5])


def traced_result(f, *args):
    """Return what `f` gives when its arguments are traced, as auxiliary output."""
    return fg.vjp(lambda *args: (np.sum(args[0]), f(*args)), *args, has_aux=True)[2]


def outcome(call):
    """Return a result, or the exception in its place."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:  # whatever NumPy raises
            return error


def assert_same(got, plain):
    if isinstance(plain, Exception):
        assert isinstance(got, Exception)
    elif isinstance(plain, tuple):
        assert type(got) is tuple
        assert len(got) == len(plain)
        for a, b in zip(got, plain, strict=True):
            assert_same(a, b)
    else:
        if isinstance(got, Exception):
            raise got
        if plain is not NotImplemented and not isinstance(plain, bool | np.bool_):
            assert type(got) is type(plain)
        np.testing.assert_array_equal(got, plain, strict=isinstance(plain, np.ndarray))
        assert np.asarray(got).dtype == np.asarray(plain).dtype


# Operators: the value and its type are those without tracing, whatever stands on the other side

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "divmod": divmod,
    "@": operator.matmul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

TRACED = {
    "float": 2.5,
    "complex": 2.5 + 1j,
    "float64": np.float64(2.5),
    "float32": np.float32(2.5),
    "float16": np.float16(2.5),
    "complex64": np.complex64(2 + 1j),
    "0-d": np.array(2.5),
    "array": X,
    "array float32": X.astype(np.float32),
    "array float16": X.astype(np.float16),
    "array complex": X + 1j,
}

OTHER = {
    "float": 1.5,
    "int": 2,
    "bool": True,
    "complex": 1.5 + 2j,
    "float64": np.float64(1.5),
    "float32": np.float32(1.5),
    "float16": np.float16(1.5),
    "int64": np.int64(2),
    "int8": np.int8(2),
    "uint8": np.uint8(2),
    "complex64": np.complex64(1 + 2j),
    "array": np.array([1.0, 2.0, 3.0]),
    "array float32": np.ones(3, np.float32),
    "array 2-d": np.ones((3, 3)),
    "0-d": np.array(2.0),
    "array int": np.arange(1, 4),
    "array bool": np.array([True, False, True]),
    "array complex": np.array([1j, 1.0, 2.0]),
    "list": [1.0, 2.0, 3.0],
    "list int": [1, 2, 3],
    "tuple": (1.0, 2.0, 3.0),
    "nested list": [[1.0, 2.0, 3.0]],
    "None": None,
    "text": "abc",
    "dict": {},
}


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("kind", TRACED)
def test_operator_gives_what_it_gives_without_tracing(symbol, kind):
    op, x = OPERATORS[symbol], TRACED[kind]
    for other in OTHER.values():
        for f in (lambda x, other=other: op(x, other), lambda x, other=other: op(other, x)):
            plain = outcome(lambda f=f: f(x))
            if isinstance(plain, TypeError | str):
                continue  # tracing may allow what Python does not; and "abc" % x formats
            assert_same(outcome(lambda f=f: traced_result(f, x)), plain)


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operator_between_two_traced_values(symbol):
    op = OPERATORS[symbol]
    for x, y in itertools.product(TRACED.values(), repeat=2):
        plain = outcome(lambda x=x, y=y: op(x, y))
        assert_same(outcome(lambda x=x, y=y: traced_result(op, x, y)), plain)


@pytest.mark.parametrize(
    "other", [2.0, 2, np.float64(2), np.float32(2), np.full(3, 2.0), [2.0] * 3]
)
def test_operators_on_either_side_carry_the_derivative(other):
    cases = [
        (lambda x: x + other, np.ones(3)),
        (lambda x: other + x, np.ones(3)),
        (lambda x: x - other, np.ones(3)),
        (lambda x: other - x, -np.ones(3)),
        (lambda x: x * other, np.full(3, 2.0)),
        (lambda x: other * x, np.full(3, 2.0)),
        (lambda x: x / other, np.full(3, 0.5)),
        (lambda x: other / x, -2.0 / X**2),
        (lambda x: x**other, 2 * X),
        (lambda x: other**x, np.log(2.0) * 2.0**X),
        (lambda x: x % other, np.ones(3)),
        (lambda x: other % x, -np.floor(2.0 / X)),
        (lambda x: divmod(x, other)[1], np.ones(3)),
        (lambda x: divmod(other, x)[1], -np.floor(2.0 / X)),
    ]
    for f, exact in cases:
        rtol = 1e-7 if isinstance(other, np.float32) else 1e-14  # the logarithm of a float32
        np.testing.assert_allclose(fg.grad(lambda x, f=f: np.sum(f(x)))(X), exact, rtol=rtol)
        np.testing.assert_allclose(fg.jvp(f, (X,), (np.ones(3),))[1], exact, rtol=rtol)


def test_matrix_product_on_either_side():
    a = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(fg.grad(lambda x: np.sum(x @ a))(X), a.sum(1))
    np.testing.assert_array_equal(fg.grad(lambda x: np.sum(a @ x))(X), a.sum(0))
    np.testing.assert_array_equal(fg.grad(lambda x: np.sum(a.tolist() @ x))(X), a.sum(0))


# Foreign types with operators of their own are asked, and get the tracer itself


class Polite:
    """Takes part in arithmetic, and wants nothing to do with ufuncs."""

    __array_ufunc__ = None

    def __init__(self):
        self.seen = []

    def answer(self, other):
        self.seen.append(other)
        return "mine"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = answer
    __rpow__ = __rdivmod__ = __rmatmul__ = answer
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = answer
    __hash__ = None


class Unrelated:
    """Has reflected operators, and no relation to NumPy."""

    def __init__(self):
        self.seen = []

    answer = Polite.answer
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = answer
    __rpow__ = __rdivmod__ = __rmatmul__ = answer
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = answer
    __hash__ = None


@pytest.mark.parametrize("foreign", [Polite, Unrelated])
@pytest.mark.parametrize("symbol", OPERATORS)
def test_foreign_operand_is_asked_with_the_tracer(foreign, symbol):
    other = foreign()
    results = []
    fg.grad(lambda x: results.append(OPERATORS[symbol](x, other)) or np.sum(x))(X)
    assert results == ["mine"]
    assert [isinstance(seen, TracerBase) for seen in other.seen] == [True]


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**", "<"])
def test_operand_that_nobody_knows_is_a_type_error(symbol):
    with pytest.raises(TypeError, match=r"not supported|unsupported operand"):
        fg.grad(lambda x: OPERATORS[symbol](x, object()))(X)


# Ufuncs


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.sin(x, dtype=np.float32),
        lambda x: np.add(x, 1.5, dtype=np.float32),
        lambda x: np.add(1, x, dtype=np.float64),
        lambda x: np.multiply(x, np.arange(3), dtype=np.complex128),
        lambda x: np.floor(x, dtype=np.float32),
        lambda x: np.add(x, 1.5, dtype=int),
        lambda x: np.add(x, 1.5, dtype=np.float16, casting="no"),
        lambda x: np.add(x, 1.5, dtype=np.float32, casting="unsafe"),
        lambda x: np.add(x, x, order="F", subok=False),
        lambda x: np.add(x, x, casting="no"),
        lambda x: np.add(x, x, signature="dd->d"),
        lambda x: np.add(x, 1.5, unknown=3),
        lambda x: np.add(x, np.ones(4)),
        lambda x: np.multiply.outer(x, [1.0, 2.0]),
        lambda x: np.multiply.outer([[1.0, 2.0]], x),
        lambda x: np.add.outer(x, x),
        lambda x: np.add.outer(2.0, x),
        lambda x: np.add.outer(x, 2.0),
        lambda x: np.add.outer(x, np.float32(2.0)),
        lambda x: np.equal.outer(x, x),
        lambda x: np.add.reduce(x),
        lambda x: np.add.reduce(x, keepdims=True),
        lambda x: np.multiply.reduce(x),
        lambda x: np.maximum.reduce(x),
        lambda x: np.add.accumulate(x),
        lambda x: np.multiply.accumulate(x),
        lambda x: np.sum(x, dtype=np.float32),
        lambda x: np.mean(x, dtype=np.float32),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ufunc_forms_give_what_they_give_without_tracing(call, dtype):
    x = X.astype(dtype)
    assert_same(outcome(lambda: traced_result(call, x)), outcome(lambda: call(x)))


@pytest.mark.parametrize("x", [2.0, np.float32(2.0), np.array(2.0)])
@pytest.mark.parametrize("other", [2.0, np.float32(3.0), np.ones(2, np.float32)])
def test_outer_of_scalars(x, other):
    for f in (lambda x: np.multiply.outer(x, other), lambda x: np.multiply.outer(other, x)):
        assert_same(traced_result(f, x), f(x))
        gradient = fg.grad(lambda x, f=f: np.sum(f(x)))(x)
        assert float(gradient) == float(np.sum(other))


def test_dtype_of_a_ufunc_carries_the_derivative():
    value, gradient = fg.value_and_grad(lambda x: np.sum(np.sin(x, dtype=np.float32)))(X)
    assert value.dtype == np.float32
    assert gradient.dtype == np.float64
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)


@pytest.mark.parametrize("mask", [np.array([True, False, True]), [[True], [False]]])
def test_where_of_a_ufunc_selects(mask):
    def f(x, out):
        return np.multiply(x, x, out=out, where=mask)

    shape = np.broadcast_shapes(np.shape(mask), X.shape)
    plain = f(X, np.full(shape, 7.0))
    value = traced_result(lambda x: f(x, np.zeros_like(x + np.zeros(shape)) + 7.0), X)
    np.testing.assert_array_equal(value, plain, strict=True)
    gradient = fg.grad(lambda x: np.sum(np.multiply(x, x, where=mask)))(X)
    rows = np.broadcast_to(mask, shape).reshape(-1, 3)
    np.testing.assert_allclose(gradient, np.sum(rows * 2 * X, axis=0), rtol=1e-15)


def test_where_of_a_ufunc_gives_a_scalar_for_scalars():
    assert_same(traced_result(lambda x: np.add(x, 1.0, where=np.True_), 2.0), np.float64(3.0))


def test_out_that_is_traced_receives_the_result():
    def f(x):
        out = np.zeros_like(x)
        result = np.sin(x, out=out)
        assert result is out
        return np.sum(out * x)

    np.testing.assert_allclose(fg.grad(f)(X), np.cos(X) * X + np.sin(X), rtol=1e-15)


def test_at_of_a_plain_array_is_refused():
    with pytest.raises(MutationError, match=r"numpy\.add\.at"):
        fg.grad(lambda x: np.add.at(np.zeros(3), [0, 1, 2], x))(X)


def test_ufunc_of_a_list_with_a_traced_value_does_not_lose_it():
    with pytest.raises(FuncgradError, match=r"np\.stack"):
        fg.grad(lambda x: np.sum(np.multiply([x, 1.0], np.array([1.0, 2.0]))))(2.0)


@pytest.mark.parametrize(
    "question",
    [
        np.shape,
        np.ndim,
        np.size,
        np.iscomplexobj,
        np.isrealobj,
        np.array_repr,
        np.array_str,
        np.array2string,
        lambda x: np.result_type(x, np.float32),
        lambda x: np.can_cast(x.dtype, np.float32),
        lambda x: np.shares_memory(x, X),
        lambda x: np.array_equal(x, X),
        lambda x: np.allclose(x, X + 1e-12),
    ],
)
def test_questions_about_an_array_have_plain_answers(question):
    answers = []
    fg.grad(lambda x: answers.append(question(x)) or np.sum(x))(X)
    assert not isinstance(answers[0], TracerBase)
    assert answers[0] == question(X)


# Duck arrays: any array that speaks the two protocols is a value; nobody asks for its buffer


class Duck(np.lib.mixins.NDArrayOperatorsMixin):
    """Wraps an array, and refuses to become one."""

    def __init__(self, inner):
        self.inner = np.asarray(inner)

    shape = property(lambda self: self.inner.shape)
    dtype = property(lambda self: self.inner.dtype)
    ndim = property(lambda self: self.inner.ndim)
    size = property(lambda self: self.inner.size)

    def __array__(self, *args, **kwargs):
        raise AssertionError("np.asarray was called on a duck array")

    def __float__(self):
        raise AssertionError("float() was called on a duck array")

    def __bool__(self):
        assert self.inner.dtype == bool
        return bool(self.inner)

    def __getitem__(self, index):
        return Duck(self.inner[index])

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(isinstance(x, TracerBase) for x in inputs):
            return NotImplemented
        plain = [x.inner if isinstance(x, Duck) else x for x in inputs]
        return Duck(getattr(ufunc, method)(*plain, **kwargs))

    def __array_function__(self, function, types, args, kwargs):
        if any(issubclass(kind, TracerBase) for kind in types):
            return NotImplemented

        def strip(value):
            if isinstance(value, Duck):
                return value.inner
            if isinstance(value, list | tuple):
                return type(value)(map(strip, value))
            return value

        out = function(*map(strip, args), **{key: strip(value) for key, value in kwargs.items()})
        return Duck(out) if isinstance(out, np.ndarray | np.generic) else out

    def sum(self, *args, **kwargs):
        return np.sum(self, *args, **kwargs)

    def astype(self, dtype):
        return Duck(self.inner.astype(dtype))


DUCK_FUNCTIONS = {
    "sum of squares": (lambda x: np.sum(x * x), 2 * X),
    "method": (lambda x: (x * 3.0).sum(), np.full(3, 3.0)),
    "product": (lambda x: np.sum(np.exp(-x) * np.sin(x)), np.exp(-X) * (np.cos(X) - np.sin(X))),
    "division": (lambda x: np.sum(1.0 / x), -1 / X**2),
    "broadcast": (lambda x: np.sum(x + np.ones((2, 1))), np.full(3, 2.0)),
    "axis": (
        lambda x: np.sum(np.sum(np.reshape(x, (3, 1)) * np.ones((1, 2)), axis=1)),
        np.full(3, 2.0),
    ),
    "branch": (lambda x: np.sum(np.where(x > 1.0, x * x, x)), np.where(X > 1, 2 * X, 1.0)),
    "maximum": (lambda x: np.sum(np.maximum(x, 1.0)), np.where(X > 1, 1.0, 0.0)),
}


@pytest.mark.parametrize(("f", "exact"), DUCK_FUNCTIONS.values(), ids=DUCK_FUNCTIONS)
def test_duck_array_through_grad(f, exact):
    value, gradient = fg.value_and_grad(f)(Duck(X))
    assert type(value) is Duck
    assert value.inner == f(X)
    assert type(gradient) is Duck
    np.testing.assert_allclose(gradient.inner, exact, rtol=1e-15)


@pytest.mark.parametrize(("f", "exact"), DUCK_FUNCTIONS.values(), ids=DUCK_FUNCTIONS)
def test_duck_array_through_jvp(f, exact):
    out, out_dot = fg.jvp(f, (Duck(X),), (Duck([1.0, 10.0, 100.0]),))
    assert type(out) is Duck
    assert type(out_dot) is Duck
    np.testing.assert_allclose(out_dot.inner, exact @ [1.0, 10.0, 100.0], rtol=1e-14)


def test_duck_array_through_second_order():
    f = fg.grad(lambda x: np.sum(fg.grad(lambda x: np.sum(x * x * x))(x)))
    gradient = f(Duck(X))
    assert type(gradient) is Duck
    np.testing.assert_allclose(gradient.inner, 6 * X, rtol=1e-15)


def test_duck_array_as_a_constant():
    value, gradient = fg.value_and_grad(lambda x: np.sum(Duck(X) * x * Duck(X)))(X)
    assert type(value) is Duck
    gradient = gradient.inner if isinstance(gradient, Duck) else gradient
    np.testing.assert_allclose(gradient, X * X, rtol=1e-15)


# All of NumPy: a right derivative, or an error of ours; never a plain result without a word


def functions():
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in sorted(module.__all__):
            function = getattr(module, name)
            if callable(function) and not inspect.isclass(function) and name not in FILES:
                yield prefix + name


# Files, settings, and memory that was not written to.
FILES = frozenset(
    "empty empty_like fromfile fromregex fromstring genfromtxt get_include info load loadtxt "  # noqa: SIM905
    "memmap save savetxt savez savez_compressed set_printoptions setbufsize seterr seterrcall "
    "show_config show_runtime test".split()
)
# bmat gives None for what is neither a list nor an ndarray.
NOT_SMOOTH = frozenset({"bmat"})

V = np.array([1.31, 0.74, 1.87, 1.12])
W = np.array([0.52, 0.91, 0.67, 0.83])
M = np.array([[4.1, 0.7, 1.2], [0.3, 3.6, 0.9], [1.4, 0.8, 5.2]])
S = np.array([[4.1, 0.7, 1.2], [0.7, 3.6, 0.9], [1.2, 0.9, 5.2]])
SMALL = np.array([0.31, -0.42, 0.77])
# Tried in turn until NumPy takes one; the first floating array is differentiated.
CALLS = [
    (V,),
    (S,),
    (SMALL,),
    (V, W),
    (M, M[::-1]),
    (V, 2),
    (M, 0),
    (V, 1.1),
    (M, (9,)),
    (V, [0, 1], [1.0, 2.0]),
    (V, np.array([0, 1])),
    ([V, W],),
    (V > 1, V, W),
    (V, [True, False, True, True]),
    (np.array([True, False, True, True]), V),
    (V, W, W + 1),
    (V, 0, 1),
    (V, 0.2, 1.0),
    ("i,i", V, W),
    (np.array([0, 1, 0, 1]), [V, W]),
    (V, 2, 3),
    (M, 0, 1),
    (M, V[:3]),
    (V, 0, 1.0),
    (lambda x: x * x, 0, M),
    (np.sum, M, [0]),
    (V, np.array([0, 1, 1, 0]), 0),
    (M, (2, 3, 3)),
    (np.arange(4), V),
    (np.array([0, 1, 1, 2]), V),
    (np.zeros(4), np.array([0, 1, 2, 3]), V, 0),
    (M, np.array([[0], [1], [2]]), 0.5, 1),
    (V, np.float64),
    (1.0, V),
    (3, V),
]


def first_call(function):
    """Return the first of `CALLS` that a function takes, and its result."""
    for args in CALLS:
        plain = outcome(lambda args=args: function(*copied(args)))
        if not isinstance(plain, Exception):
            total = outcome(lambda plain=plain: weighted_total(plain))
            if isinstance(total, Exception) or np.isfinite(total):
                return args
    return None


def copied(value):
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list | tuple):
        return type(value)(map(copied, value))
    return value


def replaced(args, x):
    """Return `args` with `x` in place of the first floating array."""
    done = []

    def replace(value):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not done:
            done.append(value)
            return value if x is None else x
        if isinstance(value, list | tuple):
            return type(value)(map(replace, value))
        return value

    new = tuple(map(replace, copied(args)))
    return new, (done[0] if done else None)


def weighted_total(result):
    """Return one real number that depends on every floating element of a result."""
    parts = result if isinstance(result, list | tuple) else [result]
    total = 0.0
    for weight, part in enumerate(parts, 1):
        kind = getattr(getattr(part, "dtype", None), "kind", "")
        if kind == "f":
            total = total + weight * np.sum(part * part)
        elif kind == "c":
            total = total + weight * np.sum(np.real(part) ** 2 + 2.0 * np.imag(part))
    return total


# They look at one triangle, and are differentiated as functions of symmetric matrices.
OF_SYMMETRIC = {"linalg.cholesky", "linalg.eigh", "linalg.eigvalsh"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(functions()))
def test_numpy_function_is_differentiated_or_refused(name):
    function = np
    for part in name.split("."):
        function = getattr(function, part)
    args = first_call(function)
    x = None if args is None else replaced(args, None)[1]
    if x is None:
        return  # takes no array of floats: nothing to lose

    def f(x):
        if name in OF_SYMMETRIC:
            x = (x + np.swapaxes(x, -1, -2)) / 2
        return weighted_total(function(*replaced(args, x)[0]))

    if name in NOT_SMOOTH:
        return
    with np.errstate(all="ignore"):
        try:
            gradient = fg.grad(lambda x: f(x) + 0.0 * np.sum(x))(x)
        except FuncgradError:
            return
        except (TypeError, AttributeError):
            if name in {"frombuffer", "from_dlpack"}:  # want a buffer, and say so
                return
            raise
        direction = np.cos(np.arange(x.size)).reshape(x.shape)
        h = 1e-5

        def difference(h):
            return (f(x + h * direction) - f(x - h * direction)) / (2 * h)

        slope = (4 * difference(h) - difference(2 * h)) / 3
    assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_most_of_numpy_is_looked_at_by_that_test():
    taken = [name for name in functions() if "." not in name and first_call(getattr(np, name))]
    assert len(taken) > 300


def test_missing_rule_names_the_function():
    with pytest.raises(MissingRuleError, match=r"numpy\.busday_count has no rule"):
        fg.grad(lambda x: np.busday_count(x, x))(M)


# The idiom that guards a division: nothing is computed where the mask is false, and so nothing
# is warned of there (warnings are errors in these tests).

GUARDED = {
    "divide": (
        lambda b: np.divide(1.0, b, out=np.zeros_like(b), where=b != 0),
        np.array([2.0, 0.0, -4.0]),
        [0.5, 0.0, -0.25],
        [-0.25, 0.0, -0.0625],
    ),
    "log": (
        lambda b: np.log(b, out=np.zeros_like(b), where=b > 0),
        np.array([1.0, 0.0, -4.0]),
        [0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0],
    ),
    "sqrt": (
        lambda b: np.sqrt(b, out=np.full_like(b, 7.0), where=b > 0),
        np.array([4.0, 0.0, -4.0]),
        [2.0, 7.0, 7.0],
        [0.25, 0.0, 0.0],
    ),
    "log without out": (
        lambda b: np.where(b > 0, np.log(b, where=b > 0), 0.0),
        np.array([1.0, 0.0, -4.0]),
        [0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0],
    ),
}


@pytest.mark.parametrize("state", [{}, {"all": "raise"}], ids=["default", "raise"])
@pytest.mark.parametrize(("f", "b", "value", "slope"), GUARDED.values(), ids=GUARDED)
def test_guarded_by_where(f, b, value, slope, state):
    with np.errstate(**state):
        out, pullback = fg.vjp(f, b)
        (b_bar,) = pullback(np.ones(3))
        again, out_dot = fg.jvp(f, (b,), (np.ones(3),))
    np.testing.assert_array_equal(out, value)
    np.testing.assert_array_equal(again, value)
    np.testing.assert_array_equal(b_bar, slope)
    np.testing.assert_array_equal(out_dot, slope)


def test_keywords_of_ufunc_methods():
    x = np.arange(6.0).reshape(2, 3)
    got = fg.grad(lambda x: np.sum(np.add.reduceat(x, indices=[0, 2], axis=1) ** 2))(x)
    want = fg.grad(lambda x: np.sum(np.add.reduceat(x, [0, 2], 1) ** 2))(x)
    np.testing.assert_array_equal(got, want)
