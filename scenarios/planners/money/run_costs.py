"""Prices, power and failures of a machine -> the money fields of estimates, and what they rest on, in sentences.

    costs = RunCosts.of(machine, model, tokens=300_000_000_000, storage_bytes_per_s=10**11)
    costs.added_to(estimates)        the same, with usd_per_step, joules_per_step, usd_per_run, days and goodput
    costs.assumptions                ("H100-SXM has no power in the cluster: joules are left out; write ...",)

64 devices at 2.50 $/h cost 160 $/h. A step of 9 s then costs 160 / 400 = 0.40 $, and with 700 W a device 403.2 kJ. A
run has as many steps as its tokens fill, the last one perhaps in part; with failures it takes 1 / goodput times as
long, and costs as many times as much. What the cluster does not say is None, and so is what would follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Self

from attrs import evolve, field, frozen

from ....devices.operating_costs import OperatingCosts
from ....errors import InvalidArgumentError
from ...models.description import ModelDescription
from ...models.split import Precision
from ..estimates import Estimate
from ..machine import Machine
from .goodput import Checkpointing, best_checkpointing

_S_PER_HOUR, _HOURS_PER_DAY = 3600, 24
_TRAINED_BYTES = {"float32": 4 + 8, "float64": 8 + 16}
_TRAINED_BYTES_OF_NARROW = 2 + 4 + 8


def checkpoint_bytes(parameters: int, precision: Precision) -> int:
    """The bytes of a checkpoint: weights, float32 masters of narrow ones, and both moments of Adam.

    14 a parameter (2 + 4 + 8) in bfloat16, float16 and fp8, whose weights are kept in 2 bytes; 12 in float32, which is
    its own master.
    """
    return parameters * _TRAINED_BYTES.get(precision, _TRAINED_BYTES_OF_NARROW)


@frozen
class RunCosts:
    """What steps of a model on a machine cost.

    `costs` are of all its devices together; a split that uses some of them pays for its part. `tokens` of a run and the
    storage's rate for checkpoints are None where nobody asked.
    """

    costs: OperatingCosts
    devices: int
    device_name: str
    parameters: int
    tokens: int | None = field(default=None, kw_only=True)
    storage_bytes_per_s: float | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        machine: Machine,
        model: ModelDescription,
        *,
        tokens: int | None = None,
        storage_bytes_per_s: float | None = None,
    ) -> Self:
        """InvalidArgumentError for a run of less than one token, and for a rate that is not above 0."""
        for name, number in (("tokens", tokens), ("storage_bytes_per_s", storage_bytes_per_s)):
            if number is not None and not number > 0:
                raise InvalidArgumentError(f"{name}={number!r} must be above 0")
        return cls(
            machine.cluster.operating_costs,
            machine.devices,
            machine.spec.name,
            model.parameters,
            tokens=tokens,
            storage_bytes_per_s=storage_bytes_per_s,
        )

    def added_to(self, estimates: Iterable[Estimate]) -> list[Estimate]:
        """The estimates with dollars, joules, days and goodput. A run that never ends has goodput 0, and no days."""
        return [self._added_to(estimate) for estimate in estimates]

    def _added_to(self, estimate: Estimate) -> Estimate:
        part, step_s = estimate.split.devices / self.devices, estimate.step_ms / 1000
        usd_per_hour = None if self.costs.usd_per_hour is None else part * self.costs.usd_per_hour
        checkpoints = self.checkpointing(estimate)
        days = self._days(estimate, 1.0 if checkpoints is None else checkpoints.goodput)
        return evolve(
            estimate,
            usd_per_step=None if usd_per_hour is None else usd_per_hour * step_s / _S_PER_HOUR,
            joules_per_step=None if self.costs.watts is None else part * self.costs.watts * step_s,
            usd_per_run=None if usd_per_hour is None or days is None else usd_per_hour * _HOURS_PER_DAY * days,
            days=days,
            goodput=None if checkpoints is None else checkpoints.goodput,
        )

    def checkpointing(self, estimate: Estimate) -> Checkpointing | None:
        """The best time between checkpoints of a plan; None where failures or storage are unknown.

        A restart reads the checkpoint at the rate at which it was written.
        """
        if self.costs.mtbf_s is None or self.storage_bytes_per_s is None:
            return None
        checkpoint_s = checkpoint_bytes(self.parameters, estimate.split.precision) / self.storage_bytes_per_s
        mtbf_s = self.costs.mtbf_s * self.devices / estimate.split.devices
        return best_checkpointing(mtbf_s, checkpoint_s, restart_s=checkpoint_s)

    def _days(self, estimate: Estimate, goodput: float) -> float | None:
        if self.tokens is None or not goodput:
            return None
        step_s = estimate.step_ms / 1000
        tokens_of_step = round(estimate.tokens_per_s * step_s)
        days = -(-self.tokens // tokens_of_step) * step_s / _S_PER_HOUR / _HOURS_PER_DAY / goodput
        return days if isfinite(days) else None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is left out as the cluster does not say it, and how failures are counted, as sentences."""
        missing = [name for name, known in self._asked.items() if known is None]
        left_out = [f"{self.device_name} has no {name} in the cluster: {_WITHOUT[name]}" for name in missing]
        return (*left_out, *self._of_failures)

    @property
    def _asked(self) -> dict[str, float | None]:
        numbers = {"price": self.costs.usd_per_hour, "power": self.costs.watts}
        return numbers | ({} if self.tokens is None else {"mtbf": self.costs.mtbf_s})

    @property
    def _of_failures(self) -> tuple[str, ...]:
        if self.costs.mtbf_s is None:
            return ()
        if self.storage_bytes_per_s is None:
            return ("failures are left out: how long a checkpoint takes is not known without the storage's rate",)
        return (
            "a run stands still while weights, masters and moments are written at the storage's rate, as often as is "
            "best; after a failure they are read at the same rate, and nothing else is waited for",
        )


_WITHOUT = {
    "price": 'dollars are left out; write price = "2.50 $/h" in its table of a cluster file',
    "power": 'joules are left out; write power = "700 W" in its table of a cluster file',
    "mtbf": 'no failure is counted; write mtbf = "50000 h" in its table of a cluster file',
}
