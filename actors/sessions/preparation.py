"""From a signature to something that runs: the graph is cut out, partitioned and compiled.

Flows in: the graph of a session and the names of one request. Flows out: a `Prepared` request. Always holds: it
depends on names only, never on values, so a session prepares every signature once; generated names go on counting where
the session's last partitioning ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InvalidArgumentError
from ...graph.collector import collector_paused
from ...graph.dtypes import base_type, dtype_name, is_ref
from ...graph.functions.checks import check_input_types
from ...graph.ops.record import NodeClass
from ...graph.partition import split_graph
from ...graph.passes.client_graph import client_graph
from ...graph.passes.pipeline import Optimisations, optimize
from ...graph.tensor_id import parse_tensor_name
from ...graph.validate import check_kinds
from ..plans.compiler import compile_plans
from ..plans.instructions import DEAD
from ..plans.levels import Unfoldable
from ..plans.transfers import check_keys
from ..running.call_frame import check_call_frame, check_no_call_frame
from ..running.evaluation import ConstantEvaluator
from ..running.interpretation import Interpretation, interpret
from ..running.ports import Port, fetched_array, ports
from .requests import Signature, check_names

if TYPE_CHECKING:
    from ...graph.dtypes import Array, DataType
    from ...graph.graph import Graph
    from ...graph.ops.properties import NodeProperties
    from ...graph.partition import PartitionOptions
    from ..plans.instructions import Slots
    from ..plans.plan import Plan
    from ..running.device_actor import DeviceActor


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request, ready for any number of steps. `partitions` are as cut, `optimised` as run.

    `work` is one plan per device that has a part in it; `alone` is the plan when there is only one and it needs nobody
    else. A graph whose loops cannot be compiled has an interpretation instead of plans, of the uncut graph.
    """

    signature: Signature
    feeds: tuple[Port, ...]
    fetches: tuple[Port, ...]
    partitions: Mapping[str, Graph]
    optimised: Mapping[str, Graph]
    work: tuple[tuple[Plan, DeviceActor], ...]
    alone: Plan | None
    interpretation: Interpretation | None
    keeps_feeds: bool

    def fetched(self, parts: Sequence[tuple[Plan, Slots]], fed: Sequence[object]) -> list[Array]:
        """The fetched arrays, in the order asked, once plans have filled slots; raises as `arrays`."""
        return self.arrays({result.index: slots[result.slot] for plan, slots in parts for result in plan.results}, fed)

    def arrays(self, found: Mapping[int, Any], fed: Sequence[object]) -> list[Array]:
        """The fetched arrays from tensors by position; InvalidArgumentError for the first that is dead."""
        return [fetched_array(port, found.get(port.number, DEAD), fed) for port in self.fetches]


class Stages(NamedTuple):
    """What `prepare` leaves to its session.

    `place` sees to it that what is left of the graph for a request is placed; `check` is called between stages, and
    raises if the request is not wanted any more.
    """

    place: Callable[[Graph], None]
    check: Callable[[], object]


@collector_paused()
def prepare(
    graph: Graph,
    signature: Signature,
    actors: Mapping[str, DeviceActor],
    client: str,
    options: PartitionOptions,
    optimisations: Optimisations,
    stages: Stages,
) -> Prepared:
    """Prepares a request on a graph; `client` is the device that feeds and fetches are on.

    Raises InvalidArgumentError, NotFoundError or OutOfRangeError for names, UnimplementedError for missing kernels, and
    what placing, partitioning and the check between stages raise.
    """
    check_names(graph, signature)
    requested = client_graph(
        graph, *signature[:3], client, not signature.is_partial, incarnation=options.get_incarnation(client)
    )
    stages.check()
    stages.place(requested)
    stages.check()
    kinds = requested.distinct_properties()[0]
    if len(graph.functions):
        check_input_types(requested)
    partitions = split_graph(requested, options)
    _check_kinds(requested, kinds)
    check_keys(requested)
    stages.check()
    evaluator = ConstantEvaluator()
    optimised = {name: optimize(part, optimisations, evaluator) for name, part in partitions.items()}
    stages.check()
    work, interpretation = _compile_or_interpret(requested, optimised, actors)
    feeds = ports(signature.feeds, _types(graph, signature.feeds))
    fetches = ports(signature.fetches, _types(graph, signature.fetches))
    _check_frame(signature, [plan for plan, _ in work], feeds, fetches)
    alone = work[0][0] if len(work) == 1 and not (work[0][0].arrivals or work[0][0].deferred) else None
    keeps_feeds = not work or any(plan.keeps_inputs for plan, _ in work)
    return Prepared(
        signature,
        feeds,
        fetches,
        partitions,
        optimised,
        work,
        alone,
        interpretation,
        keeps_feeds,
    )


def compile_traced(prepared: Prepared, actors: Mapping[str, DeviceActor]) -> tuple[tuple[Plan, DeviceActor], ...]:
    """The plans of a prepared request again, with an instruction for every node, as traces want them."""
    return _compile(prepared.optimised, actors, every_node=True)


def _compile(
    partitions: Mapping[str, Graph], actors: Mapping[str, DeviceActor], *, every_node: bool = False
) -> tuple[tuple[Plan, DeviceActor], ...]:
    parts = [(part, actors[name].binder) for name, part in partitions.items()]
    plans = compile_plans(parts, every_node=every_node)
    return tuple(zip(plans, [actors[name] for name in partitions], strict=True))


def _compile_or_interpret(
    graph: Graph, partitions: Mapping[str, Graph], actors: Mapping[str, DeviceActor]
) -> tuple[tuple[tuple[Plan, DeviceActor], ...], Interpretation | None]:
    """Plans for the partitions, or, where loops are built in an unusual way, an interpretation of the uncut graph."""
    try:
        return _compile(partitions, actors), None
    except Unfoldable:
        return (), interpret(graph, {name: actor.binder for name, actor in actors.items()})


def _check_kinds(graph: Graph, kinds: Sequence[NodeProperties]) -> None:
    """Raises InvalidArgumentError for an attr that its op does not allow, and for a value where a reference is due.

    Only nodes that are going to run are checked: as in TensorFlow, others do no harm.
    """
    check_kinds(graph)
    if any(is_ref(dtype) for kind in kinds for dtype in kind.input_types):
        _check_references(graph)


def _check_references(graph: Graph) -> None:
    """Raises InvalidArgumentError for a feed that takes the place of a variable which a node is to change."""
    for feed in graph.op_nodes():
        if feed.node_class not in (NodeClass.ARG, NodeClass.RECV):
            continue
        for edge in feed.out_edges():
            node = edge.dst
            if node.is_op and not edge.is_control and is_ref(node.input_types[edge.dst_input]):
                raise InvalidArgumentError(
                    f"Input {edge.dst_input} of node {node.name} was passed {dtype_name(feed.output_types[0])} from "
                    f"{feed.name}:0 incompatible with expected {dtype_name(node.input_types[edge.dst_input])}.",
                    node=node.name,
                    op=node.op,
                )


def _check_frame(signature: Signature, plans: Sequence[Plan], feeds: Sequence[Port], fetches: Sequence[Port]) -> None:
    if signature.is_partial:
        check_no_call_frame(plans)
    else:
        check_call_frame(plans, [port.dtype for port in feeds], [port.dtype for port in fetches])


def _types(graph: Graph, names: Sequence[str]) -> Iterator[DataType]:
    """Element types of tensors that are known to be there."""
    for tensor in map(parse_tensor_name, names):
        node = graph.find_node(tensor.node)
        if node is not None:
            yield base_type(node.output_types[tensor.index])
