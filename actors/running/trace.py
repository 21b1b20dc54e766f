"""Records of a traced step -> StepStats: when each node ran, where, and the type, shape and bytes of its outputs.

A node of a function that node `f` calls is named `f/inner`. TensorFlow's message has no field for iterations and called
functions, so they stand in the label, behind what TensorFlow writes there:

    f/inner = Neg @ f/w:3               iteration 3 of loop w in the function that f calls
    f = PartitionedCall calls scale     which function a node has called; a While tells how often:
    w = While calls less x4, add x3 @ outer:0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

from ...graph.protos import (
    AllocationDescription,
    DeviceStepStats,
    NodeExecStats,
    NodeOutput,
    StepStats,
    TensorDescription,
    TensorShapeProto,
)
from ..plans.instructions import TRACE_SLOT

if TYPE_CHECKING:
    from ..plans.tracing import NodeRecord, RecordedOutput, TraceScope
    from .part import Part


def step_stats(parts: Sequence[Part]) -> StepStats:
    """StepStats of a traced step that has ended: one entry per run of a node, by device and start."""
    scopes: dict[int, TraceScope] = {id(part.slots[TRACE_SLOT]): part.slots[TRACE_SLOT] for part in parts}
    records = [record for scope in scopes.values() for record in scope.records]
    return statistics_of_records(records, dict.fromkeys(part.plan.device for part in parts))


def statistics_of_records(records: Iterable[NodeRecord], devices: Iterable[str]) -> StepStats:
    """StepStats with an entry per record, for these devices and all others that records name."""
    wall_offset_ns = time_ns() - perf_counter_ns()
    by_device: dict[str, list[NodeRecord]] = {device: [] for device in devices}
    for record in records:
        by_device.setdefault(record.device, []).append(record)
    stats = StepStats()
    for device, own in by_device.items():
        own.sort(key=lambda record: record.start_ns)
        nodes = [_node_stats(record, wall_offset_ns) for record in own]
        stats.dev_stats.append(DeviceStepStats(device=device, node_stats=nodes))
    return stats


def _node_stats(record: NodeRecord, wall_offset_ns: int) -> NodeExecStats:
    scope = record.scope
    stats = NodeExecStats(
        node_name=scope.prefix + record.node,
        output=map(_output, record.outputs),
        timeline_label=f"{scope.prefix}{record.node} = {record.op}{_calls(record)}{_iteration(scope)}",
    )
    set_times(stats, record.start_ns + wall_offset_ns, record.end_ns - record.start_ns)
    return stats


def set_times(stats: NodeExecStats, start_ns: int, duration_ns: int) -> None:
    """Sets the times of a run in both units; a started microsecond counts as a whole one."""
    duration_us = -(-duration_ns // 1000)
    stats.scheduled_nanos = stats.all_start_nanos = start_ns
    stats.scheduled_micros = stats.all_start_micros = start_ns // 1000
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = duration_ns
    stats.op_end_rel_micros = stats.all_end_rel_micros = duration_us


def _calls(record: NodeRecord) -> str:
    calls = record.scope.calls.get(record.node)
    if calls is None:
        return ""
    counted = [f"{function} x{count}" if count > 1 else function for function, count in calls.items()]
    return f" calls {', '.join(counted)}"


def _iteration(scope: TraceScope) -> str:
    return f" @ {scope.iteration}" if scope.iteration else ""


def _output(output: RecordedOutput) -> NodeOutput:
    """Type, shape and memory of a tensor that a node computed. Tensors in one array have one allocation id."""
    return NodeOutput(
        slot=output.slot,
        tensor_description=TensorDescription(
            dtype=f"DT_{output.dtype}",
            shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in output.shape]),
            allocation_description=AllocationDescription(
                requested_bytes=output.num_bytes,
                allocated_bytes=output.num_bytes,
                allocation_id=output.allocation,
            ),
        ),
    )
