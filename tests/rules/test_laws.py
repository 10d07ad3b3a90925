"""The laws that every rule obeys, checked on every sample of every primitive.

A case is one call of a NumPy function, seen as a function of its floating arrays alone. What the
laws compare with is NumPy itself, finite differences, and one mode with another: never a formula.
Everything that is declared is found here by itself; what has no sample fails.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import warnings
import zlib

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import tree
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import TracerBase, concrete
from funcgrad.core.primitive import DECLARED, Primitive, Sample
from funcgrad.testing.differences import Point

FIRST = {"rtol": 1e-7, "atol": 1e-8}  # of differences, float64
SECOND = {"rtol": 1e-5, "atol": 1e-6}


class Case:
    """A call of a NumPy function, as a function of the arrays that it is differentiated in."""

    def __init__(self, name, label, sample, made):
        self.name = name
        self.label = label
        self.sample = sample
        self.made = made
        self.reason = getattr(made, "reason", None)
        self.fun = sample.fun or (made.overridden or (made,))[0]
        call = (list(sample.args), dict(sample.kwargs))
        leaves, self.treedef = tree.flatten(call)
        paths = [path for path, _ in tree.flatten_with_path(call)[0]]
        self.leaves = leaves
        self.positions = [
            position
            for position, (path, leaf) in enumerate(zip(paths, leaves, strict=True))
            if self._is_wanted(path, leaf)
        ]
        self.values = tuple(leaves[position] for position in self.positions)

    def _is_wanted(self, path, leaf):
        part, place = path[0].idx, path[1]
        if part == 1:
            return place.key in self.sample.argnames and is_floating(leaf)
        if self.sample.argnums is not None:
            return place.idx in self.sample.argnums and is_floating(leaf)
        return is_floating(leaf) and hasattr(leaf, "dtype")

    def __call__(self, *values):
        leaves = list(self.leaves)
        for position, value in zip(self.positions, values, strict=True):
            leaves[position] = value
        args, kwargs = tree.unflatten(self.treedef, leaves)
        return self.fun(*args, **kwargs)

    def floating(self, *values):
        """Return the floating parts of the result, which have a derivative."""
        return tuple(leaf for leaf in tree.leaves(self(*values)) if is_floating(leaf))

    def __repr__(self):
        return f"{self.name}-{self.label}"


def is_floating(leaf):
    if hasattr(leaf, "dtype"):
        return getattr(leaf.dtype, "kind", "O") in "fc"
    return isinstance(leaf, float | complex)


# The cases


def generator(*words):
    return np.random.default_rng(zlib.crc32(" ".join(words).encode()))


OPERATORS = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: operator.abs,
    np.less: operator.lt,
    np.equal: operator.eq,
}

ONE = {"1d": [(5,)], "2d": [(2, 3)], "0d": [()], "empty": [(0, 3)], "size1": [(1, 1)]}
TWO = {
    "same": [(2, 3), (2, 3)],
    "stretched": [(3, 1), (1, 4)],
    "leading": [(2, 3), (3,)],
    "trailing": [(1,), (2, 3)],
    "0d": [(), (3,)],
    "0d-0d": [(), ()],
    "empty": [(0, 3), (3,)],
    "empty-stretched": [(1, 3), (0, 3)],
}


def ufunc_samples(made):
    """Draw arguments of all shapes from the domain of an elementwise primitive."""
    if not any(kinds.startswith("d") for kinds in made.ufunc.types):
        return  # takes integers only
    rng = generator(made.name)
    domains = made.domain if isinstance(made.domain[0], tuple) else (made.domain,) * made.nin

    def draw(shapes, kind=np.asarray):
        return [kind(rng.uniform(*d, size=shape)) for d, shape in zip(domains, shapes, strict=True)]

    for label, shapes in (ONE if made.nin == 1 else TWO).items():
        yield label, Sample(*draw(shapes))
    nothing = [()] * made.nin
    kinds = {"numpy": np.float64, "python": float}
    for label, kind in kinds.items():
        yield label, Sample(*draw(nothing, kind), argnums=tuple(range(made.nin)))
        if made.nin == 2:
            array = draw([(3,), (3,)])
            scalar = draw(nothing, kind)
            yield f"{label}-array", Sample(scalar[0], array[1], argnums=(0, 1))
            yield f"array-{label}", Sample(array[0], scalar[1], argnums=(0, 1))
    if made.nin == 2:
        x, y = draw([(3,), (3,)])
        yield "constant-first", Sample(x, y, argnums=1)
        yield "constant-second", Sample(x, y, argnums=0)
    op = OPERATORS.get(made.ufunc)
    if op is not None:
        every = tuple(range(made.nin))
        yield "operator", Sample(*draw([(3,)] * made.nin), fun=op)
        yield "operator-numpy", Sample(*draw(nothing, np.float64), fun=op, argnums=every)
        yield "operator-python", Sample(*draw(nothing, float), fun=op, argnums=every)
        if made.nin == 2:
            x, y = draw([(3,), (3,)])
            yield "operator-array-python", Sample(x, float(y[0]), fun=op, argnums=every)
            yield "operator-python-array", Sample(float(x[0]), y, fun=op, argnums=every)


def samples_of(made):
    if isinstance(made, Elementwise):
        yield from ufunc_samples(made)
    if made.samples is not None:
        for number, sample in enumerate(made.samples(generator(made.name))):
            yield str(number), sample


BROKEN = {}  # name -> what its samples raised
CASES = []
for _name, _made in sorted(DECLARED.items()):
    try:
        CASES += [Case(_name, label, sample, _made) for label, sample in samples_of(_made)]
    except Exception as error:
        BROKEN[_name] = error


def recast(value, dtype, rng=None):
    """Return `value` with another dtype, and an imaginary part if that is complex."""
    dtype = np.dtype(dtype)
    if not hasattr(value, "dtype"):
        return complex(value, 0.3 * rng.normal()) if dtype.kind == "c" else value
    if dtype.kind != "c" and value.dtype.kind == "c":
        dtype = np.dtype(f"c{2 * dtype.itemsize}")
    made = value.astype(dtype)
    if dtype.kind == "c" and value.dtype.kind != "c":
        made = made + 0.3j * rng.normal(size=value.shape)
    return np.asarray(made) if isinstance(value, np.ndarray) else made


def variant(case, label, values):
    """Return the case with other values in the place of its own."""
    made = Case.__new__(Case)
    made.__dict__.update(case.__dict__, values=tuple(values), label=f"{case.label}-{label}")
    return made


# Of the elementwise functions, which are many, in all shapes: what is enough for the other dtypes.
ENOUGH = {"1d", "0d", "empty", "numpy", "python", "same", "stretched", "array-python", "operator"}


def is_enough(case):
    return case.label in ENOUGH or case.label.isdigit()


def complex_cases():
    for case in CASES:
        if not case.sample.complex or not case.values or not is_enough(case):
            continue
        rng = generator(case.name, case.label)
        values = [recast(x, np.complex128, rng) for x in case.values]
        changed = [variant(case, "complex", values)]
        if len(values) == 2 and case.label in ("same", "0", "operator"):
            changed.append(variant(case, "complex-real", [values[0], case.values[1]]))
            changed.append(variant(case, "real-complex", [case.values[0], values[1]]))
        yield from filter(is_possible, changed)


def is_possible(case):
    """Tell whether NumPy takes the call, and keeps the imaginary parts."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            case(*case.values)
    except (TypeError, np.exceptions.ComplexWarning):
        return False
    return True


