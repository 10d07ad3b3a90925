"""The order in memory, for NumPy functions that go by it: under `vmap` that of one example."""

import numpy as np
import pytest

import funcgrad as fg

BATCH = np.arange(96.0).reshape(4, 2, 3, 4)
VIEWS = {
    "as it is": lambda x: x,
    "transposed": lambda x: x.T,
    "axes exchanged": lambda x: np.swapaxes(x, 0, 1),
    "reversed": lambda x: x[::-1],
    "transposed and reversed": lambda x: x.T[:, ::-1],
    "transposed, in steps": lambda x: x.T[::2],
    "computed from the transposed": lambda x: x.T + 2 * x.T,
    "copy of the transposed": lambda x: np.copy(x.T),
    "cast of the transposed": lambda x: x.T.astype(np.float32),
}
READERS = {
    "ravel K": lambda x: np.ravel(x, "K"),
    "ravel A": lambda x: np.ravel(x, "A"),
    "ravel F": lambda x: np.ravel(x, "F"),
    "flatten K": lambda x: x.flatten("K"),
    "flatten A": lambda x: x.flatten("A"),
    "reshape A": lambda x: np.reshape(x, (2, -1), "A"),
    "copy C": lambda x: np.ravel(np.copy(x, "C"), "K"),
    "copy F": lambda x: np.ravel(np.copy(x, "F"), "K"),
    "copy A": lambda x: np.ravel(np.copy(x, "A"), "K"),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("read", READERS)
def test_order_in_memory_is_that_of_one_example(read, view):
    def f(x):
        return READERS[read](VIEWS[view](x))

    np.testing.assert_array_equal(fg.vmap(f)(BATCH), np.stack(list(map(f, BATCH))))


@pytest.mark.parametrize("order", "CFKA")
def test_order_in_memory_of_the_argument(order):
    batch = np.asfortranarray(BATCH)
    want = np.stack([x.ravel(order) for x in batch])
    np.testing.assert_array_equal(fg.vmap(lambda x: x.ravel(order))(batch), want)


def test_order_in_memory_of_no_examples():
    assert fg.vmap(lambda x: np.copy(x.T, "A").ravel("K"))(BATCH[:0]).shape == (0, 24)


def test_order_in_memory_under_two_vmaps():
    batch = BATCH[np.newaxis] + np.arange(2.0).reshape(2, 1, 1, 1, 1)
    found = fg.vmap(fg.vmap(lambda x: x.T.ravel("K")))(batch)
    np.testing.assert_array_equal(found, batch.reshape(2, 4, 24))


def test_gradient_through_the_order_in_memory():
    weights = np.arange(24.0)
    gradient = fg.vmap(fg.grad(lambda x: np.sum(np.ravel(x.T, "K") * weights)))(BATCH)
    np.testing.assert_array_equal(gradient, np.broadcast_to(weights.reshape(2, 3, 4), (4, 2, 3, 4)))
