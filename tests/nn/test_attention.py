"""Attention and transformers, against values that JAX and PyTorch computed, and by their laws."""

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.errors import ArgumentError, DtypeError, ShapeError

nn, F = fg.nn, fg.nn.functional
RNG = np.random.default_rng(0)


def key(seed=0):
    return fg.random.key(seed)


def fill(n, *shape):
    return np.sin(np.arange(np.prod(shape)) * 0.7 + n).reshape(shape)


# Sums of the results times fill(4, ...), by JAX 0.10, which takes the softmax in float32.
ATTENDED = [
    ({}, -4.01475007247885),
    ({"is_causal": True}, -5.627218619745352),
    ({"scale": 0.3, "local_window_size": (1, 2)}, -2.4717525367678386),
    (
        {"key_value_seq_lengths": np.array([3]), "query_seq_lengths": np.array([2])},
        -3.2304857816843153,
    ),
    ({"bias": fill(3, 1, 4, 3, 5)}, -3.754645470690443),
]


@pytest.mark.parametrize(("options", "expected"), ATTENDED)
def test_dot_product_attention(options, expected):
    q, k, v = fill(0, 1, 3, 4, 2), fill(1, 1, 5, 2, 2), fill(2, 1, 5, 2, 2)
    out = F.dot_product_attention(q, k, v, **options)
    assert np.sum(out * fill(4, 1, 3, 4, 2)) == pytest.approx(expected, rel=1e-7)


def test_attention_by_hand():
    q, k, v = RNG.normal(size=(4, 1, 3)), RNG.normal(size=(5, 1, 3)), RNG.normal(size=(5, 1, 2))
    mask = RNG.random((4, 5)) < 0.6
    mask[0] = False
    expected = np.zeros((4, 1, 2))
    for i in range(1, 4):
        weights = np.exp(q[i, 0] @ k[:, 0].T / np.sqrt(3)) * mask[i]
        expected[i, 0] = weights / weights.sum() @ v[:, 0]
    out = F.dot_product_attention(q, k, v, mask=mask)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_attention_derivatives():
    q, k, v = RNG.normal(size=(3, 2, 2)), RNG.normal(size=(4, 1, 2)), RNG.normal(size=(4, 1, 2))
    fg.testing.check_grads(
        lambda q, k, v: np.sum(np.sin(F.dot_product_attention(q, k, v, is_causal=True))),
        (q, k, v),
        order=2,
    )


def test_what_no_query_sees_has_no_gradient():
    q, k = np.ones((2, 1, 2)), np.array([[[1.0, 2.0]], [[np.inf, 1.0]]])
    mask = np.array([[True, False], [False, False]])
    grads = fg.grad(lambda q: np.sum(F.dot_product_attention(q, k, np.ones((2, 1, 1)), mask=mask)))(
        q
    )
    np.testing.assert_array_equal(grads, np.zeros((2, 1, 2)))


def linear(weight, bias):
    weight = np.asarray(weight)
    layer = nn.Linear(weight.shape[1], weight.shape[0], key=key())
    return layer.replace(weight=weight, bias=np.asarray(bias))


def heads(layer, in_weight, in_bias, out_weight, out_bias):
    """Put PyTorch's parameters into a layer."""
    return layer.replace(
        query_proj=linear(in_weight[:4], in_bias[:4]),
        key_proj=linear(in_weight[4:8], in_bias[4:8]),
        value_proj=linear(in_weight[8:], in_bias[8:]),
        output_proj=linear(out_weight, out_bias),
    )


def test_multihead_attention_agrees_with_pytorch():
    layer = nn.MultiheadAttention(2, 4, key=key())
    layer = heads(layer, fill(0, 12, 4), fill(1, 12), fill(2, 4, 4), fill(3, 4))
    x = fill(5, 1, 3, 4)
    expected = [
        [-0.4527982388467229, -0.8281954733704423, 0.2045578302023453, -2.806174731907152],
        [0.2736965816894482, -1.3606175705140005, 0.48138299885481095, -2.795414351491042],
        [-1.1351149453796912, -0.22285872155174402, -0.253849085647441, -2.547669009264481],
    ]
    np.testing.assert_allclose(layer(x, x, x, is_causal=True)[0], expected, rtol=1e-12)
    np.testing.assert_allclose(fg.vmap(layer)(x, x, x)[0], layer(x, x, x)[0], rtol=1e-12)


