"""Tables [[host]] of a cluster file are the devices, ports and switches that they stand for."""

from __future__ import annotations

import pytest

from partita.devices import parse_cluster
from partita.devices.catalog import tables_of_kind
from partita.devices.catalog.hosts import host_model
from partita.errors import InvalidArgumentError


@pytest.mark.parametrize("name", list(tables_of_kind("host")))
def test_two_machines_of_every_model(name: str) -> None:
    """Each has its CPU and GPUs, as many ports as the model, and a route from any GPU to the last of the other."""
    model = host_model(name)
    cluster = parse_cluster(f'[[host]]\nmodel = "{name}"\ntasks = 2\n')
    assert len(cluster.names) == 2 * (1 + model.gpus)
    assert cluster.devices[1].spec.name == model.gpu
    last = cluster.names[-1]
    routes = [cluster.topology.route(gpu, last) for gpu in cluster.names[1 : 1 + model.gpus]]
    assert all(any(link.model == model.nic for link in route.links) for route in routes)
    ports = {link.name for route in routes for link in route.links if link.model == model.nic}
    assert len(ports) == model.nics + 1  # the sending ones, and the one of the receiver


def test_a_switch_is_shared_by_the_gpus_below_it() -> None:
    """Both GPUs of a K80 board have one PCIe link to the host, and reach each other without it."""
    cluster = parse_cluster('[[host]]\nmodel = "p2.8xlarge"')
    cpu, *gpus = cluster.names
    up = [[link.name for link in cluster.topology.route(gpu, cpu).links] for gpu in gpus]
    assert up[0][1:] == up[1][1:] != up[2][1:]
    assert [link.model for link in cluster.topology.route(gpus[0], gpus[1]).links] == ["PCIe3 x16"] * 2


def test_tables_of_the_file_come_first() -> None:
    """The first device is the client's, and machines join it."""
    cluster = parse_cluster('[[host]]\nmodel = "DGX-A100"\njob = "worker"\n[[device]]\nspec = "generic-cpu"\n')
    assert cluster.names[0] == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert len(cluster.names) == 10


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[host]]\nmodel = "DGX-H10"', "did you mean 'DGX-H100'"),
        ('[[host]]\nmodle = "DGX-H100"', "unknown key 'modle'; did you mean 'model'"),
        ("[[host]]\ntasks = 2", "model = None must name a machine"),
        ('[[host]]\nmodel = "DGX-H100"\ntasks = "2"', "must be a whole number"),
        ('[[host]]\nmodel = "DGX-H100"\ntasks = 99999999', "must be a whole number up to 65,536"),
        ('[host]\nmodel = "DGX-H100"', "[[host]] with double brackets"),
    ],
)
def test_wrong_tables_are_refused(text: str, why: str) -> None:
    """With the file, the table and the reason."""
    with pytest.raises(InvalidArgumentError) as error:
        parse_cluster(text, name="my.toml")
    assert error.value.message.startswith("my.toml: ")
    assert why in error.value.message
