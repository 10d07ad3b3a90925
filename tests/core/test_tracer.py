"""A tracer behaves like the array that it stands for, or says why it cannot."""

import copy
import math
import weakref

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.level import TracerBase, concrete
from funcgrad.errors import FuncgradError

X = np.array([0.3, 1.2, 2.5])
A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def seen(look, x=X):
    """Return what `look` finds of a traced `x`."""
    found = []
    fg.grad(lambda x: found.append(look(x)) or 0.0 * np.sum(np.real(x)))(x)
    return found[0]


def traced_result(f, x):
    return fg.vjp(lambda x: (np.sum(x), f(x)), x, has_aux=True)[2]


KINDS = [2.5, np.float64(2.5), np.float32(2.5), np.array(2.5), X, A, A.T, 1 + 2j, A * 1j]


@pytest.mark.parametrize("x", KINDS, ids=repr)
@pytest.mark.parametrize("name", ["shape", "dtype", "ndim", "size", "itemsize", "nbytes"])
def test_what_describes_an_array_is_plain(x, name):
    assert seen(lambda x: getattr(x, name), x) == getattr(np.asarray(x), name)


@pytest.mark.parametrize("x", KINDS[4:7] + KINDS[8:], ids=repr)
@pytest.mark.parametrize("name", ["T", "mT", "real", "imag"])
def test_attributes_that_are_arrays(x, name):
    if name == "mT" and x.ndim < 2:
        with pytest.raises(ValueError, match="matrix transpose"):
            seen(lambda x: x.mT, x)
        return
    np.testing.assert_array_equal(
        traced_result(lambda x: getattr(x, name), x), getattr(x, name), strict=True
    )


def test_transpose_carries_the_derivative():
    w = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(fg.grad(lambda a: np.sum(a.T * w))(A), w.T)
    np.testing.assert_array_equal(fg.grad(lambda a: np.sum(a.mT * w))(A), w.T)


def test_real_and_imag_carry_the_derivative():
    z = np.array([1 + 2j])
    np.testing.assert_array_equal(fg.grad(lambda z: np.sum(z.real * 3.0))(z), [3.0 + 0j])
    np.testing.assert_array_equal(fg.grad(lambda z: np.sum(z.imag * 3.0))(z), [-3j])


# All of numpy.ndarray

# Arguments for those that need some.
ARGUMENTS = {
    "argpartition": (1,),
    "astype": (np.float32,),
    "choose": ([1.0, 2.0],),
    "clip": (0.5, 1.0),
    "compress": ([True, False, True],),
    "dot": (np.ones(3),),
    "dump": ("unused",),
    "fill": (1.0,),
    "getfield": (float,),
    "item": (0,),
    "partition": (1,),
    "put": (0, 1.0),
    "repeat": (2,),
    "reshape": (3, 1),
    "resize": (3,),
    "searchsorted": (1.0,),
    "setfield": (1.0, float),
    "swapaxes": (0, 0),
    "take": (1,),
    "to_device": ("cpu",),
    "tofile": ("unused",),
    "trace": (),
    "transpose": (0,),
    "view": (int,),
}
REFUSED = frozenset(
    "base byteswap ctypes data dump dumps flags getfield item resize setfield "  # noqa: SIM905
    "setflags strides to_device tobytes tofile tolist view".split()
)
IN_PLACE = frozenset({"fill", "partition", "put", "sort"})


# Members that some NumPy versions still list, only to say that they are gone.
GONE = frozenset({"itemset", "newbyteorder", "ptp", "tostring"})


def public(kind):
    return [name for name in dir(kind) if not name.startswith("_") and name not in GONE]


def call(x, name):
    member = getattr(x, name)
    return member(*ARGUMENTS.get(name, ())) if callable(member) else member


