"""The outputs of all replicas under the names that the graph of one device has.

    loss of each replica --AddN--> loss/sum --RealDiv--> loss            a mean
    logits of each replica --ConcatV2--> logits                          rows

The node that computed such an output is renamed: "replica_0/loss". What the program of the replica goes on to
compute from it still reads its own value; everything else reads that of all replicas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....errors import InvalidArgumentError
from ...builder.extension import Extension
from ...builder.handles import Tensor
from ...dtypes import DataType, base_type, dtype_name
from ...edge_ends import Output
from ...graph import Graph
from ...ops.registry import lookup_op

MEAN, SUM, CONCAT = "mean", "sum", "concat"


class Joined(NamedTuple):
    """An output that gets the value over all replicas: how, and its node and port in each of them."""

    how: str
    copies: Sequence[Output]


def join_outputs(
    graph: Graph,
    outputs: Mapping[Output, Joined],
    names: Mapping[int, str],
    readers: set[int],
    device: str | None = None,
) -> None:
    """Adds the nodes that join outputs; `graph` is changed.

    `names` has the name of each new node, `readers` the nodes that read the value of all; new nodes are on `device`, or
    on that of the output in replica 0.
    Raises InvalidArgumentError for an output that has no mean, or no rows.
    """
    by_node: dict[int, dict[int, Joined]] = {}
    for (node, port), joined in outputs.items():
        by_node.setdefault(node, {})[port] = joined
    e = Extension(graph, graph.functions.lookup)
    moved: dict[Output, Tensor] = {}
    for node, ports in by_node.items():
        with e.within(None, graph.requested_device(node) if device is None else device):
            moved |= _join_node(e, graph, node, ports, names[node], keeps_ports=device is None)
    e.flush()
    for (node, port), tensor in moved.items():
        for edge in [edge for edge in graph.node(node).out_edges() if edge.src_output == port]:
            if edge.dst.id in readers:
                new = graph.find_node(tensor.node)
                assert new is not None
                graph.update_edge(new, tensor.port, edge.dst, edge.dst_input)


def _join_node(
    e: Extension, graph: Graph, node: int, ports: Mapping[int, Joined], name: str, *, keeps_ports: bool
) -> dict[Output, Tensor]:
    """The outputs of one node; the last new node has its name, and if it `keeps_ports` all its outputs.

    A parameter server reads none of the others, which would travel for nothing.
    """
    kind = graph.node_properties(node)
    if len(kind.output_types) == 1:
        return {(node, 0): _joined(e, graph, ports[0], name, name)}
    if not keeps_ports:
        return {(node, port): _joined(e, graph, it, f"{name}/output_{port}", name) for port, it in ports.items()}
    values = []
    for port, dtype in enumerate(kind.output_types):
        own = Tensor(e, graph.node_name(node), port, base_type(dtype))
        values.append(_joined(e, graph, ports[port], f"{name}/output_{port}", name) if port in ports else own)
    whole = e.op("IdentityN", values, name=name)
    return {(node, port): whole[port] for port in ports}


def _joined(e: Extension, graph: Graph, joined: Joined, name: str, shown_name: str) -> Tensor:
    values = []
    for node, port in joined.copies:
        kind = graph.node_properties(node)
        values.append(Tensor(e, graph.node_name(node), port, base_type(kind.output_types[port])))
    dtype = values[0].dtype
    if joined.how == CONCAT:
        return e.op("ConcatV2", values, 0, name=name)[0]
    if dtype not in (lookup_op("AddN").attrs["T"].allowed or ()) or dtype is DataType.VARIANT:
        raise InvalidArgumentError(f"{shown_name!r} is {dtype_name(dtype)}, which cannot be added", node=shown_name)
    if joined.how == SUM:
        return e.op("AddN", values, name=name)[0]
    if dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.HALF, DataType.BFLOAT16):
        raise InvalidArgumentError(
            f"{shown_name!r} is {dtype_name(dtype)}, which has no mean; name it in `concat`, or cast it",
            node=shown_name,
        )
    total = e.op("AddN", values, name=f"{name}/sum")[0]
    return e.op("RealDiv", total, float(len(values)), name=name)[0]
