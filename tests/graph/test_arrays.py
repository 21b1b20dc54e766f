"""Each operation on columns does what its plain loop does."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.graph.arrays import (
    distinct,
    first_rows,
    first_seen,
    grouped,
    inverse,
    owners,
    ready_order,
    starts_of,
    topological_order,
)
from partita.graph.columns import CONTROL_SLOT
from partita.graph.edge_ends import by_consumer

COLUMNS = st.lists(st.integers(0, 9), max_size=30)


def column(values: Any) -> Any:  # an array of integers, from any nested list of them
    """As the columns of a graph have them."""
    return np.array(values, np.int32)


@given(COLUMNS)
def test_groups(values: list[int]) -> None:
    """The rows of every owner, ascending."""
    groups = grouped(column(values), 10)
    assert groups.starts.tolist() == starts_of(column(values), 10).tolist()
    for owner in range(10):
        members = groups.members[groups.starts[owner] : groups.starts[owner + 1]].tolist()
        assert members == [i for i, value in enumerate(values) if value == owner]


@given(COLUMNS)
def test_distinct_values_are_those_of_a_set(values: list[int]) -> None:
    assert distinct(column(values)).tolist() == sorted(set(values))


@given(COLUMNS)
def test_values_are_numbered_as_they_come(values: list[int]) -> None:
    """As a dict numbers them."""
    numbers: dict[int, int] = {}
    seen = first_seen(column(values))
    assert seen.number.tolist() == [numbers.setdefault(value, len(numbers)) for value in values]
    assert [values[i] for i in seen.first.tolist()] == list(numbers)
    assert seen.first.tolist() == [values.index(value) for value in numbers]


@given(st.lists(st.integers(0, 5), max_size=40))
def test_first_rows_are_where_numbers_come_first(values: list[int]) -> None:
    """Numbers in the order in which they come first are first seen in ascending rows."""
    number = first_seen(np.array(values, np.int64)).number
    assert first_rows(number, len(set(values))).tolist() == [values.index(value) for value in dict.fromkeys(values)]


@given(st.permutations(range(12)))
def test_a_permutation_and_its_inverse(order: list[int]) -> None:
    """Each undoes the other."""
    assert inverse(column(order))[order].tolist() == list(range(12))


@given(st.lists(st.integers(0, 4), max_size=12))
def test_every_row_has_its_owner(counts: list[int]) -> None:
    """In the order of the owners."""
    assert owners(column(counts)).tolist() == [k for k, count in enumerate(counts) for _ in range(count)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(CONTROL_SLOT, 3)), max_size=20))
def test_edges_by_consumer(ends: list[tuple[int, int]]) -> None:
    """Data inputs by port, then control inputs in the order they had."""
    order = by_consumer(column([dst for dst, _ in ends]), column([port for _, port in ends]))
    plain = sorted(range(len(ends)), key=lambda e: (ends[e][0], ends[e][1] == CONTROL_SLOT, ends[e][1]))
    assert order.tolist() == plain


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25)


def walk(edges: list[tuple[int, int]], *, lowest_first: bool) -> list[int]:
    """The order of ten nodes with these edges."""
    consumers: list[list[int]] = [[] for _ in range(10)]
    waits = [0] * 10
    for src, dst in edges:
        consumers[src].append(dst)
        waits[dst] += 1
    return ready_order(consumers, waits, lowest_first=lowest_first)


@given(EDGES, st.booleans())
def test_producers_come_first(edges: list[tuple[int, int]], lowest_first: bool) -> None:
    """Every node at most once, after all that it waits for; all of them if no edge goes back."""
    order = walk(edges, lowest_first=lowest_first)
    place = {node: i for i, node in enumerate(order)}
    assert len(place) == len(order)
    for src, dst in edges:
        assert dst not in place or place[src] < place[dst]
    forward = [(src, dst) for src, dst in edges if src < dst]
    assert sorted(walk(forward, lowest_first=lowest_first)) == list(range(10))


@given(EDGES)
def test_edges_that_only_go_forward_leave_the_order_alone(edges: list[tuple[int, int]]) -> None:
    """With `lowest_first`, an order that is topological already is kept."""
    assert walk([(src, dst) for src, dst in edges if src < dst], lowest_first=True) == list(range(10))


def test_of_several_ready_nodes_the_first_one_comes() -> None:
    """Or the lowest with `lowest_first`: 0 makes 3 ready, before 2 makes 1 ready."""
    edges = [(0, 3), (2, 1)]
    assert walk(edges, lowest_first=False)[:9] == [0, 2, 4, 5, 6, 7, 8, 9, 3]
    assert walk(edges, lowest_first=True) == [0, 2, 1, 3, 4, 5, 6, 7, 8, 9]


@given(st.integers(1, 300), st.integers(0, 600), st.integers(1, 100), st.randoms(use_true_random=False))
def test_columns_have_the_order_of_the_plain_loop(nodes: int, edges: int, near: int, draw: Random) -> None:
    """On graphs with wide waves, narrow ones and cycles: the same nodes in the same order."""
    ends = [(src, min(nodes - 1, max(0, src + draw.randint(-1, near)))) for src in draw.choices(range(nodes), k=edges)]
    consumers: list[list[int]] = [[] for _ in range(nodes)]
    for src, dst in ends:
        consumers[src].append(dst)
    waits = [sum(group.count(n) for group in consumers) for n in range(nodes)]
    starts, rows = grouped(column([src for src, _ in ends]), nodes)
    assert topological_order(starts, column([dst for _, dst in ends])[rows]) == ready_order(consumers, waits)


def test_of_no_nodes_the_order_is_empty() -> None:
    """Also in columns."""
    assert topological_order(starts_of(column([]), 0), column([])) == []
