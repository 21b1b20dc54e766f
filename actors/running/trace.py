"""The StepStats of a traced step: when each node ran, and the type, shape and bytes of its outputs.

Plans compiled for tracing append a record per node (`plans.tracing`). The outputs of nodes in loops are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

from ...graph.protos import DeviceStepStats, NodeExecStats, StepStats
from ..plans.instructions import TRACE_SLOT

if TYPE_CHECKING:
    from ..plans.tracing import Record
    from .part import Part


def step_stats(parts: Iterable[Part]) -> StepStats:
    """StepStats of a traced step that has ended: one entry per run of a node, in order, times in microseconds."""
    wall_offset_ns = time_ns() - perf_counter_ns()
    return StepStats(
        dev_stats=[
            DeviceStepStats(
                device=part.plan.device,
                node_stats=[_node_stats(record, wall_offset_ns) for record in part.slots[TRACE_SLOT]],
            )
            for part in parts
        ]
    )


def _node_stats(record: Record, wall_offset_ns: int) -> NodeExecStats:
    name, op, start_ns, end_ns, outputs = record
    duration_us = -((start_ns - end_ns) // 1000)
    return NodeExecStats(
        node_name=name,
        all_start_micros=(start_ns + wall_offset_ns) // 1000,
        op_start_rel_micros=0,
        op_end_rel_micros=duration_us,
        all_end_rel_micros=duration_us,
        scheduled_micros=(start_ns + wall_offset_ns) // 1000,
        output=outputs,
        timeline_label=f"{name} = {op}",
    )
