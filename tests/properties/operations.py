"""The operations that random programs are made of, as lines of source with places to fill in.

What a place stands for is said by its letter: ``{a}`` any value and ``{b}`` one that broadcasts
with it, ``{v}`` a value with at least one axis, ``{k}`` one of its axes and ``{i}`` an index into
its first, ``{m}`` a matrix and ``{n}`` a matrix that can follow it in a product, ``{s}`` a square
matrix far from singular, ``{h}`` a symmetric one with eigenvalues far apart, ``{q}`` a scalar.
A template may have several lines, of which the last assigns to ``{out}``.
"""

import cases
import numpy as np

import funcgrad as fg
from funcgrad import tree
from funcgrad.scipy import special

ELEMENTWISE = """
np.sin({a})
np.cos({a})
np.tanh({a})
np.arctan({a})
np.sinh(0.5 * {a})
np.arcsinh({a})
np.exp(np.tanh({a}))
np.expm1(0.5 * {a})
np.exp2(np.sin({a}))
np.log(2.0 + np.sin({a}))
np.log1p({a} * {a})
np.sqrt(1.0 + {a} ** 2)
np.cbrt(2.0 + np.cos({a}))
np.reciprocal(2.0 + np.square({a}))
np.sinc({a})
np.i0({a})
np.negative({a})
np.positive({a})
np.square({a})
{a} ** 3
{a} ** 2.0
(2.0 + np.sin({a})) ** {b}
np.float_power(1.5, {a})
{a} + {b}
{a} - {b}
{a} * {b}
{a} / (1.5 + {b} * {b})
1.0 / (1.5 + {a} * {a})
-{a}
3.0 - {a}
np.add({a}, {b})
np.multiply({a}, {b})
np.arctan2({a}, 1.5 + {b} ** 2)
np.hypot({a}, 1.0 + {b} ** 2)
np.logaddexp({a}, {b})
np.logaddexp2({a}, 2.0 * {b})
np.where(np.arange(np.size({a})).reshape(np.shape({a})) % 2 == 0, {a}, np.sin({a}))
np.real(np.exp(1j * {a}))
np.imag((1.0 + 1j * {a}) ** 2 / (2.0 - 1j * {a}))
np.abs(1.0 + 1j * {a}) ** 2
np.angle(2.0 + np.exp(1j * {a}))
np.copysign({a}, {a})
np.nan_to_num({a})
np.deg2rad(30.0 * {a})
np.ldexp({a}, -1)
special.erf({a})
special.expit({a})
special.gammaln(2.0 + {a} * {a})
special.logsumexp(np.stack([{a}, 2.0 * {a}]), axis=0)
special.xlogy({a}, 2.0 + np.sin({a}))
special.j0({a})
special.ndtr({a})
special.log_softmax(np.stack([{a}, np.sin({a})]), axis=0)
fg.nn.functional.softplus({a})
fg.nn.functional.silu({a})
"""

REDUCTIONS = """
np.sum({v}, axis={k})
np.sum({v})
np.mean({v}, axis={k}, keepdims=True)
{v}.mean()
np.var({v}, axis={k})
np.std(np.concatenate([{v}, {v} + 1.0]), axis=0)
np.prod(np.sin({v}) + 1.5, axis={k})
np.cumsum({v}, axis={k})
np.cumprod(1.0 + 0.5 * np.tanh({v}), axis={k})
np.cumsum({v})
np.trapezoid({v}, axis={k})
np.average({v}, axis=0, weights=1.5 + np.sin({v}))
np.sqrt(1.0 + np.sum({v} ** 2, axis={k}))
np.log(np.sum(np.exp({v}), axis={k}))
special.logsumexp({v}, axis={k})
special.softmax({v}, axis={k})
np.add.reduce({v}, axis=0)
np.multiply.reduce(1.5 + np.sin({v}), axis=0)
np.add.accumulate({v}, axis={k})
np.diff(np.concatenate([{v}, np.sin({v})]), axis=0)
np.gradient(np.concatenate([{v}, np.sin({v})]), axis=0)
np.cov(np.stack([np.ravel({v}), np.arange(np.size({v})) * 1.0]))
np.sum({v}[:0]) + {v}
np.linalg.norm({v} - 3.0, axis={k})
"""

