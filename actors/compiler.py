"""Compiles one partition graph to a plan.

Flows in: a placed partition `Graph` without loops, the kernels of its device. Flows out: a `Plan`. Always holds: the
program order is topological and the same every time; nodes that cost nothing at run time (constants, identities,
no-ops) leave no instruction behind, unless `every_node` asks for one instruction a node, as traces do.

    columns -> draft (roles, what may be dead) -> segments -> program order -> lifetimes -> slots -> instructions
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.kernels.registry import is_waiting_for_files
from ..graph.dtypes import DataType, base_type
from ..graph.partition import transfer_keys
from .assembler import Assembler
from .columns import Ints, columns_of
from .draft import Draft, draft_of
from .plan import Argument, Arrival, Chunk, Plan, Result, Segment
from .roles import Role
from .segments import Grouping, group
from .slots import allocate, lifetimes

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from .binding import Binder
    from .instructions import Instruction

CHUNK = 64  # instructions between two looks at the clock, until a chunk turns out to be slow


def compile_plan(graph: Graph, binder: Binder, *, receives_may_be_dead: bool, every_node: bool = False) -> Plan:
    """The plan of a partition on the device of `binder`.

    `receives_may_be_dead` says whether any partition of the set has a Switch. Raises UnimplementedError for loops and
    what kernel factories raise; whoever has compiled all partitions calls `binding.check_complete`.
    """
    draft = draft_of(columns_of(graph), receives_may_be_dead=receives_may_be_dead, every_node=every_node)
    grouping = group(draft.columns, (draft.codes == Role.RECV).tolist(), draft.emits.tolist())
    program, segment_at = _program(draft, grouping)
    slots, num_slots = _slots(draft, program, segment_at)
    keys = _keys(graph, draft)
    assembler = Assembler(draft, slots, binder, keys)
    instructions = assembler.assemble(program)
    template: list[Any] = [None] * num_slots  # tensors of any type
    _preload(draft, assembler, template)
    segments = _segments(grouping, program, segment_at, instructions)
    _set_apart(draft, segments)
    return Plan(
        binder.device,
        template,
        tuple(_arguments(draft, slots)),
        tuple(_results(draft, slots)),
        tuple(_arrivals(draft, grouping, slots, keys)),
        segments,
        draft.columns.names,
        draft.columns.properties,
        _keeps_inputs(draft),
    )


def _keys(graph: Graph, draft: Draft) -> dict[int, str]:
    """The rendezvous key of each node that sends or receives."""
    ends = np.flatnonzero((draft.codes == Role.SEND) | (draft.codes == Role.RECV))
    return dict(zip(ends.tolist(), transfer_keys(graph, np.array(draft.columns.ids, np.int32)[ends]), strict=True))


def _program(draft: Draft, grouping: Grouping) -> tuple[Ints, Ints]:
    """The nodes that need an instruction, segment by segment, and the segment at each position."""
    program = np.flatnonzero(draft.emits)
    if len(grouping.needs) == 1:
        return program, np.zeros(len(program), np.intp)
    segment_at = np.array(grouping.segment_of, np.intp)[program]
    by_segment = np.argsort(segment_at, kind="stable")
    return program[by_segment], segment_at[by_segment]


def _slots(draft: Draft, program: Ints, segment_at: Ints) -> tuple[list[int], int]:
    """The slot of every value, identities included, and the number of slots."""
    columns = draft.columns
    position = np.full(columns.num_nodes, -1, np.intp)
    position[program] = np.arange(len(program))
    made = np.full(draft.num_values, -1, np.intp)
    made[1 : columns.num_values] = np.repeat(position, np.diff(columns.first_value))
    if draft.num_values > columns.num_values:
        made[columns.num_values : columns.num_values + columns.num_nodes] = position
    used, at = draft.source[columns.data_value], position[columns.data_dst]
    read = at >= 0
    watched, watched_at = _control_uses(draft, position)
    lives = lifetimes(made, np.concatenate([used[read], watched]), np.concatenate([at[read], watched_at]), segment_at)
    lives.pinned[[draft.result(node) for node in np.flatnonzero(draft.codes == Role.RETVAL).tolist()]] = True
    lives.pinned[0] = True
    slots, num_slots = allocate(lives)
    if draft.aliased.any():
        slots = np.array(slots, np.intp)[draft.source].tolist()
    return slots, num_slots


def _control_uses(draft: Draft, position: Ints) -> tuple[Ints, Ints]:
    """Which witnesses are read at which positions."""
    pairs = [(v, position[node]) for node, witnesses in draft.watched.items() for v in witnesses if position[node] >= 0]
    uses = np.array(pairs, np.intp).reshape(-1, 2)
    return uses[:, 0], uses[:, 1]


def _preload(draft: Draft, assembler: Assembler, template: list[Any]) -> None:
    """Stores the constants that need no instruction in the slots that every step starts from."""
    columns = draft.columns
    for node in np.flatnonzero((draft.codes == Role.CONST) & ~draft.emits).tolist():
        value = assembler.binder.constant(columns.names[node], columns.properties[node])
        template[assembler.slots[draft.first[node]]] = value


def _arguments(draft: Draft, slots: list[int]) -> Iterator[Argument]:
    for node in np.flatnonzero(draft.codes == Role.ARG).tolist():
        properties = draft.columns.properties[node]
        yield Argument(properties.attrs["index"], slots[draft.first[node]], base_type(properties.output_types[0]))


def _results(draft: Draft, slots: list[int]) -> Iterator[Result]:
    for node in np.flatnonzero(draft.codes == Role.RETVAL).tolist():
        properties = draft.columns.properties[node]
        yield Result(properties.attrs["index"], slots[draft.result(node)], base_type(properties.input_types[0]))


def _arrivals(draft: Draft, grouping: Grouping, slots: list[int], keys: Mapping[int, str]) -> list[Arrival]:
    waiting: dict[int, tuple[int, ...]] = {}
    for segment, needs in enumerate(grouping.needs):
        for need in needs:
            if need < 0:
                waiting[~need] = (*waiting.get(~need, ()), segment)
    arrivals = draft.arrivals
    return [Arrival(keys[node], slots[arrivals[node]], waiting[node]) for node in sorted(waiting)]


def _segments(
    grouping: Grouping, program: Ints, segment_at: Ints, instructions: list[Instruction]
) -> tuple[Segment, ...]:
    """Cuts the program into segments and chunks and says who waits for whom."""
    count = len(grouping.needs)
    starts = np.searchsorted(segment_at, np.arange(count + 1)).tolist()
    origins = program.tolist()
    unlocks: list[tuple[int, ...]] = [()] * count
    for segment, needs in enumerate(grouping.needs):
        for need in needs:
            if need > 0:
                unlocks[need] = (*unlocks[need], segment)
    return tuple(
        [
            Segment(_chunks(instructions, start, end), origins[start:end], len(needs), after)
            for start, end, needs, after in zip(starts[:-1], starts[1:], grouping.needs, unlocks, strict=True)
        ]
    )


def _chunks(instructions: list[Instruction], start: int, end: int) -> tuple[Chunk, ...]:
    if end - start <= CHUNK:
        return (instructions[start:end],) if start < end else ()
    return tuple([instructions[i : min(i + CHUNK, end)] for i in range(start, end, CHUNK)])


def _set_apart(draft: Draft, segments: tuple[Segment, ...]) -> None:
    """Has kernels that wait for files run in worker threads from the first step on."""
    waiting = [is_waiting_for_files(properties.op_def.name) for properties in draft.columns.kinds]
    if any(waiting):
        kind = draft.columns.kind.tolist()
        for segment in segments:
            segment.set_apart([at for at, node in enumerate(segment.origins) if waiting[kind[node]]])


def _keeps_inputs(draft: Draft) -> bool:
    """Whether any node has a resource or a reference, where what is fed may be stored."""
    if draft.is_reference is not None:
        return True
    return any(t is DataType.RESOURCE for p in draft.columns.kinds for t in p.input_types)