@pytest.mark.parametrize("name", public(np.ndarray))
def test_every_member_of_ndarray_works_or_raises_our_error(name):
    x = A if name in {"diagonal", "mT", "trace"} else X
    if name == "choose":  # of indices, which are never traced
        with pytest.raises(FuncgradError):
            seen(lambda x: x.choose([1.0, 2.0]))
        return
    if name in REFUSED:
        with pytest.raises(FuncgradError, match=name):
            seen(lambda x: call(x, name), x)
        return
    if name in IN_PLACE:
        expected = x.copy()
        call(expected, name)

        def f(x):
            y = x.copy()
            call(y, name)
            return y

        np.testing.assert_array_equal(traced_result(f, x), expected, strict=True)
        return
    plain = call(x, name)
    got = traced_result(lambda x: call(x, name), x)
    if name == "flat":
        got, plain = list(got), list(plain)
    if isinstance(plain, np.ndarray):
        np.testing.assert_array_equal(got, plain, strict=True)
    elif isinstance(plain, np.generic):
        assert type(got) is type(plain)
        assert got == plain
    else:
        np.testing.assert_equal(got, plain)


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        (lambda x: x.sum(axis=0), A.sum(axis=0)),
        (lambda x: x.sum(0, keepdims=True), A.sum(0, keepdims=True)),
        (lambda x: x.mean(-1), A.mean(-1)),
        (lambda x: x.max(1), A.max(1)),
        (lambda x: x.std(ddof=1), A.std(ddof=1)),
        (lambda x: x.reshape(3, -1), A.reshape(3, -1)),
        (lambda x: x.reshape((3, 2), order="F"), A.reshape((3, 2), order="F")),
        (lambda x: x.transpose(1, 0), A.transpose(1, 0)),
        (lambda x: x.transpose((1, 0)), A.T),
        (lambda x: x.transpose(None), A.T),
        (lambda x: x.flatten("F"), A.flatten("F")),
        (lambda x: x.ravel("F"), A.ravel("F")),
        (lambda x: x.astype(np.float32), A.astype(np.float32)),
        (lambda x: x.astype(int), A.astype(int)),
        (lambda x: x.astype("complex128", copy=False), A.astype(complex)),
        (lambda x: x.clip(2.0, None), A.clip(2.0, None)),
        (lambda x: x.clip(max=3.0), A.clip(max=3.0)),
        (lambda x: x.dot(X), A.dot(X)),
        (lambda x: x.cumsum(1), A.cumsum(1)),
        (lambda x: x.argmax(axis=1), A.argmax(axis=1)),
        (lambda x: x.any(), A.any()),
        (lambda x: x.take([0, 5]), A.take([0, 5])),
        (lambda x: x.repeat(2, axis=0), A.repeat(2, axis=0)),
        (lambda x: x.compress([True, False], axis=0), A.compress([True, False], axis=0)),
        (lambda x: x.swapaxes(0, 1), A.swapaxes(0, 1)),
        (lambda x: x.round(), A.round()),
        (lambda x: x.conj(), A.conj()),
        (lambda x: x[None, ..., 0], A[None, ..., 0]),
        (lambda x: x.flat[4], A.flat[4]),
    ],
)
def test_methods_take_what_ndarrays_take(call, plain):
    got = traced_result(call, A)
    assert type(got) is type(plain)
    np.testing.assert_array_equal(got, plain, strict=True)


def test_method_carries_the_derivative():
    np.testing.assert_array_equal(fg.grad(lambda x: (x * x).sum())(X), 2 * X)
    gradient = fg.grad(lambda x: x.astype(np.float32).sum() * 1.0)(X)
    np.testing.assert_array_equal(gradient, np.ones(3))


def test_cast_to_integers_ends_the_derivative():
    kinds = seen(lambda x: type(np.floor(x).astype(int)))
    assert kinds is np.ndarray
    assert seen(lambda x: type(x.astype(int))) is np.ndarray


def test_name_of_a_method_is_its_own():
    assert seen(lambda x: x.sum.__name__) == "sum"


# Python's protocols


def test_len_iteration_and_unpacking():
    def f(x):
        assert len(x) == 3
        a, b, c = x
        assert [concrete(item) for item in x] == [0.3, 1.2, 2.5]
        first, *rest = x
        assert len(rest) == 2
        return a * b + c * first

    np.testing.assert_array_equal(fg.grad(f)(X), [1.2 + 2.5, 0.3, 0.3])


def test_rows_are_iterated():
    gradient = fg.grad(lambda a: sum(i * np.sum(row) for i, row in enumerate(a)))(A)
    np.testing.assert_array_equal(gradient, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])


def test_reversed_zip_enumerate_and_sum():
    gradient = fg.grad(lambda x: sum(a * b for a, b in zip(x, reversed(x), strict=True)))(X)
    np.testing.assert_array_equal(gradient, 2 * X[::-1])


@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.array(2.5)])
def test_number_has_no_length_and_no_items(x):
    with pytest.raises(TypeError, match="unsized"):
        seen(len, x)
    with pytest.raises(TypeError, match="0-d"):
        seen(list, x)


@pytest.mark.parametrize("x", [2.5, np.float32(2.5)])
def test_in_a_number_is_a_type_error(x):
    with pytest.raises(TypeError, match="not iterable"):
        seen(lambda x: 2.5 in x, x)


def test_in():
    assert seen(lambda x: 1.2 in x) is True
    assert seen(lambda x: 1.3 in x) is False
    assert seen(lambda x: x[1] in [0.3, 1.2]) is True


@pytest.mark.parametrize(
    "x", [2.5, np.float64(-0.0), np.float32(0.1), np.array(0.0), np.array([1.0])]
)
def test_truth(x):
    assert seen(bool, x) is bool(x)
    assert seen(lambda x: not x, x) is (not x)


def test_truth_of_several_elements_is_numpys_error():
    with pytest.raises(ValueError, match="ambiguous"):
        seen(bool)


@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.float32(0.1), np.array(2.5), 1 + 2j])
@pytest.mark.parametrize("spec", ["", ".3f", "10.2e", "g"])
def test_format_is_that_of_the_value(x, spec):
    assert seen(lambda x: format(x, spec), x) == format(x, spec)
    assert seen(lambda x: f"{x:{spec}}", x) == f"{x:{spec}}"


