"""Rewriting for a request: feeds, fetches, targets, pruning, and every refusal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, NotFoundError, PartitaError
from partita.graph import ClientRequest, Graph, build_client_graph, graph_def_to_graph, rewrite_graph_for_execution
from partita.graph.analysis.transfers import TransferRoute, transfer_of
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.passes.client_graph import prune_for_reverse_reachability, reachable_backwards
from tests.goldens import assert_text

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def _graph() -> Graph:
    """z = -x + 1, where -x is `y`; a NoOp `n` waits for x, and `dead` reads y."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    y = b.op("Neg", x, name="y")
    b.op("AddV2", y, 1.0, name="z")
    with b.control_dependencies(x):
        b.op("NoOp", name="n")
    b.op("Square", y, name="dead")
    return b.graph()


def test_feeds_and_fetches_by_position() -> None:
    """`_Arg` and `_Retval` carry position and base type; nodes that no fetch depends on are removed."""
    graph = _graph()
    metadata = rewrite_graph_for_execution(graph, ClientRequest(["x:0"], ["z:0", "y"], device=DEVICE))
    assert_text(
        graph,
        """
        6 nodes @/job:localhost/replica:0/task:0/...
        z/y: float = Const() {value=1}
        _arg_x_0_0: float = _Arg() {index=0} @CPU:0
        y: float = Neg(_arg_x_0_0)
        z: float = AddV2(y, z/y)
        _retval_z_0_0 = _Retval(z) {index=0} @CPU:0
        _retval_y_0_1 = _Retval(y) {index=1} @CPU:0
        """,
    )
    assert [node.name for node in graph.op_nodes()] == ["y", "z/y", "z", "_arg_x_0_0", "_retval_z_0_0", "_retval_y_0_1"]
    assert (metadata.feed_types, metadata.fetch_types) == ((1,), (1, 1))


def test_feeds_and_fetches_by_rendezvous() -> None:
    """`_Recv` and `_Send` have the name as the client wrote it, and the device of the client at both ends."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ClientRequest(["x"], ["z:0"], device=DEVICE, by_rendezvous=True, incarnation=5))
    assert_text(
        graph,
        """
        5 nodes @/job:localhost/replica:0/task:0/...
        z/y: float = Const() {value=1}
        _recv_x_0: float = _Recv() {x from the client, incarnation=5} @CPU:0
        y: float = Neg(_recv_x_0)
        z: float = AddV2(y, z/y)
        _send_z_0 = _Send(z) {z:0 to the client, incarnation=5} @CPU:0
        """,
    )
    ends = [transfer_of(node.properties) for node in graph.op_nodes() if node.op in ("_Recv", "_Send")]
    assert [end.route for end in ends] == [TransferRoute(DEVICE, 5, DEVICE)] * 2
    assert [(end.tensor_name, end.dtype) for end in ends] == [("x", DataType.FLOAT), ("z:0", DataType.FLOAT)]


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
    """The last node of a name is kept, with the last spelling; TensorFlow 2.21 gives these nodes."""
    graph = _graph()
    metadata = rewrite_graph_for_execution(graph, ClientRequest(["x"], fetches, device=DEVICE, by_rendezvous=True))
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
    rewrite_graph_for_execution(graph, ClientRequest(feeds, fetches, device=DEVICE, by_rendezvous=True))
    names = [node.name for node in graph.op_nodes()]
    assert len(set(names)) == len(names)


def test_control_edges_follow_a_fed_placeholder_only() -> None:
    """A fed Placeholder passes its control edges on; any other fed node keeps them and so still runs."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ClientRequest(["x"], [], ["n"], device=DEVICE))
    assert_text(
        graph,
        """
        2 nodes @/job:localhost/replica:0/task:0/...
        _arg_x_0_0: float = _Arg() {index=0} @CPU:0
        n = NoOp(^_arg_x_0_0)
        """,
    )
    b = GraphBuilder()
    value = b.op("PlaceholderWithDefault", 1.0, name="d", shape=())
    with b.control_dependencies(value):
        b.op("NoOp", name="n")
    graph = b.graph()
    rewrite_graph_for_execution(graph, ClientRequest(["d"], [], ["n"], device=DEVICE))
    assert_text(
        graph,
        """
        3 nodes
        d/input: float = Const() {value=1}
        d: float = PlaceholderWithDefault(d/input) {shape=[]}
        n = NoOp(^d)
        """,
    )


