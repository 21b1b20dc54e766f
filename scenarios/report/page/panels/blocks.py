"""Blocks that a page is built of: an element with its attributes and children, or what the page's script makes.

["p", {"class": "lead"}, "The step takes 54.502 us."]
["table", {"label": "Assumptions", "columns": [["Of", "name"], ...], "rows": [["layer1/product", ...]]}]

Texts are data: the script makes text nodes of them, never markup. A table's columns say how their cells are shown:
"name", "text", "category", "ns", "bytes", "count", "rate", "share", "change", "figure", "link" or "stack".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

PageBlock: TypeAlias = list[Any]  # Any: JSON
"""the tag, the attributes, and the children: texts, blocks, and None for nothing"""
Child: TypeAlias = "str | PageBlock | None"

LONGEST = 200
"""letters of a sentence"""


def element(tag: str, *children: Child, **attributes: object) -> PageBlock:
    """An element; a `_` in the name of an attribute is a "-" there, one at the end is left out."""
    return [tag, {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}, *children]


def section(panel: str, title: str, *children: Child) -> PageBlock:
    """A panel with its heading."""
    heading = element("h2", title, id=f"{panel}-title")
    return element("section", heading, *children, id=panel, class_="panel", aria_labelledby=f"{panel}-title")


def shortened(text: str) -> str:
    """The text, or the beginning and the end of a long one."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 :]}"


def name(text: str) -> PageBlock:
    """A text out of a graph, kept apart from the direction of the text around it."""
    return element("bdi", shortened(text), class_="name")


def lead(*children: Child) -> PageBlock:
    """What a panel says before its figures."""
    return element("p", *children, class_="lead")


def remark(*children: Child) -> PageBlock:
    """What stands below or beside figures."""
    return element("p", *children, class_="muted")


def tile(label: str, text: str, note: str = "", state: str = "") -> PageBlock:
    """A large figure."""
    word = {"warning": "Warning: ", "error": "Problem: "}.get(state, "")
    value = element("dd", name(text), class_="value")
    beside = element("dd", name(note), class_="note") if note else None
    return element("div", element("dt", word, name(label)), value, beside, class_=f"tile {state}".strip())


def figure(how: str, value: float) -> PageBlock:
    """A figure in one of the formats of tables."""
    return ["figure", {"format": how, "value": value}]


def table(
    label: str,
    columns: Iterable[tuple[str, str]],
    rows: Sequence[Sequence[object]],
    *,
    sort: int | None = None,
    search: bool = False,
    nodes: bool = False,
    events_of: int | None = None,
    part: int = 20,
) -> PageBlock:
    """A table whose columns are titles and formats. `sort` is the column that it is sorted by at first, `part` how many
    rows are shown until more are asked for. Pressing a first cell selects the first event of that node with `nodes`,
    and with `events_of` the event of that run whose number is last in the row.
    """
    options: Mapping[str, object] = {"sort": sort, "search": search, "nodes": nodes, "run": events_of, "part": part}
    return ["table", {"label": label, "columns": [list(column) for column in columns], "rows": rows, **options}]


def of_run(run: Mapping[str, Any], runs: Sequence[object], word: str = "of") -> str:
    """ " of NAME" where the page has more than one run."""
    return f" {word} {shortened(run['name'])}" if len(runs) > 1 else ""
