"""How often loops run, where that follows from constants and shapes: a counter with constant start, step and limit.

    i = Merge(Enter(0), NextIteration(i + 2))     LoopCond(i < 10)       i is 0, 2, 4, 6, 8, 10: 5 iterations

A count is a number, or a list with one entry per iteration of the loops around, in the order in which a sequential
program reaches them; its index is the *turn* of the activation. With `for i in range(3): for j in range(i)` the inner
loop has [0, 1, 2]. A loop whose count depends on other values has None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from ...errors import InvalidArgumentError
from ..functions.body import FunctionBody, instantiate_call
from ..library.calls import called_by
from ..library.function_library import FunctionLibrary
from ..ops.properties import NodeProperties
from ..ops.record import Calls
from .counters import Number, Truth, Value, lines, plus
from .frames import Frames, frames_of
from .joined import JoinedGraph
from .known_values import KnownValues, Output, Values

Count: TypeAlias = "int | Sequence[int]"
CALLER = -1  # stands for the loop that calls this graph as its body
MAX_TURNS = 1_000_000  # entries of a list of counts

_Around = Mapping[int, int]
"""iterations of loops around, as far as they are known, by frame"""


def count_at(count: Count, turn: int) -> int:
    """The count of the activation with that turn; a list must be long enough."""
    return count if isinstance(count, int) else count[turn]


@dataclass(frozen=True, slots=True)
class Caller:
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
        self, graph: JoinedGraph, values: Values, given: dict[int, Count], caller: Caller | None = None
    ) -> None:
        self.graph = graph
        self.values = values
        self.given = given
        self.caller = caller or Caller()
        self.frames: Frames = frames_of(graph)
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
        return KnownValues(self.graph, self.values, bound, lambda node: self._left(node, around))

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
        count = self._count(frame, around) if frame not in self.given else self.given[frame]
        if not isinstance(count, int):
            return None
        return _in_iteration(self._known(frame, around).input(node), count)


def _in_iteration(value: Value, iteration: int | None) -> Value:
    """A value in one iteration; in an unknown one only a constant is known."""
    if value is None or iteration is not None:
        return None if value is None else value.at(iteration or 0)
    if isinstance(value, Truth):
        return value if value.at(0) == value else None
    return value if value.is_constant else None


def numbers_of_for(start: int, limit: int, delta: int) -> range:
    """The numbers with which a For calls its body. InvalidArgumentError for a step that does not lead to the limit."""
    if start == limit:
        return range(0)
    if delta == 0 or (delta > 0) != (start < limit):
        raise InvalidArgumentError(f"Invalid start/limit/delta: {start} {limit} {delta}")
    return range(start, limit, delta)


@dataclass(frozen=True, slots=True)
class LoopValues:
    """How often a loop runs its body, None if that is unknown, and the arguments of the body by turn."""

    count: int | None
    variables: Sequence[Value]


def loop_values(node: NodeProperties, library: FunctionLibrary, inputs: Sequence[Value]) -> LoopValues:
    """The count and variables of a While or For whose inputs have the values `inputs`.

    Raises the errors of instantiating its functions, and InvalidArgumentError for a For that never reaches its limit.
    """
    functions = [_Function(instantiate_call(library, function)) for function in called_by(node, library)]
    if node.op_def.record.calls is Calls.FOR:
        return _for_values(functions[0], inputs)
    cond, body = functions
    variables = _variables(inputs, body.results)
    goes_on = cond.results(variables)
    holds = goes_on[0] if goes_on else None
    return LoopValues(holds.first_false if isinstance(holds, Truth) else None, variables)


def _for_values(body: _Function, inputs: Sequence[Value]) -> LoopValues:
    """The first variable is the number that the loop gives to its body."""
    start, _, delta, *others = inputs
    bounds = [value.start for value in inputs[:3] if isinstance(value, Number) and value.is_constant]
    known = [bound for bound in bounds if isinstance(bound, int)]

    def following(variables: Sequence[Value]) -> list[Value]:
        number = variables[0]
        after = plus(number, delta) if isinstance(number, Number) and isinstance(delta, Number) else None
        return [after, *body.results(variables)]

    return LoopValues(len(numbers_of_for(*known)) if len(known) == 3 else None, _variables([start, *others], following))


def _variables(starts: Sequence[Value], following: Callable[[Sequence[Value]], Sequence[Value]]) -> list[Value]:
    """The variables of a loop by turn, from what they begin with; those that `following` does not give are unknown."""
    numbers = range(len(starts))

    def by_number(variables: Mapping[int, Value]) -> dict[int, Value]:
        return {**dict.fromkeys(numbers), **dict(enumerate(following([variables[k] for k in numbers])))}

    found = lines(dict(enumerate(starts)), by_number)
    return [found[k] for k in numbers]


class _Function:
    """The results of a function from its arguments."""

    def __init__(self, body: FunctionBody) -> None:
        self.graph = JoinedGraph({"": body.graph})
        numbers = {name: number for number, name in enumerate(self.graph.names)}
        self.arguments = [numbers[node.name] for node in body.arguments]
        self.ends = [numbers[node.name] for node in body.results]

    def results(self, arguments: Sequence[Value]) -> list[Value]:
        """One value per result, None for unknown ones."""
        bound = {(n, 0): value for n, value in zip(self.arguments, arguments, strict=False)}
        known = KnownValues(self.graph, {}, bound)
        return [known.input(n) for n in self.ends]


def first_turns(count: Count, turns: int) -> list[int]:
    """The turn of the first iteration of each activation, for `turns` activations; the last entry is their total."""
    counts = [count] * turns if isinstance(count, int) else count[:turns]
    return list(accumulate(counts, initial=0))
