"""The files of measured kernels that there are, in the order of the report; see `kernel_file.py`.

    for of in KERNEL_FILES:
        of.name, of.file        "convolutions_fp32", "convolutions_fp32.csv"

Their definitions stand in `files/`, a module a topic.
"""

from __future__ import annotations

from .files.attention import ATTENTION_FILES
from .files.convolutions import CONVOLUTIONS_FP32
from .files.experts_and_low_bit import EXPERTS, LOW_BIT
from .files.float32 import FLOAT32_FILES
from .kernel_file import KernelFile

KERNEL_FILES: tuple[KernelFile, ...] = (*FLOAT32_FILES, CONVOLUTIONS_FP32, LOW_BIT, EXPERTS, *ATTENTION_FILES)
