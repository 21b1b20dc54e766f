"""How often loops run, where that follows from constants and shapes: a counter with constant start, step and limit.

    i = Merge(Enter(0), NextIteration(i + 2))     LoopCond(i < 10)       i is 0, 2, 4, 6, 8, 10: 5 iterations

A count is a number, or a list with one entry per iteration of the loops around, in the order in which a sequential
program reaches them; its index is the *turn* of the activation. With `for i in range(3): for j in range(i)` the inner
loop has [0, 1, 2]. A loop whose count depends on other values has None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from ..edge_ends import Output
from .counters import Truth, Value, lines
from .joined import JoinedGraph
from .known_values import KnownValues, ValuesByOutput
from .levels import Frames, frames_of
from .popped import Pops, Push

Count: TypeAlias = "int | Sequence[int]"
CALLER = -1  # stands for the loop that calls this graph as its body
MAX_TURNS = 1_000_000  # entries of a list of counts

_Around = Mapping[int, int]
"""iterations of loops around, as far as they are known, by frame"""


def count_at(count: Count, turn: int) -> int:
    """The count of the activation with that turn; a list must be long enough."""
    return count if isinstance(count, int) else count[turn]


@dataclass(frozen=True, slots=True)
class KnownArguments:
    """What a body knows of its arguments: values by joint number of the `_Arg`.

    If the body is that of a loop that runs `count` times, values may depend on the iteration.
    """

    arguments: Mapping[int, Value] = field(default_factory=dict)
    count: int = 1


class TripCounts:
    """The counts of the frames of one graph, and scalars of it that are known before the run.

    `given` has counts by frame that are not to be derived; more may be added before they are asked for.
    """

    def __init__(
        self, graph: JoinedGraph, values: ValuesByOutput, given: dict[int, Count], caller: KnownArguments | None = None
    ) -> None:
        self.graph = graph
        self.values = values
        self.given = given
        self.caller = caller or KnownArguments()
        self.frames: Frames = frames_of(graph)
        self._pops = Pops(graph)
        self._popped: dict[int, list[Value] | None] = {}  # by push: what it puts in, in every turn of its frame
        self._inside: dict[tuple[int, tuple[tuple[int, int], ...]], KnownValues] = {}

    def count(self, frame: int) -> Count | None:
        """The count of a frame, None if it is unknown."""
        if frame in self.given:
            return self.given[frame]
        alone = self._count(frame, {})
        if alone is not None:
            return alone
        counts: list[int] = []
        for around in self._turns(frame):
            count = self._count(frame, around)
            if count is None or len(counts) == MAX_TURNS:
                return None
            counts.append(count)
        return counts or None

    def value(self, frame: int, source: Output) -> Value:
        """The value of an output of a node in that frame, by the iteration of the frame; None if it is unknown."""
        return self._known(frame, {}).value(source)

    def in_call(self, source: Output) -> Value:
        """The value of an output of a node in the root frame, by the iteration of the loop that calls this graph."""
        return self._known(CALLER, {}).value(source)

    def _turns(self, frame: int) -> Iterator[_Around]:
        """The iterations of the loops around, for each activation of a frame in order; none if a count is unknown."""
        outer = self.frames.all[frame].parent
        if outer < 0:
            yield from ({CALLER: i} for i in range(self.caller.count))
            return
        if outer == 0:
            yield from self._turns(0)
            return
        count = self.count(outer)
        if count is None:
            return
        for turn, around in enumerate(self._turns(outer)):
            yield from ({**around, outer: i} for i in range(count_at(count, turn)))

    def _count(self, frame: int, around: _Around) -> int | None:
        condition = self.frames.all[frame].condition
        if condition < 0:
            return None
        holds = self._known(frame, around).input(condition)
        return holds.first_false if isinstance(holds, Truth) else None

    def _known(self, frame: int, around: _Around) -> KnownValues:
        """The values in a frame by its iteration."""
        key = frame, tuple(sorted(around.items()))
        if key not in self._inside:
            if len(self._inside) > MAX_TURNS // 100:
                self._inside.clear()
            self._inside[key] = self._made(frame, around)
        return self._inside[key]

    def _made(self, frame: int, around: _Around) -> KnownValues:
        outside = self._outside(frame, around)
        if frame <= 0:
            return self._with(outside, around)
        ends = {(merge, 0): self._ends(merge) for merge in self.frames.all[frame].merges}
        before = self._with(outside, around)

        def following(variables: Mapping[Output, Value]) -> Mapping[Output, Value]:
            # What an inner loop leaves would depend on the variables that are being found: it counts as unknown.
            after = KnownValues(self.graph, self.values, {**outside, **variables})
            return {merge: after.value(end) for merge, (_, end) in ends.items()}

        found = lines({merge: before.value(start) for merge, (start, _) in ends.items()}, following)
        return self._with({**outside, **found}, around)

    def _with(self, bound: Mapping[Output, Value], around: _Around) -> KnownValues:
        def left(node: int) -> Value:
            return self._left(node, around)

        def popped(node: int) -> Value:
            return self._taken_out(node, around)

        return KnownValues(self.graph, self.values, bound, left, of_pop=popped)

    def _outside(self, frame: int, around: _Around) -> dict[Output, Value]:
        """Arguments of the body, and the variables of the loops around the frame, in the iterations of these."""
        bound: dict[Output, Value] = {}
        for argument, value in self.caller.arguments.items():
            bound[argument, 0] = value if frame == CALLER else _in_iteration(value, around.get(CALLER))
        outer = self.frames.all[frame].parent if frame > 0 else 0
        while outer > 0:
            known = self._known(outer, {g: i for g, i in around.items() if g != outer})
            for merge in self.frames.all[outer].merges:
                bound[merge, 0] = _in_iteration(known.value((merge, 0)), around.get(outer))
            outer = self.frames.all[outer].parent
        return bound

    def _ends(self, merge: int) -> tuple[Output, Output]:
        """The outputs that a loop's Merge joins: of its Enter and of its NextIteration."""
        inputs = self.graph.inputs_of(merge)
        backs = [source for source in inputs if self.graph.is_back_edge(source[0], merge)]
        others = [source for source in inputs if source not in backs]
        return others[0], backs[0]

    def _left(self, node: int, around: _Around) -> Value:
        """The value that an Exit passes on, in the loop around it."""
        frame = self.frames.of[node]
        count = self._count_in(frame, around) if frame in self.given else self._count(frame, around)
        return None if count is None else _in_iteration(self._known(frame, around).input(node), count)

    def _count_in(self, frame: int, around: _Around) -> int | None:
        """The count of a frame in one activation of it."""
        count = self.count(frame)
        if isinstance(count, Sequence):
            turn = self._turn(self.frames.all[frame].parent, around)
            return count[turn] if turn is not None and turn < len(count) else None
        return count

    def _taken_out(self, pop: int, around: _Around) -> Value:
        """What a node takes out of a list or stack: if it does so in as many turns as another one has put in, then in
        the reverse order.
        """
        push = self._pops.push_of(pop)
        if push is None:
            return None
        always = _in_iteration(self._known(self.frames.of[push.node], {}).value(push.element), None)
        if always is not None:
            return always
        frame = self.frames.of[pop]
        turn, turns = self._turn(frame, around), self._turns_of(frame)
        if turn is None or turns is None or turns > MAX_TURNS:
            return None
        if push.node not in self._popped:
            self._popped[push.node] = None  # what depends on itself is unknown
            self._popped[push.node] = self._put_in(push)
        values = self._popped[push.node]
        return values[turns - 1 - turn] if values is not None and len(values) == turns else None

    def _put_in(self, push: Push) -> list[Value] | None:
        """What a node puts into a list or stack, in every turn of its frame; None if it is not known how many."""
        frame, values = self.frames.of[push.node], list[Value]()
        if frame == 0:
            return None
        for turn, around in enumerate(self._turns(frame)):
            count = self.count(frame)
            assert count is not None  # as there are turns
            for i in range(count_at(count, turn)):
                value = self._known(frame, {**around, frame: i}).value(push.element)
                values.append(_in_iteration(value, i))
            if len(values) > MAX_TURNS:
                return None
        return values

    def _turn(self, frame: int, around: _Around) -> int | None:
        """The turn of an iteration of a frame: how many iterations, in all of its activations, come before it."""
        if frame == 0:
            return around.get(CALLER, 0 if self.caller.count == 1 else None)
        parent, count = self._turn(self.frames.all[frame].parent, around), self.count(frame)
        if parent is None or count is None or frame not in around:
            return None
        before = parent * count if isinstance(count, int) else sum(count[:parent])
        return before + around[frame]

    def _turns_of(self, frame: int) -> int | None:
        """The number of iterations of a frame in all of its activations."""
        if frame == 0:
            return self.caller.count
        parent, count = self._turns_of(self.frames.all[frame].parent), self.count(frame)
        if parent is None or count is None:
            return None
        return parent * count if isinstance(count, int) else sum(count[:parent])


def _in_iteration(value: Value, iteration: int | None) -> Value:
    """A value in one iteration; in an unknown one only a constant is known."""
    if value is None or iteration is not None:
        return None if value is None else value.at(iteration or 0)
    if isinstance(value, Truth):
        return value if value.at(0) == value else None
    return value if value.is_constant else None


def first_turns(count: Count, turns: int) -> list[int]:
    """The turn of the first iteration of each activation, for `turns` activations; the last entry is their total."""
    counts = [count] * turns if isinstance(count, int) else count[:turns]
    return list(accumulate(counts, initial=0))
