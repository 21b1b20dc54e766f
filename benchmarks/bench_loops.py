"""The rows "loop/...": the cost of an iteration of a while loop, on one device and on two that exchange its condition.

The loop is built as `tf.while_loop` builds it, with a counter and a sum. Floor: the same loop in Python. The rows of
functions have the same loop as a While, alone or around one of ten iterations, against the same graph lowered.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from partita.actors import open_session
from partita.graph.builder import GraphBuilder

from .bench import Bench
from .loops_of_functions import loop_of_functions
from .rows import LOWERED, Case, Figure, Measured, share, speed_up
from .running import Ours, check_equal, repeated, side_by_side
from .sampling import best_of, interleave
from .workloads import Workload, device_name

_FRAME: dict[str, Any] = {"frame_name": "while", "parallel_iterations": 10}  # what `tf.while_loop` asks for by default


def loop(iterations: int, *, devices: int = 1) -> Workload:
    """Adds the fed number `iterations` times; the counter is on the first device, the sum on the last."""
    b = GraphBuilder()
    first, last = device_name(0), device_name(devices - 1)
    x = b.placeholder("x", "float32", (), device=last)
    with b.device(first):
        limit = b.op("Enter", b.constant(iterations, "int32"), is_constant=True, **_FRAME)[0]
        counter = b.op("Enter", b.constant(0, "int32"), **_FRAME)[0]
        counted = b.op("Merge", [counter, b.later("int32")])
        go_on = b.op("LoopCond", b.op("Less", counted[0], limit))[0]
        count = b.identity(b.op("Switch", counted[0], go_on)[1])
        following = b.op("AddV2", count, b.constant(1, "int32", control=[count.node]))
        b.close_loop(counted, b.op("NextIteration", following)[0])
    with b.device(last):
        term = b.op("Enter", x, is_constant=True, **_FRAME)[0]
        summed = b.op("Merge", [b.op("Enter", x, **_FRAME)[0], b.later("float32")])
        switch = b.op("Switch", summed[0], go_on)
        b.close_loop(summed, b.op("NextIteration", b.op("AddV2", b.identity(switch[1]), term))[0])
        b.op("Exit", switch[0], name="sum")
    data = b.graph_def().SerializeToString(deterministic=True)
    return Workload(f"loop {iterations} {devices}", data, iterations, {"x:0": ()}, ("sum:0",), devices=devices)


async def _per_iteration(bench: Bench, devices: int) -> Measured:
    workload = loop(bench.sizes.iterations, devices=devices)
    async with open_session(workload.data, f"cpu:{devices}") as session:
        taken = await interleave(await side_by_side(bench, session, workload), bench.sizes.rounds)
    figures = {name: Figure.of(sample, workload.nodes) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), _loop_floor(workload.nodes))


async def _of_functions(bench: Bench, *, nested: bool) -> Measured:
    """The figure of the peer is that of the lowered graph."""
    iterations = bench.sizes.iterations
    called, lowered = (loop_of_functions(iterations, lowered=lowered, nested=nested) for lowered in (False, True))
    async with open_session(called.data, "cpu:1") as session, open_session(lowered.data, "cpu:1") as other:
        ours, theirs = Ours(session, called), Ours(other, lowered)
        check_equal(await ours.step(), [value.ravel().tolist() for value in await theirs.step()])
        runs = {"ours": await repeated(bench, ours.steps), "peer": await repeated(bench, theirs.steps)}
        taken = await interleave(runs, bench.sizes.rounds)
    figures = {name: Figure.of(sample, iterations) for name, sample in taken.items()}
    return Measured(figures["ours"], figures["peer"])


def _loop_floor(iterations: int) -> float:
    one, limit, term = np.int32(1), np.int32(iterations), np.float32(0.5)

    def run() -> None:
        count, total = np.int32(0), np.float32(0.5)
        while count < limit:
            count, total = count + one, total + term

    return best_of(run, iterations)


CASES = [
    Case("loop/1 device", "tensorflow", speed_up(0.4, 4), partial(_per_iteration, devices=1)),
    Case("loop/2 devices", "tensorflow", speed_up(1, 1.5), partial(_per_iteration, devices=2)),
    Case("loop/functions", LOWERED, share(1.15, 1.0), partial(_of_functions, nested=False)),
    Case("loop/functions, nested", LOWERED, share(1.15, 1.0), partial(_of_functions, nested=True)),
]
