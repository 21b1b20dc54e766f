"""Virtual time: op costs, the simulated cluster, and the timeline of a step."""

from .cost_source import CostSource, OpCost, RooflineSource
from .simulate import simulate
from .timeline import BASIS, Timeline, TimelineEvent, start_times

__all__ = [
    "BASIS",
    "CostSource",
    "OpCost",
    "RooflineSource",
    "Timeline",
    "TimelineEvent",
    "simulate",
    "start_times",
]
