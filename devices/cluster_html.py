"""A cluster for notebooks: a row for each kind of machine, equal ones together, and the network between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..graph.display.html import notebook_output, table
from .units import format_bytes

if TYPE_CHECKING:
    from .cluster import Cluster
    from .device import Device

_NAMED = 3  # machines of a row


def cluster_html(cluster: Cluster) -> str:
    """What `_repr_html_` of a cluster returns."""
    fabric, short = cluster.topology.fabric, cluster.short_names.shorten
    alike: defaultdict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
    for host, devices in fabric.hosts.items():
        alike[tuple(Counter(map(_model, devices)).items())].append(host)
    rows = [
        [
            f"{len(hosts):,}",
            ", ".join(map(short, hosts[:_NAMED])) + (", ..." if len(hosts) > _NAMED else ""),
            ", ".join(f"{many} {model}" for model, many in models),
            ", ".join(_links(cluster, fabric.hosts[hosts[0]])),
        ]
        for models, hosts in alike.items()
    ]
    network = fabric.ports(cluster.client.host)[0].link
    rate = f"{network.bandwidth_bytes_per_s / 10**9:,.1f} GB/s"
    between = f", joined by {network.name} ({rate} a port)" if len(fabric.hosts) > 1 else ""
    return notebook_output(
        f"Cluster of {len(cluster):,} devices in {len(fabric.hosts):,} machines{between}",
        table(["machines", "names", "devices of each", "links"], rows, left=4),
    )


def _model(device: Device) -> str:
    return f"{device.spec.name} ({device.type}, {format_bytes(device.spec.memory_bytes)})"


def _links(cluster: Cluster, devices: Sequence[Device]) -> Iterator[str]:
    """The models of links that the devices of a machine have, in words."""
    rules = cluster.topology.rules
    for device in {device.spec.name: device for device in devices}.values():
        host, peers = rules.hosts.get(device.type), rules.peers.get(device.type)
        if name := host.name if host else device.spec.host_link:
            yield f"{name} to the host"
        if name := peers.name if peers else device.spec.peer_link:
            yield f"{name} between {device.type}s"
