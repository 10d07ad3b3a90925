"""How long each operation of a function takes, and in which of the user's lines: `profile`.

The one idea: the function is recorded as a program, and the program evaluated with a clock around
each equation. So what is timed is NumPy's work for values and derivatives, operation by operation,
and not the transforms that found out which operations those are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import attrs
from typing_extensions import override

from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.staging.equations import Equation
from funcgrad.staging.printing import name_of
from funcgrad.staging.record import make_program
from funcgrad.transforms.flat import check_callable

__all__ = ["Profile", "Timed", "profile"]


class Timed(NamedTuple):
    """What one operation takes in one line.

    Attributes
    ----------
    seconds : float
        All calls of it together.
    calls : int
        How many calls.
    name : str
        Of the operation.
    where : str
        The line, as ``file.py:12``; "" for what transforms add, such as the backward pass.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> report = fg.debug.profile(lambda x: np.sum(np.exp(x)), np.ones(100))
    >>> sorted((row.name, row.calls) for row in report.rows)
    [('exp', 1), ('sum', 1)]
    """

    seconds: float
    calls: int
    name: str
    where: str


@attrs.frozen(repr=False, eq=False)
class Profile:
    """What `profile` measured; prints as a table.

    Attributes
    ----------
    total : float
        Seconds of all operations.
    rows : tuple of Timed
        The parts of `total`, by operation and line, the longest first.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> report = fg.debug.profile(fg.grad(lambda x: np.sum(np.exp(x))), np.ones(100))
    >>> report.total == sum(row.seconds for row in report.rows)
    True
    """

    total: float
    rows: tuple[Timed, ...]

    def __repr__(self) -> str:
        """Write the table."""
        count = sum(row.calls for row in self.rows)
        lines = [f"{_time(self.total)} in {count} operations"]
        wide = max((len(row.name) for row in self.rows), default=0)
        for row in self.rows:
            share = row.seconds / self.total if self.total else 0.0
            lines.append(
                f"{_time(row.seconds):>9}  {share:>4.0%}  {row.calls:>5} x {row.name:<{wide}}  "
                f"{row.where}".rstrip()
            )
        return "\n".join(lines)


def profile(fun: Callable[..., Any], *args: Any, repeats: int = 5, **kwargs: Any) -> Profile:
    """Measure how long each operation of a function takes.

    Parameters
    ----------
    fun : callable
        Function of pytrees, transformed or not: ``fg.grad(loss)`` shows the backward pass as well.
    *args, **kwargs : pytree
        Its arguments.
    repeats : int, default 5
        How often to measure, after one time that does not count. The shortest time of each
        operation is taken.

    Returns
    -------
    Profile
        Seconds in total, and by operation and line; print it.

    Raises
    ------
    ArgumentError
        `fun` is not a function, or `repeats` is not positive.

    See Also
    --------
    residuals : How much memory reverse mode keeps, by line.
    funcgrad.make_program : What the operations are.

    Notes
    -----
    What depends on constants alone is not in the program, and not measured. The clock adds about a
    ten-millionth of a second to each operation. What Python does between operations, and the work
    of the transforms, is not in the figures: where they are small beside the time that a call
    takes, it is the number of operations that costs.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def loss(w, x):
    ...     return np.sum(np.tanh(x @ w) ** 2)
    >>> measured = fg.debug.profile(loss, np.ones((50, 20)), np.ones((100, 50)))
    >>> sorted(row.name for row in measured.rows)
    ['matmul', 'square', 'sum', 'tanh']
    >>> measured.total == sum(row.seconds for row in measured.rows)
    True
    """
    check_callable("debug.profile", fun)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ArgumentError(
            f"debug.profile cannot have repeats={describe(repeats)}",
            where=user_line(),
            fix="a whole number from 1 up",
        )
    program = make_program(fun)(*args, **kwargs)
    timed = [_TimedEquation(**_fields(equation)) for equation in program.equations]
    program = attrs.evolve(program, equations=tuple(timed))
    for _ in range(repeats + 1):
        program(*args, **kwargs)
    found: dict[tuple[str, str], list[float]] = {}
    for equation in timed:
        if equation.seconds:  # else a transform of its own took its place
            key = name_of(equation), "" if equation.line is None else str(equation.line)
            found.setdefault(key, []).append(min(equation.seconds[1:]))
    rows = [Timed(sum(times), len(times), *key) for key, times in found.items()]
    rows.sort(key=lambda row: -row.seconds)
    return Profile(sum(row.seconds for row in rows), tuple(rows))


@attrs.frozen(eq=False)
class _TimedEquation(Equation):
    """An equation that notes how long each evaluation took."""

    seconds: list[float] = attrs.field(factory=list)

    @override
    def evaluate(self, values: Sequence[Any]) -> tuple[Any, ...]:
        began = time.perf_counter()
        made = super().evaluate(values)
        self.seconds.append(time.perf_counter() - began)
        return made


def _fields(equation: Equation) -> dict[str, Any]:
    return {field.name: getattr(equation, field.name) for field in attrs.fields(Equation)}


def _time(seconds: float) -> str:
    """Write a time with three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
