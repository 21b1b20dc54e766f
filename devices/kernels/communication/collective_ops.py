"""The collective ops of TensorFlow's runtime, which differ in how a node says where its seat is.

version 1   attrs group_size, group_key, instance_key         the same in every step
version 2   inputs of these names, and ordering tokens        known in the step; tokens are only waited for
version 3   a communicator with group, rank and size          collectives of a group are numbered as they begin

The attr `_instance` of versions 1 and 2 is added to the instance key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.collective_seats import SeatPlace, instance_offset
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..carried import carried, carrying
from ..checks import require, scalar_of, vector_of
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel, simple
from .combining import broadcast, exchanged, gathered, permuted, reduced, scattered
from .meeting import Combine, Member, meetings_of
from .meeting_table import InstanceKey, Terms


class Seat(NamedTuple):
    """Where a member takes part: its group and instance, the size of the group, and its rank if it has one."""

    key: InstanceKey
    size: int
    rank: int | None = None


FindSeat: TypeAlias = Callable[..., Seat]
"""from the inputs behind the value"""


@dataclass(frozen=True, slots=True)
class Form:
    """What a collective is called in errors, what it computes, and what it asks of a value for so many members."""

    kind: str
    combine: Combine
    check: Callable[[Array, int], None] = lambda _value, _size: None


@dataclass(eq=False, slots=True)
class Communicator:
    """A member's side of a group with ranks, for one step."""

    group: int
    rank: int
    size: int
    begun: int = 0

    def next_seat(self) -> Seat:
        """The seat of the collective that begins now."""
        self.begun += 1
        return Seat(InstanceKey(SeatPlace.COMMUNICATOR.group_name(self.group), self.begun), self.size, self.rank)


def by_attrs(node: Construction) -> FindSeat:
    """The seats of a node of version 1."""
    attrs = node.attrs
    instance = attrs["instance_key"] + instance_offset(attrs)
    seat = Seat(InstanceKey(attrs["group_key"], instance), attrs["group_size"])
    return lambda: seat


def by_inputs(node: Construction) -> FindSeat:
    """The seats of a node of version 2."""
    offset = instance_offset(node.attrs)

    def seat(size: Array, group: Array, instance: Array, *_tokens: object) -> Seat:
        key = InstanceKey(_scalar(group, "group_key"), _scalar(instance, "instance_key") + offset)
        return Seat(key, _scalar(size, "group_size"))

    return seat


def by_communicator(_node: Construction) -> FindSeat:
    """The seats of a node of version 3."""

    def seat(communicator: Array, assignment: Array) -> Seat:
        require(
            np.shape(assignment) == (0, 0),
            f"a group assignment must have shape [0,0], not {shape_text(np.shape(assignment))}: "
            "make a communicator for each group instead",
        )
        return carried(communicator, Communicator, "a communicator").next_seat()

    return seat


def _scalar(value: Array, what: str) -> int:
    return scalar_of(value, what)  # a scalar of numpy, too, has `ndim`


def collective(*ops: str, seat: Callable[[Construction], FindSeat], form: Callable[[Construction], Form]) -> None:
    """Registers the kernels of collectives in which all members bring values of one shape."""

    def factory(node: Construction) -> Start:
        find, own = seat(node), form(node)

        def start(call: Call, value: Array, *where: Array) -> None:
            key, size, rank = find(*where)
            value = np.asarray(value)
            own.check(value, size)
            terms = Terms(own.kind, size, node.output_types[0], value.shape)
            join(node, call, key, Member(call, node.device, value, terms, own.combine, rank))

        return start

    deferred_kernel(*ops)(factory)


def join(node: Construction, call: Call, key: InstanceKey, member: Member) -> None:
    """A node's member comes to its meeting, for as long as its attr allows."""
    member.timeout_s = float(node.attrs.get("timeout_seconds", 0.0))
    member.op, member.num_outputs = node.op, len(node.output_types)
    meetings_of(call).join(key, member, node.state.session_tensors.waiting)


def _reduce(node: Construction) -> Form:
    return Form("a reduction", reduced(node.attrs["merge_op"], node.attrs["final_op"]))


def _reduction(node: Construction) -> Form:
    return Form("a reduction", reduced(node.attrs["reduction"]))


def _reduce_scatter(node: Construction) -> Form:
    combine = scattered(node.attrs["merge_op"], node.attrs["final_op"])
    return Form("a reduce-scatter", combine, _can_be_split)


def _gather(_node: Construction) -> Form:
    return Form("a gather", gathered, _has_rows)


def _all_to_all(_node: Construction) -> Form:
    return Form("an all-to-all", exchanged, _has_row_for_each)


