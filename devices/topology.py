"""The links of a cluster, and the route between any two of its devices.

A link is one direction of one port, so both directions work at the same time. A transfer occupies all links of its
route; it runs at the rate of the slowest, and their latencies add up.

    same memory            nothing moves: the empty route; the CPUs of one task, a process, share their memory
    CPU  -> CPU, one host  loopback, between different tasks
    CPU <-> GPU, one host  the GPU's link to its host (PCIe), one direction
    GPU  -> GPU, one host  out of one peer port, into the other (NVLink) if both have one; else over both host links
    across hosts          [out of the GPU] out of the host's network port, into the other host's [into the GPU]

Here CPU means every kind of device that computes in the memory of its host, GPU every kind with memory of its own. The
link of a GPU is the first of: the rule for its kind, the link of its spec, the default of its kind; without any of
them it has no route. A rule for a pair of devices replaces the whole route between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NoReturn

from attrs import Factory, evolve, frozen

from ..errors import InvalidArgumentError
from ..graph.ops.device_kinds import device_kind
from .catalog import link_spec
from .device import Device
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

    @property
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

    `network` joins hosts, `loopback` devices of one host that compute in its memory. `hosts` and `peers` map kinds of
    devices ("GPU") to the link to their host and to the link between them; for other kinds the spec of the device
    decides. `pairs` maps (device name, device name) to the link of that pair, in both directions.
    """

    network: LinkSpec = Factory(lambda: link_spec(_DEFAULT_NETWORK))
    loopback: LinkSpec = Factory(lambda: link_spec("loopback"))
    hosts: Mapping[str, LinkSpec] = Factory(dict)
    peers: Mapping[str, LinkSpec] = Factory(dict)
    pairs: Mapping[tuple[str, str], LinkSpec] = Factory(dict)


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
        if src.host != dst.host:
            return (
                *((self._up(src, dst),) if leaves else ()),
                self._link(src.host, "network", self.rules.network),
                self._link("network", dst.host, self.rules.network, hop_end=True),
                *((self._down(src, dst),) if enters else ()),
            )
        return self._within_host(src, dst, leaves, enters)

    def _within_host(self, src: Device, dst: Device, leaves: bool, enters: bool) -> tuple[Link, ...]:
        """The route in one machine; does it leave own memory of the source, and enter own memory of the destination?"""
        if leaves and enters:
            out_port, in_port = self._peer(src), self._peer(dst)
            if out_port is not None and out_port == in_port:
                peers = f"{src.host} peers"
                return self._link(src.name, peers, out_port), self._link(peers, dst.name, in_port, hop_end=True)
            return self._up(src, dst), self._down(src, dst)
        if leaves:
            return (self._up(src, dst),)
        return (self._down(src, dst),) if enters else (self._link(src.name, dst.name, self.rules.loopback),)

    def _peer(self, device: Device) -> LinkSpec | None:
        model = device.spec.peer_link or defaults_of(device.type).peer_link
        return self.rules.peers.get(device.type) or (link_spec(model) if model else None)

    def _host_link(self, device: Device) -> LinkSpec | None:
        model = device.spec.host_link or defaults_of(device.type).host_link
        return self.rules.hosts.get(device.type) or (link_spec(model) if model else None)

    def _up(self, src: Device, dst: Device) -> Link:
        link = self._host_link(src) or _no_route(src, dst, src)
        return self._link(src.name, src.host, link, engines=src.spec.copy_engines)

    def _down(self, src: Device, dst: Device) -> Link:
        link = self._host_link(dst) or _no_route(src, dst, dst)
        return self._link(dst.host, dst.name, link, engines=dst.spec.copy_engines)

    def _link(self, source: str, destination: str, spec: LinkSpec, *, hop_end: bool = False, engines: int = 0) -> Link:
        key = source, destination, spec.name
        if key not in self._links:
            latency_ns = 0 if hop_end else spec.latency_ns
            self._links[key] = Link(source, destination, spec.name, spec.bandwidth_bytes_per_s, latency_ns, engines)
        return self._links[key]


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
