"""Rewriting for a request: feeds, fetches, targets, pruning, and every refusal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import InvalidArgumentError, NotFoundError, PartitaError
from partita.graph import Graph, build_client_graph, graph_def_to_graph, rewrite_graph_for_execution
from partita.graph.builder import GraphBuilder
from partita.graph.passes.client_graph import prune_for_reverse_reachability

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def _graph() -> Graph:
    """x -> y = -x -> z = y + c, with `n` a NoOp after x, and `dead` beside it all."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    y = b.op("Neg", x, name="y")
    b.op("AddV2", y, 1.0, name="z")
    with b.control_dependencies(x):
        b.op("NoOp", name="n")
    b.op("Square", y, name="dead")
    return b.graph()


def _names(graph: Graph) -> list[str]:
    return [node.name for node in graph.op_nodes()]


def _inputs(graph: Graph, name: str) -> list[str]:
    node = graph.find_node(name)
    assert node is not None
    return [f"{'^' if edge.is_control else ''}{edge.src.name}" for edge in node.in_edges()]


def test_feeds_and_fetches_by_position() -> None:
    """`_Arg` and `_Retval` carry position and base type; everything that leads to no fetch is gone."""
    graph = _graph()
    metadata = rewrite_graph_for_execution(graph, ["x:0"], ["z:0", "y"], [], DEVICE)
    assert _names(graph) == ["y", "z/y", "z", "_arg_x_0_0", "_retval_z_0_0", "_retval_y_0_1"]
    arg, retval = graph.find_node("_arg_x_0_0"), graph.find_node("_retval_y_0_1")
    assert arg is not None
    assert retval is not None
    assert (arg.op, dict(arg.attrs), arg.assigned_device) == ("_Arg", {"T": 1, "index": 0}, DEVICE)
    assert (retval.op, dict(retval.attrs)) == ("_Retval", {"T": 1, "index": 1})
    assert (metadata.feed_types, metadata.fetch_types) == ((1,), (1, 1))


def test_feeds_and_fetches_by_rendezvous() -> None:
    """`_Recv` and `_Send` carry the name as the client wrote it and both device names of the client."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ["x"], ["z:0"], [], DEVICE, use_function_convention=False, incarnation=5)
    recv, send = graph.find_node("_recv_x_0"), graph.find_node("_send_z_0")
    assert recv is not None
    assert send is not None
    common = {"send_device": DEVICE.encode(), "recv_device": DEVICE.encode(), "send_device_incarnation": 5}
    common |= {"client_terminated": True}
    assert dict(recv.attrs) == common | {"tensor_name": b"x", "tensor_type": 1}
    assert dict(send.attrs) == common | {"tensor_name": b"z:0", "T": 1}


@pytest.mark.parametrize(
    ("fetches", "sent"),
    [
        (["z:0", "z:0"], {"_send_z_0": b"z:0"}),
        (["z", "z:0"], {"_send_z_0": b"z:0"}),
        (["z:0", "z"], {"_send_z_0": b"z"}),
        (["y", "z", "y:0", "z:0", "z"], {"_send_y_0": b"y:0", "_send_z_0": b"z"}),
    ],
)
def test_a_tensor_fetched_twice_is_sent_once(fetches: list[str], sent: dict[str, bytes]) -> None:
    """The last node of a name is kept, with the spelling it was asked for last; TensorFlow 2.21 gives these nodes."""
    graph = _graph()
    metadata = rewrite_graph_for_execution(graph, ["x"], fetches, [], DEVICE, use_function_convention=False)
    assert [node.name for node in graph.op_nodes() if node.op == "_Send"] == list(sent)
    assert {node.name: node.attrs["tensor_name"] for node in graph.op_nodes() if node.op == "_Send"} == sent
    assert metadata.fetch_types == (1,) * len(fetches), "one for each that was asked for"


@given(st.data())
def test_node_names_of_a_request_are_unique(data: st.DataObject) -> None:
    """Whatever is fed and fetched, in whatever spelling, no two nodes of a request by rendezvous share a name."""
    spellings = [text for name in ("x", "y", "z", "dead") for text in (name, f"{name}:0")]
    feeds = data.draw(st.lists(st.sampled_from(spellings), unique=True, max_size=3))
    fetches = data.draw(st.lists(st.sampled_from([t for t in spellings if t not in feeds]), min_size=1, max_size=8))
    graph = _graph()
    rewrite_graph_for_execution(graph, feeds, fetches, [], DEVICE, use_function_convention=False)
    names = _names(graph)
    assert len(set(names)) == len(names)


def test_control_edges_follow_a_fed_placeholder_only() -> None:
    """A fed Placeholder hands its control edges on; any other fed node keeps them and so still runs."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ["x"], [], ["n"], DEVICE)
    assert _names(graph) == ["n", "_arg_x_0_0"]
    b = GraphBuilder()
    value = b.op("PlaceholderWithDefault", 1.0, name="d", shape=())
    with b.control_dependencies(value):
        b.op("NoOp", name="n")
    graph = b.graph()
    rewrite_graph_for_execution(graph, ["d"], [], ["n"], DEVICE)
    assert _inputs(graph, "n") == ["^d"]