def test_a_fed_tensor_cuts_off_what_made_it() -> None:
    """Feeding an inner tensor removes the nodes that only it depends on."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ClientRequest(["y:0"], ["z:0"], device=DEVICE))
    assert_text(
        graph,
        """
        4 nodes @/job:localhost/replica:0/task:0/...
        z/y: float = Const() {value=1}
        _arg_y_0_0: float = _Arg() {index=0} @CPU:0
        z: float = AddV2(_arg_y_0_0, z/y)
        _retval_z_0_0 = _Retval(z) {index=0} @CPU:0
        """,
    )


def test_spelling_decides_whether_a_feed_is_fetched() -> None:
    """Fetching "y" while "y:0" is fed gives the value the node computes, as in TensorFlow."""
    graph = _graph()
    rewrite_graph_for_execution(graph, ClientRequest(["y:0", "x"], ["y"], device=DEVICE))
    assert_text(
        graph,
        """
        3 nodes @/job:localhost/replica:0/task:0/...
        _arg_x_0_1: float = _Arg() {index=1} @CPU:0
        y: float = Neg(_arg_x_0_1)
        _retval_y_0_0 = _Retval(y) {index=0} @CPU:0
        """,
    )


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
    """Each wrong feed, fetch or target is named in an error of TensorFlow's status code."""
    with pytest.raises(error, match=message):
        rewrite_graph_for_execution(_graph(), ClientRequest(feeds, fetches, targets, device=DEVICE))


def test_pruning_tells_whether_it_removed_anything() -> None:
    """Pruning for a leaf removes the other nodes once, and nothing the second time."""
    graph = _graph()
    leaf = graph.find_node("y")
    assert leaf is not None
    assert prune_for_reverse_reachability(graph, [leaf])
    assert_text(
        graph,
        """
        2 nodes
        x: float = Placeholder() {shape=[]}
        y: float = Neg(x)
        """,
    )
    assert not prune_for_reverse_reachability(graph, [leaf])


@given(st.data())
def test_reachable_nodes_are_those_with_a_path_to_a_seed(data: st.DataObject) -> None:
    """Whatever the ids: edges may lead to lower ones, and close loops."""
    graph, num_nodes = Graph(), data.draw(st.integers(1, 12))
    nodes = [graph.add_node(f"n{i}", "NoOp", {}) for i in range(num_nodes)]
    numbers = st.integers(0, num_nodes - 1)
    pairs = data.draw(st.lists(st.tuples(numbers, numbers), max_size=30))
    for src, dst in pairs:
        graph.add_control_edge(nodes[src], nodes[dst])
    graph.fix_source_and_sink_edges()
    wanted = reached = data.draw(st.frozensets(numbers))
    for _ in nodes:
        reached |= {src for src, dst in pairs if dst in reached}
    expected = {graph.source.id, graph.sink.id, *(nodes[i].id for i in reached)}
    assert set(np.flatnonzero(reachable_backwards(graph, [nodes[i].id for i in wanted])).tolist()) == expected


def test_a_client_graph_leaves_its_source_alone() -> None:
    """Building the graph of a request twice from one GraphDef gives the same graph; ids are dense from 2."""
    graph_def = _graph().to_graph_def()
    first, second = (build_client_graph(graph_def, ClientRequest(["x"], ["z"], device=DEVICE)) for _ in range(2))
    assert first.to_graph_def() == second.to_graph_def()
    assert [node.id for node in first.op_nodes()] == list(range(2, 7))
    assert graph_def == graph_def_to_graph(graph_def).to_graph_def()
