"""The columns of events in a file: `Events` -> arrays and a description in JSON, and back.

    columns    {"device": {"array": "device", "coding": "plain"}, "start_ns": {... "differences"}, ...}
    texts      {"device": ["/job:localhost/.../device:CPU:0"], "node": ["a", "b"], ...}     what numbers of them mean
    kinds      ["compute", "send", ...]                                                     what numbers of "kind" mean

Texts that no event has are left out, and equal ones are one. An unknown bound of a duration is -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from ....errors import InvalidArgumentError
from ..events import KINDS, UNKNOWN_NS, Events, TextColumn
from .coding import ColumnDocument, ColumnReader, ColumnWriter, TextNumbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....graph.arrays import Numbers
    from .archive import Column

TEXTS = ("device", "stream", "node", "op", "provenance", "iteration")
"""the columns of texts"""


def event_columns(
    events: Events, prefix: str = "", texts: Mapping[str, TextNumbers] | None = None
) -> tuple[dict[str, object], dict[str, Column]]:
    """The description of the events, {"columns": ..., "texts": ..., "kinds": ...}, and the arrays that it names.

    `prefix` begins the names of arrays; `texts` has numbers of texts that other columns share. Raises
    InvalidArgumentError for events that end before they start, or whose causes are no events.
    """
    texts = {name: TextNumbers() for name in TEXTS} if texts is None else texts
    _check(events)
    writer, row = ColumnWriter(prefix), np.arange(len(events))
    for name in ("device", "stream"):
        writer.add(name, texts[name].of(_text_column(events, name)))
    writer.add_differences("node", texts["node"].of(events.node))
    writer.add("op", texts["op"].of(events.op))
    writer.add("kind", events.kind.astype(np.int64))
    writer.add_differences("start_ns", events.start_ns)
    writer.add("end_ns", events.end_ns, ("start_ns", events.start_ns))
    writer.add("bytes", events.bytes)
    writer.add("flops", events.flops)
    writer.add("provenance", texts["provenance"].of(events.provenance))
    writer.add("cause", events.cause, ("row", row))
    writer.add("iteration", texts["iteration"].of(events.iteration))
    writer.add("runs", events.runs)
    for name, bounds in (("low_ns", events.low_ns), ("high_ns", events.high_ns)):
        mostly_unknown = 2 * int(np.count_nonzero(bounds == UNKNOWN_NS)) > len(bounds)
        writer.add(name, bounds, None if mostly_unknown else ("duration_ns", events.duration_ns))
    if events.step is not None:
        writer.add("step", events.step)
    described = {name: numbers.texts for name, numbers in texts.items()}
    return {"columns": writer.descriptions, "texts": described, "kinds": list(KINDS)}, writer.arrays


def _text_column(events: Events, name: str) -> TextColumn:
    column = getattr(events, name)
    assert isinstance(column, TextColumn)  # as `name` is one of TEXTS
    return column


def _check(events: Events) -> None:
    """InvalidArgumentError for events that nobody could read again."""
    wrong = np.flatnonzero(events.end_ns < events.start_ns)
    if len(wrong):
        raise InvalidArgumentError(f"event {wrong[0]} ends before it starts; make a timeline whose times go forward")
    if (events.start_ns < 0).any() or (events.runs < 1).any():
        raise InvalidArgumentError("an event starts before 0 ns, or has no run; make a timeline whose events happen")
    if ((events.cause < -1) | (events.cause >= len(events))).any() or has_circle(events.cause):
        raise InvalidArgumentError("the cause of an event is no event before it; name one by its index, or give -1")


def has_circle(causes: Numbers) -> bool:
    """Whether some event is, by way of its causes, a cause of itself.

    One by one: `while cause[event] >= 0: event = cause[event]` for each event. Here each round goes twice as far.
    """
    ahead = np.append(causes, -1).astype(np.int64)  # the last one is where -1 leads
    for _ in range(len(causes).bit_length()):
        ahead = ahead[ahead]
    return bool((ahead >= 0).any())


@frozen
class EventsDocument:
    """The description of events."""

    columns: dict[str, ColumnDocument]
    texts: dict[str, list[str]]
    kinds: list[str]


def read_events(document: EventsDocument, arrays: Mapping[str, Column], length: int, where: str) -> Events:
    """The events of a description; DataLossError, whose text begins with `where`, for what cannot be."""
    reader = ColumnReader(document.columns, arrays, length, where)
    texts = {name: _read_texts(reader, name, document) for name in TEXTS}
    start_ns = reader.read("start_ns", 0)
    end_ns = reader.read("end_ns", 0)
    if (end_ns < start_ns).any():
        raise reader.damaged("events end before they start")
    reader.set_base("duration_ns", end_ns - start_ns)
    cause = reader.read("cause", -1, length)
    if has_circle(cause):
        raise reader.damaged("events are causes of themselves")
    bounds = reader.read("low_ns", UNKNOWN_NS), reader.read("high_ns", UNKNOWN_NS)
    return Events(
        device=texts["device"],
        stream=texts["stream"],
        node=texts["node"],
        op=texts["op"],
        kind=_read_kinds(reader, document.kinds),
        start_ns=start_ns,
        end_ns=end_ns,
        bytes=reader.read("bytes"),
        flops=reader.read("flops"),
        provenance=texts["provenance"],
        cause=cause,
        iteration=texts["iteration"],
        runs=reader.read("runs", 1),
        make_bounds=lambda: bounds,
        step=reader.read("step", 0) if "step" in reader else None,
    )


def _read_texts(reader: ColumnReader, name: str, document: EventsDocument) -> TextColumn:
    texts = document.texts.get(name, [])
    return TextColumn(reader.read(name, 0, len(texts)), lambda: texts)


def _read_kinds(reader: ColumnReader, kinds: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise reader.damaged(f"kind {unknown[0][:40]!r} of events is none of {', '.join(KINDS)}")
    known = np.array([KINDS.index(kind) for kind in kinds], np.uint8)
    return known[reader.read("kind", 0, len(kinds))]
