"""A graph as text that people read and tests compare: one line per node, with its inputs on the lines above it.

`x -> Neg -> Abs`, placed with the last node on another device, prints as

    3 nodes @/job:localhost/replica:0/task:0/...
    x: float = Placeholder() {shape=[2,?]} @CPU:0
    Neg: float = Neg(x) @CPU:0
    Abs: float = Abs(Neg, ^x) @GPU:0

A line is `name: output types = op(inputs) {attrs} @device`. Data inputs come by port, then control inputs; an
unconnected port reads `?`. Attrs are left out when they follow from the port types or have the op's default value. A
device that all nodes share is printed in the first line only, and so is a task that all devices share; `@?` marks a
device that is requested but not assigned. A transfer names its tensor and the other end:

    x/_0 = _Send(x) {edge_1_x to CPU:1}

Nodes come in topological order, the lowest id first among those that are ready; an edge from NextIteration to Merge
closes a loop and does not count. The text depends on the graph alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from .arrays import ready_order
from .columns import CONTROL_SLOT, SINK_ID, SOURCE_ID, Columns
from .display.html import details, notebook_output, table
from .display.scopes import folded
from .dtypes import dtype_name
from .ops.properties import NodeProperties
from .ops.record import NodeClass
from .ops.summaries import summarize_attr

_DEVICE = "/device:"
_NODES_BYTES = 150_000  # of nodes as HTML
_TENSOR = re.compile(r"Tensor<type: \S+ shape: (\[[^]]*\]) values: (.*)>", re.DOTALL)
_TRANSFER_ATTRS = frozenset(
    {"tensor_name", "send_device", "recv_device", "send_device_incarnation", "client_terminated", "_src", "_dst"}
)
_HIDDEN = frozenset({"_output_shapes"})
_USUAL_INCARNATION = 1  # of every device of a local session


def graph_text(
    graph: Columns,
    *,
    only: Callable[[str], bool] = lambda _name: True,
    most: int | None = None,
    peers: Mapping[int, str] | None = None,
) -> str:
    """The text of a graph.

    `only` tells by name whether a node is shown, `most` is the largest number of node lines; the text says how many
    nodes are left out. `peers` has, by id of a Send or Recv, the name of the node at the other end.
    """
    return _Printer(graph, peers or {}).text(only, most)


def graph_html(graph: Columns) -> str:
    """A graph for notebooks: its nodes by name scope, a line for each, and how many there are of each op."""
    printer = _Printer(graph, {})
    nodes = [node for node in graph.node_ids() if node > SINK_ID]
    names = [graph.node_name(node) for node in nodes]
    ops = Counter(graph.node_properties(node).op for node in nodes)

    def line(number: int, label: str) -> str:
        return label + printer.line(nodes[number]).removeprefix(names[number])

    def total(numbers: Sequence[int]) -> str:
        return f"{len(numbers):,} nodes"

    return notebook_output(
        f"Graph of {len(nodes):,} nodes",
        details(f"{len(ops)} ops", table(["op", "nodes"], [[op, f"{many:,}"] for op, many in ops.most_common()])),
        folded(names, line, total, _NODES_BYTES),
    )


def topological_order(graph: Columns) -> list[int]:
    """Ids of all nodes but source and sink, inputs first and lowest id first; those of a cycle come last."""
    edges = graph.edge_arrays()
    classes = {i: kind.op_def.record.node_class for i, kind in enumerate(graph.shared_properties()) if kind is not None}
    num_waited_for = [0] * graph.num_node_ids
    consumers: list[list[int]] = [[] for _ in num_waited_for]
    for src, dst in zip(edges.src.tolist(), edges.dst.tolist(), strict=True):
        closes_loop = classes[src] is NodeClass.NEXT_ITERATION and classes[dst] is NodeClass.MERGE
        if src > SINK_ID and dst > SINK_ID and not closes_loop:
            num_waited_for[dst] += 1
            consumers[src].append(dst)
    printed = {i for i in graph.node_ids() if i > SINK_ID}  # without the ids of removed nodes
    order = [i for i in ready_order(consumers, num_waited_for, lowest_first=True) if i in printed]
    return [*order, *sorted(printed.difference(order))]


class _Printer:
    """One graph being printed."""

    def __init__(self, graph: Columns, peers: Mapping[int, str]) -> None:
        self.graph = graph
        self.peers = peers
        self.inputs = _inputs(graph)
        devices = {label for i in graph.node_ids() if i > SINK_ID and (label := self._device(i))}
        self.task = _shared_task(name.lstrip("@?") for name in devices)
        self.everywhere = devices.pop() if len(devices) == 1 and self._is_on_all(devices) else ""

    def _is_on_all(self, devices: Collection[str]) -> bool:
        return all(self._device(i) in devices for i in self.graph.node_ids() if i > SINK_ID)

    def text(self, only: Callable[[str], bool], most: int | None) -> str:
        order = topological_order(self.graph)
        shown = [i for i in order if only(self.graph.node_name(i))]
        count = f"{len(order)} nodes" if len(shown) == len(order) else f"{len(shown)} of {len(order)} nodes"
        lines = [" ".join(filter(None, [count, self.everywhere or (f"@{self.task}/..." if self.task else "")]))]
        lines += map(self.line, shown[:most])
        if most is not None and len(shown) > most:
            lines.append(f"... and {len(shown) - most} more")
        if self.graph.library.function:
            lines.append(f"functions: {', '.join(sorted(f.signature.name for f in self.graph.library.function))}")
        return "\n".join(lines)

    def line(self, node: int) -> str:
        properties = self.graph.node_properties(node)
        types = ", ".join(map(dtype_name, properties.output_types))
        head = f"{self.graph.node_name(node)}{': ' if types else ''}{types}"
        attrs = [*self._transfer(node, properties), *_attrs(properties)]
        parts = [f"{head} = {properties.op}({', '.join(self._inputs_of(node, properties))})"]
        parts += [f"{{{', '.join(attrs)}}}"] if attrs else []
        device = self._device(node)
        if device and device != self.everywhere:
            mark = "@?" if device.startswith("@?") else "@"
            parts.append(mark + self._short(device.removeprefix(mark)))
        return " ".join(parts)

    def _inputs_of(self, node: int, properties: NodeProperties) -> Iterator[str]:
        data, control = self.inputs.get(node, ({}, []))
        for port in range(max(len(properties.input_types), 1 + max(data, default=-1))):
            yield " and ".join(data.get(port, ["?"]))
        yield from control

    def _device(self, node: int) -> str:
        """The device of a node with its mark, "" where it has none."""
        assigned, requested = self.graph.assigned_device(node), self.graph.requested_device(node)
        return f"@{assigned}" if assigned else f"@?{requested}" if requested else ""

    def _short(self, device: str) -> str:
        return device.removeprefix(self.task).removeprefix(_DEVICE) if self.task else device

    def _transfer(self, node: int, properties: NodeProperties) -> Iterator[str]:
        """The tensor and the other end of a transfer, and its incarnation if it is unusual."""
        attrs = properties.attrs
        if "send_device" not in attrs or "tensor_name" not in attrs:
            return
        sends = not properties.output_types
        other = attrs["recv_device" if sends else "send_device"].decode(errors="replace")
        place = "the client" if attrs.get("client_terminated") else self._short(other)
        peer = f"{self.peers[node]} @" if node in self.peers else ""
        yield f"{attrs['tensor_name'].decode(errors='replace')} {'to' if sends else 'from'} {peer}{place}"
        incarnation = attrs.get("send_device_incarnation")
        if incarnation != _USUAL_INCARNATION:
            yield f"incarnation={incarnation}"


def _inputs(graph: Columns) -> dict[int, tuple[dict[int, list[str]], list[str]]]:
    """By node: the tensors at each input port (usually one), and the names of its control inputs."""
    inputs: dict[int, tuple[dict[int, list[str]], list[str]]] = {}
    edges = graph.edge_arrays()
    columns = (edges.src.tolist(), edges.src_output.tolist(), edges.dst.tolist(), edges.dst_input.tolist())
    for src, output, dst, port in zip(*columns, strict=True):
        if src == SOURCE_ID or dst == SINK_ID:
            continue
        data, control = inputs.setdefault(dst, ({}, []))
        name = graph.node_name(src)
        if port == CONTROL_SLOT:
            control.append(f"^{name}")
        else:
            data.setdefault(port, []).append(f"{name}:{output}" if output else name)
    for _, control in inputs.values():
        control.sort()
    return inputs


def _attrs(properties: NodeProperties) -> Iterator[str]:
    """`name=value` of the attrs that add something to the port types, sorted by name."""
    op_def, attrs = properties.op_def, properties.attrs
    arguments = op_def.input_args + op_def.output_args
    implied = {name for arg in arguments for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    hidden = implied | _HIDDEN | (_TRANSFER_ATTRS if "send_device" in attrs else set())
    for name in sorted(attrs):
        if name not in hidden and attrs.serialised(name) != op_def.defaults.get(name):
            yield f"{name}={_value(summarize_attr(attrs.message(name)))}"


def _value(text: str) -> str:
    """The text of an attr value; a tensor's type is left out because the output has it: `1.5`, `[2] 1 2`."""
    tensor = _TENSOR.fullmatch(text)
    if tensor is None:
        return text
    return tensor[2] if tensor[1] == "[]" else f"{tensor[1]} {tensor[2]}".rstrip()


def _shared_task(devices: Iterator[str]) -> str:
    """The task that all device names share, "" if they share none."""
    tasks = {device.rpartition(_DEVICE)[0] for device in devices}
    return tasks.pop() if len(tasks) == 1 else ""
