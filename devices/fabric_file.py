"""Network ports, switches and meshes of a cluster file: tables [[nic]], [[switch]] and [[mesh]] -> `FabricRules`.

[[nic]]                            # two ports for every machine; GPUs use them in blocks
count = 2
link = "200 Gb InfiniBand"

[[nic]]                            # the port of one machine, in place of those for all
hosts = ["rack-1/store"]
bandwidth = "3 GB/s"
latency = "20 us"

[[switch]]
kind = "leaf"
size = 16                          # the first 16 machines, the next 16 ...; or hosts = [...] for one switch
oversubscription = 2               # half of what its ports could send goes to the spine; or bandwidth = "400 GB/s"

[[switch]]
kind = "spine"
bandwidth = "3 TB/s"

[[switch]]
kind = "pcie"
devices = ["gpu:0", "gpu:1"]       # of every machine, or of those in hosts
oversubscription = 2
nics = [0]                         # ports below the switch

[[switch]]
kind = "socket"                    # one for each processor of a machine
devices = ["gpu:0", "gpu:1"]
bandwidth = "16 GB/s"              # to each other socket

[[mesh]]                           # links between pairs, in place of a switch between all
link = "NVLink2 link"              # one of them; or bandwidth and latency
pairs = ["gpu:0 gpu:1", "gpu:0 gpu:2 x2"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from attrs import evolve

from ..errors import InvalidArgumentError
from ..graph.suggestions import suggestion
from .device import Device
from .fabric import (
    FabricRules,
    LeafRule,
    MeshRule,
    NicRule,
    PairLinks,
    PcieRule,
    SocketRule,
    SpineRule,
    SwitchRate,
    local_names,
)
from .link import LinkSpec
from .tables import check_keys, quantity, texts
from .units import parse_bytes_per_s, parse_ns

LINK_KEYS = ["link", "bandwidth", "latency"]
_NIC_KEYS = ["count", "hosts", "devices", *LINK_KEYS]
_RATE_KEYS = ["kind", "bandwidth", "oversubscription", "latency"]
_SWITCH_KEYS: Mapping[str, list[str]] = {
    "leaf": [*_RATE_KEYS, "hosts", "size"],
    "spine": _RATE_KEYS,
    "pcie": [*_RATE_KEYS, "hosts", "devices", "nics"],
    "socket": ["kind", "bandwidth", "latency", "hosts", "devices"],
}
_MESH_KEYS = ["hosts", "pairs", *LINK_KEYS]
_PAIR = re.compile(r"(\S+) (\S+)(?: x([1-9][0-9]{0,2}))?")


class FabricReader:
    """Reads tables for the machines of given devices."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.rules = FabricRules()
        self._hosts: dict[str, list[Device]] = {}
        for device in devices:
            self._hosts.setdefault(device.host, []).append(device)

    def add_nic(self, table: Mapping[str, Any], link: LinkSpec, where: str) -> None:
        """Adds a table [[nic]], whose model of link has been read."""
        check_keys(table, _NIC_KEYS, where)
        hosts = self._known_hosts(table, where)
        rule = NicRule(link, _count(table, "count", 1, where), hosts, self._known_devices(table, hosts, where))
        self.rules = evolve(self.rules, nics=(*self.rules.nics, rule))

    def add_switch(self, table: Mapping[str, Any], where: str) -> None:
        """Adds a table [[switch]]."""
        kind = str(table.get("kind"))
        if kind not in _SWITCH_KEYS:
            hint = suggestion(kind, list(_SWITCH_KEYS))
            raise InvalidArgumentError(f"{where}: kind = {kind!r} must be {', '.join(map(repr, _SWITCH_KEYS))}{hint}")
        check_keys(table, _SWITCH_KEYS[kind], f"{where} ({kind})")
        rate, latency_ns = _rate(table, where), quantity(table, "latency", parse_ns, where)
        if kind == "leaf":
            self._add_leaves(table, rate, latency_ns, where)
        elif kind == "spine":
            if self.rules.spine is not None:
                raise InvalidArgumentError(f"{where}: there is a spine already; write all its switches as one")
            self.rules = evolve(self.rules, spine=SpineRule(rate, latency_ns))
        elif kind == "socket":
            self._add_socket(table, LinkSpec("", rate.over(()), latency_ns), where)
        else:
            self._add_pcie(table, rate, latency_ns, where)

    def add_mesh(self, table: Mapping[str, Any], link: LinkSpec, where: str) -> None:
        """Adds a table [[mesh]], whose model of link has been read."""
        check_keys(table, _MESH_KEYS, where)
        hosts = self._known_hosts(table, where)
        pairs = tuple(_pair(text, f"{where}: pairs") for text in texts(table, "pairs", where))
        self._check_devices([name for pair in pairs for name in pair[:2]], hosts, f"{where}: pairs")
        if not pairs:
            raise InvalidArgumentError(f'{where}: a mesh needs pairs, such as ["gpu:0 gpu:1", "gpu:0 gpu:2 x2"]')
        for pair in pairs:
            if [{*other[:2]} for other in pairs].count({*pair[:2]}) > 1:
                raise InvalidArgumentError(f"{where}: pairs: {pair.first} and {pair.second} stand twice; write a count")
        self.rules = evolve(self.rules, meshes=(*self.rules.meshes, MeshRule(link, pairs, hosts)))

    def finish(self, name: str) -> FabricRules:
        """The rules; InvalidArgumentError when they do not fit together."""
        leaves = [host for leaf in self.rules.leaves for host in leaf.hosts]
        if self.rules.spine is not None and not leaves:
            raise InvalidArgumentError(f"{name}: a spine joins leaf switches, and there are none")
        for host in self._hosts if leaves else ():
            if leaves.count(host) != 1:
                times = f"{leaves.count(host)} leaf switches" if leaves.count(host) else "no leaf switch"
                raise InvalidArgumentError(f"{name}: machine {host!r} has {times}; give every machine one")
        return self.rules

    def _add_leaves(self, table: Mapping[str, Any], rate: SwitchRate, latency_ns: int, where: str) -> None:
        hosts = self._known_hosts(table, where)
        if bool(hosts) == ("size" in table):
            raise InvalidArgumentError(
                f"{where}: a leaf switch needs either hosts (a list) or size (machines a switch)"
            )
        size, machines = _count(table, "size", len(hosts), where), list(hosts or self._hosts)
        first = len(self.rules.leaves)
        leaves = [
            LeafRule(f"leaf {first + i // size}", tuple(machines[i : i + size]), rate, latency_ns)
            for i in range(0, len(machines), size)
        ]
        self.rules = evolve(self.rules, leaves=(*self.rules.leaves, *leaves))

    def _add_pcie(self, table: Mapping[str, Any], rate: SwitchRate, latency_ns: int, where: str) -> None:
        hosts = self._known_hosts(table, where)
        devices = self._known_devices(table, hosts, where)
        nics = table.get("nics", [])
        if not devices:
            raise InvalidArgumentError(f'{where}: a PCIe switch needs devices, such as ["gpu:0", "gpu:1"]')
        if not isinstance(nics, list) or not all(type(nic) is int and nic >= 0 for nic in nics):
            raise InvalidArgumentError(f"{where}: nics = {nics!r} must be a list of numbers of ports, from 0")
        rule = PcieRule(f"PCIe switch {len(self.rules.pcie)}", devices, rate, latency_ns, hosts, tuple(nics))
        self.rules = evolve(self.rules, pcie=(*self.rules.pcie, rule))

    def _add_socket(self, table: Mapping[str, Any], link: LinkSpec, where: str) -> None:
        hosts, name = self._known_hosts(table, where), f"socket {len(self.rules.sockets)}"
        devices = self._known_devices(table, hosts, where)
        if not devices:
            raise InvalidArgumentError(f'{where}: a socket needs devices, such as ["gpu:0", "gpu:1"]')
        rule = SocketRule(name, devices, evolve(link, name="socket link"), hosts)
        self.rules = evolve(self.rules, sockets=(*self.rules.sockets, rule))

    def _known_hosts(self, table: Mapping[str, Any], where: str) -> tuple[str, ...]:
        hosts = texts(table, "hosts", where)
        for host in hosts:
            if host not in self._hosts:
                hint = suggestion(host, list(self._hosts))
                raise InvalidArgumentError(f"{where}: hosts: there is no machine {host!r}{hint}")
        return hosts

    def _known_devices(self, table: Mapping[str, Any], hosts: tuple[str, ...], where: str) -> tuple[str, ...]:
        names = texts(table, "devices", where)
        self._check_devices(names, hosts, f"{where}: devices")
        return names

    def _check_devices(self, names: Sequence[str], hosts: tuple[str, ...], where: str) -> None:
        known = {name: None for host in hosts or self._hosts for name in local_names(self._hosts[host])}
        for name in names:
            if name not in known:
                hint = suggestion(name, list(known))
                raise InvalidArgumentError(f"{where}: no machine has a {name!r}{hint}")


