"""Plays bodies on the simulated hardware: counts what each node waits for, and starts what is ready.

An *activation* is one run of a body. Its nodes have the rows from `base` on, so a row says which node of which
activation it is. The engine tells the player which rows were launched and which ended; the player counts down the
consumers of these rows, starts those that are ready, and passes free nodes at once.

    body            x (free) -> a (compute) -> b (compute)
    play            x passes: entry 0; a has no other input: started on its device
    ended(a)        b is started; and so on until nothing is left

What runs, and how long it takes, says an oracle (see `oracle`); the nodes of bodies that are asked are played by
`asking`, by the same rules and one more for dead tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ....errors import InvalidArgumentError
from ....graph.analysis.joined import listed_waits
from ..bodies.body import rank_of
from ..hardware.iterations import RowTurn
from ..hardware.streams import NO_TICKET, RowName
from .activation import Activation, Passed, Place, PlayedRun
from .asking import Asking
from .folding import Folding
from .joining import join, missing_members
from .loop_run import LoopRun
from .passing import pass_alone
from .pieces import loads_in
from .processors import ProcessorPlay, only_computes

if TYPE_CHECKING:
    from ..bodies.body import Body
    from ..bodies.levels import TokenTarget
    from ..bodies.scripts import Script
    from ..hardware.log import Log
    from .oracle import NodeOracle, Oracle
    from .shared_hardware import SharedHardware

_LISTED = 3


class Player:
    """Plays one step; `activations` are all its runs of bodies, in the order of their rows."""

    def __init__(
        self, shared: SharedHardware, oracle: Oracle, *, nodes: NodeOracle | None = None, folds: bool = False
    ) -> None:
        """With `nodes`, who is asked about nodes, all bodies are asked. Without, the hardware is for this step alone.

        With `folds` equal iterations of a loop are played once, see `folding`: the events are the same, in blocks.
        """
        self.shared = shared
        self.engine = shared.engine
        self.oracle = oracle
        self.activations: list[Activation] = []
        self.asking = None if nodes is None else Asking(self, nodes)
        self.folding = Folding(self)
        profiles = shared.cluster.profiles
        self._folds = folds and not (profiles.slow or profiles.degrade)
        if nodes is None:
            shared.serve(self)
        self._owner = shared.owners  # by row
        self._open: dict[Activation, None] = {}  # activations that have not ended
        self._later: deque[tuple[Activation, list[tuple[int, int]]]] = deque()  # ready nodes of other activations
        self._tickets: dict[int, int] = {}  # rows on a stream: the latest kernel that a value of theirs waits for

    @property
    def log(self) -> Log:
        """What has happened."""
        return self.shared.log

    def link_loads(self, link: str) -> list[tuple[int, int, float]]:
        """(from ns, to ns, bytes/s) that a link carried in the time of the step."""
        return loads_in(self.folding.pieces(), self.engine.network, link)

    def play(self, script: Script) -> None:
        """Plays a script from the present instant until nothing is left.

        Raises InvalidArgumentError for a step that cannot go on before all its nodes have run, with the receives that
        wait and what they wait for; and for a list of counts or branches that is too short.
        """
        self.play_body(script.root(0, 0), Place(script))

    def play_body(self, body: Body, place: Place) -> None:
        """Plays the body of a step, and what it leads to; raises as `play`."""
        activation = self.begin(body, place, None, -1)
        if self.asking is None and only_computes(body, self.shared):
            ready = self._later.pop()[1] if self._later else []
            now = ProcessorPlay(activation, self.shared.cluster, self.log).play(ready)
        else:
            now = self._play_on(body)
        if activation.left:
            raise self._stuck(now)

    def _play_on(self, body: Body) -> int:
        """Plays until nothing is left to happen; returns when that is."""
        self.release_later()
        if body.gates is None or not self._folds:
            self.engine.run()
        else:
            self.engine.run_folding(self.folding.begun, self.folding.check)
        return self.engine.now()

    def _stuck(self, now: int) -> InvalidArgumentError:
        """The error for nodes that wait when nothing is left to happen; a call waits for the nodes that it runs."""
        waiting = [
            (activation, n) for activation in self._open for n, waits in enumerate(activation.waits) if waits > 0
        ]
        receives = [(activation, n) for activation, n in waiting if activation.body.graph.sender[n] >= 0]
        first, n = (receives or waiting)[0]
        names = [repr(activation.prefix + activation.body.graph.names[n]) for activation, n in waiting[:_LISTED]]
        nodes = f"{len(waiting)} nodes wait for others that never run, such as {', '.join(names)}"
        return InvalidArgumentError(
            f"the simulation cannot go on at {now} ns: {'; '.join([*missing_members(self.engine, self.owner), nodes])}"
            + listed_waits(activation.body.graph.wait_of(n, activation.prefix) for activation, n in receives),
            node=first.prefix + first.body.graph.names[n],
            op=first.body.graph.op(n),
        )

    @property
    def next_row(self) -> int:
        """The first row of the next activation."""
        return len(self._owner)

    # Loops and calls

    def owner(self, row: int) -> Activation:
        """The activation that a row belongs to."""
        return self._owner[row]

    def open_activations(self) -> Iterable[Activation]:
        """Those that have not ended, in the order of their rows."""
        return self._open

    def tickets(self, name: RowName) -> Hashable:
        """The kernels that values still wait for, by the names of the rows that pass them on."""
        waiting = []
        for row, ticket in sorted(self._tickets.items()):
            activation = self._owner[row]
            stream = self.engine.streams[activation.body.device[row - activation.base]]
            if stream is not None and not stream.has_completed(ticket):
                waiting.append((name(row), stream.age(ticket)))
        return tuple(waiting)

    def begun(self, loop: PlayedRun) -> None:
        """An iteration begins, and all of the loop run alike."""
        self.folding.begun[loop] = None

    def begin(self, body: Body, place: Place, run: PlayedRun | None, cause: int) -> Activation:
        """Begins an activation; its nodes without inputs are released by the entry `cause`."""
        activation = self.shared.begin(body, place, run, self)
        if run is not None:
            run.began(activation)
        self.activations.append(activation)
        self._open[activation] = None
        if self.asking is not None:
            self.asking.begun(activation)
        nodes = range(len(body)) if body.asked is None else body.asked.begins
        ready = [(node, cause) for node in nodes if not body.waits[node]]
        if ready:
            self._later.append((activation, ready))
        elif not activation.left and run is not None:
            run.ended(activation, cause)
        return activation

    def deliver(self, activation: Activation, consumers: Sequence[TokenTarget], passed: Passed) -> None:
        """Counts down nodes of an activation, given by their numbers in its graph, that another one has fed."""
        if self.asking is not None:
            self.asking.deliver(activation, consumers, passed)
            return
        gates, waits = activation.body.gates, activation.waits
        assert gates is not None  # a body that another one feeds has gates
        for consumer, _, _ in consumers:
            node = gates.local[consumer]
            if node < 0:
                continue
            if passed.ticket and activation.places[node] is None:
                self.note_ticket(activation.base + node, passed.ticket)
            waits[node] -= 1
            if not waits[node]:
                self._later.append((activation, [(node, passed.entry)]))

    def hold(self, activation: Activation, place: int) -> None:
        """A loop inside an activation begins in a partition: the activation lasts as long."""
        activation.left += 1
        if activation.left_in is not None:
            activation.left_in[place] += 1

    def left(self, activation: Activation, place: int, entry: int) -> None:
        """A loop inside an activation has ended in a partition."""
        activation.left -= 1
        self.retire(activation, place, entry)

    def retire(self, activation: Activation, place: int, entry: int) -> None:
        """Something of an activation has ended in a partition: tells its loop or call if it was the last."""
        run, left_in = activation.run, activation.left_in
        if not activation.left:
            self._open.pop(activation, None)
        if left_in is not None:
            left_in[place] -= 1
            if not left_in[place]:
                assert isinstance(run, LoopRun)
                run.retire(place, activation.place.number, entry)
        elif not activation.left and run is not None:
            run.ended(activation, entry)

    def call_ended(self, caller: Activation, node: int, cause: int) -> None:
        """The functions that a node called have ended: it passes, but later, as the ends of many calls may follow."""
        self.later(caller, node, cause)

    def later(self, activation: Activation, node: int, cause: int) -> None:
        """A node is ready, and starts after all that is being released."""
        self._later.append((activation, [(node, cause)]))

    def pass_on(
        self,
        activation: Activation,
        node: int,
        ticket: int | None,
        entry: int,
        outputs: Sequence[Any] = (),  # Any: tensors of any type
        *,
        is_dead: bool = False,
    ) -> None:
        """A node has ended, or with a ticket has been launched: passes on what leaves the body through it."""
        gates = activation.body.gates
        if gates is None:
            return
        frame = gates.enters.get(node)
        is_next = node in gates.nexts
        if frame is None and not is_next and node not in gates.exits:
            return
        passed, place, run = (
            Passed(gates.nodes[node], ticket, entry, outputs, is_dead),
            gates.place_of[node],
            activation.run,
        )
        if frame is not None:
            loop = activation.opened.get(frame)
            if loop is None:
                loop = activation.opened[frame] = LoopRun(self, self.oracle, activation, frame)
            assert isinstance(loop, LoopRun)  # the player has opened it
            loop.entered(place, passed)
        elif isinstance(run, LoopRun):
            if is_next:
                run.next(activation, place, passed)
            else:
                run.exited(activation, place, passed)

    def call(self, activation: Activation, node: int, cause: int) -> None:
        """A node that calls functions begins to."""
        run = self.oracle.call(self, activation, node)
        activation.calls[node] = run
        run.begin(cause)

    def release_later(self) -> None:
        """Starts what has become ready in other activations."""
        while self._later:
            self.release(*self._later.popleft())

    def note_ticket(self, row: int, ticket: int) -> None:
        """A value that a row passes on is there when a stream has completed a ticket."""
        if self._tickets.get(row, NO_TICKET) < ticket:
            self._tickets[row] = ticket

    def take_ticket(self, row: int) -> int:
        """The ticket that a row which is ready waits for."""
        return self._tickets.pop(row, NO_TICKET)

    # The protocol `streams.Feeder`

    def time_ns(self, row: int) -> int:
        """The time of a row on its device, of a body that is asked."""
        assert self.asking is not None  # the times of all other rows are known
        return self.asking.time_ns(self._owner[row], row)

    def turn(self, row: int) -> RowTurn:
        """What decides when a row of overlapping iterations runs, of a body that is asked: how much it takes."""
        assert self.asking is not None  # that of all other rows is known
        activation = self._owner[row]
        node = row - activation.base
        return RowTurn(self.asking.is_small(activation, node), rank_of(activation.body, node, activation.base))

    def launched(self, row: int, ticket: int, entry: int) -> bool:
        """The consumers on the same stream of a kernel count down."""
        activation = self._owner[row]
        if self.asking is not None:
            return self.asking.launched(activation, row, ticket, entry)
        ready: list[tuple[int, int]] = []
        node = row - activation.base
        self._count_down_on_stream(activation, node, ticket, entry, ready)
        if ready:
            self.release(activation, ready)
        if self._later:
            self.release_later()
        starts = activation.body.consumers.starts
        if starts[node] != starts[node + 1] or node in activation.body.into_merges:
            return False
        if activation.body.gates is not None or activation.run is not None:
            return False  # a loop or call may wait for its end
        activation.left -= 1
        return True

    def ended(self, row: int, entry: int) -> None:
        """The consumers of a row count down."""
        activation = self._owner[row]
        if self.asking is not None:
            self.asking.ended(activation, row, entry)
            return
        ready: list[tuple[int, int]] = []
        self._count_down(activation, row - activation.base, entry, ready)
        if ready:
            self.release(activation, ready)
        if self._later:
            self.release_later()

    def _count_down(self, activation: Activation, node: int, entry: int, ready: list[tuple[int, int]]) -> None:
        """A node has ended: appends the nodes to `ready` that waited only for it."""
        body, waits = activation.body, activation.waits
        activation.left -= 1
        starts, targets = body.consumers
        for target in targets[starts[node] : starts[node + 1]]:
            waiting = waits[target] = waits[target] - 1
            if not waiting:
                ready.append((target, entry))
        if body.gates is not None or activation.run is not None:
            self.pass_on(activation, node, None, entry)
            self.retire(activation, body.gates.place_of[node] if body.gates is not None else 0, entry)
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
                self.note_ticket(activation.base + target, ticket)
        if body.gates is not None:
            self.pass_on(activation, node, ticket, entry)

    def release(self, activation: Activation, ready: list[tuple[int, int]]) -> None:
        """Starts ready nodes; free ones pass at once and release others. `ready` has the entry that released each."""
        if self.asking is not None:
            self.asking.release(activation, ready)
            return
        if activation.passes is not None:
            pass_alone(activation, activation.passes, ready, self.log, self.engine.now(), self._start)
        while ready:
            self._start(activation, *ready.pop(), ready)

    def _start(self, activation: Activation, node: int, cause: int, ready: list[tuple[int, int]]) -> None:
        """Starts a node that is ready; a free one passes and appends those that it releases."""
        body, base, place = activation.body, activation.base, activation.places[node]
        if place is not None:
            place.take(base + node, cause)
        elif node in body.routes and body.routes[node].links:
            self.engine.copy(base + node, body.routes[node], body.copied_bytes[node], cause)
        elif node in body.seats:
            join(self.engine, self, activation, node, body.seats[node], cause)
        elif body.gates is not None and node in body.gates.calls and node not in activation.calls:
            self.call(activation, node, cause)
        elif body.on_stream[node]:
            self._pass_on_stream(activation, node, cause, ready)
        else:
            self._count_down(activation, node, self.engine.passes(base + node, cause), ready)

    def _pass_on_stream(self, activation: Activation, node: int, cause: int, ready: list[tuple[int, int]]) -> None:
        """A free node passes on to its stream at once, and ends when the kernels before it have."""
        row = activation.base + node
        ticket = self.take_ticket(row)
        stream = self.engine.streams[activation.body.device[node]]
        if stream is None or stream.has_completed(ticket):
            entry = self.engine.passes(row, cause)
            self._count_down_on_stream(activation, node, NO_TICKET, entry, ready)
            self._count_down(activation, node, entry, ready)
        else:
            stream.park(row, ticket)
            self._count_down_on_stream(activation, node, ticket, cause, ready)
