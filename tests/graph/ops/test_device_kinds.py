"""Kinds of devices: registration, priorities, host memory, and short device names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from partita.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.ops.device_kinds import (
    CPU,
    GPU,
    DeviceKind,
    device_kind,
    kind_names,
    prioritized_types,
    register_device_kind,
    unregister_device_kind,
)
from partita.graph.ops.memory_types import memory_types
from partita.graph.ops.properties import properties_of

NPU = DeviceKind(
    "NPU",
    priority=300,
    host_types=frozenset({DataType.INT64}),
    host_args={"Neg": frozenset({"x"})},
)


@pytest.fixture(name="npu")
def registered_npu() -> Iterator[DeviceKind]:
    """A kind that is registered during one test."""
    register_device_kind(NPU)
    yield NPU
    unregister_device_kind("NPU")


def test_types_are_ranked() -> None:
    """GPUs come before CPUs, CPUs before unregistered types, and these are sorted by name."""
    assert prioritized_types(["XLA", "CPU", "ACME", "GPU", "CPU"]) == ["GPU", "CPU", "ACME", "XLA"]


def test_a_registered_kind_is_ranked_by_its_priority(npu: DeviceKind) -> None:
    """This one comes before GPUs; unregistered, it would be last."""
    assert prioritized_types(["CPU", "GPU", "NPU"]) == ["NPU", "GPU", "CPU"]
    assert device_kind("NPU") is npu


def test_a_kind_is_registered_once(npu: DeviceKind) -> None:
    """An equal kind may be registered again; another of that name is an error and changes nothing."""
    register_device_kind(replace(npu))
    with pytest.raises(AlreadyExistsError, match="'NPU' is registered with other facts"):
        register_device_kind(replace(npu, priority=1))
    assert device_kind("NPU") == npu


def test_a_kind_can_be_unregistered() -> None:
    """Afterwards the type counts as unregistered, and the other kinds are still there."""
    register_device_kind(NPU)
    unregister_device_kind("NPU")
    assert device_kind("NPU") == device_kind("SOMETHING")
    assert (device_kind("CPU"), device_kind("GPU")) == (CPU, GPU)
    assert "NPU" not in kind_names()
    with pytest.raises(NotFoundError, match="no device kind 'NPU' is registered; there are CPU, GPU"):
        unregister_device_kind("NPU")


@pytest.mark.parametrize("name", ["npu", "", "7U", "N PU"])
def test_a_kind_needs_a_name_in_capitals(name: str) -> None:
    """Only capitals, so that the short name "npu:0" gives the type."""
    with pytest.raises(InvalidArgumentError, match="capitals"):
        DeviceKind(name)


def test_kernels_are_known_of_two_kinds() -> None:
    """`kernels_of` must be CPU or GPU."""
    with pytest.raises(InvalidArgumentError, match="kernels_of = 'TPU'"):
        DeviceKind("NPU", kernels_of="TPU")


def test_a_kind_says_what_lies_in_host_memory(npu: DeviceKind) -> None:
    """`host_args` come first, then the kernels of `kernels_of`; without a kernel, `host_types`."""
    host, device = True, False
    assert memory_types(properties_of("Neg", {"T": DataType.FLOAT}), npu.name) == ((host,), (device,))
    shape = properties_of("Shape", {"T": DataType.FLOAT})
    assert memory_types(shape, npu.name) == memory_types(shape, GPU.name) == ((device,), (host,))
    call = properties_of("PartitionedCall", {"Tin": (DataType.INT32, DataType.INT64), "Tout": (), "f": "F"})
    assert memory_types(call, npu.name) == ((device, host), ())
    assert memory_types(call, GPU.name) == ((host, device), ())


def test_the_builder_takes_the_short_names_of_a_kind() -> None:
    """Only while the kind is registered."""
    for registered, device in ((False, "/device:npu:1"), (True, "/device:NPU:1"), (False, "/device:npu:1")):
        if registered:
            register_device_kind(NPU)
        b = GraphBuilder()
        with b.device("npu:1"):
            b.constant(1, name="c")
        assert b.graph_def().node[0].device == device
        if registered:
            unregister_device_kind("NPU")