SHAPING = """
np.reshape({a}, -1)
{v}.T
np.transpose({v})
np.swapaxes({v}, 0, {k})
np.moveaxis({v}, 0, {k})
np.expand_dims({a}, 0)
np.expand_dims({a}, -1)
np.squeeze(np.expand_dims({a}, 0))
np.broadcast_to({a}, (2, *np.shape({a})))
np.concatenate([{v}, np.sin({v})], axis={k})
np.concatenate([{v}[:1], {v}], axis=0)
np.stack([{a}, np.cos({a})], axis=-1)
np.stack([{a}, {a} * {a}])
np.flip({v}, axis={k})
np.roll({v}, 1, axis={k})
np.tile({a}, 2)
np.repeat({v}, 2, axis={k})
np.ravel({a}, order="F")
np.pad({v}, 1)[1:]
np.pad({v}, 1, mode="reflect") if min(np.shape({v})) > 1 else {v}
np.split(np.concatenate([{v}, {v} * 2.0]), 2)[1]
np.atleast_2d({a})
np.tril({m})
np.triu({m}, 1) + np.tril({m})
np.diag({m})
np.diag(np.ravel({a})[:3])
np.trace({m}) * {a}
np.hstack([np.ravel({a}), np.ravel({b})])
np.vstack([{m}, {m}])
np.rot90({m})
np.array_split({v}, 2)[0]
np.meshgrid(np.ravel({a})[:3], np.ravel({b})[:2])[1]
np.append({a}, {b})
np.delete(np.concatenate([{v}, {v}]), 0, axis=0)
np.insert({v}, 0, {q}, axis=0)
np.ones_like({a}) * {q}
np.full_like({a}, 0.5) + {a}
fnp.array([{q}, 1.0, 2.0 * {q}])
np.copy({a})
np.resize({a}, (2, 3))
np.fft.irfft(np.fft.rfft(np.ravel({a})), n=np.size({a}))
np.real(np.fft.fft(np.ravel({a})) * (1.0 + 0.5j))
"""

INDEXING = """
{v}[{i}]
{v}[-1]
{v}[::-1]
{v}[1:]
{v}[::2]
{v}[..., 0]
{v}[None, {i}]
{v}[[0, -1, 0]]
{v}[np.array([0, 0, -1])] * {q}
np.take({v}, [0, -1], axis={k})
np.take({v}, 0, axis={k})
np.take_along_axis({v}, np.zeros((1,) * np.ndim({v}), dtype=int), axis=0)
{v}[np.arange(len({v})) % 2 == 0]
np.compress([True], {v}, axis=0)
np.choose(np.arange(np.size({v})).reshape(np.shape({v})) % 2, [{v}, np.sin({v})])
np.select([np.arange(len({v})) % 2 == 0], [np.sum({v}) + np.arange(len({v}))], 0.5)
np.extract(np.arange(np.size({v})) % 2 == 0, {v})
fg.at({v})[{i}].set(0.5)
fg.at({v})[{i}].add({q})
fg.at({v})[0].multiply({q})
"""

PRODUCTS = """
{m} @ {n}
np.matmul({m}, {n})
np.dot({m}, {n})
np.dot(np.ravel({a}), np.ravel(np.sin({a})))
np.vdot({a}, np.cos({a}))
np.outer(np.ravel({a})[:3], np.ravel({b})[:4])
np.inner({v}, {v})
np.tensordot({v}, {v}, axes=np.ndim({v}))
np.kron(np.ravel({a})[:2], np.ravel({b})[:3])
np.einsum("i,j->ij", np.ravel({a})[:3], np.ravel({b})[:3])
np.einsum("ij,ij->i", {m}, {m})
np.einsum("ij,kj->ik", {m}, {m})
np.einsum("ii", {s})
np.einsum("...i->...", {v})
np.einsum("ij,jk,kl->il", {m}.T, {m}, {m}.T)
np.linalg.multi_dot([{m}, {m}.T, {m}])
np.convolve(np.ravel({a}), np.array([0.5, -1.0]))
np.cross(np.resize({a}, 3), np.resize({b}, 3) + np.arange(3))
np.polyval(np.ravel({a})[:3], np.sin({b}))
np.interp(np.sin({q}), [-2.0, 3.0], np.resize({a}, 2))
np.matvec({m}, {m}[0]) if hasattr(np, "matvec") else {m}
"""

