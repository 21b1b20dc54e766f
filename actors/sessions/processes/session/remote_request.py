"""A request that is registered with workers in other processes, each of which has the partitions of its devices.

made in a thread      partitions cut and written as bytes
post                  RegisterShare to each worker of it, before the first StartShare
confirm               waits for their answers; raises the first error, in the order of the devices
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import trio

from .....errors import PartitaError
from .....graph.analysis.transfers import transfer_of
from .....graph.library.calls import calls_functions
from .....rendezvous.key import ROOT_FRAME
from ....plans.keys import stem_of
from ...worker_protocol import RequestForgottenError
from ..messages.control import BindFunctions, ForgetShares, RegisterShare
from .spread_step import SpreadStep, StepOwner

if TYPE_CHECKING:
    from .....graph import CostGraphDef, GraphDef, StepStats
    from .....graph.analysis.cost_graph import CostModels
    from .....graph.dtypes import DataType
    from .....graph.graph import Graph
    from .....rendezvous.exchange import TensorExchange
    from .worker_member import WorkerMember


class RequestPart(NamedTuple):
    """Partitions by device, and the number of the functions that their nodes may call, 0 for none.

    `bind` has these functions to be made known first, with the workers that host the devices that they may use.
    """

    partitions: Mapping[str, Graph]
    functions: int
    bind: BindFunctions | None


class RequestOwner(StepOwner, Protocol):
    """What a request needs of `remote_workers.RemoteWorkers`."""

    costs: CostModels

    def registers(self, request: RemoteRequest) -> None:
        """The workers are about to answer, with the handle of the request."""

    def forgets(self, request: RemoteRequest) -> None:
        """The workers have no share of it any more."""


class RemoteRequest:
    """The `RegisteredRequest` of workers in other processes. `members` are those of its workers, by process.

    A worker without partitions is one of them if functions that the request calls may have nodes there.
    """

    alone = None
    whole = None
    keeps_feeds = True

    def __init__(
        self,
        handle: int,
        parts: Sequence[RequestPart],
        members: Mapping[str, WorkerMember],
        process_of: Mapping[str, str],
        client: str,
        owner: RequestOwner,
    ) -> None:
        """`process_of` gives the process of each device; `client` is the device that feeds and fetches."""
        self.handle = handle
        self.partitions = {device: graph for part in parts for device, graph in part.partitions.items()}
        self.devices = list(self.partitions)
        self.members = members
        self._owner = owner
        self.client: WorkerMember | None = members.get(process_of[client])
        self.feeds = _feeds(self.partitions[client]) if client in self.partitions else ()
        self._posts = [(process, part.bind) for part in parts if part.bind is not None for process in members]
        self._shares = {
            process: RegisterShare(handle, *self._written(parts, process, process_of), self.feeds)
            for process in members
        }
        self._order = list(dict.fromkeys(process_of[device] for device in self.partitions))
        self._errors: dict[str, PartitaError | None] = {}
        self._waiting = trio.lowlevel.ParkingLot()
        self._is_posted = False
        self._is_forgotten = not all(process in members for process in self._order)  # a device has no worker now

    @staticmethod
    def _written(
        parts: Sequence[RequestPart], process: str, process_of: Mapping[str, str]
    ) -> tuple[tuple[tuple[str, bytes], ...], int]:
        """The partitions of a worker as bytes, and the number of the functions that they may call."""
        own = [(part, device) for part in parts for device in part.partitions if process_of[device] == process]
        written = tuple((device, part.partitions[device].to_graph_def().SerializeToString()) for part, device in own)
        return written, max((part.functions for part, _ in own), default=0)

    def route(self, _key: str) -> TensorExchange | None:
        """The way to the values that the session receives: those of the client's device."""
        assert self.client is not None  # something is fetched
        return self.client.peer.exchange

    def post(self) -> None:
        """Registers the request, unless that was done, or it is forgotten."""
        if self._is_posted or self._is_forgotten:
            return
        self._is_posted = True
        self._errors = {process: member.error for process, member in self.members.items() if member.is_lost}
        self._owner.registers(self)
        for process, bind in self._posts:
            self.members[process].peer.post(bind)
        for process, share in self._shares.items():
            self.members[process].peer.post(share)
        self._posts.clear()
        self._shares.clear()

    def answered(self, process: str, error: PartitaError | None) -> None:
        """A worker is ready, or cannot be."""
        self._errors[process] = error
        self._waiting.unpark_all()

    def end(self, error: PartitaError) -> None:
        """No worker will answer any more."""
        for process in self.members:
            self._errors.setdefault(process, error)
        self._waiting.unpark_all()

    async def confirm(self) -> None:
        """As `RegisteredRequest.confirm`."""
        self.post()
        while not (self._is_forgotten or all(process in self._errors for process in self.members)):
            await self._waiting.park()
        if self._is_forgotten:
            raise _forgotten()
        for process in [*self._order, *self.members]:
            error = self._errors[process]
            if error is not None:
                raise error

    def check_frame(self, ends: tuple[list[DataType], list[DataType]] | None) -> None:
        """As `RegisteredRequest.check_frame`: the workers check that there is none."""

    def new_step(self, number: int, *, with_trace: bool = False) -> SpreadStep:
        """As `RegisteredRequest.new_step`."""
        if self._is_forgotten:
            lost = next((member.error for member in self.members.values() if member.error is not None), None)
            raise lost or _forgotten()
        return SpreadStep(number, self, self._owner, with_trace=with_trace)

    @property
    def is_registered(self) -> bool:
        """As `RegisteredRequest.is_registered`."""
        return not self._is_forgotten

    def deregister(self) -> None:
        """As `RegisteredRequest.deregister`."""
        if self._is_forgotten:
            return
        self._is_forgotten = True
        self._waiting.unpark_all()
        self._owner.forgets(self)
        if self._is_posted:
            for member in self.members.values():
                member.peer.post(ForgetShares((self.handle,)))

    def partition_graphs(self) -> list[GraphDef]:
        """As `RegisteredRequest.partition_graphs`."""
        return [part.to_graph_def() for part in self.partitions.values()]

    def add_costs(self, stats: StepStats, cost_graph: CostGraphDef) -> None:
        """As `RegisteredRequest.add_costs`."""
        self._owner.costs.learn(stats, self.partitions)
        self._owner.costs.add_all(self.partitions.values(), cost_graph)


def _forgotten() -> RequestForgottenError:
    return RequestForgottenError("the workers have forgotten the request: run it again")


def _feeds(partition: Graph) -> tuple[str, ...]:
    """The keys that the client sends to its device."""
    kinds, column = partition.distinct_properties()
    receives = np.flatnonzero(np.array([*(kind.op_def.record.is_recv for kind in kinds), False])[column])
    transfers = [transfer_of(partition.node_properties(node)) for node in receives.tolist()]
    return tuple(stem_of(transfer) + ROOT_FRAME for transfer in transfers if transfer.client_terminated)


def may_call(partitions: Iterable[Graph]) -> bool:
    """Whether a node of a request calls functions, or has a kernel that does."""
    kinds = ((kind, graph.functions) for graph in partitions for kind in graph.distinct_properties()[0])
    return any(kind.op_def.takes_functions or calls_functions(kind, library) for kind, library in kinds)
