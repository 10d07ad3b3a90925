"""Pytrees in files: `save` and `load`.

A file is an ``.npz`` archive: NumPy's `numpy.load` reads the arrays without funcgrad, each under
the path of its leaf. One more entry, ``__funcgrad__``, tells in JSON what the tree is made of. The
one idea: nothing in a file is ever executed. There is no pickle, and no class is imported because a
file names it, so the worst that a stranger's file can do is to be refused.

The files: ``archive`` (arrays and text in one zip file, written whole or not at all), ``structure``
(a tree to JSON and back), ``fitting`` (what is in a file against a tree that is to take it),
``files`` (`save` and `load`, of these three).
"""

from funcgrad.serialize.archive import FileFormatError
from funcgrad.serialize.files import load, save

__all__ = ["FileFormatError", "load", "save"]
