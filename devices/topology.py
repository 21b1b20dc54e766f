"""How bytes get from one device to another: links, and the route between any two devices of a cluster.

Flows in: devices and the models of links that join them. Flows out: `Route`, the links a transfer occupies, with their
common bandwidth and summed latency. Always holds: a link is one direction of one port, so both ways of a link work at
the same time; the route between two devices is always the same one; a device of a kind that the table below does not
have is refused when the topology is made.

    same device           nothing moves: the empty route
    CPU  -> CPU, one host  loopback
    CPU <-> GPU, one host  the GPU's link to its host (PCIe), one direction
    GPU  -> GPU, one host  out of one peer port, into the other (NVLink) if both have one; else over both host links
    across hosts          [out of the GPU] out of the host's network port, into the other host's [into the GPU]

A pair of devices may be given a link of its own, which then carries everything between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from attrs import Factory, frozen

from ..errors import InvalidArgumentError
from .catalog import link_spec
from .device import Device
from .link import LinkSpec, transfer_ns
from .spec import Kind

DEFAULT_HOST_LINK = "PCIe4 x16"
DEFAULT_NETWORK = "25 Gb Ethernet"
_KINDS = get_args(Kind)


@frozen
class Link:
    """One direction of one port: `source` and `destination` are device or host names, "network" between hosts.

    `latency_ns` is that of a whole hop at its sending end, 0 at the receiving end of the same hop.
    """

    source: str
    destination: str
    model: str
    bandwidth_bytes_per_s: int
    latency_ns: int

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
    """The links between two devices, in order; empty when nothing has to move."""

    links: tuple[Link, ...] = ()

    @property
    def latency_ns(self) -> int:
        """Nanoseconds until the first byte arrives."""
        return sum(link.latency_ns for link in self.links)

    @property
    def bandwidth_bytes_per_s(self) -> int | None:
        """Bytes/s of the slowest link; None when nothing has to move."""
        return min((link.bandwidth_bytes_per_s for link in self.links), default=None)

    def occupied_ns(self, size_bytes: int) -> int:
        """Nanoseconds for which a transfer occupies the links: bytes stream at the slowest one's rate."""
        bandwidth = self.bandwidth_bytes_per_s
        return 0 if bandwidth is None else transfer_ns(size_bytes, bandwidth)

    def transfer_ns(self, size_bytes: int) -> int:
        """Nanoseconds until the last byte arrives, of a transfer that has the route to itself."""
        return self.occupied_ns(size_bytes) + self.latency_ns


@frozen
class LinkRules:
    """Which model of link joins what; a None leaves the choice to the spec of the device.

    `network` joins hosts, `loopback` CPU devices of one host, `host_gpu` GPUs and their host, `peer` GPUs of one host;
    `pairs` maps (device name, device name) to the link of just that pair, in both directions.
    """

    network: LinkSpec = Factory(lambda: link_spec(DEFAULT_NETWORK))
    loopback: LinkSpec = Factory(lambda: link_spec("loopback"))
    host_gpu: LinkSpec | None = None
    peer: LinkSpec | None = None
    pairs: Mapping[tuple[str, str], LinkSpec] = Factory(dict)


class Topology:
    """The links of a cluster, made when first used, and the routes over them."""

    def __init__(self, devices: Iterable[Device], rules: LinkRules | None = None) -> None:
        """Raises InvalidArgumentError for a device of an unknown kind, and for the link of a device that is missing."""
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
        """The route between two devices by full name; `..._on_host` when that end of a GPU transfer is host memory.

        Raises InvalidArgumentError for a device that the cluster does not have.
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
            raise InvalidArgumentError(f"{name!r} is no device of this topology; it has {', '.join(self._devices)}")
        return self._devices[name]

    def _find(self, src: Device, dst: Device, src_on_host: bool, dst_on_host: bool) -> tuple[Link, ...]:
        pair = self.rules.pairs.get((src.name, dst.name)) or self.rules.pairs.get((dst.name, src.name))
        if pair is not None:
            return (self._link(src.name, dst.name, pair),)
        from_gpu = src.type == "GPU" and not src_on_host
        to_gpu = dst.type == "GPU" and not dst_on_host
        if src.name == dst.name and from_gpu == to_gpu:
            return ()
        if src.host != dst.host:
            return (
                *((self._up(src),) if from_gpu else ()),
                self._link(src.host, "network", self.rules.network),
                self._link("network", dst.host, self.rules.network, hop_end=True),
                *((self._down(dst),) if to_gpu else ()),
            )
        return self._within_host(src, dst, from_gpu, to_gpu)

    def _within_host(self, src: Device, dst: Device, from_gpu: bool, to_gpu: bool) -> tuple[Link, ...]:
        if from_gpu and to_gpu:
            out_port, in_port = self._peer(src), self._peer(dst)
            if out_port is not None and out_port == in_port:
                peers = f"{src.host} peers"
                return self._link(src.name, peers, out_port), self._link(peers, dst.name, in_port, hop_end=True)
            return self._up(src), self._down(dst)
        if from_gpu:
            return (self._up(src),)
        return (self._down(dst),) if to_gpu else (self._link(src.name, dst.name, self.rules.loopback),)

    def _peer(self, device: Device) -> LinkSpec | None:
        if self.rules.peer is not None or device.spec.peer_link is None:
            return self.rules.peer
        return link_spec(device.spec.peer_link)

    def _host_link(self, device: Device) -> LinkSpec:
        return self.rules.host_gpu or link_spec(device.spec.host_link or DEFAULT_HOST_LINK)

    def _up(self, device: Device) -> Link:
        return self._link(device.name, device.host, self._host_link(device))

    def _down(self, device: Device) -> Link:
        return self._link(device.host, device.name, self._host_link(device))

    def _link(self, source: str, destination: str, spec: LinkSpec, *, hop_end: bool = False) -> Link:
        key = source, destination, spec.name
        if key not in self._links:
            latency_ns = 0 if hop_end else spec.latency_ns
            self._links[key] = Link(source, destination, spec.name, spec.bandwidth_bytes_per_s, latency_ns)
        return self._links[key]


def _check_kind(device: Device) -> None:
    """InvalidArgumentError for a device of which nobody knows what links it has."""
    if device.type not in _KINDS:
        raise InvalidArgumentError(
            f"device {device.name!r} is of kind {device.type!r}, of which it is not known how it is linked to others; "
            f"kinds are {' and '.join(_KINDS)}: give its spec the one that is linked as it is",
            device=device.name,
        )
