"""Kernels that are bound by memory, in float32: elementwise ones, softmax and layer norms, on rows x columns elements.

    add      4096 x 4096    three arrays over the bandwidth that such kernels reach, or arithmetic if that is longer
    addu     4096 x 4096    an array and a scalar: two arrays
    softmax  4096 x 1000    a warp holds a row in its registers: read once, written once
    softmax  4096 x 1100    a block of threads reads a row several times, some of it from memory again
    layer_norm              a block a row, in steps of 512 columns

A row of softmax or layer norm takes an SM `row` and for each step of 1,024 columns `step`, so that few columns are slow
however few bytes they have. The surface learns what steps and alignment change; elementwise kernels need none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from .....graph.arrays import Floats, Numbers
from ....spec import DeviceSpec
from ..layers import soft_maximum
from .kernel_rows import FitNumber
from .launched import LAUNCH, LaunchedRows

OF_TWO_ARRAYS, OF_ONE_ARRAY = ("add", "mul", "div", "pow"), ("addu", "mulu", "divu", "powu", "relu", "gelu", "tanh")
"""one output each; those with a "u" take a scalar too"""
NORMS = ("softmax", "layer_norm")
ITEM_BYTES = 4
WARP_COLUMNS = 1024
"""columns of a softmax that a warp holds in its registers, in PyTorch and its likes"""
NORM_STEP, SHARPNESS = 512, 3.0
L2_SHARE = 0.85
"""arrays up to about this share of the L2 are still in it when a kernel runs again"""


class ElementwiseRows(LaunchedRows):
    """Kernels on arrays of rows x columns in float32."""

    PART, WHAT = "elementwise_fp32", "kernels bound by memory in float32"
    FORMULA = "bytes / (bandwidth * share), or what the SMs take for elements, rows and steps"
    TEXTS: ClassVar[Mapping[str, Sequence[str]]] = {"op": (*OF_TWO_ARRAYS, *OF_ONE_ARRAY, *NORMS)}
    COUNTS = ("rows", "columns")
    NUMBERS = (
        *LAUNCH,
        FitNumber("bandwidth", "", 0.85, 0.2, 1.3),
        FitNumber("cached", "", 0.3, 0.01, 3.0),
        FitNumber("again", "", 0.5, 0.01, 3.0),
        FitNumber("row", "ns", 100, 1, 5000),
        FitNumber("step", "ns", 150, 5, 5000),
    )
    SPREAD = 0.12
    ROBUST_BEYOND = 0.03

    @property
    def is_norm(self) -> bool:
        """Whether the rows, of one group, are of softmax or layer norm."""
        return self.groups[0] in NORMS

    @property
    def ranged(self) -> Mapping[str, Numbers]:
        """Elements where the shape makes no difference, else both sizes."""
        if len(self) and self.is_norm:
            return self.counts
        return {"elements": self.counts["rows"] * self.counts["columns"]}

    @property
    def elements(self) -> Floats:
        """Elements by row."""
        return self.size("rows") * self.size("columns")

    @property
    def flops(self) -> Floats:
        """One operation an element, of softmax 5 and of layer norm 8."""
        each = {"softmax": 5.0, "layer_norm": 8.0}
        return np.asarray(self.elements * np.array([each.get(op, 1.0) for op in self.texts["op"]]), dtype=np.float64)

    @property
    def bytes(self) -> Floats:
        """Each array once."""
        arrays = np.array([3.0 if op in OF_TWO_ARRAYS else 2.0 for op in self.texts["op"]])
        return np.asarray(self.elements * arrays * ITEM_BYTES, dtype=np.float64)

    def datasheet_ns(self, spec: DeviceSpec) -> Floats:
        """The bytes by the bandwidth."""
        return self.bytes * 1e9 / spec.memory_bandwidth_bytes_per_s

    def formula_ns(self, numbers: Sequence[float], spec: DeviceSpec) -> Floats:
        """Bytes, and what SMs take for rows and steps."""
        _, _, bandwidth, cached, again, row, step = numbers
        faster = 1 + cached * np.exp(-((self.bytes / max(L2_SHARE * spec.l2_bytes, 1)) ** 4))
        moved = self.datasheet_ns(spec) / (bandwidth * faster)
        by_sm = 1 / max(spec.sm_count, 1)
        if not self.is_norm:
            return np.maximum(moved, self.elements / 1024 * by_sm * step)
        busy = self.size("rows") * by_sm * (row + self.steps * step)
        return soft_maximum(moved * (1 + again * self.is_read_again), busy, SHARPNESS)

    @property
    def is_read_again(self) -> Floats:
        """1 where a row is read more than once."""
        return np.asarray(np.where(self.of_type("op", "softmax") & (self.size("columns") <= WARP_COLUMNS), 0.0, 1.0))

    @property
    def steps(self) -> Floats:
        """Columns of a row in 1,024, as many as its threads go through."""
        columns = self.size("columns")
        in_warps = np.exp2(np.ceil(np.log2(np.maximum(columns, 32))))
        in_blocks = np.ceil(columns / NORM_STEP) * NORM_STEP
        is_warp = self.of_type("op", "softmax") & (columns <= WARP_COLUMNS)
        return np.asarray(np.where(is_warp, in_warps, in_blocks) / 1024)

    @classmethod
    def has_surface(cls, group: str) -> bool:
        """Only norms have one."""
        return group in NORMS

    def features(self, spec: DeviceSpec) -> dict[str, Floats]:
        """Sizes, how full the last step is, alignment."""
        rows, columns = self.size("rows"), self.size("columns")
        return {
            "log2 rows": np.log2(rows),
            "log2 columns": np.log2(columns),
            "columns": columns / 1024,
            "full": self.steps * 1024 / columns,
            "aligned": (self.counts["columns"] % 4 == 0).astype(np.float64),
            "again": 3 * self.is_read_again,
        }
