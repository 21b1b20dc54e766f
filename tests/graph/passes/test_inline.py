"""One call replaced by one body: names, devices, and what waits for what."""

from __future__ import annotations

import pytest

from partita.errors import InternalError
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.checked_import import import_graph_def
from partita.graph.functions.body import instantiate_call
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.library.calls import called_function
from partita.graph.node import Node
from partita.graph.passes.inline import can_inline
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.protos import AttrValue, FunctionDef, GraphDef
from tests.function_defs import calling, func_attr, function_of

TASK = "/job:a/replica:0/task:0"


def scaled(**devices: str) -> FunctionDef:
    """a0 * 2, where `devices` are those of its nodes by name, and a node `effect` that must run."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32")
    two = b.constant(2.0, name="two", device=devices.get("two", ""))
    b.op("Mul", x, two, name="mul", device=devices.get("mul", ""))
    b.op("NoOp", name="effect")
    return function_of("F", b.graph_def(), ["x:0"], ["mul:0"], ["effect"])


def inlined(b: GraphBuilder) -> Graph:
    """The graph with all calls inlined."""
    return lower_functional(graph_def_to_graph(b.graph_def(), add_default_attrs=True), inline_calls=True)


def calling_on(device: str, function: FunctionDef) -> GraphDef:
    """A call `c` of the function on a device, between two nodes that it waits for and that waits for it."""
    graph_def = calling("PartitionedCall", function, f=func_attr(function.signature.name)).graph_def()
    call = next(node for node in graph_def.node if node.name == "c")
    call.device = device
    graph_def.node.add(name="before", op="NoOp")
    graph_def.node.add(name="after", op="NoOp", input=["^c"])
    call.input.append("^before")
    return graph_def


def find(graph: Graph, name: str) -> Node:
    """The node of that name."""
    node = graph.find_node(name)
    assert node is not None, name
    return node


def control_inputs(graph: Graph, name: str) -> set[str]:
    """Names of the nodes that one waits for."""
    return {edge.src.name for edge in find(graph, name).in_edges() if edge.is_control and edge.src.is_op}


def test_names_and_order() -> None:
    """Identities and control nodes are numbered, nodes of the body get the call's name, and the call's name is kept."""
    graph = lower_functional(graph_def_to_graph(calling_on("", scaled()), add_default_attrs=True), inline_calls=True)
    assert [node.name for node in graph.op_nodes()] == [
        "x0",
        "before",
        "after",
        "Func/c/input_control_node/_0",
        "Func/c/input/_1",
        "c/two",
        "c/mul",
        "c/effect",
        "Func/c/output/_2",
        "Func/c/output_control_node/_3",
        "c",
    ]
    assert find(graph, "c").op == "IdentityN"


def test_what_waits_for_what() -> None:
    """Nodes without inputs, and arguments, wait for what the call waited for; what waited for it waits for effects."""
    graph = lower_functional(graph_def_to_graph(calling_on("", scaled()), add_default_attrs=True), inline_calls=True)
    gate, done = "Func/c/input_control_node/_0", "Func/c/output_control_node/_3"
    assert control_inputs(graph, gate) == {"before"}
    assert control_inputs(graph, "c/two") == control_inputs(graph, "c/effect") == {gate}
    assert control_inputs(graph, "Func/c/input/_1") == {gate}
    assert control_inputs(graph, "c/mul") == set()
    assert control_inputs(graph, done) == {"c/effect"}
    assert control_inputs(graph, "after") == control_inputs(graph, "c") == {done}


def test_devices_of_a_function_over_several_devices() -> None:
    """A node goes where it asks to, open parts as the call; identities go with what they read."""
    function = scaled(two="/device:CPU:1", mul=f"{TASK}/device:CPU:2")
    graph_def = calling_on(f"{TASK}/device:CPU:0", function)
    graph_def.node[0].device = "/device:CPU:3"
    graph = lower_functional(graph_def_to_graph(graph_def, add_default_attrs=True), inline_calls=True)
    requested = {node.name: node.requested_device for node in graph.op_nodes()}
    assert requested["c/two"] == f"{TASK}/device:CPU:1"
    assert requested["c/mul"] == f"{TASK}/device:CPU:2"
    assert requested["c/effect"] == requested["c"] == f"{TASK}/device:CPU:0"
    assert (requested["Func/c/input/_1"], requested["Func/c/output/_2"]) == ("/device:CPU:3", "")
    assert find(graph, "Func/c/output/_2").attr("_class") == (b"loc:@c/mul",)


def test_a_function_used_as_an_op_stays_on_its_device() -> None:
    """All of its nodes go where the call is, whatever they ask for, and it is over when its results are there."""
    b = GraphBuilder()
    b.function(scaled(two="/device:CPU:1"))
    call = b.op("F", b.placeholder("x", "float32"), name="c", device=f"{TASK}/device:CPU:3")
    b.op("NoOp", name="after", control=[call])
    graph = inlined(b)
    made = [node for node in graph.op_nodes() if node.name not in ("x", "after")]
    assert {node.requested_device for node in made} == {f"{TASK}/device:CPU:3"}
    (done,) = control_inputs(graph, "after")
    assert control_inputs(graph, done) == {"Func/c/output/_1"}
    assert "_class" not in find(graph, "Func/c/output/_1").attrs


def test_names_inside_attrs_are_the_copies_names() -> None:
    """Frames get the call's name before theirs; groups name the copies, and the identity of an argument."""
    function = scaled()
    enter = function.node_def.add(name="enter", op="Enter", input=["mul:z:0"])
    enter.attr["frame_name"].s = b"frame"
    enter.attr["T"].CopyFrom(function.node_def[1].attr["T"])
    enter.attr["_class"].list.s.extend([b"loc:@mul", b"loc:@a0", b"loc:@elsewhere"])
    graph = inlined(calling("PartitionedCall", function, f=func_attr("F")))
    assert find(graph, "c/enter").attr("frame_name") == b"c/frame"
    groups = find(graph, "c/enter").attr("_class")
    assert groups == (b"loc:@c/mul", b"loc:@Func/c/input/_0", b"loc:@elsewhere")


