"""A step is known from its first mention until it is forgotten, and never again; this takes little memory."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.errors import CancelledError, InternalError, PartitaError
from partita.rendezvous import Received
from partita.rendezvous.remote import hosted_here
from partita.rendezvous.step_tables import StepNumbers, StepTables


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=30), st.integers(0, 10))
def test_step_numbers_are_a_set(changes: list[tuple[bool, int]], end: int) -> None:
    """Single numbers and all below one, in any order, as in a plain set; the edges ascend."""
    numbers, plain = StepNumbers(end), set(range(end))
    for is_end, number in changes:
        if is_end:
            numbers.add_below(number)
            plain |= set(range(number))
        else:
            numbers.add(number)
            plain.add(number)
        assert [n for n in range(25) if n in numbers] == sorted(plain)
        assert numbers.edges == sorted(set(numbers.edges))


def test_a_step_is_made_at_its_first_mention() -> None:
    """The ask of another process may come first; what it waits for is there when the step begins."""
    steps = StepTables()
    early = steps.find(5)
    assert early is not None
    assert steps.begin(5, 0, hosted_here) is early
    assert steps.find(5) is early
    assert list(steps) == [early]


def test_a_forgotten_step_stays_forgotten() -> None:
    """Its receives end, and it cannot begin again; other steps go on."""
    steps = StepTables()
    outcomes: list[Received | PartitaError] = []
    steps.begin(5, 0, hosted_here).recv_callback("x", outcomes.append)
    other = steps.begin(4, 0, hosted_here)
    steps.forget(5)
    steps.forget(6)  # which was never mentioned here
    assert isinstance(outcomes[0], CancelledError)
    assert (steps.find(5), steps.find(6), steps.find(4)) == (None, None, other)
    with pytest.raises(InternalError, match="step 5 is over"):
        steps.begin(5, 0, hosted_here)


def test_steps_below_the_lowest_are_over() -> None:
    """Also those that were mentioned here and never ended."""
    steps = StepTables()
    steps.find(1)
    steps.begin(2, 2, hosted_here)
    steps.begin(7, 7, hosted_here)
    assert [steps.find(number) for number in range(7)] == [None] * 7
    assert len(steps) == 1


def test_a_long_step_costs_no_memory_for_the_others() -> None:
    """Steps that end while an early one goes on are one range."""
    steps = StepTables()
    steps.begin(0, 0, hosted_here)
    for number in range(1, 1000):
        steps.begin(number, 0, hosted_here)
        steps.forget(number)
    assert steps._over.edges == [-1, 0, 1, 1000]
    assert len(steps) == 1