def narrow_cases():
    for case in CASES:
        if any(hasattr(x, "dtype") and x.dtype == np.float64 for x in case.values):
            if is_enough(case):
                yield variant(case, "float32", [recast(x, np.float32) for x in case.values])
            if isinstance(case.made, Elementwise) and case.label in ("1d", "same", "numpy"):
                yield variant(case, "float16", [recast(x, np.float16) for x in case.values])


WITH_VALUES = [case for case in CASES if case.values]
NARROW = list(narrow_cases())
BOTH = WITH_VALUES + list(complex_cases())
DERIVED = [case for case in BOTH if case.reason is None and case.sample.order > 0]
SMOOTH = [case for case in DERIVED if not case.sample.kinks]
TWICE = [case for case in SMOOTH if case.sample.order > 1]


def law(cases):
    return pytest.mark.parametrize("case", cases, ids=repr)


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# Helpers of the laws


def random_like(rng, x):
    made = rng.normal(size=np.shape(x))
    dtype = np.asarray(x).dtype
    if dtype.kind == "c":
        made = made + 1j * rng.normal(size=np.shape(x))
    if not hasattr(x, "dtype"):
        return complex(made) if dtype.kind == "c" else float(made)
    made = np.asarray(made).astype(dtype)
    return made if isinstance(x, np.ndarray) else made[()]


