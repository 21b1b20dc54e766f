"""`parallel_iterations` bounds how far a device of a loop is ahead of those that it sends to, whatever delays these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from partita.actors import open_session
from partita.actors.running.loops.distributed import DistributedLoopRun, IterationRunner
from partita.actors.running.tokens.frames import RunningFrame
from partita.actors.running.tokens.propagation import Propagation
from partita.actors.sessions import workers
from partita.errors import DeadlineExceededError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import ConfigProto, GraphDef
from partita.rendezvous import LocalRendezvous, Received
from partita.rendezvous.key import destination
from tests.actors.programs import Program, programs
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.hangs import JumpingClock
from tests.laws.test_law_loops import interpreted
from tests.strategies import cpu

ITERATIONS = 40


class Meeting(LocalRendezvous):
    """A rendezvous that knows the keys of messages which nobody has received yet, and the most at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.unreceived: dict[Hashable, None] = {}
        self.most = 0
        self.begun: dict[tuple[int, str], int] = {}
        """the latest iteration by number of the frame and device"""

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:
        self.unreceived[key] = None
        super().send(key, value, is_dead)
        self.most = max(self.most, len(self.unreceived))

    def recv_callback(self, key: Hashable, callback: Callable[[Any], None]) -> Any:
        def received(outcome: Any) -> None:
            if isinstance(outcome, Received):
                del self.unreceived[key]
            callback(outcome)

        return super().recv_callback(key, received)

    def expect(self, keys: Collection[Hashable], deliver: Callable[[Hashable, Any], None]) -> None:
        for key in keys:
            self.recv_callback(key, partial(deliver, key))


@pytest.fixture
def meetings(monkeypatch: pytest.MonkeyPatch) -> list[Meeting]:
    """The rendezvous of all steps of the test; iterations that begin too early fail."""
    made: list[Meeting] = []

    def make() -> Meeting:
        made.append(Meeting())
        return made[-1]

    def begin(original: Callable[..., None], run: DistributedLoopRun, part: IterationRunner, variables: Any) -> None:
        begun, frame, iteration = made[-1].begun, run._frame_id, run._iteration
        begun[frame, run._call.place.device] = iteration
        if iteration >= run._loop.parallel:
            for key in run._loop.plan.sends.keys:
                assert begun[frame, destination(key)] >= iteration - run._loop.parallel, f"{iteration} begins too early"
        original(run, part, variables)

    original = DistributedLoopRun.begin
    monkeypatch.setattr(workers, "LocalRendezvous", make)
    monkeypatch.setattr(DistributedLoopRun, "begin", lambda *arguments: partial(begin, original)(*arguments))
    return made


def counted(parallel: int, slow_us: int) -> GraphDef:
    """total = 0 + 1 + ... + (n - 1): the first CPU counts and waits for nobody; the second adds, slowly."""
    b = GraphBuilder()
    frame: dict[str, Any] = {"frame_name": "while", "parallel_iterations": parallel}
    n = b.placeholder("n", "int32", (), device=cpu(0))
    with b.device(cpu(0)):
        limit = b.op("Enter", n, is_constant=True, **frame)[0]
        count = b.op("Merge", [b.op("Enter", b.constant(0, "int32"), **frame)[0], b.later("int32")])
        go_on = b.op("LoopCond", b.op("Less", count[0], limit))[0]
        number = b.identity(b.op("Switch", count[0], go_on)[1])
        following = b.op("AddV2", number, b.constant(1, "int32", control=[number.node]))
        b.close_loop(count, b.op("NextIteration", following)[0])
    with b.device(cpu(1)):
        total = b.op("Merge", [b.op("Enter", b.constant(0, "int32"), **frame)[0], b.later("int32")])
        switch = b.op("Switch", total[0], go_on)
        late = b.op("Delay", number, micros=slow_us)[0]
        b.close_loop(total, b.op("NextIteration", b.op("AddV2", b.identity(switch[1]), late))[0])
        b.op("Exit", switch[0], name="total")
    return b.graph_def()


@on_every_deployment
@pytest.mark.parametrize("parallel", [1, 2, 10])
async def test_a_counter_waits_for_those_that_it_counts_for(
    deployment: Deployment, meetings: list[Meeting], autojump_clock: JumpingClock, parallel: int
) -> None:
    """The counter's device sends a predicate and a number in each iteration, and is `parallel` iterations ahead."""
    async with deployment.open(counted(parallel, slow_us=1000), 2) as session:
        for count in (ITERATIONS, 0, 1):
            assert await session.run("total", {"n": count}) == [count * (count - 1) // 2]
    assert parallel <= meetings[0].most <= 2 * (parallel + 1)


@pytest.mark.parametrize("parallel", [1, 10])
async def test_a_loop_that_waits_in_this_way_can_be_cancelled(
    meetings: list[Meeting], autojump_clock: JumpingClock, parallel: int
) -> None:
    """Nothing is left at the rendezvous, and the next step works."""
    config = ConfigProto(operation_timeout_in_ms=3)
    async with open_session(counted(parallel, slow_us=1000), "cpu:2", config=config) as session:
        with pytest.raises(DeadlineExceededError):
            await session.run("total", {"n": ITERATIONS})
        assert meetings[0].statistics().queued == meetings[0].statistics().waiting == 0
        assert await session.run("total", {"n": 2}) == [1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(programs())
async def test_no_device_begins_an_iteration_too_early(meetings: list[Meeting], case: Program) -> None:
    """In random programs over four devices, with a budget of zero, which lets devices take turns all the time."""
    async with open_session(case.graph_def, "cpu:4", budget_s=0) as session:
        meetings.clear()
        for name in case.fetches:
            with suppress(InvalidArgumentError):  # a dead fetch
                await session.run(name, case.feeds)
        assert not any(meeting.unreceived for meeting in meetings)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(programs())
def test_the_interpreter_begins_no_iteration_too_early(monkeypatch: pytest.MonkeyPatch, case: Program) -> None:
    """An iteration is forgotten when it is complete, so memory has at most `parallel_iterations` of a frame."""
    original = Propagation._begin_iteration

    def begin(run: Propagation, partition: int, frame: RunningFrame) -> None:
        original(run, partition, frame)
        assert min(frame.iterations) > frame.latest - frame.max_parallel
        assert len(frame.iterations) <= frame.max_parallel

    with monkeypatch.context() as patched:
        patched.setattr(Propagation, "_begin_iteration", begin)
        interpreted(case)
