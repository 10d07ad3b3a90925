"""Draw handwritten digits by denoising diffusion (Ho, Jain and Abbeel, 2020).

Shows a generative model in few lines: digits are mixed with noise, a network learns which digit
was there, and to draw, pure noise is cleaned step by step. It is told which digit to draw, so the
result can be checked: a classifier, trained beside it on real digits, reads what it drew. The
picture has ten of each digit, and how some come out of the noise; the figure is how many are read
as they were meant, beside how many real digits are: nearly all after a minute.
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
ANY = 10  # instead of a digit, where it is not told which
GUIDANCE = 2.5  # how far to go from any digit to the one that is meant (Ho and Salimans, 2022)
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
        self.names = nn.Embedding(ANY + 1, WIDTH, dtype=np.float32, key=next(keys))
        self.blocks = [
            (nn.LayerNorm(WIDTH, dtype=np.float32), linear(WIDTH, WIDTH), linear(WIDTH, WIDTH))
            for _ in range(BLOCKS)
        ]

    def __call__(self, noisy, level, name):
        known = self.levels(level) + self.names(name)
        x = self.first(noisy)
        for norm, inner, outer in self.blocks:
            x = x + outer(relu(inner(norm(x + known))))
        return self.last(x)


def loss_fn(model, images, labels, key=None):
    """Return the mean squared error of digits that are guessed from noisy ones."""
    keys = fg.random.split(fg.random.key(0) if key is None else key, 3)
    level = fg.random.randint(keys[0], (len(images),), 0, LEVELS)
    noise = fg.random.normal(keys[1], images.shape, dtype=np.float32)
    kept = fnp.take(KEPT, level)[:, None]
    labels = np.where(fg.random.bernoulli(keys[2], 0.1, labels.shape), ANY, labels)
    noisy = np.sqrt(kept) * images + np.sqrt(1 - kept) * noise
    return np.mean((model(noisy, level, labels) - images) ** 2)


def sample(args, model, names, key):
    """Return digits drawn out of noise, with what they were like at each level, noisiest first."""

    def cleaner(x, level, name, key):
        """Go from one level to the one below: to the mean given a guess, and some new noise."""
        kept, below = fnp.take(KEPT, level), fnp.take(BELOW, level)
        told, free = model(x, level, name), model(x, level, np.full_like(name, ANY))
        guess = np.clip(free + GUIDANCE * (told - free), -1, 1)
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

    result = common.finished(
        fg.train.fit(
            nn.MLP(PIXELS, 10, 256, 1, dtype=np.float32, key=model_key),
            loss_fn,
            fg.optim.adam(2e-3),
            train,
            epochs=8,
            batch_size=100,
            key=train_key,
            progress=False,
            jit=not args.eager,
        )
    )
    return result.model


def draw(samples, stages):
    """Draw ten of each digit, and how every other of the first column came about."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    digits.show(left, (samples[:100] + 1) / 2, 10, "drawn")
    shown = [stages[i][:100:20] for i in (0, 40, 55, 70, 85, LEVELS)]
    frames = np.stack(shown, axis=1).reshape(-1, PIXELS)
    digits.show(right, (frames + 1) / 2, len(shown), "on the way from noise to digit")
    return figure


def main(args):
    (train, labels), (images, true) = digits.load(400 if args.quick else 8000)
    train, images = train.reshape(-1, PIXELS), images.reshape(-1, PIXELS)
    keys = fg.random.split(fg.random.key(args.seed), 4)
    epochs = 2 if args.quick else args.epochs
    rate = fg.optim.cosine_onecycle_schedule(epochs * len(train) // 100, 1e-3, pct_start=0.1)
    result = common.finished(
        fg.train.fit(
            Denoiser(keys[0]),
            loss_fn,
            fg.optim.adam(rate, b2=0.99),
            (2 * train - 1, labels),
            epochs=epochs,
            batch_size=100,
            key=keys[1],
            validation=(2 * images - 1, true),
            progress=common.watched(),
            jit=not args.eager,
        )
    )
    names = np.tile(np.repeat(np.arange(10), 10), 1 if args.quick else 5)
    samples, stages = sample(args, result.model, names, keys[2])
    common.save(draw(samples, stages), args.out, colours=24)
    classifier = make_classifier(args, (train, labels), keys[3])
    read = fg.train.accuracy(classifier((samples + 1) / 2), names)
    real = fg.train.accuracy(classifier(images), true)
    print(f"read as meant: {read:.1%} of {len(samples)} (of real digits: {real:.1%})")


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=20)
    common.run(main, options)
