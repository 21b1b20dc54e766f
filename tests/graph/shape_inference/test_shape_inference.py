"""Shapes of whole graphs: those that follow from the feeds, unknown ones, and assumed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given

from partita.errors import InvalidArgumentError
from partita.graph import DataType, Graph, graph_def_to_graph, split_graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.dtypes import Shape
from partita.graph.shape_inference.infer import infer_joined, infer_shapes
from tests.strategies import GraphCase, graph_cases, placed_cases

FLOAT, INT32 = DataType.FLOAT, DataType.INT32


class Writer:
    """Writes a graph node by node; an input is "node" or "node:port"."""

    def __init__(self) -> None:
        self.graph = Graph()

    def add(self, name: str, op: str, inputs: Sequence[str] = (), **attrs: object) -> str:
        """Adds a node and its data edges."""
        node = self.graph.add_node(name, op, attrs)
        for port, text in enumerate(inputs):
            source, _, output = text.partition(":")
            producer = self.graph.find_node(source)
            assert producer is not None
            self.graph.add_edge(producer, int(output or 0), node, port)
        return name

    def const(self, name: str, value: Sequence[int] | int) -> str:
        """Adds an int32 constant."""
        return self.add(name, "Const", dtype=INT32, value=np.array(value, np.int32))

    def shapes(self, feeds: Mapping[str, Shape] | None = None) -> dict[str, tuple[Shape, ...]]:
        """The inferred shapes."""
        return infer_shapes(self.graph, feeds)


@given(graph_cases())
def test_drawn_graphs_have_the_shapes_they_were_drawn_with(case: GraphCase) -> None:
    """With shapes for all feeds no size is unknown."""
    graph = graph_def_to_graph(case.graph_def, add_default_attrs=True)
    shapes = infer_shapes(graph, case.feeds)
    for tensor, shape in case.shapes.items():
        node, _, port = tensor.partition(":")
        assert shapes[node][int(port or 0)] == shape


@given(placed_cases())
def test_cutting_a_graph_changes_no_shape(placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Receives have the shapes of what was sent."""
    case, placement = placed
    whole = graph_def_to_graph(case.on(placement), add_default_attrs=True, expect_device=True)
    before = infer_shapes(whole, case.feeds)
    after = infer_joined(JoinedGraph(split_graph(whole)), case.feeds).by_name()
    assert {name: after[name] for name in before} == before


def test_sizes_are_followed_through_arithmetic() -> None:
    """A reshape to (size 0, size 1 * size 2) of the input, computed as graphs do."""
    g = Writer()
    g.add("x", "Placeholder", dtype=FLOAT, shape=(None, 3, 4))
    g.add("shape", "Shape", ["x"], T=FLOAT)
    for name, begin, end in (("first", 0, 1), ("rest", 1, 3)):
        bounds = [g.const(f"{name}/b", [begin]), g.const(f"{name}/e", [end]), g.const(f"{name}/s", [1])]
        shrink = 1 if name == "first" else 0
        g.add(name, "StridedSlice", ["shape", *bounds], T=INT32, Index=INT32, shrink_axis_mask=shrink)
    g.add("product", "Prod", ["rest", g.const("axis", [0])], T=INT32)
    g.add("to", "Pack", ["first", "product"], N=2, T=INT32, axis=0)
    g.add("y", "Reshape", ["x", "to"], T=FLOAT)
    assert g.shapes({"x": (5, 3, 4)})["y"] == ((5, 12),)
    assert g.shapes()["y"] == ((None, 12),)


def test_a_condition_keeps_what_both_sides_share() -> None:
    """Sizes that agree; the index of the side is a scalar."""
    g = Writer()
    g.add("p", "Placeholder", dtype=DataType.BOOL, shape=())
    g.add("x", "Placeholder", dtype=FLOAT, shape=(2, 3))
    g.add("switch", "Switch", ["x", "p"], T=FLOAT)
    g.add("double", "ConcatV2", ["switch:0", "switch:0", g.const("axis", 0)], N=2, T=FLOAT)
    g.add("merge", "Merge", ["double", "switch:1"], N=2, T=FLOAT)
    assert g.shapes()["merge"] == ((None, 3), ())


