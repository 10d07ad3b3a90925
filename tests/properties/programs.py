"""Random programs: functions of a pytree in plain NumPy, written out as source.

A program is drawn line by line and run while it is, so that shapes fit and values stay near 1. One
that fails is printed as Python code with the seed of its arguments: copy it to look into it.
"""

import functools
import re
import warnings

import numpy as np
import operations
from hypothesis import reject
from hypothesis import strategies as st

from funcgrad import tree

LARGEST = 20  # elements of one value


class Program:
    """A function of one pytree of floats, and points to evaluate it at."""

    def __init__(self, source, template, seed):
        self.source = source
        self.template = template  # dicts and lists of shapes, or of "float" for Python's
        self.seed = seed
        namespace = dict(operations.NAMESPACE)
        exec(compile(source, "<program>", "exec"), namespace)
        self.fun = namespace["program"]

    def __repr__(self):
        return f"\n{self.source}# at point({self.template!r}, {self.seed})\n"

    def __call__(self, arguments):
        return self.fun(arguments)

    def point(self, number=0):
        return point(self.template, self.seed + number)

    def examples(self, count=3):
        """Return several points in one, along the first axes, and as a list."""
        each = [self.point(number) for number in range(count)]
        return tree.map(lambda *leaves: np.stack(leaves), *each), each

    def with_assignable_copies(self):
        """Return the program with copies that take traced values even if they are of plain ones."""
        source = self.source.replace(" = np.copy(", " = fnp.array(")
        return Program(source, self.template, self.seed)

    @functools.cached_property
    def unravel(self):
        return tree.ravel(self.point())[1]

    def vector(self, number=0):
        return tree.ravel(self.point(number))[0]

    def flat(self, x):
        """Compute the program as a function from vectors to vectors."""
        return tree.ravel(self.fun(self.unravel(x)))[0]

    @functools.cached_property
    def weights(self):
        rng = np.random.default_rng(self.seed + 1000)
        return rng.uniform(0.5, 1.5, size=self.flat(self.vector()).shape)

    def scalar(self, x):
        """Compute a weighted sum of the results, as a function of a vector."""
        return np.sum(self.weights * self.flat(x))

    def direction(self, number=0):
        rng = np.random.default_rng(self.seed + 2000 + number)
        return rng.uniform(-1.0, 1.0, size=self.vector().shape)


def point(template, seed):
    """Draw the arguments of a program."""
    rng = np.random.default_rng(seed)

    def draw(shape):
        return rng.uniform(-1.0, 1.0) if shape == "float" else rng.uniform(-1.0, 1.0, size=shape)

    return tree.map(draw, template, is_leaf=is_shape)


def is_shape(part):
    return isinstance(part, tuple)


# Names of the arguments, by what the program takes.
ARGUMENTS = [
    ("x0 = p", lambda a, b: a),
    ("x0, x1 = p", lambda a, b: [a, b]),
    ('x0, x1 = p["a"], p["b"]["c"]', lambda a, b: {"a": a, "b": {"c": b}}),
    ('x0, (x1,) = p["a"], p["b"]', lambda a, b: {"b": [b], "a": a}),
]
SHAPES = [(3,), (2, 3), (3, 3), (), "float", (1,), (2,), (2, 1, 3)]
RETURNS = [
    lambda names: names[-1],
    lambda names: f"({', '.join(names)},)",
    lambda names: "{" + ", ".join(f"{n!r}: {n}" for n in names) + "}",
    lambda names: f'{{"out": [{names[-1]}, ({", ".join(names)},)]}}',
]


