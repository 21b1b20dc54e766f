"""Why a search for inference has no answer: nothing fits, or nothing is fast enough; with what does or is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....errors import InvalidArgumentError, ResourceExhaustedError
from ..machine import Machine
from .memory import HeldBytes
from .passages import ReplicaLayout
from .plan import InferenceEstimate
from .rank import ServedModel

_GIB = 1 << 30


def nothing_fits(
    model: ServedModel,
    machine: Machine,
    most: Mapping[ReplicaLayout, int],
    smallest: tuple[ReplicaLayout, int, HeldBytes],
    batches: Sequence[int] | None,
) -> ResourceExhaustedError:
    """`most` is the largest batch that fits by layout, `smallest` the row with the least memory."""
    layout, batch, held = smallest
    limit = machine.memory_limit_bytes
    largest, room = max(most.items(), key=lambda it: it[1])
    text = (
        f"{type(model).__name__} with {model.parameters:,} parameters fits nowhere on {machine.devices} "
        f"{machine.spec.name}: the smallest, {layout.text} with batch={batch}, takes {held.allocated / _GIB:.1f} GiB "
        f"on a device, {held.cache / _GIB:.1f} of them keys and values; the limit is {limit / _GIB:.1f} GiB"
    )
    if room and batches is not None:
        return ResourceExhaustedError(f"{text}; batch={room} fits, with {largest.text}")
    weights = held.allocated - held.cache
    if weights <= limit:
        return ResourceExhaustedError(f"{text}; give a shorter prompt or output, or more GPUs")
    return ResourceExhaustedError(
        f"{text}; give {-(-weights // limit)} times as many GPUs to a replica, or GPUs with more memory"
    )


def too_slow(estimates: Sequence[InferenceEstimate], tpot_ms: float | None) -> InvalidArgumentError:
    """No row is as fast as asked for."""
    best = min(estimates, key=lambda one: one.decode_ms)
    return InvalidArgumentError(
        f"tpot_ms={tpot_ms}: no configuration is as fast; tp={best.tp},pp={best.pp},ep={best.ep} with "
        f"batch={best.batch} takes {best.decode_ms:.3g} ms for a token; give that or more, or smaller batches"
    )
