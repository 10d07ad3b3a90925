"""The Python blocks of the README and of docs/ run, each page in a namespace of its own."""

import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(text):
    """Yield (number of the first line, source) of each fenced block marked as Python."""
    fence, first, block = None, 0, []
    for number, line in enumerate(text.splitlines(), start=1):
        mark = line.strip()
        if fence is None and mark.startswith("```"):
            fence, first, block = mark[3:], number + 1, []
        elif fence is not None and mark == "```":
            if fence == "python":
                yield first, textwrap.dedent("\n".join(block) + "\n")
            fence = None
        else:
            block.append(line)
    assert fence is None, f"the block that starts at line {first} is not closed"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for first, source in python_blocks(page.read_text(encoding="utf-8")):
        # Blank lines before the source, so that a traceback shows the page's own line.
        exec(compile("\n" * (first - 1) + source, str(page), "exec"), namespace)


def test_blocks_are_found_with_their_lines():
    text = "```python\na = 1\n```\n```sh\nls\n```\n- item\n\n  ```python\n  b = 2\n  c = 3\n  ```\n"
    assert list(python_blocks(text)) == [(2, "a = 1\n"), (10, "b = 2\nc = 3\n")]
