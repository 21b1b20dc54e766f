"""The links of a cluster, and the route between any two of its devices.

A link is one direction of one port, so both directions work at the same time. A transfer occupies all links of its
route; it runs at the rate of the slowest, and their latencies add up.

    same memory            nothing moves: the empty route; the CPUs of one task, a process, share their memory
    CPU  -> CPU, one host  loopback, between different tasks
    CPU <-> GPU, one host  the GPU's link to its host (PCIe), one direction
    GPU  -> GPU, one host  out of one peer port, into the other (NVLink) if both have one; the links of the pair where
                           links join pairs; else over both host links, and the link between their sockets
    across hosts          [out of the GPU] out of the host's network port, into the other host's [into the GPU]

Rules may add ports to hosts, and switches that can be full (`fabric`): a PCIe switch stands between GPUs and their host
or port, leaf and spine switches between the ports of hosts.

Here CPU means every kind of device that computes in the memory of its host, GPU every kind with memory of its own. The
link of a GPU is the first of: the rule for its kind, the link of its spec, the default of its kind; without any of
them it has no route. A rule for a pair of devices replaces the whole route between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import NoReturn

from attrs import Factory, evolve, frozen

from ..errors import InvalidArgumentError
from ..graph.ops.device_kinds import device_kind
from .catalog import link_spec
from .device import Device
from .fabric import Fabric, FabricRules, Nic, PeerLinks
from .kinds import cluster_kinds, defaults_of
from .link import LinkSpec, transfer_ns

_DEFAULT_NETWORK = "25 Gb Ethernet"


@frozen
class Link:
    """One direction of one port: `source` and `destination` are device or host names, "network" between hosts.

    A hop through a switch or a network is two links: the sending one has the latency of the hop, the receiving one 0.
    `copy_engines` is the number of transfers that can use it at once, 0 for any number.
    """

    source: str
    destination: str
    model: str
    bandwidth_bytes_per_s: int
    latency_ns: int
    copy_engines: int = 0

    @property
    def name(self) -> str:
        """A name that is unique in a cluster."""
        return f"{self.source} -> {self.destination} ({self.model})"

    @property
    def stream_name(self) -> str:
        """A name that is unique among the links of its source."""
        return f"{self.model} to {self.destination}"


@frozen
class Route:
    """The links between two devices, in order; empty when no bytes move."""

    links: tuple[Link, ...] = ()

    @cached_property
    def latency_ns(self) -> int:
        """Nanoseconds until the first byte arrives."""
        return sum(link.latency_ns for link in self.links)

    @property
    def bandwidth_bytes_per_s(self) -> int | None:
        """Bytes/s of the slowest link; None when no bytes move."""
        return min((link.bandwidth_bytes_per_s for link in self.links), default=None)

    def occupied_ns(self, size_bytes: int) -> int:
        """Nanoseconds for which a transfer occupies the links: bytes / rate of the slowest."""
        bandwidth = self.bandwidth_bytes_per_s
        return 0 if bandwidth is None else transfer_ns(size_bytes, bandwidth)

    def transfer_ns(self, size_bytes: int) -> int:
        """Nanoseconds until the last byte arrives, without other transfers on the route."""
        return self.occupied_ns(size_bytes) + self.latency_ns


@frozen
class LinkRules:
    """The models of the links of a cluster.

    `network` joins hosts (25 Gb Ethernet if it is None), `loopback` devices of one host that compute in its memory.
    `hosts` and `peers` map kinds of devices ("GPU") to the link to their host and to the link between them; for other
    kinds the spec of the device decides. `pairs` maps (device name, device name) to the link of that pair, in both
    directions. `fabric` has the network ports of hosts, and switches.
    """

    network: LinkSpec | None = None
    loopback: LinkSpec = Factory(lambda: link_spec("loopback"))
    hosts: Mapping[str, LinkSpec] = Factory(dict)
    peers: Mapping[str, LinkSpec] = Factory(dict)
    pairs: Mapping[tuple[str, str], LinkSpec] = Factory(dict)
    fabric: FabricRules = Factory(FabricRules)


def joinable() -> dict[str, Callable[[LinkRules, LinkSpec], LinkRules]]:
    """The values of `between` in a cluster file -> a function that adds a link to rules.

    {"hosts": ..., "cpus": ..., "host-gpu": ..., "gpus": ...}, and so for every registered kind of device.
    """
    joins: dict[str, Callable[[LinkRules, LinkSpec], LinkRules]] = {"hosts": lambda rules, x: evolve(rules, network=x)}
    for name in cluster_kinds():
        if device_kind(name).own_memory:
            joins[_host_rule(name)] = partial(_with_host_link, name)
            joins[_peer_rule(name)] = partial(_with_peer_link, name)
        else:
            joins[_peer_rule(name)] = lambda rules, x: evolve(rules, loopback=x)
    return joins


def _with_host_link(kind: str, rules: LinkRules, link: LinkSpec) -> LinkRules:
    return evolve(rules, hosts={**rules.hosts, kind: link})


def _with_peer_link(kind: str, rules: LinkRules, link: LinkSpec) -> LinkRules:
    return evolve(rules, peers={**rules.peers, kind: link})


def _host_rule(kind: str) -> str:
    return f"host-{kind.lower()}"


def _peer_rule(kind: str) -> str:
    return f"{kind.lower()}s"


class Topology:
    """The links of a cluster and the routes over them; both are made at first use."""

    def __init__(self, devices: Iterable[Device], rules: LinkRules | None = None) -> None:
        """Raises InvalidArgumentError for a device of an unknown kind, and for a rule for a device that is missing."""
        self.rules = rules or LinkRules()
        self._devices = {device.name: device for device in devices}
        for device in self._devices.values():
            _check_kind(device)
        network = self.rules.network or link_spec(_DEFAULT_NETWORK)
        self.fabric = Fabric(list(self._devices.values()), self.rules.fabric, network)
        self._host_links: dict[str, LinkSpec] = {}  # of devices with routes
        self._links: dict[tuple[str, str, str], Link] = {}
        self._routes: dict[tuple[str, str, bool, bool], Route] = {}
        for pair in self.rules.pairs:
            for name in pair:
                self._device(name)

    def route(self, src: str, dst: str, *, src_on_host: bool = False, dst_on_host: bool = False) -> Route:
        """The route between two devices by full name; `..._on_host` when that end of a transfer is in host memory.

        Raises InvalidArgumentError for an unknown device, and for two devices that no links join.
        """
        key = src, dst, src_on_host, dst_on_host
        if key not in self._routes:
            self._routes[key] = Route(self._find(self._device(src), self._device(dst), src_on_host, dst_on_host))
        return self._routes[key]

    def links(self) -> list[Link]:
        """All links that some route has used so far, in order of first use."""
        return list(self._links.values())

    def assumed(self, names: Iterable[str]) -> list[tuple[str, str, str]]:
        """(what, key of a cluster file, default) of links that transfers between devices take and no rule states."""
        devices = [self._device(name) for name in names]
        assumed = []
        for device in devices:
            default = defaults_of(device.type).host_link
            if default and not device.spec.host_link and device.type not in self.rules.hosts:
                assumed.append((device.name, "host_link", default))
        hosts = list(dict.fromkeys(device.host for device in devices))
        if len(hosts) > 1:
            if self.rules.network is None:
                assumed += [(host, "nic", _DEFAULT_NETWORK) for host in hosts if not self.fabric.has_own_ports(host)]
            if not self.rules.fabric.leaves:
                assumed.append(("network", "switch", "none that could be full"))
        return assumed

    def _device(self, name: str) -> Device:
        if name not in self._devices:
            raise InvalidArgumentError(f"{name!r} is not a device of this topology; it has {', '.join(self._devices)}")
        return self._devices[name]

    def _find(self, src: Device, dst: Device, src_on_host: bool, dst_on_host: bool) -> tuple[Link, ...]:
        pair = self.rules.pairs.get((src.name, dst.name)) or self.rules.pairs.get((dst.name, src.name))
        if pair is not None:
            return (self._link(src.name, dst.name, pair),)
        leaves = device_kind(src.type).own_memory and not src_on_host
        enters = device_kind(dst.type).own_memory and not dst_on_host
        if src.name == dst.name and leaves == enters:
            return ()
        if src.task_name == dst.task_name and not leaves and not enters:
            return ()
        if leaves and enters and src.host == dst.host:
            peers = self._between_peers(src, dst)
            if peers:
                return peers
        for device in (src, *(() if src is dst else (dst,))):
            if (leaves and device is src) or (enters and device is dst):
                self._host_links[device.name] = self._host_link(device) or _no_route(src, dst, device)
        if src.host != dst.host:
            return (*self._out(src, leaves), *self._between_leaves(src.host, dst.host), *self._in(dst, enters))
        if not leaves and not enters:
            return (self._link(src.name, dst.name, self.rules.loopback),)
        up, down = self._up(src) if leaves else (), self._down(dst) if enters else ()
        crossing = self._between_sockets(src, dst) if up and down else ()
        if up and down and not crossing and self.fabric.pcie(src) is self.fabric.pcie(dst):
            return up[0], down[-1]  # past the switch above both, if there is one
        return (*up, *crossing, *down)

    def _between_sockets(self, src: Device, dst: Device) -> tuple[Link, ...]:
        """From the socket of a device to that of another; nothing where they are one, or where no rule says."""
        a, b = self.fabric.socket(src), self.fabric.socket(dst)
        if a is None or b is None or a is b:
            return ()
        slower = max((a, b), key=lambda socket: (-socket.link.bandwidth_bytes_per_s, socket.link.latency_ns))
        return (self._link(f"{src.host} {a.name}", f"{src.host} {b.name}", slower.link),)

    def _between_peers(self, src: Device, dst: Device) -> tuple[Link, ...]:
        """The links of the pair, or out of one peer port and into the other; nothing if there are none of one model."""
        if self.fabric.in_mesh(src) or self.fabric.in_mesh(dst):
            joined = self.fabric.peers(src).get(dst.name)
            return (self._link(src.name, dst.name, _together(joined)),) if joined is not None else ()
        out_port, in_port = self._peer(src), self._peer(dst)
        if out_port is None or out_port != in_port:
            return ()
        peers = f"{src.host} peers"
        return self._link(src.name, peers, out_port), self._link(peers, dst.name, in_port, hop_end=True)

    def _out(self, device: Device, leaves: bool) -> tuple[Link, ...]:
        """From a device to the network, or to the leaf switch of its host."""
        nic, leaf = self.fabric.nic(device), self.fabric.leaf(device.host)
        port = self._link(_port_name(device.host, nic), leaf.name if leaf else "network", nic.link)
        return (*(self._up(device, nic) if leaves else ()), port)

    def _in(self, device: Device, enters: bool) -> tuple[Link, ...]:
        """From the network, or from the leaf switch of its host, to a device."""
        nic, leaf = self.fabric.nic(device), self.fabric.leaf(device.host)
        port = self._link(leaf.name if leaf else "network", _port_name(device.host, nic), nic.link, hop_end=True)
        return (port, *(self._down(device, nic) if enters else ()))

    def _between_leaves(self, src_host: str, dst_host: str) -> tuple[Link, ...]:
        """From the leaf switch of a host to that of another; nothing where they are one, or where there are none."""
        src, dst = self.fabric.leaf(src_host), self.fabric.leaf(dst_host)
        if src is dst:
            return ()
        links = []
        if src is not None:
            links.append(self._link(src.name, "spine", self.fabric.leaf_link(src)))
        if self.fabric.spine_link is not None:
            links.append(self._link("spine", "spine", self.fabric.spine_link))
        if dst is not None:
            links.append(self._link("spine", dst.name, self.fabric.leaf_link(dst), hop_end=True))
        return tuple(links)

    def _peer(self, device: Device) -> LinkSpec | None:
        model = device.spec.peer_link or defaults_of(device.type).peer_link
        return self.rules.peers.get(device.type) or (link_spec(model) if model else None)

    def _host_link(self, device: Device) -> LinkSpec | None:
        model = device.spec.host_link or defaults_of(device.type).host_link
        return self.rules.hosts.get(device.type) or (link_spec(model) if model else None)

    def _up(self, device: Device, nic: Nic | None = None) -> tuple[Link, ...]:
        """From the memory of a device to its host, or to a network port: its own link, then that of a PCIe switch."""
        own = self._link(device.name, device.host, self._host_links[device.name], engines=device.spec.copy_engines)
        switch = self._switch(device, nic)
        return (own, self._link(f"{device.host} {switch.name}", device.host, switch)) if switch else (own,)

    def _down(self, device: Device, nic: Nic | None = None) -> tuple[Link, ...]:
        """From the host, or from a network port, to the memory of a device."""
        own = self._link(device.host, device.name, self._host_links[device.name], engines=device.spec.copy_engines)
        switch = self._switch(device, nic)
        above = f"{device.host} {switch.name}" if switch else ""
        return (self._link(device.host, above, switch), own) if switch else (own,)

    def _switch(self, device: Device, nic: Nic | None) -> LinkSpec | None:
        """The link above the PCIe switch of a device; None if it has none, or if the port is below it too."""
        switch = self.fabric.pcie(device)
        if switch is None or (nic is not None and nic.number in switch.nics):
            return None
        links = map(self._host_link, self.fabric.devices_below(switch, device.host))
        rate = switch.rate.over(link.bandwidth_bytes_per_s for link in links if link is not None)
        return LinkSpec(switch.name, rate, switch.latency_ns)

    def _link(self, source: str, destination: str, spec: LinkSpec, *, hop_end: bool = False, engines: int = 0) -> Link:
        key = source, destination, spec.name
        if key not in self._links:
            latency_ns = 0 if hop_end else spec.latency_ns
            self._links[key] = Link(source, destination, spec.name, spec.bandwidth_bytes_per_s, latency_ns, engines)
        return self._links[key]


def _together(links: PeerLinks) -> LinkSpec:
    """The links of a pair as one: a transfer uses all of them."""
    one = links.link
    return evolve(one, bandwidth_bytes_per_s=one.bandwidth_bytes_per_s * links.links)


def _port_name(host: str, nic: Nic) -> str:
    """The end of a link at a network port: the host's name, with a number where it has several ports."""
    return f"{host} nic:{nic.number}" if nic.has_others else host


def _no_route(src: Device, dst: Device, stranded: Device) -> NoReturn:
    """Raises the error for two devices of which `stranded` has no link to its host."""
    pair = f'["{src.name}", "{dst.name}"]'
    raise InvalidArgumentError(
        f"there is no route from {src.name!r} to {dst.name!r}: nothing says how a {stranded.type} is linked to its "
        f'host; write a [[link]] with between = "{_host_rule(stranded.type)}", or with between = {pair}, into the '
        "cluster file, or a host_link into its spec",
        device=stranded.name,
    )


def _check_kind(device: Device) -> None:
    """InvalidArgumentError for a device of a kind that is not registered, as its links are unknown."""
    kinds = cluster_kinds()
    if device.type not in kinds:
        raise InvalidArgumentError(
            f"device {device.name!r} is of kind {device.type!r}, whose links to others are not known; "
            f"known kinds are {' and '.join(kinds)}: give its spec the kind with such links, or register the kind",
            device=device.name,
        )
