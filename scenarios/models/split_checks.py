"""Whether a split fits a model, a sequence length and a cluster; what would, where it does not."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError, UnimplementedError
from .nearest import nearest_multiples, nearest_where, or_text

if TYPE_CHECKING:
    from .description import ModelDescription
    from .split import Split


def check_fits(
    split: Split, model: ModelDescription, sequence_length: int, devices_available: int | None
) -> tuple[str, ...]:
    """Warnings; raises as `Split.check`."""
    _check_tensor_parallel(split, model)
    _check_experts(split, model)
    length = model.rows_of(sequence_length)
    if length is not None:
        _check_sequence(split, model, length)
    elif split.cp > 1 or split.sequence_parallel:
        raise InvalidArgumentError(
            f"{type(model).__name__} has no sequence to cut; give cp=1 and leave sequence_parallel out"
        )
    return () if devices_available is None else _check_devices(split, devices_available)


def _check_tensor_parallel(split: Split, model: ModelDescription) -> None:
    sizes, kv_heads = model.cut_by_tensor_parallel, model.shared_heads or 1
    if split.tp > 1 and not sizes:
        raise InvalidArgumentError(f"tp={split.tp}: {type(model).__name__} has nothing to cut by tp; give tp=1")
    wrong = [f"does not divide {name}={size}" for name, size in sizes.items() if size % split.tp]
    if kv_heads % split.tp and split.tp % kv_heads:
        wrong.append(f"is neither a divisor nor a multiple of kv_heads={kv_heads}")
    if wrong:
        near = nearest_where(
            split.tp,
            range(1, min(sizes.values()) + 1),
            lambda tp: all(it % tp == 0 for it in sizes.values()) and (kv_heads % tp == 0 or tp % kv_heads == 0),
        )
        raise InvalidArgumentError(f"tp={split.tp} {wrong[0]}; give tp={or_text(near)}")


def _check_experts(split: Split, model: ModelDescription) -> None:
    if split.ep == 1:
        return
    shared = model.shared_by_expert_parallel
    if not shared:
        raise InvalidArgumentError(f"ep={split.ep}: {type(model).__name__} has no experts; give ep=1")
    for name, count in shared.items():
        if count % split.ep:
            near = nearest_where(
                split.ep,
                range(1, split.dp + 1),
                lambda ep: split.dp % ep == 0 and all(it % ep == 0 for it in shared.values()),
            )
            raise InvalidArgumentError(f"ep={split.ep} does not divide {name}={count}; give ep={or_text(near)}")


def _check_sequence(split: Split, model: ModelDescription, length: int) -> None:
    if length < 1:
        raise InvalidArgumentError(f"sequence_length={length} is no positive number; give 1 or more")
    if model.positions and length > model.positions:
        raise InvalidArgumentError(
            f"sequence_length={length} is more than the model's positions={model.positions}; give that or less"
        )
    parts = 2 * split.cp if split.cp > 1 and split.cp_kind == "ring" else split.cp
    if length % parts:
        product = f"2 * cp = {parts}" if parts > split.cp else f"cp={split.cp}"
        near = or_text(nearest_multiples(length, parts))
        raise InvalidArgumentError(f"{product} does not divide sequence_length={length}; give sequence_length={near}")
    _check_exchanged_heads(split, model)
    if parts > split.cp and model.attended(length) < length:
        raise UnimplementedError(
            f'a ring has no window of attention ({model.attended(length)} of {length} tokens); use cp_kind="heads"'
        )
    rows = length // split.cp * split.microbatch
    if rows % split.tp and (split.sequence_parallel or model.shared_by_expert_parallel):
        near = or_text(nearest_multiples(length, lcm(parts, split.tp * split.cp)))
        why = "sequence_parallel" if split.sequence_parallel else "the way to experts"
        raise InvalidArgumentError(
            f"tp={split.tp} does not divide the {rows} rows of a micro-batch on a rank (sequence_length / cp * "
            f"microbatch), which {why} parts; give sequence_length={near}"
        )


def _check_exchanged_heads(split: Split, model: ModelDescription) -> None:
    """With cp_kind "heads" a rank has 1 / cp of the heads that tp leaves it."""
    if split.cp == 1 or split.cp_kind == "ring":
        return
    heads, shared = model.cut_by_tensor_parallel["heads"] // split.tp, model.shared_heads
    kv_heads = heads if shared is None else max(shared // split.tp, 1)

    def works(cp: int) -> bool:
        return heads % cp == 0 and (kv_heads % cp == 0 or cp % kv_heads == 0)

    if not works(split.cp):
        near = or_text(nearest_where(split.cp, range(1, heads + 1), works))
        raise InvalidArgumentError(
            f"cp={split.cp} cannot share out the {heads} heads of a rank, {kv_heads} of keys and values, by "
            f'cp_kind="heads"; give cp={near}, or cp_kind="ring"'
        )


def _check_devices(split: Split, available: int) -> tuple[str, ...]:
    product = f"tp * pp * cp * dp = {split.tp} * {split.pp} * {split.cp} * {split.dp} = {split.devices}"
    if split.devices > available:
        model_parallel = split.devices // split.dp
        dp = nearest_where(available // model_parallel, range(1, split.dp), lambda size: size % split.ep == 0)
        hint = (
            f"dp={dp[0]} needs {dp[0] * model_parallel}"
            if dp and dp[0] * model_parallel <= available
            else (f"give tp * pp * cp of at most {available}")
        )
        raise InvalidArgumentError(f"{product} devices, the cluster has {available}; {hint}")
    if split.devices < available:
        return (f"{product} devices of the cluster's {available} are used; the others do nothing",)
    return ()
