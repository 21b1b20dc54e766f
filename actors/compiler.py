"""Compiles the partition graphs of a request to plans.

Flows in: placed partition `Graph`s without loops, the kernels of their devices. Flows out: a `Plan` each. Always
holds: the program order is topological and the same every time; nodes that cost nothing at run time (constants,
identities, no-ops) leave no instruction behind, unless `every_node` asks for one instruction a node, as traces do.

    columns -> draft (roles, what may be dead) -> segments and messages, of all partitions together
            -> program order -> lifetimes -> slots -> instructions
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..devices.kernels.registry import is_waiting_for_files
from ..graph.dtypes import DataType, base_type, is_ref
from .assembler import Assembler
from .binding import check_complete
from .columns import Ints, columns_of
from .draft import Draft, draft_of
from .plan import Argument, Arrival, Chunk, Plan, Result, Segment
from .roles import Role
from .segments import Need
from .slots import allocate, lifetimes
from .transfers import Messages, Share, shares_of

if TYPE_CHECKING:
    from ..graph.graph import Graph
    from .binding import Binder
    from .instructions import Instruction

_new_arrival: Callable[[Iterable[object]], Arrival] = partial(tuple.__new__, Arrival)  # a third of the price of a call
CHUNK = 64  # instructions between two looks at the clock, until a chunk turns out to be slow


def compile_plans(
    parts: Sequence[tuple[Graph, Binder]], *, receives_may_be_dead: bool, every_node: bool = False
) -> list[Plan]:
    """The plans of all partitions of a graph, each on the device of its binder.

    `receives_may_be_dead` says whether any partition has a Switch. With `every_node` every tensor is a message of its
    own, too. Raises UnimplementedError for loops and for ops without kernel (all of them in one message), and what
    kernel factories raise.
    """
    graphs = [graph for graph, _ in parts]
    columns = [columns_of(graph) for graph in graphs]
    references = len(parts) > 1 and any(is_ref(t) for c in columns for kind in c.kinds for t in kind.output_types)
    drafts = [
        draft_of(
            own,
            receives_may_be_dead=receives_may_be_dead,
            receives_may_be_references=references,
            every_node=every_node,
        )
        for own in columns
    ]
    shares = shares_of(graphs, drafts, bundled=not every_node)
    plans = [_plan(draft, binder, share) for draft, (_, binder), share in zip(drafts, parts, shares, strict=True)]
    check_complete(binder for _, binder in parts)
    return plans


def _plan(draft: Draft, binder: Binder, share: Share) -> Plan:
    """The plan of one partition, whose share in the transfers is known."""
    program, segment_at = _program(draft, share)
    slots, num_slots = _slots(draft, share, program, segment_at)
    assembler = Assembler(draft, slots, binder, share.outgoing)
    instructions = assembler.assemble(program)
    template: list[Any] = [None] * num_slots  # tensors of any type
    _preload(draft, assembler, template)
    waiting, unlocks = _who_waits(share.grouping.needs, draft.columns.num_nodes)
    segments = _segments(share.grouping.needs, unlocks, program, segment_at, instructions)
    _set_apart(draft, segments)
    return Plan(
        binder.device,
        template,
        tuple(_arguments(draft, slots)),
        tuple(_results(draft, slots)),
        _arrivals(draft, share.incoming, slots, waiting),
        segments,
        draft.columns.names,
        draft.columns.properties,
        _keeps_inputs(draft),
    )


def _program(draft: Draft, share: Share) -> tuple[Ints, Ints]:
    """The nodes that need an instruction, segment by segment, and the segment at each position.

    Of the sends of a message the last one hands over all.
    """
    emits = draft.emits.copy()
    emits[share.outgoing.nodes] = False
    emits[share.outgoing.last] = True
    program = np.flatnonzero(emits)
    if len(share.grouping.needs) == 1:
        return program, np.zeros(len(program), np.intp)
    segment_at = share.grouping.segment_of[program]
    by_segment = np.argsort(segment_at, kind="stable")
    return program[by_segment], segment_at[by_segment]


def _slots(draft: Draft, share: Share, program: Ints, segment_at: Ints) -> tuple[list[int], int]:
    """The slot of every value, identities included, and the number of slots; tensors of a message are neighbours."""
    columns, outgoing = draft.columns, share.outgoing
    position = np.full(columns.num_nodes, -1, np.intp)
    position[program] = np.arange(len(program))
    position[outgoing.nodes] = np.repeat(position[outgoing.last], outgoing.sizes)
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
    rank = np.zeros(draft.num_values, np.intp)
    rank[draft.arrivals[share.incoming.nodes]] = np.arange(1, len(share.incoming.nodes) + 1)
    slots, num_slots = allocate(lives, rank)
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


def _who_waits(all_needs: Sequence[Iterable[Need]], num_nodes: int) -> tuple[list[tuple[int, ...]], ...]:
    """The segments that wait for each message, by the node that stands for it, and for each segment."""
    waiting: list[tuple[int, ...]] = [()] * num_nodes
    unlocks: list[tuple[int, ...]] = [()] * len(all_needs)
    for segment, needs in enumerate(all_needs):
        only = (segment,)
        for need in needs:
            if need < 0:
                before = waiting[~need]
                waiting[~need] = (*before, segment) if before else only
            else:
                before = unlocks[need]
                unlocks[need] = (*before, segment) if before else only
    return waiting, unlocks


def _arrivals(
    draft: Draft, incoming: Messages, slots: list[int], waiting: list[tuple[int, ...]]
) -> tuple[Arrival, ...]:
    first = incoming.nodes[incoming.starts[:-1]]
    stored = map(slots.__getitem__, draft.arrivals[first].tolist())
    sizes, unlocked = incoming.sizes.tolist(), map(waiting.__getitem__, first.tolist())
    return tuple(map(_new_arrival, zip(incoming.keys, stored, sizes, unlocked, strict=True)))


def _segments(
    all_needs: Sequence[Collection[Need]],
    unlocks: list[tuple[int, ...]],
    program: Ints,
    segment_at: Ints,
    instructions: list[Instruction],
) -> tuple[Segment, ...]:
    """Cuts the program into segments and chunks and says who waits for whom."""
    starts = np.searchsorted(segment_at, np.arange(len(all_needs) + 1)).tolist()
    origins = program.tolist()
    return tuple(
        [
            Segment(_chunks(instructions, start, end), origins[start:end], len(needs), after)
            for start, end, needs, after in zip(starts[:-1], starts[1:], all_needs, unlocks, strict=True)
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
    if draft.is_reference is not None and draft.is_reference.any():
        return True
    return any(t is DataType.RESOURCE for p in draft.columns.kinds for t in p.input_types)
