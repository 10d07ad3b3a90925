"""`show_passes`: prints what becomes of each function that `jit` compiles."""

from __future__ import annotations

import builtins
from typing import Any, TextIO

from funcgrad.debug.modes import Mode
from funcgrad.staging.showing import SHOWN

__all__ = ["show_passes"]


class _Showing(Mode):
    def __init__(self, names: tuple[str, ...], file: TextIO | None):
        super().__init__()
        self.names = names
        self.file = file

    def begin(self) -> Any:
        return SHOWN.set(self.show)

    def end(self, token: Any) -> None:
        SHOWN.reset(token)

    def show(self, program: str, stage: str, text: str) -> None:
        """Print the program after one pass."""
        if not self.names or stage.lstrip("0123456789 ") in self.names:
            builtins.print(f"-- jit({program}): {stage}\n{text}\n", file=self.file)


def show_passes(*names: str, file: TextIO | None = None) -> Any:
    """Print the program after each pass, for every function that `jit` compiles meanwhile.

    Parameters
    ----------
    *names : str
        The passes to show, such as ``"recorded"``, ``"blocks"``, ``"memory"`` or ``"source"``; by
        default all that change the program.
    file : text file, optional
        Where to print, in place of the standard output.

    Returns
    -------
    context manager
        Also a decorator.

    See Also
    --------
    jit : its ``lower(*args).stages()`` returns the texts.

    Notes
    -----
    A function that is compiled already is not shown again: `f.clear_cache()` forgets its programs.
    ``grad(jit(f))`` compiles two programs, of the forward and of the backward pass.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> double = fg.jit(lambda x: x * 2 + 0 * x)
    >>> with fg.debug.show_passes("source"):
    ...     double(np.ones(3))
    -- jit(<lambda>): source
    def _lambda(_work, x):
        t0, t1 = _work
    ...
        return [c]
    <BLANKLINE>
    <BLANKLINE>
    array([2., 2., 2.])
    """
    return _Showing(names, file)
