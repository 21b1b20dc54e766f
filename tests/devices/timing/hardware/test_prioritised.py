"""Ready rows by priority, against a sorted list, and against what is taken where nobody has priorities."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.devices.timing.hardware.iterations import RowTurn, WaitingIterations
from partita.devices.timing.hardware.prioritised import RowsByPriority

EVENTS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(0, 99), max_size=4), st.integers(0, 3)), max_size=12
)


def turn_of(row: int) -> RowTurn:
    """Every third row takes little; tens are iterations."""
    return RowTurn(row % 3 == 0, (row // 10, -row % 10))


@given(EVENTS, st.integers(2, 5))
def test_the_highest_is_next_then_the_first(events: list[tuple[int, list[int], int]], kinds: int) -> None:
    """Of equal priority that of the earliest instant, of one instant the lowest number; the cause says who waited."""
    rows, now, waiting = RowsByPriority(lambda row: row % kinds, turn_of), 0, list[tuple[int, int, int]]()
    for later, added, taken in events:
        now += later
        for row in added:
            rows.add(row, 7, now)
            waiting.append((-(row % kinds), now, row))
        for _ in range(taken):
            assert rows.has_rows == bool(waiting)
            if waiting:
                first = min(waiting)
                waiting.remove(first)
                assert rows.pop(now, 5) == (first[2], 7 if first[1] == now else 5)


@given(EVENTS)
def test_equal_iterations_come_as_without_priorities(events: list[tuple[int, list[int], int]]) -> None:
    """Small ones first, of the large ones the last, by instants and by what was taken in between."""
    rows, usual, now = RowsByPriority(lambda _: 3, turn_of), WaitingIterations(turn_of), 0
    for later, added, taken in events:
        now += later
        for row in added:
            rows.add_iteration(row, 7, now)
            usual.add(row, 7, now)
        for _ in range(taken):
            assert rows.has_rows == bool(usual)
            if usual:
                ours, theirs = rows.pop(now, 5), usual.pop(now, 5)
                assert turn_of(ours[0]) == turn_of(theirs[0])
                assert ours[1] == theirs[1]


def test_equal_states_go_on_alike() -> None:
    """A state has the rows in their order, and which have waited; not their numbers or instants."""

    def state(base: int, now: int) -> object:
        rows = RowsByPriority(lambda row: row % 2, turn_of)
        rows.add(base + 1, 0, now - 5)
        rows.add(base, 0, now)
        return rows.state(lambda row: row - base, now)

    assert state(0, 10) == state(40, 90)
    assert state(0, 10) != RowsByPriority(lambda row: row, turn_of).state(lambda row: row, 10)
