"""Compiles the partition graphs of a request to plans. A reader of the compiler should begin here.

As an example take y = (-x + 1) * -x, of which CPU:1 adds one. The partition of CPU:0, with device names shortened:

    7 nodes @CPU:0
    sum/_3: float = _Recv() {edge_6_sum from CPU:1}
    _arg_x_0_0: float = _Arg() {index=0}
    neg: float = Neg(_arg_x_0_0)
    same: float = Identity(neg)
    same/_0 = _Send(same) {edge_4_same to CPU:1}
    y: float = Mul(sum/_3, same)
    _retval_y_0_0 = _Retval(y) {index=0}

First it becomes a draft: nodes in topological order (`columns`), each with its role (`roles`), and numbered values
(`draft`). Nodes that need an instruction are grouped into segments by the messages that they wait for, in all
partitions together, as one end of a message decides what the other waits for (`segments`, `transfers`):

    0 sum/_3: v1 = RECV()
    1 _arg_x_0_0: v2 = ARG()
    2 neg: v3 = COMPUTE(v2)    # segment 0
    3 same: v3 = ALIAS(v3)
    4 same/_0: SEND(v3)    # segment 0
    5 y: v5 = COMPUTE(v1, v3)    # segment 1
    6 _retval_y_0_0: RETVAL(v5)
    segment 1, after message of 0

Values get slots by their lifetimes (`slots`, `layout`), nodes get instructions (`assembler`, `instructions`), and this
is the plan (`planning`, `plan`):

    plan of CPU:0
      slots 9
      argument 0 (float) -> s5
      message 0 -> s8, key CPU:1;1;CPU:0;edge_6_sum;0:0
    segment 0, at once
      s6 = Neg(s5)    # neg
      _Send(s6)    # same/_0: send CPU:0;1;CPU:1;edge_4_same;0:0
    segment 1, after message 0
      s7 = Mul(s8, s6)    # y
    result 0 (float) = s7

Constants, identities and no-ops leave no instruction behind, nor does arithmetic on small constants (`known`), unless
`every_node` asks for one instruction a node, as traces do. Slices, reshapes and the like have their constants built in
(`binding` of `devices.kernels.registry`). Where a tensor may be dead, and only there, instructions look for it
(`deadness`).

A partition with loops is folded into `levels` before all that, and each level becomes a plan of its own, inner loops
first. A loop that one device runs by itself becomes a `LocalLoop`. Of a loop that exchanges messages, the shares of all
devices are compiled together, like a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ...graph.checking import are_checked
from ...graph.dtypes import is_ref
from .. import plans as room
from .binding import check_complete
from .columns import OrderedGraph
from .deferred import launched
from .draft import draft_of
from .levels import Levels, Loop, levels_of, located
from .plan import DistributedLoop, Plan
from .planning import PlannedLoops, keeps_inputs, plan_of
from .roles import Role, roles_of
from .transfers import shares_of

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from .binding import Binder

BoundGraph = tuple["Graph", "Binder"]


class _LevelPart(NamedTuple):
    """What one partition has of a level: the graph around it, its columns, and the compiled loops of the partition."""

    graph: Graph
    binder: Binder
    columns: OrderedGraph
    loops: PlannedLoops


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What holds of a level in all partitions.

    What is `framed` runs once for every iteration of a loop or call of a function, so the plan has only the beginning
    of each key, `CPU:0;1;CPU:1;edge_4_same;`, and every run adds its frame and iteration, `2:0`. `entered_alive` says
    that no argument is ever dead. For `every_node`, `from_elsewhere` and `process_of` see `compile_plans`.
    """

    every_node: bool
    from_elsewhere: bool
    framed: bool
    in_loop: bool = False
    entered_alive: bool = True
    process_of: Mapping[str, str] | None = None


