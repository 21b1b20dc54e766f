"""The row "gradients": the cost of adding gradients to a graph, per differentiated op.

The graph is a recurrent network written out step by step, of unknown batch size. Floor: as many names and edges as the
gradient has, put into lists.
"""

from __future__ import annotations

from partita.graph.builder import GraphBuilder
from partita.graph.gradients import gradients
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import GraphDef

from .bench import Bench
from .rows import Case, Figure, Measured, speed_up
from .sampling import Run, Sample, best_of, interleave, now
from .workloads import Workload

_XS = ("w:0", "u:0", "b:0", "x:0")
_WIDTH = 8
_OPS_A_STEP = 5


def recurrent(ops: int) -> Workload:
    """h = tanh(h w + x u + b), repeated, five ops per step."""
    b = GraphBuilder()
    x, h = (b.placeholder(name, "float32", (None, _WIDTH)) for name in ("x", "h"))
    w, u = (b.placeholder(name, "float32", (_WIDTH, _WIDTH)) for name in ("w", "u"))
    bias = b.placeholder("b", "float32", (_WIDTH,))
    for _ in range(max(1, ops // _OPS_A_STEP)):
        h = b.op("Tanh", b.op("BiasAdd", h @ w + x @ u, bias))[0]
    data = b.graph_def().SerializeToString(deterministic=True)
    return Workload(f"recurrent {ops}", data, ops, {}, (h.name,))


async def _gradients(bench: Bench) -> Measured:
    workload = recurrent(bench.sizes.undone_ops)
    peer = bench.peer("tensorflow")
    graph_def = GraphDef.FromString(workload.data)

    async def ours() -> Sample:
        graph = graph_def_to_graph(graph_def)
        before = now()
        gradients(graph, workload.fetches, _XS)
        return now() - before

    runs: dict[str, Run] = {"ours": ours}
    if peer is not None:
        running = peer

        async def theirs() -> Sample:
            return running.time("gradients", file=str(bench.file(workload)), ys=workload.fetches, xs=_XS)

        runs["peer"] = theirs
    await ours()  # the first call reads the rules
    taken = await interleave(runs, bench.sizes.rounds_when_slow)
    figures = {name: Figure.of(sample, workload.nodes) for name, sample in taken.items()}
    return Measured(figures["ours"], figures.get("peer"), _floor(workload.nodes))


def _floor(ops: int) -> float:
    def run() -> None:
        names: list[str] = []
        edges: tuple[list[int], list[int]] = ([], [])
        for node in range(2 * ops):
            names.append(f"gradients/n{node}")
            for port in (0, 1):
                edges[0].append(node)
                edges[1].append(port)

    return best_of(run, ops)


CASES = [Case("gradients", "tensorflow", speed_up(10, 30), _gradients)]
