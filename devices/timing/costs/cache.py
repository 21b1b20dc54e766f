"""Costs that a source has computed, by properties, shapes and spec object.

Nodes that share their properties need one computation. Objects are told apart by identity, which is faster than by
their attrs; equal properties of another function's nodes are other objects, and are found by op and attrs.
"""

from __future__ import annotations

from ...kernels.op_cost import PortDims
from .source import CostRequest, OpCost


class CostCache:
    """The cost of each request that was answered; it keeps the objects alive by whose ids it finds costs."""

    def __init__(self) -> None:
        self._costs: dict[tuple[int, PortDims, PortDims, int], OpCost] = {}
        self._of_equals: dict[tuple[str, tuple[bytes, ...], PortDims, PortDims, int], OpCost] = {}
        self._kept: dict[int, object] = {}

    def get(self, request: CostRequest) -> OpCost | None:
        """The cost, None if neither the request nor an equal one was answered yet."""
        properties, inputs, outputs, spec = request
        cost = self._costs.get((id(properties), inputs, outputs, id(spec)))
        if cost is None:
            cost = self._of_equals.get((properties.op, properties.entries, inputs, outputs, id(spec)))
            if cost is not None:
                self.put(request, cost)
        return cost

    def __getitem__(self, request: CostRequest) -> OpCost:
        """The cost of a request that was answered; KeyError for another."""
        properties, inputs, outputs, spec = request
        return self._costs[id(properties), inputs, outputs, id(spec)]

    def keep(self, thing: object) -> None:
        """Keeps an object alive whose id something else is found by."""
        self._kept[id(thing)] = thing

    def put(self, request: CostRequest, cost: OpCost) -> OpCost:
        """Enters a cost and returns it."""
        properties, inputs, outputs, spec = request
        self._kept[id(properties)], self._kept[id(spec)] = properties, spec
        self._costs[id(properties), inputs, outputs, id(spec)] = cost
        self._of_equals[properties.op, properties.entries, inputs, outputs, id(spec)] = cost
        return cost
