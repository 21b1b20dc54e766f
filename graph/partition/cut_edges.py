"""The edges that need a transfer, and which of them share one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

import numpy as np

from ..arrays import Flags, Numbers, Seen, first_seen, positions
from ..columns import EdgeArrays, Ids

CutPositions = NewType("CutPositions", Numbers)
"""positions of cut edges, in the order of `CutEdges`"""
PairNumbers = NewType("PairNumbers", Numbers)
"""numbers of pairs (send and receive), in the order of their first edges"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutEdges:
    """Cut edges by ascending consumer: its data inputs by port, then its control inputs. One row per edge.

    `location`: of the consumer. `from_host`, `to_host`: whether the tensor is in host memory at the producer and at the
    consumer. `shared_host`: `to_host`, or the consumer's device has no other memory. `is_ref`: whether the source port
    is a reference. `local`: both ends are in one location. `dtype`: element type that the consumer reads.
    """

    edges: EdgeArrays
    location: Ids
    from_host: Flags
    to_host: Flags
    shared_host: Flags
    is_ref: Flags
    local: Flags
    dtype: Numbers

    def pairs(self) -> tuple[CutPositions, PairNumbers]:
        """The first edge of every pair, ascending, and the pair of each edge.

        An edge shares the pair of an earlier one that carries the same output to the same location into the same
        memory; an edge of a reference has a pair of its own.
        """
        # first_seen([(src, src_output, location, shared_host), ...]). Each tuple is packed into one integer, because
        # numpy sorts integers about a hundred times faster than rows: every field is smaller than the factor that the
        # fields before it are multiplied by. References get distinct negative keys.
        edges = self.edges
        ports = np.int64(edges.src_output.max(initial=0) + 2)  # -1, of control edges, and on
        locations = np.int64(self.location.max(initial=0) + 1)
        key = (edges.src.astype(np.int64) * ports + edges.src_output + 1) * locations + self.location
        key = key * 2 + self.shared_host
        key[self.is_ref] = -1 - positions(self.is_ref)
        seen: Seen = first_seen(key)
        return CutPositions(seen.first), PairNumbers(seen.number)
