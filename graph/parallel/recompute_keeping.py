"""Which tensors of a segment are kept from the forward pass for its gradients."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...errors import InvalidArgumentError
from ..analysis.collective_seats import INSTANCE
from ..dtypes import DataType, base_type, is_ref
from ..edge_ends import Output
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from .pipelines.seats import is_collective
from .recompute_flow import TrainingFlow, tensor_of

FULL, PRODUCTS = "full", "products"
_OPAQUE = frozenset({DataType.RESOURCE, DataType.VARIANT})
_REPEATABLE = frozenset({NodeClass.OTHER, NodeClass.IDENTITY})


class Keeping:
    """The policy, for one graph."""

    def __init__(self, flow: TrainingFlow, policy: str | Sequence[str]) -> None:
        """NotFoundError for a tensor that the graph does not have, InvalidArgumentError for an unknown policy."""
        self._flow = flow
        self._products = policy == PRODUCTS
        self._named: set[Output] = set()
        if not isinstance(policy, str):
            self._named = {tensor_of(flow.graph, name, "policy") for name in policy}
        elif policy not in (FULL, PRODUCTS):
            raise InvalidArgumentError(f"policy {policy!r}: give {FULL!r}, {PRODUCTS!r} or a list of names of tensors")

    def of(self, segment: Collection[int]) -> set[Output]:
        """The outputs of nodes of a segment that are kept: with a tensor also, at no cost, what shares its buffer."""
        ordered = sorted(segment, key=self._flow.position.__getitem__)
        kept = {tensor for node in ordered for tensor in self._outputs(node) if self._is_kept(tensor, segment)}
        views = [node for node in ordered if self._is_view(node)]
        for node in reversed(views):
            (viewed, *_) = self._flow.data.sources(node)
            if (node, 0) in kept and viewed[0] in segment:
                kept.add(viewed)
        for node in views:
            (viewed, *_) = self._flow.data.sources(node)
            if viewed in kept or viewed[0] not in segment:
                kept.add((node, 0))
        return kept

    def _is_view(self, node: int) -> bool:
        properties = self._flow.graph.node_properties(node)
        return properties.op_def.record.is_view and len(properties.output_types) == 1 and bool(properties.input_types)

    def _outputs(self, node: int) -> list[Output]:
        return [(node, port) for port in range(len(self._flow.graph.node_properties(node).output_types))]

    def _is_kept(self, tensor: Output, segment: Collection[int]) -> bool:
        node, port = tensor
        properties = self._flow.graph.node_properties(node)
        return (
            tensor in self._named
            or (self._products and properties.op_def.record.is_product)
            or not can_repeat(properties)
            or self._reads_variable(node)
            or node in self._flow.of_variables
            or not self._flow.always_runs(node)
            or any(
                port == read and reader in self._flow.forward and reader not in segment
                for reader, read in self._flow.data.readers(node)
            )
        )

    def _reads_variable(self, node: int) -> bool:
        """Whether a node reads what a reference refers to, which an update may have changed meanwhile."""
        graph = self._flow.graph
        return any(
            is_ref(graph.node_properties(source).output_types[port]) for source, port in self._flow.data.sources(node)
        )


def can_repeat(properties: NodeProperties) -> bool:
    """Whether nodes of a kind may run twice in a step, and give the same.

    Collectives may if an attr tells their instances: the second time they take part in another one.
    """
    op, record = properties.op_def, properties.op_def.record
    types = (*properties.input_types, *properties.output_types)
    is_exchange = INSTANCE in properties.attrs and is_collective(properties)
    return (
        bool(properties.input_types)
        and record.node_class in _REPEATABLE
        and (is_exchange or not (op.is_stateful or op.is_collective))
        and not (record.is_per_node or record.is_placeholder)
        and record.state is None
        and not any(map(is_ref, types))
        and not any(base_type(dtype) in _OPAQUE for dtype in properties.output_types)
    )