def directions(case, values=None):
    rng = generator(case.name, case.label, "direction")
    values = case.values if values is None else values
    return tuple(random_like(rng, x) for x in values)


def inner(a, b):
    """Return the real part of the bilinear product, and the sum of the absolute terms."""
    total, size = 0.0, 0.0
    for x, y in zip(a, b, strict=True):
        terms = np.real(np.multiply(x, y, dtype=np.result_type(np.asarray(x), np.float64)))
        total, size = total + np.sum(terms), size + np.sum(np.abs(terms))
    return total, size


def assert_identical(got, expected):
    """The same types, containers, dtypes, shapes and bits."""
    assert type(got) is type(expected)
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_identical(a, b)
    elif hasattr(expected, "dtype") and expected.dtype.kind != "O":
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        if np.asarray(got).tobytes() != np.asarray(expected).tobytes():
            # Bits may differ where both are NaN, of which there are many; nowhere else.
            np.testing.assert_array_equal(got, expected)
            for part in (np.real, np.imag) if expected.dtype.kind in "fc" else ():
                a, b = part(got), part(expected)
                assert np.all(np.isnan(b) | (np.signbit(a) == np.signbit(b)))
    else:
        assert repr(got) == repr(expected)


def vector(leaves):
    return np.concatenate([np.zeros(0), *(np.ravel(leaf) for leaf in leaves)])


def holds_tracer(value):
    return any(isinstance(leaf, TracerBase) for leaf in tree.leaves(value))


# The laws


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_everything_declared_has_samples_or_a_reason(name):
    made = DECLARED[name]
    if name in BROKEN:
        raise BROKEN[name]
    assert (
        isinstance(made, Elementwise)
        or made.samples is not None
        or getattr(made, "reason", None) is not None
    ), f"{name} has no samples"


@law(BOTH + NARROW)
def test_value_is_that_of_numpy_under_every_transform(case):
    expected = case(*case.values)
    dots = directions(case)
    assert_identical(fg.vjp(case, *case.values)[0], expected)
    assert_identical(fg.jvp(case, case.values, dots)[0], expected)
    assert_identical(fg.linearize(case, *case.values)[0], expected)


@law(BOTH)
def test_value_is_that_of_numpy_under_nested_transforms(case):
    expected = case(*case.values)
    dots = directions(case)

    def pulled(*values):
        return fg.vjp(case, *values)[0]

    def pushed(*values):
        return fg.jvp(case, values, dots)[0]

    assert_identical(fg.vjp(pulled, *case.values)[0], expected)
    assert_identical(fg.vjp(pushed, *case.values)[0], expected)
    assert_identical(fg.jvp(pulled, case.values, dots)[0], expected)
    assert_identical(fg.linearize(pushed, *case.values)[0], expected)


