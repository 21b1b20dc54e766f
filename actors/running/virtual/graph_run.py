"""One run of a graph on simulated hardware: the graph of a request, or the body of a function that a node calls.

A ready node is not computed at once, but given to the hardware:

    free node               passes at once
    computed by a kernel    is computed when its device takes it; from the shapes follows how long it takes there.
                            Its outputs go on when it has ended. On a GPU it is computed when it is launched; what comes
                            after it on the stream is then launched too, everything else waits for its end.
    receive                 when its tensor was sent, the bytes cross the links; it goes on when they have arrived
    deferred node           (a queue, a call) its kernel is started; it goes on when that has its outputs

The rows of a run are `base + joint number`; every iteration of a loop has rows of its own. Ready nodes are given to the
hardware in the order of the player of a simulation (`devices/timing/playing`): the latest first, depth first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ....errors import InternalError, InvalidArgumentError, PartitaError, of_kernel
from ....rendezvous import Received
from ...plans.instructions import DEAD, passed_on
from ...plans.output_checks import check_received
from ...plans.roles import Role
from ..pending import NodeNames, add_call_chain
from ..tokens.frames import RunningFrame, Target, Token
from ..tokens.propagation import Propagation
from ..tokens.results import LiveResults
from .caller import NOBODY, Caller, Sent
from .iterations import Iterations
from .node_run import NO_TICKET, NodeRun, VirtualCall

if TYPE_CHECKING:
    from ....rendezvous import Outcome
    from ..device_actor import DeviceActor
    from ..interpretation import Interpretation
    from .body import VirtualBody
    from .virtual_step import VirtualStep

Values = Sequence[Any]  # tensors of any type


class GraphRun(Propagation):
    """One run of a body in a step. `ended` is called when all nodes that can run have."""

    def __init__(
        self,
        virtual: VirtualStep,
        body: VirtualBody,
        actor: DeviceActor,
        feeds: Values,
        ended: Callable[[GraphRun], None],
        caller: Caller = NOBODY,
        *,
        keeps_last: bool = False,
    ) -> None:
        """With `keeps_last` a fetch in a loop has its last live value, as in a callable."""
        super().__init__(body.parts, caller.frame)
        self.virtual = virtual
        self.step = virtual.step
        self.body = body
        self.actor = actor
        self.feeds = feeds
        self.results = LiveResults(keeps_last)
        self.depth, self.call, self.function, self.frame, self.scope, _ = caller
        self._clock = virtual.clock
        self._ended = ended
        self._unfinished = {number for number, part in enumerate(body.parts) if part.roots}
        self.iterations = Iterations(virtual.clock, virtual.record, body, caller)
        self._calls: dict[int, NodeRun] = {}  # deferred nodes that run, by number
        self._num_calls = 0
        self._cause = -1  # the entry that is passed on
        self._ticket = NO_TICKET  # the kernel that the values which are passed on wait for
        self._late: list[tuple[Token, Target, Any, bool]] | None = None  # gets the inputs that wait for its end
        self._tickets: dict[tuple[int, RunningFrame, int, int], int] = {}  # by partition, frame, iteration and node

    def start(self, cause: int = -1) -> None:
        """Makes the nodes without inputs ready at the present time."""
        self._cause = cause
        if self._unfinished:
            self.iterations.begin(self.roots[0])
            self._clock.post_later(partial(self._begin_from, cause))
        else:
            self._ended(self)

    def _begin_from(self, cause: int) -> None:
        if self.step.error is None:
            self._cause, self._ticket, self._late = cause, NO_TICKET, None
            self._begin()

    @property
    def cause(self) -> int:
        """The entry that is being passed on; when the run ends, the last one."""
        return self._cause

    def result(self, index: int) -> Any:
        """Result number `index`; DEAD if no node has computed it."""
        return self.results.get(index)

    # Ready nodes

    def _make_ready(self, token: Token) -> None:
        super()._make_ready(token)
        part = self.parts[token.partition]
        if part.roles[token.node] is Role.RECV:
            self._inputs(token, part)
            self._receive(token, part, self._cause)
        else:
            self._clock.post(self._start, token, self._cause)

    def _start(self, token: Token, cause: int) -> None:
        """Gives a ready node to the hardware, unless the step has failed."""
        if self.step.error is not None:
            return
        part, node = self.parts[token.partition], token.node
        inputs, role = self._inputs(token, part), part.roles[node]
        try:
            if role is Role.SEND:
                self._send(token, part, inputs, cause)
            elif token.is_dead:
                self._pass_on(token, [DEAD] * part.num_outputs(node), cause)
            elif node in part.deferred:
                self._launch(NodeRun(self, token, self.iterations.row(token), inputs), part, cause)
            else:
                self._run(NodeRun(self, token, self.iterations.row(token), inputs), part, cause)
        except PartitaError as error:
            self.fail(error)
        except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt: raised again by Step.wait
            self.step.interrupt(error)

    def _run(self, run: NodeRun, part: Interpretation, cause: int) -> None:
        """Runs a node: a free one at once, any other when its device takes it."""
        number = run.number
        if self.body.is_free[number]:
            self.compute(run)
            if run.cost.provenance == "free":
                self._pass_free(run, cause)
                return
        overlaps = run.token.frame.max_parallel > 1
        self._clock.start(run, self.body.duty[number], self.body.device[number], cause, overlaps=overlaps)

    def _pass_free(self, run: NodeRun, cause: int) -> None:
        """Passes a free node on: on a stream at once, and to everything else when the kernels before it have ended."""
        token, device = run.token, self.body.device[run.number]
        ticket = self._tickets.pop((token.partition, token.frame, token.iteration, token.node), NO_TICKET)
        if self._clock.has_completed(device, ticket):
            self._pass_on(token, run.outputs, self._clock.passes(run, cause))
        else:
            self._clock.park(run, device, ticket)
            self._pass_to_stream(run, ticket, cause)

    def begin(self, run: NodeRun) -> None:
        """A device takes a node: computes it, unless that was done."""
        if run.is_computed or self.step.error is not None:
            return
        try:
            self.compute(run)
        except PartitaError as error:
            self.fail(error)
        except BaseException as error:  # noqa: BLE001 - see `_start`
            self.step.interrupt(error)

    def compute(self, run: NodeRun) -> None:
        """Computes the outputs of a live node and what they cost; an error is located."""
        run.is_computed = True
        part, node = self.parts[run.token.partition], run.token.node
        op, role = part.properties[node].op, part.roles[node]
        try:
            if role is Role.ARG:
                run.outputs = [self._argument(part, node)]
            elif role is Role.RETVAL:
                self.results.store(part.properties[node].attrs["index"], run.token, passed_on(run.inputs[0]))
            else:
                run.outputs = part.outputs(node, run.inputs)
            run.cost = self.body.price(run.number, run.inputs, run.outputs, self._clock.cost_source)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            located = of_kernel(op, error).located(node=part.names[node], op=op, device=part.devices[node])
            raise located from located.__cause__
        self._record(run)

    def _argument(self, part: Interpretation, node: int) -> Any:
        index = part.properties[node].attrs["index"]
        if not 0 <= index < len(self.feeds):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self.feeds)})")
        return self.feeds[index]

    # Transfers

    def _send(self, token: Token, part: Interpretation, inputs: list[Any], cause: int) -> None:
        """Sends a tensor at the present time; its bytes move when the receive asks for them."""
        key = part.key(token.node, token.frame.name, token.iteration)
        if token.is_dead:
            self.step.rendezvous.send(key, Sent(None, cause), True)
            self._pass_on(token, [], cause)
            return
        run = NodeRun(self, token, self.iterations.row(token), inputs)
        self._record(run)
        entry = self._clock.passes(run, cause)
        self.step.rendezvous.send(key, Sent(passed_on(inputs[0]), entry))
        self._pass_on(token, [], entry)

    def _receive(self, token: Token, part: Interpretation, cause: int) -> None:
        """Waits for a tensor; the later of the send and of this cause the transfer."""
        key, is_waiting = part.key(token.node, token.frame.name, token.iteration), False

        def sent(outcome: Outcome) -> None:
            if not isinstance(outcome, Received):
                self.step.fail(outcome)  # the error of this step: it has failed already
                return
            message: Sent = outcome.value
            value = DEAD if outcome.is_dead else message.value
            self._clock.post(partial(self._transfer, token), value, message.entry if is_waiting else cause)

        self.step.rendezvous.recv_callback(key, sent)
        is_waiting = True

    def _transfer(self, token: Token, value: Any, cause: int) -> None:
        """Moves a tensor that was sent and asked for."""
        if token.is_dead or value is DEAD:
            self._pass_on(token, [DEAD], cause)
            return
        part, node = self.parts[token.partition], token.node
        run = NodeRun(self, token, self.iterations.row(token), [])
        run.outputs = [value]
        try:
            check_received(value, part.properties[node].output_types[0])
        except InternalError as error:
            op = part.properties[node].op
            self.fail(error.located(node=part.names[node], op=op, device=part.devices[node]))
            return
        route = self.body.routes.get(run.number)
        size = self.body.bytes_of(run.number, value)
        self._record(run, size)
        if route is None:
            self._pass_on(token, run.outputs, self._clock.passes(run, cause))
        else:
            self._clock.copy(run, route, size, cause)

    # Deferred nodes: the protocol `pending.Caller`

    def _launch(self, run: NodeRun, part: Interpretation, cause: int) -> None:
        number, self._num_calls = self._num_calls, self._num_calls + 1
        self._calls[number] = run
        call = VirtualCall(self, number, run, cause)
        if not call.is_of_function:
            self._clock.begin(run, cause)
        call.launch(partial(part.start, run.token.node), run.inputs)

    def place_of(self, number: int) -> NodeNames:
        """Name, op and device of a deferred node that runs."""
        token = self._calls[number].token
        part, node = self.parts[token.partition], token.node
        return NodeNames(part.names[node], part.properties[node].op, part.devices[node])

    def arrive(self, number: int, outputs: Values) -> None:
        """Takes the outputs of a deferred node at the present time."""
        run = self._calls.pop(number)
        run.outputs = list(outputs)
        self._clock.post(self._finish, run, -1)

    def call_ended(self, number: int, outputs: Values, cause: int) -> None:
        """Passes on what called functions have returned; `cause` is the entry of the last of their nodes."""
        run = self._calls.pop(number)
        run.outputs = list(outputs)
        self._record(run)
        entry = self._clock.passes(run, cause)
        self._clock.post_later(partial(self._pass_on, run.token, run.outputs, entry))

    def _finish(self, run: NodeRun, _cause: int) -> None:
        """Ends a deferred node, after the time that it takes besides waiting."""
        if self.step.error is not None:
            return
        try:
            delay_ns = self._price_deferred(run)
        except PartitaError as error:
            self.fail(error)
            return
        if delay_ns:
            self._clock.after(delay_ns, partial(self._end, run))
        else:
            self._end(run)

    def _price_deferred(self, run: NodeRun) -> int:
        """Sets the cost of a deferred node; returns how long it takes after its wait."""
        run.cost = self.body.price(run.number, run.inputs, run.outputs, self._clock.cost_source)
        self._record(run)
        waited = self.body.waits_ns(run.number, run.inputs, run.outputs)
        return max(run.cost.time_ns - waited, 0)

    def _end(self, run: NodeRun) -> None:
        if self.step.error is None:
            self._pass_on(run.token, run.outputs, self._clock.finish(run))

    def fail(self, error: PartitaError) -> None:
        """Fails the step with the error of a node, to which the calls that led here are added."""
        self.step.fail(add_call_chain(self.call, self.function, error))

    # After a node has run

    def _pass_on(self, token: Token, outputs: list[Any], entry: int) -> None:
        """Passes outputs on, all of them at once."""
        self._cause, self._ticket, self._late = entry, NO_TICKET, None
        self._propagate(token, outputs)

    def launched(self, run: NodeRun, ticket: int, entry: int) -> bool:
        """Passes outputs on that the stream has once it has completed a ticket.

        Returns whether they all went to the stream: then `ended` need not be called.
        """
        if self.step.error is not None:
            return True
        self._pass_to_stream(run, ticket, entry)
        part = self.parts[run.token.partition]
        # As in the player: a loop or call may wait for its end; without consumers its end may be that of the step.
        if run.late or part.frame_ops or self.call is not None or not part.consumers[run.token.node]:
            return False
        self._give_back(run.token.partition, run.token.frame, run.token.iteration)
        return True

    def _pass_to_stream(self, run: NodeRun, ticket: int, entry: int) -> None:
        self._cause, self._ticket, self._late = entry, ticket, run.late
        run.is_launched = True
        run.token.frame.iterations[run.token.iteration].outstanding_ops += 1  # until its end
        self._propagate(run.token, run.outputs)

    def ended(self, run: NodeRun, entry: int) -> None:
        """Passes outputs on when a run has ended: those that no launch has passed on."""
        if self.step.error is not None:
            return
        if not run.is_launched:
            self._pass_on(run.token, run.outputs, entry)
            return
        self._cause, self._ticket, self._late = entry, NO_TICKET, None
        for token, target, value, is_dead in run.late:
            super()._count_down(token, target, value, is_dead=is_dead)
            self._give_back(token.partition, target.frame, target.iteration)
        self._give_back(run.token.partition, run.token.frame, run.token.iteration)

    def _count_down(self, token: Token, target: Target, value: Any, *, is_dead: bool) -> None:
        if not is_dead and token.node in self.parts[token.partition].frame_ops:
            self.iterations.cross(self.parts[token.partition].frame_ops[token.node], token, target)
        if self._late is not None:
            number = self.body.joint[token.partition][target.node]
            if self.body.is_late(number, target.port):
                target.frame.iterations[target.iteration].outstanding_ops += 1  # until the input has come
                self._late.append((token, target, value, is_dead))
                return
            key = token.partition, target.frame, target.iteration, target.node
            self._tickets[key] = max(self._ticket, self._tickets.get(key, NO_TICKET))
        super()._count_down(token, target, value, is_dead=is_dead)

    def _give_back(self, partition: int, frame: RunningFrame, iteration: int) -> None:
        frame.iterations[iteration].outstanding_ops -= 1
        self._retire_finished(partition, frame, iteration)

    def _retire_finished(self, partition: int, frame: RunningFrame, iteration: int) -> None:
        super()._retire_finished(partition, frame, iteration)
        if frame.parent is None and frame.is_done and partition in self._unfinished:
            self._unfinished.remove(partition)
            if not self._unfinished:
                self._ended(self)

    def _record(self, run: NodeRun, size_bytes: int = 0) -> None:
        self.virtual.record.ran(run.row, run.number, run.cost, run.outputs, size_bytes)
