"""Fitted costs: which model speaks for which op and device, and laws that hold whatever was fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices.catalog import device_spec
from partita.devices.spec import DeviceSpec
from partita.devices.timing import RooflineSource
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.source import CostRequest, OpCost, costs_of
from partita.devices.timing.fits.calibration import DeviceFits
from partita.devices.timing.fits.memory_bound import MemoryBoundModel, MemoryNumbers
from partita.devices.timing.fits.product_formula import ProductNumbers
from partita.devices.timing.fits.products import ProductModel
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.properties import NodeProperties, properties_of

A100 = device_spec("A100-80GB")
NUMBERS = ProductNumbers(3000, 2.8e14, 3000, 1000, 50, 1.7e12, 0.5, 2.0)
MATMUL = {t: properties_of("MatMul", {"T": t}) for t in (DataType.BFLOAT16, DataType.HALF, DataType.FLOAT)}
RELU = properties_of("Relu", {"T": DataType.FLOAT})
OTHERS = [
    properties_of("Sigmoid", {"T": DataType.FLOAT}),
    properties_of("GatherV2", {"Tparams": DataType.DOUBLE, "Tindices": DataType.INT32, "Taxis": DataType.INT32}),
    properties_of("Delay", {"T": DataType.FLOAT, "micros": 7}),
    properties_of("Identity", {"T": DataType.FLOAT}),
    properties_of("Cholesky", {"T": DataType.FLOAT}),
    properties_of("Sum", {"T": DataType.INT64, "Tidx": DataType.INT32}),
    properties_of("StringLower", {}),
]
DEVICES = {"fitted": A100, "cpu": device_spec("generic-cpu"), "without fits": device_spec("V100")}
SQUARE = ((512, 512), (512, 512)), ((512, 512),)
sizes = st.integers(1, 4096)


class Fits(NamedTuple):
    """Models of one device."""

    products: ProductModel | None = None
    memory_bound: MemoryBoundModel | None = None


class OneDevice(NamedTuple):
    """Fits of the A100."""

    fits: Fits

    def device(self, name: str) -> Fits | None:
        """The fits, or None for other devices."""
        return self.fits if name == A100.name else None

    def having(self, _part: str) -> Sequence[DeviceFits]:
        """No device has fits of whole layers."""
        return ()


def model() -> ProductModel:
    """The formula with plausible numbers."""
    return ProductModel(A100, NUMBERS)


def source(memory: MemoryBoundModel | None = None) -> FittedSource:
    """With a model of products."""
    return FittedSource(OneDevice(Fits(model(), memory)))


def matmul(dtype: DataType, m: int = 512, n: int = 512, k: int = 512) -> CostRequest:
    """A request for one product."""
    return CostRequest(MATMUL[dtype], ((m, k), (k, n)), ((m, n),), A100)


def test_provenance_says_who_spoke() -> None:
    """bf16 as fitted, other types transferred, other ops assumed until measured, the rest by the roofline."""
    costs = source()
    said = {dtype: costs.cost(*matmul(dtype)).provenance for dtype in MATMUL}
    assert said == {DataType.BFLOAT16: "fitted", DataType.HALF: "transferred", DataType.FLOAT: "transferred"}
    assert costs.cost(RELU, ((10**6,),), ((10**6,),), A100).provenance == "assumed"
    cholesky = properties_of("Cholesky", {"T": DataType.FLOAT})
    assert costs.cost(cholesky, ((64, 64),), ((64, 64),), A100).provenance == "roofline"
    assert costs.cost(properties_of("NoOp", {}), (), (), A100)[:4] == OpCost(0, 0, 0, "free")[:4]


def test_without_fits_the_roofline_speaks() -> None:
    """On a CPU, on a GPU that nobody measured, and on one that is described in a cluster file."""
    for name in ("generic-cpu", "V100"):
        request = CostRequest(MATMUL[DataType.FLOAT], *SQUARE, device_spec(name))
        assert source().cost(*request) == RooflineSource().cost(*request)


def test_a_device_of_a_cluster_file_has_no_fits() -> None:
    """The catalog's calibration knows the devices of the catalog only, so the roofline speaks."""
    inline = evolve(A100, name="inline")
    request = CostRequest(MATMUL[DataType.FLOAT], *SQUARE, inline)
    assert FittedSource().cost(*request) == RooflineSource().cost(*request)


