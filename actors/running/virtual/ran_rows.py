"""Rows that have run as what events are made of: activations, and the entries of the log that belong to them.

A log has the entries of all steps that were under way together on the hardware. Those of some rows are taken out:

    log of the hardware     rows 0-9 step 1    10-14 step 2    5 again    ...      from 700 ns on
    own log of step 2                           0-4                                 from 0 on
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ....devices.timing.hardware.engine import Duty
from ....devices.timing.hardware.log import KINDS, Log
from .body import FREE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ....devices.timing.costs.source import OpCost
    from ....devices.topology import Route
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ....graph.columns import Ids
    from ....graph.dtypes import Shapes
    from .rows import Rows

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True)
class RanBody:
    """What ran of a body; a `recording.RecordedBody`, and with the shapes of its tensors a `tensors.TensorShapes`."""

    graph: JoinedGraph
    device: Numbers
    duty: NDArray[np.uint8]
    costs: list[OpCost]
    cost_of: Numbers
    routes: dict[int, Route]
    copied_bytes: dict[int, int]
    distinct: list[Shapes]
    shape_of: Ids

    def __len__(self) -> int:
        return len(self.device)

    def of(self, n: int) -> Shapes:
        """The shapes of the outputs of a node."""
        return self.distinct[int(self.shape_of[n])]


class Activation(NamedTuple):
    """One run of a body; a `recording.PlayedBody`."""

    body: RanBody
    base: int
    prefix: str
    iteration: str


class OwnEntries(NamedTuple):
    """What a step has done; a `recording.Played`."""

    log: Log
    activations: list[Activation]


class Entries(NamedTuple):
    """Entries of the log of the hardware: from `first` up to `end`, those that are their rows' own."""

    log: Log
    first: int
    end: int


def own_log(rows: Sequence[Rows], entries: Entries, start_ns: int) -> Log:
    """The entries that belong to rows, which are in order, numbered from 0; times are counted from `start_ns`.

    A cause that belongs to other rows is left out.
    """
    log, first, end = entries
    numbers, causes, starts, ends = (
        np.array(column[first:end], np.int64) for column in (log.entries, log.causes, log.start_ns, log.end_ns)
    )
    row, kind = np.divmod(numbers, KINDS)
    bases, lengths = np.array([r.base for r in rows], np.int64), np.array([len(r.body) for r in rows], np.int64)
    owner = np.searchsorted(bases, row, "right") - 1
    own = np.flatnonzero((owner >= 0) & (row < bases[owner] + lengths[owner]))
    number = np.full(len(numbers) + 1, -1)
    number[own] = np.arange(len(own))
    shift = np.cumsum(lengths) - lengths - bases
    result = Log()
    for column, values in (
        (result.entries, (row[own] + shift[owner[own]]) * KINDS + kind[own]),
        (result.causes, number[np.maximum(causes[own] - first, -1)]),
        (result.start_ns, starts[own] - start_ns),
        (result.end_ns, ends[own] - start_ns),
    ):
        column.frombytes(values.tobytes())
    _copy_own(log.lanes, result.lanes, number, first)
    _copy_own(log.bottlenecks, result.bottlenecks, number, first)
    return result


def _copy_own(source: Mapping[int, _Fact], target: dict[int, _Fact], number: Numbers, first: int) -> None:
    """Copies what a log says of own entries; `number` has the own numbers of entries from `first` on, -1 for others."""
    for entry, fact in list(source.items()):  # at once: the log grows in another thread while steps are under way
        if 0 <= entry - first < len(number) - 1 and number[entry - first] >= 0:
            target[int(number[entry - first])] = fact


def activations_of(rows: Sequence[Rows]) -> list[Activation]:
    """The activations of rows, numbered from 0."""
    base, activations = 0, []
    for r in rows:
        activations.append(Activation(_ran(r), base, r.scope, r.iteration))
        base += len(r.body)
    return activations


def _ran(rows: Rows) -> RanBody:
    """What an activation ran, with the costs and shapes that its nodes had."""
    virtual, graph, count = rows.body, rows.body.graph, len(rows.body)
    costs = {cost: number for number, cost in enumerate(dict.fromkeys([FREE, *rows.costs.values()]))}
    cost_of = np.array([costs[rows.costs.get(n, FREE)] for n in range(count)], np.int64)
    is_free = np.array([cost.provenance == "free" for cost in costs], np.bool_)[cost_of]
    is_free[[n for n in virtual.deferred if not virtual.calls_functions(n)]] = False
    duty = np.where(is_free, Duty.FREE, virtual.duty).astype(np.uint8)
    routes = {n: route for n, route in virtual.routes.items() if n in rows.costs}
    duty[list(routes)] = Duty.TRANSFER
    shapes: dict[Shapes, int] = {}
    never = [(None,) * len(kind.output_types) for kind in graph.kinds]  # of nodes that did not run
    of_nodes = (rows.shapes.get(n) or never[kind] for n, kind in enumerate(graph.kind_of.tolist()))
    shape_of = np.array([shapes.setdefault(of_node, len(shapes)) for of_node in of_nodes], np.int32)
    return RanBody(
        graph=graph,
        device=np.array(virtual.device, np.int64),
        duty=duty,
        costs=list(costs),
        cost_of=cost_of,
        routes=routes,
        copied_bytes={n: rows.sizes[n] for n in routes},
        distinct=list(shapes),
        shape_of=shape_of,
    )