ENCODED = {
    True: [
        [1.369006690543017, -0.5759270944688566, 0.04945749290645807, -0.9440440179321683],
        [3.2924077600008497, 1.1633971506478304, -0.1255903493605227, -2.273197709854726],
        [1.3056154584052957, -0.6586176771765659, -0.8286440973652809, -1.625168715696628],
    ],
    False: [
        [-1.6579867215681614, -0.3520645465705019, 1.1238025995607606, 0.22918386064154123],
        [-1.6531935667912026, -0.690113684557128, 1.2523524690416756, 0.3212412557625646],
        [-1.4049714939431988, -1.1900294044524102, 1.4173343989102967, 0.27036150527613256],
    ],
}
DECODED = {
    True: [
        [-6.394595171822495, 0.05867896599791922, 2.679109172466336, -3.147612565089692],
        [-4.921781397003952, 1.7856171097348348, 3.5024490391174172, -6.115139828716132],
        [-5.4272055984385865, -1.6911516163138551, 3.985950393931631, -6.164150934897974],
    ],
    False: [
        [-0.7967219091939144, -2.0596892935822426, 0.8145518244307742, -0.06561840873974956],
        [-0.7599825392732574, -2.1720854090840827, 0.6392791391627101, 0.05921221147020296],
        [-0.795281005482996, -2.1666577715581083, 0.7240459127718445, 0.08014770810031087],
    ],
}


def filled_block(block, n, norms):
    """Put parameters into a block, numbered in PyTorch's order from `n` on."""
    return block.replace(
        inner=linear(fill(n, 6, 4), fill(n + 1, 6)),
        outer=linear(fill(n + 2, 4, 6), fill(n + 3, 4)),
        attention_norm=block.attention_norm.replace(weight=fill(norms, 4), bias=fill(norms + 1, 4)),
    )


@pytest.mark.parametrize("pre_norm", [True, False])
def test_encoder_block_agrees_with_pytorch(pre_norm):
    block = nn.TransformerEncoderBlock(2, 4, 6, pre_norm=pre_norm, key=key())
    block = filled_block(block, 4, 8).replace(
        attention=heads(block.attention, fill(0, 12, 4), fill(1, 12), fill(2, 4, 4), fill(3, 4)),
        mlp_norm=block.mlp_norm.replace(weight=fill(10, 4), bias=fill(11, 4)),
    )
    np.testing.assert_allclose(block(fill(5, 1, 3, 4))[0], ENCODED[pre_norm], rtol=1e-11)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_decoder_block_agrees_with_pytorch(pre_norm):
    decoder = nn.TransformerDecoderBlock(2, 4, 6, pre_norm=pre_norm, key=key())
    block = filled_block(decoder.block, 8, 12).replace(
        attention=heads(
            decoder.block.attention, fill(0, 12, 4), fill(1, 12), fill(2, 4, 4), fill(3, 4)
        ),
        mlp_norm=decoder.block.mlp_norm.replace(weight=fill(16, 4), bias=fill(17, 4)),
    )
    decoder = decoder.replace(
        block=block,
        cross=heads(decoder.cross, fill(4, 12, 4), fill(5, 12), fill(6, 4, 4), fill(7, 4)),
        cross_norm=decoder.cross_norm.replace(weight=fill(14, 4), bias=fill(15, 4)),
    )
    out = decoder(fill(5, 1, 3, 4), fill(6, 1, 5, 4))
    np.testing.assert_allclose(out[0], DECODED[pre_norm], rtol=1e-10)


@pytest.mark.parametrize("rotary", [False, True])
def test_a_cache_changes_nothing(rotary):
    model = nn.TransformerEncoder(2, 2, 8, rotary=rotary, key=key())
    x = RNG.normal(size=(3, 6, 8))
    whole = model(x, is_causal=True)
    caches = model.empty_caches(3)
    parts = []
    for start, stop in ((0, 3), (3, 4), (4, 6)):
        out, caches = model(x[:, start:stop], is_causal=True, caches=caches)
        parts.append(out)
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-11, atol=1e-13)
    assert caches[0].length == 6


def test_causal_positions_do_not_see_the_future():
    model = nn.TransformerEncoder(2, 2, 8, key=key())
    x = RNG.normal(size=(5, 8))
    jacobian = fg.jacrev(lambda x: np.sum(model(x, is_causal=True), axis=1))(x)
    seen = np.abs(jacobian).sum(axis=2) > 0
    np.testing.assert_array_equal(seen, np.tri(5, dtype=bool))


