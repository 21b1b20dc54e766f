"""No text of a graph, a file or a command becomes anything but a text on a page, and a long one stays in its place."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from partita.scenarios.report.page.report import write_report
from tests.browser.hostile import HACKED, LONG, TEXTS, hostile_timeline
from tests.browser.reading import panel, rows, unfold
from tests.browser.visits import Visits

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOREIGN = "img, iframe, object, embed, base, link, a[href^=javascript], body > svg, [onload], [onerror], [onfocus]"
HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def report(folder: Path, text: str) -> Path:
    """A page of two steps in which every text is that one."""
    path = folder / "hostile.html"
    write_report(
        hostile_timeline(text),
        path,
        compare=hostile_timeline(text, other="other "),
        title=text,
        name=text,
        compare_name=f"{text}!",
        subtitle=text,
        command=f"partita report {text}",
    )
    return path


def open_everything(page: Page) -> None:
    """Opens what is folded, looks at the nodes of the table of ops, and searches."""
    unfold(page)
    page.get_by_label("Rows are").select_option("nodes")
    page.get_by_role("searchbox", name="Search nodes and ops").fill("c")
    page.locator("[aria-label='Next event found']:enabled").click()


def assert_is_harmless(page: Page) -> None:
    """No script but the page's own ran, every element is one that the page made, and nothing turns texts around."""
    assert not page.evaluate(HACKED)
    assert page.locator("script").count() == 2
    assert [element.evaluate("element => element.outerHTML") for element in page.locator(FOREIGN).all()] == []
    assert HIDDEN.findall(page.locator("body").inner_text().replace("\n", "").replace("\t", "")) == []
    assert HIDDEN.findall(page.title()) == []


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_is_only_a_text(visits: Visits, tmp_path: Path, text: str) -> None:
    """It stands on the page as it is written, wherever a graph, a file or a command can put one."""
    page = visits.open(report(tmp_path, text))
    open_everything(page)
    assert_is_harmless(page)
    nodes = [row[0] for row in rows(page, "Table of nodes")]
    assert len(nodes) == 3
    if HIDDEN.search(text) is None and text.strip():
        assert text in page.locator("h1").inner_text()
        assert text in nodes


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_an_address_selects_an_event_of_any_name(visits: Visits, tmp_path: Path, text: str) -> None:
    """`#node=` takes the name as it is, and what else it says does nothing."""
    fragment = f"#node={quote(text + '/c', safe='')}&t=<script>&event=-7"
    page = visits.open(report(tmp_path, text), fragment)
    page.get_by_role("region", name="Selected event").get_by_role("heading").wait_for()
    assert_is_harmless(page)


@pytest.mark.parametrize(
    "fragment",
    [
        "#t=",
        "#t=9-1",
        "#t=0-1e999",
        "#node=%ff%",
        "#node&run=__proto__",
        "#&&=",
        "#event=99&node=x",
        "#t=5-99999999999999999999",
    ],
)
def test_an_address_that_says_nothing_useful_is_passed_over(visits: Visits, tmp_path: Path, fragment: str) -> None:
    """The page opens as without it."""
    page = visits.open(report(tmp_path, "a"), fragment)
    assert panel(page, "In short").is_visible()


@pytest.mark.parametrize("width", [1280, 400])
def test_a_long_name_stays_in_its_place(visits: Visits, tmp_path: Path, width: int) -> None:
    """10,000 letters make no part of the page wider, nor the page three times as long as 10 do."""
    long = visits.open(report(tmp_path, LONG), width=width)
    open_everything(long)
    size = "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    wide, high = long.evaluate(size)
    short = visits.open(report(tmp_path, "w" * 10), width=width)
    open_everything(short)
    _, usual = short.evaluate(size)
    assert wide == width
    assert high < 3 * usual


@pytest.mark.skipif(os.name == "nt", reason="names of files are no bytes there")
def test_a_file_name_of_any_bytes(visits: Visits, tmp_path: Path) -> None:
    """Letters that are no Unicode have a sign in their place."""
    page = visits.open(report(tmp_path, os.fsdecode(b"a\xff\xedb.pb")))
    assert_is_harmless(page)
    assert "b.pb" in page.locator("h1").inner_text()
