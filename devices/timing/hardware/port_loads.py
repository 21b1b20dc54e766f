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

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby, islice, pairwise
from operator import itemgetter

from .flow_groups import FlowGroup
from .ports import UNITS, WHOLE, ActiveLink

LoadRecord = tuple[ActiveLink, int, FlowGroup | None, int]
"""of a port from a search on: the weight that the flows of a group have there, or the load of flows in no group"""


class PortLoads:
    """What has happened at ports, in order: one list, as what is written together is read together by the processor."""

    def __init__(self) -> None:
        self.records: list[LoadRecord] = []
        """the last one of a search counts"""
        self._of_port: dict[ActiveLink, list[LoadRecord]] = {}
        self._read = 0  # so many records are in it

    def changes(self, port: ActiveLink, searches: int) -> Iterator[tuple[int, int]]:
        """(search, load in units of rate and parts of `WHOLE` from then on) of the first so many searches, in order."""
        weights: dict[FlowGroup | None, list[tuple[int, int]]] = {}
        for _, search, group, weight in self._records_of(port):
            weights.setdefault(group, []).append((search, weight))
        of_few = weights.pop(None, [])
        before_few = [0, *(load for _, load in of_few)]
        changes = merge(
            *[_changes(group, of_group) for group, of_group in weights.items() if group is not None],
            ((search, (load - before) * WHOLE) for (search, load), before in zip(of_few, before_few, strict=False)),
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

    def _records_of(self, port: ActiveLink) -> list[LoadRecord]:
        for record in islice(self.records, self._read, None):
            self._of_port.setdefault(record[0], []).append(record)
        self._read = len(self.records)
        return self._of_port.get(port, [])


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
