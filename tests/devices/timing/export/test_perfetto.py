"""Law: what a trace for Perfetto says, read with Perfetto's own messages, is the timeline, no more and no less."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import trio
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.devices import cut, exporter_for, parse_cluster, simulate
from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.export import perfetto_trace
from partita.errors import InvalidArgumentError
from partita.graph import Graph, GraphBuilder
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.protos import perfetto_pb2
from partita.graph.structured import while_loop
from tests.devices.timing.representatives.steps import played, summed
from tests.devices.timing.test_simulation_laws import random_parts, run
from tests.strategies import cpu

from .drawn import timelines

reading = pytest.importorskip(
    "tests.devices.timing.export.perfetto_reading",
    reason="the package perfetto reads the traces, with protobuf 6.31 or later: pip install 'partita[peers]'",
)
assert_found_again, messages = reading.assert_found_again, reading.messages
_NAMES = {"PerfettoTrace": "Trace"}
HOSTS = parse_cluster(
    '[[device]]\njob = "w"\ntasks = 2\nspec = "H100-SXM"\ncount = 2\n[[nic]]\nbandwidth = "10 GB/s"\nlatency = "5 us"\n'
)


@given(timelines())
def test_any_timeline_is_found_again(timeline: Timeline) -> None:
    """Events that overlap, of 0 ns, with any texts, numbers and causes, on devices of any name."""
    assert_found_again(timeline)


@given(random_parts(), st.integers(0, 50))
def test_a_simulated_step_is_found_again(parts: dict[str, Graph], latency_ns: int) -> None:
    """Of any graph on any devices: transfers have arrows, links and memories have counters."""
    timeline = run(parts, latency_ns=latency_ns)
    if timeline is None:
        return
    trace = assert_found_again(timeline)
    totals = {trace.paths[uuid][:3] for uuid in trace.counters if trace.paths[uuid][-1] == "device memory"}
    assert len(totals) == sum(size > 0 for (_, place), size in timeline.peak_bytes.items() if place == "device")


def reduced() -> Timeline:
    """An all-reduce of four GPUs of two hosts, one of which is late."""
    b = GraphBuilder()
    devices = [device.name for device in HOSTS if device.type == "GPU"]
    fetches = []
    for rank, device in enumerate(devices):
        with b.device(device):
            x = b.placeholder(f"x{rank}", "float32", (256, 256))
            y = b.op("MatMul", x, x, name="late")[0] if rank == 2 else x
            seat: tuple[int, int, int, list[int]] = (len(devices), 1, 1, [])
            fetches.append(b.op("CollectiveReduceV2", y, *seat, merge_op=b"Add", final_op=b"Id", name=f"sum{rank}")[0])
    feeds = {f"x{rank}": (256, 256) for rank in range(len(devices))}
    return simulate(cut(b, HOSTS, feeds=list(feeds), fetches=fetches), HOSTS, feeds=feeds)


def test_arrows_of_a_collective_lead_from_the_last_member_to_the_others() -> None:
    """From what it came late for, through its own part, to the part of each other member."""
    trace = assert_found_again(reduced())
    arrows = [(source.name, target.name) for source, target in trace.arrows if target.category == "collective"]
    assert sorted(arrows) == sorted([("late", "sum2")] * 3 + [("sum2", f"sum{rank}") for rank in (0, 1, 3)])


def test_a_copy_leads_through_its_arrival_to_the_op_that_follows() -> None:
    """The arrival takes the latency of the route, on a lane of its own beside what is computed in the meantime."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (64, 64))
    b.op("Neg", b.op("Exp", x, name="exp", device="/device:GPU:0"), name="neg", device="/device:GPU:1")
    parts = cut(b, "gpu:2", feeds=["x"], fetches=["neg"])
    trace = assert_found_again(simulate(parts, "gpu:2", feeds={"x": (64, 64)}))
    assert [(source.category, target.category) for source, target in trace.arrows][-2:] == [
        ("copy", "recv"),
        ("recv", "compute"),
    ]
    assert trace.arrows[-1][1].name == "neg"


