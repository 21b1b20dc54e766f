"""Peak memory of a step, per device, from the life spans of its buffers.

Of two changes at one instant the release comes first, as an executor frees inputs before it starts the next op. A
buffer that lives for 0 ns needs no memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, NamedTuple

Place = Literal["device", "host"]


class Buffer(NamedTuple):
    """Bytes in one memory of a device from `start_ns` to `end_ns`: its own memory, or "host", the host memory beside
    it.
    """

    device: str
    place: Place
    start_ns: int
    end_ns: int
    size_bytes: int


class Usage(NamedTuple):
    """From `time_ns` until the next entry, `in_use_bytes` are in use."""

    time_ns: int
    in_use_bytes: int


def courses(buffers: Iterable[Buffer]) -> dict[tuple[str, Place], list[Usage]]:
    """Bytes in use over time for every memory that has a buffer: an entry per change, times ascending."""
    changes: dict[tuple[str, Place], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for device, place, start_ns, end_ns, size_bytes in buffers:
        if end_ns > start_ns and size_bytes:
            change = changes[device, place]
            change[start_ns] += size_bytes
            change[end_ns] -= size_bytes
    return {memory: _course(change) for memory, change in sorted(changes.items())}


def _course(change: dict[int, int]) -> list[Usage]:
    course, in_use = [], 0
    for time_ns in sorted(change):
        in_use += change[time_ns]
        course.append(Usage(time_ns, in_use))
    return course


def peaks(buffers: Iterable[Buffer]) -> dict[tuple[str, Place], int]:
    """The most bytes in use at any instant, for every memory that has a buffer."""
    return {memory: max(usage.in_use_bytes for usage in course) for memory, course in courses(buffers).items()}
