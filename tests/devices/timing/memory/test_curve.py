"""Memory over time of a step counted by hand, where an op writes into the buffer of its input."""

from __future__ import annotations

import pytest

from partita.errors import InvalidArgumentError
from tests.devices.timing.steps import cpu
from tests.devices.timing.test_timeline import TIMELINE

from .test_memory import UNIT, Step


def test_an_output_takes_over_a_buffer() -> None:
    """x is fed, m = x x gets a buffer of its own, and n = -m is written into it: two units, then one."""
    timeline = Step().fed("x").then("m", "MatMul", "x", "x").then("n", "Neg", "m").timeline()
    first, second = timeline.find("m"), timeline.find("n")
    curve = timeline.memory_over_time(cpu(0))
    steps = dict(zip(curve.at_ns.tolist(), curve.total.tolist(), strict=True))
    assert steps == {0: 2 * UNIT, first.end_ns: UNIT, second.end_ns: 0}
    assert curve.total.max() == timeline.memory(cpu(0)).peak_bytes


def test_memories_that_nobody_knows() -> None:
    """A device that is not there, and a timeline without buffers: as when its peak is asked for."""
    timeline = Step().fed("x").then("m", "MatMul", "x", "x").timeline()
    with pytest.raises(InvalidArgumentError, match="'nobody' has no 'device' memory here"):
        timeline.memory_over_time("nobody")
    with pytest.raises(InvalidArgumentError, match="knows no buffers"):
        TIMELINE.memory_over_time(cpu(0))
