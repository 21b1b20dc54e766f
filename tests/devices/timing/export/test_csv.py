"""Tables of events: what is written is read back, and no text is taken for a formula."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from hypothesis import given

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.export.csv import to_csv

from .drawn import timelines

FORMULAS = "=+-@\t\r\n"


@given(timelines())
def test_events_are_read_back_and_no_cell_is_a_formula(timeline: Timeline) -> None:
    """Any text, with the apostrophe away that keeps a spreadsheet from computing it; numbers are as they are."""
    rows = list(csv.DictReader(StringIO(to_csv(timeline), newline="")))
    for row, event in zip(rows, timeline.events, strict=True):
        assert not any(cell.startswith(tuple(FORMULAS)) for cell in row.values())
        for name in ("device", "stream", "node", "op", "provenance"):
            text = getattr(event, name)
            assert row[name] == (f"'{text}" if text.startswith(tuple(FORMULAS)) else text)
        assert [int(row[name]) for name in ("start_ns", "end_ns", "bytes", "flops")] == [
            *(event.start_ns, event.end_ns, event.bytes, event.flops)
        ]


@pytest.mark.parametrize("begin", FORMULAS)
def test_a_formula_is_a_text(begin: str) -> None:
    """Whatever makes a spreadsheet compute what follows, in every column of texts."""
    name = f'{begin}HYPERLINK("http://example.com")'
    timeline = Timeline([TimelineEvent(name, name, name, name, "compute", 0, 1, provenance=name)])
    (row,) = csv.DictReader(StringIO(to_csv(timeline), newline=""))
    assert [row[column] for column in ("device", "stream", "node", "op", "provenance")] == [f"'{name}"] * 5
