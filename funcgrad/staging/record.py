"""Recording: `make_program` writes one run of a function down as a program.

The run itself is watched by a `RecordTrace` (`funcgrad.staging.trace`). Here is what comes before
and after it: which leaves of the arguments are variables, what they are called, what the results
are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.core.foreign import PLAIN, refuse
from funcgrad.core.level import Origin
from funcgrad.core.tracer import Tracer
from funcgrad.core.zero import dtype_of
from funcgrad.staging.equations import Equation, Leaf, Literal, Var
from funcgrad.staging.program import Program
from funcgrad.staging.trace import RecordTrace, is_array_like, run
from funcgrad.transforms.flat import Transformed, call_origin, lower

__all__ = ["argument_names", "is_recordable", "make_program", "paths_of", "record"]


def is_recordable(leaf: Any, integers: bool = False) -> bool:
    """Tell whether an argument is a variable of the program, rather than static."""
    if type(leaf) in (bool, int):
        return integers
    if isinstance(leaf, float | complex | Boxed):
        return True
    return is_array_like(leaf) and dtype_of(leaf).kind in "fciub"


def record(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    origin: Origin,
    trace: RecordTrace | None = None,
    *,
    integers: bool = False,
) -> Program:
    """Run `fun`, and return the program of that run.

    With `integers`, those of Python, and truth values, are variables too.
    """
    leaves, in_tree = tree.flatten((args, kwargs))
    names = argument_names(fun, len(args), kwargs)
    with trace or RecordTrace(origin) as trace:
        traced = []
        arguments = []
        for leaf, path in zip(leaves, paths_of((args, kwargs), names), strict=True):
            if not is_recordable(leaf, integers):
                traced.append(leaf)
                arguments.append(Leaf(path, None, leaf))
                continue
            if isinstance(leaf, Boxed):
                inner = trace.variable(leaf._unbox())
                traced.append(leaf._rebox(inner))
                arguments.append(Leaf(path, inner._extra, leaf))
            else:
                if type(leaf) not in PLAIN:
                    refuse(leaf)
                inner = trace.variable(leaf)
                traced.append(inner)
                arguments.append(Leaf(path, inner._extra))
        call_args, call_kwargs = tree.unflatten(in_tree, traced)
        given = [*map(id, traced)]
        del traced
        out = run(fun, call_args, call_kwargs)
        trace.check(call_args, call_kwargs, in_tree, given, names)
        del call_args, call_kwargs
        found, out_tree = tree.flatten_with_path(out)
        results = [_result(leaf, tree.keystr(path), trace) for path, leaf in found]
    return Program(
        name=origin.name,
        argument_names=tuple(names),
        arguments=tuple(arguments),
        in_tree=in_tree,
        constants=tuple(trace.constants()),
        equations=tuple([Equation(*row) for row in trace.rows]),
        results=tuple(results),
        out_tree=out_tree,
        notes=tuple(trace.notes),
        regions=tuple(trace.regions),
        count=trace.new_number(),
    )


def _result(leaf: Any, path: str, trace: RecordTrace) -> Leaf:
    if isinstance(leaf, Boxed):
        content = leaf._unbox()
        plain = leaf._rebox(lower(content, trace))
        return Leaf(path, trace.atom_of(content), plain)
    if type(leaf) is Tracer and leaf._trace is not trace:
        leaf = lower(leaf, trace)  # raises if it has escaped
    if type(leaf) in (bool, int):
        return Leaf(path, None, leaf)
    atom = trace.atom_of(leaf)
    if isinstance(atom, Var | Literal):
        return Leaf(path, atom)
    trace.check_result(leaf, path)
    return Leaf(path, None, leaf)


def argument_names(fun: Callable[..., Any], count: int, kwargs: dict[str, Any]) -> list[str]:
    """Return what to call the arguments of a call: by the parameters of the function."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        parameters = []
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names = names[:count]
    names += [f"arg{i}" for i in range(len(names), count)]
    return [*names, *sorted(kwargs)]


def paths_of(call: tuple[Any, dict[str, Any]], names: Sequence[str]) -> list[str]:
    """Return the path of each leaf of the arguments, from the name of its argument on."""
    count = len(call[0])
    keywords = dict(zip(sorted(call[1]), names[count:], strict=True))
    paths = []
    for path, _ in tree.flatten_with_path(call)[0]:
        head: Any = path[1]
        name = names[head.idx] if path[0].idx == 0 else keywords[head.key]
        paths.append(name + tree.keystr(path[2:]))
    return paths


def make_program(
    fun: Callable[..., Any], *, integers: bool = False, careful: bool = False
) -> Callable[..., Program]:
    """Make a function that records a run of `fun` as a program, to read and to evaluate.

    Parameters
    ----------
    fun : callable
        Function of pytrees, in plain NumPy, transformed or not.
    integers : bool
        Let integers and truth values of Python be variables, such as the count of an optimizer's
        steps. Used as a length or an axis they are noted like any value that is taken out.
    careful : bool
        Record, where derivatives are computed, also what is done where they are not finite. Without
        that the program holds for values for which all are finite, and says so.

    Returns
    -------
    callable
        Takes the arguments of `fun`, runs it once, and returns the `Program` of that run. Arrays,
        Python floats and complex numbers, and random keys are its variables; strings and other
        leaves are static, and so are integers and truth values of Python unless `integers`.

    See Also
    --------
    funcgrad.viz.graph : draws the program.

    Notes
    -----
    A program prints with names, shapes and dtypes, static parameters, constants, and the lines of
    the source. ``program(*args)`` evaluates it on other arguments; that can be transformed as any
    function.

    What the function does in Python is not in the program: loops, also those of `funcgrad.scan` and
    its kin, are unrolled, and of a branch there is what was taken. Where the function branches on a
    value, or asks for it by ``float(x)``, the program is specialised on that. It notes so, and
    evaluating it with values for which that comes out otherwise raises `SpecialisedError`.

    Operations of which the result is not used are kept; `Program.pruned` leaves them out. What is
    computed of constants alone is not recorded: the program has its result.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def loss(params, x):
    ...     return np.sum(np.tanh(x @ params["w"] + params["b"]))
    >>> params = {"w": np.ones((3, 2)), "b": np.zeros(2)}
    >>> program = fg.make_program(loss)(params, np.ones((5, 3)))
    >>> print(program.as_text(lines=False))
    program loss(params: {'w': float64[3,2], 'b': float64[2]}, x: float64[5,3])
      a: float64[5,2] = matmul(x, params['w'])
      b: float64[5,2] = add(a, params['b'])
      c: float64[5,2] = tanh(b)
      d: float64[] = sum(c)
      return d: float64[]
    >>> bool(program(params, np.zeros((5, 3))) == 0.0)
    True
    """
    return _MakeProgram(make_program, fun, {"integers": integers, "careful": careful})


class _MakeProgram(Transformed):
    transform = "make_program"

    def __call__(self, *args: Any, **kwargs: Any) -> Program:
        """Record the program of a call."""
        origin = call_origin("make_program", self.fun)
        integers, careful = bool(self._options["integers"]), bool(self._options["careful"])
        trace = RecordTrace(origin, careful=careful)
        return record(self.fun, args, kwargs, origin, trace, integers=integers)
