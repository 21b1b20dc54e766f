"""Timelines of single requests and of a whole session in simulated time: of concurrent, failed and cancelled steps."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import trio
from hypothesis import given, strategies as st
from trio.testing import wait_all_tasks_blocked

from partita.actors import BlockingSession, Session, StepRecording, open_session
from partita.devices import SessionTimeline, TimelineEvent, exporter_for
from partita.devices.timing import Timeline
from partita.errors import FailedPreconditionError, InternalError, InvalidArgumentError, UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef, RunMetadata
from tests.actors.running.virtual.test_virtual_clock import opened
from tests.strategies import cpu

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
REQUESTS = ("neg", "exp", "crossing", "kernels", "called")


def graph() -> GraphDef:
    """Requests on two CPUs and a GPU, which share devices and links; `failing` takes a CPU first, `taken` waits."""
    b = GraphBuilder()
    x = b.constant(np.ones((4, 4), np.float32), device=cpu(0))
    b.op("Neg", x, name="neg", device=cpu(0))
    b.op("Exp", b.op("Neg", x, device=cpu(0)), name="exp", device=cpu(0))
    b.op("Neg", b.op("Exp", x, device=cpu(1)), name="crossing", device=cpu(0))
    b.op("MatMul", *[b.op("MatMul", x, x, device=GPU)] * 2, name="kernels", device=GPU)
    b.op("Neg", b.op("MatMul", x, x, device=GPU), name="called", device=cpu(1))
    b.op("Error", b.op("Neg", x, device=cpu(0)), name="failing", message="on purpose", device=cpu(0))
    queue = b.op("FIFOQueueV2", name="q", component_types=[DataType.FLOAT], capacity=1, device=cpu(0))[0]
    b.op("QueueDequeueV2", queue, name="taken", component_types=[DataType.FLOAT], device=cpu(0))
    return b.graph_def()


def shifted(timeline: Timeline, step: int, start_ns: int) -> list[TimelineEvent]:
    """The events of one step as the timeline of a session has them, but for causes."""
    return [
        event._replace(start_ns=event.start_ns + start_ns, end_ns=event.end_ns + start_ns, step=step, cause=0)
        for event in timeline.events
    ]


def of_step(whole: SessionTimeline, step: int) -> list[TimelineEvent]:
    """The events of a step, but for causes."""
    return [event._replace(cause=0) for event in whole.events if event.step == step]


def check_agrees(whole: SessionTimeline, recordings: list[StepRecording]) -> None:
    """The whole has the events of the steps, each from where it began, and the sums of their times and bytes."""
    timelines = {recording.span.number: recording.timeline() for recording in recordings}
    for recording in recordings:
        number, start_ns, end_ns, _ = recording.span
        assert of_step(whole, number) == shifted(timelines[number], number, start_ns)
        assert end_ns is not None
        assert start_ns + timelines[number].makespan_ns == end_ns <= whole.makespan_ns
    assert len(whole.events) == sum(len(timeline.events) for timeline in timelines.values())
    for device in whole.devices:
        for stream in whole.streams(device):
            if stream.startswith("compute"):
                parts = [timeline.busy_ns(device, stream) for timeline in timelines.values()]
                assert whole.busy_ns(device, stream) == sum(parts)
    assert whole.transferred_bytes == sum(timeline.transferred_bytes for timeline in timelines.values())
    assert whole.dependency_bound_ns == max(timeline.dependency_bound_ns for timeline in timelines.values())


@given(st.lists(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=4), min_size=1, max_size=3))
async def test_the_timelines_of_requests_add_up_to_that_of_the_session(rounds: list[list[str]]) -> None:
    """Any requests, together and one after the other, on devices that they share."""
    recordings = []
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session:
        for names in rounds:
            async with trio.open_nursery() as nursery:
                for name in names:
                    recordings.append(StepRecording())
                    nursery.start_soon(partial(session.run, name, recording=recordings[-1]))
        whole = session.whole_timeline()
        assert whole.makespan_ns == session.now_ns
        assert whole.events[-1].end_ns <= session.now_ns
        assert len(whole.steps) == len(recordings)
        check_agrees(whole, recordings)


async def test_an_event_knows_which_event_of_another_step_it_waited_for() -> None:
    """The second of two steps on one lane waits for the first, and their critical path covers both."""
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(session.run, "neg")
    path = [event for event in session.whole_timeline().critical_path() if event.duration_ns]
    assert [(event.node, event.start_ns, event.end_ns) for event in path] == [("neg", 0, 1000), ("neg", 1000, 2000)]
    assert {event.step for event in path} == {1, 2}


async def fail(session: Session, recording: StepRecording) -> None:
    """Runs the step that fails."""
    with pytest.raises(InternalError, match="on purpose"):
        await session.run("failing", recording=recording)


async def test_a_failed_step_is_in_the_timeline_of_the_session_as_far_as_it_came() -> None:
    """What it computed, and until when; the recording says why it has no timeline of its own."""
    failed, before, after = (StepRecording() for _ in range(3))
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session:
        await session.run("neg", recording=before)
        await fail(session, failed)
        await session.run("exp", recording=after)
        whole = session.whole_timeline()
    assert failed.span == (2, 1000, 2000, "failed")
    assert [(e.start_ns, e.end_ns) for e in of_step(whole, 2) if e.duration_ns] == [(1000, 2000)]
    assert [span.state for span in whole.steps] == ["done", "failed", "done"]
    for recording in (before, after):
        assert of_step(whole, recording.span.number) == shifted(recording.timeline(), *recording.span[:2])
    assert whole.busy_ns(cpu(0)) == 1000 + 1000 + 1300
    with pytest.raises(FailedPreconditionError, match=r"step 2 failed; Session\.whole_timeline"):
        failed.timeline()


async def test_what_a_cancelled_step_had_begun_keeps_its_device_until_now() -> None:
    """It waits at a queue while another step runs: its wait ends with it, and the timeline does not go beyond now."""
    waiting = StepRecording()
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(session.run, "taken", recording=waiting))
                await wait_all_tasks_blocked()
                await session.run("neg")
                with pytest.raises(FailedPreconditionError, match="still under way"):
                    waiting.timeline()
                assert waiting.span.state == "running"
                (wait,) = [e for e in session.whole_timeline().events if e.node == "taken"]
                assert (wait.start_ns, wait.end_ns, wait.kind) == (0, 1000, "wait")
                scope.cancel()
        await session.run("neg")
        whole = session.whole_timeline()
    assert waiting.span == (1, 0, 1000, "failed")
    assert [(e.start_ns, e.end_ns) for e in whole.events if e.node == "taken"] == [(0, 1000)]
    assert whole.makespan_ns == 2000


async def test_a_recording_and_a_whole_timeline_are_refused_where_there_is_none() -> None:
    """On the real clock, before a step, without `keep_timeline`, for a second step."""
    used = StepRecording()
    with pytest.raises(FailedPreconditionError, match="no step has begun"):
        used.timeline()
    with pytest.raises(InvalidArgumentError, match="keep_timeline"):
        async with open_session(graph(), "cpu:2,gpu:1", keep_timeline=True):
            pass
    async with open_session(graph(), "cpu:2,gpu:1") as session:
        with pytest.raises(FailedPreconditionError, match='clock="virtual"'):
            await session.run("neg", recording=used)
        with pytest.raises(FailedPreconditionError, match='clock="virtual"'):
            session.whole_timeline()
    async with opened(graph(), "cpu:2,gpu:1") as session:
        await session.run("neg", recording=used)
        with pytest.raises(FailedPreconditionError, match="step 1 already"):
            await session.run("neg", recording=used)
        with pytest.raises(FailedPreconditionError, match="keep_timeline=True"):
            session.whole_timeline()
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session:
        with pytest.raises(FailedPreconditionError, match="no step has begun"):
            session.whole_timeline()


async def test_memory_and_intervals_are_refused_for_a_session() -> None:
    """They are questions about steps; the bars are drawn without them."""
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session:
        await session.run("neg")
        whole = session.whole_timeline()
    for ask in (whole.memory, whole.peak_memory_bytes):
        with pytest.raises(UnimplementedError, match="no memory"):
            ask(cpu(0))
    with pytest.raises(UnimplementedError, match="no memory"):
        _ = whole.shortages
    with pytest.raises(UnimplementedError, match="no interval"):
        whole.interval_ns()
    assert "100.0 %" in whole.render()


async def test_exporters_write_the_timeline_of_a_session(tmp_path: Path) -> None:
    """Chrome traces and tables have the step of every event; RunMetadata has all nodes at their times."""
    async with opened(graph(), "cpu:2,gpu:1", keep_timeline=True) as session:
        for name in REQUESTS * 2:
            await session.run(name)
        whole = session.whole_timeline()
    for suffix in (".json", ".csv", ".pb"):
        exporter_for(tmp_path / f"x{suffix}").write(whole, tmp_path / f"x{suffix}")
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    assert [e["args"]["step"] for e in events if e["ph"] in "Xi"] == [e.step for e in whole.events]
    header, *rows = (tmp_path / "x.csv").read_text().splitlines()
    assert header.endswith(",step")
    assert [int(row.rpartition(",")[2]) for row in rows] == [e.step for e in whole.events]
    stats = RunMetadata.FromString((tmp_path / "x.pb").read_bytes()).step_stats
    starts = sorted(node.all_start_nanos - 1000 for device in stats.dev_stats for node in device.node_stats)
    assert starts == sorted(e.start_ns for e in whole.events)


def test_blocking_sessions_record_steps_of_several_threads() -> None:
    """Timelines are asked for in the caller's thread; callables take recordings too."""
    with BlockingSession(graph(), "cpu:2,gpu:1", clock="virtual", keep_timeline=True) as session:
        recordings = [StepRecording(), StepRecording()]
        session.run("crossing", recording=recordings[0])
        session.make_callable([], "neg")(recording=recordings[1])
        check_agrees(session.whole_timeline(), recordings)


async def test_callables_take_recordings() -> None:
    """As `run` does."""
    recording = StepRecording()
    async with opened(graph(), "cpu:2,gpu:1") as session:
        await (await session.make_callable([], "exp"))(recording=recording)
    assert recording.timeline().makespan_ns == 1300
