"""Write docstrings with a small transformer that has read NumPy's, one character after another.

Shows attention to what came before (`fg.nn.TransformerEncoder`, with a causal mask and rotary
positions), trained on the same text as in char_lstm.py, with a learning rate that rises first and
then falls. After a minute a character costs it some 1.85 bits. The picture has the
curve of the training and a sample.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more gain little on a network this small

import common
import numpy as np
import texts

import funcgrad as fg

WIDTH, LAYERS, HEADS = 96, 2, 4
BATCH, STEPS = 16, 100  # an epoch is that many steps


class CharTransformer(fg.nn.Module):
    """Characters in, logits of each next one out."""

    embed: fg.nn.Embedding
    blocks: fg.nn.TransformerEncoder
    head: fg.nn.Linear

    def __init__(self, characters, *, key):
        keys = fg.random.split(key, 3)
        self.embed = fg.nn.Embedding(characters, WIDTH, dtype=np.float32, key=keys[0])
        self.blocks = fg.nn.TransformerEncoder(
            LAYERS, HEADS, WIDTH, rotary=True, dtype=np.float32, key=keys[1]
        )
        self.head = fg.nn.Linear(WIDTH, characters, dtype=np.float32, key=keys[2])

    def __call__(self, ids):
        return self.head(self.blocks(self.embed(ids), is_causal=True)), None


def write(args, model, vocabulary, ids, key):
    """Return how the model goes on with a text, always looking at its last characters."""

    def next_logits(seen, ids):
        seen = np.concatenate([seen[len(ids) :], ids])
        logits, _ = model(seen)
        return logits[-1], seen

    seen, last = ids[-texts.LENGTH - 1 : -1], ids[-1:]
    drawn = texts.generate(args.jit(next_logits), seen, last, 50 if args.quick else 600, key)
    return vocabulary.text([*seen, *last, *drawn])


def main(args):
    vocabulary, train, held_out = texts.load()
    epochs, steps, pieces = (2, 5, 20) if args.quick else (args.epochs, STEPS, 400)
    model_key, data_key, text_key = fg.random.split(fg.random.key(args.seed), 3)
    rate = fg.optim.cosine_onecycle_schedule(epochs * steps, peak_value=3e-3, pct_start=0.1)
    result = common.finished(
        fg.train.fit(
            CharTransformer(len(vocabulary), key=model_key),
            texts.loss_fn,
            fg.optim.chain(fg.optim.clip_by_global_norm(1.0), fg.optim.adamw(rate)),
            texts.batches(data_key, train, BATCH, steps),
            epochs=epochs,
            validation=texts.held_out_windows(held_out, pieces),
            progress=common.watched(),
            jit=not args.eager,
        )
    )
    pairs = texts.pair_bits(train, held_out, len(vocabulary))
    sample = write(args, result.model, vocabulary, held_out[:100], text_key)
    common.save(texts.draw(result.history, pairs, sample), args.out)
    texts.report(sample, result.history, pairs)


if __name__ == "__main__":
    options = common.parser(__doc__)
    options.add_argument("--epochs", type=common.positive, default=18, help="of 100 steps")
    common.run(main, options)
