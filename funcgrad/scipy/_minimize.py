"""`minimize` and `minimize_scalar`: SciPy's methods, with exact derivatives of pytree functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from funcgrad import tree
from funcgrad.core.level import Origin, holds_tracer, traces_in_progress
from funcgrad.core.zero import shape_of
from funcgrad.errors import ShapeError
from funcgrad.scipy._conditions import callback_of, constraints_of, limits, pinned
from funcgrad.scipy._solutions import differentiated, no_derivative, with_x
from funcgrad.scipy._unknowns import Unknowns, applied, as_guess, join, join_traced
from funcgrad.transforms.batching import vmap
from funcgrad.transforms.flat import call_origin, check_callable
from funcgrad.transforms.forward import linearize
from funcgrad.transforms.reverse import grad, value_and_grad
from funcgrad.transforms.stripping import Picks, differentiating, stripped

__all__ = ["minimize", "minimize_scalar"]

# What each method is given, beside the function. Names are compared in lower case.
_WITH_GRADIENT = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp", "newton-cg", "dogleg", "trust-ncg"}
_WITH_GRADIENT |= {"trust-krylov", "trust-exact", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}
_WITH_PRODUCT = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    has_aux: bool = False,
) -> Any:
    """Minimize a function of a pytree by one of SciPy's methods, with exact derivatives.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a real scalar, in plain NumPy.
    x0 : pytree
        Where to start: numbers and arrays. Integers count as floats, and a list or tuple of
        numbers as an array, as in SciPy.
    args : tuple
        Further arguments of `fun`, `jac`, `hess` and `hessp`.
    method : str or callable, optional
        As for `scipy.optimize.minimize`: BFGS by default, L-BFGS-B with bounds, SLSQP with
        constraints. Those that use a gradient get the exact one, together with the value; those
        that use second derivatives get exact products with the Hessian, or the Hessian.
    jac : callable, bool or str, optional
        A gradient of your own, ``jac(x, *args)``, like x; True if `fun` returns it
        after the value; "2-point", "3-point" or "cs" for SciPy's differences.
    hess, hessp : callable, optional
        Second derivatives of your own: ``hess(x, *args)`` returns a matrix for the joined leaves,
        or what `funcgrad.hessian` does; ``hessp(x, p, *args)`` takes and returns pytrees like x.
        Anything else that SciPy takes for `hess` is handed on.
    bounds : pytree, optional
        What SciPy takes, for the joined leaves; or, if x0 is not just an array, a pytree like it
        with a pair ``(low, high)`` for each leaf, of numbers or arrays. None is no bound.
    constraints : optional
        As for SciPy, with functions of pytrees. Their derivatives are exact, unless you give them;
        the "2-point" and BFGS that `scipy.optimize.NonlinearConstraint` has by default do not count
        as given.
    tol, options
        As for SciPy.
    callback : callable, optional
        As for SciPy, with pytrees: ``callback(x)`` or ``callback(*, intermediate_result)``.
    has_aux : bool
        `fun` returns a pair: the scalar, and a pytree of whatever else is wanted.

    Returns
    -------
    OptimizeResult
        SciPy's fields, where `x` and `jac` are pytrees like `x0`, with its dtypes; and further
        `scipy`, SciPy's own result, and with `has_aux` the `aux` of the solution.

    Raises
    ------
    ShapeError
        `fun` does not return a scalar.
    DtypeError
        A leaf of `x0` is not a real number.
    TreeMismatchError
        What `jac` returns, or `bounds`, is not like `x0`.
    MissingRuleError
        The solution is differentiated, and there are constraints, or traced bounds.
    SingularJacobianError
        The solution is differentiated, and the Hessian there is singular.

    See Also
    --------
    least_squares : for sums of squares.
    funcgrad.implicit_diff : derivatives for other solvers, and for constrained problems.

    Notes
    -----
    The solution may be differentiated by whatever `fun` depends on: `args`, or traced values that
    it closes over. `x` and `fun` of the result then have the derivative, forward, in reverse, and
    of higher order, by the implicit function theorem: that of a point where the gradient is zero,
    with the elements that are at a bound held there. It is as good as the solution is converged.
    Under `vmap` SciPy runs for each example, and there are `x`, `fun`, and a list of results in
    `scipy`.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import minimize
    >>> def loss(p, x, y):
    ...     return np.mean((p["w"] * x + p["b"] - y) ** 2)
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> result = minimize(loss, {"w": 0.0, "b": 0.0}, (x, 2 * x + 1))
    >>> {name: round(value, 5) for name, value in result.x.items()}
    {'w': 2.0, 'b': 1.0}
    >>> def slope(y):
    ...     return minimize(loss, {"w": 0.0, "b": 0.0}, (x, y)).x["w"]
    >>> fg.grad(slope)(np.array([1.0, 3.0, 5.0])).round(6)
    array([-0.5, -0. ,  0.5])
    """
    check_callable("minimize", fun)
    origin = call_origin("minimize", fun)
    if not isinstance(args, tuple):
        args = (args,)
    guess = as_guess(x0, "minimize")
    settings = {
        "method": method,
        "bounds": bounds,
        "constraints": constraints,
        "tol": tol,
        "callback": callback,
        "options": options,
    }
    functions = {"jac": jac, "hess": hess, "hessp": hessp}
    if traces_in_progress():
        return _traced(fun, guess, args, functions, settings, has_aux, origin)
    unknowns = Unknowns(guess)
    result = _finished(
        _minimized(fun, unknowns, args, functions, settings, has_aux, origin), unknowns
    )
    if has_aux:
        result["aux"] = fun(result.x, *args)[1]
    return result


def _finished(raw: Any, unknowns: Unknowns) -> Any:
    """Return SciPy's result with pytrees in it."""
    result = optimize.OptimizeResult(raw)
    result["x"] = unknowns.tree(raw.x)
    for name in ("jac", "grad", "lagrangian_grad"):
        if shape_of(raw.get(name)) == (unknowns.size,):
            result[name] = unknowns.tree(raw[name])
    result["scipy"] = raw
    return result


