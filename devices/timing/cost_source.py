"""The source of op times: from properties, shapes and a device to a time in whole nanoseconds.

The built-in source is the roofline (Williams, Waterman, Patterson: Roofline, CACM 52/4, 2009): an op takes the longer
of its arithmetic and its memory traffic, plus the overhead of its kernel. Another source only needs a method `cost`;
equal questions must have equal answers, and higher rates, fewer operations and fewer bytes must not make an op slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from ...errors import InvalidArgumentError
from ...graph.dtypes import DataType, dtype_name, item_size
from ..kernels.op_cost import (
    CostContext,
    Dims,
    bytes_of,
    elements_written,
    flops_of,
    input_bytes,
    is_free,
    is_matrix,
    output_bytes,
    waits_ns,
)
from ..spec import DeviceSpec

Provenance = Literal["measured", "fitted", "roofline", "assumed", "free"]


class OpProperties(Protocol):
    """The properties of a node that a cost source reads; `graph.NodeProperties` has them."""

    @property
    def op(self) -> str:
        """Name of the op."""
        ...

    @property
    def attrs(self) -> Mapping[str, Any]:  # decoded attr values: their type depends on the attr
        """Attrs by name, defaults filled in."""
        ...

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """Types of the flattened inputs."""
        ...

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """Types of the flattened outputs."""
        ...


class OpCost(NamedTuple):
    """Time of one run of an op on its device, its operations and bytes, and the source of the time.

    `time_ns` has the floor of the kernel in it, and on a CPU the overhead of an op; on a GPU not the launch, which the
    host thread does while the GPU computes.
    """

    time_ns: int
    flops: int
    bytes: int
    provenance: Provenance


class CostSource(Protocol):
    """Returns how long an op takes on a device."""

    def cost(
        self, properties: OpProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        """The cost of one run; all sizes in the shapes are known."""
        ...


def ceil_ns(amount: int, rate_per_s: int) -> int:
    """Nanoseconds that `amount` takes at a rate, a started nanosecond counted whole; exact for any size."""
    return -(-amount * 10**9 // rate_per_s)


class RooflineSource:
    """max(operations / achieved rate, bytes / achieved bandwidth) + overhead; 0 for free ops.

    The overhead is the floor of a kernel, and on a CPU what an op costs beside its kernel. A GPU's launches are not
    part of an op's time: they overlap with what the GPU computes.

    Costs are cached per (properties object, shapes, spec object): nodes that share their properties need one
    computation.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[Dims, ...], tuple[Dims, ...], int], OpCost] = {}
        self._kept: dict[int, object] = {}  # keeps the objects alive whose ids are keys of `_known`

    def cost(
        self, properties: OpProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        """The roofline time of one run."""
        key = id(properties), inputs, outputs, id(spec)
        cost = self._known.get(key)
        if cost is None:
            self._kept[id(properties)], self._kept[id(spec)] = properties, spec
            cost = self._known[key] = roofline(context(properties, inputs, outputs), spec)
        return cost

    def explain(
        self, properties: OpProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> str:
        """The formula of the cost with its numbers, in one line."""
        c = context(properties, inputs, outputs)
        cost, matrix, dtype = roofline(c, spec), is_matrix(c.op), rate_type(c)
        if cost.provenance == "free":
            return f"{c.op}: 0 ns: it only passes tensors on"
        family = spec.family(dtype, matrix=matrix)
        overhead = "floor" if spec.launches_kernels else "launch"
        return (
            f"{c.op} on {spec.name}: {cost.time_ns} ns = max({cost.flops} operations / "
            f"{spec.achieved_flops_per_s(dtype, matrix=matrix)} per s ({family}, from {dtype_name(dtype)}), "
            f"{cost.bytes} bytes / {spec.achieved_bytes_per_s} per s) + {spec.op_overhead_ns} ns {overhead}"
            f"{f' + {wait} ns waiting' if (wait := waits_ns(c)) else ''}; roofline"
        )


def context(properties: OpProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...]) -> CostContext:
    """The cost context of a node with those shapes."""
    return CostContext(
        properties.op, properties.attrs, inputs, outputs, properties.input_types, properties.output_types
    )


def rate_type(c: CostContext) -> DataType:
    """The element type whose rate an op runs at: that of its largest input, or of its output if it has none."""
    sized = [i for i, dtype in enumerate(c.input_types) if item_size(dtype)]
    if sized:
        return c.input_types[max(sized, key=lambda i: (c.bytes_in(i), -i))]
    return c.output_types[0] if c.output_types else DataType.FLOAT


def roofline(c: CostContext, spec: DeviceSpec) -> OpCost:
    """Cost of one run by the roofline of the device; "assumed" where the shapes do not fit the op."""
    if is_free(c.op):
        return OpCost(0, 0, 0, "free")
    provenance: Provenance = "roofline"
    try:
        flops, moved = flops_of(c), bytes_of(c)
    except InvalidArgumentError:
        # Assumed sizes need not fit the op: count bytes and output elements, and mark the cost as assumed.
        flops, moved, provenance = elements_written(c), input_bytes(c) + output_bytes(c), "assumed"
    compute_ns = ceil_ns(flops, spec.achieved_flops_per_s(rate_type(c), matrix=is_matrix(c.op)))
    memory_ns = ceil_ns(moved, spec.achieved_bytes_per_s)
    return OpCost(max(compute_ns, memory_ns) + spec.op_overhead_ns + waits_ns(c), flops, moved, provenance)


def copy_time_estimate(size_bytes: int, network_latency_millis: float, estimated_gbps: float) -> int:
    """Microseconds to copy bytes in TensorFlow's static cost model: the float sum, cut to a whole number.

    bytes / (gbps * 1000 / 8) + latency * 1000 (CostModel::CopyTimeEstimate).
    """
    bytes_per_micro = estimated_gbps * 1000.0 / 8
    return int(size_bytes / bytes_per_micro + network_latency_millis * 1000.0)


def computation_time_estimate(math_ops: int) -> int:
    """Microseconds of arithmetic in TensorFlow's static cost model: a thousand operations each.

    Cut towards zero, as C++ divides (CostModel::ComputationTimeEstimate).
    """
    return math_ops // 1000 if math_ops >= 0 else -(-math_ops // 1000)
