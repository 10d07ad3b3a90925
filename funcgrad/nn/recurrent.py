"""Recurrent layers: cells, which take one step, and layers that scan them over a sequence.

A layer multiplies the whole sequence with the input weights at once, before the scan: a step is
left with one small product. Sequences have the shape (..., time, features).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.checking import array, expect_last, fits, whole
from funcgrad.nn.containers import Dropout
from funcgrad.nn.linear import apply, start
from funcgrad.nn.module import Module
from funcgrad.rules.nn.recurrent import gru_gates, lstm_gates

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class Cell(Module):
    """What the cells have in common: weights of the input and of the state, for some gates."""

    weight_ih: Any
    weight_hh: Any
    bias: Any
    input_size: int = fg.static()
    hidden_size: int = fg.static()
    use_bias: bool = fg.static()

    gates: ClassVar[int] = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        input_size = whole(type(self).__name__, "input_size", input_size)
        hidden_size = whole(type(self).__name__, "hidden_size", hidden_size, 1)
        ih_key, hh_key, bias_key = fg.random.split(key, 3)
        rows = self.gates * hidden_size
        self.weight_ih = start(ih_key, (rows, input_size), hidden_size, dtype)
        self.weight_hh = start(hh_key, (rows, hidden_size), hidden_size, dtype)
        self.bias = start(bias_key, (rows,), hidden_size, dtype) if use_bias else None
        self.input_size, self.hidden_size, self.use_bias = input_size, hidden_size, use_bias

    def project(self, x: Any) -> Any:
        """Return the part of the gates that comes from the input, of one step or of all."""
        x = array(x)
        expect_last(self, x, self.input_size)
        return apply(x, self.weight_ih, self.bias)

    def step(self, projected: Any, state: Any, recurrent: Any) -> Any:
        """Return the next state."""
        raise NotImplementedError

    def first(self, lead: tuple[int, ...], dtype: Any) -> Any:
        """Return the state that a sequence starts from, if none is given: zeros."""
        return np.zeros((*lead, self.hidden_size), np.result_type(self.weight_hh, dtype))

    def recurrent(self) -> Any:
        """Return what all steps do to the state: made once, before the first."""
        return self.weight_hh.T

    def taken(self, state: Any) -> Any:
        """Return a state that was given, if it is one."""
        state = array(state)
        if state.shape[-1:] != (self.hidden_size,):
            raise ShapeError(
                f"{type(self).__name__} expects a state of (..., {self.hidden_size}), "
                f"and was given {describe(state)}",
                where=user_line(),
                fix="the state that an earlier call returned, or zeros",
            )
        return state

    def output(self, state: Any) -> Any:
        """Return what a step gives to the next layer."""
        return state


class RNNCell(Cell):
    """A step of an Elman network: ``tanh(W x + V h + b)``.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the input and of the state.
    use_bias : bool
        Whether to add a constant.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    nonlinearity : {"tanh", "relu"}
        The function of the sum.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(hidden_size).

    Attributes
    ----------
    weight_ih : ndarray, shape (hidden_size, input_size)
        W.
    weight_hh : ndarray, shape (hidden_size, hidden_size)
        V.
    bias : ndarray, shape (hidden_size,), or None
        b: the sum of the two that PyTorch has.

    Raises
    ------
    ArgumentError
        There is no such function.
    ShapeError
        When called: the input has another size.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> cell = fg.nn.RNNCell(3, 4, key=fg.random.key(0))
    >>> cell(np.ones((10, 3)), np.zeros((10, 4))).shape
    (10, 4)
    """

    nonlinearity: str = fg.static()

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        nonlinearity: str = "tanh",
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(input_size, hidden_size, use_bias, dtype, key=key)
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(
                f"RNNCell has no nonlinearity={nonlinearity!r}",
                where=user_line(),
                fix='"tanh" or "relu"',
            )
        self.nonlinearity = nonlinearity

    def __call__(self, input: Any, hidden: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return the next state, of shape (..., hidden_size)."""
        return self.step(self.project(input), self.taken(hidden), self.recurrent())

    def step(self, projected: Any, state: Any, recurrent: Any) -> Any:
        """Return the next state."""
        total = projected + state @ recurrent
        return np.tanh(total) if self.nonlinearity == "tanh" else fg.nn.functional.relu(total)


