"""Handles that calls return: their consumers are on the device of the variable, however deep the calls are."""

from __future__ import annotations

import pytest

from partita.devices.placement.placer import place
from partita.graph.builder import GraphBuilder
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from tests.devices.placement.test_placement import CPUS
from tests.function_defs import func_attr, function_of, library_of

HANDLES = {"Tin": ["resource"], "Tout": ["resource"]}


def handed_on(depth: int, times: int) -> Graph:
    """`read` reads a variable whose handle goes through `depth` functions; each calls the next one `times` times."""
    functions = []
    for level in range(depth):
        b = GraphBuilder()
        handle = b.placeholder("h", "resource", ())
        for _ in range(times if level + 1 < depth else 0):
            handle = b.op("PartitionedCall", [handle], attrs={**HANDLES, "f": func_attr(f"f{level + 1}")})[0]
        out = b.op("Identity", handle)[0]
        functions.append(function_of(f"f{level}", b.graph_def(), ["h:0"], [out.name]))
    b = GraphBuilder()
    v = b.op("VarHandleOp", name="v", dtype="float32", shape=(), device=CPUS[2])[0]
    handle = b.op("PartitionedCall", [v], attrs={**HANDLES, "f": func_attr("f0")})[0]
    b.op("ReadVariableOp", handle, name="read", dtype="float32")
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def_to_graph(graph_def, add_default_attrs=True)


@pytest.mark.parametrize(("depth", "times"), [(1, 1), (3, 2), (40, 2)])
def test_what_reads_a_handle_is_where_the_variable_is(depth: int, times: int) -> None:
    """Each function is searched once: a tree of 2**40 calls takes no longer than a chain of forty."""
    graph = handed_on(depth, times)
    place(graph, CPUS)
    (read,) = [node for node in graph.op_nodes() if node.name == "read"]
    assert read.assigned_device == CPUS[2]


def test_the_deepest_calls_are_not_looked_into() -> None:
    """The placer stops at a depth beyond any real graph, before Python's recursion limit."""
    graph = handed_on(400, 1)
    place(graph, CPUS)
    assert all(node.assigned_device in CPUS for node in graph.op_nodes())
