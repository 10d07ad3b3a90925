"""Keys: immutable values that stand for 128 random bits each.

One idea: who has a key can draw from it once, or make other keys of it. `key` starts from a seed,
`split` gives children whose numbers have nothing to do with each other or with the parent's, and
`fold_in` gives the child of a number, such as a step or the index of a layer. `stream` says how.

An array of keys is a `Key`, too: its data is uint64 of shape ``(*shape, 2)``, where a single key
has shape ``()``. Samplers take single keys; indexing, iteration and unpacking give them. So does
`funcgrad.vmap`: in its function one key that holds a tracer stands for all keys of an array.
"""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.level import TracerBase
from funcgrad.core.primitive import FUNCTIONS
from funcgrad.core.zero import dtype_of
from funcgrad.errors import ArgumentError, DtypeError, ShapeError, describe, user_line

from . import continuous, discrete, selection, truncated
from .arguments import shape_of, shape_tuple
from .batched import has_examples
from .stream import FOLD, SEED, SPLIT, BaseKey, absorb, one_key, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import SupportsIndex

    from numpy.typing import ArrayLike, NDArray

    from .arguments import Shape

__all__ = ["Key", "clone", "fold_in", "key", "key_data", "split", "wrap_key_data"]


def key(seed: SupportsIndex) -> Key:
    """Make a key from a seed.

    Parameters
    ----------
    seed : int
        Any integer: negative ones and those beyond 64 bits are seeds of their own.

    Returns
    -------
    Key
        A single key, the same on every machine.

    Raises
    ------
    ArgumentError
        `seed` is not an integer.

    Notes
    -----
    The two's complement of `seed` in 64-bit limbs, chained through Philox under the key 0 in a
    domain of its own. Two seeds give the same key with a probability of 2**-128.

    Examples
    --------
    >>> from funcgrad import random
    >>> random.key(0)
    Key(...)
    >>> random.key(0) == random.key(2**64)
    False
    """
    number = _integer(seed, "seed", "key")
    return _wrap(absorb(_ROOT, SEED, number))


def split(key: Key, num: Shape = 2) -> Key:
    """Use up a key to make `num` independent ones.

    Parameters
    ----------
    key : Key
        A single key; it is used up.
    num : int or sequence of int, optional
        How many keys, or the shape of an array of keys.

    Returns
    -------
    Key
        An array of keys of shape ``(num,)``. It unpacks, has a length, and indexes.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or `num` not an integer.
    ShapeError
        `num` is negative.

    Notes
    -----
    Philox under the parent, in a domain that no draw reaches. A longer split begins with the
    keys of a shorter one.

    Examples
    --------
    >>> from funcgrad import random
    >>> k1, k2 = random.split(random.key(0))
    >>> keys = random.split(k1, 3)
    >>> len(keys), keys.shape
    (3, (3,))
    >>> weights = random.normal(keys[0], (4, 2))
    """
    shape = _count(num)
    one_key(key, "split")._consume("split")
    out = words(key._data, (0, 0, 0, SPLIT), 2 * prod(shape))
    return _wrap(out.reshape(*shape, 2))


def fold_in(key: Key, data: SupportsIndex) -> Key:
    """Make the key that belongs to an integer, without using up `key`.

    Parameters
    ----------
    key : Key
        A single key. It may be folded again, and used once besides.
    data : int
        Any integer, such as a step number.

    Returns
    -------
    Key
        A single key; the same for the same `key` and `data`, though as a new, unused object.

    Raises
    ------
    ArgumentError
        `key` is not a single key, or `data` not an integer.

    Examples
    --------
    >>> from funcgrad import random
    >>> key = random.key(0)
    >>> batches = [random.permutation(random.fold_in(key, epoch), 6) for epoch in range(3)]
    """
    return _wrap(absorb(one_key(key, "fold_in")._data, FOLD, _integer(data, "data", "fold_in")))


def clone(key: Key) -> Key:
    """Copy a key or an array of keys as if unused, to repeat a draw on purpose.

    Parameters
    ----------
    key : Key
        Of any shape.

    Returns
    -------
    Key
        Equal to `key`.

    Raises
    ------
    ArgumentError
        `key` is not a key.

    Examples
    --------
    >>> from funcgrad import random
    >>> key = random.key(0)
    >>> bool(random.normal(key) == random.normal(random.clone(key)))
    True
    """
    return _wrap(_any_key(key, "clone")._data)


