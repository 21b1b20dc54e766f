"""What kernels keep for one step: shared by its nodes, apart from other steps', gone when it ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
import trio

from partita.actors import Session, open_session, running
from partita.devices.kernels.registry import Call, Construction, Start
from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.sessions.deployments import Deployment
from tests.actors.waiting_ops import defer
from tests.strategies import cpu

ENGINES = ["compiled", "two tasks", "interpreted", "virtual"]


class Meeting:
    """Where the two nodes of a step meet: the second one ends both calls with the sum of their inputs."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.total = 0.0

    def join(self, call: Call, value: Any) -> None:
        """A call comes."""
        self.calls.append(call)
        self.total += value
        if len(self.calls) == 2:
            for waiting in self.calls:
                waiting.done(value * 0 + self.total)


class Hall:
    """The meetings that are still in memory, and the calls that came; `second` says what the second one does."""

    def __init__(self) -> None:
        self.meetings: WeakSet[Meeting] = WeakSet()
        self.came: list[Call] = []
        self.seen_in_cancel: list[float] = []
        self.second = "joins"

    def factory(self, _node: Construction) -> Start:
        """The kernel of the two nodes."""

        def start(call: Call, value: Any) -> None:
            self.came.append(call)
            meeting = call.step.state("tests.meeting", self.opened)
            if meeting.calls and self.second == "fails":
                del meeting  # the error of the step keeps this frame
                raise InvalidArgumentError("not today")
            if not (meeting.calls and self.second == "stays away"):
                call.on_cancel(partial(self.cancelled, call))
                meeting.join(call, value)

        return start

    def opened(self) -> Meeting:
        """A new meeting."""
        meeting = Meeting()
        self.meetings.add(meeting)
        return meeting

    def cancelled(self, call: Call) -> None:
        """What a call undoes still finds the state."""
        self.seen_in_cancel.append(call.step.state("tests.meeting", Meeting).total)

    def assert_closed(self) -> None:
        """No meeting is left, and none can be had in a step that has ended."""
        assert not self.meetings
        for call in self.came:
            with pytest.raises(FailedPreconditionError, match=r"'tests\.meeting' is of a step that has ended"):
                call.step.state("tests.meeting", Meeting)


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hall]:
    hall = Hall()
    defer(monkeypatch, hall.factory, "Abs")
    yield hall
    hall.assert_closed()


def meeting_graph(odd: bool) -> GraphDef:
    """y = Abs(x) + Abs(2x) on two devices; `odd` adds 5 from a loop that only the interpreter runs."""
    b = GraphBuilder()
    with b.device(cpu(0)):
        x = b.placeholder("x", "float32", ())
        twice = b.op("AddV2", x, x)[0]
        here, there = b.op("Abs", x)[0], b.op("Abs", twice, device=cpu(1))[0]
        total = b.op("AddV2", here, there, name="sum")[0]
        if odd:
            enter = b.op("Enter", x, frame_name="odd")[0]
            limit = b.op("Enter", b.constant(5.0), frame_name="odd", is_constant=True)[0]
            merge = b.op("Merge", [b.later("float32"), enter])
            switch = b.op("Switch", merge[0], b.op("LoopCond", b.op("Less", merge[0], limit)[0])[0])
            one_more = b.op(
                "AddV2", switch[1], b.op("Const", control=[switch[1]], dtype="float32", value=np.float32(1))[0]
            )[0]
            b.close_loop(merge, b.op("NextIteration", one_more)[0], port=0)
            total = b.op("AddV2", total, b.op("Exit", switch[0])[0])[0]
        b.op("Identity", total, name="y")
    return b.graph_def()


def opened(engine: str) -> AbstractAsyncContextManager[Session]:
    """A session of the graph on one of the engines."""
    graph = meeting_graph(odd=engine == "interpreted")
    if engine == "two tasks":
        return Deployment.TWO_TASKS.open(graph, 2)
    return open_session(graph, "cpu:2", clock="virtual" if engine == "virtual" else "real")


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_nodes_of_a_step_share_it_and_steps_do_not(
    hall: Hall, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On devices of one task or of several; after each step it is gone."""
    interpreted: list[object] = []
    monkeypatch.setattr(running, "start_interpreted", _noting(running.start_interpreted, interpreted))
    async with opened(engine) as session:
        for x in (1.0, 2.0):
            assert await session.run("y", {"x": x}) == [2 * (x + 2 * x) + 5 * (engine == "interpreted")]
            hall.assert_closed()
        totals: list[Any] = []

        async def run(x: float) -> None:
            totals.extend(await session.run("sum", {"x": x}))

        async with trio.open_nursery() as nursery:
            for x in (1.0, 10.0):
                nursery.start_soon(run, x)
    assert sorted(totals) == [6, 60]
    assert bool(interpreted) == (engine == "interpreted")


def _noting(function: Any, calls: list[object]) -> Any:
    def noting(*arguments: Any, **more: Any) -> Any:
        calls.append(arguments)
        return function(*arguments, **more)

    return noting


@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_gone_when_a_node_fails(hall: Hall, engine: str) -> None:
    """The call that waited is cancelled first, and still finds it."""
    async with opened(engine) as session:
        hall.second = "fails"
        with pytest.raises(InvalidArgumentError, match="not today"):
            await session.run("y", {"x": 1.0})
        assert len(hall.seen_in_cancel) == 1
        hall.assert_closed()
        hall.second = "joins"
        assert await session.run("sum", {"x": 1.0}) == [6]


@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_gone_when_the_step_is_cancelled(hall: Hall, engine: str) -> None:
    """While one node waits for another that never comes."""
    async with opened(engine) as session:
        hall.second = "stays away"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run, "y", {"x": 1.0})
            while len(hall.came) < 2:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert len(hall.seen_in_cancel) == 1
        hall.assert_closed()
