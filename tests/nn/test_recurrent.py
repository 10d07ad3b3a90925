"""Recurrent cells and layers, against values that PyTorch computed, loops and differences."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError

nn = fg.nn
RNG = np.random.default_rng(0)
KINDS = ("RNN", "LSTM", "GRU")
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}

# By PyTorch 2.13 in float64, for two layers in both directions with the weights of `filled`: the
# second of two sequences, and the last states of it (for the LSTM those of the cells).
OUT = {
    "RNN": [
        [-0.5232687473763555, -0.8181238438641095, 0.8995192433788698, 0.7776112046072166],
        [-0.4299518145742195, -0.5450585248695935, 0.8045932871880197, 0.779008512745041],
        [-0.5652078674016981, -0.6155978029331457, 0.8036673489143744, 0.2942375288751825],
    ],
    "LSTM": [
        [0.0911264070186501, 0.13129651420973618, -0.3033972990238064, -0.36957933700011786],
        [0.12085043725932833, 0.18994757458463685, -0.27330197660430977, -0.32122883743059816],
        [0.12679093444984, 0.21950109163938708, -0.19669722067283074, -0.2232239726876584],
    ],
    "GRU": [
        [0.09651483226780563, 0.256867500868624, -0.4189802043194435, -0.7169771806275718],
        [0.1087460063795524, 0.3623937203147811, -0.2917759943122236, -0.6869207557711527],
        [0.05227481979106674, 0.42382541329049606, -0.14832605469943932, -0.5547838166946434],
    ],
}
STATE = {
    "RNN": [
        [0.7267571936942882, -0.0387866607687964],
        [-0.1356703871516584, 0.6342267966985218],
        [-0.5652078674016981, -0.6155978029331457],
        [0.8995192433788698, 0.7776112046072166],
    ],
    "LSTM": [
        [-0.597562394980899, -0.2554610959502211],
        [0.07703882841912987, -0.8011258472040383],
        [0.19668536492532845, 0.4154063455110057],
        [-0.7475482945523757, -0.6451115602513082],
    ],
    "GRU": [
        [-0.569538483554803, -0.3885847781400072],
        [0.08463782568914788, -0.2976286060272727],
        [0.05227481979106674, 0.42382541329049606],
        [-0.4189802043194435, -0.7169771806275718],
    ],
}


def key(seed=0):
    return fg.random.key(seed)


def fill(n, *shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + n).reshape(shape) * 0.5


def filled(kind):
    """Return the layer with PyTorch's parameters, whose two biases are one here."""
    layer = getattr(nn, kind)(2, 2, num_layers=2, bidirectional=True, key=key())
    rows, n, cells = 2 * GATES[kind], 0, []
    for pair in layer.cells:
        for cell in pair:
            bias, other = fill(n + 2, rows), fill(n + 3, rows)
            changes = {"bias": bias + other}
            if kind == "GRU":  # of the last gate the second bias stays with the state
                changes = {"bias": bias + np.append(other[:4], [0, 0]), "bias_n": other[4:]}
            cells.append(
                cell.replace(
                    weight_ih=fill(n, rows, cell.input_size),
                    weight_hh=fill(n + 1, rows, 2),
                    **changes,
                )
            )
            n += 4
    return layer.replace(cells=((cells[0], cells[1]), (cells[2], cells[3])))


