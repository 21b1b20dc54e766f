"""Plans scripts: how often the loops of a step run, which branches it takes, and what its calls run.

Only what runs is planned, so a recursion ends where its branches are known. Counts and branches have the names of the
path of calls (`call/inner`), so a body that has any gets a script per path; every other one is planned once per
function, arguments and devices, and so are the shapes of all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError, PartitaError, UnimplementedError
from ....graph.analysis.joined import JoinedGraph
from ....graph.analysis.joined_bodies import body_on, stayed_whole
from ....graph.analysis.trip_counts import Count, TripCounts
from ....graph.dtypes import DataType
from ....graph.library.calls import calls_gradient, is_partitioned_call
from ....graph.ops.record import NodeClass
from ....graph.ops.registry import PRODUCER
from ....graph.shape_inference.infer import CallShapes, FedShapes, InferredShapes, ShapedCall, Shapes, infer_body
from ...pipeline.bodies import ResourceDevices, body_of, placed_body
from ...pipeline.stages import Pipeline
from ..collectives.seats import counted_arguments
from ..tracing.shapes import missing_shapes
from .arguments import Argument, Callee, Site
from .call_plans import CallPlan
from .conditions import Conditions
from .levels import DecidedLevels
from .liveness import Liveness
from .nesting import Nested, run_nested
from .node_places import calls_in
from .scripts import Script

if TYPE_CHECKING:
    from ....graph import NameAttrList
    from ....graph.functions.body import FunctionBody
    from ....graph.library.function_library import FunctionLibrary
    from ....graph.ops.properties import NodeProperties
    from ....graph.shape_inference.inferred import AssumedShape
    from .body import Body
    from .choices import Choices
    from .planning import Planner

_MAX_DEPTH = 200  # calls of one function inside each other


class _Counted(NamedTuple):
    """Arguments of a function: nodes by joint number, and their indices."""

    nodes: frozenset[int]
    indices: frozenset[int]


_NO_ARGUMENTS = _Counted(frozenset(), frozenset())


class ScriptPlanner:
    """Plans the scripts of one step. `warnings` are those of all bodies, in order; `assumed` their assumed shapes."""

    def __init__(
        self,
        planner: Planner,
        choices: Choices,
        *,
        shapes: Mapping[str, Shapes] | None = None,
        assumed_size: int | None = None,
    ) -> None:
        """`shapes` has shapes of nodes in functions that are known from elsewhere, by the path of calls."""
        self.planner = planner
        self.choices = choices
        self.warnings: dict[str, None] = {}
        self.assumed: list[AssumedShape] = []
        self._shapes = shapes or {}
        self._shaped = sorted(self._shapes)
        self._assumed_size = assumed_size
        self._callees: dict[tuple[object, ...], Callee] = {}
        self._graphs: dict[tuple[object, ...], JoinedGraph] = {}  # of functions that a session would cut
        self._placing = "\n".join([planner.cluster.client.task_name, *planner.cluster.names])
        self._all_counted: dict[int, _Counted] = {}  # by graph
        self._called = CallShapes()
        self._inside = Counter[str]()  # the functions that are being planned

    def root(self, shapes: InferredShapes) -> Script:
        """The script of a step.

        Raises one InvalidArgumentError for all counts and branches that no source has, or for one that fits nothing;
        UnimplementedError for what cannot be timed; and the errors of placing and cutting the bodies of functions.
        """
        if set(shapes.graph.producers) == {PRODUCER}:  # as bodies have it, so that their calls give the same
            self._called = shapes.called
        script = run_nested(self._script(shapes, Site()))
        self.choices.check(shapes.graph)
        return script

    def _script(self, shapes: InferredShapes, site: Site) -> Nested[Script]:
        graph = shapes.graph
        calls = np.flatnonzero(calls_in(graph)).tolist()
        if not calls and not {NodeClass.SWITCH, NodeClass.ENTER}.intersection(graph.classes):
            return Script(None, self._planned(shapes, set(), site))
        trips = TripCounts(graph, shapes.values, {}, site.caller)
        counts, uncounted = self._counts(trips, site)
        conditions = Conditions(graph)
        answers = conditions.answers(trips, self.choices, site.path)
        liveness = Liveness(graph, trips.frames, conditions)
        never = liveness.never_live(counts, answers)
        for number in uncounted:
            if not never.issuperset(trips.frames.all[number].enters):
                self.choices.miss_trips(site.path.name(trips.frames.all[number].name))
        for number in {conditions.of[n] for n in conditions.of if n not in never and conditions.of[n] >= 0}:
            if answers[number] is None:
                condition = conditions.all[number]
                self.choices.miss_branch(site.path.name(condition.names[0]), condition.num_branches)
        whole = self._planned(shapes, never, site)
        live = [n for n in calls if n not in never]
        levels = DecidedLevels(whole, liveness, self.planner.edges(whole), set(live))
        planned = {}
        for n in live:
            planned[n] = yield CallPlan(self, n, whole, trips, counts, site).call()
        return Script(levels, whole, site.path, counts, answers, planned)

    def _planned(self, shapes: InferredShapes, never: set[int], site: Site) -> Body:
        prefix = "" if self.planner.times is None else str(site.path)
        body = self.planner.plan(shapes, never, prefix, site)
        self.warnings.update(dict.fromkeys(body.warnings))
        self.assumed += [shape._replace(node=site.path.name(shape.node)) for shape in shapes.assumed]
        return body

    def _counts(self, trips: TripCounts, site: Site) -> tuple[list[Count], list[int]]:
        """The counts of all frames, 1 for an unknown one, and which are unknown."""
        counts: list[Count] = [1]
        unknown = []
        for number, frame in enumerate(trips.frames.all[1:], 1):
            given = self.choices.trips(site.path.name(frame.name))
            if given is not None:
                trips.given[number] = given
        for number in range(1, len(trips.frames.all)):
            count = trips.count(number)
            if count is None:
                unknown.append(number)
                count = 1
            trips.given[number] = count
            counts.append(count)
        return counts, unknown

    def callee(
        self,
        function: NameAttrList,
        properties: NodeProperties,
        library: FunctionLibrary,
        device: str,
        site: Site,
        arguments: Sequence[Argument],
        *,
        is_plain: bool = False,
    ) -> Nested[tuple[Script, Shapes]]:
        """The script of a called function, and the shapes of its results.

        The script of a plain call is that of all values of arguments that are added to instances of collectives.

        Raises UnimplementedError for a recursion without a known end.
        """
        if self._inside[function.name] > (0 if self.choices.is_missing else _MAX_DEPTH):
            self.choices.check_missing()
            raise UnimplementedError(
                f"function {function.name!r} calls itself, and nothing known before the run ends that; say which "
                "branches end it with --branch, or simulate with a trace"
            )
        resources: ResourceDevices | None = None
        if is_partitioned_call(properties):
            resources = tuple(a.resource or device for a in arguments if a.dtype is DataType.RESOURCE)
        body = body_of(library, function, gradient=calls_gradient(properties))
        path = str(site.path) if self._shapes or self.planner.times is not None else ""
        known_shapes = self._shapes_of(path)
        by_path = path if known_shapes or self.planner.times is not None else ""
        counted = self._counted(body, device, resources) if is_plain else _NO_ARGUMENTS
        if counted.nodes:
            arguments = [replace(a, array=None) if i in counted.indices else a for i, a in enumerate(arguments)]
        key = id(body), device, resources, by_path, bool(counted.nodes), *(argument.key for argument in arguments)
        if key not in self._callees:
            callee = self._callee(body, device, resources, arguments, known_shapes)
            self._callees[key] = replace(callee, counted=counted.nodes)
        known = self._callees[key]
        if known.script is None:
            self._inside[function.name] += 1
            script = yield self._script(known.shapes, known.site(site, arguments))
            self._inside[function.name] -= 1
            if script.has_choices:
                return script, known.results
            known.script = script
        return known.script, known.results

    def _shapes_of(self, prefix: str) -> dict[str, Shapes]:
        """The known shapes of nodes in a function, by their names there."""
        names, known = self._shaped, {}
        for k in range(bisect_left(names, prefix), len(names)):
            if not names[k].startswith(prefix):
                break
            known[names[k].removeprefix(prefix)] = self._shapes[names[k]]
        return known

    def _graph(self, body: FunctionBody, device: str, resources: ResourceDevices | None) -> JoinedGraph:
        """The cut body of a function: the same for all its calls, which share the constants in it.

        A body that stays whole keeps its graph for the next step on such a cluster.
        """
        key = self._placing, device, resources
        joined = body.kept.get(key) or self._graphs.get((body, *key))
        if not isinstance(joined, JoinedGraph):
            placed = placed_body(Pipeline(self.planner.cluster), body, device, resources)
            joined = body_on(body, placed.cut().in_order())
            if stayed_whole(body, joined):
                body.kept[key] = joined
            else:
                self._graphs[body, *key] = joined
        return joined

    def _counted(self, body: FunctionBody, device: str, resources: ResourceDevices | None) -> _Counted:
        """The arguments of a function that are added to instances of collectives, and to nothing else."""
        try:
            graph = self._graph(body, device, resources)
        except PartitaError as error:
            raise error.inside(body.name) from error.__cause__
        if id(graph) not in self._all_counted:
            nodes = counted_arguments(graph)
            indices = frozenset(graph.properties[n].attrs["index"] for n in nodes)
            self._all_counted[id(graph)] = _Counted(frozenset(nodes), indices)
        return self._all_counted[id(graph)]

    def _callee(
        self,
        body: FunctionBody,
        device: str,
        resources: ResourceDevices | None,
        arguments: Sequence[Argument],
        known: Mapping[str, Shapes],
    ) -> Callee:
        if len(arguments) != len(body.arguments):
            raise InvalidArgumentError(f"{body.name} has {len(body.arguments)} arguments, the call {len(arguments)}")
        try:
            joined = self._graph(body, device, resources)
            pairs = list(zip((node.name for node in body.arguments), arguments, strict=True))
            feeds: FedShapes = {name: a.shape if a.array is None else a.array for name, a in pairs}
            handles = {name: argument.behind for name, argument in pairs if argument.behind is not None}
            if known:
                feeds = {**missing_shapes(infer_body(joined, feeds, handles, self._called), known, feeds), **feeds}
            shapes = None if known else self._known_shapes(body, joined, arguments)
            if shapes is None:
                shapes = infer_body(joined, feeds, handles, self._called, assumed_size=self._assumed_size)
        except PartitaError as error:
            raise error.inside(body.name) from error.__cause__
        return Callee(body, shapes)

    def _known_shapes(
        self, body: FunctionBody, joined: JoinedGraph, arguments: Sequence[Argument]
    ) -> InferredShapes | None:
        """The shapes in a body that were found where the results of a call of it were; None where more is known now."""
        if self._assumed_size is not None or any(argument.array is not None for argument in arguments):
            return None
        handles = tuple((i, a.behind) for i, a in enumerate(arguments) if a.behind is not None)
        call = ShapedCall(body, tuple(argument.shape for argument in arguments), handles, frozenset())
        shapes = self._called.inside.get(call)
        if not isinstance(shapes, InferredShapes) or not stayed_whole(body, joined):
            return None
        return shapes.of_equal(joined)