@law([case for case in BOTH if case.reason is not None])
def test_discrete_results_are_plain_while_traced(case):
    seen = []

    def observe(*values):
        out = case(*values)
        seen.append(holds_tracer(out))
        return sum((np.sum(x) * 0 for x in values), 0.0)

    fg.vjp(observe, *case.values)
    fg.jvp(observe, case.values, directions(case))
    assert seen == [False, False]


@law(SMOOTH)
def test_jvp_matches_differences(case):
    dots = directions(case)
    _, out_dot = fg.jvp(case.floating, case.values, dots)
    expected = Point(case, case.values).differences(dots, None)
    np.testing.assert_allclose(vector(out_dot), expected, **FIRST)


@law(DERIVED)
def test_vjp_is_the_transpose_of_jvp(case):
    dots = directions(case)
    out, pullback = fg.vjp(case.floating, *case.values)
    _, out_dot = fg.jvp(case.floating, case.values, dots)
    bars = directions(case, out)
    pulled = pullback(bars)
    if all(np.all(np.isfinite(x)) for x in (*case.values, *out)):
        assert not any(np.any(np.isnan(x)) for x in (*pulled, *out_dot))
    got, size = inner(pulled, dots)
    expected, other = inner(bars, out_dot)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * (size + other) + 1e-300)


@law(DERIVED)
def test_linearize_gives_the_tangents_of_jvp(case):
    dots = directions(case)
    _, out_dot = fg.jvp(case.floating, case.values, dots)
    _, pushforward = fg.linearize(case.floating, *case.values)
    for _ in range(2):
        for got, expected in zip(pushforward(*dots), out_dot, strict=True):
            assert_identical(got, expected)


@functools.cache
def gradient_of(case):
    """Return the gradient of a random combination of the outputs, and its differences."""
    bars = directions(case, case.floating(*case.values))

    def gradient(*values):
        return fg.vjp(case.floating, *values)[1](bars)

    point = Point(gradient, case.values, analytic=False)
    return gradient, point.differences(directions(case), None)


@law(TWICE)
def test_second_order_forward_over_reverse_matches_differences(case):
    gradient, expected = gradient_of(case)
    _, got = fg.jvp(gradient, case.values, directions(case))
    np.testing.assert_allclose(vector(got), expected, **SECOND)


@law(TWICE)
def test_second_order_reverse_over_reverse_matches_differences(case):
    gradient, differences = gradient_of(case)
    first, pullback = fg.vjp(gradient, *case.values)
    rng = generator(case.name, case.label, "reverse")
    weights = tuple(random_like(rng, x) for x in first)
    got, size = inner(pullback(weights), directions(case))
    terms = np.real(vector(weights) * differences)
    size += np.sum(np.abs(terms))
    np.testing.assert_allclose(got, np.sum(terms), rtol=0, atol=1e-5 * size + 1e-6)


@law([case for case in TWICE if len(case.values) > 1])
def test_mixed_second_derivatives_are_symmetric(case):
    gradient, _ = gradient_of(case)
    dots = directions(case)
    first = (dots[0], *(None for _ in dots[1:]))
    others = (None, *dots[1:])
    _, across = fg.jvp(gradient, case.values, first)
    _, back = fg.jvp(gradient, case.values, others)
    got, size = inner(across[1:], dots[1:])
    expected, other = inner(back[:1], dots[:1])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * (size + other) + 1e-13)


