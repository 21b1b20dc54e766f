"""`partita devices`: the catalog, its numbers and their sources."""

from __future__ import annotations

import json

from partita.devices.catalog import aliases_of, device_names, device_spec, link_names, link_spec, provenance
from tests.scenarios.command_line import CommandLine, assert_one_clear_line


def test_every_model_is_listed_with_its_sources(partita: CommandLine) -> None:
    """Devices and links: in a narrow table, and one by one with every number and source."""
    table = partita.done("devices")
    assert max(map(len, table.splitlines())) <= 100
    assert [word for word in ("19.5", "2,039") if word not in table] == []
    for name in (*device_names(), *link_names()):
        assert f"\n{name} " in f"\n{table}"
        text = partita.done("devices", name)
        assert f"sources of {name}\n" in text
        for sourced in provenance(name).values():
            assert sourced.source in text


def test_only_models_without_fits_are_called_not_calibrated(partita: CommandLine) -> None:
    """Beside the fits of a model no line says that there are none."""
    rows = {line.split()[0]: line.split()[-1] for line in partita.done("devices").splitlines() if line}
    fitted = {name for name in device_names() if "fitted to measurements" in partita.done("devices", name)}
    assert {"H100-SXM", "A100-80GB"} <= fitted < set(device_names())
    for name in device_names():
        assert ("not calibrated" in partita.done("devices", name)) is (name not in fitted)
        assert rows[name] == ("yes" if name in fitted else "-")


def test_the_numbers_are_those_of_the_simulation(partita: CommandLine) -> None:
    """In the units that their keys say."""
    document = json.loads(partita.done("devices", "--json"))
    for record in document["devices"]:
        spec = device_spec(record["name"])
        assert record["peak_flops_per_s"] == spec.peak_flops_per_s
        assert record["memory_bytes"] == spec.memory_bytes
        assert record["memory_bandwidth_bytes_per_s"] == spec.memory_bandwidth_bytes_per_s
        assert record["launch_overhead_ns"] == spec.launch_overhead_ns
        assert (record["sm_count"], record["l2_bytes"]) == (spec.sm_count, spec.l2_bytes)
        assert record["aliases"] == list(aliases_of(spec.name))
        assert record["sources"]["memory"]["source"] == provenance(spec.name)["memory"].source
    for record in document["links"]:
        assert record["bandwidth_bytes_per_s"] == link_spec(record["name"]).bandwidth_bytes_per_s
    assert [record["name"] for record in document["devices"]] == device_names()


def test_one_model(partita: CommandLine) -> None:
    """By its name, or the one that was meant."""
    text = partita.done("devices", "H100-SXM")
    assert "H100-SXM" in text
    assert "A100" not in text
    assert partita.done("devices", "h100_sxm") == text
    assert "NVLink4" in partita.done("devices", "NVLink4")
    assert_one_clear_line(partita("devices", "H100"), 2, "'H100'", "did you mean 'H100-SXM'?")
