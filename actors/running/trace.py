"""Step traces: when each node ran, in wall time.

Flows in: plans with an instruction for every node. Flows out: the same plans with a clock around every instruction,
and, after a step, `StepStats`: times, and of each tensor its type, shape and bytes, but for those in loops and those of
plans that were not made for traces. Always holds: a step that asks for no trace runs none of this; dead nodes and
transfers leave no record, as in TensorFlow; what is in a loop leaves one per iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.dtypes import base_type
from ...graph.protos import (
    AllocationDescription,
    DeviceStepStats,
    NodeExecStats,
    NodeOutput,
    StepStats,
    TensorDescription,
)
from ...graph.tensor import shape_to_proto
from ..plans.instructions import DEAD, TRACE_SLOT, Instruction, Slots, owner, whole
from ..plans.roles import Role, role_of
from .deferred import End
from .executor import run_instructions

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties
    from ..plans.plan import Plan, Segment
    from .step import Part

Record = tuple[str, str, int, int, list[NodeOutput]]
"""name and op of a node, start and end of its instruction on the clock of `perf_counter_ns`, what it computed"""

_UNRECORDED = frozenset({Role.SEND, Role.RECV, Role.LAUNCH})


def traced(plan: Plan) -> Plan:
    """The plan with a clock around every instruction; its steps need a list in slot TRACE_SLOT."""
    return replace(plan, segments=tuple(_traced_segment(plan, segment) for segment in plan.segments))


def _traced_segment(plan: Plan, segment: Segment) -> Segment:
    instructions = [instruction for chunk in segment.chunks for instruction in chunk]
    timed = [
        timed_instruction(
            instruction, plan.names[node], plan.properties[node], plan.outputs[node] if plan.outputs else ()
        )
        for instruction, node in zip(instructions, segment.origins, strict=True)
    ]
    return replace(segment, chunks=(timed,) if timed else ())


def timed_instruction(
    instruction: Instruction, name: str, properties: NodeProperties, outputs: Sequence[int] = ()
) -> Instruction:
    """The instruction of a node with a clock around it; as it is for those that leave no record.

    `outputs` are the slots of what the node computes, as far as that is to be recorded.
    """
    step, first_input, _, output = instruction
    op = properties.op
    if role_of(op) in _UNRECORDED or (isinstance(properties, End) and properties.deferred.frame):
        return instruction

    def run_and_record(slots: Slots) -> None:
        start = perf_counter_ns()
        if first_input:
            run_instructions(iter((instruction,)), slots)
            if slots[output] is DEAD:
                return
        elif step(slots) is DEAD:
            return
        end = perf_counter_ns()
        slots[TRACE_SLOT].append((name, op, start, end, _described(properties, [slots[i] for i in outputs])))

    return whole(run_and_record)


def _described(properties: NodeProperties, values: Sequence[Any]) -> list[NodeOutput]:  # Any: tensors of any type
    """Type, shape and memory of the tensors that a node computed; dead ones and references are left out.

    Tensors in the memory of the same array are said to be of one allocation: that of a view is its input's.
    """
    return [
        NodeOutput(
            slot=slot,
            tensor_description=TensorDescription(
                dtype=f"DT_{base_type(properties.output_types[slot]).name}",
                shape=shape_to_proto(value.shape),
                allocation_description=AllocationDescription(
                    requested_bytes=value.nbytes, allocated_bytes=value.nbytes, allocation_id=id(owner(value))
                ),
            ),
        )
        for slot, value in enumerate(values)
        if isinstance(value, np.ndarray | np.generic)
    ]


def step_stats(parts: Iterable[Part]) -> StepStats:
    """The statistics of a traced step that has ended: one entry per node that ran, in order, times in microseconds."""
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
