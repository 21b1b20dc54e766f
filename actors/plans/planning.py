"""A draft and its share in the transfers go in, the plan of this level of a partition comes out.

    draft of -x + 1, x fed, fetched        nodes 0 one, 1 _arg_x, 2 neg, 3 y, 4 _retval_y; 2 and 3 need an instruction
    program                                nodes [2, 3], both in segment 0
    plan                                   s5 holds 1; argument 0 -> s6; s8 = neg(s6); s7 = add(s8, s5); result 0 = s7

The program is the nodes that need an instruction, segment by segment. Each value gets a slot, each node of the program
an instruction. Arguments, results, messages and deferred nodes are listed with their slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...graph.arrays import owners, positions
from ...graph.dtypes import DataType, base_type, is_ref
from .assembler import Assembler
from .columns import OrderedGraph
from .deferred import DeferredEnd
from .draft import Draft
from .layout import Program, SlotTable, slots_of, template_of
from .numbering import NodeNumber, SegmentNumber, SlotNumber
from .plan import Arrivals, Chunk, DeferredNode, DistributedLoop, Expected, FeedSlot, LocalLoop, Plan, Result, Segment
from .roles import Role
from .segments import Grouping, SegmentGroup
from .transfers import TransferMessages, TransferShare, is_long

if TYPE_CHECKING:
    from .binding import Binder
    from .instructions import Instruction

CHUNK = 64  # instructions between two looks at the clock, until a chunk turns out to be slow

PlannedLoops = dict[str, LocalLoop | DistributedLoop]
"""the compiled loops of a partition, by frame"""

Segments = tuple[SegmentNumber, ...]


class _Waiting(NamedTuple):
    """The segments that wait for a message, by the node that stands for it, and those that wait for a segment."""

    for_message: list[Segments]
    for_segment: list[Segments]


def plan_of(draft: Draft, binder: Binder, share: TransferShare, loops: PlannedLoops, *, repeats: bool) -> Plan:
    """The plan; `loops` has those of the level, `repeats` says whether it is one iteration of a loop."""
    program = _program(draft, share)
    slots = _slots(draft, share, program)
    # Loops with other devices run even if nothing alive goes in: the others wait for their messages.
    run_when_dead = {frame for frame, loop in loops.items() if isinstance(loop, DistributedLoop)}
    assembler = Assembler(draft, slots.of_value, binder, share.outgoing, run_when_dead)
    instructions = assembler.assemble(program.nodes)
    waiting = _waiting(share.grouping, draft.columns.num_nodes)
    segments = _segments(program, share.grouping, waiting.for_segment, instructions)
    if any(is_long(kind.op_def.record) for kind in draft.columns.kinds):
        for segment in segments:
            segment.set_apart_file_waits(draft.columns.properties)
    return Plan(
        device=binder.device,
        template=template_of(draft, assembler, slots.num_slots),
        arguments=tuple(_arguments(draft, slots)),
        results=tuple(_results(draft, slots)),
        arrivals=_arrivals(draft, share.incoming, slots, waiting.for_message),
        segments=segments,
        names=draft.columns.names,
        properties=draft.columns.properties,
        keeps_inputs=keeps_inputs(draft.columns),
        deferred=tuple(_deferred(draft, assembler, loops, waiting.for_message)),
        outputs=tuple(_outputs(draft, slots)) if draft.every_node else (),
        unchecked=_unchecked(draft, share, slots) if share.unchecked else {},
        sends=share.outgoing,
        repeats=repeats,
    )


def keeps_inputs(columns: OrderedGraph) -> bool:
    """Whether any node has a resource or a reference, in which a feed may be stored."""
    return any(t is DataType.RESOURCE or is_ref(t) for p in columns.kinds for t in (*p.input_types, *p.output_types))


def _program(draft: Draft, share: TransferShare) -> Program:
    """The program. Of the sends of a message only the last one has an instruction, which sends all tensors."""
    outgoing = share.outgoing
    emits = draft.emits.copy()
    emits[outgoing.nodes] = False
    emits[outgoing.last] = True
    nodes = positions(emits)
    segment_at = share.grouping.segment_of[nodes]
    if len(share.grouping.groups) > 1:
        by_segment = np.argsort(segment_at, kind="stable")
        nodes, segment_at = nodes[by_segment], segment_at[by_segment]
    position = np.full(draft.columns.num_nodes, -1, np.int64)
    position[nodes] = np.arange(len(nodes))
    position[outgoing.nodes] = np.repeat(position[outgoing.last], outgoing.sizes)
    return Program(nodes, segment_at, position)


def _slots(draft: Draft, share: TransferShare, program: Program) -> SlotTable:
    """The slots. Those of the tensors of an incoming message are neighbours, so that it is stored as one slice."""
    rank = np.zeros(draft.num_values, np.int64)
    rank[draft.arrival[share.incoming.nodes]] = np.arange(1, len(share.incoming.nodes) + 1)
    return slots_of(draft, program, rank=rank)


def _outputs(draft: Draft, slots: SlotTable) -> Iterator[tuple[SlotNumber, ...]]:
    return (tuple(slots.of_value[start:end]) for start, end in pairwise(draft.first))


def _arguments(draft: Draft, slots: SlotTable) -> Iterator[FeedSlot]:
    for node in draft.nodes(Role.ARG).tolist():
        properties, slot = draft.columns.properties[node], slots.of_value[draft.first[node]]
        yield FeedSlot(properties.attrs["index"], slot, base_type(properties.output_types[0]))


def _results(draft: Draft, slots: SlotTable) -> Iterator[Result]:
    for node in draft.nodes(Role.RETVAL).tolist():
        properties, slot = draft.columns.properties[node], slots.of_value[draft.result(node)]
        yield Result(properties.attrs["index"], slot, base_type(properties.input_types[0]))


def _waiting(grouping: Grouping, num_nodes: int) -> _Waiting:
    """By message and by segment: the segments that wait for it."""
    none: Segments = ()
    waiting = _Waiting([none] * num_nodes, [none] * len(grouping.groups))
    for group in grouping.groups:
        only = (group.number,)
        for need in group.needs:
            if type(need) is SegmentGroup:
                before = waiting.for_segment[need.number]
                waiting.for_segment[need.number] = before + only if before else only
            else:
                before = waiting.for_message[need.node]
                waiting.for_message[need.node] = before + only if before else only
    return waiting


def _arrivals(draft: Draft, incoming: TransferMessages, slots: SlotTable, waiting: list[Segments]) -> Arrivals:
    first = incoming.first
    stored = list(map(slots.of_value.__getitem__, draft.arrival[first].tolist()))
    return Arrivals(incoming.keys, stored, incoming.sizes.tolist(), list(map(waiting.__getitem__, first.tolist())))


def _unchecked(draft: Draft, share: TransferShare, slots: SlotTable) -> dict[int, tuple[Expected, ...]]:
    """What is expected of arrivals that only the run shows, by number of the arrival."""
    unchecked: dict[int, list[Expected]] = {}
    nodes, message = share.incoming.nodes.tolist(), owners(share.incoming.sizes).tolist()
    for number, node in zip(message, nodes, strict=True):
        if node in share.unchecked:
            dtype = base_type(draft.columns.properties[node].output_types[0])
            unchecked.setdefault(number, []).append(Expected(slots.of_value[draft.arrival[node]], dtype, node))
    return {number: tuple(expected) for number, expected in unchecked.items()}


def _segments(
    program: Program, grouping: Grouping, unlocks: Sequence[Segments], instructions: list[Instruction]
) -> tuple[Segment, ...]:
    """Cuts the program into segments and chunks; `unlocks` are by segment those that wait for it.

    Origins are tuples, which the garbage collector forgets after its first look.
    """
    starts = np.searchsorted(program.segment_at, np.arange(len(grouping.groups) + 1)).tolist()
    origins: tuple[NodeNumber, ...] = tuple(program.nodes.tolist())
    return tuple(
        [
            Segment(_chunks(instructions, start, end), origins[start:end], len(group.needs), after)
            for (start, end), group, after in zip(pairwise(starts), grouping.groups, unlocks, strict=True)
        ]
    )


def _chunks(instructions: list[Instruction], start: int, end: int) -> tuple[Chunk, ...]:
    if end - start <= CHUNK:
        return (instructions[start:end],) if start < end else ()
    return tuple([instructions[i : min(i + CHUNK, end)] for i in range(start, end, CHUNK)])


def _deferred(
    draft: Draft, assembler: Assembler, loops: PlannedLoops, waiting: Sequence[Segments]
) -> Iterator[DeferredNode]:
    """The deferred nodes, in the order of their launches."""
    for node in draft.nodes(Role.LAUNCH).tolist():
        arrival, end = NodeNumber(node + 1), draft.columns.properties[node]
        assert isinstance(end, DeferredEnd)  # launches have no other properties
        work = loops[end.deferred.frame] if end.deferred.frame else assembler.starter(node, end.deferred.node)
        outputs = assembler.slots[draft.first[arrival] : draft.first[arrival + 1]]
        yield DeferredNode(
            work=work,
            outputs=tuple(outputs),
            flag=assembler.flag(arrival),
            segments=waiting[arrival],
            node=node,
        )
