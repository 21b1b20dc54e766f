"""The rows "import/...": time to read and validate a graph, and the memory that it takes.

The graph is a drawn one of tiny nodes in a file. Floors: parsing the message, for time; the names of the nodes, for
memory.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from partita.graph import Graph, GraphDef, import_graph_def

from .bench import Bench
from .fresh import fresh
from .memory import resident_bytes
from .rows import Case, Figure, Measured, limit, share, speed_up
from .sampling import Run, Sample, best_of, interleave, now
from .workloads import Workload, drawn

COPIES = 4


async def _import(bench: Bench, action: str) -> Measured:
    """`import_graph_def` of bytes, against one of TensorFlow's two ways."""
    workload = drawn(bench.sizes.graph_nodes)
    peer, file = bench.peer("tensorflow"), bench.file(workload)

    async def ours() -> Sample:
        before = now()
        import_graph_def(workload.data, Graph())
        return now() - before

    runs: dict[str, Run] = {"ours": ours}
    if peer is not None:
        running = peer

        async def theirs() -> Sample:
            return running.time(action, file=str(file))

        runs["peer"] = theirs
    taken = await interleave(runs, bench.sizes.rounds)
    figures = {name: Figure.of(sample, workload.nodes) for name, sample in taken.items()}
    floor = best_of(lambda: GraphDef.FromString(workload.data), workload.nodes)
    return Measured(figures["ours"], figures.get("peer"), floor)


async def _alone(bench: Bench) -> Measured:
    """`import_graph_def` of bytes, by itself."""
    workload = drawn(bench.sizes.graph_nodes)

    async def ours() -> Sample:
        before = now()
        import_graph_def(workload.data, Graph())
        return now() - before

    taken = await interleave({"ours": ours}, bench.sizes.rounds)
    return Measured(Figure.of(taken["ours"], workload.nodes))


async def _from_python(bench: Bench) -> Measured:
    return await _import(bench, "import_python")


async def _from_c(bench: Bench) -> Measured:
    return await _import(bench, "import_c")


async def _memory(bench: Bench) -> Measured:
    """Resident memory per node once a graph is imported, in fresh processes."""
    workload = drawn(bench.sizes.graph_nodes)
    file = bench.file(workload)
    ours = float(fresh("benchmarks.bench_import", str(file)).output)
    peer = bench.peer("tensorflow")
    theirs = Figure(peer.call("graph_bytes", file=str(file), copies=COPIES) / workload.nodes) if peer else None
    return Measured(Figure(ours / workload.nodes), theirs, _names_bytes(workload) / workload.nodes)


def _names_bytes(workload: Workload) -> int:
    names = [node.name for node in GraphDef.FromString(workload.data).node]
    return sum(map(sys.getsizeof, names))


def _graph_bytes(data: bytes) -> float:
    """Memory of an imported graph: the growth of the process when more copies are imported."""
    kept = [_imported(data)]
    gc.collect()
    before = resident_bytes()
    kept += [_imported(data) for _ in range(COPIES)]
    gc.collect()
    return (resident_bytes() - before) / COPIES


def _imported(data: bytes) -> Graph:
    graph = Graph()
    import_graph_def(data, graph)
    return graph


CASES = [
    Case("import/Python API", "tensorflow", speed_up(8, 15), _from_python),
    Case("import/C API", "tensorflow", speed_up(1, 1.5), _from_c),
    Case("import/a node", "", limit(3e-6, 2.5e-6), _alone),
    Case("import/memory", "tensorflow", share(0.20, 0.10), _memory, unit="B"),
]

if __name__ == "__main__":
    print(_graph_bytes(Path(sys.argv[1]).read_bytes()))
