"""The rows "model/...": whole models with constant weights.

The perceptron at three batch sizes, and ResNet-50 on one image. Floor: only the matrix products of the model.
TensorFlow has one thread, as numpy's linear algebra has here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from partita.actors import open_session

from .bench import Bench
from .models import MLP_SIZES, RESNET_50, mlp, resnet50
from .rows import Case, Figure, Measured, share
from .running import side_by_side
from .sampling import best_of, interleave
from .workloads import Workload

Product = tuple[int, int, int]  # rows, inner, columns


async def _model(bench: Bench, workload: Workload, products: Sequence[Product]) -> Measured:
    async with open_session(workload.data, "cpu:1") as session:
        runs = await side_by_side(bench, session, workload, threads=1)
        taken = await interleave(runs, bench.sizes.rounds)
    figures = {name: Figure.of(sample) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), _products_floor(products))


async def _mlp(bench: Bench, batch: int) -> Measured:
    products = [(batch, inner, columns) for inner, columns in pairwise(MLP_SIZES)]
    divisor = bench.sizes.width_divisor
    return await _model(bench, mlp(batch, divisor), products if divisor == 1 else products[-1:])


async def _resnet50(bench: Bench) -> Measured:
    image, divisor = bench.sizes.image, bench.sizes.width_divisor
    return await _model(bench, resnet50(image, divisor), resnet_products(image, divisor))


def resnet_products(image: int, divisor: int) -> list[Product]:
    """The matrix products that equal the convolutions."""
    side = image // 2
    products = [(side * side, 7 * 7 * 3, 64 // divisor)]
    side, channels = side // 2, 64 // divisor
    for stage, (blocks, full) in enumerate(RESNET_50):
        narrow = full // divisor
        for index in range(blocks):
            before, side = side, -(-side // 2) if index == 0 and stage > 0 else side
            products += [(before * before, channels, narrow), (side * side, 9 * narrow, narrow)]
            products += [(side * side, narrow, 4 * narrow)] * (1 if index else 2)
            if not index:
                products[-1] = (side * side, channels, 4 * narrow)
            channels = 4 * narrow
    return [*products, (1, channels, 1000)]


def _products_floor(products: Sequence[Product]) -> float:
    operands = [(np.ones((m, k), np.float32), np.ones((k, n), np.float32)) for m, k, n in products]

    times = 1 if sum(m * k * n for m, k, n in products) > 1e8 else 100  # CPU clocks are coarse

    def multiply() -> None:
        for _ in range(times):
            for left, right in operands:
                np.matmul(left, right)

    return best_of(multiply, times)


CASES = [
    Case("model/MLP, batch 1", "tensorflow", share(0.7, 0.45), partial(_mlp, batch=1)),
    Case("model/MLP, batch 32", "tensorflow", share(1.2, 1.05), partial(_mlp, batch=32)),
    Case("model/MLP, batch 256", "tensorflow", share(1.2, 1.1), partial(_mlp, batch=256)),
    Case("model/ResNet-50, batch 1", "tensorflow", share(2.5, 1.9), _resnet50),
]
