"""Collectives inside the stages of a pipeline: every call of a stage takes part in collectives of its own.

    number = Const {value: 0, _counts_microbatches}          forward_s0(.., number), of micro-batch m: number = m
    CollectiveReduceV2(x, size, key, number) {_instance: k}  instance key k + m

The number is an argument of the functions, and each call gives it as a constant on its own device. Collectives of one
group must be so many instances apart as there are micro-batches.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError, UnimplementedError
from ...analysis.collective_seats import SeatPlace, seat_ports
from ...ops.properties import NodeProperties
from ...ops.record import Exchange, NodeClass

if TYPE_CHECKING:
    from .region import MicroBatchRegion

COUNTS_MICROBATCHES = "_counts_microbatches"
"""the attr of a scalar constant of int32 in whose place each call has the number of its micro-batch"""
INSTANCE = "_instance"
"""the attr of a collective that is added to its instance key"""


def is_collective(kind: NodeProperties) -> bool:
    """Whether nodes of a kind exchange tensors with those of other devices."""
    return kind.op_def.is_collective or kind.op_def.record.exchange not in (None, Exchange.NOTHING)


def is_number(kind: NodeProperties) -> bool:
    """Whether nodes of a kind are the number of the micro-batch."""
    return kind.op_def.record.node_class is NodeClass.CONSTANT and bool(kind.attrs.get(COUNTS_MICROBATCHES, False))


def check_seats(region: MicroBatchRegion, microbatches: int) -> None:
    """Raises UnimplementedError for a collective that meets itself in another micro-batch, or meets another one."""
    seats: dict[object, list[tuple[int, int]]] = {}
    for number in (*region.forward, *region.backward):
        kind = region.graph.node_properties(number)
        if microbatches == 1 or not is_collective(kind):
            continue
        ports = seat_ports(kind)
        sources = region.sources(number)
        if ports is None or ports.place is not SeatPlace.INPUTS or not region.is_number(sources[ports.ports[2]][0]):
            name = region.name(number)
            raise UnimplementedError(
                f"node {name!r} ({kind.op}) takes part in one collective per step, and each of the {microbatches} "
                f"micro-batches would need one; make its instance key a constant with the attr {COUNTS_MICROBATCHES}, "
                "or leave it outside of the stages (of sharded training zero=1 or 2 do)",
                node=name,
                op=kind.op,
            )
        seats.setdefault(_group(region, *sources[ports.ports[1]]), []).append(
            (int(kind.attrs.get(INSTANCE, 0)), number)
        )
    for members in seats.values():
        for (instance, node), (following, other) in pairwise(sorted(members)):
            if following - instance < microbatches:
                raise InvalidArgumentError(
                    f"{region.name(node)!r} has {INSTANCE} {instance} and {region.name(other)!r} has {following}: with "
                    f"{microbatches} micro-batches they meet each other; give them numbers that are further apart"
                )


def _group(region: MicroBatchRegion, node: int, port: int) -> object:
    """What stands for a group: its key where that is a constant, else what gives the key."""
    kind = region.graph.node_properties(node)
    return kind.attrs["value"].tobytes() if kind.op_def.record.node_class is NodeClass.CONSTANT else (node, port)
