"""Laws of the page of a step: what it shows is what the timeline says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from partita.actors import open_session
from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.events import OCCUPYING
from partita.devices.timing.export.run_metadata import run_metadata
from partita.devices.timing.tracing.recorded_timeline import recorded_timeline
from partita.scenarios.report.page.html import page_bytes
from partita.scenarios.report.page.step_page import step_page
from tests.actors.running.virtual.test_session_timelines import graph
from tests.devices.timing.saved.drawn import timelines
from tests.devices.timing.saved.examples import EXAMPLES
from tests.scenarios.report.page.pages import ReadPage, read_page


def page_of(timeline: Timeline, compare: Timeline | None = None) -> ReadPage:
    """The page of a timeline, read back."""
    return read_page(page_bytes(step_page(timeline, title="step", compare=compare)))


@given(timelines(), timelines())
def test_a_drawn_timeline_is_on_its_page(timeline: Timeline, other: Timeline) -> None:
    """To the last field of its events, beside another one, whatever the names and however large the numbers."""
    page = page_of(timeline, other)
    for number, each in enumerate((timeline, other)):
        run = page.run(number)
        assert page.events(number) == each.events
        assert (run["makespan_ns"], run["events"]) == (each.makespan_ns, len(each.events))
        assert (run["flops"], run["transferred_bytes"]) == (each.flops, each.transferred_bytes)
        assert [tuple(op.values()) for op in run["ops"]] == each.totals_by_op()
        assert {row["source"]: row["runs"] for row in run["sources"][: len(each.sources)]} == each.sources
        assert run["memory"] == run["links"] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_simulated_step_is_on_its_page(name: str) -> None:
    """Events, busy shares, communication, and what limits the step, which adds up to the makespan."""
    timeline = EXAMPLES[name]()
    page = page_of(timeline)
    run, texts = page.run(), page.run()["texts"]
    assert page.events() == timeline.events
    assert sum(limit["ns"] for limit in run["limits"]) == timeline.makespan_ns
    path = [timeline.events[number] for number in page.array(run["critical_path"])]
    assert path == timeline.critical_path()
    assert [event["node"] for event in run["path"]["events"]] == [event.node for event in path]
    assert sum(event["ns"] for event in run["path"]["events"]) + path[0].start_ns == timeline.makespan_ns
    assert sum(op["ns"] for op in run["path"]["ops"]) == sum(event["ns"] for event in run["path"]["events"])
    assert run["interval"] == list(timeline.interval_ns())
    assert {device["name"] for device in run["devices"]} == set(timeline.devices)
    for device in run["devices"]:
        busy = device["busy"], device["peak_bytes"], (device["exposed_ns"], device["hidden_ns"])
        full = device["name"]
        assert busy == (
            timeline.busy_fraction(full),
            timeline.peak_memory_bytes(full),
            timeline.communication(full),
        )
    lanes = {(texts["device"][lane["device"]], texts["stream"][lane["stream"]]): lane["busy"] for lane in run["lanes"]}
    streams = [(device, stream) for device in timeline.devices for stream in timeline.streams(device)]
    assert lanes == {each: timeline.busy_fraction(*each) for each in streams}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_memory_on_a_page_has_its_peaks(name: str) -> None:
    """The sum of the categories is at most the peak, and reaches it first where the timeline says."""
    timeline = EXAMPLES[name]()
    page = page_of(timeline)
    memories = {(memory["device"], memory["place"]): memory for memory in page.run()["memory"]}
    assert memories.keys() == {memory for memory, size in timeline.peak_bytes.items() if size}
    for (device, place), memory in memories.items():
        peak = timeline.memory(device, place)
        total = np.sum([page.arrays[category["array"]] for category in memory["categories"]], axis=0)
        assert total.max() == memory["peak_bytes"] == peak.peak_bytes
        assert page.array(memory["at"])[int(total.argmax())] == memory["at_ns"] == peak.at_ns
        assert memory["limit_bytes"] == peak.limit_bytes
        assert memory["tensor_count"] == len(peak.tensors)
        assert [tuple(tensor.values()) for tensor in memory["tensors"]] == list(peak.tensors[:20])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_links_on_a_page_carry_what_they_carried(name: str) -> None:
    """Each with its loads; the bytes of a link are those of the copies that it limited, or more."""
    timeline = EXAMPLES[name]()
    page = page_of(timeline)
    assert len(page.run()["links"]) == len(timeline.links)
    for record, link in zip(page.run()["links"], timeline.links, strict=True):
        at_ns, rates = page.array(record["at"]), page.array(record["rate"])
        loads = [(*span, rate) for span, rate in zip(pairwise(at_ns), rates, strict=False) if rate]
        assert loads == timeline.link_loads(link)
        assert record["bytes"] == pytest.approx(sum((end - begin) * rate for begin, end, rate in loads) / 1e9, abs=1)
        assert 0 < record["share"] <= 1
        assert record["peak_rate"] <= link.bandwidth_bytes_per_s * (1 + 1e-9)
        of_link = (e.bytes * e.runs for e in timeline.events if e.kind == "copy" and e.provenance == link.name)
        assert record["bytes"] >= sum(of_link) - 1


def test_a_single_transfer_fills_each_link_of_its_route_with_its_bytes() -> None:
    """No other load is on these links, so theirs are the bytes of the step."""
    timeline = EXAMPLES["gpu"]()
    assert sum(link["bytes"] for link in page_of(timeline).run()["links"]) >= timeline.transferred_bytes > 0


def test_what_a_page_lacks_is_named_with_the_reason() -> None:
    """The trace of a step has the times of ops alone; a simulated step lacks nothing."""
    timeline = EXAMPLES["gpu"]()
    page = page_of(timeline, recorded_timeline(run_metadata(timeline)))
    missing = {(each["run"], each["panel"]): each["why"] for each in page.document["missing"]}
    assert [panel for run, panel in missing if run == 0] == []
    assert {panel for run, panel in missing if run == 1} == {"critical path", "memory", "links", "cluster"}
    assert all(missing.values())
    of_trace = page.run(1)
    assert (of_trace["critical_path"], of_trace["cluster"], of_trace["interval"]) == (None, None, None)
    assert "without bounds" in of_trace["interval_why"]


def test_too_little_memory_is_the_error_of_the_headline() -> None:
    """With how much there is; a step that fits has none."""
    figures = {figure["label"]: figure for figure in page_of(EXAMPLES["out_of_memory"]()).document["headline"]}
    assert figures["fullest memory"]["state"] == "error"
    assert "does not fit" in figures["fullest memory"]["note"]
    assert not [f for f in page_of(EXAMPLES["gpu"]()).document["headline"] if f["state"] == "error"]


def test_times_that_rest_on_assumptions_alone_are_a_warning_of_the_headline() -> None:
    """Those of the roofline; with measured ones there is none."""
    event = TimelineEvent("/device:CPU:0", "compute", "a", "Neg", "compute", 0, 9)
    for provenance, state in (("roofline", "warning"), ("measured", "")):
        page = page_of(Timeline([event._replace(provenance=provenance)]))
        (figure,) = [figure for figure in page.document["headline"] if figure["label"] == "op times"]
        assert figure["state"] == state


def test_sources_have_the_time_and_the_bounds_of_their_runs() -> None:
    """Of all runs, of transfers and collectives too; a source that does not say how sure it is has no bounds."""
    timeline = EXAMPLES["collective"]()
    rows = {row["source"]: row for row in page_of(timeline).run()["sources"]}
    many = timeline.representatives.multiplicity
    timed = [event for event in timeline.events if event.kind in OCCUPYING and event.duration_ns]
    assert sum(row["time_ns"] for row in rows.values()) == many * sum(e.duration_ns * e.runs for e in timed)
    assert "collectives" in rows
    for row in rows.values():
        assert row["low_ns"] is None or row["low_ns"] <= row["time_ns"] <= row["high_ns"]
        assert row["meaning"]


async def test_the_timeline_of_a_session_has_a_page() -> None:
    """Without memory and without an interval, and the page says why."""
    async with open_session(graph(), "cpu:2,gpu:1", clock="virtual", keep_timeline=True) as session:
        await session.run([], targets=["crossing", "kernels"])
        await session.run([], targets=["called"])
        timeline = session.whole_timeline()
    page = page_of(timeline)
    assert page.events() == timeline.events
    assert page.run()["interval"] is None
    assert [each["panel"] for each in page.document["missing"]] == ["memory"]
    assert {device["peak_bytes"] for device in page.run()["devices"]} == {None}


def test_the_same_timeline_gives_the_same_bytes() -> None:
    """So that a page can be compared, and kept in a repository."""
    page = step_page(EXAMPLES["machines"](), title="step")
    assert page_bytes(page) == page_bytes(page)
