"""How blocks are written: a loop over parts of arrays, or a function that threads call for each.

Within it an array that is cut has its name with a ``_`` behind for the part. What lies between the
operations is written into memory of one block, which is used again, as the plan has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from funcgrad.staging.backends.expressions import Writer
from funcgrad.staging.backends.halving import add_rows, halves, in_pairs
from funcgrad.staging.equations import Equation, Var, vars_of
from funcgrad.staging.passes.blocks import Block
from funcgrad.staging.passes.rewriting import VIEW

if TYPE_CHECKING:
    from funcgrad.staging.passes.rowwise import Fold

__all__ = ["BlockWriter"]


class BlockWriter:
    """Writes the equations that stand for blocks.

    Parameters
    ----------
    writer : Writer
        Of expressions.
    names : dict
        What variables are called. Parts have other names while blocks are written.
    free : callable
        ``free(name)`` returns a name that nothing else has.
    inputs : callable
        Writes the inputs of an equation.
    takes_out : callable
        Tells whether an equation can be written into a given array.
    target : callable
        ``target(var)`` returns the array that a result is written to, or None.
    checked : set of int
        Which variables have to be finite. Their elements are added up while they are in the cache.

    Attributes
    ----------
    sums : dict
        Variable number -> the name of sums that are finite if all its elements are.
    """

    def __init__(
        self,
        writer: Writer,
        names: dict[int, str],
        free: Callable[[str], str],
        inputs: Callable[[Equation], Sequence[str]],
        takes_out: Callable[[Equation], bool],
        target: Callable[[Var], str | None],
        checked: set[int],
    ):
        self.sums: dict[int, str] = {}
        self.writer = writer
        self.names = names
        self.inputs = inputs
        self.takes_out = takes_out
        self.target = target
        self.checked = checked
        self._free = free
        self._known: dict[Any, str] = {}

    def write(self, equation: Equation, block: Block) -> Iterator[str]:
        """Write one of them, line by line."""
        loop = _Loop(self, equation, block)
        before = [*loop.arrays(), *loop.sums()]
        kept = dict(self.names)
        body = loop.body()
        self.names.clear()
        self.names.update(kept)
        yield from _indented(before, 1)
        yield from _indented([loop.head()], 1)
        yield from _indented(body, 2)
        yield from _indented(loop.after, 1)

    def word(self, name: str) -> str:
        """Return a name for something that all blocks have."""
        if name not in self._known:
            self._known[name] = self._free(name)
        return self._known[name]

    def name_of(self, var: Var, kind: str) -> str:
        """Return a name for something that has to do with a variable."""
        key = (var.number, kind)
        if key not in self._known:
            self._known[key] = self._free(f"{self.names[var.number]}_{kind}")
        return self._known[key]

    def function(self, function: Callable[..., object]) -> str:
        """Return the name of a function that programs call."""
        return self.writer.bind(function, function.__name__)


class _Loop:
    """The source of one of them."""

    def __init__(self, owner: BlockWriter, equation: Equation, block: Block):
        self.owner = owner
        self.block = block
        self.results = block.arrays(equation)
        self.inputs = list(vars_of(equation.inputs))
        self.cut = [var for var in self.inputs if var.number in block.cut] + self.results
        # The names of the parts, and of what is written straight into them.
        self.parts = {var.number: owner.name_of(var, "") for var in self.cut}
        self.written = {var.number: self.parts[var.number] for var in self.results}
        self.bits = self._bits()
        self.work = self._work()
        self.totals: dict[str, Var] = {}
        self.after: list[str] = []
        self._whole: dict[int, str] = {}
        self._stretched: dict[int, str] = {}

    def arrays(self) -> Iterator[str]:
        """Write where results go, and how arrays are arranged to be cut along their first axis."""
        names, block = self.owner.names, self.block
        for var in self.results:
            yield f"{names[var.number]} = {self.owner.target(var) or _fresh(var, block)}"
        for var in self.cut:
            text = names[var.number]
            if block.axes is not None:
                text = f"{text}.transpose({block.axes})"
            if block.is_flat and len(var.shape) > 1:
                text = f"{text}.reshape(-1)"
            if text != names[var.number]:
                name = self.owner.name_of(var, "flat" if block.is_flat else "rows")
                yield f"{name} = {text}"
                text = name
            self._whole[var.number] = text
        for var in self.inputs if block.axes is not None else ():
            if var.number not in block.cut and var.shape:
                shape = (1,) * (len(block.axes or ()) - len(var.shape)) + var.shape
                name = self._stretched[var.number] = self.owner.name_of(var, "whole")
                yield f"{name} = {names[var.number]}.reshape({shape}).transpose({block.axes})"

    def sums(self) -> Iterator[str]:
        """Write where the sums over all blocks begin."""
        owner = self.owner
        for var in (*self.results, *self.block.checked):
            if var.number in owner.checked:
                owner.sums[var.number] = owner.name_of(var, "total")
                self.totals[owner.sums[var.number]] = var
        for fold in self.block.folds:
            out = _result(fold)
            name = owner.names[out.number]
            divided = "" if fold.divisor == 1 else f" / {fold.divisor}"
            if fold.leading:
                yield f"{name} = np.zeros({out.shape}, {out.dtype.name!r})"
                if divided:
                    self.after.append(f"{name} = {name}{divided}")
            else:
                parts = owner.name_of(fold.var, "total")
                self.totals[parts] = fold.var
                self.after.append(f"{name} = {owner.function(in_pairs)}({parts}){divided}")
        for name, var in self.totals.items():
            yield f"{name} = np.empty({1 << self.block.depth}, {var.dtype.name!r})"

    def head(self) -> str:
        """Write what stands above the body."""
        block, word = self.block, self.owner.word
        k, i, j = word("k"), word("i"), word("j")
        ends = f"{self.owner.function(halves)}({block.count}, {block.depth}, {block.step})"
        if block.is_threaded:
            piece = word("piece")
            self.after.insert(0, f"in_blocks({', '.join([piece, ends, *self.work])})")
            return f"def {piece}({', '.join([k, i, j, *self.work])}):"
        return f"for {k}, ({i}, {j}) in enumerate({ends}):"

    def body(self) -> list[str]:
        """Write what is done for each block; variables that are cut are called their parts then."""
        owner, block = self.owner, self.block
        names, word = owner.names, owner.word
        k, i, j = word("k"), word("i"), word("j")
        folds = {fold: names[_result(fold).number] for fold in block.folds}
        lines = [f"{part} = {self._whole[number]}[{i}:{j}]" for number, part in self.parts.items()]
        pieces = {name: name for name in self.work}
        if block.count % (block.step << block.depth):  # blocks differ in size
            pieces = {name: word(f"{name}_") for name in self.work}
            lines += [f"{piece} = {name}[: {j} - {i}]" for name, piece in pieces.items()]
        names.update(self.parts)
        names.update(self._stretched)
        for x, out in self.bits.values():
            name = names[x.number] = self.written[x.number] = owner.name_of(out, "bits")
            dtype = owner.writer.static(x.dtype)
            lines.append(f"{name} = {self.parts[out.number]}.view({dtype})")
        for inner in block.equations:
            lines += self._statement(inner, pieces)
            for out in vars_of(inner.outputs):
                for name, var in self.totals.items():
                    if var is out:
                        lines.append(f"{name}[{k}] = np.add.reduce({names[out.number]}, None)")
                for fold, name in folds.items():
                    if fold.leading and fold.var is out:
                        lines.append(self._add(fold, name))
        return lines

    def _add(self, fold: Fold, total: str) -> str:
        part = self.owner.names[fold.var.number]
        if fold.leading > 1:
            part = f"{part}.reshape({(-1, *_result(fold).shape)})"
        return f"{self.owner.function(add_rows)}({total}, {part})"

    def _statement(self, equation: Equation, pieces: dict[str, str]) -> Iterator[str]:
        owner = self.owner
        inputs = owner.inputs(equation)
        out = equation.outputs[0] if len(equation.outputs) == 1 else None
        if out is not None and out.number in self.bits:
            return  # it is there
        if out is not None and owner.takes_out(equation):
            if out.number in self.written:
                yield owner.writer.call(equation, inputs, self.written[out.number])
                return
            target = owner.target(out)
            target = None if target is None else pieces[target]
            yield f"{owner.names[out.number]} = {owner.writer.call(equation, inputs, target)}"
            return
        left, copies = [], []
        for var in equation.outputs:
            if var is None:
                left.append("_")
            elif var.number in self.written:
                left.append(owner.name_of(var, "part"))
                copies.append(f"{self.written[var.number]}[...] = {left[-1]}")
            else:
                left.append(owner.names[var.number])
        comma = "," if len(left) == 1 and owner.writer.gives_tuple(equation) else ""
        yield f"{', '.join(left)}{comma} = {owner.writer.call(equation, inputs)}"
        yield from copies

    def _bits(self) -> dict[int, tuple[Var, Var]]:
        """Return the results that are views of what lies between, which is written there at once.

        By the numbers of the results.
        """
        found: dict[int, tuple[Var, Var]] = {}
        seen: set[int] = set()
        makers = {
            var.number: inner for inner in self.block.equations for var in vars_of(inner.outputs)
        }
        for inner in self.block.equations:
            (x, *_), (out, *_) = inner.inputs, inner.outputs
            if inner.operation is not VIEW or out is None or not isinstance(x, Var):
                continue
            maker = makers.get(x.number)
            if out.number not in self.written or x.number in self.parts or x.number in seen:
                continue
            if maker is not None and self.owner.takes_out(maker):
                found[out.number] = (x, out)
                seen.add(x.number)
        return found

    def _work(self) -> list[str]:
        """Return the names of the memory of one block that is worked in."""
        elsewhere = {x.number for x, _ in self.bits.values()} | set(self.written)
        found = set()
        for inner in self.block.equations:
            for var in vars_of(inner.outputs):
                target = None if var.number in elsewhere else self.owner.target(var)
                if target is not None:
                    found.add(target)
        return sorted(found)


def _result(fold: Fold) -> Var:
    (out,) = fold.equation.outputs
    assert out is not None
    return out


def _fresh(var: Var, block: Block) -> str:
    """Write fresh memory for a result, with the axes in the order that all results have."""
    axes = block.axes or tuple(range(len(var.shape)))
    shape = tuple([var.shape[axis] for axis in axes])
    back = tuple([axes.index(axis) for axis in range(len(axes))])
    return f"np.empty({shape}, {var.dtype.name!r}).transpose({back})"


def _indented(lines: Sequence[str], depth: int) -> Iterator[str]:
    return (f"{'    ' * depth}{line}" for line in lines)