def _pair(text: str, where: str) -> PairLinks:
    """Two devices and their number of links: "gpu:0 gpu:2 x2"."""
    match = _PAIR.fullmatch(text)
    if match is None or match[1] == match[2]:
        raise InvalidArgumentError(
            f'{where}: {text!r} is no pair; write "gpu:0 gpu:1", or with a count "gpu:0 gpu:1 x2"'
        )
    return PairLinks(match[1], match[2], int(match[3] or 1))


def _count(table: Mapping[str, Any], key: str, default: int, where: str) -> int:
    count = table.get(key, default)
    if type(count) is not int or count < 1:
        raise InvalidArgumentError(f"{where}: {key} = {count!r} must be a whole number of at least 1")
    return count


def _rate(table: Mapping[str, Any], where: str) -> SwitchRate:
    if table.get("kind") == "socket" and "bandwidth" not in table:
        raise InvalidArgumentError(f"{where}: a socket needs a bandwidth: that of its link to each other socket")
    if ("bandwidth" in table) == ("oversubscription" in table):
        raise InvalidArgumentError(
            f"{where}: give either bandwidth (of one direction, all links up together) or oversubscription (what the "
            "links below could carry over that)"
        )
    if "bandwidth" in table:
        return SwitchRate(quantity(table, "bandwidth", parse_bytes_per_s, where))
    share = table["oversubscription"]
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 10**6:
        raise InvalidArgumentError(f"{where}: oversubscription = {share!r} must be a number above 0, such as 2")
    return SwitchRate(oversubscription=Fraction(str(share)))
