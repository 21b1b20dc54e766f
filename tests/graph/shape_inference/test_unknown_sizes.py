"""A size that a step needs and nobody knows is an error that names where it begins."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphBuilder, graph_def_to_graph, split_graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.shape_inference.infer import FedShapes, infer_joined
from partita.graph.shape_inference.unknown_sizes import check_sizes


def check(parts: dict[str, Graph], feeds: FedShapes | None = None) -> None:
    """Checks a step in which every node runs."""
    inferred = infer_joined(JoinedGraph(parts), feeds)
    check_sizes(inferred, np.ones(len(inferred.graph), np.bool_))


def refusal(b: GraphBuilder) -> InvalidArgumentError:
    """The error of a step."""
    with pytest.raises(InvalidArgumentError) as error:
        check({"": b.graph()})
    return error.value


def test_the_error_names_the_node_the_size_and_where_it_begins() -> None:
    """Through nodes that pass it on, and through others; with an example that `--shape` takes."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 3))
    b.op("MatMul", b.op("Neg", b.identity(x, name="same"), name="y"), np.ones((3, 5), np.float32), name="z")
    error = refusal(b)
    assert (error.node, error.op) == ("y", "Neg")
    assert "the size of axis 0 of 'same', output 0, whose shape is [?,3]" in error.message
    assert "first unknown in 'x' (Placeholder)" in error.message
    assert "--shape x=2,3," in error.message
    assert "--assume-size 1" in error.message
    check({"": b.graph()}, {"x": (4, 3)})


def test_an_unknown_rank() -> None:
    """Is no scalar."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32"), name="y")
    error = refusal(b)
    assert "the rank of 'x'" in error.message
    assert "--shape x=2,3," in error.message


def test_sizes_that_depend_on_values_begin_at_their_node() -> None:
    """Any node may be given a shape."""
    b = GraphBuilder()
    values = b.op("Unique", b.op("Neg", np.arange(4, dtype=np.float32)), name="distinct")
    b.op("Neg", values[0], name="y")
    error = refusal(b)
    assert error.node == "y"
    assert "first unknown in 'distinct' (Unique), of shape [?]" in error.message
    check({"": b.graph()}, {"distinct": (3,)})


def test_numbers_lead_back_to_the_size_they_come_from() -> None:
    """A Fill with as many rows as x has."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 3))
    rows = b.op("StridedSlice", b.op("Shape", x), [0], [1], [1], shrink_axis_mask=1)
    b.op("Neg", b.op("Fill", b.op("Pack", [rows, b.constant(7)]), 0.0, name="filled"), name="y")
    error = refusal(b)
    assert "first unknown in 'x' (Placeholder)" in error.message
    check({"": b.graph()}, {"x": (4, 3)})


def test_an_output_that_nobody_reads_may_have_any_size() -> None:
    """And so may one that only a node reads which does not run."""
    b = GraphBuilder()
    b.placeholder("unread", "float32", (None,))
    b.op("Neg", b.placeholder("x", "float32", (None,)), name="dead")
    inferred = infer_joined(JoinedGraph({"": b.graph()}))
    runs = np.array([name != "dead" for name in inferred.graph.names])
    check_sizes(inferred, runs)
    runs[:] = True
    with pytest.raises(InvalidArgumentError, match="--shape x=2"):
        check_sizes(inferred, runs)


def test_sizes_begin_on_other_devices_too() -> None:
    """Receives lead back to what is sent."""
    b = GraphBuilder()
    with b.device("/job:a/replica:0/task:0/device:CPU:0"):
        x = b.placeholder("x", "float32", (2, None))
    with b.device("/job:a/replica:0/task:0/device:CPU:1"):
        b.op("Neg", x, name="y")
    graph = graph_def_to_graph(b.graph_def())
    for node in graph.op_nodes():
        node.assigned_device = node.requested_device
    with pytest.raises(InvalidArgumentError, match=r"first unknown in 'x' .*--shape x=2,2,") as error:
        check(split_graph(graph))
    assert error.value.node == "y"
