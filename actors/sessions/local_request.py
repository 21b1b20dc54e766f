"""A request that is registered with the workers of the session's own process: their plans are called directly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..running.call_frame import check_call_frame, check_no_call_frame
from .worker_steps import RequestStep

if TYPE_CHECKING:
    from ...graph import CostGraphDef, GraphDef, StepStats
    from ...graph.dtypes import DataType
    from ...graph.graph import Graph
    from ..plans.plan import Plan
    from ..running.actor_group import ActorGroup
    from ..running.device_actor import DeviceActor
    from ..running.step import Step
    from .graph_manager import GraphManager
    from .registered_graphs import PlacedPlans
    from .whole_requests import WholeRequest
    from .worker_steps import WorkerSteps

    NewStep = Callable[..., Step | WorkerSteps]


class WorkerShare(NamedTuple):
    """The part of a request that one worker runs: a graph that is registered with it, under `handle`."""

    worker: GraphManager
    handle: str


class LocalRequest:
    """The shares of all workers in a request: the `RegisteredRequest` of workers in this process.

    A request that runs uncut has a `whole` instead of shares; `partitions` are then those that no pass over partitions
    has changed.
    """

    __slots__ = ("_actor_group", "_new_step", "_shares", "alone", "devices", "keeps_feeds", "partitions", "whole")

    def __init__(
        self,
        shares: tuple[WorkerShare, ...],
        partitions: Mapping[str, Graph],
        whole: WholeRequest | None,
        new_step: NewStep,
        actor_group: ActorGroup,
    ) -> None:
        """`new_step` makes a step from its number and `with_trace`."""
        self.partitions = partitions
        self.whole = whole
        self._shares = shares
        self._new_step = new_step
        self._actor_group = actor_group
        work = self._work()
        plans = [plan for plan, _ in work]
        is_alone = len(plans) == 1 and not (plans[0].arrivals or plans[0].deferred)
        self.alone: tuple[Plan, DeviceActor] | None = work[0] if is_alone else None
        self.keeps_feeds = not plans or any(plan.keeps_inputs for plan in plans)
        self.devices = [*partitions, *(actor.name for _, actor in work)]

    def _work(self, *, with_trace: bool = False) -> PlacedPlans:
        """The plans of all workers with their actors; AbortedError if a worker has deregistered its share."""
        if len(self._shares) == 1:
            worker, handle = self._shares[0]
            return worker.graphs.work(handle, with_trace=with_trace)
        return [pair for worker, handle in self._shares for pair in worker.graphs.work(handle, with_trace=with_trace)]

    def check_frame(self, ends: tuple[list[DataType], list[DataType]] | None) -> None:
        """As `RegisteredRequest.check_frame`."""
        plans = [plan for plan, _ in self._work()]
        if ends is None:
            check_no_call_frame(plans)
        else:
            check_call_frame(plans, *ends)

    async def confirm(self) -> None:
        """All workers have compiled their shares when the request is made."""

    def new_step(self, number: int, *, with_trace: bool = False) -> RequestStep:
        """As `RegisteredRequest.new_step`."""
        if len(self._shares) == 1:  # as in `_work`, without another call
            worker, handle = self._shares[0]
            work = worker.graphs.work(handle, with_trace=with_trace)
        else:
            work = self._work(with_trace=with_trace)
        return RequestStep(self._new_step(number, with_trace), work, self._actor_group, with_trace)

    @property
    def is_registered(self) -> bool:
        """As `RegisteredRequest.is_registered`."""
        return all(handle in worker.graphs for worker, handle in self._shares)

    def deregister(self) -> None:
        """As `RegisteredRequest.deregister`."""
        for worker, handle in self._shares:
            if handle in worker.graphs:
                worker.graphs.deregister(handle)

    def partition_graphs(self) -> list[GraphDef]:
        """As `RegisteredRequest.partition_graphs`."""
        if self.partitions:
            return [part.to_graph_def() for part in self.partitions.values()]
        return [part for worker, handle in self._shares for part in worker.graphs.partitions(handle)]

    def add_costs(self, stats: StepStats, cost_graph: CostGraphDef) -> None:
        """As `RegisteredRequest.add_costs`."""
        for worker, handle in self._shares:
            worker.graphs.learn(handle, stats)
            worker.graphs.build_cost_model(handle, cost_graph)
