"""HTML for notebooks: small elements, tables and folds, with every text escaped and no script, style sheet or link.

    element("b", "a < b")              <b>a &lt; b</b>         a text becomes text
    element("p", element("b", "x"))    <p><b>x</b></p>         an element stays one
    notebook_output("A", table(...))   at most 200 kB, parts that have no room are left out, and that is said

Colours are those of the notebook, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .visible import shortened, visible

MOST_BYTES = 200_000
"""what a notebook is given of one thing"""
_ROWS = 40  # of a table
_ROOM = 400  # bytes for what is said of parts that are left out


class Html(str):
    """What is HTML already; any other text is escaped where it is put into an element."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Its bytes in UTF-8."""
        return len(self.encode())


def element(tag: str, *children: str, style: str = "", **attributes: str) -> Html:
    """An element with texts and elements in it; an attribute of "" has no value, as `open` of `details`."""
    given = {**({"style": style} if style else {}), **attributes}
    head = "".join(f' {name}="{escape(value)}"' if value else f" {name}" for name, value in given.items())
    return Html(f"<{tag}{head}>{''.join(map(_content, children))}</{tag}>")


def _content(child: str) -> str:
    return child if isinstance(child, Html) else escape(shortened(visible(child)))


def preformatted(text: str) -> Html:
    """A text whose lines and blanks stay, such as a drawing."""
    lines = "\n".join(escape(shortened(visible(line))) for line in text.split("\n"))
    return Html(f'<pre style="line-height:1.2;overflow-x:auto">{lines}</pre>')


def details(summary: str, *children: str, is_open: bool = False) -> Html:
    """Something that is folded: the summary shows, the rest at a click."""
    attributes = {"open": ""} if is_open else {}
    return element("details", element("summary", summary), *children, style="margin-left:1em", **attributes)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, most: int = _ROWS) -> Html:
    """A table; the first `left` columns are texts, the others numbers. Of a long one the first rows."""
    sides = ["text-align:left" if column < left else "text-align:right" for column in range(len(headings))]

    def row(tag: str, cells: Sequence[str]) -> Html:
        return element("tr", *(element(tag, cell, style=side) for cell, side in zip(cells, sides, strict=True)))

    head, body = element("thead", row("th", headings)), element("tbody", *(row("td", cells) for cells in rows[:most]))
    whole = element("table", head, body)
    return whole if len(rows) <= most else Html(whole + element("p", f"... and {len(rows) - most:,} more"))


def lines(texts: Iterable[str]) -> Html:
    """Sentences below each other."""
    return Html("".join(element("div", text) for text in texts))


def notebook_output(title: str, *parts: Html, most: int = MOST_BYTES) -> str:
    """What `_repr_html_` returns: a title and parts, as many of them as there is room for."""
    chosen, left_out = [element("b", title)], 0
    room = most - _ROOM - chosen[0].size
    for part in parts:
        if part.size <= room:
            chosen.append(part)
            room -= part.size
        else:
            left_out += 1
    if left_out:
        chosen.append(element("p", f"{left_out} more parts are too large for a notebook; print() or files show all"))
    return element("div", *chosen)