@law([case for case in NARROW if case.reason is None and case.sample.order > 0])
def test_narrow_floats_have_the_derivatives_of_wide_ones(case):
    wide = tuple(recast(x, np.float64) for x in case.values)
    dots = directions(case)
    wide_dots = tuple(recast(x, np.float64) for x in dots)
    out, out_dot = fg.jvp(case.floating, case.values, dots)
    out, pullback = fg.vjp(case.floating, *case.values)
    expected_out, expected_dot = fg.jvp(case.floating, wide, wide_dots)
    bars = directions(case, out)
    bars_in = pullback(bars)
    expected_bars = fg.vjp(case.floating, *wide)[1](
        tuple(
            recast(bar, np.float64) if hasattr(y, "dtype") else bar
            for bar, y in zip(bars, expected_out, strict=True)
        )
    )
    for bar, x in zip(bars_in, case.values, strict=True):
        assert type(bar) is type(x)
        assert np.asarray(bar).dtype == np.asarray(x).dtype
    for dot, x in zip(out_dot, out, strict=True):
        assert type(dot) is type(x)
        assert np.asarray(dot).dtype == np.asarray(x).dtype
    narrowest = min((x.dtype for x in case.values if hasattr(x, "dtype")), key=lambda d: d.itemsize)
    tolerance = 2e-2 if narrowest == np.float16 else 1e-4
    if not case.sample.kinks:
        np.testing.assert_allclose(vector(out_dot), vector(expected_dot), tolerance, tolerance)
        np.testing.assert_allclose(vector(bars_in), vector(expected_bars), tolerance, tolerance)


def layouts(values):
    """Yield the same arrays laid out otherwise in memory."""

    def strided(x):
        wide = np.full([2 * n for n in x.shape], np.nan, x.dtype)
        wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
        return wide[tuple(slice(None, None, 2) for _ in x.shape)]

    def reversed_(x):
        back = tuple(slice(None, None, -1) for _ in x.shape)
        return x[back].copy()[back]

    def read_only(x):
        x = x.copy()
        x.flags.writeable = False
        return x

    for change in (np.asfortranarray, strided, reversed_, read_only):
        yield (
            change.__name__.strip("_"),
            tuple(change(x) if isinstance(x, np.ndarray) and x.ndim else x for x in values),
        )


@law(
    [
        case
        for case in WITH_VALUES
        if any(isinstance(x, np.ndarray) and x.ndim and x.size > 1 for x in case.values)
    ]
)
def test_layout_in_memory_does_not_matter(case):
    differentiable = case.reason is None and case.sample.order > 0
    dots = directions(case)
    if differentiable:
        out, pullback = fg.vjp(case.floating, *case.values)
        bars = directions(case, out)
        expected = pullback(bars)
        _, expected_dot = fg.jvp(case.floating, case.values, dots)
    for label, values in layouts(case.values):
        value = case(*values)
        assert_identical(fg.vjp(case, *values)[0], value)
        assert_identical(fg.jvp(case, values, dots)[0], value)
        if differentiable:
            got = fg.vjp(case.floating, *values)[1](bars)
            np.testing.assert_allclose(vector(got), vector(expected), 1e-12, 1e-13, err_msg=label)
            for bar, x in zip(got, values, strict=True):
                assert np.shape(bar) == np.shape(x)
            _, out_dot = fg.jvp(case.floating, values, dots)
            np.testing.assert_allclose(
                vector(out_dot), vector(expected_dot), 1e-12, 1e-13, err_msg=label
            )


@law(DERIVED)
def test_derivatives_are_like_their_primals_and_share_no_memory(case):
    dots = directions(case)
    out, pullback = fg.vjp(case.floating, *case.values)
    bars = directions(case, out)
    pulled = pullback(bars)
    pushed, out_dot = fg.jvp(case.floating, case.values, dots)
    for bar, x in zip(pulled, case.values, strict=True):
        assert type(bar) is type(x)
        assert np.shape(bar) == np.shape(x)
        assert np.asarray(bar).dtype == np.asarray(x).dtype
    for dot, x in zip(out_dot, pushed, strict=True):
        assert type(dot) is type(x)
        assert np.shape(dot) == np.shape(x)
        assert np.asarray(dot).dtype == np.asarray(x).dtype
    fresh = [x for x in (*pulled, *out_dot) if isinstance(x, np.ndarray)]
    others = [x for x in (*case.values, *dots, *bars, *out, *pushed) if isinstance(x, np.ndarray)]
    for position, x in enumerate(fresh):
        assert x.flags.writeable
        for y in (*fresh[position + 1 :], *others):
            assert not np.shares_memory(x, y)


