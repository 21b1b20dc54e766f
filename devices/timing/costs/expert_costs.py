"""Costs of the expert layer of one GPU in a serving framework.

    expert_layer_cost(device_spec("H100-SXM"), tokens=64, hidden=4096, intermediate=1536, experts=128, top_k=8, ep=4,
                      dtype="fp8", skew=1.2)               OpCost(..., provenance="fitted")
    the same on B300-SXM, which nobody measured            OpCost(..., provenance="transferred")

`grouped_product_cost` is something else: one product of all experts alone, as in training, without what is around it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import isfinite

from ....errors import InvalidArgumentError
from ...spec import DeviceSpec
from ..fits.calibration import Calibration
from ..fits.kernels.element_types import rate_of
from ..fits.kernels.experts import DTYPES, KERNELS, ExpertLayers, skews
from ..fits.kernels.transferred import distance
from ..fits.layers import one_of
from .kernel_costs import kernel_cost
from .source import OpCost

LEAST_SKEW, MOST_SKEW = 0.001, 10.0


def expert_layer_cost(
    spec: DeviceSpec,
    *,
    tokens: int,
    hidden: int,
    intermediate: int,
    experts: int,
    top_k: int,
    dtype: str,
    tp: int = 1,
    ep: int = 1,
    skew: float | None = None,
    gated: bool = True,
    kernel: str | None = None,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of the expert layer of the busiest of `ep` GPUs, for `tokens` tokens of all of them together.

    Included are gating, permutation, both products (up, with its gate if `gated`, and down), quantising of the input
    where `dtype` needs it, and the gather of the results. No all-to-all and no all-reduce is included, and no expert
    that all tokens share. Experts are `hidden` x `intermediate`; each has 1 / `tp` of its intermediate size on a GPU,
    and a GPU has 1 / `ep` of the experts.

    `skew` None routes tokens evenly; else it is the exponent of a power law of how often experts are asked for
    (`fits/kernels/expert_load`). `dtype` is "bf16", "fp8", "fp8_block", "nvfp4", "w4a16_mxfp4" (MXFP4 weights, 16-bit
    arithmetic) or "w4a8_mxfp4_mxfp8". `kernel` is "default", "min_latency", "triton" or "deepgemm"; None is the one
    that was measured in that type, on the device or the one most like it, "default" before others. `calibration` None
    is the catalog's.

    Raises InvalidArgumentError for sizes that cannot be, an unknown type or kernel, and a type whose units the GPU
    lacks; UnknownCost for a CPU and where no device of the calibration has a fit of that type and kernel.
    """
    _check(experts, top_k, ep, skew)
    one_of([dtype], DTYPES, "dtype")
    calibration = Calibration.of_catalog() if calibration is None else calibration
    counts = {
        "tokens": tokens,
        "hidden": hidden,
        "intermediate": intermediate,
        "experts": experts,
        "top_k": top_k,
        "tp": tp,
        "ep": ep,
        "products": 3 if gated else 2,
        "skew": int(skews([skew or 0.0])[0]),
    }
    kernel = _kernel(spec, dtype, calibration) if kernel is None else kernel
    rows = ExpertLayers({"dtype": [dtype], "kernel": [kernel]}, {name: [size] for name, size in counts.items()})
    if spec.launches_kernels:
        rate_of(spec, dtype)
    return kernel_cost(spec, rows, calibration)


def _check(experts: int, top_k: int, ep: int, skew: float | None) -> None:
    if ep < 1 or experts % ep:
        raise InvalidArgumentError(f"experts = {experts} must be a multiple of ep = {ep}, so that each GPU has as many")
    if top_k > experts:
        raise InvalidArgumentError(f"top_k = {top_k} must be at most experts = {experts}")
    if skew is not None and not (isfinite(skew) and LEAST_SKEW <= skew <= MOST_SKEW):
        raise InvalidArgumentError(
            f"skew = {skew} must be an exponent from {LEAST_SKEW} to {MOST_SKEW:g}, or None for even routing"
        )


def _kernel(spec: DeviceSpec, dtype: str, calibration: Calibration) -> str:
    """The kernel that was measured in that type, on the device before on others, on like devices before on unlike."""
    for groups in _groups(spec, calibration):
        for kernel in KERNELS:
            if f"{dtype}/{kernel}" in groups:
                return kernel
    return KERNELS[0]


def _groups(spec: DeviceSpec, calibration: Calibration) -> Iterator[Container[str]]:
    """What the device has fits for, then what others have, those with the nearest datasheets first."""
    own = calibration.device(spec.name)
    others = sorted(calibration.having(ExpertLayers.PART), key=lambda fits: distance(spec, fits.spec))
    for fits in [*((own,) if own is not None else ()), *others]:
        model = fits.kernels(ExpertLayers.PART)
        if model is not None:
            yield model.groups
