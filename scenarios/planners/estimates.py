"""What is said of one split: its time with where it goes, its memory, its rates, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from ...devices.timing.memory.categories import MEMORY_CATEGORIES as ALLOCATED
from ...graph.display.html import Html, details, lines, notebook_output, table
from ..models.split import Split
from ..models.split_text import split_text

TIME_CATEGORIES = (
    *("products", "attention", "memory_bound", "launches", "tp", "cp", "ep", "dp", "pp", "bubble", "optimizer"),
)
"""of a step's time, of which they are the parts; of communication what is not hidden"""
MEMORY_CATEGORIES = (*ALLOCATED, "fragmentation")
"""of what the allocator reserves; all but "fragmentation" is allocated"""


@frozen(repr=False)
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

    def __repr__(self) -> str:
        memory = f"{self.reserved_gib:.1f} of {self.memory_limit_gib:.1f} GiB"
        return f"<Estimate {self.rank}: {split_text(self.split)}: {self.step_ms:,.1f} ms, {memory}>"

    def _repr_html_(self) -> str:
        return notebook_output(
            f"plan {self.rank}: {split_text(self.split)}",
            lines(
                [
                    f"{self.step_ms:,.1f} ms, 80 % of steps {self.step_ms_low:,.0f} to {self.step_ms_high:,.0f} ms",
                    f"{self.tokens_per_s:,.0f} tokens/s, MFU {100 * self.mfu:.1f} %",
                    f"{self.reserved_gib:.1f} of {self.memory_limit_gib:.1f} GiB reserved on the fullest device",
                ]
            ),
            details("time by category", _parts("ms", self.time_by_category_ms)),
            details("memory by category", _parts("GiB", self.memory_by_category_gib)),
        )

    @property
    def fits(self) -> bool:
        """Whether its memory is within the limit."""
        return self.reserved_gib <= self.memory_limit_gib


def _parts(unit: str, parts: Mapping[str, float]) -> Html:
    """A row for each part that is not nothing, the largest first."""
    rows = [[name, f"{amount:,.2f}"] for name, amount in sorted(parts.items(), key=lambda part: -part[1]) if amount]
    return table(["", unit], rows)
