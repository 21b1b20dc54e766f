"""What joins machines, and the devices of one machine to each other: network ports and switches, as rules.

    gpu:0 --+                                                             +-- gpu:0
            PCIe switch -- nic 0 -- leaf switch == spine == leaf switch -- ...
    gpu:1 --+

A rule names machines, or holds for all of them. A machine has the ports of the rules that name it, else those of the
rules for all machines, else one port of the network of the cluster. A switch is full when its links up are: below it
every port has its own rate. So a leaf switch is one link up to the spine and one down, with the rate of all its uplinks
together; a PCIe switch likewise towards the host; a spine, without which leaves are joined by a network that is never
full, is one link.

Inside a machine links may join pairs of devices (`MeshRule`), as the NVLinks of machines without an NVSwitch do; and
its devices may be on several sockets (`SocketRule`), with one link in each direction between any two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeVar

from attrs import field, frozen

from ..errors import InvalidArgumentError
from .device import Device
from .link import LinkSpec


@frozen
class NicRule:
    """`count` network ports of a model for each of `hosts`, or for all machines.

    They are used by `devices`, such as "gpu:0" for the first GPU of the machine, in blocks: of four devices the first
    two use the first of two ports. Devices that no rule names share the ports that name no devices, or else all.
    """

    link: LinkSpec
    count: int = 1
    hosts: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def _rate(owner: object, attribute: object, value: Fraction | int) -> None:
    if value <= 0:
        raise InvalidArgumentError(f"the rate of a switch, {value}, must be above 0")


@frozen
class SwitchRate:
    """The rate of the links of a switch upwards: bytes/s, or the sum of the rates below / `oversubscription`."""

    bandwidth_bytes_per_s: int = 0
    oversubscription: Fraction = field(default=Fraction(1), validator=_rate)

    def over(self, below: Iterable[int]) -> int:
        """Bytes/s in one direction above links of the rates `below`; at least 1."""
        return self.bandwidth_bytes_per_s or max(1, int(sum(below) / self.oversubscription))


@frozen
class LeafRule:
    """A switch that joins the machines in `hosts`; passing to the spine takes `latency_ns`."""

    name: str
    hosts: tuple[str, ...]
    rate: SwitchRate
    latency_ns: int = 0


@frozen
class SpineRule:
    """The switches that join the leaves, as one."""

    rate: SwitchRate
    latency_ns: int = 0


@frozen
class PcieRule:
    """A switch between the `devices` and the host in each of `hosts`, or in all machines.

    `nics` are the numbers of the network ports below it: what goes there from its devices does not pass upwards.
    """

    name: str
    devices: tuple[str, ...]
    rate: SwitchRate
    latency_ns: int = 0
    hosts: tuple[str, ...] = ()
    nics: tuple[int, ...] = ()


@frozen
class SocketRule:
    """A processor whose PCIe root has the `devices`; `link` is its way to each other socket, in one direction."""

    name: str
    devices: tuple[str, ...]
    link: LinkSpec
    hosts: tuple[str, ...] = ()


class PairLinks(NamedTuple):
    """How many links join two devices of a machine, by their names in rules."""

    first: str
    second: str
    links: int


@frozen
class MeshRule:
    """Links between pairs of devices in each of `hosts`, or in all machines: there is no switch between them.

    `link` is the model of one of them. Devices without links between them reach each other through their host.
    """

    link: LinkSpec
    pairs: tuple[PairLinks, ...]
    hosts: tuple[str, ...] = ()


@frozen
class FabricRules:
    """The ports and switches of a cluster; without any, machines have one port each and no switch is ever full."""

    nics: tuple[NicRule, ...] = ()
    leaves: tuple[LeafRule, ...] = ()
    spine: SpineRule | None = None
    pcie: tuple[PcieRule, ...] = ()
    sockets: tuple[SocketRule, ...] = ()
    meshes: tuple[MeshRule, ...] = ()


_Rule = TypeVar("_Rule", NicRule, PcieRule, SocketRule, MeshRule)


class PeerLinks(NamedTuple):
    """The links between two devices: the model of one, and how many there are."""

    link: LinkSpec
    links: int


class Nic(NamedTuple):
    """A port of a machine: its number there, whether it has others, and its model."""

    number: int
    has_others: bool
    link: LinkSpec


class Fabric:
    """The rules applied to the devices of a cluster."""

    def __init__(self, devices: Sequence[Device], rules: FabricRules, network: LinkSpec) -> None:
        """`network` is the port of machines for which there is no rule."""
        self.rules = rules
        self.network = network
        self._devices = devices

    def nic(self, device: Device) -> Nic:
        """The port that a device uses."""
        return self._nics[device.name]

    def leaf(self, host: str) -> LeafRule | None:
        """The leaf switch of a machine."""
        return self._leaves.get(host)

    def pcie(self, device: Device) -> PcieRule | None:
        """The PCIe switch above a device."""
        return self._switches.get(device.name)

    def devices_below(self, switch: PcieRule, host: str) -> list[Device]:
        """The devices of a machine below a PCIe switch."""
        return [device for device in self.hosts[host] if self._switches.get(device.name) is switch]

    def socket(self, device: Device) -> SocketRule | None:
        """The socket that a device is on, None where no rule says so."""
        return self._sockets.get(device.name)

    def in_mesh(self, device: Device) -> bool:
        """Whether links of the machine of a device join pairs, this one's among them."""
        return device.name in self._meshes

    def peers(self, device: Device) -> dict[str, PeerLinks]:
        """The links of a device to others of its machine, by their full names; none where there is no mesh."""
        return self._meshes.get(device.name, {})

    def leaf_link(self, leaf: LeafRule) -> LinkSpec:
        """The link from a leaf to the spine, and back."""
        machines = [host for host in leaf.hosts if host in self.hosts]
        rate = leaf.rate.over(nic.link.bandwidth_bytes_per_s for host in machines for nic in self.ports(host))
        return LinkSpec(leaf.name, rate, leaf.latency_ns)

    @cached_property
    def spine_link(self) -> LinkSpec | None:
        """The spine as a link; None if it is never full."""
        spine = self.rules.spine
        if spine is None:
            return None
        rate = spine.rate.over(self.leaf_link(leaf).bandwidth_bytes_per_s for leaf in self.rules.leaves)
        return LinkSpec("spine", rate, spine.latency_ns)

    def ports(self, host: str) -> list[Nic]:
        """The network ports of a machine."""
        links = [rule.link for rule in _for_host(self.rules.nics, host) for _ in range(rule.count)] or [self.network]
        return [Nic(number, len(links) > 1, link) for number, link in enumerate(links)]

    def has_own_ports(self, host: str) -> bool:
        """Whether a rule states the ports of a machine."""
        return bool(_for_host(self.rules.nics, host))

    @cached_property
    def hosts(self) -> dict[str, list[Device]]:
        """Machine -> its devices."""
        hosts: dict[str, list[Device]] = {}
        for device in self._devices:
            hosts.setdefault(device.host, []).append(device)
        return hosts

    @cached_property
    def _leaves(self) -> dict[str, LeafRule]:
        return {host: leaf for leaf in self.rules.leaves for host in leaf.hosts}

    @cached_property
    def _switches(self) -> dict[str, PcieRule]:
        switches: dict[str, PcieRule] = {}
        for host in self.hosts:
            for rule, named in self._named(self.rules.pcie, host):
                switches |= {name: rule for local, name in named.items() if local in rule.devices}
        return switches

    @cached_property
    def _sockets(self) -> dict[str, SocketRule]:
        sockets: dict[str, SocketRule] = {}
        for host in self.hosts:
            for rule, named in self._named(self.rules.sockets, host):
                sockets |= {name: rule for local, name in named.items() if local in rule.devices}
        return sockets

    @cached_property
    def _meshes(self) -> dict[str, dict[str, PeerLinks]]:
        meshes: dict[str, dict[str, PeerLinks]] = {}
        for host in self.hosts:
            for rule, named in self._named(self.rules.meshes, host):
                for first, second, links in rule.pairs:
                    if first in named and second in named:
                        joined = PeerLinks(rule.link, links)
                        meshes.setdefault(named[first], {})[named[second]] = joined
                        meshes.setdefault(named[second], {})[named[first]] = joined
        return meshes

    def _named(self, rules: Sequence[_Rule], host: str) -> list[tuple[_Rule, dict[str, str]]]:
        """The rules of a machine, each with the full names of its devices by those in rules."""
        devices = self.hosts[host]
        named = dict(zip(local_names(devices), (device.name for device in devices), strict=True))
        return [(rule, named) for rule in _for_host(rules, host)]

    @cached_property
    def _nics(self) -> dict[str, Nic]:
        nics: dict[str, Nic] = {}
        for host, devices in self.hosts.items():
            names = dict(zip(local_names(devices), devices, strict=True))
            ports, first, shared = self.ports(host), 0, list[Nic]()
            for rule in _for_host(self.rules.nics, host):
                own, first = ports[first : first + rule.count], first + rule.count
                shared += own if not rule.devices else []
                nics |= _in_blocks([names[name].name for name in names if name in rule.devices], own)
            for kind in dict.fromkeys(device.type for device in devices):
                others = [device.name for device in devices if device.type == kind and device.name not in nics]
                nics |= _in_blocks(others, shared or ports)
        return nics


def _for_host(rules: Sequence[_Rule], host: str) -> list[_Rule]:
    """The rules that name a machine, else those for all."""
    return [rule for rule in rules if host in rule.hosts] or [rule for rule in rules if not rule.hosts]


def _in_blocks(devices: Sequence[str], nics: Sequence[Nic]) -> dict[str, Nic]:
    """As many neighbours for each port as for any other, the first devices for the first port."""
    return {device: nics[i * len(nics) // len(devices)] for i, device in enumerate(devices)}


def local_names(devices: Sequence[Device]) -> list[str]:
    """The names of the devices of a machine in rules: "gpu:1" is its second GPU, of whichever task."""
    seen: dict[str, int] = {}
    names = []
    for device in devices:
        place = seen[device.type] = seen.get(device.type, -1) + 1
        names.append(f"{device.type.lower()}:{place}")
    return names
