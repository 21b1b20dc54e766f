"""Links of pages to files and folders of the checkout lead, on the site, to pages that show them.

    [the rules](../graph/ops)                  a git host shows the folder; the site a list of its files
    [cnn](../scenarios/stories/cnn.py)         the site shows the text of the file
    [changes](../CHANGELOG.md)                 the site has it as a page

Only what is linked gets a page, in `docs/_generated/source`. The text of the pages stays as it is: targets are
replaced as they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
CHECKOUT = DOCS.parent
FOLDER = DOCS / "_generated" / "source"
LINK = re.compile(r"(?<!!)(\[[^\]\n]*\]\()(?!\w+:)([^)#\s]+)((?:#[^)\s]*)?\))")
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".sh": "bash", ".md": "markdown"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", lambda _: write_pages())
    app.connect("source-read", read_page)
    return {"parallel_read_safe": True}


def write_pages() -> None:
    """Writes the pages of all that is linked to, where they have changed, and removes those of what no longer is."""
    linked = {target for page in site_pages() for target in linked_sources(page)}
    pages = {FOLDER / f"{name_of(target)}.rst": "\n".join(source_page(target)) + "\n" for target in linked}
    for name in PAGES:
        pages[FOLDER / name] = with_targets((CHECKOUT / name).read_text("utf-8"), CHECKOUT / name, FOLDER)
    for path, text in pages.items():
        _write(path, text)
    for path in FOLDER.rglob("*.*"):
        if path.is_file() and path not in pages:
            path.unlink()


@cache
def site_pages() -> list[Path]:
    """The Markdown files that the site is made of."""
    pages = [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in {"_generated", "extensions"}]
    return sorted([*pages, *(CHECKOUT / name for name in PAGES)])


def linked_sources(page: Path) -> Iterator[Path]:
    """The files and folders that a page links to and that are no pages of the site."""
    for _, target, _ in LINK.findall(page.read_text("utf-8")):
        path = _resolved(page, target)
        if path.exists() and path not in site_pages():
            yield path


def source_page(path: Path) -> Iterator[str]:
    """The page of one file or folder, in reStructuredText."""
    name = path.relative_to(CHECKOUT).as_posix()
    yield from (":orphan:", "", name, "=" * len(name), "")
    if path.is_dir():
        yield from (f"- ``{file}``" for file in files_of(path))
        return
    yield f".. literalinclude:: {os.path.relpath(path, (FOLDER / f'{name_of(path)}.rst').parent)}"
    yield f"   :language: {LANGUAGES.get(path.suffix, 'text')}"


def files_of(folder: Path) -> list[str]:
    """The files of a folder and its folders, by their path in it."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(folder).as_posix() for path in files)


def name_of(path: Path) -> str:
    """The path of a source below the folder of its pages; a folder is the index of what is in it."""
    name = path.relative_to(CHECKOUT).as_posix()
    return f"{name}/index" if path.is_dir() else name


def read_page(app: Sphinx, name: str, text: list[str]) -> None:
    """The hook of Sphinx: replaces the targets in the text of a page that was not made here."""
    page = Path(app.env.doc2path(name))
    if page in site_pages():
        text[0] = with_targets(text[0], page, page.parent)


def with_targets(text: str, written_in: Path, shown_in: Path) -> str:
    """A text whose links lead to pages of the site; they are relative to the folder of the page that shows it."""

    def replaced(match: re.Match[str]) -> str:
        path = _resolved(written_in, match[2])
        if path in site_pages():
            page = FOLDER / path.name if path.parent == CHECKOUT else path
        elif path.exists():
            page = FOLDER / f"{name_of(path)}.rst"
        else:
            return match[0]
        return f"{match[1]}{os.path.relpath(page, shown_in)}{match[3]}"

    return LINK.sub(replaced, text)


def _resolved(page: Path, target: str) -> Path:
    return (page.parent / target).resolve()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
