"""Random numbers from explicit keys, with the names and signatures of `jax.random`.

There is no hidden state: a key goes in, an array comes out, and the same key gives the same numbers
on every machine, on every thread and with every version of NumPy from 2.0. A key is used once;
`split` and `fold_in` make more of them.

>>> from funcgrad import random
>>> k1, k2 = random.split(random.key(0))
>>> x = random.normal(k1, (100, 2))
>>> y = k2.uniform((100,), minval=-1.0)

An array of keys is mapped over like any other array:

>>> import funcgrad as fg
>>> fg.vmap(lambda key: key.normal((3,)))(random.split(random.key(1), 5)).shape
(5, 3)
"""

from .continuous import exponential, gumbel, laplace, normal, uniform
from .discrete import bernoulli, bits, rademacher, randint
from .keys import Key, clone, fold_in, key, key_data, split, wrap_key_data
from .selection import categorical, choice, permutation
from .stream import KeyReuseWarning
from .truncated import truncated_normal

__all__ = [
    "Key",
    "KeyReuseWarning",
    "bernoulli",
    "bits",
    "categorical",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
