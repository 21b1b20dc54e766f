"""The log of a played step as the events of a timeline.

What is known of a node (device, op, operations, bytes) is a column of its body. An entry of the log finds it by the
activation that its row belongs to, for all entries at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ....graph.ops.record import RECVS, SENDS
from ..events import COMMUNICATION_STREAM, COMPUTE_STREAM, KINDS, Events, TextColumn, as_numbers
from ..hardware.engine import Duty
from ..hardware.log import COPY, KINDS as ENTRY_KINDS, LAUNCH, NODE
from ..memory.times import NEVER, Times
from .bounds import duration_bounds

if TYPE_CHECKING:
    from ....graph.arrays import Integers, Numbers
    from ...topology import Route
    from ..bodies.body import Body
    from ..costs.source import OpCost
    from ..hardware.log import Log

_STREAMS = {Duty.HOST: "host", Duty.WAIT: "wait"}


class RecordedActivation(Protocol):
    """One run of a body: an `Activation`, or what ran of it."""

    @property
    def body(self) -> Body:
        """What ran."""

    @property
    def base(self) -> int:
        """Its first row."""

    @property
    def prefix(self) -> str:
        """Begins the names of its nodes."""

    @property
    def iteration(self) -> str:
        """In which iterations of which loops it ran."""


class Recorded(Protocol):
    """Steps that have run: a player has played one, or a session several."""

    @property
    def log(self) -> Log:
        """What happened, and when."""

    @property
    def activations(self) -> Sequence[RecordedActivation]:
        """All runs of bodies, in the order of their rows, which follow each other from row 0 on."""


def events_of(player: Recorded, devices: Sequence[str]) -> Events:
    """The events of a step that has been played, in the order of its log; `devices` are the names of the cluster's."""
    return _Recording(player, devices).events()


