"""From the name of a device to its entry in a calibration file: its datasheet numbers, each with its source.

    entry_of("H100-SXM", None, ...)             the catalog's table of that device, without its fits
    entry_of("rig", Path("rig.toml"), ...)      the inline spec of that name in a cluster file

A cluster file gives numbers as texts; each becomes `{ value, source, date }` with that file as its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from ...errors import InvalidArgumentError
from ...graph.suggestions import suggestion
from .. import catalog
from ..spec import DeviceSpec
from ..tables import parse_toml
from .tables import text_of

_TEXTS = ("name", "kind", "host_link", "peer_link")


@frozen
class DeviceEntry:
    """A device, its other names, and its table without fits, every number sourced."""

    spec: DeviceSpec
    names: tuple[str, ...]
    table: Mapping[str, Any]  # Any: what TOML holds


def entry_of(device: str, cluster: Path | None, date: str) -> DeviceEntry:
    """The entry of a device of the catalog, or of the inline specs of a cluster file.

    NotFoundError for a device that the catalog has not, InvalidArgumentError for one that the cluster file has not.
    """
    if cluster is not None:
        return _of_cluster(device, cluster, date)
    spec = catalog.device_spec(device)
    table = {key: value for key, value in catalog.table_of(spec.name).items() if key != "fits"}
    return DeviceEntry(spec, (spec.name, *catalog.aliases_of(spec.name)), table)


def _of_cluster(device: str, cluster: Path, date: str) -> DeviceEntry:
    tables = parse_toml(text_of(cluster), str(cluster)).get("device", [])
    specs = {
        table["spec"].get("name", "inline"): table["spec"]
        for table in (tables if isinstance(tables, list) else [])
        if isinstance(table, Mapping) and isinstance(table.get("spec"), Mapping)
    }
    if device not in specs:
        raise InvalidArgumentError(
            f"{cluster}: no inline spec is called {device!r}{suggestion(device, list(specs))}; "
            "give a [[device]] whose spec is a table with that name"
        )
    spec = catalog.device_spec_from(specs[device], str(cluster))
    table = {key: _sourced(key, value, str(cluster), date) for key, value in specs[device].items()}
    return DeviceEntry(spec, (device,), table)


def _sourced(key: str, value: Any, source: str, date: str) -> Any:  # Any: what TOML holds
    if key in _TEXTS:
        return value
    if isinstance(value, Mapping):
        return {inner: _sourced(inner, text, source, date) for inner, text in value.items()}
    return {"value": value, "source": source, "date": date}
