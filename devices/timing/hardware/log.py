"""The log of simulated hardware: an entry for every launch, kernel, pass and copy, in columns.

Entries are numbered from 0 as they are written. An entry belongs to a row, which is one run of a node:

    NODE     the node runs or passes; the row of a receive passes when its tensor has arrived
    COPY     the transfer of a receive, from its start to its arrival
    LAUNCH   a host thread launches the kernel of the row

The cause of an entry is the number of an earlier entry, or -1.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..collectives.plan import CollectivePlan

NODE, COPY, LAUNCH = range(3)
KINDS = 4  # an entry is stored as row * KINDS + kind


class Taken(NamedTuple):
    """The collective that a member took part in, and the group whose communication stream it took."""

    group: str
    plan: CollectivePlan


class Log:
    """Columns by entry. `entries` has row * KINDS + kind; `lanes` the lane of entries that are not on the first one.

    `bottlenecks` has the name of the link that limited a copy, where that is not the slowest one of its route, and
    `collectives` what members of collectives took part in.
    """

    __slots__ = ("bottlenecks", "causes", "collectives", "end_ns", "entries", "lanes", "start_ns")

    def __init__(self) -> None:
        self.entries = array("q")
        self.causes = array("q")
        self.start_ns = array("q")
        self.end_ns = array("q")
        self.lanes: dict[int, int] = {}
        self.bottlenecks: dict[int, str] = {}
        self.collectives: dict[int, Taken] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def record(self, entry: int, start_ns: int, end_ns: int, cause: int) -> int:
        """Adds an entry and returns its number."""
        self.entries.append(entry)
        self.causes.append(cause)
        self.start_ns.append(start_ns)
        self.end_ns.append(end_ns)
        return len(self.entries) - 1
