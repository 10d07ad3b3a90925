"""Write the chapters of the tutorial as notebooks: ``python docs/make_notebooks.py``.

A chapter is Markdown: each block of Python becomes a cell of code, and what is between them cells
of text. A block of ``text`` right below a block of Python is what that prints, and so becomes the
output of the cell. The tests run the notebooks, and compare what they print, and fail where a
notebook is not what this file makes of its chapter.
"""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CHAPTERS = sorted((HERE / "tutorial").glob("*.md"))

# A block of Python, with what it prints, if that is shown.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.M | re.S)
# The line of a chapter that leads to its notebook.
POINTER = re.compile(r"^\[This chapter as a notebook\].*\n\n", flags=re.M)


def notebook_of(chapter: Path) -> Path:
    """Return where the notebook of a chapter is."""
    return HERE / "notebooks" / f"{chapter.stem}.ipynb"


def cells(text: str) -> list[dict[str, Any]]:
    """Take a chapter apart into the cells of a notebook."""
    made: list[dict[str, Any]] = []
    # Links from one chapter to another become links from notebook to notebook.
    text = re.sub(r"\]\(([\w-]+)\.md", r"](\1.ipynb", POINTER.sub("", text))
    between, code, printed = 0, 1, 2
    for place, part in enumerate(BLOCK.split(text)):
        if place % 3 == between and part.strip():
            made.append({"cell_type": "markdown", "source": _lines(part.strip())})
        elif place % 3 == code:
            made.append({"cell_type": "code", "source": _lines(part.strip("\n")), "outputs": []})
        elif place % 3 == printed and part:
            made[-1]["outputs"] = [
                {"output_type": "stream", "name": "stdout", "text": _lines(part)}
            ]
    runs = (cell for cell in made if cell["cell_type"] == "code")
    for count, cell in enumerate(runs, start=1):
        cell["execution_count"] = count
    return [{"id": f"cell-{number}", "metadata": {}, **cell} for number, cell in enumerate(made)]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(text: str) -> str:
    """Return the notebook of a chapter, as the text of its file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells(text),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all notebooks."""
    for chapter in CHAPTERS:
        made = notebook(chapter.read_text(encoding="utf-8"))
        notebook_of(chapter).write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
