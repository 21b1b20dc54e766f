"""What a port has carried, from the weights of its flows by group and the rates of the groups.

Nobody writes down a load while the clock runs, as a new rate of one group is a new load of all ports that it crosses:
it is computed when somebody asks.

    search    0        3        5            a search finds rates; several can be in one instant
    weight    2 of g            1 of g       of flows on the port: 1 for each whose whole rate is bytes
    rate      10       6                     of group g
    load      20       12       6

Flows in no group are few: what they make of the load is written down when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, pairwise
from operator import itemgetter

from .flow_groups import FlowGroup
from .ports import UNITS, WHOLE, ActiveLink


def loads_of(port: ActiveLink, instants: Sequence[int], searches: int) -> list[tuple[int, int, float]]:
    """(from, to, bytes/s) in order, without the times in which it carries nothing, of the first so many searches.

    `instants` has when they were made.
    """
    return spans_of((instants[search], load) for search, load in load_changes(port, searches))


def load_changes(port: ActiveLink, searches: int) -> Iterator[tuple[int, int]]:
    """(search, load in units of rate and parts of `WHOLE` from then on) of the first so many searches, in order."""
    weights: dict[FlowGroup, list[tuple[int, int]]] = {}
    for search, group, weight in zip(port.changed_in, port.changed_groups, port.changed_weights, strict=True):
        weights.setdefault(group, []).append((search, weight))
    of_few = pairwise([0, *port.loads])
    changes = merge(
        *[_changes(group, of_group) for group, of_group in weights.items()],
        ((search, (after - before) * WHOLE) for search, (before, after) in zip(port.loads_in, of_few, strict=True)),
        key=itemgetter(0),
    )
    load = 0
    for search, together in groupby(changes, itemgetter(0)):
        if search >= searches:  # flows have come or gone, and rates are not found yet
            break
        changed = sum(change for _, change in together)
        if changed:
            load += changed
            yield search, load


def spans_of(changes: Iterable[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """(from, to, bytes/s) in order, from (instant, load in units from then on).

    Times in which it carries the same are apart if it carried something else between two searches of one instant.
    """
    times, loads = list[int](), list[int]()
    for time, load in changes:
        if times and times[-1] == time:
            loads[-1] = load
        else:
            times.append(time)
            loads.append(load)
    return [
        (start, end, load / (UNITS * WHOLE))
        for (start, load), (end, _) in pairwise(zip(times, loads, strict=True))
        if load
    ]


def _changes(group: FlowGroup, weights: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """(search, by how much the load of a group on a port changes in it), from (search, weight of its flows there)."""
    rates = merge(
        ((search, 0, weight) for search, weight in weights),
        ((search, 1, rate) for search, rate in zip(group.rates_in, group.rates, strict=True)),
        key=itemgetter(0),
    )
    weight = rate = load = 0
    for search, together in groupby(rates, itemgetter(0)):
        for _, is_rate, number in together:
            weight, rate = (weight, number) if is_rate else (number, rate)
        if weight * rate != load:
            yield search, weight * rate - load
            load = weight * rate
