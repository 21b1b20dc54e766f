"""Sessions in asyncio programs, and what the API says to tasks that trio does not run."""

from __future__ import annotations

import asyncio
import inspect
import signal
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, TypeVar

import numpy as np
import pytest
import trio

from partita.actors import (
    AsyncioFunctionRuntime,
    AsyncioSavedModel,
    AsyncioSession,
    BlockingSession,
    FunctionRuntime,
    InstantiateOptions,
    SavedModelSession,
    Session,
    SessionCallable,
    StepRecording,
    open_asyncio_cluster_session,
    open_asyncio_function_runtime,
    open_asyncio_saved_model,
    open_asyncio_session,
    open_cluster_session,
    open_function_runtime,
    open_saved_model,
    open_session,
)
from partita.actors.sessions.bridges.asyncio_session import AsyncioCallable
from partita.actors.sessions.bridges.blocking import BlockingCallable
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.errors import CancelledError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from partita.graph import GraphBuilder
from partita.graph.protos import FunctionDefLibrary
from tests.conformance.corpus import COMMITTED
from tests.function_defs import function_of

MODEL = COMMITTED / "saved_model" / "keras_mlp" / "model"
_T = TypeVar("_T")


def in_asyncio(main: Coroutine[Any, Any, _T]) -> _T:
    """The result of a program, after which no task and no trio is left in its loop."""

    async def program() -> _T:
        result = await main
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert not trio.lowlevel.in_trio_run()
        return result

    return asyncio.run(program())


def waiting() -> GraphBuilder:
    """y = -x, and a queue, of which `taken` waits for `put`."""
    b = GraphBuilder()
    b.op("Neg", b.placeholder("x", "float32", ()), name="y")
    queue = b.op("FIFOQueueV2", name="queue", component_types=["float32"], capacity=2)[0]
    b.op("QueueEnqueueV2", queue, [b.constant(5.0)], name="put")
    b.op("QueueDequeueV2", queue, name="taken", component_types=["float32"])
    return b


def test_steps_run_and_tasks_share_the_loop() -> None:
    """Several calls at once, of two sessions; asyncio's own tasks go on meanwhile."""

    async def main() -> None:
        async with open_asyncio_session(waiting(), "cpu:2") as one, open_asyncio_session(waiting()) as two:
            assert len(one.devices) == 2
            values = await asyncio.gather(*(session.run("y", {"x": x}) for session in (one, two) for x in range(4)))
            assert [float(y) for (y,) in values] == [0, -1, -2, -3] * 2
            taken = asyncio.create_task(one.run("taken"))
            negate = await two.make_callable("x", "y")
            assert [float(y) for y in await negate(3)] == [-3]
            assert not taken.done()
            await one.run([], targets="put")
            assert [float(value) for value in await taken] == [5]

    in_asyncio(main())


def test_the_rest_of_the_interface() -> None:
    """Partial runs, extensions, timelines and resets."""

    async def main() -> None:
        async with open_asyncio_session(waiting()) as session:
            handle = await session.partial_run_setup("y", "x")
            assert [float(y) for y in await session.partial_run(handle, "y", {"x": 2})] == [-2]
            more = GraphBuilder()
            more.constant(7.0, name="seven")
            await session.extend(more)
            assert [float(value) for value in await session.run("seven")] == [7]
            assert session.graph_def.node[-1].name == "seven"
            await session.reset()
            with pytest.raises(CancelledError):
                await session.run("y", {"x": 1})
        async with open_asyncio_session(waiting(), clock="virtual", keep_timeline=True) as session:
            recording = StepRecording()
            await session.run("y", {"x": 1}, recording=recording)
            assert 0 < (await session.timeline()).makespan_ns == session.now_ns
            assert recording.timeline().makespan_ns == (await session.whole_timeline()).makespan_ns

    in_asyncio(main())


