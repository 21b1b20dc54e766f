"""Kernel facts and memory types: host arguments, types that are always in host memory, nodes without a kernel."""

from __future__ import annotations

import pytest

from partita.graph.dtypes import DataType
from partita.graph.ops.kernel_facts import KernelFacts, deciding_attrs, find_kernel, types_with_kernel
from partita.graph.ops.memory_types import memory_types
from partita.graph.ops.properties import make_properties, properties_of
from partita.graph.ops.registry import OpSignature, lookup_op, op_names
from partita.graph.protos import OpDef

D = DataType
HOST, DEVICE = True, False


@pytest.mark.parametrize(
    ("op", "attrs", "device_type", "inputs", "outputs"),
    [
        ("Neg", {"T": D.FLOAT}, "GPU", (DEVICE,), (DEVICE,)),
        ("Neg", {"T": D.INT32}, "GPU", (HOST,), (HOST,)),
        ("Neg", {"T": D.INT64}, "GPU", (DEVICE,), (DEVICE,)),
        ("Less", {"T": D.INT32}, "GPU", (HOST, HOST), (HOST,)),
        ("Less", {"T": D.FLOAT}, "GPU", (DEVICE, DEVICE), (DEVICE,)),
        ("Cast", {"SrcT": D.INT32, "DstT": D.FLOAT}, "GPU", (DEVICE,), (DEVICE,)),
        ("Shape", {"T": D.FLOAT}, "GPU", (DEVICE,), (HOST,)),
        ("Shape", {"T": D.FLOAT}, "CPU", (DEVICE,), (HOST,)),
        ("Switch", {"T": D.FLOAT}, "CPU", (DEVICE, HOST), (DEVICE, DEVICE)),
        ("Switch", {"T": D.FLOAT}, "GPU", (DEVICE, HOST), (DEVICE, DEVICE)),
        ("Neg", {"T": D.INT32}, "CPU", (DEVICE,), (DEVICE,)),
        ("Const", {"dtype": D.STRING, "value": b"s"}, "CPU", (), (HOST,)),
        ("VarHandleOp", {"dtype": D.FLOAT, "shape": ()}, "GPU", (), (HOST,)),
        ("VariableV2", {"dtype": D.FLOAT, "shape": ()}, "GPU", (), (DEVICE,)),
        ("_Arg", {"T": D.INT32, "index": 0}, "GPU", (), (HOST,)),
        ("_Arg", {"T": D.FLOAT, "index": 0}, "GPU", (), (DEVICE,)),
    ],
)
def test_rules(op: str, attrs: dict[str, object], device_type: str, inputs: tuple[bool], outputs: tuple[bool]) -> None:
    """In host memory are the kernel's host arguments, strings and resource handles."""
    assert memory_types(properties_of(op, attrs), device_type) == (inputs, outputs)


def test_without_kernel() -> None:
    """Without a kernel int32, strings and handles are in host memory, whatever the attrs say."""
    attrs = {"T": D.INT32, "width": -1, "_output_hostmem": [0]}
    assert find_kernel("AsString", attrs, "GPU") is None
    assert memory_types(properties_of("AsString", attrs), "GPU") == ((HOST,), (HOST,))
    attrs["T"] = D.FLOAT
    assert memory_types(properties_of("AsString", attrs), "GPU") == ((DEVICE,), (HOST,))


def test_forced_ports() -> None:
    """The hostmem attrs put single ports into host memory; numbers without a port are ignored."""
    forced = {"T": D.FLOAT, "_input_hostmem": [1, 7], "_output_hostmem": [0]}
    assert memory_types(properties_of("AddV2", forced), "GPU") == ((DEVICE, HOST), (HOST,))


def test_calls_have_no_kernel_of_their_own() -> None:
    """A call has int32 in host memory, whether its op is a call op or the name of the function."""
    types = {"Tin": (D.INT32, D.FLOAT), "Tout": (D.INT32,), "f": "F"}
    assert memory_types(properties_of("PartitionedCall", types), "GPU") == ((HOST, DEVICE), (HOST,))
    loop = properties_of("StatelessWhile", {"T": [D.INT32, D.FLOAT], "cond": "C", "body": "B"})
    assert memory_types(loop, "CPU") == ((HOST, DEVICE), (HOST, DEVICE))
    arg, ret = OpDef.ArgDef(name="a", type="DT_INT32"), OpDef.ArgDef(name="r", type="DT_FLOAT")
    function = OpSignature(OpDef(name="Neg", input_arg=[arg], output_arg=[ret]))
    assert memory_types(make_properties(function, ()), "GPU") == ((HOST,), (DEVICE,))


def test_device_kernels_before_default_ones() -> None:
    """On a GPU, Conv2D has a kernel for float but none for strings."""
    assert find_kernel("Conv2D", {"T": D.FLOAT}, "GPU") == KernelFacts()
    assert find_kernel("Conv2D", {"T": D.STRING}, "GPU") is None


def test_labels_select_kernels() -> None:
    """Only the attr `_kernel` selects a kernel with a label."""
    plain = {"T": D.INT64, "src_format": b"NHWC", "dst_format": b"NCHW"}
    labelled = find_kernel("DataFormatDimMap", plain | {"_kernel": b"host"}, "GPU")
    assert labelled == KernelFacts(frozenset({"x", "y"}))
    assert find_kernel("DataFormatDimMap", plain, "GPU") != labelled


def test_unknown_ops_are_assumed_to_run() -> None:
    """An op without facts is assumed to have a kernel, which is marked `assumed`."""
    assert find_kernel("SomeNewOp", {}, "GPU") == KernelFacts(assumed=True)


def test_other_accelerators_count_as_gpus() -> None:
    """An unregistered type of device has the memory types of a GPU."""
    properties = properties_of("Neg", {"T": D.INT32})
    assert memory_types(properties, "NPU") == memory_types(properties, "GPU")


def test_facts_name_real_arguments() -> None:
    """Every attr in the facts is declared by its op, with the exception of one error in TensorFlow's registry."""
    for op in op_names():
        declared = lookup_op(op).attrs.keys() | {"_kernel"} | ({"Tmultiples"} if op == "TileGrad" else set())
        for device_type in ("CPU", "GPU"):
            assert declared.issuperset(deciding_attrs(op, device_type)), op


def test_types_with_kernel_agrees_with_find_kernel() -> None:
    """For ops with one deciding attr; None for an op whose kernels are not all known."""
    for op in ("AdjustHue", "ApproximateEqual", "AddN", "Cumsum"):
        types = types_with_kernel(op, "T", "CPU")
        assert types
        others = {name: DataType.INT32 for name in deciding_attrs(op, "CPU") if name not in ("T", "_kernel")}
        assert types == {t for t in DataType if find_kernel(op, {"T": t, **others}, "CPU") is not None}
    assert types_with_kernel("ApplyFtrl", "T", "CPU") is None
