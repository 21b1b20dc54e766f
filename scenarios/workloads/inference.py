"""What a step without training is made for: whole sequences, the beginning of them, or one further token of each.

    inference=None                    tokens [batch, sequence_length], the logits of all of them, nothing is kept
    inference="prefill", context=n    the same, but keys and values go into caches of n tokens a sequence, and only the
                                      logits of each last token are computed
    inference="decode", context=n     tokens [batch, 1] behind those that caches have, and their logits

`step_sizes` checks what is asked for and says how many tokens a step computes, and how many are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias, get_args

from ...errors import InvalidArgumentError, UnimplementedError
from ..models.description import ModelDescription
from ..models.nearest import nearest_multiples, or_text
from ..models.split import Split

Inference: TypeAlias = Literal["prefill", "decode"]
"""the beginning of sequences at once, or one further token of each"""


class StepSizes(NamedTuple):
    """What a rank program is made for."""

    rows: int
    """tokens of a sequence; 1 of a sample without sequence"""
    cache: int = 0
    """tokens of a sequence that caches have room for; 0 without any"""

    @property
    def decodes(self) -> bool:
        """Whether one token of each sequence is computed, and caches have those before it."""
        return self.cache > 0 and self.rows == 1


def step_sizes(
    model: ModelDescription, split: Split, sequence_length: int | None, inference: Inference | None, context: int
) -> StepSizes:
    """The sizes of a step; raises as `build_model` for lengths that are missing or contradict each other."""
    if inference is None:
        if context:
            raise InvalidArgumentError(
                f'context={context} are tokens of a cache; give inference="prefill" or "decode" too, or leave it out'
            )
        return StepSizes(_rows(model, sequence_length))
    _check_caches(model, split, inference, context)
    if inference == "decode":
        return _decoding(model, split, sequence_length, context)
    rows = _rows(model, sequence_length)
    if rows == 1:
        raise InvalidArgumentError(
            'a prefill has 2 tokens of a sequence or more; a single one is for inference="decode"'
        )
    cache = context or rows
    if rows > cache:
        raise InvalidArgumentError(
            f"sequence_length={rows} tokens do not fit into context={cache}; give {rows} or more"
        )
    _check_positions(model, cache)
    return StepSizes(rows, cache)


def check_forward(split: Split) -> None:
    """InvalidArgumentError for what only a training step can do, in a step without one."""
    for name, value, plain in (
        ("microbatches", split.microbatches, 1),
        ("zero", split.zero, 0),
        ("recompute", split.recompute, "none"),
    ):
        if value != plain:
            why = "microbatch says how many sequences a rank has" if name == "microbatches" else "nothing is trained"
            raise InvalidArgumentError(f"{name}={value!r}: a step without training has none, {why}; give {plain!r}")


def checked_split(split: Split, sizes: StepSizes) -> Split:
    """The split as far as it matters for sizes: a token that is decoded is cut by no sequence parallelism."""
    return replace(split, sequence_parallel=False) if sizes.decodes else split


def _check_caches(model: ModelDescription, split: Split, inference: Inference, context: int) -> None:
    if inference not in get_args(Inference):
        raise InvalidArgumentError(f"inference={inference!r} is none of {', '.join(get_args(Inference))}")
    if not model.has_cache:
        raise InvalidArgumentError(
            f"inference={inference!r}: {type(model).__name__} does not go on token by token and keeps nothing; leave "
            "inference out"
        )
    if split.cp > 1:
        raise UnimplementedError(
            f"inference={inference!r}: the keys and values of a sequence are not shared out over cp={split.cp}; give "
            "cp=1, and tp or dp for more devices"
        )
    if isinstance(context, bool) or not isinstance(context, int) or context < 0:
        raise InvalidArgumentError(f"context={context!r} is no number of tokens; give 1 or more")


def _decoding(model: ModelDescription, split: Split, sequence_length: int | None, context: int) -> StepSizes:
    if sequence_length not in (None, 1):
        raise InvalidArgumentError(
            f"sequence_length={sequence_length}: one token of each sequence is decoded; leave it out, and give context"
        )
    if not context:
        raise InvalidArgumentError("decoding needs context, how many tokens of a sequence caches have room for")
    _check_positions(model, context)
    if model.shared_by_expert_parallel and split.microbatch % split.tp:
        near = or_text(nearest_multiples(split.microbatch, split.tp))
        raise InvalidArgumentError(
            f"tp={split.tp} parts the tokens that are decoded on their way to experts, which microbatch="
            f"{split.microbatch} does not allow; give microbatch={near}"
        )
    return StepSizes(1, context)


def _check_positions(model: ModelDescription, context: int) -> None:
    if model.positions and context > model.positions:
        raise InvalidArgumentError(
            f"context={context} is more than the model's positions={model.positions}; give that or less"
        )


def _rows(model: ModelDescription, sequence_length: int | None) -> int:
    """The tokens of a sequence; InvalidArgumentError if they are neither given nor known."""
    rows = model.rows_of(sequence_length or 1)
    if rows is None:
        return 1
    if sequence_length is None and model.rows_of(1) != model.rows_of(2):
        raise InvalidArgumentError(f"{type(model).__name__} has sequences of any length; give sequence_length")
    return rows
