"""The cluster on a page: equal machines once, every device counted, the links that a cluster file states."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices import Cluster, local_cluster, parse_cluster
from partita.scenarios.report.page.cluster_record import cluster_record

RACK = '[[host]]\nmodel = "DGX-H100"\ntasks = {tasks}\n'


@given(st.integers(1, 40))
def test_equal_machines_are_one(tasks: int) -> None:
    """However many; the first few have names."""
    record = cluster_record(parse_cluster(RACK.format(tasks=tasks)))
    (machines,) = record["hosts"]
    assert (machines["count"], len(machines["names"]), record["more"]) == (tasks, min(tasks, 4), 0)
    assert [(group["kind"], group["count"]) for group in machines["devices"]] == [("CPU", 1), ("GPU", 8)]
    assert (record["network"] is None) == (tasks == 1)


@pytest.mark.parametrize(
    "cluster",
    [local_cluster("cpu:2,gpu:4"), parse_cluster(RACK.format(tasks=3)), local_cluster("cpu:1")],
    ids=["local", "rack", "one device"],
)
def test_every_device_is_counted_once(cluster: Cluster) -> None:
    """In the machines of a record, times how many there are of them."""
    record = cluster_record(cluster)
    counted = sum(host["count"] * sum(group["count"] for group in host["devices"]) for host in record["hosts"])
    assert counted == len(cluster)


def test_the_links_of_a_machine_are_those_of_its_routes() -> None:
    """Between a CPU and a GPU, and between two GPUs; asking for them leaves no trace in the cluster."""
    cluster = local_cluster("cpu:1,gpu:2")
    (machine,) = cluster_record(cluster)["hosts"]
    assert {(link["between"], link["model"]) for link in machine["links"]} == {
        ("cpu and gpu", "PCIe4 x16"),
        ("gpu and gpu", "NVLink3"),
    }
    assert not cluster.topology.links()


def test_machines_that_differ_are_apart() -> None:
    """In their devices, in a network port of their own, in a link between two of their devices."""
    differing = [
        '[[host]]\nmodel = "DGX-H100"\n[[host]]\nmodel = "DGX-A100"\njob = "old"\n',
        RACK.format(tasks=2) + '[[nic]]\nlink = "400 Gb InfiniBand"\nhosts = ["/job:localhost/replica:0/task:1"]\n',
        RACK.format(tasks=2) + '[[link]]\nbetween = ["task 0 gpu:0", "task 0 gpu:1"]\nlink = "NVLink3"\n',
    ]
    for text in differing:
        record = cluster_record(parse_cluster(text))
        assert [host["count"] for host in record["hosts"]] == [1, 1], text


def test_the_network_has_its_port_and_its_switches() -> None:
    """Leaf switches by name, and the spine."""
    text = RACK.format(tasks=2) + '[[link]]\nbetween = "hosts"\nlink = "400 Gb InfiniBand"\n'
    network = cluster_record(parse_cluster(text))["network"]
    assert (network["model"], network["switches"], network["switch_count"]) == ("400 Gb InfiniBand", [], 0)
    assert network["bandwidth"] == 50 * 10**9
