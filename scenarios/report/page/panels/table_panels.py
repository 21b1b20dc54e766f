"""The table of plans, with time and memory by category as bars; that of a sweep, below its chart."""

from __future__ import annotations

from collections.abc import Sequence

from ..page_data import Document
from .blocks import PageBlock, element, lead, remark, section, table

_BARS = (("time", "ms", "Time", "ms"), ("memory", "gib", "Memory", "GiB"))
"""what of a plan has categories, their key, and the title and the unit of the column"""


def plans_panel(plans: Document, runs: Sequence[Document]) -> PageBlock:
    """A row for each plan, in the order of their ranks."""
    rows, columns = plans["rows"], plans["columns"]
    bars = [bar for bar in _BARS if any(row[bar[0]] for row in rows)]
    cells: list[list[object]] = [[place] for place in range(1, len(rows) + 1)]
    for key, field, _, unit in bars:
        for cell, bar in zip(cells, _stacked(rows, key, field, unit), strict=True):
            cell.append(bar)
    for cell, row in zip(cells, rows, strict=True):
        cell += [row["cells"].get(column["key"]) for column in columns]
        if runs:
            cell.append(None if row["run"] is None else f"timeline of {runs[row['run']]['name']}")
    titles = [
        ("Rank", "count"),
        *((f"{title} by category", "stack") for _, _, title, _ in bars),
        *map(_column, columns),
        *([("Simulated", "link")] if runs else []),
    ]
    limit = plans["limit_gib"]
    legends = [
        element("div", element("strong", title), ["legend", {"of": _categories(rows, key)}], class_="legends")
        for key, _, title, _ in bars
    ]
    return section(
        "plans",
        "Plans",
        *legends,
        table("Table of plans", titles, cells, search=True),
        remark(f"A device has {limit:,.4g} GiB.") if limit else None,
        element("h3", "The first plan, and what was searched") if plans["explanation"] else None,
        *map(lead, plans["explanation"]),
    )


def _column(column: Document) -> tuple[str, str]:
    title = f"{column['title']} ({column['unit']})" if column["unit"] else column["title"]
    return title, "figure" if column["numeric"] else "name"


def _categories(rows: Sequence[Document], key: str) -> list[str]:
    return list(dict.fromkeys(part["name"] for row in rows for part in row[key]))


def _stacked(rows: Sequence[Document], key: str, field: str, unit: str) -> list[Document]:
    """Of each row its parts in one order, how long the longest bar of all is, and the same in words."""
    names = _categories(rows, key)
    parts = [{part["name"]: part[field] for part in row[key]} for row in rows]
    most = max((sum(each.values()) for each in parts), default=0) or 1
    return [
        {
            "value": sum(each.values()),
            "most": most,
            "parts": [each.get(name, 0) for name in names],
            "words": ", ".join(f"{name} {value:,.4g} {unit}" for name, value in each.items() if value),
            "sum": f"{sum(each.values()):,.4g} {unit}",
        }
        for each in parts
    ]


def table_panel(found: Document) -> PageBlock:
    """All rows, below a chart where there is something to draw."""
    is_drawn = found["axes"] and found["values"] and len(found["rows"]) > 1
    shown = table("All rows", map(_column, found["columns"]), found["rows"], search=True, part=50)
    return section("table", "Table", ["sweep-chart", {}] if is_drawn else None, shown)
