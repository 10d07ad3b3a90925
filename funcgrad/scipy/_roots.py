"""`root`, `fsolve`, `root_scalar` and its methods: SciPy's, with exact derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from funcgrad import tree
from funcgrad.core.level import Origin, traces_in_progress
from funcgrad.core.zero import shape_of
from funcgrad.scipy._conditions import callback_of, rows_of
from funcgrad.scipy._solutions import differentiated, with_x
from funcgrad.scipy._unknowns import Unknowns, applied, as_guess, join_traced
from funcgrad.transforms.derived import elementwise_grad, jacobian
from funcgrad.transforms.flat import call_origin, check_callable
from funcgrad.transforms.stripping import Picks, stripped

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "fsolve",
    "newton",
    "ridder",
    "root",
    "root_scalar",
    "toms748",
]

_WITH_JACOBIAN = ("hybr", "lm")


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a function of a pytree by one of SciPy's methods, with the exact Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns as many numbers as x has, in a pytree of any structure.
    x0 : pytree
        Where to start: numbers and arrays. Integers count as floats, and a list or tuple of
        numbers as an array, as in SciPy.
    args : tuple
        Further arguments of `fun` and `jac`.
    method : str
        As for `scipy.optimize.root`. "hybr" and "lm" use the Jacobian.
    jac : callable, bool or str, optional
        A Jacobian of your own: ``jac(x, *args)`` returns a matrix; True if `fun` returns it
        after the value; False for SciPy's differences. By default it is exact.
    tol, callback, options
        As for SciPy; `callback` is given pytrees.

    Returns
    -------
    OptimizeResult
        SciPy's fields, where `x` is a pytree like `x0`, and further `scipy`, SciPy's own result.

    Raises
    ------
    DtypeError
        A leaf of `x0` is not a real number.
    SingularJacobianError
        The root is differentiated, and the Jacobian there is singular.

    Notes
    -----
    `x` may be differentiated by whatever `fun` depends on, `args` or traced values that it closes
    over, by the implicit function theorem.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import root
    >>> def circle_and_line(p, radius):
    ...     return p["x"] ** 2 + p["y"] ** 2 - radius**2, p["x"] - p["y"]
    >>> crossing = lambda radius: root(circle_and_line, {"x": 1.0, "y": 1.0}, radius).x
    >>> {name: round(value, 6) for name, value in crossing(2.0).items()}
    {'x': 1.414214, 'y': 1.414214}
    >>> round(fg.grad(lambda radius: crossing(radius)["x"])(2.0), 6)
    0.707107
    """
    check_callable("root", fun)
    if not isinstance(args, tuple):
        args = (args,)
    guess = as_guess(x0, "root")
    settings = {"method": method, "tol": tol, "options": options}
    if not traces_in_progress():
        return _root(fun, guess, args, jac, callback, settings)
    origin = call_origin("root", fun)

    def run(picks: Picks, start: Any) -> Any:
        own = jac
        if callable(jac):
            own = stripped(applied(jac, args), origin, picks=picks)
        plain = stripped(applied(fun, args), origin, picks=picks)
        result = _root(plain, start, (), own, callback, settings)
        return result.x, result

    def equations(x: Any, at: Any) -> Any:
        out = fun(x, *args)
        return out[0] if jac is True else out

    x, results = differentiated(run, equations, guess, args, origin)
    return with_x(x, results)


