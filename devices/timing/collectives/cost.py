"""What a collective costs."""

from __future__ import annotations

from typing import NamedTuple

from ..costs.source import Provenance


class CollectiveCost(NamedTuple):
    """Time of one collective in whole ns, the bounds of four of five runs, and how it was found.

    `algorithm` and `protocol` are "measured" where curves of the system speak: they hold whatever the library chose.
    """

    time_ns: int
    low_ns: int
    high_ns: int
    algorithm: str
    protocol: str
    provenance: Provenance
