"""What collectives compute, from the members in order of rank to the output of each.

    reduce Add, Div     [1 3] [5 7]           [3 5]  for both
    gather              [1 3] [5]     refused: the shapes differ
    gather              [1 3] [5 7]           [1 3 5 7]  for both
    all-to-all          [1 3] [5 7]           [1 5]  [3 7]
    reduce-scatter Add  [1 3] [5 7]           [6]  [10]
    permute by 1        [1] [2] [3]           [3]  [1]  [2]

Arrays are merged one by one in the order of ranks, so that every member has the same bits, in one array that they share
and that nobody may write to. Numbers keep their type in between, as in TensorFlow's rings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....errors import InternalError, InvalidArgumentError
from ....graph.device_name import device_order
from ....graph.dtypes import Array
from ..elementwise.division import cut_quotient
from .meeting import Brings, Combine

MERGES: dict[bytes, Any] = {b"Add": np.add, b"Mul": np.multiply, b"Min": np.minimum, b"Max": np.maximum}
"""numpy's function by the name of a merge op"""


def reduced(merge: bytes, final: bytes = b"Id") -> Combine:
    """All members get the merged arrays, divided by their number if `final` is Div."""

    def combine(members: Sequence[Brings]) -> Sequence[Array]:
        return [_merged(members, merge, final)] * len(members)

    return combine


def scattered(merge: bytes, final: bytes) -> Combine:
    """Each member gets its part of the merged arrays, cut along axis 0; InvalidArgumentError if it does not divide."""

    def combine(members: Sequence[Brings]) -> Sequence[Array]:
        rows = len(_value(members[0]))
        if rows % len(members):
            raise InvalidArgumentError(f"{rows} rows cannot be split over {len(members)} members")
        return np.split(_merged(members, merge, final), len(members))

    return combine


def gathered(members: Sequence[Brings]) -> Sequence[Array]:
    """All members get the arrays joined along axis 0."""
    return [_shared(np.concatenate([_value(member) for member in members]))] * len(members)


def broadcast(members: Sequence[Brings]) -> Sequence[Array]:
    """All members get the array of the one that sends; InternalError unless exactly one does."""
    sent = [member for member in members if member.value is not None]
    if len(sent) != 1:
        raise InternalError(f"a broadcast needs one member that sends, not {len(sent)} of {len(members)}")
    return [_value(sent[0])] * len(members)


def exchanged(members: Sequence[Brings]) -> Sequence[Array]:
    """Member number i gets row i of each, in order of rank.

    As in TensorFlow, members are numbered in the order of their devices, whatever ranks a communicator gives them.
    """
    rows = np.stack([_value(member) for member in members])
    number = {device: n for n, device in enumerate(sorted((member.device for member in members), key=device_order))}
    return [_shared(np.ascontiguousarray(rows[:, number[member.device]])) for member in members]


def permuted(shift: int) -> Combine:
    """Each member gets what the one has that comes `shift` before it in order of rank, round and round."""

    def combine(members: Sequence[Brings]) -> Sequence[Array]:
        return [_value(members[(rank - shift) % len(members)]) for rank in range(len(members))]

    return combine


def merged(values: Sequence[Array], merge: bytes) -> Array:
    """The arrays merged one by one, in a new one."""
    if len(values) == 1:
        return np.array(values[0])
    function, total = MERGES[merge], np.empty_like(values[0], order="C", subok=False)
    function(values[0], values[1], out=total)  # and no copy of the first
    for value in values[2:]:
        function(total, value, out=total)
    return total


def _merged(members: Sequence[Brings], merge: bytes, final: bytes) -> Array:
    total = merged([_value(member) for member in members], merge)
    if final == b"Div":
        count = total.dtype.type(len(members))
        total = np.asarray(cut_quotient(total, count) if total.dtype.kind == "i" else total / count)
    return _shared(total)


def _value(member: Brings) -> Array:
    assert member.value is not None
    return member.value


def _shared(array: Array) -> Array:
    array.flags.writeable = False
    return array
