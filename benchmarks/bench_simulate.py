"""The rows "simulate/...": the cost of a simulated step, against other simulators and for a thousand devices.

per node          `simulate` per node of the partitions, a drawn node of eight CPUs each
grappler          `cut` and `simulate` per op, against Grappler's MeasureCosts; Grappler's item is made beforehand
simpy engine      from the plan to the events, against simpy with a process per node and a resource per device
simpy whole       `simulate`, against the same preparation followed by that use of simpy
other shapes      `simulate` per op of a graph in which every op has shapes of its own
nested functions  `simulate` per function, each of which calls the next
loop              100,000 iterations of a while loop; over two GPUs its value is copied twice in each
1,024 devices     a whole process: reads a graph from a file, cuts it, simulates it

"cold" is the first time in a process of its own, imports of the families of ops included; "warm" is later.
"""

from __future__ import annotations

import json
from functools import partial

from partita.devices import cut, simulate
from partita.graph import Graph
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.structured import while_loop

from .bench import Bench
from .bench_loops import loop
from .fresh import Ended, fresh
from .rows import Case, Figure, Measured, limit, speed_up
from .running import request
from .sampling import Run, Sample, interleave, now
from .simulating import play, prepare, write_plan
from .workloads import GPUS_PER_HOST, Workload, drawn, nested, shaped, stages

_DEVICES = 8
_SHAPE = (64,)


def _cut(workload: Workload, kind: str = "cpu") -> dict[str, Graph]:
    return cut(
        workload.data,
        f"{kind}:{workload.devices}",
        feeds=tuple(workload.feeds),
        fetches=workload.fetches,
        targets=workload.targets,
    )


