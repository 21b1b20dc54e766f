"""A timeline in a notebook, and as a short text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from partita.devices import cut, simulate
from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.events import Events, TextColumn
from partita.graph import load_graph_def
from tests.graph.display.checked_html import checked_texts
from tests.graph.display.test_html import HOSTILE, TEXTS

MLP = "scenarios/examples/mlp.pb"


def test_a_step() -> None:
    """Picture, devices, ops, and the time of nodes by scope."""
    timeline = simulate(cut(load_graph_def(MLP), "gpu:2", fetches=["loss"]), "gpu:2")
    told = checked_texts(timeline._repr_html_())
    assert told.startswith("Timeline of 54.009 us, 37 events (op times partly from measurements)")
    curves = "memory of cpu:0  peak 35.00 KiB of 16.00 GiB", "host -> gpu:0 (PCIe4 x16)  at most"
    for words in (*curves, "3 devices", "time by op", "MatMul", "layer1/"):
        assert words in told
    assert repr(timeline) == "<Timeline of 54.009 us: 37 events>"


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=10))
def test_any_texts(rows: list[tuple[str, str, str]]) -> None:
    """Names of devices, streams and nodes from a file of anybody."""
    events = [TimelineEvent(*texts, "MatMul", "compute", n, n + 1) for n, texts in enumerate(rows)]
    checked_texts(Timeline(events)._repr_html_())


def test_many_devices_and_nodes_are_cut() -> None:
    """What is left out is counted."""
    names = [f"/job:w/replica:0/task:{n}/device:GPU:0" for n in range(500)]
    nodes = enumerate(names)
    events = [TimelineEvent(name, "compute", f"{HOSTILE[6]}{n}", "MatMul", "compute", 0, 9) for n, name in nodes]
    told = checked_texts(Timeline(events)._repr_html_())
    assert "... and 492 more devices" in told
    assert "... and 460 more" in told
    assert "for which there is no room here" in told


def test_the_short_text_looks_at_no_event() -> None:
    """However many events there are: texts are made when somebody reads them, here never."""
    columns = Events.of([TimelineEvent("d", "s", "n", "Neg", "compute", 0, 5)] * 3)

    def unread() -> list[str]:
        pytest.fail("a text was made")

    device, stream, node, op = (
        TextColumn(column.numbers, unread) for column in (columns.device, columns.stream, columns.node, columns.op)
    )
    columns = replace(columns, device=device, stream=stream, node=node, op=op)
    assert repr(Timeline(columns)) == "<Timeline of 5 ns: 3 events>"
