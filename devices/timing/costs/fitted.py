"""Costs from what was fitted to measurements: products and convolutions by tiles, layers, other ops by their bytes.

    MatMul (64, 128) x (128, 256), bf16, H100-SXM   ->   "fitted", with the interval of the fit
    the same in float32                             ->   "transferred": rates of tf32, twice the bytes, wider interval
    the same in float32 on a V100-PCIe              ->   "fitted" to float32 products there
    Partita>Float8MatMul                            ->   "fitted" to fp8 products where the device has them
    Partita>FlashAttention                          ->   as it was fitted on another device, "transferred"
    AddV2 on a V100-PCIe, on an H100-SXM            ->   "fitted" to such kernels there, "transferred" from other GPUs
    Cholesky, a CPU                                 ->   "roofline"

Operations and bytes are those of the roofline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil, exp, floor
from typing import Generic, NamedTuple, TypeVar

from attrs import evolve

from ....errors import InvalidArgumentError
from ....graph.dtypes import DataType
from ....graph.ops.properties import NodeProperties
from ....graph.ops.record import record_of
from ...kernels import op_cost
from ...kernels.counters import counters_of
from ...kernels.kernel_run import PRODUCTS, STREAMS, is_run, stream_kind
from ...kernels.op_cost import CostContext, PortDims
from ...kernels.op_counts import OpShapes, counts_of
from ...kernels.op_forms import Convolution, Layer, Product
from ...spec import DeviceSpec
from ..fits.calibration import Calibration
from ..fits.memory_bound import MemoryBoundModel, assumed_memory_bound, kind_of
from ..fits.prediction import Prediction
from ..fits.product_ops import OpProductTerms, products_in_columns, terms_of
from ..fits.products import ProductModel
from .cache import AskedUses, CostCache
from .classes import op_class
from .convolution_ops import convolution_costs, explain_convolution, float32_convolution
from .explanation import Explanation
from .fitted_explanations import explain_memory_bound, explain_product
from .kernel_ops import (
    LIKE_ANY,
    LIKE_SPREAD,
    OpRun,
    answers,
    declared_run,
    elements_of,
    explain_parts,
    explain_run,
    part_runs,
    product_provenance,
    product_run,
    stream_answers,
    stream_run,
    sum_of_parts,
)
from .layer_ops import explain_layer, layer_cost
from .low_bit_ops import float8_run
from .op_facts import FitsByDevice, OpFacts, has_part, is_in_catalog
from .roofline import ceil_ns, explain_roofline, roofline, rooflines
from .source import CostRequest, CostSource, OpCost, Provenance, UnknownCost, context, rate_type, rates_of

T = TypeVar("T")


class _AskedOp(NamedTuple, Generic[T]):
    """A request, its context, and the product or kernel that it asks about."""

    request: CostRequest
    c: CostContext
    what: T


class FittedSource:
    """Fitted times where the device has fits for the class of op, else the roofline, and the provenance says which.

    `calibration` is that of the catalog unless given. Costs are cached (`CostCache`).
    """

    def __init__(self, calibration: FitsByDevice | None = None) -> None:
        self.calibration = calibration
        self._calibration = Calibration.of_catalog() if calibration is None else calibration
        self._kernels = self._calibration if isinstance(self._calibration, Calibration) else None
        self._cache = CostCache()
        self._facts_of: dict[tuple[str, int], OpFacts] = {}
        self._parts: dict[str, bool] = {}

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The fitted time of one run."""
        request = CostRequest(properties, inputs, outputs, spec)
        cost = self._cache.get(request)
        return self.costs([request])[0] if cost is None else cost

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The cost of each request; products and kernels of a device that are alike are asked for together."""
        products: defaultdict[tuple[int, OpProductTerms], list[_AskedOp[Product]]] = defaultdict(list)
        runs: defaultdict[tuple[int, tuple[str, ...]], list[_AskedOp[OpRun]]] = defaultdict(list)
        streams: defaultdict[tuple[int, str], list[_AskedOp[OpFacts]]] = defaultdict(list)
        convolutions: defaultdict[int, list[_AskedOp[Convolution]]] = defaultdict(list)
        for asked in self._cache.unanswered(batch):
            properties, uses, spec = asked
            known = self._facts(properties.op, spec)
            if not known.may_be_kernel:
                self._cache.enter(asked, self._others(asked, known))
                continue
            others = []
            for shapes in uses:
                request, c = CostRequest(properties, *shapes, spec), context(properties, *shapes)
                if known.may_be_convolution and (convolution := float32_convolution(c, spec)) is not None:
                    convolutions[id(spec)].append(_AskedOp(request, c, convolution))
                    continue
                product = op_cost.product_of(c) if known.may_be_product or known.may_be_fp32 else None
                run = self._run(c, product, spec, known)
                if run is not None:
                    runs[id(spec), run.key].append(_AskedOp(request, c, run))
                elif product is not None and known.may_be_product:
                    products[id(spec), terms_of(c, product, spec)].append(_AskedOp(request, c, product))
                elif known.may_stream:
                    streams[id(spec), stream_kind(c)].append(_AskedOp(request, c, known))
                else:
                    others.append(shapes)
            rest = AskedUses(properties, others, spec)
            self._cache.enter(rest, self._others(rest, known))
        for (_, kind), moving in streams.items():
            self._ask_streams(kind, moving)
        for alike in runs.values():
            self._ask_kernels(alike)
        for (_, terms), rows in products.items():
            self._ask(terms, rows)
        for convolved in convolutions.values():
            self._ask_convolutions(convolved)
        return self._cache.all_of(batch)

    def explain(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> Explanation:
        """What `cost` says, with the model that spoke."""
        c, cost = context(properties, inputs, outputs), self.cost(properties, inputs, outputs, spec)
        null, product, known = explain_roofline(c, spec), self._product(c, spec), self._facts(c.op, spec)
        convolution = float32_convolution(c, spec) if known.may_be_convolution else None
        memory, run = self.model_of_memory(spec), self._explained_run(c, product, spec, known)
        has_counts = null.cost.provenance != "guessed" or not op_cost.is_stated(c.op)  # the shapes fit the op
        if convolution is not None:
            said = explain_convolution(convolution, cost, spec, self._calibration)
        elif run is not None and self._kernels is not None and cost.provenance != "roofline":
            said = explain_run(run, spec, self._kernels)
        elif product is not None and (model := self.model_of_products(spec)) is not None:
            said = explain_product(c, product, model, spec)
        elif cost.provenance == "free" or op_cost.is_on_host(c.op):
            return null
        elif self._kernels is not None and (parts := self._parts_of(c, spec, known)):
            said = explain_parts(parts, spec, self._kernels)
        elif (layer := self._layer(c, spec)) is not None:
            said = explain_layer(c, layer, cost, spec, self._calibration)
        elif memory is not None and known.numbers is not None and has_counts:
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
        known = self._facts(c.op, spec)
        return op_cost.product_of(c) if known.may_be_product or known.may_be_fp32 else None

    def _run(self, c: CostContext, product: Product | None, spec: DeviceSpec, known: OpFacts) -> OpRun | None:
        """The kernel of a measured family that the op is."""
        narrow = None if self._kernels is None else float8_run(c, product, spec, self._kernels)
        if narrow is not None:
            return narrow
        if known.may_be_run and (known.numbers is None or known.may_stream or rate_type(c) is DataType.FLOAT):
            run = declared_run(c)
            if run is not None and self._is_fitted(run.run.part):
                return run
        return product_run(c, product, spec) if known.may_be_fp32 else None

    def _explained_run(self, c: CostContext, product: Product | None, spec: DeviceSpec, known: OpFacts) -> OpRun | None:
        """The kernel that the op is, or that it streams like."""
        run = self._run(c, product, spec, known)
        if run is not None or not known.may_stream:
            return run
        try:
            return stream_run(c)
        except InvalidArgumentError:
            return None  # the roofline assumed counts

    def _parts_of(self, c: CostContext, spec: DeviceSpec, known: OpFacts) -> list[OpRun]:
        """The kernels of an op that no kernel does as a whole in its type."""
        if not known.may_be_layer or not self._is_described(spec) or op_cost.layer_of(c) is None:
            return []
        runs = part_runs(c, spec)
        return runs if all(self._is_fitted(run.run.part) for run in runs) else []

    def _is_described(self, spec: DeviceSpec) -> bool:
        """Whether kernels of others may stand for the device's: one of the catalog, or one with fits of its own.

        A device that a cluster file describes has the rates that the file gives it.
        """
        return self._calibration.device(spec.name) is not None or is_in_catalog(spec.name)

    def _is_fitted(self, part: str) -> bool:
        """Whether a device has a fit of that part."""
        if part not in self._parts:
            calibration = self._kernels
            self._parts[part] = calibration is not None and next(iter(calibration.having(part)), None) is not None
        return self._parts[part]

    def _layer(self, c: CostContext, spec: DeviceSpec) -> Layer | None:
        """The layer that an op is, where a device has a fit of such layers."""
        layer = op_cost.layer_of(c) if self._facts(c.op, spec).may_be_layer else None
        return None if layer is None or next(iter(self._calibration.having(layer.part)), None) is None else layer

    def _facts(self, op: str, spec: DeviceSpec) -> OpFacts:
        known = self._facts_of.get((op, id(spec)))
        if known is None:
            known = self._facts_of[op, id(spec)] = self._facts_anew(op, spec)
            self._cache.keep(spec)  # facts are found by its id
        return known

    def _facts_anew(self, op: str, spec: DeviceSpec) -> OpFacts:
        is_matrix, takes_no_kernel = op_cost.is_matrix(op), op_cost.is_free(op) or op_cost.is_on_host(op)
        is_layer = op_cost.is_layer(op)  # one that no fit describes is bound by memory: attention of a few queries
        by_bytes = not takes_no_kernel and (not is_matrix or is_layer)
        memory = self.model_of_memory(spec) if by_bytes else None
        is_gpu = spec.launches_kernels and not takes_no_kernel and self._is_described(spec)
        is_assumed = memory is None or memory.provenance == "assumed"
        has_own = self._kernels is not None and has_part(self._kernels, spec, STREAMS)
        return OpFacts(
            is_matrix and self.model_of_products(spec) is not None,
            is_layer and spec.launches_kernels,
            op_cost.is_convolution(op) and spec.launches_kernels and self._has("convolutions"),
            is_gpu and is_assumed and is_run(op),
            is_gpu and is_matrix and self._is_fitted(PRODUCTS),
            is_gpu and not is_matrix and (has_own or (memory is None and self._is_fitted(STREAMS))),
            op_cost.is_stated(op),
            record_of(op).in_place,
            None if memory is None else memory.numbers(kind_of(op)),
            "guessed" if memory is None or not op_cost.is_stated(op) else memory.provenance,
            counters_of(op),
        )

    def _has(self, part: str) -> bool:
        return next(iter(self._calibration.having(part)), None) is not None

    def _ask_convolutions(self, asked: Sequence[_AskedOp[Convolution]]) -> None:
        """Enters the costs of convolutions on one device."""
        requests, contexts, convolutions = zip(*asked, strict=True)
        costs = convolution_costs(contexts, convolutions, requests[0].spec, self._calibration)
        for request, cost in zip(requests, costs, strict=True):
            self._cache.put(request, cost)

    def _ask_kernels(self, rows: Sequence[_AskedOp[OpRun]]) -> None:
        """Enters the costs of kernels of one device that are alike."""
        spec = rows[0].request.spec
        assert self._kernels is not None  # `_run` found none otherwise
        try:
            said = answers([row.what for row in rows], spec, self._kernels)
        except UnknownCost:  # a kind that no device has in its fit of the part
            for row in rows:
                self._cache.put(row.request, self._unmeasured(row.request, row.c))
            return
        for (request, c, run), *times in zip(rows, *_columns(said), strict=True):
            provenance: Provenance = "transferred" if run.is_like else said.provenance
            known = self._facts(c.op, spec)
            self._cache.put(request, known.cost(c, known.counts(c), times, provenance))

    def _ask_streams(self, kind: str, rows: Sequence[_AskedOp[OpFacts]]) -> None:
        """Enters the costs of ops of one device that stream like the same measured kernel."""
        spec = rows[0].request.spec
        counted: list[tuple[_AskedOp[OpFacts], tuple[int, int]]] = []
        for row in rows:
            try:
                counted.append((row, row.what.counts(row.c)))
            except InvalidArgumentError:
                self._cache.put(row.request, roofline(row.c, spec))  # which assumes counts
        if not counted or self._kernels is None:
            return
        said = stream_answers(kind, [elements_of(counts[1], kind) for _, counts in counted], spec, self._kernels)
        rates: dict[DataType, int] = {}
        is_like_kind = kind == LIKE_ANY
        for ((request, c, known), counts), time_ns, low_ns, high_ns in zip(counted, *_columns(said), strict=True):
            dtype = rate_type(c)
            if dtype not in rates:
                rates[dtype] = spec.achieved_flops_per_s(dtype, matrix=False)
            busy_ns = ceil_ns(counts[0], rates[dtype])  # arithmetic that its bytes do not pay for
            is_like = is_like_kind or not known.is_elementwise or dtype is not DataType.FLOAT
            wider = _LIKE if is_like else 1.0
            provenance: Provenance = "transferred" if is_like else said.provenance
            times = max(time_ns, busy_ns), low_ns / wider, max(high_ns, busy_ns) * wider
            cost = known.cost(c, counts, times, provenance if known.is_stated else "guessed")
            self._cache.put(request, cost)

    def _unmeasured(self, request: CostRequest, c: CostContext) -> OpCost:
        """The cost of an op as though no kernels like it were known."""
        spec = request.spec
        known = self._facts(c.op, spec)
        product = op_cost.product_of(c) if known.may_be_product else None
        if product is None:
            return self._others(AskedUses(request.properties, [OpShapes(*request[1:3])], spec), known)[0]
        return self._priced(terms_of(c, product, spec), [_AskedOp(request, c, product)], spec)[0]

    def _ask(self, terms: OpProductTerms, rows: Sequence[_AskedOp[Product]]) -> None:
        """Enters the costs of products of one device with the same terms."""
        for row, cost in zip(rows, self._priced(terms, rows, rows[0].request.spec), strict=True):
            self._cache.put(row.request, cost)

    def _priced(self, terms: OpProductTerms, rows: Sequence[_AskedOp[Product]], spec: DeviceSpec) -> list[OpCost]:
        model = self.model_of_products(spec)
        assert model is not None  # `_product` found none otherwise
        said = model.predict(products_in_columns([row.what for row in rows], terms))
        costs = []
        for (_, c, _), *times in zip(rows, *_columns(said), strict=True):
            known = self._facts(c.op, spec)
            costs.append(known.cost(c, known.counts(c), times, product_provenance(c, said)))
        return costs

    def _others(self, asked: AskedUses, known: OpFacts) -> list[OpCost]:
        """The costs of uses that are none of these: as layers, by their bytes if there are fits, by the roofline."""
        properties, uses, spec = asked
        costs: dict[OpShapes, OpCost] = {}
        for shapes in uses if known.may_be_layer else ():
            cost = self._as_layer(context(properties, *shapes), spec, known)
            if cost is not None:
                costs[shapes] = cost
        rest = [shapes for shapes in uses if shapes not in costs] if costs else uses
        priced = (
            rooflines(properties, rest, spec) if known.numbers is None else _by_bytes(properties, rest, spec, known)
        )
        costs.update(zip(rest, priced, strict=True))
        return [costs[shapes] for shapes in uses]

    def _as_layer(self, c: CostContext, spec: DeviceSpec, known: OpFacts) -> OpCost | None:
        """The cost of a layer as the sum of its kernels, or as one; None where nothing is fitted to such layers."""
        parts = self._parts_of(c, spec, known)
        if parts and self._kernels is not None:
            times = [float(column[0]) for column in sum_of_parts(parts, spec, self._kernels)[:3]]
            return known.cost(c, known.counts(c), times, "transferred")
        layer = self._layer(c, spec)
        return None if layer is None else layer_cost(c, layer, spec, self._calibration)


def _by_bytes(properties: NodeProperties, uses: Sequence[OpShapes], spec: DeviceSpec, known: OpFacts) -> list[OpCost]:
    """The costs of uses of one op by their bytes, or by their operations where these take longer."""
    numbers, waits, costs = known.numbers, op_cost.may_wait(properties.op), []
    assert numbers is not None  # who has none is priced by the roofline
    for shapes, count, rate in zip(uses, counts_of(properties, uses), rates_of(properties, uses, spec), strict=True):
        if count is None:
            costs.append(roofline(context(properties, *shapes), spec))  # which assumes counts
            continue
        flops, moved = count
        time_ns = max(numbers.time_ns(moved), ceil_ns(flops, rate) + numbers.constant_ns)
        low_ns, high_ns = numbers.bounds_ns(time_ns)
        wait = op_cost.waits_ns(context(properties, *shapes)) if waits else 0
        time, low, high = round(time_ns), floor(low_ns), ceil(high_ns)
        costs.append(OpCost(time + wait, flops, moved, known.provenance, min(time, low) + wait, max(time, high) + wait))
    return costs


_LIKE = exp(LIKE_SPREAD)


def _columns(said: Prediction) -> tuple[list[float], list[float], list[float]]:
    return said.time_ns.tolist(), said.low_ns.tolist(), said.high_ns.tolist()


def calibration_of(source: CostSource) -> Calibration | None:
    """The calibration that a source was given, which has the curves of collectives too; None is the catalog's."""
    given = source.calibration if isinstance(source, FittedSource) else None
    return given if isinstance(given, Calibration) else None
