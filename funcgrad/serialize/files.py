"""`save` and `load`: a pytree into one file, and out of it."""

from __future__ import annotations

import os
from typing import Any

from funcgrad import tree as trees
from funcgrad.errors import ArgumentError, DeepTreeError, FuncgradError, describe, user_line
from funcgrad.serialize.archive import Archive, write_archive
from funcgrad.serialize.fitting import fitting_leaves
from funcgrad.serialize.structure import as_node, leaf_nodes, tree_of, unique_names

__all__ = ["load", "save"]


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Write a pytree to a file.

    Parameters
    ----------
    path : str or path-like
        The file, by any name; ``.npz`` at its end tells other programs what it is. What is there
        is replaced in one step, and stays as it was if saving fails at any point.
    tree : pytree
        Leaves are arrays of any dtype but object, NumPy scalars, Python's bool, int, float,
        complex, str and bytes, and random keys. Dicts, lists, tuples, named tuples, None and
        registered classes are kept.

    Raises
    ------
    ArgumentError
        A leaf, or a key of a dict, is of a type that no file can hold.
    DtypeError
        An array holds Python objects, or is of a dtype that another package made.
    TracerConversionError
        A leaf is traced by a transform in progress.
    DeepTreeError
        `tree` contains itself, or is nested too deeply.
    OSError
        The file cannot be written.

    See Also
    --------
    load : reads it.

    Notes
    -----
    The file is an uncompressed ``.npz`` archive. ``np.load(path)`` gives each array under the path
    of its leaf, such as ``['layers'][0].bias``, and the structure, with all that is no array, as
    JSON under ``__funcgrad__``. There is no pickle in it. Equal trees give equal files, byte by
    byte.

    Static fields of registered classes are not saved: they come from the tree given to `load`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> params = {"weight": np.eye(2), "steps": 100}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "params.npz")
    ...     save(path, params)
    ...     with np.load(path) as file:
    ...         print(file["['weight']"])
    [[1. 0.]
     [0. 1.]]
    """
    name = _file_name(path, "save(path, tree)")
    trees.structure(tree)  # a tree that contains itself is named as such
    try:
        node, arrays = as_node(tree)
        write_archive(name, {"tree": node}, arrays)
    except RecursionError as error:
        if isinstance(error, FuncgradError):
            raise
        raise DeepTreeError(
            "the tree is nested too deeply to be saved",
            where=user_line(),
            fix="put the leaves into one list, or stack them in an array",
        ) from error


def load(path: str | os.PathLike[str], like: Any = None, strict: bool = True) -> Any:
    """Read a pytree that `save` has written.

    Parameters
    ----------
    path : str or path-like
        The file. It may come from a stranger: nothing in it is executed.
    like : pytree, optional
        A tree of the structure, shapes and dtypes of what was saved. Its containers, classes and
        static fields are those of the result, and leaves are matched by their paths. It is needed
        if the tree has instances of registered classes.
    strict : bool, default True
        With `like`: that each has exactly the leaves of the other. If False, leaves that are
        missing from the file are those of `like`, and leaves that only the file has are left out.
        Without `like`: that the classes of named tuples are known. If False, unknown ones are made
        up, with the same name and fields.

    Returns
    -------
    pytree
        The tree. Arrays are new and writable; with `like`, a number is an array, a NumPy scalar
        or a Python number as it is there. Random keys begin unused.

    Raises
    ------
    TreeMismatchError
        The file does not fit `like`. All leaves that are missing, unexpected, or of another shape
        or dtype are named; the last is an error whatever `strict`, and so is a file that has none
        of the leaves.
    ArgumentError
        The tree has objects that only a tree given as `like` can supply, or a named tuple of
        a module that is not imported.
    FileFormatError
        The file is not one that `save` wrote, or it is damaged.
    OSError
        The file is not there, or cannot be read.

    See Also
    --------
    save : writes it.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> params = {"weight": np.zeros((2, 3)), "names": ["x", "y"], "rate": 0.5, "bias": None}
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "params.npz")
    >>> save(path, params)
    >>> load(path)
    {'weight': array([[0., 0., 0.],
           [0., 0., 0.]]), 'names': ['x', 'y'], 'rate': 0.5, 'bias': None}

    A template is checked, leaf by leaf:

    >>> save(path, {"weight": np.zeros((2, 3)), "rate": 0.5})
    >>> load(path, like={"weight": np.zeros((2, 4)), "rate": 0.0})
    Traceback (most recent call last):
        ...
    funcgrad.errors.TreeMismatchError: ...params.npz does not fit the tree given as like
      where: different: ['weight'] is float64[2,3] in the file, float64[2,4] in like; loaded at ...
      fix:   build like as the tree that was saved; load(path) without like gives that tree
    >>> folder.cleanup()
    """
    name = _file_name(path, "load(path)")
    with Archive(name) as archive:
        try:
            node = archive.about["tree"]
            if like is None:
                return tree_of(node, archive.read, strict)
            nodes = unique_names(leaf_nodes(node))
            leaves = fitting_leaves(nodes, like, archive.read, strict=strict, file=name)
        except (FuncgradError, MemoryError):
            raise
        except Exception as error:  # whatever a file of the right form and wrong content causes
            raise archive.damaged("its structure cannot be read") from error
    return trees.unflatten(trees.structure(like), leaves)


def _file_name(path: str | os.PathLike[str], call: str) -> str:
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, str):
            return name
    raise ArgumentError(
        f"{call} takes the name of a file first",
        where=f"its first argument is {describe(path)}, at {user_line()}",
        fix=f"write fg.{call}",
    )
