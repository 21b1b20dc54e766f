"""Virtual time: op costs, the simulated cluster, and the timeline it produces."""

# The costs_* modules are imported for what they register.
from . import costs_conv, costs_dense, costs_free, costs_nn
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
    "costs_conv",
    "costs_dense",
    "costs_free",
    "costs_nn",
    "simulate",
    "start_times",
]
