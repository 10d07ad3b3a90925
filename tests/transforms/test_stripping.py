"""`stripped`: a function without the derivatives, or with one example, of what it refers to."""

import numpy as np
from numpy.testing import assert_allclose

import funcgrad as fg
from funcgrad.core.level import Origin, TracerBase
from funcgrad.transforms.stripping import stripped

ORIGIN = Origin("test", None)


def test_value_is_plain():
    seen = []

    def f(a):
        seen.append(stripped(lambda x: a * np.sin(x * a) + np.exp(a), ORIGIN)(2.0))
        return a

    fg.grad(f)(3.0)
    assert not isinstance(seen[0], TracerBase)
    assert_allclose(seen[0], 3 * np.sin(6.0) + np.exp(3.0))


def test_nothing_of_it_is_differentiated():
    def f(a):
        return stripped(lambda x: a * x, ORIGIN)(2.0) + a

    assert fg.grad(f)(3.0) == 1.0


def test_the_argument_is_differentiated_as_ever():
    def f(a):
        slope = fg.grad(stripped(lambda x: a * x**2, ORIGIN))(2.0)
        return slope * a

    assert fg.grad(f)(3.0) == 12.0  # a constant slope of 12


def test_gradient_inside_of_the_function():
    def f(a):
        slope = stripped(fg.grad(lambda x: a * x**3), ORIGIN)
        return fg.grad(slope)(2.0) * a

    assert_allclose(fg.grad(f)(3.0), 36.0)


def test_levels_from_low_on_are_taken_out():
    """Of a * b * x only b, of the inner level, is held fixed."""

    def f(a):
        def g(b):
            fixed = stripped(lambda x: a * b * x, ORIGIN, low=b._trace.level)
            return fixed(2.0) + 0.0 * b

        return fg.value_and_grad(g)(5.0)[0]

    assert fg.grad(f)(3.0) == 10.0


def test_examples_stay_together():
    def f(a):
        return stripped(lambda x: a * x, ORIGIN)(2.0)

    assert_allclose(fg.vmap(f)(np.array([1.0, 3.0])), [2.0, 6.0])


def test_one_example_is_taken():
    def f(a):
        made = stripped(lambda x: a * x, ORIGIN, picks={a._trace.level: 1})(2.0)
        assert type(made) is np.float64
        return made

    assert_allclose(fg.vmap(f)(np.array([1.0, 3.0])), [6.0, 6.0])


def test_custom_rules_inside_are_kept():
    @fg.custom_jvp
    def tripled(x):
        return 3.0 * x

    @tripled.defjvp
    def tripled_jvp(primals, tangents):
        return tripled(primals[0]), 7.0 * tangents[0]

    def f(a):
        return fg.grad(stripped(lambda x: a * tripled(x), ORIGIN))(2.0) + a

    assert fg.value_and_grad(f)(3.0) == (24.0, 1.0)


def test_custom_vmap_inside_is_kept():
    @fg.custom_vmap
    def tripled(x):
        return 3.0 * x

    @tripled.def_vmap
    def tripled_vmap(axis_size, in_batched, x):
        return 3.0 * x + 100.0, True

    def f(a):
        return stripped(lambda x: tripled(x * a), ORIGIN)(2.0)

    assert_allclose(fg.vmap(f)(np.array([1.0, 3.0])), [106.0, 118.0])


def test_assignment_inside():
    def f(a):
        def g(x):
            y = np.zeros_like(x)
            y[0] = a * x[1]
            return y

        return np.sum(fg.jacobian(stripped(g, ORIGIN))(np.ones(2))) * a

    assert fg.grad(f)(3.0) == 3.0


def test_without_a_transform_it_is_the_function():
    def f(x):
        return x

    assert stripped(f, ORIGIN) is f