# Batching


class Batch:
    """Several examples of a case: in some of its arguments, which the others share."""

    def __init__(self, case, chosen):
        self.case = case
        self.in_axes = tuple(0 if k in chosen else None for k in range(len(case.values)))
        rng = generator(case.name, case.label, "examples")
        self.values = tuple(
            self._examples(x, rng) if k in chosen else x for k, x in enumerate(case.values)
        )

    def _examples(self, x, rng):
        """Return two arrays in one, alike but for the third digit: enough to tell them apart."""
        x = np.asarray(x)
        if self.case.sample.kinks or not np.all(np.isfinite(x)):
            return np.stack([x, x])
        factor = rng.uniform(0.999, 1.001, size=x.shape)
        return np.stack([x, x * factor.astype(x.real.dtype)])

    def example(self, number, values=None):
        """Return the arguments of one example."""
        values = self.values if values is None else values
        return tuple(
            x if axis is None else x[number] for x, axis in zip(values, self.in_axes, strict=True)
        )

    def change(self, fun):
        """Return the arguments with `fun` applied to those that hold the examples."""
        return tuple(
            x if axis is None else fun(x) for x, axis in zip(self.values, self.in_axes, strict=True)
        )

    def loop(self, fun):
        """Return the leaves of what `fun` gives for each example, stacked."""
        outs = [tree.leaves(fun(*self.example(number))) for number in (0, 1)]
        return [np.stack([np.asarray(part) for part in parts]) for parts in zip(*outs, strict=True)]

    def __repr__(self):
        which = "".join(str(k) for k, axis in enumerate(self.in_axes) if axis == 0)
        return f"{self.case!r}-{which}"


def batched_variants(case):
    """Yield the case with examples in every set of its arguments; if they are many, in each."""
    count = len(case.values)
    sizes = range(1, count + 1) if count <= 3 else (1, count)
    for size in sizes:
        for chosen in itertools.combinations(range(count), size):
            yield Batch(case, chosen)


BATCHES = [batch for case in WITH_VALUES if case.sample.batch for batch in batched_variants(case)]
COMPLEX_BATCHES = [
    Batch(case, range(len(case.values))) for case in complex_cases() if case.sample.batch
]
# Their dtype, or shape, depends on the values, and without examples there are none.
BY_VALUE = {"eig", "eigvals", "polydiv", "real_if_close", "roots"}
BY_VALUE |= {name for name in DECLARED if name.startswith("emath_")}


def is_derived(batch):
    return batch.case.reason is None and batch.case.sample.order > 0


def assert_like_a_loop(got, expected, noise=0.0):
    """Agree to rounding, of the largest element, and of numbers of size 1 if that makes `noise`."""
    got = tree.leaves(got)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        assert isinstance(a, np.ndarray)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        finite = np.abs(b[np.isfinite(b)])
        np.testing.assert_allclose(a, b, 1e-12, 1e-12 * np.max(finite, initial=0.0) + noise)


def batch_law(batches):
    return pytest.mark.parametrize("batch", batches, ids=repr)


@batch_law(BATCHES + COMPLEX_BATCHES)
def test_vmap_is_a_loop(batch):
    expected = batch.loop(batch.case)
    assert_like_a_loop(fg.vmap(batch.case, batch.in_axes)(*batch.values), expected)
    last = tuple(axis if axis is None else -1 for axis in batch.in_axes)
    moved = batch.change(lambda x: np.moveaxis(x, 0, -1))
    assert_like_a_loop(fg.vmap(batch.case, last)(*moved), expected)


