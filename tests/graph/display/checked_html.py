"""What every piece of HTML for notebooks has to be: balanced, without scripts and links, and not too large."""

from __future__ import annotations

from html.parser import HTMLParser

from partita.graph.display.html import MOST_BYTES

TAGS = frozenset(
    ("div", "b", "p", "pre", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "progress")
)
ATTRIBUTES = frozenset({"style", "open", "max", "value"})


class _Reader(HTMLParser):
    """Collects the texts, and fails where an element is not what it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES
        assert not any(value and "url(" in value for _, value in attrs)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """A text."""
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        """A comment, which nothing here writes."""
        raise AssertionError(data)


def checked_texts(html: str) -> str:
    """All texts of a piece of HTML, which must be harmless."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    assert len(html.encode()) <= MOST_BYTES
    text = "".join(reader.texts)
    assert text.replace("\n", "").isprintable()
    return text
