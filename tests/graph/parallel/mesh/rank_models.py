"""Rank programs for tests: a perceptron with column and row products over tp or ep, on a stage for each of its layers.

model = RankModel(Mesh(pp=2, tp=2, dp=2), rows=2)
model.graph()          the program of one rank for one micro-batch; "x" and "y" are fed, "loss" is its share
model.gradients        what micro-batches add up: the gradient of each weight, and how many rows there are
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from partita.actors import open_session
from partita.graph import Graph, GraphBuilder, gradients
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import Array
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import prefix_of, write_out

WIDTH, INNER = 4, 8
RATE = 0.05


class RankWeight(NamedTuple):
    """A weight: its variable, its value, the axes over which it is shared out, its stage, and the shape of a part."""

    handle: Tensor
    read: Tensor
    over: str
    stage: int
    part: list[int]


@dataclass
class RankModel:
    """The program of one rank: `layers` layers of `kind`, and a loss that is a sum over rows / `total` rows."""

    mesh: Mesh
    rows: int = 2
    microbatches: int = 1
    layers: int = 2
    optimizer: str = "adam"
    clips: bool = False
    over: str = "tp"
    """the axis that shares out the products; ranks of ep have rows of their own, which are gathered for them"""
    kind: str = "CPU"
    shards: str = ""
    """the axis over which read nodes give shards, as they do with zero=3"""
    b: GraphBuilder = field(default_factory=GraphBuilder)
    weights: dict[str, RankWeight] = field(default_factory=dict)
    starts: list[Operation] = field(default_factory=list)
    gradients: list[str] = field(default_factory=list)
    gradient_of: dict[str, str] = field(default_factory=dict)
    """by the name of a variable its gradient"""

    @property
    def devices(self) -> list[str]:
        """The devices of all ranks."""
        return [f"/device:{self.kind}:{rank}" for rank in range(self.mesh.devices)]

    @property
    def stages(self) -> list[str]:
        """The device of the first rank of each stage."""
        return self.devices[:: self.mesh.per_stage]

    @property
    def total(self) -> int:
        """The rows of the global batch."""
        return self.rows * self.mesh.dp * self.mesh.cp * self.microbatches

    @property
    def scopes(self) -> dict[str, str]:
        """The device of each layer, by scope."""
        return {f"layer_{k}": self.stages[self.stage(k)] for k in range(self.layers)}

    def stage(self, layer: int) -> int:
        """The stage of a layer."""
        return layer * self.mesh.pp // self.layers

    def graph(self) -> Graph:
        """The program."""
        b, r = self.b, RankProgram(self.b, self.mesh)
        with r.on_stage(0, self.stages[0]):
            h = b.placeholder("x", "float64", (self.rows, WIDTH))
        for k in range(self.layers):
            with r.on_stage(self.stage(k), self.stages[self.stage(k)]), b.scope(f"layer_{k}"):
                h = self._layer(r, h, k)
        last = self.stage(self.layers - 1)
        with r.on_stage(last, self.stages[last]):
            y = b.placeholder("y", "float64", (self.rows, WIDTH))
            error = b.op("Sum", b.op("Square", b.op("Sub", h, y)), [0, 1])
            loss = b.op("Mul", error, np.float64(1 / self.total), name="share")
            self.gradients = [b.op("Sum", b.op("OnesLike", y), [0, 1], name="counted")[0].name]
        found = gradients(b, [loss[0].name], [weight.read for weight in self.weights.values()])
        slopes = dict(zip(self.weights, [b.tensor(g) for g in found if g is not None], strict=True))
        self.gradients += [slope.name for slope in slopes.values()]
        self.gradient_of = {self.weights[name].handle.node: slope.name for name, slope in slopes.items()}
        with r.on_stage(last, self.stages[last]):
            r.all_reduce(loss[0], "dp+cp", name="loss") if self.mesh.size("dp+cp") > 1 else b.identity(
                loss, name="loss"
            )
            b.op("Identity", "counted", name="rows_counted")
        factor = self._factor(r, slopes) if self.clips else None
        updates = [self._update(r, name, slope, factor) for name, slope in slopes.items()]
        with r.on_stage(0, self.stages[0]):
            b.group(*updates, name="train")
            b.group(*self.starts, name="initialise")
        return b.graph()

    def _layer(self, r: RankProgram, h: Tensor, k: int) -> Tensor:
        b = self.b
        gain = self._weight(r, f"layer_{k}/gain", (WIDTH,), None)
        h0 = b.op("Mul", h, gain)[0]
        into = r.copied(h0, "tp") if self.over == "tp" else r.all_gather(h0, self.over)
        wide = b.op("Tanh", b.op("MatMul", into, self._weight(r, f"layer_{k}/up", (WIDTH, INNER), 1)))[0]
        down = b.op("MatMul", wide, self._weight(r, f"layer_{k}/down", (INNER, WIDTH), 0))[0]
        out = r.all_reduce(down, "tp") if self.over == "tp" else r.reduce_scatter(down, self.over)
        return b.op("AddV2", h, b.op("Tanh", out))[0]

    def _weight(self, r: RankProgram, name: str, shape: tuple[int, ...], split: int | None) -> Tensor:
        b = self.b
        draw = np.random.default_rng([len(name), *name.encode()])
        whole = draw.normal(size=shape) / 2 if len(shape) > 1 else 1 + draw.normal(size=shape) / 8
        part, over = list(shape), ""
        value: Tensor = b.constant(whole)
        if split is not None and self.mesh.size(self.over) > 1:
            part[split] //= self.mesh.size(self.over)
            over = self.over
            step = np.zeros(len(shape), np.int32)
            step[split] = part[split]
            value = b.op("Slice", value, b.op("Mul", r.position(over), step), part)[0]
        attrs = {"shared_name": name, "_reduced_over": "edp+cp" if over == "ep" else "dp+cp"}
        handle = b.op("VarHandleOp", name="variable", dtype="float64", shape=part, attrs=attrs)[0]
        self.starts.append(b.op("AssignVariableOp", handle, value))
        read = b.op("ReadVariableOp", handle, dtype="float64", name=f"{name.rpartition('/')[2]}/read")[0]
        self.weights[name] = RankWeight(handle, read, over, r.stage, part)
        return read

    def _factor(self, r: RankProgram, slopes: Mapping[str, Tensor]) -> Tensor:
        """What clips by the norm of all gradients, over all shards and stages."""
        b, squares = self.b, []
        for name, slope in slopes.items():
            _, _, over, stage, _ = self.weights[name]
            with r.on_stage(stage, self.stages[stage]):
                square = b.op("L2Loss", slope)[0]
                squares.append(r.all_reduce(square, over) if over else square)
        with r.on_stage(0, self.stages[0]):
            norm = b.op("Sqrt", b.op("AddN", squares) if len(squares) > 1 else squares[0])
            return b.op("Minimum", np.float64(1), b.op("RealDiv", np.float64(0.02), norm))[0]

    def _update(self, r: RankProgram, name: str, slope: Tensor, factor: Tensor | None) -> Operation:
        b, (handle, _, _, stage, shape) = self.b, self.weights[name]
        with r.on_stage(stage, self.stages[stage]), b.scope(f"update/{name}"):
            slope = slope if factor is None else b.op("Mul", slope, factor)[0]
            if self.optimizer == "sgd":
                return b.op("ResourceApplyGradientDescent", handle, np.float64(RATE), slope)
            slots = []
            for slot in ("m", "v"):
                attrs = {"shared_name": f"{name}/{slot}"}
                slots.append(b.op("VarHandleOp", name=slot, dtype="float64", shape=shape, attrs=attrs)[0])
                zeros = b.op("Fill", np.array(shape, np.int32), np.float64(0))
                self.starts.append(b.op("AssignVariableOp", slots[-1], zeros))
            numbers = [np.float64(x) for x in (0.9, 0.99, RATE, 0.9, 0.99, 1e-7)]
            return b.op("ResourceApplyAdam", handle, *slots, *numbers, slope)

    # Running

    async def trained(self, graph: Graph, steps: int = 3) -> dict[str, Array]:
        """The losses of all ranks, by step, and all weights put together: of the program after passes, written out."""
        mesh = self.mesh
        whole = write_out(graph, mesh, self.devices)
        ranks = range(mesh.per_stage)
        async with open_session(whole, f"cpu:{mesh.devices}") as session:
            await session.run([], {}, [f"{prefix_of(rank)}initialise" for rank in ranks])
            losses = []
            for step in range(steps):
                feeds = self._feeds(step)
                losses.append(
                    await session.run(
                        [f"{prefix_of(rank)}loss" for rank in ranks],
                        feeds,
                        [f"{prefix_of(rank)}train" for rank in ranks],
                    )
                )
            found: dict[str, Array] = {"losses": np.array(losses)}
            for name, (_, read, over, _, _) in self.weights.items():
                values = await session.run([f"{prefix_of(rank)}{read.node}" for rank in ranks])
                found[name] = self._joined(values, name, over)
        return found

    def _feeds(self, step: int) -> dict[str, Array]:
        mesh, draw = self.mesh, np.random.default_rng(step)
        parts = {end: draw.normal(size=(self.total, WIDTH)) for end in "xy"}
        feeds = {}
        for rank in range(mesh.per_stage):
            for end, value in parts.items():
                feeds[f"{prefix_of(rank)}{end}"] = np.split(value, mesh.size("dp+cp"))[mesh.position("dp+cp", rank)]
        return feeds

    def _joined(self, values: Sequence[Array], name: str, over: str) -> Array:
        """The whole weight; ranks that have the same part must agree."""
        part = self.weights[name].part
        if self.shards:
            groups = {rank: self.mesh.group(self.shards, rank) for rank in range(len(values))}
            joined = [np.concatenate([values[member] for member in groups[rank]]) for rank in groups]
            values = [value[: prod(part)].reshape(part) for value in joined]
        parts: dict[int, Array] = {}
        for rank, value in enumerate(values):
            at = self.mesh.position(over, rank) if over else 0
            np.testing.assert_allclose(value, parts.setdefault(at, value), rtol=1e-13)
        return np.concatenate(list(parts.values()), axis=1 if name.endswith("up") else 0)


def assert_close(one: Mapping[str, Array], other: Mapping[str, Array], limit: float = 1e-10) -> None:
    """Losses of all ranks, and weights, are those of one rank."""
    for name, value in one.items():
        expected = value[:, :1] if name == "losses" else value
        np.testing.assert_allclose(other[name], np.broadcast_to(expected, other[name].shape), rtol=limit, atol=limit)
