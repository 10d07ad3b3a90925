"""`export`: writes a function, with its derivatives, as a module that needs NumPy alone.

The module has the program that `jit` makes for the arguments that are given, and a function around
it with the parameters of the original. That takes the arguments apart by the paths of their leaves
(``params['w']``, ``model.layer.weight``), which is code as it stands, checks that each leaf is like
the one that the program was made for, and puts the results together.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import errno
import hashlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.core.boxed import Boxed
from funcgrad.errors import ArgumentError, describe, user_line
from funcgrad.staging.arguments import Call
from funcgrad.staging.backends import exported
from funcgrad.staging.backends.copying import NoSource
from funcgrad.staging.backends.module import (
    Preamble,
    helpers_of,
    joined,
    views_of,
)
from funcgrad.staging.backends.numpy import Source
from funcgrad.staging.compiled import Executable
from funcgrad.staging.equations import Leaf, Var
from funcgrad.staging.jit import Jitted, jit
from funcgrad.staging.signature import Held
from funcgrad.staging.subject import name_of
from funcgrad.staging.variants import compile_call
from funcgrad.tree.containers import FieldsContainer, container_of

__all__ = ["export"]

# Bytes of the largest array that is written into the module.
_SMALL = 1024


def export(
    fun: Callable[..., Any], *args: Any, path: str | os.PathLike[str], **kwargs: Any
) -> Path:
    """Write a function as a module that needs NumPy alone, for arguments like these.

    Parameters
    ----------
    fun : callable
        Function of pytrees, jitted, transformed, or plain.
    *args, **kwargs
        Arguments for it, of the structure, shapes and dtypes that the exported function is to take.
        The values of arrays and numbers do not matter; all else, such as strings and static
        arguments, is fixed.
    path : str or path-like
        Where to write the module, such as ``"step.py"``. Large arrays that the function closes over
        are put beside it, in a file ``.npz``.

    Returns
    -------
    pathlib.Path
        Where the module is.

    Raises
    ------
    ArgumentError
        The function cannot stand alone: it calls back a function of the user's, for instance.

    See Also
    --------
    jit : compiles a function, in the process.

    Notes
    -----
    The module has a function of the same name, with those parameters that were given. It takes
    dicts, lists and tuples as `fun` does. Where that takes a model, or an instance of another
    class, any object with the same attributes will do; where it takes a random key, the array
    ``fg.random.key_data(key)``. It returns dicts, lists, tuples and named tuples; in place of
    other instances, namespaces with the same attributes; in place of keys, arrays of that kind.

    Arguments of other shapes or dtypes are errors, which name the leaf. Where the function depends
    on values in a way that the program has no branch for, and a call takes another way than was
    taken here, that is an error too. Where derivatives can come out not finite the module has the
    program for that besides.

    Files are written beside their place and renamed at the end, so that no half of one is left.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import funcgrad as fg
    >>> def loss(w, x):
    ...     return np.sum(np.tanh(x @ w) ** 2)
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "slope.py")
    >>> path = fg.export(fg.grad(loss), np.zeros(3), np.ones((4, 3)), path=path)
    >>> print(path.read_text().splitlines()[0])
    \"\"\"loss, as NumPy code.
    >>> folder.cleanup()
    """
    jitted = fun if isinstance(fun, Jitted) else jit(fun)
    call = Call(jitted.known, args, kwargs)
    if call.is_traced:
        raise ArgumentError(
            "export needs plain arguments, and a transform watches one of these",
            where=user_line(),
            fix="call it outside of the transform",
        )
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder; make it first", path)
    files = _Module(jitted, call, target).files()
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    for name, data in files:
        _replace(target.with_name(name), data)
    kept = {name for name, _ in files}
    for name in (
        set(re.findall(rf"'({re.escape(target.stem)}-[0-9a-f]{{12}}\.npz)'", before)) - kept
    ):
        target.with_name(name).unlink(missing_ok=True)  # of the module that was there
    return target


def _replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".tmp")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


class _Module:
    """The module of a function for one call."""

    def __init__(self, jitted: Jitted, call: Call, path: Path):
        self.name = name_of(jitted.fun)
        self.path = path
        self.arrays: dict[str, Any] = {}
        self._dtypes: dict[Any, str] = {}
        self.call = call
        quick = self._compile(jitted, call, careful=False)
        self.program = quick.recorded
        self.parameters = _parameters(self.program.argument_names)
        self.entry = _entry_name(self.name)
        taken = {self.entry, "arrays", *exported.__all__}
        self.sources = [self._source(quick, f"_{self.entry}", taken)]
        notes = list(quick.program.notes)
        if "raise NotFinite" in self.sources[0].text():
            careful = self._compile(jitted, call, careful=True)
            self.sources.append(self._source(careful, f"_{self.entry}_carefully", taken))
            notes += careful.program.notes
        self.conditions = [
            f"{note.what} is {note.value}" + (f" at {note.line}" if note.line else "")
            for note in notes
            if not note.is_of_finite
        ]
        body = "\n\n".join(source.text() for source in self.sources)
        bound = {name: value for source in self.sources for name, value in source.bound.items()}
        self.body = body
        taken |= {"out", "values", *re.findall(r"\w+", self.parameters)}
        self.preamble = Preamble(body, bound, self._store, taken)
        if self.preamble.needed:
            raise ArgumentError(
                f"{self.name} cannot be exported: it calls {', '.join(self.preamble.needed)}, of "
                "which there is no source in NumPy",
                where=user_line(),
                fix="leave out pure_callback and functions of the user's that it calls back, or "
                "compute what they give outside and pass it as an argument",
            )

    @staticmethod
    def _source(executable: Executable, name: str, taken: set[str]) -> Source:
        """Return the source of a program, under a name, and note which names it takes."""
        source = executable.source(taken={*taken, name})
        source.name = name
        taken |= {*source.bound, name}
        return source

    @staticmethod
    def _compile(jitted: Jitted, call: Call, *, careful: bool) -> Executable:
        subject = jitted.subject
        before = subject.reason, subject.seen
        made = compile_call(subject, call.args, call.kwargs, careful=careful)
        subject.reason, subject.seen = before
        if made is None:
            raise ArgumentError(
                f"{name_of(jitted.fun)} closes over a value that a transform watches",
                where=user_line(),
                fix="make it an argument, or call export outside of the transform",
            )
        return made

    def _store(self, name: str, value: Any) -> str | None:
        """Put a large array into the file beside the module."""
        if value.nbytes <= _SMALL or value.dtype.kind not in "fciub":
            return None
        order = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
        self.arrays[name] = np.ascontiguousarray(value.transpose(order))
        if order == list(range(value.ndim)):
            return f"arrays[{name!r}]"
        return f"arrays[{name!r}].transpose({tuple(np.argsort(order).tolist())})"

    def files(self) -> list[tuple[str, bytes]]:
        """Return the names and contents of the files, the module last."""
        entry = self._entry()
        for helper in exported.__all__:
            if helper == "Memory" or f"{helper}(" in entry:
                self.preamble.copier.define(helper, getattr(exported, helper))
        found: list[tuple[str, bytes]] = []
        loading = ""
        if self.arrays:
            memory = io.BytesIO()
            np.savez(memory, **self.arrays)
            # By its content: a module that is there already keeps the file that belongs to it.
            content = hashlib.sha256()
            for name, value in self.arrays.items():
                content.update(f"{name} {value.dtype.str} {value.shape} ".encode())
                content.update(value.tobytes())
            file = f"{self.path.stem}-{content.hexdigest()[:12]}.npz"
            found.append((file, memory.getvalue()))
            self.preamble.copier.imports["from pathlib import Path"] = None
            loading = (
                f"with np.load(Path(__file__).with_name({file!r})) as file:\n"
                "    arrays = dict(file)\n"
            )
        memories = list(self._memories())
        text = self._docstring() + joined(
            [
                self.preamble.text(loading),
                helpers_of(f"{self.body}\n\n{entry}"),
                *memories,
                *[source.text() for source in self.sources],
                entry,
            ]
        )
        found.append((self.path.name, text.encode()))
        return found

    def _docstring(self) -> str:
        program = self.program
        lines = [f'"""{self.name}, as NumPy code.', ""]
        lines.append("Exported by funcgrad, for arguments like these and no others:")
        lines.append("")
        for leaf in program.arguments:
            lines.append(f"    {leaf.path}: {_kind_of(leaf)}")
        if not program.arguments:
            lines.append("    none")
        if self.conditions:
            lines += ["", "It holds as long as", ""]
            lines += [f"    {condition}" for condition in dict.fromkeys(self.conditions)]
        needed = " and ".join(["NumPy", *sorted(self.preamble.modules)])
        lines += ["", f"It needs {needed}.", '"""', "", ""]
        return "\n".join(lines).replace("\\", "\\\\")

    def _memories(self) -> Iterator[str]:
        """Write the memory of each program."""
        for source in self.sources:
            yield views_of(source, f"_work_of{source.name}")
        lines = []
        for source in self.sources:
            results = "".join(
                f"    ({shape}, {self._dtype(dtype)}, {'F' if order == 'F' else 'C'!r}),\n"
                for shape, dtype, order in source.plan.results
            )
            listed = f"[\n{results}]" if results else "[]"
            lines.append(f"_memory_of{source.name} = Memory(_work_of{source.name}, {listed})")
        yield "\n".join(lines)

    def _entry(self) -> str:
        """Write the function with the parameters of the original."""
        program = self.program
        lines = [f"def {self.entry}({self.parameters}):"]
        lines.append(f'    """Run {self.name}; see the top of this module."""')
        args, kwargs = self.call.args, self.call.kwargs
        names = iter(program.argument_names)
        for value in args:
            lines += self._checks(next(names), value)
        if any("[" in name for name in program.argument_names):  # of ``*args``
            first = next(name for name in program.argument_names if "[" in name)
            path = first.partition("[")[0]
            count = sum(name.startswith(f"{path}[") for name in program.argument_names)
            lines.insert(2, f"    checked_count({path}, {path!r}, {count})")
        for key in sorted(kwargs):
            lines += self._checks(next(names), kwargs[key])
        inputs = []
        for leaf in program.arguments:
            var, path = leaf.atom, leaf.path
            if not isinstance(var, Var):
                continue
            if var.python is not None:
                check = f"checked_number({path}, {path!r}, {var.python.__name__})"
            else:
                dtype = self._dtype(var.dtype)
                check = f"checked_array({path}, {path!r}, {var.shape}, {dtype})"
            inputs.append(f"        {check},\n")
        lines.append(f"    values = (\n{''.join(inputs)}    )" if inputs else "    values = ()")
        run = [f"_memory_of{s.name}.run({s.name}, *values)" for s in self.sources]
        call = [f"out = {run[0]}"]
        if len(run) > 1:
            call = [
                "try:",
                f"    out = {run[0]}",
                "except NotFinite:  # a derivative",
                f"    out = {run[1]}",
            ]
        if re.search(r"\braise Otherwise\b", self.body):
            call = [
                "try:",
                *[f"    {line}" for line in call],
                "except Otherwise:",
                "    raise ValueError(",
                f'        "{self.entry} takes another way for these values than for those "',
                f'        "that it was exported with; see the top of {self.path.name}"',
                "    ) from None",
            ]
        lines += [f"    {line}" for line in call]
        lines.append(f"    return {self._result()}")
        return "\n".join(lines) + "\n"

    def _checks(self, path: str, value: Any) -> Iterator[str]:
        """Write the checks of the nodes of an argument, and of its leaves that are fixed."""
        if type(value) is Held:
            yield self._fixed(path, value.value)
            return
        container = container_of(type(value))
        if container is None:
            if not _is_variable(value):
                yield self._fixed(path, value)
            return
        if value is None:
            yield self._fixed(path, value)
            return
        children, _ = container.flatten(value)
        keys = list(container.keys(value))
        if isinstance(value, dict):
            wanted = self._written(path, [key.key for key in keys])
            yield f"    checked_keys({path}, {path!r}, {wanted})"
        elif type(value) in (list, tuple):
            yield f"    checked_count({path}, {path!r}, {len(children)})"
        for key, child in zip(keys, children, strict=True):
            if not _reaches(value, key, child):
                raise ArgumentError(
                    f"{self.name} cannot be exported: {path} is of {describe(value)}, the parts of "
                    "which cannot be reached by a name",
                    where=user_line(),
                    fix="register the class with the names of its parts, or give them in a dict",
                )
            yield from self._checks(f"{path}{tree.keystr((key,))}", child)

    def _fixed(self, path: str, value: Any) -> str:
        if callable(value):  # of no use to whoever calls; whatever is there is not looked at
            return f"    # {path} is {getattr(value, '__name__', type(value).__name__)}, always."
        return f"    checked_fixed({path}, {path!r}, {self._written(path, value)})"

    def _dtype(self, dtype: np.dtype[Any]) -> str:
        """Return the name of a dtype in the module."""
        name = self._dtypes.get(dtype)
        if name is None:
            copier = self.preamble.copier
            name = self._dtypes[dtype] = copier.unused(dtype.name.upper())
            copier.taken.add(name)
            text = repr(dtype.name if dtype.isnative else dtype.str)
            copier.parts.append(f"{name} = np.dtype({text})")
        return name

    def _written(self, path: str, value: Any) -> str:
        try:
            return self.preamble.copier.written(value)
        except NoSource:
            raise ArgumentError(
                f"{self.name} cannot be exported: {path} is {describe(value)}, which has no source",
                where=user_line(),
                fix="close over it, with functools.partial(f, ...) for instance",
            ) from None

    # The result

    def _result(self) -> str:
        made = iter(range(len(self.program.results)))
        leaves: list[Any] = []
        for leaf in self.program.results:
            if leaf.atom is None:
                leaves.append(_Text(self._written(f"the result {leaf.path}", leaf.value)))
            else:
                leaves.append(_Text(f"out[{next(made)}]"))
        return self._put_together(tree.unflatten(self.program.out_tree, leaves))

    def _put_together(self, node: Any) -> str:
        if type(node) is _Text:
            return node.text
        if node is None:
            return "None"
        container = container_of(type(node))
        assert container is not None
        if isinstance(node, dict):
            rows = [
                f"{self._written('a key', k)}: {self._put_together(v)}" for k, v in node.items()
            ]
            return f"{{{', '.join(rows)}}}"
        children, _ = container.flatten(node)
        parts = [self._put_together(child) for child in children]
        if isinstance(node, list):
            return f"[{', '.join(parts)}]"
        if hasattr(node, "_fields"):
            return f"{self._named_tuple(type(node))}({', '.join(parts)})"
        if isinstance(container, FieldsContainer):
            self.preamble.copier.imports["from types import SimpleNamespace"] = None
            fields = [f"{n}={p}" for n, p in zip(container.data, parts, strict=True)]
            for name in container.static:
                with contextlib.suppress(NoSource, AttributeError):
                    fields.append(f"{name}={self.preamble.copier.written(getattr(node, name))}")
            return f"SimpleNamespace({', '.join(fields)})"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def _named_tuple(self, cls: Any) -> str:
        copier = self.preamble.copier
        copier.imports["from collections import namedtuple"] = None
        line = f"{cls.__name__} = namedtuple({cls.__name__!r}, {list(cls._fields)!r})"
        if line not in copier.parts:
            copier.parts.append(line)
            copier.taken.add(cls.__name__)
        return str(cls.__name__)


