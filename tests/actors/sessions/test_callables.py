"""Callables return what runs return, for values by position; a released one is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given

from partita.actors import BlockingSession, RunMetadata, RunOptions, Session, open_session
from partita.errors import CancelledError, InvalidArgumentError, NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases

DEVICES = 3


def difference() -> GraphDef:
    """d = a - b over two devices."""
    b = GraphBuilder()
    x, y = (b.placeholder(name, "float32", device=cpu(0)) for name in "ab")
    b.op("Sub", x, y, name="d", device=cpu(1))
    b.op("NoOp", name="nothing", control=[x], device=cpu(1))
    return b.graph_def()


@on_every_deployment
@given(placed_cases())
async def test_a_call_equals_a_run(deployment: Deployment, placed: tuple[GraphCase, dict[str, str]]) -> None:
    """Several calls, alone and concurrently."""
    case, placement = placed
    results: list[Any] = []
    async with deployment.open(case.on(placement), 4, config=HARD_PLACEMENT) as session:
        results.append(await session.run(case.fetches, case.feeds, case.targets))
        call = await session.make_callable(list(case.feeds), case.fetches, case.targets)
        results.append(await call(*case.feeds.values()))

        async def again() -> None:
            results.append(await call(*case.feeds.values()))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(again)
            nursery.start_soon(again)
    whole, *calls = results
    assert len(calls) == DEVICES
    for values in calls:
        assert_same_values(values, whole)


@on_every_deployment
async def test_wrong_names_and_options_are_refused_when_a_callable_is_made(deployment: Deployment) -> None:
    async with deployment.open(difference(), 2) as session:
        make = session.make_callable
        with pytest.raises(InvalidArgumentError, match=r"^Must specify at least one target to fetch or execute\."):
            await make(["a", "b"], ())
        with pytest.raises(NotFoundError, match=r"^PruneForTargets: Some target nodes not found: nobody "):
            await make("a", (), "nobody")
        if deployment is Deployment.LOCAL:  # over several tasks the option is ignored
            with pytest.raises(InvalidArgumentError, match=r"^Invalid inter_op_thread_pool: 5"):
                await make("a", (), "nothing", RunOptions(inter_op_thread_pool=5))


@on_every_deployment
async def test_values_are_counted_and_a_released_callable_is_refused(deployment: Deployment) -> None:
    async with deployment.open(difference(), 2) as session:
        call = await session.make_callable(["b:0", "a"], ["d", "d:0"])
        assert [array.tolist() for array in await call([1.0], [3.0])] == [[2.0], [2.0]]
        with pytest.raises(InvalidArgumentError, match=r"^Expected 2 feed tensors, but got 1"):
            await call([1.0])
        with pytest.raises(InvalidArgumentError, match=r"^Expects arg\[1\] to be float but int32 is provided"):
            await call([1.0], np.zeros(1, np.int32))
        second = await session.make_callable(["a"], (), "nothing")
        assert second.handle == call.handle + 1
        assert await second([1.0]) == []
        call.release()
        call.release()
        with pytest.raises(InvalidArgumentError, match=r"^Attempted to run callable after handle was released: 0"):
            await call([1.0], [3.0])
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        await second([1.0])


async def runs_in(session: Session, pool: int) -> None:
    """Runs a step with a thread pool."""
    await session.run("d", {"a": [1.0], "b": [1.0]}, options=RunOptions(inter_op_thread_pool=pool))


@pytest.mark.parametrize("pools", [0, 1, 2])
async def test_only_thread_pools_of_the_session_are_accepted(pools: int) -> None:
    """Without pools of its own the session has pool 0; -1 asks for none."""
    config = ConfigProto()
    for _ in range(pools):
        config.session_inter_op_thread_pool.add()
    async with open_session(difference(), "cpu:2", config=config) as session:
        for pool in range(-1, max(pools, 1)):
            await runs_in(session, pool)
        for pool in (-2, max(pools, 1)):
            with pytest.raises(InvalidArgumentError, match=rf"^Invalid inter_op_thread_pool: {pool}$"):
                await runs_in(session, pool)


async def test_a_named_pool_has_one_count_of_threads_in_all_sessions() -> None:
    """TensorFlow's C++ sessions have this error; pools without a name are a session's own."""

    def pools(*threads: int, name: str = "") -> ConfigProto:
        config = ConfigProto()
        for count in threads:
            config.session_inter_op_thread_pool.add(num_threads=count, global_name=name)
        return config

    for config in (pools(10, 10, name="shared by callables"), pools(10, name="shared by callables"), pools(1, 2)):
        async with open_session(difference(), "cpu:2", config=config) as session:
            await runs_in(session, 0)
    wrong = r"^Pool shared by callables configured previously with num_threads=10; cannot re-configure"
    with pytest.raises(InvalidArgumentError, match=wrong):
        async with open_session(difference(), "cpu:2", config=pools(0, name="shared by callables")):
            pass


@on_every_deployment
async def test_traces_of_steps_side_by_side_do_not_mix(deployment: Deployment) -> None:
    """Each trace has each node of its own step once, with other steps running."""
    traced = RunOptions(trace_level=RunOptions.FULL_TRACE)

    async def main() -> list[RunMetadata]:
        traces = [RunMetadata() for _ in range(4)]
        async with deployment.open(difference(), 2) as session, trio.open_nursery() as nursery:
            call = await session.make_callable(["a", "b"], "d", options=traced)
            for metadata in traces:
                nursery.start_soon(partial(call, [3.0], [1.0], metadata=metadata))
                nursery.start_soon(session.run, "d", {"a": [1.0], "b": [1.0]})
        return traces

    for metadata in await main():
        nodes = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
        assert nodes.count("d") == 1


def test_a_session_without_event_loop_has_the_same_calls() -> None:
    with BlockingSession(difference(), "cpu:2") as session:
        call = session.make_callable(["a", "b"], "d")
        assert [array.tolist() for array in call([5.0], [3.0])] == [[2.0]]
        with pytest.raises(InvalidArgumentError, match=r"^Expected 2 feed tensors, but got 0"):
            call()
        call.release()
        with pytest.raises(InvalidArgumentError, match="handle was released"):
            call([5.0], [3.0])
        handle = session.partial_run_setup("d", ["a", "b"])
        assert session.partial_run(handle, (), {"a": [5.0]}) == []
        assert [array.tolist() for array in session.partial_run(handle, "d", {"b": [1.0]})] == [[4.0]]
        more = GraphBuilder()
        more.op("Square", 3.0, name="s")
        session.extend(more.graph_def())
        assert session.run("s") == [9.0]
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        session.partial_run_setup("d", ["a", "b"])
