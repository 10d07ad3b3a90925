"""What is added to NumPy's message where operands do not fit: which they are."""

import operator
import re

import numpy as np
import pytest

import funcgrad as fg

W, V = np.ones((2, 3)), np.ones(2)


def note_of(fun, *args):
    """Return the one note of the ValueError, after the place."""
    with pytest.raises(ValueError, match=r"shape|dimension") as caught:
        fun(*args)
    (note,) = caught.value.__notes__
    match = re.fullmatch(r"  where: .*test_operands\.py:\d+, in (.*); the operands: (.*)", note)
    return match[1].partition(" at ")[0], match[2]


@pytest.mark.parametrize(
    ("fun", "operands"),
    [
        (lambda w: np.sum(w + V), "w: float64[2,3], V: float64[2]"),
        (lambda w: np.sum(V + w), "V: float64[2], w: float64[2,3]"),
        (lambda w: np.sum(np.multiply(w, V)), "w: float64[2,3], V: float64[2]"),
        (lambda w: np.sum(w @ V), "w: float64[2,3], V: float64[2]"),
        (lambda w: np.sum(operator.matmul(w.T, np.ones(3))), "float64[3,2], float64[3]"),
        (lambda w: np.sum(np.concatenate([w, V])), "w: float64[2,3], V: float64[2]"),
        (lambda w: np.sum(w.reshape(4)), "w: float64[2,3]"),
        (lambda w: np.sum(w.dot(V)), "w: float64[2,3], V: float64[2]"),
    ],
)
def test_operands_by_name(fun, operands):
    assert note_of(fg.grad(fun), W) == ("grad(<lambda>)", operands)


def test_message_is_numpys():
    with pytest.raises(ValueError, match=r"^operands could not be broadcast together") as plain:
        W + V
    with pytest.raises(ValueError, match=r"^operands could not be broadcast together") as traced:
        fg.grad(lambda w: np.sum(w + V))(W)
    assert str(traced.value) == str(plain.value)


def test_operands_in_pytrees():
    def loss(params):
        return np.sum(params["layers"][0]["w"] @ params["v"])

    _, operands = note_of(fg.grad(loss), {"layers": [{"w": W}], "v": V})
    assert operands == "params['layers'][0]['w']: float64[2,3], params['v']: float64[2]"


def test_shapes_are_those_of_one_example():
    found = note_of(fg.vmap(lambda row: row + V), np.ones((5, 3)))
    assert found == ("vmap(<lambda>)", "row: float64[3], V: float64[2]")


def test_the_innermost_transform_says_it():
    def outer(w):
        return np.sum(fg.jvp(lambda x: x + V, (w,), (w,))[1])

    assert note_of(fg.grad(outer), W) == ("jvp(<lambda>)", "x: float64[2,3], V: float64[2]")


@pytest.mark.parametrize("fun", [lambda w: int("text"), lambda w: np.zeros(2) + np.zeros(3)])
def test_other_errors_have_no_note(fun):
    with pytest.raises(ValueError, match=r"text|shapes") as caught:
        fg.grad(fun)(W)
    assert not hasattr(caught.value, "__notes__")
