"""`lstm_steps`: an LSTM over a whole sequence, as one operation.

A step of a sequence is small, and a `scan` records what it does at each: Python's share is most of
the time. Here the steps are a loop within the operation, forward and backward. What of the backward
pass does not depend on later steps is computed for all of them at once, and so is the cotangent of
the weight, one product of matrices in the end.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import count_examples, full_batch, loop
from funcgrad.core.fused import fused
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.matmul import rows
from funcgrad.rules.nn.recurrent import lstm_gates, lstm_gates_jvp, one_of, open_gates

__all__ = ["lstm_steps"]


@primitive()
def lstm_steps(z, h, c, weight):
    """`lstm_gates` of ``z[t] + h @ weight`` at each step; `z` has shape (time, ..., 4 * size).

    From `h` and `c` on, of shape (..., size). Returns all outputs, all cells and all gates, of
    shape (time, ..., size) and (time, 4, ..., size). All are of one dtype.
    """
    outputs = np.empty((len(z), *h.shape), h.dtype)
    cells = np.empty_like(outputs)
    gates = np.empty((len(z), 4, *h.shape), h.dtype)
    if type(z) is not np.ndarray or z.itemsize <= 2:
        for t in range(len(z)):
            outputs[t], cells[t], gates[t] = lstm_gates.forward(z[t] + np.matmul(h, weight), c)
            h, c = outputs[t], cells[t]
        return outputs, cells, gates
    minus, sums, size = np.negative(weight, order="C"), np.empty(z.shape[1:], z.dtype), h.shape[-1]
    i, f, g, o = (sums[..., k * size : (k + 1) * size] for k in range(4))
    with np.errstate(over="ignore"):
        for z_t, output, cell, gates_t in zip(z, outputs, cells, gates, strict=True):
            np.matmul(h, minus, out=sums)
            np.subtract(sums, z_t, out=sums)
            for part, gate in ((i, gates_t[0]), (f, gates_t[1]), (o, gates_t[2])):
                np.exp(part, out=gate)
            np.tanh(g, out=gates_t[3])
            np.negative(gates_t[3], out=gates_t[3])
            open_gates(gates_t, c, output, cell)
            h, c = output, cell
    return outputs, cells, gates


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
    steps = shape_of(z)[0]
    # What was pulled back last, and what came of it: as one value, since threads may share it.
    last = [(None, None)]

    def pulled(out_bar):
        """Return the cotangents of `z`, `h` and `c`, computed once for each `out_bar`."""
        bar, found = last[0]
        if bar is not out_bar:
            found = _pulled(*out_bar)
            last[0] = out_bar, found
        return found

    def _pulled(outputs_bar, cells_bar, gates_bar):
        if not steps:
            return np.zeros_like(z), None, None
        if gates_bar is not None or dtype_of(weight).itemsize <= 2:
            return _pull(outputs_bar, cells_bar, gates_bar, c, weight, cells, gates)
        nothing = np.zeros((), dtype_of(gates))
        outputs_bar = nothing if outputs_bar is None else outputs_bar
        cells_bar = nothing if cells_bar is None else cells_bar
        return pull_steps.bind(outputs_bar, cells_bar, c, weight, cells, gates)

    def lstm_steps_pullback_z(out_bar):
        return pulled(out_bar)[0]

    def lstm_steps_pullback_h(out_bar):
        return pulled(out_bar)[1]

    def lstm_steps_pullback_c(out_bar):
        return pulled(out_bar)[2]

    def lstm_steps_pullback_weight(out_bar):
        if not steps:
            return None
        z_bar = pulled(out_bar)[0]
        first = (
            np.matmul(rows(h).T, rows(z_bar[0]))
            if len(shape_of(h)) > 1
            else (np.expand_dims(h, -1) * z_bar[0])
        )
        return np.matmul(rows(outputs[:-1]).T, rows(z_bar[1:])) + first

    return (
        lstm_steps_pullback_z,
        lstm_steps_pullback_h,
        lstm_steps_pullback_c,
        lstm_steps_pullback_weight,
    )


def _pull(outputs_bar, cells_bar, gates_bar, c, weight, cells, gates):
    """Return the cotangents of `z`, `h` and `c`, given those of the results, or None."""
    i, f, o, g = np.moveaxis(gates, 1, 0)
    tanh, c_before = np.tanh(cells), _before(c, cells)
    # By which the cotangent of a cell, or of an output, is multiplied on the way to `z`.
    of_i, of_f, of_g = g * (i * (1 - i)), c_before * (f * (1 - f)), i * (1 - g * g)
    of_o, of_cell = tanh * (o * (1 - o)), o * (1 - tanh * tanh)
    rest = None
    if gates_bar is not None:
        slopes = [i * (1 - i), f * (1 - f), o * (1 - o), 1 - g * g]
        i_bar, f_bar, o_bar, g_bar = np.moveaxis(gates_bar, 1, 0) * np.stack(slopes)
        rest = np.concatenate([i_bar, f_bar, g_bar, o_bar], axis=-1)
    back = weight.T
    h_bar = c_bar = 0
    z_bars = []
    for t in reversed(range(shape_of(gates)[0])):
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
    return np.stack(z_bars[::-1]), h_bar, c_bar


def _pull_in_lines(outputs_bar, cells_bar, c, weight, cells, gates):
    outputs_bar = None if shape_of(outputs_bar) == () else outputs_bar
    cells_bar = None if shape_of(cells_bar) == () else cells_bar
    return _pull(outputs_bar, cells_bar, None, c, weight, cells, gates)


# Elements of the gates of some steps that fit the cache.
_PIECE = 1 << 17


@fused(_pull_in_lines)
def pull_steps(outputs_bar, cells_bar, c, weight, cells, gates):
    """Return the cotangents of `z`, `h` and `c`; a cotangent without axes is none."""
    steps, size = len(gates), c.shape[-1]
    z_bar = np.empty((steps, *c.shape[:-1], 4 * size), c.dtype)
    # The parts that belong to i, f and g, and that of o.
    three = np.moveaxis(z_bar[..., : 3 * size].reshape(*z_bar.shape[:-1], 3, size), -2, 1)
    of_o = z_bar[..., 3 * size :]
    h_bar, c_bar = np.zeros_like(c, order="C"), np.zeros_like(c, order="C")
    work, back = np.empty_like(c_bar), weight.T
    step = max(1, min(steps, _PIECE // max(gates[:1].size, 1)))
    factors = np.empty((step, 4, *c.shape), c.dtype)
    of_cell = np.empty((step, *c.shape), c.dtype)
    for start in reversed(range(0, steps, step)):
        stop = min(start + step, steps)
        before = cells[start - 1] if start else c
        _factors(gates[start:stop], cells[start:stop], before, factors, of_cell)
        for t in reversed(range(start, stop)):
            if outputs_bar.ndim:
                np.add(h_bar, outputs_bar[t], out=h_bar)
            if cells_bar.ndim:
                np.add(c_bar, cells_bar[t], out=c_bar)
            np.multiply(h_bar, of_cell[t - start], out=work)
            np.add(c_bar, work, out=c_bar)
            np.multiply(factors[t - start, :3], c_bar, out=three[t])
            np.multiply(factors[t - start, 3], h_bar, out=of_o[t])
            np.multiply(c_bar, gates[t, 1], out=c_bar)
            np.matmul(z_bar[t], back, out=h_bar)
    return z_bar, h_bar, c_bar


def _factors(gates, cells, c_before, factors, of_cell):
    """Fill in by what the cotangents of cells and outputs are multiplied on the way to `z`.

    In the order i, f, g, o; and in `of_cell` by what that of an output is on the way to the cell.
    """
    factors, tanh = factors[: len(gates)], of_cell[: len(gates)]
    i, f, o, g = (gates[:, k] for k in range(4))
    of_i, of_f, of_g, of_o = (factors[:, k] for k in range(4))
    one = one_of(gates)
    np.tanh(cells, out=tanh)
    for gate, part in ((i, of_i), (f, of_f), (o, of_o)):
        np.subtract(one, gate, out=part)
        np.multiply(part, gate, out=part)
    np.multiply(of_i, g, out=of_i)
    np.multiply(of_f[:1], c_before, out=of_f[:1])
    np.multiply(of_f[1:], cells[:-1], out=of_f[1:])
    np.multiply(g, g, out=of_g)
    np.subtract(one, of_g, out=of_g)
    np.multiply(of_g, i, out=of_g)
    np.multiply(of_o, tanh, out=of_o)
    np.multiply(tanh, tanh, out=tanh)
    np.subtract(one, tanh, out=tanh)
    np.multiply(tanh, o, out=tanh)


@pull_steps.def_samples
def pull_steps_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    for lead in ((), (2,), (2, 3)):
        rest = draw(*lead, 2), draw(2, 8), draw(3, *lead, 2), rng.uniform(size=(3, 4, *lead, 2))
        bars = draw(3, *lead, 2), draw(3, *lead, 2)
        yield Sample(*bars, *rest, fun=pull_steps, complex=False)
    yield Sample(bars[0], np.zeros(()), *rest, fun=pull_steps, complex=False)


@lstm_steps.def_batch
def lstm_steps_batch(args, batched):
    z, h, c, weight = args
    if batched[3]:
        return loop(lstm_steps.bind, args, batched, {})
    size = count_examples(args, batched)
    # The examples come behind the steps, as a part of the batch.
    z = np.moveaxis(full_batch(z, batched[0], size), 0, 1)
    h, c = full_batch(h, batched[1], size), full_batch(c, batched[2], size)
    outputs, cells, gates = lstm_steps.bind(z, h, c, weight)
    return np.moveaxis(outputs, 1, 0), np.moveaxis(cells, 1, 0), np.moveaxis(gates, 2, 0)


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
