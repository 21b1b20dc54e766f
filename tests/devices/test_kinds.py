"""A kind of device that the package does not have: registered, in clusters, cut for, simulated and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.devices import (
    Cluster,
    DeviceKind,
    KindDefaults,
    add_models,
    cut,
    local_cluster,
    parse_cluster,
    register_device_kind,
    remove_models,
    unregister_device_kind,
)
from partita.devices.catalog import device_names, device_spec
from partita.devices.timing import simulate
from partita.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.scenarios.commands.request import wanted_devices

KIND = DeviceKind("NPU", priority=300)
DEFAULTS = KindDefaults(
    spec="Acme N1",
    host_link="PCIe5 x16",
    assumed={
        "launch_overhead": "8 us",
        "matrix_efficiency": "70 %",
        "vector_efficiency": "40 %",
        "memory_efficiency": "80 %",
    },
)
SOURCED = '{{ value = "{}", source = "a made-up datasheet", date = "2026-11-22" }}'
MODEL = f"""
name = "Acme N1"
kind = "NPU"
memory = {SOURCED.format("16 GB")}
memory_bandwidth = {SOURCED.format("400 GB/s")}

[peak_flops]
fp32 = {SOURCED.format("1 TFLOP/s")}
bf16 = {SOURCED.format("100 TFLOP/s")}
"""
BARE = """
[[device]]
spec = "generic-cpu"
[[device]]
spec = "Acme N1"
count = 2
"""


@pytest.fixture(name="folder")
def model_folder(tmp_path: Path) -> Path:
    """A folder of the catalog's form, with one model of the kind."""
    (tmp_path / "device_acme_n1.toml").write_text(MODEL)
    return tmp_path


@pytest.fixture(name="npu")
def registered_npu(folder: Path) -> Iterator[DeviceKind]:
    """The kind and its model, registered during a test."""
    register_device_kind(KIND, DEFAULTS)
    names = add_models(folder)
    yield KIND
    remove_models(names)
    unregister_device_kind("NPU")


@pytest.fixture(name="linkless")
def registered_without_links(folder: Path) -> Iterator[None]:
    """The same kind without any link."""
    register_device_kind(KIND, KindDefaults(assumed=DEFAULTS.assumed))
    names = add_models(folder)
    yield
    remove_models(names)
    unregister_device_kind("NPU")


def product() -> GraphDef:
    """x on the host, x @ x on the accelerator, the sum of its elements on the host again."""
    b = GraphBuilder()
    with b.device("cpu:0"):
        x = b.placeholder("x", "float32", (4, 4))
    with b.device("npu:0"):
        y = b.op("MatMul", x, x, name="y")
        size = b.op("Size", y, name="size")
    with b.device("cpu:0"):
        b.op("Identity", y, name="out")
        b.op("Identity", size, name="count")
    return b.graph_def()


def test_a_graph_is_cut_simulated_and_run(npu: DeviceKind) -> None:
    """On "cpu:1,npu:1": transfers to and from the accelerator at the rate of its link, and the right values."""
    cluster = local_cluster("cpu:1,npu:1")
    accelerator = cluster.find("npu:0").name
    assert accelerator == "/job:localhost/replica:0/task:0/device:NPU:0"
    parts = cut(product(), cluster, feeds=["x"], fetches=["out", "count"])
    assert sorted(parts) == sorted(cluster.names)
    timeline = simulate(parts, cluster, feeds={"x": (4, 4)})
    copies = {event.stream for event in timeline.events if event.kind == "copy" and event.duration_ns}
    assert any("PCIe5 x16" in stream for stream in copies)
    computed = {event.device for event in timeline.events if event.node == "y"}
    assert computed == {accelerator}
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    with BlockingSession(product(), cluster) as session:
        out, count = session.run(["out", "count"], {"x": x})
    np.testing.assert_array_equal(out, x @ x)
    assert count == 16


def test_host_memory_of_the_kind_is_respected(npu: DeviceKind) -> None:
    """The result of Size is in host memory, so it does not cross the link of the accelerator."""
    cluster = local_cluster("cpu:1,npu:1")
    parts = cut(product(), cluster, feeds=["x"], fetches=["count"])
    timeline = simulate(parts, cluster, feeds={"x": (4, 4)})
    moved = [event for event in timeline.events if event.kind == "copy" and "PCIe5" in event.stream]
    assert [event.bytes for event in moved] == [64]


