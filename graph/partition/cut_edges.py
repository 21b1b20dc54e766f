"""The edges that a cut goes through, and which of them share a transfer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

import numpy as np

from ..arrays import Flags, Numbers, Seen, first_seen
from ..columns import EdgeArrays, Ids

CutPositions = NewType("CutPositions", Numbers)
"""positions of cut edges, in the order of `CutEdges`"""
PairNumbers = NewType("PairNumbers", Numbers)
"""numbers of pairs, in the order in which consumers ask for them"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutEdges:
    """Cut edges by consumer: data inputs by port, then control inputs. All columns are equally long.

    `location` is that of the consumer. `from_host`, `to_host`: the memory at both ends; `shared_host`: the memory as
    far as sharing goes; `is_ref`: whether the source port is a reference; `local`: both ends in one location; `dtype`:
    element type that the consumer reads.
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
        # first_seen([(src, src_output, location, shared_host), ...]), with each tuple packed into one integer, as
        # numpy compares integers a hundred times as fast: every part is below the factor that the ones before it are
        # multiplied by. References have negative keys, of which no two are the same.
        edges = self.edges
        ports = np.int64(edges.src_output.max(initial=0) + 2)  # -1, of control edges, and on
        locations = np.int64(self.location.max(initial=0) + 1)
        key = (edges.src.astype(np.int64) * ports + edges.src_output + 1) * locations + self.location
        key = key * 2 + self.shared_host
        key[self.is_ref] = -1 - np.flatnonzero(self.is_ref)
        seen: Seen = first_seen(key)
        return CutPositions(seen.first), PairNumbers(seen.number)