class Writer:
    """Draws a program line by line."""

    def __init__(self, draw, kinked):
        self.draw = draw
        self.groups = [*operations.GROUPS, list(operations.SAMPLES)]
        if kinked:
            self.groups += [operations.KINKS] * 3
        self.env = dict(operations.NAMESPACE)
        self.names = []
        self.body = []

    def choose(self, options):
        return self.draw(st.sampled_from(options))

    def run(self, line):
        # Like any other, NumPy's warnings are of no interest here.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(line, self.env)

    def add(self, name, line):
        """Append a line that assigns to `name`, and bring what it makes into bounds."""
        self.run(line)
        value = self.env[name]
        if not is_fit(value):
            return False
        self.body += line.split("; ")
        if np.size(value) > LARGEST or np.ndim(value) > 3:
            self.also(name, f"{name} = np.ravel({name})[:{LARGEST // 2}]")
        largest = np.max(np.abs(self.env[name]))
        if largest > 3.0:
            self.also(name, f"{name} = {name} / {2.0 ** np.ceil(np.log2(largest))}")
        self.names.append(name)
        return True

    def also(self, name, line):
        self.run(line)
        self.body.append(line)

    def derive(self, source):
        """Append a line for a value that no name stands for yet; return its name."""
        name = f"v{len(self.names)}"
        if not self.add(name, f"{name} = {source}"):
            reject()
        return name

    def some(self, wanted=lambda value: True):
        """Choose among the values that are `wanted`, later ones first."""
        names = [name for name in self.names if wanted(self.env[name])]
        return self.choose(names[::-1]) if names else None

    def fill(self, template):
        """Choose what stands in the places of a template."""
        places = {}
        letters = set(re.findall(r"\{([a-z])\}", template))
        for letter in [*"avm", *sorted(letters - set("avm"))]:
            if letter not in letters:
                continue
            places[letter] = getattr(self, f"place_{letter}")(places)
        places["out"] = f"v{len(self.names)}"
        return template.format(**places), places["out"]

    def place_a(self, places):
        return self.some()

    def place_b(self, places):
        shape = np.shape(self.env[places["a"]])
        return self.some(lambda value: np.ndim(value) == 0 or np.shape(value) == shape) or "0.5"

    def place_v(self, places):
        found = self.some(lambda value: np.ndim(value) > 0)
        return found or self.derive(f"{self.some()} * np.array([0.5, -1.0, 2.0])")

    def place_k(self, places):
        ndim = np.ndim(self.env[places["v"]])
        return self.draw(st.integers(-ndim, ndim - 1))

    def place_i(self, places):
        return self.draw(st.integers(-1, len(self.env[places["v"]]) - 1))

    def place_m(self, places):
        found = self.some(lambda value: np.ndim(value) == 2)
        if found is None:
            v = self.place_v(places)
            found = self.derive(f"np.outer(np.ravel({v})[:3], np.sin(np.ravel({v})[:2]))")
        return found

    def place_n(self, places):
        count = np.shape(self.env[places["m"]])[1]
        fits = self.some(lambda value: np.ndim(value) == 2 and np.shape(value)[0] == count)
        return fits or f"{places['m']}.T"

    def place_s(self, places):
        m = self.place_m(places)
        n = min(3, *np.shape(self.env[m]))
        return self.derive(f"2.0 * np.eye({n}) + 0.6 * np.tanh({m}[:{n}, :{n}])")

    def place_h(self, places):
        m = self.place_m(places)
        n = min(3, *np.shape(self.env[m]))
        part = f"np.tanh({m}[:{n}, :{n}])"
        return self.derive(f"np.diag(np.arange(1.0, {n + 1})) + 0.1 * ({part} + {part}.T)")

    def place_q(self, places):
        found = self.some(lambda value: np.ndim(value) == 0)
        return found or self.derive(f"np.mean({self.some()})")

    def step(self):
        """Append one operation."""
        template = self.choose(self.choose(self.groups))
        if template in operations.SAMPLES:
            template = f"sample({template!r}, {{a}}, {self.some()})"
        before = len(self.body), len(self.names)
        line, name = self.fill(template)
        if not line.startswith(f"{name} = "):
            line = f"{name} = {line}"
        try:
            good = self.add(name, line)
        except Exception as error:
            raise AssertionError(f"NumPy refuses: {line}\nafter\n{self.source('...')}") from error
        if not good:
            self.body[before[0] :], self.names[before[1] :] = [], []

    def source(self, out):
        body = "\n".join(f"    {line}" for line in [*self.body, f"return {out}"])
        return f"def program(p):\n{body}\n"


def is_fit(value):
    """Tell whether other operations can go on with a value."""
    dtype = getattr(value, "dtype", np.dtype(type(value)))
    return dtype == np.float64 and np.size(value) > 0 and bool(np.all(np.isfinite(value)))


@st.composite
def programs(draw, kinked=False, most=10):
    """Draw a program of up to `most` operations."""
    writer = Writer(draw, kinked)
    unpacking, made_of = draw(st.sampled_from(ARGUMENTS))
    template = made_of(draw(st.sampled_from(SHAPES)), draw(st.sampled_from(SHAPES)))
    seed = draw(st.integers(0, 10_000)) * 10
    writer.env["p"] = point(template, seed)
    writer.run(unpacking)
    writer.body.append(unpacking)
    writer.names += [name for name in ("x0", "x1") if name in writer.env]
    for _ in range(draw(st.integers(1, most))):
        writer.step()
    # Everything matters: what no later line uses is returned, with what was made last.
    text = "\n".join(writer.body)
    *earlier, last = writer.names
    unused = [name for name in earlier if len(re.findall(rf"\b{name}\b", text)) < 2]
    outs = [*unused[-2:], last]
    out = draw(st.sampled_from(RETURNS))(outs)
    return Program(writer.source(out), template, seed)


def assert_close(got, expected, rtol=1e-9):
    """Compare arrays, by the largest element: small ones come of sums that cancel."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    scale = 1.0 + np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=rtol * scale)
