"""Costs of float32 convolutions: fitted where they were measured, transferred elsewhere, and as ops of a graph."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from partita.devices import FittedSource, OpCost, convolution_algorithm, convolution_cost, device_spec
from partita.devices.kernels.op_cost import convolution_of
from partita.devices.kernels.op_forms import Convolution
from partita.devices.spec import DeviceSpec, without_tf32
from partita.devices.timing.costs.convolution_costs import UNMEASURED_SPREAD
from partita.devices.timing.costs.source import CostRequest, UnknownCost, context
from partita.errors import InvalidArgumentError
from partita.graph.attrs import decode
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of
from partita.graph.ops.registry import lookup_op

V100, K80 = device_spec("V100-PCIe"), device_spec("K80")
SIZES: dict[str, Any] = {"images": 64, "channels": 128, "filters": 128, "size": 28}


def wide(cost: OpCost) -> float:
    """The ratio of the interval's ends."""
    assert cost.low_ns is not None
    assert cost.high_ns is not None
    assert cost.low_ns <= cost.time_ns <= cost.high_ns
    return float(cost.high_ns / cost.low_ns)


def test_a_measured_gpu_is_surer_than_others() -> None:
    """Fitted on V100-PCIe, transferred with a wider interval to P100-SXM2; operations are those of the definition."""
    own, other = (convolution_cost(spec, **SIZES) for spec in (V100, device_spec("P100-SXM2")))
    assert (own.provenance, other.provenance) == ("fitted", "transferred")
    assert own.flops == other.flops == 2 * 64 * 28 * 28 * 9 * 128 * 128
    assert wide(own) < wide(other)
    assert convolution_algorithm(V100, **SIZES) in ("Winograd", "fused Winograd")


@pytest.mark.parametrize("changed", [{"kernel": 5}, {"stride": 2}, {"direction": "to_input"}, {"groups": 128}])
def test_what_no_row_has_is_less_sure(changed: dict[str, Any]) -> None:
    """Other filters, strides, passes and groups follow the same arithmetic with a wider interval."""
    cost = convolution_cost(V100, **SIZES, **changed)
    assert cost.provenance == "transferred"
    assert wide(cost) > wide(convolution_cost(V100, **SIZES))
    assert wide(cost) > 1 + 2 * UNMEASURED_SPREAD


def test_a_clock_that_falls_under_load_makes_convolutions_slower() -> None:
    """Half of the clock takes up to twice as long."""
    slow, quick = (convolution_cost(spec, **SIZES).time_ns for spec in (evolve(V100, sustained_clock=0.5), V100))
    assert 1.3 < slow / quick <= 2.01


def test_what_cannot_be_asked_is_named() -> None:
    """A CPU, sizes below 1, channels that do not divide into the groups."""
    with pytest.raises(UnknownCost, match="is a CPU, and float32 convolutions are modelled on GPUs"):
        convolution_cost(device_spec("EPYC-7763"), **SIZES)
    with pytest.raises(InvalidArgumentError, match="filters"):
        convolution_cost(V100, **{**SIZES, "filters": 0})
    with pytest.raises(InvalidArgumentError, match="do not divide into 3 groups"):
        convolution_cost(V100, **SIZES, groups=3)


def request(
    spec: DeviceSpec, op: str = "Conv2D", layout: str = "NCHW", dtype: DataType = DataType.FLOAT, **attrs: Any
) -> CostRequest:  # Any: attr values
    """A 3 x 3 convolution of 8 images with 16 channels into 32, 20 x 30 pixels, or a gradient of it."""
    known = {name: decode(value) for name, value in lookup_op(op).defaults.items()}
    known |= {"T": dtype, "strides": [1, 1, 1, 1], "padding": b"SAME", "data_format": layout.encode(), **attrs}
    image, result = ((8, 16, 20, 30), (8, 32, 20, 30)) if layout == "NCHW" else ((8, 20, 30, 16), (8, 20, 30, 32))
    shapes = {
        "Conv2D": ((image, (3, 3, 16, 32)), (result,)),
        "Conv2DBackpropInput": (((4,), (3, 3, 16, 32), result), (image,)),
        "Conv2DBackpropFilter": ((image, (4,), result), ((3, 3, 16, 32),)),
        "DepthwiseConv2dNative": ((image, (3, 3, 16, 2)), (result,)),
    }
    return CostRequest(properties_of(op, known), *shapes[op], spec)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("op", "direction", "groups"),
    [
        ("Conv2D", "forward", 1),
        ("Conv2DBackpropInput", "to_input", 1),
        ("Conv2DBackpropFilter", "to_filter", 1),
        ("DepthwiseConv2dNative", "forward", 16),
    ],
)
def test_ops_are_passes_over_images(op: str, direction: str, groups: int, layout: str) -> None:
    """In both layouts, with the sizes of the forward pass, whatever the op."""
    asked = request(V100, op, layout)
    known = convolution_of(context(*asked[:3]))
    assert known == Convolution(direction, 8, 20, 30, 16, 32, 3, 3, 1, groups, False, layout)
    cost = FittedSource().cost(*asked)
    is_measured = (op, layout) == ("Conv2D", "NCHW")
    assert cost.provenance == ("fitted" if is_measured else "transferred")
    assert cost.time_ns > 0
    assert wide(cost) > 1


def test_tensor_cores_and_half_precision_keep_the_implicit_product() -> None:
    """Only float32 on the vector units is priced by algorithm: not TF32, and not half precision."""
    a100, source = device_spec("A100-80GB"), FittedSource()
    assert "algorithm" not in source.explain(*request(a100)).tile
    assert "algorithm" in source.explain(*request(without_tf32(a100))).tile
    assert "algorithm" not in source.explain(*request(V100, dtype=DataType.HALF)).tile


def test_an_explanation_names_the_algorithm() -> None:
    """And what others would take, the GPUs whose fits speak, and what a generation lacks."""
    told = FittedSource().explain(*request(K80))
    text = told.text()
    assert told.tile.startswith("algorithm: ")
    assert told.tile.removeprefix("algorithm: ") in told.terms
    assert "fused Winograd" not in told.terms
    assert "transferred from" in text
    assert "K80 is of a generation before Maxwell: it has no fused Winograd kernels" in text
    assert "under load the device keeps 64 % of the clock of its peak" in text


def test_a_batch_is_asked_like_each_alone() -> None:
    """Equal questions have equal answers, alone and among others."""
    asked = [request(spec, op) for spec in (V100, K80) for op in ("Conv2D", "Conv2DBackpropInput")]
    assert FittedSource().costs(asked) == [FittedSource().cost(*each) for each in asked]
