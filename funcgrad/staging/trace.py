"""The trace that records: a level whose tracers wrap the values of the run.

Every operation is carried out as it would be without, and leaves an equation besides. No rule says
what shape a result has: it has the one that came out. The other transforms see duck arrays, so that
what they do inside, a backward pass for instance, is recorded like all else.

What the function takes out of the record (``if x > 0``, ``float(x)``) is noted, since the program
is the same function only as long as that stays so. A subclass may refuse it instead: `look`.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core import assign
from funcgrad.core.elementwise import Elementwise
from funcgrad.core.foreign import PLAIN
from funcgrad.core.level import Origin, TracerBase, concrete, looked_at
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracer import Tracer, unwrap
from funcgrad.core.zero import dtype_of, is_finite, shape_of
from funcgrad.errors import is_library, is_ours
from funcgrad.staging.equations import (
    FINITE,
    HOLE,
    Constant,
    FunctionCall,
    Line,
    Literal,
    Note,
    Region,
    Var,
    vars_of,
)
from funcgrad.transforms.calls import CallingTrace, Rules, call
from funcgrad.transforms.flat import snapshot
from funcgrad.transforms.stop import STOPPED

__all__ = ["RecordTrace", "is_array_like", "run"]

_ndarray = np.ndarray
_NUMBERS = frozenset({float, int, bool, complex})
_SMALL = 16384  # bytes; see `funcgrad.core.hold`


class RecordTrace(CallingTrace):
    """Records equations.

    Parameters
    ----------
    origin : Origin
        The call that it belongs to.
    careful : bool
        Record the repairs of what is not finite, instead of noting that all was.

    Attributes
    ----------
    rows : list of tuple
        The fields of the equations, as `Equation` has them.
    """

    __slots__ = (
        "_constants",
        "_noted",
        "_stopped",
        "careful",
        "new_number",
        "notes",
        "regions",
        "rows",
    )

    traces_all = True
    records = True

    def __init__(self, origin: Origin, *, careful: bool = False):
        super().__init__(origin)
        self.careful = careful
        self.rows: list[tuple[Any, ...]] = []
        self.notes: list[Note] = []
        self.regions: list[Region] = []
        self.new_number = itertools.count().__next__  # atomic, as several threads may record
        # By content, or by the id of the array that the user has: that, so that it lives, and ours.
        self._constants: dict[Any, tuple[Any, Constant]] = {}
        self._noted: set[Any] = set()
        self._stopped: dict[int, Any] = {}

    # Variables

    def new_var(self, value: Any) -> Var:
        """Make a variable for a value."""
        number = self.new_number()
        kind = type(value)
        if kind is _ndarray:
            return Var(number, value.shape, value.dtype, None)
        bottom = type(concrete(value)) if kind is Tracer else kind
        python = bottom if bottom in _NUMBERS else None
        dtype = np.dtype(python) if python is not None else dtype_of(value)
        return Var(number, shape_of(value), dtype, python)

    def variable(self, value: Any) -> Tracer:
        """Make the tracer of an argument."""
        value = unwrap(value)
        made = Tracer(self, value, self.new_var(value))
        made._alias = assign.ARGUMENT
        return made

    def atom(self, value: Any) -> Any:
        """Return the variable of a constant, or a literal."""
        kind = type(value)
        if kind is not _ndarray:
            if kind in PLAIN and kind is not Tracer:
                return Literal(value)
            if isinstance(value, np.generic):
                return Literal(value)
        # Small ones are the same if they hold the same: the user may write to one meanwhile, and a
        # transform inside may have made a copy, for fear of that. Larger ones are locked.
        key: Any = id(value)
        if kind is _ndarray:
            if value.nbytes <= _SMALL and value.dtype.kind != "O":
                key = value.dtype, value.shape, value.strides, value.tobytes()
            elif self.hold(value) is not value:
                key = object()  # it cannot be locked
        known = self._constants.get(key)
        if known is None:
            known = value, Constant(self.new_var(value), self.keep(value))
            self._constants[key] = known
        return known[1].var

    def keep(self, value: Any) -> Any:
        """Return what the program has of a constant: a copy, as the program outlives this call."""
        return snapshot(value)

    def other(self, value: Any) -> tuple[Any, Any]:
        """Return what to compute with for a value that is not traced by this, and its atom."""
        value = unwrap(value)
        return value, self.atom(value)

    def _split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values, atoms = [], []
        for arg in args:
            if type(arg) is Tracer and arg._trace is self:
                values.append(arg._value)
                atoms.append(arg._extra)
            else:
                value, atom = self.other(arg)
                values.append(value)
                atoms.append(atom)
        return values, atoms

    def constants(self) -> list[Constant]:
        """Return the constants so far."""
        return [constant for _, constant in self._constants.values()]

    # Operations

    def unary(self, primitive: Elementwise, fun: Callable[[Any], Any], x: Any) -> Any:
        """Record an elementwise function of one argument."""
        if self.ended:
            self.escaped()
        out = fun(x._value)
        var = self.new_var(out)
        params: dict[str, Any] = {}
        if type(fun) is partial:
            fun, params = _fixed(fun)
        self.rows.append((primitive, (x._extra,), params, (var,), False, fun, _line()))
        return Tracer(self, out, var)

    def binary(self, primitive: Elementwise, fun: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
        """Record an elementwise function of two arguments."""
        if self.ended:
            self.escaped()
        if type(x) is Tracer and x._trace is self:
            x, i = x._value, x._extra
        else:
            x, i = self.other(x)
        if type(y) is Tracer and y._trace is self:
            y, j = y._value, y._extra
        else:
            y, j = self.other(y)
        out = fun(x, y)
        var = self.new_var(out)
        params: dict[str, Any] = {}
        if type(fun) is partial:
            fun, params = _fixed(fun)
        self.rows.append((primitive, (i, j), params, (var,), False, fun, _line()))
        return Tracer(self, out, var)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Record any other operation."""
        if self.ended:
            self.escaped()
        values, atoms = self._split(args)
        for name, value in params.items():
            if isinstance(value, TracerBase | tuple | list | slice):
                plain = self._plain(value, name, primitive.name)
                if plain is not value:
                    params = {**params, name: plain}
        out = primitive.bind(*values, **params)
        made: Any
        if type(out) is tuple:
            outs = tuple([self.new_var(part) for part in out])
            self.rows.append((primitive, tuple(atoms), params, outs, True, None, _line()))
            made = tuple([Tracer(self, part, var) for part, var in zip(out, outs, strict=True)])
        else:
            var = self.new_var(out)
            self.rows.append((primitive, tuple(atoms), params, (var,), False, None, _line()))
            made = Tracer(self, out, var)
        if primitive.may_alias:
            assign.link(made, args[0], params)
        return made

    def _plain(self, value: Any, name: str, operation: str) -> Any:
        """Return a static argument with the values of what is traced in it."""
        if isinstance(value, TracerBase):
            return looked_at(value, f"the argument {name!r} of {operation}")
        if isinstance(value, slice):
            ends = [value.start, value.stop, value.step]
            if not any(isinstance(end, TracerBase) for end in ends):
                return value
            return slice(*[self._asked(end, "an index, a length or an axis") for end in ends])
        if isinstance(value, tuple | list):
            if name == "shape":
                parts = [self._asked(part, "an index, a length or an axis") for part in value]
            else:
                parts = [self._plain(part, name, operation) for part in value]
            if any(new is not old for new, old in zip(parts, value, strict=True)):
                return type(value)(parts)
        return value

    def _asked(self, value: Any, what: str) -> Any:
        """Return the value of something on which a shape depends."""
        while isinstance(value, TracerBase):
            trace = value._trace
            asked = getattr(trace, "asked", None)
            value = value._value if asked is None else asked(value, what)
        return value

    def show(self, tracer: TracerBase) -> None:
        """Be told that a value is formatted, to be printed perhaps."""

    def asked(self, tracer: TracerBase, what: str) -> Any:
        """Note that a shape depends on a value."""
        return self.look(tracer, what)

    def check(self, args: Any, kwargs: Any, treedef: Any, leaves: Any, names: Any) -> None:
        """Look at the arguments after the run."""

    def check_result(self, leaf: Any, path: str) -> None:
        """Look at a leaf of the result that is no array."""

    def function(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Record a call of a function that is no primitive."""
        if self.ended:
            self.escaped()
        leaves, treedef = tree.flatten((args, kwargs))
        values, atoms, holes = [], [], []
        for leaf in leaves:
            if type(leaf) is Tracer and leaf._trace is self:
                value, atom = leaf._value, leaf._extra
            elif isinstance(leaf, _ndarray | TracerBase):
                value, atom = self.other(leaf)
            else:
                values.append(leaf)
                holes.append(leaf)
                continue
            values.append(value)
            atoms.append(atom)
            holes.append(HOLE)
        args, kwargs = tree.unflatten(treedef, values)
        outs, out_treedef = tree.flatten(function(*args, **kwargs))
        operation = FunctionCall(function, treedef, tuple(holes))
        outputs = tuple([self.new_var(out) if is_array_like(out) else None for out in outs])
        self.rows.append((operation, tuple(atoms), {}, outputs, True, None, _line()))
        made = [
            out if var is None else Tracer(self, out, var)
            for out, var in zip(outs, outputs, strict=True)
        ]
        return tree.unflatten(out_treedef, made)

    # What is taken out of the record

    def look(self, tracer: TracerBase, what: str, *, library: bool = False) -> Any:
        """Note that the run depends on a value."""
        if self.ended:
            self.escaped()
        var, line = tracer._extra, _line()
        if (var.number, what) not in self._noted:
            self._noted.add((var.number, what))
            value = concrete(tracer)
            value = value.copy() if isinstance(value, _ndarray) else value
            self.notes.append(Note(what, (var,), value, len(self.rows), line, library))
        return tracer._value

    def look_finite(self, values: Sequence[TracerBase]) -> bool:
        """Note that the run relies on values being finite; say no where they may not be."""
        if self.careful:
            return False
        found = []
        for value in values:
            below: Any = value
            while isinstance(below, TracerBase) and below._trace is not self:
                below = below._value
            if isinstance(below, TracerBase):
                found.append(below._extra)
                below = below._value
            if not is_finite(below):
                return False
        self.notes.append(Note(FINITE, tuple(found), True, len(self.rows), _line(), True))
        return True

    def detach(self, tracer: TracerBase, below: Any) -> Any:
        """Record that no derivative goes on from here, where there could be one."""
        var = tracer._extra
        if var.dtype.kind not in "fc":
            return Tracer(self, below, var)
        known = self._stopped.get(var.number)
        if known is None:
            new = self.new_var(below)
            self.rows.append((STOPPED, (var,), {}, (new,), False, None, _line()))
            known = self._stopped[var.number] = Tracer(self, below, new)
        return known

    @contextlib.contextmanager
    def region(self, name: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Note that what is recorded in the block belongs together; see `Region`.

        The block may put more fields into what it is given.
        """
        place, start = len(self.regions), len(self.rows)
        more: dict[str, Any] = dict(fields)
        yield more
        if len(self.rows) > start:
            self.regions.insert(place, Region(name, start, len(self.rows), **more))

    def call(self, rules: Rules, leaves: list[Any]) -> tuple[list[Any], Any]:
        """Record the call of a function with derivative rules of its own."""
        if rules.operation is not None:
            return list(self.process(rules.operation, leaves, {})), None
        return self.called(rules.name, rules.run, partial(call, rules), leaves)

    def called(
        self, name: str, run: Callable[..., Any], again: Callable[..., Any], leaves: list[Any]
    ) -> tuple[list[Any], Any]:
        """Record what ``run(leaves)`` does, as a region that `again` does with traced leaves."""
        inputs = tuple([self.atom_of(leaf) for leaf in leaves])
        with self.region(name, inputs=inputs) as fields:
            start = len(self.rows)
            outs, treedef = run(leaves)
            own = {var.number for row in self.rows[start:] for var in vars_of(row[3])}
            outs = [self._own_result(out, own) for out in outs]
            fields["outputs"] = tuple(
                [out._extra if type(out) is Tracer and out._trace is self else None for out in outs]
            )
            fields["redo"] = again
        return outs, treedef

    def _own_result(self, out: Any, own: set[int]) -> Any:
        """Return a result of a region as a variable of that, also what it returns as it came.

        The rules may give it another derivative than what it was before has.
        """
        if type(out) is not Tracer or out._trace is not self or out._extra.number in own:
            return out
        if out._extra.dtype.kind not in "fc":
            return out
        new = self.new_var(out._value)
        self.rows.append((STOPPED, (out._extra,), {}, (new,), False, None, _line()))
        made = Tracer(self, out._value, new)
        made._alias = out._alias
        return made

    def atom_of(self, leaf: Any) -> Any:
        """Return the variable of a leaf, or a literal; one that is neither as it is."""
        if type(leaf) is Tracer and leaf._trace is self:
            return leaf._extra
        return self.other(leaf)[1] if is_array_like(leaf) else unwrap(leaf)


def _fixed(fun: partial[Any]) -> tuple[partial[Any], dict[str, Any]]:
    """Return a ufunc with keywords so that nobody can write to those, and the keywords."""
    params = {
        name: value.copy() if isinstance(value, _ndarray) else value
        for name, value in fun.keywords.items()
    }
    inner = fun.func
    if type(inner) is partial:  # of `where=` and `dtype=`
        inner, more = _fixed(inner)
        params = {**more, **params}
        inner = inner.func
    return partial(inner, **params), params


def is_array_like(value: Any) -> bool:
    """Tell whether a value is an array or a number, which a variable can stand for."""
    if type(value) in PLAIN:
        return True
    if isinstance(value, np.generic | _ndarray | TracerBase):
        return True
    return hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type)


# Whether the code of a file is the user's.
_users: dict[str, bool] = {}


def _line() -> Line | None:
    """Return the user's innermost line on the stack, within the function that is recorded."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        mine = _users.get(name)
        if mine is None:
            mine = _users[name] = not is_ours(name) and not is_library(name)
        if mine:
            return Line(code, frame.f_lasti)
        if code is _RUN:
            return None
        frame = frame.f_back
    return None


def run(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call the function that is recorded: the lines of the user end here."""
    return fun(*args, **kwargs)


_RUN = run.__code__
