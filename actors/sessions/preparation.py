"""Prepares requests: prunes the graph for a signature, cuts and compiles it, and keeps what a step needs.

A `Prepared` request depends on names only, not on values, so a session prepares each signature once.

There are two ways to feed and fetch. A local `Session.run` uses a call frame: plans have slots for `_Arg` nodes, and
name the slots of `_Retval` nodes. Partial runs, and all runs over several tasks, use the rendezvous: the feeds are sent
to `_Recv` nodes, and the fetches received from `_Send` nodes, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collector import collector_paused
from ...devices.pipeline.groups import check_groups, check_stands_alone
from ...errors import InvalidArgumentError, PartitaError
from ...graph.passes.wiring import NO_WIRING
from ...rendezvous.key import ROOT_FRAME, stem
from ..plans.instructions import DEAD
from ..running.call_frame import check_call_frame, check_no_call_frame
from ..running.ports import Port, fetched_array, ports
from .options.callable_options import check_devices
from .requests import RequestNames, check_names, full_name, rendezvous_signature

if TYPE_CHECKING:
    from ...devices.pipeline import Lowered, Placed, Pruned
    from ...graph import GraphDef
    from ...graph.dtypes import Array, DataType
    from ...graph.graph import Graph
    from ...rendezvous import Outcome, Rendezvous
    from ..plans.plan import Plan
    from ..running.device_actor import DeviceActor
    from ..running.interpretation import Interpretation
    from ..running.part import Part
    from ..running.virtual.body import VirtualBody
    from .registered_graphs import PlacedPlans
    from .workers import Workers, WorkerShare

_LARGE = 100  # nodes, those of functions included
_PREPARED: set[str] = set()
"""the ops of all graphs of which the process has prepared a request"""


@dataclass(slots=True, eq=False)
class Prepared:
    """One request, ready for any number of steps.

    `alone` is the plan and the actor of its device if the request has a single plan without transfers. `feed_keys` and
    `fetch_keys` are empty where a call frame is used. Fed arrays are copied if `keeps_feeds`: a kernel may keep them.

    `devices` are those whose restart fails a step: of its nodes, and all of them if it names functions.

    Nothing changes but its use, which decides what is forgotten: `last_step` is the number of the last step that began,
    0 before the first; `running` is how many steps are under way.
    """

    signature: RequestNames
    feeds: tuple[Port, ...]
    fetches: tuple[Port, ...]
    feed_keys: tuple[str, ...]
    fetch_keys: tuple[str, ...]
    shares: tuple[WorkerShare, ...]
    partitions: Mapping[str, Graph]
    interpretation: Interpretation | None
    virtual: VirtualBody | None
    alone: tuple[Plan, DeviceActor] | None
    keeps_feeds: bool
    devices: frozenset[str]
    last_step: int = 0
    running: int = 0

    def work(self, *, with_trace: bool = False) -> PlacedPlans:
        """The plans of all workers with their actors; AbortedError if a worker has deregistered its share."""
        if len(self.shares) == 1:
            worker, handle = self.shares[0]
            return worker.graphs.work(handle, with_trace=with_trace)
        return [pair for worker, handle in self.shares for pair in worker.graphs.work(handle, with_trace=with_trace)]

    @property
    def is_registered(self) -> bool:
        """Whether no worker has deregistered its share."""
        return all(handle in worker.graphs for worker, handle in self.shares)

    def deregister(self) -> None:
        """Makes the workers forget their shares; running steps go on."""
        for worker, handle in self.shares:
            if handle in worker.graphs:
                worker.graphs.deregister(handle)

    def partition_graphs(self) -> list[GraphDef]:
        """The graph of each device, as it runs."""
        if self.partitions:
            return [part.to_graph_def() for part in self.partitions.values()]
        return [part for worker, handle in self.shares for part in worker.graphs.partitions(handle)]

    def fetched(self, parts: Iterable[Part], rendezvous: Rendezvous) -> list[Array]:
        """The fetched arrays of a finished step, in the user's order; raises InvalidArgumentError for a dead one."""
        if not self.fetch_keys:
            results = {result.index: part.slots[result.slot] for part in parts for result in part.plan.results}
            return self.arrays(results)
        outcomes: dict[str, Outcome] = {}
        for key in dict.fromkeys(self.fetch_keys):
            rendezvous.recv_callback(key, partial(outcomes.__setitem__, key))
        fetches = zip(self.fetches, self.fetch_keys, strict=True)
        return [received_array(port, outcomes[key]) for port, key in fetches]

    def arrays(self, results: Mapping[int, Any]) -> list[Array]:
        """The fetched arrays, given the results by the number of the fetch.

        A dead one is an empty array in a callable, else an InvalidArgumentError.
        """
        arrays = []
        for port in self.fetches:  # a loop, because every step runs it
            value = results.get(port.number, DEAD)
            if value is DEAD and self.signature.is_callable:
                value = np.zeros(0, port.numpy_dtype)
            arrays.append(fetched_array(port, value))
        return arrays


