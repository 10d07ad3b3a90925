"""Draw handwritten digits by denoising diffusion (Ho, Jain and Abbeel, 2020).

Shows a generative model in few lines: digits are mixed with noise, a network learns which digit
was there, and to draw, pure noise is cleaned step by step. It is told which digit to draw, so the
result can be checked: a classifier, trained beside it on real digits, reads what it drew. The
picture has ten of each digit, and how four of them come out of the noise; the figure is how many
are read as they were meant, beside how many real digits are.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more gain little on a network this small

import common
import digits
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg
import funcgrad.numpy as fnp

nn, relu = fg.nn, fg.nn.functional.relu
PIXELS, WIDTH, BLOCKS, LEVELS = 784, 512, 3, 100
# How much of a digit is left at each level of noise, in variance (Nichol and Dhariwal, 2021).
KEPT = np.cos(np.linspace(0, 1, LEVELS + 1)[1:] * 0.99 * np.pi / 2).astype(np.float32) ** 2
BELOW = np.concatenate([[1], KEPT[:-1]]).astype(np.float32)  # and at the one below


class Denoiser(nn.Module):
    """Noisy digits, their levels of noise and what they are in; clean digits out."""

    first: nn.Linear
    levels: nn.Embedding
    names: nn.Embedding
    blocks: list
    last: nn.Linear

    def __init__(self, key):
        keys = iter(fg.random.split(key, 4 + 2 * BLOCKS))

        def linear(n, m):
            return nn.Linear(n, m, dtype=np.float32, key=next(keys))

        self.first, self.last = linear(PIXELS, WIDTH), linear(WIDTH, PIXELS)
        self.levels = nn.Embedding(LEVELS, WIDTH, dtype=np.float32, key=next(keys))
        self.names = nn.Embedding(10, WIDTH, dtype=np.float32, key=next(keys))
        self.blocks = [
            (nn.LayerNorm(WIDTH, dtype=np.float32), linear(WIDTH, WIDTH), linear(WIDTH, WIDTH))
            for _ in range(BLOCKS)
        ]

    def __call__(self, noisy, level, name):
        known = self.levels(level) + self.names(name)
        x = self.first(noisy)
        for norm, inner, outer in self.blocks:
            x = x + outer(relu(inner(norm(x + known))))
        return self.last(relu(x))


def loss_fn(model, images, labels, key=None):
    """Return the mean squared error of digits that are guessed from noisy ones."""
    level_key, noise_key = fg.random.split(fg.random.key(0) if key is None else key)
    level = fg.random.randint(level_key, (len(images),), 0, LEVELS)
    noise = fg.random.normal(noise_key, images.shape, dtype=np.float32)
    kept = fnp.take(KEPT, level)[:, None]
    noisy = np.sqrt(kept) * images + np.sqrt(1 - kept) * noise
    return np.mean((model(noisy, level, labels) - images) ** 2)


def sample(args, model, names, key):
    """Return digits drawn out of noise, with what they were like at each level, noisiest first."""

    def cleaner(x, level, name, key):
        """Go from one level to the one below: to the mean given a guess, and some new noise."""
        kept, below = fnp.take(KEPT, level), fnp.take(BELOW, level)
        guess = np.clip(model(x, level, name), -1, 1)
        step = kept / below
        mean = (np.sqrt(below) * (1 - step) * guess + np.sqrt(step) * (1 - below) * x) / (1 - kept)
        noise = fg.random.normal(key, x.shape, dtype=np.float32)
        return mean + np.sqrt((1 - step) * (1 - below) / (1 - kept)) * noise

    cleaner = args.jit(cleaner)
    x = fg.random.normal(fg.random.fold_in(key, LEVELS), (len(names), PIXELS), dtype=np.float32)
    stages = [x]
    for level in range(LEVELS)[::-1]:
        x = cleaner(x, level, names, fg.random.fold_in(key, level))
        stages.append(x)
    return x, stages


def make_classifier(args, train, key):
    """Return a classifier of digits: what judges the samples."""
    model_key, train_key = fg.random.split(key)

    def loss_fn(model, images, labels):
        return nn.losses.cross_entropy(model(images), labels, reduction="mean")

    return fg.train.fit(
        nn.MLP(PIXELS, 10, 128, 1, dtype=np.float32, key=model_key),
        loss_fn,
        fg.optim.adam(1e-3),
        train,
        epochs=8,
        batch_size=100,
        key=train_key,
        progress=False,
        jit=not args.eager,
    ).model


def draw(samples, stages):
    figure = Figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(digits.tiles(samples[:100], 10), cmap="gray_r", vmin=-1, vmax=1)
    left.set(title="drawn", xticks=[], yticks=[])
    shown = [stages[i][3:100:10] for i in np.linspace(0, LEVELS, 10).astype(int)]
    frames = np.stack(shown, axis=1).reshape(-1, PIXELS)
    right.imshow(digits.tiles(frames, 10), cmap="gray_r", vmin=-1, vmax=1)
    right.set(title="on the way from noise to digit", xticks=[], yticks=[])
    return figure


def main(args):
    (train, labels), (images, true) = digits.load(400 if args.quick else 8000)
    train, images = 2 * train.reshape(-1, PIXELS) - 1, 2 * images.reshape(-1, PIXELS) - 1
    keys = fg.random.split(fg.random.key(args.seed), 4)
    epochs = 2 if args.quick else args.epochs
    rate = fg.optim.cosine_onecycle_schedule(epochs * len(train) // 100, 2e-3, pct_start=0.1)
    result = common.finished(
        fg.train.fit(
            Denoiser(keys[0]),
            loss_fn,
            fg.optim.adam(rate),
            (train, labels),
            epochs=epochs,
            batch_size=100,
            key=keys[1],
            validation=(images, true),
            progress=common.watched(),
            jit=not args.eager,
        )
    )
    names = np.repeat(np.arange(10), 10)
    samples, stages = sample(args, result.model, np.tile(names, 1 if args.quick else 5), keys[2])
    common.save(draw(samples, stages), args.out)
    classifier = make_classifier(args, (train, labels), keys[3])
    read = fg.train.accuracy(classifier(samples), np.tile(names, len(samples) // 100))
    real = fg.train.accuracy(classifier(images), true)
    print(f"read as meant: {read:.1%} of {len(samples)} (of real digits: {real:.1%})")


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=25)
    common.run(main, options)
