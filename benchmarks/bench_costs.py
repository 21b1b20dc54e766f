"""The row "costs/...": times of ops by the fits of a device, against its roofline, where the fits have been read.

The ops are those of a layer of a transformer, with sizes that no other layer has: products, a softmax, sums, and an
activation. Both sources are new in each round, so that nothing was asked before.
"""

from __future__ import annotations

from functools import partial

from partita.devices import FittedSource, RooflineSource, device_spec
from partita.devices.timing.costs.source import CostRequest, costs_of
from partita.graph.dtypes import DataType, Dims
from partita.graph.ops.properties import NodeProperties, properties_of

from .bench import Bench
from .rows import ROOFLINE, Case, Figure, Measured, share
from .sampling import Run, Sample, interleave, now


def _ops(dtype: DataType) -> dict[str, NodeProperties]:
    return {
        op: properties_of(op, {"T": dtype}) for op in ("MatMul", "BatchMatMulV2", "Softmax", "AddV2", "Tanh", "Mul")
    }


def layer(tokens: int, width: int, ops: dict[str, NodeProperties], device: str) -> list[CostRequest]:
    """The requests of one layer: four products, scores and their sums, a softmax, and what is between them."""
    spec, rows, wide, heads = device_spec(device), (tokens, width), (tokens, 4 * width), width // 64
    scores: Dims = (heads, tokens, tokens)
    asked: list[tuple[str, tuple[Dims, ...], Dims]] = [
        ("MatMul", (rows, (width, 3 * width)), (tokens, 3 * width)),
        ("BatchMatMulV2", ((heads, tokens, 64), (heads, 64, tokens)), scores),
        ("Mul", (scores, ()), scores),
        ("Softmax", (scores,), scores),
        ("BatchMatMulV2", (scores, (heads, tokens, 64)), (heads, tokens, 64)),
        ("MatMul", (rows, (width, width)), rows),
        ("AddV2", (rows, rows), rows),
        ("MatMul", (rows, (width, 4 * width)), wide),
        ("Tanh", (wide,), wide),
        ("Mul", (wide, wide), wide),
        ("MatMul", (wide, (4 * width, width)), rows),
        ("AddV2", (rows, (width,)), rows),
    ]
    return [CostRequest(ops[op], inputs, (output,), spec) for op, inputs, output in asked]


async def _costs(bench: Bench, device: str, dtype: DataType) -> Measured:
    ops = _ops(dtype)
    count = max(1, bench.sizes.shaped_ops // 12)
    batch = [request for i in range(count) for request in layer(128 + 8 * i, 64 * (4 + i % 29), ops, device)]
    costs_of(FittedSource(), batch)  # reads the fits
    runs: dict[str, Run] = {name: partial(_asked, batch, name) for name in ("ours", "peer")}
    taken = await interleave(runs, bench.sizes.rounds)
    figures = {name: Figure.of(sample, len(batch)) for name, sample in taken.items()}
    return Measured(figures["ours"], figures["peer"])


async def _asked(batch: list[CostRequest], name: str) -> Sample:
    source = FittedSource() if name == "ours" else RooflineSource()
    before = now()
    costs_of(source, batch)
    return now() - before


CASES = [
    Case("costs/fitted, float32", ROOFLINE, share(1.3, 1.1), partial(_costs, device="V100-PCIe", dtype=DataType.FLOAT)),
    Case(
        "costs/fitted, bfloat16", ROOFLINE, share(1.3, 1.1), partial(_costs, device="H100-SXM", dtype=DataType.BFLOAT16)
    ),
]
