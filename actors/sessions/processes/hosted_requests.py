"""The shares of requests that a worker has compiled, by the handles of the session, and the functions they may call.

BindFunctions(1, library)                       functions 1
RegisterShare(7, {CPU:1: ...}, functions=1)     plans of CPU:1, or the error that compiling them raised
StartShare(step, 7)                             `find(7)`
ForgetShares([7])                               both are forgotten when nothing needs them any more
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from ....devices.pipeline import Partitioned, Pipeline
from ....errors import InternalError, PartitaError, UnimplementedError
from ....graph import FunctionDefLibrary
from ....graph.graph import Graph
from ....graph.graphdef.importer import graph_def_to_graph
from ...plans.levels import Unfoldable
from ...running.call_frame import check_no_call_frame
from ...running.remote.functions import Hosting, RemoteFunctions
from ..registered_graphs import RegisteredGraphs

if TYPE_CHECKING:
    from ....devices.cluster import Cluster
    from ...running.device_actor import DeviceActor
    from ..registered_graphs import PlacedPlans
    from .messages.control import BindFunctions, RegisterShare

_NO_FUNCTIONS = 0


@dataclass(frozen=True, slots=True)
class HostedShare:
    """A share of a request. `graph` is its handle among the registered graphs; `feeds` are keys the session sends."""

    graph: str
    functions: int
    feeds: tuple[str, ...]


class HostedRequests:
    """The shares and functions of one session in one worker."""

    def __init__(self, actors: Mapping[str, DeviceActor]) -> None:
        """`actors` are those of the devices that the worker has, at any moment."""
        self._actors = actors
        self._graphs = RegisteredGraphs(actors, count())
        self._shares: dict[int, HostedShare | PartitaError] = {}
        self._functions: dict[int, RemoteFunctions] = {}

    def bind(self, functions: BindFunctions, cluster: Cluster, hosting: Hosting) -> None:
        """Keeps the functions of a graph, which nodes on the devices of `cluster` may call."""
        library = Graph(FunctionDefLibrary.FromString(functions.library)).functions
        self._functions[functions.number] = RemoteFunctions(
            library, cluster, self._actors, soft=functions.soft, number=functions.number, hosting=hosting
        )

    def functions(self, number: int) -> RemoteFunctions:
        """The functions of a graph, by number; InternalError if they are forgotten."""
        functions = self._functions.get(number)
        if functions is None:
            raise InternalError(f"functions {number} of the session are not known to this worker")
        return functions

    def register(self, share: RegisterShare, cluster: Cluster) -> PartitaError | None:
        """Compiles a share; the error that this raises, which `find` raises from now on."""
        try:
            functions = None if share.functions == _NO_FUNCTIONS else self.functions(share.functions)
            graph = self._compiled(share, cluster, functions)
        except PartitaError as error:
            self._shares[share.handle] = failed = _refused_loop(error) if isinstance(error, Unfoldable) else error
            return failed
        self._shares[share.handle] = HostedShare(graph, share.functions, share.feeds)
        return None

    def _compiled(self, share: RegisterShare, cluster: Cluster, functions: RemoteFunctions | None) -> str:
        graphs = {
            device: graph_def_to_graph(part, allow_internal_names=True, expect_device=True)
            for device, part in share.partitions
        }
        missing = [device for device in graphs if device not in self._actors]
        if missing:
            raise InternalError(f"this worker does not host {', '.join(missing)}")
        graph = self._graphs.add(Partitioned(Pipeline(cluster), graphs), functions)
        try:
            check_no_call_frame(plan for plan, _ in self._graphs.work(graph))
        except PartitaError:
            self._graphs.deregister(graph)
            raise
        return graph

    def find(self, handle: int) -> HostedShare:
        """A share; raises its error, InternalError if it is forgotten."""
        share = self._shares.get(handle)
        if isinstance(share, HostedShare):
            return share
        if share is None:
            raise InternalError(f"share {handle} of the session is not registered in this worker")
        raise type(share)(share.message).located(node=share.node, op=share.op, device=share.device)

    def work(self, share: HostedShare, *, with_trace: bool) -> PlacedPlans:
        """The plans of a share with their actors."""
        return self._graphs.work(share.graph, with_trace=with_trace)

    def forget(self, handles: tuple[int, ...]) -> None:
        """Forgets shares."""
        for handle in handles:
            share = self._shares.pop(handle, None)
            if isinstance(share, HostedShare):
                self._graphs.deregister(share.graph)

    def forget_functions(self, in_use: set[int]) -> None:
        """Forgets functions that neither a share nor one of the steps with those `in_use` may call, but the latest."""
        in_use = in_use | {share.functions for share in self._shares.values() if isinstance(share, HostedShare)}
        latest = max(self._functions, default=_NO_FUNCTIONS)
        self._functions = {n: each for n, each in self._functions.items() if n in in_use or n == latest}


def _refused_loop(error: Unfoldable) -> UnimplementedError:
    """A loop that only the interpreter can run."""
    return UnimplementedError(
        f"the loop at node {error.node!r} is not built as tf.while_loop builds them, and only a session in one process "
        "runs such a loop: open the session without workers=, or give each Merge one Enter and one NextIteration",
        node=error.node,
    )