def test_the_placer_prefers_by_priority(npu: DeviceKind) -> None:
    """A node without a request goes to the kind of the highest priority."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2,))
    b.op("Neg", x, name="y")
    assert {name.split("/")[-1] for name in cut(b.graph_def(), "gpu:1,npu:1", feeds=["x"], targets=["y"])} >= {
        "device:NPU:0"
    }


def test_a_cluster_file_may_name_the_kind(npu: DeviceKind) -> None:
    """As an inline spec with the defaults of the kind, and in rules for links."""
    cluster = parse_cluster(
        """
        [[device]]
        spec = { kind = "NPU", memory = "8 GB", memory_bandwidth = "100 GB/s", peak_flops = { fp32 = "1 TFLOP/s" } }
        count = 2
        [[link]]
        between = "npus"
        bandwidth = "50 GB/s"
        latency = "1 us"
        """
    )
    host, first, second = cluster.names
    assert host.endswith("CPU:0")
    assert cluster.find("npu:0").spec.assumed == dict(DEFAULTS.assumed)
    assert cluster.topology.route(first, second).bandwidth_bytes_per_s == 50 * 10**9
    assert [link.model for link in cluster.topology.route(host, second).links] == ["PCIe5 x16"]


def test_without_links_there_is_no_route(linkless: None) -> None:
    """The error names both devices and the rule to write; with a rule or a pair there is a route."""
    bare = parse_cluster(BARE)
    cpu, first, second = bare.names
    for src, dst in ((cpu, first), (first, cpu), (first, second)):
        with pytest.raises(InvalidArgumentError) as error:
            bare.topology.route(src, dst)
        assert f"there is no route from {src!r} to {dst!r}" in error.value.message
        assert 'between = "host-npu"' in error.value.message
        assert f'between = ["{src}", "{dst}"]' in error.value.message
    link = 'bandwidth = "1 GB/s"\nlatency = "1 us"'
    ruled = parse_cluster(f'{BARE}\n[[link]]\nbetween = "host-npu"\n{link}')
    assert len(ruled.topology.route(first, second).links) == 2
    paired = parse_cluster(f'{BARE}\n[[link]]\nbetween = ["{cpu}", "{first}"]\n{link}')
    assert len(paired.topology.route(cpu, first).links) == 1


def test_without_a_model_a_text_makes_no_device(linkless: None) -> None:
    """The error says how to give a model; a spec for the kind is enough."""
    with pytest.raises(InvalidArgumentError, match="no default model of a NPU: give npu=SPEC"):
        local_cluster("npu:2")
    assert len(local_cluster("npu:2", npu="Acme N1")) == 3
    assert wanted_devices(["/device:NPU:3"]) == "cpu:1"


def test_graphs_that_ask_for_the_kind_get_it(npu: DeviceKind) -> None:
    """The command line makes as many devices as the graph requests."""
    assert wanted_devices(["/device:NPU:1"]) == "cpu:1,npu:2"


def test_a_registration_is_one_value(npu: DeviceKind) -> None:
    """Repeating it is allowed; other defaults are an error."""
    register_device_kind(KIND, DEFAULTS)
    with pytest.raises(AlreadyExistsError, match="'NPU' is registered with other defaults"):
        register_device_kind(KIND, KindDefaults())


def test_models_are_added_once(npu: DeviceKind, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Adding a file twice is allowed, another model of the same name is an error, and a removed one is gone."""
    assert add_models(folder) == ["Acme N1"]
    other = tmp_path_factory.mktemp("other")
    (other / "device_acme_n1.toml").write_text(MODEL.replace("16 GB", "32 GB"))
    with pytest.raises(AlreadyExistsError, match="the catalog has another device 'Acme N1'"):
        add_models(other)
    assert device_spec("Acme N1").memory_bytes == 16 * 10**9
    remove_models(["Acme N1"])
    assert "Acme N1" not in device_names()


def test_nothing_is_left_of_a_kind_that_is_taken_back() -> None:
    """After unregistering, its devices are unknown again."""
    with pytest.raises(InvalidArgumentError, match="'npu:1' is not cpu:N or gpu:N"):
        local_cluster("npu:1")
    with pytest.raises(NotFoundError, match="no device kind 'NPU'"):
        unregister_device_kind("NPU")


def test_specs_are_given_by_kind() -> None:
    """A keyword that is no kind is refused, and a spec of another kind too."""
    assert isinstance(local_cluster("gpu:1", gpu="V100-SXM2"), Cluster)
    with pytest.raises(InvalidArgumentError, match=r"no kind of device is called 'tpu'; .*cpu:N or gpu:N"):
        local_cluster("gpu:1", tpu="V100-SXM2")
    with pytest.raises(InvalidArgumentError, match="'V100-SXM2' is a GPU, not a CPU"):
        local_cluster("cpu:1", cpu="V100-SXM2")
