"""Plays bodies that are asked: nodes are computed one by one, and a Switch says only then which of its sides is dead.

A node is ready as in any body; what it does depends on its `NodePart`. Values go along the edges with the tokens, and
are gone when the node that they came to has taken them. A dead token makes the node that it comes to dead, except:

    Merge             goes on with its first live input; it is dead when all of its inputs are, or what enters its loop
    ControlTrigger    runs whatever comes

A dead node takes no device and leaves no entry in the log: it passes dead tokens on at once, before any live node goes
on. So what also waits for a dead node is released by a live one, as in a body that is known:

    Switch -> then -> a,  Switch -> else -> b;  a Merge after both a and b, by control edges
    `then` is taken     else and b die; then and a pass; a releases the Merge

As nobody knows which nodes are ever reached, an activation lasts as long as one of them is ready or runs; a receive
does from when its own inputs have come until its tensor has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ....graph.ops.record import NodeClass
from ...kernels.functions import Values
from ..bodies.body import Asked, NodePart, TokenEdges
from ..bodies.dependencies import TRANSFER
from ..hardware.streams import NO_TICKET
from .activation import Activation, NodeFacts, Passed, Tokens
from .joining import join

if TYPE_CHECKING:
    from ..bodies.levels import TokenTarget
    from .oracle import Computed, NodeOracle
    from .player import Player

_Released = list[tuple[int, int]]  # nodes and the entries that released them
_NONE: Values = ()


class Asking:
    """The rules of bodies that are asked, for one player."""

    def __init__(self, player: Player, oracle: NodeOracle) -> None:
        self.player = player
        self.oracle = oracle
        self._engine = player.engine

    def begun(self, activation: Activation) -> None:
        """An activation begins: counts the nodes that wait for nothing, or only for a tensor from elsewhere."""
        asked = activation.body.asked
        if asked is not None:
            activation.tokens = Tokens(dead=bytearray(len(activation.body)) if asked.is_open else None)
            activation.facts = NodeFacts()
            if activation.left_in is None:
                activation.left += len(asked.begins)
            else:
                for node in asked.begins:
                    _hold(activation, node)

    def time_ns(self, activation: Activation, row: int) -> int:
        """A device takes a node: computes it, and returns its time."""
        if self.oracle.is_over:
            return 0
        computed = self._compute(activation, row - activation.base)
        return 0 if computed is None else computed.time_ns

    def is_small(self, activation: Activation, node: int) -> bool:
        """Whether a node that is ready takes little."""
        tokens, _ = _columns(activation)
        small = tokens.small.pop(node, None)
        return self.oracle.is_small(tokens.inputs.get(node, [])) if small is None else small

    def launched(self, activation: Activation, row: int, ticket: int, entry: int) -> bool:
        """Passes the outputs of a kernel on to its stream; returns whether nobody needs to hear of its end."""
        if self.oracle.is_over:
            return True
        ready: _Released = []
        node, (tokens, asked) = row - activation.base, _columns(activation)
        assert asked.at_launch is not None  # as the body has kernels
        self._launch(activation, node, ticket, entry, tokens.outputs[node], ready)
        self._go_on(activation, ready)
        ends, launches = asked.at_end.starts, asked.at_launch.starts
        if ends[node] != ends[node + 1] or launches[node] == launches[node + 1]:
            return False
        if activation.body.gates is not None or activation.place.path.around is not None:
            return False  # a loop or call may wait for its end
        del tokens.outputs[node]
        self._end(activation, node, entry)
        return True

    def ended(self, activation: Activation, row: int, entry: int) -> None:
        """Passes the outputs of a node on, which no launch has passed on."""
        if self.oracle.is_over:
            return
        ready: _Released = []
        node, (tokens, _) = row - activation.base, _columns(activation)
        self._passes(activation, node, entry, tokens.outputs.pop(node), ready)
        self._go_on(activation, ready)

    def arrived(self, activation: Activation, node: int, outputs: Values, cause: int = -1) -> None:
        """A deferred node has its outputs; `cause` is the last entry of a function that it called.

        The member of a collective goes on when the clock says so.
        """
        tokens, asked = _columns(activation)
        tokens.outputs[node] = outputs
        if asked.parts[node] is not NodePart.JOINS:
            self.player.later(activation, node, cause)

    def deliver(self, activation: Activation, consumers: Sequence[TokenTarget], passed: Passed) -> None:
        """Passes tokens to nodes of an activation, given by their numbers in its graph, from another one."""
        gates = activation.body.gates
        assert gates is not None  # as another one feeds it
        for consumer, port, output in consumers:
            node = gates.local[consumer]
            if passed.ticket:
                self._note_ticket(activation, node, passed.ticket)
            if self._arrive(activation, node, port, output, passed.outputs, is_dead=passed.is_dead, source=passed.node):
                self.player.later(activation, node, passed.entry)

    def release(self, activation: Activation, ready: _Released) -> None:
        """Starts ready nodes; free ones pass at once and release others."""
        tokens, asked = _columns(activation)
        while (ready or tokens.dying) and not self.oracle.is_over:
            node, cause = (tokens.dying or ready).pop()
            if tokens.dead is not None and tokens.dead[node]:
                self._pass_dead(activation, node, cause, ready)
                continue
            match asked.parts[node]:
                case NodePart.TAKES_DEVICE:
                    self._take(activation, node, cause)
                case NodePart.MAY_BE_FREE:
                    self._compute_now(activation, node, cause, ready)
                case NodePart.SENDS:
                    value = self.oracle.sent(activation, node, tokens.inputs.pop(node))
                    entry = self._engine.passes(activation.base + node, cause)
                    self._passes(activation, node, entry, [value], ready)
                case NodePart.RECEIVES:
                    self._receive(activation, node, cause, ready)
                case NodePart.DEFERRED:
                    self._defer(activation, node, cause, ready)
                case NodePart.JOINS:
                    self._join(activation, node, cause)

    # Nodes

    def _compute(self, activation: Activation, node: int) -> Computed | None:
        tokens, _ = _columns(activation)
        computed = self.oracle.compute(activation, node, tokens.inputs.pop(node, []))
        if computed is not None:
            tokens.outputs[node] = computed.outputs
            self.player.shared.times[activation.base + node] = computed.time_ns
        return computed

    def _take(self, activation: Activation, node: int, cause: int) -> None:
        place = activation.places[node]
        assert place is not None  # as it takes time
        place.take(activation.base + node, cause)

    def _compute_now(self, activation: Activation, node: int, cause: int, ready: _Released) -> None:
        tokens, row = _columns(activation)[0], activation.base + node
        inputs = tokens.inputs.get(node, [])
        computed = self._compute(activation, node)
        ticket = self.player.take_ticket(row)
        if computed is None:
            return
        if not computed.is_free:
            tokens.small[node] = self.oracle.is_small(inputs)
            self._take(activation, node, cause)
            return
        outputs, stream = computed.outputs, self._engine.streams[activation.body.device[node]]
        on_stream = activation.body.on_stream[node]
        if on_stream and stream is not None and not stream.has_completed(ticket):
            stream.park(row, ticket)
            self._launch(activation, node, ticket, cause, outputs, ready)
            return
        entry = self._engine.passes(row, cause)
        tokens.outputs.pop(node)
        if on_stream:
            self._launch(activation, node, NO_TICKET, entry, outputs, ready)
        self._passes(activation, node, entry, outputs, ready)

    def _receive(self, activation: Activation, node: int, cause: int, ready: _Released) -> None:
        tokens, body, row = _columns(activation)[0], activation.body, activation.base + node
        (value,) = tokens.inputs.pop(node)
        size_bytes = self.oracle.received(activation, node, value)
        if size_bytes is None:
            return
        if node in body.routes:
            tokens.outputs[node] = [value]
            self._engine.copy(row, body.routes[node], size_bytes, cause)
        else:
            self._passes(activation, node, self._engine.passes(row, cause), [value], ready)

    def _defer(self, activation: Activation, node: int, cause: int, ready: _Released) -> None:
        """Starts a deferred node, or ends it if it has its outputs: a call at once, others later."""
        tokens, gates, row = _columns(activation)[0], activation.body.gates, activation.base + node
        is_call = gates is not None and node in gates.calls
        if node not in tokens.outputs:
            if is_call:
                self.player.call(activation, node, cause)
            else:
                self._engine.begin(row, cause)
                self.oracle.start(activation, node, tokens.inputs.pop(node, []))
        elif is_call:
            self._passes(activation, node, self._engine.passes(row, cause), tokens.outputs.pop(node), ready)
        else:
            delay_ns = self.oracle.finish(activation, node, tokens.outputs[node])
            if delay_ns:
                self._engine.after(delay_ns, partial(self._finish_later, activation, node))
            elif delay_ns is not None:
                self._finish(activation, node, ready)

    def _join(self, activation: Activation, node: int, cause: int) -> None:
        inputs = _columns(activation)[0].inputs.pop(node, [])
        seated = self.oracle.joins(activation, node, inputs)
        if seated is not None:
            join(self._engine, self.player, activation, node, seated, cause)

    def _finish(self, activation: Activation, node: int, ready: _Released) -> None:
        outputs = _columns(activation)[0].outputs.pop(node)
        self._passes(activation, node, self._engine.finish(activation.base + node), outputs, ready)

    def _finish_later(self, activation: Activation, node: int) -> None:
        if not self.oracle.is_over:
            ready: _Released = []
            self._finish(activation, node, ready)
            self._go_on(activation, ready)

    # Tokens

    def _go_on(self, activation: Activation, ready: _Released) -> None:
        self.release(activation, ready)
        self.player.release_later()

    def _passes(self, activation: Activation, node: int, entry: int, outputs: Values, ready: _Released) -> None:
        """A node has ended: passes on what no launch has."""
        self._count_down(activation, node, _columns(activation)[1].at_end, outputs, entry, ready)
        self.player.pass_on(activation, node, None, entry, outputs)
        self._end(activation, node, entry)

    def _launch(
        self, activation: Activation, node: int, ticket: int, entry: int, outputs: Values, ready: _Released
    ) -> None:
        """The values of a node will be there when the stream has completed `ticket`: those behind it may go on."""
        launches = _columns(activation)[1].at_launch
        assert launches is not None  # as the node is on a stream
        starts, targets, _, _ = launches
        for target in targets[starts[node] : starts[node + 1]]:
            self._note_ticket(activation, target, ticket)
        self._count_down(activation, node, launches, outputs, entry, ready)
        self.player.pass_on(activation, node, ticket, entry, outputs)

    def _note_ticket(self, activation: Activation, node: int, ticket: int) -> None:
        """A kernel is behind its inputs in the stream in any case; what may be free waits for them."""
        if _columns(activation)[1].parts[node] is NodePart.MAY_BE_FREE:
            self.player.note_ticket(activation.base + node, ticket)

    def _pass_dead(self, activation: Activation, node: int, cause: int, ready: _Released) -> None:
        tokens, asked = _columns(activation)
        tokens.inputs.pop(node, None)
        self.player.take_ticket(activation.base + node)
        if asked.at_launch is not None:
            self._count_down(activation, node, asked.at_launch, _NONE, cause, ready, is_dead=True)
            self.player.pass_on(activation, node, NO_TICKET, cause, is_dead=True)
        self._count_down(activation, node, asked.at_end, _NONE, cause, ready, is_dead=True)
        self.player.pass_on(activation, node, None, cause, is_dead=True)
        self._end(activation, node, cause, is_dead=True)

    def _end(self, activation: Activation, node: int, entry: int, *, is_dead: bool = False) -> None:
        """A node is over, and so may be its activation: with the last node that ran, whatever dead ones come after."""
        tokens, _ = _columns(activation)
        if not is_dead:
            tokens.latest = entry
        elif tokens.latest >= 0:
            entry = tokens.latest
        activation.left -= 1
        gates = activation.body.gates
        self.player.retire(activation, gates.place_of[node] if gates is not None else 0, entry)

    def _count_down(
        self,
        activation: Activation,
        node: int,
        ends: TokenEdges,
        outputs: Values,
        entry: int,
        ready: _Released,
        *,
        is_dead: bool = False,
    ) -> None:
        tokens, _ = _columns(activation)
        starts, targets, ports, numbers = ends
        for k in range(starts[node], starts[node + 1]):
            target = targets[k]
            if self._arrive(activation, target, ports[k], numbers[k], outputs, is_dead=is_dead):
                (tokens.dying if tokens.dead is not None and tokens.dead[target] else ready).append((target, entry))

    def _arrive(
        self,
        activation: Activation,
        node: int,
        port: int,
        output: int,
        outputs: Values,
        *,
        is_dead: bool,
        source: int = -1,
    ) -> bool:
        """A token comes to a node; returns whether the node is ready. `source` is a node of another activation."""
        tokens, asked = _columns(activation)
        value = None if is_dead or port == CONTROL else outputs[max(output, 0)]
        is_dead = is_dead or (tokens.dead is not None and port >= 0 and self.oracle.is_dead(value))
        if asked.is_merge[node] and port >= 0:
            if not self._merges(activation, node, source, is_dead=is_dead):
                return False
        elif is_dead and tokens.dead is not None and not asked.is_trigger[node] and not asked.is_merge[node]:
            tokens.dead[node] = 1
        if not is_dead and port != CONTROL:
            inputs = tokens.inputs.get(node)
            if inputs is None:
                inputs = tokens.inputs[node] = [None] * max(asked.num_inputs[node], 1)
            inputs[max(port, 0)] = value
        activation.waits[node] -= 1
        if asked.parts[node] is NodePart.RECEIVES:
            return self._comes_to_receive(activation, node, port)
        if activation.waits[node]:
            return False
        _hold(activation, node)
        return True

    def _merges(self, activation: Activation, node: int, source: int, *, is_dead: bool) -> bool:
        """Whether a Merge goes on with an input that comes to it now. No iteration follows what is dead at an Enter."""
        tokens, asked = _columns(activation)
        if node in tokens.taken:
            return False
        if is_dead:
            count = tokens.dead_inputs[node] = tokens.dead_inputs.get(node, 0) + 1
            if count < asked.num_inputs[node] and not _is_enter(activation, source):
                return False
            assert tokens.dead is not None  # as a token is dead
            tokens.dead[node] = 1
        tokens.taken.add(node)
        return True

    def _comes_to_receive(self, activation: Activation, node: int, port: int) -> bool:
        """As `_arrive`, after the token of a receive was counted: it lasts from when its own inputs are there."""
        tokens, waits = _columns(activation)[0], activation.waits[node]
        if port == TRANSFER:
            tokens.sent.add(node)
            return not waits
        if waits == (node not in tokens.sent):
            _hold(activation, node)
        return not waits


CONTROL = -1
"""the port of a control edge"""


def _columns(activation: Activation) -> tuple[Tokens, Asked]:
    assert activation.tokens is not None  # as its body is asked
    assert activation.body.asked is not None
    return activation.tokens, activation.body.asked


def _is_enter(activation: Activation, source: int) -> bool:
    gates = activation.body.gates
    return source >= 0 and gates is not None and gates.whole.node_class(source) is NodeClass.ENTER


def _hold(activation: Activation, node: int) -> None:
    """The activation lasts until the end of a node."""
    activation.left += 1
    if activation.left_in is not None:
        assert activation.body.gates is not None  # as it is an iteration
        activation.left_in[activation.body.gates.place_of[node]] += 1
