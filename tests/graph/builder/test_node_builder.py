"""Building one node: attrs follow from inputs, and all errors are reported together in TensorFlow's words."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.builder.node_builder import InputRef, NodeBuilder, NodeDefBuilder
from partita.graph.dtypes import DataType
from partita.graph.graph import Graph

F, I32, S = DataType.FLOAT, DataType.INT32, DataType.STRING
FREF = DataType.FLOAT_REF


def message_of(builder: NodeDefBuilder | NodeBuilder) -> str:
    """The error of `finalize`."""
    with pytest.raises(InvalidArgumentError) as caught:
        builder.finalize() if isinstance(builder, NodeDefBuilder) else builder.finalize(Graph())
    return caught.value.message


def test_a_whole_node() -> None:
    """Data inputs (index 0 bare), control inputs after them, types inferred, defaults filled in."""
    node = (
        NodeDefBuilder("n", "MatMul")
        .control_input("c")
        .input("a", 0, F)
        .input("b", 2, FREF)
        .device("/cpu:1")
        .finalize()
    )
    assert list(node.input) == ["a", "b:2", "^c"]
    assert DataType(node.attr["T"].type) == F
    assert not node.attr["transpose_a"].b
    assert node.device == "/cpu:1"


def test_finalize_may_be_repeated() -> None:
    """After the missing input is added, `finalize` succeeds."""
    builder = NodeDefBuilder("n", "Neg")
    assert message_of(builder).startswith(
        "0 inputs specified of 1 inputs in Op while building NodeDef 'n' using Op<name=Neg;"
    )
    assert builder.input("a", 0, F).finalize() == builder.finalize()


def test_lists_set_counts() -> None:
    """A list argument decides the count attr, or the list of types."""
    refs = [InputRef("a", 0, F), InputRef("b", 1, FREF)]
    assert NodeDefBuilder("n", "AddN").input_list(refs).finalize().attr["N"].i == 2
    types = NodeDefBuilder("n", "IdentityN").input_list([*refs, InputRef("s", 0, S)]).finalize().attr["T"].list.type
    assert [DataType(dtype) for dtype in types] == [F, F, S]


@pytest.mark.parametrize(
    ("builder", "message"),
    [
        (NodeDefBuilder("n", "Neg").input("a", 0, F).input("b", 0, F), "More Input() calls than the 1 input_args"),
        (NodeDefBuilder("n", "Shape").input("", 0, F), "Empty input node name"),
        (NodeDefBuilder("n", "Neg").input("^x", 0, F), "Non-control input starting with ^: ^x"),
        (NodeDefBuilder("n", "LoopCond").input("a", 0, F), "Input 'input' passed float expected bool"),
        (NodeDefBuilder("n", "Assign").input("a", 0, F).input("b", 0, F), "Input 'ref' passed float expected ref type"),
        (
            NodeDefBuilder("n", "Neg").input_list([InputRef("a", 0, F)]),
            "List provided to input 'x' when single Tensor expected",
        ),
        (
            NodeDefBuilder("n", "AddN").attr("N", 1).attr("T", F).input("a", 0, F),
            "Single tensor passed to 'inputs', expected list",
        ),
        (
            NodeDefBuilder("n", "Add").input("a", 0, DataType.BOOL).input("b", 0, S),
            "Inconsistent values for attr 'T' DT_BOOL vs. DT_STRING",
        ),
    ],
)
def test_mistakes(builder: NodeDefBuilder, message: str) -> None:
    """A single error names the node and its op."""
    text = message_of(builder)
    assert text.startswith(f"{message} while building NodeDef 'n' using Op<name=")


def test_several_mistakes() -> None:
    """All are listed."""
    text = message_of(NodeDefBuilder("n", "LoopCond").input("", 0, F).input("b", 0, F))
    assert text.startswith("3 errors while building NodeDef 'n' using Op<name=LoopCond;")
    assert text.endswith(
        ">:\nEmpty input node name\nInput 'input' passed float expected bool\nMore Input() calls than the 1 input_args"
    )


def test_unknown_op() -> None:
    """An unknown op is an invalid argument here."""
    assert message_of(NodeDefBuilder("n", "Nope").input("a")).startswith("Op type not registered 'Nope'")


def test_equal_attrs_may_be_given_twice() -> None:
    """Setting an attr again to the same value is fine, tensors compared by value."""
    builder = NodeDefBuilder("n", "Const").attr("dtype", F).attr("dtype", "float32").attr("value", [1.0, 1.0])
    assert DataType(builder.attr("value", [1.0, 1.0]).finalize().attr["dtype"].type) == F
    strings = NodeDefBuilder("s", "Const").attr("dtype", "string").attr("value", np.array([b"one", b"two"], object))
    assert strings.attr("value", np.array([b"one", b"two"], object)).finalize().name == "s"
    with pytest.raises(InvalidArgumentError, match="Inconsistent values"):
        strings.attr("value", np.array([b"one", b"too"], object)).finalize()


def test_node_with_edges() -> None:
    """A built node is in the graph with its data and control edges, one of each control edge."""
    graph = Graph()
    x = graph.add_node("x", "Placeholder", {"dtype": F})
    y = NodeBuilder("y", "AddN").input_list([(x, 0), (x, 0)]).control_input(x).control_input(x).finalize(graph)
    assert [(e.src.name, e.src_output, e.dst_input) for e in y.in_edges()] == [("x", 0, 0), ("x", 0, 1), ("x", -1, -1)]


def test_back_edge_has_a_name_and_no_edge() -> None:
    """An input that does not exist yet is kept as text, and the caller adds the edge."""
    graph = Graph()
    x = graph.add_node("x", "Placeholder", {"dtype": F})
    enter = NodeBuilder("e", "Enter").input(x).attr("frame_name", "f").finalize(graph)
    merge = NodeBuilder("m", "Switch").input(enter).back_edge("next", 0, DataType.BOOL).finalize(graph)
    assert merge.requested_inputs == ["e", "next"]
    assert len(merge.in_edges()) == 1


def test_bad_sources() -> None:
    """A missing node and an output out of range are errors; the graph is unchanged."""
    graph = Graph()
    x = graph.add_node("x", "Placeholder", {"dtype": F})
    assert "Attempt to add nullptr Node to node with type Neg" in message_of(NodeBuilder("n", "Neg").input(None))
    text = message_of(NodeBuilder("n", "Neg").input(x, 1))
    assert "Attempt to add output 1 of x not in range [0, 1) to node with type Neg" in text
    assert graph.num_nodes == 3


def test_deprecated_op() -> None:
    """An op that was removed in the graph's version cannot be added."""
    graph = Graph()
    x = graph.add_node("x", "Placeholder", {"dtype": F})
    builder = NodeBuilder("n", "BatchNormWithGlobalNormalization").attr("variance_epsilon", 0.1)
    for _ in range(5):
        builder.input(x)
    with pytest.raises(UnimplementedError):
        builder.attr("scale_after_normalization", True).finalize(graph)
