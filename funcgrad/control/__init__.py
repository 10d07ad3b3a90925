"""Control flow as functions: `scan`, `while_loop`, `cond` and their kin, with JAX's signatures.

Plain Python loops and ``if`` work under all transforms of derivatives, and so do these, which are
just that: `scan` runs a ``for`` loop, `cond` an ``if``. They are here for four things. Under
`vmap`, where ``if x > 0`` has no answer, each branch is run on the examples that take it, and a
loop runs for each example as long as that one's condition says. Under `jit` they are loops and
branches of the program, in which those of Python are unrolled. Their checks find a carry that
changes its shape. And programs written for JAX run as they are.

The files: ``rows`` (a branch on some of the examples), ``closures`` (what it refers to), ``carry``
(what a loop hands on), ``segments`` (what its backward pass keeps), ``structured`` (what becomes of
loops and branches in programs), and then the functions:
``loops``, ``branches``, ``whiles``, ``prefixes``.
"""

from funcgrad.control.branches import cond, switch
from funcgrad.control.loops import map, scan
from funcgrad.control.prefixes import associative_scan
from funcgrad.control.whiles import fori_loop, while_loop

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
