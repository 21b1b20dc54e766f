"""Ops of one's own: registered once, checked, placed where they have kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from partita.actors import BlockingSession
from partita.devices import cut, deferred_kernel, kernel, local_cluster
from partita.devices.kernels import registry as kernels
from partita.errors import AlreadyExistsError, InvalidArgumentError
from partita.graph import GraphBuilder, OpDef, register_op
from partita.graph.ops import own_kernels, record, registry
from partita.graph.ops.memory_types import memory_types
from partita.graph.ops.properties import properties_of

DOUBLED = """
    DoubledBy
    input x: float
    input factor: float
    output y: float
"""


@pytest.fixture(autouse=True)
def own_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it."""
    kernels.registered_ops()
    for module, name in (
        (registry, "_signatures"),
        (record, "_records"),
        (own_kernels, "_host_args"),
    ):
        table = getattr(module, name)
        monkeypatch.setattr(module, name, type(table)(table))
    yield
    kernels._FACTORIES._entries.pop("DoubledBy", None)


def test_the_same_declaration_may_be_repeated() -> None:
    """In words or as an OpDef; the same facts, too. Another declaration or other facts are refused."""
    first = register_op(DOUBLED, takes_long=True)
    assert register_op(OpDef.FromString(first.message.SerializeToString()), takes_long=True) is first
    with pytest.raises(AlreadyExistsError, match="DoubledBy is registered with another declaration"):
        register_op(DOUBLED)
    with pytest.raises(AlreadyExistsError, match="DoubledBy is registered with another declaration"):
        register_op(DOUBLED + "output z: float", takes_long=True)
    assert registry.find_op("DoubledBy") is first


def test_built_in_ops_are_not_replaced() -> None:
    """Not even by their own declaration."""
    with pytest.raises(AlreadyExistsError, match="Op with name MatMul is built in; choose another name"):
        register_op(registry.lookup_op("MatMul").message)


def test_declarations_are_checked() -> None:
    """By TensorFlow's rules, and nothing is registered."""
    with pytest.raises(InvalidArgumentError, match="Invalid name: doubled"):
        register_op("doubled")
    with pytest.raises(InvalidArgumentError, match="Duplicate name: x"):
        register_op("Twice\ninput x: float\noutput x: float")
    assert registry.find_op("Twice") is None


def test_a_kernel_for_some_kinds_decides_placement() -> None:
    """The op goes where a kernel is, and takes its host arguments from host memory there."""
    register_op(DOUBLED)
    kernel("DoubledBy", kinds=["GPU"], host_args=["factor"])(lambda node: lambda x, factor: np.float32(2 * x * factor))
    b = GraphBuilder()
    y = b.op("DoubledBy", b.placeholder("x", "float32", ()), b.placeholder("f", "float32", ()), name="y")[0]
    parts = cut(b.graph_def(), local_cluster("cpu:1,gpu:1"), feeds=["x", "f"], fetches=["y"])
    assert [name[-5:] for name, part in parts.items() if any(n.name == "y" for n in part.nodes())] == ["GPU:0"]
    properties = properties_of("DoubledBy", {})
    assert memory_types(properties, "GPU") == ((False, True), (False,))
    with BlockingSession(b.graph_def(), "gpu:1") as session:
        assert session.run(y.name, {"x": 3.0, "f": 2.0}) == [12.0]
    with pytest.raises(InvalidArgumentError, match="No OpKernel"), BlockingSession(b.graph_def(), "cpu:1") as session:
        session.run(y.name, {"x": 3.0, "f": 2.0})


def test_kinds_may_have_kernels_of_their_own() -> None:
    """One for CPUs, one for GPUs, of which each computes on its devices."""
    register_op(DOUBLED)
    kernel("DoubledBy", kinds=["CPU"])(lambda node: lambda x, factor: np.float32(1))
    kernel("DoubledBy", kinds=["GPU"])(lambda node: lambda x, factor: np.float32(2))
    b = GraphBuilder()
    for device in ("CPU", "GPU"):
        b.op("DoubledBy", 1.0, 2.0, name=device, device=f"/device:{device}:0")
    with BlockingSession(b.graph_def(), "cpu:1,gpu:1") as session:
        assert session.run(["CPU", "GPU"]) == [1, 2]


def test_wrong_kernels() -> None:
    """Twice for a kind, of TensorFlow's ops with kinds, of unknown ops and arguments, of two sorts."""
    register_op(DOUBLED)
    kernel("DoubledBy", kinds=["CPU"])(lambda node: lambda x, factor: x)
    with pytest.raises(AlreadyExistsError, match="'DoubledBy' has a kernel on devices of kind CPU already"):
        kernel("DoubledBy", kinds=["CPU", "GPU"])(lambda node: lambda x, factor: x)
    with pytest.raises(InvalidArgumentError, match="'DoubledBy' does not wait"):
        deferred_kernel("DoubledBy", kinds=["GPU"])(lambda node: lambda call, x, factor: None)
    with pytest.raises(InvalidArgumentError, match="'CollectivePermute' does not wait"):
        deferred_kernel("CollectivePermute")(lambda node: lambda call, *inputs: None)
    with pytest.raises(InvalidArgumentError, match="'QueueDequeueV2' waits for other nodes"):
        kernel("QueueDequeueV2")(lambda node: lambda queue: queue)
    for register in (kernel, deferred_kernel):
        with pytest.raises(InvalidArgumentError, match="'Nothing' is not registered; call register_op"):
            register("Nothing")(lambda node: lambda x: x)
    with pytest.raises(InvalidArgumentError, match="'MatMul' is built in and placed as its kernels are"):
        kernel("MatMul", kinds=["CPU"])(lambda node: lambda x: x)
    with pytest.raises(InvalidArgumentError, match="'Nothing' is not registered; call register_op"):
        kernel("Nothing", kinds=["CPU"])(lambda node: lambda x: x)
    with pytest.raises(InvalidArgumentError, match="'z' in host_args is no argument of the op; it has factor, x, y"):
        kernel("DoubledBy", host_args=["z"])(lambda node: lambda x: x)
    with pytest.raises(InvalidArgumentError, match="'gpu' is no kind of device"):
        kernel("DoubledBy", kinds=["gpu"])(lambda node: lambda x: x)
