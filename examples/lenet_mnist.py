"""Read handwritten digits with LeNet, the convolutional network of 1998.

Shows layers (`fg.nn`), pictures moved at random while training (`fg.data`), a schedule for the
optimizer (`fg.optim`) and a whole training in one call (`fg.train.fit`), compiled by `fg.jit`.
Of the 2,000 digits that it has not seen, it reads some 98.6 % after half a minute. The picture
has the curves of the training, and the digits that it misread most surely.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more gain little on a network this small

import common
import digits
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

nn, relu = fg.nn, fg.nn.functional.relu
BATCH = 100


def make_lenet(key):
    """Convolutions that see ever larger parts of the picture, then three full layers."""
    keys = iter(fg.random.split(key, 5))

    def conv(*sizes, padding=0):
        return nn.Conv2d(*sizes, padding=padding, dtype=np.float32, key=next(keys))

    def linear(*sizes):
        return nn.Linear(*sizes, dtype=np.float32, key=next(keys))

    return nn.Sequential(
        [
            *[conv(1, 6, 5, padding=2), relu, nn.MaxPool2d(2, 2)],  # (6, 14, 14)
            *[conv(6, 16, 5), relu, nn.MaxPool2d(2, 2), nn.Flatten()],  # (16, 5, 5) -> 400
            *[linear(400, 120), relu, linear(120, 84), relu, linear(84, 10)],
        ]
    )


def loss_fn(model, images, labels):
    return nn.losses.cross_entropy(model(images), labels, reduction="mean", label_smoothing=0.05)


def batches(key, train):
    """Return a function of the epoch that gives its batches, each picture moved at random."""

    def of_epoch(epoch):
        order_key, crop_key = fg.random.split(fg.random.fold_in(key, epoch))
        images = fg.data.random_crop(crop_key, train[0], padding=2)
        return fg.data.batch_iterator(order_key, (images, train[1]), BATCH)

    return of_epoch


def train(args):
    """Return the fitted model, with its history, and the held-out digits."""
    train_set, test_set = digits.load(400 if args.quick else 8000)
    epochs = 2 if args.quick else args.epochs
    model_key, data_key = fg.random.split(fg.random.key(args.seed))
    steps = epochs * len(train_set[0]) // BATCH
    rate = fg.optim.cosine_onecycle_schedule(steps, peak_value=4e-3, pct_start=0.2)
    result = common.finished(
        fg.train.fit(
            make_lenet(model_key),
            loss_fn,
            fg.optim.adamw(rate, weight_decay=0.02),
            batches(data_key, train_set),
            epochs=epochs,
            validation=test_set,
            metrics={"accuracy": fg.train.accuracy},
            progress=common.watched(),
            jit=not args.eager,
        )
    )
    return result, test_set


def draw(history, probs, images, labels):
    """Draw the curves, and below them the digits misread with most confidence."""
    read = np.argmax(probs, axis=1)
    wrong = np.flatnonzero(read != labels)
    wrong = wrong[np.argsort(-np.max(probs, axis=1)[wrong], kind="stable")]
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    curves, gallery = figure.subfigures(2, 1, height_ratios=(5, 4))
    left, right = curves.subplots(1, 2)
    left.plot(history["epoch"], history["loss"], label="training (moved pictures)")
    left.plot(history["epoch"], history["validation_loss"], label="held out")
    left.set(title="Cross-entropy", xlabel="epoch")
    left.legend(frameon=False)
    errors = 100 * (1 - np.asarray(history["validation_accuracy"]))
    right.semilogy(history["epoch"], errors, color="C1")
    right.set(title="Held-out digits misread, %", xlabel="epoch")
    right.set_yticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
    for axes in (left, right):
        axes.locator_params(axis="x", integer=True)
        axes.grid(alpha=0.3)
    gallery.suptitle(f"{len(wrong)} of {len(labels):,} are misread; the surest mistakes")
    for axes, i in zip(gallery.subplots(2, 10).flat, wrong, strict=False):
        axes.imshow(images[i, 0], cmap="gray_r")
        axes.set_title(f"{labels[i]} as {read[i]}", fontsize=9)
    for axes in gallery.axes:
        axes.axis("off")
    return figure


def main(args):
    result, (images, labels) = train(args)
    probs = nn.functional.softmax(fg.train.predict(result.model, images))
    common.save(draw(result.history, probs, images, labels), args.out)
    print(f"{nn.count_parameters(result.model):,} parameters, {result.state.step} steps")
    print(f"test accuracy: {result.history[-1]['validation_accuracy']:.4f}")


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=20)
    common.run(main, options)
