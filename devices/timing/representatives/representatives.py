"""Representatives: the nodes of the first rank of each stage are played for all ranks of it.

    nodes with `_multiplicity` 4 and `_mesh` "pp:2,dp:2,cp:1,tp:2"     ranks 0 and 4 play for 0 to 3 and 4 to 7
    a collective along `_axis` "tp" on rank 0      one member comes; it is planned for ranks 0 and 1, as for 2 and 3
    one along "pp"                                 two members come, of both stages
    a transfer from rank 0 to rank 4               four are under way at once, and share ports

Before the step is played it is found whether the ranks are alike. Then whatever happens to a representative happens to
all ranks that it stands for at the same instant: by induction over the instants, as equal devices that have done the
same begin the same, and equal flows get equal rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.collective_seats import AXIS, MESH, seat_ports
from ....graph.arrays import distinct
from ....graph.ops.record import NodeClass
from ....graph.parallel.mesh.marks import MULTIPLICITY
from ....graph.parallel.mesh.mesh import Mesh
from ..hardware.engine import Duty
from .alike import check_devices, check_paces, refuse
from .flows import SharedRoutes, Use
from .ranks import Ranks, StandsFor

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ...cluster import Cluster
    from ...topology import Route
    from ..bodies.body import Body
    from ..bodies.node_places import RouteEnds
    from ..collectives.plan import CollectivePlan
    from ..collectives.seats import CollectiveSeat
    from ..events import Events
    from ..fits.calibration import Calibration


class Representatives:
    """What the representatives of one step stand for. Bodies are noted as they are planned, then `settle` is called."""

    def __init__(self, ranks: Ranks, used: list[int]) -> None:
        """`used` are the numbers of the devices with nodes."""
        self.ranks = ranks
        self.stands_for = StandsFor(ranks, used)
        self._uses: dict[Use, None] = {}
        self._ways: dict[RouteEnds, Route] = {}
        self._bodies: list[Body] = []
        self._routes: SharedRoutes | None = None

    def seat(self, graph: JoinedGraph, n: int, device: int, seat: CollectiveSeat) -> CollectiveSeat:
        """The seat of a node: as many members come as are representatives, for all devices of the group.

        InvalidArgumentError for a node that does not say its axis, or that has another size than it.
        """
        kind, mesh, stage_of = graph.properties[n], self.ranks.mesh, self.ranks.stage_of
        node, op = graph.names[n], graph.op(n)
        if AXIS not in kind.attrs:
            why = f"{seat}: a collective of representatives says its axis; set {AXIS}"
            raise InvalidArgumentError(why, node=node, op=op)
        axes = kind.attrs[AXIS].decode(errors="replace")
        rank = stage_of.get(device, 0) * mesh.per_stage
        group = mesh.group(axes, rank)
        if self.ranks.devices[rank] != device or seat.size != len(group):
            raise InvalidArgumentError(
                f"{seat} of {seat.size}: axis {axes!r} of mesh {mesh.text} has {len(group)} ranks, devices of their "
                "own; give the group that size, and put it on the first rank of a stage",
                node=node,
                op=op,
            )
        come = sum(other % mesh.per_stage == 0 for other in group)
        self._uses[Use(seat.kind, axes, rank // mesh.per_stage if come == 1 else -1)] = None
        ports = seat_ports(kind)
        assert ports is not None  # as the node has a seat
        name, devices = ports.place.group_name(mesh.key(axes, rank)), (self.ranks.devices[other] for other in group)
        return replace(seat, group=name, size=come, devices=tuple(sorted(devices)))

    def note(self, body: Body, ways: Mapping[RouteEnds, Route]) -> None:
        """A body is planned, whose transfers take these routes.

        Raises InvalidArgumentError for a node that is on no representative, and UnimplementedError for one that
        computes on the host of several ranks, whose lanes their nodes would share.
        """
        graph, stage_of = body.graph, self.ranks.stage_of
        for device in distinct(body.device).tolist():
            on_device = np.flatnonzero(body.device == device)
            if device not in stage_of:
                n, name = int(on_device[0]), self.ranks.cluster.devices[device].name
                raise InvalidArgumentError(
                    f"{name} is neither the first rank of a stage of mesh {self.ranks.mesh.text} nor the host of one; "
                    "nodes that stand for those of other ranks are there",
                    node=graph.names[n],
                    op=graph.op(n),
                )
            if not self.ranks.is_rank(device):
                self._check_client(graph, on_device)
                times = np.array(body.time_ns, np.int64)[on_device]
                computing = on_device[(body.duty[on_device] == Duty.COMPUTE) & (times > 0)]
                if len(computing):
                    refuse(
                        f"node {graph.names[computing[0]]!r} ({graph.op(int(computing[0]))}) computes on "
                        f"{self.ranks.cluster.devices[device].name}, which hosts of several ranks share"
                    )
        self._ways.update(ways)
        self._bodies.append(body)

    def _check_client(self, graph: JoinedGraph, nodes: Numbers) -> None:
        """UnimplementedError for a feed or fetch that is on the client while ranks are on other hosts than it."""
        ends = nodes[graph.of_class(NodeClass.ARG, NodeClass.RETVAL)[nodes]]
        if len(ends) and len({self.ranks.host(device) for device in self.ranks.devices}) > 1:
            refuse(
                f"{graph.names[ends[0]]!r} ({graph.op(int(ends[0]))}) is fed or fetched by one client, from which the "
                "ranks of several hosts are not equally far; feed and fetch nothing, give targets, and let variables "
                "have what would be fed"
            )

    def settle(self, calibration: Calibration | None) -> None:
        """Finds out whether the ranks are alike, once all bodies are noted; UnimplementedError, with why, if not."""
        check_devices(self.ranks)
        routes = self._routes = SharedRoutes(self.ranks, self._uses, self._ways, calibration)
        for body in self._bodies:
            body.routes.update({n: routes.transfers[id(route)] for n, route in body.routes.items()})

    def plan(self, plan: CollectivePlan, devices: tuple[int, ...]) -> CollectivePlan:
        """The plan of a group with flows that count for those of all groups of its axis."""
        assert self._routes is not None  # as `settle` comes before the step is played
        of_group = self._routes.of_group[devices]
        phases = [
            phase._replace(**of_group[tuple(map(id, phase.routes))]._asdict()) if phase.routes else phase
            for phase in plan.phases
        ]
        return plan._replace(phases=tuple(phases))

    def linked(self, used: Sequence[str]) -> list[str]:
        """Devices of which links are used: those given, and a rank on another host, if there is one."""
        devices = self.ranks.cluster.devices
        hosts = {devices[self.ranks.cluster.numbers[name]].host for name in used}
        away = next((devices[rank].name for rank in self.ranks.devices if devices[rank].host not in hosts), None)
        return [*used, *([away] if away else [])]

    def check(self, events: Events) -> None:
        """UnimplementedError if a rank was slow at times when its representative, whose events are given, was not."""
        check_paces(self.ranks, events)

    def like(self, link: str) -> str:
        """The name of the link that carries in the played step what a link carries in the step of all ranks."""
        return link if self._routes is None else self._routes.like(link)


def representatives_of(graph: JoinedGraph, cluster: Cluster) -> Representatives | None:
    """What the nodes of a step stand for; None if each is one node of one device.

    Raises InvalidArgumentError for marks that contradict each other, and for a mesh larger than the cluster.
    """
    marked = [kind for kind in graph.kinds if MULTIPLICITY in kind.attrs]
    if not marked:
        return None
    texts = {kind.attrs.get(MESH, b"") for kind in marked}
    counts = {kind.attrs[MULTIPLICITY] for kind in marked}
    mesh = Mesh.parse(texts.pop().decode(errors="replace")) if len(texts) == 1 else None
    if mesh is None or counts != {mesh.per_stage}:
        raise InvalidArgumentError(
            f"nodes that stand for several devices contradict each other: {MULTIPLICITY} is "
            f"{', '.join(map(str, sorted(counts)))} and there are {len(texts) + (mesh is not None)} meshes in {MESH}; "
            "mark all nodes of a step with one mesh, and with its dp * cp * tp"
        )
    if mesh.per_stage == 1:
        return None
    ranks = Ranks(mesh, cluster)
    if mesh.devices > ranks.available:
        raise InvalidArgumentError(
            f"mesh {mesh.text} has {mesh.devices} ranks, the cluster {ranks.available} devices for them; "
            "choose a smaller mesh or a larger cluster"
        )
    find, numbers = cluster.find, cluster.numbers
    return Representatives(ranks, sorted({numbers[find(name).name] for name in graph.devices}))
