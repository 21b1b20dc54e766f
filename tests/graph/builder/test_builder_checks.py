"""A builder refuses mistakes at the call, and names what was probably meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import numpy_dtype, parse_dtype
from partita.graph.ops.registry import lookup_op
from partita.graph.tensor import tensor_to_numpy


def built() -> GraphBuilder:
    """A builder with a float matrix x and an int vector n."""
    b = GraphBuilder()
    b.placeholder("x", "float32", (2, 2))
    b.placeholder("n", "int32", (3,))
    return b


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda b: b.op("MatMul", "x", "x", transpose_aa=True), "MatMul has no attr 'transpose_aa'; did you mean"),
        (lambda b: b.op("NoOp", sape=3), "NoOp has no attr 'sape'; it has none"),
        (lambda b: b.op("Cast", "x", DtsT="int32"), "Cast has no attr 'DtsT'; did you mean 'DstT'"),
        (lambda b: b.op("MatMul", "x", "x", transpose_a="yes"), "True or False expected"),
        (lambda b: b.op("Relu6", "x", T="string"), "Inconsistent values for attr 'T'"),
        (
            lambda b: b.op("MaxPool", "x", ksize=[1] * 4, strides=[1] * 4, padding="SAMEE"),
            "SAMEE.* is not in the list of allowed values",
        ),
        (lambda b: b.op("Placeholder"), "NodeDef missing attr 'dtype'|No attr named 'dtype'"),
        (lambda b: b.placeholder("p", "float33"), "'float33' is no element type"),
        (lambda b: b.placeholder("p", 3.5), "3.5 is no element type"),
        (lambda b: b.placeholder("p", "float32", (-3,)), "a size is at least 0"),
        (lambda b: b.placeholder("a name", "float32"), "'a name' is no name for a node"),
        (lambda b: b.op("Relu", "x", name=3), "3 is no name for a node"),
        (
            lambda b: b.op("Relu", "x", device="/devise:GPU:0"),
            "'/devise:GPU:0' is no device name; did you mean 'dev",
        ),
        (lambda b: b.op("Relu", "x", device="/job:a/tsk:1"), "did you mean 'task'"),
        (lambda b: b.op("Relu", "x", device="/device:GPUU:0"), "of type 'GPUU'; did you mean 'GPU'"),
        (lambda b: b.op("Relu", "x", device="/device:GPU0"), "of type 'GPU0'; did you mean 'GPU'"),
        (lambda b: b.op("Relu", "x", device="gpu 0"), "'gpu 0' is no device name"),
        (lambda b: b.op("Relu", "x", device=0), "0 is no device name"),
        (lambda b: b.op("Relu", "X"), "'X' is no node of this graph yet; did you mean 'x'"),
        (lambda b: b.op("Relu", "x", control=[3]), "int is no node to wait for"),
        (lambda b: b.op("AddN", "x"), "AddN takes a list of tensors as 'inputs', got str"),
        (lambda b: b.op("AddN", 3), "AddN takes a list of tensors as 'inputs', got int"),
        (lambda b: b.op("Relu", ["x", b.tensor("x")]), "is given for one tensor"),
        (lambda b: b.op("Relu", None), "NoneType None is no tensor"),
        (lambda b: b.tensor("x") + None, "NoneType None is no tensor"),
        (lambda b: b.tensor("x") + [1.0, None], "NoneType None is no tensor"),
        (lambda b: b.op("Relu", b), "GraphBuilder .* is no tensor"),
        (lambda b: b.op("Relu", GraphDef()), "GraphDef .*is no tensor"),
        (lambda b: b.op("Relu", Path("x.npy")), "PosixPath.* is no tensor"),
        (lambda b: b.op("Relu", {"x": 1}), "dict .* is no tensor"),
        (lambda b: b.tensor("n") * 2.5, "2.5 .* cannot become int32"),
        (lambda b: b.tensor("n") + np.float32(1), "cannot become int32"),
        (lambda b: b.tensor("n") + 2**40, "cannot become int32"),
        (lambda b: b.op("Relu", GraphBuilder().placeholder("x", "float32")), "belongs to another GraphBuilder"),
    ],
)
def test_a_mistake_is_refused_where_it_is_written(make: Callable[[GraphBuilder], Any], why: str) -> None:
    """A typed error names the wrong value, and no node of the op stays in the graph."""
    b = built()
    ops = [node.op for node in b.graph_def().node]
    with pytest.raises((InvalidArgumentError, NotFoundError), match=why):
        make(b)
    assert [node.op for node in b.graph_def().node if node.op != "Const"] == ops


def test_an_unknown_op_is_refused_with_the_one_that_was_meant() -> None:
    """Functions of the graph count as ops."""
    with pytest.raises(NotFoundError, match=r"'MatMull' .*did you mean 'MatMul'"):
        built().op("MatMull", "x", "x")


def test_a_misspelt_device_of_a_block_is_refused_before_the_block() -> None:
    """Not at the first node in it."""
    b = built()
    with pytest.raises(InvalidArgumentError, match="no device name"), b.device("/devise:GPU:0"):
        raise AssertionError("the block was entered")


@pytest.mark.parametrize("name", ["gpu:1", "GPU:1", "/gpu:1", "/device:GPU:1", "/device:gpu:1"])
def test_a_device_may_be_given_in_any_spelling(name: str) -> None:
    """All mean the same device to the placer."""
    b = built()
    b.op("Relu", "x", device=name, name="y")
    with b.device("/job:a"):
        b.op("Relu", "x", device=name, name="z")
    devices = {node.name: node.device for node in b.graph_def().node}
    assert devices["y"] in ("/device:GPU:1", "/gpu:1")
    assert devices["z"] == "/job:a/device:GPU:1"


@pytest.mark.parametrize("name", ["/device:TPU:0", "/device:XPU:3", "/job:a/device:MY_NPU:0", "/task:1", "/"])
def test_devices_of_other_kinds_may_be_asked_for(name: str) -> None:
    """Whether such a device exists is checked by the placer."""
    b = built()
    assert b.op("Relu", "x", device=name).name
    assert b.graph_def().node[-1].device == name


def test_one_node_may_be_waited_for_without_a_list() -> None:
    """A node, a tensor, a name, and a node of an imported graph."""
    b = built()
    imported = b.graph().find_node("n")
    for control in ("n", b.tensor("n"), b.operation("n"), imported, ["n"]):
        b.op("Relu", "x", control=control)
        assert list(b.graph_def().node[-1].input) == ["x", "^n"]
        with b.control_dependencies(control):
            b.op("Relu", "x")
        assert list(b.graph_def().node[-1].input) == ["x", "^n"]


def test_a_node_of_an_imported_graph_stands_for_its_first_output() -> None:
    """By its name."""
    b = built()
    b.op("Relu", b.graph().find_node("x"))
    assert list(b.graph_def().node[-1].input) == ["x"]


DTYPES = ["float32", "double", "half", "int32", "int64", "uint8", "int8", "bool", "complex64"]


@given(
    st.sampled_from(DTYPES),
    hnp.arrays(st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?", "c8"]), hnp.array_shapes(max_dims=2, max_side=3))
    | st.integers(-300, 300)
    | st.floats(-1e3, 1e3)
    | st.booleans(),
)
def test_a_value_becomes_a_constant_of_its_own_kind_or_an_error(dtype: str, value: Any) -> None:
    """The stored value equals the given one, up to the precision of the type."""
    b = GraphBuilder()
    other = b.placeholder("p", dtype)
    try:
        b.op("Equal", other, value)
    except InvalidArgumentError:
        return
    stored = tensor_to_numpy(next(node for node in b.graph_def().node if node.op == "Const").attr["value"].tensor)
    wanted = numpy_dtype(parse_dtype(dtype))
    given_value = np.asarray(value)
    assert stored.dtype == wanted
    if given_value.dtype.kind in "iub":
        with np.errstate(over="ignore"):  # 65520 is infinite in half precision
            assert np.array_equal(stored.astype(wanted), given_value.astype(wanted))
    assert (stored.dtype.kind in "iu") <= (given_value.dtype.kind in "iu")


def test_every_attr_that_an_op_declares_is_known_to_its_own_check() -> None:
    """The check uses the registry: an attr of one op is a mistake for another."""
    assert "transpose_a" in lookup_op("MatMul").attrs
    b = built()
    b.op("MatMul", "x", "x", transpose_a=True, attrs={"_mine": 3})
    with pytest.raises(InvalidArgumentError, match="BatchMatMulV2 has no attr 'transpose_a'"):
        b.op("BatchMatMulV2", "x", "x", transpose_a=True)
