"""Write docstrings with an LSTM that has read NumPy's, one character after another.

Shows a model as a class (`fg.nn.Module`) around a recurrent layer, its state that goes on from
character to character while it writes, and clipped gradients. After a minute a character costs it
some 1.9 bits, half of what counted pairs need, and what it writes has the look of a docstring. The
picture has the curve of the training and a sample.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more gain little on a network this small

import common
import numpy as np
import texts

import funcgrad as fg

WIDTH, BATCH, STEPS = 192, 32, 100  # an epoch is that many steps


class CharLSTM(fg.nn.Module):
    """Characters in, logits of each next one out."""

    embed: fg.nn.Embedding
    lstm: fg.nn.LSTM
    head: fg.nn.Linear

    def __init__(self, characters, *, key):
        keys = fg.random.split(key, 3)
        self.embed = fg.nn.Embedding(characters, 32, dtype=np.float32, key=keys[0])
        self.lstm = fg.nn.LSTM(32, WIDTH, dtype=np.float32, key=keys[1])
        self.head = fg.nn.Linear(WIDTH, characters, dtype=np.float32, key=keys[2])

    def __call__(self, ids, state=None):
        out, state = self.lstm(self.embed(ids), state)
        return self.head(out), state


def write(args, model, vocabulary, key):
    """Return a text by the model: it reads a first word, and then what it has written itself."""

    def next_logits(state, ids):
        logits, state = model(ids, state)
        return logits[-1], state

    ids = vocabulary.encode("Return")
    drawn = texts.generate(args.jit(next_logits), None, ids, 50 if args.quick else 600, key)
    return "Return" + vocabulary.text(drawn)


def main(args):
    vocabulary, train, held_out = texts.load()
    epochs, steps, pieces = (2, 5, 20) if args.quick else (args.epochs, STEPS, 400)
    model_key, data_key, text_key = fg.random.split(fg.random.key(args.seed), 3)
    rate = fg.optim.cosine_onecycle_schedule(epochs * steps, peak_value=6e-3, pct_start=0.1)
    result = common.finished(
        fg.train.fit(
            CharLSTM(len(vocabulary), key=model_key),
            texts.loss_fn,
            fg.optim.chain(fg.optim.clip_by_global_norm(1.0), fg.optim.adam(rate)),
            texts.batches(data_key, train, BATCH, steps),
            epochs=epochs,
            validation=texts.held_out_windows(held_out, pieces),
            progress=common.watched(),
            jit=not args.eager,
        )
    )
    pairs = texts.pair_bits(train, held_out, len(vocabulary))
    sample = write(args, result.model, vocabulary, text_key)
    common.save(texts.draw(result.history, pairs, sample), args.out)
    texts.report(sample, result.history, pairs)


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=15, help="of 100 steps")
    common.run(main, options)