def compile_plans(
    parts: Sequence[BoundGraph],
    *,
    every_node: bool = False,
    called: bool = False,
    from_elsewhere: bool = False,
    process_of: Mapping[str, str] | None = None,
) -> list[Plan]:
    """The plans of all partitions of a graph, each on the device of its binder.

    With `every_node` every tensor is a message of its own, too, and there is a clock around every instruction. The
    keys of a function that is `called` lack the frame. With `from_elsewhere` there are partitions that are not
    among `parts`, and nothing is known of what comes from them. With `process_of`, the process of each device, a tensor
    that goes to another process is a message of its own. Raises Unfoldable for loops that only the interpreter can run,
    UnimplementedError for ops without kernel (all of them in one message), and what kernel factories raise.
    """
    setting = _Setting(every_node=every_node, from_elsewhere=from_elsewhere, framed=called, process_of=process_of)
    levels = [_levels(graph, binder) for graph, binder in parts]
    loops: list[PlannedLoops] = [{} for _ in parts]
    alive = None if from_elsewhere else _entered_alive(levels)
    for frame in _inner_first(levels):
        of_frame = [
            (loop, _LevelPart(*part, loop.columns, compiled))
            for part, own, compiled in zip(parts, levels, loops, strict=True)
            for loop in own.loops
            if loop.name == frame
        ]
        _compile_loop(of_frame, replace(setting, framed=True, in_loop=True, entered_alive=frame == alive))
    shares = [_LevelPart(*part, own.root, compiled) for part, own, compiled in zip(parts, levels, loops, strict=True)]
    plans = _compile_level(shares, setting)
    check_complete(binder for _, binder in parts)
    if any(keeps_inputs(loop.columns) for own in levels for loop in own.loops):
        plans = [replace(plan, keeps_inputs=True) for plan in plans]
    if are_checked():
        from .invariants import check_plan

        for plan in plans:
            check_plan(plan)
    return plans


def _levels(graph: Graph, binder: Binder) -> Levels:
    return levels_of(graph, located(graph, binder.is_deferred))


def _inner_first(levels: Sequence[Levels]) -> list[str]:
    """The frames of all partitions, each after those inside it."""
    depth = {loop.name: loop.depth for own in levels for loop in own.loops}
    return sorted(depth, key=lambda name: -depth[name])


def _entered_alive(levels: Sequence[Levels]) -> str | None:
    """The frame into which no dead tensor goes: the only outermost one, in a graph with Switches in loops only."""
    outermost = {loop.name for own in levels for loop in own.loops if loop.depth == 1}
    return outermost.pop() if len(outermost) == 1 and not _has_switches(own.root for own in levels) else None


def _compile_loop(shares: Sequence[tuple[Loop, _LevelPart]], setting: _Setting) -> None:
    """Compiles the shares that partitions have in a loop, into their `loops`."""
    together: list[tuple[Loop, _LevelPart]] = []
    for loop, share in shares:
        alone = room.local_loop(loop, share.binder, share.loops, every_node=setting.every_node)
        if alone is None:
            together.append((loop, share))
        else:
            share.loops[loop.name] = alone
    plans = _compile_level([share for _, share in together], setting)
    loops = room.distributed_loops([loop for loop, _ in together], plans, from_elsewhere=setting.from_elsewhere)
    for (loop, share), compiled in zip(together, loops, strict=True):
        share.loops[loop.name] = compiled


def _compile_level(shares: Sequence[_LevelPart], setting: _Setting) -> list[Plan]:
    """The plans of one level of all partitions: of the graph, or of what an iteration of a loop does."""
    every_node = setting.every_node
    columns = [launched(share.columns) for share in shares]
    has_references = any(is_ref(t) for own in columns for kind in own.kinds for t in kind.output_types)
    dead_sources = _dead_sources(columns, [share.loops for share in shares], setting)
    drafts = [
        draft_of(
            own,
            share.binder,
            dead_sources=dead_sources,
            receives_may_be_references=setting.from_elsewhere or (len(shares) > 1 and has_references),
            every_node=every_node,
        )
        for own, share in zip(columns, shares, strict=True)
    ]
    process_of = setting.process_of
    processes = None if process_of is None else [process_of[share.binder.device] for share in shares]
    transfers = shares_of(
        [s.graph for s in shares], drafts, bundled=not every_node, framed=setting.framed, processes=processes
    )
    plans = [
        plan_of(draft, share.binder, own_transfers, share.loops, repeats=setting.in_loop)
        for draft, share, own_transfers in zip(drafts, shares, transfers, strict=True)
    ]
    return [room.traced(plan) for plan in plans] if every_node else plans


def _dead_sources(levels: Sequence[OrderedGraph], loops: Sequence[PlannedLoops], setting: _Setting) -> set[Role]:
    """Roles whose outputs may be dead although nothing dead goes into them."""
    exits_die = any(isinstance(loop, DistributedLoop) for own in loops for loop in own.values())
    roles = {Role.ARRIVAL} if exits_die else set()
    if not setting.entered_alive:
        roles.add(Role.ARG)
    if roles or setting.from_elsewhere or _has_switches(levels):
        roles.add(Role.RECV)
    return roles


def _has_switches(levels: Iterable[OrderedGraph]) -> bool:
    return any(role in (Role.SWITCH, Role.SWITCH_N) for own in levels for role in roles_of(own.kinds))
