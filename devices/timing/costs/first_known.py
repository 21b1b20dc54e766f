"""Several sources, of which the first that knows an op speaks: measured times, then fitted ones, then the roofline.

MeasuredSource     MatMul (64, 128) x (128, 256): 2760 ns, "measured"     -> that
                   Relu: UnknownCost
RooflineSource     Relu: 3100 ns, "roofline"                              -> that
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from ....errors import InvalidArgumentError
from .explanation import Explanation, explanation_of
from .source import CostRequest, CostSource, OpCost, UnknownCost, cost_of, costs_of

if TYPE_CHECKING:
    from ....graph.ops.properties import NodeProperties
    from ...kernels.op_cost import PortDims
    from ...spec import DeviceSpec


class FirstKnown:
    """Asks its sources one after the other; the provenance of a cost says which one spoke."""

    def __init__(self, *sources: CostSource) -> None:
        """InvalidArgumentError without sources."""
        if not sources:
            raise InvalidArgumentError("FirstKnown() has no source; write FirstKnown(source, RooflineSource())")
        self.sources = sources

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The cost of the first source that knows it; the UnknownCost of the last if none does."""
        return self._first(CostRequest(properties, inputs, outputs, spec))[1]

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request; a source that knows all that is left is asked for it together."""
        known: dict[int, OpCost] = {}
        left = list(range(len(batch)))
        for source in self.sources:
            try:
                known.update(zip(left, costs_of(source, [batch[k] for k in left]), strict=True))
                left = []
            except UnknownCost:
                for k in left:
                    try:
                        known[k] = cost_of(source, batch[k])
                    except UnknownCost:
                        continue
                left = [k for k in left if k not in known]
            if not left:
                return [known[k] for k in range(len(batch))]
        self.cost(*batch[left[0]])  # raises
        raise UnknownCost(f"no source knows the {batch[left[0]].properties.op} asked for")

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """What the source that knows the cost says of it, and which ones do not know it."""
        request = CostRequest(properties, inputs, outputs, spec)
        source, _ = self._first(request)
        said = explanation_of(source, request)
        silent = [type(other).__name__ for other in self.sources[: self.sources.index(source)]]
        without = (f"{', '.join(silent)} had no time of this op with these shapes",) if silent else ()
        return evolve(said, assumed=said.assumed + without)

    def _first(self, request: CostRequest) -> tuple[CostSource, OpCost]:
        *others, last = self.sources
        for source in others:
            try:
                return source, cost_of(source, request)
            except UnknownCost:
                continue
        return last, cost_of(last, request)
