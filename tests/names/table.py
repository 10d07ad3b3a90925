"""Write the table of supported functions, ``docs/support.md``: ``python tests/names/table.py``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from calls import CALLS, LEFT_OUT

HEAD = """\
# What is supported

Made by `tests/names/table.py` from the calls that the tests make of every function, so it cannot
promise more than was tried. All functions here work under `grad`, `jvp` and `vmap`, to any order,
with three exceptions that the last column names:

- *value*: the result is piecewise constant, or no number (a position, a truth value, a shape).
  Under `grad` and `jvp` it is a plain value that code can branch on.
- *constant*: it takes no array.
- *shape*: the shape of the result depends on the elements, so `vmap` refuses it.

Where the first column says *np*, NumPy's (or SciPy's) own function takes traced values. Everywhere
the function of the same name in `funcgrad.numpy` or `funcgrad.scipy` does. Every function of NumPy
that is not here either works because it is made of those that are, or raises `MissingRuleError`,
which names it.

"""


def written() -> str:
    """Return the page."""
    text = [HEAD]
    for module, names in groupby(sorted(CALLS, key=_key), key=lambda name: _key(name)[0]):
        text.append(f"## {module}\n\n| call as | functions | note |\n| --- | --- | --- |\n")
        rows: dict[tuple[str, str], list[str]] = {}
        for name in names:
            call = CALLS[name]
            how = ("np" if module.startswith("numpy") else "scipy") if call.plain else "funcgrad"
            note = {"smooth": "", "discrete": "value", "constant": "constant"}[call.kind]
            if not call.batch and call.kind == "smooth":
                note = "shape"
            rows.setdefault((note, how), []).append(f"`{name.removeprefix(module + '.')}`")
        for (note, how), found in sorted(rows.items()):
            text.append(f"| {how} | {', '.join(found)} | {note} |\n")
        text.append("\n")
    text.append("## Left out\n\n| function | why |\n| --- | --- |\n")
    text += [f"| `{name}` | {why} |\n" for name, why in sorted(LEFT_OUT.items())]
    return "".join(text)


def _key(name: str) -> tuple[str, str]:
    parts = name.split(".")
    size = 2 if parts[0] == "scipy" or (len(parts) > 2 and parts[1] in ("fft", "linalg")) else 1
    return ".".join(parts[:size]), name


if __name__ == "__main__":
    page = Path(__file__).parents[2] / "docs" / "support.md"
    page.write_text(written(), encoding="utf-8")
