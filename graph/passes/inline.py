"""Replaces one call of a function by the function's body, with the names, devices and edge order of TensorFlow 2.21.

The body reads identities of the arguments; consumers read identities of the results. Nodes that waited for the call
wait for everything that the call must have done. No node of the body runs unless the call would have. A node of the
call's name stays, for fetches and targets.

    call: c = f(a), after ^p            Func/c/input_control_node/_0  NoOp        after ^p
                                        Func/c/input/_1               Identity(a) after the NoOp
                                        c/<node>                      every node of the body
                                        Func/c/output/_2              Identity of the result
                                        Func/c/output_control_node/_3 NoOp, after what must have run
                                        c                             IdentityN of the results, after that NoOp

There are two kinds of calls. A function called through `PartitionedCall` (or by a lowered conditional or loop) keeps
the devices that its nodes request, with open parts from the call's device. A function used as an op runs on the call's
device entirely, and is done when its results are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..builder.node_builder import NodeBuilder
from ..columns import SOURCE_ID
from ..device_name import complete, find_full_name
from ..dtypes import base_type
from ..functions.body import FunctionBody
from ..graph import Graph
from ..library.calls import MULTI_DEVICE_ATTR, flag, is_call, is_partitioned_call
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from ..protos import AttrValue

_CLASS = "_class"
_GROUP = b"loc:@"
_NO_INLINE = "_noinline"
_OPEN_CHOICE = "api_implements"


def can_inline(call: Node, body: FunctionBody) -> bool:
    """Whether a call fits its function's signature, and the function does not forbid inlining."""
    fits = call.input_types == body.argument_types and call.output_types == body.result_types
    return fits and not forbids_inlining(body.attrs)


def forbids_inlining(attrs: Mapping[str, AttrValue]) -> bool:
    """Whether these attrs of a FunctionDef forbid inlining."""
    return (_NO_INLINE in attrs and attrs[_NO_INLINE].b) or _OPEN_CHOICE in attrs


def inline_call(graph: Graph, call: Node, body: FunctionBody, *, fetchable: bool) -> list[Node]:
    """Inlines one call in place; returns the nodes copied from the body, without arguments and results.

    With `fetchable` the node that keeps the call's name has its outputs too. `can_inline` must hold, and the call's
    inputs must be connected.
    """
    return _Inlining(graph, call, body).run(fetchable=fetchable)


@dataclass(frozen=True, slots=True)
class _Devices:
    """The devices of the nodes of an inlined function."""

    caller: str
    multi: bool

    def of_body(self, requested: str) -> str:
        """The device of a node of the body that requests `requested`."""
        if not self.multi or not requested:
            return self.caller
        own, caller = find_full_name(requested), find_full_name(self.caller) if self.caller else None
        return requested if own is None or caller is None else str(complete(own, caller))

    def of_argument(self, source: Node) -> str:
        """The device of an argument's Identity: if the function is over several devices, that of its input."""
        return source.requested_device if self.multi else self.caller

    @property
    def of_result(self) -> str:
        """The device of a result's Identity: if the function is over several devices, none, so the placer chooses."""
        return "" if self.multi else self.caller