def test_a_folded_loop_says_for_how_many_runs_an_event_stands() -> None:
    """And in which iterations they are."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (64, 64))
    last = while_loop(
        b, lambda i, _: b.op("Less", i, 1000)[0], lambda i, v: (b.op("AddV2", i, 1), b.op("Exp", v)), [0, x]
    )
    timeline = simulate(cut(b, "cpu:1", feeds=["x"], fetches=[last[1]]), "cpu:1", feeds={"x": (64, 64)})
    runs = [event.arguments.get("runs", 1) for event in assert_found_again(timeline).events[1:]]
    assert max(runs) > 900
    assert sum(runs) == timeline.columns.runs.sum()


def test_devices_that_stand_for_others_say_so() -> None:
    """In the description of their track, and with the mesh in what is told about the step."""
    timeline = played(summed("tp"), Mesh(tp=4), parse_cluster('[[device]]\nspec = "H100-SXM"\ncount = 4\n'))
    trace = assert_found_again(timeline)
    (device,) = timeline.representatives
    described = [track.description for track in trace.kinds.values() if track.description]
    assert f"{device}, H100-SXM, stands for 4 devices" in described
    told = trace.events[0].arguments["representatives"]
    assert told == {"mesh": timeline.representatives.mesh, "devices": {device: 4}}


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3))
async def test_a_session_of_several_steps_is_found_again(rounds: list[int]) -> None:
    """Steps under way together and one after the other; each event has the number of its step."""
    b = GraphBuilder()
    x = b.constant(np.ones((4, 4), np.float32), device=cpu(0))
    b.op("Neg", b.op("Exp", x, device=cpu(1)), name="y", device=cpu(0))
    async with open_session(b.graph_def(), "cpu:2", clock="virtual", keep_timeline=True) as session:
        for together in rounds:
            async with trio.open_nursery() as nursery:
                for _ in range(together):
                    nursery.start_soon(session.run, ["y"])
        trace = assert_found_again(session.whole_timeline())
    assert {event.arguments["step"] for event in trace.events[1:]} == set(range(1, sum(rounds) + 1))
    assert all(trace.paths[uuid][0] == "links" for uuid in trace.counters)


def test_what_has_too_long_a_time_is_refused(tmp_path: Path) -> None:
    """Rather than written with another time."""
    for end_ns, fits in ((2**63 - 1, True), (2**63, False)):
        timeline = Timeline([TimelineEvent("/device:CPU:0", "compute", "a", "Neg", "compute", 0, end_ns)])
        if fits:
            assert reading.read(perfetto_trace(timeline)).events[-1].end_ns == end_ns
            continue
        with pytest.raises(InvalidArgumentError, match=r"9223372036854775808 ns .* 63 bits"):
            exporter_for(tmp_path / "a.pftrace").write(timeline, tmp_path / "a.pftrace")
        assert not list(tmp_path.iterdir())


def test_fields_are_those_of_perfetto() -> None:
    """Every field of our messages has the number, the type and the packing that Perfetto reads; arrows are fixed64."""
    for name, ours in perfetto_pb2.DESCRIPTOR.message_types_by_name.items():
        if name == "InternedText":  # Perfetto has one for each kind of text, the text of which is bytes or a string
            continue
        theirs = getattr(messages, _NAMES.get(name, name)).DESCRIPTOR.fields_by_name
        for it in ours.fields:
            other = theirs[it.name]
            assert (it.number, it.type, it.is_repeated, it.is_packed) == (
                *(other.number, other.type, other.is_repeated),
                other.is_packed,
            )
    for name in ("EventName", "EventCategory", "DebugAnnotationName", "InternedString"):
        fields = getattr(messages, name).DESCRIPTOR.fields
        assert [(it.number, it.name in ("iid", "name", "str")) for it in fields] == [(1, True), (2, True)]
    flows = perfetto_pb2.TrackEvent.DESCRIPTOR.fields_by_name
    assert [(flows[name].number, flows[name].type) for name in ("flow_ids", "terminating_flow_ids")] == [
        (47, flows["flow_ids"].TYPE_FIXED64),
        (48, flows["flow_ids"].TYPE_FIXED64),
    ]


@pytest.mark.skipif(
    shutil.which("trace_processor_shell") is None, reason="no trace_processor_shell on PATH, which reads traces"
)
def test_the_trace_processor_finds_everything(tmp_path: Path) -> None:
    """Slices, arrows and values of counters, as many as the timeline has, and no error among its statistics."""
    timeline = reduced()
    trace = assert_found_again(timeline)
    (tmp_path / "step.pftrace").write_bytes(perfetto_trace(timeline))
    queries = (
        "select count(*) from slice",
        "select count(*) from flow",
        "select count(*) from counter",
        "select ifnull(sum(value), 0) from stats where severity != 'info'",
    )
    counts = [_asked(query, tmp_path) for query in queries]
    assert counts == [len(trace.events), len(trace.arrows), sum(map(len, trace.counters.values())), 0]


def _asked(query: str, folder: Path) -> int:
    (folder / "query.sql").write_text(f"{query};\n")
    words = ["trace_processor_shell", "-q", str(folder / "query.sql"), str(folder / "step.pftrace")]
    answer = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return int(answer.split()[-1])
