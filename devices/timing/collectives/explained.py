"""Where the time of a collective comes from, told of the node of one member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ...units import format_bytes, format_ns
from ..costs.explanation import Explanation
from ..costs.source import OpCost
from .seats import CollectiveSeat, ValueOf, seat_of, seated

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from .plan import CollectivePlan


def members_of(graph: JoinedGraph, n: int, value_of: ValueOf) -> tuple[CollectiveSeat, list[int]]:
    """The seat of a node and all nodes that meet there; InvalidArgumentError if some are not nodes of the graph."""
    seat = seat_of(graph, n, value_of)
    members = [other for other in seated(graph) if seat_of(graph, other, value_of) == seat]
    if seat.instance is None or len(members) != seat.size:
        raise InvalidArgumentError(
            f"{seat}: {len(members)} of its {seat.size} members are nodes of the step, the others in functions or "
            "numbered as they begin; simulate the step to see its time",
            node=graph.names[n],
            op=graph.op(n),
        )
    return seat, members


def explanation_of_plan(op: str, plan: CollectivePlan) -> Explanation:
    """What decides the time of a collective that has its links to itself."""
    cost = plan.cost
    phases = {f"phase {i}": format_ns(phase.alone_ns) for i, phase in enumerate(plan.phases, 1)}
    how = f"{cost.algorithm}, {cost.protocol}"
    if cost.algorithm == "measured":
        how = f"measured curves of its devices{f', {cost.library}' if cost.library else ''}"
    assumed = ["nothing else crosses its links, and its members are ready together"]
    if cost.rings == 0:
        assumed.append("no ring of links visits all members of a host, so they go over PCIe; that was never measured")
    return Explanation(
        f"{op}, {plan.name}",
        OpCost(cost.time_ns, 0, plan.size_bytes, cost.provenance, cost.low_ns, cost.high_ns),
        f"latency + phases that follow each other, alone on their links ({how})",
        inputs={"size": format_bytes(plan.size_bytes), **_rings(plan)},
        terms={"latency": format_ns(plan.latency_ns), **phases},
        assumed=tuple(assumed),
    )


def _rings(plan: CollectivePlan) -> dict[str, str]:
    """The one-way rings that share no link; nothing where no links join pairs."""
    if plan.cost.rings is None:
        return {}
    return {"rings": f"{len(plan.rings)}: {'; '.join(plan.rings)}" if plan.rings else "none"}
