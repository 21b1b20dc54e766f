"""StepStats -> runs of nodes: the records of a trace in plain values.

    label of this package   w/mm = MatMul @ outer:2/w:0       iteration (("outer", 2), ("w", 0))
    label of TensorFlow     w/mm = MatMul(w/x, w/y)           iteration unknown

Records without a label of either form, such as those of transfers, are left out; a record whose times cannot be is an
error. Where a device also has records of its hardware (".../stream:all"), the kernels of a node take the place of its
times, shared by its runs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InvalidArgumentError
from ..protos import NodeExecStats, StepStats
from ..tensor import recorded_shape

if TYPE_CHECKING:
    from ..dtypes import Shape

IterationPath = tuple[tuple[str, int], ...]
"""frames and numbers of the iterations in them, outermost first"""

_HARDWARE = "/stream:all"  # ends the name of a device whose records are those of the hardware itself
_MOST_NS = 2**63 - 1
_LABEL = re.compile(r"(?:\[.*?\] )?(?P<name>.*?) = (?P<op>[\w>]+)(?:\((?P<inputs>.*)|(?P<rest>.*))", re.DOTALL)
_REST = re.compile(r"(?: calls (?P<calls>.*?))?(?: @ (?P<iteration>.*))?", re.DOTALL)
_STEP = re.compile(r"(.+?):(\d{1,18})(?:/|$)", re.DOTALL)
_CALLED = re.compile(r"([^, ]+)(?: x(\d{1,18}))?(?:, |$)")


class TracedRun(NamedTuple):
    """One run of a node; times in nanoseconds. `shapes` are by output, `calls` counts calls by function.

    `iteration` is None where the trace does not tell, which is so in TensorFlow's.
    """

    node: str
    op: str
    start_ns: int
    duration_ns: int
    shapes: Mapping[int, Shape]
    iteration: IterationPath | None
    calls: Mapping[str, int]


def runs_of(stats: StepStats) -> list[TracedRun]:
    """The runs of all devices, in the order of their starts."""
    hardware = _hardware_times(stats)
    runs = [
        run
        for device in stats.dev_stats
        if not device.device.endswith(_HARDWARE)
        for record in device.node_stats
        if (run := run_of(record)) is not None
    ]
    if hardware:
        counts = Counter(run.node for run in runs)
        runs = [
            run._replace(duration_ns=hardware[run.node] // counts[run.node]) if run.node in hardware else run
            for run in runs
        ]
    return sorted(runs, key=lambda run: run.start_ns)


def runs_by_device(stats: StepStats) -> dict[str, list[TracedRun]]:
    """The runs of each device, those that are no hardware's; as `runs_of` of its records alone."""
    hardware = [device for device in stats.dev_stats if device.device.endswith(_HARDWARE)]
    return {
        device.device: runs_of(StepStats(dev_stats=[device, *hardware]))
        for device in stats.dev_stats
        if device not in hardware
    }


def iteration_text(iteration: IterationPath) -> str:
    """The text of an iteration, as labels and timelines have it; "" outside of loops."""
    return "/".join(f"{frame}:{number}" for frame, number in iteration)


def _hardware_times(stats: StepStats) -> dict[str, int]:
    times: defaultdict[str, int] = defaultdict(int)
    for device in stats.dev_stats:
        if device.device.endswith(_HARDWARE):
            for record in device.node_stats:
                times[record.node_name.partition(":")[0]] += duration_ns(record)
    return times


def run_of(record: NodeExecStats) -> TracedRun | None:
    """The run that a record tells; None for one without a label of either form."""
    label = _LABEL.fullmatch(record.timeline_label)
    if label is None or label["name"] != record.node_name:
        return None
    iteration: IterationPath | None = None
    calls: Mapping[str, int] = {}
    if label["inputs"] is None:
        rest = _REST.fullmatch(label["rest"])
        if rest is None:
            return None
        iteration = tuple((frame, int(number)) for frame, number in _STEP.findall(rest["iteration"] or ""))
        calls = Counter({name: int(count or 1) for name, count in _CALLED.findall(rest["calls"] or "")})
    return TracedRun(
        node=record.node_name,
        op=label["op"],
        start_ns=start_ns(record),
        duration_ns=duration_ns(record),
        shapes={output.slot: recorded_shape(output.tensor_description.shape) for output in record.output},
        iteration=iteration,
        calls=calls,
    )


def start_ns(record: NodeExecStats) -> int:
    """When the record begins, by the clock of the trace; InvalidArgumentError for what no clock shows."""
    return _checked(record, record.all_start_nanos or 1000 * record.all_start_micros, "begins at")


def duration_ns(record: NodeExecStats) -> int:
    """From the start of the op to its end, in microseconds where the trace has nothing finer; raises as `start_ns`."""
    if record.op_end_rel_nanos:
        return _checked(record, record.op_end_rel_nanos - record.op_start_rel_nanos, "takes")
    return _checked(record, 1000 * (record.op_end_rel_micros - record.op_start_rel_micros), "takes")


def _checked(record: NodeExecStats, time_ns: int, what: str) -> int:
    """A time of a record; InvalidArgumentError for one that no clock shows."""
    if not 0 <= time_ns <= _MOST_NS:
        raise InvalidArgumentError(
            f"the trace has a record of {record.node_name!r} that {what} {time_ns} ns; times are from 0 to 2**63 - 1: "
            "record the step again"
        )
    return time_ns
