"""Jacobians and Hessians inside of a `vmap` with a named axis: in the modes that JAX takes.

Of a function that sums over the examples, modes differ (see `psum`), so that the mode is no matter
of cost alone. Values are those of JAX 0.8.
"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import funcgrad as fg

XS = np.array([[1.0, 2.0], [3.0, 5.0]])
VS = np.array([[1.0, 0.0], [2.0, 1.0]])


def coupled(x):
    return fg.psum(x[0] * x[1], "i") * x[0]


def test_hessian_is_forward_over_reverse():
    made = fg.vmap(fg.hessian(coupled), axis_name="i")(XS)
    assert_array_equal(made, [[[11.0, 8.0], [6.0, 0.0]], [[17.0, 8.0], [10.0, 0.0]]])


def test_hvp_is_forward_over_reverse():
    made = fg.vmap(lambda x, v: fg.hvp(coupled, (x,), (v,)), axis_name="i")(XS, VS)
    assert_array_equal(made, [[21.0, 7.0], [34.0, 17.0]])


def test_jacobian_of_many_outputs_is_in_reverse_mode():
    def three(x):
        return np.stack([fg.psum(x, "i") * x**2, x, x])

    made = fg.vmap(fg.jacobian(three), axis_name="i")(np.array([1.0, 3.0]))
    assert_array_equal(made, [[18.0, 1.0, 1.0], [34.0, 1.0, 1.0]])


def test_value_comes_with_the_jacobian():
    made, slope = fg.vmap(
        fg.value_and_jacobian(lambda x: np.stack([fg.psum(x, "i") * x**2, x])), axis_name="i"
    )(np.array([1.0, 3.0]))
    assert_array_equal(made, [[4.0, 1.0], [36.0, 3.0]])
    assert_array_equal(slope, [[18.0, 1.0], [34.0, 1.0]])


def test_a_pickled_hessian_takes_the_same_modes():
    made = fg.vmap(pickle.loads(pickle.dumps(fg.hessian(coupled))), axis_name="i")(XS)
    assert_array_equal(made, [[[11.0, 8.0], [6.0, 0.0]], [[17.0, 8.0], [10.0, 0.0]]])


def test_messages_of_a_hessian_call_it_so():
    with pytest.raises(fg.errors.DtypeError, match=r"hessian needs real outputs(.|\n)*hessian\(<"):
        fg.hessian(lambda z: np.sum(np.abs(z) ** 2))(np.array([1.0 + 1.0j]))
    assert repr(fg.hessian(coupled)) == "hessian(coupled)"
