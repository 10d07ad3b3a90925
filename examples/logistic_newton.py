"""Tell handwritten 4s from 9s by logistic regression, fitted by exact Newton steps.

Shows `fg.hessian`: the loss is written once, and its gradient and all second derivatives follow
from it. Near the minimum each Newton step doubles the number of right digits, so that a handful of
steps reaches the last one; gradient descent is still far off after hundreds.

Prints loss and gradient before each step, and ends with the accuracy on digits that were held out,
about 0.94. The picture shows how both methods converge, and the weights that were found: ink at red
pixels speaks for a 9, at blue ones for a 4.
"""

import common
import digits
import numpy as np
from matplotlib.figure import Figure

import funcgrad as fg

PENALTY = 1e-4  # on the squared weights, so that there is one minimum


def fours_and_nines(images, labels):
    """Return those digits as vectors of 7x7 pixels and a 1, and whether they are 9s."""
    chosen = np.isin(labels, (4, 9))
    images = images[chosen].astype(float).reshape(-1, 7, 4, 7, 4)
    pixels = images.mean(axis=(2, 4)).reshape(-1, 49)
    return np.column_stack([pixels, np.ones(len(pixels))]), (labels[chosen] == 9).astype(float)


def loss_fn(w, x, y):
    """Return the mean of -log p(y), where the log-odds are x @ w, plus the penalty."""
    logits = x @ w
    return np.mean(np.logaddexp(0.0, logits) - y * logits) + PENALTY * np.sum(w**2)


def newton(args, x, y, steps):
    """Return the weights, and the size of the gradient before each step."""
    value_and_grad, hessian = args.jit(fg.value_and_grad(loss_fn)), args.jit(fg.hessian(loss_fn))
    w, sizes = np.zeros(x.shape[1]), []
    for step in range(steps):
        loss, grad = value_and_grad(w, x, y)
        sizes.append(np.linalg.norm(grad))
        print(f"step {step}: loss {loss:.15f}, gradient {sizes[-1]:.1e}")
        w = w - np.linalg.solve(hessian(w, x, y), grad)
    return w, sizes


def descent(args, x, y, steps):
    """Return the size of the gradient before each step of gradient descent."""
    w, sizes = np.zeros(x.shape[1]), []
    rate = 1 / np.linalg.eigvalsh(fg.hessian(loss_fn)(w, x, y))[-1]  # curvature is largest at 0
    grad_fn = args.jit(fg.grad(loss_fn))
    for _ in range(steps):
        grad = grad_fn(w, x, y)
        sizes.append(np.linalg.norm(grad))
        w = w - rate * grad
    return sizes


def draw(path, w, newton_sizes, descent_sizes):
    """Draw how fast the gradients vanish, and the weights as an image."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    convergence, weights = figure.subplots(1, 2, width_ratios=(1.5, 1))
    convergence.loglog(range(1, len(descent_sizes) + 1), descent_sizes, label="gradient descent")
    convergence.loglog(range(1, len(newton_sizes) + 1), newton_sizes, "o-", label="Newton")
    convergence.set(title="size of the gradient", xlabel="step")
    convergence.legend(frameon=False)
    largest = np.max(np.abs(w[:-1]))
    weights.imshow(w[:-1].reshape(7, 7), cmap="RdBu_r", vmin=-largest, vmax=largest)
    weights.set(title="weights: red for 9, blue for 4", xticks=[], yticks=[])
    common.save(figure, path)


def main(args):
    (x, y), (x_test, y_test) = (fours_and_nines(*part) for part in digits.load())
    w, newton_sizes = newton(args, x, y, steps=10)
    descent_sizes = descent(args, x, y, steps=20 if args.quick else 1000)
    draw(args.out, w, newton_sizes, descent_sizes)
    accuracy = np.mean((x_test @ w > 0) == (y_test == 1))
    steps = np.argmax(np.array(newton_sizes) < 1e-13)
    print(f"gradient below 1e-13 after {steps} steps; held-out accuracy {accuracy:.4f}")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__))
