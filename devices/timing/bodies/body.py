"""The columns of a body: what each node of a graph needs of the simulated hardware, and which nodes wait for it.

A body is a graph that runs as a unit: the partitions of a step together, or the body of a function. It is planned once
and may run many times.

    node      x  ->  a  ->  a/send  =>  a/recv  ->  b           (b on another device)
    duty      FREE   COMPUTE   FREE     TRANSFER    COMPUTE
    waits     0      1         1        1           1
    consumers of a: [a/send]; of a/send: [a/recv]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....graph.shape_inference.unknown_sizes import counted_size

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ....graph.shape_inference.infer import InferredShapes, Shapes
    from ...kernels.op_cost import Dims
    from ...topology import Route
    from ..cost_source import OpCost


class Consumers(NamedTuple):
    """Of node n: `targets[starts[n] : starts[n + 1]]`, once per edge. Python lists: the player reads one at a time."""

    starts: list[int]
    targets: list[int]


@dataclass(slots=True)
class Body:
    """Columns by joint number of `graph`.

    `device` numbers the devices of the cluster. `costs[cost_of[n]]` is the cost of a node and `time_ns[n]` its time.
    A receive that takes a route has it in `routes` and its bytes in `copied_bytes`.

    Node n is ready after `waits[n]` events. When it ends, its `consumers` count down. On a device that launches kernels
    the nodes of `on_stream` (kernels, and what only passes on their values) also have `launch_consumers`, on the same
    stream, which count down earlier: when a kernel is launched.
    A Merge counts its data inputs as one event, which the first of `into_merges` delivers. Nodes of `dead` do not run.
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
    dead: set[int]
    into_merges: dict[int, list[int]]
    warnings: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time_ns)


def sizes_of(shapes: Shapes) -> tuple[Dims, ...]:
    """Shapes; those of unknown size, which nobody reads, without elements."""
    return tuple(map(counted_size, shapes))
