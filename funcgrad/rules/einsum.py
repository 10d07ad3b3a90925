"""`einsum`, for any specification.

The one idea: the cotangent of one operand is an einsum of `out_bar` and the other operands, with
the operand's labels as its output. Two things remain. A label that the operand alone has was summed
away, so the cotangent is constant along it: broadcast. A label that the operand has twice took a
diagonal, so the cotangent is zero off that diagonal.

All this depends on the specification and the shapes alone, and is planned once for each.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from operator import index
from string import ascii_letters, ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from funcgrad.core.batch import count_examples, loop, ndim_of
from funcgrad.core.dispatch import discrete
from funcgrad.core.primitive import Sample, primitive
from funcgrad.core.zero import dtype_of, shape_of
from funcgrad.rules.families import multilinear
from funcgrad.rules.matmul import solid
from funcgrad.rules.spelling import as_array

__all__: list[str] = []

# NumPy's letters for the integers of sublists: capitals first.
_SYMBOLS = ascii_uppercase + ascii_letters[:26]
# From this many products on, two operands are worth NumPy's search for a BLAS call, some 30 us.
_WORTH_A_PATH = 2**16


def _symbol(label: Any) -> str:
    if label is Ellipsis:
        return "..."
    try:
        number = index(label)
    except TypeError:
        raise TypeError("each subscript must be either an integer or an ellipsis") from None
    if not 0 <= number < len(_SYMBOLS):
        raise ValueError("subscript is not within the valid range [0, 52)")
    return _SYMBOLS[number]


def einsum_args(args: Any, params: Any) -> Any:
    """Bring both ways of calling to one: the specification as a string, apart from the operands."""
    if args and isinstance(args[0], str):
        subscripts, *operands = args
    elif args:
        operands = list(args[: len(args) // 2 * 2 : 2])
        sublists = ["".join(map(_symbol, labels)) for labels in args[1::2]]
        subscripts = ",".join(sublists)
        if len(args) % 2:
            subscripts += "->" + "".join(map(_symbol, args[-1]))
    else:
        return args, params  # the multilinear function will complain as NumPy does
    return tuple(map(as_array, operands)), {**params, "subscripts": subscripts}


@primitive(multilinear, overrides=(np.einsum,), canonical=einsum_args, may_alias=True)
def einsum(
    *operands, subscripts=None, out=None, optimize=False, dtype=None, order="K", casting="safe"
):
    """Sum of products, by labels of axes."""
    return np.einsum(
        subscripts, *operands, optimize=optimize, dtype=dtype, order=order, casting=casting
    )


def _labels(subscripts: str, ndims: tuple[int, ...]) -> tuple[list[str], str]:
    """Return the labels of each operand and of the output, with all that may be implicit."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    parts = inputs.split(",")
    unused = [letter for letter in ascii_letters if letter not in subscripts]
    # An ellipsis stands for the axes that have no label, aligned at the right.
    counts = [n - len(part.replace("...", "")) for part, n in zip(parts, ndims, strict=True)]
    ellipsis = "".join(unused[: max(counts)])
    if len(ellipsis) < max(counts):
        raise ValueError("too many axes for the letters of einsum")
    if not arrow:
        letters = inputs.replace("...", "").replace(",", "")
        output = "..." + "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    labels = [
        part.replace("...", ellipsis[len(ellipsis) - count :])
        for part, count in zip(parts, counts, strict=True)
    ]
    return labels, output.replace("...", ellipsis)


class _Plan(NamedTuple):
    """How to pull back to one operand."""

    spec: str  # of the einsum of `out_bar` with the other operands
    found: tuple[int, ...]  # the shape of its result, with an axis for each label of the operand
    shape: tuple[int, ...]  # to which that is stretched
    labels: str  # of the operand
    repeats: bool  # whether some occur twice


