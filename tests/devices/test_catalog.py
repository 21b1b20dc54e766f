"""Every number of the catalog has a source, and every model can be used."""

from __future__ import annotations

import tomllib
from datetime import date
from importlib.resources import files
from typing import Any

import pytest

from partita.devices import catalog
from partita.devices.catalog import device_spec, device_spec_from, link_spec, link_spec_from, provenance
from partita.devices.catalog.hosts import host_model
from partita.errors import InvalidArgumentError, NotFoundError

PLAIN_TEXTS = {"name", "kind", "aliases", "host_link", "peer_link", "fits", "cpu", "gpu", "nic", "mesh_link"}
FILES = sorted(entry.name for entry in files(catalog.__name__).iterdir() if entry.name.endswith(".toml"))
INLINE = {"kind": "CPU", "memory": "1 GB", "memory_bandwidth": "1 GB/s", "peak_flops": {"fp32": "1 GFLOP/s"}}


def numbers(table: dict[str, Any]) -> list[Any]:
    """All leaves of a file that are no plain texts."""
    leaves: list[Any] = []
    for key, value in table.items():
        if key == "peak_flops":
            leaves += value.values()
        elif key not in PLAIN_TEXTS:
            leaves.append(value)
    return leaves


@pytest.mark.parametrize("name", FILES)
def test_every_value_has_unit_source_and_date(name: str) -> None:
    """In every file, for every number."""
    table = tomllib.loads((files(catalog.__name__) / name).read_text("utf-8"))
    assert numbers(table)
    for value in numbers(table):
        assert set(value) == {"value", "source", "date"}
        assert value["value"].split()[1]
        assert len(value["source"]) > 5
        assert date.fromisoformat(value["date"]) <= date.today()


def test_every_file_is_a_model() -> None:
    """No file of the folder is ignored, and names are unique."""
    names = catalog.device_names() + catalog.link_names() + list(catalog.tables_of_kind("host"))
    assert len(set(names)) == len(names) == len(FILES)


@pytest.mark.parametrize("name", catalog.device_names())
def test_devices_are_usable(name: str) -> None:
    """The spec can be read, its links exist, and all its numbers have a source."""
    spec = device_spec(name)
    assert spec.name == name
    for link in (spec.host_link, spec.peer_link):
        assert link is None or link_spec(link).bandwidth_bytes_per_s > 0
    assert {"memory", "memory_bandwidth", "peak_flops.fp32", "launch_overhead"} <= set(provenance(name))


def test_systems_have_the_numbers_of_their_models() -> None:
    """Each name of the collected measurements is an alias, with one-direction links and counts for models of ops."""
    b200 = device_spec("b200_sxm")
    assert b200.name == "B200-SXM"
    assert (b200.sm_count, b200.l2_bytes, b200.memory_bandwidth_bytes_per_s) == (148, 126 * 2**20, 7700 * 10**9)
    assert device_spec("b60").sm_count == 20
    assert device_spec("P100") == device_spec("P100-SXM2")
    assert {"sm_count", "l2"} <= set(provenance("gb300"))
    gpus = [name for name in catalog.device_names() if device_spec(name).kind == "GPU"]
    assert all(device_spec(name).sm_count and device_spec(name).l2_bytes for name in gpus)


@pytest.mark.parametrize("name", list(catalog.tables_of_kind("host")))
def test_machines_are_usable(name: str) -> None:
    """Their devices and ports are in the catalog, and all their counts have a source."""
    model = host_model(name)
    assert device_spec(model.gpu).kind == "GPU"
    assert link_spec(model.nic).bandwidth_bytes_per_s > 0
    assert {"gpus", "nics"} <= set(dict(catalog.sourced_values(catalog.tables_of_kind("host")[name])))


def test_known_values() -> None:
    """Datasheet numbers in the program's units."""
    assert device_spec("A100-80GB").peak_flops_per_s["bf16"] == 312 * 10**12
    assert device_spec("H100-SXM").memory_bandwidth_bytes_per_s == 3350 * 10**9
    assert link_spec("NVLink4").bandwidth_bytes_per_s == 450 * 10**9
    assert provenance("PCIe4 x16")["bandwidth"].value == "31 GB/s"


