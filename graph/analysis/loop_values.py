"""The variables and the count of a While or For from what it gets: its functions are followed, it is not lowered.

While(i = 0, x), cond: i < 10, body: i + 2, f(x)        i is 2 per turn, x unknown; the count is 5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import InvalidArgumentError
from ..functions.body import FunctionBody, instantiate_call
from ..library.calls import called_by
from ..library.function_library import FunctionLibrary
from ..ops.properties import NodeProperties
from ..ops.record import Calls
from .counters import Number, Truth, Value, lines, plus
from .joined import JoinedGraph
from .known_values import KnownValues


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
