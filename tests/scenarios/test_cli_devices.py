"""`partita devices`: the catalog, its numbers and their sources."""

from __future__ import annotations

import json

from partita.devices.catalog import aliases_of, device_names, device_spec, link_names, link_spec, provenance
from tests.scenarios.command_line import CommandLine, assert_one_clear_line


def test_every_model_is_listed_with_its_sources(partita: CommandLine) -> None:
    """Devices and links, in words and in numbers."""
    text = partita.done("devices")
    for name in (*device_names(), *link_names()):
        assert f"sources of {name}\n" in text
        for sourced in provenance(name).values():
            assert sourced.source in text
    assert "19.5" in text
    assert "2,039" in text
    assert "assumed, not calibrated" in text


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