def test_clusters_functions_and_saved_models() -> None:
    """What opens in trio opens in asyncio, side by side: the model's values are TensorFlow's, and errors are bare."""
    feeds = {"x": np.load(MODEL.parent / "feeds.npz")["r0_s1_x"]}
    expected = np.load(MODEL.parent / "expected.npz")["r0_s1_y"]
    tasks = Cluster([Device(device_spec("generic-cpu"), task=task) for task in (0, 1)])
    negate = function_of("negate", waiting().graph_def(), ["x:0"], ["y:0"])

    async def main() -> None:
        async with (
            open_asyncio_cluster_session(waiting(), tasks) as session,
            open_asyncio_saved_model(MODEL, devices="cpu:2") as model,
            open_asyncio_function_runtime(FunctionDefLibrary(function=[negate]), "cpu:2") as runtime,
        ):
            handle = await runtime.instantiate("negate", options=InstantiateOptions(target="/device:CPU:1"))
            (y,), scores, (z,) = await asyncio.gather(
                session.run("y", {"x": 1}), model.run(feeds), runtime.run(handle, np.float32(3))
            )
            assert (float(y), float(z)) == (-1, -3)
            assert scores.keys() == model.saved.signature("serving_default").outputs.keys()
            np.testing.assert_allclose(scores["y"], expected, rtol=1e-5)
            assert len(model.session.devices) == len(runtime.cluster.names) == 2
            await runtime.release(handle)
            with pytest.raises(NotFoundError):
                await runtime.run(handle, np.float32(3))
            with pytest.raises(NotFoundError, match="nobody"):
                await model.run(feeds, "nobody")
            await session.restart_device(session.devices[-1])
            assert [float(value) for value in await session.run("y", {"x": 2})] == [-2]
            assert (await session.statistics()).steps == 2
            await session.close()
            with pytest.raises(CancelledError):
                await session.run("y", {"x": 1})
            await runtime.close()

    in_asyncio(main())


# What belongs to trio or to the inside of a session.
OF_TRIO = {"start", "close", "prepare", "graph", "workers"} | {
    f"{name}_in_thread" for name in ("prepare", "timeline", "graph_def")
}


@pytest.mark.parametrize(
    ("bridged", "original"),
    [
        (AsyncioSession, Session),
        (BlockingSession, Session),
        (AsyncioFunctionRuntime, FunctionRuntime),
        (AsyncioSavedModel, SavedModelSession),
        (AsyncioCallable, SessionCallable),
        (BlockingCallable, SessionCallable),
    ],
)
def test_a_bridge_has_all_methods_with_their_parameters(bridged: type, original: type) -> None:
    """`help` shows those of the method in trio, and a docstring; results differ where they are bridged themselves."""
    members = {name for kind in original.__mro__[:-1] for name in vars(kind)}
    names = {name for name in members if not name.startswith("_") or name == "__call__"}
    assert names - OF_TRIO <= set(vars(bridged))
    for name in names - OF_TRIO:
        method = getattr(bridged, name)
        assert method.__doc__
        if callable(method):
            ours, theirs = (inspect.signature(getattr(cls, name)).parameters for cls in (bridged, original))
            assert list(ours.values()) == list(theirs.values()), name


@pytest.mark.parametrize(
    ("bridged", "original"),
    [
        (open_asyncio_session, open_session),
        (open_asyncio_cluster_session, open_cluster_session),
        (open_asyncio_saved_model, open_saved_model),
        (open_asyncio_function_runtime, open_function_runtime),
    ],
)
def test_bridges_open_with_the_parameters_of_trio(bridged: Callable[..., Any], original: Callable[..., Any]) -> None:
    """Names, kinds and defaults; an unknown one is refused at the call."""
    assert inspect.signature(bridged).parameters == inspect.signature(original).parameters
    with pytest.raises(TypeError):
        bridged()


def test_errors_come_out_bare() -> None:
    """Of a step, of opening, and of the block itself; the session goes on after one, and another can be opened."""

    async def main() -> None:
        with pytest.raises(InvalidArgumentError, match="Invalid GraphDef"):
            async with open_asyncio_session(b"\xff\xff"):
                pass

        async def fails() -> None:
            async with open_asyncio_session(waiting()) as session:
                with pytest.raises(InvalidArgumentError, match="feed"):
                    await session.run("y")
                assert [float(y) for y in await session.run("y", {"x": 1})] == [-1]
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await fails()
        async with open_asyncio_session(waiting()) as session:
            await session.run("y", {"x": 1})

    in_asyncio(main())


