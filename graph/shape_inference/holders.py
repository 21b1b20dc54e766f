"""Holders of tensors: what is taken out of one in a step has the shapes of what is put in.

    s = StackV2                   the handle is captured by a loop, and by the loop of its gradient
    StackPushV2(s, x)             x has shape (32, 224)
    y = StackPopV2(s)             so y has it

    step 1    Stage(x)            x has shape (32, 224)
    step 2    y = Unstage, Stage(x)    so y has it

No edge with the shape joins the two nodes, and the one that takes may come first. So the graph is walked, the shapes of
what is put in are noted, and the graph is walked again, until nothing new is noted: what is put into one stack may come
out of another. An array of gradients has the shapes of the array that they are the gradients of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np

from ..analysis.dims import common_shape
from ..analysis.joined import JoinedGraph
from ..dtypes import DataType, Shape, Shapes, base_type
from ..ops.holders import written_inputs
from ..ops.record import CONTROL_FLOW, Holding, NodeClass

_PASSING = CONTROL_FLOW | {NodeClass.IDENTITY}
_PUTTING = (Holding.PUTS, Holding.PUSHES, Holding.PUTS_COPIES)
_TAKING = (Holding.TAKES_FIRST, Holding.READS)
_HANDLES = (DataType.RESOURCE, DataType.STRING)


class Holders:
    """The holders of one graph: objects behind a handle that a node makes, and staging areas, which have a name.

    `known` has what was noted of a node: of one that takes out of a staging area the shapes of its outputs; `behind`
    the shapes of the components of an element, by node that makes an object.
    """

    def __init__(self, graph: JoinedGraph) -> None:
        self.known: dict[int, Shapes] = {}
        self.behind: dict[int, Shapes] = {}
        self._graph = graph
        self._puts: dict[Hashable, list[int]] = {}
        self._takes: dict[Hashable, list[int]] = {}
        self._makers: dict[Hashable, int] = {}
        for n in self._nodes():
            self._add(n)
        self._takes = {key: nodes for key, nodes in self._takes.items() if key in self._puts}

    def _nodes(self) -> Iterator[int]:
        """The nodes that put into holders, or take out of staging areas."""
        records = [kind.op_def.record for kind in self._graph.kinds]
        kinds = [number for number, record in enumerate(records) if record.holding in (*_PUTTING, *_TAKING)]
        yield from np.flatnonzero(np.isin(self._graph.kind_of, kinds)).tolist() if kinds else ()

    def _add(self, n: int) -> None:
        properties = self._graph.properties_of(n)
        holding, attrs = properties.op_def.record.holding, properties.attrs
        key: Hashable
        if _is_named(properties.input_types, attrs):
            key = attrs["container"], attrs["shared_name"], int(self._graph.device_of[n])
            if holding in _TAKING:
                self._takes.setdefault(key, []).append(n)
        elif holding in _PUTTING and base_type(properties.input_types[0]) in _HANDLES:
            key = maker = self._maker(n)
            self._makers[key] = maker
        else:
            return
        if holding in _PUTTING:
            self._puts.setdefault(key, []).append(n)

    def _maker(self, n: int) -> int:
        """The node that made the object whose handle a node reads; for an array of gradients that of the array."""
        graph, seen, output = self._graph, set[int](), 0
        while n not in seen:
            seen.add(n)
            is_received = graph.sender[n] >= 0
            port = output if not is_received and graph.properties_of(n).op_def.record.regroups else 0
            n, output = graph.inputs_of(int(graph.sender[n]) if is_received else n)[port]
            record = graph.properties_of(n).op_def.record
            passes = record.node_class in _PASSING or record.regroups or record.holding is Holding.GRADIENT
            if graph.sender[n] < 0 and not passes:
                break
        return n

    def nodes(self) -> list[int]:
        """The nodes of which something may be noted."""
        return [*(n for nodes in self._takes.values() for n in nodes), *self._makers.values()]

    def note(self, read_by: Callable[[int], Shapes]) -> bool:
        """Notes the shapes of what is put in, given what a node reads; whether there is anything new."""
        before = self.known, self.behind
        self.known, self.behind = {}, {}
        for key, putters in self._puts.items():
            columns = zip(*[self._element(n, read_by(n)) for n in putters], strict=False)
            shapes = tuple(map(_common, columns))
            if key in self._makers:
                self.behind[self._makers[key]] = shapes
            self.known.update(dict.fromkeys(self._takes.get(key, ()), shapes))
        return (self.known, self.behind) != before and bool(self.known or self.behind)

    def _element(self, n: int, read: Shapes) -> Shapes:
        """The shapes of the components of an element that a node puts in."""
        properties = self._graph.properties_of(n)
        shapes = tuple([read[port] for port in written_inputs(properties)])
        if properties.op_def.record.holding is not Holding.PUTS_COPIES:
            return shapes
        has_pieces = "lengths" in [arg.name for arg in properties.op_def.input_args]
        return tuple([_row(shape, has_pieces=has_pieces) for shape in shapes])


def _common(shapes: Sequence[Shape]) -> Shape:
    """The common shape of those that are known so far: one may follow from what is taken out of this holder."""
    known = [shape for shape in shapes if shape is not None]
    return common_shape(known) if known else None


def _row(shape: Shape, *, has_pieces: bool) -> Shape:
    """The shape of a row, or of several."""
    if not shape:
        return None
    return (None, *shape[1:]) if has_pieces else shape[1:]


def _is_named(types: Sequence[int], attrs: Mapping[str, object]) -> bool:
    """Whether a node names the staging area that it uses; nodes without a name share nothing."""
    has_handle = bool(types) and base_type(types[0]) in _HANDLES
    return not has_handle and bool(attrs.get("shared_name"))
