"""Elementwise primitives: ufuncs whose derivative in each argument is a factor for each element.

The product of such a factor with a tangent and with a cotangent is the same, so one function
serves both modes, and it says by the names of its parameters what it needs. The transforms have
a short path for these primitives, which are most of the operations in most programs: no closure,
no loop over arguments, and the commonest products (`passes`, `negates`, `scales`) known by sight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.core.level import top_trace
from funcgrad.core.primitive import UFUNCS, Primitive, register
from funcgrad.core.zero import guarded

__all__ = ["Elementwise", "elementwise", "negates", "passes", "scales"]

Rule = Callable[..., Any]


class Elementwise(Primitive):
    """A ufunc of one or two arguments whose derivative in each is an elementwise factor.

    The product of a factor with a tangent and with a cotangent is the same, so one function,
    ``partial(t, ...)``, serves forward and reverse mode. Its parameters after `t`, of the names
    `x`, `y` and `out`, say what it needs; nothing else is kept for the backward pass.
    """

    # Slots are the fastest attributes, and the transforms read these for every operation.
    __slots__ = (
        "discrete",
        "domain",
        "keep0",
        "keep1",
        "needs_x",
        "needs_y",
        "nin",
        "pull0",
        "pull1",
        "push0",
        "push1",
        "reasons",
        "smooth",
        "ufunc",
    )

    def __init__(self, ufunc: np.ufunc, *, name: str, domain: Any):
        super().__init__(ufunc, name=name)
        self.ufunc = ufunc
        self.nin = ufunc.nin
        self.domain = domain
        self.discrete = False
        self.smooth = False  # has a derivative in every argument
        # Whether the derivative in the one argument needs the other.
        self.needs_x = self.needs_y = False
        self.reasons: dict[int, str] = {}
        # For each argument: what to keep, and the products of both modes, called with (t, kept). In
        # that of forward mode zero wins; of reverse mode the backward pass sees to it.
        self.keep0: Any = None
        self.keep1: Any = None
        self.pull0: Any = None
        self.pull1: Any = None
        self.push0: Any = None
        self.push1: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the ufunc: NumPy's dispatch knows `where=`, `dtype=` and `out=`."""
        return self.ufunc(*args, **kwargs)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Carry the operation out at the highest level among `args`."""
        trace = top_trace(args)
        if trace is None:
            return self.ufunc(*args)
        return (
            trace.unary(self, self.ufunc, *args)
            if self.nin == 1
            else trace.binary(self, self.ufunc, *args)
        )

    def def_partial(self, index: int = 0) -> Callable[[Rule], Rule]:
        """Declare the product of a (co)tangent with the derivative in argument `index`."""

        def declare(rule: Rule) -> Rule:
            self._set(index, rule, "pull")
            self._set(index, rule, "push")
            return rule

        return declare

    def def_identity(self, index: int = 0, *, negative: bool = False) -> None:
        """Declare that the derivative in argument `index` is 1, or -1."""
        for mode in ("pull", "push"):
            setattr(self, f"{mode}{index}", negates if negative else passes)
        self._complete()

    def def_factor(self, index: int, keep: str) -> None:
        """Declare that the derivative in argument `index` is the other argument, `keep`."""
        for mode in ("pull", "push"):
            self._set(index, scales, mode, (keep,))

    def def_pull(self, index: int = 0) -> Callable[[Rule], Rule]:
        """Declare the reverse-mode product alone, where complex conjugation makes them differ."""

        def declare(rule: Rule) -> Rule:
            self._set(index, rule, "pull")
            return rule

        return declare

    def def_push(self, index: int = 0) -> Callable[[Rule], Rule]:
        """Declare the forward-mode product alone; it keeps the same residuals as the other."""

        def declare(rule: Rule) -> Rule:
            self._set(index, rule, "push")
            return rule

        return declare

    def no_partial(self, index: int, reason: str) -> None:
        """Declare that the result does not depend smoothly on argument `index`, and why."""
        self.reasons[index] = reason

    def not_differentiable(self, reason: str) -> None:
        """Declare that the result carries no derivative, and why."""
        self.reason = reason
        self.discrete = True

    def _set(self, index: int, rule: Rule, mode: str, names: tuple[str, ...] | None = None) -> None:
        if names is None:  # the parameters say what is kept
            code = rule.__code__
            names = code.co_varnames[1 : code.co_argcount]
        keep = names[0] if len(names) == 1 else _PACK[names] if names else None
        before = getattr(self, f"keep{index}")
        assert before is None or before is keep, "both modes keep the same residuals"
        setattr(self, f"keep{index}", keep)
        self.needs_x = self.needs_x or (index == 1 and "x" in names)
        self.needs_y = self.needs_y or (index == 0 and "y" in names)
        product = _of_kept(rule, len(names))
        if mode == "pull":
            setattr(self, f"pull{index}", product)
        else:
            setattr(self, f"push{index}", guarded(product))
        self._complete()

    def _complete(self) -> None:
        self.smooth = self.pull0 is not None and (self.nin == 1 or self.pull1 is not None)


def passes(t: Any, kept: Any) -> Any:
    """Be the product with the derivative 1; the transforms know it and do not call it."""
    return t


def negates(t: Any, kept: Any) -> Any:
    """Be the product with the derivative -1."""
    return -t


def scales(t: Any, kept: Any) -> Any:
    """Be the product with a residual."""
    return t * kept


def _of_kept(rule: Rule, count: int) -> Callable[[Any, Any], Any]:
    """Make ``product(t, kept)`` of a rule with `count` residuals as parameters."""
    if count == 1:
        return rule
    if count == 0:
        return lambda t, kept: rule(t)
    return lambda t, kept: rule(t, *kept)


# How several residuals are put together, by the names that a rule asks for.
_PACK: dict[tuple[str, ...], Callable[[Any, Any, Any], Any]] = {
    ("x", "y"): lambda x, y, out: (x, y),
    ("x", "out"): lambda x, y, out: (x, out),
    ("y", "out"): lambda x, y, out: (y, out),
    ("x", "y", "out"): lambda x, y, out: (x, y, out),
}


def elementwise(
    ufunc: np.ufunc, *, domain: Any = (-2.0, 2.0), name: str | None = None
) -> Elementwise:
    """Declare the primitive of a ufunc whose derivative is an elementwise factor.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Of one or two arguments and one result.
    domain : pair of float, or one pair for each argument
        Where the tests draw the arguments from.
    name : str, optional
        By default that of the ufunc; for one of SciPy's where NumPy has another of that name.
    """
    made = Elementwise(ufunc, name=name or ufunc.__name__, domain=domain)
    register(made, (ufunc,), UFUNCS)
    return made
