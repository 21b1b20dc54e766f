"""The timetable of a schedule when all stages take equally long and transfers take no time: its bubbles as text.

shape = PipelineShape(devices=2, interleave=1, microbatches=3)
timetable = Timetable(find_schedule("1f1b").calls(shape), shape)

timetable.text()                                  a column per forward; backwards take two
    device 0  F0 F1 .. .. B0 == F2 B1 == B2 ==
    device 1  .. F0 B0 == F1 B1 == F2 B2 == ..    stages of one device are told apart by letters: F0a, F0b

timetable.bubble()                                the part of the time in which a device waits: 1/4
timetable.most_kept(0)                            activations of how many micro-batches device 0 keeps at most: 2
"""

from __future__ import annotations

from fractions import Fraction
from string import ascii_lowercase

from .schedules import CallOrder, PipelineShape, StageCall, needed_calls, started


class Timetable:
    """When each call starts; the unit of time is a forward call of one stage, a backward call takes `backward`."""

    def __init__(self, calls: CallOrder, shape: PipelineShape, backward: int = 2) -> None:
        """`calls` come from `Schedule.calls`."""
        self.calls = calls
        self.shape = shape
        self.backward = backward
        self.starts: dict[StageCall, int] = {}
        free = [0] * len(calls)
        device_of = {call: device for device, ordered in enumerate(calls) for call in ordered}
        for call in started(calls, shape.stages)[0]:
            device = device_of[call]
            ready = max((self.end(needed) for needed in needed_calls(call, shape.stages)), default=0)
            self.starts[call] = max(free[device], ready)
            free[device] = self.end(call)
        self.makespan = max(free)

    def duration(self, call: StageCall) -> int:
        """How long a call takes."""
        return 1 if call.is_forward else self.backward

    def end(self, call: StageCall) -> int:
        """When a call ends."""
        return self.starts[call] + self.duration(call)

    def bubble(self) -> Fraction:
        """The part of the time in which the devices wait, 0 to 1.

        For `gpipe` and `1f1b`, and for `interleaved` with v stages per device, (p - 1) / (v m + p - 1) for p devices
        and m micro-batches (Narayanan et al., 2021, section 2.2).
        """
        busy = sum(self.duration(call) for ordered in self.calls for call in ordered)
        return 1 - Fraction(busy, self.makespan * len(self.calls))

    def most_kept(self, device: int) -> int:
        """The most micro-batches whose activations a device keeps at a time, counted per stage."""
        kept = most = 0
        for call in self.calls[device]:
            kept += 1 if call.is_forward else -1
            most = max(most, kept)
        return most

    def text(self) -> str:
        """A line per device, a column per unit of time: ".." waits, "==" goes on with the call before."""
        label = self._labels()
        width = max(map(len, label.values()))
        lines = []
        for device, ordered in enumerate(self.calls):
            cells = ["." * width] * self.makespan
            for call in ordered:
                start = self.starts[call]
                cells[start : self.end(call)] = [label[call].ljust(width), *["=" * width] * (self.duration(call) - 1)]
            lines.append(" ".join([f"device {device} ", *cells]).rstrip())
        return "\n".join(lines)

    def _labels(self) -> dict[StageCall, str]:
        devices, several = self.shape.devices, self.shape.interleave > 1
        return {
            call: f"{'F' if call.is_forward else 'B'}{call.microbatch}"
            + (ascii_lowercase[call.stage // devices % len(ascii_lowercase)] if several else "")
            for call in self.starts
        }
