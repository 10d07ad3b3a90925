"""Examples of names that have no docstring of their own: aliases of types, and second homes.

An alias such as ``Params: TypeAlias = Any`` is no object that could carry a docstring. The string
below it in the source is what Python's conventions provide instead; here it is read from there. A
class that a second module has too is written out where it was made, and shows its example at both.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from itertools import pairwise


@cache
def alias_docs(package: str) -> dict[str, str]:
    """Return the strings below the aliases in the files of a package, by name."""
    home = importlib.import_module(package)
    found: dict[str, str] = {}
    for info in pkgutil.iter_modules(getattr(home, "__path__", ())):
        if info.ispkg:
            continue
        text = inspect.getsource(importlib.import_module(f"{package}.{info.name}"))
        body = ast.parse(text).body
        for alias, below in pairwise(body):
            if (
                isinstance(alias, ast.AnnAssign)
                and isinstance(alias.target, ast.Name)
                and ast.unparse(alias.annotation) == "TypeAlias"
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                found[alias.target.id] = inspect.cleandoc(below.value.value)
    return found


def example_of(doc: str) -> str:
    """Return the example of a docstring, without the heading; empty if it has none."""
    _, found, rest = inspect.cleandoc(doc).partition("Examples\n--------\n")
    return re.split(r"\n\n\S[^\n]*\n-{3,}\n", rest)[0].strip() if found else ""


def indented(*paragraphs: str) -> str:
    """Write paragraphs as the content of a directive."""
    lines = "\n\n".join(part for part in paragraphs if part).splitlines()
    return "\n".join(f"   {line}".rstrip() for line in lines)