@pytest.mark.parametrize("x", KINDS, ids=repr)
def test_str_is_that_of_the_value(x):
    assert seen(str, x) == str(x)
    assert seen(lambda x: f"{x}", x) == f"{x}"
    assert seen(lambda x: "%s" % (x,), x) == f"{x}"  # noqa: UP031 - the operator is tested


def test_repr_shows_the_value_and_the_transform():
    def loss(x):
        texts.append(repr(x))
        return x * x

    texts = []
    fg.grad(loss)(2.5)
    assert texts[0].startswith("Traced(2.5, by grad(loss) at ")
    assert "test_tracer.py:" in texts[0]


def test_repr_of_nested_tracers_shows_the_plain_value():
    texts = []
    fg.grad(lambda x: fg.grad(lambda y: texts.append(repr(y * x)) or y * x)(x))(3.0)
    assert texts[0].startswith("Traced(9.0, by grad(<lambda>)")


@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.float32(-3.7), 3.0])
@pytest.mark.parametrize(
    "rounding",
    [round, math.floor, math.ceil, math.trunc, lambda x: round(x, 1), lambda x: x.is_integer()],
)
def test_rounding_gives_plain_numbers(rounding, x):
    if rounding is math.trunc and type(x) is np.float32:
        with pytest.raises(TypeError, match="__trunc__"):  # as without tracing
            seen(lambda x: rounding(x), x)
        return
    result = seen(lambda x: rounding(x), x)
    assert type(result) is type(rounding(x))
    assert result == rounding(x)


def test_round_of_an_array_is_a_type_error_as_in_numpy():
    with pytest.raises(TypeError):
        seen(round)


@pytest.mark.parametrize("x", [2.5, np.float32(2.5), np.array(2.5), X])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copy_is_of_the_same_kind(duplicate, x):
    result = traced_result(duplicate, x)
    assert type(result) is type(x)
    np.testing.assert_array_equal(result, x)
    gradient = fg.grad(lambda x: np.sum(duplicate(x) * 3.0))(x)
    np.testing.assert_array_equal(gradient, np.full(np.shape(x), 3.0))


def test_copy_of_an_array_can_be_assigned_to():
    def f(x):
        y = x.copy()
        y[0] = 0.0
        return np.sum(y * x)

    np.testing.assert_array_equal(fg.grad(f)(X), [0.0, 2.4, 5.0])


def test_order_of_a_copy():
    assert traced_result(lambda x: x.copy(order="F"), A).flags.f_contiguous


def test_tracer_is_weakly_referenced():
    assert seen(lambda x: weakref.ref(x)() is x)


def test_attributes_cannot_be_set():
    with pytest.raises(AttributeError):
        seen(lambda x: setattr(x, "shape", (1, 3)))
    with pytest.raises(AttributeError):
        seen(lambda x: setattr(x, "colour", "red"))


def test_hasattr_and_getattr_with_a_default():
    assert seen(lambda x: hasattr(x, "shape"))
    assert not seen(lambda x: hasattr(x, "colour"))
    assert seen(lambda x: getattr(x, "colour", "none")) == "none"
    assert not seen(lambda x: hasattr(x, "__array_interface__"))
    assert not seen(lambda x: hasattr(x, "__cuda_array_interface__"))


def test_isinstance():
    assert seen(lambda x: isinstance(x, TracerBase))
    assert not seen(lambda x: isinstance(x, np.ndarray))


def test_comparison_with_none_and_text_is_that_of_the_value():
    for other in (None, "abc", {}, b""):
        np.testing.assert_array_equal(seen(lambda x, other=other: x == other), [False] * 3)
        np.testing.assert_array_equal(seen(lambda x, other=other: x != other), [True] * 3)
        assert seen(lambda x, other=other: x == other, 2.5) is False
    assert seen(lambda x: x is None) is False


def test_concrete_is_the_value_below_all_levels():
    values = []
    fg.grad(lambda x: fg.grad(lambda y: values.append(concrete(y * x)) or y * x)(x))(3.0)
    assert values == [9.0]
    assert type(values[0]) is float


@pytest.mark.parametrize("op", ["+=", "-=", "*=", "/=", "**=", "//=", "%="])
def test_in_place_operator_on_a_scalar_makes_a_new_value(op):
    namespace = {}
    exec(f"def f(x):\n    y = x\n    y {op} 3.0\n    return x, y", namespace)
    plain = namespace["f"](2.5)
    assert traced_result(namespace["f"], 2.5) == plain
    assert traced_result(namespace["f"], np.float32(2.5)) == namespace["f"](np.float32(2.5))


@pytest.mark.parametrize("name", ["conj", "conjugate"])
def test_conjugate_of_a_real_array_is_the_array_itself(name):
    assert getattr(X, name)() is X
    assert seen(lambda x: getattr(x, name)() is x)
    assert seen(lambda x: np.conjugate(x) is x) is False


@pytest.mark.parametrize("name", ["conj", "conjugate"])
def test_conjugate_of_a_complex_array(name):
    z = X + 1j * X
    assert np.array_equal(seen(lambda z: concrete(getattr(z, name)()), z), X - 1j * X)
