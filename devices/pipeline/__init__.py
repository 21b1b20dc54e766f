"""The one way from a GraphDef to the graph of each device: import, lower, place, prune, cut.

stages.py    the stages, each a value that can be looked at, and the settings that they share
rules.py     errors in the user's graph that are found before cutting
epochs.py    when nodes start, for cutting with scheduled receives
cutting.py   all stages in one call
bodies.py    the bodies of functions, which actors and simulated clocks enter the pipeline with
"""

from .cutting import cut
from .epochs import RecvEpochs
from .stages import Imported, Lowered, Partitioned, Pipeline, Placed, Pruned

__all__ = ["Imported", "Lowered", "Partitioned", "Pipeline", "Placed", "Pruned", "RecvEpochs", "cut"]
