"""What a trace for Perfetto says, read with Perfetto's own messages and by the rules of its trace processor.

ImportError where there are none, or where protobuf is too old for them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any

import google.protobuf

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.export import perfetto_trace
from partita.devices.timing.export.arrows import arrows_of
from partita.devices.timing.export.counters import counters_of

if tuple(map(int, google.protobuf.__version__.split(".")[:2])) < (6, 31):
    raise ImportError("the messages of the package perfetto need protobuf 6.31 or later")
messages = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

Arguments = dict[str, Any]  # as deep as what is told


@dataclass
class Event:
    """A slice, or an instant, whose end is its start."""

    path: tuple[str, ...]
    name: str
    category: str
    start_ns: int
    end_ns: int
    arguments: Arguments


@dataclass
class Trace:
    """Tracks by uuid, with the path of names from the outermost; events in order of start; arrows between events."""

    paths: dict[int, tuple[str, ...]] = field(default_factory=dict)
    kinds: dict[int, Any] = field(default_factory=dict)  # the descriptor of each track
    events: list[Event] = field(default_factory=list)
    arrows: list[tuple[Event, Event]] = field(default_factory=list)
    counters: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))


class _Reader:
    """Reads packets one after the other."""

    def __init__(self) -> None:
        self.trace = Trace()
        self._texts: dict[str, dict[int, str]] = {}
        self._open: dict[int, Event] = {}
        self._flows: dict[int, Event] = {}
        self._now_ns = 0

    def packet(self, packet: Any) -> None:
        assert packet.trusted_packet_sequence_id == 1
        if packet.HasField("track_descriptor"):
            self._track(packet.track_descriptor)
        if packet.HasField("interned_data"):
            assert packet.sequence_flags == messages.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            for kind, entries in packet.interned_data.ListFields():
                texts = {entry.iid: entry.name if hasattr(entry, "name") else entry.str.decode() for entry in entries}
                assert len(set(texts.values())) == len(texts) == len(entries)
                self._texts[kind.name] = texts
        if packet.HasField("track_event"):
            assert packet.sequence_flags == messages.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            assert packet.HasField("timestamp")
            assert packet.timestamp >= self._now_ns
            self._now_ns = packet.timestamp
            self._event(packet.track_event)

    def _track(self, track: Any) -> None:
        assert track.uuid not in self.trace.paths
        above = self.trace.paths[track.parent_uuid] if track.parent_uuid else ()
        assert track.HasField("process") == (not above)
        self.trace.paths[track.uuid] = (*above, track.name)
        self.trace.kinds[track.uuid] = track

    def _event(self, event: Any) -> None:
        path = self.trace.paths[event.track_uuid]
        if event.type == event.TYPE_COUNTER:
            value = getattr(event, event.WhichOneof("counter_value_field"))
            self.trace.counters[event.track_uuid].append((self._now_ns, value))
            return
        if event.type == event.TYPE_SLICE_END:
            self._open.pop(event.track_uuid).end_ns = self._now_ns
            return
        categories = [self._texts["event_categories"][iid] for iid in event.category_iids]
        name, arguments = self._texts["event_names"][event.name_iid], self._arguments(event.debug_annotations)
        read = Event(path, name, "".join(categories), self._now_ns, self._now_ns, arguments)
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in self._open  # of one lane no two overlap
            self._open[event.track_uuid] = read
        else:
            assert event.type == event.TYPE_INSTANT
        self.trace.events.append(read)
        for flow in (*event.flow_ids, *event.terminating_flow_ids):
            if flow in self._flows:
                self.trace.arrows.append((self._flows[flow], read))
            self._flows[flow] = read
        for flow in event.terminating_flow_ids:
            del self._flows[flow]

    def _arguments(self, annotations: Any) -> Arguments:
        return {self._texts["debug_annotation_names"][it.name_iid]: self._value(it) for it in annotations}

    def _value(self, annotation: Any) -> Any:
        match annotation.WhichOneof("value"):
            case "string_value_iid":
                return self._texts["debug_annotation_string_values"][annotation.string_value_iid]
            case None:
                values = [self._value(value) for value in annotation.array_values]
                return values or self._arguments(annotation.dict_entries)
            case kind:
                return getattr(annotation, kind)

    def done(self) -> Trace:
        assert not self._open
        assert not self._flows
        return self.trace


def read(data: bytes) -> Trace:
    """The trace; every rule of the format that is broken fails."""
    reader = _Reader()
    for packet in messages.Trace.FromString(data).packet:
        reader.packet(packet)
    return reader.done()


def _device_of(path: tuple[str, ...]) -> str:
    return "".join(path[:-1]) if path[0].startswith("/job:") else path[1]


def _expected(event: TimelineEvent) -> tuple[object, ...]:
    told: Arguments = {"op": event.op, "bytes": event.bytes, "flops": event.flops, "provenance": event.provenance}
    if event.duration_ns and event.low_ns is not None:
        told |= {"low_ns": event.low_ns, "high_ns": event.high_ns}
    told |= {"iteration": event.iteration} if event.iteration else {}
    told |= {"runs": event.runs} if event.runs > 1 else {}
    told |= {"step": event.step} if event.step else {}
    texts = {key: str(value) if isinstance(value, int) else value for key, value in told.items()}
    names = event.device, event.stream, event.node
    return (
        *map(_valid, names),
        event.kind,
        event.start_ns,
        event.end_ns,
        tuple((key, _valid(text)) for key, text in texts.items()),
    )


def _valid(text: str) -> str:
    """As UTF-8 has it: half of a surrogate pair is a question mark."""
    return text.encode("utf-8", "replace").decode()


def _found(event: Event) -> tuple[object, ...]:
    texts = tuple((key, str(value)) for key, value in event.arguments.items())
    device, stream = _device_of(event.path), event.path[-1]
    return device, stream, event.name, event.category, event.start_ns, event.end_ns, texts


def assert_found_again(timeline: Timeline) -> Trace:
    """Every event, arrow and counter of a timeline is in its trace, and nothing else."""
    data = perfetto_trace(timeline)
    assert data == perfetto_trace(timeline)
    trace = read(data)
    about, *events = trace.events
    assert (about.path, about.name, about.start_ns) == (trace.paths[1], "step", 0)
    assert about.arguments["makespan_ns"] == timeline.makespan_ns
    assert about.arguments["warnings"] == (list(timeline.warnings) or {})
    assert sorted(map(_found, events), key=str) == sorted(map(_expected, timeline.events), key=str)
    _assert_arrows(timeline, trace)
    _assert_counters(timeline, trace)
    return trace


def _assert_arrows(timeline: Timeline, trace: Trace) -> None:
    expected = []
    for arrow in arrows_of(timeline.columns):
        stops = [number for number in (arrow.source, arrow.through, arrow.target) if number >= 0]
        expected += [tuple(map(_expected, (timeline.events[a], timeline.events[b]))) for a, b in pairwise(stops)]
    assert sorted(expected, key=str) == sorted((tuple(map(_found, ends)) for ends in trace.arrows), key=str)


def _assert_counters(timeline: Timeline, trace: Trace) -> None:
    found = {}
    for uuid, values in trace.counters.items():
        path, descriptor = trace.paths[uuid], trace.kinds[uuid].counter
        is_link = path[0] == "links"
        unit = descriptor.unit_name or {descriptor.UNIT_SIZE_BYTES: "bytes"}[descriptor.unit]
        found[None if is_link else _device_of(path), path[-1], unit] = values
    expected = {
        (counter.device, counter.name, counter.unit): list(
            zip(counter.at_ns.tolist(), counter.values.tolist(), strict=True)
        )
        for counter in counters_of(timeline)
    }
    assert found == expected
