"""Shapes of a step that is inferred again: those that are known, unless anything has changed."""

from __future__ import annotations

import gc
from collections.abc import Callable
from weakref import ref

import numpy as np
import pytest
from hypothesis import given

from partita.graph import DataType, Graph, graph_def_to_graph, split_graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.builder import GraphBuilder
from partita.graph.shape_inference import known_steps
from partita.graph.shape_inference.infer import FedShapes, InferredShapes, infer_joined
from partita.graph.shape_inference.known_steps import shapes_of_step
from tests.conformance.corpus import shape_cases
from tests.function_defs import func_attr, function_of
from tests.strategies import GraphCase, graph_cases

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
FLOAT = {"T": DataType.FLOAT}
Change = Callable[[Graph], object]


def small_graph() -> Graph:
    """x (2, ?), y (3, ?), a = Neg(x), b = Neg(a)."""
    graph = Graph()
    x = graph.add_node("x", "Placeholder", {"dtype": DataType.FLOAT, "shape": (2, None)})
    graph.add_node("y", "Placeholder", {"dtype": DataType.FLOAT, "shape": (3, None)})
    a, b = graph.add_node("a", "Neg", FLOAT), graph.add_node("b", "Neg", FLOAT)
    graph.add_edge(x, 0, a, 0)
    graph.add_edge(a, 0, b, 0)
    return graph


def rewire(graph: Graph) -> None:
    """`b` reads `y`."""
    y, b = graph.find_node("y"), graph.find_node("b")
    assert y is not None
    assert b is not None
    graph.update_edge(y, 0, b, 0)


def add_node(graph: Graph) -> None:
    """A node more."""
    graph.add_node("c", "Placeholder", {"dtype": DataType.FLOAT, "shape": (5,)})


def add_control_edge(graph: Graph) -> None:
    """`b` waits for `y`."""
    y, b = graph.find_node("y"), graph.find_node("b")
    assert y is not None
    assert b is not None
    graph.add_control_edge(y, b)


def promise(graph: Graph) -> None:
    """The graph says what is fed."""
    graph.fed_shapes = {"x:0": (2, 9)}


def step_of(graph: Graph, feeds: FedShapes, assumed_size: int | None = None) -> InferredShapes:
    """The shapes of the step of one partition."""
    return shapes_of_step([graph], JoinedGraph({CPU: graph}), feeds, assumed_size=assumed_size)


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[FedShapes]:
    """The feeds of all steps that were inferred."""
    inferences: list[FedShapes] = []

    def counted(graph: JoinedGraph, feeds: FedShapes, *, assumed_size: int | None = None) -> InferredShapes:
        inferences.append(feeds)
        return infer_joined(graph, feeds, assumed_size=assumed_size)

    monkeypatch.setattr(known_steps, "infer_joined", counted)
    return inferences


def test_an_equal_step_is_not_inferred_again(inferred: list[FedShapes]) -> None:
    """With equal feeds, which may be other objects; its graph is the one that was asked about."""
    graph = small_graph()
    before, joined = step_of(graph, {"x:0": (2, 4)}), JoinedGraph({CPU: graph})
    after = shapes_of_step([graph], joined, {"x:0": (2, 4)})
    assert len(inferred) == 1
    assert after.by_name() == before.by_name()
    assert after.graph is joined


@pytest.mark.parametrize("change", [rewire, add_node, add_control_edge, promise])
def test_a_changed_graph_is_inferred_anew(change: Change, inferred: list[FedShapes]) -> None:
    """Whatever has changed in it."""
    graph = small_graph()
    step_of(graph, {})
    change(graph)
    after = step_of(graph, {})
    assert len(inferred) == 2
    assert after.by_name() == infer_joined(JoinedGraph({CPU: graph}), {}).by_name()


@pytest.mark.parametrize(("feeds", "assumed_size"), [({"x:0": (2, 5)}, None), ({}, None), ({"x:0": (2, 4)}, 7)])
def test_other_questions_are_inferred_anew(
    feeds: FedShapes, assumed_size: int | None, inferred: list[FedShapes]
) -> None:
    """Other feeds, none, and a size for what is unknown."""
    graph = small_graph()
    step_of(graph, {"x:0": (2, 4)})
    after = step_of(graph, feeds, assumed_size)
    assert len(inferred) == 2
    expected = infer_joined(JoinedGraph({CPU: graph}), feeds, assumed_size=assumed_size)
    assert after.by_name() == expected.by_name()
    assert after.assumptions == expected.assumptions


def test_fed_values_are_inferred_each_time(inferred: list[FedShapes]) -> None:
    """Shapes may depend on them, and an array can change."""
    graph = small_graph()
    for _ in range(2):
        step_of(graph, {"x:0": np.zeros((2, 4), np.float32)})
    step_of(graph, {"x:0": (2, 4)})
    assert len(inferred) == 3


@given(graph_cases())
def test_known_shapes_are_those_of_an_inference(case: GraphCase) -> None:
    """On drawn graphs over devices, asked twice."""
    graph = graph_def_to_graph(case.on_one_device(), add_default_attrs=True)
    for node in graph.op_nodes():
        node.assigned_device = node.requested_device or CPU
    parts = split_graph(graph)
    expected = infer_joined(JoinedGraph(parts)).by_name()
    for _ in range(2):
        assert shapes_of_step(parts.values(), JoinedGraph(parts), {}).by_name() == expected


def test_known_shapes_are_those_of_an_inference_on_the_corpus() -> None:
    """With loops, calls, handles and values: each is asked twice with an assumed size."""
    cases = shape_cases()
    assert len(cases) > 20
    for case in cases:
        graph = graph_def_to_graph(case.graph_def())
        expected = infer_joined(JoinedGraph({CPU: graph}), {}, assumed_size=4)
        for _ in range(2):
            actual = step_of(graph, {}, 4)
            assert actual.by_name() == expected.by_name(), case.path
            assert actual.assumed == expected.assumed, case.path


def test_partitions_are_not_kept() -> None:
    """What is known of a step goes with its first partition."""
    graph = small_graph()
    step_of(graph, {})
    kept = ref(graph)
    del graph
    gc.collect()
    assert kept() is None


def calling_graph() -> Graph:
    """y = f(x), where f takes the negative."""
    inner = GraphBuilder()
    inner.op("Neg", inner.placeholder("x", "float32"), name="negative")
    b = GraphBuilder()
    b.function(function_of("f", inner.graph_def(), ["x:0"], ["negative:0"]))
    x = b.placeholder("x", "float32", (2, None))
    b.op("PartitionedCall", [x], name="y", attrs={"Tin": ["float32"], "Tout": ["float32"], "f": func_attr("f")})
    return graph_def_to_graph(b.graph_def())


def test_a_step_with_calls_is_kept_with_their_results(inferred: list[FedShapes]) -> None:
    """Also what is inside of the functions; other feeds are inferred anew, and the step goes with its partition."""
    graph = calling_graph()
    before, after = step_of(graph, {"x:0": (2, 4)}), step_of(graph, {"x:0": (2, 4)})
    assert len(inferred) == 1
    assert after.by_name() == before.by_name() == {"x": ((2, 4),), "y": ((2, 4),)}
    (call,) = after.called
    inside = after.called.inside[call]
    assert isinstance(inside, InferredShapes)
    assert inside.by_name()["negative"] == ((2, 4),)
    assert step_of(graph, {"x:0": (2, 5)}).by_name()["y"] == ((2, 5),)
    kept = ref(graph)
    del graph
    gc.collect()
    assert kept() is None
