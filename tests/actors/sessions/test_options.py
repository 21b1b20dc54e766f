"""Options of steps, their metadata, and the counts of a session, with one worker and over two tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from partita.actors import RunMetadata, RunOptions
from partita.errors import DeadlineExceededError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.hangs import JumpingClock
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases

FULL = RunOptions(trace_level=RunOptions.FULL_TRACE)


def chain() -> GraphDef:
    """n0 = -x on CPU 0, n1 = -n0 on CPU 1, n2 = -n1 on CPU 0; late waits for an empty queue on CPU 1."""
    b = GraphBuilder()
    value = b.placeholder("x", "float32", (), device=cpu(0))
    for k in range(3):
        value = b.op("Neg", value, name=f"n{k}", device=cpu(k % 2))[0]
    queue = b.op("FIFOQueueV2", name="q", component_types=["float32"], shapes=[()], device=cpu(1))
    item = b.op("QueueDequeueV2", queue, name="take", component_types=["float32"], device=cpu(1))[0]
    b.op("AddV2", item, value, name="late", device=cpu(0))
    return b.graph_def()


@on_every_deployment
async def test_partition_graphs_are_returned_when_asked_for(deployment: Deployment) -> None:
    """With the nodes that feed and fetch: `_Arg` and `_Retval`, or `_Recv` and `_Send`."""
    metadata = RunMetadata()
    async with deployment.open(chain(), 2) as session:
        await session.run("n2", {"x": 1.0}, options=RunOptions(output_partition_graphs=True), metadata=metadata)
    names = [{node.name for node in graph.node} for graph in metadata.partition_graphs]
    assert len(names) == 2
    local = {"_arg_x_0_0", "_retval_n2_0_0"}
    ends = local if deployment is Deployment.LOCAL else {"_recv_x_0", "_send_n2_0"}
    assert {*ends, "n0", "n1", "n2"} < names[0] | names[1]
    assert not metadata.step_stats.dev_stats


@on_every_deployment
async def test_a_trace_has_every_node_and_the_same_values(deployment: Deployment) -> None:
    """Transfers within a task have none. A feed has one where a call frame passes it."""
    metadata = RunMetadata()
    async with deployment.open(chain(), 2) as session:
        assert await session.run("n2", {"x": 2.0}, options=FULL, metadata=metadata) == [-2]
    nodes = {
        device.device: [s.node_name for s in device.node_stats if s.node_name not in ("RecvTensor", "_arg_x_0_0")]
        for device in metadata.step_stats.dev_stats
    }
    assert nodes == {deployment.device(0): ["n0", "n2"], deployment.device(1): ["n1"]}
    for device in metadata.step_stats.dev_stats:
        stats = next(s for s in device.node_stats if s.node_name in ("n0", "n1"))
        assert stats.timeline_label.endswith(" = Neg")
        assert 0 <= stats.op_start_rel_micros <= stats.op_end_rel_micros <= stats.all_end_rel_micros


async def test_the_least_trace_is_one_in_a_local_session() -> None:
    """Over several tasks only FULL_TRACE is, as in TensorFlow."""
    metadata = RunMetadata()
    async with Deployment.LOCAL.open(chain(), 2) as session:
        options = RunOptions(trace_level=RunOptions.SOFTWARE_TRACE)
        await session.run("n2", {"x": 2.0}, options=options, metadata=metadata)
    assert sum(len(device.node_stats) for device in metadata.step_stats.dev_stats) == 4


@on_every_deployment
@given(placed_cases())
async def test_a_traced_step_computes_what_a_plain_one_does(
    deployment: Deployment, placed: tuple[GraphCase, dict[str, str]]
) -> None:
    case, placement = placed
    async with deployment.open(case.on(placement), 4, config=HARD_PLACEMENT) as session:
        plain = await session.run(case.fetches, case.feeds, case.targets)
        traced = await session.run(case.fetches, case.feeds, case.targets, FULL, RunMetadata())
    assert_same_values(traced, plain)


@on_every_deployment
async def test_every_traced_step_of_a_request_has_a_trace_of_its_own(deployment: Deployment) -> None:
    """Its plans are compiled once, also if requests with other functions were prepared in between."""
    async with deployment.open(chain(), 2) as session:
        for value in (1.0, 2.0, 3.0):
            metadata = RunMetadata()
            assert await session.run("n2", {"x": value}, options=FULL, metadata=metadata) == [-value]
            names = [stats.node_name for device in metadata.step_stats.dev_stats for stats in device.node_stats]
            assert sorted(name for name in names if name not in ("RecvTensor", "_arg_x_0_0")) == ["n0", "n1", "n2"]
            await session.run("n0", {"x": value})


@on_every_deployment
@pytest.mark.parametrize("by_session", [False, True])
async def test_a_late_step_says_what_it_was_waiting_for(
    deployment: Deployment, by_session: bool, autojump_clock: JumpingClock
) -> None:
    """The session runs the next step; the limit of a step replaces that of its session."""
    config = ConfigProto(operation_timeout_in_ms=20 if by_session else 60_000)
    options = None if by_session else RunOptions(timeout_in_ms=20)
    async with deployment.open(chain(), 2, config=config) as session:
        with pytest.raises(DeadlineExceededError, match=r"timeout_in_ms = 20") as caught:
            await session.run("late", {"x": 1.0}, options=options)
        (note,) = caught.value.__notes__
        sender, receiver = deployment.device(1), deployment.device(0)
        assert note.startswith("still waiting to receive: ")
        assert f"_take from {sender} on {receiver}" in note
        assert await session.run("n2", {"x": 1.0}) == [-1]


@on_every_deployment
async def test_steps_and_requests_are_counted(deployment: Deployment) -> None:
    """Failed steps, partial runs and calls of callables count too."""
    async with deployment.open(chain(), 2) as session:
        await session.run("n2", {"x": 1.0})
        await session.run("n2", {"x": 1.0})
        call = await session.make_callable("x", "n1")
        await call(np.float32(1))
        with pytest.raises(InvalidArgumentError):
            await session.run("nobody")
        handle = await session.partial_run_setup("n0", "x")
        counts = session.statistics()
        assert (counts.steps, counts.steps_running, counts.requests, counts.is_closed) == (4, 1, 3, False)
        await session.partial_run(handle, "n0", {"x": 1.0})
        assert session.statistics().steps_running == 0
    assert session.statistics().is_closed
