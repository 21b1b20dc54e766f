"""What ran of a step that was asked: its activations as if all had been known, and its own entries of the log.

Only the nodes that ran are left of a body, as in the body of a simulation that knows all branches, with the costs and
shapes that they had. So events, memory and the longest chain are found in one way for both. Rows are numbered anew,
from 0 on, as the log of the hardware has the rows of all steps that were under way together:

    played   base 0    p, Switch, a, b, Merge      Switch:1 was live           base 5 another step
    ran      base 0    p, Switch, b, Merge
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ....graph.analysis.levels import OUTSIDE
from ....graph.arrays import distinct
from ....graph.ops.record import NodeClass
from ..bodies.body import NodePart
from ..costs.source import FREE
from ..hardware.engine import Duty
from ..hardware.log import KINDS, Log
from ..memory.tensors import KnownShapes
from .activation import PlayedLoop

if TYPE_CHECKING:
    from ....graph.arrays import Numbers
    from ....graph.shape_inference.infer import Shapes
    from ..bodies.body import Body
    from .activation import Activation, NodeFacts

_Fact = TypeVar("_Fact")


class Ran(NamedTuple):
    """One run of a body: the nodes of `body` have rows from `base` on."""

    activation: Activation
    body: Body
    base: int

    @property
    def prefix(self) -> str:
        """Begins the names of its nodes."""
        return self.activation.prefix

    @property
    def iteration(self) -> str:
        """In which iterations of which loops it ran."""
        return self.activation.iteration


class RanSteps(NamedTuple):
    """What steps have done; a `recording.Recorded`."""

    log: Log
    activations: list[Ran]


class Entries(NamedTuple):
    """Entries of the log of the hardware, from `first` up to `end`; times are counted from `start_ns`."""

    log: Log
    first: int
    end: int
    start_ns: int


def ran_steps(activations: Sequence[Activation], entries: Entries) -> RanSteps:
    """What activations have done, which are in the order of their rows; a cause of other rows is left out."""
    log, first, end, _ = entries
    numbers = np.array(log.entries[first:end], np.int64) // KINDS
    rows = distinct(numbers[numbers >= 0])
    base, ran, row_of, bodies = 0, [], _RowNumbers(activations), _Bodies()
    for activation in activations:
        begin = activation.base
        logged = rows[np.searchsorted(rows, begin) : np.searchsorted(rows, begin + len(activation.body))] - begin
        body, nodes = bodies.as_ran(activation, logged.tolist())
        row_of.add(nodes, base)
        ran.append(Ran(activation, body, base))
        base += len(body)
    return RanSteps(_own_log(entries, row_of), ran)


class _RowNumbers:
    """By activation and node of it the row in what ran; -1 of others."""

    def __init__(self, activations: Sequence[Activation]) -> None:
        self.bases = np.array([a.base for a in activations], np.int64)
        self.lengths = np.array([len(a.body) for a in activations], np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self._rows = np.full(int(self.lengths.sum()), -1, np.int64)
        self._count = 0

    def add(self, nodes: Numbers, base: int) -> None:
        """The nodes of the next activation that ran, with rows from `base` on."""
        self._rows[self.starts[self._count] + nodes] = base + np.arange(len(nodes))
        self._count += 1

    def of(self, rows: Numbers) -> Numbers:
        """The rows in what ran; -1 of rows of others."""
        if not len(self.bases):
            return np.full(len(rows), -1)
        # Of activations without rows, which share their base with the next one, the last is found.
        owner = np.searchsorted(self.bases, rows, "right") - 1
        offset = rows - self.bases[owner]
        is_own = (owner >= 0) & (rows >= 0) & (offset < self.lengths[owner])
        position = np.where(is_own, self.starts[owner] + offset, 0)
        return np.where(is_own, self._rows[position], -1) if len(self._rows) else np.full(len(rows), -1)


def _own_log(entries: Entries, row_of: _RowNumbers) -> Log:
    log, first, end, start_ns = entries
    numbers, causes, starts, ends = (
        np.array(column[first:end], np.int64) for column in (log.entries, log.causes, log.start_ns, log.end_ns)
    )
    row, kind = np.divmod(numbers, KINDS)
    new_row = row_of.of(row)
    own = np.flatnonzero(new_row >= 0)
    number = np.full(len(numbers) + 1, -1)
    number[own] = np.arange(len(own))
    result = Log()
    for column, values in (
        (result.entries, new_row[own] * KINDS + kind[own]),
        (result.causes, number[np.maximum(causes[own] - first, -1)]),
        (result.start_ns, starts[own] - start_ns),
        (result.end_ns, ends[own] - start_ns),
    ):
        column.frombytes(values.tobytes())
    _copy_own(log.lanes, result.lanes, number, first)
    _copy_own(log.bottlenecks, result.bottlenecks, number, first)
    _copy_own(log.collectives, result.collectives, number, first)
    return result


def _copy_own(source: Mapping[int, _Fact], target: dict[int, _Fact], number: Numbers, first: int) -> None:
    """Copies what a log says of own entries; `number` has the own numbers of entries from `first` on, -1 for others."""
    for entry, fact in list(source.items()):  # at once: the log grows in another thread while steps are under way
        if 0 <= entry - first < len(number) - 1 and number[entry - first] >= 0:
            target[int(number[entry - first])] = fact


# Bodies


class _Bodies:
    """Bodies of what ran; activations in which the same happened, as most iterations of a loop, share one."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], tuple[Body, Numbers]] = {}

    def as_ran(self, activation: Activation, logged: Sequence[int]) -> tuple[Body, Numbers]:
        """The body of what ran of an activation, and the numbers that its nodes have in the body that was played."""
        facts, played = activation.facts, activation.body
        assert facts is not None  # as it was asked
        assert played.asked is not None
        nodes: Sequence[int] = range(len(played))
        body = played
        if played.gates is not None:
            nodes = sorted({*facts.shapes, *logged}) if played.asked.is_open else nodes
            body = _compiled(activation, nodes)
        columns = (
            tuple([known.get(n) for n in nodes]) for known in (facts.costs, facts.shapes, facts.sizes, facts.seats)
        )
        key = id(played), id(body), *columns  # a compiled body, which is kept, has nodes of its own
        if key not in self._known:
            numbers = np.array(nodes, np.int64)
            self._known[key] = _with_facts(replace(body, asked=None), played, numbers, facts), numbers
        return self._known[key]