@batch_law([batch for batch in BATCHES if batch.case.name not in BY_VALUE])
def test_vmap_of_no_examples_has_the_shape_and_dtype_of_one(batch):
    none = batch.change(lambda x: x[:0])
    got = tree.leaves(fg.vmap(batch.case, batch.in_axes)(*none))
    for a, b in zip(got, batch.loop(batch.case), strict=True):
        assert a.shape == (0, *b.shape[1:])
        assert a.dtype == b.dtype


@batch_law(BATCHES)
def test_vmap_of_vmap_is_a_loop_in_a_loop(batch):
    twice = batch.change(lambda x: np.stack([x, x[::-1], x], axis=1))
    inner = fg.vmap(batch.case, batch.in_axes)
    outer = fg.vmap(inner, tuple(axis if axis is None else 1 for axis in batch.in_axes))
    expected = [np.stack([x, x[::-1], x]) for x in batch.loop(batch.case)]
    assert_like_a_loop(outer(*twice), expected)


@batch_law([batch for batch in BATCHES + COMPLEX_BATCHES if is_derived(batch)])
def test_vmap_of_derivatives_is_a_loop(batch):
    case = batch.case
    dots, bars = directions(case), directions(case, case.floating(*case.values))

    def pushed(*values):
        return fg.jvp(case.floating, values, dots)[1]

    def pulled(*values):
        return fg.vjp(case.floating, *values)[1](bars)

    for derivative in (pushed, pulled):
        got = fg.vmap(derivative, batch.in_axes)(*batch.values)
        assert_like_a_loop(got, batch.loop(derivative), 1e-14)


@batch_law([batch for batch in BATCHES + COMPLEX_BATCHES if is_derived(batch)])
def test_derivatives_of_vmap_are_those_of_a_loop(batch):
    case = batch.case
    together = fg.vmap(case.floating, batch.in_axes)
    dots = directions(case, batch.values)
    out, out_dot = fg.jvp(together, batch.values, dots)
    rng = generator(case.name, case.label, "cotangents")
    bars = tuple(random_like(rng, x) for x in out)
    pulled = fg.vjp(together, *batch.values)[1](bars)
    pushes, pulls = [], []
    for number in (0, 1):
        values = batch.example(number)
        pushes.append(fg.jvp(case.floating, values, batch.example(number, dots))[1])
        made, pullback = fg.vjp(case.floating, *values)
        pulls.append(
            pullback(tuple(like_scalar(bar[number], x) for bar, x in zip(bars, made, strict=True)))
        )
    stacked = [np.stack(parts) for parts in zip(*pushes, strict=True)]
    assert_like_a_loop(out_dot, stacked, 1e-14)
    for bar, parts, axis in zip(pulled, zip(*pulls, strict=True), batch.in_axes, strict=True):
        expected = np.stack(parts)
        if axis is None:
            bar, expected = np.asarray(bar), np.asarray(np.sum(expected, axis=0))
        assert_like_a_loop([bar], [expected], 1e-14)


def like_scalar(bar, x):
    """Return a NumPy scalar as a Python number, where `x` is one."""
    return bar if hasattr(x, "dtype") else bar.item()


# The laws themselves: each finds a rule that is wrong in its way.


def cube_jvp(primals, tangents, out):
    return tangents[0] * (3 * primals[0] * primals[0])


def cube_vjp(primals, out):
    (x,) = primals
    return lambda out_bar: out_bar * (3 * x * x)


def wrong_factor_jvp(primals, tangents, out):
    return cube_jvp(primals, tangents, out) * (1 + 1e-6)


def wrong_factor_vjp(primals, out):
    pullback = cube_vjp(primals, out)
    return lambda out_bar: pullback(out_bar) * (1 + 1e-9)


def forgetful_jvp(primals, tangents, out):
    return cube_jvp([concrete(x) for x in primals], tangents, out)


def forgetful_vjp(primals, out):
    return cube_vjp([concrete(x) for x in primals], out)


def by_memory(x):
    x = np.reshape(np.ravel(x, "K"), x.shape)
    return x * x * x


