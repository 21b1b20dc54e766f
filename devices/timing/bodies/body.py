"""The columns of a body: what each node of a graph needs of the simulated hardware, and which nodes wait for it.

A body is a graph that runs as a unit: the partitions of a step together, or the body of a function. It is planned once
and may run many times.

    node      x  ->  a  ->  a/send  =>  a/recv  ->  b           (b on another device)
    duty      FREE   COMPUTE   FREE     TRANSFER    COMPUTE
    waits     0      1         1        1           1
    consumers of a: [a/send]; of a/send: [a/recv]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ....graph.shape_inference.infer import InferredShapes
from ....graph.shape_inference.unknown_sizes import counted_size
from ..hardware.engine import Duty
from ..hardware.iterations import MOST_ELEMENTS, RowTurn

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Numbers
    from ....graph.dtypes import Dims
    from ....graph.shape_inference.infer import Shapes
    from ...topology import Route
    from ..collectives.seats import CollectiveSeat
    from ..costs.source import OpCost
    from ..memory.tensors import KnownShapes


class Consumers(NamedTuple):
    """Of node n: `targets[starts[n] : starts[n + 1]]`, once per edge. Python lists: the player reads one at a time."""

    starts: list[int]
    targets: list[int]


class TokenEdges(NamedTuple):
    """As `Consumers`, with the port that each edge enters (as in `Edges`) and the output that it leaves."""

    starts: list[int]
    targets: list[int]
    ports: list[int]
    outputs: list[int]


class NodePart(IntEnum):
    """What a node that is asked for when it is ready has to do with the hardware."""

    TAKES_DEVICE = 0  # it is computed when its device takes it
    MAY_BE_FREE = 1  # it is computed at once, and passes if it took no time
    SENDS = 2
    RECEIVES = 3
    DEFERRED = 4  # its kernel only begins something, which ends later
    JOINS = 5  # it is a member of a collective


@dataclass(slots=True)
class Asked:
    """Columns of a body whose nodes are asked for one by one, because nobody knows before what they do.

    `parts` says what each node has to do with the hardware, `duty` what a node needs there if it takes time. `at_end`
    and `at_launch` have the edges to the consumers that count down at an end and at a launch. `num_inputs` is by node.
    `begins` are nodes that wait for nothing, or only for a tensor that is sent to them. `is_open` says whether Switches
    are undecided: then tokens may be dead.
    """

    parts: list[NodePart]
    duty: NDArray[np.uint8]
    at_end: TokenEdges
    at_launch: TokenEdges | None
    is_merge: list[bool]
    is_trigger: list[bool]
    num_inputs: list[int]
    begins: list[int]
    is_open: bool


@dataclass(slots=True)
class Gates:
    """How the bodies of one graph are connected.

    `whole` is the graph of all of them. `nodes[k]` is its number of node k of the body, and `local` the reverse, -1 for
    nodes that do not run. `outside` are edges that end in the body and begin elsewhere, by their ends in `whole`.
    `enters` has the frame that an Enter of the body leads to; `nexts` and `exits` are its nodes of these kinds, `calls`
    those that run other graphs. `place_of[k]` is the partition of a node, `counts` the number of nodes by partition.
    """

    whole: JoinedGraph
    nodes: list[int]
    local: list[int]
    outside: set[tuple[int, int]]
    enters: dict[int, int] = field(default_factory=dict)
    nexts: set[int] = field(default_factory=set)
    exits: set[int] = field(default_factory=set)
    calls: set[int] = field(default_factory=set)
    place_of: list[int] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)


class SeatedNode(NamedTuple):
    """Where a node takes part in a collective, and its bytes (see `kinds`)."""

    seat: CollectiveSeat
    size_bytes: int


@dataclass(slots=True)
class Body:
    """Columns by joint number of `graph`.

    `device` numbers the devices of the cluster. `costs[cost_of[n]]` is the cost of a node and `time_ns[n]` its time.
    A receive that takes a route has it in `routes` and its bytes in `copied_bytes`, a member of a collective its seat
    and its bytes in `seats`.

    Node n is ready after `waits[n]` events. When it ends, its `consumers` count down. On a device that launches kernels
    the nodes of `on_stream` (kernels, and what only passes on their values) also have `launch_consumers`, on the same
    stream, which count down earlier: when a kernel is launched.
    A Merge of several live inputs counts them as one event, which the first of `into_merges` delivers. `gates` connect
    the bodies of a graph with loops or calls.
    """

    graph: JoinedGraph
    shapes: InferredShapes | KnownShapes
    device: Numbers
    duty: NDArray[np.uint8]
    costs: list[OpCost]
    cost_of: Numbers
    time_ns: list[int]
    routes: dict[int, Route]
    copied_bytes: dict[int, int]
    waits: list[int]
    consumers: Consumers
    launch_consumers: Consumers | None
    on_stream: bytearray
    into_merges: dict[int, list[int]]
    warnings: list[str] = field(default_factory=list)
    gates: Gates | None = None
    asked: Asked | None = None
    seats: dict[int, SeatedNode] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def passes(self) -> bytes | None:
        """By node 1 if all that it does is to pass at once and count its consumers down; None where more may follow.

        More follows in bodies that are asked, that lead to others, or that have Merges of several inputs.
        """
        if self.asked is not None or self.gates is not None or self.into_merges:
            return None
        is_free: Flags = (self.duty == Duty.FREE) & ~np.frombuffer(self.on_stream, np.bool_)
        return is_free.tobytes()


def sizes_of(shapes: Shapes) -> tuple[Dims, ...]:
    """Shapes; those of unknown size, which nobody reads, without elements."""
    for shape in shapes:
        if shape is None or None in shape:
            return tuple(map(counted_size, shapes))
    return cast("tuple[Dims, ...]", shapes)


def is_small(inputs: Iterable[Dims]) -> bool:
    """Whether an op that reads tensors of these shapes takes little, so that an executor runs it first."""
    return sum(map(prod, inputs)) <= MOST_ELEMENTS


def turn_of(body: Body, node: int, base: int) -> RowTurn:
    """What decides when a node runs in the iteration whose rows begin at `base`."""
    assert isinstance(body.shapes, InferredShapes)  # of an asked body the player knows how much a node takes
    inputs = sizes_of(body.shapes.read(int(body.shapes.case_of[node])))
    return RowTurn(is_small(inputs), rank_of(body, node, base))


def rank_of(body: Body, node: int, base: int) -> tuple[int, int]:
    """The number of a node in the order of iterations, of which one has rows from `base` on, and of the graph."""
    graph, number = (body.graph, node) if body.gates is None else (body.gates.whole, body.gates.nodes[node])
    return base, graph.import_ranks[number]
