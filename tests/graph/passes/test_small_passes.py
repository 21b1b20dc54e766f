"""Dead nodes, identities and list converters: what goes, and what has to stay."""

from __future__ import annotations

from partita.graph.builder import GraphBuilder
from partita.graph.passes.dead_nodes import remove_dead_nodes
from partita.graph.passes.identities import remove_identity_nodes
from partita.graph.passes.list_converters import remove_list_converters
from tests.graph.passes.evaluator import nodes_of


def test_only_what_nothing_depends_on_is_dead() -> None:
    """A loose end that hangs on the sink stays, and so does all that an effect depends on."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    b.op("Neg", b.op("Abs", x, name="before"), name="loose")
    b.op("Print", b.op("Exp", x, name="needed"), [x], name="effect")
    graph = b.graph()
    assert remove_dead_nodes(graph) is graph
    for name in ("loose", "effect"):
        node = graph.find_node(name)
        assert node is not None
        for edge in node.out_edges():
            graph.remove_edge(edge)
    assert sorted(nodes_of(remove_dead_nodes(graph))) == ["effect", "needed", "x"]
    assert "loose" in nodes_of(graph)


def test_identities_are_read_through() -> None:
    """Chains of them too; who waited for one waits for its source."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    i = b.identity(b.identity(x, name="i"), name="j")
    b.op("Neg", i, name="y")
    b.op("NoOp", name="after", control=["j"])
    graph = b.graph()
    assert nodes_of(remove_identity_nodes(graph)) == {
        "x": ["Placeholder"],
        "y": ["Neg", "x"],
        "after": ["NoOp", "^x"],
    }
    assert len(nodes_of(graph)) == 5


def test_identities_that_mean_something_stay() -> None:
    """After a Switch or a reference, with control inputs."""
    b = GraphBuilder()
    x, p = b.placeholder("x", "float32", ()), b.placeholder("p", "bool", ())
    b.op("Neg", b.identity(b.op("Switch", x, p)[1], name="after_switch"))
    b.op("Neg", b.identity(b.variable("v", "float32", ()), name="snapshot"))
    b.op("Neg", b.identity(x, name="late", control=[p]))
    graph = b.graph()
    assert remove_identity_nodes(graph) is graph


def test_a_source_that_is_left_without_consumers_hangs_on_the_sink() -> None:
    """So that no later pass takes it for dead."""
    b = GraphBuilder()
    b.identity(b.op("Neg", b.placeholder("x", "float32", ()), name="y"), name="last")
    made = remove_dead_nodes(remove_identity_nodes(b.graph()))
    assert sorted(nodes_of(made)) == ["x", "y"]


def test_list_converters_become_identities() -> None:
    """One a tensor; control edges go by way of a NoOp."""
    b = GraphBuilder()
    x, y, gate = b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ()), b.op("NoOp", name="gate")
    types = ["float32", "float32"]
    pair = b.op("_ListToArray", [x, y], name="pair", control=[gate], Tin=types, T="float32", N=2)
    b.op("Sub", pair[1], pair[0], name="z")
    b.op("NoOp", name="after", control=[pair])
    graph = b.graph()
    assert nodes_of(remove_list_converters(graph)) == {
        "x": ["Placeholder"],
        "y": ["Placeholder"],
        "gate": ["NoOp"],
        "Func/_0": ["Identity", "x", "^Func/_2"],
        "Func/_1": ["Identity", "y", "^Func/_2"],
        "Func/_2": ["NoOp", "^gate"],
        "Func/_3": ["NoOp", "^Func/_0", "^Func/_1"],
        "z": ["Sub", "Func/_1", "Func/_0"],
        "after": ["NoOp", "^Func/_3"],
    }
    assert "pair" in nodes_of(graph)
