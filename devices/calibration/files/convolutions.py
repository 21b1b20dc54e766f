"""The file of measured convolutions, `convolutions_fp32.csv`.

    op,gpu,batch,in_channels,out_channels,kernel,size,stride,padding,algorithm,latency_us
    conv,Tesla T4,18,151,1023,3,7,1,1,winograd,893.62

`algorithm` is a label: it teaches the fit which of the algorithms of `Convolutions` has to be the fastest. Rows to
predict have none, so the choice is told from the shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....graph.arrays import Floats
from ...spec import DeviceSpec
from ...timing.fits.kernels.convolution_algorithms import ALGORITHMS, DIRECT, EXPLICIT, FFT, FUSED, IMPLICIT, WINOGRAD
from ...timing.fits.kernels.convolutions import FORWARD, Convolutions
from ...timing.fits.kernels.fastest_algorithm import fastest, times_by_algorithm
from ...timing.fits.kernels.kernel_model import KernelModel
from ...timing.fits.kernels.kernel_rows import KernelRows
from ..fitting.kernels import Lesson, TimedKernels, fit_kernels
from ..kernel_file import KernelFile, Measured
from ..validation.rows import COUNT, WHOLE, MeasuredRows

LABEL = "algorithm"
LABEL_OF: Mapping[str, str] = {
    DIRECT: "direct",
    IMPLICIT: "implicit_gemm",
    EXPLICIT: "gemm",
    FUSED: "winograd",
    WINOGRAD: "winograd",
    FFT: "fft",
}
"""what the file calls the algorithms"""


def rows_of(lines: MeasuredRows) -> Convolutions:
    """Square images, filters and strides."""
    keys = lines.keys
    out = (keys["size"] + 2 * keys["padding"] - keys["kernel"]) // keys["stride"] + 1
    counts = {
        "images": keys["batch"],
        "rows": out,
        "columns": out,
        "channels": keys["in_channels"],
        "filters": keys["out_channels"],
        "tall": keys["kernel"],
        "broad": keys["kernel"],
        "stride": keys["stride"],
        "groups": np.ones(len(lines), dtype=np.int64),
    }
    return Convolutions({"pass": (FORWARD,) * len(lines)}, counts)


def labels_of(
    models: Sequence[KernelModel[Any]], rows: KernelRows, spec: DeviceSpec
) -> tuple[str, ...]:  # Any: rows of every family
    """What the file would call the algorithm that these models say is the fastest."""
    assert isinstance(rows, Convolutions)
    return tuple(LABEL_OF[name] for name in fastest(times_by_algorithm(models, rows, spec)))


def lesson_of(timed: TimedKernels[Convolutions], labels: tuple[str, ...]) -> Lesson:
    """By row how much longer, in log time, the algorithm that ran is said to take than the fastest."""
    names = np.array([LABEL_OF[name] for name in ALGORITHMS], dtype=object)
    ran = names[:, None] == np.array(labels, dtype=object)[None, :]

    def errors(numbers: tuple[float, ...]) -> Floats:
        times = timed.rows.times_ns(numbers, timed.spec)
        known = np.where(ran, times, np.inf).min(axis=0)
        return np.where(np.isfinite(known), np.log(np.where(np.isfinite(known), known, 1.0) / times.min(axis=0)), 0.0)

    return errors


def fit(
    measured: Measured, lines: Mapping[str, MeasuredRows], *, source: str, date: str, pooled: bool
) -> dict[str, KernelModel[Any]]:
    """The models of each system, taught by the labels of its rows."""
    lessons = {name: lesson_of(timed, lines[name].labels[LABEL]) for name, timed in measured.items()}
    return fit_kernels(measured, source=source, date=date, pooled=pooled, lessons=lessons)


CONVOLUTIONS_FP32 = KernelFile(
    "convolutions_fp32",
    "convolutions_fp32.csv",
    Convolutions,
    "gpu",
    dict.fromkeys(("batch", "in_channels", "out_channels", "kernel", "size", "stride"), COUNT) | {"padding": WHOLE},
    "latency_us",
    1000.0,
    rows_of,
    labels=(LABEL,),
    labels_of=labels_of,
    fit=fit,
)
