"""The tables of op efficiencies that were measured on one B200 machine for SimuMax: they are of no other device.

    gemm_b200.csv               b,m,k,n,layout,accumulate,out_dtype,efficiency      share of 2250 TFLOP/s
    memory_bound_b200.csv       op,efficiency,gbps,latency_us                       numbers of the model itself
    collectives_b200_fit.csv    op,scale,offset,efficiency,latency_us,...           a fit, not measurements: refused

A product takes 2 * b * m * k * n / (efficiency * 2250e12) s. The numbers of memory-bound ops are given, not fitted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from ....errors import InvalidArgumentError
from ..tables import ColumnSpec, MeasuredTable, read_table
from .measurements import GivenMemory, Measurements, Refused, TimedProduct

DEVICE = "B200-SXM"
PEAK_FLOPS_PER_S = 2250e12
LAYOUTS = ("TN", "NN", "NT")

_PRODUCTS = (
    *(ColumnSpec(name, "count") for name in "bmkn"),
    ColumnSpec("layout"),
    ColumnSpec("efficiency", "positive"),
)
_MEMORY = (
    ColumnSpec("op"),
    ColumnSpec("efficiency", "positive"),
    ColumnSpec("gbps", "positive"),
    ColumnSpec("latency_us", "positive"),
)
_KINDS = {"default": "default", "permute_fwd": "permute", "permute_bwd": "permute", "ce": "cross_entropy"}


def is_b200_table(header: Collection[str]) -> bool:
    """Whether columns are those of one of the tables."""
    needed = ({"b", "layout", "efficiency"}, {"op", "gbps", "efficiency"}, {"op", "scale", "offset"})
    return any(names <= set(header) for names in needed)


def read_b200_table(path: Path, header: Collection[str], names: Sequence[str]) -> Measurements:
    """The rows of a table; InvalidArgumentError for another device, and for the table that is a fit itself."""
    if "scale" in header:
        raise InvalidArgumentError(
            f"{path}:1: scale and offset are numbers of somebody's fit, not measurements; "
            "give a log of nccl-tests or system,op_name,num_gpus,elements_fp16,latency_ms"
        )
    if DEVICE not in names:
        raise InvalidArgumentError(f"{path}:1: these efficiencies were measured on {DEVICE}; give --device {DEVICE}")
    return _products(read_table(path, _PRODUCTS)) if "b" in header else _memory(read_table(path, _MEMORY))


def _products(table: MeasuredTable) -> Measurements:
    b, m, k, n = (table.counts(name) for name in "bmkn")
    efficiency, layouts = table.floats("efficiency"), table.texts("layout")
    rows = []
    for r in range(len(table)):
        if layouts[r] not in LAYOUTS:
            raise InvalidArgumentError(f"{table.where(r)}: layout = {layouts[r]!r} must be one of {', '.join(LAYOUTS)}")
        flops = 2.0 * int(b[r]) * int(m[r]) * int(k[r]) * int(n[r])
        time_ns = 1e9 * flops / (_share(table, r, float(efficiency[r])) * PEAK_FLOPS_PER_S)
        rows.append(TimedProduct(int(m[r]), int(n[r]), int(k[r]), int(b[r]), layouts[r], time_ns))
    return Measurements(tuple(rows))


def _share(table: MeasuredTable, row: int, efficiency: float) -> float:
    if efficiency > 1:
        raise InvalidArgumentError(f"{table.where(row)}: efficiency = {efficiency} must be a share up to 1")
    return efficiency


def _memory(table: MeasuredTable) -> Measurements:
    """Numbers by kind of op; forward and backward of a permutation are one kind with their mean efficiency."""
    of_kind: dict[str, list[int]] = {}
    refused = []
    for r, op in enumerate(table.texts("op")):
        if op in _KINDS:
            of_kind.setdefault(_KINDS[op], []).append(r)
        else:
            refused.append(Refused(table.where(r), f"{op!r} is no kind of memory-bound op that a model holds"))
    if "default" not in of_kind:
        raise InvalidArgumentError(f"{table.path}:1: no row is of op 'default'; it is needed for ops of no other kind")
    efficiency, gbps, latency_us = (table.floats(name) for name in ("efficiency", "gbps", "latency_us"))
    given = []
    for kind, rows in of_kind.items():
        share = float(np.mean([_share(table, r, float(efficiency[r])) for r in rows]))
        bandwidth = round(float(gbps[rows[0]]) * 1e9)
        given.append(GivenMemory(kind, bandwidth, share, float(latency_us[rows[0]]) * 1e3, len(rows)))
    return Measurements(refused=tuple(refused), memory=tuple(given))
