"""Measure a damped oscillation: a least-squares fit with uncertainties.

Shows SciPy's `least_squares` on a function of a dict, with the exact Jacobian. That matrix also
says how uncertain the parameters are; and by its gradient, how uncertain any function of them is:
here the quality factor, which says how long the oscillation rings.

Prints each parameter with its standard deviation, beside the true value: two of three should be
within one of it, and nearly all within two. The picture shows the measurements with the fit, and
what the fit leaves over, which should look like noise. The true quality factor is 12.5.
"""

import common
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

TRUE = {"amplitude": 1.0, "damping": 0.2, "frequency": 5.0, "offset": 0.3, "phase": 0.5}
START = {"amplitude": 0.8, "damping": 0.1, "frequency": 5.3, "offset": 0.0, "phase": 0.0}
NOISE = 0.05  # the standard deviation of a measurement


def model(params, t):
    """Return where an oscillator is at the times `t`."""
    wave = np.cos(params["frequency"] * t + params["phase"])
    return params["offset"] + params["amplitude"] * np.exp(-params["damping"] * t) * wave


def quality(params):
    return params["frequency"] / (2.0 * params["damping"])


def residuals(params, t, measured):
    """Return how far the measurements are off, in standard deviations."""
    return (model(params, t) - measured) / NOISE


def draw(path, t, measured, params):
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.5, 1))
    fine = np.linspace(t[0], t[-1], 1000)
    above.errorbar(t, measured, NOISE, fmt=".", color="0.5", label="measured")
    above.plot(fine, model(START, fine), ":", color="tab:orange", label="start")
    above.plot(fine, model(params, fine), color="tab:blue", label="fit")
    above.legend(frameon=False, ncols=3)
    below.axhline(0.0, color="tab:blue")
    below.plot(t, -residuals(params, t, measured), ".", color="0.5")
    below.set(xlabel="time", ylabel="left over / noise")
    common.save(figure, path)


def main(args):
    t = np.linspace(0.0, 15.0, 200)
    measured = model(TRUE, t) + NOISE * fg.random.normal(fg.random.key(args.seed), t.shape)

    fit = fg.scipy.optimize.least_squares(args.jit(residuals), START, args=(t, measured))
    covariance = np.linalg.inv(fit.jac.T @ fit.jac)
    deviations = np.sqrt(np.diag(covariance))
    for (name, value), deviation in zip(sorted(fit.x.items()), deviations, strict=True):
        off = (value - TRUE[name]) / deviation
        print(f"{name:9}: {value:.4f} ± {deviation:.4f}, truly {TRUE[name]}: off by {off:+.1f}")
    print(f"chi squared: {2 * fit.cost:.1f} of {len(t) - len(TRUE)} degrees of freedom")
    draw(args.out, t, measured, fit.x)

    gradient, _ = fg.tree.ravel(fg.grad(quality)(fit.x))
    deviation = np.sqrt(gradient @ covariance @ gradient)
    print(f"quality factor: {quality(fit.x):.2f} ± {deviation:.2f}")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
