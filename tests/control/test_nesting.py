"""Control flow under every transform, and inside of itself, against Python's own loops and ifs.

Each program is written once and run twice: with our functions under the transform, and with
Python's ``if`` and ``while``, example by example, where there is a batch.
"""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad import control


class Plain:
    """What the functions mean, in Python."""

    @staticmethod
    def cond(pred, true_fun, false_fun, *operands):
        return true_fun(*operands) if pred else false_fun(*operands)

    @staticmethod
    def switch(index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def while_loop(cond_fun, body_fun, val):
        while cond_fun(val):
            val = body_fun(val)
        return val

    @staticmethod
    def fori_loop(lower, upper, body_fun, val):
        for i in range(int(lower), int(upper)):
            val = body_fun(i, val)
        return val

    @staticmethod
    def scan(f, carry, xs):
        ys = []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)


# Programs of a vector `x` with three elements, a number `w`, and an integer `n`, to a number.


def branch_by_operand(lib, x, w, n):
    return lib.cond(
        x[0] > 0, lambda v, u: np.sqrt(v[0]) * u * v[1], lambda v, u: np.sum(v) * u * u, x, w
    )


def branch_by_closure(lib, x, w, n):
    return lib.cond(x[0] > 0, lambda: np.sqrt(x[0]) * w * x[1], lambda: np.sum(x) * w * w)


def branch_in_branch(lib, x, w, n):
    def positive(v):
        return lib.cond(v[1] > 0, lambda u: np.log(u[0]) * np.log(u[1]) * w, lambda u: u[0] * n, v)

    return lib.cond(x[0] > 0, positive, lambda v: np.sin(v[0] * w * x[2]), x)


def branch_through_containers(lib, x, w, n):
    held = {"x": x, "w": [w]}
    return lib.cond(
        x[2] < 0, lambda v: held["x"][0] * v * held["w"][0] ** 2, lambda v: v * held["x"][1], w
    )


def many_branches(lib, x, w, n):
    return lib.switch(
        n - 1, [lambda v: np.sum(v) * w, lambda v: np.prod(v) + w**3, lambda v: v @ v * w], x
    )


def while_by_count(lib, x, w, n):
    return lib.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * w + np.sin(x[0] * s[1])), (0, 1.0)
    )[1]


def while_by_value(lib, x, w, n):
    total, _ = lib.while_loop(
        lambda s: abs(s[0]) < 4.0,
        lambda s: (s[0] * 1.5 + x[1] * s[1][0] + 1.0, s[1] * w),
        (x[0], x),
    )
    return total


def while_in_while(lib, x, w, n):
    def outer(state):
        i, total = state
        _, total = lib.while_loop(
            lambda s: s[0] * 1.0 < x[0] + 1,
            lambda s: (s[0] + 1, s[1] + w * i + s[0] * x[1]),
            (0, total),
        )
        return i + 1, total

    return lib.while_loop(lambda s: s[0] < n + 1, outer, (0, 0.0))[1] * w


def branch_in_while(lib, x, w, n):
    def body(state):
        i, v = state
        return i + 1, lib.cond(v > x[0], lambda v: v * w - x[1], lambda v: v * v + x[2] * i, v)

    return lib.while_loop(lambda s: s[0] < n, body, (0, w))[1]


def for_with_bounds(lib, x, w, n):
    return lib.fori_loop(n - 1, n + 2, lambda i, c: c * w + i * x[0], 1.0)


def scan_of_branch(lib, x, w, n):
    def step(c, v):
        c = lib.cond(v > 0, lambda: c * v + w, lambda: np.cos(c) * w)
        return c, c * v

    c, ys = lib.scan(step, w, x)
    return c + np.sum(ys**2)


def while_in_scan_in_branch(lib, x, w, n):
    def step(c, v):
        c = lib.while_loop(lambda c: c * c < 9.0, lambda c: 2 * c + w * w + 1.0, c)
        return c * 0.1, v * c

    def looped(v):
        c, ys = lib.scan(step, v, x)
        return c + np.sum(ys)

    return lib.cond(n > 1, looped, lambda v: v * x[0], w)


def recursion(lib, x, w, n):
    def power(n):
        return lib.cond(n <= 0, lambda: w, lambda: power(n - 1) * x[0] + n)

    return power(n)