def test_unknown_names_get_a_suggestion() -> None:
    """The nearest name of the catalog."""
    with pytest.raises(NotFoundError, match="did you mean 'A100-80GB'"):
        device_spec("A100-80G")
    with pytest.raises(NotFoundError, match="did you mean 'NVLink3'"):
        link_spec("nvlink3")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"memmory": "1 GB"}, "unknown key 'memmory'; did you mean 'memory'"),
        ({"peak_flops": {"fp33": "1 GFLOP/s"}}, "unknown key 'fp33'; did you mean 'fp32'"),
        ({"peak_flops": "1 GFLOP/s"}, "must be a table such as"),
        ({"peak_flops": {"fp64": "1 GFLOP/s"}}, "must give a rate for 'fp32'"),
        ({"memory": 5}, "memory: 5 is no amount of memory: it has no unit"),
        ({"kind": "TPU"}, "kind = 'TPU' must be 'CPU' or 'GPU'"),
        ({"memory": "0 GB"}, "memory_bytes = 0 must be above 0"),
        ({"sm_count": "108 cores"}, "sm_count: '108 cores' must be a whole number from 1"),
    ],
)
def test_wrong_tables_are_refused(change: dict[str, Any], why: str) -> None:
    """With the place and the reason."""
    with pytest.raises(InvalidArgumentError) as error:
        device_spec_from({**INLINE, **change}, "here")
    assert error.value.message.startswith("here: ")
    assert why in error.value.message


@pytest.mark.parametrize(("kind", "like"), [("CPU", "generic-cpu"), ("GPU", "V100-SXM2")])
def test_what_a_table_leaves_out_is_assumed_of_its_kind(kind: str, like: str) -> None:
    """The default of the kind, as in our own files without measurements; `assumed` of the spec lists it."""
    table = {**INLINE, "kind": kind}
    spec, model = device_spec_from(table, "here"), device_spec(like)
    assert spec.assumed == {key: provenance(like)[key].value for key in spec.assumed}
    assert set(spec.assumed) == {"launch_overhead", "matrix_efficiency", "vector_efficiency", "memory_efficiency"}
    for name in ("launch_overhead_ns", "matrix_efficiency", "vector_efficiency", "memory_efficiency"):
        assert getattr(spec, name) == getattr(model, name)
    given = device_spec_from({**table, "launch_overhead": "0 ns", "matrix_efficiency": "100 %"}, "here")
    assert (given.launch_overhead_ns, given.matrix_efficiency) == (0, 1.0)
    assert set(given.assumed) == {"vector_efficiency", "memory_efficiency"}
    assert model.assumed == {}


def test_missing_keys_are_named() -> None:
    """For devices and links."""
    with pytest.raises(InvalidArgumentError, match="'kind' is missing"):
        device_spec_from({}, "here")
    with pytest.raises(InvalidArgumentError, match="'latency' is missing"):
        link_spec_from({"bandwidth": "1 GB/s"}, "here")


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        *(("A100-80GB", 81920), ("A100-PCIe", 81920), ("A30", 24576), ("B200-SXM", 183359), ("H100-SXM", 81559)),
        *(("H100-PCIe", 81559), ("H200-SXM", 143771), ("K80", 11441), ("L4", 23034), ("L40S", 46068)),
        *(("P100-SXM2", 16384), ("V100-SXM2", 16384), ("GB200", 189471), ("B300-SXM", 275040), ("GB300", 284208)),
    ],
)
def test_memory_of_gpus_is_what_their_driver_reports(name: str, mib: int) -> None:
    """One rule for all: two cards of 80 GB once had 74.5 GiB, and two others 80 GiB."""
    assert device_spec(name).memory_bytes == mib * 2**20


def test_no_memory_is_in_decimal_bytes() -> None:
    """Makers' GB of memory are binary, or nearly."""
    tables = [tomllib.loads((files(catalog.__name__) / name).read_text()) for name in FILES]
    sizes = [table["memory"]["value"] for table in tables if "memory" in table]
    assert len(sizes) >= 22
    assert all(size.endswith(("MiB", "GiB")) for size in sizes), sizes
