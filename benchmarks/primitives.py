"""One operation at a time: its value and its VJP, beside the same written out by hand.

What is differentiated is the sum of the elements of the result, each with a weight. Inputs have
about 1e5 elements, so the arithmetic should dominate: what is measured is whether a rule computes
more than it must. autograd is measured too, where it has the function and the same gradient.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import autograd
import autograd.numpy
import autograd.scipy.special
import numpy as np
import scipy.special
from measure import best_times

import funcgrad as fg
from funcgrad.core.primitive import UFUNCS
from funcgrad.scipy import special

N = 100_000


class Operation(NamedTuple):
    """One function at one point.

    ``fun(xp, *args)`` computes it with the functions of `xp`, and ``by_hand(t, *args)`` is the pair
    of its value and the cotangents of `args` (an array if there is one).
    """

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    by_hand: Callable[..., tuple[Any, Any]]


class Names:
    """NumPy's and SciPy's functions under one name, plain or as autograd wraps them."""

    def __init__(self, *modules: Any):
        self.modules = modules

    def __getattr__(self, name: str) -> Any:
        return next(getattr(m, name) for m in self.modules if hasattr(m, name))


PLAIN = Names(np, scipy.special)
THEIRS = Names(autograd.numpy, autograd.scipy.special)


def _slope_of_log_ndtr(x, out):
    return np.exp(-0.5 * x * x - out) / np.sqrt(2 * np.pi)


def unary(name: str, low: float, high: float, slope: Callable[[Any, Any], Any]) -> Operation:
    """Make a function of one argument, of which ``slope(x, out)`` is the derivative."""
    plain = getattr(PLAIN, name)

    def by_hand(t, x):
        out = plain(x)
        return out, t * slope(x, out)

    x = np.random.default_rng(0).uniform(low, high, N)
    return Operation(name, lambda xp, x: getattr(xp, name)(x), (x,), by_hand)


def elementwise() -> Iterator[Operation]:
    """Yield functions of one and of two arguments."""
    s = scipy.special
    yield unary("sin", -2, 2, lambda x, out: np.cos(x))
    yield unary("cos", -2, 2, lambda x, out: -np.sin(x))
    yield unary("tan", -1, 1, lambda x, out: 1 + out * out)
    yield unary("arcsin", -0.9, 0.9, lambda x, out: 1 / np.sqrt(1 - x * x))
    yield unary("arccos", -0.9, 0.9, lambda x, out: -1 / np.sqrt(1 - x * x))
    yield unary("arctan", -2, 2, lambda x, out: 1 / (1 + x * x))
    yield unary("sinh", -2, 2, lambda x, out: np.cosh(x))
    yield unary("cosh", -2, 2, lambda x, out: np.sinh(x))
    yield unary("tanh", -2, 2, lambda x, out: 1 - out * out)
    yield unary("arcsinh", -2, 2, lambda x, out: 1 / np.sqrt(x * x + 1))
    yield unary("arctanh", -0.9, 0.9, lambda x, out: 1 / (1 - x * x))
    yield unary("exp", -2, 2, lambda x, out: out)
    yield unary("exp2", -2, 2, lambda x, out: out * np.log(2.0))
    yield unary("expm1", -2, 2, lambda x, out: out + 1)
    yield unary("log", 0.5, 2, lambda x, out: 1 / x)
    yield unary("log2", 0.5, 2, lambda x, out: 1 / (x * np.log(2.0)))
    yield unary("log10", 0.5, 2, lambda x, out: 1 / (x * np.log(10.0)))
    yield unary("log1p", -0.5, 2, lambda x, out: 1 / (1 + x))
    yield unary("sqrt", 0.5, 2, lambda x, out: 0.5 / out)
    yield unary("cbrt", 0.5, 2, lambda x, out: 1 / (3 * out * out))
    yield unary("square", -2, 2, lambda x, out: 2 * x)
    yield unary("reciprocal", 0.5, 2, lambda x, out: -out * out)
    yield unary("absolute", -2, 2, lambda x, out: np.sign(x))
    yield unary("negative", -2, 2, lambda x, out: -1.0)
    yield unary("deg2rad", -2, 2, lambda x, out: np.pi / 180)
    yield unary("erf", -2, 2, lambda x, out: np.exp(-x * x) * (2 / np.sqrt(np.pi)))
    yield unary("expit", -2, 2, lambda x, out: out * (1 - out))
    yield unary("gammaln", 0.5, 4, lambda x, out: s.digamma(x))
    yield unary("ndtr", -2, 2, lambda x, out: np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi))
    yield unary("j0", 0.5, 4, lambda x, out: -s.j1(x))
    yield unary("j1", 0.5, 4, lambda x, out: s.j0(x) - out / x)
    yield unary("y0", 0.5, 4, lambda x, out: -s.y1(x))
    yield unary("i0", 0.5, 4, lambda x, out: s.i1(x))
    yield unary("gamma", 0.5, 4, lambda x, out: out * s.digamma(x))
    yield unary("digamma", 0.5, 4, lambda x, out: s.zeta(2, x))
    yield unary("erfc", -2, 2, lambda x, out: np.exp(-x * x) * (-2 / np.sqrt(np.pi)))
    yield unary("erfinv", -0.9, 0.9, lambda x, out: np.exp(out * out) * (np.sqrt(np.pi) / 2))
    yield unary("log_ndtr", -4, 2, _slope_of_log_ndtr)
    yield unary("logit", 0.1, 0.9, lambda x, out: 1 / (x * (1 - x)))
    yield unary("expi", 0.5, 4, lambda x, out: np.exp(x) / x)
    yield unary("exp1", 0.5, 4, lambda x, out: -np.exp(-x) / x)
    yield unary("dawsn", -2, 2, lambda x, out: 1 - 2 * x * out)
    yield unary("spence", 0.5, 2.5, lambda x, out: np.log(x) / (1 - x))
    yield unary("entr", 0.1, 0.9, lambda x, out: -np.log(x) - 1)
    yield unary("sinc", 0.1, 0.9, lambda x, out: (np.cos(np.pi * x) - out) / x)
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.5, 2, N), rng.uniform(0.5, 2, N)
    yield Operation("add", lambda xp, *a: xp.add(*a), (x, y), lambda t, x, y: (x + y, (t, t)))
    yield Operation(
        "subtract", lambda xp, *a: xp.subtract(*a), (x, y), lambda t, x, y: (x - y, (t, -t))
    )
    yield Operation(
        "multiply", lambda xp, *a: xp.multiply(*a), (x, y), lambda t, x, y: (x * y, (t * y, t * x))
    )

    def divide(t, x, y):
        out = x / y
        by_x = t / y
        return out, (by_x, -by_x * out)

    def power(t, x, y):
        out = x**y
        return out, (t * (y * x ** (y - 1)), t * (out * np.log(x)))

    def hypot(t, x, y):
        out = np.hypot(x, y)
        return out, (t * (x / out), t * (y / out))

    def arctan2(t, x, y):
        r = t / (x * x + y * y)
        return np.arctan2(x, y), (r * y, -r * x)

    def logaddexp(t, x, y):
        out = np.logaddexp(x, y)
        return out, (t * np.exp(x - out), t * np.exp(y - out))

    def maximum(t, x, y):
        return np.maximum(x, y), (np.where(x > y, t, 0), np.where(y > x, t, 0))

    yield Operation("divide", lambda xp, *a: xp.divide(*a), (x, y), divide)
    yield Operation("power", lambda xp, *a: xp.power(*a), (x, y), power)
    yield Operation("hypot", lambda xp, *a: xp.hypot(*a), (x, y), hypot)
    yield Operation("arctan2", lambda xp, *a: xp.arctan2(*a), (x, y), arctan2)
    yield Operation("logaddexp", lambda xp, *a: xp.logaddexp(*a), (x, y), logaddexp)
    yield Operation("maximum", lambda xp, *a: xp.maximum(*a), (x, y), maximum)

    def clip(t, x):
        return np.clip(x, 0.7, 1.5), np.where((x > 0.7) & (x < 1.5), t, 0)

    mask = x > y
    yield Operation("clip", lambda xp, x: xp.clip(x, 0.7, 1.5), (x,), clip)
    yield Operation(
        "where",
        lambda xp, x, y: xp.where(mask, x, y),
        (x, y),
        lambda t, x, y: (np.where(mask, x, y), (np.where(mask, t, 0), np.where(mask, 0, t))),
    )
    row = rng.normal(size=100)
    grid = rng.normal(size=(1000, 100))
    yield Operation(
        "add of a row",
        lambda xp, *a: xp.add(*a),
        (grid, row),
        lambda t, x, y: (x + y, (t, np.add.reduce(t, 0))),
    )


def other_ufuncs(names: set[str]) -> Iterator[Operation]:
    """Yield every other ufunc with a rule: by hand is its formula, called without tracing."""
    rng = np.random.default_rng(5)
    for ufunc, primitive in sorted(UFUNCS.items(), key=lambda item: item[0].__name__):
        if ufunc.__name__ in names | COMPLEX or primitive.discrete or not primitive.smooth:
            continue
        domain = primitive.domain if primitive.nin == 2 else (primitive.domain,)
        if not isinstance(domain[0], tuple):
            domain = (domain,) * primitive.nin
        args = tuple(rng.uniform(low, high, N) for low, high in domain)
        yield Operation(ufunc.__name__, _Named(ufunc), args, _Formula(primitive))


# Of these the values are complex, and of real arguments the sum of weights is another.
COMPLEX = {"hankel1", "hankel1e", "hankel2", "hankel2e", "wofz", "wrightomega"}


class _Named:
    """A ufunc, by its name in a library."""

    def __init__(self, ufunc: np.ufunc):
        self.ufunc = ufunc

    def __call__(self, xp: Any, *args: Any) -> Any:
        return self.ufunc(*args) if xp is PLAIN else getattr(xp, self.ufunc.__name__)(*args)


class _Formula:
    """Value and cotangents by the formula of the rule."""

    def __init__(self, primitive: Any):
        self.primitive = primitive

    def __call__(self, t: Any, *args: Any) -> tuple[Any, Any]:
        primitive = self.primitive
        out = primitive.ufunc(*args)
        named = dict(zip(("x", "y"), args, strict=False)) | {"out": out}
        x, y = args if len(args) == 2 else (*args, None)
        bars = []
        with np.errstate(all="ignore"):
            for place in range(len(args)):
                keep = getattr(primitive, f"keep{place}")
                kept = named.get(keep) if isinstance(keep, str) or keep is None else keep(x, y, out)
                bars.append(getattr(primitive, f"pull{place}")(t, kept))
        return out, tuple(bars) if len(bars) > 1 else bars[0]


def of_arrays() -> Iterator[Operation]:
    """Yield reductions, products and rearrangements."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1000, 100))
    v = rng.uniform(0.5, 2, N)
    a, b = rng.normal(size=(316, 316)), rng.normal(size=(316, 316))

    def stretched(t):
        return np.broadcast_to(t[:, None], x.shape).copy()

    yield Operation(
        "sum", lambda xp, *a: xp.sum(*a), (x,), lambda t, x: (np.sum(x), np.full(x.shape, t))
    )
    yield Operation(
        "sum over an axis",
        lambda xp, x: xp.sum(x, 1),
        (x,),
        lambda t, x: (np.sum(x, 1), stretched(t)),
    )
    yield Operation(
        "mean over an axis",
        lambda xp, x: xp.mean(x, 1),
        (x,),
        lambda t, x: (np.mean(x, 1), stretched(t / 100)),
    )

    def largest(t, x):
        out = np.max(x, 1)
        hit = x == out[:, None]
        return out, np.where(hit, (t / np.count_nonzero(hit, 1))[:, None], 0)

    def var(t, x):
        centred = x - np.mean(x, 1, keepdims=True)
        return np.var(x, 1), (t * (2 / 100))[:, None] * centred

    def logsumexp(t, x):
        high = np.max(x, 1, keepdims=True)
        e = np.exp(x - high)
        total = np.sum(e, 1, keepdims=True)
        return (np.log(total) + high)[:, 0], e * (t[:, None] / total)

    yield Operation("max over an axis", lambda xp, x: xp.max(x, 1), (x,), largest)
    yield Operation("var over an axis", lambda xp, x: xp.var(x, 1), (x,), var)
    yield Operation(
        "cumsum",
        lambda xp, x: xp.cumsum(x),
        (v,),
        lambda t, x: (np.cumsum(x), np.cumsum(t[::-1])[::-1].copy()),
    )
    yield Operation(
        "matmul", lambda xp, *a: xp.matmul(*a), (a, b), lambda t, a, b: (a @ b, (t @ b.T, a.T @ t))
    )
    yield Operation(
        "dot", lambda xp, *a: xp.dot(*a), (v, v.copy()), lambda t, x, y: (x @ y, (t * y, t * x))
    )
    yield Operation(
        "outer",
        lambda xp, x, y: xp.outer(x, y),
        (v[:316], v[316:632]),
        lambda t, x, y: (np.outer(x, y), (t @ y, t.T @ x)),
    )
    yield Operation(
        "norm",
        lambda xp, x: xp.linalg.norm(x),
        (v,),
        lambda t, x: ((n := np.sqrt(x @ x)), (t / n) * x),
    )
    yield Operation(
        "reshape",
        lambda xp, x: xp.reshape(x, -1),
        (x,),
        lambda t, x: (x.reshape(-1), t.reshape(x.shape)),
    )
    yield Operation("transpose", lambda xp, *a: xp.transpose(*a), (x,), lambda t, x: (x.T, t.T))
    yield Operation(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x, y]),
        (v, v.copy()),
        lambda t, x, y: (np.concatenate([x, y]), (t[:N].copy(), t[N:].copy())),
    )

    def sliced(t, x):
        bar = np.zeros(x.shape)
        bar[10:-10] = t
        return x[10:-10], bar

    rows = rng.integers(0, 1000, size=1000)

    def picked(t, x):
        bar = np.zeros(x.shape)
        np.add.at(bar, rows, t)
        return x[rows], bar

    yield Operation("x[10:-10]", lambda xp, x: x[10:-10], (v,), sliced)
    yield Operation("x[rows]", lambda xp, x: x[rows], (x,), picked)

    def ordered(t, x):
        order = np.argsort(x, kind="stable")
        bar = np.empty(x.shape)
        bar[order] = t
        return np.sort(x), bar

    yield Operation("sort", lambda xp, *a: xp.sort(*a), (v,), ordered)
    yield Operation(
        "roll", lambda xp, x: xp.roll(x, 3), (v,), lambda t, x: (np.roll(x, 3), np.roll(t, -3))
    )

    def padded(t, x):
        return np.pad(x, 5), t[5:-5].copy()

    yield Operation("pad", lambda xp, x: xp.pad(x, 5, "constant"), (v,), padded)

    def differences(t, x):
        bar = np.zeros(x.shape)
        bar[1:] += t
        bar[:-1] -= t
        return np.diff(x), bar

    yield Operation("diff", lambda xp, *a: xp.diff(*a), (v,), differences)
    yield Operation(
        "fft",
        lambda xp, x: xp.fft.fft(x),
        (v + 0j,),
        lambda t, x: (np.fft.fft(x), np.fft.fft(t)),
    )
    yield from more_of_arrays(rng, x, v, a, b)
    m = rng.normal(size=(100, 100)) + 20 * np.eye(100)
    spd = m @ m.T
    c = rng.normal(size=(100, 100))

    def solve(t, a, b):
        out = np.linalg.solve(a, b)
        bar = np.linalg.solve(a.T, t)
        return out, (-bar @ out.T, bar)

    def inverse(t, a):
        out = np.linalg.inv(a)
        return out, -out.T @ t @ out.T

    def det(t, a):
        out = np.linalg.det(a)
        return out, t * out * np.linalg.inv(a).T

    def eigh(t, a):
        values, vectors = np.linalg.eigh(a)
        return values, (vectors * t) @ vectors.T

    def cholesky(t, a):
        out = np.linalg.cholesky(a)
        inverse = np.linalg.inv(out)
        phi = np.tril(out.T @ t)
        phi[np.diag_indices(100)] /= 2
        made = inverse.T @ phi @ inverse
        return out, (made + made.T) / 2

    def svdvals(t, a):
        u, values, vh = np.linalg.svd(a)
        return values, (u * t) @ vh

    def pinv(t, a):
        out = np.linalg.pinv(a)
        return out, -out.T @ t @ out.T

    yield Operation("linalg.cholesky", lambda xp, x: xp.linalg.cholesky(x), (spd,), cholesky)
    yield Operation("linalg.svd, values", lambda xp, x: xp.linalg.svd(x)[1], (m,), svdvals)
    yield Operation("linalg.pinv", lambda xp, x: xp.linalg.pinv(x), (m,), pinv)
    yield Operation("linalg.solve", lambda xp, *a: xp.linalg.solve(*a), (m, c), solve)
    yield Operation("linalg.inv", lambda xp, *a: xp.linalg.inv(*a), (m,), inverse)
    yield Operation("linalg.det", lambda xp, *a: xp.linalg.det(*a), (m / 20,), det)
    yield Operation("linalg.eigh, values", lambda xp, x: xp.linalg.eigh(x)[0], (spd,), eigh)