def gradient_in_branch(lib, x, w, n):
    def inner(v):
        return fg.grad(lambda u: np.sin(u * w) * x[1] * u)(v)

    return lib.cond(x[0] > 0, inner, lambda v: v**3 * w, x[2])


def gradient_of_what_is_named(lib, x, w, n):
    return lib.cond(
        x[0] > 0, lambda v: np.sum(fg.grad(lambda u: u @ u * v)(x)) * w, lambda v: v * w, x[1]
    )


def tangent_in_while(lib, x, w, n):
    def body(s):
        _, dot = fg.jvp(lambda u: u * u * w, (s[1],), (x[0],))
        return s[0] + 1, np.tanh(dot) + s[1]

    return lib.while_loop(lambda s: s[0] < n, body, (0, x[1]))[1]


def unchanged(lib, x, w, n):
    return lib.cond(x[0] > 0, lambda v: w, lambda v: v[1], x)


PROGRAMS = [
    branch_by_operand,
    branch_by_closure,
    branch_in_branch,
    branch_through_containers,
    many_branches,
    while_by_count,
    while_by_value,
    while_in_while,
    branch_in_while,
    for_with_bounds,
    scan_of_branch,
    while_in_scan_in_branch,
    recursion,
    gradient_in_branch,
    gradient_of_what_is_named,
    tangent_in_while,
    unchanged,
]

XS = np.array([[1.2, 0.7, -0.4], [-0.9, 1.1, 0.8], [0.5, -1.3, 1.9], [2.1, 0.3, 0.6]])
WS = np.array([0.8, 1.3, -0.6, 1.1])
NS = np.array([3, 0, 1, 2])


def both(program):
    return functools.partial(program, control), functools.partial(program, Plain)


def rows(fun, *args):
    outs = [fun(*row) for row in zip(*args, strict=True)]
    if isinstance(outs[0], tuple):
        return tuple(np.stack(parts) for parts in zip(*outs, strict=True))
    return np.stack(outs)


def check(found, want):
    for got, expected in zip(fg.tree.leaves(found), fg.tree.leaves(want), strict=True):
        assert np.shape(got) == np.shape(expected)
        assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.__name__)
def program(request):
    return both(request.param)


def test_eagerly_it_is_the_python_program(program):
    ours, plain = program
    for row in zip(XS, WS, NS, strict=True):
        assert ours(*row) == plain(*row)


def test_gradient(program):
    ours, plain = program
    for row in zip(XS, WS, NS, strict=True):
        check(fg.grad(ours, argnums=(0, 1))(*row), fg.grad(plain, argnums=(0, 1))(*row))


def test_jvp(program):
    ours, plain = program
    for x, w, n in zip(XS, WS, NS, strict=True):
        tangents = (np.array([0.3, -0.2, 0.5]), 0.7)
        found = fg.jvp(lambda x, w, n=n: ours(x, w, n), (x, w), tangents)
        check(found, fg.jvp(lambda x, w, n=n: plain(x, w, n), (x, w), tangents))


def test_vmap(program):
    ours, plain = program
    check(fg.vmap(ours)(XS, WS, NS), rows(plain, XS, WS, NS))


def test_vmap_with_a_shared_argument(program):
    ours, plain = program
    want = rows(lambda x, n: plain(x, 1.1, n), XS, NS)
    check(fg.vmap(ours, in_axes=(0, None, 0))(XS, 1.1, NS), want)


def test_vmap_of_the_gradient(program):
    ours, plain = program
    found = fg.vmap(fg.grad(ours, argnums=(0, 1)))(XS, WS, NS)
    check(found, rows(fg.grad(plain, argnums=(0, 1)), XS, WS, NS))


def test_vmap_of_the_gradient_by_a_shared_argument(program):
    """What is the same for all examples has a gradient for each."""
    ours, plain = program
    found = fg.vmap(fg.grad(ours, argnums=1), in_axes=(0, None, 0))(XS, 1.1, NS)
    check(found, rows(lambda x, n: fg.grad(plain, argnums=1)(x, 1.1, n), XS, NS))


