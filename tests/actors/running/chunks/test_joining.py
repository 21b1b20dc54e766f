"""Chunks that were halved, and are fast for long, are one chunk again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import pytest

from partita.actors.plans.instructions import Instruction, identity
from partita.actors.plans.plan import Plan, Segment
from partita.actors.running.chunks.learning import LearningLimits, learn

LIMITS = LearningLimits(chunk_s=1e-6, thread_s=1)
FAST, SLOW = 1e-7, 2e-6
INSTRUCTIONS: list[Instruction] = [(identity, 4 + number, 0, 5 + number) for number in range(8)]
PLAN = Plan("/device:CPU:0", [], [], [])


def run(segment: Segment, took_s: Callable[[int], float]) -> None:
    """One step, whose chunk of a number takes so long."""
    chunks = segment.chunks
    for number in range(len(chunks)):
        learn(PLAN, segment, chunks, number, took_s(number), LIMITS)


def lengths(segment: Segment) -> list[int]:
    """Of the chunks, which have all instructions in order."""
    assert list(chain.from_iterable(segment.chunks)) == INSTRUCTIONS
    return [len(chunk) for chunk in segment.chunks]


@pytest.fixture
def halved() -> Segment:
    segment = Segment((list(INSTRUCTIONS),), [0] * len(INSTRUCTIONS))  # type: ignore[list-item]  # numbers of nodes
    run(segment, lambda _: SLOW)
    assert lengths(segment) == [8]
    run(segment, lambda _: SLOW)
    assert lengths(segment) == [4, 4]
    return segment


def test_halves_that_stay_fast_join(halved: Segment) -> None:
    """Not after a few runs; and what has nobody to join is no longer counted."""
    for _ in range(10):
        run(halved, lambda _: FAST)
    assert lengths(halved) == [4, 4]
    for _ in range(10):
        run(halved, lambda _: FAST)
    assert lengths(halved) == [8]
    for _ in range(20):
        run(halved, lambda _: FAST)
    assert not halved.joinable


def test_halves_of_halves_join_in_order(halved: Segment) -> None:
    for _ in range(4):
        run(halved, lambda _: SLOW)
    assert len(lengths(halved)) > 4
    for _ in range(100):
        run(halved, lambda _: FAST)
    assert lengths(halved) == [8]


def test_a_half_that_is_slow_now_and_then_stays_apart(halved: Segment) -> None:
    for number in range(100):
        run(halved, lambda chunk, number=number: SLOW if chunk == 1 and number % 7 == 0 else FAST)  # type: ignore[misc]  # a default
        if len(halved.chunks) > 2:
            break
    assert lengths(halved)[0] == 4


def test_a_step_that_began_before_a_join_changes_nothing(halved: Segment) -> None:
    """It goes on with the chunks that it began with, which nobody counts any more."""
    before = halved.chunks
    for _ in range(20):
        run(halved, lambda _: FAST)
    learn(PLAN, halved, before, 1, FAST, LIMITS)
    assert lengths(halved) == [8]
