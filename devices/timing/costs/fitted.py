"""Costs from what was fitted to measurements: products and convolutions by tiles, layers, other ops by their bytes.

    MatMul (64, 128) x (128, 256), bf16, H100-SXM   ->   "fitted", with the interval of the fit
    the same in float32                             ->   "transferred": rates of tf32, twice the bytes, wider interval
    Partita>FlashAttention                          ->   as it was fitted on another device, "transferred"
    Relu, where nobody measured such ops            ->   "assumed": 80 % of the bandwidth and 3 us
    Cholesky, a CPU, a GPU without fits             ->   "roofline"

Operations and bytes are those of the roofline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import NamedTuple, Protocol

from attrs import evolve

from ....graph.ops.properties import NodeProperties
from ...kernels import op_cost
from ...kernels.op_cost import CostContext, Layer, PortDims, Product
from ...kernels.op_counts import OpShapes, counts_of
from ...spec import DeviceSpec
from ..fits.calibration import Calibration, DeviceFits
from ..fits.memory_bound import MemoryBoundModel, MemoryNumbers, assumed_memory_bound, kind_of
from ..fits.product_ops import OpProductTerms, products_in_columns, terms_of
from ..fits.products import ProductModel
from .cache import AskedUses, CostCache
from .classes import op_class
from .explanation import Explanation
from .fitted_explanations import explain_memory_bound, explain_product
from .layer_ops import explain_layer, layer_cost
from .roofline import ceil_ns, explain_roofline, roofline, rooflines
from .source import CostRequest, CostSource, OpCost, Provenance, context, rates_of


class OpFits(Protocol):
    """The models of one device that this source reads; `DeviceFits` has them."""

    @property
    def products(self) -> ProductModel | None:
        """Of products and convolutions."""
        ...

    @property
    def memory_bound(self) -> MemoryBoundModel | None:
        """Of all ops that are neither."""
        ...


class FitsByDevice(Protocol):
    """Finds the models of a device by the name of its spec; `Calibration` does."""

    def device(self, name: str) -> OpFits | None:
        """The models, or None."""
        ...

    def having(self, part: str) -> Iterable[DeviceFits]:
        """The devices that have a model of that part."""
        ...


class _OpFacts(NamedTuple):
    """What decides how an op is priced on a device, whatever its shapes are.

    Without `numbers` the roofline speaks for what is no product; with them they do, with this `provenance`.
    """

    may_be_product: bool
    may_be_layer: bool
    numbers: MemoryNumbers | None
    provenance: Provenance


class FittedSource:
    """Fitted times where the device has fits for the class of op, else the roofline, and the provenance says which.

    `calibration` is that of the catalog unless given. Costs are cached (`CostCache`).
    """

    def __init__(self, calibration: FitsByDevice | None = None) -> None:
        self.calibration = calibration
        self._calibration = Calibration.of_catalog() if calibration is None else calibration
        self._cache = CostCache()

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The fitted time of one run."""
        request = CostRequest(properties, inputs, outputs, spec)
        cost = self._cache.get(request)
        return self.costs([request])[0] if cost is None else cost

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request; the products of a device with the same element type are asked for together."""
        products: defaultdict[tuple[int, OpProductTerms], list[tuple[CostRequest, CostContext, Product]]]
        products = defaultdict(list)
        for asked in self._cache.unanswered(batch):
            properties, uses, spec = asked
            facts = self._facts(properties.op, spec)
            if not facts.may_be_product:
                self._cache.enter(asked, self._others(properties, uses, spec, facts))
                continue
            others = []
            for shapes in uses:
                c = context(properties, *shapes)
                product = op_cost.product_of(c)
                if product is None:
                    others.append(shapes)
                else:
                    row = CostRequest(properties, *shapes, spec), c, product
                    products[id(spec), terms_of(c, product, spec)].append(row)
            rest = AskedUses(properties, others, spec)
            self._cache.enter(rest, self._others(*rest, facts))
        for (_, terms), rows in products.items():
            self._ask(terms, rows)
        return self._cache.all_of(batch)

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """What `cost` says, with the model that spoke."""
        c, cost = context(properties, inputs, outputs), self.cost(properties, inputs, outputs, spec)
        null, product = explain_roofline(c, spec), self._product(c, spec)
        model, memory = self.model_of_products(spec), self.model_of_memory(spec)
        has_counts = null.cost.provenance != "guessed" or not op_cost.is_stated(c.op)  # the shapes fit the op
        if product is not None and model is not None:
            said = explain_product(c, product, model, spec)
        elif cost.provenance == "free" or op_cost.is_on_host(c.op):
            return null
        elif (layer := self._layer(c, spec)) is not None:
            said = explain_layer(c, layer, cost, spec, self._calibration)
        elif memory is not None and self._facts(c.op, spec).numbers is not None and has_counts:
            said = explain_memory_bound(c, memory)
        else:
            unfitted = f"the roofline speaks, since nothing was fitted to measured {op_class(c.op)} ops of {spec.name}"
            return evolve(null, cost=cost, assumed=(unfitted, *null.assumed))
        return evolve(said, what=null.what, cost=cost, null_model=null.null_model, assumed=said.assumed + null.assumed)

    def model_of_products(self, spec: DeviceSpec) -> ProductModel | None:
        """The device's model of products; None on CPUs, whose cores a model of SMs does not describe."""
        fits = self._calibration.device(spec.name) if spec.launches_kernels else None
        return None if fits is None else fits.products

    def model_of_memory(self, spec: DeviceSpec) -> MemoryBoundModel | None:
        """The device's model of other ops: assumed numbers on a device with other fits, None without any."""
        fits = self._calibration.device(spec.name) if spec.launches_kernels else None
        if fits is None or (fits.products is None and fits.memory_bound is None):
            return None
        return fits.memory_bound or assumed_memory_bound(spec.memory_bandwidth_bytes_per_s)

    def _product(self, c: CostContext, spec: DeviceSpec) -> Product | None:
        return op_cost.product_of(c) if self._facts(c.op, spec).may_be_product else None

    def _layer(self, c: CostContext, spec: DeviceSpec) -> Layer | None:
        """The layer that an op is, where a device has a fit of such layers."""
        layer = op_cost.layer_of(c) if self._facts(c.op, spec).may_be_layer else None
        return None if layer is None or next(iter(self._calibration.having(layer.part)), None) is None else layer

    def _facts(self, op: str, spec: DeviceSpec) -> _OpFacts:
        is_matrix, takes_no_kernel = op_cost.is_matrix(op), op_cost.is_free(op) or op_cost.is_on_host(op)
        is_layer = op_cost.is_layer(op)  # one that no fit describes is bound by memory: attention of a few queries
        memory = None if takes_no_kernel or (is_matrix and not is_layer) else self.model_of_memory(spec)
        return _OpFacts(
            is_matrix and self.model_of_products(spec) is not None,
            is_layer and spec.launches_kernels,
            None if memory is None else memory.numbers(kind_of(op)),
            "guessed" if memory is None or not op_cost.is_stated(op) else memory.provenance,
        )

    def _ask(self, terms: OpProductTerms, rows: Sequence[tuple[CostRequest, CostContext, Product]]) -> None:
        """Enters the costs of products of one device with the same terms."""
        model = self.model_of_products(rows[0][0].spec)
        assert model is not None  # `_product` found none otherwise
        said = model.predict(products_in_columns([product for _, _, product in rows], terms))
        columns = (said.time_ns.tolist(), said.low_ns.tolist(), said.high_ns.tolist())
        for (request, c, _), time_ns, low_ns, high_ns in zip(rows, *columns, strict=True):
            counts = op_cost.flops_of(c), op_cost.bytes_of(c)
            cost = _cost(*counts, time_ns, low_ns, high_ns, said.provenance, op_cost.waits_ns(c))
            self._cache.put(request, cost)

    def _others(
        self, properties: NodeProperties, uses: Sequence[OpShapes], spec: DeviceSpec, facts: _OpFacts
    ) -> list[OpCost]:
        """The costs of uses that are no products: as layers, by their bytes if there are fits, by the roofline."""
        costs: dict[OpShapes, OpCost] = {}
        for shapes in uses if facts.may_be_layer else ():
            c = context(properties, *shapes)
            layer = self._layer(c, spec)
            if layer is not None:
                costs[shapes] = layer_cost(c, layer, spec, self._calibration)
        rest = [shapes for shapes in uses if shapes not in costs] if costs else uses
        numbers = facts.numbers
        priced = (
            rooflines(properties, rest, spec)
            if numbers is None
            else _by_bytes(properties, rest, spec, numbers, facts.provenance)
        )
        costs.update(zip(rest, priced, strict=True))
        return [costs[shapes] for shapes in uses]


