"""The devices that a session may use: limits per kind, and filters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices.catalog import device_spec, link_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.devices.topology import LinkRules
from partita.devices.visible import capped, filtered
from partita.errors import InvalidArgumentError, NotFoundError

SPECS = {"CPU": device_spec("generic-cpu"), "GPU": device_spec("A100-80GB")}


def three_tasks() -> Cluster:
    """Two CPUs in tasks 0 and 1 of job a, one in job b, and two GPUs in each."""
    tasks = [("a", 0, 2), ("a", 1, 2), ("b", 0, 1)]
    return Cluster(
        [
            Device(SPECS[kind], index, job=job, task=task)
            for job, task, cpus in tasks
            for kind, count in (("CPU", cpus), ("GPU", 2))
            for index in range(count)
        ]
    )


def short(cluster: Cluster) -> list[str]:
    """Names without the parts that all share: "a0 CPU:1"."""
    return [f"{device.job}{device.task} {device.type}:{device.index}" for device in cluster]


CPUS = ["a0 CPU:0", "a0 CPU:1", "a1 CPU:0", "a1 CPU:1", "b0 CPU:0"]
OWN = CPUS[:2]


@pytest.mark.parametrize(
    ("filters", "others"),
    [
        (["/job:b"], ["b0 CPU:0"]),
        (["/job:a/task:1"], ["a1 CPU:0", "a1 CPU:1"]),
        (["/job:nope"], []),
        (["/job:a/task:1/cpu:0"], ["a1 CPU:0"]),
        (["/cpu:1"], ["a1 CPU:1"]),
        (["/job:a/task:7"], []),
        (["/job:b", "/gpu:0"], ["b0 CPU:0"]),
        (["/job:b/replica:0/task:0/device:CPU:0"], ["b0 CPU:0"]),
        ([""], CPUS[2:]),
    ],
)
def test_filters_are_those_of_a_master(filters: list[str], others: list[str]) -> None:
    """The devices that TensorFlow 2.21 lists for three servers; the client's own task is always among them."""
    cluster = capped(three_tasks(), {"GPU": 0})
    assert short(cluster) == CPUS
    assert short(filtered(cluster, filters)) == OWN + others


def test_without_filters_everything_is_visible() -> None:
    cluster = three_tasks()
    assert filtered(cluster, []) is cluster
    assert capped(cluster, {}) is cluster


@given(st.dictionaries(st.sampled_from(["CPU", "GPU", "gpu", "TPU"]), st.integers(-2, 4)))
def test_a_count_caps_a_kind_in_every_task(counts: dict[str, int]) -> None:
    """The first devices of every task stay, in order; the client's device stays first."""
    cluster = three_tasks()
    if counts.get("CPU", 1) <= 0:
        with pytest.raises(NotFoundError, match="No CPU devices are available in this process"):
            capped(cluster, counts)
        return
    expected = [
        device.name
        for device in cluster
        if counts.get(device.type, -1) < 0 or device.index < counts[device.type]  # indices count from 0 in every task
    ]
    assert capped(cluster, counts).names == expected
    assert capped(cluster, counts).client == cluster.client


@pytest.mark.parametrize("text", ["bad filter", "/foo:bar", "job:a", "/job:"])
def test_a_filter_is_a_device_name(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^Invalid device filter: {text}"):
        filtered(three_tasks(), ["/job:a", text])


def test_links_of_hidden_devices_go_with_them() -> None:
    """Links, rules and incarnations of visible devices stay."""
    link = link_spec("NVLink3")
    names = three_tasks().names
    pairs = {(names[2], names[3]): link, (names[0], names[2]): link}
    cluster = Cluster(three_tasks().devices, LinkRules(network=link, pairs=pairs))
    visible = capped(cluster, {"GPU": 1})
    assert visible.topology.rules.network == link
    assert dict(visible.topology.rules.pairs) == {(names[0], names[2]): link}
    assert set(visible.devices) < set(cluster.devices)
