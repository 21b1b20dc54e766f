"""Segments: nodes of a partition that wait for the same receives, and so can run in one go.

Flows in: columns, and which nodes receive. Flows out: the segment of every node, and what each segment waits for:
receives and other segments. Always holds: segment 0 waits for nothing and runs first; a node is in a segment only if
everything the segment waits for is needed by the node, so waiting for all of it at once cannot make a deadlock;
dependencies of a segment have smaller numbers.

The exact grouping (equal sets of awaited receives) would cost a set of receives per node. Instead a node that depends
on one segment joins it, and a node that depends on several gets the segment of that combination; a dependency that
another one implies is left out when that is known at once. This may split what could be one segment, never the
reverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .columns import Columns

_REMEMBERED = 32  # implied dependencies kept per segment; more would make compiling quadratic


@dataclass(slots=True)
class Grouping:
    """The segment of each node, and per segment the nodes received (`receives`) and the segments it `follows`."""

    segment_of: list[int]
    receives: list[list[int]] = field(default_factory=lambda: [[]])
    follows: list[list[int]] = field(default_factory=lambda: [[]])


def group(columns: Columns, is_receive: list[bool]) -> Grouping:
    """Groups the nodes of a partition."""
    grouping = Grouping([0] * columns.num_nodes)
    if not any(is_receive):
        return grouping
    segments = grouping.segment_of
    interned: dict[frozenset[int], int] = {}
    implied: list[frozenset[int]] = [frozenset()]
    inputs, controls, owner = columns.inputs, columns.control_inputs, columns.value_owner
    for node, receives in enumerate(is_receive):
        needs = {segments[owner[value]] for value in inputs[node]}
        needs.update([segments[source] for source in controls[node]])
        needs.discard(0)
        if receives:
            needs.add(~node)
        if len(needs) > 1:
            for need in tuple(needs):
                if need >= 0:
                    needs -= implied[need]
        if not needs:
            continue
        if len(needs) == 1:
            (only,) = needs
            if only >= 0:
                segments[node] = only
                continue
        segments[node] = _intern(frozenset(needs), interned, implied, grouping)
    return grouping


def _intern(
    needs: frozenset[int], interned: dict[frozenset[int], int], implied: list[frozenset[int]], grouping: Grouping
) -> int:
    """The segment that waits for exactly `needs`: segments, and receiving nodes as their complement."""
    found = interned.get(needs)
    if found is None:
        found = interned[needs] = len(implied)
        everything = needs.union(*(implied[need] for need in needs if need >= 0))
        implied.append(everything if len(everything) <= _REMEMBERED else needs)
        grouping.receives.append(sorted(~need for need in needs if need < 0))
        grouping.follows.append(sorted(need for need in needs if need >= 0))
    return found
