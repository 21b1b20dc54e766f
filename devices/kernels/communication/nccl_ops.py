"""The NCCL ops: members that name a group of their own (NcclAllReduce), and sums of inputs that were sent here.

TensorFlow replaces NcclReduce and NcclBroadcast by sends and receives of NCCL; here the inputs come by those that the
partitioner makes, and the values are the same.
"""

from __future__ import annotations

import numpy as np

from ....graph.dtypes import Array
from ..checks import require
from ..registry import Call, Construction, Kernel, Start, deferred_kernel, kernel, simple
from .collective_ops import join
from .combining import merged, reduced
from .meeting import InstanceKey, Member, Terms

_MERGE_OPS = {b"sum": b"Add", b"prod": b"Mul", b"min": b"Min", b"max": b"Max"}


@deferred_kernel("NcclAllReduce")
def all_reduce(node: Construction) -> Start:
    """All members of the group `shared_name` get the values merged."""
    attrs, combine = node.attrs, reduced(_MERGE_OPS[node.attrs["reduction"]])
    key = InstanceKey(f"'{attrs['shared_name'].decode(errors='replace')}' of NCCL", 0)

    def start(call: Call, value: Array) -> None:
        value = np.asarray(value)
        terms = Terms("an NCCL all-reduce", attrs["num_devices"], node.output_types[0], value.shape)
        join(node, call, key, Member(call, node.device, value, terms, combine))

    return start


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
