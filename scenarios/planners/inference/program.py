"""The ops of a rank by pipeline stage: embedding, layers, head.

StagePrograms(llama 8B, tp 1, decode of 8 sequences)
    beginning    embedding and tables of positions        10 ops
    layers       one list for each kind: (32 times, 16 ops)
    end          norm, logits in float32                   4 ops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....graph.dtypes import DataType, item_size
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.moe import MoeModel
from ...models.split import Precision
from .attention import attention, norm, summed
from .feed_forward import feed_forward
from .operations import RankItem, RankOps
from .rank import Rank

COMPUTE_TYPES: dict[Precision, DataType] = {
    "float32": DataType.FLOAT,
    "bfloat16": DataType.BFLOAT16,
    "float16": DataType.HALF,
    "fp8": DataType.BFLOAT16,
    "float64": DataType.DOUBLE,
}
"""of activations"""


class RepeatedOps(NamedTuple):
    """A list of ops that a stage runs so many times, one after the other."""

    times: int
    items: Sequence[RankItem]


class StageProgram(NamedTuple):
    """What a rank of one stage runs, its bytes of weights, and the most bytes of activations.

    Activations are the rows of the residual sums with those of the op that has most.
    """

    parts: tuple[RepeatedOps, ...]
    weight_bytes: int
    activation_bytes: int


class _StageKind(NamedTuple):
    """What decides what a stage runs: whether it is the first or last one, and its layers without and with experts."""

    begins: bool
    dense: int
    experts: int
    ends: bool

    @property
    def layers(self) -> tuple[tuple[bool, int], ...]:
        """Whether layers have experts, and how many of them there are."""
        return (False, self.dense), (True, self.experts)


class StagePrograms:
    """Makes the stages of a rank's program."""

    def __init__(self, rank: Rank, precision: Precision) -> None:
        self.rank, self._precision = rank, precision
        self._layers = {kind: self._layer(has_experts=kind) for kind in self._kinds()}
        self._stages: dict[_StageKind, StageProgram] = {}

    def stage(self, first: int, end: int) -> StageProgram:
        """The stage with the layers from `first` to `end`; the first one embeds tokens, the last one makes logits.

        Stages that run the same are one object.
        """
        kind = _StageKind(
            begins=first == 0,
            dense=max(0, min(end, self._dense_layers) - first),
            experts=max(0, end - max(first, self._dense_layers)),
            ends=end == self.rank.model.layers,
        )
        if kind not in self._stages:
            self._stages[kind] = self._made(kind)
        return self._stages[kind]

    def _made(self, kind: _StageKind) -> StageProgram:
        lists = [(1, self._beginning())] if kind.begins else []
        lists += [(count, self._layers[has_experts]) for has_experts, count in kind.layers if count]
        if kind.ends:
            lists.append((1, self._head(shares_table=kind.begins)))
        most = max(ops.most_bytes for _, ops in lists)
        return StageProgram(
            tuple(RepeatedOps(times, tuple(ops.items)) for times, ops in lists),
            sum(times * ops.weight_bytes for times, ops in lists),
            most + self.rank.rows * self.rank.model.hidden * self._ops().element_bytes,
        )

    @property
    def _dense_layers(self) -> int:
        model = self.rank.model
        return model.dense_layers if isinstance(model, MoeModel) else model.layers

    def _kinds(self) -> list[bool]:
        dense, layers = self._dense_layers, self.rank.model.layers
        return [kind for kind, count in ((False, dense), (True, layers - dense)) if count]

    def _ops(self) -> RankOps:
        return RankOps(COMPUTE_TYPES[self._precision], is_float8=self._precision == "fp8")

    def _layer(self, *, has_experts: bool) -> RankOps:
        run = self._ops()
        attention(run, self.rank)
        feed_forward(run, self.rank, has_experts=has_experts)
        return run

    def _beginning(self) -> RankOps:
        """Tables of rotary positions, which later stages make while they wait, and the rows of tokens."""
        run, rank, model = self._ops(), self.rank, self.rank.model
        run.waits()
        if isinstance(model, LlamaModel):
            run.small(6, rank.phase.length * model.head_size // 2)
        rows, hidden, table = rank.rows, model.hidden, model.padded_vocabulary(rank.tp) // rank.tp
        run.small(int(rank.phase.sequences > 1), rows)
        if rank.tp > 1:  # rows of other ranks are zeros, and all are added up
            run.small(3, rows)
            run.waits(2)
        run.gathered(rows, hidden, table)
        run.weight_bytes += table * hidden * run.element_bytes
        if rank.tp > 1:
            run.weighed(rows, hidden)
            summed(run, rank, hidden)
        if isinstance(model, GptModel):
            run.gathered(rank.phase.length, hidden, model.positions)
            run.moves("AddV2", rows * hidden, operands=2)
            run.weight_bytes += model.positions * hidden * run.element_bytes
        return run

    def _head(self, *, shares_table: bool) -> RankOps:
        """The logits of the last token of each sequence, in float32 on all ranks."""
        run, rank, model = self._ops(), self.rank, self.rank.model
        rows, padded = rank.phase.sequences, model.padded_vocabulary(rank.tp)
        norm(run, rank)
        if rank.phase.length > 1:
            run.cut((rank.rows, model.hidden), (rows, model.hidden))
        keeps = not (model.tied and shares_table)
        run.product(rows, model.hidden, padded // rank.tp, transpose=True, keeps=keeps)
        run.cast(rows * padded // rank.tp, run.compute, run.wide)
        if rank.tp > 1:
            run.transposed(rows, padded // rank.tp, run.wide)
            run.meets("all_gather", "tp", rows * padded * item_size(run.wide))
            run.transposed(padded, rows, run.wide)
        run.cut((rows, padded), (rows, model.vocabulary), run.wide)
        return run
