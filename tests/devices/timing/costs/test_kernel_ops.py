"""Ops that are priced as kernels of measured families: on devices with a fit, on others, in other types, explained."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve

from partita.devices.catalog import device_names, device_spec
from partita.devices.spec import DeviceSpec, without_tf32
from partita.devices.timing.costs.fitted import FittedSource
from partita.devices.timing.costs.roofline import RooflineSource
from partita.devices.timing.costs.source import CostRequest, OpCost, costs_of
from partita.devices.timing.fits.kernels.launched import ASSUMED_FLOOR_NS
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.properties import NodeProperties, properties_of

FLOAT, HALF, BFLOAT16 = DataType.FLOAT, DataType.HALF, DataType.BFLOAT16
V100, H100, L4 = (device_spec(name) for name in ("V100-PCIe", "H100-SXM", "L4"))
MEASURED = ("A100-PCIe-40GB", "P100-PCIe", "P4", "T4", "V100-PCIe")
Q = (4, 512, 12, 64)


def ask(op: str, inputs: Sequence[Dims], outputs: Sequence[Dims], spec: DeviceSpec, dtype: DataType = FLOAT) -> OpCost:
    """The cost of one op on tensors of one type."""
    attrs = {"T": dtype, "G": dtype} if op.startswith("Partita>LayerNorm") else {"T": dtype}
    return FittedSource().cost(properties_of(op, attrs), tuple(inputs), tuple(outputs), spec)


def attention(
    spec: DeviceSpec, dtype: DataType
) -> tuple[NodeProperties, tuple[Dims, ...], tuple[Dims, ...], DeviceSpec]:
    """A causal attention."""
    return properties_of("Partita>FlashAttention", {"T": dtype, "causal": True}), (Q, Q, Q), (Q, (4, 12, 512)), spec


@pytest.mark.parametrize("name", MEASURED)
def test_the_ops_of_a_float32_transformer_are_fitted(name: str) -> None:
    """Products, batched products, sums, softmax and norms of the devices that were measured, without TF32."""
    spec = without_tf32(device_spec(name))
    rows, square = (2048, 768), (48, 512, 512)
    wide = (4096, 1024)
    fitted = [
        ask("MatMul", [rows, (768, 3072)], [(2048, 3072)], spec),
        ask("BatchMatMulV2", [(48, 512, 64), (48, 64, 512)], [square], spec),
        ask("AddV2", [wide, wide], [wide], spec),
        ask("Mul", [wide, ()], [wide], spec),
        ask("Tanh", [wide], [wide], spec),
        ask("Softmax", [square], [square], spec),
        ask("Partita>LayerNorm", [rows, (768,), (768,)], [rows, (2048,), (2048,)], spec),
    ]
    assert [cost.provenance for cost in fitted] == ["fitted"] * 7
    for cost in fitted:
        assert cost.low_ns is not None
        assert cost.high_ns is not None
        assert cost.low_ns <= cost.time_ns <= cost.high_ns


def test_what_is_like_a_measured_kernel_is_transferred() -> None:
    """Another type, a transpose, a sum, a gradient of a norm: as fast for their bytes, with wider intervals."""
    wide = (4096, 4096)
    one, half = (ask("AddV2", [wide, wide], [wide], V100, dtype) for dtype in (FLOAT, HALF))
    assert (one.provenance, half.provenance) == ("fitted", "transferred")
    assert half.time_ns == pytest.approx(one.time_ns / 2, rel=0.01)
    assert ask("Relu", [wide], [wide], V100).provenance == "transferred"
    moved = FittedSource().cost(
        properties_of("Transpose", {"T": FLOAT, "Tperm": DataType.INT32}), (wide, (2,)), (wide,), V100
    )
    assert moved.provenance == "transferred"
    assert moved.time_ns == pytest.approx(2 / 3 * one.time_ns, rel=0.03)


def test_no_kernel_is_below_the_floor() -> None:
    """However small an op is; its own floor where the device has one."""
    assert ask("AddV2", [(2,), (2,)], [(2,)], V100).time_ns == ASSUMED_FLOOR_NS
    slow = evolve(V100, kernel_floor_ns=4000)
    for cost in (ask("AddV2", [(2,), (2,)], [(2,)], slow), ask("MatMul", [(2, 2), (2, 2)], [(2, 2)], slow)):
        assert cost.time_ns >= 4000


def test_devices_that_nobody_measured() -> None:
    """Kernels in float32 come from the five GPUs; with TF32 products are scaled from bf16, as before."""
    rows = (2048, 768)
    product = [rows, (768, 3072)], [(2048, 3072)]
    plain, fast = (ask("MatMul", *product, spec) for spec in (without_tf32(H100), H100))
    assert plain.provenance == fast.provenance == "transferred"
    assert plain.time_ns > 3 * fast.time_ns
    assert ask("Softmax", [(48, 512, 512)], [(48, 512, 512)], H100).provenance == "transferred"
    assert ask("AddV2", [rows, rows], [rows], L4).provenance == "transferred"  # a roofline is all there was
    assert ask("AddV2", [rows, rows], [rows], H100).provenance == "assumed"  # 80 % and 3 us, part of what was validated


def test_float16_runs_as_bf16() -> None:
    """Where the rates agree the surface of bf16 speaks, though float16 was not measured."""
    product = [(2048, 768), (768, 3072)], [(2048, 3072)]
    bf16, half = (ask("MatMul", *product, H100, dtype) for dtype in (BFLOAT16, HALF))
    assert (bf16.provenance, half.provenance) == ("fitted", "transferred")
    assert bf16.time_ns == half.time_ns


def test_a_device_of_a_cluster_file_keeps_its_rates() -> None:
    """The roofline of the numbers that the file gives speaks of it."""
    inline = evolve(V100, name="mine")
    for request in (
        CostRequest(properties_of("AddV2", {"T": FLOAT}), ((64, 64), (64, 64)), ((64, 64),), inline),
        CostRequest(properties_of("MatMul", {"T": FLOAT}), ((64, 64), (64, 64)), ((64, 64),), inline),
    ):
        assert FittedSource().cost(*request) == RooflineSource().cost(*request)


def test_attention_in_float32_is_its_parts() -> None:
    """No kernel does it as a whole: two products, a softmax, scale and mask."""
    source = FittedSource()
    whole = source.cost(*attention(V100, FLOAT))
    parts = [
        ask("BatchMatMulV2", [(48, 512, 64), (48, 64, 512)], [(48, 512, 512)], V100),
        ask("Mul", [(48, 512, 512), ()], [(48, 512, 512)], V100),
        ask("Mul", [(48, 512, 512), ()], [(48, 512, 512)], V100),
        ask("Softmax", [(48, 512, 512)], [(48, 512, 512)], V100),
        ask("BatchMatMulV2", [(48, 512, 512), (48, 512, 64)], [(48, 512, 64)], V100),
    ]
    assert whole.time_ns == pytest.approx(sum(part.time_ns for part in parts), rel=0.01)
    assert whole.provenance == "transferred"
    text = source.explain(*attention(V100, FLOAT)).text()
    assert "the sum of the kernels of its parts" in text
    assert "4. softmax 24576 x 512" in text
    assert "such layers were not measured" in source.explain(*attention(H100, BFLOAT16)).text()


def test_explain_names_the_kernel_and_its_donors() -> None:
    """The family's sizes, the numbers of the device's fit, or the devices that it was transferred from."""
    softmax = properties_of("Softmax", {"T": FLOAT}), ((48, 512, 512),), ((48, 512, 512),)
    own = FittedSource().explain(*softmax, V100).text()
    for part in (
        "kernel kernels bound by memory in float32",
        "op softmax",
        "columns 512",
        "host 4",
        "the nearest: op softmax",
    ):
        assert part in own, part
    other = FittedSource().explain(*softmax, H100).text()
    assert "those of A100-PCIe-40GB, P100-PCIe, P4, T4, V100-PCIe by the ratio of datasheets" in other
    stream = FittedSource().explain(properties_of("Relu", {"T": FLOAT}), ((64, 64),), ((64, 64),), V100)
    assert "the op is like the measured kernel: as fast for its bytes" in stream.assumed


def test_many_together_are_as_one_by_one() -> None:
    """The costs of a batch are those of each op alone."""
    wide = (1000, 777)
    batch = [
        CostRequest(properties_of(op, {"T": FLOAT}), inputs, (wide,), spec)
        for spec in (V100, L4)
        for op, inputs in (
            ("AddV2", (wide, wide)),
            ("Tanh", (wide,)),
            ("Softmax", (wide,)),
            ("MatMul", ((1000, 64), (64, 777))),
            ("Sub", (wide, wide)),
        )
    ]
    together, alone = costs_of(FittedSource(), batch), [FittedSource().cost(*request) for request in batch]
    for mine, theirs in zip(together, alone, strict=True):
        assert mine.time_ns == pytest.approx(theirs.time_ns, abs=1)
        assert mine.provenance == theirs.provenance


def test_the_measured_devices_are_in_the_catalog() -> None:
    """With what each keeps of its clock: two have a power limit far below what their peaks need."""
    assert set(MEASURED) <= set(device_names())
    kept = {name: device_spec(name).sustained_clock for name in (*MEASURED, "L4")}
    assert [name for name, share in kept.items() if share < 1] == ["P4", "T4", "L4"]
