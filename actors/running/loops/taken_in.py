"""Takes the functions of a While into one loop, which its device runs by itself, with those they call in turn.

    While(x), body: step          step(x) calls scale(x), and a While of its own: one loop, with a loop inside
    step(x) has a queue           stays a call: the end of each iteration starts the next

Taken in are functions that run as a whole on one device, without waiting for anything and without calling themselves.
A call becomes the nodes of its function; a While a loop; a conditional a choice, unless its functions are so short that
they are one instruction. All else is called as before, and so is a function with an error, at the time when its turn
comes. A loop runs the same instructions each time, so what it takes to call a function is paid once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ....errors import PartitaError
from ....graph.library.calls import calls_functions, is_call
from ....graph.ops.record import Calls
from ...plans.call_sites import NameInCall, TakenInCall
from ...plans.deadness import may_be_dead
from ...plans.levels import Deferred
from ...plans.local.loops import local_loop
from ...plans.local.taken_in import LevelOutput, NotTakenIn, TakenIn
from ...plans.plan import ChoiceBranch, LocalChoice, LocalLoop
from ...plans.roles import Role, roles_of
from ..lazy_callee import LazyCallee, callees_of
from ..predicates import CHOICES, chosen, truth

if TYPE_CHECKING:
    from ....graph.library.function_library import FunctionLibrary
    from ....graph.ops.properties import NodeProperties
    from ..callee import Callees
    from .whole_body import WholeBody

_MAX_DEPTH = 8  # calls in calls, of which each needs some frames of Python's stack
_MAX_NODES = 20_000  # of one level: functions that call others twice grow without end


class _TooDeep(NotTakenIn):
    """Calls in calls that go deeper than a loop takes them in."""


class _Caller(NamedTuple):
    """The node `caller` of the function called at `around`; without one, that of the level. `depth` counts calls."""

    functions: Callees
    caller: str = ""
    around: TakenInCall | None = None
    depth: int = 0


def loop_of(cond: LazyCallee, body: LazyCallee) -> LocalLoop | None:
    """The loop of a While in the graph, or in a function that is called; None if it has to call its functions."""
    too_deep, name = body.functions.too_deep, body.function.name
    if name in too_deep:
        return None
    try:
        return _loop(cond, body, _Caller(cond.functions))
    except _TooDeep:
        # Else each loop of a deep nest would be tried, and its inner ones with it.
        too_deep.update(f for f, depth in _depths(body.functions.library, name).items() if depth > _MAX_DEPTH)
        return None
    except (NotTakenIn, PartitaError):
        return None


def _depths(library: FunctionLibrary, name: str) -> dict[str, int]:
    """How many calls deep a function goes, itself included, and those it leads to; a recursion counts once."""
    depths: dict[str, int] = {}
    under_way, seen = [name], {name}
    while under_way:
        needs = library.needs(under_way[-1])
        following = next((function for function in sorted(needs) if function not in seen), None)
        if following is None:
            depths[under_way.pop()] = 1 + max((depths.get(function, 0) for function in needs), default=0)
        else:
            seen.add(following)
            under_way.append(following)
    return depths


def _loop(cond: LazyCallee, body: LazyCallee, place: _Caller) -> LocalLoop:
    first, second = _whole(cond), _whole(body)
    level = TakenIn(first.binder)
    arguments = level.arguments(body.argument_types)
    (predicate,) = _TakingIn(level, first, place).run(arguments)
    first_of_body = level.num_nodes
    values = _TakingIn(level, second, place).run(arguments)
    types = [*second.body.result_types, *first.body.result_types]
    return level.loop([*values, predicate], types, first_of_body, truth)


def _branch(callee: LazyCallee, place: _Caller) -> ChoiceBranch:
    whole = _whole(callee)
    level = TakenIn(whole.binder)
    results = _TakingIn(level, whole, place).run(level.arguments(callee.argument_types))
    return level.branch(results, whole.body.result_types)


def _whole(callee: LazyCallee) -> WholeBody:
    whole = callee.whole_body()
    if whole is None:
        raise NotTakenIn
    return whole


class _TakingIn:
    """Adds the nodes of one function to a level."""

    def __init__(self, level: TakenIn, whole: WholeBody, place: _Caller) -> None:
        self._level = level
        self._whole = whole
        self._functions = place.functions
        self._site = TakenInCall(whole.body.name, whole.binder, place.caller, place.around)
        self._depth = place.depth
        self._loops: dict[str, LocalLoop] = {}

    def run(self, arguments: Sequence[LevelOutput]) -> list[LevelOutput]:
        """The results of the function on these arguments."""
        self._compile_loops()
        columns = self._whole.levels.root
        roles = list(map(roles_of(columns.kinds).__getitem__, columns.kind.tolist()))
        dead = may_be_dead(columns, roles)
        values: dict[int, LevelOutput] = {}
        numbers: dict[int, int] = {}
        results: dict[int, LevelOutput] = {}
        for node, (role, kind) in enumerate(zip(roles, columns.properties, strict=True)):
            inputs = [values[value] for value in columns.inputs[node]]
            if role is Role.ARG:
                outputs = [arguments[kind.attrs["index"]]]
            elif role is Role.RETVAL:
                if dead[node]:
                    raise NotTakenIn  # only a call says of a dead result whose it is
                results[kind.attrs["index"]] = self._level.read(inputs[0])
                continue
            else:
                after = [numbers[before] for before in columns.control_inputs[node] if before in numbers]
                name = NameInCall.at(self._site, columns.names[node])
                spliced = self._spliced(name, kind, inputs, is_dead=bool(dead[node]))
                if spliced is None:
                    numbers[node] = self._added(name, kind, inputs, after)
                outputs = spliced or [LevelOutput(numbers[node], output) for output in range(len(kind.output_types))]
            values.update(enumerate(outputs, int(columns.first_value[node])))
        return [results[index] for index in range(len(results))]

    def _compile_loops(self) -> None:
        """Compiles the loops that the function has of its own, which need no function to be taken in."""
        for loop in self._whole.levels.loops:
            if any(map(self._is_long_call, loop.columns.kinds)):
                raise NotTakenIn
            compiled = local_loop(loop, self._whole.binder, self._loops)
            if compiled is None:
                raise NotTakenIn
            self._loops[loop.name] = compiled

    def _is_long_call(self, kind: NodeProperties) -> bool:
        """Whether a node calls functions that are no single instruction."""
        return self._calls(kind) and self._whole.binder.is_deferred(kind)

    def _calls(self, kind: NodeProperties) -> bool:
        return calls_functions(kind, self._functions.library)

    def _spliced(
        self, name: NameInCall, kind: NodeProperties, inputs: Sequence[LevelOutput], *, is_dead: bool
    ) -> list[LevelOutput] | None:
        """The results of a call, whose nodes are added; None for any other node, and for a call that may be dead."""
        if is_dead or self._depth == _MAX_DEPTH or not is_call(kind, self._functions.library):
            return None
        (callee,) = self._callees(name, kind)
        caller = _Caller(self._functions, name, self._site, self._depth + 1)
        inlining = _TakingIn(self._level, _whole(callee), caller)
        return inlining.run([*map(self._level.read, inputs)])

    def _added(
        self, name: NameInCall, kind: NodeProperties, inputs: Sequence[LevelOutput], after: Sequence[int]
    ) -> int:
        """The number of a node, added as it is or as a loop or choice of its own."""
        if self._level.num_nodes > _MAX_NODES:
            raise NotTakenIn
        if isinstance(kind, Deferred):
            if not kind.frame:
                raise NotTakenIn  # it waits for something
            return self._level.add_work(name, kind.node, self._loops[kind.frame], inputs, after)
        if not self._is_long_call(kind):
            return self._level.add(name, kind, inputs, after)
        return self._level.add_work(name, kind, self._work(name, kind), inputs, after)

    def _work(self, name: NameInCall, kind: NodeProperties) -> LocalLoop | LocalChoice:
        calls, callees = kind.op_def.record.calls, self._callees(name, kind)
        if self._depth == _MAX_DEPTH:
            raise _TooDeep
        apart = _Caller(self._functions, depth=self._depth + 1)  # the level around knows where it is called
        if calls is Calls.WHILE:
            cond, body = callees
            return _loop(cond, body, apart)
        if calls in CHOICES:
            branches = [_branch(callee, apart) for callee in callees]
            return LocalChoice(tuple(branches), partial(chosen, calls, len(branches)))
        raise NotTakenIn

    def _callees(self, name: NameInCall, kind: NodeProperties) -> list[LazyCallee]:
        binder = self._whole.binder
        return callees_of(str(name), kind, self._functions, binder.device, binder.state.site)
