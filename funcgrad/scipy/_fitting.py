"""`least_squares` and `curve_fit`: SciPy's methods, with exact Jacobians."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from funcgrad import tree
from funcgrad.core.level import holds_tracer, traces_in_progress
from funcgrad.core.zero import shape_of
from funcgrad.implicit.plain import detached_leaf
from funcgrad.rules.spelling import as_array
from funcgrad.scipy._conditions import boxed, callback_of, pinned, rows_of
from funcgrad.scipy._solutions import differentiated, no_derivative, with_x
from funcgrad.scipy._unknowns import Unknowns, as_guess, join_traced
from funcgrad.transforms.derived import jacfwd, jacobian
from funcgrad.transforms.flat import call_origin, check_callable
from funcgrad.transforms.reverse import grad
from funcgrad.transforms.stripping import Picks, differentiating, stripped

__all__ = ["curve_fit", "least_squares"]


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """Minimize a sum of squares of a function of a pytree, by the exact Jacobian.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)`` returns the residuals: a pytree of arrays.
    x0 : pytree
        Where to start: numbers and arrays. Integers count as floats, and a list or tuple of
        numbers as an array, as in SciPy.
    jac : callable or str, optional
        A Jacobian of your own, which returns a matrix; or "2-point", "3-point" or "cs" for
        SciPy's differences. By default it is exact.
    bounds : pytree
        What SciPy takes; or a pytree like `x0` with a pair ``(low, high)``, or None, for each
        leaf.
    method, **options
        As for `scipy.optimize.least_squares`; `x_scale` may be a pytree like `x0`.
    args, kwargs
        Further arguments of `fun` and `jac`.
    callback : callable, optional
        As for SciPy, with pytrees. SciPy 1.16 or later has it.

    Returns
    -------
    OptimizeResult
        SciPy's fields, where `x` and `grad` are pytrees like `x0`, and further `scipy`, SciPy's own
        result. `jac` is the matrix.

    Raises
    ------
    DtypeError
        A leaf of `x0` is not a real number.
    MissingRuleError
        The solution is differentiated, and `loss` is not "linear", or bounds are traced.
    SingularJacobianError
        The solution is differentiated, and is not unique.

    Notes
    -----
    `x` may be differentiated by whatever `fun` depends on: arguments, or traced values that
    it closes over. That is the derivative of the minimum, to which the second derivatives of `fun`
    contribute, by the implicit function theorem; elements at a bound are held there.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import least_squares
    >>> t = np.array([0.0, 1.0, 2.0])
    >>> def misfit(p, y):
    ...     return p["scale"] * np.exp(-p["rate"] * t) - y
    >>> fit = least_squares(misfit, {"scale": 1.0, "rate": 0.1}, args=(3.0 * np.exp(-0.5 * t),))
    >>> {name: round(value, 5) for name, value in fit.x.items()}
    {'scale': 3.0, 'rate': 0.5}
    """
    check_callable("least_squares", fun)
    if not isinstance(args, tuple):
        args = (args,)
    guess = as_guess(x0, "least_squares")
    keywords = kwargs or {}
    settings = {"bounds": bounds, "method": method, "callback": callback, **options}
    if not traces_in_progress():
        return _least_squares(_called(fun, args, keywords), guess, jac, args, keywords, settings)
    origin = call_origin("least_squares", fun)
    if holds_tracer(tree.leaves(bounds)):
        raise no_derivative("least_squares", "bounds that are traced")
    residuals = _called(fun, args, keywords)

    def run(picks: Picks, start: Any) -> Any:
        own = jac
        if callable(jac):
            own = stripped(_called(jac, args, keywords), origin, picks=picks)
        plain = stripped(residuals, origin, picks=picks)
        result = _least_squares(plain, start, own, (), {}, settings)
        return result.x, result

    def half_the_squares(x: Any) -> Any:
        return 0.5 * np.sum(np.square(join_traced(tree.leaves(residuals(x)))))

    def gradient(x: Any, at: Any) -> Any:
        unknowns = Unknowns(guess)
        box = boxed(bounds, unknowns, "bounds")
        return pinned(grad(half_the_squares)(x), x, at, box, unknowns)

    x, results = differentiated(run, gradient, guess, (args, keywords), origin)
    if options.get("loss", "linear") != "linear" and differentiating(tree.leaves(x)) is not None:
        raise no_derivative("least_squares", f"loss={options['loss']!r}")
    return with_x(x, results)


def _called(fun: Any, args: Any, keywords: Any) -> Any:
    return lambda x: fun(x, *args, **keywords)


def _least_squares(fun: Any, guess: Any, jac: Any, args: Any, keywords: Any, settings: Any) -> Any:
    unknowns = Unknowns(guess)

    def of_vector(vector: Any) -> Any:
        return join_traced(tree.leaves(fun(unknowns.tree(vector))))

    if jac is None:
        jac = jacobian(of_vector)
    elif callable(jac):
        jac = rows_of(_called(jac, args, keywords), unknowns, ())
    own = dict(settings)
    own["bounds"] = boxed(own["bounds"], unknowns, "bounds of least_squares")
    callback = own.pop("callback")
    if callback is not None:
        own["callback"] = callback_of(callback, unknowns)
    scale: Any = own.get("x_scale")
    if isinstance(scale, dict) or (not isinstance(scale, str) and np.ndim(scale)):
        own["x_scale"] = unknowns.of(scale, "x_scale")
    raw = optimize.least_squares(of_vector, unknowns.vector(), jac, **own)
    result = optimize.OptimizeResult(raw)
    result["x"] = unknowns.tree(raw.x)
    result["grad"] = unknowns.tree(raw.grad)
    result["scipy"] = raw
    return result


def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """Fit a function to data by least squares, as `scipy.optimize.curve_fit`.

    The Jacobian is exact.

    Parameters
    ----------
    f : callable
        The model: ``f(xdata, *params)``, in plain NumPy; or ``f(xdata, params)`` if `p0` is a
        pytree other than a list, tuple or array of numbers.
    xdata : array_like or object
        What `f` takes.
    ydata : array_like
        What it should return.
    p0 : pytree, optional
        Where to start; by default, ones for the parameters of `f`.
    sigma, absolute_sigma, check_finite, method, full_output, nan_policy, **kwargs
        As for SciPy.
    bounds
        As for SciPy; or a pytree like `p0` with a pair ``(low, high)``, or None, for each leaf.
    jac : callable or str, optional
        A Jacobian of your own, ``jac(xdata, *params)``, which returns a matrix; or "2-point",
        "3-point" or "cs" for SciPy's differences. By default it is exact.

    Returns
    -------
    popt : ndarray or pytree
        The parameters; like `p0` where that is a pytree.
    pcov : ndarray, shape (n, n)
        Their covariance, of the joined leaves. It carries no derivative.
    infodict, mesg, ier
        Only with `full_output`.

    Raises
    ------
    MissingRuleError
        The parameters are differentiated, and `loss` is not "linear".
    SingularJacobianError
        The parameters are differentiated, and are not unique.

    Notes
    -----
    The covariance is that of the exact Jacobian, as in a linear regression. `popt` may be
    differentiated by the data, by `sigma`, and by traced values that `f` closes over.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> from funcgrad.scipy.optimize import curve_fit
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> y = np.array([1.0, 2.7, 7.4, 20.1])
    >>> popt, pcov = curve_fit(lambda x, scale, rate: scale * np.exp(rate * x), x, y)
    >>> popt.round(2)
    array([1., 1.])
    """
    check_callable("curve_fit", f)
    origin = call_origin("curve_fit", f)
    settings = {
        "absolute_sigma": absolute_sigma,
        "check_finite": check_finite,
        "method": method,
        "full_output": full_output,
        **({} if nan_policy is None else {"nan_policy": nan_policy}),
        **kwargs,
    }
    guess = None if p0 is None else as_guess(p0, "curve_fit")
    spread = guess is None or shape_of(guess) != () or isinstance(guess, float)
    if spread and guess is not None:
        guess = np.atleast_1d(guess)

    def model(params: Any, xdata: Any) -> Any:
        return f(xdata, *params) if spread else f(xdata, params)

    if not traces_in_progress():
        fit = _curve_fit(f, xdata, ydata, guess, spread, sigma, bounds, jac, settings)
        return fit[0], *fit[1]
    if guess is None:
        guess = np.ones(_count(f))
        if not (shape_of(bounds) == (2,) and np.all(np.isinf(bounds))):
            guess = _inside(bounds, len(guess))

    def run(picks: Picks, start: Any) -> Any:
        x, y, s = tree.map(lambda leaf: detached_leaf(leaf, picks), (xdata, ydata, sigma))

        plain = stripped(f, origin, picks=picks)
        return _curve_fit(plain, x, y, start, spread, s, bounds, jac, settings)

    # Lists are arrays to SciPy; `xdata` may be anything else.
    x_array = as_array(xdata) if isinstance(xdata, list | tuple) else xdata
    y_array = np.ravel(as_array(ydata))
    errors = None if sigma is None else as_array(sigma)

    def half_the_squares(params: Any) -> Any:
        off = np.ravel(model(params, x_array)) - y_array
        if errors is not None:
            two = len(shape_of(errors)) == 2
            off = np.linalg.solve(np.linalg.cholesky(errors), off) if two else off / errors
        return 0.5 * np.sum(np.square(off))

    def gradient(x: Any, at: Any) -> Any:
        unknowns = Unknowns(guess)
        box = boxed(bounds, unknowns, "bounds")
        return pinned(grad(half_the_squares)(x), x, at, box, unknowns)

    x, results = differentiated(run, gradient, guess, (xdata, ydata, sigma), origin)
    if kwargs.get("loss", "linear") != "linear" and differentiating(tree.leaves(x)) is not None:
        raise no_derivative("curve_fit", f"loss={kwargs['loss']!r}")
    if len(results) == 1:
        return x, *results[0]
    return x, [rest[0] for rest in results]


def _count(f: Any) -> int:
    """Return the number of parameters of a model."""
    parameters = inspect.signature(f).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in parameters) - 1


def _inside(bounds: Any, n: int) -> Any:
    """Return a start between bounds: where SciPy starts."""
    box = boxed(bounds, Unknowns(np.ones(n)), "bounds")
    low, high = np.asarray(box.lb, float), np.asarray(box.ub, float)
    start = np.ones(n)
    both = np.isfinite(low) & np.isfinite(high)
    start[both] = 0.5 * (low[both] + high[both])
    only_low, only_high = np.isfinite(low) & ~both, np.isfinite(high) & ~both
    start[only_low] = low[only_low] + 1
    start[only_high] = high[only_high] - 1
    return start


def _curve_fit(
    f: Any,
    xdata: Any,
    ydata: Any,
    guess: Any,
    spread: bool,
    sigma: Any,
    bounds: Any,
    jac: Any,
    settings: Any,
) -> tuple[Any, tuple[Any, ...]]:
    """Run SciPy, and return the parameters and the rest."""
    unknowns = None if spread else Unknowns(guess)

    def value(vector: Any, x: Any) -> Any:
        return np.ravel(f(x, *vector) if unknowns is None else f(x, unknowns.tree(vector)))

    def exact(x: Any, *params: Any) -> Any:
        return jacfwd(value)(np.asarray(params, dtype=float), x)

    def of_vector(x: Any, *params: Any) -> Any:
        return value(np.asarray(params), x)

    if unknowns is not None:
        bounds = boxed(bounds, unknowns, "bounds")
    made = optimize.curve_fit(
        f if unknowns is None else of_vector,
        xdata,
        ydata,
        guess if unknowns is None else unknowns.vector(),
        sigma=sigma,
        bounds=bounds,
        jac=exact if jac is None else jac,
        **settings,
    )
    popt = made[0] if unknowns is None else unknowns.tree(made[0])
    return popt, tuple(made[1:])
