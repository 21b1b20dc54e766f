"""Which ops exchange tensors with other devices, or with other steps, while they run.

Flows in: what an op declares. Flows out: whether it is one. TensorFlow's registry flags the collectives that its own
runtime knows. What it leaves out tells by its arguments with whom it communicates, but for a few that only a compiler's
passes understand: their records say so.
"""

from __future__ import annotations

from collections.abc import Iterable

# Inputs and attrs that say who takes part: groups of CollectiveReduce and its kin, of NCCL's ops and of TPUs.
_PARTIES = frozenset({"communicator", "group_assignment", "group_key", "num_devices", "source_target_pairs"})
_POINT_TO_POINT = "send_device"  # of a transfer, which partitioning makes and matches


def is_collective(arguments: Iterable[str], *, flagged: bool) -> bool:
    """Whether an op with those names of inputs and attrs is one; `flagged` is what registry and record say of it."""
    names = set(arguments)
    return _POINT_TO_POINT not in names and (flagged or not names.isdisjoint(_PARTIES))
