"""Plans made by hand, for tests of what is printed of them, and the flags of a small model that is planned quickly."""

from __future__ import annotations

from typing import Any

from partita.scenarios import Split
from partita.scenarios.planners.estimates import MEMORY_CATEGORIES, TIME_CATEGORIES, Estimate

SMALL = (
    *("llama", "--layers", "4", "--hidden", "1024", "--heads", "8", "--intermediate", "4096"),
    *("--vocabulary", "32000", "--seq", "1024"),
)
"""a Llama of 0.13 billion parameters"""
FEW = ("--search", "tp,pp,zero")
"""axes whose search takes no second"""


def made(rank: int = 1, split: Split | None = None, **fields: Any) -> Estimate:  # Any: fields differ in type
    """A plan of a step of 100 ms: products 60, attention 30, dp 10; 20 of 40 GiB; `fields` differ from it."""
    times = {**dict.fromkeys(TIME_CATEGORIES, 0.0), "products": 60.0, "attention": 30.0, "dp": 10.0}
    memory = {**dict.fromkeys(MEMORY_CATEGORIES, 0.0), "activations": 15.0, "optimizer": 5.0}
    usual: dict[str, Any] = {
        "step_ms": 100.0,
        "step_ms_low": 90.0,
        "step_ms_high": 112.0,
        "simulated_step_ms": None,
        "tokens_per_s": 1e6,
        "mfu": 0.4,
        "time_by_category_ms": times,
        "bubble_fraction": 0.0,
        "exposed_comm_ms": 10.0,
        "allocated_gib": 19.0,
        "allocated_gib_low": 18.0,
        "allocated_gib_high": 20.5,
        "reserved_gib": 20.0,
        "memory_limit_gib": 40.0,
        "memory_by_category_gib": memory,
        "fullest_stage": 0,
        "provenance": "fitted",
    }
    return Estimate(rank=rank, split=split or Split(dp=8, precision="bfloat16"), **{**usual, **fields})
