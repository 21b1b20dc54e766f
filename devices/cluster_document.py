"""A whole cluster <-> one JSON document: devices with incarnations, hosts and costs, links and switches, slow times.

    a CPU and 8 GPUs      {"specs": [that of the CPU, that of the GPUs], "costs": [...],
                           "devices": {"spec": [0, 1, 1, ...], "index": [0, 0, 1, ...], "job": ["localhost", ...], ...},
                           "rules": {...}, "profiles": {...}}

Many devices share few specs, so each is written once, and devices are columns. A cluster file (`cluster_file`) is for
people and leaves out what this keeps: incarnations, and what was read from catalogs.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ..errors import InvalidArgumentError
from .cluster import Cluster, check_count
from .device import Device
from .documents import from_document, to_document
from .fabric import FabricRules
from .link import LinkSpec
from .operating_costs import OperatingCosts
from .profiles import Profiles
from .spec import DeviceSpec
from .topology import LinkRules


@frozen
class _DeviceColumns:
    """Columns by device; `spec` and `costs` are numbers of those that the document lists."""

    spec: tuple[int, ...]
    index: tuple[int, ...]
    job: tuple[str, ...]
    replica: tuple[int, ...]
    task: tuple[int, ...]
    incarnation: tuple[int, ...]
    host: tuple[str, ...]
    costs: tuple[int, ...]


@frozen
class _PairDocument:
    """The link of a pair of devices."""

    first: str
    second: str
    link: LinkSpec


@frozen
class _RulesDocument:
    """`LinkRules`, with pairs in a list: a key of JSON is one text."""

    network: LinkSpec | None
    loopback: LinkSpec
    hosts: dict[str, LinkSpec]
    peers: dict[str, LinkSpec]
    pairs: tuple[_PairDocument, ...]
    fabric: FabricRules


@frozen
class ClusterDocument:
    """A cluster, as `to_document` writes it."""

    specs: tuple[DeviceSpec, ...]
    costs: tuple[OperatingCosts, ...]
    devices: _DeviceColumns
    rules: _RulesDocument
    profiles: Profiles


def cluster_to_document(cluster: Cluster) -> Any:  # Any: what JSON holds
    """The document of a cluster."""
    specs: dict[DeviceSpec, int] = {}
    of_object: dict[int, int] = {}  # most devices have the very same spec, which takes long to compare
    costs: dict[OperatingCosts, int] = {}
    for device in cluster:
        of_object.setdefault(id(device.spec), specs.setdefault(device.spec, len(specs)))
    rows = [
        (
            of_object[id(device.spec)],
            device.index,
            device.job,
            device.replica,
            device.task,
            device.incarnation,
            device.host,
            costs.setdefault(device.operating_costs, len(costs)),
        )
        for device in cluster
    ]
    rules = cluster.topology.rules
    pairs = tuple(_PairDocument(*names, link) for names, link in rules.pairs.items())
    return to_document(
        ClusterDocument(
            tuple(specs),
            tuple(costs),
            _DeviceColumns(*zip(*rows, strict=True)),
            _RulesDocument(rules.network, rules.loopback, dict(rules.hosts), dict(rules.peers), pairs, rules.fabric),
            cluster.profiles,
        )
    )


def cluster_from_document(document: object, where: str) -> Cluster:
    """The cluster of a document, with devices, rules and profiles as they were.

    Raises InvalidArgumentError, whose text begins with `where`, for wrong content.
    """
    read = from_document(document, ClusterDocument, where)
    columns = read.devices
    count = len(columns.spec)
    check_count(count, where)
    rows = (columns.spec, columns.index, columns.job, columns.replica, columns.task, columns.incarnation)
    if any(len(column) != count for column in (*rows, columns.host, columns.costs)):
        raise InvalidArgumentError(f"{where}: columns of devices have different lengths; save the cluster anew")
    for numbers, of in ((columns.spec, read.specs), (columns.costs, read.costs)):
        if not all(0 <= number < len(of) for number in numbers):
            raise InvalidArgumentError(f"{where}: a device has a spec or costs that are not listed; save it anew")
    devices = [
        Device(read.specs[spec], index, job, replica, task, incarnation, host=host, operating_costs=read.costs[cost])
        for spec, index, job, replica, task, incarnation, host, cost in zip(
            *rows, columns.host, columns.costs, strict=True
        )
    ]
    return Cluster(devices, _rules(read.rules), read.profiles)


def _rules(rules: _RulesDocument) -> LinkRules:
    pairs = {(pair.first, pair.second): pair.link for pair in rules.pairs}
    return LinkRules(rules.network, rules.loopback, rules.hosts, rules.peers, pairs, rules.fabric)
