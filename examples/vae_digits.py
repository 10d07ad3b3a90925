"""Learn to draw handwritten digits with a variational autoencoder (Kingma and Welling, 2014).

Shows a loss that draws random numbers (a key for each step, so that a seed gives the same model
again) and gradients that go through what was drawn. An encoder describes a digit by two numbers,
up to noise, and a decoder draws it from these. The picture has digits that it has not seen, drawn
again from their two numbers, and a map of what the decoder draws all over the plane. The figure is
the bound of the log-likelihood of a held-out digit (ELBO), beside what independent pixels give.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more gain little on a network this small

from statistics import NormalDist

import common
import digits
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

nn = fg.nn
LATENT, HIDDEN, PIXELS = 2, 256, 784


class VAE(nn.Module):
    """An encoder, which gives mean and logarithm of the variance, and a decoder: logits."""

    encoder: nn.MLP
    decoder: nn.MLP

    def __init__(self, key):
        keys = fg.random.split(key)
        shared = {"activation": nn.functional.relu, "dtype": np.float32}
        self.encoder = nn.MLP(PIXELS, 2 * LATENT, HIDDEN, 2, key=keys[0], **shared)
        self.decoder = nn.MLP(LATENT, PIXELS, HIDDEN, 2, key=keys[1], **shared)

    def encode(self, images):
        return np.split(self.encoder(images), 2, axis=-1)


def negative_elbo(model, images, key=None):
    """Return what a digit costs, in nats: its pixels given two numbers, and the two numbers."""
    mean, log_var = model.encode(images)
    key = fg.random.key(0) if key is None else key
    noise = fg.random.normal(key, mean.shape, dtype=np.float32)
    logits = model.decoder(mean + np.exp(log_var / 2) * noise)
    pixels = np.sum(nn.losses.sigmoid_binary_cross_entropy(logits, images), axis=-1)
    divergence = np.sum(mean**2 + np.exp(log_var) - 1 - log_var, axis=-1) / 2
    return np.mean(pixels + divergence)


def baseline(train, held_out):
    """Return the nats of a digit whose pixels are independent, each with its own probability."""
    p = np.clip(train.mean(axis=0), 1e-3, 1 - 1e-3)
    return -np.mean(np.sum(held_out * np.log(p) + (1 - held_out) * np.log(1 - p), axis=1))


def draw(model, images, labels):
    """Draw digits and what was made of them, where they lie in the plane, and the map."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    pairs, plane = left.subplots(2, 1, height_ratios=(2, 5))
    mean, _ = model.encode(images)
    again = nn.functional.sigmoid(model.decoder(mean[:10]))
    title = "held out, and drawn again from two numbers"
    digits.show(pairs, np.concatenate([images[:10], again]), 10, title)
    points = plane.scatter(*mean.T, c=labels, s=2, cmap="tab10", vmin=-0.5, vmax=9.5)
    plane.set(title="the two numbers of each", xlim=(-4, 4), ylim=(-4, 4))
    left.colorbar(points, ax=plane, ticks=range(10))
    # Quantiles of the normal distribution, so that each tile stands for as many digits.
    steps = np.array([NormalDist().inv_cdf((i + 0.5) / 11) for i in range(11)], np.float32)
    grid = np.stack(np.meshgrid(steps, steps[::-1]), axis=-1).reshape(-1, LATENT)
    drawn = nn.functional.sigmoid(model.decoder(grid))
    digits.show(right.subplots(), drawn, 11, "what the decoder draws over the plane")
    return figure


def main(args):
    (train, _), (images, labels) = digits.load(400 if args.quick else 8000)
    train, images = train.reshape(-1, PIXELS), images.reshape(-1, PIXELS)
    model_key, train_key = fg.random.split(fg.random.key(args.seed))
    result = common.finished(
        fg.train.fit(
            VAE(model_key),
            negative_elbo,
            fg.optim.adam(1e-3),
            train,
            epochs=2 if args.quick else args.epochs,
            batch_size=100,
            key=train_key,
            validation=images,
            progress=common.watched(),
            jit=not args.eager,
        )
    )
    common.save(draw(result.model, images, labels), args.out)
    elbo, plain = -result.history[-1]["validation_loss"], -baseline(train, images)
    print(f"ELBO: {elbo:.1f} nats a digit (pixels by themselves: {plain:.1f})")


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=40)
    common.run(main, options)
