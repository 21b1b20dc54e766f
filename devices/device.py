"""A device of a cluster: a model of device, with a name and an incarnation.

The incarnation is never 0 and grows when the device restarts, so a key made before the restart differs from all keys
made after it.
"""

from __future__ import annotations

from attrs import Attribute, evolve, field, frozen

from ..errors import InvalidArgumentError
from .operating_costs import UNKNOWN_COSTS, OperatingCosts
from .spec import DeviceSpec

ILLEGAL_INCARNATION = 0


def _legal(owner: object, attribute: Attribute[int], value: int) -> None:
    if not 0 < value < 2**64:
        raise InvalidArgumentError(f"incarnation {value} must be between 1 and 2**64 - 1; 0 means unknown")


@frozen
class Device:
    """One device of a cluster.

    `host` says which machine it sits in: devices of one host reach each other without a network. It is the task's name
    unless several tasks share a machine. `operating_costs` are its price, power and failures, on which no time depends:
    devices that differ in nothing else are equal. InvalidArgumentError for an incarnation of 0.
    """

    spec: DeviceSpec
    index: int = 0
    job: str = "localhost"
    replica: int = 0
    task: int = 0
    incarnation: int = field(default=1, validator=_legal)
    host: str = field()
    operating_costs: OperatingCosts = field(default=UNKNOWN_COSTS, eq=False)
    name: str = field(init=False)

    @host.default
    def _task_as_host(self) -> str:
        return self.task_name

    @name.default
    def _full_name(self) -> str:
        return f"{self.task_name}/device:{self.type}:{self.index}"

    @property
    def type(self) -> str:
        """Name of its kind, as in device names: "GPU"."""
        return self.spec.kind

    @property
    def task_name(self) -> str:
        """Name of the task that owns the device: "/job:worker/replica:0/task:1"."""
        return f"/job:{self.job}/replica:{self.replica}/task:{self.task}"

    @property
    def local_name(self) -> str:
        """Name inside its own task: "/device:GPU:0"."""
        return f"/device:{self.type}:{self.index}"

    def restarted(self) -> Device:
        """The device after a restart: the same one with the next incarnation."""
        return evolve(self, incarnation=self.incarnation + 1)
