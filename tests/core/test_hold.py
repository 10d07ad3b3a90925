"""Plain arrays that a function changes after a traced operation has used them."""

import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import MutationError


def weighted_sums(x, size):
    """``sum(1 x) + sum(2 x)``, with one buffer for both weights."""
    buffer, total = np.zeros(size), 0.0
    for weight in (1.0, 2.0):
        buffer[:] = weight
        total = total + np.sum(x * buffer)
    return total


def test_a_small_buffer_may_be_used_again():
    np.testing.assert_array_equal(fg.grad(weighted_sums)(np.ones(3), 3), np.full(3, 3.0))


def test_a_small_buffer_may_be_used_again_in_a_matrix_product():
    def f(x):
        buffer, total = np.eye(2), 0.0
        for weight in (1.0, 2.0):
            buffer[0] = weight
            total = total + np.sum(buffer @ x)
        return total

    np.testing.assert_array_equal(fg.grad(f)(np.ones((2, 1))), [[3.0], [5.0]])


def test_linearize_and_vjp_hold_them_too():
    def f(x):
        return weighted_sums(x, 3)

    _, pushforward = fg.linearize(f, np.ones(3))
    assert pushforward(np.ones(3)) == 9.0
    _, pullback = fg.vjp(f, np.ones(3))
    np.testing.assert_array_equal(pullback(1.0)[0], np.full(3, 3.0))


def test_writing_to_a_large_buffer_is_an_error_that_names_the_line():
    with pytest.raises(MutationError, match="after a traced operation had used it") as caught:
        fg.grad(weighted_sums)(np.ones(5000), 5000)
    assert "test_hold.py" in str(caught.value)
    assert "buffer.copy()" in str(caught.value)


@pytest.mark.parametrize("view", [slice(None), slice(1, None)])
def test_large_arrays_are_writeable_again_afterwards(view):
    data = np.ones((100, 100))
    part = data[view]
    fg.grad(lambda x: np.sum(part @ x))(np.ones(100))
    data[0] = 2.0
    part[0] = 3.0


def test_two_large_views_of_one_array_are_writeable_again():
    table = np.random.default_rng(0).normal(size=(5000, 4))
    x, y = table[:, :3], table[:, 3]
    for first, second in ((x, y), (y, x)):
        gradient = fg.grad(lambda w, a=first, b=second: np.sum(a.T @ b * w.sum()))(np.ones(2))
        np.testing.assert_allclose(gradient, np.full(2, np.sum(first.T @ second)))
        assert table.flags.writeable
        assert x.flags.writeable
        assert y.flags.writeable


def test_large_views_and_their_owner_are_writeable_again():
    table = np.ones((100, 100))
    rows = table[0:50], table[50:], table
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        fg.grad(lambda s, order=order: sum(np.sum(s * rows[i]) for i in order))(2.0)
        assert all(part.flags.writeable for part in rows)


def test_an_array_that_an_outer_trace_needs_stays_locked_when_an_inner_one_ends():
    buffer = np.ones((100, 100))

    def f(x):
        def inner(z):
            nonlocal total
            total = total + np.sum(x * buffer)
            return np.sum(z * buffer)

        total = 0.0
        slope = fg.grad(inner)(2.0)
        buffer[:] = 100.0
        return total * slope

    with pytest.raises(MutationError):
        fg.grad(f)(1.0)
    buffer[0] = 1.0


def test_an_outer_trace_may_hold_the_owner_and_an_inner_one_a_view():
    table = np.ones((100, 100))
    rows = table[1:]

    def f(x):
        return np.sum(x * table) + fg.grad(lambda z: np.sum(z * rows))(x) * x

    assert fg.grad(f)(2.0) == 10000.0 + 9900.0
    table[0] = 2.0
    rows[0] = 2.0


def test_joined_arrays_may_change_as_only_their_shapes_are_kept():
    def f(x):
        buffer = np.ones(5000)
        total = 0.0
        for weight in (1.0, 2.0):
            total = total + np.sum(np.concatenate([x, buffer])[:2]) * weight
            buffer[:] = weight
        return total

    np.testing.assert_array_equal(fg.grad(f)(np.ones(1)), [3.0])


def test_the_value_is_computed_from_the_original_layout():
    data = np.random.default_rng(0).normal(size=(400, 30)).T[::3]
    x = np.random.default_rng(1).normal(size=400)
    plain = np.sum(data @ x)
    assert fg.value_and_grad(lambda x: np.sum(data @ x))(x)[0] == plain
    assert fg.linearize(lambda x: np.sum(data @ x), x)[0] == plain


def test_large_arrays_are_writeable_again_after_an_exception():
    data = np.ones(5000)

    def fails(x):
        _ = x * data
        raise KeyError

    with pytest.raises(KeyError):
        fg.grad(fails)(1.0)
    data[0] = 2.0


def test_a_large_array_may_change_between_vjp_and_its_pullback():
    data = np.ones(5000)
    _, pullback = fg.vjp(lambda x: np.sum(x * data), 2.0)
    data[:] = 7.0
    assert pullback(1.0) == (5000.0,)


def test_read_only_arrays_stay_so():
    data = np.ones(5000)
    data.flags.writeable = False
    fg.grad(lambda x: np.sum(x * data))(1.0)
    assert not data.flags.writeable


def test_memory_that_numpy_does_not_own_is_copied():
    memory = bytearray(8 * 5000)
    data = np.frombuffer(memory)
    fg.grad(lambda x: np.sum(x * data))(1.0)
    data[0] = 1.0


def test_threads_may_share_a_large_array():
    data, results = np.ones(5000), []

    def work():
        for _ in range(20):
            results.append(fg.grad(lambda x: np.sum(x * data))(1.0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [5000.0] * 80
    data[0] = 2.0
