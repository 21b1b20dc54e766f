"""What a session asks of its workers, whether they are in its process (`workers`) or in others (`processes`).

    register a request    -> `RegisteredRequest`: the workers keep their shares of it under handles
    request.new_step      -> `SessionStep`, which takes what is fed and gives what the request fetches
    step.start, fail, wait
    restart_device, clear, forget_requests, shut_down

All calls are made in the thread of the session, except `register`, which may be called in a worker thread. A call that
is not `async` takes effect in the session at once; workers in other processes hear of it by message, before whatever
the session asks of them later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import AbortedError

if TYPE_CHECKING:
    import trio

    from ...devices.cluster import Cluster
    from ...devices.pipeline import Pruned
    from ...devices.state import SessionTensors
    from ...errors import PartitaError
    from ...graph import CostGraphDef, GraphDef, StepStats
    from ...graph.dtypes import DataType
    from ...graph.graph import Graph
    from ...rendezvous import Outcome, Rendezvous
    from ..plans.plan import Plan
    from ..running.device_actor import DeviceActor
    from ..running.pacing import Pacer
    from ..running.virtual.clock import VirtualClock
    from .graph_manager import GraphManager
    from .whole_requests import WholeRequest


DevicesLost = Callable[[list[str], "PartitaError"], object]
"""called with full names of devices, and the error of steps that use them"""


class RequestForgottenError(AbortedError):
    """A step has not begun, because the workers have forgotten its request meanwhile; it may be prepared again."""


class StepUnderWay(Protocol):
    """A step that a session can stop."""

    @property
    def rendezvous(self) -> Rendezvous:
        """Where the session sends feeds and receives fetches."""

    def fail(self, error: PartitaError) -> None:
        """Stops the step on all workers; `wait` raises the first error that it was stopped with."""


class SessionStep(StepUnderWay, Protocol):
    """One step of a registered request."""

    def start(
        self,
        fed: list[Any],
        messages: Iterable[tuple[str, Any]] = (),
        fetches: Iterable[str] = (),
        *,
        awaits_host: bool = False,
    ) -> None:
        """Sends `messages`, tensors by key, and starts the step on all workers.

        `fed` are the values of the call frame, if the request has one. `fetches` are the keys that `received` will be
        asked for. With `awaits_host` the caller will send and receive more.
        """

    def wait(self) -> Awaitable[None]:
        """Returns when the step is done; raises its error when no worker works for it any more. May be called once."""

    def received(self, keys: Iterable[str]) -> Mapping[str, Outcome]:
        """What a finished step has sent to the session under these keys, `fetches` of the start."""

    def results(self) -> Mapping[int, Any]:
        """What a finished step has left in the call frame, by the number of the fetch; nothing without a frame."""

    def statistics(self) -> StepStats:
        """The times of a finished step that was made with a trace."""

    def waiting(self) -> list[str]:
        """The keys of receives that have no tensor, or had none when the step failed."""


class RegisteredRequest(Protocol):
    """One request, which the workers are ready to run or, in other processes, are getting ready for."""

    @property
    def partitions(self) -> Mapping[str, Graph]:
        """The graphs that run, by device; empty over several tasks, where the workers have them."""

    @property
    def devices(self) -> Collection[str]:
        """The devices with nodes of the request."""

    @property
    def alone(self) -> tuple[Plan, DeviceActor] | None:
        """The only plan and its actor, for a request that is a single plan without transfers in this process."""

    @property
    def whole(self) -> WholeRequest | None:
        """What runs the request in place of steps, where it runs uncut."""

    @property
    def keeps_feeds(self) -> bool:
        """Whether something may keep the fed arrays, so that they must be copied."""

    @property
    def is_registered(self) -> bool:
        """Whether no worker has deregistered its share."""

    def check_frame(self, ends: tuple[list[DataType], list[DataType]] | None) -> None:
        """Raises as `check_call_frame` for the types of feeds and fetches, as `check_no_call_frame` without them."""

    async def confirm(self) -> None:
        """Waits until all workers are ready; raises what compiling the request has raised in them.

        RequestForgottenError if the session forgets it meanwhile, because devices have moved.
        """

    def new_step(self, number: int, *, with_trace: bool = False) -> SessionStep:
        """A step that is not started yet, with a rendezvous of its own.

        Raises AbortedError if a share was deregistered, RequestForgottenError if that is the session's own doing.
        """

    def deregister(self) -> None:
        """Makes the workers forget their shares; running steps go on."""

    def partition_graphs(self) -> list[GraphDef]:
        """The graph of each device, as it runs."""

    def add_costs(self, stats: StepStats, cost_graph: CostGraphDef) -> None:
        """Adds the times of a traced step to the cost models of the request, and appends these to `cost_graph`."""


class SessionWorkers(Protocol):
    """The workers of one session."""

    @property
    def is_distributed(self) -> bool:
        """Whether the session is one over several tasks, which follows other rules than a local one."""

    @property
    def by_rendezvous(self) -> bool:
        """Whether all requests are fed and fetched at the rendezvous, not only partial runs."""

    @property
    def pacer(self) -> Pacer:
        """What the session may take of the time of its event loop."""

    @property
    def tensors(self) -> SessionTensors:
        """The tensors that the session keeps from step to step."""

    @property
    def clock(self) -> VirtualClock | None:
        """The virtual clock, if steps run on one."""

    @property
    def by_task(self) -> Mapping[str, GraphManager]:
        """The workers of this process, by the task of their first devices."""

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the tasks of the workers, which end after `shut_down`."""

    def shut_down(self, error: PartitaError) -> None:
        """Ends all actors; later calls of a worker raise `error`."""

    async def ready(self) -> None:
        """Waits until every device has a worker, before a request is prepared."""

    def watch(self, lost: DevicesLost, moved: Callable[[], object]) -> None:
        """Calls `lost` when devices are gone with their state, and `moved` when devices are hosted elsewhere."""

    def preparing(self) -> AbstractContextManager[None]:
        """Stops the time of a virtual clock while a request is prepared."""

    def register(self, pruned: Pruned, check: Callable[[], object]) -> RegisteredRequest:
        """Cuts a request and registers it with every worker that has nodes in it; calls `check` between stages.

        Raises what cutting, compiling in this process, and `check` raise.
        """

    def forget_requests(self) -> None:
        """Deregisters all requests; running steps go on."""

    def bind_functions(self, graph: Graph, *, soft: bool) -> None:
        """Makes the functions of a graph callable. Over several tasks this does nothing: each share has its own."""

    def serve(self) -> None:
        """Does the work of this process that is ready, after tensors were sent to steps."""

    def restart_device(self, name: str) -> AbortedError:
        """Restarts a device, given by its full name, and returns the error for steps that used its state."""

    def clear(self, containers: Iterable[str]) -> None:
        """Removes the resources of all devices in these containers; unknown containers are empty."""

    def devices_now(self, known: Cluster) -> Cluster:
        """The cluster with the current incarnations of the devices of `known`; `known` itself if none has restarted."""