def test_a_cancelled_task_cancels_its_step() -> None:
    """And nothing else: the other step that waits goes on, and so does the session."""

    async def main() -> None:
        async with open_asyncio_session(waiting()) as session:
            first, second = (asyncio.create_task(session.run("taken")) for _ in range(2))
            await session.run("y", {"x": 1})
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await session.run([], targets="put")
            assert [float(value) for value in await second] == [5]

    in_asyncio(main())


def test_a_task_that_is_cancelled_leaves_nothing() -> None:
    """After any number of turns of the loop, in which it opens a session, runs a step and closes it."""

    async def user() -> None:
        async with open_asyncio_session(waiting(), "cpu:2") as session:
            await session.run("y", {"x": 1.0})

    async def cancelled_after(turns: int) -> bool:
        task = asyncio.create_task(user())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    for turns in count():
        if not in_asyncio(cancelled_after(turns)):
            break
    assert turns > 10


def run_until_complete(main: Coroutine[Any, Any, None]) -> None:
    """In a loop that leaves SIGINT to Python; what is left is cancelled."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.wait(left) if left else asyncio.sleep(0))
        loop.close()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("run", [asyncio.run, run_until_complete])
@pytest.mark.parametrize("fetch", ["y", "taken", None])
def test_ctrl_c_ends_the_loop(run: Callable[[Coroutine[Any, Any, None]], None], fetch: str | None) -> None:
    """With a bare KeyboardInterrupt, while steps run, a step waits or the host does; the next one is right."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with open_asyncio_session(waiting(), "cpu:1") as session:
            loop.call_later(0.01, signal.raise_signal, signal.SIGINT)
            while fetch is not None:
                await session.run(fetch, {"x": 1.0})
            await loop.create_future()

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert not trio.lowlevel.in_trio_run()

    async def again() -> None:
        async with open_asyncio_session(waiting(), "cpu:1") as session:
            assert await session.run("y", {"x": 1.0}) == [-1.0]

    in_asyncio(again())


def test_the_end_of_the_block_ends_steps() -> None:
    """With the error of a closed session; a program that is cancelled closes its session and ends."""

    async def main() -> None:
        async with open_asyncio_session(waiting()) as session:
            taken = asyncio.create_task(session.run("taken"))
            await session.run("y", {"x": 1})
        with pytest.raises(CancelledError, match="Session has been closed"):
            await taken

        async def host() -> None:
            async with open_asyncio_session(waiting()) as session:
                await session.run("taken")

        hosting = asyncio.create_task(host())
        async with open_asyncio_session(waiting()) as session:
            await session.run("y", {"x": 1})
            hosting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hosting

    in_asyncio(main())


def test_async_sessions_say_what_to_use_outside_of_trio() -> None:
    """Whatever is opened, and whatever session of the same thread is called from asyncio: one error with both ways."""

    async def main() -> None:
        managers = [
            open_session(waiting()),
            open_cluster_session(waiting(), "cpu:1"),
            open_function_runtime(FunctionDefLibrary()),
            open_saved_model(MODEL),
        ]
        for manager in managers:
            with pytest.raises(FailedPreconditionError, match=r"open_asyncio_session.*guest mode.*BlockingSession"):
                async with manager:
                    pass
        async with open_asyncio_session(waiting()) as session:
            with pytest.raises(FailedPreconditionError, match="open_asyncio_session"):
                await session._opened.run("y", {"x": 1})

    in_asyncio(main())


def test_a_notebook_has_a_loop_that_runs() -> None:
    """A blocking session works within it, and beside a session of the loop."""

    async def main() -> None:
        with BlockingSession(waiting()) as session:
            assert [float(y) for y in session.run("y", {"x": 1})] == [-1]
            async with open_asyncio_session(waiting()) as other:
                assert [float(y) for y in await other.run("y", {"x": 2})] == [-2]
            assert [float(y) for y in session.run("y", {"x": 3})] == [-3]

    in_asyncio(main())
