"""The sets of measurements that validation knows, in the order of the report."""

from __future__ import annotations

from ..kernel_files import KERNEL_FILES
from .allreduce import ALLREDUCE_VTRAIN
from .collectives import COLLECTIVES_NCCL
from .gemm import GEMM_BF16
from .kernel_set import kernel_set
from .maxmin import MAXMIN_STAR
from .measured_set import MeasuredSet

SETS: tuple[MeasuredSet, ...] = (
    GEMM_BF16,
    *map(kernel_set, KERNEL_FILES),
    COLLECTIVES_NCCL,
    ALLREDUCE_VTRAIN,
    MAXMIN_STAR,
)
