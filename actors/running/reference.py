"""The reference executor: one loop, pending counts and dead counts, tagged frames. Slow, and the meaning of the others.

Flows in: partition graphs (or one uncut graph), kernels, feeds. Flows out: fetches by index. Always holds: whatever
order `choose` picks among ready nodes, the fetched values of a graph without races are the same; a node runs when its
pending count is zero; a dead node is not computed, but its deadness goes on; transfers run even when dead.

Loops: Enter moves a token into a child frame, NextIteration into the next iteration, Exit back into the parent; each
has its own bookkeeping (`frames.py`). An iteration beyond `parallel_iterations` waits until an earlier one is done.
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
"""picks an index below the number of ready nodes"""


class Reference:
    """One run over a set of partitions."""

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
        """Runs at most `limit` nodes; tells whether any is left.

        Raises the error of the first node that fails, InternalError when receives are left that nobody will serve.
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
        """Whether nodes are under way that will give their outputs later."""
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
        """Starts a node whose outputs come later."""
        name, op = part.names[token.node], part.properties[token.node].op
        raise UnimplementedError(
            f"node {name!r} ({op}) waits for something; run the graph in a session", node=name, op=op
        )

    def _inputs(self, token: Token, part: Interpretation) -> list[Any]:
        """The inputs of a node about to run. A Merge keeps its count, so that later inputs do not run it again."""
        pending = token.frame.iterations[token.iteration].pending
        if part.roles[token.node] is Role.MERGE:
            return pending[token.node].inputs
        found = pending.pop(token.node, None)
        return found.inputs if found else []

    def _compute(self, part: Interpretation, node: int, inputs: list[Any]) -> list[Any]:
        """The outputs of a live node; an error is located."""
        op = part.properties[node].op
        try:
            if part.roles[node] is Role.ARG:
                return [self._argument(part, node)]
            if part.roles[node] is Role.RETVAL:
                self._store(part, node, passed_on(inputs[0]))
                return []
            return part.outputs(node, inputs)
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything
            made = of_kernel(op, error).located(node=part.names[node], op=op, device=part.devices[node])
            raise made from made.__cause__

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
            self._hand_over(receiver, value)
        else:
            self.table.setdefault(key, deque()).append(value)

    def _receive(self, token: Token, part: Interpretation) -> None:
        key = part.key(token.node, token.frame.name, token.iteration)
        if self.table.get(key):
            value = self.table[key].popleft()
            if not self.table[key]:
                del self.table[key]
            self._hand_over(token, value)
        else:
            self.waiting.setdefault(key, deque()).append(token)

    def _hand_over(self, token: Token, value: Any) -> None:
        """Lets a receive have what was sent; InternalError, located, for a tensor of another type."""
        part, node = self.parts[token.partition], token.node
        if token.is_dead or value is DEAD:
            self._propagate(token, [DEAD])
            return
        try:
            check_received(value, part.properties[node].output_types[0])
        except InternalError as error:
            raise error.located(node=part.names[node], op=part.properties[node].op, device=part.devices[node]) from None
        self._propagate(token, [value])

    # What a finished node sets off

    def _propagate(self, token: Token, outputs: list[Any]) -> None:
        """Hands outputs to consumers in the frame and iteration that the op leads to, then settles the books."""
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
        self._settle(token.partition, frame, iteration)

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
        self._settle(token.partition, child, 0)

    def _child_frame(self, token: Token) -> Frame:
        """The frame that an Enter leads to: found, or made by the first Enter that gets there."""
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
        """Counts down what the consumers of a node wait for in one iteration; those that have it all become ready."""
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

    def _settle(self, partition: int, frame: Frame, iteration: int) -> None:
        """Retires an iteration that is done, and those after it, then the frame."""
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
        """Begins the iteration that was waiting for a slot."""
        roots, frame.next_roots = frame.next_roots, []
        self._begin_iteration(partition, frame)
        for node, value in roots:
            token = Token(partition, node, frame, frame.latest, is_dead=False)
            self._activate(token, frame, frame.latest, [value])

    def _end_frame(self, partition: int, frame: Frame, parent: Frame) -> None:
        """Tells the parent which exits never happened, and that the frame is over."""
        exits, frame.dead_exits = frame.dead_exits, []
        for node in exits:
            token = Token(partition, node, parent, frame.parent_iteration, is_dead=True)
            self._activate(token, parent, frame.parent_iteration, [DEAD])
        parent.iterations[frame.parent_iteration].outstanding_frames -= 1
        self._settle(partition, parent, frame.parent_iteration)


def _count_merge(state: Pending, port: int, value: Any, is_dead: bool, from_enter: bool) -> tuple[bool, bool]:
    """Counts one arrival at a Merge; whether it is ready, and whether it is dead then."""
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
    """Runs the graphs of all partitions, or a single uncut one, to the end; DEAD stands for a fetch that never came.

    `choose` makes the order of ready nodes; first in, first out without it. Raises as `Reference.run`.
    """
    parts = [Interpretation(graph, binders) for graph in partitions]
    check_complete(binders.values())
    run = Reference(parts, feeds, choose)
    with np.errstate(all="ignore"):
        run.run()
    return [read(run.results.get(index, DEAD)) for index in range(num_fetches)]
