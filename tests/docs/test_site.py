"""The documentation site has what readers look for: every public name, every page, links that lead somewhere.

`make docs` builds it, with warnings as errors; these tests need neither Sphinx nor a network.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, strategies as st

from partita.scenarios import STORIES
from tests.goldens import assert_file

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_generated" not in path.parts)
ROOT_PAGES = [CHECKOUT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PICTURE_BYTES = 120_000
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r"\]\((?!\w+:)([^)#\s]*)#([^)\s]+)\)")
OUTSIDE = re.compile(r"https?://[^\s)>\"'`]+")


@pytest.fixture(scope="module", autouse=True)
def extensions() -> None:
    """The modules of the site are found as Sphinx finds them."""
    for folder in (DOCS / "extensions", CHECKOUT / "tools"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def extension(name: str) -> ModuleType:
    """A module of `docs/extensions`."""
    return importlib.import_module(name)


def test_every_public_name_has_its_entry() -> None:
    """On the page of its package, with all its members."""
    pages = extension("room_pages")
    packages = pages.make_api_page.PACKAGES
    missing = [
        f"{package}.{name}"
        for package in packages
        for name in pages.make_api_page.public_names(importlib.import_module(package))
        if not re.search(rf"^\.\. (py:|auto)\w+:: ({re.escape(package)}\.)?{name}$", pages.page(package), re.MULTILINE)
    ]
    assert (len(packages), missing) == (7, [])


def described(owner: type) -> Iterator[tuple[str, str | None]]:
    """The public methods and properties of a class by name, inherited ones included, with what they say."""
    for name in extension("room_pages").members(owner):
        value = inspect.getattr_static(owner, name)
        if inspect.isfunction(value) or isinstance(value, property | cached_property | staticmethod | classmethod):
            yield name, inspect.getdoc(value)


def test_every_public_member_has_a_docstring() -> None:
    """Methods and properties of every public class."""
    pages = extension("room_pages")
    values = [
        getattr(importlib.import_module(p), n) for p in pages.make_api_page.PACKAGES for n in pages.public_names(p)
    ]
    owners = [value for value in values if isinstance(value, type) and not pages.is_message(value)]
    members = {(owner.__name__, name): text for owner in owners for name, text in described(owner)}
    assert len(members) > 500
    assert [member for member, text in members.items() if not text] == []


@given(st.lists(st.text("ab*_|`\\:.-<> 1", min_size=1, max_size=30).map(str.strip).filter(bool), max_size=4))
def test_a_docstring_means_what_it_says(words: list[str]) -> None:
    """Characters that mean something in reStructuredText stand for themselves; nothing of the text is lost."""
    core = pytest.importorskip("docutils.core", reason="docutils is not installed: pip install '.[docs]'")
    text = " x ".join(["A", *words, "end."])
    shown = extension("docstrings").restructured(text)
    settings = {"report_level": 1, "halt_level": 1}
    paragraph = core.publish_doctree(shown, settings_overrides=settings).astext()
    plain = re.sub(r"`([^`\s](?:[^`\n]*[^`\s])?)`", r"\1", text)
    assert "".join(paragraph.split()) == "".join(plain.split())


def test_examples_and_tables_of_docstrings_are_shown_as_they_are() -> None:
    """What is indented, or in columns; a name of the reference is a link, other code is code."""
    shown = extension("docstrings").restructured(
        "One `Graph`, `2 * n`.\n\n    a = *b*\n\n    c\n\nname    what *it* is"
    )
    assert shown.splitlines() == [
        r"One \ :py:obj:`Graph <partita.graph.Graph>`\ , \ ``2 * n``\ .",
        "",
        "::",
        "",
        "    a = *b*",
        "",
        "    c",
        "",
        ".. code-block:: text",
        "",
        "    name    what *it* is",
    ]


def test_links_to_sources_lead_to_pages_of_the_site() -> None:
    """Files and folders of the checkout get a page, pages of the root are pages, others stay as they are."""
    sources = extension("source_pages")
    text = "[a](../graph/ops) [b](../errors.py#L3) [c](../CHANGELOG.md) [d](timing.md#x) [e](https://x.org) ![f](a.png)"
    assert sources.with_targets(text, DOCS / "index.md", DOCS) == (
        "[a](_generated/source/graph/ops/index.rst) [b](_generated/source/errors.py.rst#L3) "
        "[c](_generated/source/CHANGELOG.md) [d](timing.md#x) [e](https://x.org) ![f](a.png)"
    )
    linked = {path for page in sources.site_pages() for path in sources.linked_sources(page)}
    assert len(linked) > 40
    assert [path for path in linked if not "\n".join(sources.source_page(path)).strip()] == []


def test_every_page_is_in_one_list_of_contents() -> None:
    """Of the index or of a page below it."""
    blocks = [
        (page, block)
        for page in PAGES
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]
    listed = [
        (page.parent / line).relative_to(DOCS).as_posix()
        for page, block in blocks
        for line in block.splitlines()
        if line and not line.startswith((":", "_generated"))
    ]
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES}
    assert sorted(listed) == sorted(pages - {"index"} - {name for name in pages if name.startswith("example_package")})


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in addresses, as git hosts and the site do it."""
    headings = HEADING.findall(FENCED.sub("", page.read_text("utf-8")))
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_anchors_are_headings() -> None:
    """Every link to a place of a page names a heading of that page."""
    links = [
        (page, target, anchor)
        for page in [*PAGES, *ROOT_PAGES]
        for target, anchor in ANCHOR.findall(FENCED.sub("", page.read_text("utf-8")))
    ]
    wrong = [
        f"{page.name}: {target}#{anchor}"
        for page, target, anchor in links
        if anchor not in anchors(page.parent / target if target else page)
    ]
    assert len(links) > 60
    assert wrong == []


def test_links_outside_are_listed() -> None:
    """Each address that pages link to, with those pages: whoever has a network checks that one list."""
    found: dict[str, set[str]] = {}
    for page in [*PAGES, *ROOT_PAGES]:
        for address in OUTSIDE.findall(FENCED.sub("", page.read_text("utf-8"))):
            found.setdefault(address.rstrip(".,;"), set()).add(page.relative_to(CHECKOUT).as_posix())
    assert found
    assert_file("\n".join(f"{url}  {' '.join(sorted(found[url]))}" for url in sorted(found)), DOCS / "links.txt")


def test_every_story_is_in_the_gallery() -> None:
    """With a picture that is small, and no picture is left over."""
    page = (DOCS / "gallery.md").read_text("utf-8")
    pictures = {path.stem: path.stat().st_size for path in (DOCS / "gallery").iterdir()}
    assert [name for name in STORIES if f"](gallery/{name}.png)" not in page] == []
    assert sorted(pictures) == sorted(STORIES)
    assert [name for name, size in pictures.items() if size > PICTURE_BYTES] == []