class _Inlining:
    """One call being inlined."""

    def __init__(self, graph: Graph, call: Node, body: FunctionBody) -> None:
        self.graph = graph
        self.call = call
        self.body = body
        self.name = call.name
        self.devices = _Devices(call.requested_device, _keeps_devices(call.properties))
        self.gate: Node | None = None
        self.copies: dict[int, Node] = {}  # copies by node id in the body

    def run(self, *, fetchable: bool) -> list[Node]:
        """Inlines the call, and returns the copied nodes."""
        sources = self._sources()
        inputs = [self._identity("input", *source, self.devices.of_argument(source[0])) for source in sources]
        copied = self._copy_nodes(inputs)
        self._copy_edges()
        self._connect_inputs(inputs)
        outputs = self._connect_outputs()
        done = self._done(outputs)
        self._connect_consumers(outputs, done)
        name, device = self.name, self.call.requested_device
        self.graph.remove_node(self.call)
        kept = NodeBuilder(name, "IdentityN" if fetchable and outputs else "NoOp").device(device).control_input(done)
        if fetchable and outputs:
            kept.input_list([(output, 0) for output in outputs])
        kept.finalize(self.graph)
        return copied

    def _sources(self) -> list[tuple[Node, int]]:
        """The sources of the call's arguments; its control inputs go to a gate node that all of the body waits for."""
        sources: dict[int, tuple[Node, int]] = {}
        for edge in self.call.in_edges():
            if edge.is_control:
                self.gate = self.gate or self._no_op("input_control_node")
                self.graph.add_control_edge(edge.src, self.gate)
            else:
                sources[edge.dst_input] = edge.src, edge.src_output
        return [sources[port] for port in range(len(sources))]

    def _no_op(self, what: str) -> Node:
        name = self.graph.new_name(f"Func/{self.name}/{what}")
        return self.graph.add_node(name, "NoOp", device=self.devices.caller)

    def _identity(self, what: str, source: Node, port: int, device: str) -> Node:
        attrs: dict[str, object] = {"T": base_type(source.output_types[port])}
        if self.devices.multi:
            attrs[_CLASS] = [_GROUP + source.name.encode()]
        name = self.graph.new_name(f"Func/{self.name}/{what}")
        node = self.graph.add_node(name, "Identity", attrs, device=device)
        self.graph.add_edge(source, port, node, 0)
        return node

    def _copy_nodes(self, inputs: list[Node]) -> list[Node]:
        ends = {node.id for node in (*self.body.arguments, *self.body.results)}
        groups = {node.name: f"{self.name}/{node.name}" for node in self.body.graph.op_nodes()}
        groups |= {node.name: identity.name for node, identity in zip(self.body.arguments, inputs, strict=True)}
        arguments = {node.id for node in self.body.arguments}
        for node in self.body.graph.op_nodes():
            copy = self.graph.add_node_with(
                f"{self.name}/{node.name}",
                self._renamed(node.properties, groups),
                device=self.devices.of_body(node.requested_device),
            )
            self.copies[node.id] = copy
            if self.gate is not None and node.id not in arguments and self._needs_gate(node):
                self.graph.add_control_edge(self.gate, copy, allow_duplicates=True)
        return [copy for number, copy in self.copies.items() if number not in ends]

    def _renamed(self, properties: NodeProperties, groups: Mapping[str, str]) -> NodeProperties:
        """Properties with colocation groups and frame names as they are called in the graph."""
        if properties.op_def.record.node_class is NodeClass.ENTER:
            frame = AttrValue(s=f"{self.name}/".encode() + properties.attrs["frame_name"])
            properties = properties.with_attr("frame_name", frame)
        return _with_group_names(properties, groups)

    def _needs_gate(self, node: Node) -> bool:
        """Whether no input of a node, direct or indirect, waits for the gate.

        Calls always wait for it: what they inline later needs a gate of its own.
        """
        inputs = [edge for edge in node.in_edges() if edge.src.id != SOURCE_ID]
        calls = is_call(node.properties, self.graph.functions)
        return not inputs or (calls and not any(edge.is_control for edge in inputs))

    def _copy_edges(self) -> None:
        for edge in self.body.graph.edges():
            src, output, dst, port = self.body.graph.edge_ends(edge.id)
            if src in self.copies and dst in self.copies:
                self.graph.add_edge(self.copies[src], output, self.copies[dst], port)

    def _connect_inputs(self, inputs: list[Node]) -> None:
        """Connects consumers of an argument to its Identity."""
        for argument, identity in zip(self.body.arguments, inputs, strict=True):
            if self.gate is not None:
                self.graph.add_control_edge(self.gate, identity, allow_duplicates=True)
            copy = self.copies[argument.id]
            for edge in copy.out_edges():
                if edge.is_control:
                    self.graph.add_control_edge(identity, edge.dst, allow_duplicates=True)
                else:
                    self.graph.add_edge(identity, 0, edge.dst, edge.dst_input)
            self.graph.remove_node(copy)
            self.copies[argument.id] = identity

    def _connect_outputs(self) -> list[Node]:
        outputs = []
        for result in self.body.results:
            copy = self.copies[result.id]
            value = copy.input_edge(0)
            identity = self._identity("output", value.src, value.src_output, self.devices.of_result)
            for edge in copy.in_edges():
                if edge.is_control:
                    self.graph.add_control_edge(edge.src, identity, allow_duplicates=True)
            self.graph.remove_node(copy)
            outputs.append(identity)
        return outputs

    def _done(self, outputs: list[Node]) -> Node:
        """The node that runs once the call has done everything it must do."""
        done = self._no_op("output_control_node")
        effects = [self.copies[node.id] for node in self.body.control_results] if self.devices.multi else outputs
        for node in effects:
            self.graph.add_control_edge(node, done, allow_duplicates=True)
        if not effects and self.gate is not None:
            self.graph.add_control_edge(self.gate, done)
        return done

    def _connect_consumers(self, outputs: list[Node], done: Node) -> None:
        for edge in self.call.out_edges():
            if edge.is_control:
                self.graph.add_control_edge(done, edge.dst)
            else:
                self.graph.add_edge(outputs[edge.src_output], 0, edge.dst, edge.dst_input)


def _keeps_devices(call: NodeProperties) -> bool:
    """Whether the nodes of the function keep their requested devices, rather than all having that of the call."""
    return is_partitioned_call(call) or flag(call, MULTI_DEVICE_ATTR)


def _with_group_names(properties: NodeProperties, names: Mapping[str, str]) -> NodeProperties:
    """The properties with colocation groups renamed; groups that `names` lacks keep their names."""
    if _CLASS not in properties.attrs:
        return properties
    value = AttrValue()
    value.list.s.extend(_GROUP + names.get(other, other).encode() for other in properties.colocated_with)
    return properties.with_attr(_CLASS, value)
