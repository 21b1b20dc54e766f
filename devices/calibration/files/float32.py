"""Files of float32 kernels: products_fp32.csv, elementwise_fp32.csv.

Their rows are one call each on an idle stream, the host's launch included (`timing/fits/kernels/launched.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...timing.fits.kernels.elementwise import ElementwiseRows
from ...timing.fits.kernels.kernel_rows import KernelRows
from ...timing.fits.kernels.products_fp32 import Fp32ProductRows
from ..kernel_file import KernelFile
from ..validation.rows import COUNT, TEXT, MeasuredRows


def _rows(family: type[KernelRows], columns: Sequence[str], lines: MeasuredRows) -> KernelRows:
    return family({"op": lines.texts["op"]}, {name: lines.keys[name] for name in columns})


def _file(name: str, family: type[KernelRows], *, pooled: bool) -> KernelFile:
    """A file of NeuSight's measurements: an op, the GPU, the family's sizes, microseconds."""
    return KernelFile(
        name,
        f"{name}.csv",
        family,
        "gpu",
        {"op": TEXT, **dict.fromkeys(family.COUNTS, COUNT)},
        "latency_us",
        1000,
        partial(_rows, family, family.COUNTS),
        pooled=pooled,
        by=("op",),
    )


PRODUCTS_FP32 = _file("products_fp32", Fp32ProductRows, pooled=False)
ELEMENTWISE_FP32 = _file("elementwise_fp32", ElementwiseRows, pooled=True)
FLOAT32_FILES = (PRODUCTS_FP32, ELEMENTWISE_FP32)
