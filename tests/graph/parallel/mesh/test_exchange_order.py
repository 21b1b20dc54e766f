"""Exchanges in the order of a rank's program: which control edges there are, and what they do on the clock."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from partita.devices import Timeline, cut, local_cluster, simulate
from partita.errors import NotFoundError
from partita.graph import Graph, GraphBuilder
from partita.graph.parallel.mesh.exchange_order import order_exchanges
from partita.graph.parallel.mesh.mesh import Mesh, axis_names
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import write_out

DEVICES = ["/device:GPU:0", "/device:GPU:1"]


def backward_pass(*, has_shape: bool = False) -> Graph:
    """d_w = x' d_y, d_x = d_y w' and its sum over tp, and what follows from both; in the order d_w, d_x."""
    b = GraphBuilder()
    program = RankProgram(b, Mesh(tp=2))
    with b.device("/device:CPU:0"):
        x, d_y, w = (b.placeholder(name, "float32", (4096, 4096)) for name in ("x", "d_y", "w"))
    with b.device(DEVICES[0]):
        b.op("MatMul", x, d_y, transpose_a=True, name="d_w")
        d_x = b.op("MatMul", d_y, w, transpose_b=True, name="d_x")[0]
        total = program.all_reduce(d_x, "tp", name="sum")
        b.op("Relu", total, name="d_norm")
        b.op("Square", x, name="later")
        if has_shape:
            b.op("Fill", b.op("Shape", d_y, name="shape")[0], 1.0, name="filled")
    return b.graph()


def ordered(graph: Graph, hidden: Collection[str], **more: Collection[str]) -> set[tuple[str, str]]:
    """The control edges that were added."""
    names = {"ends": ["d_w", "d_norm", "later"], "gradients": ["d_w", "d_norm", "later"], "batch": ["x", "d_y"]}
    names["loss"] = ["x"]
    order_exchanges(graph, hidden=hidden, **{**names, **more})
    edges = (edge for node in graph.op_nodes() for edge in node.in_edges() if edge.is_control and edge.src.is_op)
    return {(edge.src.name, edge.dst.name) for edge in edges}


def test_an_exposed_exchange_waits_for_what_is_before_it_and_is_waited_for() -> None:
    """What depends on it by data needs no edge."""
    assert ordered(backward_pass(), ()) == {("d_w", "sum"), ("sum", "later")}


def test_a_hidden_exchange_begins_before_what_it_does_not_need() -> None:
    """Its input comes first, and all others behind that."""
    assert ordered(backward_pass(), {"tp"}) == {("d_x", "d_w"), ("d_x", "later")}


def test_an_exchange_is_hidden_along_all_of_its_axes_or_exposed() -> None:
    """ "cp" alone hides nothing here."""
    assert ordered(backward_pass(), {"cp"}) == ordered(backward_pass(), ())


def test_what_reads_shapes_alone_is_not_ordered() -> None:
    """Functions of stages have copies of it."""
    graph = backward_pass(has_shape=True)
    edges = ordered(graph, (), ends=["d_w", "d_norm", "filled"])
    assert not [edge for edge in edges if "shape" in edge or "filled" in edge]


def test_what_is_free_is_not_ordered() -> None:
    """Whatever leads to it runs without the step."""
    edges = ordered(backward_pass(), (), free=["later"])
    assert edges == {("d_w", "sum")}


def test_what_follows_from_gradients_waits_for_all_of_them() -> None:
    """By one node on the device."""
    edges = ordered(backward_pass(), {"tp"}, gradients=["d_w", "sum"])
    ended = "backward_pass_ended/_0"
    assert {source for source, target in edges if target == ended} == {"d_w", "d_x"}
    assert {target for source, target in edges if source == ended} == {"d_norm", "later"}


def test_what_was_added_late_comes_where_it_is_needed() -> None:
    """Nodes that run again have the largest ids; a later node that needs nothing does not come before these."""
    graph = backward_pass()
    again = graph.add_node("again", "NoOp", device=DEVICES[0])
    d_x = graph.find_node("d_x")
    assert d_x is not None
    graph.add_control_edge(again, d_x)
    assert ordered(graph, ()) == {("again", "d_x"), ("d_w", "sum"), ("sum", "later")}


def test_an_unknown_name_is_refused() -> None:
    """It is told."""
    with pytest.raises(NotFoundError, match="no node 'nothing'"):
        ordered(backward_pass(), (), free=["nothing"])


@pytest.mark.parametrize(
    ("axes", "names"),
    [("tp", {"tp"}), ("edp+cp", {"dp", "cp"}), ("dp:2", {"dp"}), ("dp/2+cp", {"dp", "cp"}), ("ep", {"ep"})],
)
def test_axes_have_names(axes: str, names: set[str]) -> None:
    """Parts of dp are dp; experts are an axis of their own."""
    assert axis_names(axes) == names


def _played(hidden: Collection[str]) -> Timeline:
    graph = backward_pass()
    ordered(graph, hidden)
    cluster = local_cluster("gpu:2", gpu="H100-SXM")
    written = write_out(graph, Mesh(tp=2), DEVICES)
    ends = [f"{prefix}{name}" for prefix in ("", "rank_1/") for name in ("d_w", "d_norm", "later")]
    feeds = [f"{prefix}{name}" for prefix in ("", "rank_1/") for name in ("x", "d_y", "w")]
    return simulate(cut(written, cluster, feeds=feeds, targets=ends), cluster)


def test_on_the_clock_an_exposed_exchange_is_alone_and_a_hidden_one_beside_the_other_product() -> None:
    """Of two products of equal length and an exchange: one after the other, or the exchange beside the second."""
    times = {}
    for hidden in ((), ("tp",)):
        timeline = _played(hidden)
        device = next(event.device for event in timeline.events if event.device.endswith("GPU:0"))
        kernels = {
            event.node: (event.start_ns, event.end_ns)
            for event in timeline.events
            if event.device == device and event.kind in ("compute", "collective")
        }
        exposed, beside = timeline.communication(device)
        times[hidden] = kernels, exposed, beside
    kernels, exposed, beside = times[()]
    assert beside == 0
    assert exposed == kernels["sum"][1] - kernels["sum"][0]
    assert kernels["sum"][0] >= max(kernels["d_x"][1], kernels["d_w"][1])
    assert min(kernels["d_norm"][0], kernels["later"][0]) >= kernels["sum"][1]
    kernels, _, beside = times["tp",]
    assert kernels["sum"][0] < kernels["d_w"][1]
    assert beside > 0
    assert kernels["d_norm"][1] < times[()][0]["d_norm"][1]
