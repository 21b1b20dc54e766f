"""Inputs that each rank has on its device already, in place of feeds that one client sends to all hosts.

    tokens = Placeholder() @host, pipeline/tokens = Split(...) @host        becomes, for each micro-batch k

    tokens/variable_k = VarHandleOp() @gpu, tokens/read_k = ReadVariableOp(tokens/variable_k) @gpu

So all ranks do the same, as they do where each has its own loader of data that is ahead of the step.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...graph import Graph
from ...graph.builder.extension import Extension
from ...graph.node import Node
from ...graph.ops.record import NodeClass


def with_local_inputs(graph: Graph, inputs: Mapping[str, str], microbatches: int) -> None:
    """Replaces the placeholders of some names by variables on the devices given; `graph` is changed.

    What splits a placeholder into its micro-batches is replaced too.
    """
    for name, device in inputs.items():
        placeholder = graph.find_node(name)
        assert placeholder is not None  # the names are those of the graph's inputs
        shape = placeholder.attrs["shape"]
        readers = [edge.dst for edge in placeholder.out_edges() if not edge.is_control]
        splits = [node for node in readers if node.num_outputs == microbatches and microbatches > 1]
        for split in splits:
            part = (shape[0] // microbatches, *shape[1:])
            sources = [_variable(graph, f"{name}/{k}", part, placeholder, device) for k in range(microbatches)]
            _replace(graph, split, sources)
            for edge in list(split.in_edges()):
                if not edge.is_control and edge.src.node_class is NodeClass.CONSTANT:
                    graph.remove_node(edge.src)
            graph.remove_node(split)
        if len(readers) > len(splits):
            _replace(graph, placeholder, [_variable(graph, name, shape, placeholder, device)])
        graph.remove_node(placeholder)
    graph.fix_source_and_sink_edges()


def _variable(graph: Graph, name: str, shape: tuple[int, ...], like: Node, device: str) -> Node:
    """The node that reads a new variable."""
    dtype = like.output_types[0]
    e = Extension(graph)
    with e.within(None, device):
        attrs = {"shared_name": f"{name}/variable"}
        handle = e.op("VarHandleOp", name=f"{name}/variable", dtype=dtype, shape=shape, attrs=attrs)
        read = e.op("ReadVariableOp", handle, name=f"{name}/read", dtype=dtype)
    e.flush()
    return graph.node(e.id_of(read.name))


def _replace(graph: Graph, node: Node, sources: list[Node]) -> None:
    """Lets the readers of output k read source k."""
    for edge in list(node.out_edges()):
        if not edge.is_control:
            graph.update_edge(sources[edge.src_output], 0, edge.dst, edge.dst_input)
