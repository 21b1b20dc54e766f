"""Threads of sessions do what takes long, and have limiters of their own; a clock that jumps gets none."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from threading import get_ident
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import AsyncioSession, Session, open_session
from partita.actors.running import ports
from partita.actors.running.threads import run_in_thread
from partita.actors.running.virtual.record import StepRecord
from partita.actors.sessions import requests, session_graph
from partita.errors import FailedPreconditionError
from partita.graph import graph_def_to_graph
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.hangs import JumpingClock

LARGE = 1_500  # nodes, which take longer than a session may hold the loop
Action = Callable[[Session], Awaitable[object]]


def chain(length: int, name: str = "n") -> GraphBuilder:
    """Negations of a placeholder one after the other, and its identity."""
    b = GraphBuilder()
    y = b.placeholder(f"{name}_x", "float32")
    for number in range(length):
        y = b.op("Neg", y, name=f"{name}{number}")[0]
    b.op("Identity", b.tensor(f"{name}_x"), name=f"{name}_same")
    return b


def threads_of(patch: pytest.MonkeyPatch, owner: object, name: str) -> list[int]:
    """The threads in which a function of a module or class is called from now on."""
    function, threads = getattr(owner, name), list[int]()

    @functools.wraps(function)
    def noted(*arguments: Any, **keywords: Any) -> Any:
        threads.append(get_ident())
        return function(*arguments, **keywords)

    patch.setattr(owner, name, noted)
    return threads


async def _timeline(session: Session) -> None:
    await session.run("n9", {"n_x": np.ones(3, np.float32)})
    assert (await session.timeline_in_thread()).makespan_ns == session.timeline().makespan_ns


async def _graph_def(session: Session) -> None:
    assert await session.graph_def_in_thread() == session.graph_def


@pytest.mark.parametrize(
    ("owner", "name", "action"),
    [
        (session_graph, "extended", lambda session: session.extend(chain(LARGE, "m"))),
        (session_graph, "extended", lambda session: session.extend(chain(LARGE, "m").graph_def())),
        (session_graph, "graph_bytes", lambda session: session.extend(chain(1, "m"))),
        (session_graph.GraphReader, "to_graph_def", _graph_def),
        (StepRecord, "timeline", _timeline),
    ],
)
async def test_a_session_asks_a_thread(
    owner: object, name: str, action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To extend a graph by a large one, to write it, and to make a timeline."""
    async with open_session(chain(10), clock="virtual") as session:
        threads = threads_of(monkeypatch, owner, name)
        await action(session)
    assert threads
    assert threads[0] != get_ident()


@pytest.mark.parametrize("form", [lambda b: b, lambda b: graph_def_to_graph(b.graph_def())])
async def test_a_graph_that_is_no_message_is_written_in_a_thread(
    form: Callable[[GraphBuilder], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = form(chain(LARGE))
    threads = threads_of(monkeypatch, session_graph, "graph_bytes")
    async with open_session(graph):
        assert threads
        assert get_ident() not in threads


@pytest.mark.parametrize(("size", "in_thread"), [(3, False), (2_000_000, True)])
async def test_what_is_shared_with_a_feed_is_copied_in_a_thread_if_it_is_large(
    size: int, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch that is a feed is a read-only copy; duplicates are, too. Nothing else is copied."""
    fed = np.ones(size, np.float32)
    async with open_session(chain(1)) as session:
        threads = threads_of(monkeypatch, requests, "copies")
        await session.run("n0", {"n_x": fed})
        assert not threads
        first, second, _ = await session.run(["n_same", "n_same", "n0"], {"n_x": fed})
    assert len(threads) == 1
    assert (threads[0] != get_ident()) is in_thread
    for fetched in first, second:
        assert not np.shares_memory(fetched, fed)
        assert not fetched.flags.writeable
        assert np.array_equal(fetched, fed)


@pytest.mark.parametrize("size", [3, 2_000_000])
async def test_partial_runs_keep_copies_of_feeds(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user writes to a fed array after the call changes nothing, and a large one is copied in a thread."""
    fed = np.ones(size, np.float32)
    async with open_session(chain(1)) as session:
        handle = await session.partial_run_setup(["n_same", "n0"], ["n_x"])
        threads = threads_of(monkeypatch, requests, "copies")
        await session.partial_run(handle, [], {"n_x": fed})
        fed[:] = 2
        first, second = await session.partial_run(handle, ["n_same", "n0"])
    assert (threads[0] != get_ident()) is (size > 3)
    assert float(first[0]) == 1
    assert float(second[0]) == -1


async def test_no_timeline_in_a_thread_without_a_step() -> None:
    """As `timeline`."""
    async with open_session(chain(1), clock="virtual") as session:
        with pytest.raises(FailedPreconditionError, match="no step has finished"):
            await session.timeline_in_thread()


def test_sessions_of_asyncio_have_the_forms_that_hold_no_loop() -> None:
    assert AsyncioSession.graph_def_in_thread.__doc__ == Session.graph_def_in_thread.__doc__
    assert AsyncioSession.timeline.__doc__ == Session.timeline_in_thread.__doc__


def test_copies_share_nothing() -> None:
    arrays = [np.ones(3), np.float32(2), b"x"]
    copied = ports.copies(arrays)
    assert not np.shares_memory(copied[0], arrays[0])
    assert copied[1:] == arrays[1:]


def long_chain(length: int = 600) -> GraphDef:
    """A graph that is read and prepared in a thread."""
    b = GraphBuilder()
    y = b.placeholder("x", "float32")
    for number in range(length):
        y = b.op("Neg", y, name=f"y{number}")[0]
    b.op("Identity", y, name="last")
    return b.graph_def()


async def test_a_host_may_use_up_the_threads_of_trio() -> None:
    """Every thread of trio's default limiter waits for a step, which is prepared in a thread."""
    threads = trio.to_thread.current_default_thread_limiter()
    results: list[float] = []
    async with open_session(long_chain(), "cpu:2") as session:

        def step_from_a_thread() -> None:
            (got,) = trio.from_thread.run(session.run, "last", {"x": np.float32(3)})
            results.append(float(got))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "total_tokens", 2)
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(trio.to_thread.run_sync, step_from_a_thread)
    assert results == [3.0] * 4


async def test_a_clock_that_jumps_stands_still_while_a_step_is_prepared(autojump_clock: JumpingClock) -> None:
    """Under an autojump clock no time passes: neither graphs nor kernels use a thread, for which tasks would wait."""
    began_s = trio.current_time()
    async with open_session(long_chain(), "cpu:1", budget_s=0, thread_limit_s=0) as session:
        for _ in range(4):
            (got,) = await session.run("last", {"x": np.ones(4, np.float32)})
            assert got.tolist() == [1] * 4
    assert trio.current_time() == began_s


async def test_few_threads_run_python_at_once() -> None:
    """Further ones wait: each takes the interpreter from the loop for milliseconds at a time."""
    running = most = 0
    entered = trio.Event()

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        trio.from_thread.run_sync(entered.set)
        trio.from_thread.run(trio.lowlevel.checkpoint)
        running -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(run_in_thread, work)
    assert 1 <= most <= 2
