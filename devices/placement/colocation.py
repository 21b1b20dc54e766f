"""Groups of nodes that must share a device, each with the constraint that holds for all its members.

Four relations join nodes, in this order: an edge into a reference or resource input, by edge id; nodes that a called
function needs on one device; an entry "loc:@G" of the attr `_class`, by node id; and every node is in the group that
has its own name. A node without any of these is in no group.

The order matters only for which of two conflicting requests an error names, and for reference and resource edges, where
the source's request overrides the consumer's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ...errors import InvalidArgumentError
from ...graph.columns import EdgeArrays
from ...graph.dtypes import DataType, is_ref
from ...graph.graph import Graph
from ...graph.ops.properties import NodeProperties
from ...graph.ops.record import Calls
from .candidates import Constraint

CLASS_ATTR = "_class"
_PASSES_MANY_ON = "IdentityN"


def needs_source_device(properties: NodeProperties, port: int) -> bool:
    """Whether the node must be on the device of its input `port`: true of references and resource handles."""
    dtype = properties.input_types[port]
    if not (is_ref(dtype) or dtype == DataType.RESOURCE):
        return False
    # A called function may use resources on several devices, and IdentityN may pass on resources of several devices.
    return properties.op_def.record.calls is not Calls.CALL and properties.op != _PASSES_MANY_ON


@dataclass(slots=True, eq=False)
class ColocationGroup:
    """Nodes that share a device: ids in the order they joined, and their common constraint."""

    members: list[int]
    constraint: Constraint
    rank: int = 0


class Colocation:
    """Union-find over the nodes that must share a device with another."""

    def __init__(self, graph: Graph, constraint_of: Callable[[int], Constraint], *, soft: bool) -> None:
        """`constraint_of` returns the constraint of a single node; `soft` drops type and id of conflicting requests."""
        self._graph = graph
        self._constraint_of = constraint_of
        self._soft = soft
        self._group: dict[int, ColocationGroup] = {}

    @property
    def group_of(self) -> dict[int, ColocationGroup]:
        """Node id -> group, for nodes that are in one."""
        return self._group

    def join_edges(self, edges: EdgeArrays, positions: Sequence[int], inspected: Collection[int] = ()) -> None:
        """Joins the ends of those edges (by position in `edges`) that carry a reference or a resource handle.

        Edges out of `inspected` are left out: these are calls whose bodies decide what is joined (`join_all`). Raises
        InvalidArgumentError when the devices of two ends conflict.
        """
        for i in positions:
            src, dst, port = int(edges.src[i]), int(edges.dst[i]), int(edges.dst_input[i])
            if port < 0 or src in inspected or not needs_source_device(self._graph.node_properties(dst), port):
                continue
            self._follow(src, dst)

    def join_all(self, members: Sequence[tuple[int, bool]], constraint: Constraint) -> None:
        """Joins nodes that a called function needs on one device; `constraint` is that of its body.

        With each node comes whether it reads a resource that the call gives: the request of the first node then
        overrides its own. Raises InvalidArgumentError when devices conflict.
        """
        if not members:
            return
        first = members[0][0]
        for node, follows in members[1:]:
            (self._follow if follows else self._join)(first, node)
        group = self._find(first)
        group.constraint = group.constraint.limited(constraint, soft=self._soft)

    def _follow(self, src: int, dst: int) -> None:
        """Joins the ends of an edge that carries a reference or a resource handle."""
        source, consumer = self._find(src), self._find(dst)
        if source is consumer:
            return
        consumer.constraint = consumer.constraint.following(source.constraint, self._node(src), self._node(dst))
        try:
            self._join(src, dst)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                "Nodes were connected by a reference or resource connection (requiring them to be on the same "
                f"device), but the two nodes were assigned two different devices: {error.message}",
                node=self._name(dst),
            ) from None

    def join_classes(self, node_ids: Iterable[int]) -> None:
        """Joins nodes with a `_class` attr, given in ascending id, to the groups it names.

        Raises InvalidArgumentError when requests conflict or no device type has kernels for both; with `soft` such a
        node stays out of the group.
        """
        named = {node_id: self._graph.node_properties(node_id).colocated_with for node_id in node_ids}
        group_names_in_use = {name for names in named.values() for name in names}
        own = {node.id: name for name in group_names_in_use if (node := self._graph.find_node(name)) is not None}
        first: dict[str, int] = {}
        for node_id in sorted(named.keys() | own.keys()):
            for name in (*named.get(node_id, ()), self._name(node_id)):
                first_member = first.setdefault(name, node_id)
                try:
                    self._join(node_id, first_member)
                except InvalidArgumentError:
                    if not self._soft:
                        raise

    def _node(self, node_id: int) -> str:
        """A node with its op, as one message of TensorFlow shows it."""
        return f"name='{self._name(node_id)}' (op='{self._graph.node_properties(node_id).op}')"

    def _name(self, node_id: int) -> str:
        return self._graph.node_name(node_id)

    def _types_of(self, node_id: int) -> tuple[str, ...]:
        return self._constraint_of(node_id).types

    def _find(self, node_id: int) -> ColocationGroup:
        group = self._group.get(node_id)
        if group is None:
            group = self._group[node_id] = ColocationGroup([node_id], self._constraint_of(node_id))
        return group

    def _join(self, x: int, y: int) -> None:
        """Merges two groups: the one of higher rank, or else that of `x`, absorbs the other."""
        kept, absorbed = self._find(x), self._find(y)
        if kept is absorbed:
            return
        if kept.rank < absorbed.rank:
            kept, absorbed = absorbed, kept
        place = f"Cannot colocate nodes {colocation_node(self._name(x))} and {colocation_node(self._name(y))}"
        try:
            joined = kept.constraint.joined(absorbed.constraint, soft=self._soft)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{place}: {error.message}", node=self._name(x)) from None
        if not joined.types:
            raise InvalidArgumentError(
                f"{place} because no device type supports both of those nodes and the other nodes colocated with them."
                + describe_group(self._graph, kept, self._types_of)
                + describe_group(self._graph, absorbed, self._types_of),
                node=self._name(x),
            )
        kept.rank += kept.rank == absorbed.rank
        kept.constraint = joined
        kept.members += absorbed.members
        for member in absorbed.members:
            self._group[member] = kept


def colocation_node(name: str) -> str:
    """TensorFlow's notation for a node of a group in messages: `{{colocation_node x}}`."""
    return f"{{{{colocation_node {name}}}}}"


def describe_group(graph: Graph, group: ColocationGroup, types_of: Callable[[int], Iterable[str]]) -> str:
    """Lines that list the ops of a group with the device types that run each, and its members with their devices.

    `types_of` returns the device types of a node.
    """
    types = {graph.node_properties(i).op: " ".join(types_of(i)) for i in sorted(group.members)}
    ops = [f"{op}: {kinds} " for op, kinds in types.items()]
    members = [
        f"  {graph.node_name(i)} ({graph.node_properties(i).op}) {graph.requested_device(i)}"
        + (f" framework assigned device={graph.assigned_device(i)}" if graph.assigned_device(i) else "")
        for i in sorted(group.members)
    ]
    return "\n".join(
        (
            "\nColocation Debug Info:",
            "Colocation group had the following types and supported devices: ",
            *ops,
            "\nColocation members, user-requested devices, and framework assigned devices, if any:",
            *members,
            "",
        )
    )