LINALG = """
np.linalg.inv({s})
np.linalg.solve({s}, {s}[0])
np.linalg.solve({s}, {s}.T)
np.linalg.det({s}) / 64.0
np.linalg.slogdet({s})[1]
np.linalg.cholesky({h} @ {h} + np.eye(len({h})))
np.linalg.eigvalsh({h})
np.linalg.eigh({h})[0]
np.linalg.eigh({h})[1] ** 2
np.linalg.svd({h}, compute_uv=False)
np.linalg.svdvals({h})
np.linalg.pinv({s})
np.linalg.norm({s})
np.linalg.norm({s}, 2)
np.linalg.matrix_power({s}, 2) / 16.0
np.linalg.qr({s})[1]
np.linalg.lstsq({s}, {s}[0])[0]
np.linalg.inv(np.stack([{s}, 2.0 * {s}.T]))
np.linalg.solve(np.stack([{s}, {s}.T]), {s}[0][:, np.newaxis])
np.linalg.cond({s})
fg.scipy.linalg.expm({s} / 4.0)
fg.scipy.linalg.solve_triangular({s}, {s}[0], lower=True)
fg.scipy.linalg.cho_solve((np.linalg.cholesky({h} @ {h} + np.eye(len({h}))), True), {h}[0])
fg.scipy.linalg.sqrtm({h} @ {h} + np.eye(len({h}))).real
"""

ASSIGNMENT = """
{out} = np.copy({v}); {out}[{i}] = {q}
{out} = np.copy({v}); {out}[1:] += {v}[:-1]
{out} = fnp.zeros_like({v}); {out}[...] = {a} if np.shape({a}) == np.shape({v}) else {v}
{out} = fnp.zeros((2, *np.shape({a}))); {out}[0] = {a}; {out}[1] = np.sin({out}[0])
{out} = np.copy({v}); {out} *= np.cos({v}); {out}[0] -= 0.5
{out} = np.copy({v}); {out}[::2] = np.exp(-{out}[::2])
{out} = np.copy({v}); view = {out}[0:1]; view *= 2.0; {out} = {out} + 1.0
{out} = np.copy({m}); {out}[:, 0] = {m}[:, -1] * {q}
{out} = np.copy({v}); {out}[[0, -1]] = 0.25
{out} = fnp.empty_like({v}); {out}.fill(0.5); {out}[{i}] = {v}[{i}]
{out} = np.copy({v}); np.add.at({out}, [0, 0], 0.5 * {q})
"""

CONTROL = """
fg.scan(lambda c, x: (np.sin(c) + x, c * x), 0.5 * {v}[0], {v})[0]
fg.scan(lambda c, x: (np.sin(c) + x, c * x), 0.5 * {v}[0], {v}, reverse=True)[1]
fg.scan(lambda c, _: (np.cos(c) * {q}, c), {a}, None, length=3)[1]
fg.scan(lambda c, x: ({{"c": c["c"] + x}}, {{"y": [c["c"]]}}), {{"c": {v}[0]}}, {v})[1]["y"][0]
fg.fori_loop(0, 3, lambda i, c: np.tanh(c + i) * {q}, {a})
fg.fori_loop(0, 2, lambda i, c: (c[1], np.sin(c[0])), ({a}, 2.0 * {a}))[1]
fg.fori_loop(0, len({v}), lambda i, c: c + {v}[i] * i, 0.0 * {v}[0])
fg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, np.sin(c[1]) + {q}), (0, {a}))[1]
fg.cond(True, lambda x: np.sin(x), lambda x: np.cos(x), {a})
fg.cond(np.shape({a}) == (), lambda: 2.0 * {a}, lambda: {a} * {a})
fg.switch(1, [np.sin, lambda x: x * {q}, np.cos], {a})
fg.map(lambda row: np.sum(row * row), {v})
fg.map(lambda row: np.sin(row) * {q}, {v}, batch_size=2)
fg.associative_scan(np.multiply, 1.0 + 0.25 * np.sin({v}))
fg.associative_scan(lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1]), (np.sin({v}), {v}))[1]
fg.associative_scan(np.add, {v}, reverse=True, axis={k})
"""

