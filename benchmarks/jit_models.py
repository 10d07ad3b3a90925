"""Loss and gradients of a convolutional network, an LSTM and a transformer block, under `jit`.

All have the same parameters in all three libraries, in the order of PyTorch's.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jit_task import Task, compare
from networks import lenets

import funcgrad as fg


def leaves_of(model: Any) -> list[Any]:
    """Return the arrays of a model of ours."""
    return [leaf for leaf in fg.tree.leaves(model) if isinstance(leaf, np.ndarray)]


def with_torch(loss: Any, parameters: Any) -> Any:
    """Return what computes a loss and its gradients."""
    parameters = list(parameters)

    def run() -> Any:
        for parameter in parameters:
            parameter.grad = None
        value = loss()
        value.backward()
        return [value.detach(), *(parameter.grad for parameter in parameters)]

    return run


def fill(parameters: Any, values: Any) -> None:
    """Give parameters of PyTorch the values of ours."""
    with torch.no_grad():
        for parameter, value in zip(parameters, values, strict=True):
            parameter.copy_(torch.tensor(value).reshape(parameter.shape))


def lenet() -> Task:
    """Return the task of LeNet-5 with ReLU and maxima, on a batch of 64."""
    nn, dtype = fg.nn, np.float32
    model, net = lenets(fg.random.key(0))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 1, 28, 28)).astype(dtype)
    y = rng.integers(0, 10, size=64)

    def loss(model: Any, x: Any, y: Any) -> Any:
        logits = model(x)
        return nn.losses.softmax_cross_entropy_with_integer_labels(logits, y, reduction="mean")

    def jax_loss(params: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2, *dense = params
        for w, b, pad in ((w1, b1, 2), (w2, b2, 0)):
            x = jax.lax.conv_general_dilated(x, w, (1, 1), [(pad, pad)] * 2) + b
            x = jax.nn.relu(x)
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        x = x.reshape(len(x), -1)
        for i in (0, 2, 4):
            x = x @ dense[i].T + dense[i + 1]
            x = jax.nn.relu(x) if i < 4 else x
        return -jnp.mean(jax.nn.log_softmax(x)[jnp.arange(len(y)), y])

    params = leaves_of(model)
    fill(net.parameters(), params)
    tx, ty = torch.tensor(x), torch.tensor(y)

    def torch_loss() -> Any:
        return torch.nn.functional.cross_entropy(net(tx), ty)

    return Task(
        "LeNet, batch 64",
        (fg.value_and_grad(loss), (model, x, y)),
        (jax.value_and_grad(jax_loss), (params, x, y)),
        with_torch(torch_loss, net.parameters()),
        {"jax": 1.0, "torch": 1.5},
    )


def lstm(*, by_layer: bool = False) -> Task:
    """Return the task of an LSTM of 50 steps, batch 32, 64 features in and out.

    By `scan` over its cell; or `by_layer`, which takes the sequence as one operation.
    """
    steps, batch, size, dtype = 50, 32, 64, np.float32
    cell: Any = fg.nn.LSTMCell(size, size, dtype=dtype, key=fg.random.key(0))
    layer = fg.nn.LSTM(size, size, dtype=dtype, key=fg.random.key(0))
    layer = fg.tree.unflatten(fg.tree.structure(layer), fg.tree.leaves(cell)) if by_layer else layer
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, steps, batch, size)).astype(dtype)
    zeros = np.zeros((batch, size), dtype)

    def loss(model: Any, x: Any, y: Any) -> Any:
        if by_layer:
            return np.mean((np.swapaxes(model(np.swapaxes(x, 0, 1))[0], 0, 1) - y) ** 2)

        def step(state: Any, x: Any) -> Any:
            h, c = model(x, state)
            return (h, c), h

        return np.mean((fg.scan(step, (zeros, zeros), x)[1] - y) ** 2)

    def jax_loss(params: Any, x: Any, y: Any) -> Any:
        ih, hh, bias = params

        def step(state: Any, x: Any) -> Any:
            h, c = state
            i, f, g, o = jnp.split(x @ ih.T + bias + h @ hh.T, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return jnp.mean((jax.lax.scan(step, (zeros, zeros), x)[1] - y) ** 2)

    net = torch.nn.LSTM(size, size)
    parameters = [net.weight_ih_l0, net.weight_hh_l0, net.bias_ih_l0]
    params = leaves_of(cell)
    fill(parameters, params)
    torch.nn.init.zeros_(net.bias_hh_l0)  # ours is the sum of the two
    tx, ty = torch.tensor(x), torch.tensor(y)

    def torch_loss() -> Any:
        return torch.mean((net(tx)[0] - ty) ** 2)

    return Task(
        f"LSTM, 50 steps, {'nn.LSTM' if by_layer else 'scan'}",
        (fg.value_and_grad(loss), (layer if by_layer else cell, x, y)),
        (jax.value_and_grad(jax_loss), (params, x, y)),
        with_torch(torch_loss, parameters),
        {"jax": 0.8, "torch": 1.2},
    )


def transformer() -> Task:
    """Return the task of a block that normalises first: batch 8, 64 positions, 128 features."""
    size, heads, dtype = 128, 4, np.float32
    model = fg.nn.TransformerEncoderBlock(heads, size, dtype=dtype, key=fg.random.key(0))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 8, 64, size)).astype(dtype)

    def loss(model: Any, x: Any, y: Any) -> Any:
        return np.mean((model(x) - y) ** 2)

    def norm(x: Any, weight: Any, bias: Any) -> Any:
        x = x - jnp.mean(x, -1, keepdims=True)
        return x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5) * weight + bias

    def jax_loss(params: Any, x: Any, y: Any) -> Any:
        wq, bq, wk, bk, wv, bv, wo, bo, n1, c1, w1, b1, w2, b2, n2, c2 = params

        def split(x: Any) -> Any:
            return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)

        z = norm(x, n1, c1)
        q, k, v = split(z @ wq.T + bq), split(z @ wk.T + bk), split(z @ wv.T + bv)
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(size // heads).astype(dtype))
        x = x + (weights @ v).swapaxes(-2, -3).reshape(x.shape) @ wo.T + bo
        z = jax.nn.gelu(norm(x, n2, c2) @ w1.T + b1, approximate=False)
        return jnp.mean((x + z @ w2.T + b2 - y) ** 2)

    net = torch.nn.TransformerEncoderLayer(
        size, heads, 4 * size, 0.0, "gelu", batch_first=True, norm_first=True
    )
    params = leaves_of(model)
    # PyTorch has the three matrices of the attention in one.
    packed = [np.concatenate(params[0:6:2]), np.concatenate(params[1:6:2]), *params[6:8]]
    linear, norms = params[10:14], [*params[8:10], *params[14:16]]
    parameters = list(net.parameters())
    fill(parameters, [*packed, *linear, *norms])
    tx, ty = torch.tensor(x), torch.tensor(y)

    def torch_loss() -> Any:
        return torch.mean((net(tx) - ty) ** 2)

    run = with_torch(torch_loss, parameters)

    def in_our_order() -> Any:
        value, w, b, wo, bo, w1, b1, w2, b2, n1, c1, n2, c2 = run()
        parts = zip(torch.chunk(w, 3), torch.chunk(b, 3), strict=True)
        heads = [part for pair in parts for part in pair]
        return [value, *heads, wo, bo, n1, c1, w1, b1, w2, b2, n2, c2]

    return Task(
        "transformer block, 8*64*128",
        (fg.value_and_grad(loss), (model, x, y)),
        (jax.value_and_grad(jax_loss), (params, x, y)),
        in_our_order,
        {"jax": 1.0, "torch": 2.0},
    )


def models() -> None:
    """Time them."""
    compare(lenet())
    compare(lstm())
    compare(lstm(by_layer=True))
    compare(transformer())


if __name__ == "__main__":
    models()
