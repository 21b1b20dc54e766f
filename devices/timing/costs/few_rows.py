"""Grouped products with smaller groups than were measured: between the fit and the roofline.

    256 groups of m x 4096 by 7168 on a B200-SXM, measured from 128 rows a group on

    m     the fit says   roofline   answer
    128   3.95 ms        2.56 ms    3.95 ms, as fitted
    64    3.58 ms        2.50 ms    2.99 ms: the mean of their logarithms, one halving outside
    1     3.43 ms        2.44 ms    2.45 ms, at most 4.0 ms

The fit has a latency for each group, one after the other, as training launches them; with small groups it would be all
that is left. How far kernels overlap such groups nobody measured alone, so the interval reaches up to the fit.
"""

from __future__ import annotations

import numpy as np

from ...spec import DeviceSpec
from ..fits.layer_model import LayerColumns
from ..fits.layers import SizeRanges
from ..fits.prediction import Prediction
from ..fits.products import bf16_peak

SIDES = ("m", "n", "k")


def held_by_bytes(said: Prediction, asked: LayerColumns, ranges: SizeRanges, spec: DeviceSpec) -> Prediction:
    """What a fit says, led to the bytes with each halving of a side of the groups below those that were measured."""
    if not set(SIDES) <= set(ranges):
        return said
    below = np.zeros(len(asked))
    for side in SIDES:
        below += np.maximum(np.log2(ranges[side][0] / asked.sizes[side]), 0.0)
    if not below.any():
        return said
    rate = bf16_peak(spec) * spec.matrix_efficiency * spec.sustained_clock
    moving_ns, computing_ns = asked.bytes * 1e9 / spec.achieved_bytes_per_s, asked.flops * 1e9 / rate
    least_ns = np.maximum(moving_ns, computing_ns) + spec.op_overhead_ns
    fitted_ns, trust = np.maximum(said.time_ns, least_ns), np.exp2(-below)
    time_ns = np.where(below > 0, fitted_ns**trust * least_ns ** (1 - trust), said.time_ns)
    wider = said.high_ns / said.time_ns
    high_ns = np.maximum(time_ns * wider, np.where(below > 0, fitted_ns, 0.0))
    return Prediction(time_ns, time_ns / wider, high_ns, said.provenance)
