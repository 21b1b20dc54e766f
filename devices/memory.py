"""What memory a step needs: buffers with a life span -> bytes in use over time and their peak, per device.

Flows in: buffers, each with the device and the memory (its own or the host's) it lies in, from the start of the op that
makes it to the end of the last op that reads it. Flows out: the peak, or the whole course. Always holds: at one instant
what ends is given back before what begins is taken, as an executor frees inputs before it starts the next op; a buffer
that lives for no time at all needs no memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, NamedTuple

Place = Literal["device", "host"]


class Buffer(NamedTuple):
    """Bytes in one memory of a device from `start_ns` up to `end_ns`; "host" is the host memory beside a GPU's own."""

    device: str
    place: Place
    start_ns: int
    end_ns: int
    size_bytes: int


class Usage(NamedTuple):
    """From `time_ns` on `in_use_bytes` are taken, until the next one."""

    time_ns: int
    in_use_bytes: int


def courses(buffers: Iterable[Buffer]) -> dict[tuple[str, Place], list[Usage]]:
    """Bytes in use over time for every memory that any buffer lies in, one entry an instant, times ascending."""
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
    """The most bytes in use at any instant for every memory that any buffer lies in."""
    return {memory: max(usage.in_use_bytes for usage in course) for memory, course in courses(buffers).items()}
