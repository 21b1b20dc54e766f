"""What loops keep, against TensorFlow's allocator: gradients of both kinds of loops, maps, recurrent layers, queues.

`data` is made by `tools/make_loop_memory.py`, which says how the peaks were measured.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import cut, simulate
from partita.devices.timing import Timeline
from partita.devices.timing.playing import folding
from partita.devices.timing.playing.folding import Folding
from partita.graph.graphdef.files import load_graph_def

DATA = Path(__file__).parent / "data"
PEAKS: dict[str, list[int]] = json.loads((DATA / "peaks.json").read_text())["peaks"]


def simulated(name: str) -> Timeline:
    """The step of a case."""
    parts = cut(DATA / f"{name}.graph.pb", "cpu:1", feeds=["x"], fetches=["out"])
    return simulate(parts, "cpu:1", feeds={"x": ()})


def peak(timeline: Timeline) -> int:
    (size_bytes,) = timeline.peak_bytes.values()
    return size_bytes


def test_there_are_cases_of_each_kind() -> None:
    """Loops of both kinds, one iteration at a time and ten; arrays, stacks, lists, queues, staging areas."""
    assert len(PEAKS) == 39
    assert {path.name.removesuffix(".graph.pb") for path in DATA.glob("*.pb")} == set(PEAKS)


@pytest.mark.parametrize("name", PEAKS)
def test_the_peak_is_that_of_the_allocator(name: str) -> None:
    """Within a tenth of the peaks of five steps."""
    least, most = PEAKS[name]
    assert 0.9 * least <= peak(simulated(name)) <= 1.1 * most


@pytest.mark.parametrize("name", PEAKS)
def test_folded_iterations_count_as_if_they_were_played(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the loop is; in the list of tensors a block of copies is one line.

    Loops of which that cannot be told are played: those that replace elements, have lists of lists, are in each other.
    """
    monkeypatch.setattr(folding, "FEWEST", 3)
    folded = simulated(name)
    monkeypatch.setattr(Folding, "check", lambda seen: seen.begun.clear())
    played = simulated(name)
    assert folded.peak_bytes == played.peak_bytes
    assert folded.makespan_ns == played.makespan_ns
    assert sum(tensor.bytes for tensor in folded.memory(folded.devices[0]).tensors) == peak(played)


@pytest.mark.parametrize("name", [name for name in PEAKS if not name.startswith(("power_long", "lstm"))])
async def test_a_virtual_step_keeps_as_much(name: str) -> None:
    """Values or not, the same tensors are held."""
    async with open_session(load_graph_def(DATA / f"{name}.graph.pb"), "cpu:1", clock="virtual") as session:
        await session.run("out:0", {"x": np.float32(0.5)})
        assert session.timeline().peak_bytes == simulated(name).peak_bytes
