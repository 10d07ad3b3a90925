"""What recurrent cells do with their sums: the gates of the LSTM and of the GRU.

Each is one primitive, since a step of a sequence is small: it would be some fifteen operations
forward and thirty backward, of which Python's share is most of the time. Both return their gates
too, from which the rules go on, and which nobody else needs.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import align
from funcgrad.core.primitive import Primitive, Sample, primitive
from funcgrad.core.zero import shape_of
from funcgrad.rules.nn.activations import sigmoid

__all__ = ["gru_gates", "lstm_gates"]


def _logistic(x):
    return sigmoid.forward(x)


@primitive()
def lstm_gates(z, c):
    """The gates i, f, g, o of `z`, along its last axis, applied to the cell `c`.

    With i, f, o the logistic function and g the tanh of their parts: the new cell is
    ``f * c + i * g``, the output ``o * tanh(new cell)``. Returns output, cell, and the gates as
    they lie in `z`.
    """
    size = z.shape[-1] // 4
    gates = _logistic(z)
    gates[..., 2 * size : 3 * size] = np.tanh(z[..., 2 * size : 3 * size])
    i, f, g, o = (gates[..., k * size : (k + 1) * size] for k in range(4))
    cell = f * c + i * g
    return o * np.tanh(cell), cell, gates


def _parts(x, count):
    size = shape_of(x)[-1] // count
    return [x[..., k * size : (k + 1) * size] for k in range(count)]


def _slopes(i, f, g, o):
    """The derivatives of the gates by their parts of `z`."""
    return np.concatenate([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], axis=-1)


@lstm_gates.def_jvp
def lstm_gates_jvp(primals, tangents, out, **params):
    _, c = primals
    z_dot, c_dot = tangents
    _, cell, gates = out
    i, f, g, o = _parts(gates, 4)
    tanh = np.tanh(cell)
    cell_dot, out_dot, gates_dot = 0, 0, np.zeros_like(gates)
    if z_dot is not None:
        gates_dot = z_dot * _slopes(i, f, g, o)
        i_dot, f_dot, g_dot, o_dot = _parts(gates_dot, 4)
        cell_dot = f_dot * c + i_dot * g + i * g_dot
        out_dot = o_dot * tanh
    if c_dot is not None:
        cell_dot = cell_dot + f * c_dot
    return out_dot + o * (1 - tanh * tanh) * cell_dot, cell_dot, gates_dot


@lstm_gates.def_vjp
def lstm_gates_vjp(primals, out, **params):
    _, c = primals
    _, cell, gates = out

    def cell_total(out_bar):
        """The cotangent of the new cell, by both results."""
        output_bar, cell_bar, _ = out_bar
        if output_bar is None:
            return cell_bar
        o = _parts(gates, 4)[3]
        tanh = np.tanh(cell)
        part = output_bar * o * (1 - tanh * tanh)
        return part if cell_bar is None else part + cell_bar

    def lstm_gates_pullback_z(out_bar):
        output_bar, _, gates_bar = out_bar
        i, f, g, o = _parts(gates, 4)
        total = cell_total(out_bar)
        bar = gates_bar
        if total is not None:
            last = np.zeros_like(total) if output_bar is None else output_bar * np.tanh(cell)
            bar = np.concatenate([total * g, total * c, total * i, last], axis=-1)
            bar = bar if gates_bar is None else bar + gates_bar
        return bar * _slopes(i, f, g, o)

    def lstm_gates_pullback_c(out_bar):
        total = cell_total(out_bar)
        return None if total is None else total * _parts(gates, 4)[1]

    return lstm_gates_pullback_z, lstm_gates_pullback_c


def _cellwise(made: Primitive) -> None:
    """Give a batching rule: what is the same for all is repeated."""

    def cellwise_batch(args, batched, **params):
        size = next(shape_of(x)[0] for x, own in zip(args, batched, strict=True) if own)
        full = [
            x if own else np.broadcast_to(x, (size, *shape_of(x)))
            for x, own in zip(args, batched, strict=True)
        ]
        return made.bind(*align(full, [True] * len(full), (1,) * len(full)), **params)

    made.def_batch(cellwise_batch)


_cellwise(lstm_gates)


@lstm_gates.def_samples
def lstm_gates_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 8), draw(3, 2), fun=lstm_gates, complex=False)
    yield Sample(draw(4), draw(1), fun=lstm_gates, complex=False)
    yield Sample(draw(2, 3, 4), draw(2, 3, 1), fun=lstm_gates, complex=False)
    yield Sample(draw(0, 8), draw(0, 2), fun=lstm_gates, complex=False)


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


_cellwise(gru_gates)


@gru_gates.def_samples
def gru_gates_samples(rng):
    def draw(*shape):
        return rng.normal(size=shape)

    yield Sample(draw(3, 6), draw(3, 6), draw(3, 2), fun=gru_gates, complex=False)
    yield Sample(draw(3), draw(3), draw(1), fun=gru_gates, complex=False)
    yield Sample(draw(2, 3, 3), draw(2, 3, 3), draw(2, 3, 1), fun=gru_gates, complex=False)
    yield Sample(draw(0, 6), draw(0, 6), draw(0, 2), fun=gru_gates, complex=False)