INNER = """
fg.checkpoint(lambda x: np.sin(x) * x)({a})
fg.checkpoint(lambda: np.tanh({a}) * {b})()
fg.checkpoint(lambda x: fg.checkpoint(np.cos)(x * {q}) + x)({a})
fg.checkpoint(lambda x: x @ x.T, policy=fg.checkpoint_policies.dots_saveable)({m})
fg.remat(lambda x: fg.scan(lambda c, y: (np.sin(c * y), c), x[0], x)[0])({v})
by_custom_vjp({a}, {b})
by_custom_jvp({a}, {b})
by_custom_vmap({a})
by_primitive({a})
fg.grad(lambda x: np.sum(np.sin(x) * {b}))({a})
fg.grad(lambda x: np.sum(x * x * x) * {q})({v})
fg.value_and_grad(lambda x: np.sum(np.exp(-x * x)))({a})[1]
fg.jvp(lambda x: np.sin(x) * {b}, ({a},), (np.cos({a}),))[1]
fg.jvp(np.cumsum, ({v},), (np.sin({v}),))[1]
fg.linearize(lambda x: x * x * {q}, {a})[1]({a})
fg.vjp(lambda x: np.sin(x) * x, {a})[1]({a})[0]
fg.vmap(lambda x: np.sum(np.sin(x)) * {q})({v})
fg.vmap(fg.grad(lambda x: np.sum(x * x * {q})))({v})
fg.vmap(lambda x, y: x * y, in_axes=({k}, None), out_axes=-1)({v}, {q})
fg.jacfwd(lambda x: np.sin(x) * {q})(np.ravel({a})[:2])
fg.jacrev(lambda x: x * np.sum(x))(np.ravel({a})[:2])
fg.hessian(lambda x: np.sum(np.sin(x)) * np.sum(x))(np.ravel({a})[:2])
fg.hvp(lambda x: np.sum(x ** 3), ({a},), (np.sin({a}),))
fg.stop_gradient(np.arange(3.0)) * {q}
fg.elementwise_grad(np.sin)({a})
fg.nn.functional.softmax({v}, axis={k})
fg.nn.functional.one_hot(np.array([0, 1]), 3) * {q}
fg.tree.map(np.sin, {{"x": {a}, "y": [{a}]}})["y"][0]
fg.tree.ravel({{"x": {a}, "y": [{q}]}})[0]
"""

# These have kinks, where one side's derivative is not the other's; programs seldom meet one.
KINKED = """
np.abs({a})
np.absolute({a}) * {a}
np.maximum({a}, {b})
np.minimum({a}, 0.1)
np.fmax({a}, {b})
np.clip({a}, -0.4, 0.6)
np.sign({a}) * {b}
np.floor(3.0 * {a}) * {b}
np.mod(3.0 * {a}, 2.0)
np.where({a} > 0.2, np.sin({a}), {b})
np.where({a} > {b}, {a} * {b}, 1.0)
np.heaviside({a}, 0.5) + {a}
np.max({v}, axis={k})
np.min({v}, axis={k}, keepdims=True)
np.ptp({v}, axis={k})
np.sort({v}, axis={k})
np.sort({v})[::-1]
np.partition({v}, 0, axis={k})
np.median({v}, axis={k})
np.percentile({v}, 30.0, axis={k})
np.quantile({v}, [0.2, 0.7], axis=0)
np.take_along_axis({v}, np.argsort({v}, axis={k}), axis={k})
np.cumulative_sum(np.sort({v}, axis={k}), axis={k})
np.maximum.accumulate({v}, axis={k})
np.linalg.norm({v}, axis={k})
np.linalg.norm({v}, 1, axis={k})
np.linalg.norm({v}, np.inf, axis={k})
np.nanmax({v}, axis={k})
np.std({v}, axis={k})
np.heaviside({q}, 0.0) * {a}
fg.nn.functional.relu({a})
fg.cond(np.sum({a}) > 0.1, lambda x: np.sin(x), lambda x: x * x, {a})
fg.cond({q} > 0.0, lambda: {a} * 2.0, lambda: {a} * {q})
fg.cond({q} > 0.3, lambda x, y: (x, y), lambda x, y: (y, x), {a}, np.sin({a}))[0]
fg.switch(np.floor(2.0 * {q}).astype(int), [np.sin, np.cos, lambda x: x * {q}], {a})
fg.while_loop(lambda c: np.sum(c * c) > 0.3, lambda c: 0.6 * c, {a})
fg.while_loop(lambda c: c[0] < {q} + 1.5, lambda c: (c[0] + 0.5, np.sin(c[1]) + {q}), (0.0, {a}))[1]
fg.fori_loop(0, np.floor(2.0 + {q}).astype(int), lambda i, c: np.sin(c) + i, {a})
fg.scan(lambda c, x: (fg.cond(np.sum(x) > 0.0, np.sin, np.cos, c), x * c), {v}[0], {v})[0]
fg.checkpoint(lambda x: fg.cond(np.sum(x) > 0.0, np.sin, np.cos, x))({a})
{out} = np.copy({v}); {out}[{v} > 0.3] = {q}
{out} = np.copy({v}); {out}[np.argmax(np.ravel({v})) % len({v})] = 0.5
fg.at({v})[0].max(0.2)
{v}[np.argsort(np.ravel({v}))[0] % len({v})]
"""


