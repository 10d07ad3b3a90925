"""Learn a differential equation from measurements of what it makes: a neural ODE.

Shows that a gradient goes through SciPy's `odeint`, by the adjoint equations, which are integrated
back in time (Chen et al., *Neural ordinary differential equations*, 2018). Hares and foxes follow
the Lotka-Volterra equations. A network that is shown 61 noisy counts of them, and nothing of the
equations, learns how fast both change: from each count it has to arrive at those that follow.

The picture shows the counts, the orbit that the network makes from the first of them, and how the
populations go on for as long again, which it was not shown. The last line has the mean relative
error there: a few percent.
"""

import common
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

COUNTS = 61  # from time 0 to 12
TIMES = np.linspace(0.0, 24.0, 2 * COUNTS - 1)
NOISE = 0.02  # of a count, relative to it
AHEAD = 5  # the next counts that the network has to arrive at


def truth(logs, t):
    """Return how fast the logarithms of the numbers of hares and foxes change."""
    hares, foxes = np.exp(logs)
    return np.array([1.0 - foxes, hares - 1.0])


def solve(network, starts, times):
    """Follow the network from all `starts` at once; return an array (times, starts, 2)."""

    def rate(logs, t, network):  # to `odeint` all states are one vector
        return network(logs.reshape(starts.shape)).ravel()

    path = fg.scipy.integrate.odeint(rate, starts.ravel(), times, (network,), rtol=1e-5, atol=1e-5)
    return path.reshape(len(times), *starts.shape)


def loss_fn(network, starts, following):
    return np.mean((solve(network, starts, TIMES[: AHEAD + 1])[1:] - following) ** 2)


def train(args, logs, key):
    """Return a network that was trained on the logarithms of the counts."""
    starts = logs[:-AHEAD]
    following = np.stack([logs[i : i + len(starts)] for i in range(1, AHEAD + 1)])
    steps = 10 if args.quick else 300
    network = fg.nn.MLP(2, 2, width_size=16, depth=1, activation=np.tanh, key=key)
    optimizer = fg.optim.adam(fg.optim.cosine_decay_schedule(0.03, steps))
    state = optimizer.init(network)

    @args.jit
    def step(network, state):
        loss, grads = fg.value_and_grad(loss_fn)(network, starts, following)
        updates, state = optimizer.update(grads, state, network)
        return fg.optim.apply_updates(network, updates), state, loss

    for number in common.progress(steps):
        network, state, loss = step(network, state)
        if number % 50 == 0 or number == steps - 1:
            print(f"step {number:3}: loss {loss:.6f}")
    return network


def draw(path, true, counts, made):
    """Draw both populations over time, and against each other."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    series, orbit = figure.subplots(1, 2, width_ratios=(1.6, 1))
    for animal, name in enumerate(("hares", "foxes")):
        colour = f"C{animal}"
        series.plot(TIMES[:COUNTS], counts[:, animal], ".", color=colour)
        series.plot(TIMES, made[:, animal], color=colour, label=name)
        series.plot(TIMES, true[:, animal], ":", color="black")
    series.axvspan(TIMES[COUNTS - 1], TIMES[-1], color="0.95")
    series.set(title="counts (dots), network (lines), truth (dotted)", xlabel="time")
    series.set(ylim=(0.0, 2.4))  # with room for the legend
    series.legend(frameon=False, loc="upper right", ncols=2)
    orbit.plot(*counts.T, ".", color="0.6")
    orbit.plot(*made.T)
    orbit.set(title="the orbit of the network", xlabel="hares", ylabel="foxes")
    common.save(figure, path)


def main(args):
    noise_key, network_key = fg.random.split(fg.random.key(args.seed))
    true = fg.scipy.integrate.odeint(truth, np.log([2.0, 1.0]), TIMES)
    logs = true[:COUNTS] + NOISE * fg.random.normal(noise_key, (COUNTS, 2))
    network = train(args, logs, network_key)
    made = solve(network, logs[:1], TIMES)[:, 0]
    draw(args.out, np.exp(true), np.exp(logs), np.exp(made))
    error = np.mean(np.abs(np.exp(made - true)[COUNTS:] - 1.0))
    print(f"mean relative error of the continuation: {error:.4f}")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
