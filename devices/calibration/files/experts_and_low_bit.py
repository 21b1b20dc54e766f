"""Files of aiconfigurator's products below 16 bits and expert layers.

    h100_sxm,fp8,64,4096,4096,0.0071                             ->   LowBitProducts: fp8, 64 x 4096 x 4096, 7100 ns
    b200_sxm,nvfp4,moe_torch_flow_min_latency,8,...,balanced,... ->   ExpertLayers: nvfp4, min_latency, gated, balanced

Lines of other element types than those of the families are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ...timing.fits.kernels import experts, low_bit
from ...timing.fits.kernels.experts import ExpertLayers, skews
from ...timing.fits.kernels.low_bit import LowBitProducts
from ..kernel_file import KernelFile
from ..validation.rows import COUNT, TEXT, MeasuredRows

_DTYPES: Mapping[str, str] = {"bfloat16": "bf16", "sq": "int8", "int8_wo": "int8_weights", "int4_wo": "int4_weights"}
"""names of the files that are not those of the families"""
_KERNELS: Mapping[str, str] = {
    "moe_torch_flow_min_latency": "min_latency",
    "moe_torch_flow_triton_fp8_block": "triton",
    "deepgemm": "deepgemm",
}
"""kernels that are not the framework's default ones"""
_NOT_GATED = "moe_torch_flow_nongated"
_COUNTS: Mapping[str, str] = {
    "tokens": "num_tokens",
    "hidden": "hidden_size",
    "intermediate": "inter_size",
    "experts": "num_experts",
    "top_k": "topk",
    "tp": "moe_tp_size",
    "ep": "moe_ep_size",
}
_BALANCED, _POWER_LAW = "balanced", "power_law_"


def _dtypes(lines: MeasuredRows, column: str) -> list[str]:
    return [_DTYPES.get(text, text) for text in lines.texts[column]]


def _known(column: str, dtypes: Sequence[str], lines: MeasuredRows) -> NDArray[np.bool_]:
    return np.array([dtype in dtypes for dtype in _dtypes(lines, column)], dtype=np.bool_)


def _low_bit_rows(lines: MeasuredRows) -> LowBitProducts:
    return LowBitProducts(
        {"dtype": _dtypes(lines, "gemm_dtype")}, {name: lines.keys[name] for name in LowBitProducts.COUNTS}
    )


def _exponent(distribution: str, place: str) -> float:
    """Of a routing: 0 of a balanced one."""
    if distribution == _BALANCED:
        return 0.0
    try:
        return float(distribution.removeprefix(_POWER_LAW))
    except ValueError:
        raise InvalidArgumentError(
            f"{place}: distribution {distribution!r} is not known; it must be {_BALANCED} or {_POWER_LAW}EXPONENT"
        ) from None


def _expert_rows(lines: MeasuredRows) -> ExpertLayers:
    sources = lines.texts["kernel_source"]
    texts = {"dtype": _dtypes(lines, "moe_dtype"), "kernel": [_KERNELS.get(source, "default") for source in sources]}
    exponents = [_exponent(*pair) for pair in zip(lines.texts["distribution"], lines.places, strict=True)]
    counts = {name: lines.keys[column] for name, column in _COUNTS.items()}
    counts["products"] = np.array([2 if source == _NOT_GATED else 3 for source in sources], dtype=np.int64)
    counts["skew"] = skews(exponents)
    return ExpertLayers(texts, counts)


LOW_BIT = KernelFile(
    name="gemm_lowbit",
    file="gemm_lowbit.csv",
    family=LowBitProducts,
    system="system",
    keys={"gemm_dtype": TEXT, "m": COUNT, "n": COUNT, "k": COUNT},
    latency="latency_ms",
    ns_per_unit=1e6,
    rows_of=_low_bit_rows,
    is_modelled=partial(_known, "gemm_dtype", low_bit.DTYPES),
    by=("gemm_dtype",),
)
EXPERTS = KernelFile(
    name="moe",
    file="moe.csv",
    family=ExpertLayers,
    system="system",
    keys={
        "moe_dtype": TEXT,
        "kernel_source": TEXT,
        **dict.fromkeys(_COUNTS.values(), COUNT),
        "distribution": TEXT,
    },
    latency="latency_ms",
    ns_per_unit=1e6,
    rows_of=_expert_rows,
    is_modelled=partial(_known, "moe_dtype", experts.DTYPES),
    by=("moe_dtype",),
)
