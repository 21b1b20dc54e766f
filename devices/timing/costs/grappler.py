"""Costs as TensorFlow 2.21's cost estimator gives them (Grappler's, for a virtual cluster), to the microsecond.

    Conv2D (32, 56, 56, 64) by (3, 3, 64, 64), SAME, on 9519.104 operations and 732 bytes per nanosecond
        7398752256 operations / 9519.104, rounded up    777253 ns
        51527680 bytes / 732, rounded up                 70393 ns
        added up, the rest of a microsecond cut off     847000 ns

Operations and bytes have rules by op (`grappler_counts`); ops without one move their inputs and outputs and compute
nothing. Shapes are given and known, where TensorFlow's own inference may know less: it counts unknown sizes as 1.
"""

from __future__ import annotations

from math import ceil

from ....errors import InvalidArgumentError
from ....graph.ops.properties import NodeProperties
from ...kernels.op_cost import CostContext, PortDims
from ...spec import DeviceSpec
from .cache import CostCache
from .explanation import ExplainedNumber, Explanation
from .grappler_counts.count import GrapplerCount, only_memory
from .grappler_counts.rules import RULES
from .grappler_device import GrapplerDevice
from .roofline import datasheet_ns
from .source import CostRequest, OpCost, Provenance, context

_NS_PER_US = 1000


class GrapplerSource:
    """What TensorFlow's cost estimator says: compute time and memory time added, in whole microseconds.

    The device is the one with the rates of the spec (`GrapplerDevice.of_spec`): its fp32 peak and its peak memory
    bandwidth. With `device`, every spec is taken for that device. No interval: the estimator gives none. Provenance is
    "grappler", and "guessed" where shapes or the layout do not fit the op's rule; then bytes alone count.

    Costs are cached (`CostCache`).
    """

    def __init__(self, device: GrapplerDevice | None = None) -> None:
        self._device = device
        self._cache = CostCache()

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The estimator's execution time of one run."""
        request = CostRequest(properties, inputs, outputs, spec)
        cost = self._cache.get(request)
        if cost is None:
            count, provenance = counts_of(context(properties, inputs, outputs))
            compute_ns, memory_ns = times_ns(count, self._of(spec))
            time_ns = (compute_ns + memory_ns) // _NS_PER_US * _NS_PER_US
            cost = self._cache.put(request, OpCost(time_ns, count.operations, count.bytes, provenance))
        return cost

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """The formula of the cost with its numbers."""
        cost, device = self.cost(properties, inputs, outputs, spec), self._of(spec)
        compute_ns, memory_ns = times_ns(GrapplerCount(cost.flops, cost.bytes), device)
        c = context(properties, inputs, outputs)
        assumed = ["no fusion with other ops; TensorFlow's estimator knows neither launches nor floors of kernels"]
        if properties.op not in RULES:
            assumed.append("no rule for the op: its tensors are moved once")
        elif cost.provenance == "guessed":
            assumed.append("the shapes do not fit the rule of the op: its tensors are moved once")
        return Explanation(
            f"{properties.op} on {spec.name}",
            cost,
            "operations / rate + bytes / bandwidth, each rounded up, the sum cut to microseconds",
            {"operations": str(cost.flops), "bytes": str(cost.bytes)},
            numbers=(
                ExplainedNumber(
                    "rate", f"{device.gigaops:g} operations per ns", "the spec's fp32 peak, as TensorFlow counts it"
                ),
                ExplainedNumber("bandwidth", f"{device.gb_per_s:g} bytes per ns"),
            ),
            null_model=("datasheet roofline", datasheet_ns(cost, c, spec)),
            assumed=tuple(assumed),
            terms={"operations": f"{compute_ns} ns", "bytes": f"{memory_ns} ns"},
        )

    def _of(self, spec: DeviceSpec) -> GrapplerDevice:
        return self._device or GrapplerDevice.of_spec(spec)


def counts_of(c: CostContext) -> tuple[GrapplerCount, Provenance]:
    """Operations and bytes as TensorFlow's estimator counts them, and "guessed" if the shapes do not fit its rule."""
    try:
        return RULES.get(c.op, only_memory)(c), "grappler"
    except (IndexError, KeyError, ValueError, InvalidArgumentError):
        return only_memory(c), "guessed"


def times_ns(count: GrapplerCount, device: GrapplerDevice) -> tuple[int, int]:
    """Nanoseconds of arithmetic and of memory traffic, each rounded up as TensorFlow does it, in floats."""
    return ceil(count.operations / device.gigaops), ceil(count.bytes / device.gb_per_s)