def test_rotary_products_depend_on_the_distance():
    rotary = nn.RotaryPositionalEmbedding(8)
    q, k = RNG.normal(size=8), RNG.normal(size=8)
    products = rotary(np.tile(q, (6, 1))) @ rotary(np.tile(k, (6, 1))).T
    for offset in range(-5, 6):
        np.testing.assert_allclose(np.ptp(np.diagonal(products, offset)), 0, atol=1e-12)
    np.testing.assert_allclose(products[0, 0], q @ k, rtol=1e-13)


def test_rotary_start_and_axis():
    rotary = nn.RotaryPositionalEmbedding(4)
    x = RNG.normal(size=(5, 2, 4))
    whole = rotary(x, axis=-3)
    np.testing.assert_allclose(rotary(x[2:], start=2, axis=-3), whole[2:], rtol=1e-13)
    np.testing.assert_allclose(rotary(x[:, 1]), whole[:, 1], rtol=1e-13)


def test_dropout_of_attention():
    layer = nn.MultiheadAttention(1, 4, dropout_p=0.5, key=key())
    x = RNG.normal(size=(3, 4))
    first, second = (layer(x, x, x, key=key(seed)) for seed in (1, 2))
    assert not np.array_equal(first, second)
    off = nn.inference_mode(layer)
    np.testing.assert_array_equal(off(x, x, x), layer(x, x, x, inference=True))


def test_float32_stays():
    model = nn.TransformerEncoder(1, 2, 8, np.float32, rotary=True, key=key())
    assert model(np.ones((3, 8), np.float32), is_causal=True).dtype == np.float32


def test_one_query_looks_at_every_sequence():
    layer = nn.MultiheadAttention(2, 8, key=key())
    query, keys = RNG.normal(size=(1, 8)), RNG.normal(size=(3, 5, 8))
    out = layer(query, keys, keys)
    np.testing.assert_allclose(out[1], layer(query, keys[1], keys[1]), rtol=1e-12)


def test_a_mask_of_zeros_and_ones_is_one_of_bools():
    layer = nn.MultiheadAttention(2, 8, key=key())
    x, mask = RNG.normal(size=(5, 8)), np.tri(5)
    np.testing.assert_array_equal(layer(x, x, x, mask.astype(int)), layer(x, x, x, mask > 0))
    np.testing.assert_array_equal(
        layer(x, x, x, mask.astype(int).tolist()), layer(x, x, x, mask > 0)
    )


def attention(query, key_, value, mask=None):
    layer = nn.MultiheadAttention(2, 4, key=key())
    return layer(np.ones(query), np.ones(key_), np.ones(value), mask)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.MultiheadAttention(3, 8, key=key()), ArgumentError, "3 heads cannot share"),
        (lambda: nn.RotaryPositionalEmbedding(3), ArgumentError, "embedding_size=3"),
        (lambda: nn.RotaryPositionalEmbedding(4)(np.ones((2, 3))), ShapeError, r"time, 4\)"),
        (lambda: nn.TransformerEncoder(0, 2, 8, key=key()), ArgumentError, "num_layers=0"),
        (
            lambda: F.dot_product_attention(
                np.ones((2, 3, 4)), np.ones((2, 2, 4)), np.ones((2, 2, 4))
            ),
            ShapeError,
            "do not fit",
        ),
        (
            lambda: nn.TransformerEncoderBlock(2, 8, key=key())(np.ones((3, 7))),
            ShapeError,
            "LayerNorm expects",
        ),
        (
            lambda: attention((5, 4), (6, 4), (6, 4), np.zeros((5, 6))),
            DtypeError,
            r"a mask of bools, not float64\[1,5,6\]",
        ),
        (
            lambda: F.dot_product_attention(*3 * [np.ones((2, 1, 4))], mask=np.zeros((2, 2))),
            DtypeError,
            "a mask of bools",
        ),
        (
            lambda: attention((3, 5, 4), (3, 6, 4), (3, 6, 4), np.ones((5, 5), bool)),
            ShapeError,
            r"the mask of MultiheadAttention expects \(\.\.\., 5, 6\)",
        ),
        (lambda: attention((4,), (4,), (4,)), ShapeError, "MultiheadAttention expects"),
        (lambda: attention((5, 4), (6, 4), (3, 4)), ShapeError, "as many values as keys"),
        (lambda: attention((3, 5, 4), (2, 6, 4), (2, 6, 4)), ShapeError, "same axes before"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
