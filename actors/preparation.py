"""From a signature to something that runs: the graph is cut out, partitioned and compiled.

Flows in: the placed graph of a session and the names of one request. Flows out: a `Prepared` request. Always holds: it
depends on names only, never on values, so a session prepares every signature once; generated names go on counting where
the session's last partitioning ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..graph.dtypes import base_type
from ..graph.partition import split_graph
from ..graph.subgraph import client_graph
from ..graph.tensor_id import parse_tensor_name
from .binding import check_complete
from .compiler import compile_plan
from .requests import Signature, check_names
from .roles import Role, role_of

if TYPE_CHECKING:
    from ..graph.dtypes import DataType
    from ..graph.graph import Graph
    from ..graph.partition import PartitionOptions
    from .device_actor import DeviceActor
    from .plan import Plan

_BRINGS_DEATH = frozenset({Role.SWITCH, Role.SWITCH_N})


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request, ready for any number of steps.

    `work` is one plan per device that has a part in it; empty when the partitions have loops, which are interpreted.
    `alone` is the plan when there is only one and it needs nobody else.
    """

    signature: Signature
    feed_types: tuple[DataType, ...]
    partitions: Mapping[str, Graph]
    work: tuple[tuple[Plan, DeviceActor], ...]
    alone: Plan | None
    keeps_feeds: bool


def prepare(
    graph: Graph, signature: Signature, actors: Mapping[str, DeviceActor], client: str, options: PartitionOptions
) -> Prepared:
    """Prepares a request on a placed graph; `client` is the device that feeds and fetches are on.

    Raises InvalidArgumentError, NotFoundError or OutOfRangeError for names, UnimplementedError for missing kernels, and
    what partitioning raises.
    """
    check_names(graph, signature)
    requested = client_graph(graph, signature.feeds, signature.fetches, signature.targets, client)
    partitions = split_graph(requested, options)
    roles = {role_of(p.op_def.name) for part in partitions.values() for p in part.all_properties() if p is not None}
    work = () if Role.FRAME in roles else _compile(partitions, actors, dead=bool(roles & _BRINGS_DEATH))
    alone = work[0][0] if len(work) == 1 and not work[0][0].arrivals else None
    keeps_feeds = not work or any(plan.keeps_inputs for plan, _ in work)
    return Prepared(signature, _feed_types(graph, signature), partitions, work, alone, keeps_feeds)


def compile_traced(prepared: Prepared, actors: Mapping[str, DeviceActor]) -> tuple[tuple[Plan, DeviceActor], ...]:
    """The plans of a prepared request again, with an instruction for every node, as traces want them."""
    roles = {role for plan, _ in prepared.work for role in {role_of(p.op_def.name) for p in plan.properties}}
    return _compile(prepared.partitions, actors, dead=bool(roles & _BRINGS_DEATH), every_node=True)


def _compile(
    partitions: Mapping[str, Graph], actors: Mapping[str, DeviceActor], *, dead: bool, every_node: bool = False
) -> tuple[tuple[Plan, DeviceActor], ...]:
    work = tuple(
        (compile_plan(part, actors[name].binder, receives_may_be_dead=dead, every_node=every_node), actors[name])
        for name, part in partitions.items()
    )
    check_complete(actor.binder for _, actor in work)
    return work


def _feed_types(graph: Graph, signature: Signature) -> tuple[DataType, ...]:
    found = []
    for text in signature.feeds:
        tensor = parse_tensor_name(text)
        node = graph.find_node(tensor.node)
        if node is not None:
            found.append(base_type(node.output_types[tensor.index]))
    return tuple(found)
