"""Recurrent layers: cells, which take one step, and layers that scan them over a sequence.

A layer multiplies the whole sequence with the input weights at once, before the scan: a step is
left with one small product. Sequences have the shape (..., time, features).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.cells import GRUCell, LSTMCell, RNNCell
from funcgrad.nn.checking import array, fits, whole
from funcgrad.nn.containers import Dropout
from funcgrad.nn.module import Module
from funcgrad.rules.nn.sequence import lstm_steps

__all__ = ["GRU", "LSTM", "RNN"]


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
    # Steps first, before the product: its result, the larger array, lies in the order of the steps.
    projected = cell.project(np.moveaxis(x, -2, 0))
    first = cell.first(projected.shape[1:-1], projected.dtype)
    state = first if state is None else fg.tree.map(_like, first, cell.taken(state))
    recurrent = cell.recurrent()
    if mask is None and cell.gates == 4 and projected.shape[0]:
        return _run_lstm(projected, state, recurrent, reverse=reverse)

    def step(state: Any, now: Any) -> Any:
        gates, valid = now
        new = cell.step(gates, state, recurrent)
        if valid is None:
            return new, cell.output(new)
        new = fg.tree.map(lambda new, old: np.where(valid, new, old), new, state)
        return new, np.where(valid, cell.output(new), 0)

    last, out = fg.scan(step, state, (projected, mask), reverse=reverse)
    return np.moveaxis(out, 0, -2), last


def _run_lstm(projected: Any, state: Any, recurrent: Any, *, reverse: bool) -> tuple[Any, Any]:
    """Do what `_run` does by one operation for all steps."""
    if reverse:
        projected = projected[::-1]
    outputs, cells, _ = lstm_steps(projected, *state, recurrent)
    last = outputs[-1], cells[-1]
    return np.moveaxis(outputs[::-1] if reverse else outputs, 0, -2), last


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
