"""What a collective costs."""

from __future__ import annotations

from typing import NamedTuple

from ..costs.source import Provenance


class CollectiveCost(NamedTuple):
    """Time of one collective in whole ns, the bounds of four of five runs, and how it was found.

    `algorithm` and `protocol` are "measured" where curves of the system speak: they hold whatever the library chose.
    `rings` are those over links that join ranks of a host in pairs, None where none do; 0 where no ring visits all
    ranks. `library` is the library and version that curves were measured with, "" where none is known.
    """

    time_ns: int
    low_ns: int
    high_ns: int
    algorithm: str
    protocol: str
    provenance: Provenance
    rings: int | None = None
    library: str = ""