def test_measured_memory_bound_ops() -> None:
    """Bytes at the bandwidth reached, plus the constant, unless the arithmetic takes longer."""
    memory = MemoryBoundModel({"default": MemoryNumbers(2 * 10**12, 0.5, 4000, 0.1)})
    cost = source(memory).cost(RELU, ((10**6,),), ((10**6,),), A100)
    assert (cost.time_ns, cost.provenance, cost.bytes) == (12_000, "fitted", 8 * 10**6)
    assert cost.low_ns is not None
    assert cost.high_ns is not None
    assert cost.low_ns < 12_000 < cost.high_ns
    heavy = properties_of("Sigmoid", {"T": DataType.FLOAT})
    quick = MemoryBoundModel({"default": MemoryNumbers(20 * 10**12, 1.0, 4000, 0.1)})
    assert source(quick).cost(heavy, ((10**8,),), ((10**8,),), A100).time_ns > 4000 + 2 * (8 * 10**8 / 20_000)


@given(sizes, sizes, sizes, st.sampled_from(sorted(MATMUL)))
def test_counts_and_intervals(m: int, n: int, k: int, dtype: DataType) -> None:
    """Operations and bytes are the roofline's; the interval holds the time."""
    request = matmul(dtype, m, n, k)
    cost, null = source().cost(*request), RooflineSource().cost(*request)
    assert (cost.flops, cost.bytes) == (null.flops, null.bytes)
    assert cost.low_ns is not None
    assert cost.high_ns is not None
    assert 0 < cost.low_ns <= cost.time_ns <= cost.high_ns


@given(st.lists(st.tuples(sizes, sizes, sizes, st.sampled_from(sorted(MATMUL))), max_size=6))
def test_together_is_one_by_one(asked: list[tuple[int, int, int, Any]]) -> None:
    """A batch says what single questions say, with repetitions and after other questions."""
    batch = [matmul(dtype, m, n, k) for m, n, k, dtype in asked]
    batch += [CostRequest(RELU, ((100,),), ((100,),), A100), *batch]
    together, single = source(), source()
    assert costs_of(together, batch) == [single.cost(*request) for request in batch] == costs_of(together, batch)


@given(st.lists(st.tuples(st.sampled_from(OTHERS), sizes, sizes), max_size=8), st.sampled_from(sorted(DEVICES)))
def test_other_ops_together_are_one_by_one(asked: list[tuple[Any, int, int]], device: str) -> None:
    """By their bytes where a device has fits, by the roofline elsewhere; an op that waits, is free or on the host."""
    batch = [_request(properties, DEVICES[device], m, n) for properties, m, n in asked]
    for make in (source, RooflineSource):
        singles = [make().cost(*request) for request in batch]
        assert make().costs(batch) == singles == costs_of(make(), [*batch, *batch])[: len(batch)]


def _request(properties: NodeProperties, spec: DeviceSpec, m: int, n: int) -> CostRequest:
    shapes: tuple[Dims, ...] = ((m, n), (), (n,))
    inputs, outputs = (shapes[: len(types)] for types in (properties.input_types, properties.output_types))
    return CostRequest(properties, inputs, outputs, spec)


def test_a_source_that_replaces_single_costs_is_asked_one_by_one() -> None:
    """What it has from another class for many questions would not be its own answer."""

    class Instant(RooflineSource):
        def cost(self, *_: Any) -> OpCost:  # Any: the arguments do not matter
            return OpCost(1, 0, 0, "measured")

    assert costs_of(Instant(), [matmul(DataType.FLOAT)]) == [OpCost(1, 0, 0, "measured")]


def test_single_precision_takes_longer_and_is_less_sure() -> None:
    """Half the rate and twice the bytes of bf16."""
    bf16, single = (source().cost(*matmul(t, 4096, 4096, 4096)) for t in (DataType.BFLOAT16, DataType.FLOAT))
    assert 1.8 < single.time_ns / bf16.time_ns < 2.2


def test_a_delay_waits() -> None:
    """In addition to what it takes."""
    delay = properties_of("Delay", {"T": DataType.FLOAT, "micros": 1000})
    cost = source().cost(delay, ((4,),), ((4,),), A100)
    assert cost.time_ns >= 10**6
    assert cost.low_ns is not None
    assert cost.low_ns >= 10**6


def test_explain_names_what_spoke() -> None:
    """Tile, interval and null model of a product; what is assumed of types, convolutions and other ops."""
    text = source().explain(*matmul(DataType.FLOAT)).text()
    for part in (
        "transferred",
        "512, 512, 512, 1",
        "layout NN",
        "wave",
        "rate_flops_per_s",
        "null      datasheet roofline",
    ):
        assert part in text
    assert "float32 products run as tf32" in text
    assert "another type than bf16" in text
    bf16 = source().explain(*matmul(DataType.BFLOAT16))
    assert bf16.cost == source().cost(*matmul(DataType.BFLOAT16))
    assert not any("bf16" in sentence for sentence in bf16.assumed)
    relu = source().explain(RELU, ((10**6,),), ((10**6,),), A100)
    assert "were not measured" in relu.assumed[0]
    cpu = device_spec("generic-cpu")
    assert source().explain(MATMUL[DataType.FLOAT], *SQUARE, cpu).cost.provenance == "roofline"
