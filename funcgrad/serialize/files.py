"""`save` and `load`: a pytree into one file, and out of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from funcgrad import tree as trees
from funcgrad.errors import ArgumentError, DeepTreeError, FuncgradError, describe, user_line
from funcgrad.serialize import flat
from funcgrad.serialize.archive import Archive, write_archive
from funcgrad.serialize.fitting import Names, Stored, differing, fitting_leaves
from funcgrad.serialize.safetensors import is_safetensors
from funcgrad.serialize.structure import (
    as_node,
    leaf_nodes,
    leaf_value,
    static_nodes,
    tree_of,
    unique_names,
)

__all__ = ["file_name", "load", "save", "tree_in", "write_tree"]


def save(path: str | os.PathLike[str], tree: Any, *, fsync: bool = True) -> None:
    """Write a pytree to a file.

    Parameters
    ----------
    path : str or path-like
        The file, by any name; ``.npz`` at its end tells other programs what it is. What is there
        is replaced in one step, and stays as it was if saving fails at any point, or the process
        is killed. A name that ends in ``.safetensors`` is written in that format; see Notes.
    tree : pytree
        Leaves are arrays of any dtype but object, NumPy scalars, Python's bool, int, float,
        complex, str and bytes, random keys, and functions. Dicts, lists, tuples, named tuples, None
        and registered classes, such as modules, are kept.
    fsync : bool, default True
        Whether to wait until the file is on the disk, so that it outlasts a loss of power. Without,
        it only outlasts the process.

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
    CheckpointManager : keeps the last ones and the best.

    Notes
    -----
    The file is an uncompressed ``.npz`` archive. ``np.load(path)`` gives each array under the path
    of its leaf, such as ``['layers'][0].bias``, and the structure, with all that is no array, as
    JSON under ``__funcgrad__``. There is no pickle in it. Equal trees give equal files, byte by
    byte.

    Static fields of registered classes, and functions, come from the template given to `load`. The
    file has a description of them, a function's being ``module:name``, which is compared with the
    template and used for nothing else.

    A ``.safetensors`` file holds arrays and numbers alone, under names such as ``layers.0.bias``.
    Functions and static fields are left out of it.

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
    name = file_name(path, "save(path, tree)")
    if is_safetensors(name):
        flat.save_arrays(name, tree, fsync)
    else:
        write_tree(name, tree, {}, fsync)


def write_tree(path: str, tree: Any, about: Mapping[str, Any], fsync: bool) -> None:
    """Write a tree to an archive, and what else is to be said `about` it."""
    trees.structure(tree)  # a tree that contains itself is named as such
    try:
        node, arrays = as_node(tree)
        write_archive(path, {"tree": node, **about}, arrays, fsync)
    except RecursionError as error:
        if isinstance(error, FuncgradError):
            raise
        raise DeepTreeError(
            "the tree is nested too deeply to be saved",
            where=user_line(),
            fix="put the leaves into one list, or stack them in an array",
        ) from error


def load(
    path: str | os.PathLike[str],
    template: Any = None,
    strict: bool = True,
    *,
    names: Names | None = None,
) -> Any:
    """Read a pytree that `save` has written, or the arrays of a ``.safetensors`` file.

    Parameters
    ----------
    path : str or path-like
        The file. It may come from a stranger: nothing in it is executed.
    template : pytree, optional
        A tree of the structure, shapes and dtypes of what was saved. Its containers, classes,
        functions and static fields are those of the result, and leaves are matched by their paths.
        It is needed if the tree has functions or instances of registered classes, such as modules.
    strict : bool, default True
        With `template`: that each has exactly the leaves of the other, and the same static fields.
        If False, leaves that are missing from the file are those of `template`, and leaves that
        only the file has are left out.
        Without `template`: that the classes of named tuples are known. If False, unknown ones are
        made up, with the same name and fields.
    names : dict or callable, optional
        What the leaves of `template` are called in the file, by their paths as errors write them:
        ``{".layers[0].weight": "encoder.weight"}``, or a function from path to name. In place of a
        name there may be a function that takes all that is in the file, as a mapping by name, and
        returns the leaf. Paths that a dict does not have keep their names. See `torch_names`.

    Returns
    -------
    pytree
        The tree. Arrays are new and writable; with `template`, a number is an array, a NumPy
        scalar or a Python number as it is there. Random keys begin unused. Of
        a ``.safetensors`` file without `template`, a dict of arrays.

    Raises
    ------
    TreeMismatchError
        The file does not fit `template`. All leaves that are missing, unexpected, or of another
        shape or dtype are named, and all static fields that differ. Another shape or dtype is an
        error whatever `strict`, and so is a file that has none of the leaves.
    ArgumentError
        The tree has objects that only a template can supply, or a named tuple of a module that is
        not imported. Or `names` speaks of what `template` does not have.
    FileFormatError
        The file is not one that `save` wrote, or it is damaged.
    OSError
        The file is not there, or cannot be read.

    See Also
    --------
    save : writes it.
    CheckpointManager : several of them in a folder.

    Notes
    -----
    ``.safetensors`` files may have arrays of bfloat16 and float8, which NumPy does not have. They
    become float32, exactly.

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
    >>> load(path, template={"weight": np.zeros((2, 4)), "rate": 0.0})
    Traceback (most recent call last):
        ...
    funcgrad.errors.TreeMismatchError: ...params.npz does not fit the template
      where: different: ['weight'] is float64[2,3] in the file, float64[2,4] in template; loaded ...
      fix:   build template as the tree that was saved: of the same sizes, with the same dtype=
    >>> folder.cleanup()
    """
    name = file_name(path, "load(path)")
    if template is None and names is not None:
        raise ArgumentError(
            "names are those of the leaves of a template, and there is none",
            where=f"load() at {user_line()}",
            fix="load(path, template=tree, names=names)",
        )
    if is_safetensors(name):
        return flat.load_arrays(name, template, strict, names)
    with Archive(name) as archive:
        return tree_in(archive, template, strict, names)


def tree_in(archive: Archive, template: Any, strict: bool, names: Names | None = None) -> Any:
    """Return the tree that an open archive holds; see `load`."""
    with archive.damage_named():
        node = archive.about["tree"]
        if template is None:
            return tree_of(node, archive.read, strict)
        nodes = unique_names(leaf_nodes(node))
        statics = [] if names or not strict else differing(dict(static_nodes(node)), template)

    def read(name: str) -> Any:
        with archive.damage_named():
            return leaf_value(nodes[name], archive.read)

    leaves = fitting_leaves(
        Stored(nodes, read),
        trees.leaves_with_path(template),
        names=names,
        own_name=trees.keystr,
        statics=statics,
        strict=strict,
        file=archive.path,
    )
    return trees.unflatten(trees.structure(template), leaves)


def file_name(path: str | os.PathLike[str], call: str) -> str:
    """Return the name of a file or folder as a string; `call` is how it is asked for."""
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, str):
            return name
    raise ArgumentError(
        f"{call} takes the name of a {'folder' if 'directory' in call else 'file'} first",
        where=f"its first argument is {describe(path)}, at {user_line()}",
        fix=f"write fg.{call}",
    )