class LSTMCell(Cell):
    """A step of a long short-term memory (Hochreiter and Schmidhuber, 1997; Gers et al., 2000).

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the input, and of each of the two parts of the state.
    use_bias : bool
        Whether to add constants.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(hidden_size).

    Attributes
    ----------
    weight_ih : ndarray, shape (4 * hidden_size, input_size)
        Of the gates i, f, g, o, in this order, as in PyTorch.
    weight_hh : ndarray, shape (4 * hidden_size, hidden_size)
        Of the same.
    bias : ndarray, shape (4 * hidden_size,), or None
        The sum of the two that PyTorch has.

    Raises
    ------
    ShapeError
        When called: the input has another size.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> cell = fg.nn.LSTMCell(3, 4, key=fg.random.key(0))
    >>> h, c = cell(np.ones((10, 3)), (np.zeros((10, 4)), np.zeros((10, 4))))
    >>> h.shape, c.shape
    ((10, 4), (10, 4))
    """

    gates: ClassVar[int] = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        super().__init__(input_size, hidden_size, use_bias, dtype, key=key)

    def __call__(self, input: Any, hidden: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return the next state, ``(output, cell)``, of two arrays (..., hidden_size)."""
        return self.step(self.project(input), self.taken(hidden), self.recurrent())

    def step(self, projected: Any, state: Any, recurrent: Any) -> Any:
        """Return the next state."""
        h, c = state
        h, c, _ = lstm_gates(projected + h @ recurrent, c)
        return h, c

    def first(self, lead: tuple[int, ...], dtype: Any) -> Any:
        """Return the state that a sequence starts from, if none is given: zeros."""
        return super().first(lead, dtype), super().first(lead, dtype)

    def taken(self, state: Any) -> Any:
        """Return the two parts of a state that was given, if it is one."""
        if not isinstance(state, tuple | list) or len(state) != 2:
            raise ArgumentError(
                f"LSTMCell expects a state (h, c), and was given {describe(state)}",
                where=user_line(),
                fix="a pair of arrays, each of shape (..., hidden_size)",
            )
        return tuple(super(LSTMCell, self).taken(part) for part in state)

    def output(self, state: Any) -> Any:
        """Return what a step gives to the next layer."""
        return state[0]


class GRUCell(Cell):
    """A step of a gated recurrent unit (Cho et al., 2014), in the form of cuDNN and PyTorch.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the input and of the state.
    use_bias : bool
        Whether to add constants.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values, uniform between plus and minus 1/sqrt(hidden_size).

    Attributes
    ----------
    weight_ih : ndarray, shape (3 * hidden_size, input_size)
        Of the gates r, u (z in PyTorch), n, in this order.
    weight_hh : ndarray, shape (3 * hidden_size, hidden_size)
        Of the same.
    bias : ndarray, shape (3 * hidden_size,), or None
        Of the input; for r and u the sum of the two that PyTorch has.
    bias_n : ndarray, shape (hidden_size,), or None
        Of the state, in n, where r multiplies it.

    Raises
    ------
    ShapeError
        When called: the input has another size.

    Notes
    -----
    ``h_new = (1 - u) * n + u * h`` with ``n = tanh(W_n x + b + r * (V_n h + bias_n))``.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> cell = fg.nn.GRUCell(3, 4, key=fg.random.key(0))
    >>> cell(np.ones((10, 3)), np.zeros((10, 4))).shape
    (10, 4)
    """

    bias_n: Any

    gates: ClassVar[int] = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        use_bias: bool = True,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        cell_key, bias_key = fg.random.split(key)
        super().__init__(input_size, hidden_size, use_bias, dtype, key=cell_key)
        self.bias_n = start(bias_key, (hidden_size,), hidden_size, dtype) if use_bias else None

    def __call__(self, input: Any, hidden: Any, *, key: fg.random.Key | None = None) -> Any:
        """Return the next state, of shape (..., hidden_size)."""
        return self.step(self.project(input), self.taken(hidden), self.recurrent())

    def recurrent(self) -> Any:
        """Return the weight of the state, and the constant of each of the three gates."""
        if self.bias_n is None:
            return self.weight_hh.T, None
        zeros = np.zeros_like(self.bias_n, shape=2 * self.hidden_size)
        return self.weight_hh.T, np.concatenate([zeros, self.bias_n])

    def step(self, projected: Any, state: Any, recurrent: Any) -> Any:
        """Return the next state."""
        weight, bias = recurrent
        w = state @ weight
        if bias is not None:
            w = w + bias
        return gru_gates(projected, w, state)[0]


class Scanned(Module):
    """What the layers have in common: cells, one for each layer and direction."""

    cells: tuple[tuple[Any, ...], ...]
    drop: Dropout
    input_size: int = fg.static()
    hidden_size: int = fg.static()
    num_layers: int = fg.static()
    bidirectional: bool = fg.static()

    def _make(
        self,
        make_cell: Any,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bidirectional: bool,
        dropout: float,
        key: fg.random.Key,
    ) -> None:
        num_layers = whole(type(self).__name__, "num_layers", num_layers, 1)
        ways = 2 if bidirectional else 1
        keys = iter(fg.random.split(key, num_layers * ways))
        sizes = [input_size, *[hidden_size * ways] * (num_layers - 1)]
        self.cells = tuple(
            tuple(make_cell(size, hidden_size, key=next(keys)) for _ in range(ways))
            for size in sizes
        )
        self.drop = Dropout(dropout)
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.bidirectional = num_layers, bidirectional

    def __call__(
        self,
        x: Any,
        state: Any = None,
        *,
        mask: Any = None,
        key: fg.random.Key | None = None,
    ) -> tuple[Any, Any]:
        """Run over sequences.

        Parameters
        ----------
        x : ndarray, shape (..., time, input_size)
            The sequences.
        state : list of pytrees, optional
            One for each cell, as they were returned: layer by layer, forward before backward.
            Zeros by default.
        mask : ndarray of bool, shape (..., time), optional
            False where a sequence has padding: there the state stays, and the output is 0.
        key : Key, optional
            For dropout.

        Returns
        -------
        out : ndarray, shape (..., time, hidden_size), or twice this size if bidirectional
            The outputs of the last layer.
        state : list of pytrees
            The states after the last step (of a backward direction: after the first).
        """
        cells = [cell for layer in self.cells for cell in layer]
        if state is not None and len(state) != len(cells):
            raise ArgumentError(
                f"{type(self).__name__} needs a state for each of {len(cells)} cells, "
                f"not {len(state)}",
                where=user_line(),
                fix="pass on the list that an earlier call returned",
            )
        x = array(x)
        if x.ndim < 2:
            raise ShapeError(
                f"{type(self).__name__} expects (..., time, {self.input_size}), "
                f"and was given {describe(x)}",
                where=user_line(),
                fix="x[None, :] for a sequence of one step",
            )
        if mask is not None:
            mask = array(mask)
            if not fits(mask.shape, x.shape[:-1]):
                raise ShapeError(
                    f"the mask of {type(self).__name__} expects (..., {x.shape[-2]}), one for "
                    f"each step, and was given {describe(mask)}",
                    where=f"{user_line()}: the sequences are {describe(x)}",
                    fix="True where a sequence goes on, False where it is padding",
                )
            mask = np.moveaxis(mask, -1, 0)[..., None]
        states = iter(state if state is not None else [None] * len(cells))
        keys = None if key is None else iter(fg.random.split(key, self.num_layers))
        ended = []
        for i, layer in enumerate(self.cells):
            if i:
                x = self.drop(x, key=None if keys is None else next(keys))
            outs = []
            for way, cell in enumerate(layer):
                out, last = _run(cell, x, next(states), mask, reverse=way == 1)
                outs.append(out)
                ended.append(last)
            x = outs[0] if len(outs) == 1 else np.concatenate(outs, axis=-1)
        return x, ended


def _run(cell: Any, x: Any, state: Any, mask: Any, *, reverse: bool) -> tuple[Any, Any]:
    """Run one cell over the steps of `x`, (..., time, features)."""
    projected = np.moveaxis(cell.project(x), -2, 0)
    first = cell.first(projected.shape[1:-1], projected.dtype)
    state = first if state is None else fg.tree.map(_like, first, cell.taken(state))

    recurrent = cell.recurrent()

    def step(state: Any, now: Any) -> Any:
        gates, valid = now
        new = cell.step(gates, state, recurrent)
        if valid is None:
            return new, cell.output(new)
        new = fg.tree.map(lambda new, old: np.where(valid, new, old), new, state)
        return new, np.where(valid, cell.output(new), 0)

    last, out = fg.scan(step, state, (projected, mask), reverse=reverse)
    return np.moveaxis(out, 0, -2), last


def _like(first: Any, state: Any) -> Any:
    """Give a state the shape and the precision that it keeps: one may serve for all sequences."""
    if not fits(state.shape, first.shape):
        raise ShapeError(
            f"the sequences have states of shape {first.shape}, and {describe(state)} was given",
            where=user_line(),
            fix="one state for each sequence, or one for all",
        )
    return np.broadcast_to(state, first.shape).astype(np.result_type(first.dtype, state.dtype))


class RNN(Scanned):
    """Elman networks over sequences.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the inputs and of the state.
    num_layers : int
        How many are stacked: each but the first has the outputs of the one below as inputs.
    use_bias : bool
        Whether to add constants.
    bidirectional : bool
        Whether each layer has a second cell, which runs from the end to the start.
    dropout : float
        The probability that an input of a layer but the first is dropped, in training.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    nonlinearity : {"tanh", "relu"}
        The function in each cell.
    key : Key
        For the initial values.

    Attributes
    ----------
    cells : tuple of tuple of RNNCell
        For each layer, one cell for each direction.

    Raises
    ------
    ArgumentError
        `num_layers` is less than 1; or, when called, there are not as many states as cells.
    ShapeError
        When called: inputs have another size.

    See Also
    --------
    RNNCell : one step.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.RNN(3, 4, num_layers=2, bidirectional=True, key=fg.random.key(0))
    >>> out, state = layer(np.ones((10, 7, 3)))
    >>> out.shape, len(state)
    ((10, 7, 8), 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        use_bias: bool = True,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dtype: npt.DTypeLike | None = None,
        nonlinearity: str = "tanh",
        *,
        key: fg.random.Key,
    ) -> None:
        def make_cell(size: int, hidden: int, *, key: fg.random.Key) -> Any:
            return RNNCell(size, hidden, use_bias, dtype, nonlinearity, key=key)

        self._make(make_cell, input_size, hidden_size, num_layers, bidirectional, dropout, key)


class LSTM(Scanned):
    """Long short-term memory over sequences.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the inputs and of the state.
    num_layers : int
        How many are stacked: each but the first has the outputs of the one below as inputs.
    use_bias : bool
        Whether to add constants.
    bidirectional : bool
        Whether each layer has a second cell, which runs from the end to the start.
    dropout : float
        The probability that an input of a layer but the first is dropped, in training.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.

    Attributes
    ----------
    cells : tuple of tuple of LSTMCell
        For each layer, one cell for each direction.

    Raises
    ------
    ArgumentError
        `num_layers` is less than 1; or, when called, there are not as many states as cells.
    ShapeError
        When called: inputs have another size.

    See Also
    --------
    LSTMCell : one step.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.LSTM(3, 4, num_layers=2, bidirectional=True, key=fg.random.key(0))
    >>> out, state = layer(np.ones((10, 7, 3)))
    >>> out.shape, len(state)
    ((10, 7, 8), 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        use_bias: bool = True,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        def make_cell(size: int, hidden: int, *, key: fg.random.Key) -> Any:
            return LSTMCell(size, hidden, use_bias, dtype, key=key)

        self._make(make_cell, input_size, hidden_size, num_layers, bidirectional, dropout, key)


class GRU(Scanned):
    """Gated recurrent units over sequences.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the inputs and of the state.
    num_layers : int
        How many are stacked: each but the first has the outputs of the one below as inputs.
    use_bias : bool
        Whether to add constants.
    bidirectional : bool
        Whether each layer has a second cell, which runs from the end to the start.
    dropout : float
        The probability that an input of a layer but the first is dropped, in training.
    dtype : dtype, optional
        Of the parameters; float64 by default.
    key : Key
        For the initial values.

    Attributes
    ----------
    cells : tuple of tuple of GRUCell
        For each layer, one cell for each direction.

    Raises
    ------
    ArgumentError
        `num_layers` is less than 1; or, when called, there are not as many states as cells.
    ShapeError
        When called: inputs have another size.

    See Also
    --------
    GRUCell : one step.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer = fg.nn.GRU(3, 4, num_layers=2, bidirectional=True, key=fg.random.key(0))
    >>> out, state = layer(np.ones((10, 7, 3)))
    >>> out.shape, len(state)
    ((10, 7, 8), 4)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        use_bias: bool = True,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dtype: npt.DTypeLike | None = None,
        *,
        key: fg.random.Key,
    ) -> None:
        def make_cell(size: int, hidden: int, *, key: fg.random.Key) -> Any:
            return GRUCell(size, hidden, use_bias, dtype, key=key)

        self._make(make_cell, input_size, hidden_size, num_layers, bidirectional, dropout, key)
