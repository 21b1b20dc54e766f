"""`_output_shapes` are checked at import as TensorFlow 2.21 checks them, and then dropped."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from partita.errors import InvalidArgumentError
from partita.graph.checked_import import import_graph_def
from partita.graph.dtypes import Shape
from partita.graph.graph import Graph
from partita.graph.protos import GraphDef
from partita.graph.protos.types_pb2 import DT_FLOAT


def graph_def(
    written: Sequence[Shape], shape: Sequence[int] | None = (2, 3), then: Sequence[Shape] | None = None
) -> GraphDef:
    """A placeholder of `shape` (None: unknown), and its negation if `then` has the written shapes beside that."""
    message = GraphDef()
    message.versions.producer = 1000
    x = message.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = DT_FLOAT
    for size in shape or ():
        x.attr["shape"].shape.dim.add(size=size)
    x.attr["shape"].shape.unknown_rank = shape is None
    nodes = [(x, written)]
    if then is not None:
        y = message.node.add(name="y", op="Neg", input=["x"])
        y.attr["T"].type = DT_FLOAT
        nodes.append((y, then))
    for node, shapes in nodes:
        node.attr["_output_shapes"].list.SetInParent()
        for sizes in shapes:
            added = node.attr["_output_shapes"].list.shape.add(unknown_rank=sizes is None)
            for known in sizes or ():
                added.dim.add(size=-1 if known is None else known)
    return message


@pytest.mark.parametrize("written", [[(2, 3)], [(None, 3)], [None], [(2, 3), (9,)]])
def test_what_agrees_is_accepted_and_left_out(written: list[Shape]) -> None:
    """More shapes than outputs do no harm."""
    graph = Graph()
    import_graph_def(graph_def(written), graph)
    node = graph.find_node("x")
    assert node is not None
    assert "_output_shapes" not in node.attrs


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            graph_def([(2, 4)]),
            "Node 'x' has an _output_shapes attribute inconsistent with the GraphDef for output #0: "
            "Dimension 1 in both shapes must be equal, but are 3 and 4. Shapes are [2,3] and [2,4].",
        ),
        (graph_def([(2,)]), "for output #0: Shapes must be equal rank, but are 2 and 1"),
        (graph_def([]), "Node 'x' has 1 outputs but the _output_shapes attribute specifies shapes for 0 outputs"),
        (
            graph_def([(2, -3)]),
            "Node 'x has an invalid _output_shapes attribute (shape #0 error:'Shape [2,-3] has dimensions with values "
            "below -1 (where -1 means unknown)')",
        ),
        (
            graph_def([(1 << 40, 1 << 40)]),
            "Node 'x has an invalid _output_shapes attribute (shape #0 error:'Shape [1099511627776,1099511627776] is "
            "too large (more than 2**63 - 1 entries)'",
        ),
        (graph_def([(2, 3)], None, [(4,)]), "Node 'y' has an _output_shapes attribute inconsistent"),
    ],
)
def test_what_disagrees_is_refused(made: GraphDef, message: str) -> None:
    """In TensorFlow's words; written shapes of one node are used for the next; the graph is unchanged."""
    graph = Graph()
    with pytest.raises(InvalidArgumentError) as raised:
        import_graph_def(made, graph)
    assert message in raised.value.message
    assert (graph.num_nodes, graph.num_node_ids) == (Graph().num_nodes, Graph().num_node_ids)


def test_another_attr_of_that_name_is_left_alone() -> None:
    """As TensorFlow leaves it."""
    message = graph_def([(2, 3)])
    message.node[0].attr["_output_shapes"].i = 3
    graph = Graph()
    import_graph_def(message, graph)
    node = graph.find_node("x")
    assert node is not None
    assert node.attrs["_output_shapes"] == 3
