"""Flows that share no port with another one: most transfers of most steps.

Nothing has to be searched for them: the slowest port of the path is the rate, and the end is known. When another flow
comes to one of its ports, a lone flow is adopted by a group as it is, in the middle of its way.
"""

from __future__ import annotations

from collections.abc import Sequence

from .flow_groups import FlowGroup, Path
from .ports import ActiveLink


class LoneFlows:
    """Starts and takes out lone flows. Their ports know the path (`lone`), and the path its full ports."""

    def __init__(self) -> None:
        self._of_rate: dict[int, FlowGroup] = {}  # what ports write down in place of a group: a rate for ever

    def start(self, path: Path, changed: Sequence[ActiveLink], now: int, search: int) -> int:
        """Starts the only flow of a path whose ports are idle; returns when it ends.

        Of several full ports the one limits it that is the first of `changed`, as `ties` has it.
        """
        rate = min([port.capacity for port in path.ports])
        path.full = full = tuple([port for port in path.ports if port.capacity == rate])
        path.limits.append((now, full[0] if len(full) == 1 else min(full, key=changed.index)))
        path.rate = rate
        for port in path.ports:
            port.flows, port.lone, port.is_watched, port.is_full = 1, path, False, False
            port.paths[path] = None
            self._record(port, rate, search, 1)
        (flow,) = path.flows
        return now - (-flow.work // rate)

    def take_out(self, path: Path, search: int) -> None:
        """The ports of the path of a lone flow are idle again, as the flow has ended or is adopted."""
        for port in path.ports:
            port.flows, port.lone = 0, None
            del port.paths[path]
            self._record(port, path.rate, search, 0)
        path.rate = 0

    def _record(self, port: ActiveLink, rate: int, search: int, count: int) -> None:
        group = self._of_rate.get(rate)
        if group is None:
            group = self._of_rate[rate] = FlowGroup(())
            group.take_rate(rate, 0, 0)
        port.changed_in.append(search)
        port.changed_groups.append(group)
        port.changed_counts.append(count)


def is_alone(path: Path) -> bool:
    """Whether a path has one flow, and ports that are idle and have one capacity for ever."""
    return len(path.flows) == 1 and all(not port.flows and port.pace is None for port in path.ports)
