"""The token rules: which nodes become ready when a node has run, in loops, in conditionals and with dead tensors.

A `Token` is a node in one iteration of a frame. When it has run, `_propagate` counts down the missing inputs of its
consumers there. For y = a + b, both constants, `a` has run and `b` has not:

    missing {y: 2}   --_propagate(a)-->   missing {y: 1}   --_propagate(b)-->   _make_ready(y)

What to do with a ready token is the subclass's: the reference executor computes it.

In loops every (frame, iteration) has counts of its own (`frames`): Enter passes its value into a child frame,
NextIteration into the next iteration, Exit into the parent; an iteration beyond `parallel_iterations` waits until an
earlier one is done. A Merge is ready at its first live input, or when all inputs are dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....errors import InvalidArgumentError
from ....graph.analysis.levels import frame_name, is_constant_enter
from ....graph.ops.record import NodeClass
from ...plans.instructions import DEAD
from ...plans.roles import Role
from .frames import Iteration, PendingNode, RunningFrame, Target, Token

if TYPE_CHECKING:
    from ..interpretation import Interpretation


class Propagation:
    """The frames of one run of some partitions, or of one uncut graph."""

    def __init__(self, parts: Sequence[Interpretation], frame: str = "") -> None:
        """`frame` is the name of the frame that the graph runs in: "" unless a node has called it."""
        self.parts = parts
        self.roots = [RunningFrame(frame, "") for _ in parts]

    def _begin(self) -> None:
        """Makes the nodes without inputs ready."""
        for number, part in enumerate(self.parts):
            for node in part.roots:
                self._make_ready(Token(number, node, self.roots[number], 0, is_dead=False))

    def _make_ready(self, token: Token) -> None:
        """Called once for each token that has all its inputs. The subclass adds what becomes of it."""
        token.frame.iterations[token.iteration].outstanding_ops += 1

    def _inputs(self, token: Token, part: Interpretation) -> list[Any]:
        """The inputs of a node about to run. A Merge keeps its count, so that a later input does not run it again."""
        pending = token.frame.iterations[token.iteration].pending
        if part.roles[token.node] is Role.MERGE:
            return pending[token.node].inputs
        state = pending.pop(token.node, None)
        return state.inputs if state else []

    def _propagate(self, token: Token, outputs: list[Any]) -> None:
        """Passes outputs to consumers in the frame and iteration that the op leads to, and retires what is done."""
        part, frame, iteration = self.parts[token.partition], token.frame, token.iteration
        op = part.frame_ops.get(token.node)
        if op is None:
            self._activate(token, frame, iteration, outputs)
        elif op is NodeClass.ENTER:
            self._enter(token, outputs)
        elif op is NodeClass.EXIT:
            self._exit(token, outputs)
        # A dead value goes no further: every iteration would begin the next one, for ever.
        elif not token.is_dead:
            self._next_iteration(token, outputs[0])
        frame.iterations[iteration].outstanding_ops -= 1
        self._retire_finished(token.partition, frame, iteration)

    def _enter(self, token: Token, outputs: list[Any]) -> None:
        part = self.parts[token.partition]
        child = self._child_frame(token)
        if is_constant_enter(part.properties[token.node]):
            child.invariants.append((token.node, DEAD if token.is_dead else outputs[0]))
            for iteration in range(child.latest + 1):
                self._activate(token, child, iteration, outputs)
        else:
            self._activate(token, child, 0, outputs)
        child.num_pending_inputs -= 1
        self._retire_finished(token.partition, child, 0)

    def _child_frame(self, token: Token) -> RunningFrame:
        """The frame that an Enter leads to; the first Enter to run creates it."""
        part = self.parts[token.partition]
        enter = part.properties[token.node]
        name = frame_name(enter)
        key = token.iteration, name
        child = token.frame.children.get(key)
        if child is None:
            child = token.frame.children[key] = RunningFrame(
                token.frame.child_name(token.iteration, name),
                name,
                token.frame,
                token.iteration,
                part.num_enters[name],
                int(enter.attrs["parallel_iterations"]),
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
        # In all iterations but the last the exits are dead, which says nothing of the loop. Which is the last is known
        # when the frame ends: `_begin_iteration` forgets those of the one before.
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

    def _begin_iteration(self, partition: int, frame: RunningFrame) -> None:
        frame.latest += 1
        frame.outstanding_iterations += 1
        frame.dead_exits.clear()
        frame.iterations[frame.latest] = Iteration()
        for node, value in frame.invariants:
            token = Token(partition, node, frame, frame.latest, is_dead=value is DEAD)
            self._activate(token, frame, frame.latest, [value])

    def _activate(self, token: Token, frame: RunningFrame, iteration: int, outputs: list[Any]) -> None:
        """Passes the outputs of a node to its consumers in one iteration."""
        for node, port, output in self.parts[token.partition].consumers[token.node]:
            value = None if output < 0 else outputs[output]
            is_dead = token.is_dead if output < 0 else token.is_dead or value is DEAD
            self._count_down(token, Target(frame, iteration, node, port), value, is_dead=is_dead)

    def _count_down(self, token: Token, target: Target, value: Any, *, is_dead: bool) -> None:
        """Counts one input of a consumer of `token`, which is ready when no input is missing."""
        part = self.parts[token.partition]
        frame, iteration, node, port = target
        state = frame.iterations[iteration].pending.get(node)
        if state is None:
            state = frame.iterations[iteration].pending[node] = PendingNode(
                part.initial_count[node], [None] * part.num_inputs(node)
            )
        if part.roles[node] is Role.MERGE:
            from_enter = part.frame_ops.get(token.node) is NodeClass.ENTER
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

    def _retire_finished(self, partition: int, frame: RunningFrame, iteration: int) -> None:
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

    def _release_roots(self, partition: int, frame: RunningFrame) -> None:
        """Begins the iteration that waited because `max_parallel` others were running."""
        roots, frame.next_roots = frame.next_roots, []
        self._begin_iteration(partition, frame)
        for node, value in roots:
            token = Token(partition, node, frame, frame.latest, is_dead=False)
            self._activate(token, frame, frame.latest, [value])

    def _end_frame(self, partition: int, frame: RunningFrame, parent: RunningFrame) -> None:
        """Passes the dead exits to the parent, and counts the frame as closed there."""
        exits, frame.dead_exits = frame.dead_exits, []
        for node in exits:
            token = Token(partition, node, parent, frame.parent_iteration, is_dead=True)
            self._activate(token, parent, frame.parent_iteration, [DEAD])
        parent.iterations[frame.parent_iteration].outstanding_frames -= 1
        self._retire_finished(partition, parent, frame.parent_iteration)


def _count_merge(state: PendingNode, port: int, value: Any, is_dead: bool, from_enter: bool) -> tuple[bool, bool]:
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
