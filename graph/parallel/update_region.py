"""The end of the backward pass, which reads no activation any more, and the gradients that enter it.

    d_a, d_b --AddN--> d_w --Mul(1 / scale)--> g --L2Loss--> ... --> w -= rate * g * factor
    '---- still the backward pass ---'  gradient  '-------- update region ---------'

A node belongs to the region if neither it nor anything behind it reads an activation, a tensor with rows, or the shape
of one. Sums of partial gradients are left to the backward pass, so that one gradient per variable remains. What updates
a variable by rows may read indices and rows: they are joined, not added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import InvalidArgumentError, UnimplementedError
from ..dtypes import DataType
from ..edge_ends import Output
from ..ops.properties import NodeProperties
from .batch_shapes import BatchShapes
from .value_flow import ValueFlow, is_handle


class Region(NamedTuple):
    """What the region is cut from: forward nodes that depend on the batch, the backward pass, the updates."""

    activations: set[int]
    backward: set[int]
    updates: list[int]


@dataclass(slots=True)
class UpdateRegion:
    """The nodes of the region, the tensors that enter it, and those of them that replicas join."""

    nodes: set[int] = field(default_factory=set)
    gradients: list[Output] = field(default_factory=list)
    joined: set[Output] = field(default_factory=set)


def update_region(flow: ValueFlow, shapes: BatchShapes, cut_from: Region) -> UpdateRegion:
    """The update region of a training step."""
    return _RegionSearch(flow, shapes, cut_from).run()


def region_behind(flow: ValueFlow, gradients: Sequence[Output], cut_from: Region) -> UpdateRegion:
    """The update region behind the named gradients: everything of the backward pass that depends on one of them.

    Raises InvalidArgumentError for a gradient that the batch does not reach, UnimplementedError for what else enters
    the region: a tensor of a micro-batch that nobody adds up.
    """
    early = {node for node, _ in gradients}
    for node in early - cut_from.activations - cut_from.backward:
        name = flow.graph.node_name(node)
        raise InvalidArgumentError(f"gradient {name!r} does not depend on the batch; leave it out", node=name)
    known, before = set(gradients), flow.reached(early, flow.value_sources)
    readers = {reader for node in early for reader, port in flow.readers[node] if flow.sources[reader][port] in known}
    behind = (flow.descendants(readers & cut_from.backward - before) & cut_from.backward) - before
    varying = (cut_from.activations | cut_from.backward) - behind
    for node in sorted(behind):
        for source in flow.sources[node]:
            if source[0] in varying and source not in known and not is_handle(_type_of(flow, source)):
                reader, read = flow.graph.node_name(node), flow.graph.node_name(source[0])
                raise UnimplementedError(
                    f"{reader!r} updates variables by {read!r}, which is computed from the batch and is none of the "
                    "named gradients; name it too, so that it is added up",
                    node=reader,
                )
    _check_updates(flow, cut_from.updates, behind)
    return UpdateRegion(behind, sorted(known))


def _type_of(flow: ValueFlow, output: Output) -> DataType:
    kind = flow.kinds[output[0]]
    assert kind is not None
    return kind.output_types[output[1]]


def _check_updates(flow: ValueFlow, updates: Sequence[int], region: Collection[int]) -> None:
    """UnimplementedError for an update that reads an activation itself."""
    early = next((update for update in updates if update not in region), None)
    if early is not None:
        name, kind = flow.graph.node_name(early), flow.kinds[early]
        raise UnimplementedError(
            f"{name!r} updates a variable by an activation, or by rows of the batch, and not by a gradient alone: "
            "update it by a gradient, or apart from this step",
            node=name,
            op="" if kind is None else kind.op,
        )


class _RegionSearch:
    """One search for the update region."""

    def __init__(self, flow: ValueFlow, shapes: BatchShapes, cut_from: Region) -> None:
        self.flow, self.shapes = flow, shapes
        self.activations, self.backward, self.updates = cut_from
        self.by_rows: set[Output] = set()  # indices and rows, which the region may read
        self.whole: set[Output] = set()  # tensors of the shape of a variable
        self.shape_only: set[int] = set()  # nodes whose values follow from shapes of tensors with rows

    def run(self) -> UpdateRegion:
        """The region, its gradients and which of these are joined."""
        for update in self.updates:
            self._find_rows(update)
        for node in self.backward:
            if self._kind(node).op_def.record.sums_segments:
                self._find_summed_rows(node)
        self._find_whole()
        self._find_shapes()
        region = self._without_sums(self._region())
        _check_updates(self.flow, self.updates, region)
        entering = {
            source
            for node in region
            for source in self.flow.sources[node]
            if source[0] not in region and self._is_varying(source) and not is_handle(self._type(source))
        }
        return UpdateRegion(region, sorted(entering), entering & self.by_rows)

    def _kind(self, node: int) -> NodeProperties:
        kind = self.flow.kinds[node]
        assert kind is not None
        return kind

    def _type(self, output: Output) -> DataType:
        return _type_of(self.flow, output)

    def _is_varying(self, source: Output) -> bool:
        """Whether a tensor depends on the batch."""
        return source[0] in self.activations or source[0] in self.backward

    # Updates by rows

    def _find_rows(self, update: int) -> None:
        """Adds to `by_rows` the indices and rows of one update, and what they are computed from by rows."""
        record = self._kind(update).op_def.record
        if record.indices_input < 0:
            return
        indices = self.flow.sources[update][record.indices_input]
        if not self._is_varying(indices):
            return
        distinct = self._distinct_behind(indices)
        self.by_rows.add(indices)
        if distinct is not None:
            kind = self._kind(distinct)
            self.by_rows.update((distinct, port) for port in range(len(kind.output_types)))
            self.by_rows.add(self.flow.sources[distinct][0])
        self._add_rows(self.flow.sources[update][record.rows_input])

    def _add_rows(self, last: Output) -> None:
        """Adds to `by_rows` what the rows of a tensor are computed from by rows, and the tensor."""
        stack = [last]
        while stack:
            rows = stack.pop()
            if rows in self.by_rows or not self._is_varying(rows):
                continue
            self.by_rows.add(rows)
            stack += self._same_rows(rows[0])

    def _find_summed_rows(self, node: int) -> None:
        """Adds to `by_rows` the rows that a node sums by index, if anything but such sums reads them.

        A square of each row, or the norm of all, must see the rows of the whole batch. Otherwise the sum is a gradient
        like any other.
        """
        rows, indices = self.flow.sources[node][:2]
        if not (self._is_varying(rows) and self._is_varying(indices) and self.shapes.has_rows(rows)):
            return
        if not self.shapes.has_rows((node, 0)) and any(self._reads_rows(root) for root in self._roots(rows)):
            self.by_rows.add(indices)
            self._add_rows(rows)

    def _roots(self, rows: Output) -> list[Output]:
        """The first tensors with these rows."""
        found, stack = [], [rows]
        while stack:
            at = stack.pop()
            before = [source for source in self._same_rows(at[0]) if self._is_varying(source)]
            stack += before
            if not before:
                found.append(at)
        return found

    def _reads_rows(self, rows: Output) -> bool:
        """Whether something that is neither forward nor a sum by index reads these rows."""
        for reader, _ in self.flow.readers[rows[0]]:
            kind = self.flow.kinds[reader]
            is_reader = rows in self.flow.sources[reader] and reader not in self.activations
            if is_reader and kind is not None and not kind.op_def.record.sums_segments:
                return True
        return False

    def _distinct_behind(self, indices: Output) -> int | None:
        """The node that made these indices distinct, if there is one."""
        node = indices[0]
        while node in self.backward:
            record = self._kind(node).op_def.record
            if record.finds_distinct:
                return node
            if not (record.passes_on or record.is_additive):
                return None
            node = self.flow.sources[node][0][0]
        return None

    def _same_rows(self, node: int) -> list[Output]:
        """The inputs of a node that have its rows: those of elementwise ops, and what is summed by segments."""
        sources = self.flow.sources[node]
        if node not in self.backward:
            return []
        if any(source in self.by_rows and self.shapes.has_rows(source) for source in sources[1:]):
            return [sources[0]]
        record = self._kind(node).op_def.record
        return [s for s in sources if not self.shapes.is_scalar(s)] if record.in_place or record.passes_on else []

    # The region

    def _find_whole(self) -> None:
        """Adds to `whole` what has the shape of a variable: values that are assigned, gradients of optimizers.

        It follows from shapes unless these are not known before the run.
        """
        stack = [
            source
            for update in self.updates
            if self._kind(update).op_def.record.updates is not None
            for source in self.flow.sources[update]
        ]
        while stack:
            output = stack.pop()
            if output in self.whole or output in self.by_rows or output[0] not in self.backward:
                continue
            self.whole.add(output)
            record = self._kind(output[0]).op_def.record
            if record.in_place or record.passes_on:
                stack += self.flow.sources[output[0]]

    def _has_rows(self, source: Output) -> bool:
        return source not in self.whole and self.shapes.has_rows(source)

    def _find_shapes(self) -> None:
        """Adds the nodes whose values depend on the batch by shapes only."""
        for node in self.flow.order:
            if node not in self.backward:
                continue
            varying = [source for source in self.flow.sources[node] if self._is_varying(source)]
            if not varying:
                continue
            if self._kind(node).op_def.record.reads_shape:
                if any(self._has_rows(source) and source not in self.by_rows for source in varying):
                    self.shape_only.add(node)
            elif all(source in self.shape_only for source, _ in varying):
                self.shape_only.add(node)

    def _reads_activation(self, node: int) -> bool:
        for source in self.flow.sources[node]:
            if source in self.by_rows or not self._is_varying(source):
                continue
            if source[0] in self.activations or source[0] in self.shape_only:
                return True
            if not is_handle(self._type(source)) and self._has_rows(source):
                return True
        return False

    def _region(self) -> set[int]:
        """The nodes of the backward pass without an activation at them or behind them."""
        before = set[int]()
        for node in reversed(self.flow.order):
            if node in self.backward and (
                self._reads_activation(node) or any(reader in before for reader in self.flow.value_readers(node))
            ):
                before.add(node)
        return self.backward - before

    def _without_sums(self, region: set[int]) -> set[int]:
        """The region without the sums of partial gradients at its begin."""
        left = set(region)
        for node in self.flow.order:
            kind = self.flow.kinds[node]
            if node not in left or kind is None or not kind.op_def.record.is_additive:
                continue
            numbers = [s for s in self.flow.sources[node] if self._type(s) == kind.output_types[0]]
            if all(self._is_varying(s) and s[0] not in left and s not in self.by_rows for s in numbers):
                left.discard(node)
        return left
