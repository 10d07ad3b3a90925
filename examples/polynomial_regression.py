"""Fit a line, a parabola and a small network to points by gradient descent.

Shows the smallest training programs there are, on the two problems of gradflow: scikit-learn's
regression data, and the same with squared targets. The line learns from a point at a time, in
their order, from w = b = 0: its losses are those of a correct program to the last digit. The curves
learn from all points at once, by Adam: the parabola ends where least squares does, and the
network, ten relu units as in gradflow, below.

Prints the loss of each epoch of the line, then how each curve does. The picture has the data with
what was fitted, and the losses.
"""

import common
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg


def line(params, x):
    return params["w"] * x + params["b"]


def parabola(params, x):
    return params["a"] * x**2 + line(params, x)


def network(params, x):
    hidden = np.maximum(x[..., np.newaxis] * params["w1"] + params["b1"], 0)
    return hidden @ params["w2"] + params["b2"]


def fit(args, model, params, optimizer, batches, epochs):
    """Return parameters that fit, and the mean loss of each epoch, each point taken once."""

    def loss_fn(params, x, y):
        return np.mean((model(params, x) - y) ** 2)

    @args.jit
    def step(params, state, x, y):
        loss, grads = fg.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return fg.optim.apply_updates(params, updates), state, loss

    state, history = optimizer.init(params), []
    for _ in range(epochs):
        losses = []
        for x, y in batches:
            params, state, loss = step(params, state, x, y)
            losses.append(loss)
        history.append(np.mean(losses))
    return params, history


def draw(path, x, fits):
    """Draw each problem with its curves in the upper row, and the losses in the lower one."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    (above, below), grid = figure.subplots(2, 2), np.linspace(x.min(), x.max(), 200)
    for name, column, y, curve, history in fits:
        if not above[column].lines:
            above[column].plot(x, y, "o", color="0.6", markersize=4)
        above[column].plot(grid, curve(grid), label=name)
        below[column].plot(range(1, len(history) + 1), history)
    for column, title in enumerate(("the data of gradflow", "with squared targets")):
        above[column].set(title=title, xlabel="x", ylabel="y")
        below[column].set(xlabel="epoch", ylabel="mean squared error")
        above[column].legend(frameon=False)
    below[1].set(xscale="log", yscale="log")
    common.save(figure, path)


def main(args):
    x, y, _ = fg.data.make_regression()
    x = x[:, 0]
    every_point = list(zip(x, y, strict=True))

    start = {"w": 0.0, "b": 0.0}
    w_b, history = fit(args, line, start, fg.optim.sgd(1e-3), every_point, 10)
    for epoch, loss in enumerate(history, start=1):
        print(f"line, epoch {epoch:2}: {loss:11.6f}")
    fits = [("line", 0, y, lambda grid: line(w_b, grid), history)]

    # Curves for the squares, in units in which they are about 1.
    squares, unit = y**2, np.std(y**2)
    k1, k2 = fg.random.split(fg.random.key(args.seed))
    curves = {
        "parabola": (parabola, {"a": 0.0, **start}),
        "network": (
            network,
            {
                "w1": fg.random.normal(k1, (10,)),
                "b1": np.zeros(10),
                "w2": 0.3 * fg.random.normal(k2, (10,)),
                "b2": 0.0,
            },
        ),
    }
    optimizer = fg.optim.adam(0.02)
    for name, (model, params) in curves.items():
        found, losses = fit(
            args, model, params, optimizer, [(x, squares / unit)], 200 if args.quick else 3000
        )
        losses = np.multiply(losses, unit**2)
        print(f"{name}: mean squared error {losses[-1]:.0f} after {len(losses)} steps")

        def curve(grid, model=model, found=found):
            return unit * model(found, grid)

        fits.append((name, 1, squares, curve, losses))
    least = np.mean((squares - np.polyval(np.polyfit(x, squares, 2), x)) ** 2)
    print(f"parabola by least squares: {least:.0f}")
    draw(args.out, x, fits)
    print(f"final losses: {', '.join(f'{name} {h[-1]:.6g}' for name, _, _, _, h in fits)}")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
