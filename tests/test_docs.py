"""The Python blocks of the README and of docs/ run, each page in a namespace of its own.

And the pages are complete: the reference has every public name, and links lead somewhere.
"""

import doctest
import importlib.util
import inspect
import json
import re
import sys
import textwrap
import typing
from pathlib import Path

import pytest

import funcgrad as fg

ROOT = Path(__file__).parents[1]
MADE = ROOT / "docs" / "api"  # the pages that the build of the site writes
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent != MADE),
]


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


# The tutorial and its notebooks


def load(path):
    """Import a script of the docs."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BOOKS = load(ROOT / "docs" / "make_notebooks.py")


@pytest.mark.parametrize("chapter", BOOKS.CHAPTERS, ids=lambda chapter: chapter.stem)
def test_notebook_is_made_of_its_chapter(chapter):
    made = BOOKS.notebook_of(chapter).read_text(encoding="utf-8")
    assert made == BOOKS.notebook(chapter.read_text(encoding="utf-8")), (
        "run python docs/make_notebooks.py"
    )


def test_every_notebook_has_a_chapter():
    made = (ROOT / "docs" / "notebooks").glob("*.ipynb")
    assert {path.stem for path in made} == {chapter.stem for chapter in BOOKS.CHAPTERS}


@pytest.mark.parametrize("chapter", BOOKS.CHAPTERS, ids=lambda chapter: chapter.stem)
def test_notebook_runs_and_prints_what_it_shows(chapter, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    cells = json.loads(BOOKS.notebook_of(chapter).read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), namespace)
            printed = capsys.readouterr().out
            for output in cell["outputs"]:
                assert printed == "".join(output["text"]), cell["id"]


def test_the_readme_shows_what_it_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    shown = 0
    for cell in BOOKS.cells((ROOT / "README.md").read_text(encoding="utf-8")):
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), namespace)
            printed = capsys.readouterr().out
            for output in cell["outputs"]:
                assert printed.strip() == "".join(output["text"]).strip()
                shown += 1
    assert shown == 1  # the source of the gradient


def test_a_block_of_text_right_below_code_is_its_output():
    text = "# A\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nSo.\n\n```python\na = 2\n```\n"
    first, second, third, fourth = BOOKS.cells(text)
    assert [cell["cell_type"] for cell in (first, third)] == ["markdown", "markdown"]
    assert second["outputs"][0]["text"] == ["1\n"]
    assert (fourth["source"], fourth["outputs"]) == (["a = 2"], [])


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


# Examples in docstrings


def documented(module):
    """Return the functions, classes and instances of ours that a public module has, by name."""
    home = importlib.import_module(module)
    found = {name: getattr(home, name) for name in sorted(PUBLIC[module])}
    return {
        name: value
        for name, value in found.items()
        if not inspect.ismodule(value) and value is not typing.Any and not typing.get_origin(value)
    }


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_function_and_class_has_an_example(module):
    found = documented(module)
    assert [name for name, value in found.items() if ">>> " not in (value.__doc__ or "")] == []


def is_found_by_doctest(value):
    """Tell whether pytest finds the docstring: where the function or class was written."""
    home = sys.modules.get(getattr(value, "__module__", None))
    return getattr(home, getattr(value, "__qualname__", ""), None) is value


MADE_BY_FUNCTIONS = {
    f"{module}.{name}": value
    for module in PUBLIC
    for name, value in documented(module).items()
    if not is_found_by_doctest(value) and not is_found_by_doctest(type(value))
}


@pytest.mark.parametrize("name", MADE_BY_FUNCTIONS)
def test_examples_of_what_a_function_made_run(name, capsys):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(MADE_BY_FUNCTIONS[name].__doc__, {}, name, None, 0)
    failed, tried = doctest.DocTestRunner(optionflags=flags).run(test)
    assert tried > 0
    assert not failed, capsys.readouterr().out


EXAMPLES = load(ROOT / "docs" / "extensions" / "examples.py")
ALIASES = {
    f"{module}.{name}": EXAMPLES.alias_docs(module).get(name, "")
    for module in PUBLIC
    for name in PUBLIC[module]
    if typing.get_origin(getattr(importlib.import_module(module), name))
    or getattr(importlib.import_module(module), name) is typing.Any
}


@pytest.mark.parametrize("name", ALIASES)
def test_every_public_alias_has_an_example_that_runs(name, capsys):
    example = EXAMPLES.example_of(ALIASES[name])
    test = doctest.DocTestParser().get_doctest(example, {}, name, None, 0)
    failed, tried = doctest.DocTestRunner().run(test)
    assert tried > 0
    assert not failed, capsys.readouterr().out


def test_the_example_of_a_docstring_ends_with_its_section():
    doc = "One.\n\nExamples\n--------\n>>> 1\n1\n\n>>> 2\n2\n\nNotes\n-----\nMore."
    assert EXAMPLES.example_of(doc) == ">>> 1\n1\n\n>>> 2\n2"
    assert EXAMPLES.example_of("One.") == ""


def test_a_class_with_two_homes_has_an_example_to_show_at_both():
    assert ">>> " in EXAMPLES.example_of(fg.CheckpointManager.__doc__)


# Links


def links_in(text):
    """Return the files that the prose of a text links to."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    prose = re.sub(r"`[^`\n]+`", "", prose)  # in code, f[0](x) is no link
    found = re.findall(r"\]\(([^)#]+)[^)]*\)", prose)
    return [target for target in found if "://" not in target]


def links(page):
    """Return the paths that the prose of a page links to."""
    return [page.parent / target for target in links_in(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_files_lead_somewhere(page):
    for target in links(page):
        assert target.exists(), target


@pytest.mark.parametrize("chapter", BOOKS.CHAPTERS, ids=lambda chapter: chapter.stem)
def test_links_of_notebooks_lead_somewhere(chapter):
    notebook = BOOKS.notebook_of(chapter)
    prose = [c for c in BOOKS.cells(chapter.read_text("utf-8")) if c["cell_type"] == "markdown"]
    targets = links_in("\n".join("".join(cell["source"]) for cell in prose))
    assert targets
    for target in targets:
        assert (notebook.parent / target).exists(), target


def test_every_page_can_be_reached_from_the_index():
    seen, waiting = set(), [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        waiting += links(page)
    assert {page.resolve() for page in PAGES} <= seen
