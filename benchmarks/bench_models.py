"""The rows "model/...": whole models with constant weights, each twice.

"idle" is the wall time on a machine that does nothing else. "busy" is the CPU time beside processes that keep every
core busy: there a program pays for threads that wait by spinning, and the wall time would only say how the machine
shares its cores. Both sides use the threads that they use by default. Floor: only the matrix products of the model, on
one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import numpy as np

from partita.actors import open_session
from partita.devices.kernels.blas_threads import LIMIT

from .bench import Bench
from .busy import busy_cores
from .models import MLP_SIZES, RESNET_50, mlp, mobile_net, resnet50, towers
from .rows import Case, Figure, Measured, share
from .running import side_by_side
from .sampling import best_of, interleave
from .workloads import Workload

Product = tuple[int, int, int]  # rows, inner, columns


async def _model(bench: Bench, workload: Workload, products: Sequence[Product] = (), *, busy: bool) -> Measured:
    async with open_session(workload.data, f"cpu:{workload.devices}") as session:
        runs = await side_by_side(bench, session, workload)
        with busy_cores() if busy else nullcontext():
            taken = await interleave(runs, bench.sizes.rounds)
    figures = {name: Figure(sample.cpu_s) if busy else Figure.of(sample) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), _products_floor(products) if products else None)


async def _mlp(bench: Bench, batch: int, *, busy: bool = False) -> Measured:
    products = [(batch, inner, columns) for inner, columns in pairwise(MLP_SIZES)]
    divisor = bench.sizes.width_divisor
    return await _model(bench, mlp(batch, divisor), products if divisor == 1 else products[-1:], busy=busy)


async def _resnet50(bench: Bench, *, busy: bool) -> Measured:
    image, divisor = bench.sizes.image, bench.sizes.width_divisor
    return await _model(bench, resnet50(image, divisor), resnet_products(image, divisor), busy=busy)


async def _mobile_net(bench: Bench, *, busy: bool) -> Measured:
    return await _model(bench, mobile_net(bench.sizes.image, bench.sizes.width_divisor), busy=busy)


async def _towers(bench: Bench, *, busy: bool) -> Measured:
    return await _model(bench, towers(bench.sizes.image // 4, bench.sizes.width_divisor), busy=busy)


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

    with LIMIT.hold():
        return best_of(multiply, times)


_BUSY = share(1.5, 1.1)

CASES = [
    Case("model/MLP, batch 1", "tensorflow", share(0.7, 0.45), partial(_mlp, batch=1)),
    Case("model/MLP, batch 32, idle", "tensorflow", share(1.2, 1.05), partial(_mlp, batch=32)),
    Case("model/MLP, batch 32, busy", "tensorflow", _BUSY, partial(_mlp, batch=32, busy=True)),
    Case("model/MLP, batch 256, idle", "tensorflow", share(1.2, 1.1), partial(_mlp, batch=256)),
    Case("model/MLP, batch 256, busy", "tensorflow", _BUSY, partial(_mlp, batch=256, busy=True)),
    Case("model/ResNet-50, batch 1, idle", "tensorflow", share(2.5, 1.9), partial(_resnet50, busy=False)),
    Case("model/ResNet-50, batch 1, busy", "tensorflow", _BUSY, partial(_resnet50, busy=True)),
    Case("model/MobileNetV2, batch 1, idle", "tensorflow", share(1.5, 1.2), partial(_mobile_net, busy=False)),
    Case("model/MobileNetV2, batch 1, busy", "tensorflow", _BUSY, partial(_mobile_net, busy=True)),
    Case("model/four towers, idle", "tensorflow", share(2.5, 1.9), partial(_towers, busy=False)),
    Case("model/four towers, busy", "tensorflow", _BUSY, partial(_towers, busy=True)),
]
