"""Plans that record when each of their instructions ran, for traces.

Such a plan has an instruction for every node, and a clock around it, which appends a `NodeRecord` to the records of the
`TraceScope` in slot TRACE_SLOT. Dead nodes and transfers leave no record, as in TensorFlow. For node `neg` of a
function that node `f` calls, in iteration 3 of the loop `w` of that function:

    scope.prefix "f/"    scope.iteration "f/w:3"    record.node "neg"    in the trace: f/neg = Neg @ f/w:3

The scope of a call is made by whoever starts it (`running.traced`), that of an iteration by the first instruction of a
loop on one device (`begin_iteration`). Plans that are not traced have no scope and none of these instructions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from ...devices.state import Variable
from ...graph.dtypes import base_type
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

_UNRECORDED = frozenset({Role.SEND, Role.RECV, Role.LAUNCH})


class RecordedOutput(NamedTuple):
    """Number, type, shape and bytes of an output; outputs in the memory of one array have the same `allocation`."""

    slot: int
    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    allocation: int


class NodeRecord(NamedTuple):
    """One run of a node, from `start_ns` to `end_ns` on the clock of `perf_counter_ns`."""

    scope: TraceScope
    device: str
    node: str
    op: str
    start_ns: int
    end_ns: int
    outputs: Sequence[RecordedOutput]


class TraceScope:
    """Where recorded nodes run: in the graph, in a call of a function, in an iteration of a loop.

    `prefix` stands before the names of nodes: the path of calls. `iteration` is the path of iterations. By node of this
    scope: `began_ns` is when a node that is under way was launched, `calls` which functions it has called how often.
    """

    __slots__ = ("_around", "_frame", "_number", "began_ns", "calls", "iteration", "prefix", "records")

    def __init__(
        self, records: list[NodeRecord], prefix: str = "", around: str = "", frame: str = "", number: int = 0
    ) -> None:
        """The scope of iteration `number` of `frame`, within the iteration `around`; of `around` without a frame."""
        self.records = records
        self.prefix = prefix
        self.iteration = f"{around}/{frame}:{number}" if around and frame else f"{frame}:{number}" if frame else around
        self.began_ns: dict[str, int] = {}
        self.calls: dict[str, Counter[str]] = {}
        self._around = around
        self._frame = frame
        self._number = number

    def called(self, node: str, function: str, number: int | None = None) -> TraceScope:
        """The scope of a function that a node of this scope calls; `number` counts the calls of a While or a map."""
        self.calls.setdefault(node, Counter())[function] += 1
        frame = "" if number is None else self.prefix + node
        return TraceScope(self.records, f"{self.prefix}{node}/", self.iteration, frame, number or 0)

    def in_iteration(self, frame: str, number: int) -> TraceScope:
        """The scope of an iteration of a loop that runs in this scope."""
        return TraceScope(self.records, self.prefix, self.iteration, self.prefix + frame, number)

    def next_iteration(self, frame: str) -> TraceScope:
        """From the scope of an iteration of the loop that of the next; from any other scope that of the first."""
        if self._frame != self.prefix + frame:
            return self.in_iteration(frame, 0)
        return TraceScope(self.records, self.prefix, self._around, self._frame, self._number + 1)

    def record(
        self, device: str, node: str, properties: NodeProperties, start_ns: int, values: Sequence[Any]
    ) -> None:  # Any: tensors of any type
        """Appends the record of a node whose run ends now, with the values of its outputs."""
        end_ns = perf_counter_ns()
        self.records.append(
            NodeRecord(self, device, node, properties.op, start_ns, end_ns, described(properties, values))
        )


def described(properties: NodeProperties, values: Sequence[Any]) -> list[RecordedOutput]:  # Any: tensors of any type
    """What a trace says of the outputs of a node; dead ones and variables without a value are left out."""
    outputs = []
    for slot, value in enumerate(values):
        tensor = value.value if isinstance(value, Variable) else value
        if tensor is not None and tensor is not DEAD:
            dtype = base_type(properties.output_types[slot]).name
            shape, num_bytes = getattr(tensor, "shape", ()), getattr(tensor, "nbytes", 0)
            outputs.append(RecordedOutput(slot, dtype, shape, num_bytes, id(owner(tensor))))
    return outputs


def traced(plan: Plan) -> Plan:
    """The plan with a clock around every instruction; its steps need a scope in slot TRACE_SLOT."""
    return replace(plan, segments=tuple(_traced_segment(plan, segment) for segment in plan.segments))


def _traced_segment(plan: Plan, segment: Segment) -> Segment:
    instructions = [instruction for chunk in segment.chunks for instruction in chunk]
    timed = [
        timed_instruction(instruction, plan.device, plan.names[node], plan.properties[node], plan.outputs[node])
        for instruction, node in zip(instructions, segment.origins, strict=True)
    ]
    return replace(segment, chunks=(timed,) if timed else ())


def timed_instruction(
    instruction: Instruction, device: str, name: str, properties: NodeProperties, outputs: Sequence[int]
) -> Instruction:
    """The instruction of a node with a clock around it; unchanged for nodes that leave no record here.

    `outputs` are the slots of what the node computes. Parts record deferred nodes, which end later than their launch.
    """
    step, first_input, _, output = instruction
    if role_of(properties.op_def.name) in _UNRECORDED:
        return instruction

    def run_and_record(slots: Slots) -> None:
        start_ns = perf_counter_ns()
        if first_input:
            run_instructions(iter((instruction,)), slots)
            if slots[output] is DEAD:
                return
        elif step(slots) is DEAD:
            return
        slots[TRACE_SLOT].record(device, name, properties, start_ns, [slots[i] for i in outputs])

    return whole(run_and_record, slots_read(instruction), slots_written(instruction))


def begin_iteration(frame: str) -> Instruction:
    """The first instruction of a traced loop on one device: what follows is recorded in the scope of the iteration."""

    def begin(slots: Slots) -> None:
        slots[TRACE_SLOT] = slots[TRACE_SLOT].next_iteration(frame)

    return whole(begin)