def _root(fun: Any, guess: Any, args: Any, jac: Any, callback: Any, settings: Any) -> Any:
    unknowns = Unknowns(guess)

    def of_vector(vector: Any) -> Any:
        out = fun(unknowns.tree(vector), *args)
        if jac is True:
            out, matrix = out
            return join_traced(tree.leaves(out)), matrix
        return join_traced(tree.leaves(out))

    given = jac
    if callable(jac):
        given = rows_of(jac, unknowns, args)
    elif jac is None and settings["method"].lower() in _WITH_JACOBIAN:
        given = jacobian(of_vector)
    raw = optimize.root(
        of_vector,
        unknowns.vector(),
        jac=given,
        callback=callback_of(callback, unknowns),
        **settings,
    )
    result = optimize.OptimizeResult(raw)
    result["x"] = unknowns.tree(raw.x)
    result["scipy"] = raw
    return result


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    fprime: Callable[..., Any] | None = None,
    full_output: int = 0,
    **options: Any,
) -> Any:
    """Find a root of a function of a vector, as `scipy.optimize.fsolve`, by the exact Jacobian.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns as many numbers as x has.
    x0 : array_like
        Where to start.
    args : tuple
        Further arguments of `func`; the root may be differentiated by them, and by traced values
        that `func` closes over.
    fprime : callable, optional
        A Jacobian of your own; by default it is exact.
    full_output, **options
        As for SciPy.

    Returns
    -------
    x : ndarray
        The root.
    infodict, ier, mesg
        With `full_output`, as for SciPy.

    Raises
    ------
    DtypeError
        `x0` is not real.
    SingularJacobianError
        The root is differentiated, and the derivative there is zero, or singular.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import fsolve
    >>> fg.jacobian(lambda a: fsolve(lambda x: x**2 - a, [1.0, 1.0]))(np.array([1.0, 4.0]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    check_callable("fsolve", func)
    if not isinstance(args, tuple):
        args = (args,)
    own_jacobian = fprime is None and not options.get("col_deriv")

    def flat(x: Any) -> Any:
        return join_traced(tree.leaves(func(x, *args)))

    if not traces_in_progress():
        prime: Any = jacobian(flat) if own_jacobian else fprime
        return optimize.fsolve(
            func, _floats(x0), args, _taking(prime, own_jacobian), full_output, **options
        )
    origin = call_origin("fsolve", func)

    def run(picks: Picks, start: Any) -> Any:
        plain = stripped(applied(func, args), origin, picks=picks)
        prime: Any = fprime
        if own_jacobian:
            prime = jacobian(stripped(flat, origin, picks=picks))
        elif fprime is not None:
            prime = stripped(applied(fprime, args), origin, picks=picks)
        found = optimize.fsolve(plain, start, (), prime, full_output, **options)
        return (found[0], found[1:]) if full_output else (found, ())

    def equations(x: Any, at: Any) -> Any:
        return func(x, *args)

    x, results = differentiated(run, equations, _floats(x0), args, origin)
    return (x, *results[0]) if full_output else x


def _taking(prime: Any, ignores: bool) -> Any:
    return (lambda x, *_: prime(x)) if ignores else prime


def _floats(x0: Any) -> Any:
    guess = as_guess(x0, "fsolve")
    return np.atleast_1d(guess) if not shape_of(guess) else guess


# Functions of one number


def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    **options: Any,
) -> Any:
    """Find a root of a function of one number, as `scipy.optimize.root_scalar`.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a real number.
    args : tuple
        Further arguments of `f`: pytrees perhaps.
    method, bracket, x0, x1, **options
        As for SciPy. From `x0` alone it is Newton's method.
    fprime, fprime2 : callable or bool, optional
        Derivatives of your own. The methods that need them, "newton" and "halley", get exact ones
        otherwise.

    Returns
    -------
    RootResults
        SciPy's. If something is traced, `root` has derivatives by whatever `f` depends on, `args`
        or traced values that it closes over; with SciPy's own result in `scipy`.

    Raises
    ------
    SingularJacobianError
        The root is differentiated, and the derivative of the function there is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import root_scalar
    >>> cube_root = lambda a: root_scalar(lambda x, a: x**3 - a, (a,), x0=1.0).root
    >>> round(float(cube_root(8.0)), 9), round(fg.grad(cube_root)(8.0), 9)  # 1 / (3 * 4)
    (2.0, 0.083333333)
    """
    check_callable("root_scalar", f)
    if not isinstance(args, tuple):
        args = (args,)
    settings = {"method": method, "bracket": bracket, "x0": x0, "x1": x1, **options}
    if not traces_in_progress():
        return _root_scalar(f, args, fprime, fprime2, settings)
    origin = call_origin("root_scalar", f)

    def run(picks: Picks, start: Any) -> Any:
        first, second = (
            stripped(applied(prime, args), origin, picks=picks) if callable(prime) else prime
            for prime in (fprime, fprime2)
        )
        plain = stripped(applied(f, args), origin, picks=picks)
        own = {**settings, **dict(zip(("bracket", "x0", "x1"), start, strict=True))}
        result = _root_scalar(plain, (), first, second, own)
        return result.root, result

    def equation(x: Any, at: Any) -> Any:
        out = f(x, *args)
        return out[0] if isinstance(out, tuple) else out

    x, results = _one_number(run, equation, (bracket, x0, x1), args, origin)
    result = with_x(x, [optimize.OptimizeResult(one) for one in results])
    result["root"] = result.pop("x")
    if len(results) == 1:
        result["scipy"] = results[0]
    return result


def _one_number(run: Any, equation: Any, start: Any, args: Any, origin: Origin) -> Any:
    """Find a number from a start of another structure."""

    def with_probe(x: Any, at: Any) -> Any:
        leaves = tree.leaves(x)
        return equation(leaves[0] * 1.0 if leaves else 0.5, at)

    return differentiated(run, with_probe, start, args, origin)


def _root_scalar(f: Any, args: Any, fprime: Any, fprime2: Any, settings: Any) -> Any:
    name = settings["method"]
    alone = name is None and settings["bracket"] is None and settings["x1"] is None
    if fprime is None and (alone or name in ("newton", "halley")):
        fprime = elementwise_grad(f)
        if fprime2 is None and name == "halley":
            fprime2 = elementwise_grad(fprime)
    return optimize.root_scalar(f, args, fprime=fprime, fprime2=fprime2, **settings)


def newton(
    func: Callable[..., Any],
    x0: Any,
    fprime: Callable[..., Any] | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable[..., Any] | None = None,
    x1: Any = None,
    **options: Any,
) -> Any:
    """Find a root by Newton's method, as `scipy.optimize.newton`, with the exact derivative.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns a number, or works on each element of an array.
    x0 : float or array_like
        Where to start.
    fprime, fprime2 : callable, optional
        Derivatives of your own. By default the first is exact, and the second not used; with
        `x1` it is the secant method, as in SciPy.
    args, tol, maxiter, x1, **options
        As for SciPy.

    Returns
    -------
    root : float or ndarray
        The root. It may be differentiated by whatever `func` depends on.
    ...
        Further results, with the options that ask for them.

    Raises
    ------
    SingularJacobianError
        The root is differentiated, and the derivative of the function there is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import newton
    >>> newton(lambda x: x**2 - np.array([4.0, 9.0]), np.ones(2)).round(9)
    array([2., 3.])
    >>> round(fg.grad(lambda a: newton(lambda x, a: x**2 - a, 1.0, args=(a,)))(4.0), 9)
    0.25
    """
    check_callable("newton", func)
    if not isinstance(args, tuple):
        args = (args,)

    def found(fun: Any, start: Any, prime: Any, own: Any, prime2: Any) -> Any:
        if prime is None and x1 is None:
            prime = elementwise_grad(fun)
        start = start if shape_of(start) else float(start)
        return optimize.newton(fun, start, prime, own, tol, maxiter, prime2, x1, **options)

    guess = as_guess(x0, "newton")
    if not traces_in_progress():
        return found(func, guess, fprime, args, fprime2)
    origin = call_origin("newton", func)

    def run(picks: Picks, start: Any) -> Any:
        fun, prime, prime2 = (
            None if one is None else stripped(applied(one, args), origin, picks=picks)
            for one in (func, fprime, fprime2)
        )
        made = found(fun, start, prime, (), prime2)
        return (made[0], made[1:]) if isinstance(made, tuple) else (made, ())

    def equation(x: Any, at: Any) -> Any:
        return func(x, *args)

    x, results = differentiated(run, equation, guess, args, origin)
    return (x, *results[0]) if results and results[0] else x


def _between(solver: Callable[..., Any]) -> Callable[..., Any]:
    """Make one of SciPy's functions that find a root between two points."""
    name = solver.__name__

    @functools.wraps(solver)
    def find(f: Any, a: Any, b: Any, args: Any = (), **options: Any) -> Any:
        if not isinstance(args, tuple):
            args = (args,)
        if not traces_in_progress():
            return solver(f, a, b, args, **options)
        origin = call_origin(name, f)

        def run(picks: Picks, start: Any) -> Any:
            plain = stripped(applied(f, args), origin, picks=picks)
            made = solver(plain, *start, **options)
            return (made[0], made[1:]) if isinstance(made, tuple) else (made, ())

        def equation(x: Any, at: Any) -> Any:
            return f(x, *args)

        x, results = _one_number(run, equation, (a, b), args, origin)
        return (x, *results[0]) if results and results[0] else x

    find.__doc__ = (
        f"Find a root of a function between two points, as `scipy.optimize.{name}`.\n\n"
        "The root may be differentiated by whatever the function depends on, `args` or traced\n"
        "values that it closes over. The options must be given by name.\n\n"
        "Examples\n"
        "--------\n"
        ">>> import funcgrad as fg\n"
        ">>> from funcgrad.scipy import optimize\n"
        ">>> def root(a):\n"
        f"...     return optimize.{name}(lambda x: x * x - a, 0.0, 5.0)\n"
        ">>> round(float(root(4.0)), 6), round(fg.grad(root)(4.0), 6)\n"
        "(2.0, 0.25)\n"
    )
    return find


bisect = _between(optimize.bisect)
brenth = _between(optimize.brenth)
brentq = _between(optimize.brentq)
ridder = _between(optimize.ridder)
toms748 = _between(optimize.toms748)
