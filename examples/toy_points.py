"""Teach small networks to tell two classes of points apart, six times.

Shows models as modules, which are pytrees, and one training step under `jit` for all of them, on
the point sets of minitorch: Simple, Diag, Split, Xor, Circle and Spiral, of 50 points each. The
first five take two hidden layers of 20 units, the spiral three of 40.

Every network ends with all points, or all but one, on the right side. The picture shows each set
over what the network would answer in between.
"""

import common
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

L = fg.nn.losses
POINTS = 50
# Of each point set: width and number of the hidden layers, steps, rate of Adam.
SETS = {
    "simple": (20, 2, 400, 0.02),
    "diag": (20, 2, 400, 0.02),
    "split": (20, 2, 400, 0.02),
    "xor": (20, 2, 400, 0.02),
    "circle": (20, 2, 400, 0.02),
    "spiral": (40, 3, 600, 0.01),
}


def loss_fn(model, x, y):
    return L.sigmoid_binary_cross_entropy(model(x), y, reduction="mean")


def train(args, model, x, y, steps, rate):
    """Return the trained model."""
    optimizer = fg.optim.adam(rate)
    step = args.jit(fg.train.make_step(loss_fn, optimizer))
    state = fg.train.TrainState.create(model, optimizer)
    for _ in range(20 if args.quick else steps):
        state, _ = step(state, (x, y))
    return state.model


def draw(axes, name, model, x, y, scaling, accuracy):
    """Draw the points over the probability that the model gives to class 1 in between."""
    low, high = x.min(axis=0) - 0.1, x.max(axis=0) + 0.1
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 80).T), axis=-1)
    probability = fg.nn.functional.sigmoid(model(scaling(grid)))
    axes.contourf(*np.moveaxis(grid, -1, 0), probability, levels=10, cmap="RdBu_r", alpha=0.6)
    for label, colour in enumerate(("tab:blue", "tab:red")):
        axes.plot(*x[y == label].T, "o", color=colour, markeredgecolor="white")
    axes.set(title=f"{name}: {accuracy:.0%}", xticks=[], yticks=[])


def main(args):
    figure = Figure(figsize=(9, 6), layout="constrained")
    accuracies = {}
    for number, (name, axes) in enumerate(zip(SETS, figure.subplots(2, 3).flat, strict=True)):
        width, depth, steps, rate = SETS[name]
        data_key, model_key = fg.random.split(fg.random.fold_in(fg.random.key(args.seed), number))
        x, y = getattr(fg.data.toys, name)(data_key, POINTS)
        scaling = fg.data.Standardizer.fit(x)
        model = fg.nn.MLP(2, "scalar", width, depth, key=model_key)
        model = train(args, model, scaling(x), y.astype(float), steps, rate)
        accuracies[name] = fg.train.accuracy(model(scaling(x)), y)
        print(f"{name:6}: {accuracies[name] * POINTS:.0f} of {POINTS}")
        draw(axes, name, model, x, y, scaling, accuracies[name])
    common.save(figure, args.out)
    print(f"least accuracy: {min(accuracies.values()):.2f}")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
