"""The figures on a page are those of its timeline, to the last digit that the terminal prints."""

from __future__ import annotations

from partita.devices.timing.memory.kinds import MemoryPlace
from partita.devices.timing.timeline import Timeline
from partita.devices.units import format_bytes, format_ns
from partita.scenarios.report.limits import limits
from tests.browser.reading import column, panel, rows, tiles
from tests.browser.reports import Reports
from tests.browser.visits import Visits

NOTHING = "\N{EN DASH}"


def percent(share: float) -> str:
    """As the terminal prints it."""
    return f"{100 * share:.1f} %"


def memory_bytes(timeline: Timeline, device: str, place: MemoryPlace) -> int:
    """How large a memory is: that of a device, or the one of its host."""
    assert timeline.cluster is not None
    spec = timeline.cluster.find(device).spec
    return spec.memory_bytes if place == "device" else spec.host_memory_bytes


def test_the_headline_is_the_step_time_and_what_limits_it(visits: Visits, reports: Reports) -> None:
    """The parts of the critical path, longest first, add up to the step."""
    timeline = reports.timeline
    assert timeline.cluster is not None
    page = visits.open(reports.step)
    figures = tiles(page, "In short")
    parts = limits(timeline, timeline.cluster)
    assert figures["step time"] == format_ns(timeline.makespan_ns)
    assert figures["limited by"] == parts[0][0]
    shares = {memory: size / memory_bytes(timeline, *memory) for memory, size in timeline.peak_bytes.items()}
    assert figures["fullest memory"] == format_bytes(
        timeline.peak_bytes[max(shares, key=lambda memory: shares[memory])]
    )
    shown = panel(page, "In short").locator("ol.limits li")
    named = [item.locator(".what bdi").inner_text() for item in shown.all()]
    assert named[:6] == [what for what, _ in parts[:6]]
    assert [item.locator(".figure").inner_text() for item in shown.all()][:6] == [format_ns(ns) for _, ns in parts[:6]]
    low, high = timeline.interval_ns()
    assert f"80 % of steps: {format_ns(low)} to {format_ns(high)}" in panel(page, "In short").inner_text()


def test_ops_are_the_totals_of_the_timeline(visits: Visits, reports: Reports) -> None:
    """Runs, time, share of all time, and bytes of each op, in the order of the terminal."""
    totals = reports.timeline.totals_by_op()
    time = sum(total.time_ns for total in totals)
    shown = rows(visits.open(reports.step), "Table of ops")
    assert [row[:4] for row in shown] == [
        [total.op, f"{total.runs:,}", format_ns(total.time_ns), percent(total.time_ns / time)] for total in totals
    ]
    assert [row[-1] for row in shown] == [format_bytes(total.bytes) if total.bytes else NOTHING for total in totals]


def test_the_critical_path_is_that_of_the_timeline(visits: Visits, reports: Reports) -> None:
    """Its nodes in order, and when each starts."""
    path = reports.timeline.critical_path()
    shown = rows(visits.open(reports.step), "Events of the critical path")
    assert [row[0] for row in shown] == [event.node for event in path]
    assert [row[3] for row in shown] == [format_ns(event.start_ns) for event in path]


def test_memory_peaks_are_those_of_the_timeline(visits: Visits, reports: Reports) -> None:
    """Of each memory that is used: the peak, by category, and the largest tensors."""
    timeline = reports.timeline
    page = visits.open(reports.step)
    choice = page.get_by_role("combobox", name="Memory of")
    names = choice.locator("option").all_inner_texts()
    peaks = []
    for name in names:
        choice.select_option(label=name)
        table = rows(page, f"Memory of {name} by category")
        peaks.append(table[-1][1])
        assert table[-1][0] == "in all"
        assert rows(page, f"Largest tensors of {name}")
    assert sorted(peaks) == sorted(format_bytes(size) for size in timeline.peak_bytes.values() if size)


def test_links_are_those_of_the_timeline(visits: Visits, reports: Reports) -> None:
    """What each carried, and for how much of the step it was in use."""
    timeline = reports.timeline
    expected = set()
    for link in timeline.links:
        loads = timeline.link_loads(link)
        carried = round(sum((end - start) * rate / 1e9 for start, end, rate in loads))
        used = sum(end - start for start, end, _ in loads)
        expected.add((format_bytes(carried), percent(used / timeline.makespan_ns)))
    shown = rows(visits.open(reports.step), "Use of links")
    assert len(shown) == len(timeline.links)
    assert {(row[3], row[4]) for row in shown} == expected


def test_assumptions_and_sources_are_those_of_the_timeline(visits: Visits, reports: Reports) -> None:
    """Every assumption has a row; sources have their runs."""
    timeline = reports.timeline
    page = visits.open(reports.step)
    assert len(rows(page, "Assumptions")) == len(timeline.assumed)
    sources = {row[0]: row[1] for row in rows(page, "Sources of the times")}
    assert sources.pop("links")  # those of transfers, which the terminal does not count
    assert sources == {source: f"{runs:,}" for source, runs in timeline.sources.items()}


def test_a_comparison_has_both_steps(visits: Visits, reports: Reports) -> None:
    """Nodes of one alone vanished; each node has the times that it has in either timeline."""
    before, after = reports.timeline, reports.other_timeline
    page = visits.open(reports.compared)
    text = panel(page, "Comparison").inner_text()
    assert format_ns(before.makespan_ns) in text
    assert format_ns(after.makespan_ns) in text
    shown = {row[0]: row for row in rows(page, "Nodes of both runs")}
    assert shown["class"][2] == "vanished"
    assert shown["layer1/product"][2] == "slower"
    times = [
        sum(
            event.duration_ns * event.runs
            for event in timeline.events
            if event.node == "layer1/product" and event.occupies
        )
        for timeline in (before, after)
    ]
    assert shown["layer1/product"][3:5] == [format_ns(time) for time in times]


def test_a_plan_has_its_table(visits: Visits, reports: Reports) -> None:
    """As many rows as the terminal prints, and the timeline of the one that was simulated."""
    page = visits.open(reports.plan)
    assert len(column(page, "Table of plans", 0)) >= 5
    panel(page, "Timeline").wait_for()


def test_a_measured_step_names_what_it_lacks(visits: Visits, reports: Reports) -> None:
    """A RunMetadata has neither the use of links nor causes; what it has is there."""
    page = visits.open(reports.measured)
    text = panel(page, "In short").inner_text()
    assert "Not on this page" in text
    assert panel(page, "Critical path").count() == 0
    assert rows(page, "Table of ops")
    assert panel(page, "Timeline").is_visible()
