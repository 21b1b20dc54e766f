"""Replicas of a training step: the graph they become, what they share, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from partita.graph import Graph, GraphBuilder, gradients, replicate
from partita.graph.builder.extension import Extension
from partita.graph.builder.handles import Tensor
from tests.goldens import assert_file
from tests.graph.parallel.running import STEPS, assert_alike, devices, trained
from tests.graph.parallel.training_models import TrainingModel

DATA = Path(__file__).parent / "data"
TWO = ["cpu:0", "cpu:1"]


def linear(b: GraphBuilder, rows: int | None = None) -> Tensor:
    """The mean of x * w as "loss", and its gradient; w is a variable of 2 numbers."""
    x = b.placeholder("x", "float32", (rows, 2))
    w = b.op("VarHandleOp", name="w", dtype="float32", shape=(2, 1), attrs={"shared_name": "w"})[0]
    y = b.op("MatMul", x, b.op("ReadVariableOp", w, name="read", dtype="float32"), name="y")
    b.op("Mean", y, [0, 1], name="loss")
    b.op("AssignVariableOp", w, [[1.0], [2.0]], name="init")
    (slope,) = gradients(b, ["loss"], ["read"])
    assert slope is not None
    return b.tensor(slope)


def linear_step(rows: int | None = None) -> GraphBuilder:
    """One step of gradient descent, "train"."""
    b = GraphBuilder()
    slope = linear(b, rows)
    b.op("ResourceApplyGradientDescent", "w", 0.5, slope, name="step")
    b.group("step", name="train")
    return b


def short(graph: Graph) -> str:
    """The lines of a graph without its gradients."""
    lines = str(graph).splitlines()[1:]
    return "\n".join(
        line
        for line in lines
        if not line.split(":")[0].split(" ")[0].startswith(("gradients/", "replica_1/gradients/"))
    )


def test_what_two_replicas_become() -> None:
    """Everything is there twice but the batch, the loss and what starts a step."""
    assert_file(short(replicate(linear_step(), TWO, batch="x", loss="loss")), DATA / "two_replicas.txt")


def test_what_a_device_with_the_parameters_becomes() -> None:
    """The variable and its update are there once; gradients are sent, added and divided there."""
    graph = replicate(linear_step(), TWO, batch="x", loss="loss", parameters="cpu:2")
    assert_file(short(graph), DATA / "parameter_server.txt")


def test_buckets_are_filled_in_the_order_of_the_backward_pass() -> None:
    """A bucket that would hold more than it may is reduced; what follows begins another."""
    m = TrainingModel("perceptron")
    graph = replicate(m.graph(), TWO, batch=["x", "y"], loss="loss", bucket_bytes=250)
    collectives = [node for node in graph.op_nodes() if node.op == "CollectiveReduce" and "replica" not in node.name]
    assert [node.attr("instance_key") for node in collectives] == [1, 2, 3]
    parts = {source.src.name for edge in collectives[0].in_edges() for source in edge.src.in_edges()}
    first = {edge.src.name for part in parts for edge in graph.find_node(part).in_edges()}  # type: ignore[union-attr]  # there
    assert "gradients/out/out_grad/BiasAddGrad" in first
    assert not any("hidden/out_grad" in name for name in first)


async def test_outputs_over_all_replicas() -> None:
    """The loss and `mean` are means, `concat` has all rows; the rest is that of replica 0."""
    b = linear_step()
    b.op("Mean", b.op("Square", "y"), [0, 1], name="square")
    graph = replicate(b, TWO, batch="x", loss="loss", mean="square", concat="y")
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    async with open_session(graph, "cpu:2") as session:
        await session.run([], targets="init")
        loss, square, y = await session.run(["loss", "square", "y"], {"x": x})
    expected = x @ np.float32([[1], [2]])
    np.testing.assert_allclose(y, expected)
    np.testing.assert_allclose([loss, square], [expected.mean(), (expected**2).mean()], rtol=1e-6)


async def test_random_initial_values_are_equal() -> None:
    """The values that replica 0 draws are sent to the others; so are those that are assigned later."""
    b = GraphBuilder()
    slope = linear(b)
    b.op("ResourceApplyGradientDescent", "w", 0.0, slope, name="train")
    b.op("AssignVariableOp", "w", b.op("RandomUniform", [2, 1], dtype="float32"), name="draw")
    b.op("AssignVariableOp", "w", b.placeholder("given", "float32", (2, 1)), name="give")
    graph = replicate(b, TWO, batch="x", loss="loss")
    more = Extension(graph)
    more.op("ReadVariableOp", "replica_1/w", name="other", dtype="float32")
    more.flush()
    async with open_session(graph, "cpu:2") as session:
        await session.run([], targets="draw")
        one, other = await session.run(["read", "other"])
        np.testing.assert_array_equal(one, other)
        await session.run([], {"given": np.float32([[3], [4]])}, targets="give")
        np.testing.assert_array_equal((await session.run("other"))[0], [[3], [4]])


async def test_replicas_draw_different_numbers() -> None:
    """By the attr `seed2`, and by seeds that are inputs; replica 0 draws what one device does."""
    b = GraphBuilder()
    slope = linear(b)
    noise = b.op("RandomUniform", [3], dtype="float32", seed=5, seed2=7, name="noise")
    other = b.op("StatelessRandomUniform", [3], [1, 2], dtype="float32", name="other")
    total = b.op("Sum", noise[0] + other[0], [0])[0] * 0.0
    b.op("ResourceApplyGradientDescent", "w", 0.5, slope + total, name="train")
    b.op("AddV2", "loss", total, name="noisy")
    graph = replicate(b, TWO, batch="x", loss="noisy")
    x = np.ones((4, 2), np.float32)
    async with open_session(b, "cpu:1") as session:
        one = await session.run(["noise", "other"])
    async with open_session(graph, "cpu:2") as session:
        await session.run([], targets="init")
        names = ["noise", "other", "replica_1/noise", "replica_1/other"]
        values = await session.run(names, {"x": x}, targets="train")
    np.testing.assert_array_equal(values[:2], one)
    assert not np.array_equal(values[0], values[2])
    assert not np.array_equal(values[1], values[3])


async def test_a_replica_of_several_devices() -> None:
    """Each device of the graph is replaced; a gradient is reduced where it is."""
    m = TrainingModel("perceptron", "adam", device="cpu:0")
    graph = m.graph()
    for node in graph.op_nodes():
        if node.name.startswith(("out/", "gradients/out/")) and node.op != "NoOp":
            node.requested_device = "/device:CPU:1"
    one = await trained(graph, m, "cpu:2")
    several = replicate(graph, [["cpu:0", "cpu:2"], ["cpu:1", "cpu:3"]], batch=["x", "y"], loss="loss")
    assert_alike(one, await trained(several, m, "cpu:4"), "float64")
    devices_of = {node.requested_device for node in several.op_nodes() if node.op == "CollectiveReduce"}
    assert devices_of == {f"/device:CPU:{k}" for k in range(4)}


async def test_a_graph_for_one_size_of_the_batch_runs_with_parts_of_it() -> None:
    """Shapes, zeros and divisors that the graph has for 8 rows are those for 2 in each of four replicas."""
    b = GraphBuilder()
    x, y = b.placeholder("x", "float32", (8, 2, 3)), b.placeholder("y", "float32", (8, 4))
    w = b.op("VarHandleOp", name="w", dtype="float32", shape=(6, 4), attrs={"shared_name": "w"})[0]
    b.op("AssignVariableOp", w, np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4), name="init")
    read = b.op("ReadVariableOp", w, name="w/read", dtype="float32")
    product = b.op("MatMul", b.op("Reshape", x, [8, 6]), read)[0] + np.zeros((8, 4), np.float32)
    losses = b.op("Square", product - y)
    b.op("RealDiv", b.op("Sum", losses, [0, 1]), 32.0, name="loss")
    (slope,) = gradients(b, ["loss"], ["w/read"])
    b.op("ResourceApplyGradientDescent", w, 0.5, slope, name="train")
    draw = np.random.default_rng(3)
    feeds = {"x": draw.normal(size=(8, 2, 3)).astype("f4"), "y": draw.normal(size=(8, 4)).astype("f4")}
    results = []
    for graph, cluster in ((b, "cpu:1"), (replicate(b, devices(4), batch=["x", "y"], loss="loss"), "cpu:4")):
        async with open_session(graph, cluster) as session:
            await session.run([], targets="init")
            losses_seen = [(await session.run("loss", feeds, targets="train"))[0] for _ in range(STEPS)]
            results.append([*losses_seen, *(await session.run("w/read"))[0].ravel()])
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def refused(kind: type[Exception], match: str, graph: Any, on: Any = TWO, **settings: Any) -> None:
    """Checks that replicas of a graph are refused."""
    with pytest.raises(kind, match=match):
        replicate(graph, on, **{"batch": "x", "loss": "loss", **settings})


def test_batches_that_do_not_divide_are_refused() -> None:
    """With the nearest that does."""
    refused(InvalidArgumentError, "'x' has 9 rows, which do not divide by 2 replicas; feed 10", linear_step(9))
    refused(
        InvalidArgumentError, "'x' has 9 rows, which do not divide by 4 replicas; feed 8", linear_step(9), devices(4)
    )
    b = GraphBuilder()
    slope = linear(b, 4)
    rows = b.constant(np.arange(8, dtype=np.float32).reshape(4, 2), name="rows")
    b.op("ResourceApplyGradientDescent", "w", 0.5, slope + b.op("Mean", rows * b.tensor("x"), [0, 1])[0], name="step")
    refused(InvalidArgumentError, "'rows' has 4 rows, one for each of the batch, which differ", b)


def test_devices_that_do_not_fit_are_refused() -> None:
    """None, one given twice, and another number than the graph has."""
    refused(InvalidArgumentError, "give a list with one entry a replica", linear_step(), "cpu:0")
    refused(InvalidArgumentError, "'/device:CPU:0' is given to two replicas", linear_step(), ["cpu:0", "CPU:0"])
    refused(InvalidArgumentError, "is on 0 devices .*, replica 0 has 2", linear_step(), [TWO, ["cpu:2", "cpu:3"]])
    refused(InvalidArgumentError, "'most' is none of 'mean', 'sum'", linear_step(), reduction="most")
    refused(NotFoundError, "no tensor 'z'", linear_step(), mean="z")


def test_statistics_of_the_batch_are_refused() -> None:
    """A normalisation, and a moving average; each replica may have its own instead."""
    b = GraphBuilder()
    slope = linear(b)
    b.op("VarHandleOp", name="seen", dtype="float32", shape=(1,), attrs={"shared_name": "seen"})
    b.op("AssignVariableOp", "seen", b.op("Mean", "y", [0]), name="watch")
    b.op("ResourceApplyGradientDescent", "w", 0.5, slope, name="step", control=["watch"])
    refused(UnimplementedError, "'watch' needs statistics of the whole batch", b)
    refused(InvalidArgumentError, "'refuse' or 'local', not 'some'", b, batch_statistics="some")
    assert replicate(b, TWO, batch="x", loss="loss", batch_statistics="local").find_node("replica_1/watch")


@pytest.mark.parametrize("mixed", ["centred", "pairs", "largest", "root", "weighted"])
def test_losses_that_replicas_cannot_add_up_are_refused(mixed: str) -> None:
    """What a row is combined with depends on all rows, or the loss is no mean over them."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 2))
    w = b.op("VarHandleOp", name="w", dtype="float32", shape=(2, 1), attrs={"shared_name": "w"})[0]
    y = b.op("MatMul", x, b.op("ReadVariableOp", w, name="read", dtype="float32"), name="y")[0]
    match mixed:
        case "centred":
            y = b.op("Sub", y, b.op("Mean", y, [0]), name="here")[0]
        case "pairs":
            y = b.op("MatMul", y, y, transpose_b=True, name="here")[0]
        case "largest":
            y = b.op("Max", y, [0], name="here")[0]
        case "root":
            y = b.op("Sqrt", b.op("Mean", y, [0, 1]), name="here")[0]
        case "weighted":
            y = b.op("RealDiv", b.op("Sum", y, [0, 1]), b.op("Sum", x, [0, 1]), name="here")[0]
    axes = [] if mixed in ("root", "weighted") else [0]
    b.op("Mean", y, np.int32(axes), name="loss")
    (slope,) = gradients(b, ["loss"], ["read"])
    b.op("ResourceApplyGradientDescent", w, 0.5, slope, name="step")
    refused(UnimplementedError, "'here' needs statistics of the whole batch", b)
    assert replicate(b, TWO, batch="x", loss="loss", batch_statistics="local").find_node("replica_1/here")


def test_batches_out_of_a_queue_are_refused() -> None:
    """As the batch itself, and beside it."""
    b = GraphBuilder()
    slope = linear(b)
    queue = b.op("FIFOQueueV2", component_types=["float32"], shapes=[()], name="queue")
    (rate,) = b.op("QueueDequeueV2", queue, component_types=["float32"], name="taken")
    b.op("ResourceApplyGradientDescent", "w", rate, slope, name="step")
    refused(UnimplementedError, "'taken' takes the batch from a queue", b, batch="taken")
    refused(UnimplementedError, "the step reads a queue by '(taken|queue)'", b)


def test_gradients_without_a_mean_are_refused() -> None:
    """A count that variables are updated by has a sum over replicas, but no mean."""
    b = GraphBuilder()
    slope = linear(b)
    count = b.op("Sum", b.op("Cast", b.op("Greater", "y", 0.0), DstT="int32"), [0, 1], name="count")
    scale = b.op("Cast", b.op("Sum", count, np.int32([]), name="whole"), DstT="float32")
    b.op("ResourceApplyGradientDescent", "w", 0.5, slope * scale, name="step")
    refused(UnimplementedError, "'count' is int32 .* only floats can be averaged", b)
