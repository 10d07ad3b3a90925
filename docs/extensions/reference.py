"""The reference: a page for each public module, written from the docstrings, and links to it.

``reference.md`` lists every public name with a line on it. From it and from ``__all__`` come the
pages below ``api/``, which exist only in a build. Code in backticks that names something of
funcgrad's (``fg.vmap``), of NumPy's or of SciPy's (``np.where``) becomes a link, on every page.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from examples import alias_docs, example_of, indented

logger = logging.getLogger(__name__)

# How modules are called in examples, and where the pages are of those that are not ours.
SHORT = {"fg": "funcgrad", "fnp": "funcgrad.numpy", "np": "numpy"}
ELSEWHERE = {
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
}
LISTED = re.compile(r"- `(\w+)`[^:]*: ((?:.|\n  )*)")


def sections(text: str) -> dict[str, str]:
    """Return the parts of the list of all names, by the module that heads them."""
    parts = (part.partition("\n") for part in re.split(r"^## ", text, flags=re.M)[1:])
    return {module: body.strip() for module, _, body in parts}


def page(module: str, body: str) -> str:
    """Return the page of a module: what it is for, its names in a line each, then all of them."""
    text = [f"# {module}\n\n```{{py:module}} {module}\n```\n", body.replace("](", "](../")]
    inner = importlib.import_module(module)
    for name, line in LISTED.findall(body):
        found = getattr(inner, name)
        if not inspect.ismodule(found):
            text.append(f"\n## {name}\n\n```{{eval-rst}}\n{entry(module, name, found, line)}\n```")
    return "\n".join(text) + "\n"


def entry(module: str, name: str, found: Any, line: str) -> str:
    """Return the directive that writes one name out."""
    full, inner = f"{module}.{name}", importlib.import_module(module)
    if inspect.isroutine(found):
        return f".. autofunction:: {full}"
    if inspect.isclass(found) and found is not Any:
        home = found.__module__.rpartition(".")[0]
        if home != module and name in getattr(importlib.import_module(home), "__all__", ()):
            same = f"The same as `{home}.{name}`."
            return f".. py:class:: {name}\n\n{indented(same, example_of(found.__doc__ or ''))}"
        options = [":members:"]
        if any(base.__name__ in inner.__all__ for base in found.__bases__):
            options.append(":show-inheritance:")  # from another one of the page
        if getattr(vars(found).get("__call__"), "__doc__", None):
            options.append(":special-members: __call__")
        return "\n   ".join([f".. autoclass:: {full}", *options])
    if type(found).__module__.startswith("funcgrad"):  # one of ours, such as a distribution
        methods = ", ".join(f"``{name}``" for name in dir(type(found)) if name[0] != "_")
        listed = f"\n\n   Methods: {methods}." if methods else ""
        return f".. autodata:: {full}\n   :no-value:{listed}"
    # A name for a type.
    example = example_of(alias_docs(module).get(name, ""))
    return f".. py:data:: {name}\n\n{indented(inspect.cleandoc(line), example)}"


def write_pages(app: Sphinx) -> None:
    """Write the pages, those only that have changed, so that a second build is quick."""
    listed = (Path(app.srcdir) / "reference.md").read_text(encoding="utf-8")
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for module, body in sections(listed).items():
        path, text = folder / f"{module}.md", page(module, body)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


@cache
def is_elsewhere(name: str) -> bool:
    """Tell whether NumPy or SciPy has a function or class of this full name, and a page for it."""
    module, _, last = name.rpartition(".")
    if name.partition(".")[0] not in ELSEWHERE or not module:
        return False
    try:
        found = getattr(importlib.import_module(module), last, None)
    except ImportError:
        return False
    return callable(found) or last in ("r_", "c_")


def address(name: str) -> str:
    """Return where NumPy's or SciPy's page on a name is."""
    return ELSEWHERE[name.partition(".")[0]].format(name)


class LinkCode(SphinxPostTransform):
    """Make links of the code in a page that names a public function or class."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Do it."""
        page, _, module = self.env.docname.partition("api/")
        for node in list(self.document.findall()):
            if page in LISTS and isinstance(node, nodes.title):
                module = node.astext()  # whose names the section lists
            if isinstance(node, nodes.literal) and isinstance(node.parent, PROSE):
                for name in meanings(node, module):
                    link = self.link(node, name)
                    if link is not None:
                        node.replace_self(link)
                        break

    def link(self, node: nodes.literal, name: str) -> nodes.reference | None:
        """Return a link around a piece of code, or None if nothing known has this full name."""
        found = self.env.domains.python_domain.objects.get(name)
        if found is not None:
            assert self.app.builder is not None
            page, anchor = found.docname, found.node_id
            inner = node.deepcopy()
            return make_refnode(self.app.builder, self.env.docname, page, anchor, inner)
        if is_elsewhere(name):
            return nodes.reference("", "", node.deepcopy(), refuri=address(name), internal=False)
        return None


# The pages that have a list of names below the name of each module, and where code is in prose.
LISTS = ("reference", "support")
PROSE = (nodes.paragraph, nodes.term, nodes.emphasis, nodes.strong)


def meanings(node: nodes.literal, module: str) -> Iterator[str]:
    """Yield the full names that a piece of code may stand for, the likeliest first."""
    text = re.sub(r"\(.*\)$", "", node.astext())
    if not re.fullmatch(r"\w+(\.\w+)*", text):
        return
    first, dot, rest = text.partition(".")
    above = node.parent.parent
    if isinstance(above, nodes.entry) or (
        isinstance(above, nodes.list_item) and node.parent.index(node) == 0
    ):
        yield from (f"funcgrad.{module}.{text}", f"{module}.{text}", f"{module}.{first}")
    if dot:
        yield f"{SHORT.get(first, first)}.{rest}"


def resolve(app: Sphinx, env: Any, node: Any, contents: Any) -> Any:
    """Lead a reference in a docstring, such as `vmap`, `fg.save` or `numpy.sum`, to what it names.

    Sphinx has looked in the module and the class of the docstring before.
    """
    target = node.get("reftarget", "")
    first, dot, rest = target.partition(".")
    name = f"{SHORT.get(first, first)}{dot}{rest}"
    if node.get("refdomain") != "py":
        return None
    for full in (name, f"funcgrad.{target}"):
        found = env.domains.python_domain.objects.get(full)
        if found is not None and (dot or found.objtype != "module"):  # `data` is a parameter
            assert app.builder is not None
            return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, contents)
    if is_elsewhere(name):
        return nodes.reference("", "", contents, refuri=address(name), internal=False)
    return None


def skip(app: Sphinx, what: str, name: str, found: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples that say only that they are fields."""
    return True if (inspect.getdoc(found) or "").startswith("Alias for field") else None


def check_complete(app: Sphinx, env: Any) -> None:
    """Warn of listed names that have no entry on the site."""
    listed = (Path(app.srcdir) / "reference.md").read_text(encoding="utf-8")
    there = env.domains.python_domain.objects
    for module, body in sections(listed).items():
        for name, _ in LISTED.findall(body):
            found = getattr(importlib.import_module(module), name)
            if not inspect.ismodule(found) and f"{module}.{name}" not in there:
                logger.warning("%s.%s has no entry in the reference", module, name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx what there is here."""
    app.connect("builder-inited", write_pages)
    app.connect("env-check-consistency", check_complete)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-skip-member", skip)
    app.add_post_transform(LinkCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
