"""The update of a training step: the norm of all gradients, clipping, and the step of an optimizer.

    gradients of the scaled sum of token losses       by the passes behind this: summed over micro-batches, dp and cp
    correction = 1 / (scale * tokens with a label)    of the global batch
    norm       = correction * sqrt(sum of squares)    over the shards of tp and ep, and over all stages
    factor     = correction * min(1, clip / norm)     every gradient times this
    AdamW      m, v, w in float32 (Kingma and Ba 2015; Loshchilov and Hutter 2019: decay apart from the gradient)

The norm is that of PyTorch's `clip_grad_norm_`, which adds 1e-6 to it. Each stage has its own powers of beta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.builder.handles import Operation, Tensor
from ....graph.parallel.mesh.rank_program import RankProgram
from .parameters import RankParameter, RankParameters

_EPSILON = 1e-6  # beside the norm, as in PyTorch


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """What a step does with gradients; `clip_norm` None leaves them as they are.

    `weight_decay` is of "adamw" alone, and of weights with several axes: norms and biases do not decay. Betas and
    epsilon are those of "adam" and "adamw".
    """

    kind: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.1
    clip_norm: float | None = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("adamw", "adam", "sgd"):
            raise InvalidArgumentError(f"optimizer {self.kind!r} is not known; use adamw, adam or sgd")
        if self.clip_norm is not None and self.clip_norm <= 0:
            raise InvalidArgumentError(f"clip_norm={self.clip_norm} must be above 0, or None for no clipping")


class WeightUpdates:
    """Adds the updates of all weights of a rank program; `devices` are those of its stages."""

    def __init__(
        self, program: RankProgram, parameters: RankParameters, optimizer: OptimizerSettings, devices: Sequence[str]
    ) -> None:
        self.program, self.parameters, self.optimizer, self.devices = program, parameters, optimizer, devices
        self._numbers: dict[tuple[int, float], Tensor] = {}

    def add(self, gradients: Sequence[Tensor], correction: Tensor) -> list[list[Operation]]:
        """The updates of each stage; `correction` is a scalar of the last stage that gradients are multiplied by."""
        mine = list(zip(self.parameters.all, gradients, strict=True))
        with self.program.b.scope("update"):
            factor = self._factor(mine, correction)
            return [
                self._stage(stage, [pair for pair in mine if pair[0].stage == stage], factor)
                for stage in self._stages()
            ]

    def _stages(self) -> range:
        return range(len(self.devices))

    def _number(self, value: float) -> Tensor:
        """A scalar constant on the stage."""
        key = self.program.stage, value
        if key not in self._numbers:
            as_array = np.array(value, self.parameters.numpy_type)
            self._numbers[key] = self.program.b.constant(as_array, self.parameters.master_type, name="number")
        return self._numbers[key]

    # Clipping

    def _factor(self, mine: Sequence[tuple[RankParameter, Tensor]], correction: Tensor) -> Tensor:
        if self.optimizer.clip_norm is None:
            return correction
        b = self.program.b
        squares = [self._half_square(stage, mine) for stage in self._stages()]
        with self.program.on_stage(0, self.devices[0]):
            total = b.op("AddN", squares, name="half_square")[0] if len(squares) > 1 else squares[0]
            norm = b.op("Mul", b.op("Sqrt", b.op("Mul", total, self._number(2.0))), correction, name="norm")
            quotient = b.op(
                "RealDiv", self._number(self.optimizer.clip_norm), b.op("AddV2", norm, self._number(_EPSILON))
            )
            clipped = b.op("Minimum", quotient, self._number(1.0), name="clipped")
            return b.op("Mul", clipped, correction, name="factor")[0]

    def _half_square(self, stage: int, mine: Sequence[tuple[RankParameter, Tensor]]) -> Tensor:
        """Half the sum of squares of a stage's gradients, over the shards that other ranks have."""
        b, program = self.program.b, self.program
        by_axes: dict[str, list[Tensor]] = {}
        with program.on_stage(stage, self.devices[stage]):
            for parameter, gradient in mine:
                if parameter.stage == stage:
                    by_axes.setdefault(parameter.over, []).append(b.op("L2Loss", gradient)[0])
            sums = [
                program.all_reduce(b.op("AddN", squares, name="squares")[0], axes) if axes else b.op("AddN", squares)[0]
                for axes, squares in by_axes.items()
            ]
            return b.op("AddN", sums, name=f"stage_{stage}/half_square")[0] if len(sums) > 1 else sums[0]

    # WeightUpdates

    def _stage(self, stage: int, mine: Sequence[tuple[RankParameter, Tensor]], factor: Tensor) -> list[Operation]:
        b, kind = self.program.b, self.optimizer.kind
        with self.program.on_stage(stage, self.devices[stage]):
            scaled = [
                (parameter, b.op("Mul", gradient, factor, name=f"{parameter.name}/gradient")[0])
                for parameter, gradient in mine
            ]
            if kind == "sgd":
                rate = self._number(self.optimizer.learning_rate)
                return [b.op("ResourceApplyGradientDescent", p.handle, rate, g) for p, g in scaled]
            return self._adam(stage, scaled)

    def _adam(self, stage: int, scaled: Sequence[tuple[RankParameter, Tensor]]) -> list[Operation]:
        b, o = self.program.b, self.optimizer
        powers = [
            self.parameters.variable(f"optimizer/beta{n}_power/stage_{stage}", (), beta)
            for n, beta in ((1, o.beta1), (2, o.beta2))
        ]
        read = [b.op("ReadVariableOp", power, dtype=self.parameters.master_type)[0] for power in powers]
        numbers = [self._number(x) for x in (o.learning_rate, o.beta1, o.beta2, o.epsilon)]
        updates = []
        for p, gradient in scaled:
            slots = [self.parameters.slot(p, name) for name in ("m", "v")]
            decays = o.kind == "adamw" and o.weight_decay and len(p.part) > 1
            first = [self._decay(p)] if decays else []
            inputs = (p.handle, *slots, *read, *numbers, gradient)
            updates.append(b.op("ResourceApplyAdam", *inputs, name=f"{p.name}/step", control=first))
        for power, value, beta in zip(powers, read, (o.beta1, o.beta2), strict=True):
            following = b.op("Mul", value, self._number(beta))
            updates.append(b.op("AssignVariableOp", power, following, control=updates[-1]))
        return updates

    def _decay(self, p: RankParameter) -> Operation:
        """w -= learning rate * decay * w, before the step."""
        b = self.program.b
        amount = self._number(self.optimizer.learning_rate * self.optimizer.weight_decay)
        return b.op("AssignSubVariableOp", p.handle, b.op("Mul", p.read, amount), name=f"{p.name}/decay")
