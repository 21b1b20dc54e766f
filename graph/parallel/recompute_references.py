"""Lets the update of a reference variable wait for nodes that read its buffer again.

What reads a reference shares the buffer of the variable, which an update overwrites. In the plain step the product of
the forward pass is long over by then; the repeated one would read the new value.

    w: float_ref = VariableV2()      read: float = Identity(w)      product/again = MatMul(x, read, ^gradient)
    update: float_ref = ApplyGradientDescent(w, rate, d_w)          gets the control input ^product/again

The value behind a resource handle needs no such order: an update does not change what was read before.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import UnimplementedError
from ..dtypes import is_ref
from ..edge_ends import Output
from ..graph import Graph
from ..node import Node
from .recompute_flow import TrainingFlow


def hold_updates(flow: TrainingFlow, result: Graph, node: int, copy: Node, trained: Callable[[], set[int]]) -> None:
    """Adds control edges from the copy of a node to the updates, of those in `trained()`, of buffers that it reads.

    UnimplementedError where the update comes before the gradients that the copy waits for.
    """
    variables = {variable for tensor in flow.data.sources(node) if (variable := _variable(flow, tensor)) is not None}
    for update in sorted(update for variable in variables for update in _updates(flow, variable) & trained()):
        if copy.id in flow.behind([update]):
            raise UnimplementedError(
                f"{flow.graph.node_name(node)!r} cannot run again: {flow.graph.node_name(update)!r} has overwritten "
                "what it reads by then; name other segments, or keep its output"
            )
        result.add_control_edge(copy, result.node(update))
        flow.add_edge(copy.id, update)


def _variable(flow: TrainingFlow, tensor: Output) -> int | None:
    """The variable whose buffer a tensor shares, or None."""
    node, port = tensor
    while not is_ref(flow.graph.node_properties(node).output_types[port]):
        sources = flow.data.sources(node)
        if not sources or not flow.graph.node_properties(node).op_def.record.is_view:
            return None
        node, port = sources[0]
    while flow.data.sources(node):
        node = flow.data.sources(node)[0][0]
    return node


def _updates(flow: TrainingFlow, variable: int) -> set[int]:
    """The nodes that get a reference to the variable, directly or from such a node."""
    updates, waiting = set[int](), [variable]
    while waiting:
        node = waiting.pop()
        types = flow.graph.node_properties(node).output_types
        for reader, port in flow.data.readers(node):
            taken = flow.graph.node_properties(reader).input_types
            wanted = any(
                source == (node, port) and is_ref(taken[position])
                for position, source in enumerate(flow.data.sources(reader))
            )
            if wanted and is_ref(types[port]) and reader not in updates:
                updates.add(reader)
                waiting.append(reader)
    return updates
