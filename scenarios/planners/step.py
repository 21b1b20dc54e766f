"""What a step computes, but for how it is spread: a model, a sequence length, and how a framework runs a layer."""

from __future__ import annotations

from attrs import Attribute, field, frozen

from ...errors import InvalidArgumentError
from ..models.description import ModelDescription

LENGTH = 4096
"""tokens of a sequence where neither a caller nor the model says how many"""
GRADIENT_BYTES = (2, 4)
OPTIMIZER_BYTES = 34.0
"""Adam in one kernel reads and writes a master and two moments in float32 and reads a gradient (28), writes a 16-bit
weight (2), and reads the gradient once more for the norm (4)"""


def _gradient_bytes(owner: object, attribute: Attribute[int], value: int) -> None:
    if value not in GRADIENT_BYTES:
        raise InvalidArgumentError(f"gradient_bytes={value!r} must be 2 or 4")


def _imbalance(owner: object, attribute: Attribute[float], value: float) -> None:
    if not value >= 1:
        raise InvalidArgumentError(f"imbalance={value!r} is the most by the mean; give 1 or more")


@frozen
class PlannedStep:
    """A training step (or with `trains` False a forward pass) of sequences of `sequence_length` tokens.

    gradient_bytes    of an element of the gradients that data-parallel ranks add up
    fused_attention   one flash kernel; else products, softmax, mask and dropout of [heads, s, s] that go through memory
    fused_loss        the cross entropy makes the gradient of the logits in place; else logits are copied to float32
    dropout           of attention and of both branches of a layer: masks are made, read again and kept
    gathers_again     sequence parallelism keeps a rank's own rows and gathers them once more in the backward pass
    parts_transfers   each tp rank sends 1 / tp of the rows to the next stage, where they are gathered (Narayanan 2021)
    recomputes_all    with full recomputation the end of a layer runs once more too, whose result no gradient needs
    accumulation_bytes  what adding up gradients moves a parameter and micro-batch, where products of weights do not add
                      to them as they write
    optimizer_bytes   what the update moves a parameter
    gathered_bytes    of a parameter that ranks with shards of the optimizer's state send each other behind the update
    imbalance         the rows that the busiest rank's experts get, by the mean of ranks
    """

    model: ModelDescription
    sequence_length: int
    gradient_bytes: int = field(default=4, validator=_gradient_bytes, kw_only=True)
    fused_attention: bool = field(default=True, kw_only=True)
    fused_loss: bool = field(default=True, kw_only=True)
    dropout: bool = field(default=False, kw_only=True)
    gathers_again: bool = field(default=False, kw_only=True)
    parts_transfers: bool = field(default=False, kw_only=True)
    recomputes_all: bool = field(default=False, kw_only=True)
    accumulation_bytes: float = field(default=0.0, kw_only=True)
    optimizer_bytes: float = field(default=OPTIMIZER_BYTES, kw_only=True)
    gathered_bytes: int = field(default=2, kw_only=True)
    imbalance: float = field(default=1.0, validator=_imbalance, kw_only=True)
    trains: bool = field(default=True, kw_only=True)


def length_of(model: ModelDescription, sequence_length: int | None) -> int:
    """The tokens of a sequence: as given, else the model's positions, else `LENGTH`."""
    return sequence_length or model.positions or LENGTH
