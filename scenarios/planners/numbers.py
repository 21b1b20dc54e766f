"""The numbers that training adds to kernels and links: what of the datasheet real steps reach.

Each has a prior at the datasheet, or at what the catalog assumes, a width in log space (how far off it may be before
measured steps say so), and how far models of GPU may differ. `fitting.py` fits them to measured steps;
`training_numbers.toml` has what it found.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class PlanNumber(NamedTuple):
    """The prior of a number, its width in log space, and that of the deviations of models of GPU, 0 for none."""

    value: float
    width: float
    between: float = 0.0


class PlanNumbers(NamedTuple):
    """Factors of times, shares of rates, and times in ns that are the same in all steps."""

    products: float = 1.0
    """of the fitted time of a product"""
    attention: float = 1.0
    """of the fitted time of an attention core"""
    memory: float = 0.8
    """the share of the memory's bandwidth that streaming kernels reach"""
    kernel_ns: float = 1500.0
    """what a streaming kernel takes beside its bytes"""
    launch_ns: float = 50_000.0
    """the host's time to launch a kernel"""
    inside: float = 1.0
    """of the time of collectives inside a host"""
    network: float = 1.0
    """of the rate between hosts that `collective_time` assumes"""
    transfer: float = 1.0
    """of the time of transfers between stages"""
    transfer_ns: float = 20_000.0
    """what such a transfer takes beside its bytes"""
    gradients: float = 1.0
    """of the time of the collectives of gradients"""
    optimizer: float = 0.8
    """the share of the memory's bandwidth that the optimizer reaches"""
    microbatch_ns: float = 2e6
    """the host's time for a micro-batch on a stage, while the device waits"""
    step_ns: float = 3e6
    """of a step beside everything else"""
    spread: float = 0.1
    """half of the 80 % interval of a step's time, in log time"""


PRIORS: Mapping[str, PlanNumber] = {
    "products": PlanNumber(1.0, 0.2, 0.3),
    "attention": PlanNumber(1.0, 0.2, 0.1),
    "memory": PlanNumber(0.8, 0.2, 0.2),
    "kernel_ns": PlanNumber(1500.0, 0.3),
    "launch_ns": PlanNumber(50_000.0, 0.5, 0.4),
    "inside": PlanNumber(1.0, 0.15, 0.15),
    "network": PlanNumber(1.0, 0.3),
    "transfer": PlanNumber(1.0, 0.3),
    "transfer_ns": PlanNumber(20_000.0, 0.5),
    "gradients": PlanNumber(1.0, 0.15),
    "optimizer": PlanNumber(0.8, 0.2),
    "microbatch_ns": PlanNumber(2e6, 0.7, 0.4),
    "step_ns": PlanNumber(3e6, 0.7, 0.4),
}


class TrainingNumbers(NamedTuple):
    """Numbers by the model of GPU that was measured, and those that all have in common."""

    by_device: Mapping[str, PlanNumbers]
    common: PlanNumbers

    def of(self, device: str) -> PlanNumbers:
        """The numbers of a model of GPU; those in common, with twice their spread, where it was not measured."""
        own = self.by_device.get(device)
        return self.common._replace(spread=TRANSFERRED_FACTOR * self.common.spread) if own is None else own

    def provenance(self, device: str) -> str:
        """ "fitted" to steps on that model of GPU, or "transferred" from others."""
        return "fitted" if device in self.by_device else "transferred"


TRANSFERRED_FACTOR = 2.0
"""of the spread, on a model of GPU without measured steps: assumed"""


@cache
def training_numbers() -> TrainingNumbers:
    """The numbers of `training_numbers.toml`."""
    text = (files(__package__) / "training_numbers.toml").read_text("utf-8")
    table: Mapping[str, Any] = tomllib.loads(text)  # Any: what TOML holds
    numbers = {name: PlanNumbers(**values) for name, values in table.items() if isinstance(values, dict)}
    return TrainingNumbers({name: of for name, of in numbers.items() if name != "common"}, numbers["common"])
