"""Laws of `.timeline` files: what is read is what was written, to the last field; damage is one error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from partita.actors import open_session
from partita.devices import exporter_for
from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.memory.categories import MEMORY_CATEGORIES
from partita.devices.timing.timeline_file import timeline_bytes
from partita.errors import InternalError, InvalidArgumentError, NotFoundError
from tests.actors.running.virtual.test_session_timelines import graph
from tests.devices.timing.saved.answers import assert_equal, reloaded
from tests.devices.timing.saved.drawn import timelines
from tests.devices.timing.saved.examples import EXAMPLES


@given(timelines())
def test_drawn_timelines_come_back(timeline: Timeline) -> None:
    """With equal names, runs, unknown bounds, numbers beyond 64 bits; and what is read gives the same bytes again."""
    content, read = timeline_bytes(timeline), reloaded(timeline)
    assert_equal(read, timeline)
    assert timeline_bytes(timeline) == content == timeline_bytes(read)


@pytest.mark.parametrize("name", EXAMPLES)
def test_simulated_steps_come_back(name: str) -> None:
    """Loops, machines with slow times, GPUs with host memory, too little memory, representatives, collectives."""
    timeline = EXAMPLES[name]()
    read = reloaded(timeline)
    assert_equal(read, timeline)
    assert timeline_bytes(read) == timeline_bytes(timeline)


def test_the_examples_have_what_they_are_for() -> None:
    """Else the law above would hold for nothing."""
    assert EXAMPLES["loop"]().columns.all_runs is not None
    assert EXAMPLES["out_of_memory"]().shortages
    assert EXAMPLES["representatives"]().representatives
    assert len(EXAMPLES["machines"]().links) > 2
    assert any(place == "host" for _, place in EXAMPLES["gpu"]().peak_bytes)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_curve_of_a_memory_has_its_peak(name: str) -> None:
    """First reached where the peak is, with the categories of its tensors; at the end of the step nothing is in use."""
    timeline = EXAMPLES[name]()
    for device, place in timeline.peak_bytes:
        peak, curve = timeline.memory(device, place), timeline.memory_over_time(device, place)
        assert tuple(curve.by_category) == MEMORY_CATEGORIES
        assert curve.at_ns[0] == 0
        assert (curve.at_ns[1:] > curve.at_ns[:-1]).all()
        at = int(curve.total.argmax())
        assert (curve.total[at], curve.at_ns[at]) == (peak.peak_bytes, peak.at_ns)
        assert {name: values[at] for name, values in curve.by_category.items()} == peak.by_category
        assert curve.total[-1] == 0


async def test_the_timeline_of_a_session_comes_back() -> None:
    """With its steps, of which one failed, and its present time."""
    async with open_session(graph(), "cpu:2,gpu:1", clock="virtual", keep_timeline=True) as session:
        await session.run([], targets=["crossing", "kernels"])
        with pytest.raises(InternalError, match="on purpose"):
            await session.run([], targets=["failing"])
        await session.run([], targets=["called"])
        whole = session.whole_timeline()
        assert [step.state for step in whole.steps] == ["done", "failed", "done"]
        assert_equal(reloaded(whole), whole)


def test_save_and_load(tmp_path: Path) -> None:
    """`save` writes what `load` reads, as does the exporter of --trace; nothing else is left in the folder."""
    timeline, path = EXAMPLES["gpu"](), tmp_path / "step.timeline"
    timeline.save(path)
    content = path.read_bytes()
    assert_equal(Timeline.load(path), timeline)
    exporter_for(path).write(timeline, path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """What was there stays where a timeline cannot be saved."""
    path = tmp_path / "step.timeline"
    EXAMPLES["gpu"]().save(path)
    content = path.read_bytes()
    backwards = Timeline([TimelineEvent("d", "compute", "a", "Neg", "compute", 0, 9, cause=0)])
    with pytest.raises(InvalidArgumentError, match="cause"):
        backwards.save(path)
    with pytest.raises(FileNotFoundError):
        EXAMPLES["gpu"]().save(tmp_path / "nowhere" / "step.timeline")
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_the_suffix_is_required(tmp_path: Path) -> None:
    """Another one says what to write; a missing file says so."""
    with pytest.raises(InvalidArgumentError, match=r"must end in \.timeline"):
        EXAMPLES["gpu"]().save(tmp_path / "step.zip")
    with pytest.raises(NotFoundError, match="cannot be read"):
        Timeline.load(tmp_path / "step.timeline")
