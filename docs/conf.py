"""How Sphinx builds the site: ``python -m sphinx -W docs docs/build`` (with the extra ``docs``).

The pages are Markdown that reads well without a build. Two small extensions make a site of them:
`extensions/navigation.py` takes the side bar from the lists of links in `index.md`, and
`extensions/reference.py` writes a page for each public module from the docstrings.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "extensions")]

import funcgrad  # noqa: E402

project = "funcgrad"
author = copyright = "The funcgrad authors"
version = release = funcgrad.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx.ext.viewcode",
    "navigation",
    "reference",
]
exclude_patterns = ["build", "extensions", "notebooks", "static"]

# Markdown: headings are targets, as on GitHub, and definition lists are for the glossary.
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

# Docstrings. Types are in their Parameters; names in single backticks link to what they name.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
default_role = "py:obj"
add_module_names = False
toc_object_entries = False
highlight_language = "text"

html_theme = "furo"
html_title = f"funcgrad {version}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
