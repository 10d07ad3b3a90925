"""`jit`: runs a function once to record it, and from then on the NumPy program of that run.

For each signature (`funcgrad.staging.signature`) there is a program. It may have conditions: the
branch that `cond` took, derivatives being finite. Where one does not hold, another program is
made: for the other branch, or with the repairs of derivatives that are not finite. So a call gives
what the function gives, always.

A transform's tracer among the arguments means that the function is part of something larger. Under
reverse mode alone its forward and backward pass are compiled (`funcgrad.staging.pulled`). Else the
function itself is run: a jitted function that calls it has its operations in one program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.core.tracer import Tracer
from funcgrad.errors import ArgumentError, TreeMismatchError, user_line
from funcgrad.staging.arguments import Call, Known
from funcgrad.staging.backends.module import module_text
from funcgrad.staging.compiled import Executable
from funcgrad.staging.pulled import Pulled, PulledRules, watching
from funcgrad.staging.refusals import check_function
from funcgrad.staging.showing import texts
from funcgrad.staging.signature import Kinds, refuse_donated
from funcgrad.staging.subject import Subject, name_of, origin_of, releasing
from funcgrad.staging.variants import Programs
from funcgrad.staging.watching import Watched
from funcgrad.transforms.calls import call as call_rules
from funcgrad.transforms.flat import Transformed

__all__ = ["Compiled", "Jitted", "Lowered", "jit"]


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Sequence[str] = (),
    inline: bool = False,
) -> Any:
    """Compile a function: record what it does, and run that as NumPy code from then on.

    Parameters
    ----------
    fun : callable
        Function of pytrees, in plain NumPy, transformed or not. It should be pure: what it does
        besides computing its result (printing, appending to a list) happens when it is recorded.
    static_argnums, static_argnames : int or str, or sequence of them
        Arguments, by position or by name, whose values may decide what the function does (`if`,
        `range`, shapes). They are compared by content, also lists, dicts and arrays; for each
        content there is a program of its own.
    donate_argnums, donate_argnames : int or str, or sequence of them
        Arguments that are not used after the call, so that results may take their memory: the
        parameters and the state of an optimizer, say. See the notes.
    inline : bool
        Under another transform, run the function itself, as part of what is around. Without it
        that is so but under reverse mode (`grad`, `vjp`) alone, for which the forward and the
        backward pass are compiled.

    Returns
    -------
    callable
        Takes what `fun` takes and returns what it returns, in fresh arrays. It has the methods
        ``lower(*args)``, for the program and its source, ``explain()``, for why it was compiled
        again, and ``clear_cache()``.

    Raises
    ------
    TracerValueError
        The function asks for the value of something that it computes: ``if x > 0``.
    ShapeError
        A shape depends on values.
    ArgumentError
        A static argument cannot be compared.

    See Also
    --------
    make_program : records the program, without compiling it.

    Notes
    -----
    A program is made for each signature: the structure of the arguments, shapes and dtypes of
    arrays, the types of numbers, the content of what is static. Numbers of Python are arguments
    like arrays, and weakly typed as always. Leaves that are neither arrays nor numbers, such as
    strings and functions, are static.

    Arrays that the function closes over are constants of the program, with the values that they had
    when it was recorded. That a name in a closure, a global one, an attribute of an object or of a
    class, an element of a list, dict or set, or of an argument of `functools.partial`, has come to
    mean another array, number or function is noticed, also where a method or property looks it up,
    and the function compiled again. Not noticed are

    - arrays that were written to,
    - what ``getattr(x, name)`` finds,
    - attributes of elements, unless the index is a constant or a name outside of the function:
      ``table["a"].scale`` is noticed, not that of ``for layer in layers`` or of ``table[i + 1]``,
    - elements of containers of more than 1000, or more than four deep, or of other classes than
      `list`, `dict`, `tuple` and `set`,
    - what is looked up more than four calls of functions within the function, or by functions of
      installed packages.

    A donated argument is gone also if the call raises, as in JAX.

    Loops of Python are unrolled. `scan`, `map`, `fori_loop` and `while_loop` are loops of the
    program, whose step is compiled once, and so are their derivatives; `cond` and `switch` are an
    ``if`` with all branches. Where that cannot be, they are unrolled like others, and there is a
    program for each branch that is taken: in a step that does something else depending on its
    number, under `vmap` where examples go different ways, with ``checkpoint_every``, or where
    branches return other dtypes. The backward pass of a `while_loop` is compiled for the number of
    steps.

    Results are those of the function itself, to the last bit, as long as arrays lie in memory in
    the order in which they did at the first call; in another order sums may differ in the last bit.
    They may too in loops, where products of all steps with one matrix are one product, and sums
    over the steps of such products another.
    NumPy's warnings of invalid values are not given.

    Donated arrays of 128 kilobytes or more are written to where a result of their shape and dtype
    comes after their last use. That is so of arrays that such a function has returned, if nobody
    has a view of them: the first step of ``state = step(state)`` copies what it is given, which
    stays as it is, and the others work in place. An array whose memory was taken has no elements
    any more and a dtype that says so; giving it to a jitted function is an error that names it.
    Under a transform nothing is donated.

    Examples
    --------
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> @fg.jit
    ... def loss(w, x, y):
    ...     return np.mean((np.tanh(x @ w) - y) ** 2)
    >>> step = fg.jit(fg.value_and_grad(loss))
    >>> value, slope = step(np.zeros(3), np.ones((4, 3)), np.ones(4))
    >>> float(value), slope
    (1.0, array([-2., -2., -2.]))
    """
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "inline": inline,
    }
    if fun is None:
        return functools.partial(jit, **options)
    return Jitted(jit, fun, options)


class Jitted(Transformed):
    """A function that `jit` compiles."""

    transform = "jit"

    def __init__(self, make: Callable[..., Any], fun: Callable[..., Any], options: dict[str, Any]):
        super().__init__(make, fun, options)
        check_function(fun)
        self.subject = Subject(fun, options)
        self.known = Known(self.subject)
        # The forward and backward passes, for reverse mode.
        self._pulled: dict[Any, Pulled] = {}

    def clear_cache(self) -> None:
        """Forget all programs, and the memory that they keep."""
        self.known.clear()
        self._pulled.clear()
        self.subject.seen = None

    def explain(self) -> str:
        """Say why the function was compiled the last time that it was.

        Returns
        -------
        str
            Such as ``x was float64[3], and is float64[4]``.

        Examples
        --------
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> double = fg.jit(lambda x: x * 2)
        >>> _ = double(np.ones(3)), double(np.ones(4))
        >>> double.explain()
        'x was float64[3], and is float64[4]'
        """
        return self.subject.reason

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments, which is made if there is none."""
        subject = self.subject
        watched = subject.watched
        if watched is not None:
            name = watched.changed()
            if name is not None:
                self.clear_cache()
                subject.forget(name)
        if not kwargs:
            found = self.known.find(args)
            if found is not None:
                programs, values = found
                return programs.run(values, subject, args, kwargs)
        call = Call(self.known, args, kwargs)
        if call.is_traced:
            return self._traced(call, args, kwargs)
        programs = call.programs()
        if not kwargs and not subject.static:
            call.remember()
        return programs.run(call.values, subject, args, kwargs)

    def _traced(self, call: Call, args: Any, kwargs: Any) -> Any:
        """Call the function in a transform: compiled under reverse mode alone."""
        if self._options["inline"] or watching(call.leaves) is None:
            return self.fun(*args, **kwargs)
        plain = [leaf._value if type(leaf) is Tracer else leaf for leaf in call.leaves]
        wanted = tuple([type(leaf) is Tracer for leaf in call.leaves])
        types = tuple(map(type, plain))
        known = self.known.kinds
        kinds = known.get((call.treedef, types))
        if kinds is None:
            kinds = known[call.treedef, types] = Kinds(plain, call.kept_paths)
        key = (call.treedef, types, kinds.sort(plain)[0], wanted)
        pulled = self._pulled.get(key)
        if pulled is None:
            refuse_donated(plain, call.paths)
            fun = releasing(self.fun) if self.subject.static else self.fun
            structure = call.treedef

            def flat(leaves: list[Any]) -> Any:
                given, named = tree.unflatten(structure, leaves)
                return fun(*given, **named)

            origin = origin_of(self.fun)
            watched = self.subject.watched = self.subject.watched or Watched(self.fun)
            pulled = self._pulled[key] = Pulled(flat, plain, kinds.variable, wanted, origin)
            watched.settle()
        if pulled.is_of_others:
            return self.fun(*args, **kwargs)
        rules = PulledRules(f"jit({name_of(self.fun)})", pulled, len(plain))
        outs, treedef = call_rules(rules, call.leaves)
        return tree.unflatten(treedef, outs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Record and write the program for these arguments, without running it again.

        Parameters
        ----------
        *args, **kwargs
            Those of the function.

        Returns
        -------
        Lowered
            With the methods ``as_text()``, ``as_source()`` and ``compile()``.
        """
        call = Call(self.known, args, kwargs)
        if call.is_traced:
            raise ArgumentError(
                "lower needs plain arguments, and a transform watches one of these",
                where=user_line(),
                fix="call it outside of the transform",
            )
        programs = call.programs()
        return Lowered(self, programs, programs.first(self.subject, call.args, call.kwargs))


class Lowered:
    """A jitted function for arguments of one signature: its program, and its source."""

    def __init__(self, jitted: Jitted, programs: Programs, executable: Executable):
        self._jitted = jitted
        self._programs = programs
        self._executable = executable

    def as_text(self, *, optimized: bool = True) -> str:
        """Return the program, as text.

        Parameters
        ----------
        optimized : bool
            As it runs, rather than as it was recorded.

        Returns
        -------
        str
        """
        executable = self._executable
        return (executable.program if optimized else executable.recorded).as_text()

    def stages(self) -> dict[str, str]:
        """Return the program, as text, after each pass that changed it.

        Returns
        -------
        dict
            By the name of the pass, in their order. The first is ``"recorded"``; the last are
            ``"memory"``, which says what results are written into, and ``"source"``, what runs.

        See Also
        --------
        funcgrad.debug.show_passes : prints them, of each function that is compiled.
        """
        return dict(texts(self._executable))

    def as_source(self, *, lines: bool = True) -> str:
        """Return the program as a module of Python, which needs NumPy alone.

        It has one function, of the leaves of the arguments, that returns a list of the leaves of
        the result. Functions of SciPy's are imported. So is funcgrad where a function of the
        user's is called back; the docstring of the module says so.

        Parameters
        ----------
        lines : bool
            Whether to put your lines, as comments, above what they have become.

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np
        >>> import funcgrad as fg
        >>> text = fg.jit(lambda x: np.sin(x) + 1).lower(np.ones(3)).as_source(lines=False)
        >>> "np.sin(x" in text and "#" not in text
        True
        """
        return module_text(self._executable, lines=lines)

    def compile(self) -> Compiled:
        """Return a function that takes arguments of this signature alone."""
        return Compiled(self._jitted, self._executable)

    def __str__(self) -> str:
        return self.as_text()


_AGAIN = "call the jitted function, which compiles again, or lower it for these"


class Compiled:
    """A jitted function for arguments of one signature; others are an error."""

    def __init__(self, jitted: Jitted, executable: Executable):
        self._jitted = jitted
        self._program = executable.recorded
        self._programs = Programs()
        self._programs._variants = (executable,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; raise if the arguments are not like those that it was made for."""
        call = Call(self._jitted.known, args, kwargs)
        if call.is_traced:
            return self._jitted.fun(*args, **kwargs)
        if call.treedef != self._program.in_tree:
            raise TreeMismatchError(
                f"{name_of(self._jitted.fun)} was compiled for arguments of another structure: "
                f"{self._program.in_tree}, got {call.treedef}",
                where=user_line(),
                fix=_AGAIN,
            )
        values = self._program._leaves_of(call.args, call.kwargs, _AGAIN)
        return self._programs.run(values, self._jitted.subject, args, kwargs)
