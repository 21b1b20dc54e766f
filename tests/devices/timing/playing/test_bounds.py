"""The bounds of durations: those of costs, scaled; exact launches; copies between the datasheet and 0.7 of it."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.devices.spec import DeviceSpec
from partita.devices.timing import OpCost, RooflineSource, Timeline, simulate
from partita.graph.dtypes import Dims
from partita.graph.ops.properties import NodeProperties

from ..steps import StepBuilder, cluster


class _Between:
    """Costs of the roofline with bounds at given shares of the time."""

    def __init__(self, low: int | None, high: int | None) -> None:
        self._low, self._high = low, high

    def cost(
        self, properties: NodeProperties, inputs: tuple[Dims, ...], outputs: tuple[Dims, ...], spec: DeviceSpec
    ) -> OpCost:
        cost = RooflineSource().cost(properties, inputs, outputs, spec)
        low, high = (None if share is None else cost.time_ns * share // 100 for share in (self._low, self._high))
        return cost._replace(low_ns=low, high_ns=high)


def _step(source: _Between) -> Timeline:
    step = StepBuilder()
    x = step.feed("x", (100, 100))
    step.op("b", "Neg", [step.op("a", "Neg", [x])], device=1)
    return simulate(step.parts(), cluster(), cost_source=source)


@given(st.integers(0, 100), st.integers(100, 300))
def test_an_event_has_the_bounds_of_its_cost(low: int, high: int) -> None:
    """And columns and single events say the same; a copy takes up to 1 / 0.7 of its time, a latency is exact."""
    timeline = _step(_Between(low, high))
    for event in timeline.events:
        if event.kind == "copy":
            assert (event.low_ns, event.high_ns) == (event.duration_ns, -(-event.duration_ns * 10 // 7))
        elif event.kind == "compute":
            assert event.low_ns == event.duration_ns * low // 100
            assert event.high_ns == event.duration_ns * high // 100
        else:
            assert event.low_ns == event.high_ns == event.duration_ns
    assert list(timeline.columns.low_ns) == [event.low_ns for event in timeline.events]


def test_a_source_without_bounds_gives_events_none() -> None:
    """None where the source says nothing, not the duration."""
    event = _step(_Between(None, None)).find("a")
    assert (event.low_ns, event.high_ns) == (None, None)
