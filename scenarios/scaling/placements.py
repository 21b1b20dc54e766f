"""Where the parameters of a replicated step are, as passes over its graph: spread over devices, or told once per host.

    spread      variables on CPU:0 of host 0          -->  each with its update on one of the given devices
    by_host     read --> 8 GPUs of host 1             -->  read --> Identity on the CPU of host 1 --> its 8 GPUs
                8 GPUs of host 1 --> AddN on host 0   -->  AddN on the CPU of host 1 --> AddN on host 0
    keep        placeholder "images" on a GPU         -->  a variable there, which is read

Graphs come in and go out by requested devices, which are full names, and are changed in place: whoever calls owns them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import prod

from ...graph import DataType, Graph
from ...graph.node import Edge, Node
from ...graph.ops.properties import properties_of

_CPU = "/device:CPU:0"


def spread(graph: Graph, owner: str, devices: Sequence[str]) -> None:
    """Moves each variable on `owner`, with what reads, sums and updates it there, to the least loaded of `devices`.

    Nodes belong to a variable if they are joined to it by edges between nodes on `owner`; a constant joins nothing and
    stays, and so does what belongs to no variable.
    """
    mine = [node for node in graph.op_nodes() if node.requested_device == owner and node.op != "Const"]
    groups = _joined(mine)
    loads = dict.fromkeys(devices, 0)
    for nodes in sorted(groups, key=_variable_bytes, reverse=True):
        size = _variable_bytes(nodes)
        if size:
            device = min(devices, key=loads.__getitem__)
            loads[device] += size
            for node in nodes:
                graph.request_device(node.id, device)


def by_host(graph: Graph, cpus: Collection[str]) -> None:
    """Lets what is computed on `cpus` cross to another host once for all GPUs there, and a sum take one term a host."""
    for node in [node for node in graph.op_nodes() if node.requested_device in cpus]:
        _read_once(graph, node)
        if node.op == "AddN":
            _add_on_hosts(graph, node)


def keep(graph: Graph) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Makes variables of placeholders of floats: their values are on the device already and are not fed.

    Returns the nodes that read these variables and the placeholders that are left (a GPU has no variables of int32),
    each with its shape without the rows, which stay unknown.
    """
    placeholders = [node for node in graph.op_nodes() if node.op == "Placeholder"]
    shapes = {fed.name: tuple(fed.attr("shape")[1:]) for fed in placeholders}
    floats = [fed for fed in placeholders if fed.attr("dtype") == DataType.FLOAT]
    kept = {_keep_one(graph, fed): shapes.pop(fed.name) for fed in floats}
    for fed in floats:
        graph.remove_node(fed)
    return kept, shapes


def _keep_one(graph: Graph, fed: Node) -> str:
    """Lets what reads a placeholder read a variable; the name of the node that does."""
    name, dtype, device = fed.name, fed.attr("dtype"), fed.requested_device
    attrs = {"dtype": dtype, "shape": fed.attr("shape"), "shared_name": f"{name}/kept"}
    handle = graph.add_node(f"{name}/kept", "VarHandleOp", attrs, device=device)
    read = graph.add_node(f"{name}/read", "ReadVariableOp", {"dtype": dtype}, device=device)
    graph.add_edge(handle, 0, read, 0)
    for edge in fed.out_edges():
        if not edge.is_control:
            graph.update_edge(read, 0, edge.dst, edge.dst_input)
    return read.name


def _joined(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes by what edges among them connect, in their order."""
    numbers = {node.id: k for k, node in enumerate(nodes)}
    parents = list(range(len(nodes)))

    def root(k: int) -> int:
        while parents[k] != k:
            parents[k] = parents[parents[k]]
            k = parents[k]
        return k

    for node in nodes:
        for edge in node.in_edges():
            if edge.src.id in numbers and not edge.is_control:
                parents[root(numbers[node.id])] = root(numbers[edge.src.id])
    groups: dict[int, list[Node]] = defaultdict(list)
    for k, node in enumerate(nodes):
        groups[root(k)].append(node)
    return list(groups.values())


def _variable_bytes(nodes: Iterable[Node]) -> int:
    """Elements of the variables among nodes; all are of one type."""
    return sum(prod(node.attr("shape")) for node in nodes if node.op == "VarHandleOp")


def _host(node: Node) -> str:
    return node.requested_device.partition("/device:")[0]


def _named(host: str) -> str:
    """A host as part of the name of a node."""
    return host.replace(":", "_")


def _read_once(graph: Graph, node: Node) -> None:
    """Puts an Identity on each other host where several devices read an output of a node."""
    readers: dict[tuple[str, int], list[Edge]] = defaultdict(list)
    for edge in node.out_edges():
        if not edge.is_control and edge.dst.is_op and _host(edge.dst) != _host(node):
            readers[_host(edge.dst), edge.src_output].append(edge)
    for (host, output), edges in readers.items():
        if len({edge.dst.requested_device for edge in edges}) > 1:
            copy = graph.add_node(
                f"{node.name}/{output}/at{_named(host)}",
                "Identity",
                {"T": node.output_types[output]},
                device=host + _CPU,
            )
            graph.add_edge(node, output, copy, 0)
            for edge in edges:
                graph.update_edge(copy, 0, edge.dst, edge.dst_input)


def _add_on_hosts(graph: Graph, node: Node) -> None:
    """Replaces a sum over several hosts by a sum on each of them, and the sum of these."""
    by_host: dict[str, list[Edge]] = defaultdict(list)
    for edge in node.input_edges():
        by_host[_host(edge.src)].append(edge)
    if len(by_host) == 1 or len(by_host) == node.num_inputs:
        return
    sums = [_sum(graph, f"{node.name}/of{_named(host)}", edges, host + _CPU) for host, edges in by_host.items()]
    total = graph.add_node_with(
        f"{node.name}/of_hosts",
        properties_of("AddN", {"N": len(sums), "T": node.output_types[0]}),
        device=node.requested_device,
    )
    for k, (part, output) in enumerate(sums):
        graph.add_edge(part, output, total, k)
    for edge in node.out_edges():
        if edge.is_control:
            graph.add_control_edge(total, edge.dst)
        else:
            graph.update_edge(total, 0, edge.dst, edge.dst_input)
    graph.remove_node(node)


def _sum(graph: Graph, name: str, edges: Sequence[Edge], device: str) -> tuple[Node, int]:
    if len(edges) == 1:
        return edges[0].src, edges[0].src_output
    dtype: DataType = edges[0].src.output_types[edges[0].src_output]
    node = graph.add_node(name, "AddN", {"N": len(edges), "T": dtype}, device=device)
    for k, edge in enumerate(edges):
        graph.add_edge(edge.src, edge.src_output, node, k)
    return node, 0
