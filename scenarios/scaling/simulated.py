"""Simulated times of steps that differ in the number of GPUs, calibrated by the measured time of one GPU.

    ResNet-50, 64 images, parameters on the host of a DGX-1: measured 0.292 s on one GPU
        kernels take 1.25 times as long as the datasheet's roofline says     one GPU: 0.292 s
        the same factor on 8 GPUs                                            0.292 s, of which transfers alone 0.030 s

The factor belongs to a model of GPU and a network. It holds the efficiency of kernels that no catalog knows (Winograd
convolutions, clocks under a power limit), and changes nothing else: hosts and links are as the catalog says.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from ...devices.calibration.validation.workers import run_calls
from ...devices.timing.costs.fitted import FittedSource
from ...devices.timing.costs.source import CostRequest, OpCost
from ...devices.timing.simulate import simulate
from ...graph.ops.device_kinds import CPU
from ...graph.ops.properties import NodeProperties
from ...devices.kernels.op_cost import PortDims
from ...devices.spec import DeviceSpec
from .overheads import ReplicatedStep
from .steps import StepSetting, parallel_step

_Key = TypeVar("_Key", bound=Hashable)
NS_PER_S = 1e9
_ROUNDS = 8
_EXACT = 1e-6


class ScaledKernels:
    """Costs of another source, those of kernels of devices other than CPUs multiplied by `factor`."""

    def __init__(self, source: FittedSource, factor: float) -> None:
        self._source = source
        self._factor = factor

    def cost(self, properties: NodeProperties, inputs: PortDims, outputs: PortDims, spec: DeviceSpec) -> OpCost:
        """The scaled cost of one run."""
        return self.costs([CostRequest(properties, inputs, outputs, spec)])[0]

    def costs(self, batch: Sequence[CostRequest]) -> list[OpCost]:
        """The scaled cost of each request."""
        costs = self._source.costs(batch)
        return [
            cost if request.spec.kind == CPU.name else self._scaled(cost)
            for request, cost in zip(batch, costs, strict=True)
        ]

    def _scaled(self, cost: OpCost) -> OpCost:
        return cost._replace(time_ns=round(cost.time_ns * self._factor), low_ns=None, high_ns=None)


class SimulatedCurve(NamedTuple):
    """The factor of kernels, and by number of GPUs the simulated step."""

    factor: float
    steps: Mapping[int, ReplicatedStep]


class CurveRequest(NamedTuple):
    """A step on one GPU, and the numbers of GPUs that are asked for.

    With `one_gpu_s` the factor of kernels is that which meets it on one GPU.
    """

    setting: StepSetting
    counts: tuple[int, ...]
    one_gpu_s: float | None
    factor: float = 1.0


_CURVES: dict[CurveRequest, SimulatedCurve] = {}
"""what this process has simulated: folds ask for the same curves"""
_LARGE = 8
"""simulating so many replicas is worth a process of its own"""


def simulated_curves(requests: Mapping[_Key, CurveRequest]) -> dict[_Key, SimulatedCurve]:
    """The curve of each request; large ones side by side, the largest first."""
    new = [request for request in dict.fromkeys(requests.values()) if request not in _CURVES]
    new.sort(key=lambda request: -sum(request.counts))
    large = [k for k, request in enumerate(new) if sum(request.counts) >= _LARGE]
    curves = run_calls([partial(simulated_curve, request) for request in new], large, lambda _: None)
    _CURVES.update(zip(new, curves, strict=True))
    return {key: _CURVES[request] for key, request in requests.items()}


def simulated_curve(request: CurveRequest) -> SimulatedCurve:
    """The steps on each number of GPUs."""
    source = FittedSource()
    alone = _Played(request.setting._replace(gpus=1), source)
    factor = request.factor if request.one_gpu_s is None else alone.factor(request.one_gpu_s)
    first_s = alone.step_s(0.0)
    steps = {}
    for count in request.counts:
        played = alone if count == 1 else _Played(request.setting._replace(gpus=count), source)
        transfers_s = max(0.0, played.step_s(0.0) - first_s)
        steps[count] = ReplicatedStep(played.gpu, count, played.setting.hosts, played.step_s(factor), transfers_s)
    return SimulatedCurve(factor, steps)


class _Played:
    """A step that is simulated with several factors of kernels."""

    def __init__(self, setting: StepSetting, source: FittedSource) -> None:
        self.setting = setting
        self._source = source
        self._cluster = setting.cluster()
        self._parts = parallel_step(setting, self._cluster)
        self.gpu = next(device.spec.name for device in self._cluster if device.spec.kind != CPU.name)

    def step_s(self, factor: float) -> float:
        """Seconds of the step."""
        timeline = simulate(self._parts, self._cluster, cost_source=ScaledKernels(self._source, factor))
        return timeline.makespan_ns / NS_PER_S

    def factor(self, wanted_s: float) -> float:
        """The factor with which the step takes so long; the least one where transfers alone take longer.

        The time grows with the factor, at the end as a line does, so secants find it.
        """
        low, high = 0.0, 1.0
        low_s, high_s = self.step_s(low), self.step_s(high)
        for _ in range(_ROUNDS):
            if abs(high_s / wanted_s - 1) < _EXACT or high_s == low_s:
                break
            guess = max(0.0, high + (wanted_s - high_s) * (high - low) / (high_s - low_s))
            low, low_s, high, high_s = high, high_s, guess, self.step_s(guess)
        return high
