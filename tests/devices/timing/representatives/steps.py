"""Small steps of representatives, and the same steps of all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from partita.devices import Cluster, cut
from partita.devices.timing import Timeline, simulate
from partita.graph import Graph, GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import as_representatives, prefix_of, write_out

Program = Callable[[RankProgram, list[str]], list[Tensor]]
"""adds the nodes of a program, whose stages are on the devices given; returns what is to be computed"""


def variable(ranks: RankProgram, shape: tuple[int, ...], name: str = "w") -> Tensor:
    """The value of a float32 variable."""
    handle = ranks.b.op("VarHandleOp", dtype=np.float32, shape=shape, name=name)[0]
    return ranks.b.op("ReadVariableOp", handle, dtype=np.float32, name=f"{name}/read")[0]


def gpus(cluster: Cluster) -> list[str]:
    """The names of the GPUs."""
    return [device.name for device in cluster if device.type == "GPU"]


def graph_of(program: Program, mesh: Mesh, devices: list[str]) -> tuple[Graph, list[str]]:
    """The graph of a program, and the names of its targets."""
    ranks = RankProgram(GraphBuilder(), mesh)
    stages = [devices[stage * mesh.per_stage] for stage in range(mesh.pp)]
    targets = [tensor.node for tensor in program(ranks, stages)]
    return ranks.b.graph(), targets


def of_representatives(program: Program, mesh: Mesh, cluster: Cluster) -> tuple[dict[str, Graph], list[str]]:
    """The partitions of representatives, and the targets."""
    graph, targets = graph_of(program, mesh, gpus(cluster))
    return cut(as_representatives(graph, mesh), cluster, targets=targets), targets


def played(program: Program, mesh: Mesh, cluster: Cluster, **options: Any) -> Timeline:
    """The timeline of representatives; `options` are those of `simulate`."""
    return simulate(of_representatives(program, mesh, cluster)[0], cluster, **options)


def written_out(program: Program, mesh: Mesh, cluster: Cluster, **options: Any) -> Timeline:
    """The timeline of all ranks."""
    graph, targets = graph_of(program, mesh, gpus(cluster))
    names = [prefix_of(rank) + target for rank in range(mesh.per_stage) for target in targets]
    return simulate(cut(write_out(graph, mesh, gpus(cluster)), cluster, targets=names), cluster, **options)


def summed(axes: str, *, times: int = 1, shape: tuple[int, ...] = (1024, 1024)) -> Program:
    """A product on the first stage, of which the result is summed over axes so many times."""

    def program(ranks: RankProgram, stages: list[str]) -> list[Tensor]:
        with ranks.on_stage(0, stages[0]):
            x = variable(ranks, shape, "x")
            y = ranks.b.op("MatMul", x, x, transpose_b=True, name="y")[0]
            for _ in range(times):
                y = ranks.all_reduce(y, axes, name="sum")
        return [y]

    return program


def sent(shape: tuple[int, ...] = (1024, 1024)) -> Program:
    """A tensor that goes from each stage to the next."""

    def program(ranks: RankProgram, stages: list[str]) -> list[Tensor]:
        with ranks.on_stage(0, stages[0]):
            x = variable(ranks, shape, "x")
        for number, stage in enumerate(stages):
            with ranks.on_stage(number, stage):
                x = ranks.b.op("Neg", x, name=f"neg_{number}")[0]
        return [x]

    return program
