"""State of layers that remember: read and written explicitly, never behind the caller's back.

A layer that has state holds a `StateIndex` with the value at the start. `make_with_state` takes
these values out of a new model and into one `State`, a pytree that goes into each call and comes
out of it changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import funcgrad as fg
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.nn.containers import map_modules
from funcgrad.nn.module import Module

__all__ = ["State", "StateIndex", "make_with_state"]

T = TypeVar("T")


class StateIndex(Module):
    """What a layer finds its own part of a `State` by.

    Parameters
    ----------
    init : pytree
        The value at the start.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> class Counter(fg.nn.Module):
    ...     calls: fg.nn.StateIndex
    ...
    ...     def __init__(self):
    ...         self.calls = fg.nn.StateIndex(np.array(0))
    ...
    ...     def __call__(self, x, state):
    ...         return x, state.set(self.calls, state.get(self.calls) + 1)
    >>> counter, state = fg.nn.make_with_state(Counter)()
    >>> _, state = counter(1.0, state)
    >>> state.get(counter.calls)
    np.int64(1)
    """

    init: Any
    number: int | None = fg.static()

    def __init__(self, init: Any) -> None:
        self.init = init
        self.number = None


class State(Module):
    """The values that the layers of a model remember. A pytree, which does not change.

    Parameters
    ----------
    values : dict
        By number of the index. Made by `make_with_state`.

    Raises
    ------
    ArgumentError
        An index is not of the model that the state was made with.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> layer, state = fg.nn.make_with_state(fg.nn.BatchNorm)(2)
    >>> out, new = layer(np.array([[1.0, 2.0], [3.0, 6.0]]), state)
    >>> isinstance(new, fg.nn.State), new is state
    (True, False)
    >>> len(fg.tree.leaves(state)) == len(fg.tree.leaves(new))
    True
    """

    values: dict[int, Any]

    def get(self, index: StateIndex) -> Any:
        """Return the value of an index.

        Parameters
        ----------
        index : StateIndex
            A field of a layer.

        Returns
        -------
        pytree
            What was last set.
        """
        return self.values[self._number(index)]

    def set(self, index: StateIndex, value: Any) -> State:
        """Return a state with another value for an index.

        Parameters
        ----------
        index : StateIndex
            A field of a layer.
        value : pytree
            The new value.

        Returns
        -------
        State
            `self` stays as it is.
        """
        return self.replace(values={**self.values, self._number(index): value})

    def _number(self, index: StateIndex) -> int:
        number = index.number if isinstance(index, StateIndex) else None
        if number is None or number not in self.values:
            raise ArgumentError(
                f"this state has no value for {describe(index)}",
                where=user_line(),
                fix="make model and state together: "
                "model, state = fg.nn.make_with_state(Model)(...)",
            )
        return number


def make_with_state(make: Callable[..., T]) -> Callable[..., tuple[T, State]]:
    """Return a function that makes a model and the state of all of its layers.

    Parameters
    ----------
    make : callable
        A class of models, or a function that returns one.

    Returns
    -------
    callable
        Takes the arguments of `make`, and returns ``(model, state)``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> norm, state = fg.nn.make_with_state(fg.nn.BatchNorm)(3)
    >>> state.get(norm.running).mean
    array([0., 0., 0.])
    """

    def made_with_state(*args: Any, **kwargs: Any) -> tuple[T, State]:
        values: dict[int, Any] = {}
        numbered: dict[int, tuple[Any, StateIndex]] = {}  # by id: a layer may be used twice

        def number(module: Module) -> Module:
            if not isinstance(module, StateIndex) or module.number is not None:
                return module
            if id(module) not in numbered:
                made = module.replace(init=None, number=len(values))
                values[len(values)] = module.init
                numbered[id(module)] = module, made
            return numbered[id(module)][1]

        model = map_modules(number, make(*args, **kwargs))
        return model, State(values)

    return made_with_state