def nan_vjp(primals, out):
    return lambda out_bar: out_bar * np.nan


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (test_jvp_matches_differences, {"jvp": wrong_factor_jvp}),
        (test_vjp_is_the_transpose_of_jvp, {"vjp": wrong_factor_vjp}),
        (test_vjp_is_the_transpose_of_jvp, {"vjp": nan_vjp}),
        (
            test_second_order_forward_over_reverse_matches_differences,
            {"jvp": cube_jvp, "vjp": forgetful_vjp},
        ),
        (
            test_second_order_reverse_over_reverse_matches_differences,
            {"jvp": cube_jvp, "vjp": forgetful_vjp},
        ),
        (test_value_is_that_of_numpy_under_every_transform, {"forward": lambda x: x**3 + 1e-15}),
        (
            test_value_is_that_of_numpy_under_every_transform,
            {"forward": lambda x: x * x * (x + 0j)},
        ),
        (test_layout_in_memory_does_not_matter, {"forward": by_memory}),
    ],
)
def test_each_law_finds_a_wrong_rule(check, change):
    made = Primitive(change.get("forward", lambda x: x * x * x), name="cube")
    made.def_jvp(change.get("jvp", cube_jvp))
    made.def_vjp(change.get("vjp", cube_vjp))
    case = Case("cube", "0", Sample(np.array([[0.5, -1.5], [2.0, 3.0]]), fun=made), made)
    if "forward" in change:  # what NumPy would compute: without tracers
        case = variant(case, "cube", case.values)
        case.fun = Either(made)
    with pytest.raises(AssertionError):
        check(case)


@pytest.mark.parametrize(
    ("check", "change"),
    [
        (test_vmap_is_a_loop, {"batch": lambda x: x[:1] ** 3 + 0 * x}),
        (test_vmap_is_a_loop, {"batch": lambda x: np.float32(x**3)}),
        (test_vmap_is_a_loop, {"batch": lambda x: x[..., :1] ** 3}),
        (test_vmap_of_no_examples_has_the_shape_and_dtype_of_one, {"batch": lambda x: x[:0, 0]}),
        (test_vmap_of_vmap_is_a_loop_in_a_loop, {"batch": lambda x: concrete(x) ** 3}),
        (test_vmap_of_derivatives_is_a_loop, {"jvp": forgetful_jvp}),
        (test_vmap_of_derivatives_is_a_loop, {"vjp": forgetful_vjp}),
        (test_derivatives_of_vmap_are_those_of_a_loop, {"batch": lambda x: concrete(x) ** 3}),
    ],
)
def test_each_law_of_batching_finds_a_wrong_rule(check, change):
    made = Primitive(lambda x: x * x * x, name="cube")
    made.def_jvp(change.get("jvp", cube_jvp))
    made.def_vjp(change.get("vjp", cube_vjp))
    rule = change.get("batch", lambda x: x * x * x)
    made.def_batch(lambda args, batched: rule(*args))
    case = Case("cube", "0", Sample(np.array([[0.5, -1.5], [2.0, 3.0]]), fun=made), made)
    with pytest.raises((AssertionError, ValueError)):
        check(Batch(case, {0}))


class Either:
    """The cube on plain arrays, and the primitive on tracers."""

    def __init__(self, made):
        self.made = made

    def __call__(self, x):
        return self.made(x) if isinstance(x, TracerBase) else x * x * x


@law(DERIVED[::23])
def test_no_tracer_outlives_its_transform(case):
    gc.freeze()  # look at what is new only
    dots = directions(case)
    fg.jvp(case.floating, case.values, dots)
    out, pullback = fg.vjp(case.floating, *case.values)
    pullback(directions(case, out))
    fg.linearize(case.floating, *case.values)
    gc.collect()
    left = [found for found in gc.get_objects() if issubclass(type(found), TracerBase)]
    gc.unfreeze()
    assert not left
