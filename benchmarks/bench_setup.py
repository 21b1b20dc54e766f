"""The rows "set-up/...": from an imported graph to the end of the first step, minus the time of a step.

The graphs are drawn ones, on one device, and on eight with a drawn device for every node: against TensorFlow, and by
themselves ("a node"). Floor: one tuple per node, made column by column, and one look-up by name. "first run" is all of
the first `run` of a graph of which each of many devices has a few nodes.
"""

from __future__ import annotations

from functools import partial
from operator import add

from partita.actors import open_session

from .bench import Bench
from .rows import Case, Figure, Measured, limit, speed_up
from .running import Ours, our_set_up, their_set_up
from .sampling import Run, Sample, best_of, interleave
from .workloads import drawn


async def _set_up(bench: Bench, devices: int) -> Measured:
    workload = drawn(bench.sizes.graph_nodes, devices=devices)
    peer = bench.peer("tensorflow")
    runs: dict[str, Run] = {"ours": lambda: our_set_up(workload)}
    if peer is not None:
        running = peer

        async def theirs() -> Sample:
            return their_set_up(bench, running, workload)

        runs["peer"] = theirs
    taken = await interleave(runs, bench.sizes.rounds_when_slow)
    figures = {name: Figure.of(sample, workload.nodes) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), _floor(workload.nodes))


async def _alone(bench: Bench, devices: int) -> Measured:
    workload = drawn(bench.sizes.graph_nodes, devices=devices)
    taken = await interleave({"ours": lambda: our_set_up(workload)}, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"], workload.nodes))


async def _first_run(bench: Bench) -> Measured:
    workload = drawn(bench.sizes.program_nodes, devices=bench.sizes.many_devices)
    if not bench.cold:
        async with open_session(workload.data, f"cpu:{workload.devices}") as session:
            await Ours(session, workload).step()

    async def ours() -> Sample:
        async with open_session(workload.data, f"cpu:{workload.devices}") as session:
            return await Ours(session, workload).steps(1)

    taken = await interleave({"ours": ours}, 1 if bench.cold else bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"]))


def _floor(count: int) -> float:
    names = [f"scope{index % 17}/n{index}" for index in range(count)]
    index_of = {name: index for index, name in enumerate(names)}
    slots = list(range(1, count + 1))

    def instructions() -> object:
        return list(zip([add] * count, map(index_of.__getitem__, names), slots, slots, strict=True))

    return best_of(instructions, count)


CASES = [
    Case("set-up/1 device", "tensorflow", speed_up(5, 10), partial(_set_up, devices=1)),
    Case("set-up/8 devices", "tensorflow", speed_up(5, 10), partial(_set_up, devices=8)),
    Case("set-up/1 device, a node", "", limit(2e-6, 1.5e-6), partial(_alone, devices=1)),
    Case("set-up/8 devices, a node", "", limit(9e-6, 6e-6), partial(_alone, devices=8)),
    Case("set-up/first run, 1,024 devices", "", limit(0.4, 0.2), _first_run),
]
