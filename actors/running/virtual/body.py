"""A graph cut by device as virtual steps run it: the bodies that are played, and the kernels of their nodes.

Nodes of a partition have the numbers of its `Interpretation`. Bodies have the joint numbers that a simulation of the
same partitions uses: those of the first partition in the order of their ids in the graph, then those of the second, ...

    partition    CPU:0                    CPU:1
    node         0 x   1 x/send           0 x/recv   1 y
    joint        0     1                  2          3
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....devices.kernels.op_cost import waits_ns
from ....devices.state import Variable
from ....devices.timing.bodies.node_places import NodePlaces
from ....devices.timing.bodies.open_bodies import OpenBodies
from ....devices.timing.costs.source import CostRequest, OpCost, UnknownCost, context, cost_of, unknown_cost
from ....devices.timing.unmodelled import check_modelled, unmodelled, why_unmodelled
from ....graph.analysis.joined import JoinedGraph
from ...plans.roles import Role
from ..interpretation import Interpretation

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ....devices.timing.playing.activation import Activation
    from ....graph.dtypes import Dims
    from ....graph.graph import Graph
    from ...plans.binding import Binder
    from .clock import VirtualClock

ShapesOfValues = tuple["Dims", ...]
_ARRAYS = (np.ndarray, np.generic)


class NodeKernel(NamedTuple):
    """A node of a partition: what computes it."""

    part: Interpretation
    node: int

    @property
    def role(self) -> Role:
        """What executors have to do for it."""
        return self.part.roles[self.node]

    @property
    def op(self) -> str:
        """Its op."""
        return self.part.properties[self.node].op


class VirtualBody:
    """What a request or a function runs on simulated hardware; `kernels` by joint number."""

    def __init__(self, graphs: Mapping[str, Graph], binders: Mapping[str, Binder], cluster: Cluster) -> None:
        """Binds every node to a kernel; the binders note ops without one. Raises as `JoinedGraph` and `Topology`."""
        self.graph = JoinedGraph(graphs)
        self._specs = [device.spec for device in cluster]
        self.kernels: list[NodeKernel] = []
        for graph in graphs.values():
            part = Interpretation(graph, binders)
            self.kernels += [
                NodeKernel(part, node) for _, node in sorted(zip(part.ids, range(len(part.ids)), strict=True))
            ]
        places = NodePlaces(self.graph, cluster)
        self._priced_on: list[int] = places.priced_on.tolist()
        deferred = {n for n, (part, node) in enumerate(self.kernels) if node in part.deferred}
        self.bodies = OpenBodies(places, deferred)
        runs = np.full(len(self.graph), not self.bodies.is_open)
        check_modelled(self.graph, runs)
        self._refused = frozenset(np.flatnonzero(unmodelled(self.graph)).tolist())

    def check_modelled(self, number: int) -> None:
        """Raises UnimplementedError for a node that cannot be timed, when it runs after all."""
        if number in self._refused:
            raise why_unmodelled(self.graph, number)

    def number(self, activation: Activation, node: int) -> int:
        """The joint number of a node of an activation."""
        gates = activation.body.gates
        return node if gates is None else gates.nodes[node]

    def price(self, number: int, inputs: ShapesOfValues, outputs: ShapesOfValues, clock: VirtualClock) -> OpCost:
        """The cost of one run of a node on inputs and outputs of these shapes; the source is asked for it once."""
        spec = self._specs[self._priced_on[number]]
        request = CostRequest(self.graph.properties[number], inputs, outputs, spec)
        known = clock.known_costs.get(request)
        if known is not None:
            return known
        source = clock.cost_source
        try:
            return clock.known_costs.put(request, cost_of(source, request))
        except UnknownCost:
            raise unknown_cost(source, [request], [self.graph.names[number]]) from None

    def waits_ns(self, number: int, inputs: ShapesOfValues, outputs: ShapesOfValues) -> int:
        """The part of the cost of a node that it only waits for."""
        return waits_ns(context(self.graph.properties[number], inputs, outputs))


def dims_of(value: Any) -> Dims:  # Any: a tensor of any type, or a variable
    """The shape of a tensor; of a variable without a value the declared one, where a size that it leaves open is 1."""
    if isinstance(value, _ARRAYS):
        return value.shape
    if isinstance(value, Variable):
        if value.value is None:
            return tuple(size or 1 for size in value.shape or ())
        value = value.value
    return tuple(np.shape(value))
