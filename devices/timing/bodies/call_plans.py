"""What a node that calls functions runs: a function, one of several, or two of them in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError, PartitaError, UnimplementedError
from ....graph.analysis.counters import Number, Truth, Value
from ....graph.analysis.loop_values import loop_values
from ....graph.analysis.trip_counts import Count, KnownArguments, TripCounts
from ....graph.dtypes import DataType, base_type
from ....graph.library.calls import arguments_of_its_own, called_by, inputs_before_arguments
from ....graph.ops.record import Calls
from ....graph.shape_inference.infer import InferredShapes
from ....graph.shape_inference.unknown_sizes import CallSite
from .arguments import Argument, Site, resource_device
from .conditions import Answer, branch_of, predicate_names
from .nesting import Nested
from .scripts import Call, Script

if TYPE_CHECKING:
    from ....graph import NameAttrList
    from ....graph.shape_inference.infer import Shapes
    from .body import Body
    from .script_planner import ScriptPlanner

_MAX_SHAPES = 100  # different shapes that the variables of a While may have
_MAX_TURNS = 10_000  # counts of a While that are derived one by one


class CallPlan:
    """Plans the call of node `n` of a graph whose columns are `whole`."""

    def __init__(
        self, planner: ScriptPlanner, n: int, whole: Body, trips: TripCounts, counts: Sequence[Count], site: Site
    ) -> None:
        self.planner = planner
        self.graph = whole.graph
        assert isinstance(whole.shapes, InferredShapes)  # a graph is planned with the shapes that are inferred for it
        self.shapes = shapes = whole.shapes
        self.n = n
        self.properties = whole.graph.properties[n]
        self.library = whole.graph.functions[int(whole.graph.place[n])]
        devices = planner.planner.cluster.devices
        self.device = devices[int(whole.device[n])].name
        frame = trips.frames.of[n]
        count = counts[frame] if frame else site.caller.count
        caller = KnownArguments({}, count if isinstance(count, int) else 1)
        path = site.path.into(whole.graph.names[n])
        kind = self.properties.op_def.record.calls
        first = inputs_before_arguments(kind) - arguments_of_its_own(kind)
        called = CallSite(shapes, n, first, path.name, site.called)
        self.site = replace(site, path=path, caller=caller, called=called)
        self.around = site.path
        self.arguments = []
        for source, dtype in zip(self.graph.inputs_of(n), self._types, strict=True):
            shape = shapes.of(source[0])[source[1]]
            value = None
            if shape is None or prod(size or 1 for size in shape) == 1:  # trip counts follow from scalars
                value = trips.value(frame, source) if frame else trips.in_call(source)
            self.arguments.append(
                Argument(
                    dtype,
                    shape,
                    shapes.values.get(source),
                    shapes.behind(*source),
                    value,
                    self._resource_device(source, site, whole) if dtype is DataType.RESOURCE else "",
                )
            )

    def _resource_device(self, source: tuple[int, int], site: Site, whole: Body) -> str:
        devices = self.planner.planner.cluster.devices
        return resource_device(self.graph, source, site, lambda n: devices[int(whole.device[n])].name)

    @property
    def _types(self) -> list[DataType]:
        return [base_type(dtype) for dtype in self.properties.input_types]

    @property
    def name(self) -> str:
        """The name of the node in the step."""
        return self.around.name(self.graph.names[self.n])

    def call(self) -> Nested[Call]:
        """What the node runs. Raises, located, what planning the functions raises."""
        try:
            call: Call = yield self._planned()
        except PartitaError as error:
            raise error.located(node=self.name, op=self.properties.op) from error.__cause__
        return call

    def _planned(self) -> Nested[Call]:
        match self.properties.op_def.record.calls:
            case Calls.WHILE | Calls.FOR as kind:
                return self._loop(kind)
            case Calls.IF | Calls.CASE as kind:
                return self._conditional(kind)
            case Calls.MAP:
                return self._map()
            case Calls.REMOTE:
                raise UnimplementedError("where a remote call runs is known only then; place a call there instead")
            case kind:
                return self._plain(kind)

    @property
    def _functions(self) -> list[NameAttrList]:
        return called_by(self.properties, self.library)

    def _script(
        self, function: NameAttrList, arguments: Sequence[Argument], site: Site | None = None
    ) -> Nested[tuple[Script, Shapes]]:
        return self.planner.callee(function, self.properties, self.library, self.device, site or self.site, arguments)

    def _plain(self, kind: Calls | None) -> Nested[Call]:
        planner, function = self.planner, self._functions[0]
        script, _ = yield planner.callee(
            function, self.properties, self.library, self.device, self.site, self.arguments, is_plain=True
        )
        return Call(kind, [script], numbers=self._numbers(script))

    def _numbers(self, script: Script) -> dict[int, int]:
        """What is added to instances of collectives, by argument; InvalidArgumentError if it is not known."""
        numbers: dict[int, int] = {}
        for index in {seat.argument for seat, _ in script.whole.seats.values()} - {-1}:
            array = self.arguments[index].array
            if array is None or array.size != 1:
                raise InvalidArgumentError(
                    f"the clock has to know argument {index} before the run, as it is the instance of a collective; "
                    "give it as a constant"
                )
            numbers[index] = int(array.reshape(-1)[0])
        return numbers

    def _conditional(self, kind: Calls) -> Nested[Call]:
        functions = self._functions[::-1] if kind is Calls.IF else self._functions  # by branch: then is 1
        names = [
            self.name,
            *(self.around.name(name) for name in predicate_names(self.graph, self.graph.inputs_of(self.n)[0])),
        ]
        answer: Answer = self.planner.choices.branch(names, len(functions))
        if answer is None:
            answer = branch_of(self.arguments[0].value, len(functions))
        if answer is None:
            self.planner.choices.miss_branch(self.name, len(functions))
        taken = _taken(answer, len(functions))
        scripts: list[Script | None] = [None] * len(functions)
        for branch in sorted(taken):
            scripts[branch], _ = yield self._script(functions[branch], self.arguments[1:])
        return Call(kind, scripts, answer=answer)

    def _map(self) -> Nested[Call]:
        mapped = len(self.properties.attrs["Targuments"])
        rows = {argument.shape[0] if argument.shape else None for argument in self.arguments[:mapped]}
        if len(rows) != 1 or None in rows:
            raise InvalidArgumentError(f"the number of rows is unknown; give it with --shape {self.name}=...")
        arguments = [replace(a, shape=(a.shape or ())[1:], array=None, value=None) for a in self.arguments[:mapped]]
        script, _ = yield self._script(self._functions[0], [*arguments, *self.arguments[mapped:]])
        return Call(Calls.MAP, [script], count=rows.pop() or 0)

    def _loop(self, kind: Calls) -> Nested[Call]:
        starts = [argument.value for argument in self.arguments]
        found = loop_values(self.properties, self.library, [_constant(value) for value in starts])
        count: Count | None = self.planner.choices.trips(self.name)
        if count is None:
            count = found.count if found.count is not None else self._counts_by_turn(starts)
        if count is None:
            self.planner.choices.miss_trips(self.name)
            count = 1
        most = count if isinstance(count, int) else max(count, default=0)
        own = arguments_of_its_own(kind)
        site = replace(self.site, caller=KnownArguments({}, count if isinstance(count, int) else 1))
        arguments = [
            replace(
                a,
                value=value,
                array=a.array if isinstance(value, Number) and value.is_constant else None,
                behind=self.shapes.behind(self.n, i) if a.dtype is DataType.VARIANT else a.behind,
            )
            for i, (a, value) in enumerate(zip(self._variables(kind), found.variables, strict=True), -own)
        ]
        scripts: list[Script | None] = []
        *conditions, body = self._functions
        for _ in range(min(most, _MAX_SHAPES) or len(conditions)):
            for cond in conditions:
                script, _ = yield self._script(cond, arguments, site)
                scripts.append(script)
            if not most:
                break
            script, results = yield self._script(body, arguments, site)
            scripts.append(script)
            following = self._following(arguments, results, own, body.name)
            if following == arguments:
                break
            arguments = following
        return Call(kind, scripts, count=count)

    def _variables(self, kind: Calls) -> list[Argument]:
        """The arguments of a loop's body in its first turn, as far as they are no number that the loop gives."""
        if kind is Calls.WHILE:
            return self.arguments
        return [Argument(DataType.INT32, ()), *self.arguments[inputs_before_arguments(kind) :]]

    def _following(self, arguments: Sequence[Argument], results: Shapes, own: int, name: str) -> list[Argument]:
        """The arguments of the next turn; InvalidArgumentError for a body that gives another number of results."""
        variables = arguments[own:]
        if len(results) != len(variables):
            raise InvalidArgumentError(
                f"the loop has {len(variables)} variables, but its body {name!r} gives {len(results)} results"
            )
        changed = [replace(a, shape=shape) for a, shape in zip(variables, results, strict=True)]
        return [*arguments[:own], *changed]

    def _counts_by_turn(self, starts: Sequence[Value]) -> list[int] | None:
        """A count for every iteration of the loop around, if the variables begin with values that depend on it."""
        turns = self.site.caller.count
        if turns > _MAX_TURNS or all(value is None or _constant(value) == value for value in starts):
            return None
        counts = []
        for i in range(turns):
            values = [None if value is None else value.at(i) for value in starts]
            count = loop_values(self.properties, self.library, values).count
            if count is None:
                return None
            counts.append(count)
        return counts


def _taken(answer: Answer, num_branches: int) -> set[int]:
    """The branches that may be taken."""
    if isinstance(answer, int):
        return {answer}
    if answer is None or isinstance(answer, Truth):
        return set(range(num_branches))
    return set(answer)


def _constant(value: Value) -> Value:
    """The value if it is the same in every iteration of the loop around."""
    if isinstance(value, Truth):
        return value if value.at(0) == value else None
    return value if value is not None and value.is_constant else None
