"""Timeline -> CSV, one row per event, in the order of the events, with units in the header.

Four of five runs of an event take from `low_ns` to `high_ns`. The timeline of a session has the number of the step in a
last column, one whose devices stand for others in `devices` for how many that of the event does.

A text that a spreadsheet would take for a formula has an apostrophe before it: "=1+1" is written as "'=1+1".

Lines end in LF, and the same timeline gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from ....graph.display.spreadsheet import csv_text
from ..events import TimelineEvent
from ..saved.whole_file import write_whole
from ..timeline import Timeline

_LEFT_OUT = {"cause", "iteration", "runs", "step"}
_DEVICES = "devices"
COLUMNS = tuple(name for name in TimelineEvent._fields if name not in _LEFT_OUT)


def csv_rows(timeline: Timeline) -> Iterator[tuple[str | int | None, ...]]:
    """The columns of every event, in order; the bounds are None where nobody knows them."""
    counts = {device: len(others) for device, others in timeline.representatives.items()}
    names = [name for name in _columns(timeline) if name != _DEVICES]
    for event in timeline.events:
        cells = tuple(getattr(event, name) for name in names)
        yield (*cells, counts[event.device]) if counts else cells


def _columns(timeline: Timeline) -> tuple[str, ...]:
    step = () if timeline.columns.step is None else ("step",)
    return (*COLUMNS, *step, *((_DEVICES,) if timeline.representatives else ()))


def to_csv(timeline: Timeline) -> str:
    """The whole table as text, header first."""
    return csv_text(chain([_columns(timeline)], csv_rows(timeline)))


def write_csv(timeline: Timeline, path: str | Path) -> None:
    """Writes the table to a file."""
    write_whole(path, to_csv(timeline).encode("utf-8", "replace"))