def _minimized(
    fun: Any,
    unknowns: Unknowns,
    args: Any,
    functions: Any,
    settings: Any,
    has_aux: bool,
    origin: Origin,
) -> Any:
    """Run SciPy, on plain values, and return its result."""
    problem = _Problem(fun, unknowns, args, has_aux, origin)
    return optimize.minimize(
        x0=unknowns.vector(),
        method=settings["method"],
        bounds=limits(settings["bounds"], unknowns, "bounds of minimize"),
        constraints=constraints_of(settings["constraints"], unknowns),
        tol=settings["tol"],
        callback=callback_of(settings["callback"], unknowns),
        options=settings["options"],
        **problem.functions(settings["method"], **functions),
    )


class _Problem:
    """The function to minimize, and its derivatives, of SciPy's vectors."""

    def __init__(self, fun: Any, unknowns: Unknowns, args: Any, has_aux: bool, origin: Origin):
        self.fun = fun
        self.unknowns = unknowns
        self.args = args
        self.has_aux = has_aux
        self.origin = origin
        self.both: Any = value_and_grad(fun, has_aux=has_aux)
        self.at: Any = None
        self.push: Any = None

    def functions(self, method: Any, jac: Any, hess: Any, hessp: Any) -> dict[str, Any]:
        """Return what SciPy is to be given."""
        name = "" if method is None else method.lower() if isinstance(method, str) else "custom"
        given: dict[str, Any] = {"fun": self.value, "jac": None, "hess": None, "hessp": None}
        if jac is True:
            given["fun"], given["jac"] = self.user_value_and_gradient, True
        elif isinstance(jac, str):
            given["jac"] = jac
        elif callable(jac):
            given["jac"] = self.user(jac, self.unknowns.of, "the gradient of jac")
        elif jac is None and (not name or name == "custom" or name in _WITH_GRADIENT):
            given["fun"], given["jac"] = self.value_and_gradient, True
        if hess is not None:
            if callable(hess):
                hess = self.user(hess, self.unknowns.matrix, "the result of hess")
            given["hess"] = hess
        elif hessp is not None:
            given["hessp"] = self.user_product(hessp)
        elif name in _WITH_HESSIAN:
            given["hess"] = self.hessian
        elif name in _WITH_PRODUCT or name == "custom":
            given["hessp"] = self.product
        return given

    def value(self, vector: Any) -> Any:
        """Return the value alone."""
        out = self.fun(self.unknowns.tree(vector), *self.args)
        if self.has_aux:
            out = out[0]
        return _scalar(out, self.origin)

    def value_and_gradient(self, vector: Any) -> tuple[Any, Any]:
        """Return the value and the exact gradient."""
        unknowns = self.unknowns
        x = unknowns.tree(vector)
        value, _, gradient = self.both.run((x, *self.args), {}, self.origin)
        if unknowns.is_vector:
            return value, gradient
        return value, join(tree.leaves(gradient))

    def user_value_and_gradient(self, vector: Any) -> tuple[Any, Any]:
        """Return what a function returns that has its own gradient."""
        out, gradient = self.fun(self.unknowns.tree(vector), *self.args)
        return _scalar(out, self.origin), self.unknowns.of(gradient, "the gradient of fun")

    def user(self, function: Any, convert: Any, what: str) -> Any:
        """Return a function of the user's as one of a vector."""

        def of_vector(vector: Any) -> Any:
            return convert(function(self.unknowns.tree(vector), *self.args), what)

        return of_vector

    def user_product(self, hessp: Any) -> Any:
        """Return the user's product with the Hessian as a function of vectors."""

        def of_vectors(vector: Any, p: Any) -> Any:
            made = hessp(self.unknowns.tree(vector), self.unknowns.tree(p), *self.args)
            return self.unknowns.of(made, "the result of hessp")

        return of_vectors

    def _gradient(self, vector: Any) -> Any:
        def of_one(x: Any) -> Any:
            made = self.fun(x, *self.args)
            return made[0] if self.has_aux else made

        return join_traced(tree.leaves(grad(of_one)(self.unknowns.tree(vector))))

    def linearized(self, vector: Any) -> Any:
        """Return the product with the Hessian at a point; it is asked for many times there."""
        if self.at is None or not np.array_equal(self.at, vector):
            self.at, self.push = vector.copy(), linearize(self._gradient, vector.copy())[1]
        return self.push

    def product(self, vector: Any, p: Any) -> Any:
        """Return the product of the Hessian with a vector."""
        return self.linearized(vector)(np.asarray(p, dtype=float))

    def hessian(self, vector: Any) -> Any:
        """Return the Hessian."""
        return vmap(self.linearized(vector))(np.eye(self.unknowns.size))


