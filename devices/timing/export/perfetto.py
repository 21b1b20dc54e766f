"""Timeline -> a trace for Perfetto (ui.perfetto.dev, trace_processor), in its own format: a sequence of packets.

    track_descriptor {uuid: 4, parent_uuid: 3, name: "compute"}          one for each track of `tracks`
    interned_data {event_names {iid: 1, text: "product"} ...}            every text once; events have their numbers
    timestamp: 7529, track_event {TYPE_SLICE_BEGIN, track_uuid: 4, name_iid: 1, flow_ids: 9, debug_annotations ...}
    timestamp: 11318, track_event {TYPE_SLICE_END, track_uuid: 4}

An event that takes time is a slice, one of 0 ns an instant; one that stands for several runs is a slice of the first.
Arrows are those of `arrows`: all events that have the number of one in `flow_ids` are joined in order, up to that which
has it in `terminating_flow_ids`. An instant at 0 on the first process tells about the step. Packets are in the order of
`moments`; times are nanoseconds from the start of the step. The same timeline gives the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.protos import TrackEvent
from ..events import Events
from ..saved.whole_file import write_whole
from ..timeline import Timeline
from .annotations import Texts
from .arguments import event_arguments, step_arguments
from .arrows import arrows_of
from .counters import counters_of
from .lanes import lanes_of
from .moments import moments_of
from .packets import Packets
from .tracks import FIRST_PROCESS, Tracks

_TIME_BITS = 63  # trace_processor keeps times in 64 bits with a sign


def write_perfetto(timeline: Timeline, path: str | Path) -> None:
    """Writes the trace to a file; raises as `perfetto_trace`."""
    write_whole(path, perfetto_trace(timeline))


def perfetto_trace(timeline: Timeline) -> bytes:
    """The serialised trace; InvalidArgumentError for a time that does not fit into 64 bits."""
    if timeline.makespan_ns.bit_length() > _TIME_BITS:
        raise InvalidArgumentError(
            f"a step of {timeline.makespan_ns} ns does not fit into a trace for Perfetto, whose times have "
            f"{_TIME_BITS} bits; write it as .csv"
        )
    tracks, texts, first, then = Tracks(timeline), Texts(), Packets(), Packets()
    _write_events(timeline, tracks, texts, then)
    # Tracks and texts are known once everything that uses them is written; they come before it.
    for descriptor in tracks.descriptors:
        first.track(descriptor)
    first.texts(texts.interned())
    return first.serialised() + then.serialised()


def _write_events(timeline: Timeline, tracks: Tracks, texts: Texts, packets: Packets) -> None:
    """What has a time, beginning with the instant that tells about the step."""
    counters = counters_of(timeline)
    events = _EventWriter(timeline, tracks, texts)
    counter_tracks = [tracks.counter(counter) for counter in counters]
    events.about_step(packets.event(0), timeline)
    for what, time_ns, number, row in moments_of(timeline.columns, events.hands_on, counters):
        packet = packets.event(time_ns)
        if what == "begin":
            events.begin(packet, number)
        elif what == "end":
            events.end(packet, number)
        else:
            _count(packet, counter_tracks[number], counters[number].values[row].item())


class _EventWriter:
    """Fills in the packets of a timeline's events, with the arrows that go through them."""

    def __init__(self, timeline: Timeline, tracks: Tracks, texts: Texts) -> None:
        self._rows, self._texts = timeline.events, texts
        self._track_of = _tracks_of(timeline.columns, tracks)
        self.hands_on = np.zeros(len(timeline.columns), np.bool_)
        """the events that arrows lead through"""
        self._leaving, self._arriving = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for arrow in arrows_of(timeline.columns):
            flow = arrow.number + 1
            self._leaving[arrow.source].append(flow)
            self._arriving[arrow.target].append(flow)
            if arrow.through >= 0:
                self._leaving[arrow.through].append(flow)
                self.hands_on[arrow.through] = True

    def about_step(self, packet: TrackEvent, timeline: Timeline) -> None:
        """An instant with what is known of the whole step."""
        packet.type, packet.track_uuid = TrackEvent.TYPE_INSTANT, FIRST_PROCESS
        packet.name_iid = self._texts.event("step")
        packet.debug_annotations.extend(self._texts.arguments(step_arguments(timeline)))

    def begin(self, packet: TrackEvent, number: int) -> None:
        """The begin of an event, or the instant at which it happens."""
        row = self._rows[number]
        packet.type = TrackEvent.TYPE_SLICE_BEGIN if row.duration_ns else TrackEvent.TYPE_INSTANT
        packet.track_uuid = self._track_of[number]
        packet.name_iid = self._texts.event(row.node)
        packet.category_iids.append(self._texts.category(row.kind))
        packet.debug_annotations.extend(self._texts.arguments(event_arguments(row)))
        if number in self._leaving:
            packet.flow_ids.extend(self._leaving[number])
        if number in self._arriving:
            packet.terminating_flow_ids.extend(self._arriving[number])

    def end(self, packet: TrackEvent, number: int) -> None:
        """The end of an event that takes time."""
        packet.type, packet.track_uuid = TrackEvent.TYPE_SLICE_END, self._track_of[number]


def _count(packet: TrackEvent, track: int, value: float) -> None:
    """A new value of a counter, which is an integer or not."""
    packet.type, packet.track_uuid = TrackEvent.TYPE_COUNTER, track
    if isinstance(value, int):
        packet.counter_value = value
    else:
        packet.double_counter_value = value


def _tracks_of(events: Events, tracks: Tracks) -> list[int]:
    """The track of each event: device by device, stream by stream, lane by lane."""
    places = np.stack([events.device.numbers, events.stream.numbers, lanes_of(events, events.duration_ns > 0)])
    known, place = np.unique(places, axis=1, return_inverse=True)
    devices, streams = ({text: at for at, text in enumerate(it.first_seen())} for it in (events.device, events.stream))
    names = [(events.device.texts[device], events.stream.texts[stream], lane) for device, stream, lane in known.T]
    in_order = sorted(names, key=lambda name: (devices[name[0]], streams[name[1]], name[2]))
    numbers = {name: tracks.lane(*name) for name in in_order}
    by_place: list[int] = np.array([numbers[name] for name in names])[place.reshape(-1)].tolist()
    return by_place
