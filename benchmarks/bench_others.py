"""The rows "node/against ...": tiny nodes, against other programs that run graphs node by node in Python.

The graph is a chain of additions. Floor: the plainest loop over the same nodes.
"""

from __future__ import annotations

from functools import partial

from partita.actors import open_session

from .bench import Bench
from .bench_steps import loop_floor
from .rows import Case, Figure, Measured, share
from .running import Ours, repeated
from .sampling import Run, Sample, interleave
from .workloads import chain


async def _chain(bench: Bench, name: str) -> Measured:
    """Each peer builds a chain of the same length with its own API."""
    workload, peer = chain(bench.sizes.program_nodes), bench.peer(name)
    async with open_session(workload.data) as session:
        ours = Ours(session, workload)
        await ours.step()
        runs: dict[str, Run] = {"ours": await repeated(bench, ours.steps)}
        if peer is not None:
            running = peer
            running.call("start", nodes=workload.nodes)

            async def steps(count: int) -> Sample:
                return running.time("steps", count=count)

            runs["peer"] = await repeated(bench, steps)
        taken = await interleave(runs, bench.sizes.rounds)
    figures = {key: Figure.of(sample, workload.nodes) for key, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), loop_floor(workload.nodes, ()))


CASES = [
    Case(
        "node/against onnx.reference", "onnx.reference", share(1 / 10, 1 / 20), partial(_chain, name="onnx.reference")
    ),
    Case("node/against dask", "dask", share(1 / 10, 1 / 50), partial(_chain, name="dask")),
    Case("node/against torch.fx", "torch.fx", share(1 / 3, 1 / 8), partial(_chain, name="torch.fx")),
]
