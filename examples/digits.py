"""The digits that several examples learn from: 10,000 of MNIST, which are in `data/`."""

from pathlib import Path

import numpy as np

PATH = Path(__file__).parent / "data" / "mnist_10k.npz"


def load(count=8000):
    """Return images (n, 1, 28, 28), float32 in 0..1, and labels, to train on and held out.

    The last 2,000 are held out; of the 8,000 before, the first `count` are to train on.
    """
    with np.load(PATH) as data:
        images = data["images"][:, None].astype(np.float32) / 255
        labels = data["labels"].astype(np.intp)
    return (images[:count], labels[:count]), (images[8000:], labels[8000:])


def show(axes, images, columns, title):
    """Draw images of 784 pixels each, of 0 to 1, in rows of `columns`."""
    rows = np.reshape(images, (-1, columns, 28, 28)).swapaxes(1, 2)
    tiles = rows.reshape(28 * len(rows), 28 * columns)
    axes.imshow(tiles, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set(title=title, xticks=[], yticks=[])
