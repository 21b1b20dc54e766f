"""Costs that a source has computed, by properties, spec object and shapes.

Nodes that share their properties need one computation. Objects are told apart by identity, which is faster than by
their attrs; equal properties of another function's nodes are other objects, and are found by op and attrs.

    properties (by id)   spec (by id)         shapes -> cost
    Neg of node a        cpu            ->    {((2,), (2,)): 5 ns, ((3,), (3,)): 6 ns}
    Neg of node b        cpu            ->    the same dictionary
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ....graph.ops.properties import NodeProperties
from ...kernels.op_cost import PortDims
from ...kernels.op_counts import OpShapes
from ...spec import DeviceSpec
from .source import CostRequest, OpCost

KnownCosts: TypeAlias = "dict[tuple[PortDims, PortDims], OpCost]"
"""of one op on one device, by the shapes of inputs and outputs"""


class AskedUses(NamedTuple):
    """The shapes of several uses of one op on one device."""

    properties: NodeProperties
    uses: Sequence[OpShapes]
    spec: DeviceSpec


class CostCache:
    """The cost of each request that was answered; it keeps the objects alive by whose ids it finds costs."""

    def __init__(self) -> None:
        self._costs: dict[tuple[int, int], KnownCosts] = {}
        self._of_equals: dict[tuple[str, tuple[bytes, ...], int], KnownCosts] = {}
        self._kept: list[object] = []

    def known(self, properties: NodeProperties, spec: DeviceSpec) -> KnownCosts:
        """The costs of an op on a device that were answered so far, to which more may be added."""
        key = id(properties), id(spec)
        known = self._costs.get(key)
        if known is None:
            self._kept += properties, spec
            known = self._of_equals.setdefault((properties.op, properties.entries, id(spec)), {})
            self._costs[key] = known
        return known

    def get(self, request: CostRequest) -> OpCost | None:
        """The cost, None if neither the request nor an equal one was answered yet."""
        properties, inputs, outputs, spec = request
        return self.known(properties, spec).get((inputs, outputs))

    def keep(self, thing: object) -> None:
        """Keeps an object alive whose id something else is found by."""
        self._kept.append(thing)

    def put(self, request: CostRequest, cost: OpCost) -> OpCost:
        """Enters a cost and returns it."""
        properties, inputs, outputs, spec = request
        self.known(properties, spec)[inputs, outputs] = cost
        return cost

    def enter(self, asked: AskedUses, costs: Sequence[OpCost]) -> None:
        """Enters the costs of several uses, in their order."""
        self.known(asked.properties, asked.spec).update(zip(asked.uses, costs, strict=True))

    def all_of(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request, all of which were answered; KeyError otherwise."""
        costs = self._costs
        return [costs[id(p), id(spec)][inputs, outputs] for p, inputs, outputs, spec in batch]

    def unanswered(self, batch: Sequence[CostRequest]) -> list[AskedUses]:
        """What of a batch was not answered yet, once each: the uses of one op on one device together."""
        groups: dict[tuple[int, int], list[CostRequest]] = {}
        for request in batch:
            groups.setdefault((id(request[0]), id(request[3])), []).append(request)
        unanswered = []
        for requests in groups.values():
            properties, spec = requests[0].properties, requests[0].spec
            known = self.known(properties, spec)
            uses = dict.fromkeys([OpShapes(inputs, outputs) for _, inputs, outputs, _ in requests])
            new = [shapes for shapes in uses if shapes not in known] if known else list(uses)
            if new:
                unanswered.append(AskedUses(properties, new, spec))
        return unanswered
