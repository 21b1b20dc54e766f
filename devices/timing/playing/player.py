"""Plays bodies on the simulated hardware without values: counts what each node waits for, and starts what is ready.

An *activation* is one run of a body. Its nodes have the rows from `base` on, so a row says which node of which
activation it is. The engine tells the player which rows were launched and which ended; the player counts down the
consumers of these rows, starts those that are ready, and passes free nodes at once.

    body            x (free) -> a (compute) -> b (compute)
    play            x passes: entry 0; a has no other input: started on its device
    ended(a)        b is started; and so on until nothing is left
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import InternalError
from ..hardware.engine import Duty, Engine
from ..hardware.streams import NO_TICKET

if TYPE_CHECKING:
    from ...cluster import Cluster
    from ..bodies.body import Body
    from ..hardware.log import Log


class Activation:
    """One run of a body: its rows begin at `base`, and `waits` says by node how many events it still waits for.

    `prefix` begins the names of its nodes in the timeline, `iteration` says which iterations of which loops it is, and
    `runs` how many equal ones it stands for.
    """

    __slots__ = ("base", "body", "iteration", "left", "open_merges", "places", "prefix", "runs", "waits")

    def __init__(self, body: Body, base: int, engine: Engine) -> None:
        self.body = body
        self.base = base
        self.prefix = self.iteration = ""
        self.runs = 1
        self.waits = body.waits.copy()
        self.left = len(body)  # nodes that have not ended
        self.open_merges = {merge for merges in body.into_merges.values() for merge in merges}
        self.places = [
            engine.place(duty, device) if Duty.COMPUTE <= duty <= Duty.WAIT else None
            for duty, device in zip(body.duty.tolist(), body.device.tolist(), strict=True)
        ]


class Player:
    """Plays one step; `activations` are all runs of bodies, in the order of their rows."""

    def __init__(self, cluster: Cluster, *, is_unlimited: bool = False) -> None:
        """`is_unlimited` is as in `Engine`."""
        self.engine = Engine(cluster, self, is_unlimited=is_unlimited)
        self.activations: list[Activation] = []
        self._owner: list[Activation] = []  # by row
        self._times: list[int] = []  # by row: its time on its device
        self._tickets: dict[int, int] = {}  # rows on a stream: the latest kernel that a value of theirs waits for

    @property
    def log(self) -> Log:
        """What has happened."""
        return self.engine.log

    def play(self, body: Body) -> None:
        """Plays a body from the present instant until nothing is left; InternalError if a node never became ready."""
        activation = self._begin(body)
        self.engine.run()
        if activation.left:
            stuck = next(n for n, waits in enumerate(activation.waits) if waits)
            raise InternalError(
                f"{activation.left} nodes never became ready in the simulation", node=body.graph.names[stuck]
            )

    def _begin(self, body: Body) -> Activation:
        activation = Activation(body, len(self._owner), self.engine)
        self.activations.append(activation)
        self._owner += [activation] * len(body)
        self._times += body.time_ns
        self._release(activation, [(node, -1) for node, waits in enumerate(body.waits) if not waits])
        return activation

    # The protocol `streams.Feeder`

    def time_ns(self, row: int) -> int:
        """The time of a row on its device."""
        return self._times[row]

    def launched(self, row: int, ticket: int, entry: int) -> bool:
        """The consumers on the same stream of a kernel count down."""
        activation = self._owner[row]
        ready: list[tuple[int, int]] = []
        node = row - activation.base
        self._count_down_on_stream(activation, node, ticket, entry, ready)
        if ready:
            self._release(activation, ready)
        starts = activation.body.consumers.starts
        if starts[node] != starts[node + 1] or node in activation.body.into_merges:
            return False
        activation.left -= 1
        return True

    def ended(self, row: int, entry: int) -> None:
        """The consumers of a row count down."""
        activation = self._owner[row]
        ready: list[tuple[int, int]] = []
        self._count_down(activation, row - activation.base, entry, ready)
        if ready:
            self._release(activation, ready)

    def _count_down(self, activation: Activation, node: int, entry: int, ready: list[tuple[int, int]]) -> None:
        """A node has ended: appends the nodes to `ready` that waited only for it."""
        body, waits = activation.body, activation.waits
        activation.left -= 1
        starts, targets = body.consumers
        for target in targets[starts[node] : starts[node + 1]]:
            waiting = waits[target] = waits[target] - 1
            if not waiting:
                ready.append((target, entry))
        if body.into_merges and node in body.into_merges:
            for merge in body.into_merges[node]:
                if merge in activation.open_merges:
                    activation.open_merges.remove(merge)
                    waits[merge] -= 1
                    if not waits[merge]:
                        ready.append((merge, entry))

    def _count_down_on_stream(
        self, activation: Activation, node: int, ticket: int, entry: int, ready: list[tuple[int, int]]
    ) -> None:
        """The value of a node will be there when the stream has completed `ticket`: those behind it on the stream may
        go on.
        """
        body, waits, places = activation.body, activation.waits, activation.places
        assert body.launch_consumers is not None  # as the body has nodes on a stream
        starts, targets = body.launch_consumers
        for target in targets[starts[node] : starts[node + 1]]:
            waiting = waits[target] = waits[target] - 1
            if not waiting:
                ready.append((target, entry))
            if places[target] is None:  # a kernel is behind its inputs in the stream in any case
                row = activation.base + target
                if self._tickets.get(row, NO_TICKET) < ticket:
                    self._tickets[row] = ticket

    def _release(self, activation: Activation, ready: list[tuple[int, int]]) -> None:
        """Starts ready nodes; free ones pass at once and release others. `ready` has the entry that released each."""
        body, engine, places, base = activation.body, self.engine, activation.places, activation.base
        while ready:
            node, cause = ready.pop()
            place = places[node]
            if place is not None:
                place.take(base + node, cause)
            elif node in body.routes and body.routes[node].links:
                engine.copy(base + node, body.routes[node], body.copied_bytes[node], cause)
            elif node in body.dead:
                self._count_down(activation, node, cause, ready)
            elif body.on_stream[node]:
                self._pass_on_stream(activation, node, cause, ready)
            else:
                self._count_down(activation, node, engine.passes(base + node, cause), ready)

    def _pass_on_stream(self, activation: Activation, node: int, cause: int, ready: list[tuple[int, int]]) -> None:
        """A free node passes on to its stream at once, and ends when the kernels before it have."""
        row = activation.base + node
        ticket = self._tickets.pop(row, NO_TICKET)
        stream = self.engine.streams[activation.body.device[node]]
        if stream is None or stream.has_completed(ticket):
            entry = self.engine.passes(row, cause)
            self._count_down_on_stream(activation, node, NO_TICKET, entry, ready)
            self._count_down(activation, node, entry, ready)
        else:
            stream.park(row, ticket)
            self._count_down_on_stream(activation, node, ticket, cause, ready)
