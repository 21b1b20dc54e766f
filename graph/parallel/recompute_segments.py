"""Segments of the forward pass: the nodes of name scopes, or parts of about equal size.

    size of what gradients read    x 4   h1 8   h2 8   sum 8   h3 8   logits 1        36 bytes, in forward order
    of_equal_size(flow, 3)         x, h1        h2, sum        h3, logits, loss       cut near 12 and 24 bytes

Near each of these sizes the cut is made where least bytes cross it, since what crosses is kept: between layers, not
inside of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import isqrt, prod
from typing import NamedTuple

from ...errors import InvalidArgumentError, NotFoundError
from ..dtypes import Shape, Shapes, base_type, item_size
from ..shape_inference.infer import infer_shapes
from ..suggestions import suggestion
from .recompute_flow import TrainingFlow, names
from .recompute_keeping import can_repeat


class RecomputedSegment(NamedTuple):
    """Nodes of the forward pass, by id, whose activations are computed again."""

    name: str
    nodes: frozenset[int]


def by_scopes(flow: TrainingFlow, scopes: Sequence[str]) -> list[RecomputedSegment]:
    """The forward nodes of each scope, in forward order of their first nodes; raises as `recompute` says."""
    if not scopes:
        raise InvalidArgumentError("segments: no name scope is given; name some, or give a number of segments")
    segment_of: dict[int, str] = {}
    known = _Scopes(flow)
    for scope in scopes:
        for node in known.nodes(scope):
            other = segment_of.setdefault(node, scope)
            if other != scope or scopes.count(scope) > 1:
                raise InvalidArgumentError(f"segments {other!r} and {scope!r} overlap; name scopes beside each other")
    if flow.loss in segment_of:
        raise InvalidArgumentError(
            f"segment {segment_of[flow.loss]!r} computes the loss itself, so its gradients come at once; name scopes "
            "inside of it"
        )
    ordered: dict[str, list[int]] = {}
    for node in flow.order:
        if node in segment_of:
            ordered.setdefault(segment_of[node], []).append(node)
    return [RecomputedSegment(scope, frozenset(nodes)) for scope, nodes in ordered.items()]


class _Scopes:
    """The forward nodes in each scope, outer scopes too, and how many nodes a scope has in all."""

    def __init__(self, flow: TrainingFlow) -> None:
        self.flow = flow
        self.forward: dict[str, list[int]] = {}
        """in the order of the forward pass"""
        for node in flow.order:
            for scope in _scopes_of(flow.graph.node_name(node)):
                self.forward.setdefault(scope, []).append(node)

    def nodes(self, scope: str) -> list[int]:
        """The forward nodes of a scope, and the node of that name; NotFoundError or InvalidArgumentError for none."""
        path = self._full_path(scope)
        nodes = self.forward.get(path, [])
        named = self.flow.graph.find_id(path)
        if named is not None and named in self.flow.position:
            nodes = sorted({*nodes, named}, key=self.flow.position.__getitem__)
        if nodes:
            return nodes
        everywhere = [name for name in names(self.flow.graph) if name == path or path in _scopes_of(name)]
        if not everywhere:
            raise NotFoundError(
                f"segment {scope!r}: no node is in a scope of that name{suggestion(scope, self.forward)}"
            )
        raise InvalidArgumentError(
            f"segment {scope!r}: none of its {len(everywhere)} nodes is in the forward pass, which computes "
            f"{self.flow.graph.node_name(self.flow.loss)!r}"
        )

    def _full_path(self, scope: str) -> str:
        """The path of the scope that is meant: the one given, or else that of the only forward scope that ends so."""
        path = scope.strip("/")
        if path in self.forward:
            return path
        parts = path.split("/")
        inner = [other for other in self.forward if other.split("/")[-len(parts) :] == parts]
        if len(inner) > 1:
            several = ", ".join(map(repr, inner))
            raise InvalidArgumentError(f"segment {scope!r}: there are {several}; write the one in full")
        return inner[0] if inner else path


def _scopes_of(name: str) -> Iterator[str]:
    """The scopes of a name, outer ones first."""
    at = name.find("/")
    while at >= 0:
        yield name[:at]
        at = name.find("/", at + 1)


def of_equal_size(flow: TrainingFlow, count: int | None) -> list[RecomputedSegment]:
    """All parts of the forward pass but the last, after cutting it into `count`; None as `recompute` says."""
    if count is not None and count < 2:
        raise InvalidArgumentError(f"segments={count}: give at least 2, of which the last is not computed again")
    shapes = infer_shapes(flow.graph)
    sizes = _sizes(flow, shapes)
    held = sum(size > 0 for size in sizes)
    count = count or max(2, isqrt(held))
    if held < count:
        raise InvalidArgumentError(
            f"segments={count}: gradients read {held} activations of the forward pass; give at most {held}"
        )
    ends = list(_ends(sizes, _crossing(flow, shapes), count))
    starts = [0, *ends]
    return [
        RecomputedSegment(f"segment{number}", frozenset(flow.order[start:end]))
        for number, (start, end) in enumerate(zip(starts, ends, strict=False))
    ]


def _ends(sizes: Sequence[int], crossing: Sequence[int], count: int) -> Iterator[int]:
    """Where the first `count` - 1 parts end, as positions in the forward order, in half a part around equal sizes."""
    total, before, first = sum(sizes), list(accumulate(sizes)), 0
    for number in range(1, count):
        aim, slack = total * number / count, total / count / 2
        near = [end for end in range(first, len(sizes)) if abs(before[end] - aim) <= slack]
        if near:
            first = min(near, key=lambda end: (crossing[end], abs(before[end] - aim))) + 1
            yield first


def _sizes(flow: TrainingFlow, shapes: Mapping[str, Shapes]) -> list[int]:
    """Bytes of what each node computes for the backward pass, in forward order; of an unknown axis one element."""
    sizes = []
    for node in flow.order:
        properties = flow.graph.node_properties(node)
        read = {port for reader, port in flow.data.readers(node) if reader not in flow.forward}
        counted = read if can_repeat(properties) and not properties.op_def.record.is_view else ()
        of_node, types = shapes[flow.graph.node_name(node)], properties.output_types
        sizes.append(sum(_bytes(of_node[port], types[port]) for port in counted))
    return sizes


def _crossing(flow: TrainingFlow, shapes: Mapping[str, Shapes]) -> list[int]:
    """Bytes of repeatable tensors that forward nodes behind each position read of nodes up to there."""
    change = [0] * (len(flow.order) + 1)
    for position, node in enumerate(flow.order):
        properties = flow.graph.node_properties(node)
        if can_repeat(properties):
            last: dict[int, int] = {}
            for reader, port in flow.data.readers(node):
                if reader in flow.forward:
                    last[port] = max(last.get(port, 0), flow.position[reader])
            for port, end in last.items():
                size = _bytes(shapes[flow.graph.node_name(node)][port], properties.output_types[port])
                change[position] += size
                change[end] -= size
    return list(accumulate(change))[:-1]


def _bytes(shape: Shape, dtype: int) -> int:
    return item_size(base_type(dtype)) * prod(size or 1 for size in shape or ())