def loop(grows: bool) -> Writer:
    """A loop whose body keeps a matrix, or appends it to itself."""
    g = Writer()
    g.add("p", "Placeholder", dtype=DataType.BOOL, shape=())
    g.add("x", "Placeholder", dtype=FLOAT, shape=(2, 3))
    g.add("enter", "Enter", ["x"], T=FLOAT, frame_name=b"loop")
    g.add("merge", "Merge", ["enter", "enter"], N=2, T=FLOAT)
    g.add("switch", "Switch", ["merge", "p"], T=FLOAT)
    g.const("axis", 0)
    if grows:
        g.add("body", "ConcatV2", ["switch:1", "switch:1", "axis"], N=2, T=FLOAT)
    else:
        g.add("body", "Neg", ["switch:1"], T=FLOAT)
    g.add("next", "NextIteration", ["body"], T=FLOAT)
    g.add("exit", "Exit", ["switch:0"], T=FLOAT)
    following, merge = g.graph.find_node("next"), g.graph.find_node("merge")
    assert following is not None
    assert merge is not None
    g.graph.update_edge(following, 0, merge, 1)
    return g


def test_loops_keep_what_every_iteration_shares() -> None:
    """A size that grows is unknown; the other sizes, and unchanged shapes, are known."""
    assert loop(grows=False).shapes()["exit"] == ((2, 3),)
    assert loop(grows=True).shapes()["exit"] == ((None, 3),)


def test_assuming_a_loop_is_its_first_iteration() -> None:
    """Then no size is unknown."""
    joined = JoinedGraph({"": loop(grows=True).graph})
    assert infer_joined(joined, assumed_size=1).by_name()["body"] == ((4, 3),)


def test_reads_of_a_variable_have_its_shape() -> None:
    """Through its handle."""
    g = Writer()
    g.add("v", "VarHandleOp", dtype=FLOAT, shape=(7, 2))
    g.add("same", "Identity", ["v"], T=DataType.RESOURCE)
    g.add("read", "ReadVariableOp", ["same"], dtype=FLOAT)
    g.add("rows", "ResourceGather", ["v", g.const("ids", [1, 2, 3])], dtype=FLOAT, Tindices=INT32)
    assert g.shapes()["read"] == ((7, 2),)
    assert g.shapes()["rows"] == ((3, 2),)


def test_assumptions_are_told() -> None:
    """Each kind once, with the ops it was needed for."""
    g = Writer()
    g.add("x", "Placeholder", dtype=FLOAT, shape=(None, 3))
    g.add("anything", "Placeholder", dtype=FLOAT, shape=None)
    g.add("y", "MatMul", ["x", "anything"], T=FLOAT)
    shapes = infer_joined(JoinedGraph({"": g.graph}), {"elsewhere": (1,)}, assumed_size=2)
    assert shapes.by_name()["x"] == ((2, 3),)
    assert shapes.assumptions == [
        "unknown sizes were taken as 2: 1 x Placeholder",
        "unknown shapes were taken as those of the first input: 1 x MatMul, 1 x Placeholder",
        "assumed sizes fit no rule and were passed on: 1 x MatMul",
        "feeds that no part of the step reads: elsewhere",
    ]


def test_contradictions_name_the_node() -> None:
    """In the graph and in the feeds."""
    g = Writer()
    g.add("x", "Placeholder", dtype=FLOAT, shape=(None, 3))
    g.add("y", "MatMul", ["x", "x"], T=FLOAT)
    with pytest.raises(InvalidArgumentError) as error:
        g.shapes({"x": (4, 3)})
    assert error.value.node == "y"
    with pytest.raises(InvalidArgumentError, match="the placeholder wants") as error:
        g.shapes({"x": (4, 4)})
    assert error.value.node == "x"
    with pytest.raises(InvalidArgumentError, match="has no node 'z'"):
        g.shapes({"z": ()})
    with pytest.raises(InvalidArgumentError, match="feed of output 1"):
        g.shapes({"x:1": ()})


def test_incomplete_and_cyclic_graphs_are_refused() -> None:
    """An input without an edge; a cycle without a NextIteration."""
    g = Writer()
    g.add("y", "Neg", T=FLOAT)
    with pytest.raises(InvalidArgumentError, match="0 of 1 inputs are connected"):
        g.shapes()
    node = g.graph.find_node("y")
    assert node is not None
    g.graph.add_edge(node, 0, node, 0)
    with pytest.raises(InvalidArgumentError, match="the node waits for itself"):
        g.shapes()
