"""Sessions over worker processes in memory keep what sessions of one process promise."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from partita.graph import CallableOptions
from partita.graph.attrs import encode
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import ConfigProto, GraphDef, RunMetadata, RunOptions
from tests.actors.sessions.deployments import Deployment
from tests.actors.sessions.processes.graphs import doubled, stateful
from tests.actors.sessions.processes.in_memory import memory_workers
from tests.actors.sessions.processes.steps import failing
from tests.hangs import all_waiting
from tests.strategies import cpu

TWO = np.float32(2)
FULL_TRACE = RunOptions(trace_level=RunOptions.FULL_TRACE)


async def test_steps_run_beside_each_other() -> None:
    async with memory_workers(2) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        fetched: dict[int, float] = {}

        async def run(number: int) -> None:
            fetched[number] = float((await session.run("y", {"x": np.float32(number)}))[0])

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(run, number)
        assert fetched == {number: -2.0 * number for number in range(20)}
        await pool.assert_idle()


async def test_tasks_of_a_cluster_are_spread() -> None:
    """Each task has a worker; partition graphs and values are those of one process."""
    deployment = Deployment.TWO_TASKS
    graph, cluster = deployment.moved(doubled(), 2), deployment.cluster(2)
    options, here, there = RunOptions(output_partition_graphs=True), RunMetadata(), RunMetadata()
    async with open_cluster_session(graph, cluster) as session:
        expected = await session.run("y", {"x": TWO}, options=options, metadata=here)
    async with memory_workers(2) as pool, open_cluster_session(graph, cluster, workers=pool) as session:
        assert await session.run("y", {"x": TWO}, options=options, metadata=there) == expected
        assert [len(worker.hosts[0].actors) for worker in pool.live.values()] == [1, 1]
    assert node_names(there) == node_names(here)


async def test_a_task_over_two_workers() -> None:
    """Two tasks over three workers: the devices of one are apart."""
    spec = device_spec("generic-cpu")
    cluster = Cluster([Device(spec, index, task=task) for task in (0, 1) for index in (0, 1)])
    builder = GraphBuilder()
    tensor = builder.placeholder("x", "float32", (), device=cluster.names[0])
    for number, name in enumerate(cluster.names):
        tensor = builder.op("Neg", tensor, name=f"n{number}", device=name)[0]
    async with memory_workers(3) as pool, open_cluster_session(builder, cluster, workers=pool) as session:
        assert await session.run("n3", {"x": TWO}) == [2]
        assert [len(worker.hosts[0].actors) for worker in pool.live.values()] == [1, 1, 2]


def node_names(metadata: RunMetadata) -> list[list[str]]:
    """The names of the nodes of each partition."""
    return [[node.name for node in part.node] for part in metadata.partition_graphs]


async def test_partial_runs() -> None:
    async with memory_workers(2) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        handle = await session.partial_run_setup(["d", "y"], ["x"])
        assert await session.partial_run(handle, "d", {"x": TWO}) == [4]
        assert await session.partial_run(handle, "y") == [-4]
        with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
            await session.partial_run(handle, "y")
        await session.partial_run_setup("y", "x")
        assert session.statistics().steps_running == 1


async def test_callables_with_connections_and_devices() -> None:
    """A feed on a device travels like any other; a dead fetch is an empty array, as in one process."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (), device=cpu(0))
    p = builder.placeholder("p", "bool", (), device=cpu(1))
    switch = builder.op("Switch", x, p, name="switch", device=cpu(1))
    builder.op("Identity", switch[0], name="off", device=cpu(0))
    options = CallableOptions(feed=["x", "p"], fetch=["off"], feed_devices={"x": cpu(1)})
    async with memory_workers(2) as pool, open_session(builder, "cpu:2", workers=pool) as session:
        call = await session.make_callable_from_options(options)
        assert await call(TWO, False) == [2]
        assert (await call(TWO, True))[0].shape == (0,)
        call.release()


async def test_state_restarts_and_extensions() -> None:
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        await session.run([], {"x": TWO}, ["set0", "set1"])
        assert await session.run(["neg0", "neg1"]) == [-2, -2]
        session.restart_device(cpu(1))
        assert await session.run("neg0") == [-2]
        with pytest.raises(FailedPreconditionError):
            await session.run("neg1")
        message = GraphDef()
        node = message.node.add(name="back", op="Neg", input=["neg0"], device=cpu(1))
        node.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
        await session.extend(message)
        assert await session.run("back") == [2]


async def test_a_restart_ends_the_steps_that_use_the_device() -> None:
    """The one that waits at the queue of the device fails; the other goes on."""
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        async with failing(session, "taken", AbortedError, match="different device incarnation"):
            session.restart_device(cpu(1))
        assert await session.run([], {"x": TWO}, ["put"]) == []
        assert await session.run("taken") == [-2]
        await pool.assert_idle()


