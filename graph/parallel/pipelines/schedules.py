"""Schedules of pipelines by name: the order in which each device calls its stages, one call per micro-batch.

A stage is called forwards and backwards once per micro-batch. Stage k is on device k modulo the number of devices; with
`interleave` 1 each device has one stage. A schedule gives the order of each device; the calls that a device has to wait
for follow from the data: forwards of a micro-batch from the first stage to the last, then backwards to the first.

    shape = PipelineShape(devices=2, interleave=1, microbatches=3)
    order_text(find_schedule("1f1b").calls(shape))
        device 0: F0.0 F0.1 B0.0 F0.2 B0.1 B0.2          F0.1: forwards, stage 0, micro-batch 1
        device 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2

A program adds a schedule with `register_schedule`, an installed package by an entry point in its pyproject.toml, whose
value is the `Schedule`; it is loaded when its name is first asked for:

    [project.entry-points."partita.schedules"]
    zero_bubble = "my_package:ZERO_BUBBLE"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .... import entry_points
from ....errors import AlreadyExistsError, InvalidArgumentError
from ...suggestions import suggestion

GROUP = "partita.schedules"
"""the entry points by which installed packages add schedules"""


class PipelineShape(NamedTuple):
    """How many devices there are, how many stages each of them has, and how many micro-batches follow each other."""

    devices: int
    interleave: int
    microbatches: int

    @property
    def stages(self) -> int:
        """The number of stages."""
        return self.devices * self.interleave


class StageCall(NamedTuple):
    """One call of a stage, forwards or backwards, for one micro-batch; both are counted from 0."""

    is_forward: bool
    stage: int
    microbatch: int

    @property
    def name(self) -> str:
        """The name of its node: "forward_s0_m1"."""
        return f"{'forward' if self.is_forward else 'backward'}_s{self.stage}_m{self.microbatch}"

    def __str__(self) -> str:
        return f"{'F' if self.is_forward else 'B'}{self.stage}.{self.microbatch}"


CallOrder = Sequence[Sequence[StageCall]]
"""the calls of each device, in the order of the devices"""


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of calls by device; `summary` describes it in a few words, `order` may raise InvalidArgumentError."""

    name: str
    summary: str
    order: Callable[[PipelineShape], CallOrder]

    def calls(self, shape: PipelineShape) -> CallOrder:
        """The order for a pipeline, checked.

        Raises InvalidArgumentError for an order that lacks a call, has one twice or on a device of another stage, or in
        which devices wait for each other, and what `order` raises.
        """
        calls = self.order(shape)
        _check_complete(self.name, calls, shape)
        _check_ends(self.name, calls, shape)
        return calls


def needed_calls(call: StageCall, stages: int) -> Iterable[StageCall]:
    """The calls whose results a call reads, by the rules of the data alone."""
    if call.is_forward:
        if call.stage:
            yield call._replace(stage=call.stage - 1)
        return
    yield call._replace(is_forward=True)
    if call.stage + 1 < stages:
        yield call._replace(stage=call.stage + 1)


def gpipe(shape: PipelineShape) -> CallOrder:
    """All forwards, then all backwards, the last micro-batch first (Huang et al.: GPipe, 2019, figure 2).

    Every device keeps the activations of all micro-batches.
    """
    micro = range(shape.microbatches)
    return [
        [StageCall(True, s, m) for s in _stages_of(shape, d) for m in micro]
        + [StageCall(False, s, m) for s in reversed(_stages_of(shape, d)) for m in reversed(micro)]
        for d in range(shape.devices)
    ]


def one_forward_one_backward(shape: PipelineShape) -> CallOrder:
    """Forwards until the first backward is due, then both in turn (Narayanan et al.: Megatron-LM, 2021, figure 4).

    Device d keeps the activations of at most `devices - d` micro-batches. InvalidArgumentError if devices have several
    stages.
    """
    if shape.interleave > 1:
        raise InvalidArgumentError(
            f"schedule '1f1b' has one stage per device, interleave is {shape.interleave}; use schedule 'interleaved'"
        )
    forwards = backwards = [[(d, m) for m in range(shape.microbatches)] for d in range(shape.devices)]
    return [_alternating(forwards[d], backwards[d], warm_up=shape.devices - d - 1) for d in range(shape.devices)]


