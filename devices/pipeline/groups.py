"""Collectives that could never end, found before a step starts: their members are not all in the graph.

    group 1, instance 5, of 3 members     a on CPU:0, b on CPU:1         refused: one is missing
    the same                              a, b on CPU:0, c on CPU:1      refused: CPU:0 comes twice

A graph whose nodes stand for those of several ranks lacks members too, and is refused as a whole.

TensorFlow waits for ever. Only what is certain is refused: sizes and keys are attrs or constants, all nodes run, and no
function may have members of its own. The rest is found in the step, when nothing else can go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError
from ...graph.analysis.collective_seats import SEAT, SeatPlace, instance_offset, seat_ports
from ...graph.analysis.data_edges import DataEdges
from ...graph.ops.record import NodeClass
from ...graph.parallel.mesh.marks import MULTIPLICITY

if TYPE_CHECKING:
    from ...graph.graph import Graph


@dataclass(slots=True)
class _Members:
    """The members of one collective: (node, device), the sizes that they state, and whether one has a time limit."""

    members: list[tuple[str, str]] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    has_limit: bool = False


def check_stands_alone(graph: Graph) -> None:
    """InvalidArgumentError for a node that stands for those of several ranks, whose values nobody would compute."""
    for kind in graph.distinct_properties()[0]:
        count = kind.attrs.get(MULTIPLICITY, 1)
        if count > 1:
            node = next(node for node in graph.op_nodes() if node.properties is kind)
            raise InvalidArgumentError(
                f"it stands for the nodes of {count} ranks ({MULTIPLICITY}), which a run needs all: simulate this "
                "graph, or run the one of all ranks (write_out, or representatives=False)",
                node=node.name,
                op=node.op,
            )


def check_groups(graph: Graph) -> None:
    """InvalidArgumentError for a collective whose members are too few, or of which one device has two."""
    kinds = graph.distinct_properties()[0]
    if not any(map(seat_ports, kinds)) or NodeClass.SWITCH in graph.node_classes() or _calls(graph):
        return
    for (group, instance), found in _instances(graph):
        devices = Counter(device for _, device in found.members)
        if found.has_limit or len(found.sizes) != 1:
            continue  # an error of the step, as in TensorFlow
        (size,) = found.sizes
        twice = [device for device, count in devices.items() if count > 1]
        members = ", ".join(f"{node!r} on {device}" for node, device in found.members[:8])
        if twice:
            raise InvalidArgumentError(
                f"group {group}, instance {instance}: device {twice[0]} comes twice in one step ({members}); "
                "give the second collective another instance_key",
                node=found.members[0][0],
            )
        if len(devices) < size:
            raise InvalidArgumentError(
                f"group {group}, instance {instance} has {size} members, of which {len(devices)} are in the step "
                f"({members}); fetch what the others compute too, or lower group_size",
                node=found.members[0][0],
            )


def _calls(graph: Graph) -> bool:
    """Whether a node may call functions."""
    kinds = graph.distinct_properties()[0]
    return bool(len(graph.functions)) and any(
        kind.op_def.takes_functions or kind.op_def.name in graph.functions for kind in kinds
    )


def _instances(graph: Graph) -> Iterator[tuple[tuple[int, int], _Members]]:
    """The collectives by group and instance; none at all if a seat is not known beforehand."""
    edges, instances = DataEdges(graph), dict[tuple[int, int], _Members]()
    for node in graph.op_nodes():
        seat = seat_ports(node.properties)
        if seat is None or seat.place in (SeatPlace.NAME, SeatPlace.COMMUNICATOR):
            continue
        if seat.place is SeatPlace.ATTRS:
            size, group, instance = (node.attrs[name] for name in SEAT)
        else:
            sources = [graph.node_properties(edges.sources(node.id)[port][0]) for port in seat.ports]
            if any(source.op_def.name != "Const" or source.attrs["value"].ndim for source in sources):
                return
            size, group, instance = (int(source.attrs["value"]) for source in sources)
        found = instances.setdefault((group, instance + instance_offset(node.attrs)), _Members())
        found.members.append((node.name, node.assigned_device))
        found.sizes.add(size)
        found.has_limit |= node.attrs.get("timeout_seconds", 0.0) > 0
    yield from instances.items()
