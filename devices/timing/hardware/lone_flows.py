"""Flows that share no port with another one: most transfers of most steps.

Nothing has to be searched for them: the slowest port of the path is the rate, and the end is known. When another flow
comes to one of its ports, a lone flow is adopted by a group as it is, in the middle of its way.
"""

from __future__ import annotations

from collections.abc import Sequence

from .flow_groups import ActiveFlow, FlowGroup, Path
from .ports import ActiveLink


class LoneFlows:
    """Starts and takes out lone flows. Their ports know the path (`lone`), and the path its full ports."""

    def __init__(self) -> None:
        self._of_rate: dict[int, FlowGroup] = {}  # what ports write down in place of a group: a rate for ever

    def start(self, flow: ActiveFlow, changed: Sequence[ActiveLink], now: int, search: int) -> int:
        """Starts the only flow of a path whose ports are idle; returns when it ends.

        Of several full ports the one limits it that is the first of `changed`, as `ties` has it.
        """
        path = flow.path
        ports = path.ports
        rate = min([port.capacity for port in ports])
        path.full = full = tuple([port for port in ports if port.capacity == rate])
        path.limits = [(now, full[0] if len(full) == 1 else min(full, key=changed.index))]
        flow.first_limit = 0
        path.flows[flow] = None
        path.rate = rate
        group = self._of_rate.get(rate)
        if group is None:
            group = self._of_rate[rate] = FlowGroup(())
            group.take_rate(rate, 0, 0)
        for port in ports:
            port.flows, port.lone, port.is_watched, port.is_full = 1, path, False, False
            port.changed_in.append(search)
            port.changed_groups.append(group)
            port.changed_weights.append(path.weight)
        return now - (-flow.work // rate)

    def take_out(self, path: Path, search: int) -> None:
        """The ports of the path of a lone flow are idle again, as the flow has ended or is adopted."""
        group = self._of_rate[path.rate]
        for port in path.ports:
            port.flows, port.lone = 0, None
            port.changed_in.append(search)
            port.changed_groups.append(group)
            port.changed_weights.append(0)
        path.rate = 0


def is_idle(path: Path) -> bool:
    """Whether a flow of a path would be alone: its ports have no flows, and one capacity for ever."""
    return not path.never_alone and not sum([port.flows for port in path.ports])
