"""The side bar is what the landing page links to.

``index.md`` has a heading for each part and below it a list of links, which reads well on its own.
Here each such list becomes a hidden toctree with the heading for its caption, so that a page has
to be entered once only. Links to pages out of ``docs/`` lead to what takes their place on the
site, or nowhere; those to other files, such as scripts, become downloads.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r"\]\(([^)#:]+\.md)[^)]*\)")

# Where pages of the repository are on the site.
OUTSIDE = {"../README.md": "index.md", "../CHANGELOG.md": "changelog.md"}

# The pages that `reference.py` writes.
GENERATED = """
```{toctree}
:hidden:
:titlesonly:
:glob:

api/*
```
"""


def toctrees(text: str) -> str:
    """Return a toctree for each part of the landing page that has links in a list."""
    made = []
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        caption, _, body = part.partition("\n")
        items = "\n".join(re.findall(r"^- (?:.|\n  )*", body, flags=re.M))
        pages = [page for page in LINK.findall(items) if not page.startswith("..")]
        if pages:
            options = f":hidden:\n:titlesonly:\n:caption: {caption}\n"
            listed = "\n".join(page.removesuffix(".md") for page in dict.fromkeys(pages))
            made.append(f"```{{toctree}}\n{options}\n{listed}\n```\n")
    return "\n".join(made)


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Change the text of a page before Sphinx parses it."""
    up = "../" * name.count("/")
    for outside, inside in OUTSIDE.items():
        source[0] = source[0].replace(f"]({up}{outside}", f"]({up}{inside}")
    leaving = rf"\[([^\]]+)\]\({re.escape(up)}\.\./(?:[^)]+\.md|[^).]+)\)"
    source[0] = re.sub(leaving, r"\1", source[0])
    if name == "index":
        source[0] += "\n" + toctrees(source[0])
    if name == "reference":
        source[0] += GENERATED
    if name == "changelog":
        source[0] = (Path(app.srcdir).parent / "CHANGELOG.md").read_text(encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what there is here."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
