"""What is said of one split: its time with where it goes, its memory, its rates, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from ...devices.timing.memory.categories import MEMORY_CATEGORIES as ALLOCATED
from ..models.split import Split

TIME_CATEGORIES = (
    *("products", "attention", "memory_bound", "launches", "tp", "cp", "ep", "dp", "pp", "bubble", "optimizer"),
)
"""of a step's time, of which they are the parts; of communication what is not hidden"""
MEMORY_CATEGORIES = (*ALLOCATED, "fragmentation")
"""of what the allocator reserves; all but "fragmentation" is allocated"""


@frozen
class Estimate:
    """A plan: times in ms, memory in GiB of the fullest device. None where nobody asked, or a price is missing.

    `step_ms_low` and `step_ms_high` are the bounds of four of five steps, as those of memory. `tokens_per_s` is the
    cluster's. `mfu` is (6 N + 12 L h s) operations a token (`ModelDescription.flops_per_token`) by the dense bf16 peak.
    `exposed_comm_ms` is communication that computation does not hide, `bubble_fraction` the share of the step in which
    a stage waits for others. `simulated_step_ms` is that of the built graph on the simulated cluster.
    """

    rank: int
    split: Split
    step_ms: float
    step_ms_low: float
    step_ms_high: float
    simulated_step_ms: float | None
    tokens_per_s: float
    mfu: float
    time_by_category_ms: Mapping[str, float]
    bubble_fraction: float
    exposed_comm_ms: float
    allocated_gib: float
    allocated_gib_low: float
    allocated_gib_high: float
    reserved_gib: float
    memory_limit_gib: float
    memory_by_category_gib: Mapping[str, float]
    fullest_stage: int
    provenance: str
    """"fitted" where steps on this model of GPU were measured, else "transferred" """
    usd_per_step: float | None = None
    joules_per_step: float | None = None
    usd_per_run: float | None = None
    days: float | None = None
    goodput: float | None = None

    def __getattr__(self, name: str) -> Any:  # Any: the fields of a split
        if name.startswith("_") or name not in Split.__dataclass_fields__:
            raise AttributeError(f"Estimate has no field {name!r}")
        return getattr(self.split, name)

    @property
    def fits(self) -> bool:
        """Whether its memory is within the limit."""
        return self.reserved_gib <= self.memory_limit_gib
