"""Settings of sessions over several tasks, compared with what TensorFlow 2.21 does."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from partita.actors import RunMetadata, RunOptions
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.actors.sessions.options.config_fields import CONFIG_FIELDS, RUN_FIELDS, Treatment
from partita.actors.sessions.session import Session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.errors import DeadlineExceededError, InvalidArgumentError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.sessions.test_config import graph_options
from tests.actors.sessions.test_config_fields import with_one_field

TASKS = ("/job:localhost/replica:0/task:0", "/job:localhost/replica:0/task:1")
FEED = {"x": [[1.1, 2.1, 3.1]]}
SQUARES = pytest.approx([1.21, 4.41, 9.61])
FULL = RunOptions(trace_level=RunOptions.FULL_TRACE)


def cluster() -> Cluster:
    """Two tasks of two CPUs."""
    spec = device_spec("generic-cpu")
    return Cluster([Device(spec, index, task=task) for task in (0, 1) for index in (0, 1)])


def graph(task: int = 1, device: int = 0) -> GraphDef:
    """x on the client's device, y = x * x on another one, and an empty queue on the other task."""
    b = GraphBuilder()
    b.op(
        "Square",
        b.placeholder("x", "float32", (None, 3), device=f"{TASKS[0]}/device:CPU:0"),
        name="y",
        device=f"{TASKS[task]}/device:CPU:{device}",
    )
    there = f"{TASKS[1]}/device:CPU:0"
    queue = b.op("FIFOQueueV2", name="q", component_types=["float32"], device=there)
    b.op("QueueDequeueV2", queue, name="take", component_types=["float32"], device=there)
    return b.graph_def()


async def values(session: Session, **more: Any) -> list[float]:
    """y of one step."""
    (y,) = await session.run("y", FEED, **more)
    return [float(value) for value in y[0]]


async def test_every_field_alone_is_honoured_or_ignored_or_refused_by_name() -> None:
    odd = {
        "device_filters": "Invalid device filter",
        "experimental.executor_type": "No executor",
        "graph_options.enable_bfloat16_sendrecv": "",
        "operation_timeout_in_ms": "",
    }
    for path, field in CONFIG_FIELDS.items():
        message = ""
        try:
            async with open_cluster_session(graph(), cluster(), config=with_one_field(ConfigProto, path)) as session:
                if path not in odd:
                    assert await values(session) == SQUARES
        except PartitaError as error:
            message = error.message
        if path in odd:
            assert message.startswith(odd[path])
        elif field.treatment_by(distributed=True)[0] is Treatment.REFUSED and not field.kind:
            assert message.startswith(f"ConfigProto.{path} is refused: ")
        else:
            assert message == "", path


async def test_every_option_of_a_step_alone_leaves_values_as_they_are() -> None:
    async with open_cluster_session(graph(), cluster()) as session:
        for path in RUN_FIELDS:
            if path != "timeout_in_ms":
                assert await values(session, options=with_one_field(RunOptions, path)) == SQUARES


async def test_session_thread_pools_are_refused() -> None:
    config = ConfigProto()
    config.session_inter_op_thread_pool.add()
    with pytest.raises(InvalidArgumentError, match="Distributed session does not support session thread pool options"):
        async with open_cluster_session(graph(), cluster(), config=config):
            pass


async def test_the_devices_are_those_of_the_workers_whatever_a_count_says() -> None:
    async with open_cluster_session(graph(), cluster(), config=ConfigProto(device_count={"CPU": 1})) as session:
        assert len(session.cluster) == 4
        assert await values(session) == SQUARES


async def test_filters_hide_the_devices_of_other_tasks() -> None:
    filters = ["/job:localhost/task:1/cpu:0"]
    async with open_cluster_session(graph(), cluster(), config=ConfigProto(device_filters=filters)) as session:
        assert [name[-12:] for name in session.cluster.names] == ["device:CPU:0", "device:CPU:1", "device:CPU:0"]
        assert await values(session) == SQUARES
    config = ConfigProto(device_filters=["/job:nobody"], allow_soft_placement=False)
    with pytest.raises(InvalidArgumentError, match=r"Cannot assign a device for operation (y|q|take): .*task:1"):
        async with open_cluster_session(graph(), cluster(), config=config):
            pass


