"""Where the devices of a session are hosted now, and the incarnations that they have because of that.

CPU:1 is hosted by a1     incarnation of (a1, CPU:1, 0)
it restarts               of (a1, CPU:1, 1)
a1 is lost, b2 hosts it   of (b2, CPU:1, 2)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from .....devices.cluster import Cluster
from ..messages.layout import HostedBy, HostLayout, cluster_text, incarnation_of, with_incarnations

if TYPE_CHECKING:
    from collections.abc import Sequence


class DeviceHomes:
    """The process of each device, and the cluster with the present incarnations. Replaced parts are never changed."""

    def __init__(self, cluster: Cluster, hosts: Mapping[str, str]) -> None:
        """`hosts` gives the process of each device of the cluster."""
        self.process_of: Mapping[str, str] = dict(hosts)
        self._lives: Counter[str] = Counter()
        self.cluster = with_incarnations(cluster, {name: self._incarnation(name) for name in hosts})
        self._tasks: dict[str, Cluster] = {}

    def _incarnation(self, device: str) -> int:
        return incarnation_of(self.process_of[device], device, self._lives[device])

    def restart(self, device: str) -> tuple[int, int]:
        """A device begins a new life where it is; its incarnations before and after."""
        old = self.cluster.incarnation(device)
        self._begin_lives([device])
        return old, self.cluster.incarnation(device)

    def move(self, hosts: Mapping[str, str]) -> None:
        """Devices begin new lives in other processes."""
        self.process_of = {**self.process_of, **hosts}
        self._begin_lives(hosts)

    def _begin_lives(self, devices: Collection[str]) -> None:
        self._lives.update(list(devices))
        self.cluster = with_incarnations(self.cluster, {device: self._incarnation(device) for device in devices})
        self._tasks.clear()

    def devices_of(self, process: str) -> list[str]:
        """The devices in a process, in the order of the cluster."""
        return [name for name in self.cluster.names if self.process_of[name] == process]

    def task(self, task: str) -> Cluster:
        """The devices of a task."""
        known = self._tasks.get(task)
        if known is None:
            devices = [device for device in self.cluster if device.task_name == task]
            known = self._tasks[task] = Cluster(devices, self.cluster.topology.rules, self.cluster.profiles)
        return known

    def layout(self, addresses: Mapping[str, str]) -> HostLayout:
        """What workers are told; `addresses` are those of the workers that live, by process."""
        hosts = [HostedBy(process, address, tuple(self.devices_of(process))) for process, address in addresses.items()]
        return HostLayout(cluster_text(self.cluster), tuple(hosts))


def least_crowded(homes: DeviceHomes, processes: Sequence[str]) -> str:
    """The process with the fewest devices, the first of several."""
    return min(processes, key=lambda process: len(homes.devices_of(process)))