@lru_cache(maxsize=1024)
def _plans(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[_Plan, ...], bool]:
    """Plan the pullbacks to all operands; also tell whether BLAS is worth looking for."""
    inputs, output = _labels(subscripts, tuple(map(len, shapes)))
    sizes = [dict(zip(*pair, strict=True)) for pair in zip(inputs, shapes, strict=True)]
    # An axis of size one stretches to the size that its label has elsewhere.
    full: dict[str, int] = {}
    for size in sizes:
        full.update((label, n) for label, n in size.items() if n != 1 or label not in full)
    stretches = any(n != full[label] for size in sizes for label, n in size.items())
    plans = []
    for k, labels in enumerate(inputs):
        once = "".join(dict.fromkeys(labels))
        other_inputs = [part for j, part in enumerate(inputs) if j != k]
        # What `out_bar` and the other operands have of the labels, and in which size.
        has = {label: full[label] for label in output}
        for j, size in enumerate(sizes):
            if j != k:
                for label, n in size.items():
                    has[label] = n if has.get(label, 1) == 1 else has[label]
        # A label of size one in this operand is summed: the operand was stretched along it.
        made = "".join(label for label in once if label in has and sizes[k][label] != 1)
        plans.append(
            _Plan(
                spec=",".join([output, *other_inputs]) + "->" + made,
                found=tuple(has[label] if label in made else 1 for label in once),
                shape=tuple(sizes[k][label] for label in once),
                labels=labels,
                repeats=once != labels,
            )
        )
    return tuple(plans), not stretches and prod(full.values()) > _WORTH_A_PATH


@einsum.def_vjp
def einsum_vjp(primals, out, *, subscripts, optimize, **_):
    plans, worth = _plans(subscripts, tuple(map(shape_of, primals)))
    if isinstance(optimize, list | tuple):
        optimize = True  # a path is for these operands only
    if not optimize and len(primals) == 2:
        optimize = worth
    return tuple(
        _pullback(plan, [*primals[:k], *primals[k + 1 :]], optimize) for k, plan in enumerate(plans)
    )


def _pullback(plan: _Plan, others: list[Any], optimize: Any) -> Any:
    spec, found, shape, labels, repeats = plan

    def einsum_pullback(out_bar):
        if 0 in shape_of(out_bar) or any(0 in shape_of(x) for x in others):
            # NumPy 2.4 writes out of bounds for some products of empty arrays.
            bar = np.zeros(shape, dtype_of(out_bar))
            return _on_diagonal(bar, labels, shape) if repeats else bar
        if optimize:
            out_bar = solid(out_bar)
        bar = np.einsum(spec, out_bar, *others, optimize=optimize)
        if shape_of(bar) != found:
            bar = np.reshape(bar, found)
        if found != shape:
            bar = np.broadcast_to(bar, shape)
        return _on_diagonal(bar, labels, shape) if repeats else bar

    return einsum_pullback


def _on_diagonal(bar: Any, labels: str, sizes: tuple[int, ...]) -> Any:
    """Spread an array with an axis for each label over the diagonals of one with some repeated."""
    ndim = len(labels)
    size = dict(zip(dict.fromkeys(labels), sizes, strict=True))
    shape = [1] * ndim
    mask: Any = True
    for axis, label in enumerate(labels):
        first = labels.index(label)
        if axis == first:
            shape[axis] = size[label]
        else:
            places = np.arange(size[label])
            there, here = [1] * ndim, [1] * ndim
            there[first] = here[axis] = size[label]
            mask = mask & (places.reshape(there) == places.reshape(here))
    return np.where(mask, np.reshape(bar, shape), 0)


