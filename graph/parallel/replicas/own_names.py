"""What a replica must not share with the others by name: variables, loops, groups of collectives, functions with such.

w = VarHandleOp() {shared_name="w"}       replica_1/w = VarHandleOp() {shared_name="replica_1/w"}
_class=["loc:@w"]                         _class=["loc:@replica_1/w"], or none if w is no part of the program
frame_name="loop"                         frame_name="replica_1/loop"
group_key=1 (a collective of the graph)   group_key of its own
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ....errors import UnimplementedError
from ...attrs import encode
from ...graph import Graph
from ...library.calls import called_by, calls_functions
from ...ops.properties import NodeProperties, join_entry, split_entry
from ...ops.record import NodeClass, State, record_of
from ...ops.registry import lookup_op
from ...protos import AttrValue
from ..value_flow import is_handle

Attr = tuple[str, Callable[[int], AttrValue]]
"""an attr, and its value by rank"""
_GROUP = b"loc:@"


def own_names(
    graph: Graph, nodes: Collection[int], prefixes: Sequence[str], group_stride: int
) -> dict[int, Callable[[int], NodeProperties]]:
    """By node of the program its properties by rank, for nodes whose properties name something of the replica.

    Nodes with the same properties have the same ones in each replica too. Raises UnimplementedError for a call of a
    function that names something that replicas cannot share.
    """
    known: dict[int, Callable[[int], NodeProperties] | None] = {}
    inside = {graph.node_name(node).encode() for node in nodes}
    found = {}
    for node in nodes:
        kind = graph.node_properties(node)
        if id(kind) not in known:
            _check_functions(graph, kind)
            attrs = _attrs(kind, inside, prefixes, group_stride)
            known[id(kind)] = _Varied(kind, attrs) if attrs else None
        by_rank = known[id(kind)]
        if by_rank is not None:
            found[node] = by_rank
    return found


class _Varied:
    """Properties by rank."""

    def __init__(self, kind: NodeProperties, attrs: Sequence[Attr]) -> None:
        """None of the attrs decides the types of ports."""
        place = {split_entry(entry)[0]: at for at, entry in enumerate(kind.entries)}
        self._kind = kind
        self._attrs = [(place[name], name, value) for name, value in attrs]
        self._known: dict[int, NodeProperties] = {}

    def __call__(self, rank: int) -> NodeProperties:
        known = self._known.get(rank)
        if known is None:
            kind, entries = self._kind, list(self._kind.entries)
            for at, name, value in self._attrs:
                entries[at] = join_entry(name, value(rank).SerializeToString(deterministic=True))
            known = NodeProperties(kind.op_def, tuple(entries), kind.input_types, kind.output_types, kind.remarks)
            self._known[rank] = known
        return known


def _attrs(kind: NodeProperties, inside: Collection[bytes], prefixes: Sequence[str], group_stride: int) -> list[Attr]:
    """The attrs of a node that differ between replicas."""
    found: list[Attr] = []
    record, attrs = kind.op_def.record, kind.attrs
    if record.node_class is NodeClass.ENTER:
        found.append(("frame_name", _prefixed(attrs["frame_name"], prefixes)))
    shared = attrs.get("shared_name")
    if (
        isinstance(shared, bytes)
        and shared
        and (any(map(is_handle, kind.output_types)) or "num_devices" in kind.op_def.attrs)
    ):
        found.append(("shared_name", _prefixed(shared, prefixes)))
    groups = attrs.get("_class") if "_class" in attrs else None
    if isinstance(groups, tuple) and any(_group(entry) for entry in groups):
        found.append(("_class", lambda rank: _moved_groups(groups, inside, prefixes[rank])))
    if record.node_class is NodeClass.COLLECTIVE or ("group_key" in kind.op_def.attrs and "group_key" in attrs):
        key = int(attrs["group_key"])
        found.append(("group_key", lambda rank: encode(key + rank * group_stride, "int")))
    return found


def _prefixed(name: bytes, prefixes: Sequence[str]) -> Callable[[int], AttrValue]:
    return lambda rank: AttrValue(s=prefixes[rank].encode() + name)


def _group(entry: object) -> bytes:
    """The node that an entry says to share the device of; empty for an entry that says something else."""
    return entry.removeprefix(_GROUP) if isinstance(entry, bytes) and entry.startswith(_GROUP) else b""


def _moved_groups(groups: Sequence[bytes], inside: Collection[bytes], prefix: str) -> AttrValue:
    value = AttrValue()
    moved = (_GROUP + prefix.encode() + _group(entry) for entry in groups if _group(entry) in inside)
    value.list.s.extend([*moved, *(entry for entry in groups if not _group(entry))])
    return value


def _check_functions(graph: Graph, kind: NodeProperties) -> None:
    """UnimplementedError if a called function has what replicas cannot share: a device, a variable, a collective."""
    if not calls_functions(kind, graph.functions):
        return
    for name in sorted(graph.functions.closure(call.name for call in called_by(kind, graph.functions))):
        body = graph.functions.find(name)
        for node in body.node_def if body is not None else ():
            record = record_of(node.op)
            makes_variable = record.state is State.VARIABLE and not _takes_inputs(node.op)
            if node.device or makes_variable or record.node_class is NodeClass.COLLECTIVE or record.is_per_node:
                why = f"is on device {node.device!r}" if node.device else f"is {node.op}"
                raise UnimplementedError(
                    f"node {node.name!r} of function {name!r}, which the training step calls, {why}: replicas "
                    "cannot share it; lower conditionals and loops first",
                    op=kind.op,
                ).inside(name)


def _takes_inputs(op: str) -> bool:
    return bool(lookup_op(op).input_args)
