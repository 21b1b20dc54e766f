"""Default attrs: filled into nodes that lack them, or removed where the consumer does not know them.

Functions here change a GraphDef in place. An attr that a node has is never overwritten, and an attr is removed only
when it equals the producer's default.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import InvalidArgumentError, NotFoundError
from ..attrs import attr_values_equal
from ..ops.registry import OpSignature, lookup_op
from ..ops.summaries import summarize_op
from ..protos import AttrValue, GraphDef, NodeDef

Lookup = Callable[[str], OpSignature]


def add_defaults(node: NodeDef, signature: OpSignature) -> None:
    """Fills in the attrs that the op has a default for and the node lacks."""
    for name, default in signature.defaults.items():
        if name not in node.attr:
            node.attr[name].ParseFromString(default)


def graph_lookup(graph_def: GraphDef, lookup: Lookup = lookup_op) -> Lookup:
    """A look-up that searches the graph's functions first, then the ops of `lookup`."""
    functions = {f.signature.name: OpSignature(f.signature) for f in graph_def.library.function}
    return lambda op: functions.get(op) or lookup(op)


def add_defaults_to_graph_def(
    graph_def: GraphDef, *, first_node: int = 0, skip_unknown_ops: bool = False, lookup: Lookup = lookup_op
) -> None:
    """Fills in default attrs of all nodes from index `first_node` on.

    Raises InvalidArgumentError when `first_node` is past the end, NotFoundError for an unknown op unless
    `skip_unknown_ops`.
    """
    if first_node > len(graph_def.node):
        raise InvalidArgumentError(
            f"Tried to add default attrs to GraphDef starting at offset {first_node} with total nodes in graph: "
            f"{len(graph_def.node)}"
        )
    find = graph_lookup(graph_def, lookup)
    for node in graph_def.node[first_node:]:
        try:
            add_defaults(node, find(node.op))
        except NotFoundError as error:
            if not skip_unknown_ops:
                raise error.located(node=node.name) from None


def remove_new_defaults(graph_def: GraphDef, consumer: Lookup, producer: Lookup = lookup_op) -> dict[str, list[str]]:
    """Removes attrs that ops of `consumer` do not have and that equal the default of `producer`'s op.

    Returns the removed names by op; other attrs that the consumer does not know stay. Raises InvalidArgumentError for
    an attr that the producer's op lacks, and NotFoundError for ops that one side does not know.
    """
    old, new = graph_lookup(graph_def, consumer), graph_lookup(graph_def, producer)
    removed: dict[str, list[str]] = {}
    for node in graph_def.node:
        consumer_attrs, producer_op = old(node.op).attrs, new(node.op)
        for name in sorted(node.attr):
            if name.startswith("_") or name in consumer_attrs or not _is_default(node, name, producer_op):
                continue
            del node.attr[name]
            if name not in removed.setdefault(node.op, []):
                removed[node.op].append(name)
    return removed


def _is_default(node: NodeDef, name: str, producer: OpSignature) -> bool:
    if name not in producer.attrs:
        raise InvalidArgumentError(
            f"Attr '{name}' missing in producer's OpDef: {summarize_op(producer)} but found in node '{node.name}'",
            node=node.name,
        )
    default = producer.defaults.get(name)
    return default is not None and attr_values_equal(node.attr[name], AttrValue.FromString(default))
