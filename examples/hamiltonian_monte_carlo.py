"""Sample from a banana-shaped density by Hamiltonian Monte Carlo.

Shows a function of one point, the logarithm of a density up to a constant, that `fg.grad` turns
into the force on it and `fg.vmap` into those on a hundred points at once. Each of these is a chain:
again and again it gets a random velocity and slides for a while in the landscape of -log p; where
it ends is accepted with a probability that makes up for the errors of the integration (Duane et
al., *Hybrid Monte Carlo*, 1987).

The density is that of a normal distribution, bent, so mean and covariance are known. The picture
shows a sample of each chain, and the way of one. The last line has the largest error among the
means and second moments of all samples, in standard errors: chance makes 2 or 3.
"""

import common
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

CHAINS = 100
WIDTH, BEND = 2.0, 0.3  # of the banana
STEP, STEPS = 0.25, 16  # of the integration
MEAN = np.zeros(2)
COVARIANCE = np.diag([WIDTH**2, 1.0 + 2.0 * BEND**2 * WIDTH**4])


def log_density(point):
    """Return log p + constant: of a normal distribution, bent up at both ends."""
    x, y = point
    return -0.5 * ((x / WIDTH) ** 2 + (y - BEND * (x**2 - WIDTH**2)) ** 2)


def energy(points, velocities):
    return 0.5 * np.sum(velocities**2, axis=1) - fg.vmap(log_density)(points)


def transition(key, points):
    """Return the next sample of each chain, and whether it is a new one."""
    velocity_key, accept_key = fg.random.split(key)
    force = fg.vmap(fg.grad(log_density))
    start = fg.random.normal(velocity_key, points.shape)
    velocities, moved = start + 0.5 * STEP * force(points), points
    for _ in range(STEPS):  # leapfrog: positions and velocities by turns, half a step apart
        moved = moved + STEP * velocities
        velocities = velocities + STEP * force(moved)
    velocities = velocities - 0.5 * STEP * force(moved)
    lost = energy(points, start) - energy(moved, velocities)
    accepted = np.log(fg.random.uniform(accept_key, (len(points),))) < lost
    return np.where(accepted[:, np.newaxis], moved, points), accepted


def worst_error(samples):
    """Return the largest error of means and second moments, by how much chains differ."""
    products = np.einsum("tci,tcj->tcij", samples, samples).mean(axis=0)
    of_chains = np.concatenate([samples.mean(axis=0), products.reshape(CHAINS, 4)], axis=1)
    errors = of_chains.mean(axis=0) - np.concatenate([MEAN, COVARIANCE.ravel()])
    return np.max(np.abs(errors) / (of_chains.std(axis=0) / np.sqrt(CHAINS)))


def draw(path, samples):
    """Draw the density with samples of all chains, and the first samples of one chain."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    x, y = np.linspace(-7.0, 7.0, 141), np.linspace(-5.0, 13.0, 181)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    logs = fg.vmap(fg.vmap(log_density))(grid)
    levels = [-8.0, -4.5, -2.0, -0.5, 0.0]  # 4, 3, 2, 1 and 0 standard deviations away
    titles = "the density, and a sample of each chain", "the first 40 samples of one chain"
    shown = samples[-1].T, samples[:40, 0].T
    for axes, title, points, style in zip(
        figure.subplots(1, 2, sharey=True), titles, shown, (".", ".-"), strict=True
    ):
        axes.contourf(x, y, logs, levels=levels, cmap="Blues")
        axes.plot(*points, style, color="tab:orange", linewidth=0.8)
        axes.set(title=title, xlim=(-7, 7), ylim=(-5, 13))
    common.save(figure, path)


def main(args):
    key = fg.random.key(args.seed)
    points = np.zeros((CHAINS, 2))
    step = args.jit(transition)
    samples, accepted = [], []
    for number in common.progress(100 if args.quick else 2000, "sample"):
        points, new = step(fg.random.fold_in(key, number), points)
        samples.append(points)
        accepted.append(new)
    print(f"accepted: {np.mean(accepted):.3f}")
    samples = np.stack(samples[50:])  # by then nothing reminds of the start
    print(f"mean: {samples.mean(axis=(0, 1)).round(3)}, exactly {MEAN}")
    covariance = np.cov(samples.reshape(-1, 2).T)
    print(f"covariance: {covariance.round(3).tolist()}, exactly {COVARIANCE.round(3).tolist()}")
    draw(args.out, samples)
    print(
        f"{samples[..., 0].size} samples, largest error {worst_error(samples):.2f} standard errors"
    )


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
