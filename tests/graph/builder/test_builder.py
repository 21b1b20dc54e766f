"""GraphBuilder: attrs and constants follow from inputs, names are unique, scopes nest."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, OutOfRangeError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import NodeDef
from partita.graph.tensor import tensor_to_numpy


def last(b: GraphBuilder) -> NodeDef:
    """The node made last."""
    return b.graph_def().node[-1]


def test_a_layer() -> None:
    """A small graph imports as it is, with types inferred and arithmetic written as such."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 4))
    w = b.variable("w", "float32", (4, 2))
    y = b.op("Relu", x @ w + 1.0, name="y")
    graph = b.graph()
    assert [node.op for node in graph.op_nodes()] == ["Placeholder", "VariableV2", "MatMul", "Const", "AddV2", "Relu"]
    assert y[0].name == "y:0"
    assert graph.find_node("y") is not None


def test_constants_take_the_type_of_their_neighbours() -> None:
    """A number beside a tensor becomes a Const of the tensor's type, whichever side it is on."""
    b = GraphBuilder()
    x = b.placeholder("x", "int64")
    assert (1 - x).dtype == (x * 2).dtype == DataType.INT64
    names = [node.name for node in b.graph_def().node]
    assert names == ["x", "Sub/x", "Sub", "Mul/y", "Mul"]


def test_constants_by_themselves() -> None:
    """Python floats are float32, ints int32; arrays keep their type; bytes are strings."""
    b = GraphBuilder()
    values = [1.5, 3, True, b"s", np.float64(1), np.zeros((2, 3), np.int8), [[1, 2]]]
    types = [b.constant(value).dtype for value in values]
    D = DataType
    assert types == [D.FLOAT, D.INT32, D.BOOL, D.STRING, D.DOUBLE, D.INT8, D.INT32]
    assert tensor_to_numpy(last(b).attr["value"].tensor).tolist() == [[1, 2]]


def test_names_are_unique() -> None:
    """A name in use gets a number, even if the numbered name is in use too."""
    b = GraphBuilder()
    names = [b.group(name=name).name for name in ("a", "a_1", "a", "a", "b")]
    assert names == ["a", "a_1", "a_2", "a_3", "b"]


def test_scopes() -> None:
    """Names nest, and a scope used twice is made unique."""
    b = GraphBuilder()
    with b.scope("layer"), b.scope("inner"):
        first = b.group(name="x")
    with b.scope("layer") as scope:
        second = b.op("Neg", 1.0)
    assert (first.name, scope, second.name) == ("layer/inner/x", "layer_1", "layer_1/Neg")
    assert b.graph_def().node[1].name == "layer_1/Neg/x"


def test_devices() -> None:
    """An inner device overrides an outer one part by part; its open parts come from the outer one."""
    b = GraphBuilder()
    with b.device("/job:a/task:1"):
        b.group(device="/gpu:0")
        assert last(b).device == "/job:a/task:1/device:GPU:0"
        with b.device("/task:2"):
            b.group()
            assert last(b).device == "/job:a/task:2"
    b.group()
    assert last(b).device == ""


def test_control_dependencies() -> None:
    """Control inputs come from the call and from surrounding blocks, each once, after the data inputs."""
    b = GraphBuilder()
    x, c = b.placeholder("x", "float32"), b.group(name="c")
    with b.control_dependencies(c, x):
        b.op("Neg", x, control=["c", b.group(name="d")])
    assert list(last(b).input) == ["x", "^c", "^x", "^d"]


def test_lists_unpack() -> None:
    """An op with several outputs unpacks, and a list argument takes tensors, names and numbers alike."""
    b = GraphBuilder()
    left, right = b.op("Split", 0, b.constant([1.0, 2.0]), num_split=2)
    b.op("Pack", [left, right, "Split:1", 3.0], axis=0)
    assert list(last(b).input) == ["Split", "Split:1", "Split:1", "Pack/values"]
    assert last(b).attr["N"].i == 4


def test_loop() -> None:
    """A back edge is closed once its source exists; the graph imports."""
    b = GraphBuilder()
    enter = b.op("Enter", 0, frame_name="f")
    merge = b.op("Merge", [enter, b.later("int32")])
    switch = b.op(
        "Switch", merge, b.op("LoopCond", b.op("Less", merge, b.op("Enter", 9, frame_name="f", is_constant=True)))
    )
    b.close_loop(merge, b.op("NextIteration", switch[1]))
    b.op("Exit", switch[0], name="out")
    graph = b.graph()
    node = graph.find_node("Merge")
    assert node is not None
    assert [edge.src.name for edge in node.input_edges()] == ["Enter", "NextIteration"]


def test_an_open_loop_is_refused() -> None:
    """A `later` without `close_loop` is an error of the import."""
    b = GraphBuilder()
    b.op("Merge", [b.constant(1.0), b.later("float32")])
    with pytest.raises(InvalidArgumentError):
        b.graph()


def test_attrs_with_awkward_names() -> None:
    """Attrs that are no keywords go into a mapping."""
    b = GraphBuilder()
    x = b.constant(1.0)
    b.op("Neg", x, attrs={"_class": [b"loc:@Const"]})
    assert last(b).attr["_class"].list.s[0] == b"loc:@Const"


def test_mistakes_are_told_where_they_are_made() -> None:
    """Too few inputs, wrong types, unknown names and ports: all at the call."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32")
    with pytest.raises(InvalidArgumentError, match=r"MatMul takes 2 inputs \(a, b\), 1 given"):
        b.op("MatMul", x)
    with pytest.raises(InvalidArgumentError, match="passed float expected bool"):
        b.op("LoopCond", x)
    with pytest.raises(InvalidArgumentError, match="'nope' is no node"):
        b.op("Neg", "nope:0")
    with pytest.raises(OutOfRangeError, match="does not have output 1"):
        b.op("Neg", "x:1")
    with pytest.raises(InvalidArgumentError, match="Inconsistent values for attr 'T'"):
        b.op("Neg", x, T=DataType.INT32)


def test_graph_def_is_a_copy() -> None:
    """A returned GraphDef does not change when the builder adds nodes."""
    b = GraphBuilder()
    before = b.graph_def()
    b.group()
    assert len(before.node) == 0
