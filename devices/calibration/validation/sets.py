"""The sets of measurements that validation knows, in the order of the report."""

from __future__ import annotations

from .collectives import COLLECTIVES_NCCL
from .gemm import GEMM_BF16
from .maxmin import MAXMIN_STAR
from .measured_set import MeasuredSet

SETS: tuple[MeasuredSet, ...] = (GEMM_BF16, COLLECTIVES_NCCL, MAXMIN_STAR)
