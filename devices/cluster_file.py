"""A cluster as a file: TOML -> Cluster.

Every quantity has a unit, an unknown key is an error that suggests the nearest known key, and devices keep the order
of the file.

    [[device]]                      # the first device is the client's
    job = "worker"                  # "localhost" unless given
    tasks = 2                       # tasks 0 and 1 each get the devices; or task = 1 for that one only
    spec = "A100-80GB"              # a model of the catalog ...
    count = 4
    price = "2.50 $/h"              # of each: also power = "400 W", and mtbf = "50000 h" between failures

    [[device]]
    host = "rack-1"                 # tasks with the same host share a machine
    spec = { kind = "CPU", memory = "64 GiB", memory_bandwidth = "100 GB/s", peak_flops = { fp32 = "1 TFLOP/s" } }

    [[host]]                        # machines of the catalog, with GPUs, network ports and PCIe switches
    model = "DGX-H100"
    job = "trainer"
    tasks = 4

    [[link]]
    between = "hosts"               # or "cpus", "host-gpu", "gpus" (of any kind), or a pair of device names
    link = "100 Gb InfiniBand"      # a model of the catalog, or:

    [[link]]
    between = ["/job:worker/replica:0/task:0/device:GPU:0", "/job:worker/replica:0/task:0/device:GPU:1"]
    bandwidth = "25 GB/s"           # one direction
    latency = "2 us"

A task that lists no CPU gets one of the model "generic-cpu", before its GPUs: every task has a host. `fabric_file` has
the tables of network ports, switches and meshes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from ..errors import InvalidArgumentError, NotFoundError
from ..graph.ops.device_kinds import CPU, device_kind
from ..graph.suggestions import suggestion
from .catalog import device_spec, device_spec_from, link_spec, link_spec_from
from .cluster import Cluster, check_count, default_spec
from .device import Device
from .fabric import FabricRules
from .fabric_file import LINK_KEYS, FabricReader
from .host_tables import with_hosts
from .link import LinkSpec
from .operating_costs import COST_KEYS, UNKNOWN_COSTS, OperatingCosts, operating_costs_from
from .profile_file import ProfileReader
from .spec import DeviceSpec
from .tables import check_keys, naming, parse_toml, tables
from .topology import LinkRules, joinable

_DEVICE_KEYS = ["spec", "count", "job", "task", "tasks", "replica", "host", *COST_KEYS]
_JOB = re.compile("[A-Za-z][A-Za-z0-9_]*")
_LARGEST = 10**6 - 1  # count, task or replica
_LINK_KEYS = ["between", *LINK_KEYS]


@frozen
class _DeviceEntry:
    """One [[device]] table, its spec already read."""

    spec: DeviceSpec
    count: int = 1
    job: str = "localhost"
    task: int = 0
    tasks: int = 0
    replica: int = 0
    host: str = ""
    costs: OperatingCosts = UNKNOWN_COSTS

    def task_indices(self) -> range:
        return range(self.tasks) if self.tasks else range(self.task, self.task + 1)


def load_cluster(path: str | Path) -> Cluster:
    """The cluster that a TOML file describes.

    Raises NotFoundError when there is no such file, InvalidArgumentError for wrong content, naming file and table.
    """
    file = Path(path)
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise NotFoundError(f"cluster file {str(file)!r} cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"cluster file {str(file)!r} is not text; a cluster file is TOML in UTF-8") from None
    return parse_cluster(text, name=str(file))


def parse_cluster(source: str | Mapping[str, Any], *, name: str = "cluster") -> Cluster:
    """The cluster that TOML text, or the mapping it parses to, describes; `name` begins every error text.

    Raises InvalidArgumentError for wrong content.
    """
    table = parse_toml(source, name) if isinstance(source, str) else source
    check_keys(table, ["device", "host", "link", "nic", "switch", "mesh", "slow", "degrade"], name)
    table = with_hosts(table, name)
    entries = [_entry(item, f"{name}: device {i}") for i, item in enumerate(tables(table, "device", name))]
    if not entries:
        raise InvalidArgumentError(f"{name}: a cluster needs at least one device; write [[device]] with a spec")
    devices = _devices(entries, name)
    cluster = Cluster(devices)
    rules = LinkRules()
    for i, item in enumerate(tables(table, "link", name)):
        rules = _with_link(rules, item, cluster, f"{name}: link {i}")
    linked = Cluster(devices, evolve(rules, fabric=_fabric(table, devices, name)))
    reader = ProfileReader(linked)
    for i, item in enumerate(tables(table, "slow", name)):
        reader.add_slow(item, f"{name}: slow {i}")
    for i, item in enumerate(tables(table, "degrade", name)):
        reader.add_degrade(item, f"{name}: degrade {i}")
    return Cluster(devices, linked.topology.rules, reader.profiles)


def _entry(table: Mapping[str, Any], where: str) -> _DeviceEntry:
    check_keys(table, _DEVICE_KEYS, where)
    if "spec" not in table:
        raise InvalidArgumentError(f"{where}: 'spec' is missing; name a model of the catalog or write a table")
    if "task" in table and "tasks" in table:
        raise InvalidArgumentError(f"{where}: give either task (one index) or tasks (how many), not both")
    numbers = {key: table[key] for key in ("count", "task", "tasks", "replica") if key in table}
    for key, value in numbers.items():
        least = 1 if key in ("count", "tasks") else 0
        if type(value) is not int or value < least:
            raise InvalidArgumentError(f"{where}: {key} = {value!r} must be a whole number of at least {least}")
        if value > _LARGEST:
            raise InvalidArgumentError(f"{where}: {key} = {value!r} is beyond any cluster; it is at most {_LARGEST:,}")
    texts = {key: table[key] for key in ("job", "host") if key in table}
    for key, value in texts.items():
        if not isinstance(value, str) or not value:
            raise InvalidArgumentError(f"{where}: {key} = {value!r} must be a text that is not empty")
    if not _JOB.fullmatch(texts.get("job", "localhost")):
        raise InvalidArgumentError(f"{where}: job = {texts['job']!r} must be letters, digits and _, a letter first")
    spec = table["spec"]
    if isinstance(spec, str):
        with naming(where, NotFoundError):
            device = device_spec(spec)
    elif isinstance(spec, Mapping):
        device = device_spec_from(spec, f"{where}: spec")
    else:
        raise InvalidArgumentError(f"{where}: spec = {spec!r} must be a name of the catalog or a table")
    return _DeviceEntry(device, **numbers, **texts, costs=operating_costs_from(table, where))


def _devices(entries: Sequence[_DeviceEntry], name: str) -> list[Device]:
    """Devices in file order, task by task, indices counted per task and kind."""
    check_count(sum(entry.count * len(entry.task_indices()) for entry in entries), name)
    by_task: dict[tuple[str, int, int], list[_DeviceEntry]] = {}
    for entry in entries:
        for task in entry.task_indices():
            by_task.setdefault((entry.job, entry.replica, task), []).extend([entry] * entry.count)
    devices = []
    for (job, replica, task), of_task in by_task.items():
        hosts = {entry.host for entry in of_task if entry.host}
        if len(hosts) > 1:
            raise InvalidArgumentError(f"{name}: task {task} of job {job!r} has two hosts: {', '.join(sorted(hosts))}")
        if all(device_kind(entry.spec.kind).own_memory for entry in of_task):
            of_task.insert(0, _DeviceEntry(default_spec(CPU.name)))
        devices += _task_devices(of_task, job, replica, task, next(iter(hosts), ""))
    return devices


def _task_devices(entries: Sequence[_DeviceEntry], job: str, replica: int, task: int, host: str) -> list[Device]:
    count: Counter[str] = Counter()
    devices = []
    for entry in entries:
        kind = entry.spec.kind
        device = Device(entry.spec, count[kind], job, replica, task, operating_costs=entry.costs)
        devices.append(evolve(device, host=host) if host else device)
        count[kind] += 1
    return devices


def _with_link(rules: LinkRules, table: Mapping[str, Any], cluster: Cluster, where: str) -> LinkRules:
    check_keys(table, _LINK_KEYS, where)
    spec = _link(table, where)
    between = table.get("between")
    joins = joinable()
    if isinstance(between, str):
        if between not in joins:
            raise InvalidArgumentError(
                f"{where}: between = {between!r} is not a known pair of ends{suggestion(between, list(joins))}"
            )
        return joins[between](rules, spec)
    if not isinstance(between, list) or len(between) != 2 or not all(isinstance(name, str) for name in between):
        known = ", ".join(map(repr, joins))
        raise InvalidArgumentError(f"{where}: between = {between!r} must be one of {known} or a pair of device names")
    with naming(where):
        pair = cluster.find(between[0]).name, cluster.find(between[1]).name
    return evolve(rules, pairs={**rules.pairs, pair: spec})


def _fabric(table: Mapping[str, Any], devices: Sequence[Device], name: str) -> FabricRules:
    reader = FabricReader(devices)
    for i, item in enumerate(tables(table, "nic", name)):
        where = f"{name}: nic {i}"
        reader.add_nic(item, _link({key: item[key] for key in item if key in LINK_KEYS}, where), where)
    for i, item in enumerate(tables(table, "switch", name)):
        reader.add_switch(item, f"{name}: switch {i}")
    for i, item in enumerate(tables(table, "mesh", name)):
        where = f"{name}: mesh {i}"
        reader.add_mesh(item, _link({key: item[key] for key in item if key in LINK_KEYS}, where), where)
    return reader.finish(name)


def _link(table: Mapping[str, Any], where: str) -> LinkSpec:
    if "link" not in table:
        return link_spec_from({key: table[key] for key in table if key != "between"}, where)
    if len(table.keys() & {"bandwidth", "latency"}):
        raise InvalidArgumentError(f"{where}: give either link (a model of the catalog) or bandwidth and latency")
    with naming(where, NotFoundError):
        return link_spec(table["link"])