class _Text:
    """Stands for a leaf of the result."""

    def __init__(self, text: str):
        self.text = text


def _is_variable(value: Any) -> bool:
    if isinstance(value, bool | int | float | complex | Boxed):
        return True
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fciub"


def _reaches(node: Any, key: Any, child: Any) -> bool:
    """Tell whether a path, as code, leads to a part."""
    step = tree.keystr((key,))
    try:
        code = ast.parse(f"node{step}", mode="eval")
        return bool(eval(compile(code, "<path>", "eval"), {"node": node}) is child)
    except Exception:
        return False


def _kind_of(leaf: Leaf) -> str:
    if isinstance(leaf.atom, Var):
        if leaf.box is not None:
            return f"{leaf.atom.kind}, the data of a random key"
        return f"{leaf.atom.kind}, a number" if leaf.atom.python is not None else leaf.atom.kind
    value = leaf.value.value if type(leaf.value) is Held else leaf.value
    return f"{describe(value) if isinstance(value, np.ndarray) else repr(value)}, fixed"


# What the function in the module calls by these names.
_USED = frozenset({"np", "NotFinite", "Otherwise", *exported.__all__})


def _parameters(names: tuple[str, ...]) -> str:
    """Write the parameters, given what the arguments of a call are called."""
    for name in names:
        if name.partition("[")[0] in _USED:
            raise ArgumentError(
                f"the module calls something of its own {name}, and so does the function an "
                "argument",
                where=user_line(),
                fix=f"give the argument another name: {name}_",
            )
    written: list[str] = []
    for name in names:
        path = name.partition("[")[0]
        text = f"*{path}" if "[" in name else name
        if text not in written:
            written.append(text)
    return ", ".join(written)


def _entry_name(name: str) -> str:
    parts = re.findall(r"\w+", name)
    found = "_".join(parts)
    if not found.isidentifier() or found == "lambda":
        return "function"
    # It would hide that one.
    return f"{found}_" if hasattr(builtins, found) or found in _USED else found
