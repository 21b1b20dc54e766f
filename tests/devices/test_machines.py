"""The catalog's machines by GPU and count."""

from __future__ import annotations

import pytest

from partita.devices import device_spec, machines_of
from partita.devices.catalog import aliases_of, tables_of_kind
from partita.devices.catalog.hosts import host_model
from partita.errors import InvalidArgumentError, NotFoundError

HOSTS = sorted(tables_of_kind("host"))


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("hosts", [1, 3])
def test_a_machine_by_name_is_that_often_there_with_all_its_gpus(name: str, hosts: int) -> None:
    model = host_model(name)
    devices = machines_of(f"{name}:{hosts * model.gpus}").ranked
    assert {device.spec.name for device in devices} == {model.gpu}
    assert len(devices) == hosts * model.gpus
    assert len({device.host for device in devices}) == hosts


@pytest.mark.parametrize("name", HOSTS)
def test_any_part_of_a_machine_has_ways_between_its_gpus(name: str) -> None:
    for count in range(1, host_model(name).gpus):
        cluster = machines_of(f"{name}:{count}")
        first, last = cluster.ranked[0], cluster.ranked[-1]
        assert len(cluster.ranked) == count
        assert count == 1 or cluster.topology.route(first.name, last.name).links


def test_machines_of_one_gpu_are_joined_by_their_network_ports() -> None:
    cluster = machines_of("H100-SXM:64")
    first, last = cluster.ranked[0], cluster.ranked[-1]
    models = [link.model for link in cluster.topology.route(first.name, last.name).links]
    assert len({device.host for device in cluster.ranked}) == 8
    assert host_model("DGX-H100").nic in models


@pytest.mark.parametrize("alias", aliases_of("H100-SXM"))
def test_a_gpu_goes_by_each_of_its_names(alias: str) -> None:
    assert machines_of(f"{alias}:16").ranked[0].spec == device_spec("H100-SXM")


def test_without_a_count_it_is_one_machine() -> None:
    assert len(machines_of("DGX-A100").ranked) == host_model("DGX-A100").gpus


@pytest.mark.parametrize(("text", "hosts"), [("GB200:144", 2), ("GB200:64", 1), ("GB200:100", 25)])
def test_of_two_machines_the_largest_that_the_count_fills_is_taken(text: str, hosts: int) -> None:
    assert len({device.host for device in machines_of(text).ranked}) == hosts


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("H100-SXM:12", InvalidArgumentError, "give H100-SXM:8 or H100-SXM:16"),
        ("GB200:74", InvalidArgumentError, "give GB200:72 or GB200:76"),
        ("A100-PCIe:8", InvalidArgumentError, "no machine with A100-PCIe; there is one with A100-80GB"),
        ("H100:8", NotFoundError, "did you mean 'H100-SXM'"),
        ("H100-SXM:0", InvalidArgumentError, "'0' is no number of GPUs"),
        ("H100-SXM:many", InvalidArgumentError, "'many' is no number of GPUs"),
        ("H100-SXM:800000", InvalidArgumentError, "at most 65,536"),
    ],
)
def test_what_no_machines_have_is_refused_with_what_they_have(text: str, error: type[Exception], hint: str) -> None:
    with pytest.raises(error, match=hint):
        machines_of(text)
