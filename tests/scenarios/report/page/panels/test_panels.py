"""The panels of a page: blocks that its script knows, in one order, with the words that the figures call for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.export.run_metadata import run_metadata
from partita.devices.timing.tracing.recorded_timeline import recorded_timeline
from partita.scenarios.report.page.panels import panels
from partita.scenarios.report.page.plan_page import TRAINING, plans_record
from partita.scenarios.report.page.step_page import common_document
from partita.scenarios.report.page.table_page import TableColumn, table_page
from tests.devices.timing.saved.drawn import timelines
from tests.devices.timing.saved.examples import EXAMPLES
from tests.scenarios.report.page.panels.blocks_of import step_panels, tables, text_of, within

SCRIPT = Path(__file__).parents[5] / "scenarios" / "report" / "page" / "script"
ORDER = ["headline", "comparison", "timeline", "path", "memory", "links", "ops", "cluster", "origin"]
ELEMENTS = {"section", "h2", "h3", "p", "div", "dl", "dt", "dd", "ol", "ul", "li", "span", "strong", "small", "bdi"}
FOLDED = {"details", "summary"}
MADE = {"table", "figure", "curves", "legend", "ops", "timeline", "sweep-chart"}


@given(timelines(), timelines())
def test_panels_are_of_blocks_that_the_script_knows(timeline: Timeline, other: Timeline) -> None:
    """Whatever the names: tags and attributes are ours, texts are children or cells, and rows fit their columns."""
    found = step_panels(timeline, other)
    assert list(found) == [name for name in ORDER if name in found]
    for panel in found.values():
        assert json.loads(json.dumps(panel)) is not None
        assert {block[0] for block in within(panel)} <= ELEMENTS | FOLDED | MADE
        for table in tables(panel).values():
            cells = len(table["columns"]) + (table["run"] is not None)
            assert {len(row) for row in table["rows"]} <= {cells}


@pytest.mark.skipif(not SCRIPT.exists(), reason="the sources of the script are not part of the distribution")
@pytest.mark.parametrize("name", EXAMPLES)
def test_formats_of_tables_are_those_of_the_script(name: str) -> None:
    """Each is a word of the module that shows them."""
    known = set(re.findall(r"\w+", (SCRIPT / "tables.js").read_text("utf-8")))
    found = step_panels(EXAMPLES[name](), EXAMPLES["gpu"]())
    formats = {column[1] for panel in found.values() for table in tables(panel).values() for column in table["columns"]}
    assert formats
    assert formats <= known


def test_a_memory_that_is_too_small_is_said() -> None:
    """In the headline, and above its curve; a step that fits has no such word."""
    found = step_panels(EXAMPLES["out_of_memory"]())
    assert "too little" in text_of(found["headline"])
    assert any("Does not fit" in text_of(block) for block in within(found["memory"]))
    assert "Does not fit" not in json.dumps(list(step_panels(EXAMPLES["gpu"]()).values()))


def test_a_node_becomes_slower_or_faster_appears_or_vanishes() -> None:
    """By its times in the two runs."""

    def event(node: str, end_ns: int) -> TimelineEvent:
        return TimelineEvent("/device:CPU:0", "compute", node, "Neg", "compute", 0, end_ns)

    first = Timeline([event("a", 5), event("b", 5), event("c", 5), event("same", 4)])
    second = Timeline([event("a", 9), event("b", 1), event("d", 5), event("same", 4)])
    shown = tables(step_panels(first, second)["comparison"])["Nodes of both runs"]["rows"]
    became = {row[0]: row[2] for row in shown}
    assert became == {"a": "slower", "b": "faster", "c": "vanished", "d": "appeared"}


def test_what_a_run_lacks_has_no_panel_and_a_reason() -> None:
    """The trace of a step has no causes, no memory, no links, and no cluster."""
    found = step_panels(recorded_timeline(run_metadata(EXAMPLES["gpu"]())))
    assert list(found) == ["headline", "timeline", "ops", "origin"]
    assert "Not on this page" in text_of(found["headline"])


def test_a_table_with_numbers_has_a_chart() -> None:
    """One of a single row has none."""
    columns = [TableColumn("gpus", "GPUs"), TableColumn("ns", "step time", "ns")]
    for rows, count in (([(1, 9), (2, 5)], 1), ([(1, 9)], 0)):
        (panel,) = panels(table_page("sweep", columns, rows, axes=["gpus"], values=["ns"]).document)
        assert sum(block[0] == "sweep-chart" for block in within(panel)) == count
        assert tables(panel)["All rows"]["columns"] == [["GPUs", "figure"], ["step time (ns)", "figure"]]


def test_bars_of_plans_are_on_one_scale() -> None:
    """Parts have one order in all rows, and the longest bar fills its cell."""
    record = plans_record(TRAINING, [], limit_gib=80.0)
    record["rows"] = [
        {"cells": {}, "time": [{"name": "products", "ms": 2.0}], "memory": [], "run": None},
        {
            "cells": {},
            "time": [{"name": "waiting", "ms": 1.0}, {"name": "products", "ms": 3.0}],
            "memory": [],
            "run": None,
        },
    ]
    record["columns"] = []
    (panel,) = panels({**common_document("plan", "plans"), "plans": record})
    bars = [row[1] for row in tables(panel)["Table of plans"]["rows"]]
    assert [bar["parts"] for bar in bars] == [[2.0, 0], [3.0, 1.0]]
    assert {bar["most"] for bar in bars} == {4.0}
