"""Models of machines: which GPUs, ports and PCIe switches one has, `host_*.toml` beside the devices.

Every count has a unit, a source and a date. GPUs of a machine reach each other over their peer links: at the full rate
of their ports, as through an NVSwitch, or, where it has a `mesh`, over the links of the pair alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any  # values as TOML has them

from attrs import frozen

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.suggestions import suggestion
from ..tables import check_keys
from ..units import parse_count
from . import device_spec, link_spec, tables_of_kind

_UNITS = {"gpus": " GPUs", "nics": " ports", "pcie_switches": " switches", "sockets": " sockets"}
_TEXTS = ["name", "gpu", "cpu", "nic", "mesh_link"]
_QUANTITIES = ["socket_bandwidth", "socket_latency"]


@frozen
class HostModel:
    """`gpus` GPUs of the model `gpu`, `nics` ports of the link `nic`, `pcie_switches` switches (0: none is ever full).

    `cpu` is the model of its CPU device, None for the default. `mesh` has the pairs of GPUs that links of the model
    `mesh_link` join, as texts of a cluster file ("gpu:0 gpu:3 x2"). Where `socket_bandwidth` is given, GPUs are on
    `sockets` processors, with a link of that bandwidth and `socket_latency` between any two.
    """

    name: str
    gpu: str
    gpus: int
    nic: str
    nics: int
    pcie_switches: int = 0
    cpu: str | None = None
    mesh_link: str = ""
    mesh: tuple[str, ...] = ()
    sockets: int = 1
    socket_bandwidth: str | None = None
    socket_latency: str = "0 ns"


@cache
def host_model(name: str) -> HostModel:
    """The machine of that name; NotFoundError with the nearest name otherwise."""
    table, where = _table(name), f"catalog host {name!r}"
    check_keys(table, [*_TEXTS, *_UNITS, *_QUANTITIES, "mesh"], where)
    counts: dict[str, Any] = {key: _count(table[key]["value"], unit) for key, unit in _UNITS.items() if key in table}
    texts: dict[str, Any] = {key: table[key] for key in _TEXTS if key in table}
    texts |= {key: table[key]["value"] for key in _QUANTITIES if key in table}
    if "mesh" in table:
        texts["mesh"] = tuple(table["mesh"]["value"].split(", "))
    for key in ("name", "gpu", "gpus", "nic", "nics"):
        if key not in table:
            raise InvalidArgumentError(f"{where}: {key!r} is missing")
    for key, read in (("gpu", device_spec), ("cpu", device_spec), ("nic", link_spec), ("mesh_link", link_spec)):
        if key in texts:
            read(texts[key])
    return HostModel(**texts, **counts)


def _table(name: str) -> Any:
    known = tables_of_kind("host")
    if name not in known:
        raise NotFoundError(f"the catalog has no host {name!r}{suggestion(name, list(known))}")
    return known[name]


def _count(text: str, unit: str) -> int:
    return parse_count(text.removesuffix(unit))
