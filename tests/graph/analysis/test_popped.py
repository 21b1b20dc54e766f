"""Which push a pop takes back, and that none is named where several ops change a stack or list."""

from __future__ import annotations

import pytest

from partita.graph.analysis.joined import JoinedGraph
from partita.graph.analysis.popped import Pops
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.importer import graph_def_to_graph


def joined(b: GraphBuilder) -> JoinedGraph:
    """The graph of a builder."""
    return JoinedGraph({"": graph_def_to_graph(b.graph_def(), add_default_attrs=True)})


@pytest.mark.parametrize("pushes", [1, 2])
@pytest.mark.parametrize("pops", [1, 2])
def test_a_pop_belongs_to_the_only_push_of_its_stack(pushes: int, pops: int) -> None:
    """With more than one of either it is not told what a pop finds."""
    b = GraphBuilder()
    handle = b.op("StackV2", 4, elem_type="float32", name="stack")[0]
    for k in range(pushes):
        b.op("StackPushV2", handle, float(k), name=f"push{k}")
    for k in range(pops):
        b.op("StackPopV2", handle, elem_type="float32", name=f"pop{k}")
    graph = joined(b)
    numbers = graph.numbers(graph.names)
    push = Pops(graph).push_of(numbers["pop0"])
    if pushes == pops == 1:
        assert push is not None
        assert push.node == numbers["push0"]
        assert push.element == graph.inputs_of(push.node)[1]
    else:
        assert push is None
    assert Pops(graph).push_of(numbers["push0"]) is None
