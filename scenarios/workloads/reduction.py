"""Every device computes an array, and the first device needs their sum.

Result: "total", float [length]. Both ways of adding add the same numbers, in another order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import GraphDef
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor


def all_to_one(devices: Sequence[str], length: int) -> GraphDef:
    """All arrays are sent to the first device, which adds them with one AddN."""
    b = GraphBuilder()
    shares = _shares(b, devices, length)
    b.op("AddN", shares, name="total", device=devices[0])
    return b.graph_def()


def all_to_one_tree(devices: Sequence[str], length: int) -> GraphDef:
    """Devices add in pairs, then pairs of pairs: log2(devices) rounds, each of which halves the number of arrays."""
    b = GraphBuilder()
    sums = list(zip(devices, _shares(b, devices, length), strict=True))
    while len(sums) > 1:
        pairs = zip(sums[::2], sums[1::2], strict=False)
        added = [(device, b.op("AddN", [x, y], name="sum", device=device)[0]) for (device, x), (_, y) in pairs]
        sums = added + sums[2 * len(added) :]
    b.identity(sums[0][1], name="total", device=devices[0])
    return b.graph_def()


def _shares(b: GraphBuilder, devices: Sequence[str], length: int) -> list[Tensor]:
    """The array of each device: on device k (from 0) `length` times (k + 1) squared."""
    shares = []
    for k, device in enumerate(devices):
        with b.device(device), b.scope(f"share{k}"):
            shares.append(b.op("Square", b.op("Fill", [length], float(k + 1)), name="squares")[0])
    return shares
