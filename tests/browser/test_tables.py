"""The table of ops is sorted, searched and grouped; a row leads to its event in the timeline."""

from __future__ import annotations

import re
from collections import Counter

from partita.devices.units import format_ns
from tests.browser.reading import column, rows, table
from tests.browser.reports import Reports
from tests.browser.visits import Visits


def test_a_column_sorts(visits: Visits, reports: Reports) -> None:
    """Figures descend at first, texts ascend; again, the other way round; the head says which way."""
    page = visits.open(reports.step)
    ops = table(page, "Table of ops")
    ops.get_by_role("button", name=re.compile("^Runs")).click()
    runs = [int(text) for text in column(page, "Table of ops", 1)]
    assert runs == sorted(runs, reverse=True)
    assert ops.get_by_role("columnheader", name=re.compile("^Runs")).get_attribute("aria-sort") == "descending"
    ops.get_by_role("button", name=re.compile(r"^Op\b(?!erations)")).click()
    names = column(page, "Table of ops", 0)
    assert names == sorted(names)
    ops.get_by_role("button", name=re.compile(r"^Op\b(?!erations)")).click()
    assert column(page, "Table of ops", 0) == names[::-1]


def test_a_search_leaves_what_matches(visits: Visits, reports: Reports) -> None:
    """In upper case or lower; what matches nothing leaves nothing, and the page says how many rows match."""
    page = visits.open(reports.step)
    count = len(rows(page, "Table of ops"))
    field = page.get_by_role("searchbox", name="Search: Table of ops")
    field.fill("MATM")
    page.get_by_text(f"1 of {count} rows match").wait_for()
    assert column(page, "Table of ops", 0) == ["MatMul"]
    field.fill("no such op")
    page.get_by_text(f"0 of {count} rows match").wait_for()
    assert column(page, "Table of ops", 0) == []


def test_nodes_have_their_times(visits: Visits, reports: Reports) -> None:
    """Grouped by node each has its own sum; pressing it selects its event."""
    times: Counter[str] = Counter()
    for event in reports.timeline.events:
        if event.occupies:
            times[event.node] += event.duration_ns * event.runs
    page = visits.open(reports.step)
    page.get_by_label("Rows are").select_option("nodes")
    assert {row[0]: row[4] for row in rows(page, "Table of nodes")} == {
        node: format_ns(time) for node, time in times.items()
    }
    table(page, "Table of nodes").get_by_role("button", name="layer2/product", exact=True).click()
    page.get_by_role("region", name="Selected event").get_by_role("heading", name="layer2/product").wait_for()
    page.wait_for_url(re.compile("node=layer2%2Fproduct"))


def test_name_scopes_open(visits: Visits, reports: Reports) -> None:
    """A scope has the sum of its nodes; opened, it shows them."""
    time = sum(
        event.duration_ns * event.runs
        for event in reports.timeline.events
        if event.occupies and event.node.startswith("layer2/")
    )
    page = visits.open(reports.step)
    page.get_by_label("Rows are").select_option("name scopes")
    before = {name.lstrip("▸▾ \n"): row for name, *row in rows(page, "Table of name scopes")}
    assert before["layer2/"][1] == format_ns(time)
    assert "layer2/product" not in before
    scopes = table(page, "Table of name scopes")
    scopes.locator("button[aria-expanded=false][aria-label='layer2/']").click()
    scopes.get_by_role("button", name="layer2/product", exact=True).wait_for()