def _by_bytes(
    properties: NodeProperties, uses: Sequence[OpShapes], spec: DeviceSpec, numbers: MemoryNumbers, said_by: Provenance
) -> list[OpCost]:
    """The costs of uses of one op by their bytes, or by their operations where these take longer."""
    waits, costs = op_cost.may_wait(properties.op), []
    for shapes, count, rate in zip(uses, counts_of(properties, uses), rates_of(properties, uses, spec), strict=True):
        if count is None:
            costs.append(roofline(context(properties, *shapes), spec))  # which assumes counts
            continue
        flops, moved = count
        time_ns = max(numbers.time_ns(moved), ceil_ns(flops, rate) + numbers.constant_ns)
        wait_ns = op_cost.waits_ns(context(properties, *shapes)) if waits else 0
        costs.append(_cost(flops, moved, time_ns, *numbers.bounds_ns(time_ns), said_by, wait_ns))
    return costs


def _cost(
    flops: int, moved: int, time_ns: float, low_ns: float, high_ns: float, provenance: Provenance, wait_ns: int
) -> OpCost:
    """Whole nanoseconds, with what the op waits."""
    time = round(time_ns)
    return OpCost(
        time + wait_ns, flops, moved, provenance, min(time, floor(low_ns)) + wait_ns, max(time, ceil(high_ns)) + wait_ns
    )


def calibration_of(source: CostSource) -> Calibration | None:
    """The calibration that a source was given, which has the curves of collectives too; None is the catalog's."""
    given = source.calibration if isinstance(source, FittedSource) else None
    return given if isinstance(given, Calibration) else None
