"""`lstm_steps`: an LSTM over a whole sequence, as one operation.

A step of a sequence is small, and a `scan` records what it does at each: Python's share is most of
the time. Here the steps are a loop within the operation, forward and backward. What of the backward
pass does not depend on later steps is computed for all of them at once, and so is the cotangent of
the weight, one product of matrices in the end.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import count_examples, full_batch, loop
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.matmul import rows
from funcgrad.rules.nn.recurrent import lstm_gates, lstm_gates_jvp

__all__ = ["lstm_steps"]


@primitive()
def lstm_steps(z, h, c, weight):
    """`lstm_gates` of ``z[t] + h @ weight`` at each step; `z` has shape (time, ..., 4 * size).

    From `h` and `c` on, of shape (..., size). Returns all outputs, all cells and all gates, of
    shape (time, ..., size) and that of `z`. All are of one dtype.
    """
    outputs = np.empty_like(z, shape=(len(z), *h.shape))
    cells, gates = np.empty_like(outputs), np.empty_like(z)
    in_place = type(z) is np.ndarray and z.itemsize > 2
    with np.errstate(over="ignore"):
        for t in range(len(z)):
            total = z[t] + np.matmul(h, weight)
            if in_place:
                _step(total, c, outputs[t], cells[t])
                gates[t] = total
            else:
                outputs[t], cells[t], gates[t] = lstm_gates.forward(total, c)
            h, c = outputs[t], cells[t]
    return outputs, cells, gates


def _step(gates, c, output, cell):
    """Do what `lstm_gates` does, in the arrays that are there; `gates` holds their sums.

    Where an exponential overflows, the logistic function is 0 but for subnormal numbers.
    """
    size = c.shape[-1]
    i, f, g, o = (gates[..., k * size : (k + 1) * size] for k in range(4))
    tanh = np.tanh(g)
    np.negative(gates, out=gates)
    np.exp(gates, out=gates)
    np.add(gates, 1, out=gates)
    np.reciprocal(gates, out=gates)
    g[...] = tanh
    np.multiply(f, c, out=cell)
    np.add(cell, np.multiply(i, tanh, out=tanh), out=cell)
    np.tanh(cell, out=output)
    np.multiply(output, o, out=output)


def _before(first, states):
    """Return the states that the steps start from."""
    return np.concatenate([np.expand_dims(first, 0), states[:-1]])


@lstm_steps.def_jvp
def lstm_steps_jvp(primals, tangents, out):
    z, h, c, weight = primals
    z_dot, h_dot, c_dot, weight_dot = tangents
    outputs, cells, gates = out
    steps = shape_of(z)[0]
    if not steps:
        return np.zeros_like(outputs), np.zeros_like(cells), np.zeros_like(gates)
    h_before, c_before = _before(h, outputs), _before(c, cells)
    dots = []
    for t in range(steps):
        parts = [] if z_dot is None else [z_dot[t]]
        if h_dot is not None:
            parts.append(np.matmul(h_dot, weight))
        if weight_dot is not None:
            parts.append(np.matmul(h_before[t], weight_dot))
        total = sum(parts[1:], parts[0]) if parts else None
        dot = lstm_gates_jvp((None, c_before[t]), (total, c_dot), (None, cells[t], gates[t]))
        h_dot, c_dot, _ = dot
        dots.append(dot)
    return tuple(np.stack(column) for column in zip(*dots, strict=True))


@lstm_steps.def_vjp
def lstm_steps_vjp(primals, out):
    z, h, c, weight = primals
    outputs, cells, gates = out
    steps, size = shape_of(z)[0], shape_of(h)[-1]
    # What was pulled back last, and what came of it: as one value, since threads may share it.
    last = [(None, None)]

    def pulled(out_bar):
        """Return the cotangents of all arguments, computed once for each `out_bar`."""
        bar, found = last[0]
        if bar is not out_bar:
            found = _pulled(*out_bar)
            last[0] = out_bar, found
        return found

    def _pulled(outputs_bar, cells_bar, gates_bar):
        if not steps:
            return np.zeros_like(z), None, None, None
        i, f, g, o = (gates[..., k * size : (k + 1) * size] for k in range(4))
        tanh, c_before = np.tanh(cells), _before(c, cells)
        # By which the cotangent of a cell, or of an output, is multiplied on the way to `z`.
        of_i, of_f, of_g = g * i * (1 - i), c_before * f * (1 - f), i * (1 - g * g)
        of_o, of_cell = tanh * o * (1 - o), o * (1 - tanh * tanh)
        rest = None
        if gates_bar is not None:
            slopes = [i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)]
            rest = gates_bar * np.concatenate(slopes, axis=-1)
        back = weight.T
        h_bar = c_bar = 0
        z_bars = []
        for t in reversed(range(steps)):
            if outputs_bar is not None:
                h_bar = outputs_bar[t] + h_bar
            if cells_bar is not None:
                c_bar = cells_bar[t] + c_bar
            c_bar = c_bar + h_bar * of_cell[t]
            z_bar = np.concatenate(
                [c_bar * of_i[t], c_bar * of_f[t], c_bar * of_g[t], h_bar * of_o[t]], axis=-1
            )
            if rest is not None:
                z_bar = z_bar + rest[t]
            z_bars.append(z_bar)
            h_bar, c_bar = np.matmul(z_bar, back), c_bar * f[t]
        z_bar = np.stack(z_bars[::-1])
        weight_bar = np.matmul(rows(_before(h, outputs)).T, rows(z_bar))
        return z_bar, h_bar, c_bar, weight_bar

    def lstm_steps_pullback_z(out_bar):
        return pulled(out_bar)[0]

    def lstm_steps_pullback_h(out_bar):
        return pulled(out_bar)[1]

    def lstm_steps_pullback_c(out_bar):
        return pulled(out_bar)[2]

    def lstm_steps_pullback_weight(out_bar):
        return pulled(out_bar)[3]

    return (
        lstm_steps_pullback_z,
        lstm_steps_pullback_h,
        lstm_steps_pullback_c,
        lstm_steps_pullback_weight,
    )


@lstm_steps.def_batch
def lstm_steps_batch(args, batched):
    z, h, c, weight = args
    if batched[3]:
        return loop(lstm_steps.bind, args, batched, {})
    size = count_examples(args, batched)
    # The examples come behind the steps, as a part of the batch.
    z = np.moveaxis(full_batch(z, batched[0], size), 0, 1)
    h, c = full_batch(h, batched[1], size), full_batch(c, batched[2], size)
    return tuple(np.moveaxis(x, 1, 0) for x in lstm_steps.bind(z, h, c, weight))


@lstm_steps.def_samples
def lstm_steps_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 2, 8), draw(2, 2), draw(2, 2), draw(2, 8), fun=lstm_steps, complex=False)
    yield Sample(draw(2, 4), draw(1), draw(1), draw(1, 4), fun=lstm_steps, complex=False)
    yield Sample(draw(0, 8), draw(2), draw(2), draw(2, 8), fun=lstm_steps, complex=False)
    yield Sample(
        draw(2, 2, 1, 4), draw(2, 1, 1), draw(2, 1, 1), draw(1, 4), fun=lstm_steps, complex=False
    )
