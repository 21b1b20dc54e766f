"""Schedules of pipelines: their orders, what they cost in bubbles and kept activations, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from partita.errors import AlreadyExistsError, InvalidArgumentError
from partita.graph.parallel.pipelines import schedules
from partita.graph.parallel.pipelines.schedules import (
    CallOrder,
    PipelineShape,
    Schedule,
    StageCall,
    find_schedule,
    register_schedule,
    schedule_names,
)
from partita.graph.parallel.pipelines.timetables import Timetable
from tests.goldens import assert_text

shapes = st.builds(
    lambda devices, interleave, groups: PipelineShape(devices, interleave, devices * groups),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 4),
)


def timetable(name: str, *shape: int, backward: int = 2) -> Timetable:
    return Timetable(find_schedule(name).calls(PipelineShape(*shape)), PipelineShape(*shape), backward)


@given(shapes, st.integers(1, 3))
def test_bubble_of_interleaved_stages(shape: PipelineShape, backward: int) -> None:
    """With v stages per device and m micro-batches p devices wait (p - 1) / (v m + p - 1) of the time."""
    p, v, m = shape
    assert timetable("interleaved", *shape, backward=backward).bubble() == Fraction(p - 1, v * m + p - 1)


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 3), st.sampled_from(["gpipe", "1f1b"]))
def test_bubble_of_one_stage_per_device(p: int, m: int, backward: int, name: str) -> None:
    """With one stage per device the bubble is (p - 1) / (m + p - 1), for any number of micro-batches."""
    assert timetable(name, p, 1, m, backward=backward).bubble() == Fraction(p - 1, m + p - 1)


@given(st.integers(1, 6), st.integers(1, 9))
def test_kept_activations(p: int, m: int) -> None:
    """GPipe keeps the activations of all micro-batches, 1F1B on device d those of at most p - d."""
    assert [timetable("gpipe", p, 1, m).most_kept(d) for d in range(p)] == [m] * p
    assert [timetable("1f1b", p, 1, m).most_kept(d) for d in range(p)] == [min(m, p - d) for d in range(p)]


@given(shapes)
def test_one_stage_per_device_is_1f1b(shape: PipelineShape) -> None:
    """With one stage per device the interleaved schedule is 1F1B."""
    plain = shape._replace(interleave=1)
    assert find_schedule("interleaved").calls(plain) == find_schedule("1f1b").calls(plain)


def test_text_of_gpipe() -> None:
    """All forwards come before all backwards."""
    assert_text(
        timetable("gpipe", 3, 1, 4).text(),
        """
        device 0  F0 F1 F2 F3 .. .. .. .. .. .. B3 == B2 == B1 == B0 ==
        device 1  .. F0 F1 F2 F3 .. .. .. B3 == B2 == B1 == B0 == .. ..
        device 2  .. .. F0 F1 F2 F3 B3 == B2 == B1 == B0 == .. .. .. ..
        """,
    )


def test_text_of_1f1b() -> None:
    """After a warm-up a forward and a backward take turns."""
    assert_text(
        timetable("1f1b", 3, 1, 4).text(),
        """
        device 0  F0 F1 F2 .. .. .. .. B0 == F3 B1 == .. B2 == .. B3 ==
        device 1  .. F0 F1 .. .. B0 == F2 B1 == F3 B2 == .. B3 == .. ..
        device 2  .. .. F0 B0 == F1 B1 == F2 B2 == F3 B3 == .. .. .. ..
        """,
    )


def test_text_of_interleaved() -> None:
    """Two stages per device, a and b: the warm-up is longer, and devices wait less."""
    assert_text(
        timetable("interleaved", 2, 2, 2).text(),
        """
        device 0  F0a F1a F0b F1b ... ... B0b === ... B1b === B0a === B1a ===
        device 1  ... F0a F1a F0b B0b === F1b B1b === B0a === B1a === ... ...
        """,
    )


def test_order_as_text() -> None:
    """A call prints as its direction, stage and micro-batch."""
    calls = find_schedule("1f1b").calls(PipelineShape(2, 1, 3))
    assert_text(
        "\n".join(" ".join(map(str, ordered)) for ordered in calls),
        """
        F0.0 F0.1 B0.0 F0.2 B0.1 B0.2
        F1.0 B1.0 F1.1 B1.1 F1.2 B1.2
        """,
    )
    assert calls[0][0].name == "forward_s0_m0"


def _registered(monkeypatch: pytest.MonkeyPatch, order: CallOrder) -> str:
    monkeypatch.setattr(schedules, "_SCHEDULES", dict(schedules._SCHEDULES))
    register_schedule(Schedule("mine", "an order of a test", lambda shape: order))
    return "mine"


def test_registered_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program adds a schedule under a name that is free."""
    order = [[StageCall(True, 0, 0), StageCall(False, 0, 0)]]
    name = _registered(monkeypatch, order)
    assert find_schedule(name).calls(PipelineShape(1, 1, 1)) == order
    assert schedule_names()[-1] == name
    with pytest.raises(AlreadyExistsError, match="there is a schedule 'mine' \\(an order of a test\\)"):
        register_schedule(find_schedule(name))


F00, B00, F10, B10 = (StageCall(forward, stage, 0) for stage in (0, 1) for forward in (True, False))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([[F00, B00]], "orders 1 devices, there are 2"),
        ([[F00], [F10, B10]], "lacks the call B0.0 on device 0"),
        ([[F00, F00, B00], [F10, B10]], "has the call F0.0 twice"),
        ([[F00, B00], [F10, B00, B10]], "has the call B0.0 on device 1, which has no such"),
        ([[B00, F00], [F10, B10]], "never ends: its devices wait with B0.0, F1.0 "),
    ],
)
def test_impossible_orders(monkeypatch: pytest.MonkeyPatch, order: CallOrder, message: str) -> None:
    """An order that lacks a call, has one too much or waits for ever is refused with the call."""
    name = _registered(monkeypatch, order)
    with pytest.raises(InvalidArgumentError, match=message.replace(".", "\\.")):
        find_schedule(name).calls(PipelineShape(2, 1, 1))


def test_unknown_schedule() -> None:
    """The nearest name is suggested."""
    with pytest.raises(InvalidArgumentError, match="there is no schedule '1f1'; did you mean '1f1b'"):
        find_schedule("1f1")


def test_what_schedules_refuse() -> None:
    """1F1B has one stage per device; interleaved stages need micro-batches in groups."""
    with pytest.raises(InvalidArgumentError, match="one stage per device, interleave is 2; use schedule 'interleaved'"):
        find_schedule("1f1b").calls(PipelineShape(2, 2, 4))
    with pytest.raises(InvalidArgumentError, match="microbatches is 6; use a multiple of 4, such as 4 or 8"):
        find_schedule("interleaved").calls(PipelineShape(4, 2, 6))
