"""Opens a local session: one worker with all devices, of whatever tasks, in the event loop of the caller."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Literal

from ...graph import ConfigProto
from ...graph.display.progress import ProgressCallback, no_progress
from ...rendezvous import refuse_stale
from ..running.pacing import DEFAULT_BUDGET_S, DEFAULT_THREAD_LIMIT_S
from ..running.threads import run_first_in_thread
from .lifetime import Block
from .options.config_checks import own_copy, usable_devices
from .prepared_requests import DEFAULT_MAX_REQUESTS
from .session import Session
from .session_graph import GraphReader, session_pipeline
from .virtual_sessions import costs_of, load_virtual_clock
from .workers import Workers, WorkerSettings

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...devices.timing import CostSource
    from ...graph.graphdef.sources import GraphSource
    from ...rendezvous import Policy


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
) -> AbstractAsyncContextManager[Session]:
    """Imports a graph, places it on `devices` and opens a session on it, for the length of an `async with` block.

    The graph may be a GraphDef, its bytes, the path of its file, a `GraphBuilder` or a `Graph`; `devices` are a text
    like "cpu:2,gpu:4", a `Cluster` or the path of a cluster file. docs/config.md says what each field of `config` does;
    a field that would change values or placement and is not honoured is refused by name.

    `passes`, such as "inline,fold,common", rewrite the graph, in place of those that `config` asks for; "" means none.
    `seed` makes random ops without a seed of their own repeatable. A step lets other tasks of the event loop run after
    at most `budget_s` seconds; a kernel that takes more than `thread_limit_s` seconds (on a single device: more than
    both) runs in a worker thread from then on. `on_progress` is called with the progress of the import,
    possibly in another thread.

    At most `max_requests` requests (names of feeds, fetches and targets) stay prepared. A further one takes the place
    of the least recently used, which is prepared again when it is next run; state is kept by the devices and stays.

    `policy` decides about receives from a device of another task that has restarted. The devices of a local session
    are one task, so that it is never asked here; in `open_cluster_session` it is.

    With `clock="virtual"` steps run on simulated hardware: they compute the same values, simulated time decides what
    runs next, and `Session.timeline` tells when everything ran. `cost_source` says how long ops take, by default the
    fits of the catalog. With `keep_timeline` what every step has done is kept for `Session.whole_timeline`, which takes
    memory for every node that runs, until the session is gone; else what the last step has done.
    docs/embedding.md says what such a session refuses.

    Raises InvalidArgumentError or NotFoundError for a graph that cannot be read, imported, lowered or placed, for
    malformed devices, for an unknown pass, and for settings that cannot be honoured. What the block itself raises is
    not wrapped in a group.
    """

    async def make() -> Session:
        settings = own_copy(config)
        cluster = await run_first_in_thread(usable_devices, devices, settings)
        if clock == "virtual":
            await run_first_in_thread(load_virtual_clock)
        costs = costs_of(clock, cost_source, settings, keep_timeline=keep_timeline)
        options = settings.graph_options
        reader = GraphReader(options, places_requests=options.place_pruned_graph)
        stage = await reader.read(session_pipeline(cluster, settings, passes), graph_def, on_progress)
        limits = WorkerSettings(seed, policy, budget_s, thread_limit_s, costs, keeps_steps=keep_timeline)
        return Session(stage, Workers(cluster, limits, is_distributed=False), reader, settings, max_requests)

    return Block(make)
