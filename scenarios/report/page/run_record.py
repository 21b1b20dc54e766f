"""One timeline for its page: the document of a run, the arrays that it names, and what the run has no data for."""

from __future__ import annotations

from typing import NamedTuple

from ....devices.timing import Timeline
from ....devices.timing.costs.classes import op_class
from ....devices.timing.saved.archive import Column
from ....devices.timing.saved.columns import event_columns
from ..limits import limits
from .cluster_record import cluster_record
from .device_record import device_records, lane_records
from .link_record import link_records
from .memory_record import memory_records
from .names import PageNames
from .origin_record import assumption_records, interval_of, source_records
from .page_data import Document, Missing, RunArrays
from .path_record import path_record

MOST_TO_PLAY_AGAIN = 100_000
_NO_BOUND = Missing(
    "dependency bound",
    f"the longest chain of dependencies of more than {MOST_TO_PLAY_AGAIN:,} events takes as long to find as the step; "
    "`partita simulate --json` prints it",
)


class RunRecord(NamedTuple):
    """A run as its page has it."""

    document: Document
    arrays: dict[str, Column]
    missing: list[Missing]


def run_record(timeline: Timeline, name: str, number: int) -> RunRecord:
    """The run of that name, the `number`-th of its page from 0 on."""
    prefix = f"{number}/"
    described, columns = event_columns(timeline.columns, prefix)
    description: Document = described
    names, arrays = PageNames(timeline), RunArrays(prefix, columns)
    memory, no_memory = memory_records(timeline, names, arrays)
    links, no_links = link_records(timeline, names, arrays)
    path, no_path = _path(timeline, names, arrays)
    has_no_bound = len(timeline.columns) > MOST_TO_PLAY_AGAIN
    document = {
        "name": name,
        "makespan_ns": timeline.makespan_ns,
        "events": len(timeline.columns),
        **description,
        "devices": device_records(timeline, names),
        "lanes": lane_records(timeline, names, description["texts"]),
        "op_classes": [op_class(op) for op in description["texts"]["op"]],
        **path,
        "memory": memory,
        "links": links,
        "ops": [total._asdict() for total in timeline.totals_by_op()],
        **_cluster(timeline),
        **_origin(timeline, names),
        "dependency_bound_ns": None if has_no_bound else timeline.dependency_bound_ns,
        "flops": timeline.flops,
        "transferred_bytes": timeline.transferred_bytes,
    }
    missing = [*no_path, *no_memory, *no_links, *_no_cluster(timeline), *((_NO_BOUND,) if has_no_bound else ())]
    return RunRecord(document, arrays.by_name, missing)


def _path(timeline: Timeline, names: PageNames, arrays: RunArrays) -> tuple[Document, list[Missing]]:
    """The critical path and what limits the step: no path where no event has a cause, no limits without a cluster."""
    if timeline.cluster is None and not (timeline.columns.cause >= 0).any():
        why = "no event says what let it start, so nothing tells which events the step waited for"
        return {"critical_path": None, "path": None, "limits": []}, [Missing("critical path", why)]
    found = [] if timeline.cluster is None else limits(timeline, timeline.cluster)
    path = timeline.critical_path_numbers()
    return {
        "critical_path": arrays.add("critical_path", path),
        "path": path_record(timeline, names, path),
        "limits": [{"what": what, "ns": ns} for what, ns in found],
    }, []


def _cluster(timeline: Timeline) -> Document:
    return {"cluster": None if timeline.cluster is None else cluster_record(timeline.cluster)}


def _no_cluster(timeline: Timeline) -> list[Missing]:
    why = "the file names devices, and not the machines that they are in"
    return [Missing("cluster", why)] if timeline.cluster is None else []


def _origin(timeline: Timeline, names: PageNames) -> Document:
    interval = interval_of(timeline)
    return {
        "sources": source_records(timeline),
        "basis": timeline.basis,
        "interval": None if interval.bounds_ns is None else list(interval.bounds_ns),
        "interval_why": names.short(interval.why_none),
        "assumed": assumption_records(timeline),
        "warnings": [names.short(warning) for warning in timeline.warnings],
        "mesh": timeline.representatives.mesh or None,
        "trace": None if timeline.trace_coverage is None else timeline.trace_coverage.text(),
    }
