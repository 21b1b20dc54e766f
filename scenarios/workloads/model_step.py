"""A model and a split become the graph of one step: `build_model`.

    split = Split(tp=2, pp=2, dp=2, microbatches=4)
    step = build_model(GptModel(layers=4, hidden=64, heads=4), split, "gpu:8", sequence_length=32)
    session.run([], targets=step.initialise)
    session.run(step.fetches, step.feed(tokens=tokens, labels=labels), targets=step.targets)

A step of inference writes keys and values into variables that a further step reads (`inference`).

The way there, over one graph, the program of one rank:

    transformers.forward        the forward pass of a micro-batch, on a device for each stage
    gradients                   of the sum of token losses / tokens of the global batch
    optimizers                  clipping by the norm over all shards, and the update
    recompute, replicate's reductions and ZeRO, pipeline      the passes of `graph.parallel`
    write_out                   a copy for every rank; or, as representatives, none: the clock plays one for all
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from ...errors import InvalidArgumentError, NotFoundError
from ...graph import Graph, GraphDef, ImportOptions, import_graph_def
from ...graph.dtypes import Array
from ...graph.parallel.mesh.mesh import Mesh
from ...graph.parallel.mesh.write_out import prefix_of
from ...graph.suggestions import suggestion
from ..models.description import ModelDescription
from ..models.split import Split
from .transformers.sequence import order_of_tokens


@dataclass(frozen=True, slots=True)
class WeightPlace:
    """A trained weight: the tensor with its value on the first rank of its stage, and how ranks share it out.

    `axis` is shared out over the mesh axes `over`; None if every rank of the stage has all of it. The part of a rank
    has the shape `part`. With ZeRO 3 a rank has a shard of that: equal rows of the flattened part along `sharded_over`,
    the last ones padded.
    """

    tensor: str
    stage: int
    axis: int | None
    over: str
    part: tuple[int, ...]
    sharded_over: str = ""


@dataclass(frozen=True)
class ModelStep:
    """The graph of a step, and what to feed, fetch and run.

    `feeds` are the placeholders with the shapes that each rank is fed, `targets` the updates and what ranks compute
    together, `initialise` the initial values, by rank and stage; `tokens` are those of the global batch. A step runs
    all targets: ranks wait for each other.
    """

    graph: Graph
    feeds: Mapping[str, tuple[int, ...]]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    initialise: tuple[str, ...]
    tokens: int
    split: Split
    mesh: Mesh
    sequence_axes: Mapping[str, int | None] = field(repr=False)
    """by input ("tokens") the axis along which it is a sequence, None for an input without one"""
    weights: Mapping[str, WeightPlace] = field(repr=False)
    """by name where the parts of a weight are"""
    model: ModelDescription = field(repr=False)
    sequence_length: int
    """tokens of a sequence; 1 of a sample without one"""
    trains: bool
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    """what values would decide, and the clock assumes"""
    prefix: str = ""
    """what the names of all nodes begin with"""

    @cached_property
    def graph_def(self) -> GraphDef:
        """The graph as a message."""
        return self.graph.to_graph_def()

    def prefixed(self, prefix: str) -> ModelStep:
        """This step with a prefix before the names of all nodes, to be run beside another step in one session.

        Variables keep their names. So a prefill and a decode of one model and split have the same weights and caches:

            session.run([], targets=prefill.initialise)
            session.extend(decode.prefixed("decode").graph)
        """
        graph, prefix = Graph(), f"{prefix.removesuffix('/')}/"
        import_graph_def(self.graph_def, graph, ImportOptions(prefix=prefix))

        def named(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(f"{prefix}{name}" for name in names)

        return replace(
            self,
            graph=graph,
            feeds=dict(zip(named([*self.feeds]), self.feeds.values(), strict=True)),
            fetches=named(self.fetches),
            targets=named(self.targets),
            initialise=named(self.initialise),
            prefix=f"{prefix}{self.prefix}",
        )

    def feed(self, **inputs: Array) -> dict[str, Array]:
        """The feeds of all ranks, of arrays for the global batch: `tokens` and `labels` [global batch, sequence].

        Row n belongs to the replica n * dp // rows; with context parallelism each rank gets its part of the sequence.
        Raises InvalidArgumentError for an input that is missing or unknown, or has another shape.
        """
        if inputs.keys() != self.sequence_axes.keys():
            raise InvalidArgumentError(
                f"the step is fed {', '.join(self.sequence_axes)}, not {', '.join(inputs) or 'nothing'}"
            )
        found = {}
        for name, values in inputs.items():
            for number in range(self.mesh.per_stage):
                placeholder = f"{self.prefix}{prefix_of(number)}{name}"
                if placeholder in self.feeds:
                    found[placeholder] = self._part(name, np.asarray(values), number)
        return found

    def parts_of(self, weight: str) -> tuple[str, ...]:
        """The tensors that `joined` makes the whole weight of; NotFoundError for a name that no weight has."""
        tensor = self._place(weight).tensor
        return tuple(f"{self.prefix}{prefix_of(rank)}{tensor}" for rank in self._ranks_of(weight))

    def joined(self, weight: str, parts: Sequence[Array]) -> Array:
        """The whole weight of the values of `parts_of`, with its padding if it is padded."""
        place = self._place(weight)
        shards = self.mesh.size(place.sharded_over) if place.sharded_over else 1
        groups = [parts[first : first + shards] for first in range(0, len(parts), shards)]
        if place.sharded_over:
            wholes = [np.concatenate(group)[: prod(place.part)].reshape(place.part) for group in groups]
        else:
            wholes = [group[0] for group in groups]
        return wholes[0] if place.axis is None else np.concatenate(wholes, place.axis)

    def _place(self, weight: str) -> WeightPlace:
        if weight not in self.weights:
            raise NotFoundError(f"the step has no weight {weight!r}{suggestion(weight, self.weights)}")
        return self.weights[weight]

    def _ranks_of(self, weight: str) -> list[int]:
        """The ranks with the parts of a weight, counted in its stage; those of one part's shards follow each other."""
        place, mesh = self._place(weight), self.mesh
        first = place.stage * mesh.per_stage
        owners = (first,) if place.axis is None else mesh.group(place.over, first)
        ranks = [(rank,) if not place.sharded_over else mesh.group(place.sharded_over, rank) for rank in owners]
        return [rank - first for group in ranks for rank in group]

    def _part(self, name: str, values: Array, number: int) -> Array:
        mesh, axis = self.mesh, self.sequence_axes[name]
        place = mesh.coordinates(number)
        own = self.feeds[f"{self.prefix}{name}"]
        whole = tuple(size * (mesh.dp if at == 0 else mesh.cp if at == axis else 1) for at, size in enumerate(own))
        if values.shape != whole:
            raise InvalidArgumentError(f"{name} has shape {list(values.shape)}; the global batch has {list(whole)}")
        rows = values[place.dp * own[0] : (place.dp + 1) * own[0]]
        if axis is None or mesh.cp == 1:
            return rows
        order = order_of_tokens(whole[axis], mesh.cp, self.split.cp_kind)
        return np.take(rows, order[place.cp * own[axis] : (place.cp + 1) * own[axis]], axis)


def names_of_ranks(names: Sequence[str], mesh: Mesh, *, representatives: bool) -> tuple[str, ...]:
    """Names of a rank program in the copies of all ranks."""
    copies = 1 if representatives else mesh.per_stage
    return tuple(f"{prefix_of(number)}{name}" for number in range(copies) for name in names)