def test_bodies_are_not_touched() -> None:
    """Two calls of one function inline the same body, which stays as it was."""
    b = calling("PartitionedCall", scaled(), f=func_attr("F"))
    b.op("PartitionedCall", [b.tensor("c:0")], name="d", Tout=["float32"], f=func_attr("F"))
    graph = graph_def_to_graph(b.graph_def(), add_default_attrs=True)
    before = graph.to_graph_def()
    lowered = lower_functional(graph, inline_calls=True)
    assert graph.to_graph_def() == before
    assert {"c/mul", "d/mul"} <= {node.name for node in lowered.op_nodes()}


@pytest.mark.parametrize("attr", ["_noinline", "api_implements"])
def test_functions_that_refuse(attr: str) -> None:
    """A function may say that it must stay a call."""
    function = scaled()
    function.attr[attr].CopyFrom(encode(True, "bool") if attr == "_noinline" else AttrValue(s=b"lstm"))
    graph = inlined(calling("PartitionedCall", function, f=func_attr("F")))
    assert find(graph, "c").op == "PartitionedCall"


def test_calls_that_do_not_fit_stay() -> None:
    """A call with other types than its function is left to fail when it runs; importing refuses missing arguments."""
    graph_def = calling("PartitionedCall", scaled(), f=func_attr("F")).graph_def()
    for node in graph_def.node:
        for attr in ("Tin", "dtype"):
            if attr in node.attr:
                kind = encode(["int32"], "list(type)") if attr == "Tin" else encode("int32", "type")
                node.attr[attr].CopyFrom(kind)
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    call = find(graph, "c")
    function = called_function(call.properties, graph.functions)
    assert function is not None
    assert not can_inline(call, instantiate_call(graph.functions, function))
    assert lower_functional(graph, inline_calls=True).find_node("c/mul") is None
    del graph_def.node[1].input[:]
    graph_def.node[1].attr["Tin"].CopyFrom(encode([], "list(type)"))
    with pytest.raises(InternalError, match="Function instantiation included invalid input index: 0 not in"):
        import_graph_def(graph_def, Graph())
