"""The Python blocks of the README and of docs/ run, each page in a namespace of its own.

And the pages are complete: the reference has every public name, and links lead somewhere.
"""

import inspect
import re
import textwrap
from pathlib import Path

import pytest

import funcgrad as fg

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


# The reference

RULES = "funcgrad.rules"  # its modules are listed; users find what they declare in NumPy


def public_names(module):
    """Yield the name of a public module with its public names, and so for the modules in it."""
    yield module.__name__, set(module.__all__)
    for name in module.__all__:
        inner = getattr(module, name)
        if inspect.ismodule(inner) and hasattr(inner, "__all__") and module.__name__ != RULES:
            yield from public_names(inner)


PUBLIC = dict(public_names(fg))


def referenced():
    """Return the names that the reference lists, by the module that heads the section."""
    found, section = {}, None
    for line in (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = found.setdefault(line.removeprefix("## "), set())
        elif match := re.match(r"- `(\w+)`.*: \S", line):
            section.add(match[1])
    return found


def test_the_reference_has_a_section_for_each_public_module():
    assert set(referenced()) == set(PUBLIC)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_lists_the_public_names(module):
    assert referenced()[module] == PUBLIC[module]


# Links


def links(page):
    """Return the paths that the prose of a page links to."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    prose = re.sub(r"`[^`\n]+`", "", prose)  # in code, f[0](x) is no link
    found = re.findall(r"\]\(([^)#]+)[^)]*\)", prose)
    return [page.parent / target for target in found if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page):
    for target in links(page):
        assert target.exists(), target


def test_every_page_can_be_reached_from_the_index():
    seen, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        waiting += links(page)
    assert {page.resolve() for page in PAGES} <= seen