async def test_the_whole_graph_is_placed() -> None:
    """place_pruned_graph is ignored."""
    b = GraphBuilder()
    b.op("NoOp", name="fine")
    b.op("NoOp", name="bad", device="/job:zzz")
    config = graph_options(place_pruned_graph=True)
    config.allow_soft_placement = False
    with pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation bad"):
        async with open_cluster_session(b.graph_def(), cluster(), config=config):
            pass


async def test_infer_shapes_writes_shapes_into_the_graph_def() -> None:
    async with open_cluster_session(graph(), cluster(), config=graph_options(infer_shapes=True)) as session:
        (y,) = [node for node in session.graph_def.node if node.name == "y"]
    assert [dim.size for dim in y.attr["_output_shapes"].list.shape[0].dim] == [-1, 3]


@pytest.mark.parametrize(
    ("every", "after", "expected"),
    [
        (1, 0, [1, 1, 1, 1, 1, 1]),
        (2, 0, [0, 1, 0, 1, 0, 1]),
        (2, 1, [1, 0, 1, 0, 1, 0]),
        (3, 2, [0, 1, 0, 0, 1, 0]),
        (1, 2, [1, 1, 1, 1, 1, 1]),
        (0, 0, [0, 0, 0, 0, 0, 0]),
    ],
)
async def test_cost_graphs_come_every_so_many_steps(every: int, after: int, expected: list[int]) -> None:
    """For other steps than in a local session, and without statistics."""
    config = graph_options(build_cost_model=every, build_cost_model_after=after)
    async with open_cluster_session(graph(), cluster(), config=config) as session:
        num_nodes = []
        for _ in expected:
            metadata = RunMetadata()
            assert await values(session, metadata=metadata) == SQUARES
            num_nodes.append(len(metadata.cost_graph.node))
            assert not metadata.step_stats.dev_stats
    assert num_nodes == [11 * flag for flag in expected]  # of each task source and sink, and what it runs


async def test_a_full_trace_has_the_nodes_of_all_tasks_and_a_lesser_one_none() -> None:
    async with open_cluster_session(graph(), cluster()) as session:
        metadata = RunMetadata()
        await values(session, options=FULL, metadata=metadata)
        traced = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
        assert "y" in traced
        assert not metadata.cost_graph.node
        lesser = RunMetadata()
        await values(session, options=RunOptions(trace_level=RunOptions.SOFTWARE_TRACE), metadata=lesser)
        assert not lesser.step_stats.dev_stats


async def test_partition_graphs_come_from_all_workers() -> None:
    metadata = RunMetadata()
    async with open_cluster_session(graph(), cluster()) as session:
        await values(session, options=RunOptions(output_partition_graphs=True), metadata=metadata)
    parts = [{node.name for node in part.node} for part in metadata.partition_graphs]
    assert sorted(map(len, parts)) == [3, 4]
    assert "y" in min(parts, key=len)


async def test_floats_go_from_task_to_task_as_bfloat16_if_asked_for() -> None:
    """Truncated, not rounded; within a task they stay floats."""
    config = graph_options(enable_bfloat16_sendrecv=True)
    async with open_cluster_session(graph(), cluster(), config=config) as session:
        assert await values(session) == [1.1953125, 4.375, 9.5625]
    async with open_cluster_session(graph(0, 1), cluster(), config=config) as session:
        assert await values(session) == SQUARES


@pytest.mark.parametrize(("session_ms", "step_ms"), [(20, 0), (0, 20), (60_000, 20)])
async def test_a_step_has_the_time_that_it_or_else_the_session_is_given(session_ms: int, step_ms: int) -> None:
    """The session runs the next step."""
    config = ConfigProto(operation_timeout_in_ms=session_ms)
    async with open_cluster_session(graph(), cluster(), config=config) as session:
        options = RunOptions(timeout_in_ms=step_ms) if step_ms else None
        with trio.fail_after(60), pytest.raises(DeadlineExceededError, match="timeout_in_ms = 20"):
            await session.run("take", options=options)
        assert await values(session, options=RunOptions(timeout_in_ms=60_000)) == SQUARES
