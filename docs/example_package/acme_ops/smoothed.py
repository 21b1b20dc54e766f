"""A workload: a vector that is smoothed again and again."""

from __future__ import annotations

from partita.graph import GraphBuilder


def smoothed(*, length: int = 1_000_000, times: int = 3, reach: int = 1) -> GraphBuilder:
    """A vector that is smoothed a few times."""
    b = GraphBuilder()
    x = b.placeholder("values", "float32", (length,))
    for _ in range(times):
        x = b.op("Smooth", x, reach)[0]
    b.identity(x, name="smoothed")
    return b
