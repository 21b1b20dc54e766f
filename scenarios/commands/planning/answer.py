"""What is known of a request for training before anything is printed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from ....devices.timing import Timeline
from ...planners.searching.plan import TrainingPlan
from .changes import ChangedPlan
from .counts import CountedPlan
from .plan_request import PlanRequest


@frozen
class TrainingAnswer:
    """All that is printed, or shown on a page; `timelines` are those of the first plans, if they were simulated."""

    request: PlanRequest
    plan: TrainingPlan
    saved_percent: Mapping[str, float]
    change: ChangedPlan | None
    counts: Sequence[CountedPlan]
    timelines: Sequence[Timeline] = ()
