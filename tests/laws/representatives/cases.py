"""Drawn clusters, meshes and rank programs, for the law that representatives are played as all ranks are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from random import Random
from typing import Any

import numpy as np

from partita.graph import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram

_SPECS = ("A100-80GB", "H100-SXM", "A100-PCIe", "V100")
_AXES = ("tp", "dp", "cp", "ep", "edp", "dp+cp", "tp+cp")


@dataclass(frozen=True)
class RanksCase:
    """A cluster file, a mesh, and a program drawn by a seed: `layers` a stage, `batches` one after the other."""

    cluster: str
    mesh: Mesh
    seed: int
    layers: int = 2
    batches: int = 2

    def smaller(self) -> list[RanksCase]:
        """Cases that are a little smaller."""
        found = [replace(self, layers=self.layers - 1)] if self.layers > 1 else []
        found += [replace(self, batches=self.batches - 1)] if self.batches > 1 else []
        for axis in ("pp", "dp", "cp", "tp"):
            size = getattr(self.mesh, axis)
            if size > 1 and (axis != "dp" or self.mesh.ep < size):
                found.append(replace(self, mesh=replace(self.mesh, **{axis: size // 2})))
        return found


def drawn(seed: int) -> RanksCase:
    """The case of a seed: up to 64 devices."""
    rng = Random(seed)
    gpus = rng.choice([2, 4, 8])
    hosts = rng.choice([count for count in (1, 2, 3, 4, 8, 16, 32) if 4 <= count * gpus <= 64])
    sizes = dict.fromkeys(("pp", "dp", "cp", "tp"), 1)
    left = hosts * gpus if rng.random() < 0.7 else hosts * gpus // 2
    while left >= 2 and (sizes["dp"] * sizes["cp"] * sizes["tp"] == 1 or rng.random() < 0.9):
        sizes[rng.choice(list(sizes))] *= 2
        left //= 2
    experts = rng.choice([n for n in (1, 2, 4) if sizes["dp"] % n == 0])
    layers, batches = rng.randint(1, 3), rng.randint(1, 3)
    return RanksCase(_cluster(rng, hosts, gpus), Mesh(**sizes, ep=experts), seed, layers, batches)


def _cluster(rng: Random, hosts: int, gpus: int) -> str:
    text = f'[[device]]\njob = "w"\ntasks = {hosts}\nspec = "{rng.choice(_SPECS)}"\ncount = {gpus}\n'
    match rng.choice(["one", "each", "several", "unequal", "host"]):
        case "each":
            text += f'[[nic]]\nlink = "200 Gb InfiniBand"\ncount = {gpus}\n'
        case "several":
            text += '[[nic]]\nbandwidth = "20 GB/s"\nlatency = "3 us"\ncount = 2\n'
        case "unequal":
            first = ", ".join(f'"gpu:{n}"' for n in range(gpus // 2))
            text += f'[[nic]]\nbandwidth = "20 GB/s"\nlatency = "3 us"\ndevices = [{first}]\n'
            text += '[[nic]]\nbandwidth = "7 GB/s"\nlatency = "3 us"\n'
        case "host" if hosts > 1:
            text += '[[nic]]\nbandwidth = "20 GB/s"\nlatency = "3 us"\n'
            text += '[[nic]]\nbandwidth = "5 GB/s"\nlatency = "3 us"\nhosts = ["/job:w/replica:0/task:1"]\n'
    if hosts % 2 == 0 and rng.random() < 0.3:
        text += f'[[switch]]\nkind = "leaf"\nsize = 2\noversubscription = {rng.choice([1, 2, 3])}\n'
        if rng.random() < 0.5:
            text += '[[switch]]\nkind = "spine"\nbandwidth = "11 GB/s"\n'
    if rng.random() < 0.2:
        text += '[[switch]]\nkind = "pcie"\ndevices = ["gpu:0", "gpu:1"]\noversubscription = 2\n'
    match rng.choice(["none"] * 8 + ["slow", "all", "links"]):
        case "slow":
            text += '[[slow]]\ndevice = "/job:w/replica:0/task:0/device:GPU:1"\nfactor = 2\nfrom = "20 us"\n'
        case "all":
            for host in range(hosts):
                for gpu in range(gpus):
                    name = f"/job:w/replica:0/task:{host}/device:GPU:{gpu}"
                    text += f'[[slow]]\ndevice = "{name}"\nfactor = 1.5\nfrom = "30 us"\nto = "200 us"\n'
        case "links" if hosts > 1:
            model = "200 Gb InfiniBand" if "InfiniBand" in text else "inline" if "[[nic]]" in text else "25 Gb Ethernet"
            text += f'[[degrade]]\nlink = "{model}"\nfactor = 3\nfrom = "50 us"\nto = "4 ms"\n'
    return text


class Program:
    """The rank program of a case on the first devices of its stages; `targets` are the nodes that it ends with.

    Nothing is fed: feeds arrive at one client, which is not as near to all ranks.
    """

    def __init__(self, case: RanksCase, devices: list[str]) -> None:
        self.b = GraphBuilder()
        self.ranks = RankProgram(self.b, case.mesh)
        self.targets: list[str] = []
        self._rng = Random(case.seed + 1)
        self._rows, self._width = self._rng.choice([64, 256]), self._rng.choice([64, 320, 1024])
        mesh = case.mesh
        self._device = [devices[stage * mesh.per_stage] for stage in range(mesh.pp)]
        self._weights = [self._on(stage, self._made, case.layers) for stage in range(mesh.pp)]
        self._plans = [[self._rng.random() for _ in range(case.layers)] for _ in range(mesh.pp)]
        for _ in range(case.batches):
            self._batch()
        if mesh.pp > 1 and self._rng.random() < 0.5:
            self._across_stages(self._rng.choice(["pp", "pp+tp", "dp+pp"]))

    def _on(self, stage: int, make: Any, *arguments: Any) -> Any:
        with self.ranks.on_stage(stage, self._device[stage]):
            return make(*arguments)

    def _made(self, count: int) -> list[Tensor]:
        return [self._variable("w", (self._width, self._width)) for _ in range(count)]

    def _variable(self, name: str, shape: tuple[int, ...]) -> Tensor:
        handle = self.b.op("VarHandleOp", dtype=np.float32, shape=shape, name=name)[0]
        return self.b.op("ReadVariableOp", handle, dtype=np.float32)[0]

    def _across_stages(self, axes: str) -> None:
        """A collective that joins the stages: one instance, with a member on each."""
        numbers = self.ranks._instances
        for stage in range(self.ranks.mesh.pp):
            self.ranks._instances = count(1 << 20, 0)
            self.targets.append(self._on(stage, self.ranks.all_reduce, self._weights[stage][0], axes).node)
        self.ranks._instances = numbers

    def _batch(self) -> None:
        """One micro-batch: forward through all stages, and back; gradients of weights are summed at the end."""
        stages = range(self.ranks.mesh.pp)
        h = self._on(0, self._variable, "x", (self._rows, self._width))
        kept = []
        for stage in stages:
            h, own = self._on(stage, self._forward, h, stage)
            kept.append(own)
        for stage in reversed(stages):
            h = self._on(stage, self._backward, h, stage, kept[stage])
        self.targets.append(h.node)

    def _forward(self, h: Tensor, stage: int) -> tuple[Tensor, list[Tensor]]:
        kept, rng = [], Random(f"{self._plans[stage]}")
        for weight in self._weights[stage]:
            kept.append(h)
            h = self.b.op("MatMul", h, weight)[0]
            for _ in range(rng.choice([0, 1, 1, 2])):
                h = self._exchanged(h, rng.choice(_AXES), rng)
        return h, kept

    def _backward(self, g: Tensor, stage: int, kept: list[Tensor]) -> Tensor:
        rng = Random(f"{self._plans[stage]} back")
        for weight, h in zip(reversed(self._weights[stage]), reversed(kept), strict=True):
            own = self.b.op("MatMul", h, g, transpose_a=True)[0]
            own = self._exchanged(own, rng.choice(["dp", "dp+cp", "edp", "tp"]), rng, ["sum"])
            self.targets.append(own.node)
            g = self.b.op("MatMul", g, weight, transpose_b=True)[0]
            if rng.random() < 0.5:
                g = self._exchanged(g, rng.choice(["tp", "cp", "ep"]), rng)
        return g

    def _exchanged(self, x: Tensor, axes: str, rng: Random, kinds: list[str] | None = None) -> Tensor:
        """A collective, of which the result has the shape of x."""
        size, shape = self.ranks.mesh.size(axes), [-1, self._width]
        if size == 1:
            return x
        match rng.choice(kinds or ["sum", "gather", "scatter", "exchange"]):
            case "sum":
                return self.ranks.all_reduce(x, axes)
            case "gather":
                scattered = self.ranks.reduce_scatter(x, axes)
                return self.ranks.all_gather(scattered, axes)
            case "scatter":
                scattered = self.ranks.reduce_scatter(x, axes)
                return self.b.op("Tile", scattered, np.array([size, 1], np.int32))[0]
        parts = self.b.op("Reshape", x, np.array([size, -1, self._width], np.int32))[0]
        return self.b.op("Reshape", self.ranks.all_to_all(parts, axes), np.array(shape, np.int32))[0]
