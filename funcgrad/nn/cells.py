"""Recurrent cells, one step of a sequence each: `RNNCell`, `LSTMCell` and `GRUCell`.

A cell splits its step: what comes of the input, `project`, is made for all steps at once by the
layers of `funcgrad.nn.recurrent`, and `step` does the rest.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import funcgrad as fg
from funcgrad.errors import ArgumentError, ShapeError, describe, user_line
from funcgrad.nn.checking import array, expect_last, whole
from funcgrad.nn.linear import apply, start
from funcgrad.nn.module import Module
from funcgrad.rules.nn.recurrent import gru_gates, lstm_gates

__all__ = ["Cell", "GRUCell", "LSTMCell", "RNNCell"]


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
