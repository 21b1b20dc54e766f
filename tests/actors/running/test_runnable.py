"""`missing_kernels` lists exactly the nodes that a session refuses to run."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.actors import BlockingSession
from partita.actors.running.runnable import MissingKernel, graphs_that_run, missing_kernels
from partita.errors import PartitaError, UnimplementedError
from partita.graph import graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.protos import FunctionDef, GraphDef, NameAttrList
from tests.actors.programs import Program, programs
from tests.function_defs import LOWER, function_of, library_of

WITHOUT = "ConfigureTPUEmbeddingMemory"  # string -> string


def missing(graph_def: GraphDef) -> list[MissingKernel]:
    """All nodes without kernel in the graph and in functions it may call."""
    lowered = lower_functional(graph_def_to_graph(graph_def, add_default_attrs=True))
    return [node for name, graph in graphs_that_run(lowered) for node in missing_kernels(name, graph)]


def body(name: str, *callees: str, lacks: bool, lower: bool = False) -> FunctionDef:
    """A function that joins a string with results of calls; with `lacks` its node `bad` has no kernel."""
    b = GraphBuilder()
    value = b.placeholder("x", "string")
    if lacks:
        value = b.op(WITHOUT, value, name="bad")[0]
    for number, callee in enumerate(callees):
        value = call(b, callee, value, f"call{number}", lower=lower)
    b.op("Identity", value, name="y")
    return function_of(name, b.graph_def(), ["x"], ["y"])


def call(b: GraphBuilder, callee: str, value: Tensor, name: str, *, lower: bool = False) -> Tensor:
    """A call of a function or, for "A|B", of one of two."""
    types = {"Tin": ["string"], "Tout": ["string"]}
    if "|" in callee:
        then, otherwise = (NameAttrList(name=branch) for branch in callee.split("|"))
        attrs = {**types, "then_branch": then, "else_branch": otherwise} | ({LOWER: True} if lower else {})
        return b.op("If", b.constant(True), [value], name=name, attrs=attrs)[0]
    return b.op("PartitionedCall", [value], name=name, attrs={**types, "f": NameAttrList(name=callee)})[0]


def program(callee: str, functions: Iterable[FunctionDef], *, lower: bool = False) -> GraphDef:
    """A graph whose node `main` calls a function."""
    b = GraphBuilder()
    call(b, callee, b.constant(b"some", "string"), "main", lower=lower)
    return with_library(b, *functions)


def with_library(b: GraphBuilder, *functions: FunctionDef) -> GraphDef:
    """A graph that has these functions to call."""
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


FUNCTIONS = ("f", "g", "h", "k")


@settings(max_examples=30)
@given(
    st.tuples(*[st.booleans()] * 4),
    st.tuples(*[st.sampled_from(["", "f", "g", "h", "k", "g|h", "h|k"])] * 4),
    st.sampled_from(["f", "f|g"]),
    st.booleans(),
)
def test_functions_that_may_be_called_are_looked_into(
    lacking: tuple[bool, ...], calls: tuple[str, ...], start: str, lower: bool
) -> None:
    """Functions call only later ones; functions that nothing calls are not listed."""
    order = dict(zip(FUNCTIONS, range(4), strict=True))
    callees = [
        called if called and all(order[name] > at for name in called.split("|")) else ""
        for at, called in enumerate(calls)
    ]
    functions = [
        body(name, *([called] if called else []), lacks=lacks, lower=lower)
        for name, called, lacks in zip(FUNCTIONS, callees, lacking, strict=True)
    ]
    reached: set[str] = set()
    waiting = start.split("|")
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += callees[order[name]].split("|") if callees[order[name]] else []
    graph_def = program(start, functions, lower=lower)
    nodes = missing(graph_def)
    expected = {name for name in reached if lacking[order[name]]}
    assert {node.op for node in nodes} <= {WITHOUT}
    assert bool(nodes) == bool(expected)
    assert {node.function for node in nodes} <= {"", *reached}
    if not lower:  # else branches are part of what they are lowered into
        assert {(node.function, node.node) for node in nodes} == {(name, "bad") for name in expected}
    with BlockingSession(graph_def) as session:
        if expected:
            with pytest.raises(UnimplementedError, match=f"no kernel for {WITHOUT}: needed by"):
                session.run("main")
        else:
            assert session.run("main")[0] == b"some"


def test_the_nodes_told_of_are_those_that_a_session_names() -> None:
    b = GraphBuilder()
    text = b.constant(b"", "string")
    for name in ("a", "b"):
        b.op("SdcaFprint", text, name=name)
    b.op(WITHOUT, text, name="c")
    graph_def = b.graph_def()
    with BlockingSession(graph_def) as session, pytest.raises(UnimplementedError) as caught:
        session.run([], targets=["a", "b", "c"])
    named = re.findall(r"'(\w+)' \((\w+)\)", caught.value.message)
    nodes = missing(graph_def)
    assert [(node.function, node.node) for node in nodes] == [("", "a"), ("", "b"), ("", "c")]
    assert set(named) < {(node.node, node.op) for node in nodes}  # of nodes that are alike a session names one
    assert {op for _, op in named} == {node.op for node in nodes}


@settings(max_examples=30)
@given(programs())
def test_nothing_is_told_of_loops_and_conditionals_that_run(case: Program) -> None:
    assert missing(case.graph_def) == []


def test_what_the_executor_does_itself_lacks_nothing() -> None:
    """Placeholders, constants, transfers, arguments, switches, queues that wait."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32")
    b.op("PlaceholderWithDefault", b.constant(np.float32(1)), name="d", shape=())
    b.op("Switch", x, b.constant(True), name="s")
    b.op("ControlTrigger", name="trigger")
    b.op("Snapshot", x, name="snapshot")
    queue = b.op("FIFOQueueV2", name="q", component_types=["float32"])
    b.op("QueueDequeueV2", queue, name="take", component_types=["float32"])
    attrs = {"tensor_name": "t", "send_device": "", "send_device_incarnation": 1, "recv_device": ""}
    graph = graph_def_to_graph(b.graph_def())
    graph.add_node("r", "_Recv", {**attrs, "tensor_type": "float32"})
    graph.add_node("arg", "_Arg", {"T": "float32", "index": 0})
    assert list(missing_kernels("", graph)) == []


def test_the_gradient_of_a_function_is_looked_into_where_it_is_called() -> None:
    """The function itself is not listed: nothing calls it."""
    b = GraphBuilder()
    b.op("Square", b.placeholder("x", "float32"), name="y")
    function = function_of("f", b.graph_def(), ["x"], ["y"])
    b = GraphBuilder()
    attrs = {"Tin": ["float32", "float32"], "Tout": ["float32"], "f": NameAttrList(name="f")}
    one = b.constant(np.float32(3))
    b.op("SymbolicGradient", [one, one], name="main", attrs=attrs)
    graph_def = with_library(b, function)
    names = [name for name, _ in graphs_that_run(graph_def_to_graph(graph_def))]
    assert names == ["", "f"]
    assert missing(graph_def) == []
    with BlockingSession(graph_def) as session:
        assert session.run("main")[0] == 18


def test_a_call_that_fails_for_another_reason_is_left_out() -> None:
    """A call, inside a function, of one that does not exist."""
    graph_def = program("f", [body("f", "nobody", lacks=False)])
    assert missing(graph_def) == []
    with BlockingSession(graph_def) as session, pytest.raises(PartitaError, match="nobody"):
        session.run("main")
