"""The tracks of a trace for Perfetto: what is shown below what, and in which order.

    /job:worker                       a process, with an instant that tells about the step
      /replica:0/task:0
        /device:GPU:0                 its description has the model
          compute                     a track for each lane of a stream; Perfetto shows those of one name as one
          launch
          device memory               counters
          device memory: parameters
    links                             a process, with a counter for each link

Tracks are numbered from 1 in this order, parents first. The names of a device's track and of those above it make the
device's name; a device without a job is in the process "devices".
"""

from __future__ import annotations

from ....graph.device_name import find_full_name
from ....graph.protos import TrackDescriptor
from ....graph.protos.perfetto_pb2 import CounterDescriptor, ProcessDescriptor
from ..timeline import Timeline
from .counters import Counter
from .utf8 import valid

FIRST_PROCESS = 1
"""the track of the process that has the first device"""
_NO_JOB = "devices"
_LINKS = "links"


class Tracks:
    """The tracks of one trace, each made when it is first asked for; `descriptors` has them in order."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._numbers: dict[tuple[str, ...], int] = {}
        self._children: dict[int, int] = {}
        self.descriptors: list[TrackDescriptor] = []

    def device(self, name: str) -> int:
        """The track of a device."""
        levels, parent = _levels(name), 0
        for depth, level in enumerate(levels[:-1], 1):
            parent = self._track(levels[:depth], level, parent)
        return self._track(levels, levels[-1], parent, TrackDescriptor(description=valid(self._description(name))))

    def lane(self, device: str, stream: str, lane: int) -> int:
        """The track of one lane of a stream."""
        return self._track((device, "stream", stream, str(lane)), stream, self.device(device))

    def counter(self, counter: Counter) -> int:
        """The track of a counter."""
        parent = self._track((_LINKS,), _LINKS, 0) if counter.device is None else self.device(counter.device)
        unit = CounterDescriptor(unit_name=counter.unit)
        if counter.unit == "bytes":
            unit = CounterDescriptor(unit=CounterDescriptor.UNIT_SIZE_BYTES)
        key = counter.device or "", "counter", counter.name
        return self._track(key, counter.name, parent, TrackDescriptor(counter=unit))

    def _track(self, key: tuple[str, ...], name: str, parent: int, more: TrackDescriptor | None = None) -> int:
        """The number of the track with a key; a new one is the last below its parent. Without a parent: a process."""
        if key not in self._numbers:
            number = self._numbers[key] = len(self._numbers) + 1
            rank = self._children[parent] = self._children.get(parent, 0) + 1
            track = TrackDescriptor(uuid=number, parent_uuid=parent, name=valid(name), sibling_order_rank=rank)
            track.child_ordering = TrackDescriptor.EXPLICIT
            if not parent:
                track.process.CopyFrom(ProcessDescriptor(pid=number, process_name=track.name))
            if more is not None:
                track.MergeFrom(more)
            self.descriptors.append(track)
        return self._numbers[key]

    def _description(self, device: str) -> str:
        others = len(self._timeline.representatives.get(device, ()))
        stands_for = f"stands for {others} devices" if others else ""
        return ", ".join(filter(None, (device, self._timeline.models.get(device), stands_for)))


def _levels(device: str) -> tuple[str, ...]:
    """A device's name in parts, the outermost first: job, task and device, as far as it has them."""
    parsed = find_full_name(device)
    if parsed is None or parsed.job is None or parsed.type is None or str(parsed) != device:
        return _NO_JOB, device
    job = f"/job:{parsed.job}"
    task = parsed.task_name().removeprefix(job)
    return tuple(part for part in (job, task, device.removeprefix(f"{job}{task}")) if part)
