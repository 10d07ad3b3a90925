"""Functions with derivatives of the user's own: `custom_vjp` and `custom_jvp`.

Both make the same object, which takes a backward rule, a forward rule or both, and calls of which
are calls with rules (`funcgrad.transforms.calls`). How the rules are run, checked, and made of one
another is the business of `funcgrad.transforms.custom_rules`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.level import top_trace
from funcgrad.errors import ArgumentError, TreeMismatchError, describe, user_line
from funcgrad.transforms.calls import aval_of, call
from funcgrad.transforms.custom_rules import GivenRules, filled
from funcgrad.transforms.flat import Transformed

__all__ = ["CustomFunction", "custom_jvp", "custom_vjp"]


def custom_vjp(
    fun: Callable[..., Any] | None = None, nondiff_argnums: int | Sequence[int] = ()
) -> Any:
    """Make a function whose derivative is what you say it is, by a rule for reverse mode.

    Parameters
    ----------
    fun : callable
        Function of pytrees. It is what runs when nobody differentiates.
    nondiff_argnums : int or sequence of int, optional
        Arguments that are never differentiated, as in JAX; `bwd` gets them first. Hardly needed:
        arguments that are not floating (integers, strings, functions, keys) are not anyway.

    Returns
    -------
    CustomFunction
        Call its ``defvjp(fwd, bwd)`` to give the rule:

        - ``fwd(*args) -> (out, residuals)`` runs in the place of `fun`, with the same arguments.
        - ``bwd(residuals, out_bar) -> (x_bar, ...)`` returns a tuple with one cotangent for each
          argument, of its structure and shapes. None stands for zero, for a whole argument or
          for a leaf. It must be linear in `out_bar` if forward mode is wanted.

        With ``defjvp`` it takes a forward rule too, as that of `custom_jvp` does. Where there is
        none, forward mode transposes `bwd`.

    Raises
    ------
    MissingRuleError
        It is differentiated, and has no rule.
    TreeMismatchError, ShapeError
        A rule returns the wrong number of cotangents, or one unlike its argument.
    TracerLeakError
        The function or a rule closes over a value that is differentiated together with an
        argument: pass it as an argument.

    See Also
    --------
    custom_jvp : the same with a rule for forward mode.

    Notes
    -----
    Rules are plain NumPy code, run on one example under `vmap`, and differentiated themselves for
    higher derivatives. They must not assign to what they are given.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> def clip_fwd(x):
    ...     return x, None
    >>> def clip_bwd(residuals, x_bar):
    ...     return (np.clip(x_bar, -1.0, 1.0),)
    >>> clip_gradient.defvjp(clip_fwd, clip_bwd)
    >>> fg.grad(lambda x: np.sum(clip_gradient(x) ** 2))(np.array([0.1, 5.0]))
    array([0.2, 1. ])
    """
    return _make("custom_vjp", custom_vjp, fun, nondiff_argnums)


def custom_jvp(
    fun: Callable[..., Any] | None = None, nondiff_argnums: int | Sequence[int] = ()
) -> Any:
    """Make a function whose derivative is what you say it is, by a rule for forward mode.

    Parameters
    ----------
    fun : callable
        Function of pytrees. It is what runs when nobody differentiates.
    nondiff_argnums : int or sequence of int, optional
        Arguments that are never differentiated, as in JAX; the rule gets them first. Hardly needed:
        arguments that are not floating (integers, strings, functions, keys) are not anyway.

    Returns
    -------
    CustomFunction
        Give it a rule by one of its decorators:

        - ``defjvp``: ``rule(primals, tangents) -> (out, out_dot)``, with a tuple of arguments, and
          a tuple of tangents like them. Tangents of what is not perturbed are zeros (or, with
          ``defjvp(rule, symbolic_zeros=True)``, None), and None of leaves that are not floating.
          `out_dot` must be linear in the tangents; None in it stands for zero.
        - ``defjvps(*rules)``: for each argument a ``rule(x_dot, out, *args) -> out_dot``, or None
          where the derivative is zero.

        With ``defvjp`` it takes a backward rule too, as that of `custom_vjp` does. Where there is
        none, reverse mode transposes the forward rule.

    Raises
    ------
    MissingRuleError, TreeMismatchError, ShapeError, TracerLeakError
        As for `custom_vjp`.

    See Also
    --------
    custom_vjp : the same with a rule for reverse mode.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.custom_jvp
    ... def log1pexp(x):
    ...     return np.log(1.0 + np.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + np.exp(x))) * x_dot
    >>> with np.errstate(over="ignore"):
    ...     fg.grad(log1pexp)(1000.0)
    1.0
    """
    return _make("custom_jvp", custom_jvp, fun, nondiff_argnums)


def _make(
    transform: str, make: Callable[..., Any], fun: Any, nondiff_argnums: int | Sequence[int]
) -> Any:
    if fun is None:  # as a decorator with options
        return functools.partial(make, nondiff_argnums=nondiff_argnums)
    return CustomFunction(fun, nondiff_argnums, transform)


class CustomFunction(Transformed):
    """A function with derivative rules of its own: what `custom_vjp` and `custom_jvp` make."""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        transform: str = "custom_vjp",
        rules: dict[str, Any] | None = None,
    ):
        self.transform = transform
        numbers = nondiff_argnums if isinstance(nondiff_argnums, Sequence) else (nondiff_argnums,)
        if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
            raise ArgumentError(
                f"nondiff_argnums of {transform} must be int or a sequence of them, "
                f"got {nondiff_argnums!r}",
                where=user_line(),
                fix="write nondiff_argnums=(0,)",
            )
        self._rules: dict[str, Any] = {} if rules is None else dict(rules)
        options = {"nondiff_argnums": tuple(numbers), "transform": transform, "rules": self._rules}
        super().__init__(CustomFunction, fun, options)
        self.nondiff_argnums = tuple(numbers)
        self.name: str = getattr(fun, "__name__", type(fun).__name__)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give the rule for reverse mode.

        Parameters
        ----------
        fwd : callable
            ``fwd(*args) -> (out, residuals)``.
        bwd : callable
            ``bwd(residuals, out_bar) -> (x_bar, ...)``; arguments of `nondiff_argnums` come first.
        """
        self._rules["fwd"] = _checked_rule(fwd, "fwd", self)
        self._rules["bwd"] = _checked_rule(bwd, "bwd", self)

    def defjvp(self, rule: Callable[..., Any], symbolic_zeros: bool = False) -> Any:
        """Give the rule for forward mode; a decorator.

        Parameters
        ----------
        rule : callable
            ``rule(primals, tangents) -> (out, out_dot)``; arguments of `nondiff_argnums` come
            first.
        symbolic_zeros : bool
            Pass None for a tangent that is zero because nothing perturbs the leaf.
        """
        self._rules["jvp"] = _checked_rule(rule, "rule", self)
        self._rules["symbolic_zeros"] = bool(symbolic_zeros)
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Give the rule for forward mode by one for each argument; None where that is zero.

        Parameters
        ----------
        *rules : callable or None
            ``rule(x_dot, out, *args) -> out_dot``.
        """
        if self.nondiff_argnums:
            raise ArgumentError(
                f"defjvps of {self.name} gives a rule for each argument, "
                "and some are in nondiff_argnums",
                where=user_line(),
                fix="use defjvp, or leave nondiff_argnums away and give None for them",
            )
        self.defjvp(_SumOfRules(self, rules), symbolic_zeros=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        args = positional(self.fun, self.name, args, kwargs)
        leaves, treedef = tree.flatten(args)
        boxes = [leaf if isinstance(leaf, Boxed) else None for leaf in leaves]
        if any(box is not None for box in boxes):
            leaves = [leaf._unbox() if isinstance(leaf, Boxed) else leaf for leaf in leaves]
        trace = top_trace(leaves)
        if trace is None or trace.level == 0:
            return self.fun(*args)
        outs, out_treedef = call(GivenRules(self, args, treedef, boxes), leaves)
        return tree.unflatten(out_treedef, outs)


def _checked_rule(rule: Any, what: str, custom: CustomFunction) -> Any:
    if not callable(rule):
        raise ArgumentError(
            f"{what} of {custom.name} must be a function, got {describe(rule)}",
            where=user_line(),
            fix="write f.defvjp(fwd, bwd), or @f.defjvp above the rule",
        )
    return rule


def positional(
    fun: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return all arguments of a call by position, those left away by their defaults."""
    code: Any = getattr(fun, "__code__", None)
    varied = code is None or bool(code.co_flags & inspect.CO_VARARGS)
    if not kwargs and not varied and code.co_argcount == len(args):
        return args  # the usual case: a signature takes its time
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):  # some builtins have none
        if not kwargs:
            return args
        raise ArgumentError(
            f"{name} has no signature that Python knows, and was called with keywords",
            where=user_line(),
            fix="pass its arguments by position",
        ) from None
    bound = signature.bind(*args, **kwargs)
    if not isinstance(fun, np.ufunc):  # whose `out` is nothing for a rule
        bound.apply_defaults()
    given = sorted(bound.kwargs.keys() & kwargs.keys())
    if given:
        raise ArgumentError(
            f"{name} takes keyword-only arguments {given}, "
            "and rules are given arguments by position",
            where=user_line(),
            fix="let the function take them by position too: no * before them, and no **kwargs",
        )
    return bound.args


class _SumOfRules:
    """The forward rule that `defjvps` means: the sum of one tangent for each argument."""

    def __init__(self, custom: CustomFunction, rules: Sequence[Any]):
        self.custom = custom
        self.rules = rules

    def __call__(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
        if len(self.rules) != len(primals):
            raise TreeMismatchError(
                f"defjvps of {self.custom.name} was given {len(self.rules)} rules, "
                f"and the function was called with {len(primals)} arguments",
                where=user_line(),
                fix="give one rule for each argument, and None where the derivative is zero",
            )
        out = self.custom(*primals)
        total = None
        for rule, primal, tangent in zip(self.rules, primals, tangents, strict=True):
            dots = tree.leaves(tangent, is_leaf=_is_none)
            if rule is None or all(dot is None for dot in dots):
                continue
            leaves, treedef = tree.flatten(primal)
            avals = [aval_of(leaf) for leaf in leaves]
            tangent = tree.unflatten(treedef, filled(dots, avals))
            part = rule(tangent, out, *primals)
            total = part if total is None else tree.map(_add, total, part)
        return out, total


def _is_none(value: Any) -> bool:
    return value is None


def _add(x: Any, y: Any) -> Any:
    return x + y