def test_gradient_of_the_vmap(program):
    ours, plain = program
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    found = fg.grad(lambda x, w: weights @ fg.vmap(ours)(x, w, NS), argnums=(0, 1))(XS, WS)
    dx, dw = rows(fg.grad(plain, argnums=(0, 1)), XS, WS, NS)
    check(found, (dx * weights[:, None], dw * weights))


def test_jvp_of_the_vmap(program):
    ours, plain = program
    dots = (0.3 * XS[::-1], WS**2)
    found = fg.jvp(lambda x, w: fg.vmap(ours)(x, w, NS), (XS, WS), dots)
    want = rows(
        lambda x, w, n, xd, wd: fg.jvp(lambda x, w: plain(x, w, n), (x, w), (xd, wd)),
        *(XS, WS, NS, *dots),
    )
    check(found, want)


def test_vmap_of_the_jvp(program):
    ours, plain = program

    def push(fun, x, w, n):
        return fg.jvp(lambda x, w: fun(x, w, n), (x, w), (x * x, 1.0))

    found = fg.vmap(functools.partial(push, ours))(XS, WS, NS)
    check(found, rows(functools.partial(push, plain), XS, WS, NS))


def test_vmap_of_the_hessian(program):
    ours, plain = program
    check(fg.vmap(fg.hessian(ours))(XS, WS, NS), rows(fg.hessian(plain), XS, WS, NS))


def test_hessian_of_the_vmap(program):
    ours, plain = program
    found = fg.hessian(lambda w: np.sum(fg.vmap(ours, in_axes=(0, None, 0))(XS, w, NS)))(1.1)
    want = fg.hessian(lambda w: sum(plain(x, w, n) for x, n in zip(XS, NS, strict=True)))(1.1)
    check(found, want)


def test_vmap_of_a_linearization(program):
    ours, plain = program

    def push(fun, x, w, n):
        out, linear = fg.linearize(lambda x, w: fun(x, w, n), x, w)
        return out, linear(x, 1.0)

    found = fg.vmap(functools.partial(push, ours))(XS, WS, NS)
    check(found, rows(functools.partial(push, plain), XS, WS, NS))


def test_vmap_of_vmap(program):
    """Every example of the one vmap with every one of the other."""
    ours, plain = program
    inner = fg.vmap(ours, in_axes=(None, 0, 0))
    found = fg.vmap(inner, in_axes=(0, None, None))(XS, WS, NS)
    want = np.stack([[plain(x, w, n) for w, n in zip(WS, NS, strict=True)] for x in XS])
    check(found, want)


def test_vmap_of_the_gradient_of_a_vmap(program):
    ours, plain = program

    def summed(x, w):
        return np.sum(fg.vmap(ours, in_axes=(None, None, 0))(x, w, NS) ** 2)

    def summed_plain(x, w):
        return sum(plain(x, w, n) ** 2 for n in NS)

    found = fg.vmap(fg.grad(summed, argnums=(0, 1)))(XS, WS)
    check(found, rows(fg.grad(summed_plain, argnums=(0, 1)), XS, WS))


def test_gradient_of_vmap_of_the_gradient(program):
    ours, plain = program

    def penalty(fun, x, w, n):
        return np.sum(fg.grad(fun)(x, w, n) ** 2)

    found = fg.grad(lambda w: np.sum(fg.vmap(functools.partial(penalty, ours))(XS, w, NS)))(WS)
    check(found, rows(fg.grad(functools.partial(penalty, plain), argnums=1), XS, WS, NS))


def test_jacobians_of_branches_by_rows():
    def f(x):
        return control.cond(x[0] > 0, lambda: np.sin(x) * x[1], lambda: np.cumsum(x) ** 2)

    def plain(x):
        return np.sin(x) * x[1] if x[0] > 0 else np.cumsum(x) ** 2

    want = rows(fg.jacfwd(plain), XS)
    check(fg.vmap(fg.jacrev(f))(XS), want)
    check(fg.vmap(fg.jacfwd(f))(XS), want)
    check(np.einsum("iaib->iab", fg.jacrev(fg.vmap(f))(XS)), want)
    check(fg.vmap(fg.hessian(f))(XS), rows(fg.hessian(plain), XS))


def test_gradient_by_rows_is_what_differences_say():
    def f(x, w):
        return fg.vmap(functools.partial(branch_in_while, control))(x, w, NS)

    fg.testing.check_grads(f, (XS, WS))
