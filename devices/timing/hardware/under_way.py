"""What is under way on links, as a state that can be compared: no instants, numbers of rows or identities of flows.

10 bytes/ns, at 100 ns     a: 1000 bytes from 60 on       600 bytes left, limited by the link for 40 ns
at 350 ns                  b: the same from 310 on        the same state, if b is named as a was
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .flow_groups import ActiveFlow, Path
    from .ports import ActiveLink
    from .streams import RowName


def flows_under_way(paths: Iterable[Path], name: RowName, now: int) -> Hashable:
    """The flows that move bytes, in the order in which they began: what is left of each, and what has limited it."""
    left: dict[ActiveFlow, int] = {}
    for path in paths:
        if path.flows:
            virtual = path.virtual_at(now)
            for end, _, flow in path.ends:
                left[flow] = end - virtual
    return tuple(
        (name(flow.transfer), id(flow.path), left[flow], _limits(flow, now))
        for flow in sorted(left, key=attrgetter("number"))
    )


def _limits(flow: ActiveFlow, now: int) -> Hashable:
    """Since when which port has limited a flow: that decides what is said to be its bottleneck."""
    limits = flow.path.limits_until_now()[flow.first_limit :]
    return tuple((id(port), now - max(since, flow.began_ns)) for since, port in limits)


def waiting_for_engines(ports: Iterable[ActiveLink], name: RowName, now: int) -> Hashable:
    """The transfers that wait for copy engines, by port in their order, and since when."""
    return tuple(
        (id(port), tuple((name(flow.transfer), now - flow.requested_ns) for flow in port.queue))
        for port in ports
        if port.queue
    )
