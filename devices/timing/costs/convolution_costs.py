"""Times of float32 convolutions on a GPU, by its own fit or by those of other GPUs, and the algorithm that is fastest.

    convolution_cost(device_spec("V100-PCIe"), images=64, channels=256, filters=256, size=14)   0.41 ms, "fitted"
    convolution_algorithm(...)                                                                  "Winograd"
    direction="to_filter", kernel=5 or stride=2, depthwise                                      "transferred", wider
    on P100-SXM2, which nobody measured                                                         "transferred"

The rows that fits are of are forward passes of 3 x 3 filters moved by 1. The formulas hold for others as well, so all
passes, filters, strides, layouts and groups follow them, with an interval that is wider by `UNMEASURED_SPREAD`. Images
of the rows were zeros, which GPUs under a power limit compute at a higher clock than numbers; so the rate that formulas
take shares of is the one that the device keeps under load (`sustained_clock`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from attrs import evolve

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ...spec import DeviceSpec
from ..fits.calibration import Calibration, DeviceFits
from ..fits.kernels.convolutions import FORWARD, PASSES, Convolutions
from ..fits.kernels.fastest_algorithm import fastest, times_by_algorithm
from ..fits.kernels.kernel_model import KernelModel
from ..fits.kernels.transferred import weights_of
from ..fits.layers import with_interval
from ..fits.prediction import Prediction
from .source import OpCost, Provenance, UnknownCost

UNMEASURED_SPREAD = 0.25
"""half of the 80 % interval that a pass, filter, stride, layout or group that no row has adds in log time: assumed"""
ASSUMED_FLOOR_NS = 2500.0


class ConvolutionFits(Protocol):
    """Finds the models of convolutions; `Calibration` does."""

    def device(self, name: str) -> object:
        """The models of a device; None for one without any."""
        ...

    def having(self, part: str) -> Iterable[DeviceFits]:
        """The devices that have a model of that part."""
        ...


class ConvolutionAnswer(NamedTuple):
    """Times of rows, the algorithm of each, the times by algorithm (a row each), and the models that said so."""

    said: Prediction
    algorithms: tuple[str, ...]
    times_ns: Floats
    models: tuple[KernelModel[Convolutions], ...]
    is_own: bool


def convolution_cost(
    spec: DeviceSpec,
    *,
    images: int,
    channels: int,
    filters: int,
    size: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    direction: str = FORWARD,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of one pass over a convolution in float32 (not TF32) on a GPU.

    Outputs of `size` x `size` pixels and filters of `kernel` x `kernel` points; `direction` is "forward", "to_input" or
    "to_filter". All kernels of the fastest algorithm are in it, transforms among them; neither a launch of the host,
    nor a bias, nor a change of layout is. Operations are those of the definition, whatever the algorithm. `calibration`
    None is the catalog's. InvalidArgumentError for a size below 1, UnknownCost for a CPU and where no GPU has a fit.
    """
    rows = _rows(direction, images, channels, filters, size, kernel, stride, groups)
    said = convolution_answer(spec, rows, is_measured(rows), calibration).said
    return said.first_cost(rows.flops, rows.bytes)


def convolution_algorithm(
    spec: DeviceSpec,
    *,
    images: int,
    channels: int,
    filters: int,
    size: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    direction: str = FORWARD,
    calibration: Calibration | None = None,
) -> str:
    """The algorithm that is fastest, of `ALGORITHMS`; arguments and errors as `convolution_cost`."""
    rows = _rows(direction, images, channels, filters, size, kernel, stride, groups)
    return convolution_answer(spec, rows, is_measured(rows), calibration).algorithms[0]


def _rows(
    direction: str, images: int, channels: int, filters: int, size: int, kernel: int, stride: int, groups: int
) -> Convolutions:
    if channels % groups or filters % groups:
        raise InvalidArgumentError(
            f"{channels} channels and {filters} filters do not divide into {groups} groups; give a divisor of both"
        )
    values = (images, size, size, channels, filters, kernel, kernel, stride, groups)
    counts = {name: [value] for name, value in zip(Convolutions.COUNTS, values, strict=True)}
    return Convolutions({"pass": [direction]}, counts)


def is_measured(rows: Convolutions) -> Floats:
    """1 for rows of the kind that was measured, 0 for others."""
    is_3x3 = (rows.size("tall") == 3) & (rows.size("broad") == 3)
    is_plain = (rows.size("stride") == 1) & (rows.size("groups") == 1)
    return np.asarray(is_3x3 & is_plain & rows.of_type("pass", PASSES[0]), dtype=np.float64)


def convolution_answer(
    spec: DeviceSpec, rows: Convolutions, measured: Floats, calibration: ConvolutionFits | None = None
) -> ConvolutionAnswer:
    """By the model of the device, or by those of all others; UnknownCost for a CPU, and where there is no model.

    `measured` says which rows are of the kind that was measured.
    """
    if not spec.launches_kernels:
        raise UnknownCost(f"{spec.name} is a {spec.kind}, and {rows.WHAT} are modelled on GPUs; ask for a GPU")
    calibration = Calibration.of_catalog() if calibration is None else calibration
    models = _models(spec, calibration)
    if not models:
        raise UnknownCost(f"no device of the calibration has a fit of {rows.WHAT}; calibrate one from rows of them")
    is_own = models[0].spec.name == spec.name
    loaded = under_load(spec)
    weights = weights_of(models, spec)
    kernels, halves = (np.array(each) for each in zip(*(model.kernels(rows, loaded) for model in models), strict=True))
    log_ns: Floats = weights @ np.log(kernels)
    apart = np.sqrt(weights @ (np.log(kernels) - log_ns) ** 2)
    own = 0.0 if is_own else Convolutions.SPREAD
    half = np.sqrt(weights @ halves**2 + apart**2 + own**2 + ((1 - measured) * UNMEASURED_SPREAD) ** 2)
    provenance: Provenance = "fitted" if is_own and bool(measured.all()) else "transferred"
    said = with_interval(np.maximum(np.exp(log_ns), least_kernel_ns(spec)), half, provenance)
    times = times_by_algorithm(models, rows, loaded)
    return ConvolutionAnswer(said, fastest(times), times, models, is_own)


def least_kernel_ns(spec: DeviceSpec) -> float:
    """The floor of the device's kernels, or what is assumed."""
    return float(spec.kernel_floor_ns or ASSUMED_FLOOR_NS)


def _models(spec: DeviceSpec, calibration: ConvolutionFits) -> tuple[KernelModel[Convolutions], ...]:
    own = calibration.device(spec.name)
    if isinstance(own, DeviceFits) and (model := own.kernels(Convolutions.PART)) is not None:
        return (model,)
    found = (each.kernels(Convolutions.PART) for each in calibration.having(Convolutions.PART))
    return tuple(model for model in found if model is not None)


@lru_cache(256)
def _loaded_rate(peak: int, clock: float) -> int:
    return max(1, round(peak * clock))


def under_load(spec: DeviceSpec) -> DeviceSpec:
    """The device with the rate that it keeps."""
    if spec.sustained_clock == 1:
        return spec
    rate = _loaded_rate(spec.peak_flops_per_s["fp32"], spec.sustained_clock)
    return evolve(spec, peak_flops_per_s={**spec.peak_flops_per_s, "fp32": rate}, sustained_clock=1.0)
