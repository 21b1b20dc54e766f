"""What lowering has made of a conditional or loop: nobody has to guess it from names.

    c = If(p, x)       "c": LoweredNode(Calls.IF, switches=("c/switch_pred/_2", "c/x/_5"), merges=("c/output/_6", ...))
    w = While(0, x)    "w": LoweredNode(Calls.WHILE, switches, merges, frame="w")

A graph keeps these by the name of the node that is gone, `Graph.lowered`; passes keep the names of the nodes, and may
remove some. A message of a graph does not have them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ops.record import Calls


class LoweredNode(NamedTuple):
    """The nodes that stand for a conditional or loop, by name; a loop has a frame."""

    kind: Calls
    switches: tuple[str, ...]
    merges: tuple[str, ...]
    frame: str = ""
