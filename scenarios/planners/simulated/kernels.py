"""Costs of the ops of a built step as the kernels of a training framework: the numbers of the closed form.

    MatMul                              its fitted time, times `products`; attention by `attention`
    those by gate and up of gated units half of one product by both, as frameworks have them
    norms, residual sums, GELU ...      bytes / (bandwidth * `memory`) + `kernel_ns`
    a vector added to rows (a bias)     free: products do it as they write
    blocks of a ring cut and joined     free: kernels of ring attention do it
    vectors and scalars                 free: the host's times for a micro-batch and a step have those of the loss
    casts and sums of gradients         `accumulation_bytes` of the step in place of the 18 that the graph moves
    Adam                                `optimizer_bytes` in place of its 28, at the share `optimizer` of the bandwidth
    what else the optimizer does        free: a fused one moves all of its bytes in one kernel

The graph casts the gradient of a weight to float32, 6 bytes, and adds it, 12. Small tensors, of which a framework
updates many in one kernel, and arrangements of shards are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ....devices.kernels import op_cost
from ....devices.kernels.op_cost import PortDims
from ....devices.spec import DeviceSpec
from ....devices.timing.costs.classes import op_class
from ....devices.timing.costs.fitted import FittedSource
from ....devices.timing.costs.layer_costs import answer_of
from ....devices.timing.costs.source import FREE, CostRequest, OpCost, context
from ....devices.timing.fits.calibration import Calibration
from ....devices.timing.fits.grouped import GroupedProducts
from ....graph.dtypes import DataType
from ....graph.ops.properties import NodeProperties
from ....graph.ops.record import Updates
from ..numbers import PlanNumbers
from ..step import PlannedStep
from .weights import WeightShapes, WeightUse

ACCUMULATION_BYTES, ADAM_BYTES = 18, 28
"""of a weight that the graph moves for its gradient in a micro-batch, and in the op of its update"""
ALONE_BYTES = 1 << 20
"""assumed: smaller tensors are updated by a kernel of many"""


_SUMMED, WORD = "gradient_bytes", 4
"""the size of grouped products that says of what elements a gradient is added to, and that of a float32"""
_LEAST_ROWS, _LEAST_AXES = 2, 3
"""axes of rows of activations, and of tensors by head"""


class TrainingKernels(FittedSource):
    """Fitted costs with the numbers of training; `weights` are the shapes of the built step."""

    def __init__(
        self,
        calibration: Calibration,
        numbers: PlanNumbers,
        step: PlannedStep,
        weights: WeightShapes,
        *,
        ring: int = 1,
    ) -> None:
        """`ring` is the number of ranks that keys and values go round."""
        super().__init__(calibration)
        self._numbers, self._step, self._weights = numbers, step, weights
        self._block = step.sequence_length // (2 * ring) if ring > 1 else 0

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The cost of one run."""
        return self.costs([CostRequest(properties, inputs, outputs, spec)])[0]

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request."""
        joined = [self._joined(request) for request in batch]
        alone = super().costs([request if both is None else both for request, both in zip(batch, joined, strict=True)])
        return [
            self._trained(request, self._added(request, cost) if both is None else _half(self._added(both, cost)))
            for request, both, cost in zip(batch, joined, alone, strict=True)
        ]

    def _added(self, request: CostRequest, cost: OpCost) -> OpCost:
        """The cost, of grouped gradients of weights with the sum in float32 that the product adds them to."""
        if self._step.accumulation_bytes or op_class(request.properties.op) == "memory-bound":
            return cost
        layer = op_cost.layer_of(context(request.properties, request.inputs, request.outputs))
        if layer is None or not layer.sizes.get(_SUMMED):
            return cost
        sizes = {name: [size] for name, size in {**layer.sizes, _SUMMED: WORD}.items()}
        asked = GroupedProducts([layer.kind], **sizes)
        return _taking(cost, float(answer_of(request.spec, layer.part, asked, self._calibration).said.time_ns[0]))

    def _joined(self, request: CostRequest) -> CostRequest | None:
        """The product by two weights side by side, of which a product by one is half; None for any other op."""
        gated = self._weights.gated.intersection((*request.inputs, *request.outputs))
        if not gated or op_class(request.properties.op) == "memory-bound":
            return None
        units = next(iter(gated))[-1]
        inputs, outputs = (
            tuple((*dims[:-1], 2 * units) if dims and dims[-1] == units else dims for dims in ports)
            for ports in (request.inputs, request.outputs)
        )
        return request._replace(inputs=inputs, outputs=outputs)

    def _trained(self, request: CostRequest, cost: OpCost) -> OpCost:
        if cost.provenance == "free" or not request.spec.launches_kernels or op_cost.is_on_host(request.properties.op):
            return cost
        if op_class(request.properties.op) != "memory-bound":
            c = context(request.properties, request.inputs, request.outputs)
            layer = op_cost.layer_of(c)
            is_attention = layer is not None and layer.part == "attention"
            return _taking(cost, cost.time_ns * (self._numbers.attention if is_attention else self._numbers.products))
        use = self._weights.use(request, cost.flops)
        if use is not None:
            return self._of_weights(request, use, cost)
        if _adds_vector(request) or self._is_of_ring(request) or _is_small(request):
            return FREE
        bytes_per_ns = request.spec.memory_bandwidth_bytes_per_s * self._numbers.memory / 1e9
        return _taking(cost, cost.bytes / bytes_per_ns + self._numbers.kernel_ns)

    def _is_of_ring(self, request: CostRequest) -> bool:
        """Whether an op works on halves of a rank's tokens, as only the blocks of a ring do."""
        return self._block > 0 and any(
            self._block in dims for dims in (*request.inputs, *request.outputs) if len(dims) >= _LEAST_AXES
        )

    def _of_weights(self, request: CostRequest, use: WeightUse, cost: OpCost) -> OpCost:
        narrows = request.properties.output_types[:1] != (DataType.FLOAT,)
        if use is WeightUse.ARRANGEMENT or cost.bytes < ALONE_BYTES or (use is WeightUse.CAST and narrows):
            return FREE
        if use is not WeightUse.UPDATE:
            share, reached = self._step.accumulation_bytes / ACCUMULATION_BYTES, self._numbers.memory
        elif request.properties.op_def.record.updates is Updates.GRADIENT:
            elements = max(map(prod, request.inputs), default=1)
            share = self._step.optimizer_bytes / ADAM_BYTES / self._weights.spread.get(elements, 1)
            reached = self._numbers.optimizer
        else:
            return FREE
        bytes_per_ns = request.spec.memory_bandwidth_bytes_per_s * reached / 1e9
        return _taking(cost, cost.bytes * share / bytes_per_ns) if share else FREE


def _is_small(request: CostRequest) -> bool:
    """Whether no tensor of an op has rows of several elements."""
    return all(len(dims) < _LEAST_ROWS for dims in (*request.inputs, *request.outputs))


def _adds_vector(request: CostRequest) -> bool:
    """Whether an op adds a vector to each row of its first input, in place."""
    (first, *others), outputs = request.inputs or ((),), request.outputs
    is_of_rows = len(others) == 1 and len(first) > 1 and outputs == (first,)
    return is_of_rows and others[0] == first[-1:] and request.properties.op_def.record.in_place


def _half(cost: OpCost) -> OpCost:
    return cost._replace(
        time_ns=cost.time_ns // 2, flops=cost.flops // 2, bytes=cost.bytes // 2, low_ns=None, high_ns=None
    )


def _taking(cost: OpCost, time_ns: float) -> OpCost:
    return cost._replace(time_ns=round(time_ns), low_ns=None, high_ns=None)
