"""The rows "node/...", "step/..." and "pairs/...": the cost of a tiny node, of a step, and of crossing devices.

The graphs are chains and drawn graphs of scalars or of arrays of one element, chains over devices, and many pairs at
once. Floors: the plainest loop over the same nodes; one checkpoint and one kernel; a dict and a callback per pair.

Rows about tiny arrays have arrays of one element, because a session makes scalars of arrays without dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add
from typing import Any

import numpy as np

from partita.actors import open_session

from .bench import Bench
from .rows import Case, Figure, Measured, share
from .running import side_by_side
from .sampling import Run, Sample, best_of, interleave
from .workloads import Shape, Workload, chain, drawn, hops, pairs


async def _steps(bench: Bench, workload: Workload) -> dict[str, Sample]:
    """Samples of one step."""
    async with open_session(workload.data, f"cpu:{workload.devices}") as session:
        return await interleave(await side_by_side(bench, session, workload), bench.sizes.rounds)


async def _per_node(bench: Bench, make: Callable[[int, Shape], Workload], shape: Shape) -> Measured:
    workload = make(bench.sizes.program_nodes, shape)
    taken = await _steps(bench, workload)
    figures = {name: Figure.of(sample, workload.nodes) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), loop_floor(workload.nodes, shape))


def loop_floor(count: int, shape: Shape) -> float:
    """A loop over tuples that adds slots."""
    value: Any = np.full(shape, 0.5, np.float32) if shape else np.float32(0.5)
    kernel: Any = np.add if shape else add  # a ufunc and a function
    program = [(kernel, index, 0, index + 1) for index in range(count)]

    def loop() -> None:
        slots = [value] * (count + 1)
        for call, i, j, o in program:
            slots[o] = call(slots[i], slots[j])

    return best_of(loop, count)


async def _per_step(bench: Bench, devices: int) -> Measured:
    """A chain with one node on each device."""
    taken = await _steps(bench, hops(devices))
    figures = {name: Figure.of(sample) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), _handover_floor(1000) * (devices - 1) or None)


async def _few_pairs(bench: Bench) -> Measured:
    return await _pairs(bench, bench.sizes.few_pairs, bench.sizes.rounds)


async def _many_pairs(bench: Bench) -> Measured:
    return await _pairs(bench, bench.sizes.many_pairs, bench.sizes.rounds_when_slow)


async def _pairs(bench: Bench, count: int, rounds: int) -> Measured:
    """Values that cross between two devices, all ready at once: a step with them minus the same step on one device."""
    apart, together = pairs(count, devices=2), pairs(count, devices=1)
    async with (
        open_session(apart.data, "cpu:2") as far,
        open_session(together.data, "cpu:1") as near,
    ):
        runs: dict[str, Run] = {}
        for suffix, session, workload in ((" apart", far, apart), (" together", near, together)):
            found = await side_by_side(bench, session, workload)
            runs |= {name + suffix: run for name, run in found.items()}
        taken = await interleave(runs, rounds)
    figures = {
        name: Figure.of(taken[f"{name} apart"] - taken[f"{name} together"], count)
        for name in ("ours", "peer")
        if f"{name} apart" in taken
    }
    return Measured(figures["ours"], figures.get("peer"), _handover_floor(count))


def _handover_floor(count: int) -> float:
    """Puts a waiter into a dict, takes it out when a value comes, and calls it."""
    keys = [f"from;to;edge{index}" for index in range(count)]

    def handovers() -> None:
        table: dict[str, Callable[[object], None]] = {}
        arrived: list[object] = []
        for key in keys:
            table[key] = arrived.append
        for key in keys:
            table.pop(key)(key)

    return best_of(handovers, count)


CASES = [
    Case("node/chain of scalars", "tensorflow", share(1.0, 0.5), partial(_per_node, make=chain, shape=())),
    Case("node/drawn, scalars", "tensorflow", share(1.0, 0.5), partial(_per_node, make=drawn, shape=())),
    Case("node/chain of arrays", "tensorflow", share(3, 2), partial(_per_node, make=chain, shape=(1,))),
    Case("node/drawn, arrays", "tensorflow", share(3, 2), partial(_per_node, make=drawn, shape=(1,))),
    Case("step/1 op", "tensorflow", share(0.5, 0.1), partial(_per_step, devices=1)),
    Case("step/chain over 8 devices", "tensorflow", share(1.0, 0.4), partial(_per_step, devices=8)),
    Case("step/chain over 64 devices", "tensorflow", share(1.5, 0.9), partial(_per_step, devices=64)),
    Case("pairs/1k at once", "tensorflow", share(0.3, 0.1), _few_pairs),
    Case("pairs/100k at once", "tensorflow", share(0.3, 0.1), _many_pairs),
]
