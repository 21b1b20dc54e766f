"""The roofline: an op takes the longer of its arithmetic and its memory traffic, plus the overhead of its kernel.

Williams, Waterman, Patterson: Roofline, CACM 52/4, 2009. Higher rates, fewer operations and fewer bytes never make an
op slower. It needs nothing but a datasheet, so it answers every question, and every fit is compared with it.

How sure it is comes from the 6337 products of eight GPUs that aiconfigurator 095f58a5 measured (bf16; the rows of
`gemm_bf16.csv`), with the numbers of the catalog: a tenth of them takes less than 0.95 of the roofline, a tenth more
than 1.35 of it and 7 us, the 7 us for the floor of kernels that datasheets lack. (A factor alone would have to be 10.7
because of products that take a microsecond or less by the roofline.) The same is assumed of other ops and types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ....graph.dtypes import dtype_name
from ....graph.ops.properties import NodeProperties
from ...kernels import op_cost
from ...kernels.host_times import HIGH_PERCENT as HOST_HIGH_PERCENT, LOW_PERCENT as HOST_LOW_PERCENT
from ...kernels.op_cost import CostContext, PortDims
from ...kernels.op_counts import OpShapes, counts_of
from ...spec import DeviceSpec
from .cache import CostCache
from .explanation import ExplainedNumber, Explanation
from .source import FREE, CostRequest, OpCost, Provenance, context, rate_type, rates_of

LOW_PERCENT = 95
HIGH_PERCENT = 135
FLOOR_NS = 7000
"""what a kernel may take beside the roofline, where the spec does not give its floor"""


def ceil_ns(amount: int, rate_per_s: int) -> int:
    """Nanoseconds that `amount` takes at a rate, a started nanosecond counted whole; exact for any size."""
    return -(-amount * 10**9 // rate_per_s)


class RooflineSource:
    """max(operations / achieved rate, bytes / achieved bandwidth) + overhead; 0 for free ops.

    The overhead is the floor of a kernel, and on a CPU what an op costs beside its kernel. A GPU's launches are not
    part of an op's time: they overlap with what the GPU computes.

    Costs are cached (`CostCache`).
    """

    def __init__(self) -> None:
        self._cache = CostCache()

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The roofline time of one run."""
        request = CostRequest(properties, inputs, outputs, spec)
        cost = self._cache.get(request)
        return self._cache.put(request, roofline(context(properties, inputs, outputs), spec)) if cost is None else cost

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request; the uses of one op on one device are computed together."""
        for asked in self._cache.unanswered(batch):
            self._cache.enter(asked, rooflines(*asked))
        return self._cache.all_of(batch)

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """The formula of the cost with its numbers."""
        return explain_roofline(context(properties, inputs, outputs), spec)


def explain_roofline(c: CostContext, spec: DeviceSpec) -> Explanation:
    """What `roofline` says, with its numbers."""
    cost, matrix, dtype = roofline(c, spec), op_cost.is_matrix(c.op), rate_type(c)
    if cost.provenance == "free":
        return Explanation(f"{c.op} on {spec.name}", cost, "free: no kernel runs, tensors are only passed on")
    if op_cost.is_on_host(c.op):
        return _explain_host(c, cost, spec)
    family = spec.family(dtype, matrix=matrix)
    numbers = [
        ExplainedNumber(
            f"{family} rate", f"{spec.achieved_flops_per_s(dtype, matrix=matrix):.6g} FLOP/s", "peak * efficiency"
        ),
        ExplainedNumber("bandwidth", f"{spec.achieved_bytes_per_s:.6g} B/s", "bandwidth * efficiency"),
        ExplainedNumber("floor" if spec.launches_kernels else "launch", f"{spec.op_overhead_ns} ns"),
    ]
    wait_ns = op_cost.waits_ns(c)
    assumed = ["no fusion with other ops"]
    if family == "tf32":
        assumed.append("float32 products run as tf32 on tensor cores, TensorFlow's default; --no-tf32 switches it off")
    elif family == "fp32" and matrix and spec.launches_kernels:
        assumed.append("float32 products run at full precision: tf32 is switched off, or the device has none")
    if cost.provenance == "guessed":
        why = "the shapes do not fit the op" if op_cost.is_stated(c.op) else "nothing states what the op costs"
        assumed.append(f"{why}: an operation per element written, all tensors moved once")
    return Explanation(
        f"{c.op} on {spec.name}",
        cost,
        "max(operations / rate, bytes / bandwidth) + overhead" + (f" + {wait_ns} ns waiting" if wait_ns else ""),
        {"operations": str(cost.flops), "bytes": str(cost.bytes), "type": dtype_name(dtype)},
        numbers=tuple(numbers),
        null_model=("datasheet roofline", datasheet_ns(cost, c, spec)),
        assumed=tuple(assumed),
    )


def _explain_host(c: CostContext, cost: OpCost, spec: DeviceSpec) -> Explanation:
    return Explanation(
        f"{c.op} on {spec.name}",
        cost,
        "a fixed time of the host: references are passed on, no kernel is launched and no bytes are moved",
        numbers=(ExplainedNumber("time", f"{op_cost.host_ns(c)} ns", "traces of TensorFlow 2.21 on a CPU"),),
        assumed=("every host takes as long as the one that was measured",),
    )


def datasheet_ns(cost: OpCost, c: CostContext, spec: DeviceSpec) -> int:
    """The time of the operations and bytes of a cost by peak rate and bandwidth alone, without floors and shares."""
    peak = spec.peak_flops_per_s[spec.family(rate_type(c), matrix=op_cost.is_matrix(c.op))]
    return max(ceil_ns(cost.flops, peak), ceil_ns(cost.bytes, spec.memory_bandwidth_bytes_per_s)) + op_cost.waits_ns(c)


def roofline(c: CostContext, spec: DeviceSpec) -> OpCost:
    """Cost of one run by the roofline of the device, of an op on the host its fixed time.

    "guessed" where nothing states the cost of the op, or its shapes do not fit it.
    """
    if op_cost.is_free(c.op):
        return FREE
    if op_cost.is_on_host(c.op):
        return _on_host(c)
    provenance: Provenance = "roofline" if op_cost.is_stated(c.op) else "guessed"
    try:
        flops, moved = op_cost.flops_of(c), op_cost.bytes_of(c)
    except InvalidArgumentError:
        # Assumed sizes need not fit the op: count bytes and output elements, and mark the cost as guessed.
        flops, provenance = op_cost.elements_written(c), "guessed"
        moved = op_cost.input_bytes(c) + op_cost.output_bytes(c)
    compute_ns = ceil_ns(flops, spec.achieved_flops_per_s(rate_type(c), matrix=op_cost.is_matrix(c.op)))
    memory_ns = ceil_ns(moved, spec.achieved_bytes_per_s)
    busy_ns, wait_ns = max(compute_ns, memory_ns) + spec.op_overhead_ns, op_cost.waits_ns(c)
    low_ns, high_ns = bounds_ns(busy_ns, spec)
    return OpCost(busy_ns + wait_ns, flops, moved, provenance, low_ns + wait_ns, high_ns + wait_ns)


def rooflines(properties: NodeProperties, uses: Sequence[OpShapes], spec: DeviceSpec) -> list[OpCost]:
    """`roofline` of many uses of one op, whose rates are looked up once."""
    op = properties.op
    if op_cost.is_free(op):
        return [FREE] * len(uses)
    if op_cost.is_on_host(op) or op_cost.may_wait(op):
        return [roofline(context(properties, *shapes), spec) for shapes in uses]
    provenance: Provenance = "roofline" if op_cost.is_stated(op) else "guessed"
    overhead_ns, bandwidth, floor_ns = spec.op_overhead_ns, spec.achieved_bytes_per_s, _floor_ns(spec)
    rows = zip(uses, counts_of(properties, uses), rates_of(properties, uses, spec), strict=True)
    costs = []
    for shapes, count, rate in rows:
        if count is None:
            costs.append(roofline(context(properties, *shapes), spec))
            continue
        flops, moved = count
        busy_ns = max(ceil_ns(flops, rate), ceil_ns(moved, bandwidth)) + overhead_ns
        low_ns, high_ns = _bounds_ns(busy_ns, floor_ns)
        costs.append(OpCost(busy_ns, flops, moved, provenance, low_ns, high_ns))
    return costs


def _on_host(c: CostContext) -> OpCost:
    time_ns, wait_ns = op_cost.host_ns(c), op_cost.waits_ns(c)
    low_ns, high_ns = time_ns * HOST_LOW_PERCENT // 100, -(-time_ns * HOST_HIGH_PERCENT // 100)
    return OpCost(time_ns + wait_ns, 0, 0, "assumed", low_ns + wait_ns, high_ns + wait_ns)


def bounds_ns(busy_ns: int, spec: DeviceSpec) -> tuple[int, int]:
    """Between which times four of five ops are that the roofline gives `busy_ns`; waiting is exact."""
    return _bounds_ns(busy_ns, _floor_ns(spec))


def _bounds_ns(busy_ns: int, floor_ns: int) -> tuple[int, int]:
    return busy_ns * LOW_PERCENT // 100, -(-busy_ns * HIGH_PERCENT // 100) + floor_ns


def _floor_ns(spec: DeviceSpec) -> int:
    """What a kernel may take beside the roofline."""
    return max(0, FLOOR_NS - spec.kernel_floor_ns) if spec.launches_kernels else 0
