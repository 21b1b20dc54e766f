"""What a page leaves out of a step with very much of something, and that it says so."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.timing import Timeline
from partita.scenarios.report.page import link_record, memory_record, run_record, thinning
from tests.devices.timing.saved.examples import EXAMPLES
from tests.scenarios.report.page.test_step_page import page_of


def said(timeline: Timeline) -> dict[str, str]:
    """By panel what its page says of it."""
    return {each["panel"]: each["why"] for each in page_of(timeline).document["missing"]}


def test_of_many_memories_the_fullest_have_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with the largest share of their size in use, in the order of devices."""
    timeline = EXAMPLES["machines"]()
    every = page_of(timeline).run()["memory"]
    monkeypatch.setattr(memory_record, "MOST_MEMORIES", 2)
    shown = page_of(timeline).run()["memory"]
    assert len(shown) == 2
    left_out = [memory for memory in every if memory["device"] not in {each["device"] for each in shown}]
    fullness = [[m["peak_bytes"] / (m["limit_bytes"] or float("inf")) for m in some] for some in (shown, left_out)]
    assert min(fullness[0]) >= max(fullness[1])
    assert f"{len(every) - 2:,} more memories" in said(timeline)["memory"]


def test_of_many_links_those_that_carried_most_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """And how many more there are."""
    timeline = EXAMPLES["machines"]()
    every = page_of(timeline).run()["links"]
    monkeypatch.setattr(link_record, "MOST_LINKS", 2)
    shown = page_of(timeline).run()["links"]
    assert sorted(link["bytes"] for link in shown) == sorted(link["bytes"] for link in every)[-2:]
    assert f"{len(every) - 2:,} more links" in said(timeline)["links"]


def test_thinned_curves_say_so_and_keep_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures beside them are those of the timeline as before."""
    timeline = EXAMPLES["loop"]()
    monkeypatch.setattr(thinning, "_SPANS", 1)
    for room in (thinning, memory_record, link_record):
        monkeypatch.setattr(room, "MOST_POINTS", 6)
    page = page_of(timeline)
    texts = " ".join(each["why"] for each in page.document["missing"])
    assert "peaks are exact" in texts
    for memory in page.run()["memory"]:
        total = np.sum([page.arrays[category["array"]] for category in memory["categories"]], axis=0)
        peak = timeline.memory(memory["device"], memory["place"])
        assert len(total) <= 6
        assert (total.max(), page.array(memory["at"])[int(total.argmax())]) == (peak.peak_bytes, peak.at_ns)


def test_a_long_step_is_not_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its dependency bound takes as long to find as the step; the page says where it is printed."""
    timeline = EXAMPLES["gpu"]()
    assert page_of(timeline).run()["dependency_bound_ns"] == timeline.dependency_bound_ns
    monkeypatch.setattr(run_record, "MOST_TO_PLAY_AGAIN", 3)
    assert page_of(timeline).run()["dependency_bound_ns"] is None
    assert "--json" in said(timeline)["dependency bound"]
