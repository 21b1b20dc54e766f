"""Slots are shared only by values that are not alive together; segments wait for no more than their nodes need."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.actors.plans.columns import ControlEdges, NumberedEdges, OrderedGraph
from partita.actors.plans.numbering import NodeNumber
from partita.actors.plans.segments import Incoming, Need, SegmentGroup, _Combinations, _implies, group
from partita.actors.plans.slots import allocate, lifetimes

NO_EDGES = np.zeros(0, np.int64)


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Where each value is made (-1: before the program), its uses (value, position), the segment of each position."""
    length = draw(st.integers(1, 20))
    made = [-1, *draw(st.lists(st.integers(-1, length - 1), max_size=20))]
    uses = [
        (value, draw(st.integers(made[value] + 1, length - 1)))
        for value in draw(st.lists(st.integers(1, len(made) - 1), max_size=30) if len(made) > 1 else st.just([]))
        if made[value] + 1 < length
    ]
    cuts = sorted(draw(st.lists(st.integers(0, length), max_size=3)))
    return made, uses, [sum(cut <= position for cut in cuts) for position in range(length)]


@given(programs())
def test_a_value_stays_in_its_slot_until_its_last_use(
    program: tuple[list[int], list[tuple[int, int]], list[int]],
) -> None:
    made, uses, segment_at = program
    used = np.array(uses, np.int64).reshape(-1, 2)
    lives = lifetimes(np.array(made, np.int64), used[:, 0], used[:, 1], np.array(segment_at, np.int64))
    slots, num_slots = allocate(lives, np.zeros(len(made), np.int64))
    assert max(slots) < num_slots
    holds: dict[int, int] = {slots[value]: value for value in range(len(made)) if made[value] < 0}
    assert len(holds) == sum(m < 0 for m in made)  # values that are there before the program share nothing
    for position in range(len(segment_at)):
        for value, at in uses:
            if at == position:
                assert holds[slots[value]] == value
        new = [value for value, m in enumerate(made) if m == position]
        assert len({slots[value] for value in new}) == len(new)
        for value in new:
            holds[slots[value]] = value


@given(programs())
def test_values_that_outlive_their_segment_share_no_slot(
    program: tuple[list[int], list[tuple[int, int]], list[int]],
) -> None:
    made, uses, segment_at = program
    used = np.array(uses, np.int64).reshape(-1, 2)
    lives = lifetimes(np.array(made, np.int64), used[:, 0], used[:, 1], np.array(segment_at, np.int64))
    slots, _ = allocate(lives, np.zeros(len(made), np.int64))
    for value, at in uses:
        if made[value] < 0 or segment_at[made[value]] != segment_at[at]:
            assert slots.count(slots[value]) == 1


@st.composite
def dags(draw: st.DrawFn) -> tuple[list[list[int]], list[bool], list[bool]]:
    """Producers of every node (all before it), which nodes receive, which need an instruction."""
    count = draw(st.integers(1, 25))
    producers = [sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else [] for n in range(count)]
    receives = [draw(st.integers(0, 3)) < (1 if before else 2) for before in producers]
    return producers, receives, [draw(st.integers(0, 3)) > 0 for _ in range(count)]


def _columns(producers: list[list[int]]) -> OrderedGraph:
    """Columns with control edges only."""
    count = len(producers)
    edges = [(source, node) for node, before in enumerate(producers) for source in before]
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    return OrderedGraph(
        ids=list(range(count)),
        names=[str(node) for node in range(count)],
        kinds=[],
        kind=np.zeros(count, np.int64),
        properties=[],
        first_value=np.ones(count + 1, np.int64),
        data=NumberedEdges(NO_EDGES, NO_EDGES, NO_EDGES, NO_EDGES),
        control=ControlEdges(src, dst),
    )


@given(dags())
def test_a_segment_waits_for_nothing_that_one_of_its_nodes_does_not_need(
    dag: tuple[list[list[int]], list[bool], list[bool]],
) -> None:
    producers, receives, emits = dag
    grouping = group(_columns(producers), np.array(receives), np.array(emits))
    needed: list[set[int]] = []  # per node: the receives it needs
    for node, before in enumerate(producers):
        needed.append(set().union(*[needed[p] for p in before]) | ({node} if receives[node] else set()))
    awaited: list[set[int]] = []  # per segment: the receives it waits for, itself or through others
    for segment in range(len(grouping.groups)):
        follows = grouping.follows(segment)
        assert all(earlier < segment for earlier in follows)
        awaited.append(set(grouping.receives(segment)).union(*[awaited[earlier] for earlier in follows]))
    for node, emitting in enumerate(emits):
        if emitting:
            assert awaited[grouping.segment_of[node]] == needed[node]
    assert set().union(*awaited) == {node for node, is_receive in enumerate(receives) if is_receive}


@given(dags())
def test_a_segment_follows_the_segments_that_its_nodes_need(
    dag: tuple[list[list[int]], list[bool], list[bool]],
) -> None:
    """Every instruction that another needs is in the same segment, or in one that the other's segment comes after."""
    producers, receives, emits = dag
    grouping = group(_columns(producers), np.array(receives), np.array(emits))
    after: list[set[int]] = []
    for segment in range(len(grouping.groups)):
        follows = grouping.follows(segment)
        after.append({0, segment}.union(*[after[earlier] for earlier in follows]))
    emitting_before: list[set[int]] = []
    for node, before in enumerate(producers):
        instructions = set().union(*[emitting_before[p] | ({p} if emits[p] else set()) for p in before])
        emitting_before.append(instructions)
        if emits[node]:
            assert {grouping.segment_of[p] for p in instructions} <= after[grouping.segment_of[node]]


@given(
    st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=6), min_size=1, max_size=30),
    st.sets(st.integers(0, 70), min_size=1),
    st.sampled_from([2, 512]),
)
def test_what_other_needs_imply_is_not_waited_for(picks: list[set[int]], wanted: set[int], apart: int) -> None:
    """All pairs compared give the same as the one pass over them; even numbers are messages, odd ones segments."""

    messages = [Incoming(NodeNumber(node)) for node in range(100)]
    combinations = _Combinations()

    def need(number: int) -> Need:
        groups = combinations.groups
        return messages[number // 2] if number % 2 == 0 else groups[number // 2 % len(groups)]

    for pick in picks:
        combinations.join(map(need, pick))
        for _filler in range(apart // 2):
            combinations.group_of(frozenset((Incoming(NodeNumber(100)),)))
    needs = {need(number) for number in wanted} - {combinations.start}
    groups = [need for need in needs if isinstance(need, SegmentGroup)]
    implied = {n for n in needs for group in groups if n is not group and _implies(group, n)}
    assert combinations._implied_among(needs) == implied
