"""One layer on the actors of all ranks: rows in, rows out, in float64 and in TensorFlow's ops unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from partita.actors import BlockingSession
from partita.graph.builder.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import prefix_of, write_out
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameters

Layer = Callable[[RankNetwork, Tensor], Mapping[str, Tensor]]
"""makes the nodes of a layer of some rows; what it returns is fetched"""


@dataclass(frozen=True)
class LayerRun:
    """What a layer gave, by rank, and its weights on the first rank."""

    values: list[dict[str, Array]]
    weights: dict[str, Array]


def run_layer(
    layer: Layer,
    x: Array,
    split: Split | None = None,
    *,
    fused: bool = False,
    weights: Mapping[str, Array] | None = None,
) -> LayerRun:
    """A layer of x [ranks of dp * rows, width], sequences of one token; `weights` replace what it starts with.

    Ranks of tp have the same rows, or with sequence parallelism parts of them.
    """
    split = split or Split()
    mesh = Mesh(dp=split.dp, tp=split.tp, ep=split.ep)
    devices = [f"/device:CPU:{k}" for k in range(mesh.devices)]
    b = GraphBuilder()
    program = RankProgram(b, mesh)
    parameters = RankParameters(program, "float64")
    sizes = RankSizes(1, len(x) // split.dp, 1, (devices[0],), fused)
    network = RankNetwork(program, parameters, split, sizes)
    with b.device(devices[0]):
        rows = b.placeholder("x", "float64", (network.own_rows, x.shape[1]))
        fetches = layer(network, rows)
    all_weights = [*parameters.all, *parameters.untrained]
    starts = [node.name for _, node in parameters.assignments]
    graph = write_out(b.graph(), mesh, devices)
    copies = [prefix_of(rank) for rank in range(mesh.devices)]
    parts = x.reshape(split.dp, -1, network.own_rows, x.shape[1])
    fed = {f"{copy}x": parts[k // split.tp, k % split.tp % parts.shape[1]] for k, copy in enumerate(copies)}
    fed |= {f"{copy}{name}/read:0": value for copy in copies for name, value in (weights or {}).items()}
    with BlockingSession(graph, f"cpu:{mesh.devices}") as session:
        session.run([], targets=[f"{copy}{name}" for copy in copies for name in starts])
        found = session.run([f"{copy}{t.name}" for copy in copies for t in fetches.values()], fed)
        own = session.run([weight.read.name for weight in all_weights])
    count = len(fetches)
    values = [dict(zip(fetches, found[k * count :], strict=False)) for k in range(len(copies))]
    return LayerRun(values, dict(zip([weight.name for weight in all_weights], map(np.asarray, own), strict=True)))
