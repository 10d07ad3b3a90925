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

Under `vmap` a key holds a tracer of its bits, and `words` and `absorb` work on the bits of all
keys together, by `words_of_each` and `absorb_each`.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as
   1, 2, 3", Proc. SC11, 2011. This is Philox4x64-10, whose words NumPy guarantees (NEP 19).
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.boxed import Boxed
from funcgrad.core.level import TracerBase
from funcgrad.errors import ArgumentError, describe, location, user_line

from .batched import of_examples
from .philox import encrypt

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
    "absorb_each",
    "draw",
    "one_key",
    "shaped",
    "words",
    "words_of_each",
]

DRAW, SPLIT, FOLD, SEED = range(4)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIMB = 2**64 - 1

# NumPy's generator needs 1.5 us to begin with a key; `encrypt` needs 200 us to begin at all, and
# then 0.1 us for each block of four words. So it pays for many keys with few blocks each.
_MANY_KEYS, _FEW_BLOCKS = 256, 8

# Bit generators that no call is using. Making one costs twenty times as much as setting its state,
# because NumPy first seeds it from the operating system. A call owns the one that it popped (pop
# and append are atomic), so threads, signal handlers and finalizers cannot disturb each other, and
# it sets the whole state, so nothing passes from one call to the next.
_idle: list[np.random.Philox] = []


class KeyReuseWarning(UserWarning):
    """A key was used twice, so that both uses see the same random bits.

    Turn it into an error with ``warnings.simplefilter("error", KeyReuseWarning)``. To repeat a
    draw on purpose, use ``clone(key)``.

    Examples
    --------
    >>> import funcgrad as fg
    >>> import warnings
    >>> key = fg.random.key(0)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     same = key.normal() == key.normal()
    >>> same, "a key was used twice" in str(caught[0].message)
    (np.True_, True)
    """


class BaseKey(Boxed):
    """The data of one key or of an array of keys, and the record of its first use.

    `Key` adds the methods; the split lets samplers know what a key is without knowing `Key`.
    """

    __slots__ = ("__weakref__", "_children", "_data", "_source", "_used")

    _data: Any  # uint64 of shape (*shape, 2), read-only; under vmap a tracer of that
    _children: dict[int, BaseKey] | None  # what indexing returned, so that its uses are recorded
    _source: BaseKey | None  # the array of keys, of which this is each one under vmap
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
            if self._source is not None:
                self._source._use_up(self._used)
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

    def _use_up(self, use: tuple[str, CodeType, int]) -> None:
        """Record that one use under vmap has used all the keys of this array."""
        for key in (self, *(self._children or {}).values()):
            if key._used is None:
                key._used = use
        if self._source is not None:
            self._source._use_up(use)

    def _first_use(self) -> tuple[str, CodeType, int] | None:
        """Return the first use of this key, or of one of this array."""
        uses = [self._used, *[child._used for child in (self._children or {}).values()]]
        return next(filter(None, uses), None)

    def _unbox(self) -> Any:
        return self._data


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


def words(data: Any, counter: tuple[int, int, int, int], count: int) -> Any:
    """Encrypt `counter` and its successors under `data`.

    Parameters
    ----------
    data : ndarray of uint64, shape (2,)
        The Philox key; under `vmap` a tracer of it.
    counter : tuple of four int
        Where the stream starts, least significant word first; see the table above.
    count : int
        How many words to return.

    Returns
    -------
    ndarray of uint64, shape (count,)
        A fresh array.
    """
    if type(data) is not np.ndarray:
        return words_of_each.bind(data, counter=counter, count=count)
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


@of_examples(1)
def words_of_each(
    data: NDArray[np.uint64], *, counter: tuple[int, int, int, int], count: int
) -> NDArray[np.uint64]:
    """Encrypt as `words` does under each of many keys, shape (..., 2); the words come last."""
    keys = data.reshape(-1, 2)
    blocks = -(-count // 4)
    if len(keys) >= _MANY_KEYS and blocks <= _FEW_BLOCKS:
        low, high, *rest = counter
        steps = [(high << 64) + low + step for step in range(1, blocks + 1)]  # with the carry
        halves = [step & _LIMB for step in steps], [step >> 64 for step in steps]
        steps_of = [np.array(half, np.uint64) for half in halves]
        found = encrypt((*steps_of, *rest), keys[:, np.newaxis])
        out = found.reshape(len(keys), 4 * blocks)[:, :count]
    else:
        out = np.empty((len(keys), count), np.uint64)
        for row, key in zip(out, keys, strict=True):
            row[:] = words(key, counter, count)
    return out.reshape(*data.shape[:-1], count)


def draw(key: BaseKey, count: int, use: str) -> Any:
    """Use up `key` for `count` random words: the only way in which a sampler sees a key."""
    one_key(key, use)._consume(use)
    return words(key._data, (0, 0, 0, DRAW), count)


def shaped(out: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Give the vector `out` its shape; of shape ``()`` is a NumPy scalar, as from NumPy."""
    if len(shape) != 1:
        out = out.reshape(shape) if shape else out[0]
    vector: NDArray[Any] = out
    return vector


def absorb(data: Any, purpose: int, number: Any) -> Any:
    """Hash an integer of any size and sign under a key, into another key.

    The two's complement of `number` is cut into as many 64-bit limbs as its sign bit needs. Each
    limb, least significant first, is encrypted together with the number of limbs still to come
    (which keeps one number from being the beginning of another), and the first 128 bits that
    come out are the key for the next limb. Under `vmap` the key or the number may be traced.
    """
    if isinstance(number, TracerBase):
        return absorb_each.bind(data, number, purpose=purpose)
    remaining = number.bit_length() // 64 + 1
    while remaining:
        data = words(data, (number & _LIMB, remaining, 0, purpose), 2)
        number >>= 64
        remaining -= 1
    return data


@of_examples(1, 0)
def absorb_each(
    data: NDArray[np.uint64], numbers: NDArray[Any], *, purpose: int
) -> NDArray[np.uint64]:
    """Hash, as `absorb` does, each of many numbers of at most 64 bits, under keys (..., 2)."""
    numbers = np.asarray(numbers)  # a number of Python is one of them under `jit`
    shape = np.broadcast_shapes(data.shape[:-1], numbers.shape)
    keys = np.broadcast_to(data, (*shape, 2)).reshape(-1, 2)
    flat = np.broadcast_to(numbers, shape).reshape(-1)
    # Those that are one limb with its sign bit, which is nearly always all of them.
    short = np.all(flat <= 2**63 - 1) and np.all(flat > -(2**63))
    if len(keys) >= _MANY_KEYS and short:
        limb = flat.astype(np.uint64) + np.uint64(1)  # as NumPy's Philox adds one,
        remaining = 1 + (limb == 0)  # with a carry where the number is -1
        out = encrypt((limb, remaining, 0, purpose), keys)[:, :2].copy()
    else:
        out = np.empty((len(keys), 2), np.uint64)
        for row, key, number in zip(out, keys, flat.tolist(), strict=True):
            row[:] = absorb(key, purpose, number)
    return out.reshape(*shape, 2)
