"""Files of products below 16 bits and of expert layers: their lines become rows, and are fitted and predicted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices import device_spec
from partita.devices.calibration.files.experts_and_low_bit import EXPERTS, LOW_BIT
from partita.devices.timing.fits.kernels.low_bit import LowBitProducts
from partita.errors import InvalidArgumentError

EXPERT_HEAD = (
    "system,moe_dtype,kernel_source,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,"
    "distribution,latency_ms\n"
)


def written(folder: Path, text: str) -> list[Path]:
    """A file of these lines."""
    path = folder / "rows.csv"
    path.write_text(text, "utf-8")
    return [path]


def test_lines_of_expert_layers(tmp_path: Path) -> None:
    """Kernel, gate and routing of each; lines of other types are left out."""
    lines = EXPERT_HEAD + (
        "b200_sxm,nvfp4,moe_torch_flow_min_latency,8,4096,1536,8,128,2,4,balanced,0.05\n"
        "b200_sxm,bfloat16,moe_torch_flow_nongated,8,4096,1536,8,128,2,4,power_law_1.01,0.05\n"
        "b200_sxm,int3,moe_torch_flow,8,4096,1536,8,128,2,4,balanced,0.05\n"
    )
    rows = EXPERTS.rows_of(EXPERTS.read(written(tmp_path, lines), False))
    assert rows.texts == {"dtype": ("nvfp4", "bf16"), "kernel": ("min_latency", "default")}
    assert rows.counts["products"].tolist() == [3, 2]
    assert rows.counts["skew"].tolist() == [1, 1011]
    assert rows.groups == ("nvfp4/min_latency", "bf16/default")


def test_a_routing_that_is_not_known_is_named(tmp_path: Path) -> None:
    """With the line."""
    lines = EXPERT_HEAD + "b200_sxm,nvfp4,moe_torch_flow,8,4096,1536,8,128,2,4,zipf,0.05\n"
    with pytest.raises(InvalidArgumentError, match=r"rows.csv:2: distribution 'zipf' is not known"):
        EXPERTS.rows_of(EXPERTS.read(written(tmp_path, lines), False))


def test_made_up_products_are_fitted_and_predicted(tmp_path: Path) -> None:
    """Times of the formula with other numbers come out again to some percent, for shapes that were not seen."""
    draw = np.random.default_rng(0)
    sizes = {name: np.exp2(draw.uniform(4, 13, 120)).astype(int) for name in LowBitProducts.COUNTS}
    numbers = [1.3 * number.start for number in LowBitProducts.NUMBERS]
    spec = device_spec("h100_sxm")
    times = LowBitProducts({"dtype": ["fp8"] * 120}, sizes).formula_ns(numbers, spec) / 1e6
    columns = zip(*sizes.values(), times, strict=True)
    text = "system,gemm_dtype,m,n,k,latency_ms\n" + "".join(
        f"h100_sxm,fp8,{m},{n},{k},{float(time)!r}\n" for m, n, k, time in columns
    )
    lines = LOW_BIT.read(written(tmp_path, text), False)
    model = LOW_BIT.models(lines.take(np.arange(90)))["h100_sxm"]
    asked = lines.take(np.arange(90, 120))
    said = model.predict(LOW_BIT.rows_of(asked)).time_ns / 1e6
    assert np.mean(np.abs(said / asked.measured["latency_ms"] - 1)) < 0.06
