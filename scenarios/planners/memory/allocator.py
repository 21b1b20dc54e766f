"""What PyTorch's caching allocator reserves beyond what is allocated.

It asks the device for segments: 2 MiB for tensors up to 1 MiB, 20 MiB up to 10 MiB, else the size rounded up to 2 MiB.
States are large and stay: their segments are full but for the last 2 MiB. Activations and temporaries come and go in
many sizes; a freed block serves another size only in part, and what is left of it is reserved and not allocated. What
the CUDA context and NCCL have lies outside of the allocator, 1 to 2 GiB of a device.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....graph.arrays import Floats

_SEGMENT_BYTES = 2 * 2**20
_SMALL_SEGMENTS_BYTES = _SEGMENT_BYTES + 20 * 2**20
"""one of small tensors and one of those up to 10 MiB, which a step always has"""
_MOVING = ("activations", "temporaries", "communication")
_LEFT_OVER = 0.05
"""of what comes and goes; assumed, no measurement of reserved memory is at hand"""


def fragmentation(by_category: Mapping[str, Floats]) -> Floats:
    """Bytes reserved and not allocated, of bytes by category that are."""
    moving = sum(by_category[name] for name in _MOVING)
    allocated = np.asarray(sum(by_category.values()))
    rounded = np.ceil(allocated / _SEGMENT_BYTES) * _SEGMENT_BYTES - allocated
    return np.asarray(np.ceil(rounded + _SMALL_SEGMENTS_BYTES + _LEFT_OVER * moving))
