"""The picture of a step as text: bars, and curves of the fullest memory and the busiest links on the same axis."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from hypothesis import given, strategies as st

from partita.devices import cut, simulate
from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.drawing import fullest_memory
from partita.graph import GraphBuilder

HEIGHTS = " ▁▂▃▄▅▆▇█"
STEPS = st.tuples(st.integers(1, 1 << 20), st.lists(st.integers(0, 2), min_size=1, max_size=10))


def chain(size: int, devices: list[int]) -> Timeline:
    """So many elements go through ops one after another, on devices 0 to 2."""
    b = GraphBuilder()
    x = b.op("Fill", b.constant([size], dtype="int32"), b.constant(0.0), name="made")
    for number, device in enumerate(devices):
        x = b.op("Neg", x, name=f"n{number}", device=f"/device:GPU:{device - 1}" if device else "/device:CPU:0")
    return simulate(cut(b, "gpu:2", targets=[f"n{len(devices) - 1}"]), "gpu:2")


def curves(timeline: Timeline, width: int) -> dict[str, str]:
    """By the first words of the line above it, the curve of a memory or link."""
    lines = timeline.render(width).splitlines()
    return {
        lines[number - 1].partition("  ")[0]: line[3 : 3 + width]
        for number, line in enumerate(lines)
        if line.endswith((" %  full", " %  in use"))
    }


def height(share: Fraction | float) -> str:
    """The character of a share of 1."""
    return HEIGHTS[min(ceil(8 * share - 1e-9), 8)]


@given(STEPS, st.integers(1, 50))
def test_a_memory_has_the_most_of_each_part(step: tuple[int, list[int]], width: int) -> None:
    """Of the fullest memory the most bytes in use in each part of the step, by its peak: some part is full."""
    timeline = chain(*step)
    memory = fullest_memory(timeline)
    assert memory is not None
    curve, peak = timeline.memory_over_time(*memory), timeline.peak_bytes[memory]
    ends = [*curve.at_ns[1:].tolist(), timeline.makespan_ns]
    expected = ""
    for part in range(width):
        first, last = (Fraction((part + more) * timeline.makespan_ns, width) for more in (0, 1))
        spans = zip(curve.at_ns.tolist(), ends, curve.total.tolist(), strict=True)
        expected += height(max(total for start, end, total in spans if start < last and end > first) / peak)
    place = " in its host" if memory[1] == "host" else ""
    assert curves(timeline, width)[f"memory of {memory[0]}{place}"] == expected
    assert "█" in expected


@given(STEPS, st.integers(1, 50))
def test_a_link_has_its_mean_rate(step: tuple[int, list[int]], width: int) -> None:
    """In each part, by what it can carry; the busiest four are drawn."""
    timeline = chain(*step)
    drawn = curves(timeline, width)
    assert len(drawn) == 1 + min(4, len(timeline.links))
    for link in timeline.links:
        if link.name not in drawn:
            continue
        for part, character in enumerate(drawn[link.name]):
            first, last = (Fraction((part + more) * timeline.makespan_ns, width) for more in (0, 1))
            carried = sum(
                max(Fraction(0), min(last, Fraction(end)) - max(first, Fraction(start))) * Fraction(rate)
                for start, end, rate in timeline.link_loads(link)
            )
            share = float(carried / (last - first) / link.bandwidth_bytes_per_s)
            assert character in {height(share - 1e-6), height(share + 1e-6 if share else 0)}


def test_a_timeline_without_a_cluster_has_bars_alone() -> None:
    """Events of a file know neither sizes of memories nor links."""
    timeline = Timeline([TimelineEvent("d", "compute", "n", "Neg", "compute", 0, 9)], peak_bytes={("d", "device"): 5})
    assert timeline.render(4) == "makespan 9 ns, 1 events\nd  peak memory 5 B\n  |████| 100.0 %  compute"
    assert fullest_memory(timeline) is None


def test_curves_and_devices_can_be_left_out() -> None:
    """What is left out of the devices is counted."""
    timeline = chain(1000, [1, 2])
    assert "memory of" in timeline.render(10)
    assert "memory of" not in timeline.render(10, curves=False)
    assert "... and 1 more devices" in timeline.render(10, most_devices=1)
