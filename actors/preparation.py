"""From a signature to something that runs: the graph is cut out, partitioned and compiled.

Flows in: the placed graph of a session and the names of one request. Flows out: a `Prepared` request. Always holds: it
depends on names only, never on values, so a session prepares every signature once; generated names go on counting where
the session's last partitioning ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError
from ..graph.collector import collector_paused
from ..graph.control_flow import build_control_flow_info
from ..graph.dtypes import base_type
from ..graph.partition import split_graph
from ..graph.subgraph import client_graph
from ..graph.tensor_id import parse_tensor_name
from .binding import check_complete
from .compiler import compile_plans
from .interpretation import Interpretation
from .requests import Port, Signature, check_names, ports
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

    `work` is one plan per device that has a part in it; `alone` is the plan when there is only one and it needs nobody
    else. A graph with loops is not cut: it has an interpretation instead of plans.
    """

    signature: Signature
    feeds: tuple[Port, ...]
    fetches: tuple[Port, ...]
    partitions: Mapping[str, Graph]
    work: tuple[tuple[Plan, DeviceActor], ...]
    alone: Plan | None
    interpretations: tuple[Interpretation, ...]
    keeps_feeds: bool


@collector_paused()
def prepare(
    graph: Graph, signature: Signature, actors: Mapping[str, DeviceActor], client: str, options: PartitionOptions
) -> Prepared:
    """Prepares a request on a placed graph; `client` is the device that feeds and fetches are on.

    Raises InvalidArgumentError, NotFoundError or OutOfRangeError for names, UnimplementedError for missing kernels, and
    what partitioning raises.
    """
    check_names(graph, signature)
    requested = client_graph(graph, signature.feeds, signature.fetches, signature.targets, client)
    roles = {role_of(kind.op) for kind in requested.distinct_properties()[0]}
    has_loops = Role.FRAME in roles
    partitions = {} if has_loops else split_graph(requested, options)
    work = _compile(partitions, actors, dead=bool(roles & _BRINGS_DEATH))
    interpretations = (_interpret(requested, actors),) if has_loops else ()
    _check_call_frame(work, signature)
    alone = work[0][0] if len(work) == 1 and not work[0][0].arrivals else None
    keeps_feeds = not work or any(plan.keeps_inputs for plan, _ in work)
    return Prepared(
        signature,
        ports(_types(graph, signature.feeds)),
        ports(_types(graph, signature.fetches)),
        partitions,
        work,
        alone,
        interpretations,
        keeps_feeds,
    )


def compile_traced(prepared: Prepared, actors: Mapping[str, DeviceActor]) -> tuple[tuple[Plan, DeviceActor], ...]:
    """The plans of a prepared request again, with an instruction for every node, as traces want them."""
    roles = {role for plan, _ in prepared.work for role in {role_of(p.op_def.name) for p in plan.properties}}
    return _compile(prepared.partitions, actors, dead=bool(roles & _BRINGS_DEATH), every_node=True)


def _compile(
    partitions: Mapping[str, Graph], actors: Mapping[str, DeviceActor], *, dead: bool, every_node: bool = False
) -> tuple[tuple[Plan, DeviceActor], ...]:
    parts = [(part, actors[name].binder) for name, part in partitions.items()]
    plans = compile_plans(parts, receives_may_be_dead=dead, every_node=every_node)
    return tuple(zip(plans, [actors[name] for name in partitions], strict=True))


def _interpret(graph: Graph, actors: Mapping[str, DeviceActor]) -> Interpretation:
    build_control_flow_info(graph)  # for its errors
    binders = {name: actor.binder for name, actor in actors.items()}
    made = Interpretation(graph, binders)
    check_complete(binders.values())
    return made


def _check_call_frame(work: Sequence[tuple[Plan, DeviceActor]], signature: Signature) -> None:
    """Raises InvalidArgumentError for `_Arg` and `_Retval` nodes of the user that no feed or fetch belongs to."""
    num_feeds, num_fetches = len(signature.feeds), len(signature.fetches)
    for plan, _ in work:
        for argument in plan.arguments:
            if not 0 <= argument.index < num_feeds:
                raise InvalidArgumentError(f"GetArg {argument.index} is not within [0, {num_feeds})")
        for result in plan.results:
            if not 0 <= result.index < num_fetches:
                raise InvalidArgumentError(f"SetRetval {result.index} is not within [0, {num_fetches})")


def _types(graph: Graph, names: Sequence[str]) -> Iterator[DataType]:
    """Element types of tensors that are known to be there."""
    for tensor in map(parse_tensor_name, names):
        node = graph.find_node(tensor.node)
        if node is not None:
            yield base_type(node.output_types[tensor.index])
