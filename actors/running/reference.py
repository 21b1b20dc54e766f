"""The reference executor: it runs a graph node by node and defines what the faster ways must compute.

A node is ready when its count of missing inputs is zero. The executor picks a ready node, computes it, and counts down
its consumers. For y = a + b, both constants, the states are:

    ready [a, b]  missing {y: 2}   -->   ready [b]  missing {y: 1}   -->   ready [y]   -->   ready []

A node with a dead input is not computed, but its dead outputs are passed on; Send and Recv run even then. A Merge is
ready at its first live input, or when all inputs are dead. In loops every (frame, iteration) has counts of its own
(`frames`): Enter passes its value into a child frame, NextIteration into the next iteration, Exit into the parent; an
iteration beyond `parallel_iterations` waits until an earlier one is done.

In a graph without races the fetched values do not depend on the order in which `choose` picks ready nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InternalError, InvalidArgumentError, UnimplementedError, of_kernel
from ..plans.binding import Binder, check_complete
from ..plans.instructions import DEAD, passed_on, read
from ..plans.output_checks import check_received
from ..plans.roles import Role
from .frames import Frame, Iteration, Pending, Token
from .interpretation import Interpretation

if TYPE_CHECKING:
    from ...graph.graph import Graph

Choose = Callable[[int], int]
"""given the number of ready nodes, the index of the one to run next"""


class Reference:
    """One run of a set of partitions, or of one uncut graph.

    `table` has tensors that were sent and not yet received, by key, `waiting` receives without a tensor yet.
    """

    def __init__(self, parts: Sequence[Interpretation], feeds: Sequence[Any], choose: Choose | None = None) -> None:
        self.parts = parts
        self.feeds = feeds
        self.results: dict[int, Any] = {}
        self.ready: deque[Token] = deque()
        self.choose = choose
        self.table: dict[str, deque[Any]] = {}
        self.waiting: dict[str, deque[Token]] = {}
        self.roots = [Frame("", "") for _ in parts]
        for number, part in enumerate(parts):
            for node in part.roots:
                self._make_ready(Token(number, node, self.roots[number], 0, is_dead=False))

    def run(self, limit: int | None = None) -> bool:
        """Runs at most `limit` nodes. Returns whether ready nodes are left.

        Raises the error of the first node that fails, and InternalError for a receive whose tensor is never sent.
        """
        while self.ready and limit != 0:
            limit = None if limit is None else limit - 1
            self._process(self._next())
        if self.ready:
            return True
        if self.waiting and not self._is_waiting_for_calls:
            raise InternalError(f"nobody sends {next(iter(self.waiting))!r}; the partitions do not belong together")
        return False

    @property
    def _is_waiting_for_calls(self) -> bool:
        """Whether deferred nodes run."""
        return False

    def _next(self) -> Token:
        if self.choose is not None:
            self.ready.rotate(-self.choose(len(self.ready)))
        return self.ready.popleft()

    def _make_ready(self, token: Token) -> None:
        token.frame.iterations[token.iteration].outstanding_ops += 1
        self.ready.append(token)

    # One node

    def _process(self, token: Token) -> None:
        part, node = self.parts[token.partition], token.node
        inputs = self._inputs(token, part)
        role = part.roles[node]
        if role is Role.RECV:
            self._receive(token, part)
        elif role is Role.SEND:
            value = DEAD if token.is_dead else passed_on(inputs[0])
            self._send(part.key(node, token.frame.name, token.iteration), value)
            self._propagate(token, [])
        elif token.is_dead:
            self._propagate(token, [DEAD] * part.num_outputs(node))
        elif node in part.deferred:
            self._launch(token, part, inputs)
        else:
            self._propagate(token, self._compute(part, node, inputs))

    def _launch(self, token: Token, part: Interpretation, _inputs: list[Any]) -> None:
        """Starts a deferred node. Overridden where there are actors; without, it raises UnimplementedError."""
        name, op = part.names[token.node], part.properties[token.node].op
        raise UnimplementedError(
            f"node {name!r} ({op}) waits for something; run the graph in a session", node=name, op=op
        )

    def _inputs(self, token: Token, part: Interpretation) -> list[Any]:
        """The inputs of a node about to run. A Merge keeps its count, so that a later input does not run it again."""
        pending = token.frame.iterations[token.iteration].pending
        if part.roles[token.node] is Role.MERGE:
            return pending[token.node].inputs
        state = pending.pop(token.node, None)
        return state.inputs if state else []

    def _compute(self, part: Interpretation, node: int, inputs: list[Any]) -> list[Any]:
        """Computes the outputs of a live node; an error is located."""
        op = part.properties[node].op
        try:
            if part.roles[node] is Role.ARG:
                return [self._argument(part, node)]
            if part.roles[node] is Role.RETVAL:
                self._store(part, node, passed_on(inputs[0]))
                return []
            return part.outputs(node, inputs)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            located = of_kernel(op, error).located(node=part.names[node], op=op, device=part.devices[node])
            raise located from located.__cause__

    def _argument(self, part: Interpretation, node: int) -> Any:
        index = part.properties[node].attrs["index"]
        if not 0 <= index < len(self.feeds):
            raise InvalidArgumentError(f"GetArg {index} is not within [0, {len(self.feeds)})")
        return self.feeds[index]

    def _store(self, part: Interpretation, node: int, value: Any) -> None:
        index = part.properties[node].attrs["index"]
        if index in self.results:
            raise InternalError(f"Retval[{index}] has already been set.")
        self.results[index] = value

    def _send(self, key: str, value: Any) -> None:
        if self.waiting.get(key):
            receiver = self.waiting[key].popleft()
            if not self.waiting[key]:
                del self.waiting[key]
            self._deliver(receiver, value)
        else:
            self.table.setdefault(key, deque()).append(value)

    def _receive(self, token: Token, part: Interpretation) -> None:
        key = part.key(token.node, token.frame.name, token.iteration)
        if self.table.get(key):
            value = self.table[key].popleft()
            if not self.table[key]:
                del self.table[key]
            self._deliver(token, value)
        else:
            self.waiting.setdefault(key, deque()).append(token)

    def _deliver(self, token: Token, value: Any) -> None:
        """Gives a receive its tensor; InternalError, located, for a tensor of another type."""
        part, node = self.parts[token.partition], token.node
        if token.is_dead or value is DEAD:
            self._propagate(token, [DEAD])
            return
        try:
            check_received(value, part.properties[node].output_types[0])
        except InternalError as error:
            raise error.located(node=part.names[node], op=part.properties[node].op, device=part.devices[node]) from None
        self._propagate(token, [value])

    # After a node has run

    def _propagate(self, token: Token, outputs: list[Any]) -> None:
        """Passes outputs to consumers in the frame and iteration that the op leads to, and retires what is done."""
        part, frame, iteration = self.parts[token.partition], token.frame, token.iteration
        op = part.frame_ops.get(token.node)
        if op is None:
            self._activate(token, frame, iteration, outputs)
        elif op == "Enter":
            self._enter(token, outputs)
        elif op == "Exit":
            self._exit(token, outputs)
        elif not token.is_dead:
            self._next_iteration(token, outputs[0])
        frame.iterations[iteration].outstanding_ops -= 1
        self._retire_finished(token.partition, frame, iteration)

    def _enter(self, token: Token, outputs: list[Any]) -> None:
        part = self.parts[token.partition]
        child = self._child_frame(token)
        if part.is_constant_enter(token.node):
            child.invariants.append((token.node, DEAD if token.is_dead else outputs[0]))
            for iteration in range(child.latest + 1):
                self._activate(token, child, iteration, outputs)
        else:
            self._activate(token, child, 0, outputs)
        child.num_pending_inputs -= 1
        self._retire_finished(token.partition, child, 0)

    def _child_frame(self, token: Token) -> Frame:
        """The frame that an Enter leads to; the first Enter to run creates it."""
        part = self.parts[token.partition]
        name = part.frame_name(token.node)
        key = token.iteration, name
        child = token.frame.children.get(key)
        if child is None:
            child = token.frame.children[key] = Frame(
                token.frame.child_name(token.iteration, name),
                name,
                token.frame,
                token.iteration,
                part.num_enters[name],
                part.parallel_iterations(token.node),
            )
            token.frame.iterations[token.iteration].outstanding_frames += 1
        return child

    def _exit(self, token: Token, outputs: list[Any]) -> None:
        frame = token.frame
        if frame.parent is None:
            raise InvalidArgumentError(
                "an Exit outside of any frame", node=self.parts[token.partition].names[token.node]
            )
        if not token.is_dead:
            self._activate(token, frame.parent, frame.parent_iteration, outputs)
        elif token.iteration == frame.latest:
            frame.dead_exits.append(token.node)

    def _next_iteration(self, token: Token, value: Any) -> None:
        frame = token.frame
        if token.iteration < frame.latest:
            self._activate(token, frame, token.iteration + 1, [value])
        elif frame.outstanding_iterations >= frame.max_parallel:
            frame.next_roots.append((token.node, value))
        else:
            self._begin_iteration(token.partition, frame)
            self._activate(token, frame, token.iteration + 1, [value])

    def _begin_iteration(self, partition: int, frame: Frame) -> None:
        frame.latest += 1
        frame.outstanding_iterations += 1
        frame.dead_exits.clear()
        frame.iterations[frame.latest] = Iteration()
        for node, value in frame.invariants:
            token = Token(partition, node, frame, frame.latest, is_dead=value is DEAD)
            self._activate(token, frame, frame.latest, [value])

    def _activate(self, token: Token, frame: Frame, iteration: int, outputs: list[Any]) -> None:
        """Counts down the missing inputs of the consumers in one iteration; those with none missing become ready."""
        part = self.parts[token.partition]
        for node, port, output in part.consumers[token.node]:
            state = frame.iterations[iteration].pending.get(node)
            if state is None:
                state = frame.iterations[iteration].pending[node] = Pending(
                    part.initial_count[node], [None] * part.num_inputs(node)
                )
            value = None if output < 0 else outputs[output]
            is_dead = token.is_dead if output < 0 else token.is_dead or value is DEAD
            if part.roles[node] is Role.MERGE:
                from_enter = part.frame_ops.get(token.node) == "Enter"
                ready, dead = _count_merge(state, port, value, is_dead, from_enter)
            else:
                state.count -= 1
                state.num_dead += is_dead
                if port >= 0:
                    state.inputs[port] = DEAD if is_dead else value
                ready = state.count == 0
                dead = state.num_dead > 0 and part.roles[node] is not Role.TRIGGER
            if ready:
                self._make_ready(Token(token.partition, node, frame, iteration, is_dead=dead))

    def _retire_finished(self, partition: int, frame: Frame, iteration: int) -> None:
        """Removes an iteration that is done, and those after it that are, then the frame."""
        while iteration in frame.iterations and frame.is_iteration_done(iteration):
            del frame.iterations[iteration]
            frame.outstanding_iterations -= 1
            if frame.next_roots:
                self._release_roots(partition, frame)
            iteration += 1
        parent, place = frame.parent, (frame.parent_iteration, frame.key)
        if parent is not None and frame.is_done and parent.children.get(place) is frame:
            del parent.children[place]
            self._end_frame(partition, frame, parent)

    def _release_roots(self, partition: int, frame: Frame) -> None:
        """Begins the iteration that waited because `max_parallel` others were running."""
        roots, frame.next_roots = frame.next_roots, []
        self._begin_iteration(partition, frame)
        for node, value in roots:
            token = Token(partition, node, frame, frame.latest, is_dead=False)
            self._activate(token, frame, frame.latest, [value])

    def _end_frame(self, partition: int, frame: Frame, parent: Frame) -> None:
        """Passes the dead exits to the parent, and counts the frame as closed there."""
        exits, frame.dead_exits = frame.dead_exits, []
        for node in exits:
            token = Token(partition, node, parent, frame.parent_iteration, is_dead=True)
            self._activate(token, parent, frame.parent_iteration, [DEAD])
        parent.iterations[frame.parent_iteration].outstanding_frames -= 1
        self._retire_finished(partition, parent, frame.parent_iteration)


def _count_merge(state: Pending, port: int, value: Any, is_dead: bool, from_enter: bool) -> tuple[bool, bool]:
    """Counts one input of a Merge. Returns whether it is ready now, and whether it is dead then.

    A dead value from an Enter is the only one that will come: no iteration follows it.
    """
    if port < 0:
        state.count -= 2
        dead = state.num_dead == len(state.inputs)
        return state.count == 0 or (state.count == 1 and dead), dead
    if is_dead:
        state.num_dead += 1
        dead = state.num_dead == len(state.inputs) or from_enter
        return dead and state.count == 1, dead
    ready = state.count == 1
    if state.count & 1:
        state.count -= 1
        state.inputs[port] = value
    return ready, False


def run_reference(
    partitions: Iterable[Graph],
    binders: Mapping[str, Binder],
    feeds: Sequence[Any],
    num_fetches: int,
    choose: Choose | None = None,
) -> list[Any]:
    """Runs the graphs of all partitions, or a single uncut one, to the end; a fetch without value is DEAD.

    `choose` picks the next ready node; without it they run first in, first out. Raises as `Reference.run`.
    """
    parts = [Interpretation(graph, binders) for graph in partitions]
    check_complete(binders.values())
    run = Reference(parts, feeds, choose)
    with np.errstate(all="ignore"):
        run.run()
    return [read(run.results.get(index, DEAD)) for index in range(num_fetches)]
