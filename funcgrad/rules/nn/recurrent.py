"""What recurrent cells do with their sums: the gates of the LSTM and of the GRU.

Each is one primitive, since a step of a sequence is small: it would be some fifteen operations
forward and thirty backward, of which Python's share is most of the time. Both return their gates
too, from which the rules go on, and which nobody else needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core.batch import align, count_examples, full_batch
from funcgrad.core.fused import fused
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.nn.activations import sigmoid

__all__ = ["gru_gates", "lstm_gates", "one_of", "open_gates"]


def _logistic(x):
    return sigmoid.forward(x)


@primitive()
def lstm_gates(z, c):
    """The gates i, f, g, o of `z`, along its last axis, applied to the cell `c`.

    With i, f, o the logistic function and g the tanh of their parts: the new cell is
    ``f * c + i * g``, the output ``o * tanh(new cell)``. Returns output, cell, and the gates i, f,
    o, g in this order along a new first axis, so that each lies in memory by itself.
    """
    if _is_plain(z, c):
        gates = np.empty((4, *c.shape), c.dtype)
        output, cell = np.empty(c.shape, c.dtype), np.empty(c.shape, c.dtype)
        with np.errstate(over="ignore"):
            lstm_gates_into(z, c, output, cell, gates)
        return output, cell, gates
    i, f, g, o = _parts(z, 4)
    i, f, o, g = _logistic(i), _logistic(f), _logistic(o), np.tanh(g)
    cell = f * c + i * g
    return o * np.tanh(cell), cell, np.stack([i, f, o, g])


# Ones of each dtype, which NumPy takes more quickly than a number of Python's.
_ONES = {np.dtype(kind): np.array(1, kind) for kind in (np.float32, np.float64, np.longdouble)}


def one_of(x):
    """Return 1, for operations on `x`."""
    return _ONES.get(x.dtype, 1)


def _is_plain(z, c):
    """Tell whether one loop over arrays that are there does it."""
    return type(z) is np.ndarray and _are_alike(z, c)


def _are_alike(z, c):
    shape = (*z.shape[:-1], z.shape[-1] // 4)
    return z.dtype == c.dtype and z.dtype.itemsize > 2 and c.shape == shape


@lstm_gates.def_into(_are_alike)
def lstm_gates_into(z, c, output, cell, gates):
    size = z.shape[-1] // 4
    for gate, place in zip(gates, (0, 1, 3), strict=False):
        np.negative(z[..., place * size : (place + 1) * size], out=gate)
    np.exp(gates[:3], out=gates[:3])
    np.tanh(z[..., 2 * size : 3 * size], out=gates[3])
    open_gates(gates, c, output, cell)


def open_gates(gates, c, output, cell):
    """Fill in gates, output and cell, given ``exp(-z)`` in the places of i, f and o, and g.

    Where the exponential overflows, the logistic function is 0 but for subnormal numbers.
    """
    logistic, one = gates[:3], one_of(gates)
    np.add(logistic, one, out=logistic)
    np.divide(one, logistic, out=logistic)
    i, f, o, g = gates
    np.multiply(f, c, out=cell)
    np.multiply(i, g, out=output)
    np.add(cell, output, out=cell)
    np.tanh(cell, out=output)
    np.multiply(output, o, out=output)


def _parts(x, count):
    size = shape_of(x)[-1] // count
    return [x[..., k * size : (k + 1) * size] for k in range(count)]


def _slopes(gates):
    """The derivatives of the gates by their parts of `z`."""
    i, f, o, g = gates
    return i * (1 - i), f * (1 - f), o * (1 - o), 1 - g * g


@lstm_gates.def_jvp
def lstm_gates_jvp(primals, tangents, out, **params):
    _, c = primals
    z_dot, c_dot = tangents
    _, cell, gates = out
    i, f, o, g = gates
    tanh = np.tanh(cell)
    cell_dot, out_dot, gates_dot = 0, 0, np.zeros_like(gates)
    if z_dot is not None:
        zi, zf, zg, zo = _parts(z_dot, 4)
        slopes = _slopes(gates)
        i_dot, f_dot, o_dot, g_dot = (x * s for x, s in zip((zi, zf, zo, zg), slopes, strict=True))
        gates_dot = np.stack([i_dot, f_dot, o_dot, g_dot])
        cell_dot = f_dot * c + i_dot * g + i * g_dot
        out_dot = o_dot * tanh
    if c_dot is not None:
        cell_dot = cell_dot + f * c_dot
    return out_dot + o * (1 - tanh * tanh) * cell_dot, cell_dot, gates_dot


@lstm_gates.def_vjp
def lstm_gates_vjp(primals, out, **params):
    _, c = primals
    _, cell, gates = out
    # What was pulled back last, and what came of it: as one value, since threads may share it.
    last: list[Any] = [(None, None)]

    def pulled(out_bar):
        """Return the cotangents of both arguments, computed once for each `out_bar`."""
        bar, found = last[0]
        if bar is not out_bar:
            output_bar, cell_bar, gates_bar = out_bar
            nothing = np.zeros((), dtype_of(gates))
            output_bar = nothing if output_bar is None else output_bar
            cell_bar = nothing if cell_bar is None else cell_bar
            alike = shape_of(c) == shape_of(cell) and dtype_of(c) == dtype_of(gates)
            pull = pull_gates.bind if alike and dtype_of(c).itemsize > 2 else _pull_in_lines
            found = pull(output_bar, cell_bar, c, cell, gates)
            if gates_bar is not None:
                i, f, o, g = (x * s for x, s in zip(gates_bar, _slopes(gates), strict=True))
                found = found[0] + np.concatenate([i, f, g, o], axis=-1), found[1]
            last[0] = out_bar, found
        return found

    def lstm_gates_pullback_z(out_bar):
        return pulled(out_bar)[0]

    def lstm_gates_pullback_c(out_bar):
        return pulled(out_bar)[1]

    return lstm_gates_pullback_z, lstm_gates_pullback_c


def _pull_in_lines(output_bar, cell_bar, c, cell, gates):
    i, f, o, g = gates
    slope_i, slope_f, slope_o, slope_g = _slopes(gates)
    tanh = np.tanh(cell)
    total = (1 - tanh * tanh) * o * output_bar + cell_bar
    parts = [
        slope_i * g * total,
        slope_f * c * total,
        slope_g * i * total,
        slope_o * (output_bar * tanh),
    ]
    return np.concatenate(parts, axis=-1), total * f


@fused(_pull_in_lines)
def pull_gates(output_bar, cell_bar, c, cell, gates):
    """Return the cotangents of `z` and `c`, given those of output and cell, or 0 without axes."""
    z_bar = np.empty((*cell.shape[:-1], 4 * cell.shape[-1]), cell.dtype)
    c_bar = np.empty(cell.shape, cell.dtype)
    pull_gates_into(output_bar, cell_bar, c, cell, gates, z_bar, c_bar)
    return z_bar, c_bar


def _are_of_one_dtype(output_bar, cell_bar, c, cell, gates):
    return all(x.dtype == cell.dtype for x in (output_bar, cell_bar, c, gates))


@pull_gates.def_into(_are_of_one_dtype)
def pull_gates_into(output_bar, cell_bar, c, cell, gates, z_bar, c_bar):
    i, f, o, g = gates
    size = cell.shape[-1]
    of_i, of_f, of_g, of_o = (z_bar[..., k * size : (k + 1) * size] for k in range(4))
    tanh = np.tanh(cell, out=c_bar)
    work = np.multiply(output_bar, tanh)
    one = one_of(gates)
    slopes = np.subtract(one, gates[:3])
    np.multiply(slopes, gates[:3], out=slopes)
    slope_i, slope_f, slope_o = slopes
    np.multiply(slope_o, work, out=of_o)
    total = np.multiply(tanh, tanh, out=tanh)
    np.subtract(one, total, out=total)
    np.multiply(total, o, out=total)
    np.multiply(total, output_bar, out=total)
    np.add(total, cell_bar, out=total)
    np.multiply(slope_i, g, out=slope_i)
    np.multiply(slope_i, total, out=of_i)
    np.multiply(slope_f, c, out=slope_f)
    np.multiply(slope_f, total, out=of_f)
    slope_g = np.multiply(g, g, out=work)
    np.subtract(one, slope_g, out=slope_g)
    np.multiply(slope_g, i, out=slope_g)
    np.multiply(slope_g, total, out=of_g)
    np.multiply(total, f, out=total)


@lstm_gates.def_batch
def lstm_gates_batch(args, batched, **params):
    output, cell, gates = lstm_gates.bind(*_full(args, batched))
    return output, cell, np.moveaxis(gates, 1, 0)


def _full(args, batched):
    """Return arguments that all have the axis of the examples: what is the same is repeated."""
    size = count_examples(args, batched)
    full = [full_batch(x, own, size) for x, own in zip(args, batched, strict=True)]
    return align(full, [True] * len(full), (1,) * len(full))


@lstm_gates.def_samples
def lstm_gates_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 8), draw(3, 2), fun=lstm_gates, complex=False)
    yield Sample(draw(4), draw(1), fun=lstm_gates, complex=False)
    yield Sample(draw(2, 3, 4), draw(2, 3, 1), fun=lstm_gates, complex=False)
    yield Sample(draw(0, 8), draw(0, 2), fun=lstm_gates, complex=False)


@pull_gates.def_samples
def pull_gates_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    for lead in ((), (3,), (2, 3), (0,)):
        rest = draw(*lead, 2), draw(*lead, 2), rng.uniform(size=(4, *lead, 2))
        yield Sample(draw(*lead, 2), draw(*lead, 2), *rest, fun=pull_gates, complex=False)
    yield Sample(draw(0, 2), np.zeros(()), *rest, fun=pull_gates, complex=False)


@primitive()
def gru_gates(z, w, h):
    """The gates of a GRU: r and u, logistic functions, and n, a tanh; and the new state.

    ``r, u = logistic(z + w)`` of the first two thirds, ``n = tanh(z + r * w)`` of the last, and
    the state is ``n + u * (h - n)``. Returns it, and r, u, n.
    """
    size = z.shape[-1] // 3
    ru = _logistic(z[..., : 2 * size] + w[..., : 2 * size])
    r, u = ru[..., :size], ru[..., size:]
    n = np.tanh(z[..., 2 * size :] + r * w[..., 2 * size :])
    return n + u * (h - n), r, u, n


@gru_gates.def_jvp
def gru_gates_jvp(primals, tangents, out, **params):
    _, w, h = primals
    z_dot, w_dot, h_dot = tangents
    _, r, u, n = out
    w_n = _parts(w, 3)[2]
    zr, zu, zn = (0, 0, 0) if z_dot is None else _parts(z_dot, 3)
    wr, wu, wn = (0, 0, 0) if w_dot is None else _parts(w_dot, 3)
    r_dot = r * (1 - r) * (zr + wr)
    u_dot = u * (1 - u) * (zu + wu)
    n_dot = (1 - n * n) * (zn + r_dot * w_n + r * wn)
    state_dot = n_dot * (1 - u) + u_dot * (h - n)
    return state_dot if h_dot is None else state_dot + u * h_dot, r_dot, u_dot, n_dot


@gru_gates.def_vjp
def gru_gates_vjp(primals, out, **params):
    _, w, h = primals
    _, r, u, n = out
    w_n = _parts(w, 3)[2]

    def sums_bar(out_bar):
        """The cotangents of the three sums inside the functions."""
        state_bar, r_bar, u_bar, n_bar = out_bar
        if state_bar is not None:
            n_bar = state_bar * (1 - u) + (0 if n_bar is None else n_bar)
            u_bar = state_bar * (h - n) + (0 if u_bar is None else u_bar)
        nn = np.zeros_like(n) if n_bar is None else n_bar * (1 - n * n)
        rr = nn * w_n if r_bar is None else nn * w_n + r_bar
        uu = np.zeros_like(u) if u_bar is None else u_bar * u * (1 - u)
        return rr * r * (1 - r), uu, nn

    def gru_gates_pullback_z(out_bar):
        return np.concatenate(sums_bar(out_bar), axis=-1)

    def gru_gates_pullback_w(out_bar):
        rr, uu, nn = sums_bar(out_bar)
        return np.concatenate([rr, uu, nn * r], axis=-1)

    def gru_gates_pullback_h(out_bar):
        return None if out_bar[0] is None else out_bar[0] * u

    return gru_gates_pullback_z, gru_gates_pullback_w, gru_gates_pullback_h


@gru_gates.def_batch
def gru_gates_batch(args, batched, **params):
    return gru_gates.bind(*_full(args, batched))


@gru_gates.def_samples
def gru_gates_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 6), draw(3, 6), draw(3, 2), fun=gru_gates, complex=False)
    yield Sample(draw(3), draw(3), draw(1), fun=gru_gates, complex=False)
    yield Sample(draw(2, 3, 3), draw(2, 3, 3), draw(2, 3, 1), fun=gru_gates, complex=False)
    yield Sample(draw(0, 6), draw(0, 6), draw(0, 2), fun=gru_gates, complex=False)