async def test_a_missing_kernel_is_the_error_of_one_process() -> None:
    """Raised by what prepares the request, and by the step if that was prepared without waiting."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (), device=cpu(0))
    builder.op("AudioSpectrogram", x, window_size=1, stride=1, name="y", device=cpu(1))
    builder.op("TPUReplicatedInput", [x], name="z", device=cpu(1))
    async with open_session(builder, "cpu:2") as session:
        with pytest.raises(UnimplementedError) as here:
            await session.run("z", {"x": TWO})
    async with memory_workers(2) as pool, open_session(builder, "cpu:2", workers=pool) as session:
        with pytest.raises(UnimplementedError) as there:
            await session.make_callable("x", "z")
        assert (there.value.message, there.value.node) == (here.value.message, here.value.node)
        session.prepare("x", "z")
        with pytest.raises(UnimplementedError) as in_step:
            await session.run("z", {"x": TWO})
        assert in_step.value.message == here.value.message


async def test_traces_have_the_nodes_of_all_workers_and_their_transfers() -> None:
    metadata = RunMetadata()
    async with memory_workers(2) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        await session.run("y", {"x": TWO}, options=FULL_TRACE, metadata=metadata)
        await pool.assert_idle()
    nodes = {device.device: [node.node_name for node in device.node_stats] for device in metadata.step_stats.dev_stats}
    assert set(nodes) == {cpu(0), cpu(1)}
    assert "y" in nodes[cpu(0)]
    assert "d" in nodes[cpu(1)]
    assert all("RecvTensor" in names for names in nodes.values())


async def test_cost_models_are_kept_by_the_session() -> None:
    config, metadata = ConfigProto(), RunMetadata()
    config.graph_options.build_cost_model = 1
    async with memory_workers(2) as pool, open_session(doubled(), "cpu:2", config=config, workers=pool) as session:
        for _ in range(2):
            await session.run("y", {"x": TWO}, metadata=metadata)
    assert {node.name for node in metadata.cost_graph.node} >= {"d", "y"}


async def test_a_time_limit_names_the_receives_that_wait(autojump_clock: trio.abc.Clock) -> None:
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        with pytest.raises(DeadlineExceededError) as caught:
            await session.run("taken", options=RunOptions(timeout_in_ms=100))
        (note,) = caught.value.__notes__
        assert "edge_" in note
        assert f"from {cpu(1)} on {cpu(0)}" in note
        await pool.assert_idle()


async def test_an_object_of_a_process_is_refused_by_the_name_of_its_edge() -> None:
    """Before the step runs; on one worker it goes."""
    builder = GraphBuilder()
    start = [builder.op("Const", dtype="int64", value=np.int64(n), device=cpu(0))[0] for n in (0, 4, 1)]
    shapes = {"output_types": ["int64"], "output_shapes": [()]}
    dataset = builder.op("RangeDataset", *start, name="range", device=cpu(0), attrs=shapes)[0]
    builder.op("DatasetCardinality", dataset, name="size", device=cpu(1))
    async with memory_workers(2) as pool:
        async with open_session(builder, "cpu:2", workers=pool) as session:
            with pytest.raises(
                UnimplementedError, match=r"range:0 -> size: a dataset cannot go from .*CPU:0 to .*CPU:1"
            ):
                await session.run("size")
        async with open_session(builder, "cpu:2", workers=pool, spread={cpu(0): 1, "cpu:1": "1"}) as session:
            assert await session.run("size") == [4]


async def test_what_cannot_work_is_refused_when_the_session_opens() -> None:
    async def refused(match: str, **settings: object) -> None:
        with pytest.raises(InvalidArgumentError, match=match):
            async with open_session(doubled(), "cpu:2", **settings):  # type: ignore[arg-type]  # of each test
                pass

    async with memory_workers(2) as pool:
        await refused('clock="virtual" with workers=', workers=pool, clock="virtual")
        await refused("policy= with workers=", workers=pool, policy=lambda *_: None)
        await refused("heartbeat_s=0", workers=pool, heartbeat_s=0)
        await refused("give workers=, too", spread={cpu(0): 0})
        await refused("is no device of this cluster", workers=pool, spread={"gpu:7": 0})
        await refused(
            "no worker has this name or address; known are 0, memory://0, 1, memory://1",
            workers=pool,
            spread={cpu(0): "elsewhere"},
        )
        await refused("there are workers 0 to 1", workers=pool, spread={cpu(0): 2})


async def test_sessions_on_the_same_workers_know_nothing_of_each_other() -> None:
    """Each has its own state; when one is closed, the other goes on, and nothing is left of the first."""
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as first:
        await first.run([], {"x": TWO}, ["set0"])
        async with open_session(stateful(), "cpu:2", workers=pool.again()) as second:
            with pytest.raises(FailedPreconditionError):
                await second.run("neg0")
            await second.run([], {"x": np.float32(5)}, ["set0"])
            assert await second.run("neg0") == [-5]
        await all_waiting()
        assert [len(worker.hosts[-1].actors) for worker in pool.live.values()] == [0, 0]
        assert await first.run("neg0") == [-2]


async def test_a_closed_session_ends_its_steps() -> None:
    async with memory_workers(2) as pool:
        async with open_session(stateful(), "cpu:2", workers=pool) as session:
            async with failing(session, "taken", CancelledError, match="Session has been closed"):
                session.close()
            with pytest.raises(CancelledError):
                await session.run("neg0")
        await pool.assert_idle()


async def test_a_graph_that_cannot_be_read_closes_the_connections() -> None:
    async with memory_workers(2) as pool:
        with pytest.raises(InvalidArgumentError):
            async with open_session(GraphDef(), "cpu:2", workers=pool, passes="nonsense"):
                pass
        await all_waiting()
        assert all(not worker.hosts[0].actors for worker in pool.live.values())
