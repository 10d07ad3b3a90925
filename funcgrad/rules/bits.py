"""Bits, packed into bytes and taken out: `packbits` and `unpackbits`.

Neither has a derivative. They are primitives for the sake of `vmap`, under which the bits may be
conditions on the examples.
"""

from __future__ import annotations

import numpy as np

from funcgrad.core.batch import along
from funcgrad.core.primitive import Sample, primitive

__all__: list[str] = []


@primitive()
def packbits(a, *, axis=None, bitorder="big"):
    """Bits in bytes."""
    return np.packbits(a, axis, bitorder)


@primitive()
def unpackbits(a, *, axis=None, count=None, bitorder="big"):
    """Bits out of bytes."""
    return np.unpackbits(a, axis, count, bitorder)


for _bits, _function in ((packbits, np.packbits), (unpackbits, np.unpackbits)):
    _bits.not_differentiable("bits are integers")
    _bits.def_call(_function)(_bits)
    along(_bits)


def _packed(x, axis):
    return np.packbits(x > 0, axis)


def _unpacked(x, axis):
    return np.unpackbits(np.packbits(x > 0, -1), axis, 2)


@packbits.def_samples
def packbits_samples(rng):
    yield Sample(rng.normal(size=(2, 9)), None, fun=_packed)
    yield Sample(rng.normal(size=(2, 9)), 1, fun=_packed)


@unpackbits.def_samples
def unpackbits_samples(rng):
    yield Sample(rng.normal(size=(2, 9)), None, fun=_unpacked)
    yield Sample(rng.normal(size=(2, 9)), 1, fun=_unpacked)
