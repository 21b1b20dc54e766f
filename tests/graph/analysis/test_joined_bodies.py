"""Bodies as joined graphs: one that stayed whole shares its columns, another is joined from its parts."""

from __future__ import annotations

import numpy as np

from partita.graph.analysis.joined import JoinedGraph
from partita.graph.analysis.joined_bodies import body_on, joined_body, stayed_whole
from partita.graph.builder import GraphBuilder
from partita.graph.functions.body import FunctionBody, instantiate
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import FunctionDef
from partita.graph.protos.types_pb2 import DT_FLOAT

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def body() -> FunctionBody:
    """Two ops on an argument."""
    b = GraphBuilder()
    function = FunctionDef(ret={"y": "squared:z:0"})
    function.signature.name = "twice"
    function.signature.input_arg.add(name="x", type=DT_FLOAT)
    function.signature.output_arg.add(name="y", type=DT_FLOAT)
    for name, op, inputs in (("negated", "Neg", ["x"]), ("squared", "Mul", ["negated:y:0", "negated:y:0"])):
        function.node_def.add(name=name, op=op, input=inputs).attr["T"].type = DT_FLOAT
    graph_def = b.graph_def()
    graph_def.library.function.append(function)
    return instantiate(graph_def_to_graph(graph_def).functions, "twice")


def placed(graph: Graph) -> Graph:
    """A copy whose nodes are on one device."""
    copy = graph.clone()
    for node in copy.op_nodes():
        node.assigned_device = DEVICE
    return copy


def test_a_body_that_stayed_whole_shares_its_columns() -> None:
    """They are those that joining its one part gives."""
    function = body()
    part = placed(function.graph)
    ours, joined = body_on(function, {DEVICE: part}), JoinedGraph({DEVICE: part})
    assert stayed_whole(function, ours)
    assert ours.names == joined.names
    assert ours.places == ours.devices == joined.places == joined.devices == [DEVICE]
    assert ours.ops == joined.ops
    for column in ("place", "device_of", "kind_of", "input_start", "input_src", "input_output", "sender"):
        assert np.array_equal(getattr(ours, column), getattr(joined, column))
    assert ours.order().tolist() == joined.order().tolist()
    assert joined_body(function).devices == [""]


def test_a_body_that_lost_a_node_is_joined_anew() -> None:
    """Nothing of it is taken from the whole body."""
    function = body()
    part = placed(function.graph)
    result = part.find_node("y_RetVal")
    assert result is not None
    part.remove_node(result)
    ours = body_on(function, {DEVICE: part})
    assert not stayed_whole(function, ours)
    assert ours.names == JoinedGraph({DEVICE: part}).names
