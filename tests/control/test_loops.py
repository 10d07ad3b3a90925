"""`scan` and `map`: against Python's loop, and what is said of steps that do not fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import funcgrad as fg
from funcgrad import control
from funcgrad.control import scan
from funcgrad.errors import ArgumentError, DtypeError, MutationError, ShapeError, TreeMismatchError

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)) * 0.5
XS = RNG.normal(size=(6, 3))


def loss(w, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, np.sum(h)

    h, ys = scan(step, np.zeros(3), xs)
    return np.sum(h) + np.sum(ys**2)


def loss_by_loop(w, xs):
    h, total = np.zeros(3), 0.0
    for x in xs:
        h = np.tanh(w @ h + x)
        total = total + np.sum(h) ** 2
    return np.sum(h) + total


def test_value():
    assert_allclose(loss(W, XS), loss_by_loop(W, XS), rtol=1e-14)


@pytest.mark.parametrize("argnum", [0, 1])
def test_gradient(argnum):
    assert_allclose(fg.grad(loss, argnum)(W, XS), fg.grad(loss_by_loop, argnum)(W, XS), rtol=1e-11)


def test_gradient_is_what_differences_say():
    fg.testing.check_grads(loss, (W, XS))


def test_hessian():
    assert_allclose(fg.hessian(loss)(W, XS), fg.hessian(loss_by_loop)(W, XS), atol=1e-12)


def test_batched_slices_and_carry():
    batch = np.stack([XS, 2 * XS, -XS])
    found = fg.vmap(fg.grad(loss), in_axes=(None, 0))(W, batch)
    assert_allclose(found, [fg.grad(loss)(W, xs) for xs in batch], rtol=1e-11)


def test_pytrees_everywhere():
    def step(carry, x):
        return {"n": carry["n"] + 1, "s": carry["s"] + x["a"]}, (x["b"][0] * carry["n"], None)

    xs = {"a": np.arange(3.0), "b": [np.ones((3, 2))]}
    carry, ys = scan(step, {"s": 0.0, "n": 0}, xs)
    assert carry == {"n": 3, "s": 3.0}
    assert_array_equal(ys[0], [[0, 0], [1, 1], [2, 2]])
    assert ys[1] is None


def test_reverse():
    carry, ys = scan(lambda c, x: (c * 10 + x, c), 0, np.array([1, 2, 3]), reverse=True)
    assert carry == 321
    assert_array_equal(ys, [32, 3, 0])


def test_length_without_arrays():
    carry, ys = scan(lambda c, x: (c + 1, x), 0, length=4)
    assert carry == 4
    assert ys is None


def test_length_that_agrees():
    assert scan(lambda c, x: (c + x, None), 0.0, np.ones(3), length=3)[0] == 3.0


@pytest.mark.parametrize("unroll", [1, 4, True, False])
def test_unroll_is_taken_and_ignored(unroll):
    assert scan(lambda c, x: (c + x, None), 0.0, np.ones(3), unroll=unroll)[0] == 3.0


def test_over_nothing():
    """The carry stays, and outputs have the shape they would have."""

    def step(c, x):
        return c * np.sum(x), {"y": x[:2] * c, "n": 1}

    xs = np.zeros((0, 3))
    carry, ys = scan(step, 2.5, xs)
    assert carry == 2.5
    assert ys["y"].shape == (0, 2)
    assert ys["y"].dtype == np.float64
    assert ys["n"].dtype == np.int64
    assert fg.grad(lambda c: scan(step, c, xs)[0])(2.5) == 1.0


def test_over_rows_of_keys():
    keys = fg.random.key(0).split(3)
    _, ys = scan(lambda c, key: (c, key.normal((2,))), None, keys)
    assert_array_equal(ys, [fg.random.key(0).split(3)[i].normal((2,)) for i in range(3)])


def test_outputs_that_are_keys():
    _, ys = scan(lambda key, x: (key.split(2)[0], key), fg.random.key(1), length=2)
    assert ys.shape == (2,)
    assert ys[0] == fg.random.key(1)


def test_outputs_of_several_dtypes():
    _, ys = scan(lambda c, x: (c, 1 if x < 1 else 0.5), 0, np.arange(3))
    assert_array_equal(ys, [1.0, 0.5, 0.5])


def test_part_of_the_carry_without_a_derivative():
    def run(x):
        def step(c, t):
            a, k, pair = c
            return (a * x + t, k + 1, (pair[0], pair[1] * 2.0)), a

        (a, k, pair), ys = scan(step, (x, 0, (1.0, 3.0)), np.array([1.0, 2.0, 3.0]))
        return a + np.sum(ys) * pair[0] + 0.0 * k

    # a3 = x^4 + x^2 + 2x + 3, ys = x, x^2 + 1, x^3 + x + 2: sum x^4 + x^3 + 2x^2 + 4x + 6
    x = 0.7
    assert_allclose(fg.grad(run)(x), 4 * x**3 + 3 * x**2 + 4 * x + 4)


def test_integer_array_takes_the_dtype_of_the_first_step():
    carry, _ = scan(lambda c, x: (c + x, None), np.zeros(2, int), np.ones((3, 2)) * 0.5)
    assert_array_equal(carry, [1.5, 1.5])


def test_carry_handed_out_as_output_keeps_its_value():
    _, ys = scan(lambda c, x: (c + x, c), np.zeros(2), np.ones((3, 2)))
    assert_array_equal(ys, [[0, 0], [1, 1], [2, 2]])


def test_text_in_the_carry():
    assert scan(lambda c, x: (c, None), {"name": "a", "f": np.sin}, length=2)[0]["name"] == "a"


def test_inside_of_a_branch():
    def f(x):
        return control.cond(
            np.sum(x) > 0, lambda: scan(lambda c, v: (c + np.log(v), None), 0.0, x)[0], lambda: 1.0
        )

    x = np.array([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]])
    assert_allclose(fg.vmap(f)(x), [np.log(6), 1.0])
    assert_allclose(fg.vmap(fg.grad(f))(x), [[1, 1 / 2, 1 / 3], [0, 0, 0]])


# Errors


def test_structure_of_the_carry():
    def step(c, x):
        return {"a": c["a"], "b": c["a"]}, None

    with pytest.raises(TreeMismatchError) as error:
        scan(step, {"a": 1.0}, length=2)
    words = str(error.value)
    assert "the carry of scan must keep its structure, but changed at step 0" in words
    assert "unexpected key 'b'" in words
    assert "step (" in words
    assert "test_loops.py" in words


def test_shape_of_the_carry():
    def step(c, x):
        return {"a": np.append(c["a"], x)}, None

    with pytest.raises(ShapeError) as error:
        scan(step, {"a": np.zeros(2)}, XS)
    words = str(error.value)
    assert "step 0: expected float64[2], found float64[5]" in words
    assert "the carry at ['a'] that step (" in words


def test_dtype_of_the_carry():
    def step(c, x):
        return c * (1j if x > 2 else 1.0), None

    with pytest.raises(DtypeError, match=r"step 3: expected float64\[\], found complex128\[\]"):
        scan(step, 1, np.arange(5))


@pytest.mark.parametrize(
    ("out", "words"), [(1.0, "a float"), ((1, 2, 3), "a tuple of 3"), (None, "a NoneType")]
)
def test_no_pair(out, words):
    with pytest.raises(ArgumentError, match=f"returns a pair .*, got {words} at step 0"):
        scan(lambda c, x: out, 0.0, length=1)


def test_arrays_of_different_length():
    with pytest.raises(ShapeError) as error:
        scan(lambda c, x: (c, None), 0, {"a": XS, "b": XS[:2], "c": XS})
    words = str(error.value)
    assert "xs['a']: float64[6,3] has length 6\n" in words
    assert "xs['b']: float64[2,3] has length 2 <- differs" in words


def test_length_that_disagrees():
    with pytest.raises(ShapeError, match="disagree with length=3"):
        scan(lambda c, x: (c, None), 0, XS, length=3)


def test_number_to_go_over():
    with pytest.raises(ShapeError, match=r"float 3.0, which has no axes\n  where: xs\['b'\]"):
        scan(lambda c, x: (c, None), 0, {"a": XS, "b": 3.0})


def test_nothing_to_go_over():
    with pytest.raises(ArgumentError, match="length="):
        scan(lambda c, x: (c, None), 0)


@pytest.mark.parametrize("length", [-1, 2.0, True, "3"])
def test_wrong_length(length):
    with pytest.raises(ArgumentError, match="length of scan must be a number of steps"):
        scan(lambda c, x: (c, None), 0, length=length)


def test_shape_of_the_outputs():
    with pytest.raises(ShapeError, match=r"at step 1: expected float64\[1\], found float64\[2\]"):
        scan(lambda c, x: (c, np.ones(x)), 0, np.arange(1, 3))


def test_structure_of_the_outputs():
    with pytest.raises(TreeMismatchError, match=r"output of every step of scan .* at step 1"):
        scan(lambda c, x: (c, None if x == 0 else x), 0, np.arange(3))


def test_text_as_output():
    with pytest.raises(ArgumentError, match="must be arrays or numbers, got str 'a'"):
        scan(lambda c, x: (c, "a"), 0, length=2)


def add_in_place(c, x):
    c += x
    return c, c


def test_carry_is_read_only():
    start = np.zeros(3)
    with pytest.raises(MutationError, match="add_in_place"):
        scan(add_in_place, start, XS)
    assert_array_equal(start, [0.0, 0.0, 0.0])


def test_carry_is_read_only_when_traced():
    with pytest.raises(MutationError):
        fg.grad(lambda z: np.sum(scan(add_in_place, z * 1.0, XS)[1]))(np.zeros(3))


def test_slices_are_read_only():
    def step(c, x):
        x[0] = 0.0
        return c, None

    xs = XS.copy()
    with pytest.raises(MutationError):
        scan(step, 0, xs)
    assert_array_equal(xs, XS)
    assert xs.flags.writeable


# map


def test_map():
    out = control.map(lambda x: {"s": np.sum(x), "x": x}, XS)
    assert_allclose(out["s"], np.sum(XS, axis=1), rtol=1e-15)
    assert_array_equal(out["x"], XS)


@pytest.mark.parametrize("batch_size", [1, 2, 4, 6, 100])
def test_map_in_batches(batch_size):
    out = control.map(np.prod, XS, batch_size=batch_size)
    assert_allclose(out, np.prod(XS, axis=1), rtol=1e-15)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_map_over_nothing(batch_size):
    out = control.map(lambda x: x[:2] * 2, np.ones((0, 3)), batch_size=batch_size)
    assert out.shape == (0, 2)


@pytest.mark.parametrize("batch_size", [None, 4])
def test_gradient_of_map(batch_size):
    found = fg.grad(lambda xs: np.sum(control.map(np.prod, xs, batch_size=batch_size)))(XS)
    assert_allclose(found, np.prod(XS, axis=1)[:, None] / XS, rtol=1e-12)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, True])
def test_map_with_a_wrong_batch_size(batch_size):
    with pytest.raises(ArgumentError, match="batch_size of map must be a positive number"):
        control.map(np.sum, XS, batch_size=batch_size)


def test_map_of_nothing():
    with pytest.raises(ArgumentError, match="map was given nothing to go over"):
        control.map(np.sum, None)