def times_of(log: Log, rows: int, offsets: tuple[Numbers | int, Numbers | int] = (0, 0)) -> Times:
    """When every row ran: by entry its start and its end so much later than the log says."""
    row, kind = np.divmod(np.frombuffer(log.entries, np.int64), ENTRY_KINDS)
    columns = zip((log.start_ns, log.end_ns), offsets, strict=True)
    log_start, log_end = (np.frombuffer(column, np.int64) + offset for column, offset in columns)
    start, end, order = (np.full(rows, NEVER) for _ in range(3))
    ran, copied = np.flatnonzero(kind == NODE), np.flatnonzero(kind == COPY)
    start[row[ran]], end[row[ran]], order[row[ran]] = log_start[ran], log_end[ran], ran
    start[row[copied]] = log_start[copied]
    return Times(start, end, order)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Columns by entry: kind of entry, activation, node in its body, and its position among the nodes of all bodies."""

    kind: Numbers
    row: Numbers
    activation: Numbers
    node: Numbers
    position: Numbers


class _Recording:
    def __init__(self, player: Recorded, devices: Sequence[str]) -> None:
        self.log = player.log
        self.devices = devices
        self.activations = player.activations
        self.bodies = list({id(activation.body): activation.body for activation in player.activations}.values())
        self.entries = self._entries()

    def events(self) -> Events:
        """The columns of all entries."""
        entries, log = self.entries, self.log
        is_copy = entries.kind == COPY
        start, end = (np.frombuffer(column, np.int64) for column in (log.start_ns, log.end_ns))
        costs = [cost for body in self.bodies for cost in body.costs]
        cost_of = self._cost_of()
        flops, sizes, provenance = self._costs(costs, cost_of)
        kind = self._kinds(is_copy).astype(np.uint8)
        sizes[is_copy] = self._copied_bytes(np.flatnonzero(is_copy))
        taken = log.collectives
        sizes[list(taken)] = [each.plan.size_bytes for each in taken.values()]
        return Events(
            device=TextColumn(self._devices(is_copy), lambda: self.devices),
            stream=self._streams(is_copy),
            node=self._nodes(is_copy),
            op=self._ops(is_copy),
            kind=kind,
            start_ns=start,
            end_ns=end,
            bytes=sizes,
            flops=flops,
            provenance=provenance,
            cause=np.frombuffer(log.causes, np.int64),
            iteration=TextColumn(entries.activation, lambda: [activation.iteration for activation in self.activations]),
            runs=np.ones(len(start), np.int64),
            make_bounds=lambda: duration_bounds(costs, cost_of, kind, end - start, log.collectives),
        )

    def _entries(self) -> _Entries:
        row, kind = np.divmod(np.frombuffer(self.log.entries, np.int64), ENTRY_KINDS)
        bases = np.array([activation.base for activation in self.activations], np.int64)
        activation = np.searchsorted(bases, row, "right") - 1
        node = row - bases[activation]
        lengths = np.array([len(body) for body in self.bodies], np.int64)
        first = dict(zip(map(id, self.bodies), (np.cumsum(lengths) - lengths).tolist(), strict=True))
        first_of = np.array([first[id(a.body)] for a in self.activations], np.int64)
        return _Entries(kind, row, activation, node, first_of[activation] + node)

    def _of_nodes(self, columns: Sequence[Integers]) -> Numbers:
        """By entry what the columns, one per body, say of its node."""
        return np.concatenate(columns).astype(np.int64)[self.entries.position]

    def _devices(self, is_copy: Numbers) -> Numbers:
        """A copy is an event of the device that sends."""
        device = self._of_nodes([body.device for body in self.bodies])
        senders = [body.device[np.maximum(body.graph.sender, 0)] for body in self.bodies]
        device[is_copy] = self._of_nodes(senders)[is_copy]
        return device

    def _kinds(self, is_copy: Numbers) -> Numbers:
        numbers = [KINDS.index("compute") + np.zeros(len(body), np.uint8) for body in self.bodies]
        for kind, body in zip(numbers, self.bodies, strict=True):
            kind[body.graph.of_class(*SENDS)] = KINDS.index("send")
            kind[body.graph.of_class(*RECVS)] = KINDS.index("recv")
            kind[body.duty == Duty.WAIT] = KINDS.index("wait")
            kind[body.duty == Duty.COLLECTIVE] = KINDS.index("collective")
        column = self._of_nodes(numbers)
        column[is_copy] = KINDS.index("copy")
        column[self.entries.kind == LAUNCH] = KINDS.index("launch")
        return column

    def _streams(self, is_copy: Numbers) -> TextColumn:
        names = {COMPUTE_STREAM: 0, "launch": 1, **{name: 2 + i for i, name in enumerate(_STREAMS.values())}}
        by_duty = np.array([names[_STREAMS.get(duty, COMPUTE_STREAM)] for duty in Duty], np.int64)
        column = self._of_nodes([by_duty[body.duty] for body in self.bodies])
        column[self.entries.kind == LAUNCH] = names["launch"]
        for entry, lane in self.log.lanes.items():
            column[entry] = names.setdefault(f"{COMPUTE_STREAM}:{lane}", len(names))
        for entry, taken in self.log.collectives.items():
            column[entry] = names.setdefault(f"{COMMUNICATION_STREAM}:{taken.group}", len(names))
        copies = np.flatnonzero(is_copy)
        of_route: dict[int, int] = {}  # by identity: many copies take one route
        numbers = []
        for route in self._routes(copies):
            number = of_route.get(id(route))
            if number is None:
                number = of_route[id(route)] = names.setdefault(route.links[0].stream_name, len(names))
            numbers.append(number)
        column[copies] = numbers
        return TextColumn(column, lambda: list(names))

    def _nodes(self, is_copy: Numbers) -> TextColumn:
        """Names by row; those of copied tensors come after them."""
        copies, count = np.flatnonzero(is_copy), sum(len(activation.body) for activation in self.activations)
        numbers = self.entries.row.copy()
        numbers[copies] = count + np.arange(len(copies))

        def names() -> list[str]:
            of_nodes = []
            for activation in self.activations:
                prefix = activation.prefix
                of_nodes += [prefix + name for name in activation.body.graph.names]
            return of_nodes + [self._tensor_name(entry) for entry in copies.tolist()]

        return TextColumn(numbers, names)

    def _tensor_name(self, copy: int) -> str:
        activation = self.activations[int(self.entries.activation[copy])]
        tensor = activation.body.graph.transfers.of(int(self.entries.node[copy])).tensor_name
        return f"{activation.prefix}{tensor}"

    def _ops(self, is_copy: Numbers) -> TextColumn:
        first, columns = 1, []
        for body in self.bodies:
            columns.append(body.graph.kind_of + first)
            first += len(body.graph.kinds)
        numbers = self._of_nodes(columns)
        numbers[is_copy] = 0
        return TextColumn(numbers, lambda: ["copy", *chain.from_iterable(body.graph.ops for body in self.bodies)])

    def _cost_of(self) -> Numbers:
        """By entry the number of its cost among those of all bodies."""
        first = np.cumsum([0, *(len(body.costs) for body in self.bodies[:-1])]).tolist()
        return self._of_nodes([body.cost_of + begin for body, begin in zip(self.bodies, first, strict=True)])

    def _costs(self, costs: Sequence[OpCost], numbers: Numbers) -> tuple[Numbers, Numbers, TextColumn]:
        """Operations, bytes and provenance; launches and copies have none of their node's."""
        names: dict[str, int] = {"free": 0, "launch": 1}
        table = [(c.flops, c.bytes, names.setdefault(c.provenance, len(names))) for c in costs]
        flops, sizes, provenance = (as_numbers([row[i] for row in table])[numbers] for i in range(3))
        of_node = np.isin(self.entries.kind, (LAUNCH, COPY), invert=True)
        flops[~of_node] = sizes[~of_node] = 0
        provenance[self.entries.kind == LAUNCH] = names["launch"]
        copies = np.flatnonzero(self.entries.kind == COPY)
        provenance[copies] = [names.setdefault(name, len(names)) for name in self._bottlenecks(copies)]
        for entry, taken in self.log.collectives.items():
            provenance[entry] = names.setdefault(taken.plan.name, len(names))
        return flops, sizes, TextColumn(provenance, lambda: list(names))

    def _bottlenecks(self, copies: Numbers) -> list[str]:
        """The name of the link that limited the rate of each copy."""
        slowest: dict[int, str] = {}  # by identity of the route
        names = []
        for copy, route in zip(copies.tolist(), self._routes(copies), strict=True):
            name = self.log.bottlenecks.get(copy) or slowest.get(id(route))
            if name is None:
                name = slowest[id(route)] = min(route.links, key=lambda link: link.bandwidth_bytes_per_s).name
            names.append(name)
        return names

    def _routes(self, copies: Numbers) -> list[Route]:
        """The route of each copy."""
        routes = [activation.body.routes for activation in self.activations]
        nodes, activations = self.entries.node[copies].tolist(), self.entries.activation[copies].tolist()
        return [routes[activation][node] for node, activation in zip(nodes, activations, strict=True)]

    def _copied_bytes(self, copies: Numbers) -> list[int]:
        nodes, activations = self.entries.node[copies].tolist(), self.entries.activation[copies].tolist()
        return [self.activations[a].body.copied_bytes[node] for node, a in zip(nodes, activations, strict=True)]