def received_array(port: Port, outcome: Outcome) -> Array:
    """A fetched array that was received; raises the error of the step, InvalidArgumentError for a dead tensor."""
    if isinstance(outcome, PartitaError):
        raise outcome
    if outcome.is_dead:
        raise InvalidArgumentError(f"The tensor returned for {port.name} was not valid.")
    return fetched_array(port, outcome.value)


def takes_long(graph: Graph, num_devices: int) -> bool:
    """Whether to prepare a request may take longer than the event loop should be held.

    It does in a large graph, over several devices, of which each takes half a millisecond and a loop more, and where
    ops are new to the process: their kernels have to be loaded, which takes tens of milliseconds.
    """
    if num_devices > 1 or graph.num_nodes + graph.functions.num_nodes >= _LARGE:
        return True
    return not _PREPARED.issuperset(kind.op for kind in graph.distinct_properties()[0])


@collector_paused()
def prepare(
    stage: Placed | Lowered, signature: RequestNames, workers: Workers, check: Callable[[], object]
) -> Prepared:
    """Prepares a request on a graph; `check` is called between stages and may raise to give the request up.

    Raises InvalidArgumentError, NotFoundError or OutOfRangeError for names, UnimplementedError for missing kernels, and
    what placing, `check_stands_alone`, `check_groups`, partitioning and `check` raise.
    """
    check_names(stage.graph, signature)
    check_devices(stage.graph, signature)
    check_stands_alone(stage.graph)
    by_rendezvous = signature.is_partial or workers.is_distributed
    cut_names = rendezvous_signature(signature) if by_rendezvous else signature
    pruned = stage.prune(
        cut_names.feeds,
        cut_names.fetches,
        cut_names.targets,
        by_rendezvous=by_rendezvous,
        wiring=cut_names.wiring or NO_WIRING,
    )
    check()
    pruned = pruned.place()
    check_groups(pruned.graph)
    check()
    prepared = _registered(pruned, signature, cut_names, workers, check)
    _PREPARED.update(kind.op for kind in stage.graph.distinct_properties()[0])
    return prepared


@collector_paused()
def prepare_body(pruned: Pruned, names: RequestNames, workers: Workers) -> Prepared:
    """Prepares the placed body of a function, whose arguments are the feeds and whose results are the fetches.

    `names` are those of arguments and results, for messages. Raises as `prepare`.
    """
    return _registered(pruned, names, names, workers, lambda: None)


def _registered(
    pruned: Pruned,
    signature: RequestNames,
    cut_names: RequestNames,
    workers: Workers,
    check: Callable[[], object],
) -> Prepared:
    """Registers a placed request with the workers; `cut_names` are the names that it was pruned for."""
    by_rendezvous = signature.is_partial or workers.is_distributed
    shares, partitions, interpretation, virtual = workers.register(pruned, check)
    work = [pair for worker, handle in shares for pair in worker.graphs.work(handle)]
    plans = [plan for plan, _ in work]
    feeds = ports(signature.feeds, _types(signature.feeds, cut_names.feeds, pruned.feed_types))
    fetches = ports(signature.fetches, _types(signature.fetches, cut_names.fetches, pruned.fetch_types))
    if by_rendezvous:
        check_no_call_frame(plans)
    else:
        check_call_frame(plans, [port.dtype for port in feeds], [port.dtype for port in fetches])
    is_alone = len(plans) == 1 and not (by_rendezvous or plans[0].arrivals or plans[0].deferred)
    return Prepared(
        signature,
        feeds,
        fetches,
        _keys(pruned, signature.feeds) if by_rendezvous else (),
        _keys(pruned, signature.fetches) if by_rendezvous else (),
        shares,
        partitions,
        interpretation,
        virtual,
        work[0] if is_alone else None,
        keeps_feeds=by_rendezvous or not plans or any(plan.keeps_inputs for plan in plans),
        devices=frozenset(_devices(pruned, partitions, work)),
    )


def _devices(pruned: Pruned, partitions: Mapping[str, Graph], work: PlacedPlans) -> Iterable[str]:
    """The devices that a request may use: what the functions that it names do there, nobody has looked at."""
    if any(kind.op_def.takes_functions for kind in pruned.graph.distinct_properties()[0]):
        return pruned.pipeline.cluster.names
    return [*partitions, *(actor.name for _, actor in work)]


def _types(names: Sequence[str], full_names: Sequence[str], types: Sequence[DataType]) -> list[DataType]:
    """Element types in the order of `names`; `types` are those of the same tensors in the order of `full_names`."""
    if names is full_names:  # a call frame: both are the names of the user
        return list(types)
    by_name = dict(zip(full_names, types, strict=True))
    return [by_name[full_name(name)] for name in names]


def _keys(pruned: Pruned, names: Sequence[str]) -> tuple[str, ...]:
    """The keys of feeds or fetches, which the client device sends to itself under the full names of the tensors."""
    client = pruned.pipeline.cluster.client
    return tuple(stem(client.name, client.incarnation, client.name, full_name(name)) + ROOT_FRAME for name in names)
