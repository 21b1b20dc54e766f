"""Virtual time: op costs, the simulated cluster, and the timeline of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import load_lazily

if TYPE_CHECKING:
    from .costs.roofline import RooflineSource as RooflineSource
    from .costs.source import CostSource as CostSource, OpCost as OpCost
    from .events import TimelineEvent as TimelineEvent
    from .hardware.flows import Flow as Flow, finish_times as finish_times
    from .memory.use import HeldTensor as HeldTensor, MemoryPeak as MemoryPeak
    from .ordering.order import Order as Order
    from .simulate import simulate as simulate
    from .timeline import BASIS as BASIS, Timeline as Timeline, start_times as start_times

load_lazily(__name__)
