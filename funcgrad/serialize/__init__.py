"""Pytrees in files: `save`, `load` and `CheckpointManager`.

A file is an ``.npz`` archive: NumPy's `numpy.load` reads the arrays without funcgrad, each under
the path of its leaf. One more entry, ``__funcgrad__``, tells in JSON what the tree is made of. The
one idea: nothing in a file is ever executed. There is no pickle, and no class or function is
imported because a file names it, so the worst that a stranger's file can do is to be refused.

The files: ``replacing`` (files written whole or not at all), ``zipping`` and ``archive`` (arrays
and text in one zip file), ``statics`` (descriptions of what is not saved), ``structure`` (a tree to
JSON and back), ``fitting`` (what is in a file against a tree that is to take it), ``safetensors``
and ``flat`` (another format, without structure), ``pytorch`` (its names), ``files`` (`save` and
`load`, of these), ``manager`` (`CheckpointManager`).
"""

from funcgrad.serialize.archive import FileFormatError
from funcgrad.serialize.files import load, save
from funcgrad.serialize.manager import CheckpointManager, CheckpointNotFoundError
from funcgrad.serialize.pytorch import torch_names

__all__ = [
    "CheckpointManager",
    "CheckpointNotFoundError",
    "FileFormatError",
    "load",
    "save",
    "torch_names",
]