def key_data(keys: Key) -> NDArray[np.uint64]:
    """Return the bits of a key or of an array of keys.

    Parameters
    ----------
    keys : Key
        Of any shape; not used up.

    Returns
    -------
    ndarray of uint64, shape ``(*keys.shape, 2)``
        A copy.

    Raises
    ------
    ArgumentError
        `keys` is not a key.

    Examples
    --------
    >>> from funcgrad import random
    >>> random.key_data(random.key(0)).shape
    (2,)
    """
    out: NDArray[np.uint64] = _any_key(keys, "key_data")._data.copy()
    return out


def wrap_key_data(key_bits_array: ArrayLike) -> Key:
    """Make keys of their bits: undo `key_data`.

    Parameters
    ----------
    key_bits_array : array_like of uint64, shape (..., 2)
        Any bits make a key; use those of `key_data`.

    Returns
    -------
    Key
        Of shape ``(...)``, unused.

    Raises
    ------
    DtypeError
        The array is not of dtype uint64.
    ShapeError
        Its last axis is not of length 2.

    Examples
    --------
    >>> from funcgrad import random
    >>> keys = random.split(random.key(0), 5)
    >>> random.wrap_key_data(random.key_data(keys)[1:3]) == keys[1:3]
    True
    """
    data: Any = key_bits_array if has_examples(key_bits_array) else np.asarray(key_bits_array)
    if data.dtype != np.uint64:
        raise DtypeError(
            f"wrap_key_data() needs uint64, got {describe(key_bits_array)}",
            where=f"argument 'key_bits_array' of wrap_key_data() at {user_line()}",
            fix="give what key_data() returned, or write key(seed)",
        )
    if data.ndim == 0 or data.shape[-1] != 2:
        raise ShapeError(
            f"wrap_key_data() needs a last axis of length 2, got the shape {data.shape}",
            where=f"argument 'key_bits_array' of wrap_key_data() at {user_line()}",
            fix="give what key_data() returned: two words a key",
        )
    return _wrap(data.copy())


