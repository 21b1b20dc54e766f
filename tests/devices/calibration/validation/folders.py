"""Small folders of measurements, made by formulas, that tests write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

SIZES = (16, 64, 256, 1024, 4096)


def product_ms(m: int, n: int, k: int) -> float:
    """A time that no model knows: a floor, and a rate that grows with the product."""
    return 0.004 + 2e-9 * m * n * k / (300e3 * (1 - 0.5 / (1 + m * n / 1e5)))


def products(
    systems: Sequence[str] = ("a100_sxm", "h100_sxm"), start: int = 0, step: int = 1, empty: bool = False
) -> str:
    """A `gemm_bf16.csv`: every `step`-th product of three sizes out of five, from `start` on."""
    shapes = [(m, n, k) for m in SIZES for n in SIZES for k in (128, 2048)][start::step]
    lines = [
        f"{system},{m},{n},{k},{'' if empty else f'{product_ms(m, n, k):.9g}'}"
        for system in systems
        for m, n, k in shapes
    ]
    return "\n".join(["system,m,n,k,latency_ms", *lines, ""])


def star(empty: bool = False) -> str:
    """A `maxmin_star_*.json` of three hosts: two flows share a link down, a third has its links alone."""
    links = [{"host": h, "up_Bps": 1e9 * (h + 1), "down_Bps": 1e9 * (h + 1), "latency_s": 1e-6} for h in range(3)]
    flows = [(1, 0, 1e9, 2.000002), (2, 0, 1e9, 2.000002), (0, 2, 1e9, 1.000002)]
    rows = [
        {"src": src, "dst": dst, "bytes": size, "start_s": 0.0} | ({} if empty else {"finish_s": finish})
        for src, dst, size, finish in flows
    ]
    return json.dumps({"links": links, "flows": rows})


def folder(path: Path, **files: str) -> Path:
    """A folder with these files; "gemm_bf16" is a CSV, "maxmin_star_..." JSON."""
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.{'json' if name.startswith('maxmin') else 'csv'}").write_text(text)
    return path
