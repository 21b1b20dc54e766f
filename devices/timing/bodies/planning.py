"""Plans the body of joined partitions: device, duty and cost of every node, and who waits for whom.

Costs are asked for once per distinct (kind of node, model of device, shapes of inputs and outputs), because a step of a
million nodes has a few hundred of these:

    n  op      inputs            kind  model  shapes        cost
    0  Neg     (2, 2)            0     0      0 -> 0        0
    1  MatMul  (2, 2), (2, 2)    1     0      0, 0 -> 0     1
    2  Neg     (2, 2)            0     0      0 -> 0        0      as that of node 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from ....graph.arrays import first_seen
from ....graph.dtypes import item_size
from ....graph.shape_inference.unknown_sizes import check_sizes
from ..collectives.seats import seat_of, seated, size_bytes
from ..costs.fitted import calibration_of
from ..costs.source import FREE, CostRequest, CostSource, OpCost, UnknownCost, costs_of, unknown_cost
from ..hardware.engine import Duty
from ..tracing.measured import with_measured
from ..unmodelled import check_modelled
from .arguments import Site
from .body import Body, SeatedNode, sizes_of
from .dependencies import Edges, dependencies, edges_of, merges_after
from .node_places import NodePlaces
from .places import HostMemory

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ....graph.shape_inference.infer import InferredShapes, Shapes
    from ...cluster import Cluster
    from ...kernels.op_cost import PortDims
    from ..representatives.representatives import Representatives
    from ..tracing.measured import MeasuredTimes


class Planner:
    """Plans bodies for one cluster and one source of costs."""

    def __init__(
        self,
        cluster: Cluster,
        cost_source: CostSource,
        times: MeasuredTimes | None = None,
        representatives: Representatives | None = None,
    ) -> None:
        """`times` are measured, and take the place of those of the source."""
        self.cluster = cluster
        self.representatives = representatives
        """whom the nodes stand for; None if each stands for itself"""
        self.calibration = calibration_of(cost_source)
        """which times collectives, None for that of the catalog"""
        self._cost_source = cost_source
        self.times = times
        self._edges: tuple[Body, Edges] | None = None
        self._specs = [device.spec for device in cluster]
        numbers: dict[int, int] = {}
        self._spec_of = np.array([numbers.setdefault(id(spec), len(numbers)) for spec in self._specs], np.int64)

    def plan(
        self, shapes: InferredShapes, never: Collection[int] = (), prefix: str = "", site: Site | None = None
    ) -> Body:
        """The columns of joined partitions, which are a body if there are no loops, conditions and calls.

        Nodes of `never` do not run; calls cost nothing themselves. `prefix` comes before the names that measured times
        have; `site` is where a body is called from. Raises InvalidArgumentError for a device that the cluster does
        not have and for a size that a cost needs and nobody knows, and UnimplementedError for a node that runs and
        cannot be timed.
        """
        graph, site = shapes.graph, site or Site()
        runs = np.ones(len(graph), np.bool_)
        runs[list(never)] = False
        check_modelled(graph, runs)
        places = NodePlaces(graph, self.cluster)
        check_sizes(shapes, runs & ~places.is_call, site.called)
        members = [n for n in seated(graph) if runs[n]]
        is_priced = runs & ~places.is_transfer & ~places.is_call
        is_priced[members] = False
        priced = np.flatnonzero(is_priced)
        costs, cost_of = self._costs(shapes, places.priced_on, priced)
        routes = places.routes(np.flatnonzero(runs & (graph.sender >= 0)))
        duty = places.duties(np.array([cost.provenance == "free" for cost in costs], np.bool_)[cost_of])
        duty[list(routes)] = Duty.TRANSFER
        warnings = shapes.assumptions + _cost_warnings(graph, costs, cost_of)
        if self.times is not None:
            timed = runs & np.isin(duty, (Duty.COMPUTE, Duty.HOST))
            warnings += with_measured(graph, costs, cost_of, timed, self.times, prefix)
        on_stream = places.on_stream(duty)
        edges = edges_of(graph, places.device, on_stream, places.memory)
        into_merges = merges_after(graph)
        waits, consumers, launch_consumers = dependencies(graph, edges, on_stream, into_merges)
        times = [cost.time_ns for cost in costs]
        body = Body(
            graph=graph,
            shapes=shapes,
            device=places.device,
            duty=duty.astype(np.uint8),
            costs=costs,
            cost_of=cost_of,
            time_ns=[times[number] for number in cost_of.tolist()],
            routes=routes,
            copied_bytes=_copied_bytes(shapes, np.array(list(routes), np.int64)),
            waits=waits,
            consumers=consumers,
            launch_consumers=launch_consumers,
            on_stream=bytearray(on_stream),
            into_merges=into_merges,
            warnings=warnings,
            seats=self.seats(shapes, members, site.counted),
        )
        self._edges = body, edges
        if self.representatives is not None:
            self._stand_for_others(body, places)
        return body

    def _stand_for_others(self, body: Body, places: NodePlaces) -> None:
        assert self.representatives is not None
        for n, (seat, size) in body.seats.items():
            seat = self.representatives.seat(body.graph, n, int(body.device[n]), seat)
            body.seats[n] = SeatedNode(seat, size)
        self.representatives.note(body, places.ways)

    def seats(
        self, shapes: InferredShapes, members: Sequence[int], counted: Collection[int] = frozenset()
    ) -> dict[int, SeatedNode]:
        """Where members of collectives take part, and with how many bytes; `counted` is as in `seat_of`."""
        graph, seats = shapes.graph, dict[int, SeatedNode]()
        for n in members:
            case = int(shapes.case_of[n])
            seat = seat_of(graph, n, lambda source, output: shapes.values.get((source, output)), counted)
            sizes = sizes_of(shapes.read(case)), sizes_of(shapes.written(case))
            seats[n] = SeatedNode(seat, size_bytes(graph.properties[n], seat, *sizes))
        return seats

    def edges(self, body: Body) -> Edges:
        """The edges of the graph of a body; those of the body planned last are there already."""
        if self._edges is not None and self._edges[0] is body:
            return self._edges[1]
        on_stream = np.frombuffer(body.on_stream, np.bool_)
        return edges_of(body.graph, body.device, on_stream, HostMemory(body.graph, body.device, self.cluster))

    def _costs(self, shapes: InferredShapes, device: Numbers, nodes: Numbers) -> tuple[list[OpCost], Numbers]:
        """The distinct costs, and by node the number of its cost; number 0 is that of all but `nodes`."""
        graph = shapes.graph
        seen = first_seen(shapes.case_of[nodes] * np.int64(len(self._specs)) + self._spec_of[device[nodes]])
        asked = nodes[seen.first].tolist()
        batch = self._requests(shapes, device, asked)
        try:
            costs = [FREE, *costs_of(self._cost_source, batch)]
        except UnknownCost:
            raise unknown_cost(self._cost_source, batch, [graph.names[n] for n in asked]) from None
        cost_of = np.zeros(len(graph), np.int64)
        cost_of[nodes] = seen.number + 1
        return costs, cost_of

    def requests(self, shapes: InferredShapes, nodes: Sequence[int]) -> list[CostRequest]:
        """What the source of costs is asked about nodes that compute; their sizes are known.

        Raises InvalidArgumentError for a device that the cluster does not have.
        """
        return self._requests(shapes, NodePlaces(shapes.graph, self.cluster).priced_on, nodes)

    def _requests(self, shapes: InferredShapes, device: Numbers, nodes: Sequence[int]) -> list[CostRequest]:
        rows = np.array(nodes, np.int64)
        properties, specs, read, written = shapes.graph.properties, self._specs, shapes.read, shapes.written
        sized = sizes_of if shapes.may_be_open else _known_sizes
        return [
            CostRequest(properties[n], sized(read(case)), sized(written(case)), specs[where])
            for n, case, where in zip(nodes, shapes.case_of[rows].tolist(), device[rows].tolist(), strict=True)
        ]


def _known_sizes(shapes: Shapes) -> PortDims:
    """`sizes_of` for shapes whose sizes are all known."""
    return cast("PortDims", shapes)


def _copied_bytes(shapes: InferredShapes, receives: Numbers) -> dict[int, int]:
    """The bytes of the tensor of each receive."""
    if not len(receives):
        return {}
    cases = list(zip(shapes.case_of[receives].tolist(), shapes.graph.kind_of[receives].tolist(), strict=True))
    of_case: dict[tuple[int, int], int] = {}
    for case, kind in dict.fromkeys(cases):  # receives of different types may have one case
        dims = sizes_of(shapes.written(case))[0]
        of_case[case, kind] = prod(dims) * item_size(shapes.graph.kinds[kind].output_types[0])
    return dict(zip(receives.tolist(), map(of_case.__getitem__, cases), strict=True))


def _cost_warnings(graph: JoinedGraph, costs: list[OpCost], cost_of: Numbers) -> list[str]:
    if not any(cost.provenance == "guessed" for cost in costs):
        return []
    is_guess = np.array([cost.provenance == "guessed" for cost in costs], np.bool_)[cost_of]
    guessed = Counter(graph.op(n) for n in np.flatnonzero(is_guess).tolist())
    listed = ", ".join(f"{count} x {op}" for op, count in sorted(guessed.items()))
    return [f"guessed to cost one operation per output element, as no cost is stated or shapes do not fit it: {listed}"]