@pytest.mark.parametrize("kind", KINDS)
def test_layers_agree_with_pytorch(kind):
    out, state = filled(kind)(fill(9, 2, 3, 2))
    np.testing.assert_allclose(out[1], OUT[kind], rtol=1e-13)
    last = [s[1] for s in state] if kind == "LSTM" else state
    np.testing.assert_allclose([s[1] for s in last], STATE[kind], rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_a_layer_is_its_cell_in_a_loop(kind, lead):
    layer = getattr(nn, kind)(3, 5, key=key())
    x = RNG.normal(size=(*lead, 6, 3))
    out, state = layer(x)
    (cell,) = layer.cells[0]
    zeros = np.zeros((*lead, 5))
    h = (zeros, zeros) if kind == "LSTM" else zeros
    for t in range(6):
        h = cell(x[..., t, :], h)
        now = h[0] if kind == "LSTM" else h
        np.testing.assert_allclose(out[..., t, :], now, rtol=1e-12, atol=1e-15)
    for a, b in zip(fg.tree.leaves(state), fg.tree.leaves(h), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_states_go_on(kind):
    layer = getattr(nn, kind)(3, 4, num_layers=2, key=key())
    x = RNG.normal(size=(2, 8, 3))
    whole, end = layer(x)
    first, state = layer(x[:, :5])
    second, state = layer(x[:, 5:], state)
    np.testing.assert_allclose(np.concatenate([first, second], 1), whole, rtol=1e-12)
    for a, b in zip(fg.tree.leaves(state), fg.tree.leaves(end), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    layer = getattr(nn, kind)(3, 4, num_layers=2, bidirectional=True, key=key())
    x = RNG.normal(size=(3, 6, 3))
    lengths = np.array([6, 4, 1])
    mask = np.arange(6) < lengths[:, None]
    out, state = layer(x, mask=mask)
    for i, n in enumerate(lengths):
        alone, alone_state = layer(x[i, :n])
        np.testing.assert_allclose(out[i, :n], alone, rtol=1e-12)
        assert not out[i, n:].any()
        for a, b in zip(fg.tree.leaves(state), fg.tree.leaves(alone_state), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_by_differences(kind):
    layer = getattr(nn, kind)(2, 3, num_layers=2, bidirectional=True, key=key())
    x = RNG.normal(size=(2, 4, 2))
    mask = np.array([[True, True, True, True], [True, True, False, False]])

    def loss(layer, x):
        out, state = layer(x, mask=mask)
        return np.sum(out**2) + sum(np.sum(np.sin(leaf)) for leaf in fg.tree.leaves(state))

    fg.testing.check_grads(loss, (layer, x), order=1)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind):
    layer = getattr(nn, kind)(2, 2, key=key())
    fg.testing.check_grads(lambda x: np.sum(layer(x)[0] ** 2), (RNG.normal(size=(3, 2)),), order=2)


@pytest.mark.parametrize("kind", KINDS)
def test_vmap_is_the_batch(kind):
    layer = getattr(nn, kind)(3, 4, key=key())
    x = RNG.normal(size=(5, 6, 3))
    np.testing.assert_allclose(fg.vmap(layer)(x)[0], layer(x)[0], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_stays(kind):
    layer = getattr(nn, kind)(3, 4, dtype=np.float32, key=key())
    out, state = layer(np.ones((2, 5, 3), np.float32))
    assert {leaf.dtype for leaf in fg.tree.leaves((out, state))} == {np.dtype(np.float32)}


@pytest.mark.parametrize("kind", KINDS)
def test_without_bias(kind):
    layer = getattr(nn, kind)(3, 4, use_bias=False, key=key())
    assert layer.cells[0][0].bias is None
    np.testing.assert_array_equal(layer(np.zeros((5, 3)))[0], np.zeros((5, 4)))


def test_relu_cells():
    layer = nn.RNN(2, 3, nonlinearity="relu", key=key())
    (cell,) = layer.cells[0]
    x = RNG.normal(size=2)
    expected = np.maximum(x @ cell.weight_ih.T + cell.bias, 0)
    np.testing.assert_allclose(layer(x[None])[0][0], expected)


def test_empty_sequences():
    out, state = nn.GRU(3, 4, key=key())(np.ones((2, 0, 3)))
    assert out.shape == (2, 0, 4)
    np.testing.assert_array_equal(state[0], np.zeros((2, 4)))


def test_dropout_is_between_layers():
    one = nn.GRU(3, 4, dropout=0.9, key=key())
    x = np.ones((5, 3))
    np.testing.assert_array_equal(one(x, key=key(1))[0], one(x, key=key(2))[0])
    two = nn.GRU(3, 4, num_layers=2, dropout=0.5, key=key())
    assert not np.array_equal(two(x, key=key(1))[0], two(x, key=key(2))[0])
    assert nn.inference_mode(two)(x)[0].shape == (5, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_one_state_serves_all_sequences(kind):
    layer, x = getattr(nn, kind)(3, 4, key=key()), RNG.normal(size=(2, 5, 3))
    one, all_ = RNG.normal(size=4), np.zeros((2, 4))
    state = [(one, 2 * one)] if kind == "LSTM" else [one]
    full = [(one + all_, 2 * one + all_)] if kind == "LSTM" else [one + all_]
    np.testing.assert_array_equal(layer(x, state)[0], layer(x, full)[0])


def test_a_state_of_less_precision_is_raised():
    layer, x = nn.GRU(3, 4, key=key()), RNG.normal(size=(2, 5, 3))
    state = RNG.normal(size=(2, 4)).astype(np.float32)
    np.testing.assert_array_equal(layer(x, [state])[0], layer(x, [state.astype(float)])[0])


@pytest.mark.parametrize("kind", KINDS)
def test_lists_are_arrays(kind):
    layer, x = getattr(nn, kind)(3, 4, key=key()), RNG.normal(size=(5, 3))
    np.testing.assert_array_equal(layer(x.tolist())[0], layer(x)[0])


@pytest.mark.parametrize("bidirectional", [False, True])
def test_all_steps_at_once_are_one_after_another(bidirectional):
    """With a mask a step is taken at a time."""
    layer = nn.LSTM(3, 4, 2, bidirectional=bidirectional, key=key())
    x, every = RNG.normal(size=(2, 5, 3)), np.ones((2, 5), bool)

    def loss(layer, x, mask):
        out, states = layer(x, mask=mask)
        return np.sum(np.sin(out)) + np.sum(np.cos(states[-1][1]))

    found = fg.value_and_grad(loss, (0, 1))(layer, x, None)
    expected = fg.value_and_grad(loss, (0, 1))(layer, x, every)
    for a, b in zip(fg.tree.leaves(found), fg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_second_derivatives_of_an_lstm_by_differences():
    layer, x, v = nn.LSTM(2, 3, key=key()), RNG.normal(size=(4, 2)), RNG.normal(size=(4, 2))

    def loss(x):
        return np.sum(layer(x)[0] ** 3)

    _, found = fg.jvp(fg.grad(loss), (x,), (v,))
    step = 1e-5 * v
    expected = (fg.grad(loss)(x + step) - fg.grad(loss)(x - step)) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_gates_of_an_lstm_saturate_in_silence(dtype):
    layer = nn.LSTM(1, 1, dtype=dtype, key=key()).cells[0][0]
    layer = layer.replace(weight_ih=np.full((4, 1), 1e4, dtype))
    whole = nn.LSTM(1, 1, dtype=dtype, key=key()).replace(cells=((layer,),))
    out, _ = whole(np.array([[1.0], [1.0], [-1.0]], dtype))
    assert out.dtype == dtype
    np.testing.assert_allclose(out[:, 0], [np.tanh(1), np.tanh(2), 0], rtol=2e-3)


def test_an_lstm_of_many_weights_under_vmap():
    layers = fg.vmap(lambda k: nn.LSTM(2, 3, key=k))(fg.random.split(key(), 4))
    x = RNG.normal(size=(5, 2))
    out = fg.vmap(lambda layer: layer(x)[0])(layers)
    one = fg.tree.map(lambda leaf: leaf[2], layers)
    np.testing.assert_allclose(out[2], one(x)[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.GRU(3, 4, key=key())(np.ones((5, 2))), ShapeError, "GRUCell expects"),
        (lambda: nn.GRU(3, 4, key=key())(np.ones(3)), ShapeError, r"GRU expects \(\.\.\., time, 3"),
        (lambda: nn.LSTM(3, 4, 0, key=key()), ArgumentError, "num_layers=0"),
        (lambda: nn.RNN(3, 0, key=key()), ArgumentError, "hidden_size=0"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin", key=key()), ArgumentError, "nonlinearity='sin'"),
        (
            lambda: nn.LSTM(3, 4, 2, key=key())(np.ones((5, 3)), [None]),
            ArgumentError,
            "each of 2 cells, not 1",
        ),
        (
            lambda: nn.LSTMCell(3, 4, key=key())(np.ones((2, 3)), np.zeros((2, 4))),
            ArgumentError,
            r"LSTMCell expects a state \(h, c\), and was given float64\[2,4\]",
        ),
        (
            lambda: nn.GRUCell(3, 4, key=key())(np.ones(3), np.zeros(5)),
            ShapeError,
            r"GRUCell expects a state of \(\.\.\., 4\), and was given float64\[5\]",
        ),
        (
            lambda: nn.GRU(3, 4, key=key())(np.ones((2, 5, 3)), [np.zeros((3, 4))]),
            ShapeError,
            r"states of shape \(2, 4\), and float64\[3,4\] was given",
        ),
        (
            lambda: nn.RNN(3, 4, key=key())(np.ones((2, 5, 3)), mask=np.ones((2, 4), bool)),
            ShapeError,
            r"the mask of RNN expects \(\.\.\., 5\)",
        ),
        (lambda: nn.LSTM(3, 4.0, key=key()), ArgumentError, "hidden_size=4.0"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
