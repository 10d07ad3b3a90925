"""Walk through the graph of (a + b) * (b + 1), forward and back.

Shows what reverse-mode differentiation does, on the example with which metagrad explains itself.
Going forward, each operation is remembered. Going back, each is given the derivative of the result
by what it made, and its pullback passes on the derivatives by what it took; where a value is used
twice, as `b` is, the two that come back are added.

Prints both passes and draws the graph: beside each edge stand the value and the derivative of the
result by it. They end at 3 by `a` and 8 by `b`, which is what `fg.grad` returns.
"""

import common
import numpy as np

import funcgrad as fg


def f(a, b):
    return (a + b) * (b + 1.0)


def main(args):
    a, b = 3.0, 2.0

    # Forward. `fg.vjp` returns the value of an operation and its pullback.
    c, pull_c = fg.vjp(np.add, a, b)
    d, pull_d = fg.vjp(np.add, b, 1.0)
    e, pull_e = fg.vjp(np.multiply, c, d)
    print(f"forward:   a = {a}  b = {b}  c = a + b = {c}  d = b + 1 = {d}  e = c * d = {e}")

    # Back, from de/de = 1.
    by_c, by_d = pull_e(1.0)
    print(f"multiply:  de/dc = d = {by_c}  de/dd = c = {by_d}")
    by_a, by_b_of_c = pull_c(by_c)
    by_b_of_d, _ = pull_d(by_d)
    print(f"add, add:  de/da = {by_a}  de/db = {by_b_of_c} + {by_b_of_d}, since b is used twice")
    by_b = by_b_of_c + by_b_of_d

    # The same in one call, and the graph. Its names for the results are those from above.
    grads = fg.grad(f, argnums=(0, 1))(a, b)
    assert grads == (by_a, by_b)
    drawing = fg.viz.graph(f, a, b)
    print(drawing.program)
    values = {"a": (a, by_a), "b": (b, by_b), "c": (c, by_c), "d": (d, by_d), "e": (e, 1.0)}
    labels = {name: f"{name} = {v}, de/d{name} = {by}" for name, (v, by) in values.items()}
    common.write(drawing.labelled(labels).draw("plain").encode(), args.out)
    print(f"gradient: {grads[0]} by a, {grads[1]} by b")


if __name__ == "__main__":
    common.run(main, common.parser(__doc__, formats=(".svg",)))
