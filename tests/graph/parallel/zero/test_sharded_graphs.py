"""What sharded graphs look like, what they hold, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import cut, simulate
from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphBuilder, gradients
from partita.graph.builder.handles import Tensor
from partita.graph.parallel.replicate import replicate
from tests.graph.parallel.training_models import TrainingModel
from tests.graph.parallel.zero.one_device import ROWS, assert_close, reads_of, trained


def sharded(m: TrainingModel, replicas: int, **settings: Any) -> Graph:
    """The step on CPUs."""
    return replicate(m.graph(), [f"cpu:{n}" for n in range(replicas)], batch=["x", "y"], loss="loss", **settings)


def ops_of(graph: Graph, prefix: str = "zero/") -> list[str]:
    """The collectives of replica 0, in the order in which they were made."""
    return [n.op for n in graph.op_nodes() if n.op.startswith("Collective") and n.name.startswith(prefix)]


def test_stages_by_their_collectives() -> None:
    """Two layers: gradients are scattered, parameters gathered after the update, or before each use."""
    m = [TrainingModel() for _ in range(3)]
    assert sorted(ops_of(sharded(m[0], 2, zero=1))) == ["CollectiveGather", "CollectiveReduceScatterV2"]
    assert sorted(ops_of(sharded(m[1], 2, zero=2))) == ["CollectiveGather", "CollectiveReduceScatterV2"]
    names = [n.name for n in sharded(m[2], 2, zero=3).op_nodes() if n.op.startswith("Collective")]
    assert sorted(name for name in names if name.startswith("zero/")) == [
        "zero/gradients_0",
        "zero/gradients_1",
        "zero/hidden/forward",
        "zero/out/backward",
        "zero/out/forward",
    ]


def test_groups_reduce_between_them() -> None:
    """Hybrid sharding: shards lie inside groups of two, equal shards of both groups are added up."""
    graph = sharded(TrainingModel(), 4, zero=2, zero_group=2)
    keys = {n.name: n.attr("group_key") for n in graph.op_nodes() if n.op == "CollectiveReduce" and "peers" in n.name}
    assert len(keys) == 4
    assert keys["zero/gradients_0/peers"] == keys["replica_2/zero/gradients_0/peers"]
    assert keys["replica_1/zero/gradients_0/peers"] == keys["replica_3/zero/gradients_0/peers"]
    assert len(set(keys.values())) == 2


def test_gathers_wait_for_units_before() -> None:
    """Without prefetch a unit is gathered when the one before it was computed, else as many units earlier."""

    def waits(prefetch: int) -> list[str]:
        node = sharded(TrainingModel(), 2, zero=3, prefetch=prefetch).find_node("zero/out/forward")
        assert node is not None
        return sorted(edge.src.name for edge in node.in_edges() if edge.is_control and edge.src.is_op)

    assert waits(0) == ["MatMul", "hidden/out"]
    assert waits(1) == []


def test_variables_have_the_shape_of_a_shard() -> None:
    """Eight numbers over three replicas: 3, 3 and 2, and so for the slots."""
    graph = sharded(TrainingModel("cnn", "adam"), 3, zero=3)
    shapes = {n.name: n.attr("shape") for n in graph.op_nodes() if n.op == "VarHandleOp"}
    for name in ("conv/bias", "conv/bias/m", "conv/bias/v"):
        assert [shapes[f"{prefix}{name}"] for prefix in ("", "replica_1/", "replica_2/")] == [(3,), (3,), (2,)]


def test_memory_falls_with_the_stage() -> None:
    """Each stage holds less on every device: state, then gradients, then parameters."""
    peaks = []
    for stage in range(4):
        gpus = [f"gpu:{n}" for n in range(4)]
        graph = replicate(_wide(), gpus, batch=["x"], loss="loss", zero=stage, bucket_bytes=1 << 18)
        parts = cut(graph.to_graph_def(), "gpu:4", feeds=["x"], fetches=["loss"], targets=["train"])
        timeline = simulate(parts, "gpu:4", feeds={"x": (8, 256)})
        devices = [device for device in parts if "GPU" in device]
        peaks.append([timeline.peak_memory_bytes(device) for device in devices])
    for more, less in pairwise(peaks):
        assert all(a > b for a, b in zip(more, less, strict=True))
    parameters = 6 * 256 * 256 * 4
    assert min(peaks[0]) > 3 * parameters
    assert max(peaks[3]) < 2 * parameters


def _square(b: GraphBuilder, name: str) -> Tensor:
    return b.op("VarHandleOp", name=name, dtype="float32", shape=(256, 256), attrs={"shared_name": name})[0]


def _wide() -> Graph:
    """Six square layers with Adam."""
    b, updates = GraphBuilder(), []
    h, handles, reads = b.placeholder("x", "float32", (None, 256)), [], []
    for layer in range(6):
        name = f"layer_{layer}/w"
        handles.append(_square(b, name))
        reads.append(b.op("ReadVariableOp", handles[-1], dtype="float32", name=f"{name}/read")[0])
        h = b.op("Tanh", b.op("MatMul", h, reads[-1]))[0]
    loss = b.op("Mean", b.op("Square", h), [0, 1], name="loss")[0]
    for layer, gradient in enumerate(gradients(b, [loss.name], reads)):
        assert gradient is not None
        slots = [_square(b, f"layer_{layer}/{slot}") for slot in "mv"]
        numbers = [0.9, 0.999, 0.01, 0.9, 0.999, 1e-7]
        updates.append(b.op("ResourceApplyAdam", handles[layer], *slots, *numbers, b.tensor(gradient)))
    b.group(*updates, name="train")
    return b.graph()


async def test_a_fetch_alone_is_whole() -> None:
    """Parameters and slots under their names, one by one, with no other node of the step."""
    m = TrainingModel(optimizer="momentum")
    graph, feeds = m.graph(), [m.feeds(ROWS, 0)]
    one = await trained(graph, "cpu:1", feeds, reads_of(graph))
    many = replicate(graph, ["cpu:0", "cpu:1", "cpu:2"], batch=["x", "y"], loss="loss", zero=3)
    async with open_session(many.to_graph_def(), "cpu:3") as session:
        await session.run([], {}, ["init"])
        await session.run([], feeds[0], ["train"])
        for name, value in one.variables.items():
            assert_close((await session.run([name]))[0], value, 1e-12, name)


async def test_rows_of_an_embedding_stay_whole() -> None:
    """What is updated by rows is replicated, while other variables are sharded."""
    graph, ids = _embedding(), np.random.default_rng(0).integers(0, 10, (6, 3)).astype(np.int32)
    one = await trained(graph, "cpu:1", [{"x": ids}] * 3, ["table/read", "w/read"])
    for stage in (1, 3):
        many = replicate(graph, ["cpu:0", "cpu:1"], batch=["x"], loss="loss", zero=stage)
        found = await trained(many, "cpu:2", [{"x": ids}] * 3, ["table/read", "w/read"])
        for name, value in one.variables.items():
            assert_close(found.variables[name], value, 1e-12, name)


def _embedding(*, trains_more: bool = True) -> Graph:
    b, draw = GraphBuilder(), np.random.default_rng(0)
    x = b.placeholder("x", "int32", (None, 3))
    handles, initial = {}, []
    for name, shape in (("table", (10, 4)), ("w", (4, 4))):
        handles[name] = b.op("VarHandleOp", name=name, dtype="float64", shape=shape, attrs={"shared_name": name})[0]
        initial.append(b.op("AssignVariableOp", handles[name], draw.normal(size=shape)))
    table, w = (b.op("ReadVariableOp", h, dtype="float64", name=f"{n}/read")[0] for n, h in handles.items())
    del table
    rows = b.op("ResourceGather", handles["table"], x, dtype="float64")[0]
    out = b.op("MatMul", b.op("Sum", rows, [1]), w)
    loss = b.op("Mean", b.op("Square", out), [0, 1], name="loss")[0]
    by_row, by_w = (b.tensor(g) for g in gradients(b, [loss.name], [rows, w]) if g is not None)
    flat = b.op("Reshape", by_row, [-1, 4])[0] * b.constant(np.float64(0.1))
    updates = [b.op("ResourceScatterSub", handles["table"], b.op("Reshape", x, [-1]), flat)]
    if trains_more:
        updates.append(b.op("ResourceApplyGradientDescent", handles["w"], np.float64(0.1), by_w))
    b.group(*updates, name="train")
    b.group(*initial, name="init")
    return b.graph()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"zero": 4}, "zero=4: there are stages 1, 2 and 3"),
        ({"zero": 3, "prefetch": -1}, "prefetch=-1 must be at least 0"),
        ({"zero": 2, "units": ["out"]}, "zero=2 gathers no units"),
        ({"zero": 0, "zero_group": 2}, "give zero=1, 2 or 3"),
        ({"zero": 1, "zero_group": 3}, "4 replicas cannot be cut into groups of that size; choose one of 1, 2, 4"),
        ({"zero": 3, "units": ["outer"]}, "scope 'outer' has no parameter that is updated; there are .*'out'"),
        ({"zero": 1, "parameters": "cpu:0"}, "leave out parameters='cpu:0'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    """The error names the argument and what would do."""
    with pytest.raises(InvalidArgumentError, match=message):
        sharded(TrainingModel(), 4, **settings)


def test_devices_in_several_orders_are_refused() -> None:
    """Shards go by the order of devices, which must be one for all devices of a replica."""
    b = GraphBuilder()
    h, handles, reads = b.placeholder("x", "float64", (None, 4)), [], []
    for n in range(2):
        with b.device(f"cpu:{n}"):
            handles.append(b.op("VarHandleOp", name=f"w{n}", dtype="float64", shape=(4, 4))[0])
            reads.append(b.op("ReadVariableOp", handles[-1], dtype="float64")[0])
            h = b.op("MatMul", h, reads[-1])[0]
    loss = b.op("Mean", h, [0, 1], name="loss")[0]
    for n, slope in enumerate(gradients(b, [loss.name], reads)):
        assert slope is not None
        with b.device(f"cpu:{n}"):
            b.op("ResourceApplyGradientDescent", handles[n], np.float64(1), b.tensor(slope))
    with pytest.raises(InvalidArgumentError, match="not in one order, which shards go by"):
        replicate(b, [["cpu:0", "cpu:3"], ["cpu:1", "cpu:2"]], batch="x", loss="loss", zero=1)


def test_nothing_to_shard_is_refused() -> None:
    """The error says why each variable stays whole."""
    graph = _embedding(trains_more=False)
    with pytest.raises(InvalidArgumentError, match=r"zero=2: no variable .*'table': .* updates it by rows.*use zero=0"):
        replicate(graph, ["cpu:0", "cpu:1"], batch=["x"], loss="loss", zero=2)
