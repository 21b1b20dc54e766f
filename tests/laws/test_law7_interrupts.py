"""Law 7 for Ctrl-C: at any point the block ends with a bare KeyboardInterrupt, and the next session works.

SIGINT is raised at a chosen message, chunk or line of the package. It is a real signal, so it interrupts the code that
runs then, as at a terminal. The tests start event loops of their own: trio delivers the signal to the main task.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import trio
from hypothesis import given, reject, settings, strategies as st

import partita
from partita.actors import BlockingSession, open_session
from partita.actors.plans import instructions
from partita.actors.running import device_actor
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.devices.kernels import registry
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef
from tests.actors.programs import Program, programs
from tests.runs import assert_same_values
from tests.strategies import cpu

if TYPE_CHECKING:
    from distributed import LocalCluster

pytestmark = pytest.mark.usefixtures("ctrl_c")

PACKAGE = str(Path(next(iter(partita.__path__))))
TESTS = str(Path(__file__).parents[1])  # in the same folder as the package, in a checkout
Main = Callable[[], Awaitable[Any]]  # what a main function gives is the affair of the test


def there_and_back() -> GraphDef:
    """y = sum(-(x @ x)), the negation on another device."""
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (4, 4), device=cpu(0))
    product = builder.op("MatMul", x, x, device=cpu(0))
    negated = builder.op("Neg", product, device=cpu(1))
    builder.op("Sum", negated, [0, 1], name="y", device=cpu(0))
    return builder.graph_def()


X = {"x": np.ones((4, 4), np.float32)}
Y = -64.0
STRIDE = 97  # of lines that are interrupted: prime, so that it is in step with no loop


async def three_steps() -> float:
    """The last of three steps in a session that yields to the event loop after every chunk."""
    async with open_session(there_and_back(), "cpu:2", budget_s=0) as session:
        for _ in range(2):
            await session.run("y", X)
        return float((await session.run("y", X))[0])


class Count:
    """Raises SIGINT at the event with number `at`, counted from 1; no line is an event after that."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.events = 0

    def __call__(self) -> None:
        self.events += 1
        if self.events == self.at:
            sys.settrace(None)  # tracing is slow, and what ends the loop need not be counted
            signal.raise_signal(signal.SIGINT)


@contextmanager
def counted_lines(count: Count) -> Iterator[None]:
    """Inside the block every line of the package that is about to run is an event."""

    def trace(frame: FrameType, event: str, _argument: object) -> Any:  # Any: as sys.settrace has it
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) or file.startswith(TESTS):
            return None
        if event == "line":
            count()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def is_interrupted(main: Main, count: Count) -> bool:
    """Whether the loop ended with a bare KeyboardInterrupt, not in a group.

    False if the loop ended before the event: the number of yields and the order of tasks differ between runs.
    """
    try:
        trio.run(main)
    except KeyboardInterrupt:
        assert count.events >= count.at
        return True
    assert count.events < count.at
    return False


def lines_of(main: Main) -> int:
    """The lines of the package that run from the start of the loop to its end, when all modules are loaded."""
    trio.run(main)
    with counted_lines(count := Count()):
        trio.run(main)
    return count.events


def num_interrupted(main: Main, lines: int, stride: int) -> int:
    """How many loops were interrupted, of those that are at one line in `stride`."""
    interrupted = 0
    for at in range(1, lines, stride):
        with counted_lines(count := Count(at)):
            interrupted += is_interrupted(main, count)
    return interrupted


