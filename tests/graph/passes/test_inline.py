"""One call replaced by one body: names, devices, and control edges."""

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
from partita.graph.passes.inline import can_inline
from partita.graph.passes.lower_functional import lower_functional
from partita.graph.printer import graph_text
from partita.graph.protos import AttrValue, FunctionDef, GraphDef
from tests.function_defs import calling, func_attr, function_of
from tests.goldens import assert_text

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
    """A call `c` of the function on a device; it waits for a node `before`, and `after` waits for it."""
    graph_def = calling("PartitionedCall", function, f=func_attr(function.signature.name)).graph_def()
    call = next(node for node in graph_def.node if node.name == "c")
    call.device = device
    graph_def.node.add(name="before", op="NoOp")
    graph_def.node.add(name="after", op="NoOp", input=["^c"])
    call.input.append("^before")
    return graph_def


def test_a_call_becomes_the_body_of_its_function() -> None:
    """Identities and control nodes are numbered, nodes of the body get the call's name, and the call's name is kept.

    Nodes without inputs, and arguments, wait for what the call waited for; what waited for the call waits for the
    nodes with effects. Identities of arguments are made before the body, those of results after it.
    """
    graph = graph_def_to_graph(calling_on("", scaled()), add_default_attrs=True)
    before = str(graph)
    lowered = lower_functional(graph, inline_calls=True)
    new = [node.name for node in lowered.op_nodes() if graph.find_node(node.name) is None]
    assert [name.split("/")[-1] for name in new] == ["_0", "_1", "two", "mul", "effect", "_2", "_3"]
    assert_text(
        lowered,
        """
        11 nodes
        x0: float = Placeholder()
        before = NoOp()
        Func/c/input_control_node/_0 = NoOp(^before)
        Func/c/input/_1: float = Identity(x0, ^Func/c/input_control_node/_0) {_class=["loc:@x0"]}
        c/two: float = Const(^Func/c/input_control_node/_0) {value=2}
        c/mul: float = Mul(Func/c/input/_1, c/two)
        c/effect = NoOp(^Func/c/input_control_node/_0)
        Func/c/output/_2: float = Identity(c/mul) {_class=["loc:@c/mul"]}
        Func/c/output_control_node/_3 = NoOp(^c/effect)
        after = NoOp(^Func/c/output_control_node/_3)
        c: float = IdentityN(Func/c/output/_2, ^Func/c/output_control_node/_3)
        functions: F
        """,
    )
    assert str(graph) == before


def test_devices_of_a_function_over_several_devices() -> None:
    """A node keeps its requested device, open parts from the call; identities follow their inputs."""
    function = scaled(two="/device:CPU:1", mul=f"{TASK}/device:CPU:2")
    graph_def = calling_on(f"{TASK}/device:CPU:0", function)
    graph_def.node[0].device = "/device:CPU:3"
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    assert_text(
        lower_functional(graph, inline_calls=True),
        """
        11 nodes
        x0: float = Placeholder() @?/device:CPU:3
        before = NoOp()
        Func/c/input_control_node/_0 = NoOp(^before) @?/job:a/replica:0/task:0/device:CPU:0
        Func/c/input/_1: float = Identity(x0, ^Func/c/input_control_node/_0) {_class=["loc:@x0"]} @?/device:CPU:3
        c/two: float = Const(^Func/c/input_control_node/_0) {value=2} @?/job:a/replica:0/task:0/device:CPU:1
        c/mul: float = Mul(Func/c/input/_1, c/two) @?/job:a/replica:0/task:0/device:CPU:2
        c/effect = NoOp(^Func/c/input_control_node/_0) @?/job:a/replica:0/task:0/device:CPU:0
        Func/c/output/_2: float = Identity(c/mul) {_class=["loc:@c/mul"]}
        Func/c/output_control_node/_3 = NoOp(^c/effect) @?/job:a/replica:0/task:0/device:CPU:0
        after = NoOp(^Func/c/output_control_node/_3)
        c: float = IdentityN(Func/c/output/_2, ^Func/c/output_control_node/_3) @?/job:a/replica:0/task:0/device:CPU:0
        functions: F
        """,
    )


def test_a_function_used_as_an_op_stays_on_its_device() -> None:
    """All of its nodes are on the call's device, whatever they request, and it is done when its results are there."""
    b = GraphBuilder()
    b.function(scaled(two="/device:CPU:1"))
    call = b.op("F", b.placeholder("x", "float32"), name="c", device=f"{TASK}/device:CPU:3")
    b.op("NoOp", name="after", control=[call])
    assert_text(
        inlined(b),
        """
        9 nodes @/job:a/replica:0/task:0/...
        x: float = Placeholder()
        Func/c/input/_0: float = Identity(x) @?CPU:3
        c/two: float = Const() {value=2} @?CPU:3
        c/mul: float = Mul(Func/c/input/_0, c/two) @?CPU:3
        c/effect = NoOp() @?CPU:3
        Func/c/output/_1: float = Identity(c/mul) @?CPU:3
        Func/c/output_control_node/_2 = NoOp(^Func/c/output/_1) @?CPU:3
        after = NoOp(^Func/c/output_control_node/_2)
        c: float = IdentityN(Func/c/output/_1, ^Func/c/output_control_node/_2) @?CPU:3
        functions: F
        """,
    )


def test_names_inside_attrs_are_the_copies_names() -> None:
    """Frames get the call's name as a prefix; groups name the copies, and the identity of an argument."""
    function = scaled()
    enter = function.node_def.add(name="enter", op="Enter", input=["mul:z:0"])
    enter.attr["frame_name"].s = b"f"
    enter.attr["T"].CopyFrom(function.node_def[1].attr["T"])
    enter.attr["_class"].list.s.extend([b"loc:@mul", b"loc:@a0", b"loc:@other"])
    graph = inlined(calling("PartitionedCall", function, f=func_attr("F")))
    assert_text(
        graph_text(graph, only=lambda name: name == "c/enter"),
        """
        1 of 9 nodes
        c/enter: float = Enter(c/mul) {_class=["loc:@c/mul", "loc:@Func/c/input/_0", "loc:@other"], frame_name="c/f"}
        functions: F
        """,
    )


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
    """A function may forbid inlining."""
    function = scaled()
    function.attr[attr].CopyFrom(encode(True, "bool") if attr == "_noinline" else AttrValue(s=b"lstm"))
    graph = inlined(calling("PartitionedCall", function, f=func_attr("F")))
    assert [node.op for node in graph.op_nodes() if node.name == "c"] == ["PartitionedCall"]


def test_calls_that_do_not_fit_stay() -> None:
    """A call with other types than its function is left to fail when it runs; importing refuses missing arguments."""
    graph_def = calling("PartitionedCall", scaled(), f=func_attr("F")).graph_def()
    for node in graph_def.node:
        for attr in ("Tin", "dtype"):
            if attr in node.attr:
                kind = encode(["int32"], "list(type)") if attr == "Tin" else encode("int32", "type")
                node.attr[attr].CopyFrom(kind)
    graph = graph_def_to_graph(graph_def, add_default_attrs=True)
    call = next(node for node in graph.op_nodes() if node.name == "c")
    function = called_function(call.properties, graph.functions)
    assert function is not None
    assert not can_inline(call, instantiate_call(graph.functions, function))
    assert lower_functional(graph, inline_calls=True).find_node("c/mul") is None
    del graph_def.node[1].input[:]
    graph_def.node[1].attr["Tin"].CopyFrom(encode([], "list(type)"))
    with pytest.raises(InternalError, match="Function instantiation included invalid input index: 0 not in"):
        import_graph_def(graph_def, Graph())
