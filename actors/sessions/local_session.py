"""Opens a local session: one worker with all devices, of whatever tasks, in the event loop of the caller."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...graph import ConfigProto
from ...graph.display.progress import ProgressCallback, no_progress
from ...rendezvous import refuse_stale
from ..running.pacing import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S
from ..running.threads import run_first_in_thread
from .lifetime import Block
from .options.config_checks import own_copy, usable_devices
from .options.remote_places import DEFAULT_HEARTBEAT_S, RemotePlaces
from .prepared_requests import DEFAULT_MAX_REQUESTS
from .session import Session
from .session_graph import GraphReader, session_pipeline
from .virtual_sessions import costs_of, load_virtual_clock
from .workers import Workers, WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...devices.timing import CostSource
    from ...graph.graphdef.sources import GraphSource
    from ...rendezvous import Policy
    from .processes.session.opening import GivenWorkers
    from .worker_protocol import SessionWorkers


def open_session(
    graph_def: GraphSource,
    devices: str | Path | Cluster = "cpu:1",
    *,
    config: ConfigProto | None = None,
    passes: str | None = None,
    seed: int | None = None,
    budget_s: float = DEFAULT_BUDGET_S,
    thread_limit_s: float = DEFAULT_THREAD_LIMIT_S,
    on_progress: ProgressCallback = no_progress,
    clock: Literal["real", "virtual"] = "real",
    cost_source: CostSource | None = None,
    keep_timeline: bool = False,
    max_requests: int = DEFAULT_MAX_REQUESTS,
    policy: Policy = refuse_stale,
    workers: GivenWorkers | None = None,
    spread: Mapping[str, str | int] | None = None,
    heartbeat_s: float = DEFAULT_HEARTBEAT_S,
) -> AbstractAsyncContextManager[Session]:
    """Imports a graph, places it on `devices` and opens a session on it, for the length of an `async with` block.

    The graph may be a GraphDef, its bytes, the path of its file, a `GraphBuilder` or a `Graph`; `devices` are a text
    like "cpu:2,gpu:4", a `Cluster` or the path of a cluster file. docs/config.md says what each field of `config` does;
    a field that would change values or placement and is not honoured is refused by name.

    `passes`, such as "inline,fold,common", rewrite the graph, in place of those that `config` asks for; "" means none.
    `seed` makes random ops without a seed of their own repeatable. A step lets other tasks of the event loop run after
    at most `budget_s` seconds; a kernel that takes more than `thread_limit_s` seconds (on a single device: more than
    both) runs in a worker thread from then on. `on_progress` is told of the import, possibly in another thread.

    At most `max_requests` requests (names of feeds, fetches and targets) stay prepared. A further one takes the place
    of the least recently used, which is prepared again when it is next run; state is kept by the devices and stays.
    `policy` is for `open_cluster_session`: all devices are one task here.

    With `clock="virtual"` steps run on simulated hardware: they compute the same values, simulated time decides what
    runs next, and `Session.timeline` tells when everything ran. `cost_source` says how long ops take, by default the
    fits of the catalog. With `keep_timeline` what every step has done is kept for `Session.whole_timeline`, which takes
    memory for every node that runs; else what the last step has done. docs/embedding.md says what is refused.

    With `workers` the devices live in worker processes of dask.distributed (extra `dask`): the address of its
    scheduler, a `Client`, or how many to start here. Tasks are spread over them, and devices where tasks are fewer;
    `spread` fixes some, {device: name, address or number of a worker}. One that is silent for `heartbeat_s` is lost:
    its steps fail with UnavailableError, its devices go elsewhere, with empty state. docs/workers.md says more.

    Raises InvalidArgumentError or NotFoundError for a graph that cannot be read, imported, lowered or placed, malformed
    devices, an unknown pass, settings that cannot be honoured. What the block raises is not wrapped in a group.
    """

    async def make() -> Session:
        settings = own_copy(config)
        cluster = await run_first_in_thread(usable_devices, devices, settings)
        if clock == "virtual":
            await run_first_in_thread(load_virtual_clock)
        costs = costs_of(clock, cost_source, settings, keep_timeline=keep_timeline)
        limits = WorkerSettings(seed, policy, budget_s, thread_limit_s, costs, keeps_steps=keep_timeline)
        opening = _Opening(settings, passes, limits, max_requests)
        return await opening.open(graph_def, cluster, on_progress, RemotePlaces(workers, spread, heartbeat_s))

    return Block(make)


class _Opening(NamedTuple):
    """How a local session is opened."""

    settings: ConfigProto
    passes: str | None
    limits: WorkerSettings
    max_requests: int

    async def open(
        self, graph_def: GraphSource, cluster: Cluster, on_progress: ProgressCallback, places: RemotePlaces
    ) -> Session:
        """Reads the graph, and makes a session of it on its workers."""
        options = self.settings.graph_options
        reader = GraphReader(options, places_requests=options.place_pruned_graph)

        async def on_workers(cluster: Cluster, remote: SessionWorkers | None) -> Session:
            stage = await reader.read(session_pipeline(cluster, self.settings, self.passes), graph_def, on_progress)
            workers = remote or Workers(cluster, self.limits, is_distributed=False)
            return Session(stage, workers, reader, self.settings, self.max_requests)

        return await places.open(on_workers, cluster, self.limits, is_distributed=False)
