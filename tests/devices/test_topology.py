"""Routes: the links of a transfer, and how long it occupies them."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import Cluster, Device
from partita.devices.catalog import device_spec, device_spec_from
from partita.devices.link import LinkSpec, transfer_ns
from partita.devices.topology import LinkRules
from partita.errors import InvalidArgumentError

CPU, A100, H100 = device_spec("generic-cpu"), device_spec("A100-80GB"), device_spec("H100-SXM")
HOSTS = [
    Device(spec, index, job="worker", task=task) for task in (0, 1) for spec, index in ((CPU, 0), (A100, 0), (A100, 1))
]
SHARED = [evolve(device, job="shared", host="machine") for device in HOSTS]
CLUSTER = Cluster([*HOSTS, Device(H100, 2, job="worker", task=1), Device(CPU, 1, job="worker", task=1), *SHARED])


def name(device: str, task: int = 0) -> str:
    """Full name of a device of the test cluster."""
    return f"/job:worker/replica:0/task:{task}/device:{device}"


def models(src: str, dst: str) -> list[str]:
    """Models of the links between two devices."""
    return [link.model for link in CLUSTER.topology.route(src, dst).links]


def test_routes() -> None:
    """Each rule of the table in the module's docstring."""
    assert models(name("GPU:0"), name("GPU:0")) == []
    assert models(name("CPU:0", 1), name("CPU:1", 1)) == []
    assert models(SHARED[0].name, SHARED[3].name) == ["loopback"]
    assert models(name("GPU:0"), name("CPU:0")) == ["PCIe4 x16"]
    assert models(name("CPU:0"), name("GPU:0")) == ["PCIe4 x16"]
    assert models(name("GPU:0"), name("GPU:1")) == ["NVLink3", "NVLink3"]
    assert models(name("GPU:0", 1), name("GPU:2", 1)) == ["PCIe4 x16", "PCIe5 x16"]
    assert models(name("CPU:0"), name("CPU:0", 1)) == ["25 Gb Ethernet"] * 2
    assert models(name("GPU:0"), name("GPU:0", 1)) == ["PCIe4 x16", *["25 Gb Ethernet"] * 2, "PCIe4 x16"]


def test_both_directions_have_links_of_their_own() -> None:
    """Traffic one way does not occupy the other way."""
    there = CLUSTER.topology.route(name("GPU:0"), name("GPU:0", 1)).links
    back = CLUSTER.topology.route(name("GPU:0", 1), name("GPU:0")).links
    assert not set(there) & set(back)
    assert len({link.name for link in there + back}) == 8


def test_host_ends() -> None:
    """A tensor in host memory does not use the GPU's link; a copy between both memories of one GPU does.

    The host memory of a task is that of one process: nothing is copied within it, between two tasks it is.
    """
    gpu, cpu = name("GPU:0"), name("CPU:0")
    route = CLUSTER.topology.route
    assert route(gpu, cpu, src_on_host=True).links == route(cpu, gpu, dst_on_host=True).links == ()
    assert route(gpu, name("GPU:1"), src_on_host=True, dst_on_host=True).links == ()
    there, here = SHARED[3].name, SHARED[1].name
    assert [x.model for x in route(here, there, src_on_host=True).links] == ["loopback"]
    assert [x.model for x in route(gpu, gpu, dst_on_host=True).links] == ["PCIe4 x16"]
    assert route(gpu, gpu, src_on_host=True, dst_on_host=True).links == ()


def test_a_hop_has_one_latency() -> None:
    """Both ends of NVLink or of the network are one hop; PCIe to the host and from it are two."""
    route = CLUSTER.topology.route
    assert route(name("GPU:0"), name("GPU:1")).latency_ns == 2000
    assert route(name("GPU:0"), name("GPU:0", 1)).latency_ns == 2000 + 20_000 + 2000


def test_a_table_may_give_copy_engines() -> None:
    """As a whole number above 0."""
    table = {"kind": "GPU", "memory": "1 GB", "memory_bandwidth": "1 GB/s", "peak_flops": {"fp32": "1 TFLOP/s"}}
    assert device_spec_from({**table, "copy_engines": 3}, "spec").copy_engines == 3
    with pytest.raises(InvalidArgumentError, match="copy_engines: 0 must be a whole number"):
        device_spec_from({**table, "copy_engines": 0}, "spec")


def test_copy_engines_belong_to_the_link_to_the_host() -> None:
    """Two per direction of a GPU unless its spec says otherwise; no other link has any."""
    links = CLUSTER.topology.route(name("GPU:0"), name("GPU:0", 1)).links
    assert [link.copy_engines for link in links] == [2, 0, 0, 2]
    one = Cluster([Device(CPU), Device(evolve(A100, copy_engines=1))])
    assert [link.copy_engines for link in one.topology.route(*one.names).links] == [1]


def test_a_pair_may_have_its_own_link() -> None:
    """In both directions; it replaces every rule."""
    mine = LinkSpec("mine", 10**9, 7)
    cluster = Cluster(CLUSTER.devices, LinkRules(pairs={(name("GPU:0"), name("GPU:1")): mine}))
    for src, dst in ((name("GPU:0"), name("GPU:1")), (name("GPU:1"), name("GPU:0"))):
        assert [link.model for link in cluster.topology.route(src, dst).links] == ["mine"]


def test_strangers_are_refused() -> None:
    """Unknown devices, in routes and in pairs."""
    with pytest.raises(InvalidArgumentError, match="is not a device of this topology"):
        CLUSTER.topology.route(name("GPU:9"), name("GPU:0"))
    with pytest.raises(InvalidArgumentError, match="is not a device of this topology"):
        Cluster(CLUSTER.devices, LinkRules(pairs={("x", "y"): LinkSpec("mine", 1)}))


def test_impossible_links_are_refused() -> None:
    """No bandwidth, or bytes that arrive before they leave."""
    with pytest.raises(InvalidArgumentError, match="bandwidth_bytes_per_s = 0"):
        LinkSpec("none", 0)
    with pytest.raises(InvalidArgumentError, match="latency_ns = -1"):
        LinkSpec("early", 1, -1)


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(0, 10**6), st.integers(1, 1000))
def test_transfers_obey_the_formula(size: int, bandwidth: int, latency: int, factor: int) -> None:
    """latency + bytes / bandwidth rounded up to a ns; more bytes or less bandwidth is never faster."""
    time = transfer_ns(size, bandwidth, latency)
    assert 0 <= (time - latency) * bandwidth - size * 10**9 < bandwidth
    assert transfer_ns(size * factor, bandwidth, latency) >= time
    assert transfer_ns(size, bandwidth * factor, latency) <= time


def test_a_kind_without_links_is_refused() -> None:
    """When the cluster is made; the error names the device and the known kinds."""
    stranger = Device(evolve(CPU, kind="XPU"))
    assert stranger.name == "/job:localhost/replica:0/task:0/device:XPU:0"
    for devices in ([stranger], [Device(CPU), stranger]):
        with pytest.raises(InvalidArgumentError, match=r"device:XPU:0' is of kind 'XPU'.*kinds are CPU and GPU"):
            Cluster(devices)