async def _per_node(bench: Bench) -> Measured:
    """`simulate` alone: its partitions are there already."""
    workload = drawn(bench.sizes.graph_nodes, _SHAPE, devices=_DEVICES)
    partitions = _cut(workload)
    nodes = sum(sum(1 for _ in graph.op_nodes()) for graph in partitions.values())

    async def ours() -> Sample:
        return _simulated(workload, partitions)

    taken = await interleave({"ours": ours}, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"], nodes))


def _simulated(workload: Workload, partitions: dict[str, Graph], kind: str = "cpu") -> Sample:
    before = now()
    simulate(partitions, f"{kind}:{workload.devices}")
    return now() - before


async def _grappler(bench: Bench, devices: int) -> Measured:
    workload = drawn(bench.sizes.graph_nodes, _SHAPE, devices=devices)
    peer = bench.peer("tensorflow")

    async def ours() -> Sample:
        before = now()
        simulate(_cut(workload), f"cpu:{devices}")
        return now() - before

    runs: dict[str, Run] = {"ours": ours}
    if peer is not None:
        running, file = peer, str(bench.file(workload))

        async def theirs() -> Sample:
            return running.time("measure_costs", file=file, devices=devices, fetches=workload.fetches)

        runs["peer"] = theirs
    taken = await interleave(runs, bench.sizes.rounds_when_slow)
    figures = {name: Figure.of(sample, workload.nodes) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"))


async def _simpy(bench: Bench, *, whole: bool) -> Measured:
    """Per node of the partitions."""
    workload = drawn(bench.sizes.graph_nodes, _SHAPE, devices=_DEVICES)
    partitions, cluster = _cut(workload), f"cpu:{_DEVICES}"
    work = prepare(partitions, cluster)

    async def prepared() -> Sample:
        before = now()
        prepare(partitions, cluster)
        return now() - before

    async def played() -> Sample:
        before = now()
        play(work)
        return now() - before

    async def simulated() -> Sample:
        return _simulated(workload, partitions)

    runs: dict[str, Run] = {"ours": simulated if whole else played}
    peer = bench.peer("simpy")
    if peer is not None:
        running, file = peer, bench.folder / "plan.npz"
        write_plan(work, file)
        running.call("check", file=str(file))

        async def theirs() -> Sample:
            plain = running.time("play", file=str(file))
            return plain + await prepared() if whole else plain

        runs["peer"] = theirs
    taken = await interleave(runs, bench.sizes.rounds_when_slow)
    figures = {name: Figure.of(sample, len(work[0].graph)) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"))


async def _loop(bench: Bench) -> Measured:
    """All iterations of a while loop whose count follows from constants."""
    return await _simulations(bench, loop(bench.sizes.simulated_iterations), "cpu")


async def _loop_over_gpus(bench: Bench) -> Measured:
    """The same of one whose value goes to another GPU and back in every iteration."""
    return await _simulations(bench, _back_and_forth(bench.sizes.simulated_iterations), "gpu")


async def _loop_peak(bench: Bench) -> Measured:
    """The memory of a process that simulates the loop over two GPUs."""
    asked = request(bench, _back_and_forth(bench.sizes.simulated_iterations))
    ended = fresh("benchmarks.whole_simulation", json.dumps({**asked, "cluster": "gpu:2"}))
    return Measured(Figure(float(ended.output)))


async def _simulations(bench: Bench, workload: Workload, kind: str) -> Measured:
    partitions = _cut(workload, kind)

    async def ours() -> Sample:
        return _simulated(workload, partitions, kind)

    taken = await interleave({"ours": ours}, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"]))


async def _warm(bench: Bench, workload: Workload) -> Measured:
    """`simulate` again and again; graphs are cut beforehand."""
    partitions = _cut(workload)

    async def ours() -> Sample:
        return _simulated(workload, partitions)

    await ours()
    taken = await interleave({"ours": ours}, bench.sizes.rounds_when_slow)
    return Measured(Figure.of(taken["ours"], workload.nodes))


async def _cold(bench: Bench, workload: Workload) -> Measured:
    """The first `simulate` of a process, which says itself how long it took."""
    ended = fresh("benchmarks.cold_simulation", json.dumps(request(bench, workload)))
    wall_s, cpu_s = json.loads(ended.output)
    return Measured(Figure.of(Sample(wall_s, cpu_s), workload.nodes))


async def _shaped(bench: Bench, *, cold: bool) -> Measured:
    return await (_cold if cold else _warm)(bench, shaped(bench.sizes.shaped_ops))


async def _nested(bench: Bench, *, cold: bool) -> Measured:
    return await (_cold if cold else _warm)(bench, nested(bench.sizes.nested_functions))


def _back_and_forth(iterations: int) -> Workload:
    """Products of a value that two GPUs compute in turns."""
    b = GraphBuilder()

    def product(value: Tensor, gpu: int) -> Tensor:
        with b.device(f"/device:GPU:{gpu}"):
            return b.op("MatMul", value, value)[0]

    with b.device("/device:GPU:0"):
        x = b.placeholder("x", "float32", (8, 8))
        _, value = while_loop(
            b,
            lambda i, _: b.op("Less", i, iterations),
            lambda i, value: (b.op("AddV2", i, 1)[0], product(product(value, 0), 1)),
            [b.constant(0), x],
        )
        b.identity(value, name="y")
    data = b.graph_def().SerializeToString(deterministic=True)
    return Workload(f"back and forth {iterations}", data, iterations, {"x:0": (8, 8)}, ("y:0",), devices=2)


async def _many_devices(bench: Bench) -> Measured:
    return Measured(Figure.of(_process(bench).sample))


async def _many_devices_peak(bench: Bench) -> Measured:
    return Measured(Figure(float(_process(bench).output)))


def _process(bench: Bench) -> Ended:
    """The process of a thousand devices, which two rows share."""
    if not bench.many_devices:
        devices = bench.sizes.many_devices
        cluster = bench.folder / "many.toml"
        cluster.write_text(
            f'[[device]]\njob = "worker"\ntasks = {-(-devices // GPUS_PER_HOST)}\n'
            f'spec = "H100-SXM"\ncount = {GPUS_PER_HOST}\n'
        )
        workload = stages(bench.sizes.many_nodes, _SHAPE, devices=devices)
        asked = {**request(bench, workload), "cluster": str(cluster)}
        bench.many_devices.append(fresh("benchmarks.whole_simulation", json.dumps(asked)))
    return bench.many_devices[0]


CASES = [
    Case("simulate/per node", "", limit(10e-6, 5e-6), _per_node),
    Case("simulate/grappler, 1 device", "tensorflow", speed_up(5, 10), partial(_grappler, devices=1)),
    Case("simulate/grappler, 8 devices", "tensorflow", speed_up(4, 8), partial(_grappler, devices=_DEVICES)),
    Case("simulate/simpy engine", "simpy", speed_up(8, 12), partial(_simpy, whole=False)),
    Case("simulate/simpy whole", "simpy", speed_up(3, 5), partial(_simpy, whole=True)),
    Case("simulate/loop of 100,000", "", limit(1), _loop),
    Case("simulate/other shapes, cold", "", limit(20e-6, 8e-6), partial(_shaped, cold=True)),
    Case("simulate/other shapes, warm", "", limit(20e-6, 8e-6), partial(_shaped, cold=False)),
    Case("simulate/nested functions, cold", "", limit(1e-3, 0.4e-3), partial(_nested, cold=True)),
    Case("simulate/nested functions, warm", "", limit(1e-3, 0.4e-3), partial(_nested, cold=False)),
    Case("simulate/loop of 100,000, 2 GPUs", "", limit(1, 0.1), _loop_over_gpus),
    Case("simulate/loop of 100,000, 2 GPUs, peak", "", limit(200e6), _loop_peak, unit="B"),
    Case("simulate/1,024 devices", "", limit(25, 12), _many_devices),
    Case("simulate/1,024 devices, peak", "", limit(2e9, 1.3e9), _many_devices_peak, unit="B"),
]
