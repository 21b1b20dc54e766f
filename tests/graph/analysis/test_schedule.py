"""Start times: earliest, latest, slack, and the schedule of devices that run two nodes at a time."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from partita.graph.analysis.cost_model import CostModel
from partita.graph.analysis.schedule import COPY_US, Slack, greedy_start_times, start_times
from partita.graph.builder import GraphBuilder
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from tests.conformance.corpus import Case, cases
from tests.strategies import GraphCase, placed_cases

_MADE_BY_TENSORFLOW = [
    case
    for family in ("epochs", "tasks")
    for case in cases(family)
    if case.info["options"].get("start_time_rule") == "asap"
]


def _placed(b: GraphBuilder) -> Graph:
    graph = b.graph()
    graph.assign_devices(graph.requested_device_indices())
    return graph


def _by_name(graph: Graph, times: list[int]) -> dict[str, int]:
    return {node.name: times[node.id] for node in graph.op_nodes()}


def _fork() -> Graph:
    """x leads to y by a long path (a, b, and c on another device) and by a short one (d)."""
    b = GraphBuilder()
    with b.device("/cpu:0"):
        x = b.placeholder("x", "float32", ())
        long = b.op("Neg", b.op("Neg", x, name="a"), name="b")
        short = b.op("Neg", x, name="d")
    with b.device("/cpu:1"):
        long = b.op("Neg", long, name="c")
    with b.device("/cpu:0"):
        b.op("AddV2", long, short, name="y")
    return _placed(b)


def test_nodes_start_when_their_last_input_is_there() -> None:
    """One microsecond per node, the source included, and ten for a tensor that changes devices."""
    assert start_times(_fork()) == {"x": 1, "a": 2, "b": 3, "d": 2, "c": 4 + COPY_US, "y": 5 + 2 * COPY_US}


def test_slack_is_what_a_short_way_has_to_spare() -> None:
    """Nodes on the long path have none."""
    graph = _fork()
    slack = Slack(graph)
    assert slack.asap()[graph.sink.id] == -slack.alap()[graph.source.id] == 6 + 2 * COPY_US
    assert _by_name(graph, slack.slack()) == {"x": 0, "a": 0, "b": 0, "c": 0, "y": 0, "d": 2 + 2 * COPY_US}


def test_nodes_take_what_the_cost_model_says() -> None:
    """A node that took 50 us in two runs takes 25."""
    graph, model = _fork(), CostModel(is_global=False)
    for node in graph.nodes():
        model.set_num_outputs(node, node.num_outputs)
    a = graph.find_node("a")
    assert a is not None
    model.record_time(a, 50)
    model.record_count(a, 2)
    assert start_times(graph, model)["b"] == 2 + 25


def test_a_loop_is_gone_through_once() -> None:
    """Its nodes start when the value from outside arrives; the Merge itself gets the time of the next iteration."""
    b = GraphBuilder()
    enter = b.op("Enter", b.placeholder("x", "float32", ()), name="enter", frame_name="f")
    merge = b.op("Merge", [enter, b.later("float32")], name="merge")
    cond = b.op("LoopCond", b.op("Less", merge[0], enter, name="less"), name="cond")
    switch = b.op("Switch", merge[0], cond, name="switch")
    b.close_loop(merge, b.op("NextIteration", switch[1], name="next"))
    b.op("Exit", switch[0], name="exit")
    graph = _placed(b)
    times = start_times(graph)
    assert (times["less"], times["switch"], times["next"], times["exit"], times["merge"]) == (4, 6, 7, 7, 8)


@given(placed_cases())
def test_start_times_are_the_longest_ways(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """From the source to each node, Merges aside; slack is never negative, and somewhere there is none."""
    case, placement = placed
    graph = graph_def_to_graph(case.on(placement))
    assume(not any(node.op == "Merge" for node in graph.op_nodes()))
    graph.assign_devices(graph.requested_device_indices())
    slack = Slack(graph)
    start = slack.asap()
    for node in graph.nodes():
        ends = [start[e.src.id] + slack.estimate(e.src.id) + slack.copy_time(e.id) for e in node.in_edges()]
        assert start[node.id] == max(ends, default=0)
    assert min(slack.slack()) == 0
    starts, makespan = greedy_start_times(graph)
    assert makespan == max(starts) + 1
    assert all(later >= earlier for later, earlier in zip(starts, start, strict=True))


def test_a_device_runs_two_nodes_at_a_time_and_the_urgent_ones_first() -> None:
    """Of three ready nodes the one with the most slack waits."""
    b = GraphBuilder()
    with b.device("/cpu:0"):
        x = b.placeholder("x", "float32", ())
        first, second = b.op("Neg", x, name="first"), b.op("Neg", x, name="second")
        b.op("Neg", x, name="spare")
        b.op("Neg", b.op("AddV2", first, second, name="sum"), name="last")
    graph = _placed(b)
    starts, makespan = greedy_start_times(graph)
    assert _by_name(graph, starts) == {"x": 1, "first": 2, "second": 2, "spare": 3, "sum": 3, "last": 4}
    assert makespan == 6


@pytest.mark.parametrize("case", _MADE_BY_TENSORFLOW, ids=lambda case: case.path)
def test_start_times_are_those_a_master_gives_its_workers(case: Case) -> None:
    """The corpus has the start times that TensorFlow's own analysis computed for a graph."""
    options, step = case.info["options"], case.steps()[0]
    graph = graph_def_to_graph(case.graph_def(), add_default_attrs=True)
    graph.assign_devices(graph.requested_device_indices())
    request = ClientRequest(
        list(step.feeds),
        step.fetches,
        step.targets,
        device=options["client_device"],
        by_rendezvous=not options["function_convention"],
    )
    client = client_graph(graph, request)
    starts = start_times(client)
    assert {name: starts[name] for name in options["start_times"]} == options["start_times"]
