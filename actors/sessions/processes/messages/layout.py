"""Who hosts which device, and how the incarnation of a device tells its lives apart.

process  devices           a device that is hosted by another process, or that has restarted, has another
a1...    CPU:0, CPU:1      incarnation, so that keys of its earlier life are none of its present one
b2...    CPU:2
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from attrs import evolve

from .....devices.cluster import Cluster
from .....devices.cluster_document import cluster_from_document, cluster_to_document
from .....errors import DataLossError


class HostedBy(NamedTuple):
    """A worker process, where it listens, and its devices."""

    process: str
    address: str
    devices: tuple[str, ...]


class HostLayout(NamedTuple):
    """The workers of a session and its devices; `cluster` is the JSON of `cluster_to_document`."""

    cluster: str
    hosts: tuple[HostedBy, ...]

    @property
    def process_of(self) -> dict[str, str]:
        """The process of each device."""
        return {device: host.process for host in self.hosts for device in host.devices}


def cluster_text(cluster: Cluster) -> str:
    """A cluster as JSON, with the incarnations of its devices."""
    return json.dumps(cluster_to_document(cluster))


def cluster_of(layout: HostLayout) -> Cluster:
    """The cluster of a layout; DataLossError for what is none."""
    try:
        document = json.loads(layout.cluster)
    except ValueError as error:
        raise DataLossError(f"the cluster of a layout is no JSON: {error}") from error
    return cluster_from_document(document, "the cluster of a layout")


def incarnation_of(process: str, device: str, restarts: int) -> int:
    """The incarnation of a device in a process after so many restarts: never 0; 63 bits, because attrs are signed."""
    text = repr((process, device, restarts)).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1 or 1


def with_incarnations(cluster: Cluster, incarnations: Mapping[str, int]) -> Cluster:
    """The cluster with these incarnations of devices, by full name; the others keep theirs."""
    devices = [evolve(device, incarnation=incarnations.get(device.name, device.incarnation)) for device in cluster]
    return Cluster(devices, cluster.topology.rules, cluster.profiles)
