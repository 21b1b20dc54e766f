"""The collectives that the nodes of a step take part in, as far as the graph says: kind, group, instance and bytes.

    node    op                   seat                                          bytes
    a       CollectiveReduce     all_reduce, group 1 of 8, instance 5          those of its input
    b       CollectiveGatherV2   all_gather, group 1 of 8, instance 6          those of its output

Who the other members are shows when they come: in the engine all seats of one group, instance and iteration meet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, prod
from typing import TYPE_CHECKING

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.collective_seats import IMBALANCE, MOVED, SEAT, SeatPlace, instance_offset, seat_ports
from ....graph.dtypes import Array, Dims, item_size
from ....graph.ops.record import Exchange, NodeClass

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.ops.properties import NodeProperties

ValueOf = Callable[[int, int], Array | None]
"""the value of an output of a node, None if it is unknown before the run"""
_PASSING = (NodeClass.IDENTITY, NodeClass.ENTER, NodeClass.SWITCH, NodeClass.NEXT_ITERATION)


@dataclass(frozen=True, slots=True)
class CollectiveSeat:
    """Where a member takes part. `instance` is None where the instances of a group are counted as they begin.

    In a function an `argument` that every call gives as a number may be added to it: its index, -1 for none. Where
    members stand for others, `size` counts those who come, and `devices` are all of the group, by number.
    """

    kind: str
    group: str
    instance: int | None
    size: int
    devices: tuple[int, ...] = ()
    argument: int = -1

    def __str__(self) -> str:
        return f"group {self.group}" if self.instance is None else f"group {self.group}, instance {self.instance}"


def seated(graph: JoinedGraph) -> list[int]:
    """The nodes that take part in a collective, by their joint numbers."""
    takes_part = [seat_ports(kind) is not None for kind in graph.kinds]
    return np.flatnonzero(np.array(takes_part, np.bool_)[graph.kind_of]).tolist() if any(takes_part) else []


def seat_from(
    kind: NodeProperties, number: Callable[[int, str], int], communicator: Callable[[int], tuple[int, int]]
) -> CollectiveSeat:
    """The seat of nodes of a kind; `number` and `communicator` (key, size) tell what comes in at an input."""
    ports, exchange = seat_ports(kind), kind.op_def.record.exchange
    assert ports is not None  # as the node is `seated`
    assert exchange is not None
    instance: int | None
    match ports.place:
        case SeatPlace.ATTRS:
            size, group, instance = (kind.attrs[name] for name in SEAT)
            instance += instance_offset(kind.attrs)
        case SeatPlace.NAME:
            size, group, instance = kind.attrs["num_devices"], kind.attrs["shared_name"].decode(errors="replace"), 0
        case SeatPlace.INPUTS:
            size, group, instance = (number(port, name) for port, name in zip(ports.ports, SEAT, strict=True))
            instance += instance_offset(kind.attrs)
        case SeatPlace.COMMUNICATOR:
            group, size = communicator(ports.ports[0])
            instance = None
    _check_shift(kind, size)
    return CollectiveSeat(exchange.value, ports.place.group_name(group), instance, size)


def _check_shift(kind: NodeProperties, size: int) -> None:
    """UnimplementedError for a permutation that does not go to a neighbour: the plan is that of a ring."""
    shift = kind.attrs.get("shift", 1)
    if kind.op_def.record.exchange is Exchange.PERMUTE and size > 1 and shift % size not in (1, size - 1):
        raise UnimplementedError(
            f"the clock knows permutations among {size} members by 1 and by -1, not by {shift}; write it as several",
            op=kind.op,
        )


def seat_of(graph: JoinedGraph, n: int, value_of: ValueOf, counted: Collection[int] = frozenset()) -> CollectiveSeat:
    """The seat of a node; InvalidArgumentError, naming the input, for one that no constant gives.

    `counted` are arguments of the function that only calls know, and that are added to instances.
    """
    kind, argument = graph.properties[n], -1
    ports = seat_ports(kind)
    if counted and ports is not None and ports.place is SeatPlace.INPUTS:
        source = graph.inputs_of(n)[ports.ports[-1]][0]
        if source in counted:
            argument = graph.properties[source].attrs["index"]

    def number(port: int, name: str) -> int:
        is_added = argument >= 0 and name == SEAT[-1]
        return 0 if is_added else _constant(graph, n, port, name, value_of)

    seat = seat_from(kind, number, lambda port: _communicator(graph, n, port, value_of))
    return seat if argument < 0 else replace(seat, argument=argument)


def counted_arguments(graph: JoinedGraph) -> list[int]:
    """The arguments of a function that nothing reads but collectives, to add them to their instances."""
    members = seated(graph)
    arguments = np.flatnonzero(graph.of_class(NodeClass.ARG)) if members else ()
    if not len(arguments):
        return []
    instances = set[int]()  # positions of inputs that are instances
    for n in members:
        ports = seat_ports(graph.properties[n])
        if ports is not None and ports.place is SeatPlace.INPUTS:
            instances.add(int(graph.input_start[n]) + ports.ports[-1])
    if not instances:
        return []
    is_instance = np.zeros(len(graph.input_src), np.bool_)
    is_instance[list(instances)] = True
    counted = np.intersect1d(arguments, graph.input_src[is_instance])
    only: list[int] = np.setdiff1d(counted, graph.input_src[~is_instance]).tolist()
    return only


def _communicator(graph: JoinedGraph, n: int, port: int, value_of: ValueOf) -> tuple[int, int]:
    """Key and size of the group of a communicator."""
    source = graph.inputs_of(n)[port][0]
    while graph.node_class(source) in _PASSING or graph.sender[source] >= 0:
        source = int(graph.sender[source]) if graph.sender[source] >= 0 else graph.inputs_of(source)[0][0]
    arguments = [arg.name for arg in graph.properties[source].op_def.input_args]
    if not {"group_key", "group_size"} <= set(arguments):
        raise InvalidArgumentError(
            f"the clock does not know the group of its communicator, which {graph.names[source]!r} "
            f"({graph.op(source)}) gives; make it by CollectiveInitializeCommunicator in the same function",
            node=graph.names[n],
            op=graph.op(n),
        )
    key, size = (
        _constant(graph, source, arguments.index(name), name, value_of) for name in ("group_key", "group_size")
    )
    return key, size


def _constant(graph: JoinedGraph, n: int, port: int, name: str, value_of: ValueOf) -> int:
    source, output = graph.inputs_of(n)[port]
    value = value_of(source, output)
    if value is None or value.size != 1:
        raise InvalidArgumentError(
            f"the clock has to know {name} before the run, but {graph.names[source]!r} ({graph.op(source)}) gives it; "
            "make it a constant, or an argument of the function that every call gives as a constant",
            node=graph.names[n],
            op=graph.op(n),
        )
    return int(value.reshape(-1)[0])


def size_bytes(kind: NodeProperties, seat: CollectiveSeat, inputs: Sequence[Dims], outputs: Sequence[Dims]) -> int:
    """What `collective_time` calls the size: the output of an all-gather, the buffer of a broadcast, else the input.

    That of an all-to-all is what a member sends or, if it is assumed to get more, gets; times the attr `_imbalance`, as
    it is that of the busiest member. Times the attr `_moved`, where a framework moves the tensor in another type.
    """
    size = _size_of_tensors(kind, seat, inputs, outputs)
    return size if MOVED not in kind.attrs else ceil(size * moved_of(kind))


def _size_of_tensors(
    kind: NodeProperties, seat: CollectiveSeat, inputs: Sequence[Dims], outputs: Sequence[Dims]
) -> int:
    if seat.kind == Exchange.BROADCAST.value:
        return prod(outputs[0]) * item_size(kind.output_types[0])
    own = prod(inputs[0]) * item_size(kind.input_types[0])
    if seat.kind == Exchange.ALL_TO_ALL.value:
        most = max(own, prod(outputs[0]) * item_size(kind.output_types[0]))
        return ceil(most * imbalance_of(kind))
    return own * seat.size if seat.kind == Exchange.ALL_GATHER.value else own


def imbalance_of(kind: NodeProperties) -> float:
    """How many times as much as the mean the busiest member sends; InvalidArgumentError for what can be no such number.

    It is an assumption about values, which the clock does not have.
    """
    imbalance = kind.attrs.get(IMBALANCE, 1.0)
    if not isinstance(imbalance, float) or not 1 <= imbalance < inf:
        raise InvalidArgumentError(
            f"attr {IMBALANCE} = {imbalance!r} must be a float from 1.0 on: how many times the mean the busiest "
            "member sends",
            op=kind.op,
        )
    return imbalance


def moved_of(kind: NodeProperties) -> float:
    """The bytes that a framework moves by those of the tensor; InvalidArgumentError for what can be no such number."""
    moved = kind.attrs[MOVED]
    if not isinstance(moved, float) or not 0 < moved < inf:
        raise InvalidArgumentError(
            f"attr {MOVED} = {moved!r} must be a float above 0: the bytes moved by those of the tensor", op=kind.op
        )
    return moved
