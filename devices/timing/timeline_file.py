"""A timeline <-> a `.timeline` file, which keeps everything: `Timeline.save` and `Timeline.load`.

    step.timeline, a zip
        document.json    format, warnings, cluster, links, texts; which array is which column, and how it is coded
        device.npy       a column of the events; memory_... are those of buffers, link_... of what links carried

What is read may come from anybody. Nothing in it is executed, sizes are checked before memory is taken, and numbers
that point somewhere before they are used.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ...errors import DataLossError, InvalidArgumentError, NotFoundError, PartitaError
from ...graph.parallel.mesh.mesh import Mesh
from ..cluster_document import cluster_from_document, cluster_to_document
from ..documents import from_document, to_document
from ..tables import naming
from .memory.kinds import MemoryPlace
from .representatives.ranks import Ranks, StandsFor
from .saved.archive import MOST_BYTES, archive_bytes, read_archive
from .saved.clock_columns import AllRunsDocument, clock_columns, read_clock
from .saved.coding import TextNumbers, damaged
from .saved.columns import TEXTS, EventsDocument, event_columns, read_events
from .saved.link_columns import LinksDocument, link_columns, read_links
from .saved.memory_columns import MemoryDocument, memory_columns, read_memory
from .saved.whole_file import write_whole
from .session_timeline import SessionTimeline, StepSpan
from .timeline import Assumption, Timeline
from .tracing.coverage import Coverage

if TYPE_CHECKING:
    from ..cluster import Cluster
    from .events import Events
    from .link_use import LinkUse
    from .saved.archive import Column

SUFFIX = ".timeline"
_FORMAT = 1


@frozen
class _StandsForDocument:
    """The representatives of a step: the mesh as text, and the numbers of their devices."""

    mesh: str
    used: tuple[int, ...]


@frozen
class _SessionDocument:
    """What the timeline of a session has beyond that of a step."""

    steps: tuple[StepSpan, ...]
    now_ns: int


@frozen
class _TimelineDocument:
    """The JSON of a file. A value of `assumed` that is a tuple is a list."""

    format: int
    count: int
    events: EventsDocument
    all_runs: AllRunsDocument | None
    warnings: tuple[str, ...]
    assumed: list[Any]
    peak_bytes: tuple[tuple[str, MemoryPlace, int], ...]
    memory: MemoryDocument | None
    dependency_bound_ns: int
    cluster: Any
    links: LinksDocument
    trace_coverage: Coverage | None
    stands_for: _StandsForDocument | None
    session: _SessionDocument | None


def write_timeline(timeline: Timeline, path: str | Path) -> None:
    """Writes the file, whole or not at all; raises as `Timeline.save`."""
    if Path(path).suffix != SUFFIX:
        raise InvalidArgumentError(f"{str(path)!r} must end in {SUFFIX}: name the file such as 'step{SUFFIX}'")
    write_whole(path, timeline_bytes(timeline))


def timeline_bytes(timeline: Timeline) -> bytes:
    """The content of the file: the same for the same timeline."""
    texts = {name: TextNumbers() for name in TEXTS}
    events, arrays = event_columns(timeline.columns, texts=texts)
    buffers, cluster = timeline.buffers, timeline.cluster
    unknown = _not_in(cluster, timeline.columns)
    if unknown or (buffers is not None and cluster is None):
        raise InvalidArgumentError(
            f"{', '.join(unknown) or 'buffers'} of the timeline are on no device of its cluster; give the right cluster"
        )
    memory = None
    if buffers is not None:
        memory, of_memory = memory_columns(buffers, texts)
        arrays |= of_memory
    links, of_links = link_columns(timeline.links, timeline.link_loads)
    all_runs = None
    if timeline.columns.all_runs is not None:
        all_runs, of_clock = clock_columns(timeline.columns.all_runs, timeline.columns.start_ns)
        arrays |= of_clock
    document = {
        "format": _FORMAT,
        "count": len(timeline.columns),
        "events": {**events, "texts": {name: numbers.texts for name, numbers in texts.items()}},
        "all_runs": all_runs,
        "warnings": list(timeline.warnings),
        "assumed": [_jsonable(tuple(assumption)) for assumption in timeline.assumed],
        "peak_bytes": [] if memory else [[*key, size] for key, size in timeline.peak_bytes.items()],
        "memory": memory,
        "dependency_bound_ns": timeline.dependency_bound_ns,
        "cluster": None if cluster is None else cluster_to_document(cluster),
        "links": links,
        "trace_coverage": to_document(timeline.trace_coverage),
        "stands_for": _stands_for(timeline.representatives),
        "session": _session(timeline),
    }
    return archive_bytes(document, {**arrays, **of_links})


def _jsonable(value: object) -> object:
    """The value of an assumption as JSON has it, tuples as lists."""
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    raise InvalidArgumentError(
        f"{value!r} in an assumption cannot be saved; assume texts, numbers, None, and tuples of them"
    )


def _value(value: object) -> object:
    return tuple(map(_value, value)) if isinstance(value, list) else value


def _stands_for(stands_for: StandsFor) -> object:
    return to_document(_StandsForDocument(stands_for.mesh, stands_for.numbers)) if stands_for else None


def _session(timeline: Timeline) -> object:
    if not isinstance(timeline, SessionTimeline):
        return None
    return to_document(_SessionDocument(timeline.steps, timeline.makespan_ns))


def read_timeline(path: str | Path) -> Timeline:
    """Reads a file; raises as `Timeline.load`."""
    file = Path(path)
    try:
        size = file.stat().st_size
        content = file.read_bytes() if size <= MOST_BYTES else b""
    except OSError as error:
        raise NotFoundError(f"{str(file)!r} cannot be read: {error.strerror}; check the path") from None
    if not content:
        raise DataLossError(f"{str(file)!r} has {size:,} bytes, as no timeline has; save it anew")
    return timeline_from(content, repr(str(file)))


def timeline_from(content: bytes, where: str) -> Timeline:
    """The timeline of the content of a file, which errors call `where`."""
    document, arrays = read_archive(content, where)
    if document.get("format") != _FORMAT:
        raise InvalidArgumentError(
            f"{where} has format {str(document.get('format'))[:40]}, and this version of Partita reads {_FORMAT}; "
            "open it with the version that wrote it, or save the timeline anew"
        )
    try:
        with naming(where, InvalidArgumentError):
            read = from_document(document, _TimelineDocument, "document.json")
            return _timeline(read, arrays, where)
    except RecursionError:
        raise damaged(where, "its spans of the clock are in each other without end") from None


def _timeline(read: _TimelineDocument, arrays: dict[str, Column], where: str) -> Timeline:
    events = read_events(read.events, arrays, read.count, where)
    if read.all_runs is not None:
        events.all_runs = read_clock(read.all_runs, arrays, events.start_ns, where)
    cluster = None if read.cluster is None else _read_cluster(read.cluster)
    unknown = _not_in(cluster, events)
    if unknown:
        raise damaged(where, f"{unknown[0]!r} is no device of its cluster")
    if read.session is not None:
        return _read_session(read.session, read, events, cluster, read_links(read.links, arrays, where), where)
    memory = None
    if read.memory is not None:
        if cluster is None:
            raise damaged(where, "it has buffers and no cluster")
        memory = read_memory(read.memory, arrays, read.events.texts, cluster, where)
    return Timeline(
        events,
        warnings=read.warnings,
        assumed=_read_assumed(read.assumed, where),
        peak_bytes={(device, place): size for device, place, size in read.peak_bytes},
        memory=memory,
        dependency_bound_ns=read.dependency_bound_ns,
        cluster=cluster,
        link_use=read_links(read.links, arrays, where),
        trace_coverage=read.trace_coverage,
        representatives=_read_stands_for(read.stands_for, cluster, events, where),
    )


def _read_cluster(document: object) -> Cluster:
    with naming("its cluster", PartitaError):
        return cluster_from_document(document, "document.json")


def _not_in(cluster: Cluster | None, events: Events) -> list[str]:
    """The devices of events that a cluster does not have."""
    return [] if cluster is None else [name for name in events.device.first_seen() if name not in cluster.numbers]


def _read_session(
    session: _SessionDocument,
    read: _TimelineDocument,
    events: Events,
    cluster: Cluster | None,
    link_use: LinkUse,
    where: str,
) -> SessionTimeline:
    timeline = SessionTimeline(
        events,
        session.steps,
        session.now_ns,
        warnings=read.warnings,
        assumed=_read_assumed(read.assumed, where),
        dependency_bound_ns=read.dependency_bound_ns,
        cluster=cluster,
        link_use=link_use,
    )
    if session.now_ns < int(events.end_ns.max()):
        raise damaged(where, "its session has events in the future")
    return timeline


def _read_assumed(rows: list[Any], where: str) -> list[Assumption]:
    assumed = []
    for row in rows:
        if not isinstance(row, list) or len(row) != len(Assumption._fields):
            raise damaged(where, "an assumption is no list of a node, what is assumed, and a value")
        node, what, value = row
        if not isinstance(node, str) or not isinstance(what, str):
            raise damaged(where, "an assumption is of no node")
        assumed.append(Assumption(node, what, _value(value)))
    return assumed


def _read_stands_for(
    document: _StandsForDocument | None, cluster: Cluster | None, events: Events, where: str
) -> StandsFor | None:
    if document is None:
        return None
    if cluster is None:
        raise damaged(where, "it has devices that stand for others, and no cluster")
    ranks = Ranks(Mesh.parse(document.mesh), cluster)
    stages = ranks.stage_of if ranks.mesh.devices <= ranks.available else {}
    used = {cluster.numbers[name] for name in events.device.first_seen()}
    if not set(document.used) <= stages.keys() or not used <= set(document.used):
        raise damaged(where, f"its devices do not stand for those of mesh {document.mesh[:40]!r} on its cluster")
    return StandsFor(ranks, document.used)
