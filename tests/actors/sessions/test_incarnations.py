"""A device that restarts by itself: a receive from another task that names its old incarnation fails the step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given, strategies as st

from partita.actors import Session, open_session
from partita.errors import AbortedError, DataLossError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef, RunMetadata, RunOptions
from partita.rendezvous import Policy, refuse_stale
from tests.actors.sessions.deployments import Deployment
from tests.strategies import cpu

TWO = Deployment.TWO_TASKS
CLIENT, OTHER = TWO.device(0), TWO.device(1)


def graph() -> GraphDef:
    """there = -x on the other task, back = -there and here = -x on the client's task."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    b.op("Neg", b.op("Neg", x, name="there", device=cpu(1)), name="back", device=cpu(0))
    b.op("Neg", x, name="here", device=cpu(0))
    return b.graph_def()


def restart(session: Session, name: str) -> None:
    """Restarts a device at its worker, so the session does not know of it."""
    session.workers[name.rpartition("/device:")[0]].restart_device(name)


@pytest.mark.parametrize("restarted", [CLIENT, OTHER])
async def test_a_receive_from_an_old_incarnation_aborts_the_step_which_can_be_run_again(restarted: str) -> None:
    async with TWO.open(graph(), 2) as session:
        assert await session.run("back", {"x": 3.0}) == [3]
        restart(session, restarted)
        message = r"^RecvTensor expects a different device incarnation: 1 vs\. 2\. Your worker job was probably restart"
        with pytest.raises(AbortedError, match=message):
            await session.run("back", {"x": 3.0})
        assert await session.run("back", {"x": 3.0}) == [3]
        assert session.cluster.incarnation(restarted) == 2
        assert session.statistics().steps_running == 0


async def test_a_step_within_one_task_goes_on() -> None:
    async with TWO.open(graph(), 2) as session:
        assert await session.run("here", {"x": 3.0}) == [-3]
        restart(session, OTHER)
        restart(session, CLIENT)
        assert await session.run("here", {"x": 3.0}) == [-3]


async def test_partial_runs_and_callables_are_aborted_too() -> None:
    async with TWO.open(graph(), 2) as session:
        call = await session.make_callable("x", "back")
        assert await call(3.0) == [3]
        restart(session, OTHER)
        with pytest.raises(AbortedError, match="a different device incarnation"):
            await call(3.0)
        assert await call(3.0) == [3]
        restart(session, OTHER)
        handle = await session.partial_run_setup("back", "x")
        with pytest.raises(AbortedError, match="a different device incarnation"):
            await session.partial_run(handle, "back", {"x": 3.0})
        handle = await session.partial_run_setup("back", "x")
        assert await session.partial_run(handle, "back", {"x": 3.0}) == [3]


@dataclass
class Tolerant:
    """A policy that accepts every incarnation and records its calls."""

    calls: list[tuple[str, int, int]] = field(default_factory=list)

    def __call__(self, device: str, expected: int, actual: int) -> PartitaError | None:
        self.calls.append((device, expected, actual))
        return None


async def test_a_session_over_several_tasks_asks_its_policy_about_every_receive_from_another_task() -> None:
    """A step goes on if the policy has no error."""
    policy = Tolerant()
    async with TWO.open(graph(), 2, policy=policy) as session:
        restart(session, OTHER)
        assert await session.run("back", {"x": 3.0}) == [3]
        assert set(policy.calls) == {(CLIENT, 1, 1), (OTHER, 1, 2)}


async def test_a_step_ends_with_the_error_of_the_policy() -> None:
    """Whatever it is, and the session goes on."""

    def refuse(device: str, expected: int, actual: int) -> PartitaError | None:
        return DataLossError(f"{device} is not what it was") if expected != actual else None

    async with TWO.open(graph(), 2, policy=refuse) as session:
        assert await session.run("back", {"x": 3.0}) == [3]
        restart(session, OTHER)
        with pytest.raises(DataLossError, match="task:1/device:CPU:0 is not what it was"):
            await session.run("back", {"x": 3.0})
        assert await session.run("here", {"x": 3.0}) == [-3]


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize("policy", [refuse_stale, Tolerant()])
async def test_a_local_session_asks_no_policy(policy: Policy, clock: Literal["real", "virtual"]) -> None:
    """Its devices are one task: its steps after a restart go on under each."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device="/cpu:0")
    b.op("Neg", b.op("Neg", x, name="there", device="/cpu:1"), name="back", device="/cpu:0")
    async with open_session(b, "cpu:2", policy=policy, clock=clock) as session:
        assert await session.run("back", {"x": 3.0}) == [3]
        restart(session, session.cluster.names[1])
        assert await session.run("back", {"x": 3.0}) == [3]
    assert not (isinstance(policy, Tolerant) and policy.calls)


@given(st.lists(st.sampled_from([CLIENT, OTHER]), max_size=4))
async def test_however_often_devices_restart_one_step_is_aborted_at_most(restarts: list[str]) -> None:
    async with TWO.open(graph(), 2) as session:
        await session.run("back", {"x": 1.0})
        for name in restarts:
            restart(session, name)
        failures = 0
        for _ in range(2):
            try:
                assert await session.run("back", {"x": 2.0}) == [2]
            except AbortedError:
                failures += 1
        assert failures == bool(restarts)


async def test_a_traced_step_records_transfers_from_another_task() -> None:
    """As nodes "RecvTensor", like TensorFlow; a local session has one task and so none."""
    for deployment in Deployment:
        call = RunOptions(trace_level=RunOptions.FULL_TRACE)
        async with deployment.open(graph(), 2) as session:
            metadata = RunMetadata()
            assert await session.run("back", {"x": 3.0}, options=call, metadata=metadata) == [3]
        received = {
            (device.device, stats.timeline_label.partition(" from ")[2])
            for device in metadata.step_stats.dev_stats
            for stats in device.node_stats
            if stats.node_name == "RecvTensor"
        }
        both = {(OTHER, f"{CLIENT} to {OTHER}"), (CLIENT, f"{OTHER} to {CLIENT}")}
        assert received == (both if deployment is TWO else set())
