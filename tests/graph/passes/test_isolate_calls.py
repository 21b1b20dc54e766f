"""Identities stand around the calls that give resources, under the names that TensorFlow gives them."""

from __future__ import annotations

from typing import Any

from partita.graph.builder import GraphBuilder
from partita.graph.graph import Graph
from partita.graph.passes.isolate_calls import calls_giving_resources, isolate_calls
from partita.graph.protos import NameAttrList
from tests.function_defs import function_of
from tests.goldens import assert_text


def graph_of(gives_resource: bool, op: str = "PartitionedCall") -> Graph:
    """A call `c` that takes a handle and a float; two nodes read its first result, one its second."""
    c = GraphBuilder()
    handle, x = c.placeholder("h", "resource", ()), c.placeholder("x", "float32", ())
    result = c.identity(handle) if gives_resource else c.op("ReadVariableOp", handle, dtype="float32")[0]
    function = function_of("f", c.graph_def(), ["h:0", "x:0"], [result.name, x.name])
    b = GraphBuilder()
    b.function(function)
    v = b.op("VarHandleOp", name="v", dtype="float32", shape=())[0]
    attrs: dict[str, Any] = {
        "Tin": ["resource", "float32"],
        "Tout": ["resource" if gives_resource else "float32", "float32"],
    }
    call = b.op(op, [v, b.constant(1.0, name="k")], name="c", attrs=attrs | {"f": NameAttrList(name="f")})
    for name in ("a", "b"):
        b.op("Identity", call[0], name=name)
    b.op("Neg", call[1], name="n", control=[call])
    return b.graph()


def test_identities_are_named_as_in_tensorflow() -> None:
    """One for each input, one for each edge that leaves; control edges stay."""
    graph = graph_of(gives_resource=True)
    isolate_calls(graph)
    assert_text(
        graph,
        """
        11 nodes
        v: resource = VarHandleOp() {dtype=DT_FLOAT, shape=[]}
        k: float = Const() {value=1}
        v_c: resource = Identity(v)
        k_c: float = Identity(k)
        c: resource, float = PartitionedCall(v_c, k_c) {f=f[]}
        c_a: resource = Identity(c)
        a: resource = Identity(c_a)
        c_b: resource = Identity(c)
        b: resource = Identity(c_b)
        c_n: float = Identity(c:1)
        n: float = Neg(c_n, ^c)
        functions: f
        """,
    )
    assert [list(node.requested_inputs) for node in graph.op_nodes() if node.name == "c"] == [["v_c:0", "k_c:0"]]


def test_isolating_twice_changes_nothing() -> None:
    """A session that is extended isolates the calls of its graph again."""
    graph = graph_of(gives_resource=True)
    isolate_calls(graph)
    before = graph.to_graph_def()
    isolate_calls(graph)
    assert graph.to_graph_def() == before


def test_other_calls_stay_as_they_are() -> None:
    graph = graph_of(gives_resource=False)
    assert not calls_giving_resources(graph)
    before = graph.to_graph_def()
    isolate_calls(graph)
    assert graph.to_graph_def() == before
