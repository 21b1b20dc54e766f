"""The one way from a GraphDef to the graph of each device: import, lower, place, prune, cut.

stages.py    the stages, each a value that can be looked at, and the settings that they share
groups.py    collectives that could never end
rules.py     errors in the user's graph that are found before cutting
epochs.py    when nodes start, for cutting with scheduled receives
cutting.py   all stages in one call
bodies.py    the bodies of functions, which actors and simulated clocks enter the pipeline with

Names are imported when they are first used: sessions call the stages one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .bodies import body_of as body_of, placed_body as placed_body
    from .cutting import cut as cut
    from .epochs import RecvEpochs as RecvEpochs
    from .stages import (
        Imported as Imported,
        Lowered as Lowered,
        Partitioned as Partitioned,
        Pipeline as Pipeline,
        Placed as Placed,
        Pruned as Pruned,
    )

load_lazily(__name__)
