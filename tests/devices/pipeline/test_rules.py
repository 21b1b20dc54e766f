"""The rules for the graph of a request: each error names the node that breaks the rule."""

from __future__ import annotations

import pytest

from partita.devices import local_cluster
from partita.devices.pipeline import Pipeline, Pruned
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.protos import AttrValue

ONE = local_cluster("cpu:1")


def pruned(graph_def: GraphDef, feeds: list[str], targets: list[str]) -> Pruned:
    return Pipeline(ONE).read(graph_def).lower().place().prune(feeds, targets=targets)


def test_a_value_is_no_variable() -> None:
    """A feed cannot replace a variable that a node assigns to; a node that reads it takes the value."""
    b = GraphBuilder()
    variable = b.op("VariableV2", name="v", dtype="float32", shape=())
    b.op("Assign", variable, b.constant(1.0), name="set")
    b.op("Neg", variable, name="read")
    pruned(b.graph_def(), ["v"], ["read"]).cut()
    pruned(b.graph_def(), [], ["set", "read"]).cut()
    message = r"Input 0 of node set was passed float from _arg_v_0_0:0 incompatible with expected float_ref\."
    with pytest.raises(InvalidArgumentError, match=message):
        pruned(b.graph_def(), ["v"], ["set", "read"]).cut()


def test_an_attr_is_one_that_its_op_allows() -> None:
    """Nodes that do not run are not checked."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (1, 1, 1, 1))
    b.op("MaxPool", x, name="pool", ksize=[1, 1, 1, 1], strides=[1, 1, 1, 1], padding="SAME")
    b.op("Neg", x, name="y")
    graph_def = b.graph_def()
    (pool,) = [node for node in graph_def.node if node.name == "pool"]
    pool.attr["padding"].CopyFrom(AttrValue(s=b"ASKEW"))
    pruned(graph_def, ["x"], ["y"]).cut()
    with pytest.raises(InvalidArgumentError, match=r"ASKEW(.|\n)*pool"):
        pruned(graph_def, ["x"], ["pool"]).cut()


def test_an_enter_has_the_name_of_a_frame() -> None:
    """NOT_FOUND, as where TensorFlow looks for loops; other attrs that are missing are INVALID_ARGUMENT."""
    graph_def = GraphDef()
    b = GraphBuilder()
    b.op("Exit", b.op("Enter", b.placeholder("x", "float32", ()), name="enter", frame_name="f"), name="y")
    graph_def.CopyFrom(b.graph_def())
    (enter,) = [node for node in graph_def.node if node.op == "Enter"]
    del enter.attr["frame_name"]
    with pytest.raises(NotFoundError, match=r"No attr named .frame_name. in NodeDef:.*enter"):
        pruned(graph_def, ["x"], ["y"]).cut()


def test_transfers_of_the_user_spell_keys() -> None:
    """A tensor name with a semicolon would end the key early."""
    b = GraphBuilder()
    place = b"/device:CPU:0"
    for name, tensor in (("good", b"t"), ("bad", b"t;u")):
        attrs = {"tensor_name": tensor, "send_device": place, "recv_device": place, "send_device_incarnation": 1}
        b.op("_Send", b.constant(1.0), name=name, attrs=attrs)
    pruned(b.graph_def(), [], ["good"]).cut()
    with pytest.raises(InvalidArgumentError) as caught:
        pruned(b.graph_def(), [], ["bad"]).cut()
    assert caught.value.node == "bad"
