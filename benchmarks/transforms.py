"""Transforms on transforms: what they cost beside one gradient, and beside loops in Python."""

from __future__ import annotations

import itertools

import autograd
import autograd.numpy as anp
import numpy as np
from measure import best_times, report

import funcgrad as fg


def network(params, x, tanh=np.tanh):
    for w, b in params[:-1]:
        x = tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, x, y):
    return np.mean((network(params, x) - y) ** 2)


def draw(widths, batch, seed=0):
    """Draw weights, inputs and targets."""
    rng = np.random.default_rng(seed)
    params = [
        (rng.normal(size=(n, m)) / np.sqrt(n), np.zeros(m)) for n, m in itertools.pairwise(widths)
    ]
    return params, rng.normal(size=(batch, widths[0])), rng.normal(size=(batch, widths[-1]))


def hessian_vector_products():
    """``hvp`` of the loss of a network, beside its gradient."""
    for widths, batch in (((784, 64, 64, 10), 128), ((10, 64, 64, 1), 32)):
        params, x, y = draw(widths, batch)
        vector, _, _ = draw(widths, batch, seed=1)

        def f(params, x=x, y=y):
            return loss(params, x, y)

        gradient = fg.grad(f)
        step = 1e-6
        ahead, back = (
            fg.tree.ravel(gradient(fg.tree.map(lambda p, v, s=s: p + s * v, params, vector)))[0]
            for s in (step, -step)
        )
        got = fg.tree.ravel(fg.hvp(f, (params,), (vector,)))[0]
        np.testing.assert_allclose(got, (ahead - back) / (2 * step), rtol=0, atol=1e-6)
        times = best_times(
            {
                "hvp": lambda p=params, v=vector, f=f: fg.hvp(f, (p,), (v,)),
                "gradient": lambda p=params, g=gradient: g(p),
            }
        )
        title = f"hvp, MLP {'-'.join(map(str, widths))}, batch {batch}"
        report(title, times, "hvp", {"gradient": 4.0})


def jacobians():
    """The Jacobian of a function from R^1000 to R^100, beside a loop of pullbacks."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(100, 1000)) / 30
    x = rng.normal(size=1000)

    def f(x):
        return np.tanh(a @ x)

    units = np.eye(100)

    def by_vjps(x):
        return np.stack([fg.vjp(f, x)[1](unit)[0] for unit in units])

    def by_pullbacks(x):
        _, pullback = fg.vjp(f, x)
        return np.stack([pullback(unit)[0] for unit in units])

    jacobian = fg.jacrev(f)
    for loop in (by_vjps, by_pullbacks):
        np.testing.assert_allclose(jacobian(x), loop(x), rtol=1e-12)
    times = best_times(
        {
            "jacrev": lambda: jacobian(x),
            "vjps": lambda: by_vjps(x),
            "pullbacks": lambda: by_pullbacks(x),
        }
    )
    report("jacrev, R^1000 -> R^100", times, "jacrev", {"vjps": 0.1})


def per_example_gradients():
    """``vmap`` of a gradient, beside a loop over 128 examples."""
    for widths in ((10, 64, 1), (64, 64, 10)):
        params, xs, ys = draw(widths, 128)
        gradient = fg.grad(loss)
        batched = fg.vmap(gradient, in_axes=(None, 0, 0))

        def by_loop(params=params, xs=xs, ys=ys, gradient=gradient):
            each = [gradient(params, x, y) for x, y in zip(xs, ys, strict=True)]
            return fg.tree.map(lambda *leaves: np.stack(leaves), *each)

        got, expected = fg.tree.ravel(batched(params, xs, ys))[0], fg.tree.ravel(by_loop())[0]
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
        times = best_times(
            {
                "vmap": lambda p=params, xs=xs, ys=ys, f=batched: f(p, xs, ys),
                "loop": by_loop,
            }
        )
        title = f"128 gradients, MLP {'-'.join(map(str, widths))}"
        # Of the wider one, writing 5 MB of results is what takes the time.
        report(title, times, "vmap", {"loop": 0.05} if widths[-1] == 1 else {})


def hessians():
    """The Hessian of a logistic regression with 30 parameters on 500 rows, beside autograd's."""
    rng = np.random.default_rng(0)
    rows, w = rng.normal(size=(500, 30)), rng.normal(size=30)
    labels = rng.integers(0, 2, size=500).astype(float)

    def negative_log_likelihood(w, np=np):
        scores = np.dot(rows, w)
        return np.sum(np.logaddexp(0.0, scores) - labels * scores)

    def by_hand(w):
        p = 1 / (1 + np.exp(-(rows @ w)))
        return (rows.T * (p * (1 - p))) @ rows

    ours = fg.hessian(negative_log_likelihood)
    theirs = autograd.hessian(lambda w: negative_log_likelihood(w, anp))
    np.testing.assert_allclose(ours(w), by_hand(w), rtol=1e-10)
    np.testing.assert_allclose(theirs(w), by_hand(w), rtol=1e-10)
    times = best_times(
        {
            "funcgrad": lambda: ours(w),
            "autograd": lambda: theirs(w),
            "by hand": lambda: by_hand(w),
        }
    )
    report("hessian, logistic regression", times, "funcgrad", {"autograd": 0.25})


if __name__ == "__main__":
    hessian_vector_products()
    jacobians()
    per_example_gradients()
    hessians()
