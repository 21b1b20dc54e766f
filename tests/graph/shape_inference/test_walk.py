"""The walk of large graphs: looking cases up gives what visiting every node gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from partita.graph import DataType, Graph, GraphBuilder, graph_def_to_graph, split_graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.shape_inference.infer import Shapes, infer_joined, infer_shapes
from partita.graph.shape_inference.inferred import AssumedShape
from tests.conformance.corpus import shape_cases
from tests.large_graphs import counted_loop, many_nodes
from tests.strategies import GraphCase, graph_cases


def visited_one_by_one(graph: Graph, **feeds: tuple[int, ...]) -> dict[str, Shapes]:
    """The shapes of a walk that looks nothing up: every node may be refined by its name."""
    return infer_shapes(graph, feeds, refine=lambda name, properties, shapes: shapes)


@given(graph_cases())
def test_looking_up_gives_what_visiting_gives(case: GraphCase) -> None:
    """On drawn graphs."""
    graph = graph_def_to_graph(case.on_one_device(), add_default_attrs=True)
    assert infer_shapes(graph) == visited_one_by_one(graph)


def test_looking_up_gives_what_visiting_gives_on_the_corpus() -> None:
    """With loops, calls, handles and values."""
    for case in shape_cases():
        graph = graph_def_to_graph(case.graph_def())
        assert infer_shapes(graph) == visited_one_by_one(graph), case.path


def test_a_loop_over_two_devices_has_the_shapes_of_the_whole_loop() -> None:
    """Each receive has the shape of what is sent to it."""
    whole = graph_def_to_graph(counted_loop(3), add_default_attrs=True)
    before = infer_shapes(whole)
    for node in whole.op_nodes():
        node.assigned_device = node.requested_device
    after = infer_joined(JoinedGraph(split_graph(whole))).by_name()
    assert {name: after[name] for name in before} == before


def test_nodes_of_one_kind_and_one_shape_are_one_case() -> None:
    """So a large graph has few of them, whose shapes and costs are computed once."""
    inferred = infer_joined(JoinedGraph({"": graph_def_to_graph(many_nodes(2000))}), {"x": (8, 8)})
    assert len(set(inferred.case_of.tolist())) == 5  # the placeholder and four ops
    for n in range(len(inferred.graph)):
        case = int(inferred.case_of[n])
        assert inferred.written(case) == inferred.of(n) == inferred.shapes[n] == ((8, 8),)
        assert inferred.read(case) == tuple(inferred.of(src)[output] for src, output in inferred.graph.inputs_of(n))


def test_equal_constants_are_one_fact() -> None:
    """What reads one of them is of the same case as what reads the other, and of another case than other values."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (6,))
    for k, sizes in enumerate(([2, 3], [2, 3], [3, 2])):
        b.op("Reshape", x, b.constant(np.array(sizes, np.int32), name=f"sizes{k}"), name=f"y{k}")
    inferred = infer_joined(JoinedGraph({"": b.graph()}))
    cases = [int(inferred.case_of[inferred.graph.names.index(f"y{k}")]) for k in range(3)]
    assert cases[0] == cases[1] != cases[2]
    assert [inferred.written(case) for case in cases] == [((2, 3),), ((2, 3),), ((3, 2),)]
    values = {inferred.graph.names[n]: value.tolist() for (n, _), value in inferred.values.items()}
    assert values == {"sizes0": [2, 3], "sizes1": [2, 3], "sizes2": [3, 2]}


def test_what_is_assumed_is_listed_by_node() -> None:
    """With the shape that was taken; nodes behind it have known shapes then."""
    graph = Graph()
    for name in ("a", "b"):
        graph.add_node(name, "Placeholder", {"dtype": DataType.FLOAT, "shape": (None, 3)})
    total = graph.add_node("sum", "AddV2", {"T": DataType.FLOAT})
    for port, name in enumerate(("a", "b")):
        source = graph.find_node(name)
        assert source is not None
        graph.add_edge(source, 0, total, port)
    inferred = infer_joined(JoinedGraph({"": graph}), assumed_size=4)
    assert inferred.assumed == [AssumedShape(name, "shape of output 0", (4, 3)) for name in ("a", "b")]
    assert inferred.assumptions == ["unknown sizes were taken as 4: 2 x Placeholder"]
    assert infer_joined(JoinedGraph({"": graph}), {"a": (2, 3), "b": (2, 3)}, assumed_size=4).assumed == []


@pytest.mark.parametrize("fed", [True, False])
def test_a_tensor_that_is_not_fed_has_its_default(fed: bool) -> None:
    """In one step; a graph on its own says what is true in every step."""
    b = GraphBuilder()
    b.op("PlaceholderWithDefault", b.constant([1.0, 2.0]), shape=(None,), name="x")
    graph = b.graph()
    assert infer_joined(JoinedGraph({"": graph}), {"x": (5,)} if fed else {}).by_name()["x"] == ((5 if fed else 2,),)
    assert infer_shapes(graph)["x"] == ((None,),)
