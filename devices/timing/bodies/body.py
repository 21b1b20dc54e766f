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
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....graph.shape_inference.unknown_sizes import counted_size
from ..hardware.iterations import MOST_ELEMENTS, RowTurn

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ....graph.dtypes import Dims
    from ....graph.shape_inference.infer import InferredShapes, Shapes
    from ...topology import Route
    from ..costs.source import OpCost


class Consumers(NamedTuple):
    """Of node n: `targets[starts[n] : starts[n + 1]]`, once per edge. Python lists: the player reads one at a time."""

    starts: list[int]
    targets: list[int]


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


@dataclass(slots=True)
class Body:
    """Columns by joint number of `graph`.

    `device` numbers the devices of the cluster. `costs[cost_of[n]]` is the cost of a node and `time_ns[n]` its time.
    A receive that takes a route has it in `routes` and its bytes in `copied_bytes`.

    Node n is ready after `waits[n]` events. When it ends, its `consumers` count down. On a device that launches kernels
    the nodes of `on_stream` (kernels, and what only passes on their values) also have `launch_consumers`, on the same
    stream, which count down earlier: when a kernel is launched.
    A Merge of several live inputs counts them as one event, which the first of `into_merges` delivers. `gates` connect
    the bodies of a graph with loops or calls.
    """

    graph: JoinedGraph
    shapes: InferredShapes
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

    def __len__(self) -> int:
        return len(self.time_ns)


def sizes_of(shapes: Shapes) -> tuple[Dims, ...]:
    """Shapes; those of unknown size, which nobody reads, without elements."""
    return tuple(map(counted_size, shapes))


def is_small(inputs: Iterable[Dims]) -> bool:
    """Whether an op that reads tensors of these shapes takes little, so that an executor runs it first."""
    return sum(map(prod, inputs)) <= MOST_ELEMENTS


def turn_of(body: Body, node: int, base: int) -> RowTurn:
    """What decides when a node runs in the iteration whose rows begin at `base`."""
    graph, number = (body.graph, node) if body.gates is None else (body.gates.whole, body.gates.nodes[node])
    inputs = sizes_of(body.shapes.read(int(body.shapes.case_of[node])))
    return RowTurn(is_small(inputs), (base, graph.import_ranks[number]))
