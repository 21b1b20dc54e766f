"""The settings of the documentation site: `make docs` builds it from this folder, with every warning as an error.

The pages are plain Markdown, which a git host shows as well. What only the site has is made by the modules of
`docs/extensions` when a build begins, in `docs/_generated`: the reference of public names, and a page for every source
file that a page links to.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "extensions"), str(DOCS.parent / "tools")]

project = "Partita"
copyright = "the authors of Partita, Apache-2.0"  # noqa: A001  # the name that Sphinx reads
version = release = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "known_names", "room_pages", "source_pages"]
exclude_patterns = ["example_package", "extensions"]
html_theme = "furo"
html_title = f"Partita {version}"
html_show_sphinx = False

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
toc_object_entries = False  # each name has a heading; with its members the list of contents is too long to read
