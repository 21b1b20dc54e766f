"""The shapes of a graph for a batch of another size than it was made for.

A graph that was made for 8 rows has the 8 in many places: in shapes to reshape or broadcast to, in tensors of zeros.
The walk infers shapes for `TEST` rows instead. Where an op then refuses its inputs, or gets a tensor of the old size,
the 8 is looked for in what it was given:

    x: (101, 6)   Reshape(x, [8, 2, 3])              refused: [101, 2, 3] fits, so the 8 is the batch
    g: ()         Tile(g, [8]) * y, y: (101,)        refused: the Tile must give 101, so its [8] is the batch

What is found are edits: inputs of nodes that follow the size of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import product
from math import prod
from typing import NamedTuple

from ...errors import InvalidArgumentError, PartitaError
from ..columns import SINK_ID
from ..dtypes import Array, DataType, Shape, Shapes, base_type
from ..edge_ends import Output
from ..library.calls import calls_functions
from ..ops.record import NodeClass
from ..shape_inference.outcomes import outcome_of
from ..shape_inference.tensor_facts import TensorFacts
from .batch_shapes import TEST
from .value_flow import ValueFlow

_INTEGERS = (DataType.INT32, DataType.INT64)
_MOST_CHANGES = 2
_LARGEST = 64  # elements of an input that may be a shape

InputPort = tuple[int, int]
"""node and input port"""


class BatchChange(NamedTuple):
    """An input that is to follow the batch: the value of a shape there, or a tensor with rows along an axis."""

    port: int
    fact: int
    axis: int
    """the axis of a tensor; -1 if the input is a shape"""


class SizedWalk:
    """Facts about all tensors for `TEST` rows; `edits` and `sliced` are what must follow the batch."""

    def __init__(self, flow: ValueFlow, declared: Mapping[str, Shapes], fed: Mapping[int, int], parts: int) -> None:
        """`declared` are the shapes for the batch that the graph was made for, `fed` placeholders and their rows.

        A graph that splits its batch into `parts` already is made for so many times fewer rows, and fed several times
        as many.
        """
        self.flow, self.declared, self.fed = flow, declared, fed
        self.rows = next(iter(fed.values())) // parts
        self.facts = TensorFacts()
        self.names = flow.graph.names()
        self.kinds = [None if i <= SINK_ID else flow.graph.node_properties(i) for i in range(flow.count)]
        self.fact_of: list[list[int]] = [[] for _ in range(flow.count)]
        self.edits: dict[InputPort, Array] = {}
        """by input the value that it has for `TEST` rows, where it is a shape"""
        self.sliced: dict[int, int] = {}
        """constants with a row for each of the batch: by node the axis"""
        self._inner: dict[int, int] = {}
        """by node how many neighbours along the axis of the rows belong to one row"""
        self._waiting: list[int] = []
        self._is_waiting = bytearray(flow.count)

    def run(self) -> None:
        """Infers all shapes."""
        order, position = self.flow.order, self.flow.position
        self._waiting = [position[node] for node in order if node > SINK_ID]
        heapify(self._waiting)
        for node in order:
            self._is_waiting[node] = 1
        self._settle()

    def follow(self, output: Output, axis: int) -> None:
        """Makes the rows of an output along an axis follow the batch, and all that depends on it."""
        self._demand(output, axis)
        self._settle()

    def _settle(self) -> None:
        order = self.flow.order
        while self._waiting:
            node = order[heappop(self._waiting)]
            self._is_waiting[node] = 0
            self._visit(node)

    def shape(self, output: Output) -> Shape:
        """The shape of an output for `TEST` rows."""
        facts = self.fact_of[output[0]]
        return self.facts.shapes[facts[output[1]]] if output[1] < len(facts) else None

    def before(self, output: Output) -> Shape:
        """The shape of an output for the batch that the graph was made for."""
        return self.declared[self.names[output[0]] or ""][output[1]]

    def _visit(self, node: int) -> None:
        try:
            found = self._infer(node, {})
        except PartitaError as error:
            changes = next(self._mending(node, lambda _: True), None)
            if changes is None:
                raise InvalidArgumentError(
                    f"{self.names[node]!r} is made for a batch of {self.rows} rows and does not work for another size: "
                    f"{error.message}; leave the size of the batch open when the graph is made",
                    node=self.names[node],
                ) from None
            found = self._apply(node, changes)
        found = self._with_rows_given(node, found)
        if found != self.fact_of[node]:
            self.fact_of[node] = found
            self._inner[node] = self._inner_of(node)
            for reader in self.flow.readers[node]:
                self._wait(reader[0])

    def _with_rows_given(self, node: int, found: list[int]) -> list[int]:
        """The facts of the outputs of a node, where one of its inputs says how many rows there are."""
        kind = self.kinds[node]
        assert kind is not None
        port = kind.op_def.record.rows_given
        if port < 0:
            return found
        value = self.facts.values[self._inputs(node)[port]]
        sources = [source for at, source in enumerate(self.flow.sources[node]) if at != port]
        has_rows = any(shape and shape[0] and shape[0] % TEST == 0 for shape in map(self.shape, sources))
        if value is None or not has_rows or not value.size or value[0] % self.rows or value[0] % TEST == 0:
            return found
        new = value.copy()
        new[0] = new[0] // self.rows * TEST
        self.edits[node, port] = new
        return self._infer(node, {})

    def _inner_of(self, node: int) -> int:
        """How many neighbours along the axis of rows of the first output belong to one row.

        (8, 4, 3) -> (32, 3): 4 if the 8 are the rows, 1 if the 4 are. Unless a reshape says otherwise rows come first.
        """
        kind = self.kinds[node]
        shape = self.shape((node, 0)) if self.fact_of[node] else None
        axis = _rows_axis(shape)
        if shape is None or axis is None or kind is None:
            return 1
        several = (shape[axis] or 0) // TEST
        for source, _ in self.flow.sources[node]:
            before = self.shape((source, 0)) if self.fact_of[source] else None
            at = _rows_axis(before)
            if before is None or at is None:
                continue
            if kind.op_def.record.keeps_elements:
                return max(1, self._inner.get(source, 1) * _behind(before, at) // _behind(shape, axis))
            if before[at] == shape[axis]:
                return self._inner.get(source, several)
        return max(1, several)

    def _wait(self, node: int) -> None:
        if not self._is_waiting[node]:
            self._is_waiting[node] = 1
            heappush(self._waiting, self.flow.position[node])

    def _inputs(self, node: int) -> list[int]:
        found = []
        for port, (source, output) in enumerate(self.flow.sources[node]):
            edit = self.edits.get((node, port))
            if edit is not None:
                found.append(self.facts.number(edit.shape, edit))
            else:
                found.append(self.fact_of[source][output] if output < len(self.fact_of[source]) else 0)
        return found

    def _infer(self, node: int, replaced: Mapping[int, int]) -> list[int]:
        """The facts of the outputs of a node, with some inputs replaced."""
        kind = self.kinds[node]
        assert kind is not None
        inputs = [replaced.get(port, fact) for port, fact in enumerate(self._inputs(node))]
        if node in self.fed:
            shape = self.before((node, 0))
            assert shape is not None
            return [self.facts.number((TEST * (shape[0] or 0) // self.rows, *shape[1:]))]
        if node in self.sliced:
            return [self.facts.number(_scaled(self.before((node, 0)), self.sliced[node], self.rows))]
        if kind.op_def.record.node_class is NodeClass.MERGE:
            known = next((fact for fact in inputs if fact), 0)
            return [known, self.facts.number(())][: len(kind.output_types)]
        if calls_functions(kind, self.flow.graph.functions):
            self._check_call(node)
            return [self.facts.number(shape) for shape in self.declared[self.names[node] or ""]]
        outcome = outcome_of(kind, inputs, self.facts, {}, is_step=False, producer=1 << 20)
        count = len(kind.output_types)
        values = [*outcome.values, *[None] * count][:count]
        behind = [*outcome.behind, *[None] * count][:count]
        return [self.facts.number(*fact) for fact in zip(outcome.shapes, values, behind, strict=True)]

    def _check_call(self, node: int) -> None:
        for source in self.flow.sources[node]:
            if self.fact_of[source[0]] and self.shape(source) != self.before(source):
                raise InvalidArgumentError(f"its functions get {self.names[source[0]]!r}, which has rows of the batch")

    # Where the batch is hidden

    def _mending(self, node: int, fits: object) -> Iterator[list[BatchChange]]:
        """Sets of changes of inputs after which a node works and `fits(facts of outputs)`, the smallest first."""
        choices = [self._changes(node, port) for port in range(len(self.flow.sources[node]))]
        for count in range(1, _MOST_CHANGES + 1):
            for chosen in product(*[(None, *c) for c in choices]):
                changes = [change for change in chosen if change is not None]
                if len(changes) != count:
                    continue
                try:
                    found = self._infer(node, {change.port: change.fact for change in changes})
                except PartitaError:
                    continue
                if fits(found):  # type: ignore[operator]  # a function
                    yield changes

    def _changes(self, node: int, port: int) -> list[BatchChange]:
        """How an input could follow the batch: the sizes in it that are multiples of its rows."""
        source = self.flow.sources[node][port]
        kind = self.kinds[source[0]]
        assert kind is not None
        facts = self.fact_of[source[0]]
        fact = facts[source[1]] if source[1] < len(facts) else 0
        value, shape = self.facts.values[fact], self.facts.shapes[fact]
        dtype = base_type(kind.output_types[source[1]])
        found = []
        if dtype in _INTEGERS and value is not None and value.size <= _LARGEST and (node, port) not in self.edits:
            for at, size in self._places(node, value):
                new = value.copy().reshape(-1)
                new[at] = size
                new = new.reshape(value.shape)
                found.append(BatchChange(port, self.facts.number(new.shape, new), -1))
        if dtype not in _INTEGERS or value is None or kind.op_def.record.node_class is NodeClass.CONSTANT:
            before = self.before(source)
            for axis, length in enumerate(shape or ()):
                if length and length % self.rows == 0 and before == shape:
                    found.append(BatchChange(port, self.facts.number(_scaled(shape, axis, self.rows)), axis))
        return found

    def _places(self, node: int, value: Array) -> list[tuple[int, int]]:
        """Where a shape may have the batch, and the size there for `TEST` rows; the likeliest place first.

        A reshape keeps the order of elements, so the number of elements behind each row stays: (4, 8, 3) -> (32, 3) has
        the rows of axis 1 in axis 0, and (4, 8, 3) -> (4, 8, 3) has them in axis 1.
        """
        flat = value.reshape(-1).tolist()
        places = [(at, size // self.rows * TEST) for at, size in enumerate(flat) if size and size % self.rows == 0]
        kind = self.kinds[node]
        shape = self.shape(self.flow.sources[node][0])
        if kind is None or not kind.op_def.record.keeps_elements or not shape or None in shape or min(flat) < 1:
            return places
        total = _behind(shape, -1)
        others = [prod(flat) // size for size in flat]
        fitting = [(at, total // rest) for at, rest in enumerate(others) if total % rest == 0]
        places = [*(place for place in fitting if place[1] != flat[place[0]] and place not in places), *places]
        axis = _rows_axis(shape)
        if axis is not None:
            behind = self._inner.get(self.flow.sources[node][0][0], 1) * _behind(shape, axis)
            places.sort(key=lambda place: not prod(flat[place[0] + 1 :]) <= behind < prod(flat[place[0] :]))
        return places

    def _apply(self, node: int, changes: Sequence[BatchChange]) -> list[int]:
        """Makes changes; the facts of the outputs of the node after them."""
        for change in changes:
            source = self.flow.sources[node][change.port]
            if change.axis < 0:
                value = self.facts.values[change.fact]
                assert value is not None
                self.edits[node, change.port] = value
            else:
                self._demand(source, change.axis)
        return self._infer(node, {})

    def _demand(self, output: Output, axis: int) -> None:
        """Makes an output have its rows along an axis follow the batch."""
        node, port = output
        kind = self.kinds[node]
        assert kind is not None
        wanted = _scaled(self.before(output), axis, self.rows)
        if kind.op_def.record.node_class is NodeClass.CONSTANT:
            self.sliced[node] = axis
            self.fact_of[node] = [self.facts.number(wanted)]
        else:
            changes = next(self._mending(node, lambda found: self.facts.shapes[found[port]] == wanted), None)
            if changes is None:
                raise InvalidArgumentError(
                    f"{self.names[node]!r} gives {self.rows} rows along axis {axis} and cannot follow a batch of "
                    "another size; leave the size of the batch open when the graph is made",
                    node=self.names[node],
                )
            self.fact_of[node] = self._apply(node, changes)
        self._inner[node] = self._inner_of(node)
        for reader in self.flow.readers[node]:
            self._wait(reader[0])


def _rows_axis(shape: Shape) -> int | None:
    return next((k for k, size in enumerate(shape or ()) if size and size % TEST == 0), None)


def _behind(shape: Shape, axis: int) -> int:
    return prod(size or 1 for size in (shape or ())[axis + 1 :])


def _scaled(shape: Shape, axis: int, rows: int) -> Shape:
    assert shape is not None
    size = shape[axis]
    assert size is not None
    return (*shape[:axis], size // rows * TEST, *shape[axis + 1 :])
