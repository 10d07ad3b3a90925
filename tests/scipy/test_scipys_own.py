"""SciPy's own functions meet traced values: the error names the function to use in their place."""

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize

import funcgrad as fg
from funcgrad.errors import TracerConversionError

CALLS = {
    "optimize.minimize": lambda t: scipy.optimize.minimize(lambda x: (x - t) ** 2, 0.0).x,
    "optimize.brentq": lambda t: scipy.optimize.brentq(lambda x: x - t, 0.0, 3.0),
    "optimize.least_squares": lambda t: scipy.optimize.least_squares(lambda x: x - t, [1.0]).x,
    "integrate.quad": lambda t: scipy.integrate.quad(lambda x: x * t, 0.0, 1.0)[0],
    "linalg.expm": lambda t: scipy.linalg.expm(t * np.eye(2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_function_of_funcgrad(name):
    with pytest.raises(TracerConversionError, match=rf"use funcgrad\.scipy\.{name}, which"):
        fg.grad(lambda t: np.sum(CALLS[name](t)))(1.0)


def test_two_minima_of_arrays_too():
    def best(t):
        return scipy.optimize.minimize(lambda x: np.sum((x - t) ** 2), np.zeros(2)).x

    with pytest.raises(TracerConversionError, match=r"use funcgrad\.scipy\.optimize\.minimize"):
        fg.jacobian(best)(np.ones(2))
