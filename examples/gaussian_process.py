"""Fit a Gaussian process to noisy points, its scales chosen by SciPy with exact gradients.

Shows that SciPy's optimizers take a function of a dict as it is, and that gradients go through the
Cholesky factor of a matrix. What is minimized is the negative log marginal likelihood (Rasmussen
and Williams, *Gaussian Processes for Machine Learning*, 2006, equation 2.30) of three numbers: how
much the function varies, over which length, and how strong the noise is.

The picture shows the points, the true function, and the prediction with a band of two standard
deviations, with the scales from the start and with those that were found. With these most of the
true function is in the band. The last line has the noise that was found; the true one is 0.3.
"""

import common
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

NOISE = 0.3
START = {"log_height": 0.0, "log_length": 0.0, "log_noise": 0.0}


def truth(x):
    return np.sin(3.0 * x) + 0.5 * x


def covariance(scales, x1, x2):
    """Return the covariance of the function at `x1` with the function at `x2`."""
    distance = (x1[:, np.newaxis] - x2) / np.exp(scales["log_length"])
    return np.exp(2.0 * scales["log_height"] - 0.5 * distance**2)


def measured_covariance(scales, x):
    """Return the covariance of the measurements at `x`, which have noise."""
    return covariance(scales, x, x) + np.exp(2.0 * scales["log_noise"]) * np.eye(len(x))


def loss_fn(scales, x, y):
    """Return -log p(y | x)."""
    factor = np.linalg.cholesky(measured_covariance(scales, x))
    white = np.linalg.solve(factor, y)
    log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
    return 0.5 * (white @ white + log_determinant + len(x) * np.log(2.0 * np.pi))


def predict(scales, x, y, at):
    """Return mean and standard deviation of the function at other points."""
    across = covariance(scales, x, at)
    weights = np.linalg.solve(measured_covariance(scales, x), across)
    variance = np.exp(2.0 * scales["log_height"]) - np.sum(across * weights, axis=0)
    return weights.T @ y, np.sqrt(variance)


def draw(path, x, y, grid, fits):
    """Draw a panel for each of the scales in `fits`."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, len(fits), sharey=True)
    for axes, (title, (mean, deviation)) in zip(panels, fits.items(), strict=True):
        band = mean - 2 * deviation, mean + 2 * deviation
        axes.fill_between(grid, *band, color="tab:blue", alpha=0.2)
        axes.plot(grid, mean, label="prediction")
        axes.plot(grid, truth(grid), "--", color="tab:orange", label="truth")
        axes.plot(x, y, ".", color="black", label="measured")
        axes.set(title=title, xlabel="x")
    panels[0].legend(frameon=False)
    common.save(figure, path)


def main(args):
    place_key, noise_key = fg.random.split(fg.random.key(args.seed))
    x = fg.random.uniform(place_key, (60,), minval=-3.0, maxval=3.0)
    y = truth(x) + NOISE * fg.random.normal(noise_key, (60,))

    found = fg.scipy.optimize.minimize(args.jit(loss_fn), START, args=(x, y), method="L-BFGS-B")
    grid = np.linspace(-4.5, 4.5, 200)
    fits = {
        name: predict(scales, x, y, grid)
        for name, scales in {"scales at the start": START, "scales found": found.x}.items()
    }
    draw(args.out, x, y, grid, fits)
    print(f"{found.nfev} evaluations: -log p from {loss_fn(START, x, y):.2f} to {found.fun:.2f}")
    for name, value in found.x.items():
        print(f"{name.removeprefix('log_')}: {np.exp(value):.4f}")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
