"""The graphs that a worker has registered: each is cut by device, compiled, and known by a handle.

    add(partitions)          -> "0000000000000000"; the plans have an actor each
    work("0000000000000000") -> [(plan of CPU:0, actor of CPU:0), (plan of CPU:1, actor of CPU:1)]
    deregister(...)          forgets the graph; steps of it that run go on
    take_all()               forgets all of them; `free_in_turns` frees what they consist of

A call with a handle that is not known, or not any more, raises AbortedError; a master registers the graph again then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import trio

from ...errors import AbortedError
from ...graph.analysis.cost_graph import CostModels
from ..plans.compiler import compile_plans
from ..plans.plan import Plan

if TYPE_CHECKING:
    from ...devices.pipeline import Partitioned
    from ...graph import CostGraphDef, GraphDef, StepStats
    from ...graph.graph import Graph
    from ..running.device_actor import DeviceActor
    from ..running.functions import Functions
    from ..running.pacing import Pacer

_AT_ONCE = 256  # pieces, which take well under a millisecond to free
PlacedPlans = Sequence[tuple["Plan", "DeviceActor"]]


@dataclass(slots=True)
class _RegisteredGraph:
    """A graph cut by device and compiled; `functions` are those that its nodes may call.

    `from_elsewhere` says whether other workers have parts of it.
    """

    partitions: Mapping[str, Graph]
    work: PlacedPlans
    from_elsewhere: bool
    functions: Functions | None
    traced_work: PlacedPlans = ()
    """the same plans with a clock around every node, compiled for the first traced step"""


class RegisteredGraphs:
    """The graphs of one worker by handle, each with what traced steps have told of its costs."""

    def __init__(self, actors: Mapping[str, DeviceActor], numbers: Iterator[int]) -> None:
        """`actors` are those of the worker's devices; `numbers` gives the numbers of handles."""
        self._actors = actors
        self._numbers = numbers
        self._graphs: dict[str, _RegisteredGraph] = {}
        self._cost_models = CostModels()

    def add(self, partitioned: Partitioned, functions: Functions | None = None, *, from_elsewhere: bool = True) -> str:
        """Compiles a graph that has been cut by device and returns its handle. Raises as `compile_plans`.

        `functions` are those that its nodes may call. `from_elsewhere` says that other workers may send to the graph;
        otherwise more tensors share a message.
        """
        handle, partitions = f"{next(self._numbers):016x}", partitioned.graphs
        work = self._compiled(partitions, functions, from_elsewhere=from_elsewhere)
        self._graphs[handle] = _RegisteredGraph(partitions, work, from_elsewhere, functions)
        return handle

    def _compiled(
        self,
        partitions: Mapping[str, Graph],
        functions: Functions | None,
        *,
        from_elsewhere: bool,
        every_node: bool = False,
    ) -> PlacedPlans:
        actors = [self._actors[device] for device in partitions]
        bound = [
            (graph, actor.binder.calling(functions)) for graph, actor in zip(partitions.values(), actors, strict=True)
        ]
        plans = compile_plans(bound, every_node=every_node, from_elsewhere=from_elsewhere)
        return tuple(zip(plans, actors, strict=True))

    def __contains__(self, handle: str) -> bool:
        return handle in self._graphs

    def work(self, handle: str, *, with_trace: bool = False) -> PlacedPlans:
        """The plans of a graph with their actors; with `with_trace` the plans have a clock around every node."""
        graph = self._find(handle)
        if not with_trace:
            return graph.work
        if not graph.traced_work:
            functions = None if graph.functions is None else graph.functions.traced
            graph.traced_work = self._compiled(
                graph.partitions, functions, from_elsewhere=graph.from_elsewhere, every_node=True
            )
        return graph.traced_work

    def partitions(self, handle: str) -> list[GraphDef]:
        """The optimised graph of each device."""
        return [graph.to_graph_def() for graph in self._find(handle).partitions.values()]

    def learn(self, handle: str, stats: StepStats) -> None:
        """Adds the times of a traced step to the cost models of a graph."""
        self._cost_models.learn(stats, self._find(handle).partitions)

    def build_cost_model(self, handle: str, cost_graph: CostGraphDef) -> None:
        """Appends the cost models of a graph to `cost_graph`."""
        self._cost_models.add_all(self._find(handle).partitions.values(), cost_graph)

    @trio.lowlevel.enable_ki_protection
    def deregister(self, handle: str) -> None:
        """Forgets a graph; running steps of it go on."""
        if handle not in self._graphs:
            raise AbortedError(f"Graph handle is not found: {handle}. Possibly, this worker just restarted.")
        for graph in self._graphs.pop(handle).partitions.values():
            self._cost_models.remove(graph)

    @trio.lowlevel.enable_ki_protection
    def deregister_all(self) -> None:
        """Forgets all graphs, as the restart of a worker does."""
        for handle in list(self._graphs):
            self.deregister(handle)

    def take_all(self) -> list[Plan | Graph]:
        """Forgets all graphs and returns what they consist of, for `free_in_turns`."""
        taken: list[Plan | Graph] = []
        for graph in self._graphs.values():
            taken += graph.partitions.values()
            taken += [plan for plan, _ in (*graph.work, *graph.traced_work)]
        self.deregister_all()
        return taken

    def _find(self, handle: str) -> _RegisteredGraph:
        graph = self._graphs.get(handle)
        if graph is None:
            raise AbortedError(f"Graph handle is not found: {handle}")
        return graph


@trio.lowlevel.enable_ki_protection
async def free_in_turns(forgotten: list[Plan | Graph], pacer: Pacer) -> None:
    """Frees what the caller has forgotten, and lets other tasks run in between.

    Python frees all that only a dropped object refers to at once, with the event loop and all threads waiting: tens of
    milliseconds for a large graph. Shielded from cancellation, which would drop the rest at once.
    """
    with trio.CancelScope(shield=True):
        while forgotten:
            pieces: list[object] = _pieces(forgotten.pop())
            while pieces:
                del pieces[-_AT_ONCE:]
                await pacer.yield_if_due()


def _pieces(whole: Plan | Graph) -> list[object]:
    """What a plan consists of, each piece after those that it refers to; a graph, mostly columns, is one piece."""
    if not isinstance(whole, Plan):
        return [whole]
    return [*chain.from_iterable(segment.chunks for segment in whole.segments), *whole.segments, whole]
