"""Runs the forward and backward pass of a model on the actors of all ranks, and puts the ranks' parts together.

Weights start as the builders start them, but vectors (biases and gains), which start at 0 or 1, are fed with numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from partita.actors import BlockingSession
from partita.graph import Graph
from partita.graph.builder.builder import GraphBuilder
from partita.graph.dtypes import Array
from partita.graph.gradients.backward import gradients
from partita.graph.parallel.mesh.marks import REDUCED_OVER
from partita.graph.parallel.mesh.mesh import Mesh
from partita.graph.parallel.mesh.rank_program import RankProgram
from partita.graph.parallel.mesh.write_out import prefix_of, write_out
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.forward import forward
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes
from partita.scenarios.workloads.transformers.parameters import RankParameter, RankParameters
from partita.scenarios.workloads.transformers.sequence import order_of_tokens
from tests.scenarios.workloads.transformers.joint_weights import by_parts, drawn


@dataclass(frozen=True)
class Results:
    """Of all ranks together."""

    loss: float
    """the sum of the losses of all tokens"""
    labelled: float
    gradients: Mapping[str, Array]
    """of the loss, by the name of the weight, whole"""
    logits: Array
    """of the first rank: a row for each of its tokens"""


class Ranks:
    """A model on the ranks of a split, in float64."""

    def __init__(
        self,
        model: Any,  # of a family
        split: Split,
        sequence: int,
        *,
        fused: bool = False,
    ) -> None:
        self.model, self.split, self.sequence = model, split, sequence
        self.mesh = Mesh(pp=split.pp, dp=split.dp, cp=split.cp, tp=split.tp, ep=split.ep)
        devices = [f"/device:CPU:{k}" for k in range(self.mesh.devices)]
        b = GraphBuilder()
        program = RankProgram(b, self.mesh)
        parameters = RankParameters(program, "float64")
        first = tuple(devices[:: self.mesh.per_stage])
        network = RankNetwork(
            program, parameters, split, RankSizes(model.layers, split.microbatch, sequence, first, fused)
        )
        end = forward(network, model)
        losses = end.losses()
        self.weights = parameters.all
        self.vectors = [w for w in (*parameters.all, *parameters.untrained) if len(w.part) == 1]
        slopes = gradients(b, [losses.total], [weight.read for weight in self.weights])
        self.fetches = [losses.total.name, losses.labelled.name, end.logits().name, *map(str, slopes)]
        self.starts = [node.name for _, node in parameters.assignments]
        graph = b.graph()
        self.reduced_over = {weight.name: reduced_over(graph, weight) for weight in self.weights}
        self.graph = write_out(graph, self.mesh, devices)

    def run(self, **feeds: Array) -> Results:
        """The results of a global batch, whose arrays have a row for each sequence."""
        copies = [prefix_of(rank) for rank in range(self.mesh.per_stage)]
        fed: dict[str, Array] = {}
        for rank, copy in enumerate(copies):
            fed |= {f"{copy}{name}": self._fed(x, rank) for name, x in feeds.items()}
            fed |= {f"{copy}{w.read.name}": self._vector(w, rank) for w in self.vectors}
        with BlockingSession(self.graph, f"cpu:{self.mesh.devices}") as session:
            session.run([], targets=[f"{copy}{name}" for copy in copies for name in self.starts])
            fetched = session.run([f"{copy}{name}" for copy in copies for name in self.fetches], fed)
        count = len(self.fetches)
        return self._joined([fetched[k * count : (k + 1) * count] for k in range(len(copies))])

    def _joined(self, ranks: list[list[Any]]) -> Results:  # Any: fetched values
        for rank, values in enumerate(ranks):  # the ranks of tp have the same losses, bit for bit
            np.testing.assert_array_equal(values[:2], ranks[self.mesh.group("tp", rank)[0]][:2])
        heads = [values for rank, values in enumerate(ranks) if self.mesh.coordinates(rank).tp == 0]
        slopes = {
            weight.name: self._whole(weight, [values[3 + k] for values in ranks])
            for k, weight in enumerate(self.weights)
        }
        slopes = by_parts(slopes, self.model)
        return Results(sum(v[0] for v in heads), sum(v[1] for v in heads), slopes, ranks[0][2])

    def _fed(self, x: Array, rank: int) -> Array:
        """The sequences and tokens of a rank."""
        place, rows = self.mesh.coordinates(rank), len(x) // self.mesh.dp
        x = x[place.dp * rows : (place.dp + 1) * rows]
        if self.mesh.cp == 1:
            return x
        length = self.sequence // self.mesh.cp
        order = order_of_tokens(self.sequence, self.mesh.cp, self.split.cp_kind)
        return x[:, order[place.cp * length : (place.cp + 1) * length]]

    def _vector(self, weight: RankParameter, rank: int) -> Array:
        """The rank's part of numbers that depend on the weight's name."""
        size = weight.part[0]
        place = self.mesh.coordinates(rank).tp if weight.over else 0
        whole = (size * self.mesh.tp if weight.over else size,)
        return drawn(weight.name, whole, self.model, normal)[size * place : size * (place + 1)]

    def _whole(self, weight: RankParameter, parts: list[Array]) -> Array:
        """The gradient of the whole weight: parts of a sum are added up, shares are joined, copies are equal."""
        axes = self.reduced_over[weight.name]
        of_ranks = [
            np.asarray(np.sum([parts[member] for member in self.mesh.group(axes, rank)], axis=0))
            for rank in self.mesh.group(weight.over or "tp", 0)
        ]
        if weight.axis is not None:
            return np.concatenate(of_ranks, weight.axis)
        for other in of_ranks:
            np.testing.assert_allclose(other, of_ranks[0], rtol=1e-9, atol=1e-11)
        return of_ranks[0]


def normal(name: str, shape: tuple[int, ...]) -> Array:
    """Numbers that depend on the name; those of a longer vector begin with those of a shorter one."""
    return np.random.default_rng(crc32(name.encode())).standard_normal(shape)


def reduced_over(graph: Graph, weight: RankParameter) -> str:
    """The axes over which the gradient of a weight is to be summed."""
    node = graph.find_node(weight.handle.node)
    assert node is not None
    axes = node.attrs[REDUCED_OVER]
    return axes.decode() if isinstance(axes, bytes) else str(axes)


def assert_equal(results: Results, expected: Results) -> None:
    """Losses and gradients agree to rounding of float64; rows that only pad have no gradient."""
    np.testing.assert_allclose(results.loss, expected.loss, rtol=1e-12)
    assert results.labelled == expected.labelled
    assert results.gradients.keys() == expected.gradients.keys()
    for name, slope in expected.gradients.items():
        found = results.gradients[name]
        common = tuple(slice(min(a, b)) for a, b in zip(found.shape, slope.shape, strict=True))
        np.testing.assert_allclose(found[common], slope[common], rtol=1e-10, atol=1e-12, err_msg=name)
        padding = found.copy()
        padding[common] = 0
        assert not padding.any()
