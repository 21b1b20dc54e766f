"""The script of the report page: what is built is what the sources say, and they keep to what the page allows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parents[4]
TOOL = CHECKOUT / "tools" / "build_page.py"
PAGE = CHECKOUT / "scenarios" / "report" / "page"
BUILT = PAGE / "built"
SOURCES = sorted((PAGE / "script").glob("*.js"))
MAX_TIMELINE, MAX_LINES, MAX_FILE_LINES = 1400, 1775, 200
BESIDE = {"charts", "curves", "ops", "sweep_chart", "tables"}
"""modules that the timeline does without"""
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", re.DOTALL)
SVG_NAMESPACE = "http://www.w3.org/2000/svg"
FORBIDDEN = re.compile(r"\beval\b|innerHTML|outerHTML|insertAdjacentHTML|document\.write|new Function|https?:")

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="tools are not part of the distribution")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The module of the build tool."""
    spec = importlib.util.spec_from_file_location("build_page", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_built_files_are_those_of_the_sources(tool: ModuleType, name: str) -> None:
    """If not: python tools/build_page.py."""
    content = (BUILT / name).read_text(encoding="utf-8")
    assert content.startswith(tool.head())
    assert len(content) > len(tool.head()) + 1000


def test_a_changed_source_changes_the_hash(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does a new one, and one of another name."""
    monkeypatch.setattr(tool, "PAGE", tmp_path)
    for name in ("script", "style"):
        (tmp_path / name).mkdir()
    hashes = [tool.source_hash()]
    for name, content in [("script/a.js", "1"), ("script/a.js", "2"), ("script/b.js", ""), ("style/a.css", "2")]:
        (tmp_path / name).write_text(content)
        hashes.append(tool.source_hash())
    assert len(set(hashes)) == len(hashes)


def test_the_page_carries_the_licence_of_what_it_holds() -> None:
    """uPlot is MIT, whose text has to come along."""
    text = (BUILT / "LICENCES.txt").read_text(encoding="utf-8")
    assert "uPlot" in text
    assert "Permission is hereby granted, free of charge" in text


def test_the_script_stays_small() -> None:
    """A reader gets through all of it, and through the timeline with what it stands on; a file is one idea."""
    lines = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert sum(lines.values()) <= MAX_LINES, lines
    assert sum(count for name, count in lines.items() if name not in BESIDE) <= MAX_TIMELINE, lines
    assert lines.keys() >= BESIDE
    assert max(lines.values()) <= MAX_FILE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_source_makes_no_markup_no_code_and_no_request(path: Path) -> None:
    """Text becomes text nodes; the one address is the namespace of SVG, which is a name and never fetched."""
    code = COMMENT.sub("", path.read_text(encoding="utf-8")).replace(SVG_NAMESPACE, "")
    assert not FORBIDDEN.findall(code)


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_a_built_file_fits_into_its_element(name: str) -> None:
    """Nothing in it ends the element around it, makes markup, or names an address."""
    content = (BUILT / name).read_text(encoding="utf-8").replace(SVG_NAMESPACE, "")
    assert not re.search(r"</(script|style)|<!--", content, re.IGNORECASE)
    assert not FORBIDDEN.findall(content)
