"""Prepares requests: prunes the graph for a signature, cuts and compiles it, and keeps what a step needs.

A `Prepared` request depends on names only, not on values, so a session prepares each signature once.

There are two ways to feed and fetch. A local `Session.run` uses a call frame: plans have slots for `_Arg` nodes, and
name the slots of `_Retval` nodes. Partial runs, and all runs over several tasks, use the rendezvous: the feeds are sent
to `_Recv` nodes, and the fetches received from `_Send` nodes, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...collector import collector_paused
from ...devices.pipeline.groups import check_groups, check_stands_alone
from ...errors import InvalidArgumentError, PartitaError
from ...graph.passes.client_request import ClientRequest
from ...graph.passes.wiring import NO_WIRING
from ...rendezvous.key import ROOT_FRAME, stem
from ..plans.instructions import DEAD
from ..running.ports import Port, fetched_array, ports
from .options.callable_options import check_devices
from .requests import RequestNames, check_names, full_name, rendezvous_signature

if TYPE_CHECKING:
    from ...devices.pipeline import Lowered, Placed, Pruned
    from ...graph import GraphDef
    from ...graph.dtypes import Array, DataType
    from ...graph.graph import Graph
    from ...rendezvous import Outcome
    from ..plans.plan import Plan
    from ..running.device_actor import DeviceActor
    from .whole_requests import WholeRequest
    from .worker_protocol import RegisteredRequest, SessionStep, SessionWorkers

_LARGE = 100  # nodes, those of functions included
_PREPARED: set[str] = set()
"""the ops of all graphs of which the process has prepared a request"""


@dataclass(slots=True, eq=False)
class Prepared:
    """One request, ready for any number of steps.

    `request` is what the workers have of it; `alone`, `whole` and `keeps_feeds` are those of it. `feed_keys` and
    `fetch_keys` are empty where a call frame is used; with `as_in_frame` fetches are treated as in one anyway.

    `devices` are those whose restart fails a step: of its nodes, and all of them if it names functions.

    Nothing changes but its use, which decides what is forgotten: `last_step` is the number of the last step that began,
    0 before the first; `running` is how many steps are under way.
    """

    signature: RequestNames
    feeds: tuple[Port, ...]
    fetches: tuple[Port, ...]
    feed_keys: tuple[str, ...]
    fetch_keys: tuple[str, ...]
    request: RegisteredRequest
    alone: tuple[Plan, DeviceActor] | None
    whole: WholeRequest | None
    keeps_feeds: bool
    devices: frozenset[str]
    as_in_frame: bool
    last_step: int = 0
    running: int = 0

    @property
    def partitions(self) -> Mapping[str, Graph]:
        """The graphs that run, by device; empty over several tasks, where the workers have them."""
        return self.request.partitions

    def partition_graphs(self) -> list[GraphDef]:
        """The graph of each device, as it runs."""
        return self.request.partition_graphs()

    def fetched(self, step: SessionStep) -> list[Array]:
        """The fetched arrays of a finished step, in the user's order; raises InvalidArgumentError for a dead one."""
        if not self.fetch_keys:
            return self.arrays(step.results())
        outcomes = step.received(self.fetch_keys)
        fetches = zip(self.fetches, self.fetch_keys, strict=True)
        if not self.as_in_frame:
            return [received_array(port, outcomes[key]) for port, key in fetches]
        return self.arrays({port.number: _as_result(outcomes[key]) for port, key in fetches})

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


def _as_result(outcome: Outcome) -> Any:  # Any: a tensor of any type
    """What a step has sent to the session, as a call frame would have it."""
    if isinstance(outcome, PartitaError):
        raise outcome
    return DEAD if outcome.is_dead else outcome.value


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
    stage: Placed | Lowered, signature: RequestNames, workers: SessionWorkers, check: Callable[[], object]
) -> Prepared:
    """Prepares a request on a graph; `check` is called between stages and may raise to give the request up.

    Raises InvalidArgumentError, NotFoundError or OutOfRangeError for names, UnimplementedError for missing kernels, and
    what placing, `check_stands_alone`, `check_groups`, partitioning and `check` raise.
    """
    check_names(stage.graph, signature)
    check_devices(stage.graph, signature)
    check_stands_alone(stage.graph)
    by_rendezvous = signature.is_partial or workers.by_rendezvous
    cut_names = rendezvous_signature(signature) if by_rendezvous else signature
    if by_rendezvous and _as_in_frame(signature, workers):
        cut_names = _once(signature, cut_names)
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
def prepare_body(pruned: Pruned, names: RequestNames, workers: SessionWorkers) -> Prepared:
    """Prepares the placed body of a function, whose arguments are the feeds and whose results are the fetches.

    `names` are those of arguments and results, for messages. Raises as `prepare`.
    """
    return _registered(pruned, names, names, workers, lambda: None)


def _registered(
    pruned: Pruned,
    signature: RequestNames,
    cut_names: RequestNames,
    workers: SessionWorkers,
    check: Callable[[], object],
) -> Prepared:
    """Registers a placed request with the workers; `cut_names` are the names that it was pruned for."""
    by_rendezvous = signature.is_partial or workers.by_rendezvous
    request = workers.register(pruned, check)
    feeds = ports(signature.feeds, _types(signature.feeds, cut_names.feeds, pruned.feed_types))
    fetches = ports(signature.fetches, _types(signature.fetches, cut_names.fetches, pruned.fetch_types))
    request.check_frame(None if by_rendezvous else ([port.dtype for port in feeds], [port.dtype for port in fetches]))
    return Prepared(
        signature,
        feeds,
        fetches,
        _keys(pruned, signature.feeds) if by_rendezvous else (),
        _keys(pruned, signature.fetches) if by_rendezvous else (),
        request,
        None if by_rendezvous else request.alone,
        request.whole,
        keeps_feeds=by_rendezvous or request.keeps_feeds,
        devices=frozenset(_devices(pruned, request)),
        as_in_frame=_as_in_frame(signature, workers),
    )


def _as_in_frame(signature: RequestNames, workers: SessionWorkers) -> bool:
    """Whether a request follows the rules of requests with a call frame: those of local sessions."""
    return not (workers.is_distributed or signature.is_partial)


def _once(signature: RequestNames, cut_names: RequestNames) -> RequestNames:
    """The names of a request with each feed once, though it may be spelled in two ways; devices of feeds and fetches
    are left out, as all of them travel. Raises as `ClientRequest.check`."""
    wiring = signature.wiring or NO_WIRING
    ClientRequest(signature.feeds, signature.fetches, signature.targets, device="", wiring=wiring).check()
    connections = wiring._replace(feed_devices=(), fetch_devices=())
    return cut_names._replace(
        feeds=tuple(dict.fromkeys(cut_names.feeds)), wiring=connections if any(connections) else None
    )


def _devices(pruned: Pruned, request: RegisteredRequest) -> Iterable[str]:
    """The devices that a request may use: what the functions that it names do there, nobody has looked at."""
    if any(kind.op_def.takes_functions for kind in pruned.graph.distinct_properties()[0]):
        return pruned.pipeline.cluster.names
    return request.devices


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
