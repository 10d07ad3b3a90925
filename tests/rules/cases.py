"""The cases that the laws are checked on: every sample of every primitive, and variants of it.

A case is one call of a NumPy function, seen as a function of its floating arrays alone; a batch is
a case with examples in some of these. Everything that is declared is found here by itself, and
NumPy says which variants (complex, narrow) it takes.
"""

from __future__ import annotations

import itertools
import operator
import warnings
import zlib

import numpy as np
import pytest

from funcgrad import tree
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.level import concrete
from funcgrad.core.primitive import DECLARED, Sample


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


# Directions


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


# Batches


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


# The cube, for laws that look at rules of it: these are right, and those forget a level.


def cube_jvp(primals, tangents, out):
    return tangents[0] * (3 * primals[0] * primals[0])


def cube_vjp(primals, out):
    (x,) = primals
    return lambda out_bar: out_bar * (3 * x * x)


def forgetful_jvp(primals, tangents, out):
    return cube_jvp([concrete(x) for x in primals], tangents, out)


def forgetful_vjp(primals, out):
    return cube_vjp([concrete(x) for x in primals], out)
