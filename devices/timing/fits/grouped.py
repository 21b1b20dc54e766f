"""The time of grouped products of experts: the soft maximum of each group's latency and bytes, and of the operations.

    forward, 160 groups of 154 x 3072 x 5120, B200:    groups 1.59 ms, operations 0.73 ms  ->  1.75 ms
    forward, 20 groups of 1232 x 3072 x 5120:          groups 0.25 ms, operations 0.73 ms  ->  0.77 ms

All `groups` products have the same m (tokens of an expert), n and k. The stages are "fwd", "bwd_grad_act" (gradient of
the activations) and "bwd_grad_w" (gradient of the weights, which is added to a buffer of `gradient_bytes` an element).
A group takes a latency and its bytes by a bandwidth, one group after the other; the rate is that of large groups. The
share of the peak is at most 1. Latency and bandwidth are told apart only as far as sizes of groups differ: together
they are right, alone each may be off (a bandwidth even above the memory's).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from attrs import frozen

from ....graph.arrays import Floats, Numbers
from .layer_model import LayerColumns, LayerModel
from .layers import SizeRanges, soft_maximum
from .sourced import Unit

STAGES = ("fwd", "bwd_grad_act", "bwd_grad_w")
ITEM_BYTES = 2  # bf16
UNITS: Mapping[str, Unit] = {
    "latency": "ns",
    "bandwidth": "B/s",
    "rate": "FLOP/s",
    "sharpness": "",
    "spread": "",
}
SIZES = ("groups", "m", "n", "k")


class GroupedProducts(LayerColumns):
    """Grouped products, whose kinds are the stages."""

    KIND, KINDS = "stage", STAGES
    COLUMNS = (*SIZES, "gradient_bytes")

    @property
    def sizes(self) -> dict[str, Numbers]:
        """What the formula depends on, in the order of `SIZES`."""
        return {name: self.columns[name] for name in SIZES}

    @property
    def flops(self) -> Floats:
        """Operations of all groups, a multiply-add as two."""
        groups, m, n, k = (column.astype(np.float64) for column in self.sizes.values())
        return np.asarray(2 * groups * m * n * k)

    @property
    def group_bytes(self) -> Floats:
        """Bytes of one group: activations and weights in bf16; a weight's gradient is read and written."""
        _, m, n, k = (column.astype(np.float64) for column in self.sizes.values())
        weights = n * k * np.where(self.of_kind("bwd_grad_w"), 2 * self.columns["gradient_bytes"], ITEM_BYTES)
        return np.asarray((m * k + m * n) * ITEM_BYTES + weights)

    @property
    def bytes(self) -> Floats:
        """Bytes of all groups."""
        return np.asarray(self.columns["groups"] * self.group_bytes)


class GroupedNumbers(NamedTuple):
    """What is fitted for one stage; `spread` is half of the 80 % interval in log time."""

    latency_ns: float
    bandwidth_bytes_per_s: float
    rate_flops_per_s: float
    sharpness: float
    spread: float = 1.0

    def time_ns(self, grouped: GroupedProducts, ranges: SizeRanges) -> Floats:
        """Times by row, not capped, whatever the ranges."""
        one_ns = self.latency_ns + grouped.group_bytes * 1e9 / self.bandwidth_bytes_per_s
        return soft_maximum(
            grouped.columns["groups"] * one_ns, grouped.flops * 1e9 / self.rate_flops_per_s, self.sharpness
        )


@frozen(eq=False)
class GroupedModel(LayerModel[GroupedProducts, GroupedNumbers]):
    """Numbers by stage; the table `[fits.grouped]` of a calibration file."""

    LAYERS, SIZES, UNITS, MAKE = GroupedProducts, SIZES, UNITS, GroupedNumbers