@einsum.def_batch
def einsum_batch(args, batched, *, subscripts, optimize, dtype, **params):
    inputs, output = _labels(subscripts, tuple(map(ndim_of, args, batched)))
    letter = next((x for x in ascii_letters if not any(x in part for part in inputs)), None)
    if letter is None:
        raise ValueError("too many axes for the letters of einsum")
    marked = [letter * own + part for part, own in zip(inputs, batched, strict=True)]
    spec = ",".join(marked) + "->" + letter + output
    shapes = tuple(map(shape_of, args))
    if any(0 in shape for shape in shapes):
        # NumPy 2.4 writes out of bounds for some products of empty arrays.
        size = {letter: count_examples(args, batched)}
        for part, shape in zip(marked, shapes, strict=True):
            for label, n in zip(part, shape, strict=True):
                if n != 1 and size.setdefault(label, n) != n:
                    params.update(subscripts=subscripts, optimize=optimize, dtype=dtype)
                    return loop(einsum.bind, args, batched, params)  # raises
        dtype = np.result_type(*map(dtype_of, args)) if dtype is None else dtype
        return np.zeros([size.get(label, 1) for label in letter + output], dtype)
    if len(args) == 2 and optimize is False:
        optimize = _plans(spec, shapes)[1]
    return einsum.bind(*args, subscripts=spec, optimize=optimize, dtype=dtype, **params)


@einsum.def_samples
def einsum_samples(rng):
    for spec, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("ij,jk", (2, 3), (3, 4)),
        ("ki,kj", (2, 3), (2, 2)),
        ("ba", (2, 3)),
        ("i,j->ij", (2,), (3,)),
        ("i,i->", (3,), (3,)),
        ("i,i->i", (3,), (3,)),
        ("i,i->i", (1,), (3,)),
        ("i,i->", (1,), (3,)),
        ("ij,jk->ik", (2, 1), (3, 2)),
        ("ij,j,i->", (2, 1), (3,), (1,)),
        ("ij->", (2, 3)),
        ("ij->j", (2, 3)),
        ("ij->ji", (2, 3)),
        ("ij,k->k", (2, 3), (2,)),
        ("ii->", (3, 3)),
        ("ii", (3, 3)),
        ("ii->i", (3, 3)),
        ("iii->i", (2, 2, 2)),
        ("iij,jj->", (2, 2, 3), (3, 3)),
        ("iji->ij", (2, 3, 2)),
        ("ijij->ji", (2, 3, 2, 3)),
        ("iij,k->j", (2, 2, 3), (2,)),
        ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
        ("...ij,...jk->...ik", (4, 1, 2, 3), (5, 3, 2)),
        ("i...->...i", (2, 3, 2)),
        ("...", (2, 3)),
        ("...i,i...->...", (2, 3), (3, 2)),
        ("i...j, j... -> i ...", (2, 2, 3), (3, 2)),
        ("i...,...", (2, 3), (3,)),
        ("ij,jk,kl->il", (2, 3), (3, 2), (2, 3)),
        ("a,ab,b", (2,), (2, 3), (3,)),
        ("ijk,il,jm,kn->lmn", (2, 2, 2), (2, 3), (2, 1), (2, 2)),
        (",i->i", (), (3,)),
        (",->", (), ()),
        ("->", ()),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
        ("ij,jk->ik", (2, 0), (0, 3)),
        ("ij->i", (0, 3)),
        ("ii->i", (0, 0)),
        ("Aa,aB", (2, 3), (3, 2)),
    ):
        yield Sample(spec, *(rng.normal(size=shape) for shape in shapes))
    a, b, c = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
    yield Sample("ij,jk,kl->il", a, b, c, optimize=True)
    yield Sample("ij,jk->ik", a, b, optimize="greedy")
    yield Sample("ij,jk,kl->il", a, b, c, optimize=["einsum_path", (1, 2), (0, 1)])
    yield Sample("ij,jk,ki", a, b, c, optimize=("greedy", 100))
    yield Sample(a, [0, 1], b, [1, 2], [0, 2])
    yield Sample(a, [0, 30], b, [30, 2])
    yield Sample(rng.normal(size=(2, 2, 3)), [..., 0, 1], a, [0, 1], [..., 0])
    yield Sample(rng.normal(size=(3, 3)), [0, 0])
    yield Sample("ij,j", a, [1.0, 2.0, 3.0])
    yield Sample(",i", 2.0, rng.normal(size=3))
    yield Sample("ij->ij", a, order="F")


# A plan of the contraction, which looks at shapes only.
discrete(np.einsum_path)
