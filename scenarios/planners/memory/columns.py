"""The memory of the fullest rank of each configuration, by category, in bytes.

    step = PlannedStep(LlamaModel(layers=12, hidden=8192, ...), 4096)              12 layers of Llama-3 70B
    memory_columns(step, Configurations.of([Split(tp=8, sequence_parallel=True, precision="bfloat16")]))
        parameters [3.1e9]  gradients [6.2e9]  optimizer [18.6e9]  activations [1.7e9]  temporaries [0.8e9]
        communication [0.07e9]    allocated [30.4e9]    fragmentation [0.15e9]    reserved [30.5e9]    stage [0]

Of each pipeline rank that may be the fullest, and each time of a step at which it may need most, the bytes are summed;
the largest sum counts. All is computed in columns over the configurations: 30,000 rows are a few dozen numpy passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats, Numbers, Positions
from ..configurations import Configurations
from ..estimates import MEMORY_CATEGORIES
from ..sizes.parameters import ParameterCounts, rank_parameters
from ..sizes.shapes import LayerShapes
from ..sizes.shares import RankShares, shards_of
from ..step import PlannedStep
from .allocator import fragmentation
from .bounds import bounds
from .kept import LayerKept, attention_kept, dense_kept, experts_kept
from .moments import WeightBuffers, always, gathered, head_time, layer_times, weight_buffers
from .pipeline import RankLoads, rank_loads
from .states import StateBytes, reduces_at_once, state_bytes


class MemoryColumns(NamedTuple):
    """Bytes of the fullest pipeline rank of each row; what is reserved is the sum of all categories."""

    by_category: Mapping[str, Floats]
    stage: Numbers
    """the pipeline rank"""
    allocated: Floats
    low: Floats
    """of `allocated`: `low` and `high` hold four of five"""
    high: Floats
    reserved: Floats

    def taken(self, rows: Positions) -> MemoryColumns:
        """Some of the rows."""
        return MemoryColumns(
            {name: column[rows] for name, column in self.by_category.items()},
            self.stage[rows],
            self.allocated[rows],
            self.low[rows],
            self.high[rows],
            self.reserved[rows],
        )


def memory_columns(step: PlannedStep, configurations: Configurations) -> MemoryColumns:
    """The memory of a step of each configuration.

    UnimplementedError for a family without a closed form. Configurations are taken as they are: whether a model can be
    split so is for `Split.check` to say.
    """
    shapes = LayerShapes.of(step.model)
    shares = RankShares.of(step, shapes, configurations)
    loads = rank_loads(step.model.layers, shapes.dense_layers, configurations)
    sums = _ByRank(step, shapes, shares, configurations, loads).by_category()
    allocated = sum(sums.values())
    fullest = np.argmax(allocated, axis=0)
    by_category = {name: np.ceil(_taken(sums[name], fullest)) for name in MEMORY_CATEGORIES if name in sums}
    total = np.asarray(sum(by_category.values()))
    by_category["fragmentation"] = fragmentation(by_category)
    low, high = bounds(step, configurations, by_category, total)
    return MemoryColumns(
        by_category,
        _taken(loads.rank, fullest).astype(np.int64),
        total,
        low,
        high,
        total + by_category["fragmentation"],
    )


def _taken(columns: Floats, fullest: Numbers) -> Floats:
    """The candidate of each row."""
    return np.asarray(np.take_along_axis(columns, fullest[None], axis=0)[0])


class _ByRank:
    """Sums of [candidates, rows]."""

    def __init__(
        self,
        step: PlannedStep,
        shapes: LayerShapes,
        shares: RankShares,
        configurations: Configurations,
        loads: RankLoads,
    ) -> None:
        self._step, self._shapes, self._shares = step, shapes, shares
        self._configurations, self._loads = configurations, loads
        self._parameters = rank_parameters(shapes, shares, configurations)
        attention = attention_kept(step, shapes, shares)
        self._dense = LayerKept(attention, dense_kept(step, shapes, shares))
        self._experts = LayerKept(attention, experts_kept(step, shapes, shares))

    def by_category(self) -> dict[str, Floats]:
        """Bytes by category, at the time when a rank needs most."""
        states, held = self._states(), self._held()
        times = self._times(states)
        activations = np.stack([activations for activations, _ in times])
        temporaries = np.stack([temporaries for _, temporaries in times])
        fullest = np.argmax(activations + temporaries, axis=0)[None]
        return {
            "parameters": states.parameters,
            "gradients": states.gradients,
            "optimizer": states.optimizer,
            "activations": np.take_along_axis(activations, fullest, axis=0)[0],
            "temporaries": np.take_along_axis(temporaries, fullest, axis=0)[0] + held,
            "communication": np.broadcast_to(
                gathered(self._shapes, self._shares, self._configurations), activations[0].shape
            ),
        }

    def _states(self) -> StateBytes:
        p, loads = self._parameters, self._loads
        layers = loads.dense * (p.attention + p.dense) + loads.experts * (p.attention + p.beside_routed)
        return state_bytes(
            self._step, self._shares, self._configurations, layers + self._ends(p), loads.experts * p.routed
        )

    def _ends(self, p: ParameterCounts) -> Floats:
        """The embedding, the last norm, and the head: a tied one needs its own copy only on another rank."""
        head = np.where(self._configurations.pp == 1, 0.0, p.vocabulary) if self._shapes.tied else p.vocabulary
        return np.asarray(self._loads.embedding * p.embedding + self._loads.head * (p.last_norm + head))

    def _held(self) -> Floats:
        """Temporaries that are there at all times."""
        loads, buffers = self._loads, weight_buffers(self._step, self._shares, self._parameters)
        return np.asarray(
            _buffers(loads, buffers) + always(self._step, self._shapes, loads.experts > 0) + self._gathered_parameters()
        )

    def _gathered_parameters(self) -> Floats:
        """Values with zero 3: of two layers, the one at work and the next; of all where several micro-batches use them.

        Where gradients are scattered at once those of one layer, too.
        """
        p, zero, loads = self._parameters, self._configurations.zero, self._loads
        dense = p.attention + p.dense
        experts = p.attention + p.beside_routed + p.routed
        layer = np.maximum((loads.dense > 0) * dense, (loads.experts > 0) * experts)
        gradients = self._step.gradient_bytes if self._step.trains else 0
        every = loads.dense * dense + loads.experts * experts + self._ends(p)
        values = np.where(self._configurations.microbatches > 1, every, 2 * layer) * self._shares.width
        is_shared = shards_of(self._shares, self._configurations).whole > 1
        return np.asarray(
            (values * (zero == 3) + layer * gradients * reduces_at_once(self._configurations)) * is_shared
        )

    def _times(self, states: StateBytes) -> list[tuple[Floats, Floats]]:
        """Activations and temporaries of the times of `moments`."""
        step, loads, kept = self._step, self._loads, (self._dense, self._experts)
        inside = layer_times(step, self._shapes, self._shares, self._configurations, kept)
        layer = np.maximum((loads.dense > 0) * inside.dense, (loads.experts > 0) * inside.experts)
        ends = self._ends_kept()
        head = loads.head * head_time(step, self._shapes, self._shares, self._parameters)
        none = np.zeros_like(layer)
        if not step.trains:
            return [(none, layer), (none, head)]
        dense, experts = (each.by_recomputation(self._configurations) for each in kept)
        waiting = loads.waiting_dense * dense + loads.waiting_experts * experts + ends
        done = waiting - loads.first_dense * dense - loads.first_experts * experts
        slope = loads.embedding * self._parameters.vocabulary * self._shares.width
        return [
            (waiting, layer),
            (waiting + self._norm_kept(), head),
            (done, slope),
            (none, states.cast_gradients + none),
        ]

    def _ends_kept(self) -> Floats:
        """The mask of the embedding's dropout."""
        mask = self._shares.rows * self._shapes.hidden * float(self._step.dropout)
        return np.asarray(self._loads.waiting_embedding * mask)

    def _norm_kept(self) -> Floats:
        """What the last norm and the head read."""
        return np.asarray(self._loads.head * 2 * self._shares.rows * self._shapes.hidden * self._shares.width)


def _buffers(loads: RankLoads, buffers: WeightBuffers) -> Floats:
    has_layers = (loads.dense > 0) * buffers.dense + (loads.experts > 0) * buffers.experts
    return np.asarray(has_layers + buffers.attention + loads.head * buffers.head)
