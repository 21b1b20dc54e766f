"""The machines of a cluster file by model: tables [[host]] -> tables [[device]], [[nic]], [[switch]] and [[mesh]].

    [[host]]                        [[device]]  spec = "Xeon-8480+", tasks = 2, job = "worker"
    model = "DGX-H100"      -->     [[device]]  spec = "H100-SXM", count = 8, tasks = 2, job = "worker"
    job = "worker"                  [[nic]]     link = "400 Gb InfiniBand", count = 8, hosts = [the two machines]
    tasks = 2

A task has a machine of its own. GPUs and ports are below the PCIe switches of a model in blocks, as many at each; a
switch has one link up, of the rate of one GPU's link. GPUs are on sockets in blocks likewise. `price`, `power` and
`mtbf` are of each GPU, not of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InvalidArgumentError, NotFoundError
from .catalog.hosts import HostModel, host_model
from .operating_costs import COST_KEYS, operating_costs_from
from .tables import check_keys, naming, tables
from .units import MOST_COUNT

_KEYS = ["model", "job", "tasks", "task", "replica", *COST_KEYS]
TomlTable = Mapping[str, Any]  # as TOML has it


def with_hosts(table: TomlTable, name: str) -> dict[str, Any]:
    """The table of a file with every [[host]] written out, after the tables of the file. `name` begins errors."""
    if "host" not in table:
        return dict(table)
    whole = {key: value for key, value in table.items() if key != "host"}
    parts = [_written_out(item, f"{name}: host {i}") for i, item in enumerate(tables(table, "host", name))]
    for key in ("device", "nic", "switch", "mesh"):
        whole[key] = tables(whole, key, name) + [item for part in parts for item in part[key]]
    return whole


def _written_out(table: TomlTable, where: str) -> dict[str, list[TomlTable]]:
    check_keys(table, _KEYS, where)
    if not isinstance(table.get("model"), str):
        raise InvalidArgumentError(f"{where}: model = {table.get('model')!r} must name a machine of the catalog")
    with naming(where, NotFoundError):
        model = host_model(table["model"])
    place = {key: table[key] for key in ("job", "tasks", "task", "replica") if key in table}
    operating_costs_from(table, where)  # wrong ones are refused here, where their table has the name it has in the file
    costs = {key: table[key] for key in COST_KEYS if key in table}
    devices = [{"spec": model.cpu, **place}] if model.cpu else []
    machines = _machines(place, where)
    return {
        "device": [*devices, {"spec": model.gpu, "count": model.gpus, **place, **costs}],
        "nic": [{"link": model.nic, "count": model.nics, "hosts": machines}],
        "switch": [*_switches(model, machines), *_sockets(model, machines)],
        "mesh": [{"link": model.mesh_link, "pairs": list(model.mesh), "hosts": machines}] if model.mesh else [],
    }


def _machines(place: TomlTable, where: str) -> list[str]:
    """The names that the machines of tasks have."""
    for key in ("tasks", "task", "replica"):
        if type(place.get(key, 1)) is not int or not 0 <= place.get(key, 1) <= MOST_COUNT:
            raise InvalidArgumentError(f"{where}: {key} = {place[key]!r} must be a whole number up to {MOST_COUNT:,}")
    task = place.get("task", 0)
    tasks = range(place["tasks"]) if "tasks" in place else range(task, task + 1)
    return [f"/job:{place.get('job', 'localhost')}/replica:{place.get('replica', 0)}/task:{k}" for k in tasks]


def _sockets(model: HostModel, machines: list[str]) -> list[TomlTable]:
    """A socket for each block of GPUs, where the model says how they are linked."""
    if model.socket_bandwidth is None:
        return []
    blocks = [
        range(k * model.gpus // model.sockets, (k + 1) * model.gpus // model.sockets) for k in range(model.sockets)
    ]
    return [
        {
            "kind": "socket",
            "devices": [f"gpu:{gpu}" for gpu in block],
            "bandwidth": model.socket_bandwidth,
            "latency": model.socket_latency,
            "hosts": machines,
        }
        for block in blocks
    ]


def _switches(model: HostModel, machines: list[str]) -> list[TomlTable]:
    switches: list[TomlTable] = []
    for k in range(model.pcie_switches):
        gpus, nics = (
            list(range(k * count // model.pcie_switches, (k + 1) * count // model.pcie_switches))
            for count in (model.gpus, model.nics)
        )
        switches.append(
            {
                "kind": "pcie",
                "devices": [f"gpu:{gpu}" for gpu in gpus],
                "nics": nics,
                "oversubscription": len(gpus),
                "hosts": machines,
            }
        )
    return switches
