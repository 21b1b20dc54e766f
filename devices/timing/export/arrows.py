"""The arrows of a timeline: from where a tensor is sent to where it is used, and from member to member of collectives.

    copy on a link   --> recv on another device     --> the op that this device runs next       "transfer"
    op of the member --> the part of that member in --> the part of another member that         "last member"
    that came last       the collective                 waited for it

An arrow begins at an event that takes time, strictly before it ends. There is none from a copy of 0 ns, and none where
no op follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from ....graph.arrays import Numbers
from ..events import COMPUTE_STREAM, OCCUPYING, Events


class Arrow(NamedTuple):
    """From event `source` by way of event `through`, -1 for none, to event `target`; `number` is unique."""

    name: Literal["transfer", "last member"]
    number: int
    source: int
    through: int
    target: int


def arrows_of(events: Events) -> list[Arrow]:
    """All arrows, by number, which is that of the recv or of the member that waited."""
    return sorted([*_transfers(events), *_members(events)], key=lambda arrow: arrow.number)


def _transfers(events: Events) -> Iterator[Arrow]:
    takes_time = events.duration_ns > 0
    computing = np.flatnonzero(events.of_kind("compute") & events.stream.is_text(COMPUTE_STREAM) & takes_time)
    computing = computing[np.argsort(events.start_ns[computing], kind="stable")]
    recvs = _caused(events, np.flatnonzero(events.of_kind("recv")))
    cause = events.cause[recvs]
    recvs = recvs[(events.of_kind("copy") & takes_time)[cause] & (events.start_ns[cause] < events.start_ns[recvs])]
    for device in np.unique(events.device.numbers[recvs]).tolist():
        own = recvs[events.device.numbers[recvs] == device]
        ops = computing[events.device.numbers[computing] == device]
        following = np.searchsorted(events.start_ns[ops], events.end_ns[own])
        own, following = own[following < len(ops)], following[following < len(ops)]
        ends = zip(own.tolist(), events.cause[own].tolist(), ops[following].tolist(), strict=True)
        yield from (Arrow("transfer", recv, copy, recv, op) for recv, copy, op in ends)


def _members(events: Events) -> Iterator[Arrow]:
    takes_time = events.duration_ns > 0
    members = _caused(events, np.flatnonzero(events.of_kind("collective") & takes_time))
    cause, device = events.cause[members], events.device.numbers
    own = device[cause] == device[members]
    last = dict(zip(_parts(events, members[own]), members[own].tolist(), strict=True))
    begins = ~own & (events.of_kind(*OCCUPYING) & ~events.of_kind("copy") & takes_time)[cause]
    waited = members[begins & (events.start_ns[cause] < events.start_ns[members])]
    for part, member, source in zip(
        _parts(events, waited), waited.tolist(), events.cause[waited].tolist(), strict=True
    ):
        yield Arrow("last member", member, source, last.get(part, -1), member)


def _caused(events: Events, rows: Numbers) -> Numbers:
    return rows[events.cause[rows] >= 0]


def _parts(events: Events, members: Numbers) -> list[tuple[int, ...]]:
    """What the parts in one collective have in common: what they waited for, when, and what they are."""
    columns = (events.cause, events.start_ns, events.end_ns, events.op.numbers, events.provenance.numbers)
    return list(zip(*(column[members].tolist() for column in columns), strict=True))
