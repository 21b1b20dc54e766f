"""The one way from a GraphDef to the graph of each device: import, lower, place, prune, cut.

stages.py    the stages, each a value that can be looked at, and the settings that they share
rules.py     what the user's graph must keep to be cut and run
cutting.py   all stages in one call
"""

from .cutting import cut
from .stages import Imported, Lowered, Partitioned, Pipeline, Placed, Pruned

__all__ = ["Imported", "Lowered", "Partitioned", "Pipeline", "Placed", "Pruned", "cut"]
