"""What the two language models share: NumPy's docstrings, and what is done with characters.

The text is on every machine that runs funcgrad, but for the version of NumPy the same on all of
them. Of every ten docstrings the last one is held out. Both models predict the next character from
those before, and the least that they have to beat are counted pairs: `pair_bits`.
"""

import inspect
import textwrap

import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

LENGTH = 64  # how many characters a model sees at once


def load():
    """Return a vocabulary of characters, and the integers of the text to train on and held out."""
    docs = [getattr(getattr(np, name), "__doc__", None) for name in sorted(np.__all__)]
    docs = [inspect.cleandoc(doc) + "\n\n" for doc in docs if doc]
    docs = list(dict.fromkeys(docs))  # some functions have two names
    vocabulary = fg.data.Vocabulary.from_text(
        "".join(docs), level="character", padding=None, unknown=None
    )
    held_out = docs[9::10]
    del docs[9::10]
    return vocabulary, vocabulary.encode("".join(docs)), vocabulary.encode("".join(held_out))


def windows(ids, starts):
    """Return pieces of LENGTH + 1 characters: each is what the one before it should predict."""
    return ids[np.asarray(starts)[:, None] + np.arange(LENGTH + 1)]


def batches(key, ids, size, count):
    """Return a function of the epoch that gives `count` batches of `size` random pieces."""

    def of_epoch(epoch):
        shape, most = (count, size), len(ids) - LENGTH
        starts = fg.random.randint(fg.random.fold_in(key, epoch), shape, 0, most)
        return (windows(ids, row) for row in starts)

    return of_epoch


def held_out_windows(ids, count):
    """Return `count` pieces, evenly spread."""
    return windows(ids, np.linspace(0, len(ids) - LENGTH - 1, count).astype(int))


def loss_fn(model, pieces):
    """Return the mean cross-entropy of each next character, in nats."""
    logits, _ = model(pieces[:, :-1])
    return fg.nn.losses.cross_entropy(logits, pieces[:, 1:], reduction="mean")


def pair_bits(train, held_out, characters):
    """Return the bits for a character if it is predicted from counts of pairs alone."""
    counts = np.ones((characters, characters))
    np.add.at(counts, (train[:-1], train[1:]), 1)
    probs = counts / counts.sum(axis=1, keepdims=True)
    return -np.mean(np.log2(probs[held_out[:-1], held_out[1:]]))


def generate(next_logits, state, ids, count, key, temperature=0.7):
    """Draw `count` characters, each from the logits that the ones before it give.

    `next_logits(state, ids)` takes some more characters, and returns logits and another state.
    """
    drawn = []
    for i in range(count):
        logits, state = next_logits(state, ids)
        ids = fg.random.categorical(fg.random.fold_in(key, i), logits / temperature, shape=(1,))
        drawn.append(ids[0])
    return drawn


def report(sample, history, pairs):
    """Print what was drawn, and how well the held-out text is predicted."""
    nats = history[-1]["validation_loss"]
    print(f"--- a sample\n{sample}\n---")
    print(f"perplexity {fg.train.perplexity(nats):.2f}, by counted pairs {2**pairs:.2f}")
    print(f"bits per character: {nats / np.log(2):.3f}, by counted pairs {pairs:.3f}")


def draw(history, pairs, sample):
    """Draw the learning curve beside the baseline, and the sample."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    curve, text = figure.subplots(1, 2, width_ratios=(4, 5))
    curve.plot(history["step"], np.divide(history["loss"], np.log(2)), label="training")
    curve.plot(history["step"], np.divide(history["validation_loss"], np.log(2)), label="held out")
    curve.axhline(pairs, color="gray", linestyle="--", label="counted pairs")
    curve.set(title="Bits per character", xlabel="step", ylim=(0, None))
    curve.legend(frameon=False)
    text.set(title="A sample")
    text.axis("off")
    lines = [part for line in sample.splitlines() for part in textwrap.wrap(line, 76) or [""]]
    text.text(0, 1, "\n".join(lines[:24]), va="top", family="monospace", size=8, parse_math=False)
    return figure