@pytest.mark.parametrize("where", ["message", "chunk"])
def test_at_every_message_and_every_chunk(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three steps over two devices."""
    count = Count()
    serve, run = device_actor.DeviceActor.serve_one, instructions.run_instructions

    def serve_one(actor: device_actor.DeviceActor, now: float) -> float:
        count()
        return serve(actor, now)

    def run_instructions(*arguments: Any) -> None:
        run(*arguments)
        count()

    if where == "message":
        monkeypatch.setattr(device_actor.DeviceActor, "serve_one", serve_one)
    else:
        monkeypatch.setattr(device_actor, "run_instructions", run_instructions)
    assert trio.run(three_steps) == Y
    events, count.events = count.events, 0
    assert events >= 6  # two devices, three steps
    interrupted = 0
    for count.at in range(1, events):
        count.events = 0
        interrupted += is_interrupted(three_steps, count)
        count.events = count.at
        assert trio.run(three_steps) == Y
    assert interrupted > events / 2


def test_at_any_line_of_the_package() -> None:
    """Opening, three steps and closing run thousands of lines; one in STRIDE is interrupted."""
    lines = lines_of(three_steps)
    assert lines > 1000
    assert num_interrupted(three_steps, lines, STRIDE) > lines / STRIDE / 2
    assert trio.run(three_steps) == Y


@settings(max_examples=25)
@given(programs(devices=2, size=3), st.floats(0, 1, exclude_max=True))
def test_in_loops_over_two_devices(program: Program, share: float) -> None:
    """A drawn program of loops and conditionals, interrupted at a drawn line of its second step."""
    results: list[list[Array]] = []

    async def main() -> None:
        async with open_session(program.graph_def, "cpu:2", budget_s=0) as session:
            results.append(await session.run(list(program.fetches), program.feeds))
            with counted_lines(count):
                results.append(await session.run(list(program.fetches), program.feeds))

    count = Count()
    try:
        trio.run(main)
    except InvalidArgumentError:  # a drawn fetch is dead: the branch of a conditional that is not taken
        reject()
    count = Count(1 + int(count.events * share))
    is_interrupted(main, count)
    count = Count()
    trio.run(main)
    for other in results[1:]:
        assert_same_values(other, results[0])


def test_in_a_session_over_tasks() -> None:
    """The nursery of a step over several workers does not wrap the KeyboardInterrupt in a group."""
    cluster = Cluster([Device(device_spec("generic-cpu"), task=task) for task in (0, 1)])
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (4, 4), device=cluster.names[0])
    builder.op("Neg", x, name="y", device=cluster.names[1])
    graph_def, count = builder.graph_def(), Count()

    async def main() -> None:
        async with open_cluster_session(graph_def, cluster) as session:
            await session.run("y", X)
            with counted_lines(count):
                await session.run("y", X)

    trio.run(main)
    lines = count.events
    assert lines > 100
    interrupted = 0
    for at in range(1, lines, 20):
        count = Count(at)
        interrupted += is_interrupted(main, count)
    assert interrupted > lines / 40
    count = Count()
    trio.run(main)


def test_in_a_session_over_processes(cluster: LocalCluster) -> None:
    """At a line of opening, a step or closing; every client of the scheduler is closed then."""
    clients = set(cluster.scheduler.clients)

    async def main() -> None:
        async with open_session(there_and_back(), "cpu:2", workers=cluster.scheduler_address) as session:
            assert (await session.run("y", X))[0] == Y

    lines = lines_of(main)
    assert lines > 1000
    assert num_interrupted(main, lines, lines // 120) > 60
    trio.run(main)
    assert set(cluster.scheduler.clients) == clients


def test_at_every_line_of_opening_a_blocking_session() -> None:
    """The thread that was started for it ends."""
    graph_def = there_and_back()
    for at in itertools.count(1):
        try:
            with counted_lines(Count(at)):
                session = BlockingSession(graph_def, "cpu:2")
        except KeyboardInterrupt:
            for thread in threading.enumerate():
                if thread.name == "partita session":
                    thread.join(60)
                    assert not thread.is_alive()
        else:
            session.close()
            break
    assert at > 10


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("thread_limit_s", [0.001, 0.0])
async def test_what_a_kernel_raises_comes_out_of_run_as_it_is(
    raised: type[BaseException], thread_limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the caller's task, an actor's task or a thread; the session can be used afterwards."""
    assert registry.lookup("Neg") is not None  # loads the kernels before one is replaced
    fails = False

    def negative(value: Any) -> Any:
        if fails:
            raise raised
        return -value

    monkeypatch.setitem(registry._FACTORIES, "Neg", lambda _node: negative)
    async with open_session(there_and_back(), "cpu:2", budget_s=0, thread_limit_s=thread_limit_s) as session:
        for fails in (False, False, True, False, True, False):
            if fails:
                with pytest.raises(raised):
                    await session.run("y", X)
            else:
                assert (await session.run("y", X))[0] == Y


def test_the_loop_of_a_host_is_ended_too() -> None:
    """If the main task waits for something else, its own nursery cancels the tasks that run steps."""
    steps = 0

    async def forever(session: Any) -> None:
        nonlocal steps
        while True:
            await session.run("y", X)
            steps += 1
            if steps == 3:
                signal.raise_signal(signal.SIGINT)

    async def main() -> None:
        async with open_session(there_and_back(), "cpu:2") as session, trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(forever, session)

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(main)
    assert caught.group_contains(KeyboardInterrupt)
    assert trio.run(three_steps) == Y
