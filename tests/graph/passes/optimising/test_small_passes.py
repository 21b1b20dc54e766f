"""Dead nodes, identities and list converters: which are removed, and which stay."""

from __future__ import annotations

from partita.graph.builder import GraphBuilder
from partita.graph.passes.optimising.dead_nodes import remove_dead_nodes
from partita.graph.passes.optimising.identities import remove_identity_nodes
from partita.graph.passes.optimising.list_converters import remove_list_converters
from tests.goldens import assert_text


def test_only_what_nothing_depends_on_is_dead() -> None:
    """A node with an edge to the sink stays, and so do all inputs of a stateful node; `loose` is neither."""
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
    assert_text(
        remove_dead_nodes(graph),
        """
        3 nodes
        x: float = Placeholder() {shape=[]}
        needed: float = Exp(x)
        effect: float = Print(needed, x)
        """,
    )
    assert graph.find_node("loose") is not None


def test_identities_are_read_through() -> None:
    """Chains of them too; a node that waited for one waits for its source. The argument stays as it was."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    i = b.identity(b.identity(x, name="i"), name="j")
    b.op("Neg", i, name="y")
    b.op("NoOp", name="after", control=["j"])
    graph = b.graph()
    before = str(graph)
    assert_text(
        remove_identity_nodes(graph),
        """
        3 nodes
        x: float = Placeholder() {shape=[]}
        y: float = Neg(x)
        after = NoOp(^x)
        """,
    )
    assert str(graph) == before


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
    """Otherwise the next pass would remove it as dead."""
    b = GraphBuilder()
    b.identity(b.op("Neg", b.placeholder("x", "float32", ()), name="y"), name="last")
    assert_text(
        remove_dead_nodes(remove_identity_nodes(b.graph())),
        """
        2 nodes
        x: float = Placeholder() {shape=[]}
        y: float = Neg(x)
        """,
    )


def test_list_converters_become_identities() -> None:
    """One per tensor; control edges go by way of a NoOp. The argument stays as it was."""
    b = GraphBuilder()
    x, y, gate = b.placeholder("x", "float32", ()), b.placeholder("y", "float32", ()), b.op("NoOp", name="gate")
    types = ["float32", "float32"]
    pair = b.op("_ListToArray", [x, y], name="pair", control=[gate], Tin=types, T="float32", N=2)
    b.op("Sub", pair[1], pair[0], name="z")
    b.op("NoOp", name="after", control=[pair])
    graph = b.graph()
    before = str(graph)
    assert_text(
        remove_list_converters(graph),
        """
        9 nodes
        x: float = Placeholder() {shape=[]}
        y: float = Placeholder() {shape=[]}
        gate = NoOp()
        Func/_2 = NoOp(^gate)
        Func/_0: float = Identity(x, ^Func/_2)
        Func/_1: float = Identity(y, ^Func/_2)
        z: float = Sub(Func/_1, Func/_0)
        Func/_3 = NoOp(^Func/_0, ^Func/_1)
        after = NoOp(^Func/_3)
        """,
    )
    assert str(graph) == before
