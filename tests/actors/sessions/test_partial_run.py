"""Partial runs: fed and fetched in any order they give the values of one run, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given, strategies as st

from partita.actors import Session
from partita.actors.sessions import workers
from partita.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PartitaError,
)
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from partita.rendezvous import LocalRendezvous
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.hangs import JumpingClock, all_waiting
from tests.runs import HARD_PLACEMENT, Watch, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases

DEVICES = 3


def sums(devices: int = 1) -> GraphDef:
    """r1 = a + b, r2 = r1 * c, r3 = -r2; s needs nothing; two = r1 as a pair, which fails; count counts runs of it."""
    b = GraphBuilder()
    x, y, z = (b.placeholder(name, "float32", (), device=cpu(0)) for name in "abc")
    r1 = b.op("AddV2", x, y, name="r1", device=cpu(1 % devices))
    r2 = b.op("Mul", r1, z, name="r2", device=cpu(2 % devices))
    b.op("Neg", r2, name="r3", device=cpu(0))
    b.op("Square", 3.0, name="s", device=cpu(1 % devices))
    b.op("Reshape", r1, b.constant([2], device=cpu(1 % devices)), name="two", device=cpu(1 % devices))
    side = b.placeholder("p", "bool", (), device=cpu(0))
    b.op("Neg", b.op("Switch", r1, side, name="switch", device=cpu(0))[1], name="live", device=cpu(0))
    b.variable("count", "float32", (), device=cpu(0))
    return b.graph_def()


async def refuses(error: type[PartitaError], message: str, call: Any) -> None:
    """The call raises exactly that."""
    with pytest.raises(error) as caught:
        await call
    assert caught.value.message == message


def watched(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """The rendezvous of all steps that the test runs."""
    watch = Watch()
    monkeypatch.setattr(workers, "LocalRendezvous", watch)
    return watch


def assert_nothing_left(watch: Watch, session: Session) -> None:
    """No waiter, no message, no tensor, no step."""
    assert watch.left_behind() == {"waiters": 0, "queued": 0}
    assert watch.living_tensors() == 0
    assert session.statistics().steps_running == 0


async def fed_bit_by_bit(session: Session, case: GraphCase, order: Sequence[str]) -> list[Any]:
    """Feeds one tensor in each call and fetches each tensor as soon as possible."""
    fetches = sorted(set(case.fetches))
    handle = await session.partial_run_setup(case.fetches, list(case.feeds), case.targets)
    values: dict[str, Any] = {}
    for fed in ({}, *({name: case.feeds[name]} for name in order)):
        await session.partial_run(handle, (), fed)
        for fetch in fetches:
            if fetch not in values:
                with suppress(InvalidArgumentError):  # it needs other feeds
                    (values[fetch],) = await session.partial_run(handle, fetch)
    return [values[name] for name in case.fetches]


@on_every_deployment
@given(placed_cases(), st.data())
async def test_a_run_in_parts_equals_one_run(
    deployment: Deployment, placed: tuple[GraphCase, dict[str, str]], data: st.DataObject
) -> None:
    """For any placement and any order of the feeds."""
    case, placement = placed
    order = data.draw(st.permutations(sorted(case.feeds)))
    async with deployment.open(case.on(placement), 4, config=HARD_PLACEMENT) as session:
        whole = await session.run(case.fetches, case.feeds, case.targets)
        assert_same_values(*(whole, await fed_bit_by_bit(session, case, order)))


@on_every_deployment
@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_a_refused_call_changes_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, devices: int
) -> None:
    watch = watched(monkeypatch)
    async with deployment.open(sums(devices), devices) as session:
        handle = await session.partial_run_setup(["r1", "r2"], ["a", "b", "c"])
        call = partial(session.partial_run, handle)
        unknown = "was not specified in partial_run_setup."
        await refuses(InvalidArgumentError, f"The feed p:0 {unknown}", call((), {"p": np.True_}))
        await refuses(InvalidArgumentError, f"The fetch r3:0 {unknown}", call("r3"))
        missing = "Fetch b:0 can't be computed from the feeds that have been fed so far."
        await refuses(InvalidArgumentError, missing, call("r1", {"a": 1.0}))
        shape = "Cannot feed value of shape (2,) for Tensor a:0, which has shape ()"
        await refuses(InvalidArgumentError, shape, call((), {"a": [1.0, 2.0], "b": [1.0]}))
        dtype = "Expects arg[0] to be float but int64 is provided"
        await refuses(InvalidArgumentError, dtype, call((), {"a": np.int64(1)}))
        assert await call(["r1:0", "r1"], {"a": 1.0, "b:0": 2.0}) == [3.0, 3.0]
        await refuses(InvalidArgumentError, "The feed a:0 has already been fed.", call((), {"a": 1.0}))
        await refuses(InvalidArgumentError, "The fetch r1:0 has already been fetched.", call("r1"))
        assert await call("r2", {"c": 4.0}) == [12.0]
        await refuses(InvalidArgumentError, "Must run 'setup' before performing partial runs!", call("r2"))
        assert_nothing_left(watch, session)


@on_every_deployment
async def test_setup_refuses_names(deployment: Deployment) -> None:
    """As `run` does, but unknown nodes are NOT_FOUND, as in TensorFlow."""
    async with deployment.open(sums(), 1) as session:
        setup = session.partial_run_setup
        await refuses(InvalidArgumentError, 'Endpoint "a:0" fed more than once.', setup("r1", ["a", "a:0"]))
        await refuses(InvalidArgumentError, "a:0 is both fed and fetched.", setup(["a", "r1"], ["a", "b"]))
        nothing = "Must specify at least one target to fetch or execute."
        await refuses(InvalidArgumentError, nothing, setup([], ["a"]))
        with pytest.raises(NotFoundError):
            await setup("r1", ["a", "b"], "nobody")
        await refuses(NotFoundError, "FetchOutputs node nobody:0: not found", setup("nobody", ["a", "b"]))
        await refuses(NotFoundError, "FeedInputs: unable to find feed output nobody:0", setup("r1", "nobody"))
        assert session.statistics().steps_running == 0


@on_every_deployment
async def test_nodes_without_feeds_run_at_once_and_runs_do_not_mix(deployment: Deployment) -> None:
    async with deployment.open(sums(DEVICES), DEVICES) as session:
        first, second = [await session.partial_run_setup(["s", "r1"], ["a", "b"]) for _ in range(2)]
        assert first != second
        assert await session.partial_run(first, "s") == [9.0]
        assert await session.partial_run(second, "r1", {"a": 1.0, "b": 1.0}) == [2.0]
        assert await session.run("r1", {"a": 5.0, "b": 5.0}) == [10.0]
        assert await session.partial_run(first, "r1", {"a": 2.0, "b": 2.0}) == [4.0]
        assert session.statistics().steps_running == 1
        assert await session.partial_run(second, "s") == [9.0]


@on_every_deployment
async def test_targets_run_for_their_effect(deployment: Deployment) -> None:
    b = GraphBuilder()
    count = b.variable("count", "float32", ())
    b.op("Assign", count, b.placeholder("x", "float32", ()), name="set")
    async with deployment.open(b.graph_def(), 1) as session:
        handle = await session.partial_run_setup((), "x", "set")
        assert await session.partial_run(handle, (), {"x": 7.0}) == []
        assert await session.run("count") == [7.0]
        handle = await session.partial_run_setup("count", ())
        assert await session.partial_run(handle, "count") == [7.0]


@on_every_deployment
@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_an_error_ends_the_run(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, devices: int) -> None:
    """A kernel that fails during a call or before it, and a dead fetch."""
    watch = watched(monkeypatch)

    async def fails(session: Session, fetches: list[str], announced: str, feeds: dict[str, Any], message: str) -> None:
        handle = await session.partial_run_setup(fetches, list(announced))
        with pytest.raises(PartitaError, match=message):
            await session.partial_run(handle, fetches[0], feeds)
        with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
            await session.partial_run(handle, fetches[0])
        assert_nothing_left(watch, session)

    async with deployment.open(sums(devices), devices) as session:
        await fails(session, ["two", "s"], "ab", {"a": 1.0, "b": 2.0}, "Input to reshape")
        unfed = "^You must feed a value for placeholder tensor 'c'"
        await fails(session, ["r2"], "ab", {"a": 1.0, "b": 2.0}, unfed)
        dead = "^The tensor returned for live:0 was not valid"
        await fails(session, ["live", "r1"], "abp", {"a": 1.0, "b": 2.0, "p": False}, dead)
        handle = await session.partial_run_setup("count", ())
        with pytest.raises(FailedPreconditionError, match="uninitialized value count"):
            await session.partial_run(handle, "count")
        assert await session.run("r1", {"a": 1.0, "b": 2.0}) == [3.0]


@on_every_deployment
async def test_a_node_of_the_user_finds_no_call_frame(deployment: Deployment) -> None:
    b = GraphBuilder()
    b.op("Neg", b.op("_Arg", name="x", T="float32", index=0), name="y")
    async with deployment.open(b.graph_def(), 1) as session:
        with pytest.raises(InternalError, match=r"^no call frame"):
            await session.partial_run_setup("y", ())


def slow_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drops all messages."""
    monkeypatch.setattr(LocalRendezvous, "send", lambda *_arguments: None)


