"""SciPy's integrals for traced code: ``from funcgrad.scipy import integrate``.

`odeint`, `quad` and the rules for samples (`trapezoid`, `simpson`, and cumulated) may be
differentiated, forward, in reverse and under `vmap`, to any order. Values are SciPy's own. Every
other name is SciPy's function, which takes plain values only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from funcgrad import tree
from funcgrad.core.alternatives import INSTEAD, offer
from funcgrad.core.dispatch import missing
from funcgrad.core.level import TracerBase, is_tracing
from funcgrad.core.namespace import standing_in
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.errors import ArgumentError, DtypeError, MissingRuleError, user_line
from funcgrad.rules.scipy.adopt import is_traced, plain_only
from funcgrad.rules.spelling import array_of
from funcgrad.scipy import _dopri, _quad
from funcgrad.scipy._odeint import solution
from funcgrad.scipy._of_samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    simpson,
    trapezoid,
)
from funcgrad.scipy._rate import guarded, rate_of
from funcgrad.scipy._twin import opaque

# What is replaced; other names are looked up in SciPy when they are asked for.
__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "odeint",
    "quad",
    "simpson",
    "solve_ivp",
    "trapezoid",
]


# Differential equations


def odeint(
    func: Callable[..., Any],
    y0: ArrayLike,
    t: ArrayLike,
    args: Any = (),
    Dfun: Callable[..., Any] | None = None,
    col_deriv: bool = False,
    full_output: bool = False,
    ml: int | None = None,
    mu: int | None = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: float = 0.0,
    hmax: float = 0.0,
    hmin: float = 0.0,
    ixpr: bool = False,
    mxstep: int = 0,
    mxhnil: int = 0,
    mxordn: int = 12,
    mxords: int = 5,
    printmessg: bool = False,
    tfirst: bool = False,
    *,
    adjoint: Literal["continuous", "discrete"] = "continuous",
) -> Any:
    """Integrate a system of ordinary differential equations, as `scipy.integrate.odeint`.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)`` returns dy/dt, of the shape of `y`. What is to be differentiated must
        be among its arguments, not in its closure; it is written with functions that can be traced.
    y0 : array_like
        The state at ``t[0]``: a vector, or a number; differentiable.
    t : array_like
        The times of output, rising or falling; differentiable.
    args : tuple of pytree
        Further arguments of `func`; floating leaves are differentiable.
    Dfun, col_deriv, ml, mu, tcrit, h0, ixpr, printmessg
        As in SciPy, for the values; the equations for derivatives do not use them.
    full_output : bool
        Return a dict of details as well. Cannot be asked for if something is traced.
    rtol, atol : float or array_like, optional
        Tolerances, about 1.5e-8 by default; derivatives are integrated to the same.
    hmax, hmin, mxstep, mxhnil, mxordn, mxords
        As in SciPy, for values and derivatives.
    tfirst : bool
        Call ``func(t, y, *args)`` instead.
    adjoint : {"continuous", "discrete"}
        "continuous" differentiates the equations and integrates what comes of it: sensitivity
        equations forward, adjoint equations in reverse. The values are SciPy's. "discrete"
        integrates by explicit Runge-Kutta steps of order 5 (Dormand and Prince), traced or not,
        and differentiates these steps, their lengths taken as constants.

    Returns
    -------
    y : ndarray, shape (len(t), len(y0))
        The states at `t`, in rows.
    infodict : dict
        Only with `full_output`.

    Raises
    ------
    ArgumentError
        `func` uses a traced value that is not among its arguments; `adjoint` is something else;
        with "discrete", a step is too short, or an option is given that it has no use for.
    MissingRuleError
        Something is traced, and `full_output` is asked for.
    DtypeError
        `y0` or `t` is complex.

    Notes
    -----
    The continuous adjoint needs little memory: the outputs, and no steps between them. It starts
    anew at each time of output, from the state that is known there. Its error is that of an
    integration, so that gradients are as good as the tolerances, not exact derivatives of the
    values. The state that goes back holds a number for each of the parameters, and SciPy's method
    takes memory by the square of its size: with more than about a thousand, use "discrete".

    The discrete one gives the derivatives of the computed numbers to rounding, at the cost of
    integrating a second time; its memory grows with the number of steps. It is for equations that
    are not stiff. Of the options it knows `rtol`, `atol`, `hmax` and `mxstep` (10000 by default).

    Under `vmap` the examples are integrated one by one, each with steps of its own.

    References
    ----------
    R. T. Q. Chen, Y. Rubanova, J. Bettencourt and D. Duvenaud, *Neural ordinary differential
    equations*, NeurIPS 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.integrate import odeint
    >>> def decay(y, t, rate):
    ...     return -rate * y
    >>> last = lambda rate: odeint(decay, 1.0, np.array([0.0, 2.0]), args=(rate,))[-1, 0]
    >>> round(fg.grad(last)(0.5), 6)  # of exp(-2 rate), which is -2 exp(-1) here
    -0.735759
    """
    options = {
        "col_deriv": col_deriv,
        "ml": ml,
        "mu": mu,
        "rtol": rtol,
        "atol": atol,
        "tcrit": tcrit,
        "h0": h0,
        "hmax": hmax,
        "hmin": hmin,
        "ixpr": ixpr,
        "mxstep": mxstep,
        "mxhnil": mxhnil,
        "mxordn": mxordn,
        "mxords": mxords,
        "printmessg": printmessg,
    }
    if adjoint not in ("continuous", "discrete"):
        raise ArgumentError(
            f"odeint has no adjoint={adjoint!r}",
            where=user_line(),
            fix='give adjoint="continuous" or adjoint="discrete"',
        )
    if not isinstance(args, tuple):
        args = (args,)
    traced = is_traced(y0, t, *tree.leaves(args))
    if adjoint == "continuous" and not traced:
        return integrate.odeint(
            guarded(func, "odeint") if is_tracing() else func,
            y0,
            t,
            args,
            Dfun,
            full_output=full_output,
            tfirst=tfirst,
            **options,
        )
    if full_output:
        raise MissingRuleError(
            "odeint with full_output has no rule for traced values",
            where=user_line(),
            fix="leave full_output away, or ask for it in a call with plain values",
        )
    y0, t = _vector(y0, "y0"), _vector(t, "t")
    rate, leaves = rate_of(func, Dfun, args, tfirst)
    if adjoint == "continuous":
        return solution.bind(y0, t, *leaves, rate=rate, options=options)
    _check_discrete(Dfun, options)
    _check_times(t)
    fun = partial(_dopri.integrate, rate=rate, options=options)
    return opaque.bind(y0, t, *leaves, fun=fun)


def _vector(x: Any, name: str) -> Any:
    """Return `x` as a vector, as SciPy takes it."""
    x = array_of(x)
    if dtype_of(x).kind == "c":
        raise DtypeError(
            f"{name} of odeint is complex, which SciPy does not integrate",
            where=user_line(),
            fix="integrate the real and the imaginary parts side by side",
        )
    if shape_of(x) == ():
        return np.reshape(x, (1,))
    return x


# What the discrete method has no use for, and what stands for "not given".
_UNUSED = {
    "col_deriv": False,
    "ml": None,
    "mu": None,
    "tcrit": None,
    "h0": 0.0,
    "hmin": 0.0,
    "ixpr": False,
    "mxhnil": 0,
    "mxordn": 12,
    "mxords": 5,
    "printmessg": False,
}


def _check_discrete(jacobian: Any, options: dict[str, Any]) -> None:
    given = [name for name, value in _UNUSED.items() if options[name] is not value]
    given = [name for name in given if np.any(options[name] != _UNUSED[name])]
    if jacobian is not None:
        given.append("Dfun")
    if given:
        raise ArgumentError(
            f"odeint with adjoint='discrete' has no use for {', '.join(given)}",
            where=user_line(),
            fix="leave it away, or use adjoint='continuous'",
        )


def _check_times(t: Any) -> None:
    steps = np.diff(t)
    if not (np.all(steps >= 0) or np.all(steps <= 0)):
        integrate.odeint(_nothing, 0.0, [0.0, 1.0, 0.0])  # SciPy's own error


def _nothing(y: Any, t: Any) -> Any:
    return 0 * y


def solve_ivp(*args: Any, **kwargs: Any) -> Any:
    """Call `scipy.integrate.solve_ivp`, for plain values; for traced ones see `odeint`.

    Returns
    -------
    OdeResult

    Raises
    ------
    MissingRuleError
        Something is traced.

    Examples
    --------
    >>> from funcgrad.scipy.integrate import solve_ivp
    >>> float(solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0]).y[0, -1].round(2))
    0.37
    """
    given = tree.leaves((args, kwargs))
    if is_traced(*given):
        instead = "use odeint: funcgrad.scipy.integrate.odeint(func, y0, t, args, tfirst=True)"
        raise missing("scipy.integrate.solve_ivp", given, instead)
    if not is_tracing():
        return integrate.solve_ivp(*args, **kwargs)
    if args:
        args = (guarded(args[0], "solve_ivp"), *args[1:])
    return integrate.solve_ivp(*args, **kwargs)


# Functions


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: int = 0,
    **options: Any,
) -> Any:
    """Integrate a function of one variable, as `scipy.integrate.quad`.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns a number. What is to be differentiated must be among its
        arguments, not in its closure.
    a, b : float
        The ends, perhaps infinite; differentiable where they are finite.
    args : tuple of pytree
        Further arguments of `func`: numbers and arrays, which are differentiable, also in dicts
        and lists, or anything else.
    full_output : int
        Return details as well. Cannot be asked for if something is traced.
    **options
        `epsabs`, `epsrel`, `limit`, `points`, `weight`, ...: as in SciPy, for the value and for
        the integrals that are its derivatives. With `weight` the ends cannot be traced.

    Returns
    -------
    y : float
        The integral.
    abserr : float
        An estimate of its error, which carries no derivative.

    Raises
    ------
    ArgumentError
        `func` uses a traced value that is not among its arguments.
    MissingRuleError
        Something is traced, and `full_output` is asked for, `complex_func`, or `weight` with
        traced ends.

    Notes
    -----
    In reverse mode each element of an array in `args` takes an integral of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.integrate import quad
    >>> area = lambda k: quad(lambda x, k: np.exp(-k * x), 0.0, np.inf, args=(k,))[0]
    >>> round(fg.grad(area)(2.0), 9)  # of 1 / k
    -0.25
    """
    if not isinstance(args, tuple):
        args = (args,)
    leaves, treedef = tree.flatten(args)
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, TracerBase)]
    ends = is_traced(a, b)
    if not ends and not places:
        if is_tracing():
            func = guarded(func, "quad")
        return integrate.quad(func, a, b, args, full_output, **options)
    for name, given in (
        ("full_output", full_output),
        ("complex_func", options.get("complex_func")),
        ("weight", ends and options.get("weight") is not None),
    ):
        if given:
            raise MissingRuleError(
                f"quad with {name} has no rule for traced values"
                + (" at the ends" if name == "weight" else ""),
                where=user_line(),
                fix=f"leave {name} away",
            )
    traced = [leaves[k] for k in places]
    integrand = partial(_integrand, func=func, leaves=leaves, places=places, treedef=treedef)
    return _quad.integral.bind(a, b, *traced, func=integrand, options=options)


def _integrand(x: Any, *traced: Any, func: Any, leaves: Any, places: Any, treedef: Any) -> Any:
    every = list(leaves)
    for k, leaf in zip(places, traced, strict=True):
        every[k] = leaf
    args = tree.unflatten(treedef, every)
    if any(isinstance(value, TracerBase) for value in (x, *traced)):
        return func(x, *args)
    return guarded(func, "quad")(x, *args)


# Functions without a rule -> what to write instead.
_INSTEAD = {
    "cubature": "use quad",
    "dblquad": "use quad of a function that calls quad, each with args=",
    "fixed_quad": "weigh the function at the points of numpy.polynomial.legendre.leggauss",
    "newton_cotes": "use simpson",
    "nquad": "use quad of a function that calls quad, each with args=",
    "qmc_quad": "take the mean of the function at points of scipy.stats.qmc",
    "quad_vec": "use quad",
    "romb": "use simpson",
    "solve_bvp": "use odeint, and differentiate the conditions at the boundary by the implicit "
    "function theorem",
    "tanhsinh": "use quad",
    "tplquad": "use quad of a function that calls quad, each with args=",
}

offer("scipy.integrate", __all__)
INSTEAD.update({f"scipy.integrate.{name}": instead for name, instead in _INSTEAD.items()})

__getattr__, __dir__ = standing_in(__name__, integrate, __all__, plain_only)
