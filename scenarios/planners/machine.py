"""What a closed form reads of a cluster: one model of GPU, equal hosts, the ways inside a host and between hosts.

Machine.of(cluster of 8 DGX-A100)
    spec A100-80GB, hosts 8, per_host 8
    ports 8 of 25 GB/s, each with 5 us          what a ring between hosts has to itself, or shares
    inside: the measured curves of an A100
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from attrs import evolve, field, frozen

from ...devices.cluster import Cluster
from ...devices.device import Device
from ...devices.spec import DeviceSpec
from ...devices.timing.collectives.group import HostGroup, RankGroup, network_route
from ...devices.timing.fits.calibration import Calibration
from ...errors import InvalidArgumentError
from ...graph.device_name import device_order

RATES = ("products", "memory", "inside", "ports", "launches")
"""what a machine can be faster at: products and attention, memory, links in a host, ports between hosts, launches"""
OUTSIDE_BYTES = 2 << 30
"""of a GPU's memory what its allocator cannot have: the context, loaded kernels, buffers of communication libraries"""


@frozen(slots=False, eq=False)
class Machine:
    """The facts of a cluster; `calibration` has the curves of collectives and the fits of kernels.

    `factors` has for each of `RATES` how many times as fast as in the cluster it is taken to be: times that rest on a
    rate, measured or not, are divided by its factor.
    """

    cluster: Cluster
    by_host: tuple[tuple[Device, ...], ...]
    calibration: Calibration
    factors: Mapping[str, float] = field(factory=lambda: dict.fromkeys(RATES, 1.0), kw_only=True)

    @classmethod
    def of(cls, cluster: Cluster, calibration: Calibration | None = None) -> Machine:
        """InvalidArgumentError for GPUs of several models and for hosts with different numbers of them."""
        devices = cluster.ranked
        names = sorted({device.spec.name for device in devices})
        if len(names) > 1:
            raise InvalidArgumentError(
                f"the cluster has {' and '.join(names)}: a closed form is for GPUs of one model; plan for each alone"
            )
        by_host: dict[str, list[Device]] = {}
        for device in sorted(devices, key=lambda device: device_order(device.name)):
            by_host.setdefault(device.host, []).append(device)
        sizes = Counter(map(len, by_host.values()))
        if len(sizes) > 1:
            raise InvalidArgumentError(
                f"hosts have {' and '.join(map(str, sorted(sizes)))} {names[0]}: a closed form is for equal hosts; "
                "leave some devices out of the cluster"
            )
        return cls(cluster, tuple(map(tuple, by_host.values())), calibration or Calibration.of_catalog())

    def faster(self, factors: Mapping[str, float]) -> Machine:
        """The machine with some of `RATES` so many times as fast as they are here."""
        return evolve(self, factors={**self.factors, **{name: self.factors[name] * it for name, it in factors.items()}})

    @property
    def spec(self) -> DeviceSpec:
        """The model of all devices."""
        return self.by_host[0][0].spec

    @property
    def hosts(self) -> int:
        """How many machines there are."""
        return len(self.by_host)

    @property
    def per_host(self) -> int:
        """GPUs of a machine."""
        return len(self.by_host[0])

    @property
    def devices(self) -> int:
        """GPUs of all machines."""
        return self.hosts * self.per_host

    @property
    def memory_limit_bytes(self) -> int:
        """What the allocator of a device may reserve: the memory less `OUTSIDE_BYTES`."""
        return self.spec.memory_bytes - OUTSIDE_BYTES

    @cached_property
    def inside(self) -> HostGroup:
        """The measured curves of the GPUs of a host, or the way between them."""
        return RankGroup(self.cluster.topology, [self.by_host[0]], self.calibration).hosts[0]

    @cached_property
    def host_bytes_per_s(self) -> float:
        """What all GPUs of a host together send to the next host, one direction; infinite for one host."""
        return self._between[0]

    @cached_property
    def port_bytes_per_s(self) -> float:
        """What one GPU alone sends to the next host."""
        return self._between[1]

    @cached_property
    def port_latency_ns(self) -> float:
        """The latency of the way to the next host."""
        return self._between[2]

    @cached_property
    def _between(self) -> tuple[float, float, float]:
        if self.hosts < 2:
            return np.inf, np.inf, 0.0
        both = RankGroup(self.cluster.topology, self.by_host[:2], self.calibration)
        alone = network_route(self.cluster.topology, self.by_host[0][0], self.by_host[1][0])
        rate = min(link.bandwidth_bytes_per_s for link in alone.links)
        return both.ports.bandwidth_bytes_per_s, float(rate), float(both.ports.latency_ns)