def _permute(node: Construction) -> Form:
    shift = int(node.attrs["shift"])
    return Form(f"a permutation by {shift}", permuted(shift))


def _has_rows(value: Array, _size: int) -> None:
    require(value.ndim > 0, "a gather joins along axis 0, but its input is a scalar; reshape it to one row")


def _can_be_split(value: Array, _size: int) -> None:
    require(value.ndim > 0, "a reduce-scatter splits along axis 0, but its input is a scalar; reshape it to rows")


def _has_row_for_each(value: Array, size: int) -> None:
    require(
        value.ndim > 0 and len(value) == size,
        f"an all-to-all of {size} members takes a row for each, but its input has shape {shape_text(value.shape)}",
    )


collective("CollectiveReduce", seat=by_attrs, form=_reduce)
collective("CollectiveReduceV2", seat=by_inputs, form=_reduce)
collective("CollectiveReduceV3", seat=by_communicator, form=_reduction)
collective("CollectiveGather", seat=by_attrs, form=_gather)
collective("CollectiveGatherV2", "Partita>AllGather", seat=by_inputs, form=_gather)
collective("CollectiveReduceScatterV2", seat=by_inputs, form=_reduce_scatter)
collective("CollectiveAllToAllV2", seat=by_inputs, form=_all_to_all)
collective("CollectiveAllToAllV3", seat=by_communicator, form=_all_to_all)
collective("Partita>CollectivePermute", seat=by_inputs, form=_permute)


def _broadcast(
    node: Construction, call: Call, seat: Seat, value: Array | None, shape: Sequence[int | None] | None
) -> None:
    if shape is None or None in shape:
        raise InvalidArgumentError(f"a broadcast needs a whole shape, not {shape_text(shape)}")
    terms = Terms("a broadcast", seat.size, node.output_types[0], tuple(size for size in shape if size is not None))
    join(node, call, seat.key, Member(call, node.device, value, terms, broadcast, seat.rank))


@deferred_kernel("CollectiveBcastSend", "CollectiveBcastSendV2")
def broadcast_send(node: Construction) -> Start:
    """Gives its value to all members, itself included."""
    find = (by_inputs if "shape" not in node.attrs else by_attrs)(node)

    def start(call: Call, value: Array, *where: Array) -> None:
        value = np.asarray(value)
        declared = node.attrs.get("shape", value.shape)
        require(
            declared == value.shape,
            f"attr shape {shape_text(declared)} is not the shape {shape_text(value.shape)} of the input",
        )
        _broadcast(node, call, find(*where), value, value.shape)

    return start


@deferred_kernel("CollectiveBcastRecv")
def broadcast_recv(node: Construction) -> Start:
    """Gets the value of the member that sends."""
    seat = by_attrs(node)()
    return lambda call: _broadcast(node, call, seat, None, node.attrs["shape"])


@deferred_kernel("CollectiveBcastRecvV2")
def broadcast_recv_of_shape(node: Construction) -> Start:
    """Gets the value of the member that sends; an input has its shape."""
    find = by_inputs(node)

    def start(call: Call, size: Array, group: Array, instance: Array, shape: Array) -> None:
        _broadcast(node, call, find(size, group, instance), None, vector_of(np.asarray(shape), "shape"))

    return start


simple("Partita>CopiedOver", lambda value, *_seat: value)


@kernel("CollectiveAssignGroupV2")
def assign_group(_node: Construction) -> Kernel:
    """Size and key of the first group, a row of the assignment, that has a device; row 0 has the key `base_key`."""

    def find(assignment: Array, device_index: Array, base_key: Array) -> tuple[np.int32, np.int32]:
        require(
            np.ndim(assignment) == 2,
            f"group_assignment must have a row for each group, not shape {shape_text(np.shape(assignment))}",
        )
        device = _scalar(device_index, "device_index")
        rows = np.flatnonzero((np.asarray(assignment) == device).any(axis=1))
        require(len(rows) > 0, f"device_index {device} is in no group of the assignment")
        return np.int32(assignment.shape[1]), np.int32(_scalar(base_key, "base_key") + rows[0])

    return find


@kernel("CollectiveInitializeCommunicator")
def initialize_communicator(_node: Construction) -> Kernel:
    """A handle of the member's side of a group with ranks."""

    def make(group_key: Array, rank: Array, group_size: Array) -> Array:
        own, size = _scalar(rank, "rank"), _scalar(group_size, "group_size")
        require(size >= 1, f"group_size must be at least 1, not {size}")
        require(0 <= own < size, f"rank {own} is not in [0, {size})")
        return carrying(Communicator(_scalar(group_key, "group_key"), own, size))

    return make
