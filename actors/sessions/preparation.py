"""From a signature to something that runs: the graph is cut out, shared out to the workers and compiled there.

Flows in: the graph of a session and the names of one request. Flows out: a `Prepared` request. Always holds: it
depends on names only, never on values, so a session prepares every signature once; generated names go on counting where
the session's last partitioning ended.

A local session feeds and fetches through a call frame: plans have slots for what is fed, and tell where fetched tensors
are. Partial runs, and all runs over several tasks, do it at the rendezvous, by key: there `_Recv` and `_Send` nodes
stand for feeds and fetches, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgumentError, PartitaError
from ...graph.collector import collector_paused
from ...rendezvous.key import ROOT_FRAME, stem
from ..plans.instructions import DEAD
from ..running.call_frame import check_call_frame, check_no_call_frame
from ..running.ports import Port, fetched_array, ports
from .requests import Signature, by_rendezvous, check_names, full_name

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
    from .graph_manager import Work
    from .workers import Share, Workers


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request, ready for any number of steps.

    `alone` is the plan when there is only one and it needs nobody else, with the actor of its device. The keys, of
    feeds and of fetches, are empty where a call frame is used.
    """

    signature: Signature
    feeds: tuple[Port, ...]
    fetches: tuple[Port, ...]
    feed_keys: tuple[str, ...]
    fetch_keys: tuple[str, ...]
    shares: tuple[Share, ...]
    partitions: Mapping[str, Graph]
    interpretation: Interpretation | None
    alone: tuple[Plan, DeviceActor] | None
    keeps_feeds: bool

    def work(self, *, with_trace: bool = False) -> Work:
        """The plans of all workers, and who runs them; AbortedError when a worker has forgotten its share."""
        if len(self.shares) == 1:
            worker, handle = self.shares[0]
            return worker.work(handle, with_trace=with_trace)
        return [pair for worker, handle in self.shares for pair in worker.work(handle, with_trace=with_trace)]

    @property
    def is_registered(self) -> bool:
        """Whether the workers still know it."""
        return all(worker.knows(handle) for worker, handle in self.shares)

    def partition_graphs(self) -> list[GraphDef]:
        """What devices run: as it was cut in a local session, as it runs, which workers tell, over several tasks."""
        if self.partitions:
            return [part.to_graph_def() for part in self.partitions.values()]
        return [part for worker, handle in self.shares for part in worker.partitions(handle)]

    def fetched(self, parts: Iterable[Part], rendezvous: Rendezvous, fed: Sequence[object]) -> list[Array]:
        """The fetched arrays, in the order asked, when a step is done; raises InvalidArgumentError for a dead one."""
        if not self.fetch_keys:
            found = {result.index: part.slots[result.slot] for part in parts for result in part.plan.results}
            return self.arrays(found, fed)
        received: dict[str, Outcome] = {}
        for key in dict.fromkeys(self.fetch_keys):
            rendezvous.recv_callback(key, partial(received.__setitem__, key))
        return [arrived(port, received[key], fed) for port, key in zip(self.fetches, self.fetch_keys, strict=True)]

    def arrays(self, found: Mapping[int, Any], fed: Sequence[object]) -> list[Array]:
        """The fetched arrays from tensors by position; InvalidArgumentError for the first that is dead."""
        return [fetched_array(port, found.get(port.number, DEAD), fed) for port in self.fetches]


def arrived(port: Port, outcome: Outcome, fed: Sequence[object] = ()) -> Array:
    """A fetched array that came by the rendezvous; raises the error of the step, or that of a dead tensor."""
    if isinstance(outcome, PartitaError):
        raise outcome
    if outcome.is_dead:
        raise InvalidArgumentError(f"The tensor returned for {port.name} was not valid.")
    return fetched_array(port, outcome.value, fed)


@collector_paused()
def prepare(stage: Placed | Lowered, signature: Signature, workers: Workers, check: Callable[[], object]) -> Prepared:
    """Prepares a request on a graph; `check` is called between stages, and raises if nobody wants the request any more.

    Raises InvalidArgumentError, NotFoundError or OutOfRangeError for names, UnimplementedError for missing kernels, and
    what placing, partitioning and the check raise.
    """
    check_names(stage.graph, signature)
    meets = signature.is_partial or workers.is_distributed
    asked = by_rendezvous(signature) if meets else signature
    pruned = stage.prune(asked.feeds, asked.fetches, asked.targets, by_rendezvous=meets)
    check()
    pruned = pruned.place()
    check()
    shares, partitions, interpretation = workers.share_out(pruned, check)
    work = [pair for worker, handle in shares for pair in worker.work(handle)]
    plans = [plan for plan, _ in work]
    feeds = ports(signature.feeds, _types(signature.feeds, asked.feeds, pruned.feed_types))
    fetches = ports(signature.fetches, _types(signature.fetches, asked.fetches, pruned.fetch_types))
    if meets:
        check_no_call_frame(plans)
    else:
        check_call_frame(plans, [port.dtype for port in feeds], [port.dtype for port in fetches])
    is_alone = len(plans) == 1 and not (meets or plans[0].arrivals or plans[0].deferred)
    return Prepared(
        signature,
        feeds,
        fetches,
        _keys(pruned, signature.feeds) if meets else (),
        _keys(pruned, signature.fetches) if meets else (),
        shares,
        partitions,
        interpretation,
        work[0] if is_alone else None,
        keeps_feeds=meets or not plans or any(plan.keeps_inputs for plan in plans),
    )


def _types(names: Sequence[str], asked: Sequence[str], types: Sequence[DataType]) -> list[DataType]:
    """Element types in the order of `names`, from those of `asked`, which are the same tensors."""
    if names is asked:
        return list(types)
    by_name = dict(zip(asked, types, strict=True))
    return [by_name[full_name(name)] for name in names]


def _keys(pruned: Pruned, names: Sequence[str]) -> tuple[str, ...]:
    """The keys of feeds or fetches: they go from the client to itself, by the full names of the tensors."""
    client = pruned.pipeline.cluster.client
    return tuple(stem(client.name, client.incarnation, client.name, full_name(name)) + ROOT_FRAME for name in names)