def _compiled(activation: Activation, nodes: Sequence[int]) -> Body:
    """The body of the level in which only these nodes run."""
    levels, gates, run = activation.place.graph.levels, activation.body.gates, activation.run
    assert levels is not None  # as its Switches are undecided
    assert gates is not None
    number = run.frame if isinstance(run, PlayedLoop) else OUTSIDE
    graph, of = levels.graph, levels.frames.of

    def gives(src: int, output: int, dst: int) -> bool:
        """Whether an output gave a live token to a Merge or trigger of the activation."""
        if graph.node_class(src) is NodeClass.NEXT_ITERATION and isinstance(run, PlayedLoop):
            before = run.iterations.get(activation.place.number - 1)
            return before is not None and _gave(before, src, output)
        if of[src] == number:
            return _gave(activation, src, output)
        if graph.node_class(src) is NodeClass.ENTER and isinstance(run, PlayedLoop):
            is_first = not activation.place.number or dst not in levels.frames.all[number].merges
            return is_first and _gave(run.parent, src, output)
        inner = activation.opened.get(of[src])
        return inner is not None and _gave(inner.last, src, output)

    return levels.compiled(number, [gates.nodes[n] for n in nodes], gives)


def _gave(activation: Activation, node: int, output: int) -> bool:
    """Whether a node, by its number in the graph, had an output that was not dead."""
    gates, facts = activation.body.gates, activation.facts
    assert gates is not None  # as it is that of a level
    assert facts is not None  # as it was asked
    return facts.has(gates.local[node], output)


def _with_facts(body: Body, played: Body, nodes: Numbers, facts: NodeFacts) -> Body:
    """A body with the costs and shapes that its nodes had; `nodes` are their numbers in the one that was played."""
    asked = played.asked
    assert asked is not None  # as there are facts
    all_costs = [facts.costs.get(n, FREE) for n in nodes.tolist()]
    numbers = {cost: number for number, cost in enumerate(dict.fromkeys([FREE, *all_costs]))}
    is_free = np.array([cost.provenance == "free" for cost in all_costs], np.bool_)
    takes_time = (NodePart.DEFERRED, NodePart.JOINS)
    is_free &= np.array([asked.parts[n] not in takes_time for n in nodes.tolist()], np.bool_)
    duty = np.where(is_free, Duty.FREE, asked.duty[nodes]).astype(np.uint8)
    routes = {k: played.routes[n] for k, n in enumerate(nodes.tolist()) if n in played.routes and n in facts.sizes}
    duty[list(routes)] = Duty.TRANSFER
    distinct: dict[Shapes, int] = {}
    kinds = body.graph.kinds
    of_nodes = (
        facts.shapes.get(n) or (None,) * len(kinds[kind].output_types)
        for n, kind in zip(nodes.tolist(), body.graph.kind_of.tolist(), strict=True)
    )
    shape_of = np.array([distinct.setdefault(shapes, len(distinct)) for shapes in of_nodes], np.int32)
    return replace(
        body,
        shapes=KnownShapes(body.graph, list(distinct), shape_of),
        duty=duty,
        costs=list(numbers),
        cost_of=np.array([numbers[cost] for cost in all_costs], np.int64),
        time_ns=[cost.time_ns for cost in all_costs],
        routes=routes,
        copied_bytes={k: facts.sizes[int(nodes[k])] for k in routes},
        seats={k: facts.seats[n] for k, n in enumerate(nodes.tolist()) if n in facts.seats},
    )
