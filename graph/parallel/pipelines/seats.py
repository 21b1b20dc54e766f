"""Collectives inside the stages of a pipeline: every call of a stage takes part in collectives of its own.

    number = Const {value: 0, _counts_microbatches}          forward_s0(.., number), of micro-batch m: number = 8 m
    CollectiveReduceV2(x, size, key, number) {_instance: 3}  instance key 8 m + 3, as instances of the graph are below 8

The number is an argument of the functions, and each call gives it as a constant on its own device.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError, UnimplementedError
from ...analysis.collective_seats import AGAIN_STEP, INSTANCE, SeatPlace, instance_offset, seat_ports
from ...ops.properties import NodeProperties
from ...ops.record import Exchange, NodeClass
from ..mesh.marks import COUNTS_MICROBATCHES

if TYPE_CHECKING:
    from .region import MicroBatchRegion


def is_collective(kind: NodeProperties) -> bool:
    """Whether nodes of a kind exchange tensors with those of other devices."""
    return kind.op_def.is_collective or kind.op_def.record.exchange not in (None, Exchange.NOTHING)


def is_number(kind: NodeProperties) -> bool:
    """Whether nodes of a kind are the number of the micro-batch."""
    return kind.op_def.record.node_class is NodeClass.CONSTANT and bool(kind.attrs.get(COUNTS_MICROBATCHES, False))


def instances_per_call(region: MicroBatchRegion, microbatches: int) -> int:
    """How far apart the instances of one collective are from call to call.

    Raises UnimplementedError for a collective that would meet itself in another micro-batch, InvalidArgumentError for
    two that would meet each other.
    """
    seats: dict[tuple[object, int], int] = {}
    for number in (*region.forward, *region.backward):
        kind = region.graph.node_properties(number)
        if microbatches == 1 or not is_collective(kind):
            continue
        instance, name = instance_offset(kind.attrs), region.name(number)
        ports, sources = seat_ports(kind), region.sources(number)
        if ports is None or ports.place is not SeatPlace.INPUTS or not region.is_number(sources[ports.ports[2]][0]):
            raise UnimplementedError(
                f"node {name!r} ({kind.op}) takes part in one collective per step, and each of the {microbatches} "
                f"micro-batches would need one; make its instance key a constant with the attr {COUNTS_MICROBATCHES}, "
                "or leave it outside of the stages (of sharded training zero=1 or 2 do)",
                node=name,
                op=kind.op,
            )
        other = seats.setdefault((_group(region, *sources[ports.ports[1]]), instance), number)
        if other != number:
            raise InvalidArgumentError(
                f"{region.name(other)!r} and {name!r} are of one group and both have {INSTANCE} {instance}, so that "
                "they would meet each other; give each collective its own",
                node=name,
            )
    return _apart(region, microbatches) if seats else 1


def _apart(region: MicroBatchRegion, microbatches: int) -> int:
    """1 if instances are so far apart that calls may count on; else what is above all of them.

    What gradients and copies add to instances is left out of both.
    """
    kinds = {id(kind): kind for kind in region.graph.all_properties() if kind is not None}
    used = sorted({instance_offset(kind.attrs) % AGAIN_STEP for kind in kinds.values() if INSTANCE in kind.attrs})
    if all(following - instance >= microbatches for instance, following in pairwise([*used, AGAIN_STEP])):
        return 1
    if (used[-1] + 1) * microbatches > AGAIN_STEP:
        raise InvalidArgumentError(
            f"{microbatches} micro-batches have collectives with {INSTANCE} up to {used[-1]}: together more than "
            f"{AGAIN_STEP} instances; number the collectives from 1 on, or use fewer micro-batches"
        )
    return used[-1] + 1


def _group(region: MicroBatchRegion, node: int, port: int) -> object:
    """What stands for a group: its key where that is a constant, else what gives the key."""
    kind = region.graph.node_properties(node)
    return kind.attrs["value"].tobytes() if kind.op_def.record.node_class is NodeClass.CONSTANT else (node, port)
