"""Which ops of a step work on weights, told by shapes and types: what a framework fuses, and what its optimizer does.

    a step with weights [4096, 1536] in bfloat16, on 8 dp ranks with ZeRO
        MatMul [512, 4096] x [4096, 1536]                 no: it reads rows too
        Cast float32 -> bfloat16 of [4096, 1536]          a cast
        AddV2 of two float32 [4096, 1536]                 an accumulation
        ConcatV2 of float32 [8, 786432], [8, 512]         an arrangement: of shards, for one collective
        ResourceApplyAdam of float32 [786432]             an update, of a shard with 1 / 8 of the elements
        AddV2 of two bfloat16 [512, 4096]                 no: rows

Rows of activations are in 16 bits, so float32 tells a tensor of weights from one of rows that has the same shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from math import prod
from typing import Self

from attrs import frozen

from ....devices.timing.costs.source import CostRequest
from ....graph.dtypes import DataType, Dims
from ...models.description import ModelDescription
from ...models.llama import LlamaModel
from ...models.moe import MoeModel
from ...models.split import Split
from ...workloads.model_step import ModelStep

_ROUTED_AXES = 3
"""of the weights of routed experts: experts, rows, columns"""


class WeightUse(Enum):
    """What an op does with weights or their gradients."""

    CAST = auto()
    ACCUMULATION = auto()
    ARRANGEMENT = auto()
    UPDATE = auto()


@frozen(eq=False)
class WeightShapes:
    """The shapes that weights have on a rank, by how many ranks share shards, and the elements of a shard.

    `gated` are the shapes of weights of which a layer has two, gate and up: [.., hidden, units].
    """

    parts: frozenset[Dims]
    gated: frozenset[Dims]
    shards: frozenset[int]
    groups: frozenset[int]
    spread: Mapping[int, int]
    """by elements of a weight or shard how many ranks would have a part of it in a framework (`exchanges`)"""

    @classmethod
    def of(cls, step: ModelStep, model: ModelDescription) -> Self:
        """Those of a built step of a model."""
        split, mesh = step.split, step.mesh
        parts = frozenset(tuple(place.part) for place in step.weights.values())
        groups = frozenset({split.zero_group or split.dp, mesh.size("edp")} if split.zero else ())
        gated = _gated(model, split)
        spread: dict[int, int] = {}
        for part in sorted(parts, key=len, reverse=True) if split.zero else ():
            ranks = split.cp * (split.tp if len(part) == _ROUTED_AXES else 1)
            spread |= {-(-prod(part) // group): ranks for group in (1, *groups)}
        shards = frozenset(-(-prod(part) // group) for part in parts for group in groups)
        return cls(parts, gated & parts, shards, groups, spread)

    def is_weight(self, dims: Dims) -> bool:
        """Whether a tensor of that shape may be a weight or a gradient, whole, as shards, or one of them."""
        if dims in self.parts or (len(dims) == 1 and dims[0] in self.shards):
            return True
        return len(dims) == 2 and dims[0] in self.groups and dims[1] in self.shards

    def use(self, request: CostRequest, flops: int) -> WeightUse | None:
        """What an op of so many operations does with weights; None for one that works on rows."""
        kind = request.properties
        shapes, types = (*request.inputs, *request.outputs), (*kind.input_types, *kind.output_types)
        sized = {dtype for dims, dtype in zip(shapes, types, strict=False) if self.is_weight(dims)}
        if DataType.FLOAT not in sized:
            return None
        if len(sized) > 1:
            return WeightUse.CAST if all(not dims or self.is_weight(dims) for dims in shapes) else None
        if not flops:
            return WeightUse.ARRANGEMENT
        if any(len(dims) > 1 and not self.is_weight(dims) for dims in shapes):
            return None
        return WeightUse.ACCUMULATION if kind.op_def.record.is_additive else WeightUse.UPDATE


def _gated(model: ModelDescription, split: Split) -> frozenset[Dims]:
    if not isinstance(model, LlamaModel):
        return frozenset()
    shapes: set[Dims] = {(model.hidden, model.intermediate // split.tp)}
    if isinstance(model, MoeModel):
        shapes |= {
            (model.experts // split.ep, model.hidden, model.expert_intermediate),
            (model.hidden, model.shared_intermediate // split.tp),
        }
    return frozenset(shape for shape in shapes if shape[-1] != shape[-2])
