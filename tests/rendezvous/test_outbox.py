"""Law of the outbox: values of a step leave in order and within the room, and steps take turns."""

from __future__ import annotations

from hypothesis import given, strategies as st

from partita.rendezvous import Received
from partita.rendezvous.messages import Data
from partita.rendezvous.outbox import Outbox
from tests.rendezvous.processes import size_of

SIZES = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 12)), max_size=30)


def message(size: int) -> Received:
    """A value of this size."""
    return Received((size,), False)


def sizes_of(data: Data) -> list[int]:
    """The sizes of the values of a message."""
    return [value.value[0] for value in data.values if isinstance(value, Received)]


def filled(values: list[tuple[int, int]], turn_bytes: int = 4) -> Outbox:
    """An outbox with values (step, size), numbered from 0."""
    outbox = Outbox(size_of, turn_bytes)
    for number, (step, size) in enumerate(values):
        outbox.put(step, number, message(size))
    return outbox


@given(SIZES, st.integers(1, 10), st.integers(1, 10))
def test_everything_leaves_within_the_room_and_in_order(
    values: list[tuple[int, int]], budget: int, turn_bytes: int
) -> None:
    """Each call makes one message a step; a value above the budget leaves alone, and nothing stays for ever."""
    outbox = filled(values, turn_bytes)
    left: dict[int, list[int]] = {1: [], 2: [], 3: []}
    while outbox:
        batch = outbox.take(budget, is_idle=True)
        sizes = [size for data in batch for size in sizes_of(data)]
        assert sum(sizes) <= budget or len([size for size in sizes if size]) == 1
        assert not outbox or sum(sizes) > 0, "or nobody would give bytes back, and ask for more"
        assert len({data.step for data in batch}) == len(batch)
        for data in batch:
            assert data.num_bytes == sum(sizes_of(data))
            left[data.step] += data.numbers
    assert left == {step: [n for n, (owner, _) in enumerate(values) if owner == step] for step in left}


@given(SIZES, st.integers(-2, 12))
def test_nothing_above_the_room_leaves_while_something_is_on_its_way(values: list[tuple[int, int]], room: int) -> None:
    outbox = filled(values)
    sizes = [size for data in outbox.take(room, is_idle=False) for size in sizes_of(data)]
    assert sum(sizes) <= max(room, 0)
    assert len(sizes) + len(outbox) == len(values)


@given(SIZES, st.lists(st.integers(0, 6), max_size=10), st.integers(1, 6))
def test_a_value_waits_for_few_turns_of_other_steps(
    others: list[tuple[int, int]], rooms: list[int], turn_bytes: int
) -> None:
    """With b bytes of its own step before it: b / turn + 1 turns of each other step, of a turn and one value each."""
    outbox = filled(others, turn_bytes)
    for room in rooms:
        outbox.take(room, is_idle=True)
    before = [3, 2]
    for number, size in enumerate([*before, 0]):
        outbox.put(9, number, message(size))
    shipped = {1: 0, 2: 0, 3: 0}
    data = Data(0, [], [], 0)
    while not (data.step == 9 and 2 in data.numbers):
        for data in outbox.take(0, is_idle=True):  # one value at a time, and those of no size around it
            if data.step != 9:
                shipped[data.step] += data.num_bytes
            elif 2 in data.numbers:
                break
    turns = sum(before) // turn_bytes + 1
    largest = max((size for _, size in others), default=0)
    assert max(shipped.values()) <= turns * (turn_bytes + largest)


def test_a_small_value_does_not_wait_for_all_large_ones_of_another_step() -> None:
    """Step 1 has 100 values as large as the budget; a thousand small ones of step 2 leave after the first of them."""
    outbox = filled([(1, 100)] * 100 + [(2, 0)] * 1000, turn_bytes=12)
    assert [(data.step, len(data.values)) for data in outbox.take(100, is_idle=True)] == [(1, 1), (2, 1000)]


def test_what_waits_for_a_step_can_be_dropped() -> None:
    """Also in its turn: the next step has a whole one."""
    outbox = filled([(1, 3), (1, 3), (2, 2), (2, 2), (3, 1)])
    assert [sizes_of(data) for data in outbox.take(3, is_idle=True)] == [[3]]
    outbox.drop(1)
    outbox.drop(7)
    assert len(outbox) == 3
    assert [sizes_of(data) for data in outbox.take(4, is_idle=True)] == [[2, 2]]
    assert len(outbox) == 1
