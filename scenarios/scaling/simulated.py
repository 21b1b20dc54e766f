"""Simulated times of steps that differ in the number of GPUs, calibrated by the measured time of one GPU.

    ResNet-50, 64 images, parameters on the host of a DGX-1: measured 0.292 s on one GPU
        kernels take 1.25 times as long as the datasheet's roofline says     one GPU: 0.292 s
        the same factor on 8 GPUs                                            0.292 s, of which transfers alone 0.030 s

The factor belongs to a model of GPU and a network. It holds the efficiency of kernels that no catalog knows (Winograd
convolutions, clocks under a power limit), and changes nothing else: hosts and links are as the catalog says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from ...devices.calibration.validation.workers import run_calls
from ...devices.kernels.op_cost import PortDims
from ...devices.spec import DeviceSpec
from ...devices.timing.costs.fitted import FittedSource
from ...devices.timing.costs.source import CostRequest, OpCost
from ...devices.timing.simulate import simulate
from ...graph.ops.device_kinds import CPU
from ...graph.ops.properties import NodeProperties
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
    """The factor of kernels, by number of GPUs the simulated step, and seconds of one GPU's step without kernels."""

    factor: float
    steps: Mapping[int, ReplicatedStep]
    alone_s: float


class CurveRequest(NamedTuple):
    """A step on one GPU, how many images a GPU takes, and the numbers of GPUs that are asked for.

    With `one_gpu_s` the factor of kernels is that which meets it on one GPU.
    """

    setting: StepSetting
    images: int
    counts: tuple[int, ...]
    one_gpu_s: float | None
    factor: float = 1.0


_CURVES: dict[CurveRequest, SimulatedCurve] = {}
"""what this process has simulated: folds ask for the same curves"""
_LARGE = 8
"""simulating so many replicas is worth a process of its own"""


def simulated_curves(requests: Mapping[_Key, CurveRequest]) -> dict[_Key, SimulatedCurve]:
    """The curve of each request; those of a setting share their graphs, and large ones run side by side."""
    together: defaultdict[StepSetting, list[CurveRequest]] = defaultdict(list)
    for request in dict.fromkeys(requests.values()):
        if request not in _CURVES:
            together[request.setting].append(request)
    groups = sorted(together.values(), key=_replicas, reverse=True)
    large = [k for k, group in enumerate(groups) if _replicas(group) >= _LARGE]
    done = run_calls([partial(curves_of_setting, group) for group in groups], large, lambda: None)
    for group, curves in zip(groups, done, strict=True):
        _CURVES.update(zip(group, curves, strict=True))
    return {key: _CURVES[request] for key, request in requests.items()}


def _replicas(group: Sequence[CurveRequest]) -> int:
    return sum({count for request in group for count in request.counts})


def curves_of_setting(requests: Sequence[CurveRequest]) -> list[SimulatedCurve]:
    """The curve of each request; all have one setting."""
    source, setting = FittedSource(), requests[0].setting
    one = _CalibratedStep(setting._replace(gpus=1), source)
    factors = [
        request.factor if request.one_gpu_s is None else one.factor(request.images, request.one_gpu_s)
        for request in requests
    ]
    few = min(request.images for request in requests)
    one_s = one.step_s(few, 0.0)
    steps: list[dict[int, ReplicatedStep]] = [{} for _ in requests]
    for count in sorted({count for request in requests for count in request.counts}):
        played = one if count == 1 else _CalibratedStep(setting._replace(gpus=count), source)
        transfers_s = max(0.0, played.step_s(few, 0.0) - one_s)  # of parameters, whatever the images
        for request, factor, of_request in zip(requests, factors, steps, strict=True):
            if count in request.counts:
                step_s = played.step_s(request.images, factor)
                of_request[count] = ReplicatedStep(played.gpu, count, played.setting.hosts, step_s, transfers_s)
    return [SimulatedCurve(factor, of_request, one_s) for factor, of_request in zip(factors, steps, strict=True)]


class _CalibratedStep:
    """A step that is simulated with several numbers of images and factors of kernels."""

    def __init__(self, setting: StepSetting, source: FittedSource) -> None:
        self.setting = setting
        self._source = source
        self._cluster = setting.cluster()
        self._step = parallel_step(setting, self._cluster)
        self.gpu = next(device.spec.name for device in self._cluster if device.spec.kind != CPU.name)

    def step_s(self, images: int, factor: float) -> float:
        """Seconds of the step."""
        timeline = simulate(
            self._step.partitions,
            self._cluster,
            feeds={name: (images, *shape) for name, shape in self._step.fed.items()},
            shapes={name: ((images, *shape),) for name, shape in self._step.kept.items()},
            cost_source=ScaledKernels(self._source, factor),
        )
        return timeline.makespan_ns / NS_PER_S

    def factor(self, images: int, wanted_s: float) -> float:
        """The factor with which the step takes so long; the least one where transfers alone take longer.

        The time grows with the factor, at the end as a line does, so secants find it.
        """
        low, high = 0.0, 1.0
        low_s, high_s = self.step_s(images, low), self.step_s(images, high)
        for _ in range(_ROUNDS):
            if abs(high_s / wanted_s - 1) < _EXACT or high_s == low_s:
                break
            guess = max(0.0, high + (wanted_s - high_s) * (high - low) / (high_s - low_s))
            low, low_s, high, high_s = high, high_s, guess, self.step_s(images, guess)
        return high