class Key(BaseKey):
    """A key, or an array of keys: an immutable value of 128 bits each.

    Made by `key`, `split` and `fold_in`; the samplers are also its methods. Keys of equal bits
    and shape are equal and hash equal. Each object remembers where it was used, and warns when
    it is used again (`KeyReuseWarning`); a copy, also by pickle, begins unused.

    Parameters
    ----------
    data : Key
        What to copy; bits are given to `wrap_key_data`, seeds to `key`.

    Raises
    ------
    ArgumentError
        `data` is not a key.

    Examples
    --------
    >>> from funcgrad import random
    >>> key = random.key(0)
    >>> noise = key.fold_in(7).normal((2, 3))
    >>> [k.shape for k in key.split(3)]
    [(), (), ()]
    """

    __slots__ = ()
    __array_ufunc__ = None  # makes ndarray's operators leave == to us

    def __init__(self, data: Key) -> None:
        self._data = _any_key(data, "Key")._data
        self._used = self._children = self._source = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of keys; ``()`` for a single key."""
        shape: tuple[int, ...] = self._data.shape[:-1]
        return shape

    @property
    def ndim(self) -> int:
        """Number of axes of the array of keys."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of keys."""
        return prod(self.shape)

    def __array__(self, dtype: object = None, copy: object = None) -> NDArray[Any]:
        raise ArgumentError(
            "a key is not an array of numbers", where=user_line(), fix="random.key_data(key)"
        )

    def __len__(self) -> int:
        if self._data.ndim == 1:
            raise _single("has no length")
        return len(self._data)

    def __bool__(self) -> bool:
        return self.size > 0

    def __iter__(self) -> Iterator[Key]:
        if self._data.ndim == 1:
            raise _single("cannot be unpacked")
        return map(self.__getitem__, range(len(self._data)))

    def __getitem__(self, index: Any) -> Key:
        if self._data.ndim == 1:
            raise _single("cannot be indexed")
        if not isinstance(index, int):
            # The slice at the end keeps the two words of a key together, also after an ellipsis.
            index = (*(index if isinstance(index, tuple) else (index,)), slice(None))
            if any(isinstance(part, TracerBase) for part in index):  # also of plain data
                part = _wrap(FUNCTIONS[operator.getitem](self._data, index))
            else:
                part = _wrap(self._data[index])
            part._used = self._used
            return part
        # The same object each time, so that a second use of keys[0] is noticed.
        children = self._children
        if children is None:
            children = self._children = {}
        position = index + len(self._data) if index < 0 else index
        child = children.get(position)
        if child is None:
            child = _wrap(self._data[index])
            child._used = self._used
            child = children.setdefault(position, child)
        return child  # type: ignore[return-value]  # what _wrap made is a Key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key):
            return NotImplemented
        if self.shape != other.shape:
            return False
        if isinstance(self._data, TracerBase) or isinstance(other._data, TracerBase):
            same: bool = np.all(self._data == other._data)  # type: ignore[assignment]  # traced
            return same
        equal: bool = self._data.tobytes() == other._data.tobytes()
        return equal

    def __hash__(self) -> int:
        if isinstance(self._data, TracerBase):
            return hash(self._data)  # an error
        return hash((self.shape, self._data.tobytes()))

    def __repr__(self) -> str:
        if isinstance(self._data, TracerBase):
            return f"Key(shape={self.shape}, by {self._data._trace.origin})"
        if self._data.ndim == 1:
            return f"Key({_hexadecimal(self._data)})"
        rows = [_hexadecimal(row) for row in self._data.reshape(-1, 2)[:4]]
        dots = ["..."] if self.size > 4 else []
        return f"Key([{', '.join(rows + dots)}], shape={self.shape})"

    def __reduce__(self) -> tuple[object, ...]:
        return wrap_key_data, (self._data,)

    def _rebox(self, content: Any) -> Key:
        made = _wrap(content)
        if _level(content) > _level(self._data):  # into a function that vmap runs
            made._source = self
            made._used = self._first_use()
        else:  # out of it
            made._used = self._used
        return made

    split = split
    fold_in = fold_in
    clone = clone
    bits = discrete.bits
    uniform = continuous.uniform
    normal = continuous.normal
    truncated_normal = truncated.truncated_normal
    exponential = continuous.exponential
    gumbel = continuous.gumbel
    laplace = continuous.laplace
    bernoulli = discrete.bernoulli
    rademacher = discrete.rademacher
    randint = discrete.randint
    permutation = selection.permutation
    choice = selection.choice
    categorical = selection.categorical


_ROOT = np.zeros(2, np.uint64)


def _wrap(data: Any) -> Key:
    """Make a `Key` that owns `data`, without checks."""
    if type(data) is np.ndarray:
        data.flags.writeable = False
    out = object.__new__(Key)
    out._data = data
    out._used = out._children = out._source = None
    return out


def _level(data: Any) -> int:
    """Return the level of the transform that bits are traced by; 0 if they are plain."""
    return data._trace.level if isinstance(data, TracerBase) else 0


def _any_key(value: Key, use: str) -> Key:
    """Return `value` if it is a key or an array of keys."""
    return value if isinstance(value, Key) else one_key(value, use)


def _integer(value: SupportsIndex, argument: str, use: str) -> Any:
    """Return `value` as a Python int; a bool is refused, being a slip more likely than a seed.

    An integer that differs between the examples of vmap is returned as it is.
    """
    if type(value) is int:
        return value
    try:
        if has_examples(value) and dtype_of(value).kind in "iu" and not shape_of(value):
            return value
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"{use}() needs an integer, got {describe(value)}",
            where=f"argument '{argument}' of {use}() at {user_line()}",
            fix=f"give {argument}= an int of any size, such as 0",
        ) from None


def _count(num: Shape) -> tuple[int, ...]:
    """Return `num` of `split` as a shape."""
    if isinstance(num, (bool, np.bool_, float)):
        _integer(num, "num", "split")
    return shape_tuple(num, "split", "num")


def _single(what: str) -> ArgumentError:
    return ArgumentError(
        f"a single key {what}",
        where=user_line(),
        fix="k1, k2 = random.split(key)",
    )


def _hexadecimal(data: NDArray[np.uint64]) -> str:
    high, low = data.tolist()
    return f"{high:016x}{low:016x}"
