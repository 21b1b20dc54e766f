"""Where the figures of a step come from: sources of times with their intervals, what was assumed, what was noted.

fitted       120 runs   2.1 ms, four of five times from 1.9 to 2.4 ms     follow from measurements of this model
links         12 runs   0.4 ms                                            bytes by the rate of the slowest link
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ....devices.timing import Timeline
from ....devices.timing.events import UNKNOWN_NS
from ....devices.timing.totals import grouped_totals
from ....errors import PartitaError
from ....graph.arrays import Flags
from .page_data import Document

_MEANINGS = {
    "measured": "measured: the times of a trace of a real step",
    "fitted": "fitted to measurements on this model of device",
    "transferred": "fitted to measurements of another element type or device, and scaled",
    "roofline": "operations and bytes by the rates of the device; nothing was measured",
    "grappler": "what TensorFlow's own estimator says",
    "assumed": "constants that nobody measured on this device",
    "guessed": "no cost is stated for the op: its tensors moved once",
    "free": "takes no time by definition",
    "simulated": "read from a trace that a simulation wrote, and that does not say what its times rest on",
    "links": "bytes by the rates that the links of the route leave",
    "collectives": "steps of an algorithm over links, or a measured curve",
}
_OTHER = "as the source of costs of that name says"
_MOST_ASSUMPTIONS = 500


class StepInterval(NamedTuple):
    """Between which times four of five steps take, in ns; None with the reason where nobody says."""

    bounds_ns: tuple[int, int] | None
    why_none: str


def interval_of(timeline: Timeline) -> StepInterval:
    """The interval of the makespan."""
    try:
        return StepInterval(timeline.interval_ns(), "")
    except PartitaError as error:
        return StepInterval(None, error.message)


def source_records(timeline: Timeline) -> list[Document]:
    """Runs, time, and bounds of it, by the source of the time: those of ops first, most runs first."""
    columns = timeline.columns
    computing = columns.of_kind("compute") & (columns.duration_ns > 0)
    records = [_source(timeline, name, computing & columns.provenance.is_text(name)) for name in timeline.sources]
    for name, chosen in (("links", columns.of_kind("copy")), ("collectives", columns.of_kind("collective"))):
        taking_time = chosen & (columns.duration_ns > 0)
        if taking_time.any():
            records.append(_source(timeline, name, taking_time))
    return records


def _source(timeline: Timeline, source: str, chosen: Flags) -> Document:
    columns, many = timeline.columns, timeline.representatives.multiplicity
    runs, group = columns.runs[chosen], np.zeros(int(chosen.sum()), np.int64)
    time_ns, low_ns, high_ns = (
        many * grouped_totals(column[chosen], runs, group, 1)[0]
        for column in (columns.duration_ns, columns.low_ns, columns.high_ns)
    )
    is_known = bool((columns.low_ns[chosen] != UNKNOWN_NS).all() and (columns.high_ns[chosen] != UNKNOWN_NS).all())
    return {
        "source": source,
        "runs": many * int(runs.sum()),
        "time_ns": time_ns,
        "low_ns": low_ns if is_known else None,
        "high_ns": high_ns if is_known else None,
        "meaning": _MEANINGS.get(source, _OTHER),
    }


def assumption_records(timeline: Timeline) -> list[Document]:
    """The first assumptions one by one, and how many more there are."""
    return list(_assumptions(timeline))


def _assumptions(timeline: Timeline) -> Iterator[Document]:
    for assumption in timeline.assumed[:_MOST_ASSUMPTIONS]:
        yield {"node": assumption.node, "what": assumption.what, "value": str(assumption.value)}
    more = len(timeline.assumed) - _MOST_ASSUMPTIONS
    if more > 0:
        yield {"node": f"... and {more:,} more", "what": "", "value": ""}
