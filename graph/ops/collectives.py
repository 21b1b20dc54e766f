"""Recognises collective ops: those that exchange tensors with other devices, or other steps, while they run.

TensorFlow's registry flags the collectives of its own runtime. Others are recognised by the names of inputs and attrs
that describe a group of devices, and a few by their records.
"""

from __future__ import annotations

from collections.abc import Iterable

# Inputs and attrs that describe the group: of CollectiveReduce and similar ops, of NCCL's ops and of TPUs.
_GROUP_ARGUMENTS = frozenset({"communicator", "group_assignment", "group_key", "num_devices", "source_target_pairs"})
_POINT_TO_POINT = "send_device"  # of Send and Recv, which the partitioner adds in pairs


def is_collective(arguments: Iterable[str], *, flagged: bool) -> bool:
    """Whether an op with these names of inputs and attrs is collective; `flagged` by the registry or by its record."""
    names = set(arguments)
    return _POINT_TO_POINT not in names and (flagged or not names.isdisjoint(_GROUP_ARGUMENTS))
