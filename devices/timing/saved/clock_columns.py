"""When events that stand for several runs are under way: `AllRuns` <-> columns and a description in JSON.

The times of the clock are counted from those of the step, from which whole segments differ by one number each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from ...documents import to_document
from ..repeated import AllRuns, RepeatedSpans, StepSpans
from .coding import ColumnDocument, ColumnReader, ColumnWriter, damaged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ....graph.arrays import Numbers
    from .archive import Column

_MOST_NS = 1 << 62  # so that sums of two have 64 bits


@frozen
class AllRunsDocument:
    """The description of an `AllRuns`."""

    columns: dict[str, ColumnDocument]
    spans: tuple[StepSpans, ...]


def clock_columns(runs: AllRuns, start_ns: Numbers) -> tuple[dict[str, object], dict[str, Column]]:
    """The description, and the arrays that it names; `start_ns` is when the events start in the step."""
    writer = ColumnWriter()
    writer.add("clock_start_ns", runs.start_ns, ("start_ns", start_ns))
    writer.add("clock_end_ns", runs.end_ns, ("clock_start_ns", runs.start_ns))
    return {"columns": writer.descriptions, "spans": to_document(runs.spans)}, writer.arrays


def read_clock(document: AllRunsDocument, arrays: Mapping[str, Column], start_ns: Numbers, where: str) -> AllRuns:
    """What a description says; DataLossError, whose text begins with `where`, for what cannot be."""
    reader = ColumnReader(document.columns, arrays, len(start_ns), where)
    reader.set_base("start_ns", start_ns)
    _check(document.spans, where)
    return AllRuns(reader.read("clock_start_ns", 0), reader.read("clock_end_ns", 0), document.spans)


def _check(spans: Iterable[StepSpans], where: str) -> None:
    for span in spans:
        if isinstance(span, RepeatedSpans):
            _check(span.spans, where)
            is_possible = span.runs >= 0
        else:
            is_possible = 0 <= span.from_ns <= span.to_ns <= _MOST_NS
        if not is_possible or span.duration_ns > _MOST_NS:
            raise damaged(where, f"a span of the clock cannot be: {str(span)[:80]}")
