"""Step traces: when each node ran, in wall time.

Flows in: plans with an instruction for every node. Flows out: the same plans with a clock around every instruction,
and, after a step, `StepStats`. Always holds: a step that asks for no trace runs none of this; dead nodes and
transfers leave no record, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING

from ..graph.protos import DeviceStepStats, NodeExecStats, StepStats
from .executor import run_instructions
from .instructions import DEAD, TRACE_SLOT, Instruction, Slots, whole
from .roles import Role, role_of

if TYPE_CHECKING:
    from .plan import Plan, Segment
    from .step import Part

Record = tuple[int, int, int]
"""node, start and end of its instruction on the clock of `perf_counter_ns`"""

_UNRECORDED = frozenset({Role.SEND, Role.RECV, Role.LAUNCH})


def traced(plan: Plan) -> Plan:
    """The plan with a clock around every instruction; its steps need a list in slot TRACE_SLOT."""
    return replace(plan, segments=tuple(_traced_segment(plan, segment) for segment in plan.segments))


def _traced_segment(plan: Plan, segment: Segment) -> Segment:
    instructions = [instruction for chunk in segment.chunks for instruction in chunk]
    timed = [
        instruction if role_of(plan.properties[node].op) in _UNRECORDED else _timed(instruction, node)
        for instruction, node in zip(instructions, segment.origins, strict=True)
    ]
    return replace(segment, chunks=(timed,) if timed else ())


def _timed(instruction: Instruction, node: int) -> Instruction:
    step, first_input, _, output = instruction

    def run_and_record(slots: Slots) -> None:
        start = perf_counter_ns()
        if first_input:
            run_instructions(iter((instruction,)), slots)
            if slots[output] is DEAD:
                return
        elif step(slots) is DEAD:
            return
        slots[TRACE_SLOT].append((node, start, perf_counter_ns()))

    return whole(run_and_record)


def step_stats(parts: Iterable[Part]) -> StepStats:
    """The statistics of a traced step that has ended: one entry per node that ran, in order, times in microseconds."""
    wall_offset_ns = time_ns() - perf_counter_ns()
    return StepStats(
        dev_stats=[
            DeviceStepStats(
                device=part.plan.device,
                node_stats=[_node_stats(part.plan, record, wall_offset_ns) for record in part.slots[TRACE_SLOT]],
            )
            for part in parts
        ]
    )


def _node_stats(plan: Plan, record: Record, wall_offset_ns: int) -> NodeExecStats:
    node, start_ns, end_ns = record
    name, duration_us = plan.names[node], -((start_ns - end_ns) // 1000)
    return NodeExecStats(
        node_name=name,
        all_start_micros=(start_ns + wall_offset_ns) // 1000,
        op_start_rel_micros=0,
        op_end_rel_micros=duration_us,
        all_end_rel_micros=duration_us,
        scheduled_micros=(start_ns + wall_offset_ns) // 1000,
        timeline_label=f"{name} = {plan.properties[node].op}",
    )
