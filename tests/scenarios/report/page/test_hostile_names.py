"""Texts of a graph are data of the page: they put no markup into it, and come out as they went in."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings, strategies as st

from partita.devices.timing import Timeline, TimelineEvent
from partita.scenarios.report.page.html import page_bytes
from partita.scenarios.report.page.step_page import step_page
from partita.scenarios.report.page.table_page import TableColumn, table_page
from tests.scenarios.report.page.pages import read_page

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe",
    "a" * 10_000,
    "nul\x00",
    "\ud800",
    "\u2028\u2029",
    "=cmd|' /C calc'!A0",
    "",
]


class Markup(HTMLParser):
    """The elements of a page, by the attributes that they have."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.append((tag, sorted(name for name, _ in attrs)))


def elements(content: bytes) -> list[tuple[str, list[str]]]:
    """The elements of an HTML file in order."""
    parser = Markup()
    parser.feed(content.decode("utf-8"))
    parser.close()
    return parser.elements


def timeline_of(text: str) -> Timeline:
    """A timeline that has the text wherever a graph can put one."""
    event = TimelineEvent(text, text, text, text, "compute", 0, 9, provenance=text, iteration=text)
    return Timeline([event, event._replace(start_ns=9, end_ns=12, cause=0)], warnings=[text])


HARMLESS = elements(page_bytes(step_page(timeline_of("a"), title="a")))


@settings(max_examples=8)  # for each of the texts
@given(st.text())
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_markup_and_none_changes(text: str, drawn: str) -> None:
    """In names of devices, streams, nodes, ops, sources, iterations, warnings, runs, in the title and in commands."""
    texts = f"{text}{drawn}"
    timeline = timeline_of(texts)
    page = step_page(
        timeline, title=texts, name=texts, subtitle=texts, command=texts, compare=timeline, compare_name=texts
    )
    content = page_bytes(page)
    assert elements(content) == HARMLESS
    read = read_page(content)
    assert read.events(0) == read.events(1) == timeline.events
    run = read.run()
    assert (read.document["title"], run["name"], run["warnings"]) == (texts, texts, [texts])
    assert (read.document["command"], read.document["subtitle"]) == (texts, texts)
    assert run["devices"][0]["name"] == texts


@given(st.text())
@example("</title><script>")
@example("\u202e\x1b\ud800\n")
def test_the_title_bar_has_printable_letters_alone(title: str) -> None:
    """Escaped; every other one is a sign in its place."""
    text = page_bytes(step_page(timeline_of("a"), title=title)).decode("utf-8")
    (shown,) = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
    assert html.unescape(shown).isprintable()
    assert len(html.unescape(shown)) == len(title)


@pytest.mark.parametrize("text", HOSTILE)
def test_cells_of_a_table_are_data_too(text: str) -> None:
    """Headings and cells."""
    columns = [TableColumn("a", text, text), TableColumn("b", "number")]
    content = page_bytes(table_page(text, columns, [(text, 1)], axes=["a"], values=["b"]))
    assert elements(content) == HARMLESS
    table = read_page(content).document["table"]
    assert (table["columns"][0]["title"], table["rows"]) == (text, [[text, 1]])