def interleaved(shape: PipelineShape) -> CallOrder:
    """1F1B over several stages per device (Narayanan et al.: Megatron-LM, 2021, section 2.2, and its source).

    As many micro-batches as there are devices go through one stage, then through the device's next one. Raises
    InvalidArgumentError unless the micro-batches are a multiple of the devices.
    """
    p, v, m = shape
    if m % p:
        raise InvalidArgumentError(
            f"schedule 'interleaved' takes micro-batches in groups of the {p} devices, and microbatches is {m}; "
            f"use a multiple of {p}, such as {max(p, m // p * p)} or {(m // p + 1) * p}"
        )
    chunks = [(k % (p * v) // p, k // (p * v) * p + k % p) for k in range(m * v)]
    return [
        _alternating(
            [(chunk * p + d, micro) for chunk, micro in chunks],
            [((v - 1 - chunk) * p + d, micro) for chunk, micro in chunks],
            warm_up=(p - d - 1) * (2 if v > 1 else 1) + (v - 1) * p,
        )
        for d in range(p)
    ]


def _stages_of(shape: PipelineShape, device: int) -> range:
    return range(device, shape.stages, shape.devices)


def _alternating(
    forwards: Sequence[tuple[int, int]], backwards: Sequence[tuple[int, int]], *, warm_up: int
) -> list[StageCall]:
    """`warm_up` forwards, then a forward and a backward in turn, then the backwards that are left."""
    first = min(warm_up, len(forwards))
    calls = [StageCall(True, *place) for place in forwards[:first]]
    for forward, backward in zip(forwards[first:], backwards, strict=False):
        calls += [StageCall(True, *forward), StageCall(False, *backward)]
    return calls + [StageCall(False, *place) for place in backwards[len(forwards) - first :]]


def _check_complete(name: str, calls: CallOrder, shape: PipelineShape) -> None:
    if len(calls) != shape.devices:
        raise InvalidArgumentError(f"schedule {name!r} orders {len(calls)} devices, there are {shape.devices}")
    for device, ordered in enumerate(calls):
        due = {
            StageCall(is_forward, stage, micro)
            for is_forward in (True, False)
            for stage in _stages_of(shape, device)
            for micro in range(shape.microbatches)
        }
        wrong = next((call for call in ordered if call not in due), None)
        if wrong is not None:
            raise InvalidArgumentError(f"schedule {name!r} has the call {wrong} on device {device}, which has no such")
        counts = Counter(ordered)
        twice = next((call for call in ordered if counts[call] > 1), None)
        if twice is not None:
            raise InvalidArgumentError(f"schedule {name!r} has the call {twice} twice")
        if len(counts) < len(due):
            raise InvalidArgumentError(f"schedule {name!r} lacks the call {min(due - set(counts))} on device {device}")


def _check_ends(name: str, calls: CallOrder, shape: PipelineShape) -> None:
    waiting = started(calls, shape.stages)[1]
    if waiting:
        raise InvalidArgumentError(
            f"schedule {name!r} never ends: its devices wait with {', '.join(map(str, waiting))} for calls that come "
            "later on other devices; order forwards of a micro-batch by stage, backwards the other way"
        )


def started(calls: CallOrder, stages: int) -> tuple[list[StageCall], list[StageCall]]:
    """All calls in an order in which they can run, and the calls that devices wait with if they wait for ever."""
    done: dict[StageCall, None] = {}
    positions = [0] * len(calls)
    moved = True
    while moved:
        moved = False
        for device, ordered in enumerate(calls):
            while positions[device] < len(ordered):
                call = ordered[positions[device]]
                if not all(needed in done for needed in needed_calls(call, stages)):
                    break
                done[call] = None
                positions[device] += 1
                moved = True
    return list(done), [ordered[at] for ordered, at in zip(calls, positions, strict=True) if at < len(ordered)]


_SCHEDULES = {
    found.name: found
    for found in (
        Schedule("gpipe", "all forwards, then all backwards", gpipe),
        Schedule(
            "1f1b", "a forward and a backward in turn, so that few activations are kept", one_forward_one_backward
        ),
        Schedule("interleaved", "1f1b with several stages per device, so that devices wait less", interleaved),
    )
}


def register_schedule(schedule: Schedule) -> None:
    """Adds a schedule; AlreadyExistsError when there is one of that name."""
    if schedule.name in _SCHEDULES:
        summary = _SCHEDULES[schedule.name].summary
        raise AlreadyExistsError(f"there is a schedule {schedule.name!r} ({summary}); choose another name")
    _SCHEDULES[schedule.name] = schedule


def find_schedule(name: str) -> Schedule:
    """The schedule of a name; InvalidArgumentError, with the nearest name, when there is none."""
    found = _SCHEDULES.get(name) or _installed(name)
    if found is None:
        raise InvalidArgumentError(f"there is no schedule {name!r}{suggestion(name, schedule_names())}")
    return found


def schedule_names() -> list[str]:
    """The names of all schedules, those of installed packages last."""
    return list(dict.fromkeys([*_SCHEDULES, *entry_points.names_of(GROUP)]))


def _installed(name: str) -> Schedule | None:
    found = entry_points.loaded(GROUP, name, "schedule")
    if found is None:
        return None
    if not isinstance(found.value, Schedule) or found.value.name != name:
        raise InvalidArgumentError(
            f"schedule {name!r}, {found.place!r}, is {found.value!r}; make it a Schedule of that name"
        )
    _SCHEDULES[name] = found.value
    return found.value