def test_a_fed_tensor_cuts_off_what_made_it() -> None:
    """Feeding an inner tensor removes everything only it needed."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ["y:0"], ["z:0"], [], DEVICE)
    assert _names(graph) == ["z/y", "z", "_arg_y_0_0", "_retval_z_0_0"]
    assert _inputs(graph, "z") == ["z/y", "_arg_y_0_0"]


def test_spelling_decides_whether_a_feed_is_fetched() -> None:
    """Fetching "y" while "y:0" is fed gives the value the node computes, as in TensorFlow."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ["y:0", "x"], ["y"], [], DEVICE)
    assert _inputs(graph, "_retval_y_0_0") == ["y"]


@pytest.mark.parametrize(
    ("feeds", "fetches", "targets", "error", "message"),
    [
        ([], [], [], InvalidArgumentError, "Must specify at least one target"),
        (["x", "x"], ["z"], [], InvalidArgumentError, 'Endpoint "x" fed more than once'),
        (["x"], ["x"], [], InvalidArgumentError, "x is both fed and fetched"),
        (["gone"], ["z"], [], NotFoundError, "FeedInputs: unable to find feed output gone"),
        (["x:1"], ["z"], [], InvalidArgumentError, "FeedInputs: x:1 should have output index < 1"),
        (["^x"], ["z"], [], InvalidArgumentError, "should have output index < 1"),
        ([], ["gone"], [], NotFoundError, "FetchOutputs node gone: not found"),
        ([], ["z:1"], [], InvalidArgumentError, "FetchOutputs z:1: output index too large, must be < 1"),
        ([], ["n"], [], InvalidArgumentError, "Tried to fetch data for 'n', which produces no output"),
        ([], [], ["gone", "lost"], NotFoundError, "target nodes not found: gone lost "),
    ],
)
def test_bad_requests(
    feeds: list[str], fetches: list[str], targets: list[str], error: type[PartitaError], message: str
) -> None:
    """Each wrong feed, fetch or target has its status code and is named."""
    with pytest.raises(error, match=message):
        rewrite_graph_for_execution(_graph(), feeds, fetches, targets, DEVICE)


def test_pruning_tells_whether_it_removed_anything() -> None:
    """Pruning for a leaf removes what is beside it once, and nothing the second time."""
    graph = _graph()
    leaf = graph.find_node("y")
    assert leaf is not None
    assert prune_for_reverse_reachability(graph, [leaf])
    assert _names(graph) == ["x", "y"]
    assert not prune_for_reverse_reachability(graph, [leaf])


def test_a_client_graph_leaves_its_source_alone() -> None:
    """Building the graph of a request twice from one GraphDef gives the same graph; ids are dense from 2."""
    graph_def = _graph().to_graph_def()
    first, second = (build_client_graph(graph_def, ["x"], ["z"], [], DEVICE) for _ in range(2))
    assert first.to_graph_def() == second.to_graph_def()
    assert [node.id for node in first.op_nodes()] == list(range(2, 7))
    assert graph_def == graph_def_to_graph(graph_def).to_graph_def()
