"""The order of ops of overlapping iterations: what takes little first, then what became ready last."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.devices.timing.hardware.iterations import RowTurn, WaitingIterations

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12)


@given(ROWS)
def test_small_rows_come_in_order_and_the_others_from_the_last_on(rows: list[tuple[bool, int]]) -> None:
    """Of one instant by rank; whoever had to wait is caused by what ran before."""
    turns = [RowTurn(is_small, (row % 2, -row)) for row, (is_small, _) in enumerate(rows)]
    waiting = WaitingIterations(turns.__getitem__)
    instants = sorted((instant, row) for row, (_, instant) in enumerate(rows))
    for instant, row in instants:
        waiting.add(row, 100 + row, instant)
    ordered = [row for instant, row in sorted(instants, key=lambda ready: (ready[0], turns[ready[1]].rank))]
    expected = [row for row in ordered if rows[row][0]] + [row for row in reversed(ordered) if not rows[row][0]]
    taken = []
    while waiting:
        assert waiting.has_small is any(rows[row][0] for row in ordered if row not in taken)
        row, cause = waiting.pop(3, -7)
        assert cause == (100 + row if rows[row][1] == 3 else -7)
        taken.append(row)
    assert taken == expected


def test_the_state_names_the_rows_that_wait() -> None:
    """So that equal states go on alike, whatever the numbers of their rows."""
    waiting = WaitingIterations(lambda row: RowTurn(row == 1, (0, row)))
    for row in (2, 1, 3):
        waiting.add(row, -1, 5)
    assert waiting.state(lambda row: f"row {row}", 5) == ((("row 1", True),), (("row 2", True), ("row 3", True)))
