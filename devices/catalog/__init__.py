"""The catalog: models of devices and links by name, each number with its source.

There is one TOML file per model, in this folder and in the folders given to `add_models`. Every value in a file has a
unit, a source and a date; `provenance` returns them. An unknown key is an error that suggests the nearest known key.
The memory of a GPU is what its driver reports as total (`nvidia-smi --query-gpu=memory.total`), not the maker's round
figure, whose GB are nearly binary: 81559 MiB of an H100 with 80 GB. A recent driver counts what it keeps for itself.
A device may have other names, `aliases`, and fits: models of its op times fitted to measurements, in files of their own
(`fit_files`). `hosts` has models of whole machines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from attrs import frozen

from ...entry_points import import_modules
from ...errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ...graph.ops.device_kinds import GROUP
from ...graph.suggestions import suggestion
from .. import units
from ..documents import structured
from ..kinds import cluster_kinds, defaults_of
from ..link import LinkSpec
from ..spec import FAMILIES, DeviceSpec
from ..tables import check_keys, naming, without_sources
from .fit_files import with_fit_files

Parser = Callable[[Any], int | float]  # Any: a text, or for counts a number
T = TypeVar("T")

# Key in a TOML file -> (field of the class, parser of the text). Units are in the text, so keys have none.
_DEVICE_VALUES: Mapping[str, tuple[str, Parser]] = {
    "memory": ("memory_bytes", units.parse_bytes),
    "memory_bandwidth": ("memory_bandwidth_bytes_per_s", units.parse_bytes_per_s),
    "host_memory": ("host_memory_bytes", units.parse_bytes),
    "launch_overhead": ("launch_overhead_ns", units.parse_ns),
    "kernel_floor": ("kernel_floor_ns", units.parse_ns),
    "lanes": ("lanes", units.parse_count),
    "copy_engines": ("copy_engines", units.parse_count),
    "sm_count": ("sm_count", units.parse_multiprocessors),
    "l2": ("l2_bytes", units.parse_bytes),
    "sustained_clock": ("sustained_clock", units.parse_share),
    "compute_capability": ("compute_capability", units.parse_capability),
    "matrix_efficiency": ("matrix_efficiency", units.parse_share),
    "vector_efficiency": ("vector_efficiency", units.parse_share),
    "memory_efficiency": ("memory_efficiency", units.parse_share),
    "communication_share": ("communication_share", units.parse_share),
}
_ASSUMED_OR_GIVEN = ("launch_overhead", "matrix_efficiency", "vector_efficiency", "memory_efficiency")
_NEEDED = ("kind", "memory", "memory_bandwidth", "peak_flops")
_DEVICE_TEXTS = ("name", "kind", "host_link", "peer_link")
_NOT_OF_SPEC = ("aliases", "fits")  # of a file of the catalog: other names of the model, and models fitted to it
_LINK_VALUES: Mapping[str, tuple[str, Parser]] = {
    "bandwidth": ("bandwidth_bytes_per_s", units.parse_bytes_per_s),
    "latency": ("latency_ns", units.parse_ns),
}
_LINK_TEXTS = ("name",)


@frozen
class Sourced:
    """One number of the catalog: its text, the source, and the date when it was looked up (ISO)."""

    value: str
    source: str
    date: str


def structure(table: Mapping[str, object], cls: type[T], where: str) -> T:
    """`table` as an attrs class; InvalidArgumentError that names every wrong field."""
    import cattrs  # late: importing it takes longer than the rest of devices/, and only reading files needs it

    return structured(cattrs.Converter(forbid_extra_keys=True), table, cls, where)


def _numbers(table: Mapping[str, Any], values: Mapping[str, tuple[str, Parser]], where: str) -> dict[str, object]:
    """The quantities of a table as fields; `where` names the table in errors."""
    fields: dict[str, object] = {}
    for key, (name, parse) in values.items():
        if key in table:
            with naming(f"{where}: {key}"):
                fields[name] = parse(table[key])
    return fields


def device_spec_from(table: Mapping[str, Any], where: str) -> DeviceSpec:
    """The spec that a table of texts with units describes (an inline spec of a cluster file, or a file of the catalog).

    Keys: name, kind, memory, memory_bandwidth, host_memory, launch_overhead, kernel_floor, lanes, the three
    efficiencies, sustained_clock, copy_engines, sm_count, l2, compute_capability,
    communication_share, host_link, peer_link and peak_flops,
    a table of rates by family. A missing launch overhead or efficiency is the default of the kind, and is then listed
    in the spec's `assumed`; it is an error if the kind has no such default. Raises InvalidArgumentError, whose text
    begins with `where`, for a wrong table.
    """
    check_keys(table, [*_DEVICE_TEXTS, *_DEVICE_VALUES, "peak_flops"], where)
    for key in _NEEDED:
        if key not in table:
            raise InvalidArgumentError(f"{where}: {key!r} is missing; a device needs {', '.join(_NEEDED)}")
    kinds = cluster_kinds([str(table["kind"])])
    if table["kind"] not in kinds:
        raise InvalidArgumentError(f"{where}: kind = {table['kind']!r} must be {' or '.join(map(repr, kinds))}")
    rates = table["peak_flops"]
    if not isinstance(rates, Mapping):
        raise InvalidArgumentError(f"{where}: peak_flops = {rates!r} must be a table such as {{ fp32 = '10 TFLOP/s' }}")
    check_keys(rates, list(FAMILIES), f"{where}: peak_flops")
    fields: dict[str, object] = {"name": "inline", **{key: table[key] for key in _DEVICE_TEXTS if key in table}}
    for key in ("host_link", "peer_link"):
        if key in table and table[key] not in tables_of_kind("link"):
            hint = suggestion(str(table[key]), list(tables_of_kind("link")))
            raise InvalidArgumentError(f"{where}: {key} = {table[key]!r} is no link of the catalog{hint}")
    assumed = {key: text for key, text in defaults_of(table["kind"]).assumed.items() if key not in table}
    for key in _ASSUMED_OR_GIVEN:
        if key not in table and key not in assumed:
            raise InvalidArgumentError(f"{where}: {key!r} is missing; nothing is assumed of a {table['kind']}")
    fields |= _numbers({**assumed, **table}, _DEVICE_VALUES, where) | {"assumed": assumed}
    parsers: dict[str, tuple[str, Parser]] = {family: (family, units.parse_flops_per_s) for family in rates}
    fields["peak_flops_per_s"] = _numbers(rates, parsers, f"{where}: peak_flops")
    return structure(fields, DeviceSpec, where)


def link_spec_from(table: Mapping[str, Any], where: str) -> LinkSpec:
    """The link that a table of texts with units describes: bandwidth (one direction), latency, a name if it has one."""
    check_keys(table, [*_LINK_TEXTS, *_LINK_VALUES], where)
    for key in _LINK_VALUES:
        if key not in table:
            raise InvalidArgumentError(f"{where}: {key!r} is missing; a link needs bandwidth and latency")
    fields = {"name": "inline", **{key: table[key] for key in _LINK_TEXTS if key in table}}
    return structure(fields | _numbers(table, _LINK_VALUES, where), LinkSpec, where)


def add_models(folder: Traversable) -> list[str]:
    """Adds the models of a folder, a `pathlib.Path` or a resource, to the catalog, and returns their names.

    The files are called `device_*.toml` and `link_*.toml` and look like those of this package: a "name" of their own,
    and a value, a source and a date for every number. Adding the same file twice is allowed. Raises AlreadyExistsError
    for the name of another model, and whatever `device_spec` and `link_spec` raise.
    """
    names = []
    for kind, read in (("link", link_spec), ("device", device_spec)):
        for name, table in _tables_of(folder, kind).items():
            if tables_of_kind(kind).get(name, table) != table:
                raise AlreadyExistsError(f"the catalog has another {kind} {name!r}; call the new one by another name")
            _added.setdefault(kind, {})[name] = table
            tables_of_kind.cache_clear()
            _aliases.cache_clear()
            read(name)
            names.append(name)
    return names


def remove_models(names: Iterable[str]) -> None:
    """Removes models that `add_models` added (for tests); other names are ignored."""
    for name in names:
        for tables in _added.values():
            tables.pop(name, None)
    for cached in (tables_of_kind, _aliases, device_spec, link_spec):
        cached.cache_clear()


_added: dict[str, dict[str, Mapping[str, Any]]] = {}


@cache
def tables_of_kind(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """The files of a kind ("device", "link" or "host") by the `name` in them, sorted."""
    return dict(sorted({**_tables_of(files(__name__), kind), **_added.get(kind, {})}.items()))


def _tables_of(folder: Traversable, kind: str) -> dict[str, Mapping[str, Any]]:
    tables: dict[str, Mapping[str, Any]] = {}
    for entry in folder.iterdir():
        if entry.name.startswith(f"{kind}_") and entry.name.endswith(".toml"):
            table = tomllib.loads(entry.read_text("utf-8"))
            stem = entry.name.removeprefix(f"{kind}_").removesuffix(".toml")
            tables[table["name"]] = with_fit_files(table, folder, stem)
    return tables


@cache
def _aliases() -> Mapping[str, str]:
    """The name of a device by each of its other names."""
    return {alias: name for name, table in tables_of_kind("device").items() for alias in table.get("aliases", ())}


def sourced_values(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Sourced]]:
    """Every number of a file: its key ("peak_flops.fp32"), and value, source and date."""
    if isinstance(value, Mapping) and "value" in value:
        yield ".".join(path), structure(value, Sourced, f"catalog value {'.'.join(path)}")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from sourced_values(inner, (*path, key))


def device_names() -> list[str]:
    """Names of all devices of the catalog, sorted."""
    return list(tables_of_kind("device"))


def link_names() -> list[str]:
    """Names of all links of the catalog, sorted."""
    return list(tables_of_kind("link"))


@cache
def device_spec(name: str) -> DeviceSpec:
    """The device of that name or alias; NotFoundError with the nearest name otherwise."""
    table = {key: value for key, value in _table("device", name).items() if key not in _NOT_OF_SPEC}
    return device_spec_from(without_sources(table), f"catalog device {name!r}")


@cache
def link_spec(name: str) -> LinkSpec:
    """The link of that name; NotFoundError with the nearest name otherwise."""
    return link_spec_from(without_sources(_table("link", name)), f"catalog link {name!r}")


def fits_of(name: str) -> Mapping[str, Any]:
    """The table `fits` of a device, empty if it has none; NotFoundError for an unknown device."""
    fits: Mapping[str, Any] = _table("device", name).get("fits", {})
    return fits


def table_of(name: str) -> Mapping[str, Any]:
    """The whole file of a device as TOML has it; NotFoundError for an unknown device."""
    return _table("device", name)


def aliases_of(name: str) -> tuple[str, ...]:
    """The other names of a device; NotFoundError for an unknown one."""
    return tuple(_table("device", name).get("aliases", ()))


def provenance(name: str) -> dict[str, Sourced]:
    """Every number of a device or link of the catalog: key ("peak_flops.fp32") -> value, source and date."""
    folder = "device" if name in tables_of_kind("device") or name in _aliases() else "link"
    return dict(sourced_values(_table(folder, name)))


def _table(folder: str, name: str) -> Mapping[str, Any]:
    if name not in tables_of_kind(folder) and name not in _aliases():
        import_modules(GROUP)  # a package that adds a kind of device adds models of it too
    known = tables_of_kind(folder)
    if folder == "device":
        name = _aliases().get(name, name)
    if name not in known:
        raise NotFoundError(f"the catalog has no {folder} {name!r}{suggestion(name, list(known))}")
    return known[name]
