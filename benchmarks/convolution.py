"""Convolutions forward and backward, and pooling, beside JAX and PyTorch."""

from __future__ import annotations

import jax
import numpy as np
import torch
from measure import best_times, report

import funcgrad as fg

# Images (batch, channels, height, width) and kernels (outputs, channels, height, width).
SHAPES = (
    ((64, 1, 28, 28), (16, 1, 5, 5)),
    ((64, 16, 14, 14), (32, 16, 3, 3)),
    ((32, 64, 32, 32), (64, 64, 3, 3)),
)


def conv2d():
    """Value and both gradients of the sum of a convolution, float32."""
    rng = np.random.default_rng(0)
    for images, kernel in SHAPES:
        x = rng.normal(size=images).astype(np.float32)
        w = rng.normal(size=kernel).astype(np.float32)
        for padding in (0, kernel[-1] // 2):
            one_shape(x, w, padding)


def one_shape(x, w, padding):
    def loss(x, w):
        return np.sum(fg.nn.functional.conv2d(x, w, padding=padding))

    def jax_loss(x, w):
        pads = [(padding, padding)] * 2
        return jax.lax.conv_general_dilated(x, w, (1, 1), pads).sum()

    ours = fg.value_and_grad(loss, argnums=(0, 1))
    theirs = jax.jit(jax.value_and_grad(jax_loss, argnums=(0, 1)))
    jx, jw = jax.numpy.asarray(x), jax.numpy.asarray(w)
    tx, tw = (torch.tensor(part, requires_grad=True) for part in (x, w))

    def with_torch():
        tx.grad = tw.grad = None
        out = torch.nn.functional.conv2d(tx, tw, padding=padding).sum()
        out.backward()
        return out.detach(), (tx.grad, tw.grad)

    for got, expected in zip(ours(x, w)[1], with_torch()[1], strict=True):
        expected = expected.numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5 * np.max(np.abs(expected)))
    times = best_times(
        {
            "funcgrad": lambda: ours(x, w),
            "JAX": lambda: jax.block_until_ready(theirs(jx, jw)),
            "PyTorch": with_torch,
        },
        pause=0.05,
    )
    title = f"conv2d {x.shape}*{w.shape}, padding {padding}".replace(" ", "")
    report(title.replace("conv2d", "conv2d "), times, "funcgrad", {"JAX": 1.0, "PyTorch": 2.0})


def max_pool2d():
    """Value and gradient of the sum of the maxima of windows of 2 * 2, float32."""
    x = np.random.default_rng(0).normal(size=(64, 16, 28, 28)).astype(np.float32)
    ours = fg.value_and_grad(lambda x: np.sum(fg.nn.functional.max_pool2d(x, 2)))
    leaf = torch.tensor(x, requires_grad=True)

    def with_torch():
        leaf.grad = None
        out = torch.nn.functional.max_pool2d(leaf, 2).sum()
        out.backward()
        return out.detach(), leaf.grad

    np.testing.assert_array_equal(ours(x)[1], with_torch()[1].numpy())
    times = best_times({"funcgrad": lambda: ours(x), "PyTorch": with_torch})
    report(f"max_pool2d {x.shape}, 2", times, "funcgrad", {})


if __name__ == "__main__":
    conv2d()
    max_pool2d()
