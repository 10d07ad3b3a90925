"""What the laws of recording and of `jit` are checked with: cases, and other values for them."""

from __future__ import annotations

import threading

import numpy as np
from cases import DERIVED, generator, is_enough, random_like

import funcgrad as fg
from funcgrad import tree
from funcgrad.core.level import Origin
from funcgrad.staging.passes.pipeline import optimised
from funcgrad.staging.record import record
from funcgrad.staging.strict import StrictTrace


def first_of_each(cases, count):
    """Return the first cases of every primitive, of which there are thousands."""
    found = {}
    for case in cases:
        if is_enough(case) and not case.label.endswith(("complex", "real")):
            found.setdefault(case.name, []).append(case)
    return [case for several in found.values() for case in several[:count]]


# The shape, the dtype, or the way to compute the result depends on the values; or (a determinant)
# the matrix of the sample is singular, and the others are not.
BY_VALUE = {
    "det",
    "gradient",
    "histogram_bin_edges",
    "intersect1d",
    "real_if_close",
    "scipy_det",
    "setdiff1d",
    "setxor1d",
    "tally",
    "trim_zeros",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
}


KINKS = [case for case in DERIVED if case.sample.kinks and is_enough(case)]


def elsewhere(case):
    """Return other values for a case, of the same kinds."""
    rng = generator(case.name, case.label)

    def other(x):
        factor = rng.uniform(0.999, 1.001, size=np.shape(x))
        if isinstance(x, np.ndarray):
            return np.asarray(x * factor).astype(x.dtype)
        return type(x)(x * factor)

    return tuple(map(other, case.values))


def assert_same(got, want):
    """Compare to the last bit, with dtypes."""
    got_leaves, treedef = tree.flatten(got)
    want_leaves, want_treedef = tree.flatten(want)
    assert treedef == want_treedef
    for a, b in zip(got_leaves, want_leaves, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def assert_near(got, want):
    """Compare up to rounding: what is shorter for some values is recorded as it is for all."""
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14 * scale)


def called(case):
    """Return the case as a plain function, which programs are named by."""

    def fun(*values):
        return case(*values)

    return fun


def away_from(case):
    """Return values where a case has no kink, of the same kinds, and finite."""
    rng = generator(case.name, case.label)

    def other(x):
        plain = np.where(np.isfinite(x), x, 1.0)
        moved = plain + 0.3 * rng.uniform(0.1, 1, size=np.shape(x))
        moved = moved.astype(np.asarray(x).dtype)
        return moved if isinstance(x, np.ndarray) else type(x)(moved[()])

    return tuple(map(other, case.values))


def pulled_back(case):
    """Return a function that pulls weights back through a case, whatever its shape is there."""

    def pulled(*values):
        out, pullback = fg.vjp(case.floating, *values)
        rng = generator(case.name, "weights")
        return pullback(
            tuple(random_like(rng, np.asarray(np.zeros(np.shape(x), x.dtype))) for x in out)
        )

    return pulled


def pulled_at(case):
    """Return the pullback of a case, of its shapes, as a function of its arrays."""
    out = case.floating(*case.values)
    weights = tuple(random_like(generator(case.name, "weights"), x) for x in out)

    def fun(*values):
        _, pullback = fg.vjp(case.floating, *values)
        return pullback(weights)

    return fun


def prepared(fun, *args):
    """Return the program of a call as it is compiled, with what is known about memory."""
    trace = StrictTrace(Origin("jit", fun), list)
    program = record(fun, args, {}, trace.origin, trace, integers=True)
    return optimised(program, trace.layouts), trace


def in_threads(count, work):
    """Call ``work(i)`` in so many threads at once; raise what one of them has raised."""
    failed = []
    ready = threading.Barrier(count)

    def run(i):
        try:
            ready.wait()
            work(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