@on_every_deployment
async def test_the_end_of_the_session_ends_its_runs(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with and without a waiting call."""
    watch = watched(monkeypatch)
    async with deployment.open(sums(DEVICES), DEVICES) as session:
        await session.partial_run_setup(["r1", "r2"], ["a", "b", "c"])
        handle = await session.partial_run_setup("s", ())
        slow_to_come(monkeypatch)
        waiting = await session.partial_run_setup(["r1", "r2"], ["a", "b", "c"])

        async def close() -> None:
            await all_waiting()
            session.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(close)
            call = session.partial_run(waiting, "r1", {"a": 1.0, "b": 1.0})
            await refuses(CancelledError, "Session has been closed.", call)
        await refuses(CancelledError, "Session has been closed.", session.partial_run(handle, "s"))
        assert_nothing_left(watch, session)


@on_every_deployment
@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_tensors_of_a_done_run_that_were_not_fetched_are_dropped_at_the_end_of_the_session(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, devices: int
) -> None:
    watch = watched(monkeypatch)
    async with deployment.open(sums(devices), devices) as session:
        handle = await session.partial_run_setup(["s", "r1"], ["a", "b"])
        assert await session.partial_run(handle, "r1", {"a": 1.0, "b": 2.0}) == [3.0]
        await all_waiting()
        assert watch.left_behind() == {"waiters": 0, "queued": 1}
        session.close()
        assert_nothing_left(watch, session)


@on_every_deployment
async def test_computed_tensors_can_be_fetched_after_a_restart_of_the_client_device(deployment: Deployment) -> None:
    async with deployment.open(sums(DEVICES), DEVICES) as session:
        handle = await session.partial_run_setup("s", ())
        await all_waiting()
        session.restart_device(deployment.device(0))
        assert await session.partial_run(handle, "s") == [9.0]
        assert await session.partial_run(await session.partial_run_setup("s", ()), "s") == [9.0]


@on_every_deployment
async def test_a_late_call_ends_the_run(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, autojump_clock: JumpingClock
) -> None:
    watch = watched(monkeypatch)
    config = ConfigProto(operation_timeout_in_ms=1000)
    async with deployment.open(sums(DEVICES), DEVICES, config=config) as session:
        slow_to_come(monkeypatch)
        handle = await session.partial_run_setup(["r1", "r2"], ["a", "b", "c"])
        call = partial(session.partial_run, handle)
        await refuses(DeadlineExceededError, "Timed out waiting for notification", call("r1", {"a": 1.0, "b": 1.0}))
        await refuses(InvalidArgumentError, "Must run 'setup' before performing partial runs!", call("r1"))
        assert_nothing_left(watch, session)


@on_every_deployment
async def test_a_cancelled_call_ends_the_run(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, autojump_clock: JumpingClock
) -> None:
    """It ends another call of the same run too; the cancelled call raises Cancelled."""
    watch = watched(monkeypatch)
    async with deployment.open(sums(DEVICES), DEVICES) as session:
        slow_to_come(monkeypatch)
        handle = await session.partial_run_setup(["r1", "s"], ["a", "b"])

        async def other() -> None:
            with pytest.raises(CancelledError, match="the task that went on with the partial run was cancelled"):
                await session.partial_run(handle, "s")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            with trio.move_on_after(1) as scope:
                await session.partial_run(handle, "r1", {"a": 1.0, "b": 1.0})
            assert scope.cancelled_caught
        with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
            await session.partial_run(handle, "r1")
        assert_nothing_left(watch, session)


def queue() -> GraphDef:
    """d dequeues the elements that e enqueues; y = x + 1."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    q = b.op("FIFOQueueV2", name="q", component_types=["float32"], shapes=[()], capacity=3)
    b.op("QueueEnqueueV2", q, [x], name="e")
    b.op("QueueDequeueV2", q, name="d", component_types=["float32"])
    b.op("AddV2", x, 1.0, name="y")
    return b.graph_def()


@on_every_deployment
async def test_a_run_waits_for_an_element_of_another_step(deployment: Deployment, autojump_clock: JumpingClock) -> None:
    """A waiting node does not delay other fetches, and ends with the run."""
    async with deployment.open(queue(), 1) as session:
        handle = await session.partial_run_setup(["d", "y"], "x")
        assert await session.partial_run(handle, "y", {"x": 1.0}) == [2.0]
        await session.run((), {"x": 7.0}, "e")
        assert await session.partial_run(handle, "d") == [7.0]
        handle = await session.partial_run_setup(["d", "y"], "x")
        with trio.move_on_after(0.5) as scope:
            await session.partial_run(handle, "d")
        assert scope.cancelled_caught
        await session.run((), {"x": 8.0}, "e")
        assert await session.run("d") == [8.0]
        await session.partial_run_setup("d", ())
