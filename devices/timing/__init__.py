"""Virtual time: op costs, the simulated cluster, and the timeline of a step."""

from .costs.roofline import RooflineSource
from .costs.source import CostSource, OpCost
from .events import TimelineEvent
from .hardware.flows import Flow, finish_times
from .memory.use import HeldTensor, MemoryPeak
from .simulate import simulate
from .timeline import BASIS, Timeline, start_times

__all__ = [
    "BASIS",
    "CostSource",
    "Flow",
    "HeldTensor",
    "MemoryPeak",
    "OpCost",
    "RooflineSource",
    "Timeline",
    "TimelineEvent",
    "finish_times",
    "simulate",
    "start_times",
]
