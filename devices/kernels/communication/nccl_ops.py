"""The NCCL ops: members that name a group of their own (NcclAllReduce), and sums of inputs that were sent here.

TensorFlow replaces NcclReduce and NcclBroadcast by sends and receives of NCCL; here the inputs come by those that the
partitioner makes, and the values are the same.
"""

from __future__ import annotations

import numpy as np

from ....graph.analysis.collective_seats import SeatPlace
from ....graph.dtypes import Array
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from .collective_ops import FindSeat, Form, Seat, collective
from .combining import merged, reduced
from .meeting_table import InstanceKey

_MERGE_OPS = {b"sum": b"Add", b"prod": b"Mul", b"min": b"Min", b"max": b"Max"}


def _by_shared_name(node: Construction) -> FindSeat:
    """The seats of members that name their group."""
    name = node.attrs["shared_name"].decode(errors="replace")
    seat = Seat(InstanceKey(SeatPlace.NAME.group_name(name), 0), node.attrs["num_devices"])
    return lambda: seat


def _all_reduce(node: Construction) -> Form:
    return Form("an NCCL all-reduce", reduced(_MERGE_OPS[node.attrs["reduction"]]))


collective("NcclAllReduce", seat=_by_shared_name, form=_all_reduce)


@kernel("NcclReduce")
def reduce(node: Construction) -> Kernel:
    """The inputs merged, on the device of the node."""
    merge = _MERGE_OPS[node.attrs["reduction"]]

    def compute(*values: Array) -> Array:
        shapes = {np.shape(value) for value in values}
        require(len(shapes) == 1, f"the inputs of a reduction must have one shape, not {sorted(shapes)}")
        return merged([np.asarray(value) for value in values], merge)

    return compute


simple("NcclBroadcast", lambda value: value)