def _scalar(out: Any, origin: Origin) -> Any:
    if shape_of(out) not in ((), (1,)):
        raise ShapeError(
            f"{origin.transform} needs a function that returns a scalar, got shape {shape_of(out)}",
            where=str(origin),
            fix="reduce the output with np.sum or np.mean",
        )
    return out


# The solution, differentiated


def _traced(
    fun: Any, guess: Any, args: Any, functions: Any, settings: Any, has_aux: bool, origin: Origin
) -> Any:
    bounds = settings["bounds"]
    if holds_tracer(tree.leaves(bounds)):
        raise no_derivative("minimize", "bounds that are traced")

    def value(x: Any) -> Any:
        out = fun(x, *args)
        return out[0] if has_aux else out

    def gradient(x: Any, at: Any) -> Any:
        unknowns = Unknowns(guess)
        box = limits(bounds, unknowns, "bounds of minimize")
        return pinned(grad(value)(x), x, at, box, unknowns)

    def run(picks: Picks, start: Any) -> Any:
        own = {
            name: stripped(applied(function, args), origin, picks=picks)
            if callable(function)
            else function
            for name, function in functions.items()
        }
        plain = stripped(applied(fun, args), origin, picks=picks)
        unknowns = Unknowns(start)
        raw = _minimized(plain, unknowns, (), own, settings, has_aux, origin)
        result = _finished(raw, unknowns)
        return result.x, result

    x, results = differentiated(run, gradient, guess, args, origin)
    if settings["constraints"] and differentiating(tree.leaves(x)) is not None:
        raise no_derivative("minimize", "constraints")
    out = fun(x, *args)
    result = with_x(x, results)
    result["fun"] = out
    if has_aux:
        result["fun"], result["aux"] = out
    return result


def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimize a function of one number, as `scipy.optimize.minimize_scalar`.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a real scalar.
    args : tuple
        Further arguments of `fun`, pytrees perhaps. The solution may be differentiated by them,
        and by traced values that `fun` closes over.
    bracket, bounds, method, tol, options
        As for SciPy, which uses no derivatives here.

    Returns
    -------
    OptimizeResult
        SciPy's. If something is traced, `x` and `fun` have derivatives, by ``fun'(x) = 0``, and
        SciPy's own result is `scipy`.

    Raises
    ------
    SingularJacobianError
        The solution is differentiated, and the second derivative there is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import minimize_scalar
    >>> lowest = lambda a: minimize_scalar(lambda x: np.cosh(x - a**2)).x
    >>> round(fg.grad(lowest)(3.0), 6)
    6.0
    """
    check_callable("minimize_scalar", fun)
    if not isinstance(args, tuple):
        args = (args,)
    settings = (bracket, bounds)
    if not traces_in_progress():
        return optimize.minimize_scalar(fun, *settings, args, method, tol, options)
    origin = call_origin("minimize_scalar", fun)

    def run(picks: Picks, start: Any) -> Any:
        plain = stripped(applied(fun, args), origin, picks=picks)
        result = optimize.minimize_scalar(plain, *settings, (), method, tol, options)
        return result.x, result

    def slope(x: Any, at: Any) -> Any:
        return grad(applied(fun, args))(x)

    x, results = differentiated(run, slope, 0.5, args, origin)
    result = with_x(x, results)
    result["fun"] = fun(x, *args)
    return result