def more_of_arrays(rng: Any, x: Any, v: Any, a: Any, b: Any) -> Iterator[Operation]:
    """Yield more of the same."""

    def prod(t, x):
        out = np.prod(x, 1)
        return out, (t * out)[:, None] / x

    def cumprod(t, x):
        out = np.cumprod(x, 1)
        return out, np.cumsum((t * out)[:, ::-1], 1)[:, ::-1] / x

    def softmax(t, x):
        out = scipy.special.softmax(x, axis=1)
        return out, out * (t - np.sum(t * out, 1, keepdims=True))

    def kron(t, x, y):
        t = t.reshape(20, 16, 20, 16)
        return np.kron(x, y), (np.einsum("iajb,ab->ij", t, y), np.einsum("iajb,ij->ab", t, x))

    def triangle(t, x):
        return np.tril(x), np.tril(t)

    def repeated(t, x):
        return np.repeat(x, 3), np.sum(t.reshape(-1, 3), 1)

    def median(t, x):
        order = np.argpartition(x, 50, axis=1)[:, 50]
        bar = np.zeros(x.shape)
        bar[np.arange(len(x)), order] = t
        return np.median(x, 1), bar

    def interp(t, x):
        knots, heights = np.arange(101.0) / 40, np.sin(np.arange(101.0))
        slopes = np.diff(heights) / np.diff(knots)
        return np.interp(x, knots, heights), t * slopes[np.searchsorted(knots, x) - 1]

    def polyval(t, x):
        out, slope = np.zeros(x.shape), np.zeros(x.shape)
        for c in COEFFICIENTS:
            slope = slope * x + out
            out = out * x + c
        return out, t * slope

    def convolve(t, x):
        return np.convolve(x, COEFFICIENTS), np.correlate(t, COEFFICIENTS, "valid")

    def covariance(t, x):
        centred = x - np.mean(x, 1, keepdims=True)
        bar = (t + t.T) @ centred / (x.shape[1] - 1)
        return np.cov(x), bar - np.mean(bar, 1, keepdims=True)

    def einsum(t, a, b):
        return np.einsum("ij,jk->ik", a, b), (t @ b.T, a.T @ t)

    def rfft(t, x):
        wide = np.zeros(x.size, complex)
        wide[: t.size] = t
        return np.fft.rfft(x), np.fft.fft(wide).real

    positive = np.abs(x) + 0.5
    yield Operation("prod over an axis", lambda xp, x: xp.prod(x, 1), (positive,), prod)
    yield Operation("cumprod", lambda xp, x: xp.cumprod(x, 1), (positive[:, :20],), cumprod)
    yield Operation("softmax", lambda xp, x: special.softmax(x, 1), (x,), softmax)
    yield Operation(
        "kron",
        lambda xp, x, y: xp.kron(x, y),
        (rng.normal(size=(20, 20)), rng.normal(size=(16, 16))),
        kron,
    )
    yield Operation("tril", lambda xp, x: xp.tril(x), (a,), triangle)
    yield Operation("repeat", lambda xp, x: xp.repeat(x, 3), (v[: N // 3],), repeated)
    yield Operation("flip", lambda xp, x: xp.flipud(x), (x,), lambda t, x: (x[::-1], t[::-1]))
    yield Operation("median", lambda xp, x: xp.median(x, 1), (rng.normal(size=(990, 101)),), median)
    yield Operation(
        "interp",
        lambda xp, x: xp.interp(x, np.arange(101.0) / 40, np.sin(np.arange(101.0))),
        (v,),
        interp,
    )
    yield Operation("polyval", lambda xp, x: xp.polyval(COEFFICIENTS, x), (v,), polyval)
    yield Operation("convolve", lambda xp, x: xp.convolve(x, COEFFICIENTS), (v,), convolve)
    yield Operation("cov", lambda xp, x: xp.cov(x), (x[:100],), covariance)
    yield Operation("einsum", lambda xp, *ab: xp.einsum("ij,jk->ik", *ab), (a, b), einsum)
    yield Operation("rfft", lambda xp, x: xp.fft.rfft(x), (v,), rfft)


COEFFICIENTS = np.array([0.3, -1.2, 0.5, 0.8, -0.1, 0.7, 0.2, -0.6, 0.4])


def median() -> None:
    """Print a line for each operation, and the median of the ratios."""
    ratios, slower = [], []
    by_hand = [*elementwise(), *of_arrays()]
    others = other_ufuncs({operation.name for operation in by_hand})
    for operation in (*by_hand, *others):
        name, fun, args, hand = operation
        argnums = tuple(range(len(args)))
        t = np.random.default_rng(3).normal(size=np.shape(fun(PLAIN, *args)))
        t = t + 0 * fun(PLAIN, *args)  # of its dtype

        def total(xp, *args, fun=fun, t=t):
            return xp.real(xp.sum(t * fun(xp, *args)))

        def written_out(args=args, hand=hand, t=t):
            out, bars = hand(t, *args)
            return np.real(np.sum(t * out)), bars

        ours = fg.value_and_grad(lambda *args, total=total: total(PLAIN, *args), argnums)
        theirs = autograd.value_and_grad(lambda *args, total=total: total(THEIRS, *args), argnums)
        bars = written_out()[1]
        for got, expected in zip(ours(*args)[1], bars if len(args) > 1 else (bars,), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
        contenders = {
            "funcgrad": lambda ours=ours, args=args: ours(*args),
            "by hand": written_out,
        }
        try:
            with np.errstate(all="ignore"):
                for got, expected in zip(theirs(*args)[1], ours(*args)[1], strict=True):
                    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
            contenders["autograd"] = lambda theirs=theirs, args=args: theirs(*args)
        except (NotImplementedError, AttributeError, TypeError, ValueError, StopIteration):
            pass  # it has no such function
        except AssertionError:
            print(f"  {name}: autograd gives another gradient")
        times = best_times(contenders, seconds=0.4)
        ratio = times["funcgrad"] / times["by hand"]
        ratios.append(ratio)
        line = f"  {name:<24} {ratio:6.2f} by hand"
        if "autograd" in times:
            against = times["funcgrad"] / times["autograd"]
            line += f" {against:6.2f} autograd"
            if against > 1.1:
                slower.append(name)
                line += "  SLOWER"
        print(line + f" {times['funcgrad'] * 1e6:10.1f} us", flush=True)
    print(f"median over {len(ratios)} operations: {statistics.median(ratios):.2f} (at most 1.3)")
    print("slower than autograd by more than 10%:", ", ".join(slower) or "none")


def repeated_index() -> None:
    """The gradient of ``x[index]`` with a million repeated indices."""
    rng = np.random.default_rng(4)
    index = rng.integers(0, 1000, size=1_000_000)
    x, t = rng.normal(size=1000), rng.normal(size=1_000_000)
    _, pullback = fg.vjp(lambda x: x[index], x)

    def add_at():
        bar = np.zeros(1000)
        np.add.at(bar, index, t)
        return bar

    times = best_times(
        {
            "funcgrad": lambda: pullback(t),
            "np.add.at": add_at,
            "np.bincount": lambda: np.bincount(index, t, 1000),
        }
    )
    for name in ("np.add.at", "np.bincount"):
        print(f"gradient of x[1e6 indices]: {times['funcgrad'] / times[name]:.2f} of {name}")


if __name__ == "__main__":
    median()
    repeated_index()