def lines(text):
    return [line for line in text.strip().splitlines() if line]


GROUPS = [
    lines(text)
    for text in (
        ELEMENTWISE,
        REDUCTIONS,
        SHAPING,
        INDEXING,
        PRODUCTS,
        LINALG,
        ASSIGNMENT,
        CONTROL,
        INNER,
    )
]
KINKS = lines(KINKED)


# What the templates mention


@fg.custom_vjp
def by_custom_vjp(x, y):
    """Multiply the sine of `x` by `y`."""
    return np.sin(x) * y


def by_custom_vjp_fwd(x, y):
    return np.sin(x) * y, (x, y)


def by_custom_vjp_bwd(residuals, out_bar):
    x, y = residuals
    both = np.broadcast_shapes(np.shape(x), np.shape(y))
    x_bar, y_bar = out_bar * np.cos(x) * y, out_bar * np.sin(x)
    return summed(x_bar, both, np.shape(x)), summed(y_bar, both, np.shape(y))


def summed(bar, shape, wanted):
    """Sum a cotangent over the axes that broadcasting added."""
    lead = len(shape) - len(wanted)
    bar = np.sum(np.broadcast_to(bar, shape), axis=tuple(range(lead)))
    stretched = tuple(i for i, n in enumerate(wanted) if n == 1 and shape[lead + i] != 1)
    return np.sum(bar, axis=stretched, keepdims=True)


by_custom_vjp.defvjp(by_custom_vjp_fwd, by_custom_vjp_bwd)


@fg.custom_jvp
def by_custom_jvp(x, y):
    """Multiply the square of `x` by `y`."""
    return x * x * y


@by_custom_jvp.defjvp
def by_custom_jvp_rule(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return x * x * y, 2.0 * x * y * x_dot + x * x * y_dot


@fg.custom_vmap
def by_custom_vmap(x):
    """Sum the sine of `x`."""
    return np.sum(np.sin(x))


@by_custom_vmap.def_vmap
def by_custom_vmap_rule(axis_size, in_batched, x):
    return np.sum(np.sin(x), axis=tuple(range(1, np.ndim(x)))), True


@fg.custom_jvp
def by_primitive(x):
    """Compute a sine by foreign code, with its derivatives given to every order."""
    return fg.pure_callback(np.sin, x, x, vmap_method="expand_dims")


@by_primitive.defjvp
def by_primitive_rule(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return by_primitive(x), np.cos(x) * x_dot


# The calls that the rules are tested with, as operations on any value

SAMPLES = {
    repr(case): case
    for case in cases.TWICE
    if all(getattr(x, "dtype", None) == np.float64 for x in case.values) and case.sample.batch
}


def sample(name, *values):
    """Move the arguments of a call a little, as `values` say, and return how the result moved."""
    case = SAMPLES[name]
    moved = [
        x + 0.01 * np.sin(np.resize(values[i % len(values)], np.shape(x))) * (np.abs(x) + 0.1)
        if np.size(x)
        else x
        for i, x in enumerate(case.values)
    ]
    parts = []
    for out, start in zip(case.floating(*moved), case.floating(*case.values), strict=True):
        change = 30.0 * np.ravel(out - start)[:6]
        if np.iscomplexobj(change):
            change = np.real(change) + np.imag(change)
        parts.append(change)
    return np.concatenate(parts)[:12]


NAMESPACE = {
    "np": np,
    "fnp": fg.numpy,
    "fg": fg,
    "special": special,
    "tree": tree,
    "sample": sample,
    "by_custom_vjp": by_custom_vjp,
    "by_custom_jvp": by_custom_jvp,
    "by_custom_vmap": by_custom_vmap,
    "by_primitive": by_primitive,
}
