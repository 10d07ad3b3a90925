"""Teach a multilayer perceptron to read handwritten digits.

Shows a whole training program in plain NumPy functions: parameters are a list of dicts, the model
and its loss are functions of them, `fg.value_and_grad` adds the gradients, `fg.optim.adam` turns
these into updates, and explicit random keys make the same seed give the same numbers.

Prints a progress bar with the loss and the accuracy on held-out digits, saves a picture of the
learning curves and of the digits it misread, and ends with a line `test accuracy: 0.xxxx`.
"""

import itertools
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more gain little on a network this small

import common
import digits
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

F = fg.nn.functional
SIZES = (784, 512, 256, 10)
KEEP = 0.8  # dropout keeps this share of the hidden units
SHIFT = 1  # training digits move by up to this many pixels each way


def init_params(key):
    """Draw weights of variance 2 / fan-in (He et al., 2015), which suits relu."""
    layers = []
    for i, (n_in, n_out) in enumerate(itertools.pairwise(SIZES)):
        w = fg.random.normal(fg.random.fold_in(key, i), (n_in, n_out)) * np.sqrt(2 / n_in)
        layers.append({"w": w.astype(np.float32), "b": np.zeros(n_out, np.float32)})
    return layers


def predict(params, x, key=None):
    """Return the logits of the images `x`; with a `key`, drop hidden units at random."""
    *hidden, last = params
    for i, layer in enumerate(hidden):
        x = F.relu(x @ layer["w"] + layer["b"])
        if key is not None:
            kept = fg.random.bernoulli(fg.random.fold_in(key, i), KEEP, x.shape)
            x = np.where(kept, x / KEEP, 0)
    return x @ last["w"] + last["b"]


def loss_fn(params, x, y, key=None):
    """Return the mean cross-entropy of the true digits `y`."""
    logits = predict(params, x, key)
    return np.mean(F.softmax_cross_entropy_with_integer_labels(logits, y))


def batches(key, images, labels, batch_size):
    """Yield one epoch of batches in random order, each image moved at random."""
    order_key, shift_key = fg.random.split(key)
    padded = np.pad(images.reshape(-1, 28, 28), ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    moved = np.lib.stride_tricks.sliding_window_view(padded, (28, 28), axis=(1, 2))
    down, right = fg.random.randint(shift_key, (2, len(images)), 0, 2 * SHIFT + 1)
    order = fg.random.permutation(order_key, len(images))
    for start in range(0, len(images), batch_size):
        i = order[start : start + batch_size]
        yield moved[i, down[i], right[i]].reshape(len(i), 784), labels[i]


def train(args, train_set, x_test, y_test):
    """Return trained parameters, and for each epoch (training loss, held-out loss, accuracy)."""
    init_key, train_key = fg.random.split(fg.random.key(args.seed))
    params, optimizer = init_params(init_key), fg.optim.adam(args.lr)
    state = optimizer.init(params)

    @args.jit
    def step(params, state, x, y, key):
        loss, grads = fg.value_and_grad(loss_fn)(params, x, y, key)
        updates, state = optimizer.update(grads, state, params)
        return fg.optim.apply_updates(params, updates), state, loss

    history = []
    epochs = common.progress(args.epochs, "epoch")
    for epoch in epochs:
        data_key, dropout_key = fg.random.split(fg.random.fold_in(train_key, epoch))
        losses = []
        for i, (x, y) in enumerate(batches(data_key, *train_set, args.batch_size)):
            params, state, loss = step(params, state, x, y, fg.random.fold_in(dropout_key, i))
            losses.append(loss)
        accuracy = np.mean(np.argmax(predict(params, x_test), axis=1) == y_test)
        history.append((np.mean(losses), loss_fn(params, x_test, y_test), accuracy))
        epochs.set_postfix(loss=f"{history[-1][0]:.4f}", accuracy=f"{accuracy:.4f}")
    return params, history


def draw(path, history, probs, images, labels):
    """Save the learning curves, and below them the digits misread with most confidence."""
    read = np.argmax(probs, axis=1)
    wrong = np.flatnonzero(read != labels)
    shown = wrong[np.argsort(-np.max(probs, axis=1)[wrong], kind="stable")][:24]
    figure = Figure(figsize=(10, 8), layout="constrained")
    curves, gallery = figure.subfigures(2, 1, height_ratios=(3, 4), hspace=0.04)
    loss_axes, accuracy_axes = curves.subplots(1, 2, sharex=True)
    train_loss, test_loss, accuracy = np.transpose(history)
    epochs = range(1, len(history) + 1)
    loss_axes.plot(epochs, train_loss, ".-", label="training (moved, with dropout)")
    loss_axes.plot(epochs, test_loss, ".-", label="held out")
    loss_axes.legend(frameon=False)
    loss_axes.set(title="Cross-entropy", xlabel="epoch", ylim=(0, None))
    accuracy_axes.plot(epochs, accuracy, ".-", color="C1")
    accuracy_axes.set(title=f"Held-out accuracy: {accuracy[-1]:.2%} at the end", xlabel="epoch")
    loss_axes.locator_params(axis="x", integer=True)
    loss_axes.grid(alpha=0.3)
    accuracy_axes.grid(alpha=0.3)
    gallery.suptitle(f"{len(wrong)} of {len(labels):,} misread; the {len(shown)} surest mistakes")
    for n, axes in enumerate(gallery.subplots(3, 8).flat):
        axes.axis("off")
        if n < len(shown):
            axes.imshow(images[shown[n]].reshape(28, 28), cmap="gray_r")
            axes.set_title(f"{labels[shown[n]]} read as {read[shown[n]]}", fontsize=10)
    common.save(figure, path, dpi=72)


def main(args):
    if args.quick:
        args.epochs = 1
    train_set, (images, labels) = digits.load(1000 if args.quick else 8000)
    images = images.reshape(-1, 784)
    params, history = train(args, train_set, images, labels)
    draw(args.out, history, F.softmax(predict(params, images)), images, labels)
    print(f"test accuracy: {history[-1][-1]:.4f}")


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=20)
    options.add_argument("--batch-size", type=common.positive, default=128)
    options.add_argument("--lr", type=float, default=1e-3, help="learning rate of Adam")
    common.run(main, options)
