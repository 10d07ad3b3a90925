"""From a key's 128 bits to 64-bit words, and the record of which key has been used.

One idea: a counter-based generator. Philox encrypts a counter under a key [1]_, so that word `i`
of a stream is a pure function of the key and `i`, and there is no state to carry along. All that
this package draws is made of such words: here a key becomes words, in `continuous` and `discrete`
words become numbers, in `keys` words become other keys.

The 256-bit counter has four words. The last one says what the output is for, so that no two
purposes ever encrypt the same counter; the first two count blocks of four words:

=================  =====================  ==========================
purpose            counter                output
=================  =====================  ==========================
`DRAW`             ``(i, 0, 0, 0)``       numbers
`SPLIT`            ``(i, 0, 0, 1)``       children, two words each
`FOLD`             ``(limb, n, 0, 2)``    one child, two words
`SEED`             ``(limb, n, 0, 3)``    the key of a seed
=================  =====================  ==========================

NumPy's Philox adds one to the counter before it encrypts; as that is a bijection, too, it is left
in, and the table shows the counters that we set.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as
   1, 2, 3", Proc. SC11, 2011. This is Philox4x64-10, whose words NumPy guarantees (NEP 19).
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.errors import ArgumentError, describe, location, user_line

if TYPE_CHECKING:
    from types import CodeType

    from numpy.typing import NDArray

__all__ = [
    "FOLD",
    "SEED",
    "SPLIT",
    "BaseKey",
    "KeyReuseWarning",
    "absorb",
    "draw",
    "one_key",
    "shaped",
    "words",
]

DRAW, SPLIT, FOLD, SEED = range(4)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIMB = 2**64 - 1

# Bit generators that no call is using. Making one costs twenty times as much as setting its state,
# because NumPy first seeds it from the operating system. A call owns the one that it popped (pop
# and append are atomic), so threads, signal handlers and finalizers cannot disturb each other, and
# it sets the whole state, so nothing passes from one call to the next.
_idle: list[np.random.Philox] = []


class KeyReuseWarning(UserWarning):
    """A key was used twice, so that both uses see the same random bits.

    Turn it into an error with ``warnings.simplefilter("error", KeyReuseWarning)``. To repeat a
    draw on purpose, use ``clone(key)``.
    """


class BaseKey:
    """The data of one key or of an array of keys, and the record of its first use.

    `Key` adds the methods; the split lets samplers know what a key is without knowing `Key`.
    """

    __slots__ = ("__weakref__", "_children", "_data", "_used")

    _data: NDArray[np.uint64]  # (*shape, 2), read-only
    _children: dict[int, BaseKey] | None  # what indexing returned, so that its uses are recorded
    _used: tuple[str, CodeType, int] | None  # what used it first, and where

    def _consume(self, use: str) -> None:
        """Record that the user's line used this key for `use`; warn if it was used before."""
        frame = sys._getframe(1)
        depth = 2
        while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
            frame = frame.f_back
            depth += 1
        first = self._used
        if first is None:
            # Only the code object is kept: a frame would keep the user's arrays alive.
            self._used = use, frame.f_code, frame.f_lineno
            return
        name, code, line = first
        # The text is the same whichever key it is, so that a loop warns once and not each time.
        warnings.warn(
            f"a key was used twice: both uses see the same random bits\n"
            f"  where: first by {name}() at {location(code, line)}, "
            f"then by {use}() at {location(frame.f_code, frame.f_lineno)}\n"
            f"  fix:   k1, k2 = random.split(key), then use each of them once",
            KeyReuseWarning,
            stacklevel=depth,
        )


def one_key(key: object, use: str) -> BaseKey:
    """Return `key` if it is a single key, else say what to write.

    Raises
    ------
    ArgumentError
        `key` is not a `Key`, or holds an array of keys.
    """
    if not isinstance(key, BaseKey):
        hint = "key(0)"
        if isinstance(key, (int, np.integer)):
            hint = f"key({int(key)})"
        elif type(key).__module__.startswith("numpy.random"):  # a Generator, its state unknown
            hint = "key(seed)"
        elif getattr(key, "dtype", None) == np.uint64:
            hint = "wrap_key_data(data)"
        raise ArgumentError(
            f"{use}() needs a key, got {describe(key)}: write {hint}",
            where=f"argument 'key' of {use}() at {user_line()}",
            fix=f"random.{use}(random.{hint}, ...)",
        )
    if key._data.ndim != 1:
        shape = key._data.shape[:-1]
        raise ArgumentError(
            f"{use}() needs one key, got an array of keys of shape {shape}",
            where=f"argument 'key' of {use}() at {user_line()}",
            fix=f"loop over the keys, or map over them: vmap(lambda k: random.{use}(k, ...))(keys)",
        )
    return key


def words(
    data: NDArray[np.uint64], counter: tuple[int, int, int, int], count: int
) -> NDArray[np.uint64]:
    """Encrypt `counter` and its successors under `data`.

    Parameters
    ----------
    data : ndarray of uint64, shape (2,)
        The Philox key.
    counter : tuple of four int
        Where the stream starts, least significant word first; see the table above.
    count : int
        How many words to return.

    Returns
    -------
    ndarray of uint64, shape (count,)
        A fresh array.
    """
    try:
        generator = _idle.pop()
    except IndexError:
        generator = np.random.Philox(key=0)  # NumPy loads numpy.random here, if it has not yet
    state: Any = {  # NumPy reads the words one by one, so tuples do, and cost less than arrays
        "bit_generator": "Philox",
        "state": {"counter": counter, "key": data.tolist()},
        "buffer": (0, 0, 0, 0),
        "buffer_pos": 4,  # the buffer is used up: encrypt first
        "has_uint32": 0,
        "uinteger": 0,
    }
    generator.state = state
    out: NDArray[np.uint64] = generator.random_raw(count)
    _idle.append(generator)
    return out


def draw(key: BaseKey, count: int, use: str) -> NDArray[np.uint64]:
    """Use up `key` for `count` random words: the only way in which a sampler sees a key."""
    one_key(key, use)._consume(use)
    return words(key._data, (0, 0, 0, DRAW), count)


def shaped(out: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Give the vector `out` its shape; of shape ``()`` is a NumPy scalar, as from NumPy."""
    if len(shape) == 1:
        return out
    scalar_or_array: NDArray[Any] = out.reshape(shape) if shape else out[0]
    return scalar_or_array


def absorb(data: NDArray[np.uint64], purpose: int, number: int) -> NDArray[np.uint64]:
    """Hash an integer of any size and sign under a key, into another key.

    The two's complement of `number` is cut into as many 64-bit limbs as its sign bit needs. Each
    limb, least significant first, is encrypted together with the number of limbs still to come
    (which keeps one number from being the beginning of another), and the first 128 bits that
    come out are the key for the next limb.
    """
    remaining = number.bit_length() // 64 + 1
    while remaining:
        data = words(data, (number & _LIMB, remaining, 0, purpose), 2)
        number >>= 64
        remaining -= 1
    return data
