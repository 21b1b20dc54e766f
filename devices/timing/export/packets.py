"""The packets of a trace for Perfetto, filled in one by one and written in batches.

packets = Packets()
event = packets.event(7529)                    what happens at 7529 ns, to be filled in
event.type = TrackEvent.TYPE_INSTANT
packets.serialised()                           all of them; what follows each other in bytes is one trace
"""

from __future__ import annotations

from ....graph.protos import InternedData, PerfettoTrace, TracePacket, TrackDescriptor, TrackEvent

_SEQUENCE = 1  # all packets are of one sequence, for which numbers of texts hold
_BEGINS_SEQUENCE, _NEEDS_TEXTS = 1, 2  # flags of a packet
_BATCH = 1024  # packets that are objects at a time: a million of them would take more memory than the timeline


class Packets:
    """Packets in the order in which they are added."""

    def __init__(self) -> None:
        self._trace = PerfettoTrace()
        self._written: list[bytes] = []

    def track(self, descriptor: TrackDescriptor) -> None:
        """Adds a track."""
        self._packet().track_descriptor.CopyFrom(descriptor)

    def texts(self, interned: InternedData) -> None:
        """Adds the texts that all packets after it refer to."""
        packet = self._packet()
        packet.sequence_flags = _BEGINS_SEQUENCE
        packet.interned_data.CopyFrom(interned)

    def event(self, time_ns: int) -> TrackEvent:
        """Adds what happens at an instant, which the caller fills in."""
        packet = self._packet()
        packet.timestamp = time_ns
        packet.sequence_flags = _NEEDS_TEXTS
        return packet.track_event

    def _packet(self) -> TracePacket:
        if len(self._trace.packet) == _BATCH:
            self._write()
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _write(self) -> None:
        self._written.append(self._trace.SerializeToString(deterministic=True))
        self._trace = PerfettoTrace()

    def serialised(self) -> bytes:
        """All packets as bytes."""
        self._write()
        return b"".join(self._written)
