"""Plans that record when each of their instructions ran, for traces.

Such a plan has an instruction for every node, and a clock around it, which appends a `Record` to the list in slot
TRACE_SLOT. Dead nodes and transfers leave no record, as in TensorFlow; a node in a loop leaves one per iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.dtypes import base_type
from ...graph.protos import AllocationDescription, NodeOutput, TensorDescription
from ...graph.tensor import shape_to_proto
from .deferred import End
from .instructions import (
    DEAD,
    TRACE_SLOT,
    Instruction,
    Slots,
    owner,
    run_instructions,
    slots_read,
    slots_written,
    whole,
)
from .roles import Role, role_of

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties
    from .plan import Plan, Segment

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
    """The instruction of a node with a clock around it; unchanged for nodes that leave no record.

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

    return whole(run_and_record, slots_read(instruction), slots_written(instruction))


def _described(properties: NodeProperties, values: Sequence[Any]) -> list[NodeOutput]:  # Any: tensors of any type
    """Type, shape and memory of the tensors that a node computed; dead ones and references are left out.

    Tensors in the memory of one array have one allocation id: a view has that of its input.
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
