"""Activation checkpointing: what a segment of the forward pass computed is computed again before its gradients.

A training step keeps every activation from the forward pass until its gradient has read it. Here only the outputs of
segments are kept. `hidden` is read by the forward pass and by two nodes of the backward pass:

    hidden = Relu(sum)               becomes      hidden = Relu(sum)
    logits = MatMul(hidden, w2)                   logits = MatMul(hidden, w2)
    d_hidden = MatMul(d_logits, w2)               d_hidden = MatMul(d_logits, w2)
    d_sum = ReluGrad(d_hidden, hidden)            hidden/again = Relu(sum, ^d_hidden)
                                                  d_sum = ReluGrad(d_hidden, hidden/again)

The control edge holds the second run back until the gradient arrives, so that the first result can be freed meanwhile.
The values are the same bit by bit: the same kernels read the same inputs. (Chen et al.: Training Deep Nets with
Sublinear Memory Cost, 2016; "products" is the policy `checkpoint_dots` of JAX.)

    recompute_flow.py      forward and backward pass
    recompute_awaited.py   which gradients a segment waits for
    recompute_segments.py  segments from name scopes, or of about equal size
    recompute_keeping.py   what is kept
    recompute_references.py  updates of reference variables wait for what reads these again
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from itertools import product
from typing import Literal, TypeAlias

from ...errors import InvalidArgumentError
from ..analysis.collective_seats import AGAIN_STEP, INSTANCE, INSTANCE_STEP, instance_offset
from ..attrs import encode
from ..edge_ends import Output
from ..graph import Graph
from ..graphdef.importer import graph_def_to_graph
from ..graphdef.sources import GraphSource
from ..node import Node
from ..ops.properties import NodeProperties
from ..passes.lower_functional import lower_functional
from .recompute_awaited import AwaitedGradients
from .recompute_flow import TrainingFlow
from .recompute_keeping import Keeping, can_repeat
from .recompute_references import hold_updates
from .recompute_segments import by_scopes, of_equal_size

RecomputePolicy: TypeAlias = Literal["full", "products"] | Sequence[str]
"""what is kept of a segment beside its outputs: nothing, the outputs of products and convolutions, or these tensors"""
RECOMPUTED = "_recomputed"
"""the attr of nodes that run a node of the forward pass again"""


def recompute(
    graph: GraphSource,
    *,
    loss: str,
    segments: Sequence[str] | int | None = None,
    policy: RecomputePolicy = "full",
    whole: bool = False,
) -> Graph:
    """The training graph with forward nodes of each segment repeated before the gradients of that segment.

    Calls of functions are inlined first; the argument is left alone.

    `loss` is a tensor; the forward pass is what it depends on. `segments` are name scopes of forward nodes, in full or
    the end that only one scope has. Or they are a number: then the forward pass is cut into so many parts that hold
    about equally many bytes for the backward pass, of which the last, whose gradients come first, is left as it is.
    None stands for the square root of how many activations gradients read (Chen et al., section 4.2).

    Kept are what other parts of the forward pass read; what `policy` says ("full": nothing more; "products": outputs of
    products and convolutions; or names of tensors); what follows from variables alone, such as a weight that was cast;
    and the outputs of nodes that must not run twice: random and other stateful ones, reads of variables, calls that
    cannot be inlined, nodes in loops and conditionals of plain nodes, and collectives without an attr `_instance`.

    With `whole` what makes the outputs of a segment runs again too, though no gradient reads it, as in frameworks that
    call the function of a segment once more.

    New nodes are called "node/again" and request the device of the node. A collective that runs again has an
    `_instance` larger by 2^23, so that all members must be given the same segments; InvalidArgumentError if another
    collective has that. NotFoundError for a tensor or scope that does
    not exist. InvalidArgumentError for a scope without a node of the forward pass, for scopes that overlap, for one
    that computes the loss itself, for more segments than activations, and if no gradient reads what segments compute.
    UnimplementedError if a reference variable changes before its value is read again.
    """
    source = graph if isinstance(graph, Graph) else graph_def_to_graph(graph)
    plain = lower_functional(source, inline_calls=True, control_flow=False)
    flow = TrainingFlow(plain, loss)
    if segments is None or isinstance(segments, int):
        chosen = of_equal_size(flow, segments)
    else:
        chosen = by_scopes(flow, _texts(segments, "segments", "name scopes, or their number"))
    keeping = Keeping(flow, policy if isinstance(policy, str) else _texts(policy, "policy", "names of tensors"))
    result, instances = plain.clone(), _Instances(plain)
    awaited = AwaitedGradients(flow, chosen, [keeping.of(segment.nodes) for segment in chosen])
    repeated = [
        _Repeated(flow, awaited, result, number, instances).add(whole=whole) for number in reversed(range(len(chosen)))
    ]
    if not any(repeated):
        raise InvalidArgumentError(
            f"no gradient of {loss!r} reads what the segments compute: name scopes of layers, and give a graph that "
            "has the backward pass too"
        )
    result.fix_source_and_sink_edges()
    return result


def _texts(names: Sequence[str], what: str, expected: str) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f"{what} {names!r}: give a list of {expected}")
    return list(names)


class _Instances:
    """The attrs `_instance` of the collectives of a graph, by which their instances differ."""

    def __init__(self, graph: Graph) -> None:
        kinds = (graph.node(node).properties for node in graph.node_ids() if graph.node(node).is_op)
        self._taken = {kind.attrs[INSTANCE] for kind in kinds if INSTANCE in kind.attrs}

    def of_copy(self, node: Node) -> NodeProperties:
        """The properties of the copy of a node; InvalidArgumentError if another collective has its instance."""
        if INSTANCE not in node.attrs:
            return node.properties
        own = instance_offset(node.attrs)
        again = own + AGAIN_STEP
        if again in self._taken or own % INSTANCE_STEP >= AGAIN_STEP:
            raise InvalidArgumentError(
                f"collective {node.name!r} would run again with {INSTANCE} {again}, which another one may have; give "
                f"collectives numbers below {AGAIN_STEP}, and let each run again once",
                node=node.name,
            )
        self._taken.add(again)
        return node.properties.with_attr(INSTANCE, encode(again, "int"))


class _Repeated:
    """One segment being repeated, in `result`, whose nodes have the ids of the graph that `flow` describes."""

    def __init__(
        self,
        flow: TrainingFlow,
        awaited: AwaitedGradients,
        result: Graph,
        number: int,
        instances: _Instances,
    ) -> None:
        self.flow = flow
        self.instances = instances
        self.result = result
        self.awaited, self.number = awaited, number
        self.segment, self.kept = awaited.segments[number], awaited.kept[number]
        self.copies: dict[int, Node] = {}

    def add(self, *, whole: bool) -> bool:
        """Adds the nodes that run again; whether any gradient reads what the segment computes."""
        wanted = self.awaited.repeated_reads(self.number)
        ends = self._ends() if whole and wanted else []
        nodes = self._closure([*(read.tensor[0] for read in wanted), *ends])
        for node in nodes:
            self._copy(node)
        for reader, port, (source, output) in wanted:
            self.result.update_edge(self.copies[source], output, self.result.node(reader), port)
            self.flow.add_edge(self.copies[source].id, reader)
        for end, reader in product(ends, {reader for reader, *_ in wanted}):
            self.result.add_control_edge(self.copies[end], self.result.node(reader))
            self.flow.add_edge(self.copies[end].id, reader)
        self._hold_back({reader for reader, *_ in wanted})
        trained = cache(partial(self.awaited.updates, self.number))
        for node, copy in self.copies.items():
            hold_updates(self.flow, self.result, node, copy, trained)
        return bool(self.awaited.reads[self.number])

    def _ends(self) -> list[int]:
        """The nodes that make the outputs of the segment and may run twice."""
        forward, nodes = self.flow.forward, self.segment.nodes
        return [
            node
            for node in nodes
            if can_repeat(self.flow.graph.node_properties(node))
            and node not in self.flow.of_variables
            and any(reader in forward and reader not in nodes for reader in self.flow.readers(node))
        ]

    def _is_repeated(self, tensor: Output) -> bool:
        return tensor[0] in self.segment.nodes and tensor not in self.kept

    def _closure(self, nodes: Iterable[int]) -> list[int]:
        """These nodes, and those of the segment that must run again before them, each after its inputs."""
        waiting, closure = list(nodes), set[int]()
        while waiting:
            node = waiting.pop()
            if node not in closure:
                closure.add(node)
                waiting += [
                    source for source, port in self.flow.data.sources(node) if self._is_repeated((source, port))
                ]
        return sorted(closure, key=self.flow.position.__getitem__)

    def _copy(self, node: int) -> None:
        original = self.result.node(node)
        copy = self.result.add_node_with(
            unused(self.result, f"{original.name}/again"),
            _marked(self.instances.of_copy(original)),
            device=original.requested_device,
        )
        for port, (source, output) in enumerate(self.flow.data.sources(node)):
            producer = self.copies[source] if self._is_repeated((source, output)) else self.result.node(source)
            self.result.add_edge(producer, output, copy, port)
            self.flow.add_edge(producer.id, copy.id)
        for edge in original.in_edges():
            if edge.is_control and edge.src.is_op:
                self.result.add_control_edge(edge.src, copy)
                self.flow.add_edge(edge.src.id, copy.id)
        self.copies[node] = copy

    def _hold_back(self, readers: set[int]) -> None:
        """Lets the first of the new nodes wait for the gradients that the segment's gradients are made of."""
        if not self.copies:
            return
        gates = self.awaited.gates(self.number, readers) or [self.flow.loss]
        gate = self.result.node(gates[0])
        if len(gates) > 1:
            name = unused(self.result, f"{self.segment.name}/gradients")
            gate = self.result.add_node(name, "NoOp", device=gate.requested_device)
            for node in gates:
                self.result.add_control_edge(self.result.node(node), gate)
                self.flow.add_edge(node, gate.id)
        for node, copy in self.copies.items():
            if not any(self._is_repeated(tensor) for tensor in self.flow.data.sources(node)):
                self.result.add_control_edge(gate, copy)
                self.flow.add_edge(gate.id, copy.id)


def _marked(properties: NodeProperties) -> NodeProperties:
    return properties.with_attr(RECOMPUTED, encode(True, "bool"))


def unused(graph: Graph, name: str) -> str:
    """The name, or the first of name_1, name_2, ... that no node of the graph has."""
    number, free = 0, name
    while graph.find_id(free) is not None:
        number += 1
        free = f"{name}_{number}"
    return free
