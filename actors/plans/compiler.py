"""Compiles the partition graphs of a request to plans.

Flows in: placed partition `Graph`s, the kernels of their devices. Flows out: a `Plan` each. Always holds: the program
order is topological and the same every time; nodes that cost nothing at run time (constants, identities, no-ops) leave
no instruction behind, unless `every_node` asks for one instruction a node, as traces do.

    levels (loops folded) -> draft (roles, what may be dead) -> segments and messages, of all partitions together
            -> program order -> lifetimes -> slots -> instructions

Loops come before what is around them. One that a device runs by itself becomes a `LocalLoop`; of one that exchanges
messages, the shares of all devices are compiled together, like a graph of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ...graph.arrays import Numbers
from ...graph.dtypes import DataType, base_type, is_ref
from ...graph.invariants import are_checked
from .assembler import Assembler
from .binding import check_complete
from .columns import Columns, columns_of
from .deferred import End, launched
from .distributed_loops import distributed_loop
from .draft import Draft, draft_of
from .invariants import check_plan
from .layout import slots_of, template_of
from .levels import Levels, Loop, levels_of, located, needs_levels
from .local_loops import local_loop
from .plan import Argument, Arrival, Chunk, DeferredNode, DistributedLoop, Expected, LocalLoop, Plan, Result, Segment
from .roles import Role, roles_of
from .segments import Need
from .tracing import traced
from .transfers import Messages, Share, shares_of

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from .binding import Binder
    from .instructions import Instruction

_new_arrival: Callable[[Iterable[object]], Arrival] = partial(tuple.__new__, Arrival)  # a third of the price of a call
CHUNK = 64  # instructions between two looks at the clock, until a chunk turns out to be slow

Part = tuple["Graph", "Binder"]
Loops = dict[str, LocalLoop | DistributedLoop]
"""the compiled loops of a partition, by frame"""


def compile_plans(
    parts: Sequence[Part], *, every_node: bool = False, called: bool = False, from_elsewhere: bool = False
) -> list[Plan]:
    """The plans of all partitions of a graph, each on the device of its binder.

    With `every_node` every tensor is a message of its own, too, and there is a clock around every instruction. The
    keys of a function that is `called` lack the frame. With `from_elsewhere` there are partitions that are not
    among `parts`, and nothing is known of what comes from them. Raises Unfoldable for loops that only the
    interpreter can run, UnimplementedError for ops without kernel (all of them in one message), and what kernel
    factories raise.
    """
    levels = [_levels(graph, binder) for graph, binder in parts]
    loops: list[Loops] = [{} for _ in parts]
    alive = None if from_elsewhere else _entered_alive(levels)
    for frame in _inner_first(levels):
        _compile_loop(
            frame,
            parts,
            levels,
            loops,
            every_node=every_node,
            from_elsewhere=from_elsewhere,
            entered_alive=frame == alive,
        )
    root = [own.root for own in levels]
    plans = _compile_level(parts, root, loops, framed=called, every_node=every_node, from_elsewhere=from_elsewhere)
    check_complete(binder for _, binder in parts)
    if any(_keeps_inputs(loop.columns) for own in levels for loop in own.loops):
        plans = [replace(plan, keeps_inputs=True) for plan in plans]
    if are_checked():
        for plan in plans:
            check_plan(plan)
    return plans


def _levels(graph: Graph, binder: Binder) -> Levels:
    is_deferred = located(graph, binder.is_deferred)
    return levels_of(graph, is_deferred) if needs_levels(graph, is_deferred) else Levels(columns_of(graph), [])


def _inner_first(levels: Sequence[Levels]) -> list[str]:
    """The frames of all partitions, each after those inside it."""
    depth = {loop.name: loop.depth for own in levels for loop in own.loops}
    return sorted(depth, key=lambda name: -depth[name])


def _entered_alive(levels: Sequence[Levels]) -> str | None:
    """The frame that only what is alive goes into: the only one around, of a graph that has no Switch but inside it."""
    outermost = {loop.name for own in levels for loop in own.loops if loop.depth == 1}
    return outermost.pop() if len(outermost) == 1 and not _has_switches([own.root for own in levels]) else None


def _compile_loop(
    frame: str,
    parts: Sequence[Part],
    levels: Sequence[Levels],
    loops: list[Loops],
    *,
    every_node: bool,
    from_elsewhere: bool,
    entered_alive: bool,
) -> None:
    """Compiles the shares that all partitions have in a loop."""
    together: list[tuple[int, Loop]] = []
    for number, own in enumerate(levels):
        for loop in own.loops:
            if loop.name == frame:
                alone = local_loop(loop, parts[number][1], loops[number], every_node=every_node)
                if alone is None:
                    together.append((number, loop))
                else:
                    loops[number][frame] = alone
    if together:
        shares, columns = [parts[number] for number, _ in together], [loop.columns for _, loop in together]
        inner = [loops[number] for number, _ in together]
        plans = _compile_level(
            shares,
            columns,
            inner,
            framed=True,
            in_loop=True,
            entered_alive=entered_alive,
            every_node=every_node,
            from_elsewhere=from_elsewhere,
        )
        for (number, loop), plan in zip(together, plans, strict=True):
            loops[number][frame] = distributed_loop(loop, plan)


def _compile_level(
    parts: Sequence[Part],
    levels: Sequence[Columns],
    loops: Sequence[Loops],
    *,
    framed: bool,
    in_loop: bool = False,
    entered_alive: bool = True,
    every_node: bool = False,
    from_elsewhere: bool,
) -> list[Plan]:
    """The plans of one level of all partitions: of the graph, or of what an iteration of a loop does.

    The keys of what is `framed` lack frame and iteration.
    """
    columns = [launched(own) for own in levels]
    references = len(parts) > 1 and any(is_ref(t) for c in columns for kind in c.kinds for t in kind.output_types)
    references |= from_elsewhere
    brings_death = _brings_death(columns, loops, entered_alive)
    if from_elsewhere:
        brings_death.add(Role.RECV)
    drafts = [
        draft_of(own, brings_death, receives_may_be_references=references, every_node=every_node) for own in columns
    ]
    shares = shares_of([graph for graph, _ in parts], drafts, bundled=not every_node, framed=framed)
    plans = [
        replace(_plan(draft, binder, share, own), repeats=in_loop)
        for draft, (_, binder), share, own in zip(drafts, parts, shares, loops, strict=True)
    ]
    return [traced(plan) for plan in plans] if every_node else plans


def _brings_death(levels: Sequence[Columns], loops: Sequence[Loops], entered_alive: bool) -> set[Role]:
    """Roles whose outputs may be dead although nothing dead goes into them."""
    exits_die = any(isinstance(loop, DistributedLoop) for own in loops for loop in own.values())
    found = {Role.ARRIVAL} if exits_die else set()
    if not entered_alive:
        found.add(Role.ARG)
    return found | {Role.RECV} if found or _has_switches(levels) else found


def _has_switches(levels: Sequence[Columns]) -> bool:
    return any(role in (Role.SWITCH, Role.SWITCH_N) for own in levels for role in roles_of(own.kinds))


def _plan(draft: Draft, binder: Binder, share: Share, loops: Loops) -> Plan:
    """The plan of one level of a partition, whose share in the transfers is known."""
    program, segment_at = _program(draft, share)
    slots, num_slots = _slots(draft, share, program, segment_at)
    assembler = Assembler(draft, slots, binder, share.outgoing, _run_when_dead(loops))
    instructions = assembler.assemble(program)
    template = template_of(draft, assembler, num_slots)
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
        _keeps_inputs(draft.columns),
        tuple(_deferred(draft, assembler, loops, waiting)),
        outputs=tuple(_outputs(draft, slots)) if draft.every_node else (),
        doubtful=_doubtful(draft, share, slots) if share.doubtful else {},
        sends=share.outgoing,
    )


def _program(draft: Draft, share: Share) -> tuple[Numbers, Numbers]:
    """The nodes that need an instruction, segment by segment, and the segment at each position.

    Of the sends of a message the last one hands over all.
    """
    emits = draft.emits.copy()
    emits[share.outgoing.nodes] = False
    emits[share.outgoing.last] = True
    program = np.flatnonzero(emits)
    if len(share.grouping.needs) == 1:
        return program, np.zeros(len(program), np.int64)
    segment_at = share.grouping.segment_of[program]
    by_segment = np.argsort(segment_at, kind="stable")
    return program[by_segment], segment_at[by_segment]


def _slots(draft: Draft, share: Share, program: Numbers, segment_at: Numbers) -> tuple[list[int], int]:
    """The slot of every value, identities included, and the number of slots; tensors of a message are neighbours."""
    outgoing = share.outgoing
    position = np.full(draft.columns.num_nodes, -1, np.int64)
    position[program] = np.arange(len(program))
    position[outgoing.nodes] = np.repeat(position[outgoing.last], outgoing.sizes)
    rank = np.zeros(draft.num_values, np.int64)
    rank[draft.arrivals[share.incoming.nodes]] = np.arange(1, len(share.incoming.nodes) + 1)
    return slots_of(draft, position, segment_at, rank)


def _outputs(draft: Draft, slots: list[int]) -> Iterator[tuple[int, ...]]:
    return (tuple(slots[draft.first[n] : draft.first[n + 1]]) for n in range(draft.columns.num_nodes))


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


def _doubtful(draft: Draft, share: Share, slots: list[int]) -> dict[int, tuple[Expected, ...]]:
    """What is expected of the arrivals that cannot be known to be right, by their number."""
    found: dict[int, tuple[Expected, ...]] = {}
    starts, nodes = share.incoming.starts.tolist(), share.incoming.nodes.tolist()
    for number, (start, end) in enumerate(pairwise(starts)):
        expected = [
            Expected(slots[draft.arrivals[node]], base_type(draft.columns.properties[node].output_types[0]), node)
            for node in nodes[start:end]
            if node in share.doubtful
        ]
        if expected:
            found[number] = tuple(expected)
    return found


def _segments(
    all_needs: Sequence[Collection[Need]],
    unlocks: list[tuple[int, ...]],
    program: Numbers,
    segment_at: Numbers,
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
    waiting = [properties.op_def.record.waits_for_files for properties in draft.columns.kinds]
    if any(waiting):
        kind = draft.columns.kind.tolist()
        for segment in segments:
            segment.set_apart([at for at, node in enumerate(segment.origins) if waiting[kind[node]]])


def _run_when_dead(loops: Loops) -> Collection[str]:
    """The frames whose loops run even when nothing alive goes in: others wait for what they send."""
    return {frame for frame, loop in loops.items() if isinstance(loop, DistributedLoop)}


def _deferred(
    draft: Draft, assembler: Assembler, loops: Loops, waiting: Mapping[int, tuple[int, ...]] | list[tuple[int, ...]]
) -> Iterator[DeferredNode]:
    """The deferred nodes, in the order of their launches."""
    for node in np.flatnonzero(draft.codes == Role.LAUNCH).tolist():
        arrival, end = node + 1, draft.columns.properties[node]
        assert isinstance(end, End)  # launches have no other properties
        work = loops[end.deferred.frame] if end.deferred.frame else assembler.starter(node, end.deferred.node)
        outputs = assembler.slots[draft.first[arrival] : draft.first[arrival + 1]]
        yield DeferredNode(work, tuple(outputs), assembler.token(arrival), waiting[arrival], node)


def _keeps_inputs(columns: Columns) -> bool:
    """Whether any node has a resource or a reference, where what is fed may be stored."""
    return any(t is DataType.RESOURCE or is_ref(t) for p in columns.kinds for t in (*p.input_types, *p.output_types))
